"""The map: computed columns, and projection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axlog.evaluate.joins import Bag, Row, add, picker
from axlog.query.compile import Column
from axlog.views.operators.lookups import having, known_part
from axlog.views.operators.operator import Cost, Operator, Source


class Map(Operator):
    """Each input row as another row: columns of the input, and columns computed from the row.

    Law: Δout(r) = Σ ΔL(l) over the input rows l with f(l) = r. It keeps nothing; the function
    depends on the row alone. Input rows that become equal are one row, with the sum of their
    counts.
    """

    name = "map"
    __slots__ = ("_pure", "_shown", "below", "function", "renames", "schema")

    def __init__(
        self,
        below: Source,
        schema: Sequence[Column],
        function: Callable[[Row], Row],
        copied: Sequence[Column] = (),
        *,
        renames: bool = False,
    ) -> None:
        """`function`: the output row of an input row; `renames`: it is the same row.

        `copied`: the columns that output and input have in common, with equal values. Only these
        are looked up in the input, and only these can be a partition key.
        """
        self.below = below
        self.schema = tuple(schema)
        self.function = function
        self.renames = renames
        self._shown = tuple(copied)
        self._pure = picker([self.schema.index(column) for column in self._shown])

    @classmethod
    def computed(
        cls,
        below: Source,
        columns: Sequence[tuple[Column, Column | Callable[[Row], Any]]],
    ) -> Map:
        """A map by columns: each is a column of the input, or a function of the input row."""
        given = below.schema
        schema = [name for name, _ in columns]
        copied = [name for name, source in columns if source == name]
        if all(isinstance(source, str) for _, source in columns):
            positions = [given.index(source) for _, source in columns]
            return cls(below, schema, picker(positions), copied)
        reads = [
            picker([given.index(source)]) if isinstance(source, str) else _one(source)
            for _, source in columns
        ]
        return cls(below, schema, lambda row: tuple([read(row)[0] for read in reads]), copied)

    def apply(self, port: int, delta: Bag) -> Bag:
        function = self.function
        if len(delta) == 1:
            ((row, count),) = delta.items()
            return {function(row): count}
        result: Bag = {}
        for row, count in delta.items():
            add(result, function(row), count)
        return result

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        below = self.below.lookup(*known_part(columns, key, self._shown))
        return having(self.apply(0, below).items(), self.schema, columns, key)

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        found = self.below.lookup(self._shown, self._pure(row))
        return [(0, each) for each in found if self.function(each) == row]

    def expect_insertions(self) -> bool:
        return True

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """The columns that it copies: no two rows meet, and input and output split alike."""
        return self._shown or None

    def cost(self, port: int) -> Cost:
        return Cost(0, 0)


def _one(function: Callable[[Row], Any]) -> Callable[[Row], Row]:
    return lambda row: (function(row),)
