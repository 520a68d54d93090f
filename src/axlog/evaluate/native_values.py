"""Scalar operations of the native language: values by their form, exact arithmetic.

A string is a number, a moment, a time of day or a text by its form (`query/values.py`). In a
calculation a text such as `P30D` is a duration. Numbers are exact decimals: sums, differences and
products are exact, quotients have at least 18 decimals. A moment plus a duration is a moment (a
date, if it was a date and the duration has whole days), the difference of two moments is a
duration. A value that an operation is not defined for raises a `ValueProblem`.

Comparisons are those of docs/meaning.md. A computed value has its kind; a string beside it is read
as that kind. A comparison with a missing value (None) does not hold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from decimal import Decimal, DecimalException
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import Any

from axlog.document.ids import Id
from axlog.errors import ValueProblem
from axlog.evaluate.arithmetic import ARITHMETIC
from axlog.evaluate.atoms import Atom, Untyped, is_of, text_of, type_of
from axlog.evaluate.casts import cast
from axlog.evaluate.items import truth
from axlog.evaluate.signatures import Parameter
from axlog.evaluate.sort_keys import order_key
from axlog.query.dates import (
    DAY,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Exact,
    Time,
    TimeValue,
    YearMonthDuration,
    duration_of,
    shifted,
    time_value_of,
    whole,
)
from axlog.query.numbers import DECIMALS, divided, exactly, integer_of, remainder, whole_quotient
from axlog.query.values import ValueKind, key_of

_NO_SECONDS = re.compile(r"^((?:.*T)?\d\d:\d\d)(?!:)", re.ASCII)
_SPACE = " \t\r\n"
_CACHED = 40  # characters, as in `query/values.py`
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


# Operands ----------------------------------------------------------------------------------------


def operand(value: Any) -> Decimal | TimeValue | Duration:
    """A value as an operand of a calculation.

    >>> operand(" 07 "), str(operand("2024-05-01")), str(operand("P1DT36H"))
    (Decimal('7'), '2024-05-01', 'P2DT12H')
    """
    if isinstance(value, str):
        return _cached(str(value)) if len(value) <= _CACHED else _read(value)
    kind = type(value)
    if kind is Decimal:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return Decimal(value)
    if kind is float and isfinite(value):
        return Decimal(repr(value))
    if isinstance(value, TimeValue | Duration):
        return value
    raise ValueProblem("XPTY0004", f"a calculation has no operand {text_of(value)[:100]!r}")


def _read(text: str) -> Decimal | TimeValue | Duration:
    kind, key = key_of(text)
    if kind is ValueKind.NUMBER:
        return key  # type: ignore[no-any-return]
    trimmed = text.strip(_SPACE)
    found: TimeValue | Duration | None = None
    if kind is ValueKind.TEXT:
        found = duration_of(trimmed, DayTimeDuration) or duration_of(trimmed, YearMonthDuration)
        found = found or duration_of(trimmed)
    else:
        full = _NO_SECONDS.sub(r"\1:00", trimmed, count=1) if ":" in trimmed else trimmed
        if kind is ValueKind.TIME:
            found = time_value_of(full, Time)
        else:
            found = time_value_of(full, DateTime) if "T" in full else time_value_of(full, Date)
    if found is None:
        raise ValueProblem(
            "FORG0001", f"{text[:100]!r} is no number, date, time or duration",
            expected="12.50, 2024-05-01, 10:00:00, P30D",
        )  # fmt: skip
    return found


_cached = lru_cache(maxsize=65536)(_read)


def number(value: Any) -> Decimal:
    """A value as a number."""
    found = operand(value)
    if type(found) is not Decimal:
        raise ValueProblem("FORG0001", f"{text_of(value)[:100]!r} is not a number")
    return found


def moment(microseconds: Any) -> DateTime | None:
    """A time of the document as a value."""
    return None if microseconds is None else DateTime(microseconds * 1_000, 0)


# Calculations ------------------------------------------------------------------------------------


def _calculation(
    symbol: str, of_numbers: Callable[[Decimal, Decimal], Any]
) -> Callable[[Any, Any], Any]:
    def calculate(one: Any, other: Any) -> Any:
        if type(one) is not Decimal:
            one = operand(one)
        if type(other) is not Decimal:
            other = operand(other)
        if type(one) is Decimal and type(other) is Decimal:
            try:
                return of_numbers(one, other)
            except DecimalException:
                raise ValueProblem("FOAR0002", "a number has too many digits") from None
        return _of_times(symbol, one, other)

    return calculate


def _of_times(symbol: str, one: Atom, other: Atom) -> Atom:
    """Calculations with dates, times and durations, also of different types."""
    if symbol == "+" and isinstance(one, Duration) and isinstance(other, TimeValue):
        one, other = other, one
    if isinstance(one, TimeValue) and isinstance(other, Duration) and symbol in "+-":
        return _moved(one, other, 1 if symbol == "+" else -1)
    if symbol == "-" and isinstance(one, Date | DateTime) and isinstance(other, Date | DateTime):
        return DayTimeDuration(0, whole(one.instant - other.instant))
    return ARITHMETIC["div" if symbol == "/" else symbol](one, other)


def _moved(value: TimeValue, duration: Duration, sign: int) -> TimeValue:
    if isinstance(value, Time) and duration.months:
        raise ValueProblem("XPTY0004", "a time of day cannot be moved by months")
    if isinstance(value, Date) and duration.nanoseconds % DAY:
        return shifted(DateTime(value.local, value.zone), duration, sign)
    return shifted(value, duration, sign)


def _whole_decimal(one: Decimal, other: Decimal) -> Decimal:
    return Decimal(whole_quotient(one, other))


def _decimal_remainder(one: Decimal, other: Decimal) -> Decimal:
    return Decimal(remainder(one, other))


CALCULATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _calculation("+", DECIMALS.add),
    "-": _calculation("-", DECIMALS.subtract),
    "*": _calculation("*", DECIMALS.multiply),
    "div": _calculation("div", divided),
    "/": _calculation("/", divided),
    "idiv": _calculation("idiv", _whole_decimal),
    "mod": _calculation("mod", _decimal_remainder),
}
"""The operators on two present values."""


def negated(value: Any) -> Decimal | Duration:
    """Unary minus of a number or a duration."""
    found = operand(value)
    if isinstance(found, Duration):
        return type(found)(-found.months, -found.nanoseconds)
    return exactly(DECIMALS.subtract, 0, number(value))


def local_name(label: str) -> str:
    """The name in a label, without its namespace."""
    return label.rpartition("}")[2]


def namespace_uri(label: str) -> str:
    """The namespace in a label; empty if it has none."""
    return label[1:].rpartition("}")[0] if label.startswith("{") else ""


# Comparisons -------------------------------------------------------------------------------------


def _microseconds(nanoseconds: Exact) -> Exact:
    return whole(Fraction(nanoseconds) / 1_000)


def kind_and_key(value: Any) -> tuple[object, Any]:
    """The kind of a value, and its sort key among values of that kind."""
    kind = type(value)
    if isinstance(value, str):
        return key_of(value)
    if kind is Decimal or kind is int:
        return ValueKind.NUMBER, value
    if kind is bool:
        return bool, value
    if kind is float:
        return (ValueKind.NUMBER, Decimal(repr(value))) if isfinite(value) else (float, value)
    if isinstance(value, Time):
        return ValueKind.TIME, _microseconds(value.instant)
    if isinstance(value, TimeValue):
        return ValueKind.MOMENT, _microseconds(value.instant)
    if isinstance(value, Duration):
        if not value.months:
            return DayTimeDuration, value.nanoseconds
        return (YearMonthDuration, value.months) if not value.nanoseconds else (Duration, value)
    return kind, value


def clock_amount(value: Any, is_duration: bool) -> Exact | None:
    """A value to compare the clock with, in microseconds; None: it is none.

    A number is seconds. A moment is compared with a moment, a duration with a difference of two.
    """
    kind, key = kind_and_key(value)
    if kind is ValueKind.TEXT and is_duration:
        kind, key = _beside(value, DayTimeDuration(0, 0))
    if kind is ValueKind.NUMBER:
        return whole(Fraction(key) * 1_000_000)
    if kind is ValueKind.MOMENT and not is_duration:
        return key  # type: ignore[no-any-return]
    return _microseconds(key) if kind is DayTimeDuration and is_duration else None


def _beside(value: Any, other: Any) -> tuple[object, Any]:
    """The key of a value beside a computed one: a text may be a duration or a truth value."""
    if isinstance(value, str):
        if isinstance(other, Duration):
            found = duration_of(value)
            return kind_and_key(value if found is None else found)
        if type(other) is bool and value.strip(_SPACE) in ("true", "false"):
            return bool, value.strip(_SPACE) == "true"
    return kind_and_key(value)


def _comparison(symbol: str) -> Callable[[Any, Any], bool]:
    holds = _HOLDS[symbol]
    is_equality = symbol in ("=", "!=")

    def compare(one: Any, other: Any) -> bool:
        if type(one) is Decimal and type(other) is Decimal:
            return holds(one, other)
        if one is None or other is None:
            return False
        if is_equality and isinstance(one, str) and isinstance(other, str):
            return holds(one, other)
        left, right = _beside(one, other), _beside(other, one)
        if left[0] is right[0]:
            if left[0] is Duration and not is_equality:
                return False
            return holds(left[1], right[1])
        return (
            symbol == "!=" and not isinstance(one, TimeValue) and not isinstance(other, TimeValue)
        )

    return compare


def _of_nodes(symbol: str) -> Callable[[Any, Any], bool]:
    """A comparison of two nodes by their ids, which are in document order."""
    holds = _HOLDS[{"is": "=", "<<": "<", ">>": ">"}[symbol]]

    def compare(one: Any, other: Any) -> bool:
        if one is None or other is None:
            return False
        if not (isinstance(one, Id) and isinstance(other, Id)):
            raise ValueProblem(
                "XPTY0004",
                f"`{symbol}` compares nodes",
                expected=f"a {symbol} b, of two named nodes",
            )
        return holds(one, other)

    return compare


NODE_OPERATORS = ("is", "<<", ">>")
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    **{symbol: _comparison(symbol) for symbol in _HOLDS},
    **{symbol: _of_nodes(symbol) for symbol in NODE_OPERATORS},
}
"""The comparisons of two values, or of two nodes by their ids."""


# Sequences ---------------------------------------------------------------------------------------


def total(items: list[Any]) -> Decimal:
    """The exact sum of some values.

    >>> total(["1.10", "2"]), total([])
    (Decimal('3.10'), Decimal('0'))
    """
    found = Decimal(0)
    for item in items:
        found = exactly(DECIMALS.add, found, number(item))
    return found


def average(items: list[Any]) -> Any:
    """The average of some values; None: there are none."""
    return divided(total(items), Decimal(len(items))) if items else None


def least(items: list[Any]) -> Any:
    """The first of some values in the order of the language, a number if it is one."""
    return min(map(_number_first, items), key=order_key, default=None)


def greatest(items: list[Any]) -> Any:
    """The last of some values in the order of the language, a number if it is one."""
    return max(map(_number_first, items), key=order_key, default=None)


def _number_first(value: Any) -> Any:
    kind, key = kind_and_key(value)
    return key if kind is ValueKind.NUMBER else value


def joined(items: list[Any], separator: Any = "") -> str:
    """Values as one text."""
    return text(separator).join(map(text, items))


# Texts, conditions and arguments -----------------------------------------------------------------


def text(value: Any) -> str:
    """A value as a text; the empty text, if it is missing."""
    return "" if value is None else text_of(value)


def holds(value: Any) -> bool:
    """Whether a value is a condition that holds."""
    if value is True or value is False or value is None:
        return bool(value)
    return truth(value)


def argument(parameter: Parameter, value: Any) -> Any:
    """A value as the argument of a function: read as the type of the parameter."""
    if value is None:
        parameter.missing()
        return None
    match parameter.type:
        case "string":
            return text(value)
        case "numeric":
            return number(value)
        case "double":
            return float(number(value))
        case "integer":
            found = number(value)
            if found != found.to_integral_value():
                raise ValueProblem("FORG0001", f"{text(value)[:100]!r} is not an integer")
            return integer_of(found)
        case "any" | "item" | "node":
            return value
        case "boolean":
            return cast(value, "xs:boolean")
        case "date" | "dateTime" | "time":
            return cast(operand(value), f"xs:{parameter.type}")
    found_value = operand(value)
    if not is_of(found_value, f"xs:{parameter.type}"):
        raise ValueProblem("XPTY0004", f"expected {parameter.type}, found {type_of(found_value)}")
    return found_value


def untyped(value: Any) -> Any:
    """A string as the value of a node: casts read it by the type."""
    return Untyped(value) if type(value) is str else value
