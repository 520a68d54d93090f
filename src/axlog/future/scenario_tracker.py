"""Scenarios maintained incrementally as data arrives.

Data from streams only adds scenarios, or makes existing ones impossible:

    a subtree arrives       its rows are passed up the path to the root; each step joins new rows
                            with those of the other inputs:  ΔR = ⋃ᵢ  L₁ ⋈ … ΔLᵢ … ⋈ Lₖ
    a stream ends           scenarios that depend on it become impossible
    the clock advances      scenarios whose deadline has passed become impossible
    a key value arrives     scenarios that need another node with this value become impossible

A scenario lasts at least as long as any that it dominates, because those have the same needs and
more. Dropping dominated scenarios therefore loses nothing. A scenario without needs is a row.

The rows of each input of a join are indexed (`ScenarioIndex`) by some of their values, and by the
streams that they depend on.

Cost: the nodes that arrive, and for each step up the new rows and their join partners. The end of a
stream costs the scenarios that depend on it. If calls deliver at most m trees, or two nodes of a
key may have to be one, every scenario is checked again after every update.

Not maintained incrementally (build a new `ScenarioTracker`): deletions, statements, texts that
merge when a call ends, calls that arrive with limits of their own, and the moment when a stream has
used up the calls that its messages may hold. Not supported: types, `not`. (Paper 1, section 3,
theorem 2; paper 2, section 3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from axlog.document.tree import CALL, DOCUMENT_NODE, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.gathered import Bags
from axlog.future.capacity import fits, limits_of
from axlog.future.generalized_rows import (
    NOTHING,
    Need,
    Rows,
    Values,
    add_need,
    meet,
    project,
    unify,
)
from axlog.future.grounding import has_not
from axlog.future.keys import Key, keyed_values, values_below
from axlog.future.scenarios import (
    CollectedRows,
    Scenarios,
    Sums,
    is_limited,
    own_columns,
    with_join_variables,
)
from axlog.future.search_budget import bounded, spend
from axlog.future.time_constraints import deadline
from axlog.query.compile import Relation
from axlog.query.pattern import Axis, Pattern, TimeConstraint

Scenario = tuple[Values, Need]
Found = dict[Values, None]
"""A set of rows in insertion order."""


class ScenarioIndex:
    """The rows of one input of a join, with indexes.

    Rows are only added, until a stream that they depend on ends: then they are removed. Dominated
    needs of a row are dropped, as in `generalized_rows.py`. That is safe: when a need becomes
    unsatisfiable, so do the needs that it dominates.
    """

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.rows: Rows = {}
        self._indexes: dict[tuple[int, ...], tuple[dict[Values, Found], Found]] = {}
        self._by_stream: dict[str, Found] = {}

    def take(self, rows: Rows) -> Rows:
        """Add rows, and return those that are new."""
        new: Rows = {}
        for values, needs in rows.items():
            kept = [need for need in needs if self.add(values, need)]
            if kept:
                new[values] = kept
        return new

    def add(self, values: Values, need: Need) -> bool:
        """Add an alternative need to a row; False if another dominates it."""
        known = self.rows.get(values)
        if known is not None and any(one is need for one in known):
            return False
        add_need(self.rows, values, need)
        if self.rows[values][-1] is not need:
            return False
        if known is None:
            for at, index in self._indexes.items():
                _index_row(index, at, values)
        for _, stream in need.brought:
            self._by_stream.setdefault(stream, {})[values] = None
        return True

    def depending_on(self, stream: str) -> list[Scenario]:
        """The needs that depend on a stream, with their rows."""
        return [
            (values, need)
            for values in self._by_stream.get(stream, ())
            for need in self.rows.get(values, ())
            if any(asked == stream for _, asked in need.brought)
        ]

    def remove(self, values: Values, need: Need) -> bool:
        """Remove a need of a row; whether it was present."""
        known = self.rows.get(values, [])
        left = [one for one in known if one is not need]
        if len(left) == len(known):
            return False
        if left:
            self.rows[values] = left
            return True
        del self.rows[values]
        for at, (exact, vague) in self._indexes.items():
            key = tuple(values[i] for i in at)
            group = vague if None in key else exact[key]
            del group[values]
            if not group and None not in key:
                del exact[key]
        return True

    def close(self, stream: str) -> None:
        """Remove the needs that depend on a stream, because the stream has ended."""
        for values, need in self.depending_on(stream):
            self.remove(values, need)
        self._by_stream.pop(stream, None)

    def agreeing(self, at: tuple[int, ...], key: Values) -> Iterator[Values]:
        """The rows whose values at these positions equal the key, or are unknown."""
        if not at:
            yield from self.rows
            return
        if at not in self._indexes:
            index: tuple[dict[Values, Found], Found] = ({}, {})
            for values in self.rows:
                _index_row(index, at, values)
            self._indexes[at] = index
        known, vague = self._indexes[at]
        yield from known.get(key, ())
        for values in vague:
            if all(values[i] is None or values[i] == k for i, k in zip(at, key, strict=True)):
                yield values

    def meet(self, rows: Rows, layout: list[str]) -> tuple[Rows, list[str]]:
        """A natural join with few rows, in which an unknown agrees with any value."""
        columns = self.columns
        shared = [(layout.index(c), i) for i, c in enumerate(columns) if c in layout]
        added = [i for i, c in enumerate(columns) if c not in layout]
        nodes = frozenset(i for i, _ in shared if layout[i].endswith(".node"))
        met: Rows = {}
        for left, needs in rows.items():
            known = [(i, j) for i, j in shared if left[i] is not None]
            at, key = tuple(j for _, j in known), tuple(left[i] for i, _ in known)
            for right in self.agreeing(at, key):
                unified = unify(left, right, shared, nodes)
                if unified is None:
                    continue
                values = unified + tuple(right[j] for j in added)
                more = self.rows[right]
                spend(len(needs) * len(more) * (1 + (len(values) + len(more[0].times)) // 8))
                for need in needs:
                    for other in more:
                        add_need(met, values, need.joined(other))
        return met, layout + [columns[i] for i in added]


@dataclass(slots=True)
class _Join:
    """A relation at a node above an open call, with the rows of its inputs."""

    relation: Relation
    own: Values
    edges: list[ScenarioIndex]
    passes: bool  # whether the rows of its one input pass unchanged
    choices: list[list[tuple[_Join, ScenarioIndex]]] = field(default_factory=list)
    is_dead: bool = False  # whether it can never have a row

    def parts(self) -> Iterator[ScenarioIndex]:
        yield from self.edges
        for choice in self.choices:
            for below, part in choice:
                yield from below.parts()
                yield part


class ScenarioTracker(Scenarios):
    """The scenarios of a pattern that are still possible, over a document that streams change."""

    def __init__(self, tree: Tree, pattern: Pattern, root: Relation | None = None) -> None:
        """Evaluate a pattern over a document, and keep the inputs of its joins.

        `root`: the root of the program whose rows are passed to `arrive`.
        """
        if tree.types is not None or has_not(pattern):
            raise UndecidedError(
                "AX503", "scenarios are not maintained incrementally with `not` or types"
            )
        self._joins: dict[int, dict[Relation, _Join]] = {}
        self._places = {stream: tree.parent(node) for stream, node in tree.calls().items()}
        super().__init__(tree, with_key_variables(tree, pattern), root=root)
        self.found = ScenarioIndex(self.columns)
        self._heap: list[tuple[int, int, Values, Need]] = []
        self._number = count()
        self._by_key: dict[tuple[Key, str], list[Scenario]] = {}
        self._checks_all = is_limited(tree) or self._has_several_keyed()
        self._is_timed = any(isinstance(c, TimeConstraint) for c in self.program.pattern.where)
        self._checked: object = None  # the limits when all scenarios were checked
        for key in tree.facts:
            self._seen[key] = {}
            self._note_values(key, tree.children(DOCUMENT_NODE))
        self._store(self.rows)
        self.rows = {}

    def _has_several_keyed(self) -> bool:
        return sum(len(pairs) for pairs in self._keyed.values()) > 1 and self._keeps_all

    def _note_values(self, key: Key, tops: Iterable[int]) -> set[str]:
        found = set()
        for top in tops:
            for node, value in values_below(self.tree, key, top):
                self._seen[key].setdefault(value, set()).add(node)
                found.add(value)
        return found

    # Current scenarios ----------------------------------------------------------------------------

    @property
    def is_possible(self) -> bool:
        """Whether some row can still appear."""
        return any(need.brought for needs in self.found.rows.values() for need in needs)

    def agrees(self, at: tuple[int, ...], key: Values) -> bool:
        """Whether a row with these values at some columns holds, or can still appear."""
        for values in self.found.agreeing(at, key):
            pinned = list(values)
            for i, value in zip(at, key, strict=True):
                pinned[i] = value
            if not self._agree_in_nodes(values, at, key):
                continue
            if any(
                not n.brought or self._is_satisfiable(tuple(pinned), n)
                for n in self.found.rows[values]
            ):
                return True
        return False

    def _agree_in_nodes(self, values: Values, at: tuple[int, ...], key: Values) -> bool:
        """Whether the node columns agree: an existing node never equals a future one."""
        columns = self.columns
        return all(
            values[i] == value or not columns[i].endswith(".node")
            for i, value in zip(at, key, strict=True)
        )

    def _is_satisfiable(self, values: Values, need: Need) -> bool:
        calls = self.tree.calls_by_stream
        return (
            all(stream in calls for _, stream in need.brought)
            and not self.is_repeated(self.columns, values, need)
            and fits(self.tree, self.columns, values, need)
        )

    @property
    def next_deadline(self) -> int | None:
        """The clock after which some scenario may be impossible; None: no deadline."""
        return self._heap[0][0] if self._heap else None

    # Over the document ----------------------------------------------------------------------------

    def _evaluate(self) -> Rows:
        below = self._collect(self.tree.children(DOCUMENT_NODE))
        root = self.program.root
        rows = self._join(root, {(): [NOTHING]}, [], below, {})
        self._joins[DOCUMENT_NODE] = {root: self._join_of(root, (), below, {}, rows)}
        return rows

    def _at(self, node: int, relation: Relation, below: CollectedRows, here: Sums) -> Rows:
        own = self._own(node, relation, below)
        if own is None:
            return {}
        rows = self._joined_at(node, relation, own, below, here)
        if below.changing:
            joins = self._joins.setdefault(node, {})
            joins[relation] = self._join_of(relation, own, below, here, rows)
        return rows

    def _join_of(
        self, relation: Relation, own: Values, below: CollectedRows, here: Sums, rows: Rows
    ) -> _Join:
        """The join of a relation that has these rows.

        An undecided input is irrelevant if the other inputs leave no row: `rows` already includes
        everything that may arrive, so no row can appear later.
        """
        try:
            return self._join_of_parts(relation, own, below, here)
        except UndecidedError:
            if rows:
                raise
            return _Join(relation, own, [], passes=False, is_dead=True)

    def _join_of_parts(
        self, relation: Relation, own: Values, below: CollectedRows, here: Sums
    ) -> _Join:
        parts = [ScenarioIndex(self._shown(edge.relation)) for edge in relation.edges]
        made = _Join(relation, own, parts, self._passes(relation))
        if _is_single(relation):
            return made  # nothing to join: rows pass through
        for edge, part in zip(relation.edges, made.edges, strict=True):
            part.take(self._part(edge, below, here))
        for choice in relation.choices:
            ways: list[tuple[_Join, ScenarioIndex]] = []
            for way in choice.alternatives:
                part = ScenarioIndex(self._shown(way))
                rows = self._join(way, {(): [NOTHING]}, [], below, here)
                part.take(rows)
                ways.append((self._join_of(way, (), below, here, rows), part))
            made.choices.append(ways)
        return made

    def _passes(self, relation: Relation) -> bool:
        """Whether a relation passes the rows of its child step on unchanged."""
        if not _is_single(relation) or relation.own or relation.tests or self._keyed:
            return False
        (edge,) = relation.edges
        return edge.axis is Axis.CHILD and self._shown(edge.relation) == self._shown(relation)

    # Additions ------------------------------------------------------------------------------------

    def grow(self, tops: Iterable[int]) -> list[Scenario]:
        """Add subtrees from streams; return the scenarios that a key value made impossible."""
        fallen: list[Scenario] = []
        for top in tops:
            with bounded(sum(1 for _ in self.tree.subtree(top))):
                fallen += self._grow(top)
        return fallen

    def _grow(self, top: int) -> list[Scenario]:
        """Add one subtree."""
        fallen: list[Scenario] = []
        tree, place = self.tree, self.tree.parent(top)
        for stream in _streams_in(tree, top):
            self._places[stream] = tree.parent(tree.calls()[stream])
        for key in tree.facts:
            for value in self._note_values(key, [top]):
                fallen += self._remove_impossible(self._by_key.pop((key, value), ()))
        self._pass_up_new(place, self._collect([top]))
        return fallen

    def arrive(self, place: int, children: Bags, descendants: Bags) -> None:
        """Add the rows that a program matched in a message that arrives below a node."""
        below = CollectedRows(_as_sums(children), _as_sums(descendants))
        if below.children or below.descendants:
            with bounded(0):
                self._pass_up_new(place, below)

    def _pass_up_new(self, node: int, new: CollectedRows) -> None:
        """Pass rows that are new at a node up to the root."""
        while node != DOCUMENT_NODE:
            here: Sums = {}
            for relation in self._interpreter.candidates(self.tree, node):
                join = self._joins.get(node, {}).get(relation)
                if join is None:
                    continue
                rows = self._new_rows(join, new, here)
                if rows:
                    keyed = relation in self._keyed
                    here[relation] = self._with_keyed(rows, relation, node) if keyed else rows
            above = CollectedRows()
            self._pass_up(node, above, new, here)
            if not (above.children or above.descendants or above.deeper_calls):
                return
            node, new = self.tree.parent(node), above
        (root,) = self._joins[DOCUMENT_NODE].values()
        self._store(self._new_rows(root, new, {}))

    def _new_rows(self, join: _Join, new: CollectedRows, here: Sums) -> Rows:
        """The new rows of a relation at a node: those of each input joined with the others."""
        found: Rows = {}
        if join.is_dead:
            return found
        edges = join.relation.edges
        if join.passes and not (new.calls or new.unclear):
            return new.children.get(edges[0].relation, {})
        if _is_single(join.relation):
            rows = self._part(edges[0], new, here)
            if rows:
                self._join_new(found, join, rows, join.edges[0].columns, edge=0)
            return found
        fresh = [
            part.take(self._part(edge, new, here))
            for edge, part in zip(edges, join.edges, strict=True)
        ]
        chosen = [
            [(part.columns, part.take(self._new_rows(way, new, here))) for way, part in choice]
            for choice in join.choices
        ]
        for at, rows in enumerate(fresh):
            if rows:
                self._join_new(found, join, rows, join.edges[at].columns, edge=at)
        for at, ways in enumerate(chosen):
            for columns, rows in ways:
                if rows:
                    self._join_new(found, join, rows, columns, choice=at)
        return found

    def _join_new(
        self,
        found: Rows,
        join: _Join,
        new: Rows,
        columns: tuple[str, ...],
        edge: int | None = None,
        choice: int | None = None,
    ) -> None:
        relation = join.relation
        layout = own_columns(relation)
        rows, layout = meet({join.own: [NOTHING]}, layout, new, columns)
        for at, part in enumerate(join.edges):
            if at != edge and rows:
                rows, layout = part.meet(rows, layout)
        for at, ways in enumerate(join.choices):
            if at != choice and rows:
                rows, layout = _choose(rows, layout, [part for _, part in ways])
        if not rows:
            return
        missing = [
            c for c in self._shown(relation) if c not in layout
        ]  # bound by other alternatives
        if missing:
            rows = {v + (None,) * len(missing): needs for v, needs in rows.items()}
            layout = layout + missing
        if self._keyed:
            rows = self._without_repeated(rows, layout)
        shown = project(rows, layout, relation.tests, self._shown(relation), add_need)
        for values, needs in shown.items():
            for need in needs:
                add_need(found, values, need)

    def _store(self, rows: Rows) -> None:
        """Store new scenarios that are possible."""
        for values, needs in rows.items():
            for need in needs:
                if need.brought and not self._is_satisfiable(values, need):
                    continue
                if self.found.add(values, need) and need.brought:
                    self._index(values, need)

    def _index(self, values: Values, need: Need) -> None:
        """Index a scenario by the events that can make it impossible."""
        until = deadline(need.times, need.unknown_times) if need.times else None
        if until is not None:
            heappush(self._heap, (until, next(self._number), values, need))
        if need.new:
            known = dict(zip(self.columns, values, strict=True))
            for key, value in keyed_values(need.new, known, need.values):
                self._by_key.setdefault((key, value), []).append((values, need))

    # Removals -------------------------------------------------------------------------------------

    def close(self, stream: str) -> list[Scenario]:
        """Remove and return the scenarios that depend on a stream that has ended."""
        place = self._places.get(stream)
        if place is None:
            return []
        for node in (place, *self.tree.ancestors(place)):
            for join in self._joins.get(node, {}).values():
                for part in join.parts():
                    part.close(stream)
        fallen = self.found.depending_on(stream)
        self.found.close(stream)
        return fallen

    def expire(self) -> list[Scenario]:
        """Remove and return the scenarios that the clock or the number of trees made impossible."""
        with bounded(0):
            return self._expire()

    def _expire(self) -> list[Scenario]:
        fallen: list[Scenario] = []
        while self._heap and self._heap[0][0] < self.tree.clock:
            _, _, values, need = heappop(self._heap)
            if self.found.remove(values, need):
                fallen.append((values, need))
        relations, is_alone = len(self.program.relations), not (self._keyed or self._is_timed)
        limits = limits_of(self.tree, relations) if self._checks_all and is_alone else None
        if self._checks_all and (limits is None or limits != self._checked):
            self._checked = limits
            every = [(v, n) for v, needs in self.found.rows.items() for n in needs if n.brought]
            spend(len(every))
            fallen += self._remove_impossible(every)
        return fallen

    def _remove_impossible(self, scenarios: Iterable[Scenario]) -> list[Scenario]:
        """Remove and return those of some scenarios that are no longer possible."""
        return [
            (values, need)
            for values, need in scenarios
            if not self._is_satisfiable(values, need) and self.found.remove(values, need)
        ]


def _is_single(relation: Relation) -> bool:
    """Whether a relation has a single input."""
    return len(relation.edges) == 1 and not relation.choices


def _as_sums(bags: Bags) -> Sums:
    return {relation: {row: [NOTHING] for row in bag} for relation, bag in bags.items() if bag}


def _choose(rows: Rows, layout: list[str], ways: list[ScenarioIndex]) -> tuple[Rows, list[str]]:
    """Few rows joined with a union of alternatives (`generalized_rows.choose`)."""
    longer = list(dict.fromkeys([*layout, *(c for part in ways for c in part.columns)]))
    merged: Rows = {}
    for part in ways:
        met, bound = part.meet(rows, layout)
        order = [bound.index(column) if column in bound else None for column in longer]
        for values, needs in met.items():
            for need in needs:
                add_need(merged, tuple(None if i is None else values[i] for i in order), need)
    return merged, longer


def with_key_variables(tree: Tree, pattern: Pattern) -> Pattern:
    """The pattern with the variables as outputs by which a key can rule scenarios out."""
    return with_join_variables(pattern) if tree.facts else pattern


def _index_row(
    index: tuple[dict[Values, Found], Found], at: tuple[int, ...], values: Values
) -> None:
    key = tuple(values[i] for i in at)
    known, vague = index
    if None in key:
        vague[values] = None
    else:
        known.setdefault(key, {})[values] = None


def _streams_in(tree: Tree, top: int) -> list[str]:
    return [tree.call(node).stream for node in tree.subtree(top) if tree.kind_column[node] == CALL]
