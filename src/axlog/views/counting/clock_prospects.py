"""The future rows of a view about the clock, read from the join of its pattern.

For views whose constraints with `now` bound it from below only ("overdue": `now - t >= 2h`). Time
then brings every match of the pattern, and takes none away:

    a row is there       TRUE
    its match is there   POSSIBLE: time brings it
    otherwise            as the pattern says (`join_prospects.py`)

    never(u)  =  a match or a way that shows u was there before the update and is not any more, the
                 view did not show u, and now no match agrees with u, and none that does may come

The matches of the pattern are not kept: the tables of the join have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from axlog.future.clock_outlook import first_moment, lower_bounds, shown_outputs
from axlog.future.truth import Possible
from axlog.query.pattern import Pattern
from axlog.query.query import Query
from axlog.query.steps import ClockTest
from axlog.query.truth import Truth
from axlog.views.counting.join_outlook import Bound, JoinOutlook
from axlog.views.counting.join_prospects import JoinProspects
from axlog.views.counting.join_watch import JoinWatch
from axlog.views.counting.possible_pages import page_of
from axlog.views.counting.row_index import RowQuestion, Shown
from axlog.views.counting.stepped import SteppedCounting


class ClockProspects(JoinProspects):
    """The possible rows of one view about the clock."""

    maintainer: SteppedCounting

    def __init__(
        self,
        maintainer: SteppedCounting,
        waiting: JoinWatch,
        shown: Pattern,
        tests: Sequence[ClockTest],
    ) -> None:
        """`shown`: the pattern with the outputs of the view. `tests`: those of `now`."""
        super().__init__(maintainer, waiting, shown)
        self._index = Matches(waiting.outlook, self._question)
        self._tests = tests
        waiting.notes_rows = True

    @property
    def truth(self) -> Truth:
        """The truth of the view: some row holds, may come, or can never come."""
        if self.maintainer.has_rows:
            return Truth.TRUE
        is_left = self._may_come() or self.waiting.outlook.holds({})
        return Truth.POSSIBLE if is_left else Truth.NEVER

    def status(self, row: Mapping[str, Any]) -> Truth:
        """The truth of one row of a caller."""
        shown = self._question.shown(row)
        if self._is_shown(shown):
            return Truth.TRUE
        return Truth.POSSIBLE if self._may_hold(shown) else Truth.NEVER

    def _moment_of(self, known: Bound) -> int | None:
        clock = self.waiting.clock
        found = (first_moment(self._tests, each.bound, clock)
                 for each in self.waiting.outlook.rows(known))  # fmt: skip
        return min((moment for moment in found if moment is not None), default=None)

    def _is_shown(self, shown: Shown) -> bool:
        """Whether the view has a row that agrees with these values."""
        counts = self.maintainer.kept.counts
        if None not in shown:
            return shown in counts
        known = [(at, value) for at, value in enumerate(shown) if value is not None]
        clock = self.waiting.clock
        if not known:
            return bool(counts)
        # The matches of these values: few, where the join has an index of them.
        matches = self.waiting.outlook.rows(self._question.known(shown))
        return any(first_moment(self._tests, each.bound, clock) is None for each in matches)

    def possible(self) -> list[Possible]:
        """The possible rows, as `ClockOutlook.possible` lists them."""
        waiting = dict(self._waiting())
        there = self.maintainer.kept.counts
        found = [
            one
            for one in super().possible()
            if (row := tuple(one.row.values())) not in waiting and row not in there
        ]
        names = self.pattern.columns
        for row, since in waiting.items():
            found.append(Possible(dict(zip(names, row, strict=True)), (), None, since))
        return sorted(found, key=lambda one: repr(tuple(one.row.values())))

    def page(self, limit: int | None, after: Possible | None) -> list[Possible]:
        """A page of the possible rows; costs all of them."""
        return page_of(self.possible(), limit, after)

    def _waiting(self) -> Iterator[tuple[Shown, int]]:
        """The rows that time brings, each with the first moment at which it holds."""
        clock, there = self.waiting.clock, self.maintainer.kept.counts
        found: dict[Shown, int] = {}
        for way in self.waiting.outlook.rows({}):
            shown = self._shown(way.bound)
            since = first_moment(self._tests, way.bound, clock)
            if since is not None and shown not in there:
                found[shown] = min(since, found.get(shown, since))
        yield from found.items()


def clock_prospects(
    maintainer: SteppedCounting, waiting: JoinWatch, query: Query
) -> ClockProspects:
    """The possible rows of a query of which `lower_bounds` gives the tests."""
    tests, outputs = lower_bounds(query), shown_outputs(query)
    assert tests is not None
    assert outputs is not None  # `lower_bounds` has looked
    return ClockProspects(maintainer, waiting, replace(query.pattern, outputs=outputs), tests)


class Matches:
    """The matches of a pattern, in the tables of its join, by the values that a view shows."""

    is_used = False  # nothing follows changes

    def __init__(self, outlook: JoinOutlook, question: RowQuestion) -> None:
        self._outlook, self._question = outlook, question

    def has(self, shown: Shown) -> bool:
        """Whether some match agrees with these values."""
        return self._outlook.holds(self._question.known(shown))

    def take(self, changes: object) -> None:
        """Do nothing: the tables have followed."""
