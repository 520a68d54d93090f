"""The tables of an engine as tuples, and their restoration over the same document.

Tables are restored in place, because generated joins refer to them. The document is not included.
The codec is therefore for engines whose messages do not become nodes (`keep="needed"`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from axlog.evaluate.joins import Bag, Row, add_all
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.sites import State
from axlog.views.counting.tables import Table

SavedTables: TypeAlias = tuple[tuple[tuple[Row, int], ...], ...]


def saved_tables(engine: CountingEngine) -> SavedTables:
    """The rows of every table, in an order that depends on the document and the views alone."""
    return tuple(tuple(table.rows().items()) for table in _tables(engine))


def size_of_tables(engine: CountingEngine) -> int:
    """The number of keys in the tables: a measure of their size that needs no scan."""
    return sum(len(table.index(table.keys()[0])) for table in _tables(engine))


def restore_tables(engine: CountingEngine, saved: SavedTables) -> None:
    """Restore the rows of every table."""
    for table, rows in zip(_tables(engine), saved, strict=True):
        moved: Bag = dict(rows)
        add_all(moved, table.rows(), -1)
        table.update(moved)


def _tables(engine: CountingEngine) -> Iterator[Table]:
    engine.build()
    for node in sorted(engine.sites()):
        yield from _of_states(engine.states_at(node))


def _of_states(states: Iterable[State]) -> Iterator[Table]:
    for state in states:
        yield from state.tables
        for tables in state.choice_rows:
            yield from tables
        yield from state.body_rows
        for alternatives in state.alternatives:
            yield from _of_states(alternatives)
        yield from _of_states(state.bodies)
