"""The two-way join of a family with durations, as it is for each member.

The join of the general pattern has weaker bounds (`query/generalize.py`), so a row may wait longer
in it than it waits for a member. `FamilyJoin` gives the join the deadlines of members besides its
own, and judges for each member what ended: as the join of the member alone would, with the
member's bounds, and those of the waiting rows that have its texts.

For families where only rows of one part wait, and this part has all texts of the parameters; or
rows of both, if only the end of a stream rules them out. Then all members are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf

from axlog.evaluate.joins import Bag, Row, picker
from axlog.future.garbage import Pair, TimePassed, rebound
from axlog.future.join_inputs import rebound_inputs
from axlog.future.truth import column_of
from axlog.query.compile import Test
from axlog.query.generalize import Duration, ParameterValue
from axlog.query.pattern import TimeConstraint
from axlog.views.change import Change
from axlog.views.change import Row as ShownRow
from axlog.views.counting.ended_rows import Ended
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.member_rows import MemberRows
from axlog.views.counting.prospects import Prospects, never_change
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.family import FamilyCounting, Member

Bounds = tuple[ParameterValue, ...]
"""The durations of a member, in the order of the parameters."""


class FamilyJoin:
    """The members of a family with durations, by the rows that wait for them."""

    def __init__(
        self, kept: FamilyCounting, waiting: WaitingRows, part: int, *, has_both: bool = False
    ) -> None:
        """`part`: the part whose rows wait, and have the texts of members.

        `has_both`: rows of the other part wait, too.
        """
        self._has_both = has_both
        self.waiting = waiting
        self._kept, self._part = kept, part
        parameters, side = kept.parameters, waiting.pair.sides[part]
        self._texts = [n for n, each in enumerate(parameters) if each.is_text]
        self._durations = [n for n, each in enumerate(parameters) if isinstance(each, Duration)]
        columns = [f"${parameters[n].variable}" for n in self._texts]
        self._text_at = tuple(side.columns.index(column) for column in columns)
        if self._text_at:
            waiting.live[part].index(self._text_at)
        shown = [column_of(output) for output in kept.member_pattern.outputs]
        root = kept.member_program.root.columns
        is_whole = {*shown, *root} <= set(side.columns)  # a row has all values of the view
        self._shown = picker([side.columns.index(c) for c in shown]) if is_whole else None
        self._bound = picker([side.columns.index(c) for c in root]) if is_whole else None
        self._comes_once = side.key is not None and side.columns[side.key[0]] in shown
        """Whether no other row of the part shows the same."""
        self._pairs: dict[Bounds, Pair] = {}
        self._deadlines: dict[Bounds, Callable[[Row], int | None]] = {}
        self._groups: dict[Row, dict[Bounds, dict[Member, None]]] = {}
        for member in kept.members.values():
            self._add(member)
        self._noted = waiting.follow_members(kept, self._next)

    # Members --------------------------------------------------------------------------------------

    def _place(self, member: Member) -> tuple[Row, Bounds]:
        constants = member.constants
        texts: Row = tuple([str(constants[n]) for n in self._texts])
        return texts, tuple([constants[n] for n in self._durations])

    def _add(self, member: Member) -> None:
        texts, bounds = self._place(member)
        self._groups.setdefault(texts, {}).setdefault(bounds, {})[member] = None

    def admit(self, member: Member) -> None:
        """Add a member: the rows with its texts wait for it."""
        self._add(member)
        self.waiting.settle()
        for row in self._rows(self._place(member)[0]):
            self._noted.note(self._part, row)

    def dismiss(self, member: Member) -> None:
        """Remove a member."""
        texts, bounds = self._place(member)
        members = self._groups[texts][bounds]
        del members[member]
        if not members:
            del self._groups[texts][bounds]

    def _rows(self, texts: Row) -> Bag:
        """The rows with some texts that wait."""
        table = self.waiting.live[self._part]
        return dict(table.matching(self._text_at, texts)) if self._text_at else table.rows()

    def _group(self, row: Row) -> dict[Bounds, dict[Member, None]]:
        return self._groups.get(tuple([row[at] for at in self._text_at]), {})

    # Deadlines ------------------------------------------------------------------------------------

    def _pair(self, bounds: Bounds) -> Pair:
        """The verdicts on the join with the bounds of a member."""
        pair = self._pairs.get(bounds)
        if pair is None:
            pair = self._pairs[bounds] = rebound(self.waiting.pair, self._tests(bounds))
            self._deadlines[bounds] = pair.sides[self._part].deadline()
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

    def _limit(self, bounds: Bounds, row: Row) -> int | None:
        """The deadline of a row for a member."""
        self._pair(bounds)
        return self._deadlines[bounds](row)

    def _next(self, part: int, row: Row, after: float) -> float | None:
        if part != self._part:
            return None
        found = inf
        for bounds in self._group(row):
            limit = self._limit(bounds, row)
            if limit is not None and after < limit < found:
                found = limit
        return None if found == inf else found

    # Judgements -----------------------------------------------------------------------------------

    def never(self, ended: Iterable[Ended]) -> dict[Member, list[Change]]:
        """The `never` changes of members, for what ended at the join."""
        concerned: dict[Member, list[Ended]] = {}
        for each in ended:
            if each.part != self._part:
                for member in self._kept.members.values() if self._has_both else ():
                    concerned.setdefault(member, []).append(each)
                continue
            for bounds, members in self._group(each.row).items():
                if self._concerns(each, bounds):
                    for member in members:
                        if not self._holds(member, each.row):
                            concerned.setdefault(member, []).append(each)
        found: dict[Member, list[Change]] = {}
        for member, rows in concerned.items():
            changes = self._judged(member, rows)
            if changes:
                found[member] = changes
        return found

    def _holds(self, member: Member, row: Row) -> bool:
        """Whether a member has the row that a row of the part shows."""
        if self._bound is None or member.view is None:
            return False
        kept = member.view.maintainer
        return isinstance(kept, Counting) and kept.has(self._bound(row))

    def _judged(self, member: Member, rows: Sequence[Ended]) -> list[Change]:
        """The `never` changes of a member, for rows that ended and that it does not have."""
        if self._shown is None or not self._comes_once:
            return self.prospects(member).never(rows)
        names = member.opened().columns
        return [never_change(ShownRow(names, self._shown(each.row)), [each.limit]) for each in rows]

    def _concerns(self, ended: Ended, bounds: Bounds) -> bool:
        """Whether a row waited for members with these bounds, and does so no more."""
        limit = self._limit(bounds, ended.row)
        if isinstance(ended.proof, TimePassed):
            return limit == ended.limit
        if limit is None:
            return True
        return limit > max(ended.passed, self.waiting.arrivals[self._part](ended.row))

    def prospects(self, member: Member) -> Prospects:
        """The future rows of a member."""
        view = member.opened()
        assert isinstance(view.maintainer, Counting)
        texts, bounds = self._place(member)
        self.waiting.settle()
        rows: Sequence[Bag] = [
            self._rows(texts) if part == self._part else table.rows()
            for part, table in enumerate(self.waiting.live)
        ]
        outlook = self.waiting.outlook
        inputs = None if outlook is None else rebound_inputs(outlook.inputs, self._tests(bounds))
        mine = MemberRows(self.waiting, self._pair(bounds), inputs, rows)
        return Prospects(view.maintainer, mine)

    def has_stopped(self, member: Member) -> bool:
        """Whether a member that could get rows has no match that can be completed."""
        texts, bounds = self._place(member)
        if self._pair(bounds).both_until is not None:
            return False  # its durations exclude each other
        if not self.waiting.live[1 - self._part].is_empty:
            return False  # a row of this instant may be completed
        clock = self.waiting.tree.clock
        limits = (self._limit(bounds, row) for row in self._rows(texts))
        return not any(limit is None or limit >= clock for limit in limits)
