"""Casts between atomic types (F&O 3.1, section 19): `cast`, and which types there are.

A cast that the recommendation never allows raises XPTY0004; a value that does not fit raises
FORG0001, FOCA0002 or FOCA0003.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from axlog.errors import ValueProblem
from axlog.evaluate.atoms import (
    DURATIONS,
    NUMERIC,
    Atom,
    Untyped,
    text_of,
    type_of,
)
from axlog.query.dates import (
    DAY,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Time,
    YearMonthDuration,
    duration_of,
    is_beyond_limits,
    time_value_of,
)
from axlog.query.numbers import MOST_DIGITS, decimal_of, double, integer_of

_SPACE = " \t\r\n"
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_SPECIAL = {"INF": "inf", "+INF": "inf", "-INF": "-inf", "NaN": "nan"}
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def cast(value: Atom, type_: str) -> Atom:
    """A value cast to a type.

    >>> cast("12", "xs:integer"), cast(1.9, "xs:integer"), cast(Untyped("1"), "xs:boolean")
    (12, 1, True)
    """
    return CASTS[type_](value)


def _to_string(value: Atom) -> str:
    return text_of(value)


def _to_untyped(value: Atom) -> Untyped:
    return Untyped(text_of(value))


def _to_double(value: Atom) -> float:
    kind = type(value)
    if kind is float:
        return value  # type: ignore[return-value]
    if kind in NUMERIC:
        return double(value)  # type: ignore[arg-type]
    if kind is bool:
        return float(value)  # type: ignore[arg-type]
    if isinstance(value, str):
        trimmed = value.strip(_SPACE)
        if _DOUBLE.fullmatch(trimmed):
            return float(trimmed)
        special = _SPECIAL.get(trimmed)
        if special is not None:
            return float(special)
        raise unfit(value, "xs:double")
    raise _never(value, "xs:double")


def _to_decimal(value: Atom) -> Decimal:
    kind = type(value)
    if kind in NUMERIC:
        return decimal_of(value)  # type: ignore[arg-type]
    if kind is bool:
        return Decimal(value)  # type: ignore[arg-type]
    if isinstance(value, str):
        trimmed = value.strip(_SPACE)
        if not _DECIMAL.fullmatch(trimmed):
            raise unfit(value, "xs:decimal")
        _check_length(trimmed)
        return Decimal(trimmed)
    raise _never(value, "xs:decimal")


def _to_integer(value: Atom) -> int:
    kind = type(value)
    if kind in NUMERIC:
        return integer_of(value)  # type: ignore[arg-type]
    if kind is bool:
        return int(bool(value))
    if isinstance(value, str):
        trimmed = value.strip(_SPACE)
        if not _INTEGER.fullmatch(trimmed):
            raise unfit(value, "xs:integer")
        _check_length(trimmed)
        return int(trimmed)
    raise _never(value, "xs:integer")


def _check_length(text: str) -> None:
    if len(text) > MOST_DIGITS:
        raise ValueProblem("FOCA0003", f"a number has more than {MOST_DIGITS:,} digits")


def _to_boolean(value: Atom) -> bool:
    kind = type(value)
    if kind is bool:
        return value  # type: ignore[return-value]
    if kind in NUMERIC:
        return bool(value) and value == value  # NaN is false
    if isinstance(value, str):
        found = _TRUTHS.get(value.strip(_SPACE))
        if found is None:
            raise unfit(value, "xs:boolean")
        return found
    raise _never(value, "xs:boolean")


def _to_time_value(kind: type[Date] | type[DateTime] | type[Time], value: Atom) -> Atom:
    if type(value) is kind:
        return value
    if isinstance(value, str):
        found = time_value_of(value, kind)
        if found is None and is_beyond_limits(value, kind):
            raise ValueProblem("FODT0001", f"{value[:100]!r} is out of range")
        if found is None:
            raise unfit(value, kind.type)
        return found
    if type(value) is DateTime and kind is Date:
        return Date(value.local // DAY * DAY, value.zone)
    if type(value) is DateTime and kind is Time:
        return Time(value.local % DAY, value.zone)
    if type(value) is Date and kind is DateTime:
        return DateTime(value.local, value.zone)
    raise _never(value, kind.type)


def _to_duration(kind: type[Duration], value: Atom) -> Duration:
    if type(value) is kind:
        return value
    if isinstance(value, str):
        found = duration_of(value, kind)
        if found is None and is_beyond_limits(value, kind):
            raise ValueProblem("FODT0002", f"the duration {value[:100]!r} is too long")
        if found is None:
            raise unfit(value, kind.type)
        return found
    if type(value) in DURATIONS:
        assert isinstance(value, Duration)
        months = 0 if kind is DayTimeDuration else value.months
        return kind(months, 0 if kind is YearMonthDuration else value.nanoseconds)
    raise _never(value, kind.type)


def unfit(value: str, type_: str) -> ValueProblem:
    """The error for a text that is not of a type."""
    return ValueProblem("FORG0001", f"{str(value)[:100]!r} is not a valid {type_}")


def _never(value: Atom, type_: str) -> ValueProblem:
    return ValueProblem("XPTY0004", f"a value of {type_of(value)} cannot be cast to {type_}")


CASTS: dict[str, Callable[[Any], Atom]] = {
    "xs:string": _to_string,
    "xs:untypedAtomic": _to_untyped,
    "xs:double": _to_double,
    "xs:decimal": _to_decimal,
    "xs:integer": _to_integer,
    "xs:boolean": _to_boolean,
    "xs:date": partial(_to_time_value, Date),
    "xs:dateTime": partial(_to_time_value, DateTime),
    "xs:time": partial(_to_time_value, Time),
    "xs:duration": partial(_to_duration, Duration),
    "xs:dayTimeDuration": partial(_to_duration, DayTimeDuration),
    "xs:yearMonthDuration": partial(_to_duration, YearMonthDuration),
}
"""The cast to each type."""


def number_of(value: Atom) -> float:
    """fn:number: a value as a double, NaN if it is none."""
    try:
        return _to_double(value)
    except ValueProblem:
        return float("nan")
