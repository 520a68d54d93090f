"""The top: a slice of the rows in an order, for each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from axlog.evaluate.joins import Bag, Row, add, picker
from axlog.evaluate.sort_keys import exact_row_key
from axlog.query.compile import Column
from axlog.views.operators.lookups import having, key_within
from axlog.views.operators.operator import Cost, Counted, Operator, Source
from axlog.views.operators.ordered_index import OrderedIndex


class Top(Operator):
    """The rows between two positions of an order, in each partition of rows with equal columns.

    Positions count different rows, from 0, and from the end if they are negative, as in slices of
    Python: `start=0, stop=10` are the first ten, `start=-1` is the last one, `start=-2, stop=-1`
    the one before it. A row keeps its count. Law, with S(k) the slice of the input rows with key k:

        Δout = Σ_k  S'(k) - S(k)

    A row that comes or goes moves the rows behind it by one, so each end of the slice gains or
    loses one row at most. All rows are kept in order. Of append-only input only the rows before
    `stop` are kept, if both positions count from the beginning: no other row can enter.
    """

    name = "top"
    __slots__ = ("_kept", "_key", "_order", "_partitions", "_slice", "_tie", "per", "schema")

    def __init__(
        self,
        below: Source,
        order: Callable[[Row], Any],
        start: int = 0,
        stop: int | None = None,
        per: Sequence[Column] = (),
        *,
        tie: Callable[[Row], Any] = exact_row_key,
        is_append_only: bool = False,
    ) -> None:
        """`order`: the sort key of a row; `per`: the columns that rows of a partition share.

        `tie`: the sort key among rows with the same `order`; different rows have different keys.
        """
        self.schema = below.schema
        self.per = tuple(per)
        self._key = picker([self.schema.index(column) for column in self.per])
        self._order = order
        self._tie = tie
        self._slice = slice(start, stop)
        is_prefix = is_append_only and start >= 0 and stop is not None and stop >= 0
        self._kept = stop if is_prefix else None
        """The number of rows to keep; None: all."""
        self._partitions: dict[Row, OrderedIndex] = {}

    def apply(self, port: int, delta: Bag) -> Bag:
        result: Bag = {}
        for row, count in delta.items():
            key = self._key(row)
            index = self._partitions.get(key)
            if index is None:
                index = self._partitions[key] = OrderedIndex()
            self._move(index, row, count, result)
            if not index:
                del self._partitions[key]
        return result

    def _move(self, index: OrderedIndex, row: Row, count: int, result: Bag) -> None:
        """Add to the count of a row in its partition, and what that moves to the result."""
        place = (self._order(row), self._tie(row))
        kept = self._kept
        if kept is not None:
            assert count > 0, "a row of append-only input went"
            if not kept or (len(index) == kept and index.last_key < place):
                return
        total = index.add(place, row, count)
        if self._is_outside(index, place):
            return
        if total == count:
            self._shift(index, index.rank(place), row, count, result)
            if kept is not None and len(index) > kept:
                index.add(*index.last()._replace(total=-index.last().total))
        elif not total:
            self._shift(index, index.rank(place), row, count, result)
        else:
            start, stop, _ = self._slice.indices(len(index))
            if start <= index.rank(place) < stop:
                add(result, row, count)

    def _is_outside(self, index: OrderedIndex, place: Any) -> bool:
        """Whether a place is so far from the slice that no row of the slice changes.

        A test without a search, for the common slices: the first rows, and the last ones.
        """
        start, stop, size = self._slice.start, self._slice.stop, len(index)
        if stop is None:
            return bool(start < 0 <= size + start and place < index.key_at(size + start))
        return bool(0 < stop <= size and start >= 0 and index.key_at(stop - 1) < place)

    def _shift(self, index: OrderedIndex, place: int, own: Row, count: int, result: Bag) -> None:
        """Add the rows that enter or leave the slice to the result.

        The row at `place` has come (with a positive count) or gone. All positions are those of the
        order with the row. The ends of the slice without the row, which moves the rows behind it,
        are at most one off from those of the slice with it: only the rows there can differ.
        """
        sign = 1 if count > 0 else -1
        size = len(index) + (sign < 0)
        start, stop, _ = self._slice.indices(size)
        first, end, _ = self._slice.indices(size - 1)  # positions in the order without the row
        if start <= place < stop:
            add(result, own, count)
        for at in {first, end}:
            if at != place and at < size:
                is_in, was_in = start <= at < stop, first <= at - (at > place) < end
                if is_in != was_in:
                    _, row, total = index.at(at - (sign < 0 and at > place))
                    add(result, row, sign * (is_in - was_in) * total)

    # State ---------------------------------------------------------------------------------------

    @property
    def table_count(self) -> int:
        return 1

    def state(self) -> Sequence[Iterable[Counted]]:
        indexes = self._partitions.values()
        return [[(row, count) for index in indexes for _, row, count in index.entries()]]

    def load(self, state: Sequence[Iterable[Counted]]) -> None:
        self._partitions.clear()
        self.apply(0, dict(state[0]))

    # Answers -------------------------------------------------------------------------------------

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        per = key_within(columns, key, self.per)
        keys = self._partitions if per is None else (per,)
        rows = chain.from_iterable(map(self.in_order, keys))
        return having(rows, self.schema, columns, key)

    def in_order(self, key: Row = ()) -> list[Counted]:
        """The rows of the slice of one partition with their counts, in order."""
        index = self._partitions.get(key)
        if index is None:
            return []
        start, stop, _ = self._slice.indices(len(index))
        return [(row, count) for _, row, count in index.entries(start, stop)]

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        return [(0, row)]

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """The columns of the partitions."""
        return self.per or None

    def cost(self, port: int) -> Cost:
        return Cost(1, 0)
