"""Comparisons of atomic values: value comparisons, general comparisons, equality for grouping.

`value_comparison` is `eq`, `lt` and so on: an untyped value is a string. `general_comparison` is
`=`, `<` and so on of two values: an untyped value takes the type of the other side (a number makes
it a double). Types that do not compare raise XPTY0004. `grouping_key` is the equality of
distinct-values() and `group by`: NaN equals itself, and types that do not compare differ.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from decimal import Decimal
from math import isnan
from typing import Any

from axlog.errors import ValueProblem
from axlog.evaluate.atoms import DURATIONS, NUMERIC, Atom, Named, Untyped, type_of
from axlog.evaluate.casts import cast
from axlog.query.dates import (
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Time,
    TimeValue,
    YearMonthDuration,
)
from axlog.query.numbers import double

GENERAL: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
VALUE = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""The general comparison with the same symbol for each value comparison."""
COMPARISONS = (*GENERAL, *VALUE)
_EQUALITIES = (operator.eq, operator.ne)


def value_comparison(symbol: str, one: Atom, other: Atom) -> bool:
    """`one eq other`, and so on.

    >>> value_comparison("lt", 1, 2.5), value_comparison("eq", Untyped("1"), "1")
    (True, True)
    """
    return compared(GENERAL[VALUE[symbol]], _as_string(one), _as_string(other))


def _as_string(value: Atom) -> Atom:
    return str.__str__(value) if type(value) is Untyped else value


def general_comparison(symbol: str, one: Atom, other: Atom) -> bool:
    """`one = other`, and so on, of two values.

    >>> general_comparison("=", Untyped("1.0"), 1), general_comparison("<", "10", "9")
    (True, True)
    """
    if type(one) is Untyped:
        one = _like(one, other)
    if type(other) is Untyped:
        other = _like(other, one)
    return compared(GENERAL[symbol], one, other)


def _like(value: Untyped, other: Atom) -> Atom:
    """An untyped value in the type of the other side."""
    kind = type(other)
    if kind is str or kind is Untyped:
        return str.__str__(value)
    if kind in NUMERIC:
        return cast(value, "xs:double")
    if kind is Named:
        raise ValueProblem("XPTY0004", "a name is compared with an untyped value")
    return cast(value, type_of(other))


def compared(holds: Callable[[Any, Any], bool], one: Atom, other: Atom) -> bool:
    """Compare two values of comparable types."""
    left, right = type(one), type(other)
    if left in NUMERIC and right in NUMERIC:
        if left is float:
            return holds(one, double(other))  # type: ignore[arg-type]
        return holds(double(one), other) if right is float else holds(one, other)  # type: ignore[arg-type]
    if left is right:
        if left is str or left is bool:
            return holds(one, other)
        if isinstance(one, TimeValue):
            return holds(one.instant, other.instant)  # type: ignore[union-attr]
        if left is Named and holds in _EQUALITIES:
            return holds(one.label, other.label)  # type: ignore[union-attr]
        if left is DayTimeDuration:
            return holds(one.nanoseconds, other.nanoseconds)  # type: ignore[union-attr]
        if left is YearMonthDuration:
            return holds(one.months, other.months)  # type: ignore[union-attr]
    if left in DURATIONS and right in DURATIONS and holds in _EQUALITIES:
        return holds(one, other)
    raise ValueProblem(
        "XPTY0004", f"values of {type_of(one)} and {type_of(other)} cannot be compared"
    )


def grouping_key(value: Atom) -> Hashable:
    """A key that equal values share, in the sense of distinct-values().

    >>> grouping_key(1) == grouping_key(1.0), grouping_key(1) == grouping_key("1")
    (True, False)
    """
    kind = type(value)
    if kind is float:
        return ("number", "NaN") if isnan(value) else ("number", value)  # type: ignore[arg-type]
    if kind is int or kind is Decimal:
        return "number", value
    if kind is bool:
        return "boolean", value
    if isinstance(value, str):
        return "string", str.__str__(value)
    if isinstance(value, Named):
        return "name", value.label
    if isinstance(value, Duration):
        return "duration", value
    assert isinstance(value, Date | DateTime | Time)
    return value.type, value
