"""The evaluation of whole views: at first, again, or on nodes that the view has not seen yet."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from axlog.document.tree import Tree
from axlog.evaluate.columns import NOTHING, Columns, Handles
from axlog.query.pattern import Name
from axlog.views.algebraic.deltas import DeltaTables, Era, NodeTable, still
from axlog.views.algebraic.evaluation import Evaluation
from axlog.views.algebraic.node_rows import NodeRows
from axlog.views.algebraic.relation import Relation
from axlog.views.algebraic.selection import Selections
from axlog.views.algebraic.shape import Shape
from axlog.views.algebraic.tables import Integers, Table, node_column, nothing, together
from axlog.views.algebraic.terms import Facts, surviving

Rows = Relation | NodeRows
"""The storage of the rows of a view."""


class Unseen:
    """Nodes that a deferred view has not processed yet."""

    def __init__(self) -> None:
        self.nodes: Handles = NOTHING

    def __bool__(self) -> bool:
        return bool(len(self.nodes))

    def clear(self) -> None:
        self.nodes = NOTHING

    def without(self, nodes: Handles) -> Handles:
        """The nodes that have been processed."""
        return nodes[~np.isin(nodes, self.nodes)]

    def follow(self, tables: DeltaTables, restated: Handles) -> None:
        """Follow an update: forget deleted nodes, add inserted and restated nodes."""
        kept = self.nodes[~np.isin(self.nodes, tables.removed.nodes)]
        self.nodes = np.unique(np.concatenate([kept, tables.added.nodes, restated]))


def caught_up(columns: Columns, selections: Selections, unseen: Unseen, rows: Rows) -> Table:
    """The rows of nodes not processed yet: insertion terms with these nodes as the delta."""
    shape = selections.shape
    is_moving = np.zeros(len(columns.kind), dtype=np.bool_)
    is_moving[unseen.nodes] = True
    table = NodeTable(unseen.nodes)

    def members(number: int) -> Handles:
        node = shape.nodes[number]
        return table.members(columns, node.step, partial(selections.selected, columns, node))

    era = Era(1, is_moving, members, members, False)
    numbers = range(1, len(shape.nodes))
    facts = Facts(frozenset(n for n in numbers if len(members(n))), frozenset(numbers))
    terms = surviving(shape, 1, facts)
    if terms is None:
        return together([rows.table().times(-1), everything(columns, selections)], shape.key)
    evaluation = Evaluation(columns, selections, era)
    now = np.frombuffer(selections.tree.time_column, dtype=np.int64)
    found = [within_times(evaluation.term(t), shape, now, {}) for t in terms]
    return together(found, shape.key)


def everything(columns: Columns, selections: Selections) -> Table:
    """All rows of a view, with their counts."""
    shape = selections.shape
    if not selections.holds(columns):
        return nothing(shape.key)
    table = Evaluation(columns, selections, still(columns)).everything()
    if shape.times:
        now = np.frombuffer(selections.tree.time_column, dtype=np.int64)
        table = within_times(table, shape, now, {})
    return together([table.keeping(shape.key)], shape.key)


def within_times(table: Table, shape: Shape, now: Integers, past: dict[int, int]) -> Table:
    """The rows of a table whose times satisfy the constraints."""
    holds = np.ones(len(table), dtype=np.bool_)
    for constraint in shape.times:
        total = np.zeros(len(table), dtype=np.int64)
        for coefficient, name in constraint.terms:
            nodes = table.columns[node_column(shape.named[name])]
            times = now[nodes]
            for handle, time in past.items():
                times[nodes == handle] = time
            total += coefficient * times
        holds &= _COMPARED[constraint.operator](total, constraint.bound)
    return table.taken(holds).keeping(shape.key)


_COMPARED = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def emptied(tree: Tree, shape: Shape) -> str | None:
    """A label that every row needs and that no node has any more."""
    for node in shape.nodes[1:]:
        if isinstance(node.step.test, Name) and not tree.nodes_by_label.get(node.wanted):
            return node.wanted
    return None


@lru_cache(maxsize=512)
def _labels(shape: Shape) -> tuple[tuple[str, ...], int]:
    """The labels of the relations of a view, and the number that accept any label."""
    nodes = shape.nodes[1:]
    named = tuple(n.wanted for n in nodes if isinstance(n.step.test, Name))
    return named, len(nodes) - len(named)


def relations_size(tree: Tree, shape: Shape) -> int:
    """The number of nodes in the relations of a view."""
    labels, others = _labels(shape)
    return others * len(tree) + sum(len(tree.partition(label)) for label in labels)
