"""Sort keys of values in the native language: the order of `order by`, `min`, `max` and `latest`.

`order_key` compares values as the language does: missing values first, then numbers, moments, times
of day, durations, texts, truth values, ids, lists. A string is a number, a moment, a time of day or
a text by its form (`query/values.py`). Values that the language takes for equal have equal keys.

`exact_key` breaks ties: strings by code point. Two values have equal keys exactly if they are equal
in Python, as rows are: a float and a decimal are compared exactly, and moments by their instants.
(A truth value and a number are told apart all the same.)
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, TypeAlias

from axlog.document.ids import Id
from axlog.query.dates import Duration, Time, TimeValue
from axlog.query.values import ValueKind, key_of

SortKey: TypeAlias = tuple[Any, ...]

_NONE, _NAN, _NUMBER, _MOMENT, _TIME, _DURATION, _TEXT, _TRUTH, _ID, _LIST, _OTHER = range(11)
_OF_KIND = {
    ValueKind.NUMBER: _NUMBER, ValueKind.MOMENT: _MOMENT, ValueKind.TIME: _TIME,
    ValueKind.TEXT: _TEXT,
}  # fmt: skip


def order_key(value: Any) -> SortKey:
    """The place of a value in the order of the language.

    >>> sorted(["b", "10", "9", None, "2024-05-01", Decimal("9.5")], key=order_key)
    [None, '9', Decimal('9.5'), '10', '2024-05-01', 'b']
    """
    if isinstance(value, str):
        kind, key = key_of(value)
        return _OF_KIND[kind], key
    return _other_key(value)


def exact_key(value: Any) -> SortKey:
    """The place of a value among all values, with strings by code point.

    >>> sorted(["10", "9", None, "1.0", "1"], key=exact_key)
    [None, '1', '1.0', '10', '9']
    """
    if isinstance(value, str):
        return _TEXT, value
    if type(value) is tuple:
        return _LIST, tuple(map(exact_key, value))
    if type(value) is float:
        return (_NAN,) if value != value else (_NUMBER, value)
    key = _other_key(value)
    return (*key, value.type) if isinstance(value, TimeValue) else key


def _other_key(value: Any) -> SortKey:
    kind = type(value)
    if value is None:
        return (_NONE,)
    if kind is int or kind is Decimal:
        return _NUMBER, value
    if kind is bool:
        return _TRUTH, value
    if kind is float:
        return _float_key(value)
    if kind is Id:
        return _ID, value
    if isinstance(value, TimeValue):
        return _TIME if isinstance(value, Time) else _MOMENT, Fraction(value.instant) / 1000
    if isinstance(value, Duration):
        return _DURATION, value.months, value.nanoseconds
    if kind is tuple:
        return _LIST, tuple(map(order_key, value))
    return _OTHER, kind.__name__, str(value)


def _float_key(value: float) -> SortKey:
    if value != value:
        return (_NAN,)
    return _NUMBER, Decimal(repr(value)) if isfinite(value) else Decimal(value)


def exact_row_key(row: tuple[Any, ...]) -> SortKey:
    """The place of a row among all rows, column by column."""
    return tuple([exact_key(value) for value in row])
