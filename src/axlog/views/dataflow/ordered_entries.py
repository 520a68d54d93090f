"""The entries of a collection in the order of one value, for comparisons by `<`, `<=`, `>`, `>=`.

A look-up asks for the entries whose value compares with its own: a range from one end. Numbers of
entries are differences of ranks, and sums are those of whole blocks of the index, so a look-up does
not read its entries. An update wakes the units whose answer it can change:

- a number of items: where the number of entries that came differs from the number that went
- whether there is an entry: between the extreme values before and after
- everything else: where an entry came or went
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from axlog.evaluate.items import Node
from axlog.query.plan import Index
from axlog.views.operators.ordered_index import OrderedIndex

if TYPE_CHECKING:
    from axlog.views.dataflow.groups import Entry
    from axlog.views.dataflow.units import Unit

Watched: TypeAlias = Literal["number", "existence", "items"]
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_WATCHED: dict[str, Watched] = {"count": "number", "exists": "existence", "empty": "existence"}


class OrderedEntries:
    """The entries of a collection by one value, and the units that compared a value with them."""

    def __init__(self, index: Index, outputs: int) -> None:
        self._operator = _OPPOSITE[index.operator] if index.is_negated else index.operator
        self._entries = OrderedIndex()  # by value and number
        self._numbers = count()
        self._keys: dict[Entry, tuple[Any, int]] = {}
        self._asked: dict[Watched, OrderedIndex] = {
            kind: OrderedIndex() for kind in ("number", "existence", "items")
        }
        self._moved: Counter[Any] = (
            Counter()
        )  # by value, the entries that came less those that went
        self._touched: set[Any] = set()  # the values of entries that came or went
        self._extreme: Any = None
        self._nodes: list[Counter[Node]] = [Counter() for _ in range(outputs)]
        self._several = [0] * outputs  # entries without exactly one item, and repeated nodes
        self._was_plain = True

    # Entries --------------------------------------------------------------------------------------

    def add(self, value: Any, entry: Entry) -> None:
        key = self._keys[entry] = (value, next(self._numbers))
        self._entries.add(key, entry, 1)
        self._note(value, entry, 1)

    def remove(self, value: Any, entry: Entry) -> None:
        self._entries.add(self._keys.pop(entry), entry, -1)
        self._note(value, entry, -1)

    def _note(self, value: Any, entry: Entry, sign: int) -> None:
        self._moved[value] += sign
        self._touched.add(value)
        for output, items in enumerate(entry.items):
            if len(items) != 1:
                self._several[output] += sign
            elif isinstance(items[0], Node):
                nodes = self._nodes[output]
                nodes[items[0]] += sign
                if nodes[items[0]] == (2 if sign > 0 else 1):
                    self._several[output] += sign
                if not nodes[items[0]]:
                    del nodes[items[0]]

    def is_plain(self, output: int) -> bool:
        """Whether every entry has one item, and no two entries have the same node."""
        return not self._several[output]

    # Look-ups -------------------------------------------------------------------------------------

    def number(self, asked: Any) -> int:
        """The number of entries whose value compares with the asked one."""
        low, high = self._range(asked)
        return high - low

    def found(self, asked: Any) -> list[Entry]:
        """These entries."""
        return [entry.item for entry in self._entries.entries(*self._range(asked))]

    def parts(self, asked: Any, summary: Callable[[list[Any]], Any]) -> Iterator[Any]:
        """These entries, those of whole blocks by one summary; one function for one collection."""
        return self._entries.parts(*self._range(asked), summary)

    def _range(self, asked: Any) -> tuple[int, int]:
        """The positions of the entries with `asked operator value`."""
        entries = self._entries
        if self._is_prefix:
            after = inf if self._operator == ">=" else -1
            return 0, entries.rank((asked, after))
        after = inf if self._operator == "<" else -1
        return entries.rank((asked, after)), len(entries)

    @property
    def _is_prefix(self) -> bool:
        return self._operator in (">", ">=")

    # Watching -------------------------------------------------------------------------------------

    def watch(self, unit: Unit, asked: Any, aspect: str) -> None:
        """Wake a unit when an aspect of the entries that it asked for changes."""
        index = self._asked[_WATCHED.get(aspect, "items")]
        units = index.get(asked)
        if units is None:
            units = {}
            index.add(asked, units, 1)
        units[unit] = None

    def unwatch(self, unit: Unit, asked: Any) -> None:
        for index in self._asked.values():
            units = index.get(asked)
            if units is not None and unit in units:
                del units[unit]
                if not units:
                    index.add(asked, units, -1)

    def settled(self) -> list[Unit]:
        """The units whose answers the update may have changed; the next update begins."""
        moved = {value: number for value, number in self._moved.items() if number}
        touched, before, was_plain = self._touched, self._extreme, self._was_plain
        self.begin()
        if not touched:
            return []
        nearest = min(touched) if self._is_prefix else max(touched)
        found = [*self._between("items", nearest, None)]
        if not was_plain or not self._was_plain:  # the numbers of entries do not tell
            found += self._between("number", nearest, None)
            found += self._between("existence", nearest, None)
            return found
        found += self._numbers_woken(moved)
        if before != self._extreme:
            ends = sorted(
                (value for value in (before, self._extreme) if value is not None),
                reverse=not self._is_prefix,
            )
            found += self._between("existence", ends[0], ends[1] if len(ends) > 1 else None)
        return found

    def begin(self) -> None:
        """Begin an update: what has moved so far is known to all units."""
        self._touched = set()
        self._moved = Counter()
        self._extreme = self._reach()
        self._was_plain = not any(self._several)

    def _reach(self) -> Any:
        """The value that decides whether a look-up finds an entry; None without entries."""
        if not len(self._entries):
            return None
        item = self._entries.at(0) if self._is_prefix else self._entries.last()
        return item.key[0]

    def _numbers_woken(self, moved: dict[Any, int]) -> Iterator[Unit]:
        values = sorted(moved, reverse=not self._is_prefix)
        total = 0
        for value, following in pairwise([*values, None]):
            total += moved[value]
            if total:
                yield from self._between("number", value, following)

    def _between(self, kind: Watched, near: Any, far: Any) -> Iterator[Unit]:
        """The units that find an entry at the near value, if that is given, and none at the far.

        Values are near if look-ups with few entries find them.
        """
        index = self._asked[kind]
        if self._is_prefix:
            after = self._operator == ">"
            low = 0 if near is None else index.rank(near, after=after)
            high = len(index) if far is None else index.rank(far, after=after)
        else:
            after = self._operator == "<="
            high = len(index) if near is None else index.rank(near, after=after)
            low = 0 if far is None else index.rank(far, after=after)
        for entry in index.entries(low, high):
            yield from entry.item
