"""The rows and values that each stream is still wanted for, by provenance over engine facts.

The tables of the engine hold every fact that satisfiability would derive from the current data (the
optimistic strategy), so tuning starts from them and not from the document. A row is either
complete, which means that it is in a table or in the view, or it needs data of streams:

    I(R) at n = the joins of R's parts in which some part is incomplete
    a part's incomplete rows = those that rise from below, and the rows that calls there may bring

Complete rows dominate all incomplete rows with their values. Among incomplete rows the needs decide
(`add_way`). Join variables stay in a row after they are projected away, because dominance compares
them. The remaining rows at the root give what each stream is wanted for, and for which values.

Law: rows of streams outside the wanted relations and values change no row of the view, in any
future. `future/relevance.py` defines relevance the same way. Where this module knows less than that
one (keys, how many trees a call may bring, times of one-shot calls), it wants more. It raises
`UndecidedError` for `not` and for values that open calls may change: everything is wanted then.

(Paper 3, sections 3.2 to 3.4 and 3.6; dominance: paper 2, section 6.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from axlog.document.tree import DOCUMENT_NODE
from axlog.errors import UndecidedError
from axlog.evaluate.joins import Row
from axlog.future.arrivals import bringable
from axlog.future.generalized_rows import (
    NOTHING,
    Need,
    Rows,
    Values,
    add_need,
    choose,
    meet,
    project,
)
from axlog.future.scenarios import can_be_met
from axlog.match.linear_paths import joined_columns
from axlog.query.compile import Edge, Relation, depends_on_value
from axlog.query.pattern import Axis
from axlog.views.counting.facts import Facts, Kept
from axlog.views.counting.routes import Wants

Sums = dict[Relation, Rows]
_ROOT, _INSIDE = "root of ", "inside "
MOST_WAYS = 32
"""Ways to one row that are kept apart.

Further ones are merged, and no way dominates a merged one.
"""
_TOGETHER = (Relation("together", None), "")
"""Marks the merged needs of several ways.

They are not one way, so no way that needs part of them dominates them.
"""
MOST_VALUES = 10_000
"""Largest number of values of one column that a filter lists."""


Seen = dict[str, set[str | int] | None]
"""For each column, its values in the scenarios so far; None: any value."""


def wanted_of_streams(facts: Facts, root: Relation, complete: Collection[Row]) -> dict[str, Wants]:
    """Return what each open stream is still wanted for by a view.

    Irrelevant streams are left out.
    """
    provenance = _Provenance(facts, root)
    shown = provenance.shown(root)
    found: dict[tuple[str, Relation], Seen] = {}
    for values, needs in provenance.rows(complete).items():
        known = dict(zip(shown, values, strict=True))
        for need in needs:
            if can_be_met(facts.clock, shown, values, need):
                for relation, place in need.brought - {_TOGETHER}:
                    _note(found.setdefault((place, relation), {}), relation.columns, known)
    wanted: dict[str, Wants] = {}
    for (place, relation), seen in found.items():
        is_inside = place.startswith(_INSIDE)
        wants = wanted.setdefault(place[len(_INSIDE if is_inside else _ROOT) :], Wants())
        values_of = {c: frozenset(values) for c, values in seen.items() if values is not None}
        (wants.everywhere if is_inside else wants.here)[relation] = values_of
    return wanted


def _note(seen: Seen, columns: Iterable[str], known: dict[str, str | int | None]) -> None:
    """Add the values of a scenario to those of earlier scenarios."""
    for column in columns:
        value, values = known.get(column), seen.setdefault(column, set())
        if value is None or (values is not None and len(values) >= MOST_VALUES):
            seen[column] = None
        elif values is not None:
            values.add(value)


@dataclass(slots=True)
class _Risen:
    children: Sums = field(default_factory=dict)
    descendants: Sums = field(default_factory=dict)


class _Provenance:
    """The incomplete rows of one program."""

    def __init__(self, facts: Facts, root: Relation) -> None:
        self.facts, self.root = facts, root
        self._relations = set(root.walk())
        self._joined = joined_columns(root)
        self._bringable: dict[tuple[Relation, bool], Rows] = {}
        self._shown: dict[Relation, tuple[str, ...]] = {}
        self._descending = {
            edge.relation
            for relation in self._relations
            for edge in relation.edges
            if edge.axis in (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
        }
        self._check()

    def _check(self) -> None:
        """Raise for programs that are not monotone, and for ambiguous projected columns."""
        if any(relation.absences for relation in self._relations):
            raise UndecidedError("AX503", "later data can remove rows of a view with `not`")
        projected: set[str] = set()
        for relation in self._relations:
            here = self._projected(relation)
            if here & projected:
                raise UndecidedError("AX503", f"{min(here)} is joined in two places apart")
            projected |= here
        for node in self.facts.nodes:
            for kept in self.facts.kept[node]:
                if kept.relation in self._relations and depends_on_value(kept.relation):
                    raise UndecidedError(
                        "AX503",
                        f"{kept.relation.node} compares a value that a stream may still change",
                    )

    def _projected(self, relation: Relation) -> set[str]:
        """Return the join variables that a relation binds and does not pass up."""
        return set(self._joined & set(relation.bound)) - set(relation.columns)

    def shown(self, relation: Relation) -> tuple[str, ...]:
        """Return the columns of a relation's incomplete rows: its own, and join variables below."""
        known = self._shown.get(relation)
        if known is None:
            more = self._projected(relation)
            for below in relation.below():
                more |= set(self.shown(below)) - set(below.columns)
            known = self._shown[relation] = (*relation.columns, *sorted(more))
        return known

    # Over the nodes above calls -------------------------------------------------------------------

    def rows(self, complete: Collection[Row]) -> Rows:
        """Return the root's rows that need data of streams and do not exist already."""
        risen: dict[int, _Risen] = {}
        here: Sums = {}
        for node in self.facts.nodes:
            below = risen.pop(node, None) or _Risen()
            here = {}
            for kept in self.facts.kept[node]:
                if kept.relation in self._relations:
                    rows = self._join(node, kept, below, here)
                    if rows:
                        here[kept.relation] = rows
            if node != DOCUMENT_NODE:
                above = risen.setdefault(self.facts.parents[node], _Risen())
                _merge(above.children, here)
                _merge(above.descendants, below.descendants)
                _merge(above.descendants, {r: s for r, s in here.items() if r in self._descending})
        return _without(here.get(self.root, {}), complete, len(self.root.columns))

    def _join(self, node: int, kept: Kept, below: _Risen, here: Sums) -> Rows:
        relation = kept.relation
        joining = _Joining(list(kept.columns), {kept.own: [NOTHING]})
        for number, edge in enumerate(relation.edges):
            stored = kept.parts[number] if kept.parts else ()
            width, columns = len(edge.relation.columns), self.shown(edge.relation)
            incomplete = _without(self._part(node, edge, below, here), stored, width)
            joining.meet(_complete(stored, len(columns) - width), incomplete, columns)
        for choice, alternatives in zip(relation.choices, kept.alternatives, strict=True):
            parts: list[tuple[Rows, Rows, tuple[str, ...]]] = []
            for alternative, (inside, stored) in zip(
                choice.alternatives, alternatives, strict=True
            ):
                width, columns = len(alternative.columns), self.shown(alternative)
                rows = _without(self._join(node, inside, below, here), stored, width)
                parts.append((_complete(stored, len(columns) - width), rows, columns))
            joining.choose(parts)
        shown = self.shown(relation)
        layout, rows = joining.padded(shown)
        return project(rows, layout, relation.tests, shown, add_way)

    def _part(self, node: int, edge: Edge, below: _Risen, here: Sums) -> Rows:
        """Return the incomplete rows that an edge sees."""
        relation, axis = edge.relation, edge.axis
        found: Rows = {}
        streams: Iterable[str] = ()
        at_root = axis is Axis.CHILD
        if axis in (Axis.CHILD, Axis.ATTRIBUTE):
            _add(found, below.children.get(relation, {}))
            streams = self.facts.calls.get(node, ()) if at_root else ()
        elif axis is not Axis.SELF:
            _add(found, below.descendants.get(relation, {}))
            streams = self.facts.below.get(node, ())
        if axis in (Axis.SELF, Axis.DESCENDANT_OR_SELF):
            _add(found, here.get(relation, {}))
        for stream in streams:
            brought = frozenset({(relation, f"{_ROOT if at_root else _INSIDE}{stream}")})
            for values, needs in self._can_bring(relation, at_root).items():
                for need in needs:
                    add_way(found, values, replace(need, brought=brought))
        return found

    def _can_bring(self, relation: Relation, at_root: bool) -> Rows:
        known = self._bringable.get((relation, at_root))
        if known is None:
            shown = self.shown(relation)
            try:
                rows, layout = bringable((relation,), at_root)
                known = project(rows, layout, (), shown, add_need)
            except UndecidedError:  # assume any row
                known = {(None,) * len(shown): [NOTHING]}
            self._bringable[relation, at_root] = known
        return known


class _Joining:
    """A join being computed: its complete rows, and its incomplete ones."""

    def __init__(self, layout: list[str], complete: Rows) -> None:
        self.layout = layout
        self.complete = complete
        self.incomplete: Rows = {}

    def meet(self, complete: Rows, incomplete: Rows, columns: tuple[str, ...]) -> None:
        """Join with the rows of one more part."""
        layout = self.layout
        some, wide = meet(self.complete, layout, incomplete, columns, add_way)
        every = {**complete}
        _add(every, incomplete)
        more, _ = meet(self.incomplete, layout, every, columns, add_way)
        self.complete, _ = meet(self.complete, layout, complete, columns, add_way)
        _add(some, more)
        self.incomplete, self.layout = some, wide

    def choose(self, parts: list[tuple[Rows, Rows, tuple[str, ...]]]) -> None:
        """Join with the rows of one of several alternatives."""
        layout = self.layout
        some, wide = choose(self.complete, layout, [(i, c) for _, i, c in parts], add_way)
        both: list[tuple[Rows, tuple[str, ...]]] = []
        for complete, incomplete, columns in parts:
            every = {**complete}
            _add(every, incomplete)
            both.append((every, columns))
        more, _ = choose(self.incomplete, layout, both, add_way)
        stored = [(complete, columns) for complete, _, columns in parts]
        self.complete, _ = choose(self.complete, layout, stored, add_way)
        _add(some, more)
        self.incomplete, self.layout = some, wide

    def padded(self, wanted: tuple[str, ...]) -> tuple[list[str], Rows]:
        """Return the incomplete rows with all wanted columns. Columns without a value are open."""
        missing = [column for column in wanted if column not in self.layout]
        if not missing:
            return self.layout, self.incomplete
        more = (None,) * len(missing)
        rows = {values + more: needs for values, needs in self.incomplete.items()}
        return [*self.layout, *missing], rows


def _complete(rows: Iterable[Row], open_columns: int) -> Rows:
    """Return stored rows as generalised rows. Join variables that they no longer have are open."""
    more = (None,) * open_columns
    return {row + more: [NOTHING] for row in rows}


def _without(rows: Rows, complete: Collection[Row], width: int) -> Rows:
    """Return the incomplete rows whose values no complete row has."""
    if not rows or not complete:
        return rows
    there: Collection[Values] = set(complete)
    return {values: needs for values, needs in rows.items() if values[:width] not in there}


def _add(rows: Rows, more: Rows) -> None:
    for values, needs in more.items():
        for need in needs:
            add_way(rows, values, need)


def add_way(rows: Rows, values: Values, need: Need) -> None:
    """Add a way to a row unless an existing way needs no more (dominance).

    Beyond `MOST_WAYS` ways the needs are merged: all of them are wanted then.
    """
    known = rows.get(values)
    if known is None or not need.brought:
        rows[values] = [need]
        return
    if not known[0].brought:
        return
    if len(known) >= MOST_WAYS:
        _put_together(known, need)
    elif _TOGETHER in need.brought or not any(one.asks_no_more_than(need) for one in known):
        better = [o for o in known if _TOGETHER in o.brought or not need.asks_no_more_than(o)]
        rows[values] = [*better, need]


def _put_together(known: list[Need], need: Need) -> None:
    def asked(one: Need) -> tuple[object, ...]:
        return one.times, one.unknown_times, one.values, one.new

    for at, one in enumerate(known):
        if asked(one) == asked(need):
            known[at] = replace(one, brought=one.brought | need.brought | {_TOGETHER})
            return
    known.append(need)


def _merge(into: Sums, more: Sums) -> None:
    for relation, rows in more.items():
        _add(into.setdefault(relation, {}), rows)
