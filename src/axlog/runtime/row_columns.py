"""The rows of a route as columns: how the messages of the short path travel to a bucket.

    columns = write_rows(rows)     plain data
    read_rows(columns) == rows     in the same order

A row is (time, place, number, bags, origin), and for messages of a user's DataFrame also a number
that identifies it. Its values are few and alike: integers become the bytes of one array, and texts
become one text. So a row is written and read by loops in C.

Bags are brief here: most have no row or one, and a dictionary for each would take most of the
memory of a batch. `brief` gives None for an empty bag, and the row of a bag that has one row once;
`whole` makes the bag again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np

from axlog.evaluate.joins import Bag

Row: TypeAlias = tuple[Any, ...]
Brief: TypeAlias = tuple[Any, ...] | Bag | None
_BETWEEN = "\0"
"""Between the texts of a column; no XML has it."""
_EMPTY = {type(None)}


def brief(bag: Bag) -> Brief:
    """Return a bag in its brief form."""
    if not bag:
        return None
    if len(bag) == 1:
        for row, count in bag.items():
            if count == 1:
                return row
    return bag


def whole(bags: Iterable[Brief]) -> tuple[Bag, ...]:
    """Return the bags that were made brief; those that were not are returned as they are."""
    return tuple([{bag: 1} if type(bag) is tuple else bag or {} for bag in bags])  # type: ignore[misc]


def write_rows(rows: Sequence[Row]) -> tuple[Any, ...]:
    """Return rows as plain data; there is at least one."""
    times, places, numbers, bags, *rest = zip(*rows, strict=True)
    same = places[0] if len(set(places)) == 1 else list(places)
    relations = [_written_bags(column) for column in zip(*bags, strict=True)]
    return (len(rows), _written(times), same, _written(numbers), relations, *map(_written, rest))


def read_rows(written: Sequence[Any]) -> Iterator[Row]:
    """Return the rows that `write_rows` wrote, or a list of rows, the form of earlier versions."""
    if isinstance(written, list):
        return iter(written)
    size, times, same, numbers, relations, *rest = written
    places = [same] * size if isinstance(same, str) else same
    bags: Iterable[tuple[Brief, ...]] = [()] * size
    if relations:
        bags = zip(*(_read_bags(each, size) for each in relations), strict=True)
    return zip(_read(times), places, _read(numbers), bags, *map(_read, rest), strict=True)


def _written_bags(column: Sequence[Brief]) -> Any:
    """Return the bags of a relation: None if all are empty; a list of the bags if one is not
    brief; or a mark for each, whether it has a row, and the columns of the rows.
    """
    types = set(map(type, column))
    if types == _EMPTY:
        return None
    if dict in types:
        return list(column)
    rows = column if len(types) == 1 else [row for row in column if row is not None]
    marks = None if len(types) == 1 else bytes([row is not None for row in column])
    return (marks, len(rows), [_written(values) for values in zip(*rows, strict=True)])


def _read_bags(written: Any, size: int) -> Iterable[Brief]:
    if written is None:
        return repeat(None, size)
    if isinstance(written, list):
        return written
    marks, count, columns = written
    rows: Iterable[tuple[Any, ...]] = repeat((), count)
    if columns:
        rows = zip(*map(_read, columns), strict=True)
    if marks is None:
        return rows
    rest = iter(rows)
    return [next(rest) if has_one else None for has_one in marks]


def _written(values: Sequence[Any]) -> Any:
    """Return a column: a text of all texts, the bytes of all integers, or a list."""
    types = set(map(type, values))
    if types == {str}:
        together = _BETWEEN.join(values)
        return together if together.count(_BETWEEN) == len(values) - 1 else list(values)
    if types == {int}:
        try:
            return np.array(values, "<i8").tobytes()
        except OverflowError:
            pass
    return list(values)


def _read(written: Any) -> Sequence[Any]:
    if isinstance(written, str):
        return written.split(_BETWEEN)
    if isinstance(written, bytes):
        found: list[int] = np.frombuffer(written, "<i8").tolist()
        return found
    values: list[Any] = written
    return values
