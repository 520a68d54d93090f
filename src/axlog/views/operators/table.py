"""Tables: bags of rows, indexed by the keys that joins look up.

A bucket is a pair (row, count) while it holds one row, the most common case, and a bag from the
second row on. A table stores its rows once for every key that some join uses, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeAlias

from axlog.evaluate.joins import Bag, Row, Value, add, picker
from axlog.evaluate.work import Meter
from axlog.views.operators.range_lookup import Order, OrderedRows, Range

Positions: TypeAlias = tuple[int, ...]
Bucket: TypeAlias = "tuple[Row, int] | Bag"
Index: TypeAlias = dict[Row, Bucket]
NewIndex: TypeAlias = Callable[[], Index]
MANY = 64
"""Rows from which a table has them in an order, if joins look them up by it."""


class Table:
    """A bag with an index for each of the given keys; without keys, one index on no column."""

    __slots__ = ("_filled", "_indexes", "_new_index", "_ordered", "_picks", "is_ranged", "put")

    def __init__(
        self,
        rows: Bag,
        keys: Iterable[Positions] = (),
        new_index: NewIndex = dict,
        is_ranged: bool = False,
    ) -> None:
        """`is_ranged`: joins look up rows by their order, among all rows (`range_lookup.py`)."""
        positions = list(dict.fromkeys(keys)) or [()]
        self._new_index = new_index
        self.put = put if new_index is dict else put_stored
        self.is_ranged = is_ranged and new_index is dict
        self._ordered: dict[tuple[int, Order], OrderedRows] = {}
        if self.is_ranged:
            self.put = self._put_ranged
        self._picks = [picker(at) for at in positions]
        self._indexes: dict[Positions, Index] = {at: new_index() for at in positions}
        self._filled = list(zip(self._picks, self._indexes.values(), strict=True))
        self.update(rows)

    def keys(self) -> list[Positions]:
        """The positions of each index."""
        return list(self._indexes)

    @property
    def is_plain(self) -> bool:
        """Whether its indexes are dictionaries in memory."""
        return self._new_index is dict

    @property
    def has_one_index(self) -> bool:
        """Whether the table has its rows once."""
        return len(self._filled) == 1

    def index(self, positions: Positions) -> Index:
        """The rows by their values at these positions."""
        index = self._indexes.get(positions)
        if index is None:
            index = self._add_index(positions)
        return index

    def _add_index(self, positions: Positions) -> Index:
        rows = self.rows()
        index = self._indexes[positions] = self._new_index()
        pick = picker(positions)
        self._picks.append(pick)
        self._filled.append((pick, index))
        for row, count in rows.items():
            self.put(index, pick(row), row, count)
        return index

    def matching(self, positions: Positions, key: Row) -> Collection[tuple[Row, int]]:
        """The rows with this key, and their counts."""
        bucket = self.index(positions).get(key)
        if bucket is None:
            return ()
        return bucket.items() if type(bucket) is dict else (bucket,)  # type: ignore[return-value]

    def within(self, asked: Range, value: Value) -> Collection[tuple[Row, int]]:
        """The rows that may compare with a value, and their counts; all of them if they are few."""
        bucket = self.index(()).get(())
        if bucket is None:
            return ()
        if type(bucket) is not dict:
            return (bucket,)  # type: ignore[return-value]
        if not self.is_ranged or len(bucket) < MANY:
            return bucket.items()
        bounds = asked.bounds(value)
        if bounds is None:
            return ()
        key = asked.position, asked.order
        ordered = self._ordered.get(key)
        if ordered is None:
            ordered = self._ordered[key] = OrderedRows(bucket, *key)
        return ordered.within(bounds)

    def finder(self, asked: Range, meter: Meter) -> Callable[[Value], Collection[tuple[Row, int]]]:
        """`within` for one comparison; the meter counts the rows that it gives."""

        def find(value: Value) -> Collection[tuple[Row, int]]:
            found = self.within(asked, value)
            if len(found) > 1:
                meter.spend(len(found))
            return found

        return find

    def _put_ranged(self, index: Index, key: Row, row: Row, count: int) -> None:
        """`put` for a table with rows in an order: the index of all rows has the empty key."""
        put(index, key, row, count)
        if not key and self._ordered:
            for ordered in self._ordered.values():
                ordered.add(row, count)

    def has(self, positions: Positions, key: Row) -> bool:
        """Whether any row has this key."""
        return key in self.index(positions)

    def count(self, row: Row) -> int:
        """The count of a row; 0 if it is absent."""
        bucket = next(iter(self._indexes.values())).get(self._picks[0](row))
        if bucket is None:
            return 0
        if type(bucket) is dict:
            return bucket.get(row, 0)
        return bucket[1] if bucket[0] == row else 0  # type: ignore[index]

    def flips(self, delta: Bag) -> Bag:
        """The rows that a delta would make appear (1) or disappear (-1)."""
        found: Bag = {}
        for row, count in delta.items():
            before = self.count(row)
            if not before or not before + count:
                found[row] = -1 if before else 1
        return found

    @property
    def is_empty(self) -> bool:
        return not next(iter(self._indexes.values()))

    @property
    def least_size(self) -> int:
        """A number of rows that the table has at least, read off its indexes."""
        sizes = [len(index) for index in self._indexes.values()]
        whole = self._indexes.get(())
        bucket = None if whole is None else whole.get(())
        return max(*sizes, 0, len(bucket) if type(bucket) is dict else 0)

    def update(self, delta: Bag) -> None:
        """Add a delta of signed counts."""
        put = self.put
        for pick, index in self._filled:
            for row, count in delta.items():
                put(index, pick(row), row, count)

    def add(self, row: Row, count: int) -> None:
        """Add to the count of one row."""
        put = self.put
        for pick, index in self._filled:
            put(index, pick(row), row, count)

    def remove(self, row: Row) -> int:
        """Remove a row, whatever its count; the count."""
        count = 0
        for pick, index in self._filled:
            key = pick(row)
            bucket = index.get(key)
            if type(bucket) is tuple and type(index) is dict:
                if bucket[0] != row:
                    return 0
                count = bucket[1]
                del index[key]
                if not key:
                    self._ordered.clear()
            else:
                count = count or self.count(row)
                if not count:
                    return 0
                self.put(index, key, row, -count)
        return count

    def __iter__(self) -> Iterator[Row]:
        """All rows, one after the other; the table must not change meanwhile."""
        for bucket in next(iter(self._indexes.values())).values():
            if type(bucket) is dict:
                yield from bucket
            else:
                yield bucket[0]  # type: ignore[misc, index]

    def rows(self) -> Bag:
        """All rows, as a new bag."""
        found: Bag = {}
        for bucket in next(iter(self._indexes.values())).values():
            if type(bucket) is dict:
                found.update(bucket)
            else:
                row, count = bucket
                found[row] = count  # type: ignore[assignment]
        return found

    def __len__(self) -> int:
        return len(self.rows())


def put(index: Index, key: Row, row: Row, count: int) -> None:
    """Add to the count of a row in its bucket; remove the row at zero."""
    bucket = index.get(key)
    if bucket is None:
        index[key] = (row, count)
    elif type(bucket) is dict:
        add(bucket, row, count)
        if len(bucket) == 1:
            index[key] = next(iter(bucket.items()))
    elif bucket[0] == row:  # type: ignore[index]
        total = bucket[1] + count  # type: ignore[index]
        if total:
            index[key] = (row, total)
        else:
            del index[key]
    else:
        index[key] = dict((bucket, (row, count)))  # type: ignore[arg-type]


def put_stored(index: Index, key: Row, row: Row, count: int) -> None:
    """`put` for an index that stores its rows itself."""
    index.put(key, row, count)  # type: ignore[attr-defined]
