"""A kept relation: distinct rows of integers with counts, found by their key and by their nodes.

Rows are in slots of growing columns. A slot is found by all its values (mixed into one number) or,
through a reverse index, by the value of one column. A deletion therefore finds the rows that show a
node without reading the others. An index is a few sorted runs, of which the newest are small.
Entries of deleted rows are recognized by their slots, and removed when runs are merged. Views and
snowcaps keep their rows in relations.

Law: a relation is a bag, the sum of the tables added to it. A change costs its own rows times the
logarithm of the relation. The cost of merging runs is amortized over the rows that are added.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from axlog.evaluate.columns import Marked
from axlog.views.algebraic.tables import Column, Integers, Table, expanded

_GROWTH = 4
"""A run is merged with the next older run unless that is this many times as long."""
_LEAST_DEAD = 1024
_NO_SLOTS: Integers = np.empty(0, dtype=np.int64)


class SortedIndex:
    """From values to slots, in sorted runs; entries may be stale."""

    def __init__(self) -> None:
        self._runs: list[tuple[Integers, Integers]] = []

    def add(self, values: Integers, slots: Integers) -> None:
        if not len(values):
            return
        self._runs.append(_in_order(values, slots))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < _GROWTH * len(self._runs[-1][0]):
            newer, older = self._runs.pop(), self._runs.pop()
            merged = [np.concatenate(pair) for pair in zip(older, newer, strict=True)]
            self._runs.append(_in_order(*merged))

    def find(self, values: Integers) -> tuple[Integers, Integers]:
        """Pairs: the position of a requested value, and a slot that has or had it."""
        positions, slots = [], []
        for keys, places in self._runs:
            start = np.searchsorted(keys, values, "left")
            size = np.searchsorted(keys, values, "right") - start
            at, inside = expanded(size)
            positions.append(at)
            slots.append(places[start[at] + inside])
        if not positions:
            return _NO_SLOTS, _NO_SLOTS
        return np.concatenate(positions), np.concatenate(slots)

    def __len__(self) -> int:
        """The number of entries, those of deleted rows included."""
        return sum(len(keys) for keys, _ in self._runs)

    def renew(self, values: Integers, slots: Integers) -> None:
        """Replace all entries by these."""
        self._runs = []
        self.add(values, slots)


def _in_order(values: Integers, slots: Integers) -> tuple[Integers, Integers]:
    order = np.argsort(values, kind="stable")
    return values[order], slots[order]


class KeptRows(ABC):
    """Rows in slots with counts; a row with the count zero does not exist."""

    counts: Integers

    @abstractmethod
    def slots(self) -> Integers:
        """The slots that hold rows."""

    def clear(self) -> tuple[Integers, Integers, Integers]:
        """Set all counts to zero; return the slots, their old counts and their new counts."""
        slots = self.slots()
        old = self.counts[slots]
        self.counts[slots] = 0
        return slots, old, np.zeros(len(slots), dtype=np.int64)


class Relation(KeptRows):
    """Distinct rows with counts; a row with the count zero does not exist."""

    def __init__(self, columns: Sequence[Column], reverse: Sequence[Column] = ()) -> None:
        self.names = tuple(columns)
        self._columns: dict[Column, Integers] = {n: _NO_SLOTS.copy() for n in self.names}
        self.counts: Integers = _NO_SLOTS.copy()
        self._free: list[int] = []
        self._used = 0
        self._keys = SortedIndex()
        self._reverse: dict[Column, SortedIndex] = {name: SortedIndex() for name in reverse}
        self.looked_at = 0  # slots that lookups and scans have read

    def __len__(self) -> int:
        return self._used - len(self._free)

    def slots(self) -> Integers:
        """The slots that hold rows."""
        return np.flatnonzero(self.counts[: self._used])

    def values(self, name: Column, slots: Integers) -> Integers:
        return self._columns[name][slots]

    def table(self, slots: Integers | None = None) -> Table:
        """Rows as a table; all rows if no slots are given."""
        slots = self.slots() if slots is None else slots
        columns = {name: column[slots] for name, column in self._columns.items()}
        return Table(columns, self.counts[slots])

    # Finding --------------------------------------------------------------------------------------

    def find(self, table: Table) -> Integers:
        """The slot of each row of a table; -1 if it is absent."""
        found = np.full(len(table), -1, dtype=np.int64)
        positions, slots = self._keys.find(self._mixed(table))
        self.looked_at += len(slots)
        is_equal = self.counts[slots] != 0
        for name in self.names:
            is_equal &= self._columns[name][slots] == table.columns[name][positions]
        found[positions[is_equal]] = slots[is_equal]
        return found

    def with_value(self, name: Column, values: Integers) -> Integers:
        """The slots whose column has one of these values, by the reverse index."""
        return np.unique(self.pairs(name, values)[1])

    def pairs(self, name: Column, values: Integers) -> tuple[Integers, Integers]:
        """Positions of values and the slots that have them."""
        positions, slots = self._reverse[name].find(values)
        self.looked_at += len(slots)
        is_there = (self.counts[slots] != 0) & (self._columns[name][slots] == values[positions])
        positions, slots = positions[is_there], slots[is_there]
        if len(slots) < 2:
            return positions, slots
        mixed = np.unique(positions * (len(self.counts) + 1) + slots)  # a slot may be in two runs
        return np.divmod(mixed, len(self.counts) + 1)

    def joined(self, table: Table, on: Column, own: Column, more: Mapping[Column, Column]) -> Table:
        """A table joined with the rows whose column `own` has the value of the table's column `on`.

        `more` are the further columns: their names in the result, and in the relation.
        """
        positions, slots = self.pairs(own, table.columns[on])
        found = table.taken(positions, {name: self.values(n, slots) for name, n in more.items()})
        found.counts = found.counts * self.counts[slots]
        return found

    def scanned(self, name: Column, is_wanted: Marked) -> Integers:
        """The same slots by a scan of all rows, for comparison."""
        slots = self.slots()
        self.looked_at += len(slots)
        return slots[is_wanted[self._columns[name][slots]]]

    # Changing -------------------------------------------------------------------------------------

    def add(self, table: Table) -> tuple[Integers, Integers, Integers]:
        """Add counts to distinct rows; return their slots, old counts and new counts.

        Slots whose count reaches zero keep their values until `release`.
        """
        slots = self.find(table)
        is_new = slots < 0
        if is_new.any():
            slots[is_new] = self._entered(table.taken(is_new))
        old = np.where(is_new, 0, self.counts[slots])
        new = old + table.counts
        self.counts[slots] = new
        self._tidy()
        return slots, old, new

    def release(self, slots: Integers) -> None:
        """Free slots whose count is zero."""
        self._free += slots.tolist()

    def _entered(self, rows: Table) -> Integers:
        """Slots for new rows, with a count that marks them as used."""
        reused = [self._free.pop() for _ in range(min(len(self._free), len(rows)))]
        fresh = len(rows) - len(reused)
        slots = np.array([*reused, *range(self._used, self._used + fresh)], dtype=np.int64)
        self._used += fresh
        if self._used > len(self.counts):
            self._grow()
        for name in self.names:
            self._columns[name][slots] = rows.columns[name]
        self.counts[slots] = rows.counts
        self._keys.add(self._mixed(rows), slots)
        for name, index in self._reverse.items():
            index.add(rows.columns[name], slots)
        return slots

    def _grow(self) -> None:
        size = max(2 * len(self.counts), self._used, 64)
        self.counts = np.concatenate([self.counts, np.zeros(size - len(self.counts), np.int64)])
        for name, column in self._columns.items():
            self._columns[name] = np.concatenate([column, np.zeros(size - len(column), np.int64)])

    def _tidy(self) -> None:
        """Rebuild the indexes when most of their entries are of deleted rows."""
        if len(self._keys) < 2 * len(self) + _LEAST_DEAD:
            return
        slots = self.slots()
        rows = self.table(slots)
        self._keys.renew(self._mixed(rows), slots)
        for name, index in self._reverse.items():
            index.renew(rows.columns[name], slots)

    def _mixed(self, table: Table) -> Integers:
        """One number for each row; equal rows have equal ones."""
        mixed = np.zeros(len(table), dtype=np.int64)
        for name in self.names:
            mixed = mixed * 6364136223846793005 + table.columns[name]
        return mixed
