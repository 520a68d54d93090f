"""The future rows of one member of a family, read from the join that all members share.

For families whose parameters are texts: a row of the member is a row of the general view with the
member's texts, and so is a row that may still come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axlog.document.times import Times
from axlog.future.reasons import Reason
from axlog.future.truth import Possible
from axlog.query.truth import Truth
from axlog.views.counting.join_prospects import AnyProspects
from axlog.views.counting.possible_pages import page_of
from axlog.views.family import FamilyCounting, Member


class MemberProspects:
    """The possible rows of one member."""

    def __init__(self, general: AnyProspects, kept: FamilyCounting, member: Member) -> None:
        self._general = general
        names = [parameter.variable for parameter in kept.parameters]
        self._given: dict[str, Any] = dict(zip(names, member.constants, strict=True))
        self._member = member

    @property
    def is_partial(self) -> bool:
        """Whether changes must be followed."""
        return self._general.is_partial

    def settle(self) -> None:
        """Add the rows that wait for this instant only to the tables, before these are read."""
        self._general.settle()

    @property
    def truth(self) -> Truth:
        """The truth of the view: some row holds, may come, or can never come."""
        view = self._member.opened()
        if view.maintainer.size():
            return Truth.TRUE
        known = self._general.status(self._given)
        if known is not None:
            return known
        return Truth.POSSIBLE if self.possible() else Truth.NEVER

    def status(self, row: Mapping[str, Any]) -> Truth | None:
        """The truth of one row; None: the tables do not decide it."""
        return self._general.status({**row, **self._given})

    def reasons(
        self, truth: Truth, row: Mapping[str, Any], times: Times
    ) -> tuple[Reason, ...] | None:
        """The reasons for the truth of a row; None: the tables do not decide it."""
        return self._general.reasons(truth, {**row, **self._given}, times)

    def possible(self) -> list[Possible]:
        """The possible rows of the general view that can be rows of the member."""
        found: list[Possible] = []
        for one in self._general.possible():
            values = {name: one.row[name] for name in self._given}
            if all(value in (None, self._given[name]) for name, value in values.items()):
                row = {name: value for name, value in one.row.items() if name not in values}
                found.append(Possible(row, one.needs, one.deadline))
        return found

    def page(self, limit: int | None, after: Possible | None) -> list[Possible]:
        """A page of the possible rows."""
        return page_of(self.possible(), limit, after)
