"""The facts of an engine as they are now: a copy that can be thought about while it works on.

Only the nodes above open calls count: what is elsewhere cannot change by streams, and what it
contributes has risen into their tables. A relation with one edge keeps no rows: they stand in the
tables above it, or in the rows of the view.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from axlog.document.tree import DOCUMENT_NODE
from axlog.evaluate.joins import Row
from axlog.future.scenarios import may_bring
from axlog.query.compile import Relation
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.sites import State


@dataclass(frozen=True, slots=True)
class Kept:
    """What one relation has at one node: its own columns, and the rows of each part."""

    relation: Relation
    columns: tuple[str, ...]  # of `own`
    own: Row
    parts: tuple[tuple[Row, ...], ...]  # of the edges; empty for a relation that keeps none
    alternatives: tuple[tuple[tuple[Kept, tuple[Row, ...]], ...], ...]  # of the choices


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known at the nodes above open calls, the deepest first."""

    clock: int
    nodes: tuple[int, ...]
    parents: dict[int, int]
    kept: dict[int, tuple[Kept, ...]]
    calls: dict[int, tuple[str, ...]]  # the streams that may still bring trees, by parent
    size: int  # rows copied
    below: dict[int, tuple[str, ...]]  # the same at any depth below


def facts_of(engine: CountingEngine, wanted: Container[Relation]) -> Facts:
    """A copy of what the engine keeps of some relations above the open calls."""
    engine.build()
    tree = engine.tree
    calls: dict[int, list[str]] = {}
    below: dict[int, list[str]] = {}
    parents: dict[int, int] = {}
    depths: dict[int, int] = {}
    for stream, call in sorted(tree.calls().items()):
        if not may_bring(tree, tree.call(call)):
            continue
        parent = tree.parent(call)
        calls.setdefault(parent, []).append(stream)
        path = [parent, *tree.ancestors(parent)]
        for depth, node in enumerate(reversed(path)):
            below.setdefault(node, []).append(stream)
            depths[node] = depth
            parents[node] = tree.parent(node) if node != DOCUMENT_NODE else DOCUMENT_NODE
    nodes = sorted(depths, key=lambda node: -depths[node])
    copying = _Copying()
    kept = {
        node: tuple(
            copying.of(state)
            for state in engine.states_at(node)
            if state.relation in wanted and not state.is_dead
        )
        for node in nodes
    }
    streams, deeper = (
        {node: tuple(each) for node, each in found.items()} for found in (calls, below)
    )
    return Facts(tree.clock, tuple(nodes), parents, kept, streams, copying.size, deeper)


class _Copying:
    def __init__(self) -> None:
        self.size = 0

    def of(self, state: State) -> Kept:
        edges = len(state.relation.edges)
        parts = tuple(self._rows(table.rows()) for table in state.tables[:edges])
        alternatives = tuple(
            tuple(
                (self.of(each), self._rows(table.rows()))
                for each, table in zip(states, tables, strict=True)
            )
            for states, tables in zip(state.alternatives, state.choice_rows, strict=True)
        )
        columns = tuple(dict.fromkeys(column for column, _ in state.relation.own))
        return Kept(state.relation, columns, state.own, parts, alternatives)

    def _rows(self, rows: dict[Row, int]) -> tuple[Row, ...]:
        self.size += len(rows)
        return tuple(rows)
