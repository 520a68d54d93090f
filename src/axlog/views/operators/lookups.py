"""Look-ups by columns: the parts that operators have in common."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from axlog.evaluate.joins import Bag, Row, picker
from axlog.query.compile import Column
from axlog.views.operators.operator import Counted


def known_part(
    columns: Sequence[Column], key: Row, known: Container[Column]
) -> tuple[tuple[Column, ...], Row]:
    """The columns of a look-up that are known to an input, and their values."""
    places = [at for at, column in enumerate(columns) if column in known]
    return tuple(columns[at] for at in places), picker(places)(key)


def key_within(columns: Sequence[Column], key: Row, wanted: Sequence[Column]) -> Row | None:
    """The values of some columns in a look-up; None if it does not give all of them."""
    values = dict(zip(columns, key, strict=True))
    if all(column in values for column in wanted):
        return tuple(values[column] for column in wanted)
    return None


def having(
    rows: Iterable[Counted], schema: Sequence[Column], columns: Sequence[Column], key: Row
) -> Bag:
    """The rows that have these values in these columns."""
    pick = picker([schema.index(column) for column in columns])
    return {row: count for row, count in rows if pick(row) == key}
