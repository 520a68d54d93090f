"""The distinct union of inputs: the part of a join that stands for an `or`."""

from __future__ import annotations

from collections.abc import Sequence

from axlog.evaluate.joins import Bag, Row, add, picker
from axlog.query.compile import Column
from axlog.views.operators.operator import Cost, Operator
from axlog.views.operators.table import NewIndex, Positions, Table


class Distinct(Operator):
    """The rows that at least one input has, each with count one.

    The inputs are projected to the columns that all of them have. Law: a row is inserted when the
    first input row with its values arrives, and deleted with the last one:

        Δout(r) = [some input has r afterwards] - [some input had r before]
    """

    name = "distinct"
    __slots__ = ("columns", "kept", "places", "schema")

    def __init__(
        self,
        schema: tuple[Column, ...],
        columns: Sequence[tuple[Column, ...]],
        places: Sequence[Positions],
        inputs: Sequence[Bag],
        new_index: NewIndex,
    ) -> None:
        """`columns`: those of each input; `places`: the positions of the schema among them."""
        self.schema = schema
        self.columns = columns
        self.places = places
        self.kept = [Table(bag, [at], new_index) for bag, at in zip(inputs, places, strict=True)]

    def tables(self) -> Sequence[Table]:
        return self.kept

    def rows(self) -> Bag:
        """All rows of the output."""
        return {
            pick(row): 1
            for table, pick in zip(self.kept, map(picker, self.places), strict=True)
            for row in table.rows()
        }

    def apply(self, port: int, delta: Bag) -> Bag:
        pick = picker(self.places[port])
        touched = dict.fromkeys(map(pick, delta))
        before = [row for row in touched if self._has(row)]
        self.kept[port].update(delta)
        result: Bag = {row: 1 for row in touched if self._has(row)}
        for row in before:
            add(result, row, -1)
        return result

    def _has(self, row: Row) -> bool:
        return any(t.has(at, row) for t, at in zip(self.kept, self.places, strict=True))

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        found: Bag = {}
        for table, at, names in zip(self.kept, self.places, self.columns, strict=True):
            positions = tuple(names.index(column) for column in columns)
            pick = picker(at)
            found.update((pick(row), 1) for row, _ in table.matching(positions, key))
        return found

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        return [
            (port, each)
            for port, (table, at) in enumerate(zip(self.kept, self.places, strict=True))
            for each, _ in table.matching(at, row)
        ]

    def expect_insertions(self) -> bool:
        return True

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """All columns: equal rows meet, and no others."""
        return self.schema or None

    def cost(self, port: int) -> Cost:
        return Cost(len(self.kept), 0)
