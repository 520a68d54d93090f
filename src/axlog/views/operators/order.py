"""The order of cells and rows: sort keys for operators that keep rows in order.

A sort key is any Python value that compares with the other keys of its column. `cell_key` is the
key that suits every cell; callers that know more of a column give their own function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from axlog.evaluate.joins import Row

_NONE, _NAN, _NUMBER, _TEXT, _TUPLE, _OTHER = range(6)
_FIRST = {int: _NUMBER, str: _TEXT}


def cell_key(value: Any) -> tuple[Any, ...]:
    """The sort key of a cell: None, NaN, numbers, texts, tuples, then other types by their names.

    Equal cells have equal keys, and different cells have different keys. Values of other types must
    order themselves.

    >>> sorted(["b", 2.5, None, Decimal(2), "a", True], key=cell_key)
    [None, True, Decimal('2'), 2.5, 'a', 'b']
    """
    kind = type(value)
    rank = _FIRST.get(kind)
    if rank is not None:
        return rank, value
    if value is None:
        return (_NONE,)
    if isinstance(value, float | Decimal):
        return (_NAN,) if value != value else (_NUMBER, value)
    if isinstance(value, int):
        return _NUMBER, value
    if isinstance(value, str):
        return _TEXT, value
    if isinstance(value, tuple):
        return _TUPLE, tuple(map(cell_key, value))
    return _OTHER, kind.__name__, value


def row_key(row: Row) -> tuple[Any, ...]:
    """The sort key of a row, cell by cell."""
    return tuple(map(cell_key, row))


class Descending:
    """A sort key in reverse."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


def order_key(parts: Sequence[tuple[Callable[[Row], Any], bool]]) -> Callable[[Row], Any]:
    """The sort key of a row by several parts: the key of each, and whether it is descending.

    >>> order = order_key([(lambda row: row[1], True), (lambda row: row[0], False)])
    >>> sorted([("a", 1), ("b", 2), ("c", 1)], key=order)
    [('b', 2), ('a', 1), ('c', 1)]
    """
    if len(parts) == 1:
        ((only, is_descending),) = parts
        return (lambda row: Descending(only(row))) if is_descending else only
    return lambda row: tuple([Descending(key(row)) if down else key(row) for key, down in parts])
