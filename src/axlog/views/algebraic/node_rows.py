"""The rows of a view that one node identifies: a slot for each row, found by the node's handle.

Most views are of this kind, and all XPath views are. Handles are small integers, so no search is
needed: a column, indexed by handle, holds the slot of the row of a node. Its pages are touched only
where there are rows. The interface and the law are those of `Relation`, which keeps rows of
several nodes or of values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axlog.evaluate.columns import Handles, Marked
from axlog.views.algebraic.relation import KeptRows, Relation
from axlog.views.algebraic.shape import Shape
from axlog.views.algebraic.tables import Column, Integers, Table

_LEAST = 64
FEW = 4
"""Up to this many rows are processed one by one."""


class NodeRows(KeptRows):
    """Distinct nodes with counts; a row with the count zero does not exist."""

    def __init__(self, column: Column, handles: int = 0) -> None:
        self.names = (column,)
        self._column = column
        self._nodes: Integers = np.zeros(_LEAST, dtype=np.int64)
        self.counts: Integers = np.zeros(_LEAST, dtype=np.int64)
        self._slot_of: Handles = np.zeros(
            _LEAST, dtype=np.int32
        )  # by handle: the slot and one more
        self._used = 0
        self._free: list[Integers] = []
        self._holes = 0
        self.looked_at = 0  # slots that lookups and scans have read

    def __len__(self) -> int:
        return self._used - self._holes

    def slots(self) -> Integers:
        """The slots that hold rows."""
        if not self._holes:
            return np.arange(self._used)
        return np.flatnonzero(self.counts[: self._used])

    def values(self, name: Column, slots: Integers) -> Integers:
        return self._nodes[slots]

    def table(self, slots: Integers | None = None) -> Table:
        """Rows as a table; all rows if no slots are given."""
        slots = self.slots() if slots is None else slots
        return Table({self._column: self._nodes[slots]}, self.counts[slots])

    # Finding --------------------------------------------------------------------------------------

    def find(self, table: Table) -> Integers:
        """The slot of each row of a table; -1 if it is absent."""
        nodes = table.columns[self._column]
        self.looked_at += len(nodes)
        return self._slots_of(nodes).astype(np.int64) - 1

    def with_value(self, name: Column, values: Integers) -> Integers:
        """The slots of the rows of these nodes."""
        found = self._slots_of(values)
        slots: Integers = found[found > 0].astype(np.int64) - 1
        self.looked_at += len(slots)
        return slots

    def scanned(self, name: Column, is_wanted: Marked) -> Integers:
        """The same slots by a scan of all rows, for comparison."""
        slots = self.slots()
        self.looked_at += len(slots)
        return slots[is_wanted[self._nodes[slots]]]

    def _slots_of(self, nodes: Integers) -> Handles:
        if len(nodes) and int(nodes.max()) >= len(self._slot_of):
            self._reach(int(nodes.max()))
        found: Handles = self._slot_of[nodes]
        return found

    def _reach(self, highest: int) -> None:
        """Grow the column of slots; unwritten pages take no memory."""
        longer = np.zeros(2 * (highest + _LEAST), dtype=np.int32)
        longer[: len(self._slot_of)] = self._slot_of
        self._slot_of = longer

    # Changing -------------------------------------------------------------------------------------

    def add(self, table: Table) -> tuple[Integers, Integers, Integers]:
        """Add counts to distinct rows; return their slots, old counts and new counts.

        Slots whose count reaches zero keep their values until `release`.
        """
        if len(table) <= FEW:
            return self._add_few(table)
        slots = self.find(table)
        is_new = slots < 0
        if is_new.all():
            slots = self._entered(table.columns[self._column])
            self.counts[slots] = table.counts
            return slots, np.zeros(len(slots), dtype=np.int64), table.counts
        if is_new.any():
            slots[is_new] = self._entered(table.columns[self._column][is_new])
        old = self.counts[slots]
        new = old + table.counts
        self.counts[slots] = new
        return slots, old, new

    def _add_few(self, table: Table) -> tuple[Integers, Integers, Integers]:
        """`add`, row by row."""
        nodes, moved = table.columns[self._column].tolist(), table.counts.tolist()
        if max(nodes, default=0) >= len(self._slot_of):
            self._reach(max(nodes))
        self.looked_at += len(nodes)
        slots, old = [], []
        for node, count in zip(nodes, moved, strict=True):
            slot = int(self._slot_of[node]) - 1
            if slot < 0:
                slot = self._one_taken()
                self._nodes[slot], self._slot_of[node] = node, slot + 1
            slots.append(slot)
            old.append(int(self.counts[slot]))
            self.counts[slot] += count
        was = np.array(old, dtype=np.int64)
        return np.array(slots, dtype=np.int64), was, was + table.counts

    def enter(self, nodes: Sequence[int], counts: Sequence[int]) -> list[int]:
        """Add rows for nodes that have none; their slots."""
        if max(nodes, default=0) >= len(self._slot_of):
            self._reach(max(nodes))
        self.looked_at += len(nodes)
        if len(nodes) > FEW:
            slots = self._entered(np.array(nodes, dtype=np.int64))
            self.counts[slots] = counts
            return list(slots.tolist())
        found = []
        for node, count in zip(nodes, counts, strict=True):
            slot = self._one_taken()
            self._nodes[slot], self._slot_of[node], self.counts[slot] = node, slot + 1, count
            found.append(slot)
        return found

    def _entered(self, nodes: Integers) -> Integers:
        """Slots for new rows, with the count zero."""
        slots = self._taken(len(nodes))
        self._nodes[slots] = nodes
        self._slot_of[nodes] = slots + 1
        return slots

    def _one_taken(self) -> int:
        if self._free:
            return int(self._taken(1)[0])
        self._used += 1
        if self._used > len(self.counts):
            self._grow()
        return self._used - 1

    def _taken(self, count: int) -> Integers:
        found: list[Integers] = []
        while self._free and count:
            last = self._free.pop()
            if len(last) > count:
                self._free.append(last[count:])
                last = last[:count]
            found.append(last)
            count -= len(last)
            self._holes -= len(last)
        if count:
            found.append(np.arange(self._used, self._used + count))
            self._used += count
            if self._used > len(self.counts):
                self._grow()
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _grow(self) -> None:
        size = 2 * self._used
        for name in ("counts", "_nodes"):
            longer = np.zeros(size, dtype=np.int64)
            longer[: len(getattr(self, name))] = getattr(self, name)
            setattr(self, name, longer)

    def release(self, slots: Integers) -> None:
        """Free slots whose count is zero."""
        if len(slots) == len(self):  # all rows: start again
            self._slot_of = np.zeros(_LEAST, dtype=np.int32)
            self._free, self._used, self._holes = [], 0, 0
        elif len(slots):
            self._slot_of[self._nodes[slots]] = 0
            self._free.append(slots)
            self._holes += len(slots)


Rows = Relation | NodeRows
"""The storage of the rows of a view."""


def rows_of(shape: Shape, handles: int) -> Rows:
    """The storage of the rows of a view, over a document with `handles` handles."""
    reverse = [column for column in shape.key if column.kind == "node"]
    if len(shape.key) == len(reverse) == 1:
        return NodeRows(reverse[0], handles)
    return Relation(shape.key, reverse)
