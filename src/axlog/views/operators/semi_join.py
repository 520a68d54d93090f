"""The semi join with several right sides: an `or` whose alternatives share other variables."""

from __future__ import annotations

from collections.abc import Sequence

from axlog.evaluate.joins import Bag, Row, add, picker
from axlog.query.compile import Column
from axlog.views.operators.distinct import Distinct
from axlog.views.operators.operator import Cost, Operator
from axlog.views.operators.table import Positions, Table

LEFT = 0


class SemiJoin(Operator):
    """The left rows that agree with a row of at least one right side.

    Port 0 is the left side, port 1 + i is right side i. The right sides are the inputs of a
    `Distinct`, whose tables this operator reads: apply the delta of an input there first, and then
    give its rows that appeared (count 1) or disappeared (-1) to this operator. Law:

        Δout = ΔL ⋉ R          for a delta of the left side
        Δout = ±(L ⋉ ΔR_i)     for the left rows that agree with no other right side

    The left rows that a right row concerns are looked up in the left operator and not stored.
    """

    name = "semi join"
    __slots__ = ("_picks", "columns", "left", "right", "schema", "whole")

    def __init__(
        self,
        left: Operator,
        right: Distinct,
        columns: Sequence[tuple[Column, ...]],
        keys: Sequence[Positions],
    ) -> None:
        """`columns`: those of each right side; `keys`: their positions in a left row."""
        self.left = left
        self.right = right
        self.schema = left.schema
        self.columns = columns
        self._picks = [picker(key) for key in keys]
        self.whole = [tuple(range(len(each))) for each in columns]

    def tables(self) -> Sequence[Table]:
        return ()  # those of `right`

    def passes(self, row: Row) -> bool:
        """Whether a right side has a row that agrees with a left row."""
        return any(
            table.has(at, pick(row))
            for table, at, pick in zip(self.right.kept, self.whole, self._picks, strict=True)
        )

    def apply(self, port: int, delta: Bag) -> Bag:
        if port == LEFT:
            return {row: count for row, count in delta.items() if self.passes(row)}
        side = port - 1
        result: Bag = {}
        for key, flip in delta.items():
            for row, count in self.left.lookup(self.columns[side], key).items():
                if not self._passes_elsewhere(row, side):
                    add(result, row, flip * count)
        return result

    def _passes_elsewhere(self, row: Row, side: int) -> bool:
        rights = enumerate(zip(self.right.kept, self.whole, self._picks, strict=True))
        return any(table.has(at, pick(row)) for n, (table, at, pick) in rights if n != side)

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        found = self.left.lookup(columns, key)
        return {row: count for row, count in found.items() if self.passes(row)}

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        found = [(LEFT, row)]
        rights = zip(self.right.kept, self.whole, self._picks, strict=True)
        for side, (table, at, pick) in enumerate(rights):
            found += [(1 + side, each) for each, _ in table.matching(at, pick(row))]
        return found

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """The key of the left side, as far as every right side has its columns."""
        left = self.left.partition_key or ()
        return tuple(c for c in left if all(c in each for each in self.columns)) or None

    def cost(self, port: int) -> Cost:
        return Cost(len(self.columns), 0)
