"""The moments at which time alone changes rows of members: one heap for all members of a family.

    a row is handed to a member   its next moment goes to the heap, if it is sooner than before
    the clock passes a moment     the members that have it advance; the others are not looked at

A member that is not looked at is behind the clock. It catches up before it gets a row: nothing
happens in between.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING

from axlog.document.tree import Tree
from axlog.views.change import Change

if TYPE_CHECKING:
    from axlog.views.family import Member
    from axlog.views.view import MaintainedView


class MemberMoments:
    """The next moments of the members of one family."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._heap: list[tuple[int, int, Member]] = []
        self._noted: dict[Member, int] = {}  # the first moment of a member in the heap
        self._number = 0  # members cannot be compared
        self._passed: float = -inf  # a clock that the document is about to have

    @property
    def clock(self) -> int:
        """The clock that members have caught up with."""
        return int(max(self._tree.clock, self._passed))

    def note(self, member: Member) -> None:
        """Note the next moment of a member, which has a view."""
        assert member.view is not None
        moment = member.view.maintainer.next_moment()
        if moment is not None and moment < self._noted.get(member, inf):
            self._noted[member] = moment
            self._number += 1
            heappush(self._heap, (moment, self._number, member))

    def forget(self, member: Member) -> None:
        """Forget a member."""
        self._noted.pop(member, None)

    def next(self) -> int | None:
        """The first moment of any member after the clock; None: there is none."""
        heap, noted = self._heap, self._noted
        while heap and noted.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def passed(self, clock: int) -> list[tuple[MaintainedView, list[Change]]]:
        """Advance the members that have a moment up to a clock; return their changes, numbered."""
        found: list[tuple[MaintainedView, list[Change]]] = []
        while (moment := self.next()) is not None and moment <= clock:
            member = heappop(self._heap)[2]
            del self._noted[member]
            view = member.opened()
            changes = view.passed(clock)
            if changes:
                found.append((view, changes))
            self.note(member)
        self._passed = clock
        return found
