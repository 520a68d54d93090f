"""The buckets of a unit as a grid: one dimension for each column by which its rows are split.

Most views have one dimension: a column that all relations fed by streams have. Joins in which no
column is everywhere (a chain `A(p), B(p, k), C(k)`, a product, a triangle) have two or three. A row
of a relation goes to the buckets of its values in the columns that it has, and along the other
dimensions to all of them: in 4 x 4 buckets a row of A and of C has four, and a row of B has one.
All rows that can make or block one row of the view then meet in one bucket, in one step.

Stages that repartition between two joins would send no row twice. But the rows that are possible,
and those that can never come, need rows that meet in no stage: while B is open, each row of A may
come together with each row of C. In the grid they meet, so changes, `never`, deadlines and times
are those of one engine.

Law: every derivation of a row is in one bucket, that of the row (`--law pipelines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from zlib import crc32

from axlog.query.compile import Column

ALL = -1
"""Used instead of a column's position: the relation goes to every bucket of the dimension."""
LEAST = 4
"""The buckets of the smallest grid."""
_MOST = 3
"""The most dimensions."""


@dataclass(frozen=True)
class Dimension:
    """A column that splits rows, and the number of parts."""

    column: Column
    parts: int
    positions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By stream, where each relation that it feeds has the column, or `ALL`."""
    output: str | None = None  # the column as named in rows of the view; None: a final step follows
    own: int | None = (
        None  # with a final step: its position in rows of the pattern, if they have it
    )

    def __str__(self) -> str:
        return f"{self.column} ({self.parts} parts)"


Grid = tuple[Dimension, ...]


def coordinate(grid: Grid, number: int, value: object) -> int:
    """The place of a value in a dimension; the same on every machine.

    Equal values of two columns have independent places.
    """
    return (crc32(str(value).encode()) >> 8 * number) % grid[number].parts


def cells(grid: Grid, values: Sequence[object]) -> list[int]:
    """The buckets of a row with these values, one for each dimension; None: all of it."""
    places = [
        range(each.parts) if value is None else (coordinate(grid, number, value),)
        for number, (each, value) in enumerate(zip(grid, values, strict=True))
    ]
    return [_cell(grid, one) for one in product(*places)]


def _cell(grid: Grid, places: Iterable[int]) -> int:
    found = 0
    for each, place in zip(grid, places, strict=True):
        found = found * each.parts + place
    return found


def place_in(grid: Grid, number: int, cell: int) -> int:
    """The place of a bucket in a dimension."""
    for each in reversed(grid[number + 1 :]):
        cell //= each.parts
    return cell % grid[number].parts


def parts_of(
    columns: Sequence[Column], relations: Sequence[Sequence[Column]], count: int
) -> dict[Column, int]:
    """Choose two or three of some columns, and their parts, for a number of buckets.

    Every relation has one of the columns at least. The buckets have as few rows as possible, if all
    relations have equally many. Empty: there is no such choice.
    """
    best: tuple[float, int, dict[Column, int]] | None = None
    for size in range(2, _MOST + 1):
        for chosen in combinations(columns, size):
            if not all(any(c in each for c in chosen) for each in relations):
                continue
            for parts in _shares(count, size):
                made = dict(zip(chosen, parts, strict=True))
                load = sum(_share_of(each, made) for each in relations)
                if best is None or (load, _cells_of(parts)) < best[:2]:
                    best = load, _cells_of(parts), made
    return {} if best is None else best[2]


def _share_of(relation: Sequence[Column], parts: Mapping[Column, int]) -> float:
    """The part of a relation's rows that a bucket gets."""
    share = 1.0
    for column, number in parts.items():
        if column in relation:
            share /= number
    return share


def _cells_of(parts: Iterable[int]) -> int:
    found = 1
    for number in parts:
        found *= number
    return found


def _shares(count: int, size: int) -> Iterator[tuple[int, ...]]:
    """The numbers of parts, at least two each, that give at most so many buckets."""
    if size == 1:
        yield from [(count,)] if count >= 2 else []
        return
    for first in range(2, count // 2 ** (size - 1) + 1):
        for rest in _shares(count // first, size - 1):
            yield first, *rest
