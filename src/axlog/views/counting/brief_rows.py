"""Rows of a join that only a row of the same instant can complete.

Most such rows never meet one. They are added to the table of their part when another row arrives at
the same instant, or when the table is read. They leave it before anything of a later instant
reads the table: whether somebody has read it meanwhile changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappush

from axlog.document.tree import Tree
from axlog.evaluate.joins import Row
from axlog.views.operators.table import Table

Follow = Callable[[int, Row, int], None]
"""Follows the rows of parts with deadlines that are kept, or dropped (below zero)."""

_MARKS = ((0, (), 0), (1, (), 0))
"""In `BriefRows.rows` while rows are in the tables: readers of either part then call `settle`."""


class BriefRows:
    """The rows of one join that wait for this instant only."""

    def __init__(
        self,
        tree: Tree,
        tables: Sequence[Table],
        deadlines: list[tuple[float, int, Row]],
        followers: Sequence[Follow],
        count_dropped: Callable[[int], None],
    ) -> None:
        self._tree = tree
        self._tables, self._deadlines, self._followers = tables, deadlines, followers
        self.rows: list[tuple[int, Row, int]] = []
        """Parts, rows and counts that are not in the tables yet, and `_MARKS`; empty: none wait."""
        self._placed: list[tuple[int, Row]] = []  # the rows that are in the tables
        self._clock = tree.clock
        self._count_dropped = count_dropped

    def add(self, part: int, row: Row, count: int) -> None:
        """Note an arriving row."""
        if self.rows and self._clock != self._tree.clock:
            self._forget()
        self.rows.append((part, row, count))
        self._clock = self._tree.clock

    def place(self, part: int, row: Row) -> None:
        """Note a row that is in its table, and among the deadlines."""
        if self.rows and self._clock != self._tree.clock:
            self._forget()
        if not self._placed:
            self.rows[:0] = _MARKS
        self._placed.append((part, row))
        self._clock = self._tree.clock

    def clear(self) -> None:
        """Forget which rows wait for this instant only; the tables stay as they are."""
        self.rows.clear()
        self._placed.clear()

    def settle(self) -> None:
        """Add the rows to the tables before these are read, or remove those of earlier instants."""
        if self._clock != self._tree.clock:
            self._forget()
            return
        fresh = [each for each in self.rows if each[2]]
        if not fresh:
            return
        for part, row, count in fresh:
            heappush(self._deadlines, (self._clock, part, row))
            self._tables[part].add(row, count)
            for follow in self._followers:
                follow(part, row, count)
            self._placed.append((part, row))
        self.rows[:] = _MARKS

    def _forget(self) -> None:
        if not self._placed:  # there are no marks
            self._count_dropped(len(self.rows))
            self.rows.clear()
            return
        dropped = sum(1 for each in self.rows if each[2])
        for part, row in self._placed:
            count = self._tables[part].remove(row)
            if count:
                dropped += 1
                for follow in self._followers:
                    follow(part, row, -count)
        self._count_dropped(dropped)
        self.clear()
