"""Generalised rows: values or unknowns, with what a row still needs (P2 definition 4 and section
6).

A value is a string, a time, a node, or None: unknown, which agrees with anything. A need says which
sub-patterns which streams must bring, and what unknown times and strings must meet. Rows that need
less win: of two needs for one row, one that asks for a subset of the other's is kept (P2's
dominance with all columns compared).
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
    """What a row still needs: sub-patterns of streams, and what unknowns must meet."""

    brought: frozenset[tuple[Relation, str]] = frozenset()
    times: frozenset[Inequality] = frozenset()
    unknown_times: frozenset[str] = frozenset()
    values: ValueNeeds = field(default_factory=ValueNeeds)
    new: frozenset[KeyedNode] = frozenset()  # nodes that get the value of a key

    def joined(self, other: Need) -> Need:
        return Need(
            self.brought | other.brought,
            self.times | other.times,
            self.unknown_times | other.unknown_times,
            self.values.joined(other.values),
            self.new | other.new,
        )

    def asks_no_more_than(self, other: Need) -> bool:
        """Whether whatever meets the other need meets this one."""
        return (
            self.brought <= other.brought
            and (self.times <= other.times or _are_implied(self.times, other.times))
            and self.values.asks_no_more_than(other.values)
            and self.new <= other.new
        )


def _are_implied(times: Iterable[Inequality], by: Iterable[Inequality]) -> bool:
    """Whether each inequality follows from one of others: of the same terms, no less tight."""
    return all(any(o.terms == one.terms and o.bound <= one.bound for o in by) for one in times)


NOTHING = Need()
Rows = dict[Values, list[Need]]


def add_need(rows: Rows, values: Values, need: Need) -> None:
    """Add a way to a row, unless one that asks no more is there; drop those that ask more."""
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
"""Ways to one row that are told apart: their number grows with the product of the calls."""


class _Indexed(list[Need]):
    """Many ways to one row, found by what they ask for: a need has few parts, and few subsets."""

    def __init__(self, needs: Iterable[Need]) -> None:
        super().__init__()
        self._by_brought: dict[Brought, list[Need]] = {}
        self._with: dict[tuple[Relation, str], dict[Brought, None]] = {}
        for need in needs:
            self._keep(need)

    def _keep(self, need: Need) -> None:
        self.append(need)
        self._by_brought.setdefault(need.brought, []).append(need)
        for part in need.brought:
            self._with.setdefault(part, {})[need.brought] = None

    def add(self, need: Need) -> None:
        """As `add_need` does."""
        if any(one.asks_no_more_than(need) for one in self._asking_less(need.brought)):
            return
        self._drop(need)
        if len(self) >= MOST_WAYS:
            raise UndecidedError("AX502", f"a row can come about in more than {MOST_WAYS:,} ways")
        self._keep(need)

    def _asking_less(self, brought: Brought) -> Iterator[Need]:
        """The ways that ask streams for a part of this: by subsets, unless all ways are fewer."""
        spend(min(1 << len(brought), len(self)) >> 4)
        if 1 << len(brought) > len(self):
            yield from (one for one in self if one.brought <= brought)
            return
        for size in range(len(brought) + 1):
            for part in combinations(tuple(brought), size):
                yield from self._by_brought.get(frozenset(part), ())

    def _drop(self, need: Need) -> None:
        """Forget the ways that ask for more."""
        rarest = min((self._with.get(p, {}) for p in need.brought), key=len, default=None)
        candidates = list(self._by_brought if rarest is None else rarest)
        spend(len(candidates) >> 4)
        for brought in candidates:
            if need.brought <= brought:
                for one in [n for n in self._by_brought[brought] if need.asks_no_more_than(n)]:
                    self._by_brought[brought].remove(one)
                    self.remove(one)


def gather_need(rows: Rows, values: Values, need: Need) -> None:
    """Add a way to a row: of ways under the same constraints, what they ask for is put together."""
    known = rows.setdefault(values, [])
    spend(len(known) >> 4)  # it is looked through
    for at, one in enumerate(known):
        same = (one.times, one.values, one.new) == (need.times, need.values, need.new)
        if same:
            known[at] = replace(one, brought=one.brought | need.brought)
            return
    known.append(need)


def alike_need(rows: Rows, values: Values, need: Need) -> None:
    """Add a way to a row, unless there is one under the same constraints; nothing needed wins."""
    known = rows.setdefault(values, [])
    spend(len(known) >> 4)  # it is looked through
    for at, one in enumerate(known):
        if (one.times, one.values, one.new) == (need.times, need.values, need.new):
            if one.brought and not need.brought:
                known[at] = need
            return
    known.append(need)


def keep_need(rows: Rows, values: Values, need: Need) -> None:
    """Add a way to a row, whatever others ask for."""
    known = rows.setdefault(values, [])
    spend(len(known) >> 4)
    if need not in known:
        known.append(need)
    if len(known) > MOST_WAYS:
        raise UndecidedError("AX502", f"a row can come about in more than {MOST_WAYS} ways")


Add = Callable[[Rows, Values, Need], None]


def meet(
    rows: Rows, layout: list[str], part: Rows, columns: tuple[str, ...], add: Add = add_need
) -> tuple[Rows, list[str]]:
    """A natural join in which an unknown agrees with anything."""
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
    """Two rows that agree in what they share, as one; None if they do not."""
    values = list(left)
    for i, j in shared:
        if i in nodes and (values[i] is None) != (right[j] is None):
            return None  # a node to come is none that is here
        if i in nodes and values[i] is None:
            raise UndecidedError(
                "AX503", "an `or` that has to be tied to a node to come from further up"
            )
        if values[i] is None:
            values[i] = right[j]
        elif right[j] is not None and right[j] != values[i]:
            return None
    return tuple(values)


def constrain(
    tests: Iterable[CompiledTest], values: dict[str, str | int | None], need: Need
) -> Iterator[Need]:
    """The needs that a row has once its tests are made: none if one fails, two for `!=`."""
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
    """Test what can be tested, keep as needs what cannot yet, and leave only some columns.

    What is known is put into the needs first: a column that goes cannot be asked again. An unknown
    that its tests leave one string for is that string, with `pins`: where columns go later, the
    need must go on to say it.
    """
    at = [layout.index(column) for column in onto]
    tests = tuple(tests)
    found: Rows = {}
    for values, needs in rows.items():
        shown = tuple([values[i] for i in at])
        known = None
        for need in needs:
            if not tests and need.values.is_empty:  # almost always
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
    """Rows joined with one of several alternatives; what an alternative does not bind is open."""
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
