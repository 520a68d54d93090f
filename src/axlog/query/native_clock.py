"""`now` in the native text: comparisons of the clock with values, and where `now` is refused.

A comparison of sums of times is a constraint of the pattern, `now` included. A comparison of such a
sum with a value (`now - 30d >= $due`) is a test of the step `Clock`. Anywhere else a row would
change with every moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from axlog.errors import QuerySyntaxError, UnsupportedError
from axlog.query.clock_terms import NOW, reads_clock
from axlog.query.native_constraints import Sum, sum_of
from axlog.query.pattern import OPERATORS, Constraint
from axlog.query.positions import place_at
from axlog.query.steps import ClockTest, Scalar
from axlog.query.syntax_tree import Binary, Reference, references
from axlog.query.syntax_tree import Constant as Written
from axlog.query.values import mirrored


@dataclass(frozen=True, slots=True)
class ClockComparison:
    """A sum with the clock, compared with a value of the row: `now - 30d >= $due`."""

    left: Sum
    operator: str
    right: Scalar


@dataclass(slots=True)
class WhereParts:
    """The conditions of `where`, by what keeps them."""

    constraints: list[Constraint] = field(default_factory=list)  # of the pattern
    offsets: list[int] = field(default_factory=list)  # of these constraints
    compared: list[ClockComparison] = field(default_factory=list)
    conditions: list[Scalar] = field(default_factory=list)  # steps after the pattern
    clock_at: int | None = None  # the offset of the first `now`

    @classmethod
    def of(
        cls,
        where: Iterable[Scalar],
        has_clock: bool,
        constraint: Callable[[Scalar], Constraint | None],
    ) -> WhereParts:
        """The parts; `constraint` gives the constraint of the pattern that a condition is."""
        parts = cls()
        for conjunct in where:
            compared = clock_comparison(conjunct) if has_clock else None
            found = constraint(conjunct) if compared is None else None
            if compared is not None:
                parts.compared.append(compared)
            elif found is None:
                parts.conditions.append(conjunct)
            else:
                parts.offsets.append(conjunct.at)
                parts.constraints.append(found)
            is_clock = compared is not None or (found is not None and reads_clock(found))
            if has_clock and is_clock and parts.clock_at is None:
                parts.clock_at = clock_offset(conjunct)
        return parts


def clock_comparison(conjunct: Scalar) -> ClockComparison | None:
    """A condition that compares the clock with a value; None if it is no such condition."""
    if type(conjunct) is not Binary or conjunct.operator not in OPERATORS:
        return None
    operator, left, right = conjunct.operator, conjunct.left, conjunct.right
    one, other = sum_of(left), sum_of(right)
    if one is None and other is not None:
        operator, one, other, right = mirrored(operator), other, None, left
    if one is None or other is not None or NOW not in one.times:
        return None
    if isinstance(right, Written) and isinstance(right.value, str):
        return None  # a time is not a string
    return ClockComparison(one, operator, right)


def clock_test(given: ClockComparison, value: Scalar, text: str) -> ClockTest:
    """The test of a comparison; `value` is its right side over the columns of the pattern."""
    times = given.left.times
    if any(each.denominator != 1 for each in (*times.values(), given.left.microseconds)):
        place = place_at(text, given.left.at)
        raise QuerySyntaxError("AX201", "`now` has no fraction here", place=place)
    terms = [(int(each), f"{name}.time") for name, each in times.items() if name != NOW]
    bound = -int(given.left.microseconds)
    return ClockTest(int(times[NOW]), tuple(terms), given.operator, bound, value)


def refuse_clock(expressions: Iterable[Scalar], text: str) -> None:
    """Refuse `now` in these expressions."""
    for expression in expressions:
        if f"#{NOW}" in references(expression):
            raise UnsupportedError(
                "AX211",
                "`now` is not supported here: the row would change all the time",
                place=place_at(text, clock_offset(expression)),
                expected="a comparison in `where`: now - t >= 2h, now > $due",
            )


def clock_offset(expression: object) -> int:
    """The offset of the first `now` in an expression; 0 if there is none."""
    waiting = [expression]
    found: list[int] = []
    while waiting:
        each = waiting.pop()
        if isinstance(each, Reference):
            found += [each.at] if each.name == f"#{NOW}" else []
        for name in ("left", "right", "by"):
            inside = getattr(each, name, None)
            waiting += [] if inside is None else [inside]
        waiting += getattr(each, "arguments", ())
    return min(found, default=0)
