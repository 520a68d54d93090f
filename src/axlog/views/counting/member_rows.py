"""The rows of a shared join that wait for one member of a family, to ask questions about them."""

from __future__ import annotations

from collections.abc import Sequence

from axlog.evaluate.joins import Bag, Row
from axlog.future.garbage import Pair
from axlog.future.join_inputs import JoinInputs
from axlog.views.counting.brief_rows import BriefRows
from axlog.views.counting.join_outlook import JoinOutlook
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.operators.table import Table


class MemberRows(WaitingRows):
    """A join as it is for one member: with its bounds of times, and the rows that it can have.

    It has the streams and the key values of the shared join, and does not follow its rows.
    """

    def __init__(
        self, shared: WaitingRows, pair: Pair, inputs: JoinInputs | None, rows: Sequence[Bag]
    ) -> None:
        """`pair` and `inputs` have the member's bounds. `rows`: of each part, by other values."""
        vars(self).update(vars(shared))
        self.pair = pair
        self._deadlines = [side.deadline() for side in pair.sides]
        self.live = [
            Table({row: count for row, count in bag.items() if self._is_in_time(part, row)})
            for part, bag in enumerate(rows)
        ]
        self.heap, self.followers, self.rows_with, self.ended = [], [], [], []
        self._brief = BriefRows(self.tree, self.live, self.heap, (), self._count_dropped)
        self.brief = self._brief.rows
        self.outlook = None if inputs is None else JoinOutlook(self, inputs)

    def _is_in_time(self, part: int, row: Row) -> bool:
        limit = self._deadlines[part](row)
        return limit is None or limit >= self.tree.clock
