"""What can be dropped: rows of joins, streams and subtrees that no future row can use.

Law: dropping it changes no row, no change and no `never` change of any view.

**A row of a two-way join** is needed as long as a row of the other input that joins with it may
still arrive. `pair_of` finds, for one join, the proofs that none can:

    `StreamEnded`   no open stream can deliver a row of the other input
    `KeyUsed`       the only node that may have this value of a key has arrived already
    `TimePassed`    the clock is past the row's deadline: the time constraints bound the partner's
                    time from above by the row's own times

`views/counting/waiting_rows.py` keeps the rows and applies the proofs. Dropping is sound for every
constraint: a constraint that is not understood narrows nothing. `Pair.is_exact` says that the
verdict is also complete, so that a row that is not garbage can indeed still find a partner. Not
covered: joins of three or more inputs, `or` and `not`, streams that may delete.

**A stream** can be closed if no undominated scenario of any view requires data from it: each row
that its data could complete appears without it, and no later.

**A subtree** can be dropped if it contains no open call, and no scenario that still needs data uses
a node of it. A row that uses the subtree then either exists already, and stays, or never appears. A
scenario counts for a node unless another with the same node, outputs and join variables needs less.
A scenario without needs is an existing row. `finished.py` does this also for `or` and `not`, and
keeps what rows show of nodes and what deletions can reach. Everything is kept, with the reason,
where there are collected paths, a `not` inside a `not`, types, or enforced keys (their values are
looked up in the document).

These are verdicts, which change nothing; `live/collector.py` applies them. See docs/meaning.md,
Truth. (Paper 1, section 5, example 6; paper 2, section 5.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from axlog.document.times import EARLIEST
from axlog.errors import UndecidedError
from axlog.evaluate.joins import Row
from axlog.future.arrivals import bringable
from axlog.future.generalized_rows import add_need, project
from axlog.future.keys import Key, constant_of, mentions
from axlog.future.references import ForeignKey
from axlog.future.time_constraints import CLOCK, Inequality, TimeSystem, at_or_after, inequalities
from axlog.query.compile import Column, Form, Relation, Test, form_of
from axlog.query.pattern import (
    Comparison,
    TimeConstraint,
)

# Proofs -------------------------------------------------------------------------------------------


class KeyUsed(NamedTuple):
    """An input delivers no more rows with this value of its key."""

    input: int
    value: str


class TimePassed(NamedTuple):
    """No input delivers a row with an earlier time."""

    clock: int


class StreamEnded(NamedTuple):
    """An input gets no more rows from this stream."""

    input: int
    stream: str


Proof: TypeAlias = KeyUsed | TimePassed | StreamEnded
"""Why rows that wait for partners of an input find none: see `WaitingRows.prune`."""

# Joins --------------------------------------------------------------------------------------------

NEVER = EARLIEST - 1
"""The deadline of a row that can never find a partner: before every time."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on the partner's time: a sum over the row's own times, and a constant.

    The sum is divided by the partner's coefficient. An upper bound is rounded down; a lower bound
    (with a negative divisor) is rounded up.
    """

    terms: tuple[tuple[int, int], ...]  # coefficient, position in the row
    constant: int
    divisor: int = 1

    def at(self, row: Row) -> int:
        total = self.constant + sum(factor * int(row[at]) for factor, at in self.terms)
        return total // self.divisor if self.divisor > 0 else -(-total // -self.divisor)


@dataclass(frozen=True, slots=True)
class Window:
    """When one node of a partner must arrive, as bounds over the row's own times."""

    of: Column  # the time of that node
    lows: tuple[Bound, ...]
    highs: tuple[Bound, ...]

    @property
    def never_empty(self) -> bool:
        """Whether some time is left, whatever the row: its bounds differ by constants."""
        bounds = (*self.lows, *self.highs)
        is_plain = all(b.terms == bounds[0].terms and abs(b.divisor) == 1 for b in bounds)
        return not self.lows or (
            is_plain
            and bool(self.highs)
            and max(b.constant for b in self.lows) <= min(b.constant for b in self.highs)
        )

    def deadline(self, row: Row) -> int | None:
        """The latest clock at which a partner may still arrive; None: no limit."""
        high = min((bound.at(row) for bound in self.highs), default=None)
        low = max((bound.at(row) for bound in self.lows), default=None)
        if high is not None and low is not None and low > high:
            return NEVER
        return high


@dataclass(frozen=True, slots=True)
class Feeder:
    """A stream that may deliver rows of an input, and the relation matched in its messages."""

    stream: str
    relation: Relation
    is_root: bool  # matched at the root of a message, not anywhere in it
    place: tuple[str, ...] = ()  # the labels from below the root element to the call


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a two-way join: its columns, its streams, and how long its rows wait."""

    columns: tuple[Column, ...]
    feeders: tuple[Feeder, ...]
    key: tuple[int, Key] | None  # a join column and the key whose value it holds
    windows: tuple[Window, ...]  # of the partners of its rows
    time_positions: tuple[int, ...]
    is_referring: bool = False
    """Whether the only partner of a row has arrived before it: the row refers to it by its key."""

    @property
    def is_bounded(self) -> bool:
        """Whether every row has a deadline."""
        return any(window.highs for window in self.windows)

    @property
    def is_born_dead(self) -> bool:
        """Whether no row that arrives now can find a partner that arrives later."""
        return self._ends_before(0)

    @property
    def is_brief(self) -> bool:
        """Whether a row that arrives now can find a partner of the same instant only."""
        return self._ends_before(1)

    @property
    def waits_an_instant(self) -> bool:
        """Whether a row that arrives now waits, and for a partner of the same instant only."""
        return self.is_brief and not self.is_born_dead and not self.is_referring

    def _ends_before(self, later: int) -> bool:
        """Whether deadlines are before the last time of a row and that many microseconds."""
        for window in self.windows:
            for high in window.highs:
                factors = [factor for factor, _ in high.terms]  # of times at or before the clock
                is_mean = sum(factors) == high.divisor and min(factors) > 0
                if is_mean and high.constant < later:
                    return True
        return False

    @property
    def simple_bound(self) -> tuple[int, int] | None:
        """The position of a time, and what is added to it for the deadline; None: it is more."""
        if len(self.windows) != 1 or len(self.windows[0].highs) != 1:
            return None
        (window,) = self.windows
        (high,) = window.highs
        if not window.never_empty or high.divisor != 1 or [f for f, _ in high.terms] != [1]:
            return None
        return high.terms[0][1], high.constant

    def deadline(self) -> Callable[[Row], int | None]:
        """A function that returns the deadline of a row."""
        simple = self.simple_bound
        if simple is not None:
            at, constant = simple
            return lambda row: row[at] + constant  # type: ignore[operator]  # a time
        if len(self.windows) == 1:
            (window,) = self.windows
            if len(window.highs) == 1 and window.never_empty:
                return window.highs[0].at
            return window.deadline
        windows = self.windows

        def deadline(row: Row) -> int | None:
            known = [limit for window in windows if (limit := window.deadline(row)) is not None]
            return min(known, default=None)

        return deadline


@dataclass(frozen=True, slots=True)
class Pair:
    """A join of two inputs."""

    relation: Relation
    sides: tuple[Side, Side]
    is_exact: bool
    both_until: int | None
    """The latest clock at which rows of both inputs may still arrive; None: no limit."""

    def bounds_times(self, columns: Iterable[Column]) -> bool:
        """Whether the windows alone bound the times among some columns.

        False if such a time is bounded through the time of another node, which is not before it.
        """
        for side, partner in zip(self.sides, reversed(self.sides), strict=True):
            bounded = {window.of for window in partner.windows if window.highs}
            shown = {c for c in columns if c in side.columns and c.endswith(".time")}
            if bounded and shown - bounded:
                return False
        return True

    @property
    def waits_on_both_sides(self) -> bool:
        """Whether rows of either input wait for rows of a later instant."""
        return not any(side.is_brief or side.is_referring for side in self.sides)

    def remembers(self, part: int) -> bool:
        """Whether the key values of an input's nodes must be stored after they have arrived.

        They rule out rows of the other input that arrive later. If such rows can only be completed
        at their own instant, they are dropped then, and nothing is stored. If the values of one
        input must be stored, so must those of the other: a value is removed when both nodes have
        arrived.
        """
        if self.sides[part].key is None:
            return False
        return self.remembers_only(part) or self.remembers_only(1 - part)

    def remembers_only(self, part: int) -> bool:
        """As `remembers`, by the rows of the other input alone."""
        other = self.sides[1 - part]
        if self.sides[part].key is None or other.is_referring:
            return False
        return not other.is_bounded or self.waits_on_both_sides


def pair_of(
    relation: Relation,
    feeders: tuple[tuple[Feeder, ...], tuple[Feeder, ...]],
    keyed: dict[Relation, list[tuple[Column, Key]]],
    sources: dict[Relation, list[tuple[Column, Key]]] | None = None,
    references: Iterable[ForeignKey] = (),
) -> Pair:
    """The verdict on a relation of two edges.

    `sources`: the relations that match sources of `references`, with the column of the value.
    """
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
    if sources:
        refers = [_refers(sides[n], sides[1 - n], shared, sources, references) for n in range(2)]
        pairs = zip(sides, refers, strict=True)
        sides = [replace(side, is_referring=each) for side, each in pairs]
    pair = Pair(relation, (sides[0], sides[1]), is_exact=False, both_until=None)
    return judged(pair, feeders, keyed)


def judged(
    pair: Pair,
    feeders: tuple[tuple[Feeder, ...], tuple[Feeder, ...]],
    keyed: dict[Relation, list[tuple[Column, Key]]],
) -> Pair:
    """The same verdict on a join, and whether it is exact with these streams."""
    relation, (one, other) = pair.relation, pair.sides
    is_exact = all(_is_plain(test, one.columns, other.columns) for test in relation.tests)
    is_exact = is_exact and all(len(side.windows) <= 1 for side in pair.sides)
    shared = set(one.columns) & set(other.columns)
    every = [feeder for each in feeders for feeder in each]
    keys = [column for feeder in every for column, _ in keys_of(feeder, keyed)]
    is_exact = is_exact and all(constant_of(column) is None for column in keys)
    is_exact = is_exact and _are_free(every, shared)
    both_until = _both_until(relation.tests) if is_exact else None
    return replace(pair, is_exact=is_exact, both_until=both_until)


def keys_of(
    feeder: Feeder, keyed: Mapping[Relation, Sequence[tuple[Column, Key]]]
) -> Iterator[tuple[Column, Key]]:
    """The keys of a stream's nodes. Nodes deeper in a message are at no path of a key."""
    for below in feeder.relation.walk() if feeder.is_root else ():
        for column, key in keyed.get(below, ()):
            if mentions(key, feeder.place, feeder.relation, below):
                yield column, key


def rebound(pair: Pair, tests: tuple[Test, ...]) -> Pair:
    """The verdict on a join with other bounds in its tests, which relate the same times."""
    parts = [side.columns for side in pair.sides]
    one, other = (
        replace(pair.sides[n], windows=_windows(tests, parts[n], parts[1 - n])) for n in range(2)
    )
    both_until = _both_until(tests) if pair.is_exact else None
    return replace(pair, sides=(one, other), both_until=both_until)


def _key(
    feeders: tuple[Feeder, ...],
    shared: set[Column],
    columns: tuple[Column, ...],
    keyed: dict[Relation, list[tuple[Column, Key]]],
) -> tuple[int, Key] | None:
    """A key on every tree that can deliver rows of an input, over a column that joins."""
    common: set[tuple[Column, Key]] | None = None
    for feeder in feeders:
        pairs = set(keys_of(feeder, keyed))
        common = pairs if common is None else common & pairs
    for column, key in sorted(common or (), key=str):
        if column in shared:
            return columns.index(column), key
    return None


def _refers(
    side: Side,
    other: Side,
    shared: set[Column],
    sources: dict[Relation, list[tuple[Column, Key]]],
    references: Iterable[ForeignKey],
) -> bool:
    """Whether every row of an input refers to the only row of the other with its value."""
    if other.key is None or {f.stream for f in side.feeders} & {f.stream for f in other.feeders}:
        return False  # of one message, the row that refers may be read first
    column, key = other.columns[other.key[0]], other.key[1]
    targets = [each.source for each in references
               if (each.target.path, each.target.by) == (key.path, key.by)]  # fmt: skip
    for source in targets:
        only = {
            relation: [pair for pair in pairs if pair == (column, source)]
            for relation, pairs in sources.items()
        }
        if side.feeders and _key(side.feeders, shared, side.columns, only) is not None:
            return True
    return False


def _is_plain(test: Test, one: tuple[Column, ...], other: tuple[Column, ...]) -> bool:
    """Whether a test relates one time of each input, so that a window expresses it completely."""
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
    """The bounds that the tests place on the times of a partner, for each of its nodes."""
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
    """The inequalities of tests on the times of two future nodes."""
    system: list[Inequality] = []
    for test in tests:
        assert isinstance(test.constraint, TimeConstraint)
        more = inequalities(test.constraint, {})
        assert isinstance(more, list)
        system += more
    return system


def _both_until(tests: Iterable[Test]) -> int | None:
    """The latest clock at which the times of two future nodes can still satisfy the tests."""
    system = system_of(tests)
    names = {name for each in system for _, name in each.terms}
    closed = TimeSystem([*system, *(at_or_after(name, CLOCK) for name in names)])
    return closed.latest(CLOCK) if closed.is_satisfiable else NEVER


def _are_free(feeders: Iterable[Feeder], shared: set[Column]) -> bool:
    """Whether streams can deliver rows with any values of the join columns, at any time."""
    found = [never_empty(*each) for each in {(f.relation, f.is_root): None for f in feeders}]
    if any(each is None for each in found):
        return False
    return len({frozenset(each & shared) for each in found if each is not None}) <= 1


@lru_cache(maxsize=256)  # many streams have equal relations
def never_empty(relation: Relation, is_root: bool) -> frozenset[Column] | None:
    """The columns in which a stream delivers any nonempty string; None: not any string."""
    try:
        return _never_empty(relation, is_root)
    except UndecidedError:
        return None


_KNOWN: dict[tuple[Form, bool], frozenset[Column] | None] = {}
_MOST_KNOWN, _LARGEST_KNOWN = 4096, 64


def _never_empty(relation: Relation, is_root: bool) -> frozenset[Column] | None:
    """Known for equal relations: documents have the same views, and a view judges all joins again.

    Raises if it is not decided.
    """
    if sum(1 for _ in relation.walk()) > _LARGEST_KNOWN:
        return _found_never_empty(relation, is_root)
    form = form_of(relation), is_root
    if form not in _KNOWN:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[form] = _found_never_empty(relation, is_root)
    return _KNOWN[form]


def _found_never_empty(relation: Relation, is_root: bool) -> frozenset[Column] | None:
    rows, layout = bringable((relation,), is_root)
    found = project(rows, layout, (), relation.columns, add_need)
    needs = found.get(tuple(None for _ in relation.columns), [])
    for need in needs:
        values = need.values
        compared = {column for column, _ in values.compared}
        is_free = values.compared <= {(c, _NOT_EMPTY) for c in compared} and not (
            values.different or values.names or values.same
        )
        if is_free and all(each.bound == 0 and _is_order(each) for each in need.times):
            return frozenset(compared)
    return None


_NOT_EMPTY = Comparison("!=", "")


def _is_order(inequality: Inequality) -> bool:
    """Whether an inequality only orders two times, so that equal times satisfy it."""
    return sorted(factor for factor, _ in inequality.terms) == [-1, 1]
