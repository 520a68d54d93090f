"""Values: the kind of a string, and the comparison of two values. All comparisons use this module,
and those with constants and formulas `evaluate/value_tests.py`.

**Kinds**, for the native language. White space around a value (space, tab, CR, LF) is ignored.

- A number is written as a double of XML Schema, without INF and NaN: an optional sign, digits with
  an optional point, an optional exponent of at most four digits. `007`, `+7.0` and `.7e1` are one
  number. Numbers compare exactly, with any number of digits; no binary fractions are involved.
- A moment is a date (`2024-05-01`) or a date with a time of day (`2024-05-01T10:00:00.5+02:00`;
  seconds are optional), with a zone or without. It is an instant: the default zone is UTC, and a
  date is its first instant. Years have four digits or more and may be negative, fractions of
  seconds have any number of digits, and `24:00:00` is midnight of the next day.
- A time of day (`10:00`, `10:00:00Z`) compares with other times of day, on one day of UTC.
- Any other string, including the empty string, is a text, and compares by code point.

`sort_key` puts numbers before moments before times of day before texts.

**Operators.** `=` and `!=` between two values, or with a string, compare the strings, as joins do.
With a number or a date they compare numbers or instants: a value that is not a number passes `!=`
with a number, and a value that is not a date passes no comparison with a date. `<`, `<=`, `>` and
`>=` hold only between two values of the same kind. So `5 <= 5.0` holds although `5 = 5.0` does not.

**Types.** XPath and XQuery give both sides a type: an operator may carry the name of a type
(`< xs:date`, printed `< ... as xs:date`). Then both sides are read as that type. A value that is
not of the type (for which the recommendation raises FORG0001) passes no comparison; as `xs:double`
it is NaN, which passes `!=`. `xs:string` compares by code point. A constant that is a `float` has
the type `xs:double`. The implicit zone is UTC.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from axlog.query.dates import days_of

APPLY: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
"""The operators as functions of two values of one kind."""
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
ORDERS = ("<", "<=", ">", ">=")
_SPACE = " \t\r\n"
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_SPECIAL = {"INF": "inf", "+INF": "inf", "-INF": "-inf", "NaN": "nan"}
_TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,400}))?)?"
_MOMENT = re.compile(
    rf"(?:(-?(?:[1-9]\d{{4,11}}|\d{{4}}))-(\d\d)-(\d\d))?(?:(T)?{_TIME})?(Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)
_CACHED = 40  # characters: longer values are seldom numbers or dates, and are not cached


class ValueKind(IntEnum):
    """The kinds of values, in the order in which they sort."""

    NUMBER = 0
    MOMENT = 1
    TIME = 2
    TEXT = 3


Key = tuple[ValueKind, Any]
"""The kind of a value, and its sort key among values of that kind."""


# Kinds ------------------------------------------------------------------------------------------


def key_of(text: str) -> Key:
    """The kind of a value, and its sort key among values of that kind.

    >>> key_of(" +7.0 ") == key_of("007"), key_of("7 m"), key_of("1970-01-01T01:00+01:00")
    (True, (<ValueKind.TEXT: 3>, '7 m'), (<ValueKind.MOMENT: 1>, 0))
    """
    return _cached_key(text) if len(text) <= _CACHED else _key(text)


def sort_key(text: str) -> tuple[ValueKind, Any, str]:
    """The sort key of a value: numbers before moments before times of day before texts."""
    return (*key_of(text), text)


def _key(text: str) -> Key:
    trimmed = text.strip(_SPACE)
    first = trimmed[:1]
    if first and first in "+-.0123456789":
        number = number_of(text)
        if number is not None:
            return ValueKind.NUMBER, number
        found = _moment(trimmed)
        if found is not None:
            return found
    return ValueKind.TEXT, text


_cached_key = lru_cache(maxsize=65536)(_key)


def number_of(text: str) -> Decimal | None:
    """The exact number of a value; None if the value is not a number."""
    trimmed = text.strip(_SPACE)
    return Decimal(trimmed) if _NUMBER.fullmatch(trimmed) else None


def _moment(text: str, *, is_strict: bool = False) -> Key | None:
    """A date, date and time, or time of day as microseconds; `is_strict`: as in XML Schema."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    year, month, day, mark, hour, minute, second, fraction, zone = found.groups()
    if (mark is None) != (year is None or hour is None) or (is_strict and hour and not second):
        return None
    at = _time_of_day(hour, minute, second, fraction)
    ahead = _zone(zone)
    if at is None or ahead is None or (year is None and hour is None):
        return None
    if year is None:
        return ValueKind.TIME, at % _DAY - ahead
    days = days_of(int(year), int(month), int(day))
    return None if days is None else (ValueKind.MOMENT, days * _DAY + at - ahead)


_MINUTE = 60_000_000
_DAY = 1440 * _MINUTE


def _time_of_day(
    hour: str | None, minute: str | None, second: str | None, fraction: str | None
) -> int | Fraction | None:
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    part: int | Fraction = 0
    if fraction is not None:
        exact = Fraction(int(fraction) * 1_000_000, 10 ** len(fraction))
        part = exact.numerator if exact.denominator == 1 else exact
    is_midnight = hours == 24 and minutes == seconds == part == 0
    if (hours > 23 and not is_midnight) or minutes > 59 or seconds > 59:
        return None
    return (hours * 60 + minutes) * _MINUTE + seconds * 1_000_000 + part


def _zone(zone: str | None) -> int | None:
    """The offset of a zone from UTC in microseconds; None if it exceeds 14 hours."""
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:])
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        return None
    return (-1 if zone[0] == "-" else 1) * (hours * 60 + minutes) * _MINUTE


# Types of XPath and XQuery ----------------------------------------------------------------------


def double_of(text: str) -> float:
    """A value as xs:double; NaN if it is not one, as number() defines."""
    trimmed = text.strip(_SPACE)
    if _DOUBLE.fullmatch(trimmed):
        return float(trimmed)
    return float(_SPECIAL.get(trimmed, "nan"))


def _exact(form: re.Pattern[str], text: str) -> Decimal | None:
    trimmed = text.strip(_SPACE)
    return Decimal(trimmed) if form.fullmatch(trimmed) else None


def _of_time(kind: ValueKind, has_time: bool | None, text: str) -> int | Fraction | None:
    trimmed = text.strip(_SPACE)
    found = _moment(trimmed, is_strict=True)
    if found is None or found[0] is not kind or has_time not in (None, "T" in trimmed):
        return None
    value: int | Fraction = found[1]
    return value


READ: dict[str, Callable[[str], Any]] = {
    "xs:string": str,
    "xs:double": double_of,
    "xs:decimal": partial(_exact, _DECIMAL),
    "xs:integer": partial(_exact, _INTEGER),
    "xs:date": partial(_of_time, ValueKind.MOMENT, False),
    "xs:dateTime": partial(_of_time, ValueKind.MOMENT, True),
    "xs:time": partial(_of_time, ValueKind.TIME, None),
}
"""The reader of each type; it returns None for a string that is not of the type."""


def typed(symbol: str, type_: str) -> str:
    """An operator that reads both sides as a type; `=` and `!=` of strings need no type."""
    return symbol if type_ == "xs:string" and symbol in ("=", "!=") else f"{symbol} {type_}"


def parted(written: str) -> tuple[str, str | None]:
    """The symbol of an operator, and its type."""
    symbol, _, type_ = written.partition(" ")
    return symbol, type_ or None


def mirrored(written: str) -> str:
    """The operator for swapped sides."""
    symbol, type_ = parted(written)
    return _MIRRORED[symbol] if type_ is None else f"{_MIRRORED[symbol]} {type_}"


# Comparing --------------------------------------------------------------------------------------


def compare(left: str, written: str, right: str) -> bool:
    """Whether an operator holds between two values.

    >>> compare("99.00", "<", "100.00"), compare("b", "<", "100"), compare("5", "=", "5.0")
    (True, False, False)
    """
    if written == "=":
        return left == right
    if written == "!=":
        return left != right
    return comparer(written)(left, right)


@lru_cache(maxsize=256)
def comparer(written: str) -> Callable[[str, str], bool]:
    """An operator as a function of two values."""
    symbol, type_ = parted(written)
    holds = APPLY[symbol]
    if type_ is not None:
        read = READ[type_]

        def compare_typed(left: str, right: str) -> bool:
            one, other = read(left), read(right)
            return one is not None and other is not None and holds(one, other)

        return compare_typed
    if symbol not in ORDERS:
        return holds

    def compare_kinds(left: str, right: str) -> bool:
        one, other = key_of(left), key_of(right)
        return one[0] is other[0] and holds(one[1], other[1])

    return compare_kinds


def compare_numbers(left: int | Decimal, symbol: str, right: int | Decimal) -> bool:
    """Whether an operator holds between two exact numbers, such as a sum of times and its bound."""
    return APPLY[symbol](left, right)
