"""The join of a family with three or more parts, or with `not`, as it is for each member.

A way of the join that all members share (`counting/join_outlook.py`) is a way of the members whose
constants its rows pass: parts that it leaves to streams may still bring a row for any of them. So
the ways that end at the shared join are those that end for some member, and each member is asked
whether the row that such a way shows may still come: by the rows that pass its own constants.

One thing differs between members. A key value that arrives with one constant is used up for the
members with another, although the shared join has a row with it (`JoinWatch.distinguish`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axlog.evaluate.joins import Row
from axlog.views.change import Change
from axlog.views.change import Row as ShownRow
from axlog.views.counting.clock_prospects import clock_prospects
from axlog.views.counting.join_outlook import Bound, Way
from axlog.views.counting.join_prospects import JoinProspects
from axlog.views.counting.join_watch import EndedWay, JoinWatch
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.member_watch import MemberWatch
from axlog.views.counting.stepped import SteppedCounting
from axlog.views.family import FamilyCounting, Member
from axlog.views.part_members import PartMembers


class FamilyWatch:
    """The members of a family, by the ways of their join."""

    def __init__(self, kept: FamilyCounting, waiting: JoinWatch) -> None:
        self.waiting, self._kept = waiting, kept
        self._parts: list[PartMembers[Member]] = [
            PartMembers(kept.parameters, part.columns) for part in waiting.inputs.parts
        ]
        for each, table in zip(self._parts, waiting.live, strict=True):
            if each.text_at:
                table.index(each.text_at)  # before joins are generated
        waiting.notes_rows = waiting.notes_rows or kept.awaits_time
        waiting.distinguish(part for part, each in enumerate(self._parts) if each.numbers)
        for member in kept.members.values():
            self.admit(member)

    def admit(self, member: Member) -> None:
        """Add a member."""
        for part in self._parts:
            part.add(member, member.constants)

    def dismiss(self, member: Member) -> None:
        """Remove a member."""
        for part in self._parts:
            part.remove(member, member.constants)

    def has_stopped(self, member: Member, part: int | None, is_after: bool) -> bool:
        """Return False: the way that leaves all parts to streams ends like every other."""
        return False

    def never(self, ended: Iterable[EndedWay]) -> dict[Member, list[Change]]:
        """The `never` changes of members, for ways that ended."""
        concerned: dict[Member, list[EndedWay]] = {}
        for each in ended:
            for member in self._members_of(each.way):
                concerned.setdefault(member, []).append(each)
        left = self._left() if concerned and self.waiting.has_absences else {}
        found: dict[Member, list[Change]] = {}
        for member, ways in concerned.items():
            prospects = self.prospects(member)
            prospects.take(left.get(member.name, ()))
            changes = prospects.never(ways)
            if changes:
                found[member] = changes
        return found

    def _members_of(self, way: Way) -> Sequence[Member]:
        """The members whose constants the rows of a way pass."""
        found: Sequence[Member] | None = None
        for part in way.taken:
            if self._parts[part].numbers:
                mine = self._parts[part].find(self._row(part, way.bound))
                known = found if found is None else set(found)
                found = mine if known is None else [each for each in mine if each in known]
        return list(self._kept.members.values()) if found is None else found

    def _row(self, part: int, bound: Bound) -> Row:
        return tuple([bound[column] for column in self.waiting.inputs.parts[part].columns])

    def _left(self) -> dict[str, list[Change]]:
        """The changes of members in this update, by name."""
        found: dict[str, list[Change]] = {}
        for view, moved in self._kept.emitted:
            changes = [] if isinstance(moved, ShownRow) else moved
            found.setdefault(view.name, []).extend(changes)
        return found

    def prospects(self, member: Member) -> JoinProspects:
        """The future rows of a member."""
        view = member.opened()
        kept, tests = view.maintainer, [part.test(member.constants) for part in self._parts]
        waiting = MemberWatch(self.waiting, tests)
        if isinstance(kept, SteppedCounting):
            return clock_prospects(kept, waiting, view.query)
        assert isinstance(kept, Counting)
        return JoinProspects(kept, waiting)
