"""Sort keys in reverse. `evaluate/sort_keys.py` has the keys of values."""

from __future__ import annotations

from typing import Any


class Descending:
    """A sort key in reverse.

    >>> sorted([("a", 1), ("b", 2), ("c", 1)], key=lambda row: (Descending(row[1]), row[0]))
    [('b', 2), ('a', 1), ('c', 1)]
    """

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)
