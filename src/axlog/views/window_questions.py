"""The future of groups in a window of the clock: "rejects in the last hour, by client".

A group is there exactly while a match with its keys is in the window:

    row with keys k      TRUE: the group is there; else as the view of the keys alone says of k
    value of an          NEVER where the keys are NEVER; refused elsewhere
    aggregate, `having`

So the questions are those of `ClockQuestions` about a query that shows the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from axlog.document.times import Times
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.clock_outlook import shown_outputs
from axlog.future.reasons import Reason, WhyNot
from axlog.future.truth import Possible
from axlog.query.query import Query
from axlog.query.steps import Cell, Clock, Compute, Filter, Group
from axlog.query.syntax_tree import Reference
from axlog.query.truth import Truth
from axlog.views.change import Row
from axlog.views.clock_questions import ClockQuestions, agrees, end_by_clock
from axlog.views.why import inward_by_type


@dataclass(frozen=True, slots=True)
class Window:
    """A query that groups matches about the clock, and the query of the groups' keys."""

    keys: Query
    shown: tuple[str, ...]  # the columns of the keys
    has_condition: bool  # whether `having` drops groups


def window_of(query: Query) -> Window | None:
    """The groups of a query about the clock; None: it has none, or other steps."""
    if len(query.steps) < 4:
        return None
    clock, given, group, *others, last = query.steps
    if not isinstance(clock, Clock) or not isinstance(group, Group) or not group.keys:
        return None
    if not isinstance(given, Compute) or not isinstance(last, Compute):
        return None
    if not all(isinstance(each, Filter) for each in others):
        return None
    before = {cell.name: cell for cell in given.cells}
    cells = [
        Cell(cell.name, before[cell.expression.name].expression, cell.type)
        for cell in last.cells
        if isinstance(cell.expression, Reference) and cell.expression.name in group.keys
    ]
    keys = replace(query, steps=(clock, Compute(tuple(cells))), template=None)
    if shown_outputs(keys) is None:
        return None
    return Window(keys, tuple(cell.name for cell in cells), bool(others))


class WindowQuestions:
    """Truth, statuses and possible rows of groups in a window."""

    def __init__(
        self, tree: Tree, query: Query, window: Window, rows: Iterable[Row], times: Times
    ) -> None:
        """`rows`: those of the view."""
        self._window, self._columns = window, query.columns
        self._tree, self._query, self._times = tree, query, times
        self._rows = [row.values_[: len(self._columns)] for row in rows]
        at = [self._columns.index(name) for name in window.shown]
        there = [Row(window.keys.columns, tuple(row.values_[i] for i in at)) for row in rows]
        self._keys = ClockQuestions(tree, window.keys, there, times)

    @property
    def truth(self) -> Truth:
        """The truth of there being some row."""
        return Truth.TRUE if self._rows else self._judged(self._keys.truth, False)

    def status(self, row: Mapping[str, Any]) -> Truth:
        """The truth of one row that is not there. Columns left out may have any value."""
        asked = {name: value for name, value in row.items() if name in self._window.shown}
        is_whole = all(v is None or name in asked for name, v in row.items())
        return self._judged(self._keys.status(asked), not is_whole)

    def verdict(self, row: Mapping[str, Any]) -> Truth:
        """The same with times in microseconds."""
        asked = {name: value for name, value in row.items() if name in self._window.shown}
        is_whole = all(v is None or name in asked for name, v in row.items())
        return self._judged(self._keys.verdict(asked), not is_whole)

    def _judged(self, found: Truth, has_values: bool) -> Truth:
        if found is not Truth.NEVER and (has_values or self._window.has_condition):
            what = "a condition on the groups" if self._window.has_condition else "an aggregate"
            raise UndecidedError(
                "AX502",
                f"the future of {what} over a window of the clock is not decided",
                advice="ask for the keys of a view without the condition",
            )
        return found

    def possible(self) -> list[Possible]:
        """The groups that may still come, by their keys."""
        self._judged(Truth.POSSIBLE, False)
        return [self._shown(one) for one in self._keys.possible()]

    def to_come(self) -> list[Possible]:
        """The same with times in microseconds."""
        self._judged(Truth.POSSIBLE, False)
        return [self._shown(one) for one in self._keys.to_come()]

    def _shown(self, one: Possible) -> Possible:
        return replace(one, row={name: one.row.get(name) for name in self._columns})

    def why_not(self, row: Mapping[str, Any]) -> WhyNot:
        """The truth of a row, and the reasons for it.

        Of a row that is there, the end by the clock is given if no further message comes.
        """
        asked = inward_by_type(self._query.columns, row)
        if any(agrees(self._columns, values, asked) for values in self._rows):
            end = end_by_clock(self._tree, self._query, self._rows, asked, self._times)
            there = Reason("holds", "the row is there")
            return WhyNot(Truth.TRUE, (there,) if end is None else (there, end))
        self.status(row)  # raises if it is not decided
        return self._keys.why_not({n: v for n, v in row.items() if n in self._window.shown})
