"""Rows that a join dropped because no partner can arrive, and the times at which rows arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from operator import itemgetter
from typing import NamedTuple

from axlog.evaluate.joins import Row, Value
from axlog.future.garbage import Pair, Proof
from axlog.views.operators.table import Table


class Ended(NamedTuple):
    """A row that was dropped, and the proof that it has no possible partner."""

    part: int
    row: Row
    proof: Proof
    limit: int | None = None  # the deadline that passed
    passed: float = -inf  # the last deadline of a member that had passed before


def arrival(positions: Sequence[int]) -> Callable[[Row], float]:
    """A function that returns the latest time of a row; -inf if it has none."""
    if len(positions) == 1:
        return itemgetter(positions[0])
    return lambda row: max((int(row[i]) for i in positions), default=-inf)


def rows_apart(kept: Sequence[Table], live: Sequence[Table]) -> Iterator[tuple[Row, ...]]:
    """The rows of each part of a join that are kept and do not wait for a partner."""
    for every, waiting in zip(kept, live, strict=True):
        still = waiting.rows()
        yield tuple(row for row in every.rows() if row not in still)


def remove_rows(tables: Sequence[Table], rows: Sequence[Sequence[Row]]) -> None:
    """Remove rows from the tables, as far as they are there."""
    for table, gone in zip(tables, rows, strict=False):
        for row in gone:
            table.remove(row)


def key_positions(pair: Pair, part: int) -> tuple[int, int] | None:
    """The position of a part's key value in its rows, and in the rows of the other part."""
    key = pair.sides[part].key
    if key is None:
        return None
    column = pair.sides[part].columns[key[0]]
    return key[0], pair.sides[1 - part].columns.index(column)


def key_values(
    seen: Sequence[set[str] | None], recent: Sequence[Mapping[Value, int]], clock: int
) -> tuple[tuple[str, ...], ...]:
    """The key values of each part that are remembered; where none are, those of this instant."""
    now = [[str(value) for value, at in each.items() if at == clock] for each in recent]
    each = zip(seen, now, strict=True)
    return tuple(tuple(sorted(mine if known is None else known)) for known, mine in each)


def rules_out(used: float, row: Row, times: Sequence[int], limits: Iterable[int | None]) -> bool:
    """Whether a key value that is not remembered has ruled out a row of the other part.

    It rules out the rows that waited when it arrived, rows of the same instant, and rows that
    arrived while a row with the value waited. `limits`: the deadlines of the rows with the value.
    """
    arrived = max((int(row[at]) for at in times), default=None)
    if arrived is None or used >= arrived:
        return True
    return any(limit is None or limit >= arrived for limit in limits)
