"""Look-ups by order: the rows of a part whose value compares with a value of the other parts.

A part that shares no column with the parts before it multiplies the joined rows, and a comparison
between the two keeps some of them (`where $price > $limit`, `where t2 - t1 <= 5`). A table with
many rows then has them in an ordered index too, and the join reads only those on the right side of
the other value. The comparison itself is still made: a look-up may give rows that do not pass.

Law: the rows that pass the comparison are among those that a look-up gives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from axlog.evaluate.joins import Bag, Row, Value
from axlog.query.compile import Column, Test
from axlog.query.pattern import TimeConstraint, Variable
from axlog.query.values import ORDERS, READ, key_of, mirrored, parted
from axlog.views.operators.ordered_index import OrderedIndex

Order = Callable[[Value], Any]
"""The sort key of a value; None: it compares with nothing."""
Bounds = tuple[Any, Any]
"""The first key of a range, and the first key after it; None: there is no such bound."""


class _Last:
    """Greater than every row."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


_LAST = _Last()


@dataclass(frozen=True, slots=True)
class Range:
    """A comparison of a column of a part with a column that is bound already."""

    position: int  # of the part's column
    order: Order
    column: Column  # the other one
    bounds: Callable[[Value], Bounds | None]
    """The range of keys for a value of the other column; None: it compares with nothing."""


def range_of(
    tests: Sequence[Test], columns: Sequence[Column], added: Sequence[Column]
) -> Range | None:
    """The first test that orders the rows of a part; `added`: the columns that it binds."""
    for test in tests:
        inside = [column for column in test.columns if column in added]
        if len(test.columns) != 2 or len(inside) != 1:
            continue
        at = test.columns.index(inside[0])
        position, other = columns.index(inside[0]), test.columns[1 - at]
        constraint = test.constraint
        if isinstance(constraint, TimeConstraint):
            by_time = _time_bounds(constraint, at)
            if by_time is not None:
                return Range(position, _itself, other, by_time)
        elif isinstance(constraint.right, Variable):
            operator = constraint.operator if at == 0 else mirrored(constraint.operator)
            if parted(operator)[0] in ORDERS:
                order, bounds = _by_value(operator)
                return Range(position, order, other, bounds)
    return None


def _itself(value: Value) -> Any:
    return value


def _time_bounds(constraint: TimeConstraint, at: int) -> Callable[[Value], Bounds | None] | None:
    """The bounds of one of two times; None if it has a factor."""
    factor, other = constraint.terms[at][0], constraint.terms[1 - at][0]
    symbol = constraint.operator if factor == 1 else mirrored(constraint.operator)
    if factor not in (1, -1) or symbol not in (*ORDERS, "="):
        return None
    bound = constraint.bound

    def bounds(value: Value) -> Bounds:
        limit = factor * (bound - other * int(value))
        return (
            None if symbol[0] == "<" else (limit,),
            None if symbol[0] == ">" else (limit, _LAST),
        )

    return bounds


@cache
def _by_value(operator: str) -> tuple[Order, Callable[[Value], Bounds | None]]:
    """The order of values of an operator, and the bounds of those before or after a value."""
    symbol, type_ = parted(operator)
    is_less = symbol[0] == "<"
    order = _kind_order if type_ is None else _typed_order(type_)

    def bounds(value: Value) -> Bounds | None:
        key = order(value)
        if key is None:
            return None
        if type_ is None:  # only values of one kind compare
            return (
                ((key[0],),) if is_less else (key,),
                (key, _LAST) if is_less else ((key[0] + 1,),),
            )
        return (None, (key, _LAST)) if is_less else ((key,), None)

    return order, bounds


def _kind_order(value: Value) -> Any:
    return key_of(str(value))


@cache
def _typed_order(type_: str) -> Order:
    read = READ[type_]

    def order(value: Value) -> Any:
        key = read(str(value))
        return key if key == key else None  # not a number compares with nothing

    return order


class OrderedRows:
    """Rows in the order of one of their values."""

    __slots__ = ("_index", "_order", "_position")

    def __init__(self, rows: Bag, position: int, order: Order) -> None:
        self._position, self._order = position, order
        self._index = OrderedIndex()
        for row, count in rows.items():
            self.add(row, count)

    def add(self, row: Row, count: int) -> None:
        """Add to the count of a row."""
        key = self._order(row[self._position])
        if key is not None:
            self._index.add((key, row), row, count)

    def within(self, bounds: Bounds) -> Collection[tuple[Row, int]]:
        """The rows of a range, with their counts."""
        first, after = bounds
        index = self._index
        start = 0 if first is None else index.rank(first)
        stop = None if after is None else index.rank(after)
        return [(row, count) for _, row, count in index.entries(start, stop)]
