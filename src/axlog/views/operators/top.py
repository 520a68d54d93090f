"""The top: a slice of the rows in an order, for each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from axlog.evaluate.joins import Bag, Row, add, picker
from axlog.evaluate.sort_keys import exact_row_key
from axlog.query.compile import Column
from axlog.views.operators.lookups import having, key_within
from axlog.views.operators.operator import Cost, Counted, Operator, Source
from axlog.views.operators.ordered_index import OrderedIndex

SPARE = 16
"""Rows behind the slice that are kept in order."""


class Partition:
    """The rows of one partition: an ordered beginning, and the rows behind it without order.

    Rows behind the beginning cannot be in the slice. They are ordered when one of them may enter
    it, all at once, and stay in order from then on. So rows that only come cost no search, and the
    sorting is paid for by the insertions before it.
    """

    __slots__ = ("index", "is_sorted", "rest")

    def __init__(self) -> None:
        self.index = OrderedIndex()
        self.rest: Bag = {}
        self.is_sorted = False  # whether all later rows are put in order

    def __len__(self) -> int:
        return len(self.index) + len(self.rest)


class Top(Operator):
    """The rows between two positions of an order, in each partition of rows with equal columns.

    Positions count different rows, from 0, and from the end if they are negative, as in slices of
    Python: `start=0, stop=10` are the first ten, `start=-1` is the last one, `start=-2, stop=-1`
    the one before it. A row keeps its count. Law, with S(k) the slice of the input rows with key k:

        Δout = Σ_k  S'(k) - S(k)

    A row that comes or goes moves the rows behind it by one, so each end of the slice gains or
    loses one row at most. All rows are kept. Of input that only grows, only the rows before `stop`
    are kept, if both positions count from the beginning: no other row can enter.
    """

    name = "top"
    __slots__ = (
        "_head", "_key", "_only_grows", "_order", "_partitions", "_slice", "_tie", "per", "schema",
    )  # fmt: skip

    def __init__(
        self,
        below: Source,
        order: Callable[[Row], Any],
        start: int = 0,
        stop: int | None = None,
        per: Sequence[Column] = (),
        *,
        tie: Callable[[Row], Any] = exact_row_key,
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
        is_prefix = start >= 0 and stop is not None and stop >= 0
        self._head = stop if is_prefix else None
        """The number of rows before the end of the slice; None: it is counted from the end."""
        self._only_grows = False
        self._partitions: dict[Row, Partition] = {}

    def expect_insertions(self) -> bool:
        if self._head is not None and not self._only_grows:
            for partition in self._partitions.values():
                partition.index, partition.rest = partition.index.first(self._head), {}
                partition.is_sorted = False
            self._only_grows = True
        return False

    def apply(self, port: int, delta: Bag) -> Bag:
        result: Bag = {}
        for row, count in delta.items():
            key = self._key(row)
            partition = self._partitions.get(key)
            if partition is None:
                partition = self._partitions[key] = Partition()
            if self._head is None:
                self._move(partition, row, count, (self._order(row), self._tie(row)), result)
            else:
                self._enter(partition, self._head, row, count, result)
            if not partition:
                del self._partitions[key]
        return result

    def _enter(self, partition: Partition, head: int, row: Row, count: int, result: Bag) -> None:
        """Add to the count of a row, behind the ordered rows if it belongs there."""
        index, rest = partition.index, partition.rest
        if row in rest:
            add(rest, row, count)
            return
        order = self._order(row)
        place: Any = None
        if len(index) >= head and not partition.is_sorted:
            is_behind = not head or index.last_key[0] < order
            if not is_behind:
                place = (order, self._tie(row))
                is_behind = index.last_key < place
            if is_behind:
                if not self._only_grows:
                    rest[row] = count
                return
        self._move(partition, row, count, place or (order, self._tie(row)), result)
        if not partition.is_sorted:
            self._spill(partition, head)

    def _spill(self, partition: Partition, head: int) -> None:
        """Leave few rows behind the slice in order, and none of input that only grows."""
        index = partition.index
        if len(index) > (head if self._only_grows else head + 2 * SPARE):
            for last in list(index.entries(head if self._only_grows else head + SPARE)):
                index.add(last.key, last.item, -last.total)
                if not self._only_grows:
                    partition.rest[last.item] = last.total

    def _move(self, partition: Partition, row: Row, count: int, place: Any, result: Bag) -> None:
        """Add to the count of an ordered row, and what that moves to the result."""
        index = partition.index
        total = index.add(place, row, count)
        if partition.rest and len(index) < (self._head or 0):
            self._sort(partition)
        if self._is_outside(index, place):
            return
        if not total or total == count:
            self._shift(index, index.rank(place), row, count, result)
        else:
            start, stop, _ = self._slice.indices(len(index))
            if start <= index.rank(place) < stop:
                add(result, row, count)

    def _sort(self, partition: Partition) -> None:
        """Put all rows in order."""
        rest, partition.rest, partition.is_sorted = partition.rest, {}, True
        found = [((self._order(row), self._tie(row)), row, count) for row, count in rest.items()]
        for place, row, count in sorted(found, key=itemgetter(0)):
            partition.index.add(place, row, count)

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
        found: list[Counted] = []
        for partition in self._partitions.values():
            found += [(row, count) for _, row, count in partition.index.entries()]
            found += partition.rest.items()
        return [found]

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
        partition = self._partitions.get(key)
        if partition is None:
            return []
        index = partition.index
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
