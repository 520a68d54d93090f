"""The rows of a shared join that wait for one member of a family, to ask questions about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from axlog.evaluate.joins import Bag, Row
from axlog.future.garbage import Pair
from axlog.future.join_inputs import JoinInputs
from axlog.views.counting.brief_rows import BriefRows
from axlog.views.counting.join_outlook import JoinOutlook
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.operators.table import Positions, Table

Passes = Callable[[Row], bool]


class MemberRows(WaitingRows):
    """A join as it is for one member: with its bounds of times, and the rows that it can have.

    It has the streams and the key values of the shared join, and does not follow its rows.
    """

    def __init__(
        self,
        shared: WaitingRows,
        pair: Pair,
        inputs: JoinInputs | None,
        tables: Sequence[Table],
        tests: Sequence[Passes | None],
    ) -> None:
        """`pair` and `inputs` have the member's bounds.

        `tables`: of each part, with a test of the rows that the member can have.
        """
        vars(self).update(vars(shared))
        self.pair = pair
        self._deadlines = [side.deadline() for side in pair.sides]
        self.live = [
            MemberTable(table, self._passes(part, test))
            for part, (table, test) in enumerate(zip(tables, tests, strict=True))
        ]
        if inputs is not None:  # its functions are generated for ordinary tables
            self.live = [Table(table.rows()) for table in self.live]
        self.heap, self.followers, self.rows_with, self.ended = [], [], [], []
        self._brief = BriefRows(self.tree, self.live, self.heap, (), self._count_dropped)
        self.brief = self._brief.rows
        self.outlook = None if inputs is None else JoinOutlook(self, inputs)

    def _passes(self, part: int, test: Passes | None) -> Passes:
        deadline, clock = self._deadlines[part], self.tree.clock

        def passes(row: Row) -> bool:
            limit = deadline(row)
            return (limit is None or limit >= clock) and (test is None or test(row))

        return passes


class MemberTable(Table):
    """The rows of a table that one member can have. It is read only, and copies no rows."""

    __slots__ = ("_passes", "_whole")

    def __init__(self, whole: Table, passes: Passes) -> None:
        super().__init__({})
        self._whole, self._passes = whole, passes

    def matching(self, positions: Positions, key: Row) -> Collection[tuple[Row, int]]:
        found = self._whole.matching(positions, key)
        return [(row, count) for row, count in found if self._passes(row)]

    def has(self, positions: Positions, key: Row) -> bool:
        return any(self._passes(row) for row, _ in self._whole.matching(positions, key))

    @property
    def is_empty(self) -> bool:
        return next(iter(self), None) is None

    def count(self, row: Row) -> int:
        return self._whole.count(row) if self._passes(row) else 0

    def __iter__(self) -> Iterator[Row]:
        return filter(self._passes, self._whole)

    def rows(self) -> Bag:
        return {row: count for row, count in self._whole.rows().items() if self._passes(row)}
