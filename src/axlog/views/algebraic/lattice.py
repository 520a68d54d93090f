"""Snowcaps: kept parts of views, from the root down, so that terms need no joins from leaves.

The part of a term that stays is a snowcap: a set of pattern nodes that contains the parents of its
nodes. A snowcap T is maintained from a smaller one T' and a leaf. Law, with c the node of T not in
T' and the update's rows as Δ:

    ΔT = T' ⋈ Δ_c  +  ΔT' ⋈ Δ_c  +  ΔT' ⋈ R_c

(the last where the parent of c stays, in rows of ΔT' that are new by another branch). Kept snowcaps
therefore form chains, one snowcap for each level. T keeps only the columns that a term can join on
or a row can show; the other bindings are in the counts.

The leaves are the partitions of the document and cost nothing. Snowcaps belong to the engine: views
whose patterns start with the same part share them. An update first removes deleted rows from each
snowcap and computes the inserted rows. Views then evaluate their terms on the rows that stay. The
inserted rows are added before the next update. An update that may flip a node of a snowcap (a
rename, a compared value) makes it stale: it is built again before the next update.

Not kept: snowcaps with `or`, `not` or shown values. (Paper 5, section 3.5; definition 3.11,
propositions 3.12 and 3.13.)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np

from axlog.evaluate.columns import Columns, Handles, MarkedNodes
from axlog.evaluate.node_sets import passing
from axlog.views.algebraic.deltas import DeltaTables, NodeTable, Side, reattached, unchanged
from axlog.views.algebraic.evaluation import Evaluation
from axlog.views.algebraic.labels import may_concern, may_flip
from axlog.views.algebraic.relation import Relation
from axlog.views.algebraic.selection import Codes, Selections
from axlog.views.algebraic.shape import ROOT, Shape, ShapeNode
from axlog.views.algebraic.tables import Column, Table, joined, node_column, nothing, together

Nodes = frozenset[int]


def may_be_kept(shape: Shape, nodes: Nodes) -> bool:
    """Whether a set of pattern nodes is a snowcap that can be kept."""
    return bool(nodes) and all(
        not shape.nodes[n].conditions
        and not shape.nodes[n].values
        and shape.nodes[n].above in (ROOT, *nodes)
        for n in nodes
    )


def chain(nodes: Nodes) -> list[Nodes]:
    """The snowcaps of each level up to this one; every node comes after its parent."""
    ordered = sorted(nodes)
    return [frozenset(ordered[:size]) for size in range(1, len(ordered) + 1)]


def columns_of_snowcap(shape: Shape, nodes: Nodes) -> tuple[int, ...]:
    """The nodes of a snowcap that terms join on, or rows show."""
    joins = {n for n in nodes if any(below not in nodes for below in shape.nodes[n].below)}
    shown = {column.number for column in shape.needed if column.kind == "node"} & nodes
    return tuple(sorted(joins | shown))


@lru_cache(maxsize=1024)
def part_of(shape: Shape, nodes: Nodes) -> tuple[Shape, dict[int, int]]:
    """A snowcap as a separate shape, and its numbers for the numbers of the view."""
    numbers = {ROOT: ROOT, **{n: at for at, n in enumerate(sorted(nodes), 1)}}
    made: list[ShapeNode] = []
    for number in numbers:
        node = shape.nodes[number]
        below = tuple(numbers[b] for b in node.below if b in numbers)
        step = replace(node.step, name=None, branches=())
        made.append(ShapeNode(numbers[number], step, numbers[node.above], below))
    key = tuple(node_column(numbers[n]) for n in columns_of_snowcap(shape, nodes))
    return Shape(shape.pattern, tuple(made), {}, key, ()), numbers


@lru_cache(maxsize=1024)
def identity_of(shape: Shape, nodes: Nodes) -> tuple[object, ...]:
    """The identity of a snowcap: nodes, edges, comparisons and columns."""
    part, _ = part_of(shape, nodes)
    described = tuple((n.above, n.step) for n in part.nodes)
    above = () if len(nodes) == 1 else identity_of(shape, chain(nodes)[-2])
    return (described, part.key, above)  # the smaller one must have the columns that this one needs


@dataclass(slots=True)
class Snowcap:
    """One kept snowcap, with its own node numbers."""

    shape: Shape
    relation: Relation
    smaller: Snowcap | None
    users: int = 0
    is_stale: bool = True
    may_be_flipped: bool = False  # whether the current update may flip a node of it
    gone: Table = field(default_factory=lambda: nothing(()))
    come: Table = field(default_factory=lambda: nothing(()))

    @property
    def last(self) -> ShapeNode:
        """The node that the smaller snowcap lacks."""
        return self.shape.nodes[-1]


class Lattice:
    """The kept snowcaps of one document."""

    def __init__(self) -> None:
        self._codes = Codes()  # unused: no value is shown
        self._kept: dict[tuple[object, ...], Snowcap] = {}
        self._is_due = False
        self.rows_moved = 0  # rows inserted and deleted since the start
        self.builds = 0

    def __len__(self) -> int:
        return len(self._kept)

    # Kept snowcaps --------------------------------------------------------------------------------

    def users(self, shape: Shape, nodes: Nodes) -> int:
        """The number of users of this snowcap, directly or for a larger one."""
        known = self._kept.get(identity_of(shape, nodes))
        return 0 if known is None else known.users

    def take(self, shape: Shape, nodes: Nodes) -> tuple[Snowcap, dict[int, int]]:
        """Keep the snowcap of these nodes, and all smaller ones in its chain, for one more user.

        Returns the snowcap, and its numbers for the numbers of the view.
        """
        smaller: Snowcap | None = None
        for level in chain(nodes):
            key = identity_of(shape, level)
            known = self._kept.get(key)
            if known is None:
                part, _ = part_of(shape, level)
                known = Snowcap(part, Relation(part.key, part.key), smaller)
                self._kept[key] = known
            known.users += 1
            smaller = known
        assert smaller is not None
        return smaller, part_of(shape, nodes)[1]

    def drop(self, shape: Shape, nodes: Nodes) -> None:
        """Release the snowcap for one user."""
        for level in chain(nodes):
            key = identity_of(shape, level)
            self._kept[key].users -= 1
            if not self._kept[key].users:
                del self._kept[key]

    # An update ------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Add the rows that the last update inserted."""
        if self._is_due:
            for snowcap in self._kept.values():
                self._moved(snowcap, snowcap.come)
                snowcap.come = nothing(snowcap.shape.key)
        self._is_due = False

    def forget(self) -> None:
        """Mark every snowcap as stale."""
        self._is_due = False
        for snowcap in self._kept.values():
            snowcap.is_stale = True

    def before(self, columns: Columns, tables: DeltaTables) -> None:
        """Build stale snowcaps, and mark those that the update may flip."""
        self.settle()
        for snowcap in self._kept.values():
            if snowcap.is_stale:
                self._build(columns, snowcap)
            snowcap.may_be_flipped = may_flip(
                snowcap.shape, tables.labels.above, tables.labels.changed
            ) and self._may_flip(columns, snowcap, tables)

    def _may_flip(self, columns: Columns, snowcap: Snowcap, tables: DeltaTables) -> bool:
        """Whether a node that stays may enter or leave the relations of the snowcap."""
        for node in snowcap.shape.nodes[1:]:
            watched = tables.touched(columns) if node.reads_below else tables.changed
            if len(watched) and passing(columns, watched, node.step).any():
                return True
        return False

    def _is_outdated(self, columns: Columns, snowcap: Snowcap, tables: DeltaTables) -> bool:
        """Whether the update may have flipped a node of this snowcap or of a smaller one."""
        labels = tables.labels
        if snowcap.may_be_flipped or (snowcap.smaller is not None and snowcap.smaller.is_stale):
            return True
        return may_flip(snowcap.shape, labels.above, labels.changed) and self._may_flip(
            columns, snowcap, tables
        )

    def follow(self, columns: Columns, tables: DeltaTables) -> None:
        """Remove deleted rows and compute inserted rows; `settle` adds the latter."""
        for snowcap in self._kept.values():
            if self._is_outdated(columns, snowcap, tables):
                snowcap.is_stale = True
            snowcap.gone = snowcap.come = nothing(snowcap.shape.key)
        live = [
            snowcap
            for snowcap in self._kept.values()
            if not snowcap.is_stale and may_concern(snowcap.shape, tables.labels)
        ]
        if not live:
            return
        is_moving = tables.is_moving(columns)
        with reattached(columns, tables):
            for snowcap in live:
                side = self._side(columns, snowcap, tables.removed, is_moving, -1)
                snowcap.gone = self._difference(columns, snowcap, side)
                self._moved(snowcap, snowcap.gone.times(-1))
        for snowcap in live:
            side = self._side(columns, snowcap, tables.added, is_moving, 1)
            snowcap.come = self._difference(columns, snowcap, side)
        self._is_due = True

    def _build(self, columns: Columns, snowcap: Snowcap) -> None:
        """Build a snowcap from the document."""
        evaluation = Evaluation(columns, self._selections(columns, snowcap), unchanged(columns))
        snowcap.relation = Relation(snowcap.shape.key, snowcap.shape.key)
        snowcap.relation.add(together([evaluation.everything()], snowcap.shape.key))
        snowcap.is_stale = False
        self.builds += 1

    def _side(
        self,
        columns: Columns,
        snowcap: Snowcap,
        table: NodeTable,
        is_moving: MarkedNodes,
        sign: int,
    ) -> Side:
        selections = self._selections(columns, snowcap)

        def members(number: int) -> Handles:
            node = snowcap.shape.nodes[number]
            return table.members(columns, node.step, partial(selections.selected, columns, node))

        def candidates(number: int) -> Handles:
            return table.candidates(columns, snowcap.shape.nodes[number].step)

        return Side(sign, is_moving, candidates, members, False)

    def _selections(self, columns: Columns, snowcap: Snowcap) -> Selections:
        return Selections(columns.tree, snowcap.shape, self._codes)

    def _difference(self, columns: Columns, snowcap: Snowcap, side: Side) -> Table:
        """T' ⋈ Δ_c + ΔT' ⋈ Δ_c + ΔT' ⋈ R_c."""
        node, key = snowcap.last, snowcap.shape.key
        above = node_column(node.above)
        evaluation = Evaluation(columns, self._selections(columns, snowcap), side)
        leaf = evaluation.leaf_below_its_parent(node.number)
        smaller = snowcap.smaller
        if smaller is None:
            return together([leaf.keeping(key)], key)
        moved = self._with_parent(smaller.gone if side.sign < 0 else smaller.come, above)
        parts: list[Table] = []
        if len(leaf):
            stays = above in smaller.relation.names
            others = {name: name for name in smaller.relation.names if name != above}
            parts.append(
                smaller.relation.joined(leaf, above, above, others)
                if stays
                else joined(leaf, self._with_parent(smaller.relation.table(), above), above)
            )
            if len(moved):
                parts.append(joined(leaf, moved, above))
        if len(moved):
            contexts = np.unique(moved.columns[above]).astype(np.int32)
            contexts = contexts[~side.is_moving[contexts]]
            parts.append(joined(evaluation.cold(node.number, contexts), moved, above))
        return together([part.keeping(key) for part in parts], key)

    @staticmethod
    def _with_parent(table: Table, above: Column) -> Table:
        """Add the parent of the last node; the document node has no column."""
        if above in table.columns:
            return table
        return Table({**table.columns, above: np.zeros(len(table), np.int64)}, table.counts)

    def _moved(self, snowcap: Snowcap, table: Table) -> None:
        if len(table):
            slots, _, new = snowcap.relation.add(table)
            snowcap.relation.release(slots[new == 0])
            self.rows_moved += len(table)
