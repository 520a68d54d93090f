"""Questions about the future of a view about the clock: truth, status, possible rows, reasons.

A row that is there is TRUE; `future/clock_outlook.py` decides the others. Times are as the document
returns them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from axlog.document.times import Times, plain, shown
from axlog.document.tree import Tree
from axlog.future.clock_outlook import ClockOutlook, shown_outputs
from axlog.future.reasons import FINAL, Reason, WhyNot, why_not
from axlog.future.truth import Possible
from axlog.query.pattern import Pattern
from axlog.query.query import Query
from axlog.query.steps import clock_of
from axlog.query.truth import Truth
from axlog.views.change import Row
from axlog.views.choose import changes_of_time
from axlog.views.why import inward, shown_possible


class ClockQuestions:
    """A document as it is now, a query about the clock, and its rows."""

    def __init__(self, tree: Tree, query: Query, rows: Iterable[Row], times: Times) -> None:
        """Raises AX502 if the query has other steps than the one about the clock."""
        self._outlook = ClockOutlook(tree, query)
        self._tree, self._query, self._times = tree, query, times
        self._columns = query.columns
        self._rows = {self._shown(row) for row in rows}
        self._asked = Pattern((), (), shown_outputs(query) or ())

    @property
    def truth(self) -> Truth:
        """The truth of there being some row."""
        return Truth.TRUE if self._rows else self._outlook.truth

    def status(self, row: Mapping[str, Any]) -> Truth:
        """The truth of one row. Columns left out may have any value."""
        return self.verdict(inward(self._asked, row))

    def verdict(self, row: Mapping[str, Any]) -> Truth:
        """The same with times in microseconds."""
        return Truth.TRUE if self._is_there(row) else self._outlook.status(row)

    def possible(self) -> list[Possible]:
        """The rows that may still come, by data or by time alone."""
        return [shown_possible(one, self._asked, self._times) for one in self.to_come()]

    def to_come(self) -> list[Possible]:
        """The same with times in microseconds."""
        moments: dict[tuple[Any, ...], int] = {}
        for change in changes_of_time(self._tree, self._query):
            if change.op == "insert":
                moments.setdefault(self._shown(change.row), change.microseconds)
        return [
            one if one.needs else replace(one, since=moments.get(tuple(one.row.values())))
            for one in self._outlook.possible(self._rows)
        ]

    def why_not(self, row: Mapping[str, Any]) -> WhyNot:
        """The truth of a row, and the reasons for it."""
        row, times = inward(self._asked, row), self._times
        if self._is_there(row):
            return WhyNot(Truth.TRUE, tuple(dict.fromkeys(self._ends(row))))
        truth = self._outlook.status(row)
        reasons: list[Reason] = []
        if truth is Truth.POSSIBLE:
            for one in self.to_come():
                if one.since is not None and _agrees(one.row, row):
                    since = shown(int(str(one.since)), times)
                    reasons.append(Reason("deadline", f"it holds from {plain(since)} on"))
        for pattern in self._outlook.shadows():
            found = why_not(self._tree, pattern, row, times)
            if found.truth is truth:
                reasons += found.reasons
        if not reasons:
            said = "its time has passed" if truth is Truth.NEVER else "time brings it"
            reasons.append(Reason("deadline", said))
        return WhyNot(truth, tuple(dict.fromkeys(reasons)))

    def _ends(self, row: Mapping[str, Any]) -> Iterator[Reason]:
        """Why a row holds, and what can end it: the clock, a message, or nothing."""
        yield Reason("holds", "the row is there")
        clock = clock_of(self._query.steps)
        assert clock is not None
        end = end_by_clock(self._tree, self._query, self._rows, row, self._times)
        if end is not None:
            yield end
        for unless in clock.unless if self._tree.calls() else ():
            inner = ", ".join(str(branch) for branch in unless.pattern.branches)
            yield Reason("ends", f"it stays until {inner} comes")
        shadows = list(self._outlook.shadows())
        if len(shadows) > 1:
            return
        for pattern in shadows:
            found = why_not(self._tree, pattern, row, self._times)
            is_final = end is None and not (clock.unless and self._tree.calls())
            if found.truth is Truth.TRUE:
                yield from (r for r in found.reasons[1:] if r.text != FINAL or is_final)

    def _shown(self, row: Row) -> tuple[Any, ...]:
        """The values of a row without hidden columns."""
        return row.values_[: len(self._columns)]

    def _is_there(self, row: Mapping[str, Any]) -> bool:
        return any(agrees(self._columns, values, row) for values in self._rows)


def end_by_clock(
    tree: Tree,
    query: Query,
    rows: Iterable[tuple[Any, ...]],
    row: Mapping[str, Any],
    times: Times,
) -> Reason | None:
    """When time alone ends the last row with the values of `row`; None: time does not end it.

    `rows`: those of the query, without hidden columns.
    """
    columns = query.columns
    left = [one for one in rows if agrees(columns, one, row)]
    for moment, changes in groupby(changes_of_time(tree, query), lambda one: one.microseconds):
        for change in changes:
            lost = change.row if change.op == "delete" else change.before
            if lost is not None and lost.values_[: len(columns)] in left:
                left.remove(lost.values_[: len(columns)])
            gained = change.row.values_[: len(columns)]
            if change.op != "delete" and agrees(columns, gained, row):
                left.append(gained)
        if not left:
            until = shown(moment, times)
            return Reason("ends", f"the clock ends it at {plain(until)}", deadline=until)
    return None


def agrees(columns: Sequence[str], values: Sequence[Any], row: Mapping[str, Any]) -> bool:
    """Whether a row of these columns has the requested values."""
    return _agrees(dict(zip(columns, values, strict=True)), row)


def _agrees(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(value is None or found[column] == value for column, value in wanted.items())
