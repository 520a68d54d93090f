"""What waits for a partner, and when it waits in vain (P1 5; P2 5; DESIGN section 3, Truth).

A join of two parts that streams feed keeps rows of each part: a row matters as long as a row of the
other part may still come that agrees with it. It is garbage when none can:

- no open stream can bring a row of the other part;
- a key says that the one node of its value has come already;
- the clock is past the row's deadline: the time constraints bound the partner's time from above by
  the row's own times.

These are verdicts on one join; `views/counting/waiting_rows.py` carries them out row by row.
Dropping is sound for every constraint: what is not understood narrows nothing. `is_exact` says that
the verdict is also complete, so that a row that is not garbage can indeed still be completed.

Not covered: joins of three parts or more, `or` and `not`, streams that may delete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from axlog.document.times import EARLIEST
from axlog.errors import UndecidedError
from axlog.evaluate.joins import Row
from axlog.future.arrivals import bringable
from axlog.future.generalized_rows import add_need, project
from axlog.future.keys import Key, speaks_of
from axlog.future.time_constraints import CLOCK, Inequality, TimeSystem, at_or_after, inequalities
from axlog.query.compile import Column, Relation, Test
from axlog.query.pattern import Comparison, TimeConstraint

NEVER = EARLIEST - 1
"""The deadline of a row that no partner can complete, whenever it comes: before every time."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on the partner's time: a sum over the row's own times, and a constant.

    Divided by the partner's coefficient: an upper bound is rounded down, a lower one (with a
    negative divisor) up.
    """

    terms: tuple[tuple[int, int], ...]  # coefficient, position in the row
    constant: int
    divisor: int = 1

    def at(self, row: Row) -> int:
        total = self.constant + sum(factor * int(row[at]) for factor, at in self.terms)
        return total // self.divisor if self.divisor > 0 else -(-total // -self.divisor)


@dataclass(frozen=True, slots=True)
class Window:
    """Between which times one node of a partner must come, by the row's own times."""

    of: Column  # the time of that node
    lows: tuple[Bound, ...]
    highs: tuple[Bound, ...]

    def deadline(self, row: Row) -> int | None:
        """The latest clock at which a partner may still come; None: no limit."""
        high = min((bound.at(row) for bound in self.highs), default=None)
        low = max((bound.at(row) for bound in self.lows), default=None)
        if high is not None and low is not None and low > high:
            return NEVER
        return high


@dataclass(frozen=True, slots=True)
class Feeder:
    """A stream that may bring rows of a part: the relation that its messages are matched with."""

    stream: str
    relation: Relation
    is_root: bool  # looked for at the root of a message, not anywhere in it
    place: tuple[str, ...] = ()  # the labels from below the root element to where messages arrive


@dataclass(frozen=True, slots=True)
class Side:
    """One part of a join of two: what its rows are, who brings them, how long they wait."""

    columns: tuple[Column, ...]
    feeders: tuple[Feeder, ...]
    key: tuple[int, Key] | None  # a position that joins, and the key whose value stands there
    windows: tuple[Window, ...]  # of the partners of its rows
    time_positions: tuple[int, ...]

    @property
    def is_bounded(self) -> bool:
        """Whether every row has a deadline."""
        return any(window.highs for window in self.windows)

    @property
    def is_born_dead(self) -> bool:
        """Whether no row that comes with the clock's time can be completed later."""
        for window in self.windows:
            for high in window.highs:
                factors = [factor for factor, _ in high.terms]  # of times that are not later
                is_mean = sum(factors) == high.divisor and min(factors) > 0
                if is_mean and high.constant < 0:
                    return True
        return False

    def deadline(self) -> Callable[[Row], int | None]:
        """A row's deadline, as a function."""
        if len(self.windows) == 1:
            (window,) = self.windows
            if not window.lows and len(window.highs) == 1:
                return _simple(window.highs[0])
            return window.deadline
        windows = self.windows

        def deadline(row: Row) -> int | None:
            known = [limit for window in windows if (limit := window.deadline(row)) is not None]
            return min(known, default=None)

        return deadline


def _simple(bound: Bound) -> Callable[[Row], int | None]:
    if len(bound.terms) == 1 and bound.terms[0][0] == 1 and bound.divisor == 1:
        ((_, at),) = bound.terms
        constant = bound.constant
        return lambda row: row[at] + constant  # type: ignore[operator]  # a time
    return bound.at


@dataclass(frozen=True, slots=True)
class Pair:
    """A join of two parts, with both sides."""

    relation: Relation
    sides: tuple[Side, Side]
    is_exact: bool
    both_until: int | None  # the latest clock at which rows of both parts may still come; None: any

    def says_times(self, columns: Iterable[Column]) -> bool:
        """Whether windows alone bound the times among some columns.

        Not where such a time is bounded by that of another node, which is not before it.
        """
        for side, partner in zip(self.sides, reversed(self.sides), strict=True):
            bounded = {window.of for window in partner.windows if window.highs}
            shown = {c for c in columns if c in side.columns and c.endswith(".time")}
            if bounded and shown - bounded:
                return False
        return True

    def remembers(self, part: int) -> bool:
        """Whether key values of a part's nodes must be remembered once they have come.

        They rule out rows of the other part that come later. Where such rows wait only for a
        limited time they are let go at their deadline instead, and nothing is remembered. Where
        one side must be remembered, so is the other: when both nodes of a value have come, it is
        forgotten.
        """
        if self.sides[part].key is None:
            return False
        other = self.sides[1 - part]
        return not other.is_bounded or self.remembers_only(1 - part)

    def remembers_only(self, part: int) -> bool:
        """The same, by what the other part's rows need alone."""
        return self.sides[part].key is not None and not self.sides[1 - part].is_bounded


def pair_of(
    relation: Relation,
    feeders: tuple[tuple[Feeder, ...], tuple[Feeder, ...]],
    keyed: dict[Relation, list[tuple[Column, Key]]],
) -> Pair:
    """The verdict on a relation of two edges."""
    parts = [edge.relation.columns for edge in relation.edges]
    windows = [_windows(relation.tests, parts[n], parts[1 - n]) for n in range(2)]
    shared = set(parts[0]) & set(parts[1])
    sides = [
        Side(
            parts[n],
            feeders[n],
            _key(feeders[n], shared, parts[n], keyed),
            windows[n],
            tuple(i for i, column in enumerate(parts[n]) if column.endswith(".time")),
        )
        for n in range(2)
    ]
    is_exact = all(_is_plain(test, *parts) for test in relation.tests)
    is_exact = is_exact and all(len(each) <= 1 for each in windows)
    is_exact = is_exact and _are_free([f for each in feeders for f in each], shared)
    both_until = _both_until(relation.tests) if is_exact else None
    return Pair(relation, (sides[0], sides[1]), is_exact, both_until)


def _key(
    feeders: tuple[Feeder, ...],
    shared: set[Column],
    columns: tuple[Column, ...],
    keyed: dict[Relation, list[tuple[Column, Key]]],
) -> tuple[int, Key] | None:
    """A key on every tree that can bring rows of a part, over a column that joins."""
    common: set[tuple[Column, Key]] | None = None
    for feeder in feeders:
        pairs = {
            (column, key)
            for below in feeder.relation.walk()
            for column, key in keyed.get(below, ())
            if feeder.is_root and speaks_of(key, feeder.place, feeder.relation, below)
        }
        common = pairs if common is None else common & pairs
    for column, key in sorted(common or (), key=str):
        if column in shared:
            return columns.index(column), key
    return None


def _is_plain(test: Test, one: tuple[Column, ...], other: tuple[Column, ...]) -> bool:
    """Whether a test ties one time of each part to one of the other: a window says all of it."""
    constraint = test.constraint
    if not isinstance(constraint, TimeConstraint) or constraint.operator == "!=":
        return False
    named = [column for column, factor in _factors(test, constraint).items() if factor]
    return sorted(column in one for column in named) == [False, True]


def _factors(test: Test, constraint: TimeConstraint) -> dict[Column, int]:
    """The coefficient of each time in a constraint."""
    factors: dict[Column, int] = {}
    for (factor, _), column in zip(constraint.terms, test.columns, strict=True):
        factors[column] = factors.get(column, 0) + factor
    return factors


def _windows(
    tests: Iterable[Test], own: tuple[Column, ...], other: tuple[Column, ...]
) -> tuple[Window, ...]:
    """What the tests say of the times of a partner, for each of its nodes that they name."""
    found: dict[Column, tuple[list[Bound], list[Bound]]] = {}
    for test in tests:
        constraint = test.constraint
        if not isinstance(constraint, TimeConstraint) or constraint.operator == "!=":
            continue
        factors = _factors(test, constraint)
        named = [column for column in factors if column in other and factors[column]]
        if len(named) != 1:
            continue
        by = factors.pop(named[0])
        sign = 1 if by > 0 else -1
        lows, highs = found.setdefault(named[0], ([], []))
        terms = tuple(
            (-sign * factor, own.index(column)) for column, factor in factors.items() if factor
        )
        for operator, slack in _AS_INEQUALITIES[constraint.operator]:
            constant = sign * (constraint.bound + slack)
            if (operator == "<=") == (sign > 0):
                highs.append(Bound(terms, constant, abs(by)))
            else:  # rounded up
                lows.append(Bound(terms, constant, -abs(by)))
    return tuple(Window(column, tuple(low), tuple(high)) for column, (low, high) in found.items())


_AS_INEQUALITIES = {
    "<=": (("<=", 0),), "<": (("<=", -1),), ">=": ((">=", 0),), ">": ((">=", 1),),
    "=": (("<=", 0), (">=", 0)),
}  # fmt: skip


def system_of(tests: Iterable[Test]) -> list[Inequality]:
    """What tests ask of the times of two nodes to come; each ties one time to another."""
    system: list[Inequality] = []
    for test in tests:
        assert isinstance(test.constraint, TimeConstraint)
        more = inequalities(test.constraint, {})
        assert isinstance(more, list)
        system += more
    return system


def _both_until(tests: Iterable[Test]) -> int | None:
    """The latest clock at which the times of two nodes to come can still meet the tests."""
    system = system_of(tests)
    names = {name for each in system for _, name in each.terms}
    closed = TimeSystem([*system, *(at_or_after(name, CLOCK) for name in names)])
    return closed.latest(CLOCK) if closed.is_satisfiable else NEVER


def _are_free(feeders: Iterable[Feeder], shared: set[Column]) -> bool:
    """Whether streams can bring rows with any values that the other part may have, at any time."""
    found = [_never_empty(*each) for each in {(f.relation, f.is_root): None for f in feeders}]
    if any(each is None for each in found):
        return False
    return len({frozenset(each & shared) for each in found if each is not None}) <= 1


@lru_cache(maxsize=256)  # many streams bring the same
def _never_empty(relation: Relation, is_root: bool) -> set[Column] | None:
    """The columns in which a stream brings any string but the empty one; None: not any string."""
    try:
        rows, layout = bringable((relation,), is_root)
        found = project(rows, layout, (), relation.columns, add_need)
    except UndecidedError:
        return None
    needs = found.get(tuple(None for _ in relation.columns), [])
    for need in needs:
        values = need.values
        compared = {column for column, _ in values.compared}
        is_free = values.compared <= {(c, _NOT_EMPTY) for c in compared} and not (
            values.different or values.names or values.same
        )
        if is_free and all(each.bound == 0 and _is_order(each) for each in need.times):
            return compared
    return None


_NOT_EMPTY = Comparison("!=", "")


def _is_order(inequality: Inequality) -> bool:
    """Whether it says only that one time is not before another: equal times meet it."""
    return sorted(factor for factor, _ in inequality.terms) == [-1, 1]
