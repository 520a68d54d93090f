"""Rows of a join that only a row of the same instant can complete.

Most such rows never meet one. They are added to the table of their part when another row arrives at
the same instant, or when the table is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappush

from axlog.document.tree import Tree
from axlog.evaluate.joins import Row
from axlog.views.operators.table import Table

Follow = Callable[[int, Row, int], None]
"""Follows the rows of parts with deadlines that are kept, or dropped (below zero)."""


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
        """Parts, rows and counts that are not in the tables yet."""
        self._clock = tree.clock
        self._count_dropped = count_dropped

    def add(self, part: int, row: Row, count: int) -> None:
        """Note an arriving row."""
        if self.rows and self._clock != self._tree.clock:
            self._forget()
        self.rows.append((part, row, count))
        self._clock = self._tree.clock

    def _forget(self) -> None:
        self._count_dropped(len(self.rows))
        self.rows.clear()

    def settle(self) -> None:
        """Add the rows to the tables, before these are read."""
        if self._clock != self._tree.clock:
            self._forget()
            return
        for part, row, count in self.rows:
            heappush(self._deadlines, (self._clock, part, row))
            self._tables[part].add(row, count)
            for follow in self._followers:
                follow(part, row, count)
        self.rows.clear()
