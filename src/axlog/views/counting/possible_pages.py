"""Possible rows page by page, the next deadlines first.

The order is that of deadlines, then of values, then of needs; rows without a deadline come last. A
page starts after a row of the order, wherever that row is now, so pages stay right while data
arrives: no row that stays possible with its deadline is left out or repeated.

Waiting rows are in an ordered index, made for the first page and kept from then on: a page costs
its length and the logarithm of the rows. So it is in joins of more parts, where the deadline of a
way is one of those of its rows; ways without deadlines follow the values of the first column of the
view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from axlog.views.operators.table import Index

MOST_NEW = 1_000
"""Changes since a page, beyond the rows of its order, from which the next page makes a new one."""
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
    """The waiting rows of a join of two parts, in the order of the possible rows that they give.

    Of rows of a part that show the same of a view, the one with the latest deadline counts.
    """

    def __init__(
        self,
        waiting: WaitingRows,
        shown: Callable[[int, Row], Shown],
        indexes: Mapping[int, Index],
    ) -> None:
        """`indexes`: of parts that tell followers nothing, by what they show."""
        self._waiting = waiting
        self._shown = shown
        self._rows = OrderedIndex()  # by their parts, by what they show, and by their deadlines
        self._lasts = OrderedIndex()  # by deadlines, what they show, and their parts
        self._indexes = indexes
        self._counts = dict.fromkeys(indexes, 0)  # keys that were read
        self._new: list[tuple[int, Row, int]] = []  # what has happened since the last page
        self._is_outdated = False
        for part, table in enumerate(waiting.live):
            for row, count in () if part in indexes else table.rows().items():
                self._add(part, row, count)
        waiting.followers.append(self._follow)

    def catch_up(self) -> bool:
        """Read what has happened since the last page; False: a new order is needed."""
        if self._is_outdated or any(len(i) < self._counts[p] for p, i in self._indexes.items()):
            self._waiting.followers.remove(self._follow)
            return False
        for each in self._new:
            self._add(*each)
        self._new.clear()
        for part, index in self._indexes.items():
            new, self._counts[part] = len(index) - self._counts[part], len(index)
            for key in islice(reversed(index), new):
                bucket = index[key]
                self._add(part, next(iter(bucket)) if isinstance(bucket, dict) else bucket[0], 1)
        return True

    def _follow(self, part: int, row: Row, count: int) -> None:
        """Note what has happened, to be read with the next page; give up after too much."""
        if self._is_outdated or part in self._indexes:
            return
        self._new.append((part, row, count))
        if len(self._new) > MOST_NEW + len(self._rows):
            self._is_outdated = True
            self._new.clear()

    def _add(self, part: int, row: Row, count: int) -> None:
        limit = self._waiting.deadline(part, row)
        deadline = FAR if limit is None else limit
        values = _sortable(self._shown(part, row))
        before = self._last(part, values)
        self._rows.add((part, values, deadline, row), (deadline, row), count)
        after = self._last(part, values)
        if before != after:
            if before is not None:
                self._lasts.add((before[0], values, part), None, -1)
            if after is not None:
                self._lasts.add((after[0], values, part), (part, after[1]), 1)

    def _last(self, part: int, values: Place) -> tuple[int, Row] | None:
        """The last row of a part that shows these values, and its deadline."""
        position = self._rows.rank((part, values, FAR + 1)) - 1
        entry = self._rows.at(position) if position >= 0 else None
        return entry.item if entry is not None and entry.key[:2] == (part, values) else None

    def groups(self, start: Place | None) -> Iterator[list[tuple[int, Row]]]:
        """The last rows from a place on, in groups with the same deadline and values."""
        first = 0 if start is None else self._lasts.rank(start[:2])
        for _, group in groupby(self._lasts.entries(first), key=lambda entry: entry.key[:2]):
            yield [entry.item for entry in group]
