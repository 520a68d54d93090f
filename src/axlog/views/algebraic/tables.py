"""Tables of bindings: columns of integers with a derivation count for each row, and their joins.

A `Column` names a column: the handle that a pattern node is bound to, or the value of an output
that is not a node (a time, or the code of a string). Structural joins of `evaluate` turn a
parent or ancestor edge into a column of handles, so that every join here is on equal integers. A
table need not be free of repeated rows: `grouped` adds their counts up.

The derivation count of a tuple is the number of rows before duplicate elimination (paper 5,
section 2.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from axlog.evaluate.joins import GROWTH, too_many_rows

Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


MOST_PAIRS = 10_000_000
"""The most rows of a join that is much larger than its inputs; about 500 MB."""


class Column(NamedTuple):
    """Which column: the node bound to a pattern node, or the value that an output shows."""

    kind: str  # node or value
    number: int


@lru_cache(maxsize=256)
def node_column(number: int) -> Column:
    """The column of the nodes that a pattern node is bound to."""
    return Column("node", number)


@dataclass(slots=True)
class Table:
    """Rows of bindings and how often each was derived."""

    columns: dict[Column, Integers]
    counts: Integers

    def __len__(self) -> int:
        return len(self.counts)

    def taken(self, rows: Any, more: Mapping[Column, Integers] | None = None) -> Table:
        """Some rows, by positions or a mask; with further columns."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Table({**columns, **(more or {})}, self.counts[rows])

    def keeping(self, wanted: Iterable[Column]) -> Table:
        """Drop the columns that are no longer needed.

        If at most one column remains, equal rows are merged: such a branch carries a count.
        """
        kept = set(wanted)
        if kept >= self.columns.keys():
            return self
        columns = {name: column for name, column in self.columns.items() if name in kept}
        table = Table(columns, self.counts)
        return grouped(table) if len(columns) < 2 else table

    def times(self, sign: int) -> Table:
        return Table(self.columns, self.counts * sign)


def nothing(columns: Iterable[Column]) -> Table:
    """A table of these columns without rows."""
    empty = np.empty(0, dtype=np.int64)
    return Table(dict.fromkeys(columns, empty), empty)


def joined(left: Table, right: Table, on: Column) -> Table:
    """Every pair of rows that agree on a column; counts multiply."""
    if len(right) > len(left):
        left, right = right, left
    positions, places = matches(left.columns[on], right.columns[on])
    more = {n: c[places] for n, c in right.columns.items() if n not in left.columns}
    table = left.taken(positions, more)
    table.counts = table.counts * right.counts[places]
    return table


def matches(left: Integers, right: Integers) -> tuple[Integers, Integers]:
    """Positions of equal values: pairs from left and right."""
    order = np.argsort(right, kind="stable")
    ordered = right[order]
    start = np.searchsorted(ordered, left, "left")
    size = np.searchsorted(ordered, left, "right") - start
    if size.sum() > max(MOST_PAIRS, GROWTH * (len(left) + len(right))):
        raise too_many_rows(MOST_PAIRS)
    positions, inside = expanded(size)
    return positions, order[start[positions] + inside]


def expanded(sizes: Integers) -> tuple[Integers, Integers]:
    """For groups of these sizes: each member's group, and its place in it."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - sizes
    return groups, np.arange(len(groups)) - starts[groups]


def grouped(table: Table) -> Table:
    """Every distinct row once, with the sum of its counts."""
    if len(table) < 2:
        return table
    if not table.columns:
        return Table({}, table.counts.sum(keepdims=True))
    columns = list(table.columns.values())
    order = sorted_by(columns)
    is_new = np.zeros(len(table), dtype=np.bool_)
    is_new[0] = True
    for column in columns:
        ordered = column[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_new)
    if len(starts) == len(table):
        return table
    counts = np.add.reduceat(table.counts[order], starts)
    return Table({n: c[order][starts] for n, c in table.columns.items()}, counts)


def sorted_by(columns: Sequence[Integers]) -> Integers:
    """The order of rows by their columns, the first the most significant."""
    if len(columns) == 1:
        return np.argsort(columns[0], kind="stable")
    return np.lexsort(columns[::-1])


def stacked(tables: Sequence[Table]) -> Table:
    """The rows of several tables of the same columns, as they are."""
    if len(tables) == 1:
        return tables[0]
    return Table(
        {name: np.concatenate([t.columns[name] for t in tables]) for name in tables[0].columns},
        np.concatenate([t.counts for t in tables]),
    )


def together(tables: Sequence[Table], columns: Iterable[Column]) -> Table:
    """The distinct rows of several tables, without those whose counts add up to zero."""
    wanted = tuple(columns)
    filled = [table for table in tables if len(table)]
    if not filled:
        return nothing(wanted)
    whole = Table(
        {name: np.concatenate([table.columns[name] for table in filled]) for name in wanted},
        np.concatenate([table.counts for table in filled]),
    )
    whole = grouped(whole)
    stays = whole.counts != 0
    return whole if stays.all() else whole.taken(stays)
