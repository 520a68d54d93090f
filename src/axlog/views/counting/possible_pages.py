"""Possible rows page by page, the next deadlines first.

The order is that of deadlines, then of values, then of needs; rows without a deadline come last. A
page starts after a row of the order, wherever that row is now, so pages stay right while data
arrives: no row that stays possible with its deadline is left out or repeated.

Waiting rows with deadlines are in an ordered index, made for the first page and kept from then on:
a page costs its length and the logarithm of the rows. So it is in joins of more parts, where the
deadline of a way is one of those of its rows; ways without deadlines follow the values of the first
column of the view. In joins of two, rows without deadlines are compared one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import groupby, islice
from typing import Any

from axlog.evaluate.joins import Row
from axlog.future.join_inputs import FAR
from axlog.future.truth import Possible
from axlog.query.compile import Column
from axlog.views.counting.row_index import Shown
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.operators.ordered_index import OrderedIndex

Place = tuple[Any, ...]
"""A deadline, values and needs: the place of a possible row in the order."""


def place_of(one: Possible) -> Place:
    """The place of a possible row; its deadline is in microseconds."""
    until = one.deadline
    deadline = FAR if until is None else until
    return deadline, _sortable(one.row.values()), one.needs


def page_of(
    listed: Iterable[Possible],
    limit: int | None,
    after: Possible | None,
    place: Callable[[Possible], Place] = place_of,
) -> list[Possible]:
    """A page of possible rows that are listed in any order."""
    start = None if after is None else place(after)
    left = (one for one in listed if start is None or place(one) > start)
    return sorted(left, key=place) if limit is None else nsmallest(limit, left, key=place)


def _sortable(values: Iterable[Any]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, "" if value is None else value) for value in values)


class WayOrder:
    """The rows of a join of several parts by their deadlines and by what they show of a view.

    A row has a deadline for each way to end.
    """

    def __init__(self, parts: Sequence[Sequence[Column]], shown: Sequence[Column]) -> None:
        """`parts`: the columns of each part. `shown`: those of the view."""
        self._shown = [
            [columns.index(each) if each in columns else None for each in shown]
            for columns in parts
        ]
        self._index = OrderedIndex()

    def shows_all(self, part: int) -> bool:
        """Whether rows of a part show all values of the view."""
        return None not in self._shown[part]

    def _key(self, deadline: int, part: int, row: Row) -> tuple[Any, ...]:
        shown = [None if at is None else row[at] for at in self._shown[part]]
        return deadline, _sortable(shown), part, row

    def add(self, deadline: int, part: int, row: Row) -> None:
        """Note a deadline of a row of a part, unless it is known."""
        key = self._key(deadline, part, row)
        if self._index.get(key) is None:
            self._index.add(key, (part, row), 1)

    def remove(self, deadline: int, part: int, row: Row) -> None:
        """Forget a deadline that has passed, or whose row is dropped."""
        key = self._key(deadline, part, row)
        if self._index.get(key) is not None:
            self._index.add(key, (part, row), -1)

    def since(self, place: Place) -> Iterator[tuple[Place, int, Row]]:
        """The rows from a place on, with theirs and their parts; nothing may be added meanwhile."""
        for entry in self._index.entries(self._index.rank(place)):
            yield entry.key[:2], *entry.item


class ValueOrder:
    """The values of a column in indexes of tables, in their order.

    Values are only added to the indexes, at their end.
    """

    def __init__(self, indexes: Sequence[tuple[dict[Row, Any], int]]) -> None:
        """`indexes`: with the place of the value in their keys."""
        self._indexes = indexes
        self._counts = [0] * len(indexes)  # keys that were read
        self._values = OrderedIndex()

    def remove(self, values: Iterable[Any]) -> None:
        """Forget values, unless they are added again."""
        for value in values:
            self._values.add(value, True, -1)

    def since(self, value: Any) -> Iterator[Any]:
        """The values from one on, in order; None: all. The order must not change meanwhile."""
        for number, (index, place) in enumerate(self._indexes):
            new, self._counts[number] = len(index) - self._counts[number], len(index)
            for key in islice(reversed(index), new):
                if self._values.get(key[place]) is None:
                    self._values.add(key[place], True, 1)
        first = 0 if value is None else self._values.rank(value)
        return (entry.key for entry in self._values.entries(first))


class DeadlineOrder:
    """The waiting rows of a join of two parts that have deadlines, in their order."""

    def __init__(self, waiting: WaitingRows, shown: Callable[[int, Row], Shown]) -> None:
        self._waiting = waiting
        self._shown = shown
        self._index = OrderedIndex()
        self._parts = [part for part, side in enumerate(waiting.pair.sides) if side.is_bounded]
        for part in self._parts:
            for row, count in waiting.live[part].rows().items():
                self._follow(part, row, count)
        waiting.followers.append(self._follow)

    def _follow(self, part: int, row: Row, count: int) -> None:
        if part in self._parts:
            limit = self._waiting.deadline(part, row)
            values = _sortable(self._shown(part, row))
            key = (FAR if limit is None else limit, values, part, row)
            self._index.add(key, (part, row), count)

    def groups(self, start: Place | None) -> Iterator[list[tuple[int, Row]]]:
        """The rows from a place on, in groups with the same deadline and values."""
        first = 0 if start is None else self._index.rank(start[:2])
        entries = self._index.entries(first)
        for _, group in groupby(entries, key=lambda entry: entry.key[:2]):
            yield [entry.item for entry in group]

    def rest(self) -> Iterator[tuple[int, Row]]:
        """The rows of parts without deadlines."""
        for part, table in enumerate(self._waiting.live):
            if part not in self._parts:
                yield from ((part, row) for row in table.rows())
