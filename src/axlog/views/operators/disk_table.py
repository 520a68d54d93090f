"""Indexes on disk: the rows that joins look up, loaded on demand and evicted later.

A stored index has the interface of the dictionaries of `tables.py` that the joins use. Its rows are
separate entries of a key-value store, under the key that joins look up. A write goes to the store
at once. Buckets that were read stay in memory until the bound is reached, so memory holds at most
`Shelf.bound` bytes of rows (estimated). An update costs the rows that it touches: inserting a row
does not rewrite the other rows of its bucket.

Rows are written by `marshal`: the store is scratch space that this process creates and removes, and
no other process reads it. (Paper 3, section 5.3.)
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, cast
from weakref import WeakSet

from axlog.evaluate.joins import Bag, Row
from axlog.store.keyvalue import KeyValueStore
from axlog.views.operators.table import Bucket, Index

_ROW = 300
"""Bytes of a row in memory without its strings: the tuple, its numbers, its dictionary entry."""
_PLAIN = 2
"""The version of `marshal` that writes equal rows as equal bytes, shared objects or not."""


class Shelf:
    """A store, with the memory bound that its indexes share."""

    def __init__(self, store: KeyValueStore, bound: int) -> None:
        self.store = store
        self.bound = bound
        self.held = 0  # bytes, estimated
        self.loads = 0  # buckets read from the store
        self.hits = 0  # buckets found in memory
        self._made = 0
        self._dropped: list[bytes] = []
        self._indexes: WeakSet[StoredIndex] = WeakSet()

    def index(self) -> StoredIndex:
        """A new, empty index."""
        while self._dropped:
            self._clear(self._dropped.pop())
        self._made += 1
        return StoredIndex(self, self._made.to_bytes(4, "big"))

    def new_index(self) -> Index:
        """A new index, typed as the dictionary that joins use."""
        return cast(Index, self.index())

    def hold(self, size: int) -> None:
        """Count bytes loaded into memory; evict all buckets when the bound is exceeded."""
        self.held += size
        if self.held > self.bound:
            for index in self._indexes:
                index.free()
            self.held = 0

    def drop(self, number: bytes) -> None:
        """Mark an index as dropped; its rows are deleted when the next index is created."""
        self._dropped.append(number)

    def _clear(self, number: bytes) -> None:
        for place, _ in list(self.store.scan(number)):
            self.store.delete(place)

    def close(self) -> None:
        self.store.close()


class StoredIndex:
    """An index whose buckets are in a store."""

    def __init__(self, shelf: Shelf, number: bytes) -> None:
        self._shelf = shelf
        self._store = shelf.store
        self._number = number
        shelf._indexes.add(self)
        self._held: dict[Row, Bucket | None] = {}  # None: known to be absent

    def get(self, key: Row, default: Any = None) -> Any:
        """The rows with a key: one pair, a bag, or the default."""
        try:
            bucket = self._held[key]
            self._shelf.hits += 1
        except KeyError:
            bucket = self._load(key)
        return default if bucket is None else bucket

    def _load(self, key: Row) -> Bucket | None:
        places = self._store.scan(self._number + _digest(key))
        rows: Bag = dict(marshal.loads(value) for _, value in places)
        bucket: Bucket | None = rows if len(rows) > 1 else next(iter(rows.items()), None)
        self._held[key] = bucket
        shelf = self._shelf
        shelf.loads += 1
        shelf.hold(_ROW + sum(map(_size, rows)))
        return bucket

    def put(self, key: Row, row: Row, count: int) -> None:
        """Add to the count of a row; remove the row at zero."""
        place = self._number + _digest(key) + _digest(row)
        found = self._store.get(place)
        total = count if found is None else marshal.loads(found)[1] + count
        if total:
            self._store.put(place, marshal.dumps((row, total)))
        else:
            self._store.delete(place)
        if key in self._held:
            self._held[key] = _moved(self._held[key], row, total)
            if found is None:
                self._shelf.hold(_size(row))

    def free(self) -> None:
        """Evict all buckets from memory."""
        self._held = {}

    # The rest of the dictionary interface --------------------------------------------------------

    def __contains__(self, key: object) -> bool:
        assert isinstance(key, tuple)
        return self.get(key) is not None

    def __getitem__(self, key: Row) -> Bucket:
        bucket: Bucket | None = self.get(key)
        if bucket is None:
            raise KeyError(key)
        return bucket

    def __setitem__(self, key: Row, bucket: Bucket) -> None:
        if key in self:
            del self[key]
        for row, count in bucket.items() if isinstance(bucket, dict) else (bucket,):
            self.put(key, row, count)

    def __delitem__(self, key: Row) -> None:
        self.pop(key)

    def pop(self, key: Row) -> Bucket:
        bucket = self[key]
        for row in list(bucket) if isinstance(bucket, dict) else (bucket[0],):
            self._store.delete(self._number + _digest(key) + _digest(row))
        self._held[key] = None
        return bucket

    def values(self) -> Iterator[tuple[Row, int]]:
        """Every row, as a separate bucket."""
        for _, value in list(self._store.scan(self._number)):
            yield marshal.loads(value)

    def __bool__(self) -> bool:
        return next(self._store.scan(self._number), None) is not None

    def __len__(self) -> int:
        """The number of rows (not of keys, which no caller needs)."""
        return sum(1 for _ in self._store.scan(self._number))

    def __del__(self) -> None:
        self._shelf.drop(self._number)


class StoredCounts:
    """A bag of rows with counts, in a store: the rows of a view that need no nodes."""

    def __init__(self, shelf: Shelf) -> None:
        self._index = shelf.index()

    def get(self, row: Row, default: int | None = None) -> int | None:
        bucket = self._index.get(row)
        return default if bucket is None else int(bucket[1])

    def __contains__(self, row: object) -> bool:
        return row in self._index

    def __bool__(self) -> bool:
        return bool(self._index)

    def __getitem__(self, row: Row) -> int:
        return int(self._index[row][1])  # type: ignore[index]

    def __setitem__(self, row: Row, count: int) -> None:
        self._index.put(row, row, count - (self.get(row) or 0))

    def __delitem__(self, row: Row) -> None:
        del self._index[row]

    def items(self) -> Iterator[tuple[Row, int]]:
        return self._index.values()

    def __iter__(self) -> Iterator[Row]:
        return (row for row, _ in self.items())

    def __len__(self) -> int:
        return len(self._index)


def counts_on(shelf: Shelf) -> Bag:
    """An empty bag in the store, typed as the bag that views use."""
    return cast(Bag, StoredCounts(shelf))


def _digest(row: Row) -> bytes:
    return blake2b(marshal.dumps(row, _PLAIN), digest_size=16).digest()


def _size(row: Row) -> int:
    return _ROW + sum(len(value) for value in row if type(value) is str)


def _moved(bucket: Bucket | None, row: Row, total: int) -> Bucket | None:
    """A bucket with a new count for one row."""
    if bucket is None:
        return (row, total) if total else None
    rows = bucket if isinstance(bucket, dict) else {bucket[0]: bucket[1]}
    if total:
        rows[row] = total
    else:
        rows.pop(row, None)
    return rows if len(rows) > 1 else next(iter(rows.items()), None)
