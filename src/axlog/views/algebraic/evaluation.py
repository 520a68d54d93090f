"""The evaluation of terms: inside the delta bottom-up, then up through the nodes that stay.

An evaluation is for one side of an update (`Side`). Below each of its roots, the delta part of a
term is a whole subpattern: it is evaluated once inside the delta and serves every term. From there
a term continues upward, by navigation from the nodes of the delta to the nodes that stay and can
match the parent. Only nodes that the update can reach are therefore read. Branches of the pattern
beside that path are evaluated below the nodes reached, on the nodes that stay. If the snowcap of
the term is kept (`lattice`), all of this is one join with it.

Columns that are no longer needed are dropped on the way, and counts are added up. A branch without
outputs is a count for each node (`counts`), which `direct` uses too. A whole view is evaluated in
the same way, with the document node as the node reached (`everything`).

Law: `everything` equals the rows and counts by definition, and the sum of the terms equals the
difference of `everything` before and after. (Paper 5, ET-INS and ET-DEL.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from axlog.document.tree import ATTRIBUTE, NONE
from axlog.evaluate import node_tests
from axlog.evaluate.columns import NOTHING, Columns, Handles, Mask
from axlog.evaluate.node_sets import NodeSets
from axlog.query.pattern import Axis
from axlog.views.algebraic.deltas import Side, unchanged
from axlog.views.algebraic.relation import Relation
from axlog.views.algebraic.selection import Selections
from axlog.views.algebraic.shape import ROOT, Shape, ShapeNode
from axlog.views.algebraic.tables import (
    Column,
    Integers,
    Table,
    joined,
    node_column,
    nothing,
    stacked,
    together,
)
from axlog.views.algebraic.terms import Term

Past = Mapping[tuple[int, int], int]
Kept = Callable[[frozenset[int]], "tuple[Relation, dict[int, int]] | None"]
"""The kept snowcap of a set of pattern nodes, with its numbers for them; None if not kept."""

_NEAR = (Axis.CHILD, Axis.ATTRIBUTE)
FEWEST_CHAINS = 8
"""From this many nodes on, their attributes are read by arrays instead of one by one."""


class Evaluation:
    """The terms of one view on one side of one update."""

    def __init__(
        self,
        columns: Columns,
        selections: Selections,
        side: Side,
        past: Past | None = None,
    ) -> None:
        self.columns = columns
        self.selections = selections
        self.shape: Shape = selections.shape
        self.side = side
        self._is_moving = side.is_moving
        self._past = past
        self._inside: dict[int, Table] = {}
        self._risen: dict[int, Table] = {}
        self._matched: list[Evaluation] | None = None
        self.scanned = 0  # staying nodes that were read below the nodes reached
        self.work = 0  # the same number for the last term
        self.served = False  # whether a kept snowcap served the last term

    # Inside the delta -----------------------------------------------------------------------------

    def inside(self, number: int) -> Table:
        """A whole subpattern, with every node bound in the delta."""
        known = self._inside.get(number)
        if known is None:
            node = self.shape.nodes[number]
            made = self._instantiated(node) if self.side.copies else self._evaluated_inside(node)
            known = self._inside[number] = made
        return known

    def _instantiated(self, node: ShapeNode) -> Table:
        """`inside` for fragments inserted at many places: each is matched once, for all copies.

        Correct because all copies of a fragment are equal, and no node of one copy is above or
        below a node of another.
        """
        if self._matched is None:
            self._matched = [self._on_first_copy(matrix[0]) for matrix in self.side.copies]
        matched = [evaluation.inside(node.number) for evaluation in self._matched]
        pairs = zip(matched, self.side.copies, strict=True)
        return stacked([_in_every_copy(table, matrix) for table, matrix in pairs])

    def _on_first_copy(self, nodes: Handles) -> Evaluation:
        def members(number: int) -> Handles:
            return self.selections.members(self.columns, self.shape.nodes[number], nodes)

        side = Side(1, self._is_moving, members, members, False)
        return Evaluation(self.columns, self.selections, side)

    def _evaluated_inside(self, node: ShapeNode) -> Table:
        if not node.below:
            return self._leaf(node, self.side.members(node.number))
        tables = [self._lifted(self.inside(below), below) for below in node.below]
        table = self._taken(min(tables, key=len), node, self._is_member)
        smallest = min(range(len(tables)), key=lambda at: len(tables[at]))
        for at, other in enumerate(tables):
            if at != smallest:
                table = joined(table, other, node_column(node.number))
        return self._with_values(table, node, self._past)

    def _leaf(self, node: ShapeNode, nodes: Handles) -> Table:
        columns = self.selections.values(node, nodes, self._past)
        columns[node_column(node.number)] = nodes.astype(np.int64)
        return Table(columns, np.ones(len(nodes), dtype=np.int64))

    def leaf_below_its_parent(self, number: int) -> Table:
        """The delta of one pattern node, with all nodes that could match its parent."""
        node = self.shape.nodes[number]
        return self._lifted(self._leaf(node, self.side.members(number)), number)

    def _lifted(self, table: Table, number: int) -> Table:
        """The rows of a subpattern, with the candidates for its parent instead of its own node."""
        node = self.shape.nodes[number]
        own, above = node_column(number), node_column(node.above)
        nodes = table.columns[own].astype(np.int32)
        if node.above == ROOT:
            rows = np.flatnonzero(self.columns.is_below_document(nodes, node.step.axis))
            reached: Integers = np.zeros(len(rows), dtype=np.int64)
        else:
            positions, parents = self.columns.pairs(nodes, node.step.axis)
            rows, reached = positions.astype(np.int64), parents.astype(np.int64)
        lifted = table.taken(rows, {above: reached})
        return lifted.keeping({above, *self.shape.kept_above[number]})

    # Through the nodes that stay ------------------------------------------------------------------

    def risen(self, number: int) -> Table:
        """The delta below a pattern node, with the staying nodes that can match above it."""
        known = self._risen.get(number)
        if known is None:
            lifted = self._lifted(self.inside(number), number)
            known = self._risen[number] = self._staying(lifted, self.shape.nodes[number].above)
        return known

    def _staying(self, table: Table, number: int) -> Table:
        """The rows whose node for this pattern node stays and is in its relation."""
        if number == ROOT:
            return table
        return self._taken(table, self.shape.nodes[number], self._is_staying)

    def _taken(
        self, table: Table, node: ShapeNode, is_wanted: Callable[[ShapeNode, Handles], Mask]
    ) -> Table:
        """The rows whose node for this pattern node is wanted."""
        if not len(table):
            return table
        nodes = table.columns[node_column(node.number)].astype(np.int32)
        if node.is_selective:  # values are read once for each node
            distinct, places = np.unique(nodes, return_inverse=True)
            wanted = is_wanted(node, distinct)[places]
        else:
            wanted = is_wanted(node, nodes)
        return table if wanted.all() else table.taken(wanted)

    def _is_staying(self, node: ShapeNode, nodes: Handles) -> Mask:
        """Which nodes stay and are in a relation."""
        return self._is_here(node, nodes, ~self._is_moving[nodes])

    def _is_member(self, node: ShapeNode, nodes: Handles) -> Mask:
        """Which nodes are in the delta of a relation."""
        # Conditions of deleted nodes were evaluated while they were still in place.
        if self.side.restates or (node.conditions and self.side.sign < 0):
            return np.isin(nodes, self.side.members(node.number))
        return self._is_here(node, nodes, self._is_moving[nodes])

    def _is_here(self, node: ShapeNode, nodes: Handles, wanted: Mask) -> Mask:
        wanted &= self.selections.is_tested(self.columns, node, nodes)
        if node.is_selective:
            selected = self.selections.selected(self.columns, node, nodes[wanted])
            wanted &= np.isin(nodes, selected)
        return wanted

    def term(self, term: Term, kept: Kept | None = None) -> Table:
        """The rows of a term, with the columns that the rows of the view need."""
        before = self.scanned
        result = self._with_snowcap(term, kept) if kept is not None else None
        self.served = result is not None
        if result is None:
            result = self._hot(ROOT, term)
        self.work = self.scanned - before
        return result.keeping(self.shape.needed)

    def _with_snowcap(self, term: Term, kept: Kept) -> Table | None:
        """A term with a kept snowcap: one lookup for each delta row; None if it is not kept."""
        found = kept(term.snowcap) if term.snowcap else None
        if found is None:
            return None
        relation, numbers = found
        names = {node_column(number): node_column(numbers[number]) for number in term.snowcap}
        shown = {name: own for name, own in names.items() if own in relation.names}
        roots = sorted(term.roots, key=lambda root: len(self.risen(root)))
        parents = {root: node_column(self.shape.nodes[root].above) for root in roots}
        first = next((root for root in roots if parents[root].number != ROOT), None)
        if first is None:
            whole = relation.table()
            columns = {name: whole.columns[own] for name, own in shown.items()}
            table = _below_document(Table(columns, whole.counts))
        else:
            on = parents[first]
            table = _below_document(relation.joined(self.risen(first), on, names[on], shown))
        for root in roots:
            if root != first:
                table = joined(table, self.risen(root), parents[root])
        return table

    def _hot(self, number: int, term: Term) -> Table:
        """The subpattern of a node that stays, with delta nodes in it."""
        own = node_column(number)
        node = self.shape.nodes[number]
        tables, cold = [], []
        for below in node.below:
            if below in term.delta:
                tables.append(self.risen(below))
            elif term.delta.isdisjoint(self.shape.subpatterns[below]):
                cold.append(below)
            else:
                tables.append(self._staying(self._lifted(self._hot(below, term), below), number))
        tables.sort(key=len)
        table = tables[0]
        for other in tables[1:]:
            table = joined(table, other, own)
        return self._with_values(self._beside(table, number, cold), node)

    def _with_values(self, table: Table, node: ShapeNode, past: Past | None = None) -> Table:
        """Add the values that outputs show of a node, other than the node itself."""
        if not node.values:
            return table
        nodes = table.columns[node_column(node.number)].astype(np.int32)
        values = self.selections.values(node, nodes, past)
        return Table({**table.columns, **values}, table.counts)

    def _beside(self, table: Table, number: int, branches: Iterable[int]) -> Table:
        """The rows joined with branches that are bound to nodes that stay."""
        own = node_column(number)
        for below in branches:
            nodes = table.columns[own].astype(np.int32)
            if self.shape.kept_above[below]:
                table = joined(table, self.cold(below, np.unique(nodes)), own)
            else:
                contexts, places = np.unique(nodes, return_inverse=True)
                counts = table.counts * self.counts(below, contexts)[places]
                table = Table(table.columns, counts).taken(counts != 0)
        return table

    def counts(self, number: int, contexts: Handles) -> Integers:
        """The number of matches of a branch at each of these distinct nodes.

        For branches that no output and no constraint reads: `cold` without a table.
        """
        node = self.shape.nodes[number]
        places, nodes = self._reached(node, contexts)
        if not node.below or not len(nodes):
            return np.bincount(places, minlength=len(contexts)).astype(np.int64)
        distinct, inverse = nodes, None
        if node.step.axis not in _NEAR:  # a node may be reached from several contexts
            distinct, inverse = np.unique(nodes, return_inverse=True)
        weights: Integers = np.ones(len(distinct), dtype=np.int64)
        for below in node.below:
            weights *= self.counts(below, distinct)
        found: Integers = np.zeros(len(contexts), dtype=np.int64)
        np.add.at(found, places, weights if inverse is None else weights[inverse])
        return found

    def cold(self, number: int, contexts: Handles) -> Table:
        """A subpattern bound to nodes that stay, below these nodes of its parent."""
        node = self.shape.nodes[number]
        own, above = node_column(number), node_column(node.above)
        places, nodes = self._reached(node, contexts)
        table = Table(
            {above: contexts[places].astype(np.int64), own: nodes.astype(np.int64)},
            np.ones(len(nodes), dtype=np.int64),
        )
        table = self._with_values(self._beside(table, number, node.below), node)
        return table.keeping({above, *self.shape.kept_above[number]})

    def _reached(self, node: ShapeNode, contexts: Handles) -> tuple[Handles, Handles]:
        """Pairs along an edge: positions of distinct contexts, and staying nodes of a relation."""
        if not len(contexts):
            return NOTHING, NOTHING
        if node.step.axis not in _NEAR:
            return self._far(node, contexts)
        places, nodes = self._near(node, contexts)
        if not self.side.is_still:
            places, nodes = _where(~self._is_moving[nodes], places, nodes)
        if node.is_selective and len(nodes):
            own = self.selections.selected(self.columns, node, nodes)
            places, nodes = _where(self.columns.is_among(nodes, own), places, nodes)
        return places, nodes

    def _near(self, node: ShapeNode, contexts: Handles) -> tuple[Handles, Handles]:
        """Children or attributes of the contexts that pass the test."""
        columns, step = self.columns, node.step
        sets = NodeSets(columns)
        if step.axis is Axis.ATTRIBUTE and (
            2 * FEWEST_CHAINS <= 2 * len(contexts) < len(columns.tree.partition(node.wanted))
        ):
            return self._attributes(node, contexts)
        if sets.is_short(contexts, step):
            return self._walked(node, contexts)
        nodes = sets.base(step)
        self.scanned += len(nodes)
        parents = columns.parent[nodes]
        if len(contexts) == 1:
            nodes = nodes[parents == contexts[0]]
            return np.zeros(len(nodes), dtype=np.int32), nodes
        at = self._places(contexts)[parents]
        hit = np.flatnonzero(at)
        return at[hit] - 1, nodes[hit]

    def _walked(self, node: ShapeNode, contexts: Handles) -> tuple[Handles, Handles]:
        """`_near` by walking from few contexts; no array of the document's size is made."""
        tree, axis = self.columns.tree, node.step.axis
        pairs = [
            (place, below)
            for place, context in enumerate(contexts.tolist())
            for below in node_tests.reached(tree, context, axis)
        ]
        self.scanned += len(pairs)
        if not pairs:
            return NOTHING, NOTHING
        both = np.array(pairs, dtype=np.int32)
        places, nodes = both[:, 0], both[:, 1]
        return _where(self.selections.is_tested(self.columns, node, nodes), places, nodes)

    def _far(self, node: ShapeNode, contexts: Handles) -> tuple[Handles, Handles]:
        """Descendants of the contexts, or the contexts themselves, that are in a relation."""
        columns, axis = self.columns, node.step.axis
        places, nodes = NOTHING, NOTHING
        if axis is not Axis.SELF:
            base = NodeSets(columns).base(node.step)
            self.scanned += len(base)
            if not self.side.is_still:
                base = base[~self._is_moving[base]]
            at, starts = columns.pairs(base, Axis.DESCENDANT, columns.mask(contexts))
            places, nodes = self._places(contexts)[starts] - 1, base[at]
        if axis is not Axis.DESCENDANT:
            places = np.concatenate([places, np.arange(len(contexts), dtype=np.int32)])
            nodes = np.concatenate([nodes, contexts])
        distinct = self._tested(node, np.unique(nodes))
        distinct = distinct[~self._is_moving[distinct]]
        own = self.selections.selected(columns, node, distinct)
        return _where(columns.is_among(nodes, own), places, nodes)

    def _places(self, nodes: Handles) -> Handles:
        """By handle, the position of a node among these, plus one; 0 for others."""
        found = np.zeros(len(self.columns.kind), dtype=np.int32)
        found[nodes] = np.arange(1, len(nodes) + 1, dtype=np.int32)
        return found

    def _attributes(self, node: ShapeNode, contexts: Handles) -> tuple[Handles, Handles]:
        """`_near` for attributes, along the chains, in which attributes come first."""
        columns, tree = self.columns, self.columns.tree
        first: Handles = np.frombuffer(tree.first_column, dtype=np.int32)
        following: Handles = np.frombuffer(tree.next_column, dtype=np.int32)
        found: list[tuple[Handles, Handles]] = []
        places, at = np.arange(len(contexts), dtype=np.int32), first[contexts]
        while True:
            places, at = _where((at != NONE) & (columns.kind[at] == ATTRIBUTE), places, at)
            if not len(at):
                break
            self.scanned += len(at)
            found.append(_where(self.selections.is_tested(columns, node, at), places, at))
            at = following[at]
        if len(found) < 2:
            return found[0] if found else (NOTHING, NOTHING)
        return np.concatenate([p for p, _ in found]), np.concatenate([n for _, n in found])

    def _tested(self, node: ShapeNode, nodes: Handles) -> Handles:
        return nodes[self.selections.is_tested(self.columns, node, nodes)]

    def everything(self) -> Table:
        """The whole view, top-down, with every pattern node bound to nodes that stay."""
        root = Table({node_column(ROOT): np.zeros(1, np.int64)}, np.ones(1, np.int64))
        table = self._beside(root, ROOT, self.shape.nodes[ROOT].below)
        return table.keeping(self.shape.needed)


def _where(wanted: Mask, places: Handles, nodes: Handles) -> tuple[Handles, Handles]:
    """The wanted pairs."""
    return (places, nodes) if wanted.all() else (places[wanted], nodes[wanted])


def everything(columns: Columns, selections: Selections) -> Table:
    """All rows of a view, with their counts."""
    shape = selections.shape
    if not selections.holds(columns):
        return nothing(shape.key)
    table = Evaluation(columns, selections, unchanged(columns)).everything()
    if shape.times:
        now = np.frombuffer(selections.tree.time_column, dtype=np.int64)
        table = within_times(table, shape, now, {})
    return together([table.keeping(shape.key)], shape.key)


def within_times(table: Table, shape: Shape, now: Integers, past: Mapping[int, int]) -> Table:
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


def _below_document(table: Table) -> Table:
    """Add the document node, for which kept snowcaps have no column."""
    zeros = np.zeros(len(table), dtype=np.int64)
    return Table({**table.columns, node_column(ROOT): zeros}, table.counts)


def _in_every_copy(table: Table, matrix: Handles) -> Table:
    """The matches in the first copy of a fragment, repeated in all copies."""
    first = matrix[0]
    order = np.argsort(first)
    columns: dict[Column, Integers] = {}
    for name, values in table.columns.items():
        if name.kind == "node":
            places = order[np.searchsorted(first[order], values)]
            columns[name] = matrix[:, places].ravel().astype(np.int64)
        else:
            columns[name] = np.tile(values, len(matrix))
    return Table(columns, np.tile(table.counts, len(matrix)))
