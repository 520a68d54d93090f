"""Generalised rows: tuples of values and unknowns, each with the needs that complete it.

A value is a string, a time, a node, or None. None is an unknown and agrees with any value. A `Need`
lists the sub-patterns that streams must deliver, and the conditions on unknown times and strings.
The operators are those of relational algebra: `meet` (join), `project`, `choose` (join with a
union).

A need that asks for less dominates: of two needs for one row, `add_need` drops the one that asks
for a superset. (Paper 2, definition 4 and section 6, with all columns compared.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

from axlog.errors import UndecidedError
from axlog.future.keys import KeyedNode
from axlog.future.search_budget import spend
from axlog.future.time_constraints import Inequality, inequalities
from axlog.future.unknowns import ValueNeeds
from axlog.query.compile import Relation
from axlog.query.compile import Test as CompiledTest
from axlog.query.pattern import TimeConstraint

Values = tuple[str | int | None, ...]
Brought = frozenset[tuple[Relation, str]]


@dataclass(frozen=True, slots=True)
class Need:
    """The conditions under which a row appears."""

    brought: frozenset[tuple[Relation, str]] = frozenset()
    times: frozenset[Inequality] = frozenset()
    unknown_times: frozenset[str] = frozenset()
    values: ValueNeeds = field(default_factory=ValueNeeds)
    new: frozenset[KeyedNode] = frozenset()  # future owners of key values
    kept: frozenset[int] = frozenset()  # present nodes that must not be deleted (only under types)

    def joined(self, other: Need) -> Need:
        return Need(
            self.brought | other.brought,
            self.times | other.times,
            self.unknown_times | other.unknown_times,
            self.values.joined(other.values),
            self.new | other.new,
            self.kept | other.kept,
        )

    def asks_no_more_than(self, other: Need) -> bool:
        """Whether everything that satisfies the other need satisfies this one."""
        return (
            self.brought <= other.brought
            and (self.times <= other.times or are_implied(self.times, other.times))
            and self.values.asks_no_more_than(other.values)
            and self.new <= other.new
            and self.kept <= other.kept
        )


def are_implied(times: Iterable[Inequality], by: Iterable[Inequality]) -> bool:
    """Whether each inequality follows from one of `by`: equal terms, no looser bound."""
    return all(any(o.terms == one.terms and o.bound <= one.bound for o in by) for one in times)


NOTHING = Need()
Rows = dict[Values, list[Need]]


def add_need(rows: Rows, values: Values, need: Need) -> None:
    """Add an alternative need to a row, and drop the needs that another dominates."""
    known = rows.get(values)
    if known is None:
        rows[values] = [need]
        return
    if len(known) >= _MANY:
        if not isinstance(known, _Indexed):
            rows[values] = known = _Indexed(known)
        known.add(need)
        return
    if any(one.asks_no_more_than(need) for one in known):
        return
    rows[values] = [one for one in known if not need.asks_no_more_than(one)] + [need]


_MANY = 8
MOST_WAYS = 10_000
"""Largest number of alternative needs of one row. It grows with the product of the calls."""


class _Indexed(list[Need]):
    """Many alternative needs of one row, indexed by their requests: a need has few subsets."""

    def __init__(self, needs: Iterable[Need]) -> None:
        super().__init__()
        self._by_brought: dict[Brought, list[Need]] = {}
        self._with: dict[tuple[Relation, str], dict[Brought, None]] = {}
        for need in needs:
            self._append(need)

    def _append(self, need: Need) -> None:
        self.append(need)
        self._by_brought.setdefault(need.brought, []).append(need)
        for part in need.brought:
            self._with.setdefault(part, {})[need.brought] = None

    def add(self, need: Need) -> None:
        """As `add_need`."""
        if any(one.asks_no_more_than(need) for one in self._subsets_of(need.brought)):
            return
        self._drop(need)
        if len(self) >= MOST_WAYS:
            raise UndecidedError(
                "AX502", f"there are more than {MOST_WAYS:,} ways in which one row can appear"
            )
        self._append(need)

    def _subsets_of(self, brought: Brought) -> Iterator[Need]:
        """The needs that request a subset: by enumerating subsets, or by a scan if shorter."""
        spend(min(1 << len(brought), len(self)) >> 4)
        if 1 << len(brought) > len(self):
            yield from (one for one in self if one.brought <= brought)
            return
        for size in range(len(brought) + 1):
            for part in combinations(tuple(brought), size):
                alike = self._by_brought.get(frozenset(part), ())
                spend(len(alike) >> 4)
                yield from alike

    def _drop(self, need: Need) -> None:
        """Remove the needs that this one dominates."""
        rarest = min((self._with.get(p, {}) for p in need.brought), key=len, default=None)
        candidates = list(self._by_brought if rarest is None else rarest)
        spend(len(candidates) >> 4)
        for brought in candidates:
            if need.brought <= brought:
                spend(len(self._by_brought[brought]) >> 4)
                for one in [n for n in self._by_brought[brought] if need.asks_no_more_than(n)]:
                    self._by_brought[brought].remove(one)
                    self.remove(one)


def _conditions(need: Need) -> tuple[object, ...]:
    """Everything that a need states besides its requests."""
    return need.times, need.values, need.new, need.kept


def gather_need(rows: Rows, values: Values, need: Need) -> None:
    """Add a need to a row; the requests of needs with equal conditions are united."""
    known = rows.setdefault(values, [])
    spend(len(known) >> 4)  # a linear scan
    for at, one in enumerate(known):
        if _conditions(one)[:3] == _conditions(need)[:3]:
            brought, kept = one.brought | need.brought, one.kept & need.kept
            known[at] = replace(one, brought=brought, kept=kept)
            return
    known.append(need)


def alike_need(rows: Rows, values: Values, need: Need) -> None:
    """Add a need to a row, unless one with equal conditions exists; one without requests wins."""
    known = rows.setdefault(values, [])
    spend(len(known) >> 4)  # a linear scan
    for at, one in enumerate(known):
        if _conditions(one) == _conditions(need):
            if one.brought and not need.brought:
                known[at] = need
            return
    known.append(need)


def keep_need(rows: Rows, values: Values, need: Need) -> None:
    """Add a need to a row without comparing it with the others."""
    known = rows.setdefault(values, [])
    spend(len(known) >> 4)
    if need not in known:
        known.append(need)
    if len(known) > MOST_WAYS:
        raise UndecidedError(
            "AX502", f"there are more than {MOST_WAYS:,} ways in which one row can appear"
        )


Add = Callable[[Rows, Values, Need], None]


def meet(
    rows: Rows, layout: list[str], part: Rows, columns: tuple[str, ...], add: Add = add_need
) -> tuple[Rows, list[str]]:
    """A natural join in which an unknown agrees with any value."""
    shared = [(layout.index(c), columns.index(c)) for c in columns if c in layout]
    added = [i for i, c in enumerate(columns) if c not in layout]
    nodes = frozenset(i for i, _ in shared if layout[i].endswith(".node"))
    met: Rows = {}
    index: dict[Values, list[tuple[Values, list[Need]]]] = {}
    vague: list[tuple[Values, list[Need]]] = []
    for values, needs in part.items():
        key = tuple(values[j] for _, j in shared)
        (vague if None in key else index.setdefault(key, [])).append((values, needs))
    for left, needs in rows.items():
        key = tuple(left[i] for i, _ in shared)
        others = list(part.items()) if None in key else [*index.get(key, ()), *vague]
        for right, more in others:
            unified = unify(left, right, shared, nodes)
            if unified is None:
                continue
            values = unified + tuple(right[j] for j in added)
            spend(len(needs) * len(more) * (1 + (len(values) + len(more[0].times)) // 8))
            for need in needs:
                for other in more:
                    add(met, values, need.joined(other))
    return met, layout + [columns[i] for i in added]


def unify(
    left: Values, right: Values, shared: list[tuple[int, int]], nodes: frozenset[int]
) -> Values | None:
    """Two rows that agree in their shared columns, as one row; None if they disagree."""
    values = list(left)
    for i, j in shared:
        if i in nodes and (values[i] is None) != (right[j] is None):
            return None  # a future node is no existing node
        if i in nodes and values[i] is None:
            raise UndecidedError("AX503", "an `or` that joins with a future node above it")
        if values[i] is None:
            values[i] = right[j]
        elif right[j] is not None and right[j] != values[i]:
            return None
    return tuple(values)


def constrain(
    tests: Iterable[CompiledTest], values: dict[str, str | int | None], need: Need
) -> Iterator[Need]:
    """The needs of a row after its tests: none if a test fails, two for `!=` between times."""
    waiting = [need]
    for test in tests:
        constraint = test.constraint
        if not isinstance(constraint, TimeConstraint):
            narrowed = [(one, one.values.constrained(constraint, values)) for one in waiting]
            waiting = [replace(one, values=needs) for one, needs in narrowed if needs is not None]
            continue
        known = {c[: -len(".time")]: int(v) for c, v in values.items()
                 if c in test.columns and v is not None}  # fmt: skip
        settled = inequalities(constraint, known)
        if settled is False:
            return
        if settled is None:
            before = TimeConstraint(constraint.terms, "<", constraint.bound)
            after = TimeConstraint(constraint.terms, ">", constraint.bound)
            ways = [inequalities(before, known), inequalities(after, known)]
        else:
            ways = [[] if settled is True else settled]
        waiting = [
            replace(one, times=one.times.union(way))
            for one in waiting
            for way in ways
            if isinstance(way, list)
        ]
        spend(len(waiting) - 1)
    yield from waiting


def project(
    rows: Rows,
    layout: list[str],
    tests: Iterable[CompiledTest],
    onto: tuple[str, ...],
    add: Add,
    *,
    pins: bool = True,
) -> Rows:
    """Apply tests, keep those on unknowns as needs, and keep only the columns `onto`.

    Known values are substituted into the needs first, because a dropped column cannot be read
    again. With `pins`, an unknown with only one possible string takes that string. Without it, the
    need keeps stating the condition: use this where the column is dropped later.
    """
    at = [layout.index(column) for column in onto]
    tests = tuple(tests)
    found: Rows = {}
    for values, needs in rows.items():
        shown = tuple([values[i] for i in at])
        known = None
        for need in needs:
            if not tests and need.values.is_empty:  # the usual case
                add(found, shown, need)
                continue
            known = known or dict(zip(layout, values, strict=True))
            for narrowed in constrain(tests, known, need):
                settled = narrowed.values.settled(known)
                if settled is None:
                    continue
                pinned = {c: v for c, v in settled.pins().items() if c in onto} if pins else {}
                if not pinned:
                    add(found, shown, replace(narrowed, values=settled))
                    continue
                more = {**known, **pinned}
                settled = settled.settled(more)
                if settled is not None:
                    row = tuple([more[column] for column in onto])
                    add(found, row, replace(narrowed, values=settled))
    return found


def choose(
    rows: Rows, layout: list[str], parts: list[tuple[Rows, tuple[str, ...]]], add: Add
) -> tuple[Rows, list[str]]:
    """Rows joined with a union of alternatives; a column that an alternative lacks is unknown."""
    longer = list(dict.fromkeys([*layout, *(c for _, columns in parts for c in columns)]))
    merged: Rows = {}
    for part, columns in parts:
        met, bound = meet(rows, layout, part, columns, add)
        order = [bound.index(column) if column in bound else None for column in longer]
        for values, needs in met.items():
            for need in needs:
                add(merged, tuple(None if i is None else values[i] for i in order), need)
    return merged, longer


def add_rows(rows: Rows, more: Rows) -> None:
    for values, needs in more.items():
        for need in needs:
            add_need(rows, values, need)
