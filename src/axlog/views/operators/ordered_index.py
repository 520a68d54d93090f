"""An ordered index: a bag of items in the order of their keys."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

BLOCK = 512
"""Entries of a block from which it is split in two."""


class Entry(NamedTuple):
    """One entry of an index."""

    key: Any
    item: Any
    total: int  # its count


class OrderedIndex:
    """Items with counts, in the order of their keys; equal keys have equal items.

    The entries are in blocks of at most `BLOCK`, and a binary indexed tree holds the number of
    entries of the blocks. So an insertion or deletion shifts one block, and a position is found in
    the logarithm of the number of blocks. The tree is made when a position is first asked for, and
    again when blocks were split or joined.
    """

    __slots__ = ("_counts", "_items", "_keys", "_lasts", "_notes", "_size", "_tree")

    def __init__(self) -> None:
        self._keys: list[list[Any]] = []
        self._items: list[list[Any]] = []
        self._counts: list[list[int]] = []
        self._lasts: list[Any] = []  # the last key of each block
        self._size = 0
        self._tree: list[int] | None = None
        self._notes: dict[int, Any] = {}  # the summaries of blocks, by the identity of their keys

    def __len__(self) -> int:
        """The number of different keys."""
        return self._size

    def add(self, key: Any, item: Any, count: int) -> int:
        """Add to the count of an item, and return its new count; at zero it is removed."""
        lasts = self._lasts
        at = bisect_left(lasts, key)
        if at == len(lasts):
            if not at:
                self._keys.append([key])
                self._items.append([item])
                self._counts.append([count])
                lasts.append(key)
                self._size, self._tree = 1, None
                return count
            at -= 1
            keys = self._keys[at]
            place = len(keys)
            lasts[at] = key
        else:
            keys = self._keys[at]
            place = bisect_left(keys, key)
            if keys[place] == key:
                counts = self._counts[at]
                total = counts[place] + count
                if self._notes:
                    self._notes.pop(id(keys), None)
                if total:
                    counts[place] = total
                else:
                    self._remove(at, place)
                return total
        if self._notes:
            self._notes.pop(id(keys), None)
        keys.insert(place, key)
        self._items[at].insert(place, item)
        self._counts[at].insert(place, count)
        self._size += 1
        if len(keys) > BLOCK:
            self._split(at)
        elif self._tree is not None:
            self._shift(at, 1)
        return count

    def first(self, count: int) -> OrderedIndex:
        """An index of the first entries alone."""
        found = OrderedIndex()
        for entry in list(self.entries(0, count)):
            found.add(*entry)
        return found

    def get(self, key: Any, *, to_change: bool = False) -> Any:
        """The item with this key; None if there is none. `to_change`: the caller will change it."""
        at, place = self._locate(key, after=False)
        if at == len(self._keys) or self._keys[at][place] != key:
            return None
        if to_change and self._notes:
            self._notes.pop(id(self._keys[at]), None)
        return self._items[at][place]

    def last(self) -> Entry:
        """The entry with the greatest key."""
        return Entry(self._keys[-1][-1], self._items[-1][-1], self._counts[-1][-1])

    @property
    def last_key(self) -> Any:
        """The greatest key."""
        return self._lasts[-1]

    @property
    def first_item(self) -> Any:
        """The item with the least key."""
        return self._items[0][0]

    @property
    def last_item(self) -> Any:
        """The item with the greatest key."""
        return self._items[-1][-1]

    def rank(self, key: Any, *, after: bool = False) -> int:
        """The number of keys less than this one; `after`: less or equal."""
        at, place = self._locate(key, after)
        return self._before(at) + place

    def at(self, position: int) -> Entry:
        """The entry at a position, from 0."""
        at, place = self._find(position)
        return Entry(self._keys[at][place], self._items[at][place], self._counts[at][place])

    def key_at(self, position: int) -> Any:
        """The key at a position, from 0."""
        at, place = self._find(position)
        return self._keys[at][place]

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """The entries in order, between two positions; the index must not change meanwhile."""
        left = min(self._size, self._size if stop is None else stop) - start
        if left <= 0:
            return
        at, place = self._find(start)
        while left > 0:
            end = place + left
            columns = (self._keys[at], self._items[at], self._counts[at])
            yield from map(Entry, *(column[place:end] for column in columns))
            left -= len(self._keys[at]) - place
            at, place = at + 1, 0

    def parts(self, start: int, stop: int, summarise: Callable[[list[Any]], Any]) -> Iterator[Any]:
        """The items between two positions, in order: those of whole blocks by one summary.

        The summaries are kept until their block changes. The same function must always be given.
        """
        left = min(stop, self._size) - start
        if left <= 0:
            return
        at, place = self._find(start)
        while left > 0:
            items = self._items[at]
            if place or len(items) > left:
                yield from items[place : place + left]
            else:
                note = id(self._keys[at])
                if note not in self._notes:
                    self._notes[note] = summarise(items)
                yield self._notes[note]
            left -= len(items) - place
            at, place = at + 1, 0

    def _find(self, position: int) -> tuple[int, int]:
        """The block of a position, and the place in it."""
        if position < len(self._keys[0]):
            return 0, position
        last = len(self._keys) - 1
        if position >= self._size - len(self._keys[last]):
            return last, position - self._size + len(self._keys[last])
        tree = self._tree or self._build()
        at, step = 0, 1 << (len(tree) - 1).bit_length() - 1
        while step:
            more = at + step
            if more < len(tree) and tree[more] <= position:
                at = more
                position -= tree[at]
            step >>= 1
        return at, position

    def _locate(self, key: Any, after: bool) -> tuple[int, int]:
        """The block and the place in it of the first key that is not less; `after`: greater."""
        bisect = bisect_right if after else bisect_left
        at = bisect(self._lasts, key)
        return (at, 0) if at == len(self._lasts) else (at, bisect(self._keys[at], key))

    def _remove(self, at: int, place: int) -> None:
        keys = self._keys[at]
        del keys[place], self._items[at][place], self._counts[at][place]
        self._size -= 1
        if not keys:
            self._drop(at)
            return
        if place == len(keys):
            self._lasts[at] = keys[-1]
        if self._tree is not None:
            self._shift(at, -1)
        if len(keys) < BLOCK // 4:
            if at + 1 < len(self._keys) and len(keys) + len(self._keys[at + 1]) < BLOCK // 2:
                self._join(at)
            elif at and len(keys) + len(self._keys[at - 1]) < BLOCK // 2:
                self._join(at - 1)

    def _join(self, at: int) -> None:
        """Append the next block to a block."""
        self._notes.pop(id(self._keys[at]), None)
        for column in (self._keys, self._items, self._counts):
            column[at] += column[at + 1]
        self._lasts[at] = self._lasts[at + 1]
        self._drop(at + 1)

    def _drop(self, at: int) -> None:
        self._notes.pop(id(self._keys[at]), None)
        del self._keys[at], self._items[at], self._counts[at], self._lasts[at]
        self._tree = None

    def _split(self, at: int) -> None:
        half = len(self._keys[at]) // 2
        for column in (self._keys, self._items, self._counts):
            column.insert(at + 1, column[at][half:])
            del column[at][half:]
        self._lasts.insert(at, self._keys[at][-1])
        self._tree = None

    # Positions: a binary indexed tree over the sizes of the blocks ------------------------------

    def _build(self) -> list[int]:
        tree = [0, *map(len, self._keys)]
        for at in range(1, len(tree)):
            above = at + (at & -at)
            if above < len(tree):
                tree[above] += tree[at]
        self._tree = tree
        return tree

    def _shift(self, at: int, by: int) -> None:
        tree = self._tree
        assert tree is not None
        at += 1
        while at < len(tree):
            tree[at] += by
            at += at & -at

    def _before(self, at: int) -> int:
        """The number of entries in the blocks before one."""
        if not at:
            return 0
        tree = self._tree or self._build()
        total = 0
        while at:
            total += tree[at]
            at -= at & -at
        return total
