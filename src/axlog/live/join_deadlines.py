"""The deadlines of many joins in one heap, so that a message looks at few of them.

Every join has a heap of its own, which generated code fills. The earliest deadline of each join is
noted here after an update that touched the join. An entry may be out of date: the join is then
looked at once too often, never too late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from axlog.evaluate.joins import Row

if TYPE_CHECKING:
    from axlog.views.counting.join_prospects import Watch


FEW = 16
"""Joins that are all looked at after a message."""

Deadlines: TypeAlias = Sequence[tuple[float, int, Row]]
"""A heap of deadlines, each with the part and the row of a join."""


class JoinDeadlines:
    """The earliest deadlines of many joins. Few joins are all looked at: they have none here."""

    def __init__(self) -> None:
        self._numbers: dict[Watch, int] = {}
        self._heaps: list[Deadlines] = []
        self._due: list[tuple[float, int]] = []  # a heap of deadlines with the numbers of joins
        self._noted: list[float] = []  # by number, the earliest deadline in it

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def watch(self, timed: Sequence[tuple[Watch, Deadlines, Any]], few: int = FEW) -> None:
        """Watch these joins from now on, if they are more than a few; each has a heap."""
        many = timed if len(timed) > few else ()
        self._numbers = {join: number for number, (join, _, _) in enumerate(many)}
        self._heaps = [heap for _, heap, _ in many]
        self._due, self._noted = [], [inf] * len(many)
        self.note(range(len(many)))

    def note(self, numbers: Iterable[int]) -> None:
        """Note the earliest deadlines of joins, unless earlier ones are noted."""
        for number in numbers:
            heap = self._heaps[number]
            if heap and heap[0][0] < self._noted[number]:
                self._noted[number] = heap[0][0]
                heappush(self._due, (heap[0][0], number))

    def have_passed(self, clock: int) -> bool:
        """Whether a noted deadline is before a clock."""
        return bool(self._due) and self._due[0][0] < clock

    def concerned(self, clock: int, touched: Iterable[Watch] | None) -> Sequence[int]:
        """The numbers of the touched joins, and of those whose deadlines have passed.

        `touched`: None if it is not known. The caller must `note` the deadlines of these joins.
        """
        due, found = self._due, set[int]()
        while due and due[0][0] < clock:
            deadline, number = heappop(due)
            if deadline == self._noted[number]:
                self._noted[number] = inf
                found.add(number)
        if touched is None:
            return range(len(self._heaps))
        numbers = self._numbers
        found.update([numbers[join] for join in touched if join in numbers])
        return sorted(found)
