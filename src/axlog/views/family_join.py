"""The two-way join of a family, as it is for each member.

`FamilyJoin` judges for each member what ended at the join of the general pattern: as the join of
the member alone would, with the rows that pass the member's constants. With durations, the general
pattern has weaker bounds (`query/generalize.py`), so a row may wait longer in the join than it
waits for a member: the join gets the deadlines of members besides its own.

Families whose parameters are texts of the one part whose rows wait need none of this: the `never`
changes of the general view have the texts of the members that they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from axlog.evaluate.joins import Bag, Row, picker
from axlog.future.garbage import Pair, Side, TimePassed, rebound
from axlog.future.join_inputs import rebound_inputs
from axlog.future.truth import column_of
from axlog.query.compile import Column, Test
from axlog.query.generalize import Duration, ParameterValue
from axlog.query.pattern import TimeConstraint
from axlog.views.change import Change, never_change
from axlog.views.change import Row as ShownRow
from axlog.views.counting.ended_rows import Ended
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.member_deadlines import MemberDeadlines
from axlog.views.counting.member_rows import MemberRows
from axlog.views.counting.prospects import Prospects
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.family import FamilyCounting, Member
from axlog.views.member_limits import MemberLimits
from axlog.views.operators.table import Table
from axlog.views.part_members import PartMembers

Bounds = tuple[ParameterValue, ...]
"""The durations of a member, in the order of the parameters."""


class _Group:
    """The members with the same constants."""

    __slots__ = ("bounds", "members")

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.members: dict[Member, None] = {}


class _Whole(NamedTuple):
    """Rows of a part that have all values of a member's row."""

    shown: Callable[[Row], Row]
    bound: Callable[[Row], Row]
    comes_once: bool  # whether no other row of the part shows the same


def _whole_row(kept: FamilyCounting, side: Side, shown: Sequence[Column]) -> _Whole | None:
    """The values of a member's row in the rows of a part; None: they have not all of them."""
    root, columns = kept.member_program.root.columns, side.columns
    if not {*shown, *root} <= set(columns):
        return None
    return _Whole(
        picker([columns.index(column) for column in shown]),
        picker([columns.index(column) for column in root]),
        side.key is not None and columns[side.key[0]] in shown,
    )


def shows_each_once(kept: FamilyCounting, pair: Pair) -> bool:
    """Whether rows of both parts have all values of a member's row, and no other row shows them.

    What ends is then judged without looking at other rows.
    """
    shown = [column_of(output) for output in kept.member_pattern.outputs]
    found = [_whole_row(kept, side, shown) for side in pair.sides]
    return all(each is not None and each.comes_once for each in found)


class FamilyJoin:
    """The members of a family, by the rows that wait for them."""

    def __init__(self, kept: FamilyCounting, waiting: WaitingRows, part: int | None) -> None:
        """`part`: the part whose rows wait; None: rows of both do."""
        self.waiting = waiting
        self._kept = kept
        self._waits = range(2) if part is None else (part,)  # the parts whose rows wait
        parameters, sides = kept.parameters, waiting.pair.sides
        self._durations = [n for n, each in enumerate(parameters) if isinstance(each, Duration)]
        self._sides: list[PartMembers[_Group]] = [
            PartMembers(parameters, side.columns) for side in sides
        ]
        shown = [column_of(output) for output in kept.member_pattern.outputs]
        for side, mine, table in zip(sides, self._sides, waiting.live, strict=True):
            at = tuple(sorted(side.columns.index(c) for c in set(shown) if c in side.columns))
            for positions in (mine.text_at, at):
                if positions:  # before joins are generated: they fill the existing indexes
                    table.index(positions)
        self._whole = [_whole_row(kept, side, shown) for side in sides]
        self._pairs: dict[Bounds, Pair] = {}
        self._groups: dict[Bounds, _Group] = {}
        self._limits: dict[int, MemberLimits[_Group]] = {}
        """By part, with durations: the members that its rows wait for."""
        if self._durations:
            self._limits = {part: MemberLimits(self._sides[part]) for part in self._waits}
        for member in kept.members.values():
            self._add(member)
        self._noted: MemberDeadlines | None = None
        if self._limits:
            self._noted = waiting.follow_members(kept, self._next)

    # Members --------------------------------------------------------------------------------------

    def _bounds(self, member: Member) -> Bounds:
        return tuple([member.constants[n] for n in self._durations])

    def _add(self, member: Member) -> None:
        group = self._groups.get(member.constants)
        if group is None:
            group = self._groups[member.constants] = _Group(self._bounds(member))
            for side in self._sides:
                side.add(group, member.constants)
            for part, limits in self._limits.items():
                limits.add(group, member.constants, self._pair(group.bounds).sides[part])
        group.members[member] = None

    def admit(self, member: Member) -> None:
        """Add a member: the rows that pass its constants wait for it."""
        self._add(member)
        if self._noted is not None:
            self.waiting.settle()
            for part in self._limits:
                for row in self._rows(part, member):
                    self._noted.note(part, row)

    def dismiss(self, member: Member) -> None:
        """Remove a member."""
        group = self._groups[member.constants]
        del group.members[member]
        if not group.members:
            del self._groups[member.constants]
            for side in self._sides:
                side.remove(group, member.constants)
            for part, limits in self._limits.items():
                limits.remove(group, member.constants, self._pair(group.bounds).sides[part])

    def _rows(self, part: int, member: Member) -> Bag:
        """The rows of a part that wait, and pass the constants of a member."""
        table, side = self.waiting.live[part], self._sides[part]
        passes = side.test(member.constants)
        if not side.text_at:
            rows = table.rows()
        else:
            rows = dict(table.matching(side.text_at, side.texts(member.constants)))
        return rows if passes is None else {r: count for r, count in rows.items() if passes(r)}

    # Deadlines ------------------------------------------------------------------------------------

    def _pair(self, bounds: Bounds) -> Pair:
        """The verdicts on the join with the bounds of a member."""
        pair = self._pairs.get(bounds)
        if pair is None:
            pair = self._pairs[bounds] = rebound(self.waiting.pair, self._tests(bounds))
        return pair

    def _tests(self, bounds: Bounds) -> tuple[Test, ...]:
        """The tests of the join, with the bounds of a member."""
        durations = [self._kept.parameters[n] for n in self._durations]
        given = {
            each.constraint: TimeConstraint(each.terms, each.operator, bound)  # type: ignore[arg-type]
            for each, bound in zip(durations, bounds, strict=True)
            if isinstance(each, Duration)
        }
        return tuple(
            replace(test, constraint=given.get(test.constraint, test.constraint))  # type: ignore[arg-type]
            for test in self.waiting.pair.relation.tests
        )

    def _next(self, part: int, row: Row, after: float) -> float | None:
        return self._limits[part].next(row, after) if part in self._limits else None

    # Judgements -----------------------------------------------------------------------------------

    def never(self, ended: Iterable[Ended]) -> dict[Member, list[Change]]:
        """The `never` changes of members, for what ended at the join."""
        concerned: dict[Member, list[Ended]] = {}
        for each in ended:
            if each.part not in self._waits:
                continue  # it waited for its own instant
            for group in self._concerned(each):
                for member in group.members:
                    if not self._holds(member, each):
                        concerned.setdefault(member, []).append(each)
        found: dict[Member, list[Change]] = {}
        for member, rows in concerned.items():
            changes = self._judged(member, rows)
            if changes:
                found[member] = changes
        return found

    def _holds(self, member: Member, ended: Ended) -> bool:
        """Whether a member has the row that a row of a part shows."""
        whole = self._whole[ended.part]
        if whole is None or member.view is None:
            return False
        kept = member.view.maintainer
        return isinstance(kept, Counting) and kept.has(whole.bound(ended.row))

    def _judged(self, member: Member, rows: Sequence[Ended]) -> list[Change]:
        """The `never` changes of a member, for rows that ended and that it does not have."""
        names, found = member.opened().columns, dict[Row, list[int | None]]()
        for each in rows:
            whole = self._whole[each.part]
            if whole is None or not whole.comes_once:
                return self._prospects(member, is_asked=False).never(rows)
            found.setdefault(whole.shown(each.row), []).append(each.limit)
        return [never_change(ShownRow(names, shown), limits) for shown, limits in found.items()]

    def _concerned(self, ended: Ended) -> Sequence[_Group]:
        """The members that a row waited for, and does so no more."""
        if not self._limits:
            return self._sides[ended.part].find(ended.row)
        if isinstance(ended.proof, TimePassed):
            assert ended.limit is not None
            return self._limits[ended.part].between(ended.row, ended.limit - 1, ended.limit)
        arrived = self.waiting.arrivals[ended.part](ended.row)
        return self._limits[ended.part].between(ended.row, max(ended.passed, arrived))

    def prospects(self, member: Member) -> Prospects:
        """The future rows of a member."""
        return self._prospects(member, is_asked=True)

    def _prospects(self, member: Member, *, is_asked: bool) -> Prospects:
        """The future rows of a member; `is_asked`: to ask questions, not for `never` only."""
        view, waiting, bounds = member.opened(), self.waiting, self._bounds(member)
        assert isinstance(view.maintainer, Counting)
        waiting.settle()
        inputs, outlook = None, waiting.outlook
        tables: Sequence[Table] = waiting.live
        if is_asked:
            tables = [Table(self._rows(part, member)) for part in range(2)]
            if outlook is not None:
                inputs = rebound_inputs(outlook.inputs, self._tests(bounds))
        tests = [None if is_asked else side.test(member.constants) for side in self._sides]
        return Prospects(
            view.maintainer, MemberRows(waiting, self._pair(bounds), inputs, tables, tests)
        )

    def has_stopped(self, member: Member, part: int | None, is_after: bool) -> bool:
        """Whether a member that could get rows has no match that can be completed."""
        pair, clock = self._pair(self._bounds(member)), self.waiting.tree.clock
        if pair.both_until is not None:
            return False  # its durations exclude each other
        if part is not None and is_after != pair.sides[part].waits_an_instant:
            return False
        for part, side in enumerate(pair.sides):
            limit_of = side.deadline()
            for row in self._rows(part, member):
                limit = limit_of(row)
                if limit is None or limit >= clock:
                    return False
        return True
