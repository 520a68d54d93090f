"""The latest: the best row of each key, of input that is only ever inserted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from axlog.evaluate.joins import Bag, Row, add, picker
from axlog.evaluate.sort_keys import exact_row_key
from axlog.query.compile import Column
from axlog.views.operators.lookups import having, key_within
from axlog.views.operators.operator import Cost, Counted, Operator, Source


class Latest(Operator):
    """The first row of each partition in an order, of append-only input.

    It is `Top` with `start=0, stop=1` for input that is only ever inserted. Then a row that is not
    the best of its partition can never become it, so one row for each partition is kept, and a row
    costs the same whatever came before. Law, with b(k) the best input row with key k:

        Δout = Σ_k  b'(k) - b(k)
    """

    name = "latest"
    __slots__ = ("_best", "_key", "_order", "_tie", "per", "schema")

    def __init__(
        self,
        below: Source,
        order: Callable[[Row], Any],
        per: Sequence[Column] = (),
        *,
        tie: Callable[[Row], Any] = exact_row_key,
    ) -> None:
        """`order`: the sort key of a row; the least is the best. The others as for `Top`."""
        self.schema = below.schema
        self.per = tuple(per)
        self._key = picker([self.schema.index(column) for column in self.per])
        self._order = order
        self._tie = tie
        self._best: dict[Row, tuple[Any, Row, int]] = {}

    def apply(self, port: int, delta: Bag) -> Bag:
        result: Bag = {}
        best, order = self._best, self._order
        for row, count in delta.items():
            assert count > 0, "a row of append-only input went"
            key, place = self._key(row), order(row)
            found = best.get(key)
            if found is None:
                best[key] = (place, row, count)
                add(result, row, count)
                continue
            old_place, old, old_count = found
            if place < old_place:
                is_better = True
            elif old_place < place:
                continue
            elif row == old:
                best[key] = (place, row, old_count + count)
                add(result, row, count)
                continue
            else:
                is_better = self._tie(row) < self._tie(old)
            if is_better:
                best[key] = (place, row, count)
                add(result, old, -old_count)
                add(result, row, count)
        return result

    @property
    def table_count(self) -> int:
        return 1

    def state(self) -> Sequence[Iterable[Counted]]:
        return [[(row, count) for _, row, count in self._best.values()]]

    def load(self, state: Sequence[Iterable[Counted]]) -> None:
        self._best.clear()
        self.apply(0, dict(state[0]))

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        per = key_within(columns, key, self.per)
        best = self._best if per is None else {per: self._best[per]} if per in self._best else {}
        rows = ((row, count) for _, row, count in best.values())
        return having(rows, self.schema, columns, key)

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        return [(0, row)]

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """The columns of the partitions."""
        return self.per or None

    def cost(self, port: int) -> Cost:
        return Cost(1, 0)
