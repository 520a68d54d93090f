"""Insertions into views whose rows are identified by one node, without tables of bindings.

Where rows show only one node k, the other bindings of a row are a count. The node of a new row is
in the delta. The topmost node of the delta on the path above it matches a pattern node r, and a
node that stays matches the parent of r. Therefore

    count(k) = inside(k below r)  x  upper(the parent of r's node)

`inside` is matched in one copy of a fragment and applied to all copies. `upper` evaluates the tests
of the nodes above, and the branches beside the path, on the document after the update. One
evaluation therefore covers every term with k in its delta (the terms with R and with Δ beside the
path add up to the whole). `upper` depends on one node only. It is computed once for each distinct
node: few nodes by walking, many by arrays (`Evaluation.counts`).

Law: the rows and counts equal those of the terms that are replaced.

Handled: child and attribute edges, and `//` at the root, whose node may be anywhere in a fragment.
Not handled: `or`, `not`, times, shown strings and restated nodes. Terms in which k stays are
evaluated as usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import inf

import numpy as np

from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, Tree
from axlog.evaluate.columns import Columns, Handles, columns_of
from axlog.evaluate.node_sets import passing
from axlog.query.pattern import Axis
from axlog.views.algebraic.deltas import DeltaTables, NodeTable, unchanged
from axlog.views.algebraic.direct_code import FAR, TooFarError, counters_of
from axlog.views.algebraic.evaluation import Evaluation, Kept
from axlog.views.algebraic.labels import asked_of, facts_of
from axlog.views.algebraic.node_rows import Rows
from axlog.views.algebraic.reports import Report
from axlog.views.algebraic.selection import Selections
from axlog.views.algebraic.shape import ROOT, Shape
from axlog.views.algebraic.tables import Integers, Table, node_column, nothing, stacked
from axlog.views.algebraic.terms import Facts, surviving

FEW = 8
"""Up to this many nodes are processed one by one."""
FEW_PLACES = 64
"""Up to this many places are processed one by one."""
WALKED = 400
"""Walking this many nodes beside the path costs as much as setting up the arrays."""
PER_WALK = 100
"""This many nodes of a relation cost as much in an array as one node by walking."""

_NEAR = (Axis.CHILD, Axis.ATTRIBUTE)


@lru_cache(maxsize=512)
def identifying_node(shape: Shape) -> int | None:
    """The pattern node that identifies rows, if it is only one and the edges are supported."""
    if len(shape.key) != 1 or shape.key[0].kind != "node" or shape.times:
        return None
    if shape.key[0].number == ROOT:
        return None  # a single row for the whole document
    if len(shape.nodes[ROOT].below) != 1:
        return None  # a branch beside the first step starts at the document
    for node in shape.nodes[1:]:
        is_fit = node.step.axis in _NEAR or (node.above == ROOT and node.step.axis in FAR)
        if not is_fit or node.conditions or node.values:
            return None
    return shape.key[0].number


@lru_cache(maxsize=4096)
def tops_of(shape: Shape, key: int, facts: Facts) -> tuple[int, ...] | None:
    """The pattern nodes on the path that can be topmost in the delta of an insertion term.

    None if a term survives in which the node of the row stays.
    """
    terms = surviving(shape, 1, facts)
    if terms is None or any(key not in term.delta for term in terms):
        return None
    way = {key, *shape.above[key]}
    return tuple(sorted({root for term in terms for root in term.roots if root in way}))


def moved_directly(
    columns: Columns,
    selections: Selections,
    tables: DeltaTables,
    rows: Rows,
    kept: Kept | None,
    report: Report,
) -> Table | None:
    """The inserted and deleted rows, with signed counts; None if tables are needed."""
    shape, labels, added = selections.shape, tables.labels, tables.added
    key = identifying_node(shape)
    if key is None or (not added.copies and len(added.roots) > FEW):
        return None
    direct = Direct(selections, key, columns)
    if tables.delta.removed:
        report.facts[-1] = facts_of(shape, labels.removed, labels.above, labels.depths)
        if surviving(shape, -1, report.facts[-1]) != ():
            return None
    tops: tuple[int, ...] | None = ()
    if tables.delta.added:
        facts = report.facts[1] = facts_of(shape, labels.added, labels.above, labels.depths)
        tops = tops_of(shape, key, facts)
        if tops is None:
            facts = report.facts[1] = direct.facts(facts, added)
            tops = tops_of(shape, key, facts)
        terms = surviving(shape, 1, facts) or ()
        if tops is None or (kept and any(term.snowcap and kept(term.snowcap) for term in terms)):
            return None
        report.evaluated += terms
    found = [direct.inserted(tops, added)] if tops else []
    share = direct.scanned // max(len(report.evaluated), 1)
    report.scanned += direct.scanned
    report.costs += [(term.snowcap, share, False) for term in report.evaluated]
    gone = tables.removed.candidates(columns, shape.nodes[key].step)
    if len(gone):
        slots = rows.with_value(node_column(key), gone.astype(np.int64))
        if len(slots):
            found.append(rows.table(slots).times(-1))
    return stacked(found) if found else nothing(shape.key)


class Direct:
    """The rows that one update inserts into one view."""

    def __init__(self, selections: Selections, key: int, columns: Columns | None = None) -> None:
        """`columns`: those of the document as it is; None: they are made when they are needed."""
        self._columns = columns
        self.tree: Tree = selections.tree
        self.selections = selections
        self.shape: Shape = selections.shape
        self.key = key
        self._way = {key, *self.shape.above[key]}
        self._arrays: Evaluation | None = None
        self.scanned = 0  # nodes read beside the path
        self.most: float = inf
        counters = counters_of(self.shape, key)(self.tree, self, self._below_one)
        self._passes, self._sides, self._upper, self._forget = counters

    @property
    def columns(self) -> Columns:
        """The columns of the document as it is."""
        assert self._columns is not None
        return self._columns

    def inserted(self, roots: Iterable[int], added: NodeTable) -> Table:
        """The new rows whose topmost new node matches one of the pattern nodes given."""
        column = node_column(self.key)
        if not added.copies:
            return self._of_few(added.rows(self.tree), roots)
        found: list[tuple[Integers, Integers]] = []
        for block in added.copies:
            found += self._of_copies(block, roots, added.is_spread)
        if not found:
            return nothing((column,))
        if len(found) == 1:
            return Table({column: found[0][0]}, found[0][1])
        nodes = np.concatenate([each for each, _ in found])
        return Table({column: nodes}, np.concatenate([counts for _, counts in found]))

    def _of_few(self, rows: Iterable[Sequence[int]], roots: Iterable[int]) -> Table:
        found = self.counts(rows, roots)
        nodes = np.array(list(found), dtype=np.int64)
        counts = np.array(list(found.values()), dtype=np.int64)
        return Table({node_column(self.key): nodes}, counts)

    def counts(self, rows: Iterable[Sequence[int]], roots: Iterable[int]) -> dict[int, int]:
        """The nodes of the rows of fragments inserted at one place each, with their counts."""
        found: dict[int, int] = {}
        for row in rows:
            for number in roots:
                for top in row if self._is_anywhere(number) else row[:1]:
                    upper = self._upper_at(number, top)
                    for node, count in self._inside(number, top) if upper else ():
                        found[node] = count * upper
        return found

    def counts_of_copies(
        self, block: Sequence[Sequence[int]], roots: Iterable[int]
    ) -> dict[int, int]:
        """The same of copies of one fragment, with a row of handles for each copy.

        Raises `TooFarError` where arrays are faster.
        """
        parents, first, found = self.tree.parent_column, block[0], dict[int, int]()
        places = {node: at for at, node in enumerate(first)}
        tops = [node for node in first if parents[node] not in places]
        self.most = self._most_walked()
        for number in roots:
            is_anywhere = self._is_anywhere(number)
            upper = self._upper[self.shape.nodes[number].above]
            for top in first if is_anywhere else tops:
                inside = self._inside(number, top) if self._passes[number](top) else ()
                if not inside or (is_anywhere and not self._upper_at(number, top)):
                    continue
                at = places[top]
                matched = [(places[node], count) for node, count in inside]
                for copy in block:
                    ways = 1 if is_anywhere else upper(parents[copy[at]])
                    for place, count in matched if ways else ():
                        found[copy[place]] = count * ways
        return found

    def renew(self) -> None:
        """Forget what was counted for the last update."""
        self.scanned, self.most = 0, inf
        self._forget()

    def _is_anywhere(self, number: int) -> bool:
        """Whether the topmost node of a delta may be deeper than a child of a place."""
        return self.shape.nodes[number].step.axis in FAR

    def _upper_at(self, number: int, node: int) -> int:
        """The number of ways in which a new node can be topmost in a delta."""
        if not self._passes[number](node):
            return 0
        parent = self.tree.parent_column[node]
        if self._is_anywhere(number):
            return int(self.tree.kind_column[parent] != ATTRIBUTE)
        return self._upper[self.shape.nodes[number].above](parent)

    def _of_copies(
        self, block: Handles, roots: Iterable[int], is_spread: bool
    ) -> list[tuple[Integers, Integers]]:
        """The rows of copies of one fragment, with a row of handles for each copy."""
        first = block[0].tolist()
        places = {node: at for at, node in enumerate(first)}
        tops = [node for node in first if self.tree.parent_column[node] not in places]
        found = []
        for number in roots:
            is_anywhere = self._is_anywhere(number)
            for top in first if is_anywhere else tops:
                inside = self._inside(number, top) if self._passes[number](top) else ()
                if not inside or (is_anywhere and not self._upper_at(number, top)):
                    continue
                upper: Integers = np.ones(len(block), dtype=np.int64)
                if not is_anywhere:
                    ask = self.upper if is_spread else self._upper_of_parents
                    above = self.columns.parent[block[:, places[top]]]
                    upper = ask(self.shape.nodes[number].above, above)
                rows = [places[node] for node, _ in inside]
                found.append(_instantiated(block, rows, [count for _, count in inside], upper))
        return [(nodes, counts) for nodes, counts in found if len(nodes)]

    def facts(self, facts: Facts, added: NodeTable) -> Facts:
        """The facts about the delta, refined from labels to values."""
        rows = [block[0].tolist() for block in added.copies] or added.rows(self.tree)
        nodes = [node for row in rows for node in row]
        unmet = {
            number
            for number in asked_of(self.shape, facts)
            if not self.shape.nodes[number].is_plain
            and not any(self._passes[number](node) for node in nodes)
        }
        return Facts(facts.matched - unmet, facts.above, facts.barred) if unmet else facts

    # Inside the fragment --------------------------------------------------------------------------

    def _inside(self, number: int, node: int) -> list[tuple[int, int]]:
        """The nodes of rows below a node that passes a test on the path, with their counts."""
        factor = self._sides[number](node)
        if not factor or number == self.key:
            return [(node, factor)] if factor else []
        onward = next(b for b in self.shape.nodes[number].below if b in self._way)
        passes = self._passes[onward]
        found = []
        for below in self.tree.chain(node):
            if passes(below):
                found += self._inside(onward, below)
        return found if factor == 1 else [(at, count * factor) for at, count in found]

    # Above the places -----------------------------------------------------------------------------

    def upper(self, number: int, nodes: Handles) -> Integers:
        """The number of ways in which the pattern above a place, and beside that path, holds.

        One number for each of these distinct nodes.
        """
        first = int(nodes[0])
        if len(nodes) <= FEW_PLACES and (walked := self._walked(number, nodes)) is not None:
            return walked
        if (nodes == first).all():
            return np.full(len(nodes), self._upper[number](first), dtype=np.int64)
        if number == ROOT:
            return np.equal(nodes, DOCUMENT_NODE).astype(np.int64)
        shaped = self.shape.nodes[number]
        counts: Integers = passing(self.columns, nodes, shaped.step).astype(np.int64)
        if shaped.is_selective:
            own = self.selections.selected(self.columns, shaped, nodes[counts > 0])
            counts *= self.columns.is_among(nodes, own)
        for below in shaped.below:
            if below not in self._way and counts.any():
                counts *= self._below(below, nodes)
        if shaped.above == ROOT:
            counts *= self.columns.is_below_document(nodes, shaped.step.axis)
        elif counts.any():
            counts *= self._upper_of_parents(shaped.above, self.columns.parent[nodes])
        return counts

    def _walked(self, number: int, nodes: Handles) -> Integers | None:
        """`upper` by walking, node by node; None if that takes longer than arrays."""
        self.most = self._most_walked()
        try:
            return np.array(list(map(self._upper[number], nodes.tolist())), dtype=np.int64)
        except TooFarError:
            return None
        finally:
            self.most = inf

    def _most_walked(self) -> int:
        """The nodes beside the path that may be read by walking."""
        beside = (n for n in range(1, len(self.shape.nodes)) if n not in self._way)
        return self.scanned + WALKED + sum(map(self._size, beside)) // PER_WALK

    def _upper_of_parents(self, number: int, parents: Handles) -> Integers:
        if (parents == parents[0]).all():
            return np.repeat(self.upper(number, parents[:1]), len(parents))
        is_other = parents[1:] != parents[:-1]
        if (parents[1:] >= parents[:-1]).all():  # as after a load: equal parents are adjacent
            inverse = np.concatenate([[0], np.cumsum(is_other)])
            distinct = parents[np.concatenate([[True], is_other])]
        else:
            distinct, inverse = np.unique(parents, return_inverse=True)
        found: Integers = self.upper(number, distinct)[inverse]
        return found

    def _below_one(self, number: int, node: int) -> int:
        """The number of matches of a branch at a node with many children."""
        return int(self._below(number, np.array([node], dtype=np.int32))[0])

    def _below(self, number: int, contexts: Handles) -> Integers:
        """The number of matches of a branch at each of these distinct nodes, by arrays."""
        if self._columns is None:
            try:
                with columns_of(self.tree) as self._columns:
                    return self._below(number, contexts)
            finally:
                self._columns = self._arrays = None
        if self._arrays is None:
            self._arrays = Evaluation(self.columns, self.selections, unchanged(self.columns))
        before = self._arrays.scanned
        counts = self._arrays.counts(number, contexts)
        self.scanned += self._arrays.scanned - before
        return counts

    def _size(self, number: int) -> int:
        return len(self.tree.partition(self.shape.nodes[number].wanted))


def _instantiated(
    block: Handles, places: Sequence[int], counts: Sequence[int], upper: Integers
) -> tuple[Integers, Integers]:
    """The matches of the first copy, repeated in every copy at a valid place."""
    if not upper.all():
        block, upper = block[upper != 0], upper[upper != 0]
    if len(places) == 1:
        return block[:, places[0]].astype(np.int64), upper * counts[0]
    nodes = block[:, places].ravel().astype(np.int64)
    return nodes, (upper[:, None] * np.array(counts, dtype=np.int64)).ravel()
