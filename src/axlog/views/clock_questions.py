"""Questions about the future of a view about the clock: truth, status, possible rows, reasons.

A row that is there is TRUE; `future/clock_outlook.py` decides the others. Times are microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from axlog.document.times import Times, plain, shown
from axlog.document.tree import Tree
from axlog.future.clock_outlook import ClockOutlook, shown_outputs
from axlog.future.reasons import Reason, WhyNot, why_not
from axlog.future.truth import Possible
from axlog.query.pattern import Pattern
from axlog.query.query import Query
from axlog.query.truth import Truth
from axlog.views.change import Change, Row


def asked_pattern(query: Query) -> Pattern | None:
    """A pattern with the outputs of a query about the clock; None if the query has other steps."""
    outputs = shown_outputs(query)
    return None if outputs is None else Pattern((), (), outputs)


class ClockQuestions:
    """A document as it is now, a query about the clock, and its rows."""

    def __init__(
        self, tree: Tree, query: Query, rows: Iterable[Row], later: Callable[[], Iterable[Change]]
    ) -> None:
        """`later`: the changes that time alone makes from now on.

        Raises AX502 if the query has other steps than the one about the clock.
        """
        self._outlook = ClockOutlook(tree, query)
        self._later = later
        self._tree = tree
        self._rows = {row.values_ for row in rows}
        self._columns = query.columns

    @property
    def truth(self) -> Truth:
        """The truth of there being some row."""
        return Truth.TRUE if self._rows else self._outlook.truth

    def status(self, row: Mapping[str, Any]) -> Truth:
        """The truth of one row. Columns left out may have any value."""
        return Truth.TRUE if self._is_there(row) else self._outlook.status(row)

    def possible(self) -> list[Possible]:
        """The rows that may still come, by data or by time alone."""
        moments: dict[tuple[Any, ...], int] = {}
        for change in self._later():
            if change.op == "insert":
                moments.setdefault(change.row.values_, change.microseconds)
        return [
            one if one.needs else replace(one, since=moments.get(tuple(one.row.values())))
            for one in self._outlook.possible(self._rows)
        ]

    def why_not(self, row: Mapping[str, Any], times: Times) -> WhyNot:
        """The truth of a row, and the reasons for it."""
        if self._is_there(row):
            return WhyNot(Truth.TRUE, (Reason("holds", "the row is there"),))
        truth = self._outlook.status(row)
        reasons: list[Reason] = []
        if truth is Truth.POSSIBLE:
            for one in self.possible():
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

    def _is_there(self, row: Mapping[str, Any]) -> bool:
        return any(
            _agrees(dict(zip(self._columns, values, strict=True)), row) for values in self._rows
        )


def _agrees(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(value is None or found[column] == value for column, value in wanted.items())
