"""Law 11 for the clock filter, with time: its output is the definition at every clock.

A case is rows with two times and a value, conditions on the clock, and a sequence of deltas and
advances. The reference evaluates every condition for every row by comparing numbers, at every
microsecond. Checked after every step:

    delta        apply(delta) = output afterwards - output before
    advance      for every moment: the output at the moment - the output one microsecond before
    next         next_moment is the first moment at which a kept row enters or leaves, or earlier
    look-up      lookup(columns, key) = the output rows with these values
    snapshot     a new operator, restored from a snapshot, continues in the same way
    partition    split by one of its columns, the parts yield the whole output
    state        no row is kept that no clock concerns
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from axlog.evaluate.joins import Bag, Row, add, add_all
from axlog.query.clock_spans import common_spans, spans_of
from axlog.query.values import compare_numbers
from axlog.views.operators.clock_filter import ClockFilter
from axlog.views.operators.feed import Feed

_OPERATORS = ("<", "<=", ">", ">=", "=", "!=")
_COLUMNS = ("t.time", "u.time", "x")
_LAST = 40
Test = tuple[int, int, int, str, int]
"""Factors of the clock and of two times, an operator, a bound."""
Step = tuple[tuple[Row, int], ...] | int
"""A delta, or by how much the clock advances."""


@dataclass(frozen=True, slots=True)
class ClockFilterCase:
    """Conditions and steps."""

    tests: tuple[Test, ...]
    steps: tuple[Step, ...]
    restored: int  # the number of the step before which the operator is restored from a snapshot


def make_clock_filter_case(random: Random) -> ClockFilterCase:
    """A random case."""
    tests = tuple(
        (
            random.choice((1, 1, 1, -1, 2, -3)),
            random.choice((-1, -1, -1, 0, 1, -2)),
            random.choice((0, 0, 0, 1, -1)),
            random.choice(_OPERATORS),
            random.randint(-4, 12),
        )
        for _ in range(random.choice((1, 1, 2, 3)))
    )
    there: Bag = {}
    steps: list[Step] = []
    for _ in range(random.randint(2, 9)):
        if random.random() < 0.5:
            steps.append(random.choice((0, 1, 1, 2, 3, 7)))
            continue
        delta: Bag = {}
        for _ in range(random.randint(1, 4)):
            if there and random.random() < 0.35:
                row = random.choice(list(there))
                count = -random.randint(1, there[row])
            else:
                row = (random.randint(0, 6), random.randint(0, 6), random.choice("ab"))
                count = random.choice((1, 1, 2))
            add(delta, row, count)
            add(there, row, count)
        steps.append(tuple(delta.items()))
    return ClockFilterCase(tests, tuple(steps), random.randrange(len(steps)))


def check_clock_filter(case: ClockFilterCase) -> None:
    """Check the law on one case."""
    there: Bag = {}
    made, clock = _made(case, there, 0), 0
    parts = {value: _made(case, there, 0) for value in "ab"}
    for number, step in enumerate(case.steps):
        if number == case.restored:
            saved = made.snapshot()
            made = _made(case, there, 0)
            made.restore(saved)
            _same("the clock of a snapshot", made.clock, clock)
        if isinstance(step, int):
            expected = dict(_moments(case, there, clock, clock + step))
            _same("the deltas of time", dict(made.advance(clock + step)), expected)
            together: dict[int, Bag] = {}
            for part in parts.values():
                for moment, delta in part.advance(clock + step):
                    add_all(together.setdefault(moment, {}), delta)
            _same("the deltas of time of the parts", together, expected)
            clock += step
        else:
            delta, before = dict(step), _output(case, there, clock)
            found = made.apply(0, delta)
            split: Bag = {}
            for value, part in parts.items():
                mine = {row: count for row, count in delta.items() if row[2] == value}
                add_all(split, part.apply(0, mine))
            add_all(there, delta)
            expected_delta = _output(case, there, clock)
            add_all(expected_delta, before, -1)
            _same("the delta", found, expected_delta)
            _same("the deltas of the parts", split, expected_delta)
        _check_state(case, made, there, clock)


def _made(case: ClockFilterCase, there: Bag, clock: int) -> ClockFilter:
    def find(columns: tuple[str, ...], key: Row) -> Bag:
        at = [_COLUMNS.index(column) for column in columns]
        return {row: n for row, n in there.items() if tuple(row[i] for i in at) == key}

    def spans(row: Row) -> object:
        return common_spans(
            spans_of(factor, operator, bound - one * int(row[0]) - other * int(row[1]))
            for factor, one, other, operator, bound in case.tests
        )

    return ClockFilter(Feed(_COLUMNS, find), spans, clock)  # type: ignore[arg-type]


def _check_state(case: ClockFilterCase, made: ClockFilter, there: Bag, clock: int) -> None:
    output = _output(case, there, clock)
    _same("the look-up of all", made.lookup((), ()), output)
    wanted = {row: n for row, n in output.items() if row[2] == "a"}
    _same("a look-up", made.lookup(("x",), ("a",)), wanted)
    moments = [moment for moment, _ in _moments(case, there, clock, clock + _LAST)]
    found = made.next_moment()
    first = moments[0] if moments else None
    if first is not None and (found is None or found > first):
        raise AssertionError(f"the next moment is {found} instead of {first}")
    if found is not None and found <= clock:
        raise AssertionError(f"the next moment {found} has passed at {clock}")
    kept = {row for row, _ in made.state()[0]}
    moving = {
        row
        for row in there
        if len({_holds(case, row, at) for at in range(clock, clock + _LAST)}) > 1
    }
    _same("the rows kept for later", kept & set(there), moving)
    _same("rows that are not there", kept - set(there), set())


def _holds(case: ClockFilterCase, row: Row, clock: int) -> bool:
    return all(
        compare_numbers(factor * clock + one * int(row[0]) + other * int(row[1]), operator, bound)
        for factor, one, other, operator, bound in case.tests
    )


def _output(case: ClockFilterCase, there: Bag, clock: int) -> Bag:
    return {row: count for row, count in there.items() if _holds(case, row, clock)}


def _moments(
    case: ClockFilterCase, there: Bag, clock: int, until: int
) -> Iterator[tuple[int, Bag]]:
    for moment in range(clock + 1, until + 1):
        delta = _output(case, there, moment)
        add_all(delta, _output(case, there, moment - 1), -1)
        if delta:
            yield moment, delta


def smaller_clock_filter(case: ClockFilterCase) -> Iterator[ClockFilterCase]:
    """The case without its last step, or without a test."""
    if len(case.steps) > 1:
        steps = case.steps[:-1]
        yield replace(case, steps=steps, restored=min(case.restored, len(steps) - 1))
    for at in range(len(case.tests)) if len(case.tests) > 1 else ():
        yield replace(case, tests=case.tests[:at] + case.tests[at + 1 :])


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: {found} instead of {wanted}")
