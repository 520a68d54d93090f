"""The range join: each left row with aggregates of the right rows on one side of it in an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

from axlog.evaluate.joins import Bag, Row, add, picker
from axlog.evaluate.sort_keys import exact_key
from axlog.evaluate.work import Meter
from axlog.query.compile import Column
from axlog.views.operators.aggregates import Aggregate
from axlog.views.operators.lookups import having, known_part
from axlog.views.operators.measures import Measures, Member, Tables
from axlog.views.operators.operator import Cost, Operator, Source
from axlog.views.operators.ordered_index import OrderedIndex

LEFT, RIGHT = 0, 1
NEAR = 64
"""Right places between two left places up to which one is computed from the other."""

Comparison: TypeAlias = Literal["<", "<=", ">", ">="]
Cell: TypeAlias = Callable[[Row], Any]
"""The cell of a row that is compared; None: the row has none, and compares with nothing."""


class _Place:
    """The left rows with one value, and the right rows that compare with it."""

    __slots__ = ("cells", "member", "rows")

    def __init__(self, member: Member) -> None:
        self.rows: Bag = {}
        self.member = member
        self.cells: Row = ()


class _Side:
    """The values of both sides, in order, among rows with equal common columns."""

    __slots__ = ("left", "right")

    def __init__(self) -> None:
        self.left = OrderedIndex()  # items: `_Place`
        self.right = OrderedIndex()  # items: the cell, and the `Member` of its right rows


class RangeJoin(Operator):
    """Each left row with the aggregates of the right rows whose value compares with its value.

    Port 0 is the left side, port 1 the right side; a right row r belongs to a left row l if both
    agree in the common columns and `right(r) < left(l)`, or `<=`, `>`, `>=`. Law, with R(l) the
    right rows of l:

        Δout = Σ ΔL(l) (l, f(R(l)))                        for a delta of the left side
        Δout = Σ L(l) ((l, f(R'(l))) - (l, f(R(l))))       for a delta of the right side

    No pair of rows is made. Both sides are in an ordered index by their values, with the aggregates
    of each value; so the aggregates must have small states. A new left value reads the aggregates
    of whole blocks of right values. A delta of the right side is added up once, and then added to
    each left value that it concerns. The left rows are kept; the right rows are not.
    """

    name = "range join"
    __slots__ = (
        "_is_prefix", "_key", "_left", "_measures", "_meter", "_order", "_right", "_right_key",
        "_sides", "comparison", "left", "on", "right", "schema",
    )  # fmt: skip

    def __init__(
        self,
        inputs: tuple[Source, Source],
        values: tuple[Cell, Cell],
        comparison: Comparison,
        aggregates: Sequence[tuple[Column, Aggregate]],
        on: Sequence[Column] = (),
        order: Callable[[Any], Any] = exact_key,
        meter: Meter | None = None,
    ) -> None:
        """`inputs`, `values`: of the left and of the right side; `order`: the sort key of a cell.

        `aggregates`: of right rows; `on`: the common columns; `meter`: counts the left rows that a
        right row concerns.
        """
        self.left, self.right = inputs
        self._left, self._right = values
        self.comparison = comparison
        self._is_prefix = comparison in ("<", "<=")
        self._measures = Measures(aggregates)
        assert self._measures.is_small, "a range join needs aggregates with small states"
        self.on = tuple(on)
        self.schema = (*self.left.schema, *self._measures.columns)
        self._key = picker([self.left.schema.index(column) for column in self.on])
        self._right_key = picker([self.right.schema.index(column) for column in self.on])
        self._order = order
        self._meter = meter
        self._sides: dict[Row, _Side] = {}

    @property
    def empty(self) -> Row:
        """The aggregates of no rows."""
        return self._measures.cells(self._measures.new())

    def _side(self, key: Row) -> _Side:
        side = self._sides.get(key)
        if side is None:
            side = self._sides[key] = _Side()
        return side

    def _drop_empty(self, keys: Iterable[Row]) -> None:
        for key in keys:
            side = self._sides[key]
            if not side.left and not side.right:
                del self._sides[key]

    def apply(self, port: int, delta: Bag) -> Bag:
        return self._apply_left(delta) if port == LEFT else self._apply_right(delta)

    # The left side -------------------------------------------------------------------------------

    def _apply_left(self, delta: Bag) -> Bag:
        result: Bag = {}
        found: list[tuple[Row, Any, Row, int]] = []
        for row, count in delta.items():
            cell = self._left(row)
            if cell is None:
                add(result, row + self.empty, count)
            else:
                found.append((self._key(row), self._order(cell), row, count))
        for key, value, row, count in found:
            side = self._side(key)
            place = side.left.get(value)
            if place is None:
                place = self._new_place(side, value)
                side.left.add(value, place, 1)
            add(result, row + place.cells, count)
            add(place.rows, row, count)
            if not place.rows:
                side.left.add(value, place, -1)
        self._drop_empty({key for key, *_ in found})
        return result

    def _new_place(self, side: _Side, value: Any) -> _Place:
        """A place with the aggregates of its right rows.

        They are read from the neighbour's, if there are few right rows between both, and else from
        the summaries of blocks.
        """
        measures, right = self._measures, side.right
        place = _Place(measures.new())
        start, stop = self._range(right, value)
        near = side.left.rank(value) - self._is_prefix
        if 0 <= near < len(side.left):
            entry = side.left.at(near)
            first, end = self._range(right, entry.key)
            span = (end, stop) if self._is_prefix else (start, first)
            if span[1] - span[0] <= NEAR:
                measures.merge(place.member, entry.item.member)
                start, stop = span
        for _, member in right.parts(start, stop, self._summary):
            measures.merge(place.member, member)
        place.cells = measures.cells(place.member)
        return place

    def _range(self, right: OrderedIndex, value: Any) -> tuple[int, int]:
        """The positions of the right values that compare with a left value."""
        cut = right.rank(value, after=self.comparison in ("<=", ">"))
        return (0, cut) if self._is_prefix else (cut, len(right))

    def _summary(self, items: list[tuple[Any, Member]]) -> tuple[Any, Member]:
        total = self._measures.new()
        for _, member in items:
            self._measures.merge(total, member)
        return None, total

    # The right side ------------------------------------------------------------------------------

    def _apply_right(self, delta: Bag) -> Bag:
        moved: dict[Row, dict[Any, Member]] = {}  # by key and cell
        for row, count in delta.items():
            cell = self._right(row)
            if cell is not None:
                cells = moved.setdefault(self._right_key(row), {})
                if cell not in cells:
                    cells[cell] = self._measures.new()
                self._measures.add(cells[cell], row, count)
        result: Bag = {}
        for key, cells in moved.items():
            self._merge_right(self._side(key), cells, result)
        self._drop_empty(moved)
        return result

    def _merge_right(self, side: _Side, cells: dict[Any, Member], result: Bag) -> None:
        """Add the aggregates of right rows, by cell, to both indexes, and what moves to the result.

        The places are read away from the side on which right rows belong to all of them, and the
        aggregates that concern a place add up on the way.
        """
        measures, order = self._measures, self._order
        pending = sorted(((order(cell), member) for cell, member in cells.items()), key=_first,
                         reverse=self._is_prefix)  # fmt: skip
        for cell, member in cells.items():
            self._keep_right(side.right, cell, member)
        left = side.left
        nearest = pending[-1][0]
        if self._is_prefix:
            places = list(left.entries(left.rank(nearest, after=self.comparison == "<")))
        else:
            places = list(left.entries(0, left.rank(nearest, after=self.comparison == ">=")))[::-1]
        self._spend(len(places))
        total = measures.new()
        for value, place, _ in places:
            while pending and self._holds(pending[-1][0], value):
                measures.merge(total, pending.pop()[1])
            measures.merge(place.member, total)
            after = measures.cells(place.member)
            if after != place.cells:
                for row, count in place.rows.items():
                    add(result, row + place.cells, -count)
                    add(result, row + after, count)
                self._spend(len(place.rows))
                place.cells = after

    def _keep_right(self, right: OrderedIndex, cell: Any, moved: Member) -> None:
        value = self._order(cell)
        found = right.get(value, to_change=True)
        if found is None:
            kept = self._measures.new()
            right.add(value, (cell, kept), 1)
        else:
            _, kept = found
        self._measures.merge(kept, moved)
        if not kept.count:
            right.add(value, (cell, kept), -1)

    def _holds(self, right: Any, left: Any) -> bool:
        """Whether a right value compares with a left value, by their sort keys."""
        match self.comparison:
            case "<":
                return bool(right < left)
            case ">":
                return bool(left < right)
            case "<=":
                return not left < right
            case _:
                return not right < left

    def _spend(self, rows: int) -> None:
        if self._meter is not None and rows > 1:
            self._meter.spend(rows)

    # State ---------------------------------------------------------------------------------------

    @property
    def table_count(self) -> int:
        return 1 + self._measures.table_count

    def state(self) -> Tables:
        """The left rows, then the aggregates of the right rows by common columns and cell."""
        lefts = [
            each
            for side in self._sides.values()
            for entry in side.left.entries()
            for each in entry.item.rows.items()
        ]
        rights = {
            (*key, entry.item[0]): entry.item[1]
            for key, side in self._sides.items()
            for entry in side.right.entries()
        }
        return [lefts, *self._measures.tables(rights)]

    def load(self, state: Tables) -> None:
        self._sides.clear()
        lefts, *rights = state
        members: dict[Row, Member] = {}

        def find(key: Row) -> Member:
            if key not in members:
                members[key] = self._measures.new()
            return members[key]

        self._measures.load(rights, len(self.on) + 1, find)
        for (*key, cell), member in members.items():
            self._keep_right(self._side(tuple(key)).right, cell, member)
        self._apply_left(dict(lefts))

    # Answers -------------------------------------------------------------------------------------

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        rows = self.left.lookup(*known_part(columns, key, self.left.schema))
        shown = ((row + self._cells(row), count) for row, count in rows.items())
        return having(shown, self.schema, columns, key)

    def _cells(self, row: Row) -> Row:
        """The aggregates that a left row shows."""
        cell, side = self._left(row), self._sides.get(self._key(row))
        place = None if cell is None or side is None else side.left.get(self._order(cell))
        return self.empty if place is None else place.cells

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        left = row[: len(self.left.schema)]
        found = [(LEFT, left)]
        cell = self._left(left)
        if cell is not None:
            value = self._order(cell)
            for each in self.right.lookup(self.on, self._key(left)):
                other = self._right(each)
                if other is not None and self._holds(self._order(other), value):
                    found.append((RIGHT, each))
        return found

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """The common columns."""
        return self.on or None

    def cost(self, port: int) -> Cost:
        """A right row reads the left values on one side of it."""
        return Cost(2, 0) if port == LEFT else Cost(1, 1)


def _first(pair: tuple[Any, Member]) -> Any:
    return pair[0]
