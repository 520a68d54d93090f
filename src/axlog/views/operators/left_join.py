"""The left join: outer rows with the inner rows that match them, or with none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axlog.evaluate.joins import Bag, Row, add, add_all, picker
from axlog.evaluate.work import Meter
from axlog.query.compile import Column
from axlog.views.operators.lookups import having, known_part
from axlog.views.operators.operator import Cost, Operator, Source
from axlog.views.operators.table import NewIndex, Table

LEFT, RIGHT = 0, 1


class LeftJoin(Operator):
    """Each left row with every right row that agrees in the common columns; without one, alone.

    Port 0 is the left side, port 1 the right side. A left row without a right row appears once,
    with given default cells. If the right side is a `Group` by the common columns, every left row
    has one aggregate, and its `empty` cells are the default: zero is included. Law, with
    r(k) the right rows with key k, or the default if there are none:

        Δout = Σ ΔL(l) (l, r(k_l))              for a delta of the left side
        Δout = Σ L(l) (l, r'(k_l) - r(k_l))     for a delta of the right side, over its keys

    The right side is kept. The left rows that a right row concerns are looked up in the left
    operator and not stored.
    """

    name = "left join"
    __slots__ = (
        "_at", "_default", "_key", "_meter", "_more", "_right_key", "kept", "left", "on", "schema",
    )  # fmt: skip

    def __init__(
        self,
        left: Source,
        right: Source,
        on: Sequence[Column],
        default: Row,
        meter: Meter | None = None,
        new_index: NewIndex = dict,
    ) -> None:
        """`on`: the common columns; `default`: the cells of the other right columns without a row.

        `meter`: counts the rows that a right row concerns.
        """
        more = [column for column in right.schema if column not in on]
        assert len(default) == len(more), "one default for each column of the right side"
        self.left = left
        self.on = tuple(on)
        self.schema = (*left.schema, *more)
        self._default = default
        self._at = tuple(map(right.schema.index, self.on))
        self._key = picker([left.schema.index(column) for column in self.on])
        self._right_key = picker(self._at)
        self._more = picker([right.schema.index(column) for column in more])
        self._meter = meter
        self.kept = Table({}, [self._at], new_index)

    def tables(self) -> Sequence[Table]:
        return (self.kept,)

    def _cells(self, key: Row) -> Iterable[tuple[Row, int]]:
        """The right cells for a left row with this key, with their counts."""
        rows = self.kept.matching(self._at, key)
        if not rows:
            return ((self._default, 1),)
        return [(self._more(row), count) for row, count in rows]

    def apply(self, port: int, delta: Bag) -> Bag:
        if port == LEFT:
            return self._joined(delta)
        result: Bag = {}
        keys = dict.fromkeys(map(self._right_key, delta))
        before = {key: dict(self._cells(key)) for key in keys}
        self.kept.update(delta)
        for key, old in before.items():
            moved: Bag = dict(self._cells(key))
            add_all(moved, old, -1)
            if moved:
                rows = self.left.lookup(self.on, key)
                self._spend(len(rows) * len(moved))
                for row, count in rows.items():
                    for cells, more in moved.items():
                        add(result, row + cells, count * more)
        return result

    def _joined(self, rows: Bag) -> Bag:
        result: Bag = {}
        for row, count in rows.items():
            cells = self._cells(self._key(row))
            for each, more in cells:
                add(result, row + each, count * more)
        return result

    def _spend(self, rows: int) -> None:
        if self._meter is not None and rows > 1:
            self._meter.spend(rows)

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        rows = self.left.lookup(*known_part(columns, key, self.left.schema))
        return having(self._joined(rows).items(), self.schema, columns, key)

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        width = len(self.left.schema)
        left, cells = row[:width], row[width:]
        rights = self.kept.matching(self._at, self._key(left))
        return [(LEFT, left), *((RIGHT, each) for each, _ in rights if self._more(each) == cells)]

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """The common columns."""
        return self.on or None

    def cost(self, port: int) -> Cost:
        return Cost(1, 0) if self.on else Cost(0, 1)
