"""Atomic values and their types, as in XQuery 3.1.

| type | Python |
|---|---|
| xs:integer, xs:decimal, xs:double | `int`, `Decimal`, `float` |
| xs:boolean, xs:string | `bool`, `str` |
| xs:untypedAtomic | `Untyped`: the value of a node |
| xs:date, xs:dateTime, xs:time | `Date`, `DateTime`, `Time` |
| xs:duration and its two subtypes | `Duration`, `DayTimeDuration`, `YearMonthDuration` |
| xs:QName | `Named` |

Not handled: xs:float, the other subtypes of xs:integer and xs:string, xs:anyURI, binary data and
parts of dates (xs:gYear). `type_of` uses the exact class of a value, because a `bool` is an `int`
in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from axlog.query.dates import (
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Time,
    TimeValue,
    YearMonthDuration,
)
from axlog.query.numbers import decimal_text, double_text


class Untyped(str):
    """The value of a node, without a type."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Named:
    """A name as a value: expanded, and the prefix it was written with."""

    label: str
    prefix: str = ""

    def __str__(self) -> str:
        local = self.label.rpartition("}")[2]
        return f"{self.prefix}:{local}" if self.prefix else local


Atom: TypeAlias = str | int | Decimal | float | bool | Named | TimeValue | Duration

TYPES: dict[type, str] = {
    int: "xs:integer",
    Decimal: "xs:decimal",
    float: "xs:double",
    bool: "xs:boolean",
    str: "xs:string",
    Untyped: "xs:untypedAtomic",
    Named: "xs:QName",
    **{
        kind: kind.type
        for kind in (Date, DateTime, Time, Duration, DayTimeDuration, YearMonthDuration)
    },
}
"""The type of a value by its class."""
NUMERIC = frozenset({int, Decimal, float})
DURATIONS = frozenset({Duration, DayTimeDuration, YearMonthDuration})
MOMENTS = frozenset({Date, DateTime, Time})


def type_of(value: Atom) -> str:
    """The name of a value's type."""
    return TYPES[type(value)]


def is_of(value: Atom, type_: str) -> bool:
    """Whether a value is of a type or of a subtype of it.

    >>> is_of(1, "xs:decimal"), is_of(1, "xs:double"), is_of(True, "xs:integer")
    (True, False, False)
    """
    kind = type(value)
    match type_:
        case "xs:anyAtomicType":
            return kind in TYPES
        case "xs:numeric":
            return kind in NUMERIC
        case "xs:decimal":
            return kind is Decimal or kind is int
        case "xs:duration":
            return kind in DURATIONS
    return TYPES.get(kind) == type_


def text_of(value: Atom) -> str:
    """A value cast to a string.

    >>> text_of(True), text_of(1e0), text_of(Untyped("a"))
    ('true', '1', 'a')
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[return-value]
    if kind is bool:
        return "true" if value else "false"
    if kind is Decimal:
        return decimal_text(value)  # type: ignore[arg-type]
    if kind is float:
        return double_text(value)  # type: ignore[arg-type]
    return str.__str__(value) if isinstance(value, str) else str(value)
