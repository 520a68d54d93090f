"""The inputs of a join, as far as its future rows depend on them: streams, keys, times.

A future row of a join takes a row of each part: one that has arrived, or one that an open stream
will bring. `inputs_of` says what an arriving row can be. It can have any values and any time from
the clock on, except that

    a value of a key      has not arrived yet: at most one node has it
    a text                is not empty, where the pattern asks for a text
    tests                 bound its time by the times of the rows that it joins

Law: rows of some parts and streams of the others give a future row exactly if these conditions can
be met. Where that is not known, `inputs_of` returns the reason instead, and the analyses of the
document decide (`future/truth.py`). `views/counting/join_outlook.py` reads the rows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from axlog.future.garbage import Feeder, keys_of, never_empty
from axlog.future.keys import Key, constant_of
from axlog.future.time_constraints import Inequality, TimeSystem, at_or_after, not_before
from axlog.query.compile import Column, Relation, Test
from axlog.query.pattern import TimeConstraint

CLOCK = ""
"""The name of the clock among the unknown times; no column has it."""

FAR = 1 << 62
"""Later than every time."""

Keyed = Mapping[Relation, Sequence[tuple[Column, Key]]]
"""Relations that match nodes of a key, with the column that holds its value."""


@dataclass(frozen=True, slots=True)
class JoinPart:
    """One part of a join."""

    columns: tuple[Column, ...]
    feeders: tuple[Feeder, ...]
    keys: tuple[tuple[int, Key], ...]  # positions of key values, and the keys
    texts: frozenset[int]  # positions of values that are never empty
    time: int | None  # the position of its time
    is_timed: bool  # whether a test bounds its time

    @property
    def is_free(self) -> bool:
        """Whether a stream can bring any row of this part, at any time."""
        return not self.keys and not self.is_timed


Terms = tuple[tuple[int, Column], ...]
"""Sums of (factor, column) over times."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A test as inequalities over times: sums of (factor, column) that are at most a number."""

    sums: tuple[tuple[Terms, int], ...]
    columns: frozenset[Column]


Limit = tuple[int, Terms, int]
"""factor, terms, bound: (bound - terms) / factor limits a time."""


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """The tests on the times of some parts that have not arrived, by the columns that are known.

    `JoinInputs.latest` is what they mean for given values.
    """

    checks: tuple[tuple[Terms, int], ...]  # sums of known times that are at most a number
    ranges: tuple[tuple[tuple[Limit, ...], tuple[Limit, ...]], ...]
    """For each unknown time its upper and its lower limits, by known times."""
    linked: tuple[Inequality, ...]  # between unknown times
    latest: int | None  # the latest clock by `linked` alone; None: there is none


@dataclass(frozen=True, slots=True)
class JoinInputs:
    """The parts of a join, and the tests between their times."""

    parts: tuple[JoinPart, ...]
    tests: tuple[Bounds, ...]

    def latest(self, known: Mapping[Column, str | int], future: Iterable[int]) -> int | None:
        """The latest clock at which rows of some parts can arrive and meet the tests.

        `known` are the times that are given. None: they cannot; `FAR`: there is no limit.
        """
        unknown, limit = [], FAR
        for part in future:
            at = self.parts[part].time
            if at is None:
                continue
            column = self.parts[part].columns[at]
            if column in known:
                limit = min(limit, int(known[column]))
            else:
                unknown.append(column)
        highs = dict.fromkeys(unknown, FAR)
        lows = dict.fromkeys(unknown, -FAR)
        linked: list[Inequality] = []
        for test in self.tests:
            for terms, bound in test.sums:
                left = bound
                open_terms: list[tuple[int, Column]] = []
                for factor, column in terms:
                    if column in highs:
                        open_terms.append((factor, column))
                    else:
                        left -= factor * int(known[column])
                if not open_terms:
                    if left < 0:
                        return None
                elif len(open_terms) == 1:
                    ((factor, column),) = open_terms
                    if factor > 0:
                        highs[column] = min(highs[column], left // factor)
                    else:
                        lows[column] = max(lows[column], -(left // -factor))
                else:
                    linked.append(Inequality(tuple(sorted(open_terms)), left))
        if linked:
            latest = _latest_linked(tuple(linked), tuple(lows.items()), tuple(highs.items()))
            return None if latest is None else min(limit, latest)
        for column in unknown:
            if lows[column] > highs[column]:
                return None
            limit = min(limit, highs[column])
        return limit

    def bounds(self, known: Container[Column], future: Iterable[int]) -> TimeBounds:
        """The tests for parts that have not arrived, where the times of these columns are known."""
        parts = (self.parts[each] for each in future)
        times = (part.columns[part.time] for part in parts if part.time is not None)
        unknown = [column for column in times if column not in known]
        highs: dict[Column, list[Limit]] = {column: [] for column in unknown}
        lows: dict[Column, list[Limit]] = {column: [] for column in unknown}
        checks: list[tuple[Terms, int]] = []
        linked: list[Inequality] = []
        for test in self.tests:
            for terms, bound in test.sums:
                left = tuple(term for term in terms if term[1] in highs)
                closed = tuple(term for term in terms if term[1] not in highs)
                if not left:
                    checks.append((closed, bound))
                elif len(left) == 1:
                    ((factor, column),) = left
                    limits = highs if factor > 0 else lows
                    limits[column].append((abs(factor), closed, bound))
                else:
                    linked.append(Inequality(tuple(sorted(left)), bound))
        latest: int | None = FAR
        if linked:
            free = tuple((column, FAR) for column in unknown)
            below = tuple((column, -FAR) for column in unknown)
            latest = _latest_linked(tuple(linked), below, free)
        ranges = tuple((tuple(highs[column]), tuple(lows[column])) for column in unknown)
        return TimeBounds(tuple(checks), ranges, tuple(linked), latest)

    def system(self, known: Mapping[Column, str | int], future: Iterable[int]) -> list[Inequality]:
        """The tests on times that are not known, with those that are put in."""
        unknown = {
            part.columns[part.time]
            for part in (self.parts[each] for each in future)
            if part.time is not None and part.columns[part.time] not in known
        }
        return [
            Inequality(
                tuple(sorted((factor, column) for factor, column in terms if column in unknown)),
                bound - sum(f * int(known[column]) for f, column in terms if column not in unknown),
            )
            for test in self.tests
            for terms, bound in test.sums
            if not unknown.isdisjoint(test.columns)
        ]


@lru_cache(maxsize=1024)  # without known times, the same for every row
def _latest_linked(
    linked: tuple[Inequality, ...],
    lows: tuple[tuple[Column, int], ...],
    highs: tuple[tuple[Column, int], ...],
) -> int | None:
    """The latest clock where tests link times that are not known; None: there is none."""
    system = [*linked, *(at_or_after(column, CLOCK) for column, _ in highs)]
    system += [Inequality(((1, column),), high) for column, high in highs if high < FAR]
    system += [not_before(column, low) for column, low in lows if low > -FAR]
    closed = TimeSystem(system)
    if not closed.is_satisfiable:
        return None
    latest = closed.latest(CLOCK)
    return FAR if latest is None else latest


def inputs_of(
    relation: Relation, feeders: Sequence[tuple[Feeder, ...]], keyed: Keyed
) -> JoinInputs | str:
    """The inputs of a join, or the reason why its future rows are not read off them."""
    columns = [edge.relation.columns for edge in relation.edges]
    if len({id(edge.relation) for edge in relation.edges}) < len(columns):
        return "one relation is two parts of a join"
    tests: list[Bounds] = []
    for test in relation.tests:
        made = _bounds(test, columns)
        if made is None:
            return f"a test that is not a bound between two times: {test.constraint}"
        tests.append(made)
    timed = {column for test in tests for column in test.columns}
    parts: list[JoinPart] = []
    for each, fed in zip(columns, feeders, strict=True):
        part = _part(each, fed, keyed, timed)
        if isinstance(part, str):
            return part
        parts.append(part)
    return _conflict(parts) or JoinInputs(tuple(parts), tuple(tests))


def rebound_inputs(inputs: JoinInputs, tests: Iterable[Test]) -> JoinInputs:
    """The inputs of a join with other bounds in its tests, which relate the same times."""
    columns = [part.columns for part in inputs.parts]
    found = (_bounds(test, columns) for test in tests)
    return JoinInputs(inputs.parts, tuple(each for each in found if each is not None))


def _part(
    columns: tuple[Column, ...], feeders: tuple[Feeder, ...], keyed: Keyed, timed: set[Column]
) -> JoinPart | str:
    times = [at for at, column in enumerate(columns) if column.endswith(".time")]
    if len(times) > 1:
        return "a part has the times of several nodes"
    if any(column.endswith((".node", ".label")) for column in columns):
        return "a part has nodes or labels"
    texts: set[frozenset[int]] = set()
    keys: set[frozenset[tuple[int, Key]]] = set()
    for feeder in feeders:
        found = never_empty(feeder.relation, feeder.is_root)
        if found is None:
            return f"the stream {feeder.stream!r} cannot bring any value"
        mine = list(keys_of(feeder, keyed))
        if any(constant_of(column) is not None for column, _ in mine):
            return "the value of a key is a constant"
        texts.add(frozenset(columns.index(column) for column in found if column in columns))
        keys.add(
            frozenset((columns.index(c), k) for c, k in keys_of(feeder, keyed) if c in columns)
        )
    if len(texts) > 1 or len(keys) > 1:
        return "streams of one part differ in what they can bring"
    is_timed = any(columns[at] in timed for at in times)
    return JoinPart(
        columns,
        feeders,
        tuple(sorted(next(iter(keys), ()), key=str)),
        next(iter(texts), frozenset()),
        times[0] if times else None,
        is_timed,
    )


def _conflict(parts: Sequence[JoinPart]) -> str | None:
    """Why two parts cannot be judged one by one: nodes of a key may be one node."""
    for at, part in enumerate(parts):
        streams = {feeder.stream for feeder in part.feeders}
        for other in (*parts[:at], *parts[at + 1 :]):
            if part.keys and not streams.isdisjoint(feeder.stream for feeder in other.feeders):
                return "a stream brings nodes of a key for two parts"
            if {key for _, key in part.keys} & {key for _, key in other.keys}:
                return "two parts have nodes of one key"
    return None


def _bounds(test: Test, columns: Sequence[tuple[Column, ...]]) -> Bounds | None:
    """A test between the times of two parts as inequalities; None: it is another test."""
    constraint = test.constraint
    if not isinstance(constraint, TimeConstraint) or constraint.operator == "!=":
        return None
    factors: dict[Column, int] = {}
    for (factor, _), column in zip(constraint.terms, test.columns, strict=True):
        factors[column] = factors.get(column, 0) + factor
    terms = tuple((factor, column) for column, factor in factors.items() if factor)
    owners = {at for at, part in enumerate(columns) for _, column in terms if column in part}
    if len(terms) != 2 or len(owners) != 2:
        return None
    opposite = tuple((-factor, column) for factor, column in terms)
    bound = constraint.bound
    sums = {
        "<=": ((terms, bound),),
        "<": ((terms, bound - 1),),
        ">=": ((opposite, -bound),),
        ">": ((opposite, -bound - 1),),
        "=": ((terms, bound), (opposite, -bound)),
    }[constraint.operator]
    return Bounds(sums, frozenset(column for _, column in terms))
