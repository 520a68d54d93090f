"""Scenarios: the rows that a pattern can still get, each with its needs.

The program of a pattern is evaluated bottom-up over generalised rows. A value is a string, a time,
a node, or unknown (None) where an open call may still deliver it. Each row carries its needs: which
sub-patterns which streams must deliver, and the conditions on unknown times and values. Every other
pattern node is matched in the document, or inside a delivered sub-pattern above it. At a call, each
sub-pattern that a message can hold contributes its rows with unknown columns (`arrivals.py`).

    R(n) = own(n) ⋈ (L_1(n) ∪ calls) ⋈ ... ⋈ (L_k(n) ∪ calls)   with unknown joining anything

Of two needs for one row, only the one that asks for less is kept (dominance, columns compared).
Cost: document x pattern, for patterns without joins.

Rejected with AX503: `not` (see `profiles.py`), collected paths (`collected_paths.py` leaves them
out), value tests above an open call (not monotone), orders between two unknown strings, axes that
do not go down. (Paper 2, sections 3, 5 and 6; paper 3, sections 3.2 and 3.3.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from axlog.document.calls import Call
from axlog.document.tree import ATTRIBUTE, CALL, DOCUMENT_NODE, TEXT, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.interpreter import Interpreter
from axlog.future.arrivals import bringable, deep_columns
from axlog.future.comments import refuse_any_node, refuse_markup_tests
from axlog.future.deliveries import delivered
from axlog.future.generalized_rows import (
    NOTHING,
    Add,
    Need,
    Rows,
    Values,
    add_need,
    alike_need,
    choose,
    gather_need,
    keep_need,
    meet,
    project,
)
from axlog.future.keys import (
    Key,
    KeyedNode,
    is_repeated,
    keyed_relations,
    mentions,
    place_of,
    values_seen,
)
from axlog.future.search_budget import LEAST, bounded, spend
from axlog.future.time_constraints import Inequality, TimeSystem, at_or_after, not_before
from axlog.query.compile import Edge, Program, Relation, compile_pattern
from axlog.query.normalize import bound_variables
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Kind,
    Literal,
    Output,
    Pattern,
    TimeConstraint,
    Variable,
)

Sums = dict[Relation, Rows]

_PRUNING: dict[str, Add] = {
    "dominated": add_need, "gathered": gather_need, "alike": alike_need, "none": keep_need,
}  # fmt: skip


_NO_PINS: Mapping[str, str] = {}


@dataclass(slots=True)
class CollectedRows:
    """The rows and calls of a node's subtree, collected for the joins at the node."""

    children: Sums = field(default_factory=dict)
    descendants: Sums = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)  # of the node itself
    deeper_calls: list[str] = field(default_factory=list)  # anywhere below it
    changing: list[str] = field(default_factory=list)  # anywhere below it, deleting ones too
    # Relations whose value tests a stream may still change, with the stream; using one is rejected.
    unclear: dict[Relation, str] = field(default_factory=dict)  # at the node's children
    unclear_deeper: dict[Relation, str] = field(default_factory=dict)
    unclear_here: dict[Relation, str] = field(default_factory=dict)


class Scenarios:
    """The generalised rows of a pattern over a document as it is now."""

    _needs_all = False
    """Whether rows keep all columns, also where nothing asks for them."""

    def __init__(
        self,
        tree: Tree,
        pattern: Pattern,
        *,
        together: bool = False,
        prune: str = "dominated",
        root: Relation | None = None,
        least: int = LEAST,
        pins: Mapping[str, str] = _NO_PINS,
    ) -> None:
        """Evaluate a pattern over a document.

        `together`: messages hold no calls, so all nodes of a future tree have one time. Without it,
        that holds for the streams that do not declare `calls`.

        `prune` says which needs of one row are kept. "dominated": those that no other dominates.
        "gathered": one for each set of conditions, with the united requests of all, dominated ones
        included. "alike": one for each set of conditions, without requests if there is such a need.
        "none": all needs.

        `root`: the root of the pattern's program, if the program has been compiled already.
        `least`: the ways that are examined before the question is undecided (`search_budget.py`).
        `pins`: the strings that some columns must have; other rows may be left out.
        """
        self.tree = tree
        if is_limited(tree):
            refuse_any_node(pattern, "where a stream may deliver only a limited number of trees")
        if tree.types is not None:
            refuse_any_node(pattern, "under types")
        self._add = _PRUNING[prune]
        self.program = _program(pattern)
        if root is not None:
            self.program = replace(self.program, root=root, relations=tuple(root.walk()))
        self._interpreter = Interpreter(self.program.relations)
        self._together, self._pins = together, pins
        self._bringable: dict[tuple[Relation, bool, bool], Rows] = {}
        self._keeps_all = self._needs_all or is_limited(tree) or tree.types is not None
        self._deep: dict[Relation, tuple[str, ...]] = {}
        self._keyed = keyed_relations(self.program.root, tree.facts)
        self._seen: dict[Key, dict[str, set[int]]] = {}
        self._keeps_all |= any(
            n > 1
            for n in Counter(
                key for pairs in self._keyed.values() for key in {key for _, key in pairs}
            ).values()
        )
        self._deletable = _deletable(tree)
        self._check_merging()
        with bounded(len(tree), least):
            self.rows = self._evaluate()

    @property
    def columns(self) -> tuple[str, ...]:
        return self._shown(self.program.root)

    def _check_merging(self) -> None:
        """Reject streams that may delete between two texts, if the pattern tests texts.

        The deletion merges the two texts into a new one, which the pattern may match.
        """
        tree = self.tree
        tests = [node.test for node in self.program.pattern.nodes()]
        if not any(isinstance(test, Literal | AnyText | AnyNode | Variable) for test in tests):
            return
        for stream, node in tree.calls().items():
            siblings = [tree.kind_column[child] for child in tree.children(tree.parent(node))]
            if tree.call(node).deletes != "no" and siblings.count(TEXT) > 1:
                raise UndecidedError("AX503", f"deletions by the stream {stream!r} may merge texts")

    # Over the document ----------------------------------------------------------------------------

    def _evaluate(self) -> Rows:
        below = self._collect(self.tree.children(DOCUMENT_NODE))
        return self._join(self.program.root, {(): [NOTHING]}, [], below, {})

    def _collect(self, tops: Iterable[int]) -> CollectedRows:
        """The rows collected from subtrees at their common parent."""
        risen: dict[int, CollectedRows] = {}
        above = CollectedRows()
        for top in tops:
            risen[self.tree.parent(top)] = above
            for node in reversed(list(self.tree.subtree(top))):  # children before parents
                self._visit(node, risen)
        return above

    def _visit(self, node: int, risen: dict[int, CollectedRows]) -> None:
        tree = self.tree
        below = risen.pop(node, None)
        if below is None:
            if self._is_idle(node):
                return
            below = CollectedRows()
        above = risen.setdefault(tree.parent(node), CollectedRows())
        if tree.kind_column[node] == CALL:
            call = tree.call(node)
            is_open = may_bring(tree, call)
            if is_open or call.deletes != "no":
                above.changing.append(call.stream)
            if is_open:
                above.calls.append(call.stream)
                above.deeper_calls.append(call.stream)
            return
        self._visit_node(node, above, below)

    def _is_idle(self, node: int) -> bool:
        """Whether a node without anything below it matches nothing."""
        is_call = self.tree.kind_column[node] == CALL
        return not is_call and not self._interpreter.candidates_below(self.tree, node)

    def _visit_node(self, node: int, above: CollectedRows, below: CollectedRows) -> None:
        here: Sums = {}
        for relation in self._interpreter.candidates_below(self.tree, node):
            rows = self._at(node, relation, below, here)
            if rows:
                here[relation] = rows
        self._pass_up(node, above, below, here)

    def _pass_up(self, node: int, above: CollectedRows, below: CollectedRows, here: Sums) -> None:
        if node in self._deletable:
            here = {relation: _keeping(rows, node) for relation, rows in here.items()}
            below.descendants = {r: _keeping(rows, node) for r, rows in below.descendants.items()}
        self._merge(above.children, here)
        if self.tree.kind_column[node] == ATTRIBUTE:
            return
        for (
            relation,
            rows,
        ) in below.descendants.items():  # not shared: merge into the larger dictionary
            known = above.descendants.get(relation)
            if known is None:
                above.descendants[relation] = rows
            elif len(known) < len(rows):
                self._add_rows(rows, known)
                above.descendants[relation] = rows
            else:
                self._add_rows(known, rows)
        descending = self._interpreter.descending
        self._merge(above.descendants, {r: rows for r, rows in here.items() if r in descending})
        self._pass_up_calls(above, below)

    @staticmethod
    def _pass_up_calls(above: CollectedRows, below: CollectedRows) -> None:
        above.deeper_calls += below.deeper_calls
        above.changing += below.changing
        above.unclear |= below.unclear_here
        above.unclear_deeper |= below.unclear_deeper | below.unclear_here

    def _at(self, node: int, relation: Relation, below: CollectedRows, here: Sums) -> Rows:
        """The rows of a relation at a node that passes its test."""
        own = self._own(node, relation, below)
        if own is None:
            return {}
        return self._joined_at(node, relation, own, below, here)

    def _joined_at(
        self, node: int, relation: Relation, own: Values, below: CollectedRows, here: Sums
    ) -> Rows:
        rows = self._join(relation, {own: [NOTHING]}, own_columns(relation), below, here)
        return self._with_keyed(rows, relation, node) if relation in self._keyed else rows

    def _own(self, node: int, relation: Relation, below: CollectedRows) -> Values | None:
        """The values that a relation reads from a node itself; None if the node fails it."""
        interpreter, tree = self._interpreter, self.tree
        if interpreter.depends_on_value(relation):
            if below.changing:
                below.unclear_here[relation] = below.changing[0]
                return None
            if not interpreter.passes_values(relation, tree.string_value(node)):
                return None
        own = _unify_own(relation, interpreter.own_row(tree, node, relation))
        if own is not None and self._pins:
            pairs = zip(own_columns(relation), own, strict=True)
            if any(self._pins.get(column, value) != value for column, value in pairs):
                return None
        return own

    def _add_rows(self, rows: Rows, more: Rows) -> None:
        spend(len(more) >> 3)  # cheaper than a join
        for values, needs in more.items():
            for need in needs:
                self._add(rows, values, need)

    def _merge(self, into: Sums, more: Sums) -> None:
        for relation, rows in more.items():
            self._add_rows(into.setdefault(relation, {}), rows)

    # Joins ----------------------------------------------------------------------------------------

    def _join(
        self, relation: Relation, rows: Rows, layout: list[str], below: CollectedRows, here: Sums
    ) -> Rows:
        if relation.absences:
            raise UndecidedError("AX503", "scenarios of a pattern with `not` are not enumerated")
        for edge in relation.edges:
            part = self._part(edge, below, here)
            rows, layout = meet(rows, layout, part, self._shown(edge.relation), self._add)
            if not rows:
                return {}
        for choice in relation.choices:
            parts = [
                (self._join(a, {(): [NOTHING]}, [], below, here), self._shown(a))
                for a in choice.alternatives
            ]
            rows, layout = choose(rows, layout, parts, self._add)
        if self._keyed:
            rows = self._without_repeated(rows, layout)
        return project(rows, layout, relation.tests, self._shown(relation), self._add)

    def _part(self, edge: Edge, below: CollectedRows, here: Sums) -> Rows:
        """The rows that an edge reaches: existing ones, and those that calls may deliver."""
        relation, axis = edge.relation, edge.axis
        check_clear(edge, below)
        found: Rows = {}
        calls: Sequence[str] = ()
        if axis in (Axis.CHILD, Axis.ATTRIBUTE):
            self._add_rows(found, below.children.get(relation, {}))
            calls = below.calls if axis is Axis.CHILD else ()
        elif axis is Axis.SELF:
            self._add_rows(found, here.get(relation, {}))
        else:
            self._add_rows(found, below.descendants.get(relation, {}))
            calls = below.deeper_calls
            if axis is Axis.DESCENDANT_OR_SELF:
                self._add_rows(found, here.get(relation, {}))
        for stream in calls:
            for values, need in self._brought_by(stream, relation, axis):
                self._add(found, values, need)
        return found

    def _brought_by(
        self, stream: str, relation: Relation, axis: Axis
    ) -> Iterator[tuple[Values, Need]]:
        """The rows that a call may deliver for an edge."""
        brought = frozenset({(relation, stream)})
        kept = self._kept_above(stream)
        new = self._new_nodes(relation, stream) if self._keyed else frozenset()
        is_whole = self._together or not self.tree.may_bring_calls(stream)
        rows = self._deliverable(stream, relation, axis is Axis.CHILD, is_whole)
        for values, needs in rows.items():
            for need in needs:
                times = self._with_arrival_time(stream, relation, axis, need, is_whole)
                yield values, replace(times, brought=brought, new=new, kept=kept)

    def _kept_above(self, stream: str) -> frozenset[int]:
        """The nodes above a call that may be deleted: while it delivers, they must stay."""
        if not self._deletable:
            return _NO_NODES
        call = self.tree.calls()[stream]
        return frozenset(node for node in self.tree.ancestors(call) if node in self._deletable)

    def _deliverable(self, stream: str, relation: Relation, is_root: bool, is_whole: bool) -> Rows:
        """The rows of a relation in the trees that a stream may deliver."""
        known = self.tree.deliveries.get(stream)
        if known is not None:
            return delivered(known, stream, relation, is_root, is_whole, self._shown)
        key = (relation, is_root, is_whole)
        if key not in self._bringable:
            rows, layout = bringable((relation,), is_root, is_whole)
            found = project(rows, layout, (), self._shown(relation), add_need)
            self._bringable[key] = found
        return self._bringable[key]

    def _new_nodes(self, relation: Relation, stream: str) -> frozenset[KeyedNode]:
        """The nodes of keys in a future tree."""
        place = place_of(self.tree, self.tree.parent(self.tree.calls()[stream]))
        return frozenset(
            KeyedNode(column, key, below, stream)
            for below in relation.walk()
            for column, key in self._keyed.get(below, ())
            if mentions(key, place, relation, below)
        )

    def _with_keyed(self, rows: Rows, relation: Relation, node: int) -> Rows:
        """Rows at a node of a key; data delivered below the node may give it the key's value."""
        place = place_of(self.tree, node)
        mine = frozenset(
            KeyedNode(c, key, relation, node)
            for c, key in self._keyed[relation]
            if key.path == place
        )
        return {
            values: [replace(n, new=n.new | mine) if n.brought else n for n in needs]
            for values, needs in rows.items()
        }

    def _without_repeated(self, rows: Rows, layout: list[str]) -> Rows:
        """Rows without the needs for a second node with a key's value."""
        found: Rows = {}
        for values, needs in rows.items():
            kept = [need for need in needs if not self.is_repeated(layout, values, need)]
            if kept:
                found[values] = kept
        return found

    def is_repeated(self, columns: Sequence[str], values: Values, need: Need) -> bool:
        """Whether a need requires two nodes of a key with one value."""
        if not need.new:
            return False
        known = dict(zip(columns, values, strict=True))
        for key in {each.key for each in need.new} - self._seen.keys():
            self._seen[key] = values_seen(self.tree, key)
        return is_repeated(need.new, known, need.values, self._seen)

    def _with_arrival_time(
        self, stream: str, relation: Relation, axis: Axis, need: Need, is_whole: bool
    ) -> Need:
        """Trees of a one-shot call share one time; data from calls inside them arrives later."""
        if not need.unknown_times or self._mode(stream) != "one-shot":
            return need
        arrival = f"?{stream}"
        root = relation.node.name if axis is Axis.CHILD and relation.node is not None else None
        times = [at_or_after(name, arrival) for name in need.unknown_times]
        times += [
            at_or_after(arrival, name) for name in need.unknown_times if is_whole or name == root
        ]
        return replace(
            need, times=need.times.union(times), unknown_times=need.unknown_times | {arrival}
        )

    def _mode(self, stream: str) -> str:
        return self.tree.call(self.tree.calls()[stream]).mode

    def _shown(self, relation: Relation) -> tuple[str, ...]:
        """The columns passed up: all of them where calls are limited (`capacity.py`) or typed."""
        if not self._keeps_all:
            return relation.columns
        if relation not in self._deep:
            self._deep[relation] = tuple(deep_columns([relation]))
        return self._deep[relation]


def check_clear(edge: Edge, below: CollectedRows) -> None:
    """Reject a value test above an open call: it is not monotone (docs/meaning.md)."""
    seen = {
        Axis.CHILD: below.unclear, Axis.DESCENDANT: below.unclear_deeper,
        Axis.SELF: below.unclear_here,
        Axis.DESCENDANT_OR_SELF: below.unclear_deeper | below.unclear_here,
    }.get(edge.axis, {})  # fmt: skip
    stream = seen.get(edge.relation)
    if stream is not None:
        raise UndecidedError(
            "AX503",
            f"{edge.relation.node} compares a value that the stream {stream!r} may still change",
        )


_NO_NODES: frozenset[int] = frozenset()


def _deletable(tree: Tree) -> frozenset[int]:
    """The nodes that calls may delete, where that matters: types may need the room."""
    if tree.types is None:
        return _NO_NODES
    parents = {tree.parent(n) for n in tree.calls().values() if tree.call(n).deletes != "no"}
    return frozenset(
        node for parent in parents for node in tree.children(parent)
        if tree.kind_column[node] != CALL
    )  # fmt: skip


def _keeping(rows: Rows, node: int) -> Rows:
    """Rows that also need a present node to stay."""
    return {
        values: [replace(need, kept=need.kept | {node}) for need in needs]
        for values, needs in rows.items()
    }


def own_columns(relation: Relation) -> list[str]:
    """The columns that a relation reads from a node itself."""
    return list(dict.fromkeys(column for column, _ in relation.own))


def _unify_own(relation: Relation, own: tuple[str | int, ...]) -> Values | None:
    known: dict[str, str | int] = {}
    for (column, _), value in zip(relation.own, own, strict=True):
        if known.setdefault(column, value) != value:
            return None
    return tuple(known.values())


def _program(pattern: Pattern) -> Program:
    refuse_markup_tests(pattern.nodes())
    program = compile_pattern(pattern)
    reason = program.refusal
    if program.gathers:
        reason = "it collects a path"
    if reason is not None:
        raise UndecidedError("AX503", f"the analyses do not cover the query: {reason}")
    return program


def with_join_variables(pattern: Pattern) -> Pattern:
    """The pattern with its join variables as outputs, so that dominance compares them."""
    counts: Counter[str] = Counter()
    for node in pattern.nodes():
        operands = [node.test, *(comparison.operand for comparison in node.comparisons)]
        counts.update(operand.name for operand in operands if isinstance(operand, Variable))
    for constraint in pattern.where:  # `$x = $y` is a join as well
        if isinstance(constraint, TimeConstraint) or constraint.operator != "=":
            continue
        if isinstance(constraint.right, Variable):
            counts.update((constraint.left.name, constraint.right.name))
    shown = {output.of for output in pattern.outputs if output.kind is Kind.VARIABLE}
    bound = bound_variables(pattern.branches)
    joins = sorted(name for name, n in counts.items() if n > 1 and name in bound - shown)
    outputs = (*pattern.outputs, *(Output(Kind.VARIABLE, name) for name in joins))
    return replace(pattern, outputs=outputs)


def may_bring(tree: Tree, call: Call) -> bool:
    """Whether a call may still deliver a tree."""
    is_full = call.most is not None and tree.brought.get(call.stream, 0) >= call.most
    return call.deletes != "only" and not is_full


def is_limited(tree: Tree) -> bool:
    """Whether some call may deliver only a limited number of trees (`most`)."""
    return any(tree.call(node).most is not None for node in tree.calls().values())


def can_be_met(clock: int, columns: tuple[str, ...], values: Values, need: Need) -> bool:
    """Whether the conditions of a need are satisfiable at this clock."""
    known = dict(zip(columns, values, strict=True))
    if not need.values.is_satisfiable(known):
        return False
    bounds = [not_before(name, clock) for name in need.unknown_times]
    for name in need.unknown_times:
        time = known.get(f"{name}.time")
        if time is not None:  # fixed by the caller; future times are otherwise unknown
            bounds += [not_before(name, int(time)), Inequality(((1, name),), int(time))]
    return TimeSystem([*need.times, *bounds]).is_satisfiable
