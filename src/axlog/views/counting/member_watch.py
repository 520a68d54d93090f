"""A join of several parts as it is for one member of a family that shares it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from axlog.evaluate.joins import Row
from axlog.views.counting.join_outlook import Bound, JoinOutlook
from axlog.views.counting.join_watch import JoinWatch

Passes = Callable[[Row], bool]


class MemberWatch(JoinWatch):
    """The streams and key values of a shared join, with the ways of one member.

    It does not follow the join: it is made to ask questions.
    """

    def __init__(self, shared: JoinWatch, tests: Sequence[Passes | None]) -> None:
        """`tests`: whether a row of each part is one of the member; None: every row is."""
        vars(self).update(vars(shared))
        self.outlook = MemberOutlook(shared, tests)


class MemberOutlook(JoinOutlook):
    """The future rows of one member."""

    def __init__(self, shared: JoinWatch, tests: Sequence[Passes | None]) -> None:
        super().__init__(shared, shared.inputs, shared.guards)
        self._tests = tests
        self._is_written = False  # generated functions read whole tables

    def _rows(self, part: int, bound: Bound) -> Iterator[Row]:
        rows, passes = super()._rows(part, bound), self._tests[part]
        return rows if passes is None else filter(passes, rows)
