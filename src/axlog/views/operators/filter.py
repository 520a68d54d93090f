"""The filter: the rows that pass a test."""

from __future__ import annotations

from collections.abc import Callable

from axlog.evaluate.joins import Bag, Row
from axlog.query.compile import Column
from axlog.views.operators.operator import Cost, Operator, Source


class Filter(Operator):
    """The input rows for which a function holds, with their counts.

    Law: Δout = the rows of ΔL that pass. It keeps nothing; the function depends on the row alone.
    """

    name = "filter"
    __slots__ = ("below", "passes", "schema")

    def __init__(self, below: Source, passes: Callable[[Row], object]) -> None:
        """`passes`: whether a row stays, as a truth value."""
        self.below = below
        self.schema = below.schema
        self.passes = passes

    def apply(self, port: int, delta: Bag) -> Bag:
        passes = self.passes
        return {row: count for row, count in delta.items() if passes(row)}

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        return self.apply(0, self.below.lookup(columns, key))

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        return [(0, row)]

    def expect_insertions(self) -> bool:
        return True

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """All columns: no two rows meet."""
        return self.schema or None

    def cost(self, port: int) -> Cost:
        return Cost(0, 0)
