"""A copy of the rows that an engine keeps, for analyses that run while the engine continues.

Only the nodes above open calls are copied: streams cannot change other nodes, whose rows have risen
into the tables of these nodes. A relation with one edge keeps no rows: they are in the tables above
it, or in the rows of the view.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from axlog.document.tree import DOCUMENT_NODE
from axlog.evaluate.joins import Row
from axlog.future.scenarios import may_bring
from axlog.query.compile import Relation
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.sites import SiteRelation


@dataclass(frozen=True, slots=True)
class Kept:
    """The state of one relation at one node: its own columns, and the rows of each part."""

    relation: Relation
    columns: tuple[str, ...]  # of `own`
    own: Row
    parts: tuple[tuple[Row, ...], ...]  # of the edges; empty for a relation that keeps none
    alternatives: tuple[tuple[tuple[Kept, tuple[Row, ...]], ...], ...]  # of the choices


@dataclass(frozen=True, slots=True)
class Facts:
    """The kept rows at the nodes above open calls, the deepest node first."""

    clock: int
    nodes: tuple[int, ...]
    parents: dict[int, int]
    kept: dict[int, tuple[Kept, ...]]
    calls: dict[int, tuple[str, ...]]  # the streams that may still insert trees, by parent
    size: int  # rows copied
    below: dict[int, tuple[str, ...]]  # the same streams, by every node above their calls


def facts_of(engine: CountingEngine, wanted: Container[Relation]) -> Facts:
    """Copy the kept rows of some relations above the open calls."""
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
    copier = _Copier()
    kept = {
        node: tuple(
            copier.copy(state)
            for state in engine.states_at(node)
            if state.relation in wanted and not state.is_dead
        )
        for node in nodes
    }
    streams, deeper = (
        {node: tuple(each) for node, each in found.items()} for found in (calls, below)
    )
    return Facts(tree.clock, tuple(nodes), parents, kept, streams, copier.size, deeper)


class _Copier:
    def __init__(self) -> None:
        self.size = 0

    def copy(self, state: SiteRelation) -> Kept:
        edges = len(state.relation.edges)
        parts = tuple(self._rows(table.rows()) for table in state.join.kept[:edges])
        alternatives = tuple(
            tuple(
                (self.copy(each), self._rows(table.rows()))
                for each, table in zip(states, choice.kept, strict=True)
            )
            for states, choice in zip(state.alternatives, state.choices, strict=True)
        )
        columns = tuple(dict.fromkeys(column for column, _ in state.relation.own))
        return Kept(state.relation, columns, state.own, parts, alternatives)

    def _rows(self, rows: dict[Row, int]) -> tuple[Row, ...]:
        self.size += len(rows)
        return tuple(rows)
