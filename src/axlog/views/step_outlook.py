"""The future of a view with steps, in the values that the view shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axlog.document.times import Times, shown
from axlog.document.tree import Tree
from axlog.future.group_outlook import GroupOutlook
from axlog.future.reasons import WhyNot, why_no_group
from axlog.future.truth import Possible
from axlog.query.row_key import RowKey
from axlog.query.truth import Truth
from axlog.views.why import inward_by_type


class StepOutlook:
    """Truth, possible rows and statuses of a view with steps, with times as the view shows them."""

    def __init__(self, tree: Tree, key: RowKey, times: Times) -> None:
        self._outlook = GroupOutlook(tree, key)
        self._tree, self._key = tree, key
        self._columns, self._times = key.columns, times

    @property
    def truth(self) -> Truth:
        return self._outlook.truth

    def status(self, row: Mapping[str, Any]) -> Truth:
        return self._outlook.status(inward_by_type(self._columns, row))

    def verdict(self, row: Mapping[str, Any]) -> Truth:
        """`status` with times in microseconds."""
        return self._outlook.status(row)

    def to_come(self) -> list[Possible]:
        """`possible` with times in microseconds."""
        return self._outlook.possible()

    def why_not(self, row: Mapping[str, Any]) -> WhyNot:
        """The truth of a row, and the reasons for it."""
        asked = inward_by_type(self._columns, row)
        return why_no_group(self._tree, self._key, asked, self._times)

    def possible(self) -> list[Possible]:
        return [self._shown(one) for one in self._outlook.possible()]

    def _shown(self, one: Possible) -> Possible:
        row = {
            name: shown(value, self._times)
            if at in self._columns.times and value is not None
            else value
            for at, (name, value) in enumerate(one.row.items())
        }
        until = one.deadline
        return Possible(row, one.needs, None if until is None else shown(int(until), self._times))
