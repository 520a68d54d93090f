"""Deadlines of members of families, for rows that wait in the join that the members share.

The join has a deadline for each of its rows. A member with a shorter duration has an earlier one
(`views/family_join.py`). When it passes, the row is recorded as ended, and waits on for the others.

    a row arrives          the first deadline of a member that is left goes to the heap of the join,
                           once, however many members wait for the row (`views/member_limits.py`)
    this deadline passes   the row is recorded; the next one goes to the heap
    the row is dropped     the record has the last deadline that had passed
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from math import inf
from typing import Protocol

from axlog.document.tree import Tree
from axlog.evaluate.joins import Row
from axlog.future.garbage import TimePassed
from axlog.views.counting.brief_rows import Follow
from axlog.views.counting.ended_rows import Ended
from axlog.views.operators.table import Table

NextDeadline = Callable[[int, Row, float], "float | None"]
"""The first deadline of a member for a row of a part that is after another one; None: none is."""


class Join(Protocol):
    """The join of one family or several."""

    tree: Tree
    live: list[Table]
    heap: list[tuple[float, int, Row]]
    ended: list[Ended]
    arrivals: list[Callable[[Row], float]]
    followers: list[Follow]

    def deadline(self, part: int, row: Row) -> int | None:
        """The deadline of a row for the join itself."""


class MemberDeadlines:
    """The deadlines of the members that share one join."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._families: dict[object, NextDeadline] = {}
        self._passed: tuple[dict[Row, float], ...] = {}, {}
        """Of each part, rows that wait, with the last deadline of a member that has passed."""
        self._noted: tuple[dict[Row, float], ...] = {}, {}
        """Of each part, rows that wait, with the deadline of a member that is in the heap."""
        join.followers.append(self._follow)

    def start(self) -> None:
        """Note the deadlines for all rows that wait; the heap of the join has none of them."""
        for each in (*self._passed, *self._noted):
            each.clear()
        for part, table in enumerate(self._join.live):
            for row in table.rows():
                self.note(part, row)

    def add(self, family: object, following: NextDeadline) -> None:
        """Take the deadlines of a family's members, and note them for all rows that wait."""
        self._families[family] = following
        self.start()

    def _following(self, part: int, row: Row, after: float) -> float | None:
        """The first deadline of a member of any family."""
        found = [each(part, row, after) for each in self._families.values()]
        return min((limit for limit in found if limit is not None), default=None)

    def _follow(self, part: int, row: Row, count: int) -> None:
        if count > 0:
            self.note(part, row)
        elif not self._join.live[part].count(row):
            self._passed[part].pop(row, None)
            self._noted[part].pop(row, None)

    def note(self, part: int, row: Row) -> None:
        """Note the deadlines for a row that waits, those of new members among them."""
        clock = self._join.tree.clock
        first = self._following(part, row, -inf)
        if first is not None and first < clock:  # it comes too late for some
            self._passed[part][row] = max(self.passed(part, row), clock - 1)
        self._note_after(part, row, clock - 1)

    def _note_after(self, part: int, row: Row, passed: float) -> None:
        limit, own = self._following(part, row, passed), self._join.deadline(part, row)
        if limit is None or (own is not None and limit >= own):
            self._noted[part].pop(row, None)
        elif self._noted[part].get(row) != limit:
            self._noted[part][row] = limit
            heappush(self._join.heap, (limit, part, row))

    def passed(self, part: int, row: Row) -> float:
        """The last deadline of a member for a row that has passed; -inf: none has."""
        return self._passed[part].get(row, -inf)

    def take(self, limit: float, part: int, row: Row, clock: int) -> bool:
        """Take a deadline that has passed from the heap; False: it is that of the join itself."""
        join = self._join
        if limit == join.deadline(part, row):
            return False
        if self._noted[part].get(row) == limit and join.live[part].count(row):
            if limit > max(join.arrivals[part](row), self.passed(part, row)):
                join.ended.append(Ended(part, row, TimePassed(clock), int(limit)))
                self._passed[part][row] = limit
            self._note_after(part, row, limit)
        return True
