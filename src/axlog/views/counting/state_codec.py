"""The state of an engine's operators as tuples, and its restoration over the same document.

The document is not included. The codec is therefore for engines whose messages do not become nodes
(`keep="needed"`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

from axlog.errors import StoreError
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.sites import SiteRelation
from axlog.views.operators.operator import Operator, Snapshot

SavedTables: TypeAlias = tuple[Snapshot, ...]


def saved_tables(engine: CountingEngine) -> SavedTables:
    """The snapshot of every operator, in an order that the document and the views determine."""
    return tuple(operator.snapshot() for operator in _operators(engine))


def size_of_tables(engine: CountingEngine) -> int:
    """The number of keys in the tables: a measure of their size that needs no scan."""
    return sum(
        len(table.index(table.keys()[0]))
        for operator in _operators(engine)
        for table in operator.tables()
    )


def restore_tables(engine: CountingEngine, saved: SavedTables | tuple[Any, ...]) -> None:
    """Restore the state of every operator."""
    operators = list(_operators(engine))
    if all(not each or not isinstance(each[0], int) for each in saved):
        saved = _grouped(operators, saved)
    if len(operators) != len(saved):
        raise StoreError(
            "AX872",
            f"the saved state has {len(saved)} operators, and the views need {len(operators)}",
            advice="run the version that wrote it, or start again without this state",
        )
    for operator, each in zip(operators, saved, strict=True):
        operator.restore(each)


def _grouped(operators: list[Operator], saved: Iterable[Any]) -> SavedTables:
    """The state as version 0.1 wrote it: the rows of all tables, without the operators."""
    tables = iter(saved)
    grouped = tuple(
        (operator.FORMAT, tuple(islice(tables, len(operator.tables())))) for operator in operators
    )
    if next(tables, None) is not None:
        return ()  # for other views: refused
    return grouped


def numbered_states(engine: CountingEngine) -> dict[SiteRelation, int]:
    """The numbers of the relations whose operators are saved, equal after a restart."""
    engine.build()
    states = (state for node in sorted(engine.sites()) for state in engine.states_at(node))
    with_state = (state for state in states if any(map(_has_state, state.operators())))
    return {state: number for number, state in enumerate(with_state)}


def _operators(engine: CountingEngine) -> Iterator[Operator]:
    """The operators with state. The others depend on the sites, which a restart may choose anew."""
    for state in numbered_states(engine):
        yield from filter(_has_state, state.operators())


def _has_state(operator: Operator) -> bool:
    return operator.has_state
