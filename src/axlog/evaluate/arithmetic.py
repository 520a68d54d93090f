"""Arithmetic on atomic values, with the promotions of XQuery (XPath 3.1, section 3.5, F&O 4 to 9).

Numbers are promoted to the wider of the two types: integer, decimal, double. An untyped value
counts as a double. Durations add, subtract and scale; dates and times move by durations, and their
difference is a duration. `ARITHMETIC` has the six operators as functions of two values. An operator
that is not defined for the two types raises XPTY0004.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import isfinite, isinf, isnan
from typing import Any, TypeAlias

from axlog.errors import ValueProblem
from axlog.evaluate.atoms import NUMERIC, Atom, Untyped, type_of
from axlog.evaluate.casts import cast
from axlog.query.dates import (
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Time,
    YearMonthDuration,
    between,
    scaled,
    shifted,
)
from axlog.query.numbers import (
    DECIMALS,
    Number,
    checked,
    decimal_from,
    divided,
    double,
    double_quotient,
    double_remainder,
    exactly,
    fraction_of,
    remainder,
    whole_quotient,
)

Operation: TypeAlias = Callable[[Any, Any], Atom]
_SUBTYPES = (DayTimeDuration, YearMonthDuration)
_MOMENTS = (Date, DateTime, Time)
_QUOTIENT_SCALE = 20


# Numbers -----------------------------------------------------------------------------------------


def _numeric(
    integers: Operation, decimals: Operation, doubles: Callable[[float, float], Atom]
) -> dict[tuple[type, type], Operation]:
    """One operator on all pairs of numeric types; untyped values are doubles."""

    def widened(one: Any, other: Any) -> Atom:
        return doubles(_double(one), _double(other))

    found: dict[tuple[type, type], Operation] = {}
    kinds = (int, Decimal, float, Untyped)
    for one in kinds:
        for other in kinds:
            exact = one in (int, Decimal) and other in (int, Decimal)
            found[one, other] = decimals if exact else widened
    found[int, int] = integers
    found[float, float] = doubles
    return found


def _double(value: Number | Untyped) -> float:
    return cast(value, "xs:double") if isinstance(value, str) else double(value)  # type: ignore[return-value]


def _checking(operation: Callable[[int, int], int]) -> Operation:
    return lambda one, other: checked(operation(one, other))


# Durations, dates and times ----------------------------------------------------------------------


def _duration_sum(sign: int, one: Duration, other: Duration) -> Duration:
    return type(one)(one.months + sign * other.months, one.nanoseconds + sign * other.nanoseconds)


def _factor(value: Number | Untyped) -> Fraction:
    """A number that scales a duration."""
    number = _double(value) if isinstance(value, str) else value
    if type(number) is float:
        if isnan(number):
            raise ValueProblem("FOCA0005", "a duration is multiplied by NaN")
        if not isfinite(number):
            raise ValueProblem("FODT0002", "a duration is multiplied by infinity")
        return Fraction(repr(number))
    return fraction_of(number)


def _duration_times(one: Duration, other: Number) -> Duration:
    return scaled(one, _factor(other))


def _times_duration(one: Number, other: Duration) -> Duration:
    return scaled(other, _factor(one))


def _duration_over(one: Duration, other: Number | Untyped) -> Duration:
    number = _double(other) if isinstance(other, str) else other
    if type(number) is float and isinf(number):
        return type(one)(0, 0)
    factor = _factor(number)
    if not factor:
        raise ValueProblem("FODT0002", "a duration is divided by zero")
    return scaled(one, 1 / factor, _QUOTIENT_SCALE)


def _duration_ratio(one: Duration, other: Duration) -> Decimal:
    top, bottom = (
        (one.months, other.months)
        if isinstance(one, YearMonthDuration)
        else (one.nanoseconds, other.nanoseconds)
    )
    if not bottom:
        raise ValueProblem("FOAR0001", "a duration is divided by a duration of zero")
    exact = Fraction(top) / bottom * 10**_QUOTIENT_SCALE
    return decimal_from(round(exact), _QUOTIENT_SCALE)


def _table(sign: int) -> dict[tuple[type, type], Operation]:
    """Sums (1) or differences (-1) of durations, dates and times."""
    found: dict[tuple[type, type], Operation] = {}
    for duration in _SUBTYPES:
        found[duration, duration] = partial(_duration_sum, sign)
        for moment in _MOMENTS:
            if moment is Time and duration is YearMonthDuration:
                continue
            found[moment, duration] = lambda one, other: shifted(one, other, sign)
            if sign > 0:
                found[duration, moment] = lambda one, other: shifted(other, one)
    if sign < 0:
        found |= {(moment, moment): between for moment in _MOMENTS}
    return found


def _products() -> dict[tuple[type, type], Operation]:
    found: dict[tuple[type, type], Operation] = {}
    for duration in _SUBTYPES:
        for number in (int, Decimal, float, Untyped):
            found[duration, number] = _duration_times
            found[number, duration] = _times_duration
    return found


def _quotients() -> dict[tuple[type, type], Operation]:
    found: dict[tuple[type, type], Operation] = {}
    for duration in _SUBTYPES:
        found[duration, duration] = _duration_ratio
        for number in (int, Decimal, float, Untyped):
            found[duration, number] = _duration_over
    return found


# The operators -----------------------------------------------------------------------------------

_BY_TYPES: dict[str, dict[tuple[type, type], Operation]] = {
    "+": {
        **_numeric(_checking(operator.add), partial(exactly, DECIMALS.add), operator.add),
        **_table(1),
    },
    "-": {
        **_numeric(_checking(operator.sub), partial(exactly, DECIMALS.subtract), operator.sub),
        **_table(-1),
    },
    "*": {
        **_numeric(_checking(operator.mul), partial(exactly, DECIMALS.multiply), operator.mul),
        **_products(),
    },
    "div": {**_numeric(divided, divided, double_quotient), **_quotients()},
    "idiv": _numeric(whole_quotient, whole_quotient, whole_quotient),
    "mod": _numeric(remainder, remainder, double_remainder),
}


def _operation(symbol: str) -> Operation:
    by_types = _BY_TYPES[symbol]

    def calculate(one: Atom, other: Atom) -> Atom:
        found = by_types.get((type(one), type(other)))
        if found is None:
            for value in (one, other):
                if type(value) is Untyped:
                    _double(value)  # raises FORG0001 if it is no number
            raise ValueProblem(
                "XPTY0004",
                f"`{symbol}` is not defined for {type_of(one)} and {type_of(other)}",
            )
        return found(one, other)

    return calculate


ARITHMETIC: dict[str, Operation] = {symbol: _operation(symbol) for symbol in _BY_TYPES}
"""The operators `+`, `-`, `*`, `div`, `idiv` and `mod`."""


def negated(value: Atom) -> Atom:
    """Unary minus."""
    found = signed(value)
    return exactly(DECIMALS.subtract, 0, found) if type(found) is Decimal else -found


def signed(value: Atom) -> Number:
    """Unary plus: a number, and an untyped value as a double."""
    if type(value) is Untyped:
        return _double(value)
    if type(value) not in NUMERIC:
        raise ValueProblem("XPTY0004", f"a value of {type_of(value)} has no sign")
    return value  # type: ignore[return-value]
