"""Delta tables: the nodes that an update adds to and removes from the relation of each label.

The inserted and deleted subtrees are walked once for all views, and split by label when a view
first needs a label. A view adds its restated nodes. A node is restated if it stays, but the update
flips its test, its selection or its shown value (a rename, a new text, another result of a
comparison, `or` or `not`): it is deleted and inserted again, with all nodes below it, under the
same ids.

Law: a relation after the update is the relation before it, without the deleted nodes and with the
inserted ones; and all nodes below a node of a delta are in the delta. The rule `nesting` of `terms`
relies on this.

The tables are built while deleted nodes are still in the tree and inserted nodes are already built.
After the update, removed roots have no parents: `reattached` restores these while the terms of
deleted nodes are evaluated. (CD+ and CD- of paper 5, section 3.1, algorithm 2.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import numpy as np

from axlog.document.bulk_columns import KINDS_BY_LABEL, subtrees
from axlog.document.delta import Delta
from axlog.document.tree import (
    ATTRIBUTE,
    COMMENT_LABEL,
    ELEMENT,
    INSTRUCTION,
    INSTRUCTION_LABEL,
    NONE,
    TEXT,
    TEXT_LABEL,
    Tree,
)
from axlog.evaluate.columns import (
    NOTHING,
    Columns,
    Handles,
    Marked,
    MarkedNodes,
    Mask,
    columns_of,
    handles,
)
from axlog.evaluate.node_sets import passing
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyText,
    Axis,
    Literal,
    Name,
    PatternNode,
)
from axlog.views.algebraic.labels import (
    NO_LABELS,
    MovedLabels,
    changed_labels,
    labels_above,
    labels_above_few,
    labels_of,
    moved_labels,
    named,
    with_classes,
)
from axlog.views.algebraic.shape import is_by_content

FEW = 8
"""Up to this many insertions are processed one by one."""
FEW_PLACES = 64
"""Up to this many copies, places are looked at one by one."""
FEWEST_COPIES = 4
"""With fewer copies of a fragment, walking each copy is as fast."""


class NodeTable:
    """Nodes that are inserted or deleted together, split by label on demand.

    With `copies`, the nodes are those of fragments inserted at many places: each fragment is a
    matrix with a row for every copy. Tests are evaluated on the first row only.
    """

    def __init__(
        self,
        nodes: Handles | None,
        copies: Sequence[Handles] = (),
        labelled: dict[str, Handles] | None = None,
        roots: Sequence[int] = (),
        is_spread: bool = False,
        rows: Sequence[Sequence[int]] = (),
    ) -> None:
        self._nodes = nodes
        self.copies = copies
        self.roots = roots
        self._rows = rows
        self.is_spread = is_spread  # whether all copies have different parents
        self._kinds: Handles | None = None
        self._labels: Handles = NOTHING
        self._is_split = labelled is not None  # by all labels
        self._by_label: dict[str, Handles] = {} if labelled is None else labelled

    @property
    def nodes(self) -> Handles:
        """All nodes, in no particular order."""
        if self._nodes is None:
            every = [matrix.ravel() for matrix in self.copies] or list(map(_handles, self._rows))
            self._nodes = _one(every)
        return self._nodes

    def __len__(self) -> int:
        if self._nodes is None:
            return sum(matrix.size for matrix in self.copies) + sum(map(len, self._rows))
        return len(self._nodes)

    def rows(self, tree: Tree) -> Sequence[Sequence[int]]:
        """The subtrees one by one, each in document order."""
        return self._rows or [list(tree.subtree(root)) for root in self.roots]

    def members(
        self, columns: Columns, step: PatternNode, select: Callable[[Handles], Handles]
    ) -> Handles:
        """The nodes that pass a pattern node's test and a selection of the nodes below them."""
        if not self.copies:
            return select(_passing(columns, self.candidates(columns, step), step))
        found = []
        for matrix in self.copies:
            first = matrix[0]
            own = select(_passing(columns, first[_is_candidate(columns, first, step)], step))
            found.append(matrix[:, np.isin(first, own)].ravel())
        return np.concatenate(found)

    def candidates(self, columns: Columns, step: PatternNode) -> Handles:
        """The nodes that pass a test, or are of its kind; computed once for each label."""
        match step.test:
            case Name(label=label):
                return self._labelled(
                    columns, f"@{label}" if step.axis is Axis.ATTRIBUTE else label
                )
            case Literal() | AnyText():
                return self._labelled(columns, TEXT_LABEL)
            case AnyComment():
                return self._labelled(columns, COMMENT_LABEL)
            case AnyInstruction():
                return self._labelled(columns, INSTRUCTION_LABEL)
        return self.nodes[passing(columns, self.nodes, step)]

    def _labelled(self, columns: Columns, label: str) -> Handles:
        known = self._by_label.get(label)
        if known is None:
            if self._is_split:
                return NOTHING
            kind = KINDS_BY_LABEL.get(label, ATTRIBUTE if label[0] == "@" else ELEMENT)
            number = columns.tree.name_ids.get(label, -2)
            known = self._by_label[label] = self._split(columns, kind, number)
        return known

    def _split(self, columns: Columns, kind: int, label: int) -> Handles:
        if self.copies:
            parts = []
            for matrix in self.copies:
                is_wanted = columns.kind[matrix[0]] == kind
                if kind in (ELEMENT, ATTRIBUTE):
                    is_wanted &= columns.label[matrix[0]] == label
                parts.append(matrix[:, is_wanted].ravel())
            return np.concatenate(parts)
        if self._kinds is None:
            self._kinds, self._labels = columns.kind[self.nodes], columns.label[self.nodes]
        is_wanted = self._kinds == kind
        if kind in (ELEMENT, ATTRIBUTE):
            is_wanted &= self._labels == label
        found: Handles = self.nodes[is_wanted]
        return found


_NONE = NodeTable(NOTHING, labelled={})
"""The table of no nodes."""


def _is_candidate(columns: Columns, nodes: Handles, step: PatternNode) -> Mask:
    if isinstance(step.test, Literal | AnyInstruction):
        kind = TEXT if isinstance(step.test, Literal) else INSTRUCTION
        is_kind: Mask = columns.kind[nodes] == kind
        return is_kind
    return passing(columns, nodes, step)


def _passing(columns: Columns, nodes: Handles, step: PatternNode) -> Handles:
    """The candidates that pass the test: texts with its string, instructions with its target."""
    if is_by_content(step.test):
        return nodes[passing(columns, nodes, step)]
    return nodes


@dataclass(slots=True)
class DeltaTables:
    """The delta tables of one update, shared by all views."""

    delta: Delta
    removed: NodeTable
    added: NodeTable
    roots: Handles  # of the removed subtrees
    parents: Handles  # of those roots
    places: Handles  # the parents of inserted and deleted nodes, and the changed nodes
    changed: Handles
    labels: MovedLabels
    _is_moving: MarkedNodes | None = None
    _touched: Handles | None = None
    _size: int = -1

    def touched(self, columns: Columns) -> Handles:
        """The places and all their ancestors: nodes that stay and whose values may change."""
        if self._touched is None:
            self._touched = columns.with_ancestors(self.places)
        return self._touched

    @property
    def size(self) -> int:
        """The number of nodes that move."""
        if self._size < 0:
            self._size = len(self.removed) + len(self.added)
        return self._size

    def is_moving(self, columns: Columns) -> MarkedNodes:
        """The nodes that are inserted or deleted."""
        if self._is_moving is None:
            size = len(columns.kind)
            self._is_moving = MarkedNodes(size, self.removed.nodes, self.added.nodes)
        return self._is_moving


def _handles(nodes: Sequence[int]) -> Handles:
    return np.array(nodes, dtype=np.int32)


def tables_of(tree: Tree, delta: Delta) -> DeltaTables:
    """The nodes about to be deleted, and the nodes built for insertion."""
    if not (delta.removed or delta.changed):
        if delta.blocks and len(delta.added) <= FEW_PLACES:
            return _tables_of_few(tree, delta, NodeTable(None, delta.blocks, is_spread=True))
        if 0 < len(delta.added) <= FEW and not delta.blocks:
            rows = [list(tree.subtree(root)) for root in delta.added]
            added = NodeTable(None, rows=rows, roots=delta.added)
            return _tables_of_few(tree, delta, added, rows)
    with columns_of(tree) as columns:
        return _tables_of_many(columns, delta)


def _tables_of_many(columns: Columns, delta: Delta) -> DeltaTables:
    tree = columns.tree
    roots = parents = changed = NOTHING
    places: list[Handles] = []
    gone, added, left, brought = _NONE, _NONE, NO_LABELS, NO_LABELS
    if delta.removed:
        roots = handles(delta.removed)
        parents = columns.parent[roots]
        places.append(parents)
        removed, given = delta.nodes_removed, delta.labels_removed
        if removed is None:
            removed = subtrees(tree, roots)
        gone = NodeTable(removed, labelled=given or None)
        left = with_classes(frozenset(given)) if given else labels_of(columns, removed)
    if delta.added:
        added = _added(tree, delta)
        places.append(_places(columns, delta))
        if delta.labels_added:
            brought = with_classes(delta.labels_added)
        else:
            brought = labels_of(columns, _one([m[0] for m in added.copies] or [added.nodes]))
    if delta.changed:
        changed = handles([change.node for change in delta.changed])
        places.append(changed)
    at = _one(places) if places else NOTHING
    above, depths = labels_above(columns, at)
    labels = moved_labels(left, brought, above, changed_labels(tree, delta), depths)
    return DeltaTables(delta, gone, added, roots, parents, at, changed, labels)


def _one(arrays: Sequence[Handles]) -> Handles:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _tables_of_few(
    tree: Tree, delta: Delta, added: NodeTable, rows: Sequence[Sequence[int]] = ()
) -> DeltaTables:
    """The delta tables of a few insertions, built one by one; `rows` give the labels."""
    places = [tree.parent_column[root] for root in delta.added]
    given = delta.labels_added or frozenset(named(tree, chain.from_iterable(rows)))
    brought = with_classes(given)
    above, depths = labels_above_few(tree, places)
    labels = moved_labels(NO_LABELS, brought, above, NO_LABELS, depths)
    return DeltaTables(delta, _NONE, added, NOTHING, NOTHING, _handles(places), NOTHING, labels)


def _places(columns: Columns, delta: Delta) -> Handles:
    """The parents of inserted nodes, each at least once."""
    if not delta.blocks:
        return columns.parent[handles(delta.added)]
    # The first node of a copy is a root; all roots of a copy have one parent.
    return columns.parent[_one([matrix[:, 0] for matrix in delta.blocks])]


def _added(tree: Tree, delta: Delta) -> NodeTable:
    copies = copies_of(tree, delta)
    if copies:
        return NodeTable(None, copies, is_spread=bool(delta.blocks))
    return NodeTable(subtrees(tree, delta.added), roots=delta.added)


def copies_of(tree: Tree, delta: Delta) -> list[Handles]:
    """The added nodes as copies of fragments, with a row for every copy; empty if they are not.

    The nodes of a copy are equal to those of the first copy and usually in the same order in the
    columns. Equal links between the nodes prove it.
    """
    if delta.blocks:
        return delta.blocks
    given = list(delta.copies.values())
    if given != [delta.added]:  # several fragments, or an incomplete copy
        known = set(delta.added)
        given = [[root for root in roots if root in known] for roots in given]
    groups = [handles(roots) for roots in given]
    if sum(map(len, groups)) != len(delta.added) or max(map(len, groups)) < FEWEST_COPIES:
        return []
    found = []
    for roots in groups:
        first = handles(list(tree.subtree(int(roots[0])))) if len(roots) else NOTHING
        matrix = roots[:, None] + (first - first[:1])[None, :]
        if len(roots) and not _are_alike(tree, matrix):
            return []
        if len(roots):
            found.append(matrix)
    return found


def _are_alike(tree: Tree, matrix: Handles) -> bool:
    """Whether the links inside every row equal those inside the first."""
    if matrix.max() >= len(tree.kind_column) or matrix.min() < 0:
        return False
    order = np.argsort(matrix[0])
    for column, start in ((tree.first_column, 0), (tree.next_column, 1)):
        links = np.frombuffer(column, dtype=np.int32)[matrix[:, start:]]
        is_none = links[0] == NONE
        places = order[np.searchsorted(matrix[0][order], links[0][~is_none])]
        if not (links[:, is_none] == NONE).all():
            return False
        if not (links[:, ~is_none] == matrix[:, places]).all():
            return False
    return True


@contextmanager
def reattached(columns: Columns, tables: DeltaTables) -> Iterator[None]:
    """Restore the parents of removed roots inside the block."""
    columns.parent[tables.roots] = tables.parents
    try:
        yield
    finally:
        columns.parent[tables.roots] = NONE


class Side:
    """One side of an update for one view: the document before it, or after.

    `is_moving` marks the nodes that are on one side only, and the restated nodes.
    `candidates` and `members` give, for each pattern node, the nodes of this side that may be in
    its relation and the nodes that are; both are computed on demand.
    """

    def __init__(
        self,
        sign: int,
        is_moving: Marked,
        candidates: Callable[[int], Handles],
        members: Callable[[int], Handles],
        restates: bool,
        copies: Sequence[Handles] = (),
        is_still: bool = False,
    ) -> None:
        self.sign = sign
        self.is_still = is_still  # whether no node moves
        self.is_moving = is_moving
        self.restates = restates  # whether some node is on both sides
        self.copies = () if restates else copies  # all nodes of this side, as equal rows
        self.candidates = candidates
        self._members: dict[int, Handles] = {}
        self._work_out = members

    def members(self, number: int) -> Handles:
        known = self._members.get(number)
        if known is None:
            known = self._members[number] = self._work_out(number)
        return known


def unchanged(columns: Columns) -> Side:
    """The side of no update: all nodes of the document stay."""

    def none(number: int) -> Handles:
        return NOTHING

    return Side(1, MarkedNodes(len(columns.kind)), none, none, False, is_still=True)
