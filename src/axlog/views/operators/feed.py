"""The inputs of a plan: rows that come from outside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from axlog.evaluate.joins import Bag, Row
from axlog.query.compile import Column
from axlog.views.operators.operator import Cost, Operator
from axlog.views.operators.table import NewIndex, Table


class Feed:
    """A relation outside the plan that can be asked for its rows.

    The plan keeps none of them. `find` is called for answers only (`why`, back-fill): a stream's
    rows need not be kept for it.
    """

    __slots__ = ("find", "schema")

    def __init__(
        self, schema: Sequence[Column], find: Callable[[tuple[Column, ...], Row], Bag]
    ) -> None:
        """`find`: the rows that have these values in these columns, with their counts."""
        self.schema = tuple(schema)
        self.find = find

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        """The rows that have these values in these columns, with their counts."""
        return self.find(columns, key)


class Stored(Operator):
    """The input itself, kept in a table: for operators above that look up its rows.

    Law: Δout = ΔL.
    """

    name = "stored"
    __slots__ = ("kept", "schema")

    def __init__(
        self,
        schema: Sequence[Column],
        rows: Bag,
        keys: Iterable[Sequence[Column]] = (),
        new_index: NewIndex = dict,
    ) -> None:
        """`keys`: the columns that operators above look up; others get an index when needed."""
        self.schema = tuple(schema)
        positions = [tuple(map(self.schema.index, key)) for key in keys]
        self.kept = Table(rows, positions, new_index)

    def tables(self) -> Sequence[Table]:
        return (self.kept,)

    def apply(self, port: int, delta: Bag) -> Bag:
        self.kept.update(delta)
        return delta

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        return dict(self.kept.matching(tuple(map(self.schema.index, columns)), key))

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        return [(0, row)]

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """All columns: no two rows meet."""
        return self.schema or None

    def cost(self, port: int) -> Cost:
        return Cost(len(self.kept.keys()), 0)
