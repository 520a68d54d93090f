"""The anti join: `not`."""

from __future__ import annotations

from collections.abc import Sequence

from axlog.evaluate.joins import AbsenceCheck, Bag, Row, add
from axlog.evaluate.work import Meter
from axlog.query.compile import Column
from axlog.views.operators.operator import Cost, Operator
from axlog.views.operators.table import NewIndex, Table

LEFT, RIGHT = 0, 1


class AntiJoin(Operator):
    """The left rows that no row of the right side blocks.

    A right row blocks a left row that has the same values in the common columns, if the tests over
    both rows hold. Port 0 is the left side, port 1 the right side. Law:

        Δout = the rows of ΔL that no right row blocks      for a delta of the left side
        Δout = the left rows that were blocked and are not any more,
               minus those that are blocked now             for a delta of the right side

    The left rows that a right row concerns are looked up in the left operator and not stored.
    """

    name = "anti join"
    __slots__ = ("_check", "_columns", "_meter", "kept", "left", "schema")

    def __init__(
        self, left: Operator, check: AbsenceCheck, right: Bag, meter: Meter, new_index: NewIndex
    ) -> None:
        """`check`: the common columns and the tests, over the columns of the left side."""
        self.left = left
        self.schema = left.schema
        self.kept = Table(right, [check.positions], new_index)
        self._check = check
        self._columns = tuple(check.columns[at] for at in check.positions)
        self._meter = meter

    def tables(self) -> Sequence[Table]:
        return (self.kept,)

    def passes(self, row: Row) -> bool:
        """Whether no right row blocks a left row."""
        check = self._check
        rows = self.kept.matching(check.positions, check.key(row))
        if len(rows) > 1:
            self._meter.spend(len(rows))
        return not check.blocks(row, (each for each, _ in rows))

    def apply(self, port: int, delta: Bag) -> Bag:
        if port == LEFT:
            return {row: count for row, count in delta.items() if self.passes(row)}
        check, table = self._check, self.kept
        keys = list(dict.fromkeys(check.body_key(row) for row in delta))
        before = [[row for row, _ in table.matching(check.positions, key)] for key in keys]
        table.update(delta)
        result: Bag = {}
        for key, old in zip(keys, before, strict=True):
            new = [row for row, _ in table.matching(check.positions, key)]
            if check.is_exact and not check.checks and bool(old) == bool(new):
                continue
            for row, count in self.left.lookup(self._columns, key).items():
                if len(old) + len(new) > 2:
                    self._meter.spend(len(old) + len(new))
                was, now = check.blocks(row, old), check.blocks(row, new)
                if was != now:
                    add(result, row, -count if now else count)
        return result

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        found = self.left.lookup(columns, key)
        return {row: count for row, count in found.items() if self.passes(row)}

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        return [(LEFT, row)]

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """The key of the left side, as far as the right side has its columns."""
        left = self.left.partition_key or ()
        return tuple(column for column in left if column in self._columns) or None

    def cost(self, port: int) -> Cost:
        return Cost(1, 0) if self._columns else Cost(0, 1)
