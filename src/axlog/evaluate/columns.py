"""A tree's columns as numpy arrays: sets of handles, structural joins, document order.

The arrays are views of the live columns, so nothing is copied or maintained. While one exists the
tree cannot grow, hence `with columns_of(tree) as columns:`; no array may outlive the block. A
structural join follows the parent column: one lookup for children, and one lookup per level for
descendants, each over the nodes not yet decided. That costs nodes times depth and needs neither
ranks nor intervals, which every insertion would change. It works for a subtree before and after the
subtree is added or removed.

The joins `with_..._in` keep nodes for which a partner exists. `pairs` keeps every pair, as
derivation counts need. Law: a join equals the axis of `definition_axes` on every pair of nodes.

Descent never enters attributes: an attribute's text is below the attribute only.
(Structural joins, Path Navigate and Path Filter: paper 5, section 3.4.)
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from axlog.document.tree import (
    ATTRIBUTE,
    COMMENT_LABEL,
    DOCUMENT_NODE,
    INSTRUCTION_LABEL,
    NONE,
    TEXT_LABEL,
    Tree,
)
from axlog.query.pattern import Axis

Handles: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Keys: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

NOTHING: Handles = np.empty(0, dtype=np.int32)
FEW = 24
"""Up to this many nodes, one by one is faster than arrays."""
_SHARE = 500
"""A mask of the document costs as much as sorting one of this many of its nodes."""
_FAR = -(1 << 31)  # as in tree.py: the component is in `long_components`


def handles(nodes: list[int] | array[int]) -> Handles:
    """A copy of handles as an array."""
    return np.array(nodes, dtype=np.int32)


def are_few(count: int, size: int) -> bool:
    """Whether so many nodes are few of a document of this size: sorting them beats a mask of it."""
    return count * _SHARE < size


class MarkedNodes:
    """Some nodes of a document: `marked[nodes]` is a mask of the given nodes that are among them.

    Few nodes need no mask of the document.
    """

    def __init__(self, size: int, *nodes: Handles) -> None:
        self._size = size
        self._nodes = np.concatenate(nodes) if nodes else NOTHING
        self._mask: Mask | None = None

    def __getitem__(self, nodes: Any) -> Mask:
        if self._mask is None:
            if are_few(len(nodes) + len(self._nodes), self._size):
                return np.isin(nodes, self._nodes)
            self._mask = np.zeros(self._size, dtype=np.bool_)
            self._mask[self._nodes] = True
        found: Mask = self._mask[nodes]
        return found

    def and_also(self, *nodes: Handles) -> MarkedNodes:
        """These nodes and others."""
        return MarkedNodes(self._size, self._nodes, *nodes)


Marked: TypeAlias = MarkedNodes | Mask
"""Nodes of a document by handle; `marked[nodes]` is a mask of the given nodes."""


class Columns:
    """Views of the columns of a tree, which must not change in the meantime."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.kind: Any = np.frombuffer(tree.kind_column, dtype=np.int8)
        self.parent: Handles = np.frombuffer(tree.parent_column, dtype=np.int32)
        self.label: Handles = np.frombuffer(tree.label_column, dtype=np.int32)

    def __enter__(self) -> Columns:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the columns: the tree may grow again."""
        del self.kind, self.parent, self.label

    # Relations ----------------------------------------------------------------------------------

    def partition(self, label: str) -> Handles:
        """The nodes of a label, in no order."""
        nodes = self.tree.partition(label)
        return np.frombuffer(nodes, dtype=np.int32).copy() if nodes else NOTHING

    def partitions(self, labels: Iterable[str]) -> Handles:
        """The nodes of some labels, in no order."""
        parts = [self.partition(label) for label in labels]
        return np.concatenate(parts) if parts else NOTHING

    def elements(self) -> Handles:
        """Every element."""
        return self._all(lambda label: label[0] not in "@#")

    def attributes(self) -> Handles:
        """Every attribute."""
        return self._all(lambda label: label[0] == "@")

    def texts(self) -> Handles:
        """Every text, including those of attributes."""
        return self.partition(TEXT_LABEL)

    def comments(self) -> Handles:
        """Every comment."""
        return self.partition(COMMENT_LABEL)

    def instructions(self, target: str | None = None) -> Handles:
        """Every processing instruction, or those of a target."""
        found = self.partition(INSTRUCTION_LABEL)
        if target is None:
            return found
        return handles([node for node in found.tolist() if self.tree.target(node) == target])

    def nodes(self) -> Handles:
        """All nodes that pass `node()`, including the texts of attributes."""
        return np.concatenate([self.elements(), self.texts(), self.comments(), self.instructions()])

    def _all(self, is_wanted: Any) -> Handles:
        return self.partitions(label for label in self.tree.labels() if is_wanted(label))

    # Joins --------------------------------------------------------------------------------------

    def mask(self, nodes: Handles) -> Mask:
        """A mask with one entry per handle that is true for these nodes."""
        mask = np.zeros(len(self.kind), dtype=np.bool_)
        mask[nodes] = True
        return mask

    def is_among(self, nodes: Handles, others: Handles) -> Mask:
        """A mask of the nodes that are among the others. Few nodes need no mask of the document."""
        found: Mask
        if len(others) == 1:
            found = nodes == others[0]
        elif self._are_few(len(nodes) + len(others)):
            found = np.isin(nodes, others)
        else:
            found = self.mask(others)[nodes]
        return found

    def _are_few(self, count: int) -> bool:
        return are_few(count, len(self.kind))

    def with_parent_in(self, nodes: Handles, above: Handles) -> Handles:
        """The nodes whose parent is one of those above."""
        return nodes[self.is_among(self.parent[nodes], above)]

    def with_ancestor_in(self, nodes: Handles, above: Handles) -> Handles:
        """The nodes with an ancestor among those above."""
        if not len(above):
            return NOTHING
        mask = None if self._are_few(len(nodes) + len(above)) else self.mask(above)
        found = np.zeros(len(nodes), dtype=np.bool_)
        places = np.arange(len(nodes))
        at = self.parent[nodes]
        while len(places):
            hit = self.is_among(at, above) if mask is None else mask[at]
            found[places[hit]] = True
            goes_on = ~hit & (at != DOCUMENT_NODE) & (self.kind[at] != ATTRIBUTE)
            places, at = places[goes_on], self.parent[at[goes_on]]
        return nodes[found]

    def with_child_in(self, nodes: Handles, below: Handles) -> Handles:
        """The nodes with a child, or an attribute, among those below."""
        return nodes[self.is_among(nodes, self.parent[below])]

    def with_descendant_in(self, nodes: Handles, below: Handles) -> Handles:
        """The nodes with a descendant among those below."""
        if self._are_few(len(nodes) + len(below)):
            parents = self.parent[below]
            is_attribute = self.kind[parents] == ATTRIBUTE
            above = self.with_ancestors(parents[~is_attribute])
            return nodes[self.is_among(nodes, np.concatenate([above, parents[is_attribute]]))]
        mask = np.zeros(len(self.kind), dtype=np.bool_)
        at = self.parent[below]
        while len(at):
            at = np.unique(at[~mask[at]])  # all ancestors of a marked node are marked
            mask[at] = True
            at = at[(at != DOCUMENT_NODE) & (self.kind[at] != ATTRIBUTE)]
            at = self.parent[at]
        return nodes[mask[nodes]]

    def common(self, nodes: Handles, others: Handles) -> Handles:
        """The nodes that are among the others."""
        return nodes[self.is_among(nodes, others)]

    def without(self, nodes: Handles, others: Handles) -> Handles:
        """The nodes that are not among the others."""
        return nodes[~self.is_among(nodes, others)]

    def pairs(
        self, nodes: Handles, axis: Axis, among: Mask | None = None
    ) -> tuple[Handles, Handles]:
        """The start nodes of a downward axis that reaches nodes: positions of nodes, and starts.

        With `among`, only the starts that this mask holds.
        """
        places = np.arange(len(nodes), dtype=np.int32)
        if axis is Axis.SELF:
            return _within(places, nodes, among)
        if axis is Axis.CHILD or axis is Axis.ATTRIBUTE:
            return _within(*_attached(places, self.parent[nodes]), among)
        found = [_within(places, nodes, among)] if axis is Axis.DESCENDANT_OR_SELF else []
        at = self.parent[nodes]
        while len(places):
            places, at = _attached(places, at)
            found.append(_within(places, at, among))
            goes_on = (at != DOCUMENT_NODE) & (self.kind[at] != ATTRIBUTE)
            places, at = places[goes_on], self.parent[at[goes_on]]
        if not found:
            return NOTHING, NOTHING
        return np.concatenate([p for p, _ in found]), np.concatenate([a for _, a in found])

    def is_below_document(self, nodes: Handles, axis: Axis) -> Mask:
        """A mask of the nodes that a downward axis reaches from the document node."""
        if axis is Axis.SELF:
            return np.equal(nodes, DOCUMENT_NODE)
        above = self.parent[nodes]
        if axis is Axis.CHILD or axis is Axis.ATTRIBUTE:
            return np.equal(above, DOCUMENT_NODE)
        # Only the text of an attribute is out of reach of descent.
        found: Mask = (above != NONE) & (self.kind[above] != ATTRIBUTE)
        return found | (nodes == DOCUMENT_NODE) if axis is Axis.DESCENDANT_OR_SELF else found

    def with_ancestors(self, nodes: Handles) -> Handles:
        """The nodes and all their ancestors, each once, including the document node."""
        found: list[Handles] = []
        at = nodes
        seen: Mask | None = None
        while len(at) > FEW:
            if (at == at[0]).all():
                at = at[:1]
                break
            if seen is None:
                seen = np.zeros(len(self.kind), dtype=np.bool_)
                place = np.empty(len(self.kind), dtype=np.int32)
            at = at[~seen[at]]
            numbers = np.arange(len(at), dtype=np.int32)
            place[at] = numbers
            at = at[place[at] == numbers]  # each once
            seen[at] = True
            found.append(at)
            at = self.parent[at]
            at = at[at != NONE]
        found.append(handles(_walked_up(self.tree, at.tolist(), seen)))
        return found[0] if len(found) == 1 else np.concatenate(found)

    # Order --------------------------------------------------------------------------------------

    def in_document_order(self, nodes: Handles) -> Handles:
        """Distinct nodes in document order."""
        if len(nodes) < 2:
            return nodes
        if len(nodes) <= FEW:
            return handles(in_order(self.tree, nodes.tolist()))
        nodes = np.sort(nodes)  # handles of a loaded document are in its order already
        keys = self._keys(nodes)
        if keys is None:
            return handles(sorted(nodes.tolist(), key=self.tree.id))
        if _is_sorted(keys):
            return nodes
        return nodes[np.lexsort(keys[::-1])]

    def _keys(self, nodes: Handles) -> list[Keys] | None:
        """Columns that compare as the nodes do, the most significant first; None: compare ids.

        Column d has the position of each node's ancestor at depth d among its siblings, or a value
        less than every position if the node itself is higher up. Components of more than one
        integer (`ids`) take a second column with their rank.
        """
        order: Handles = np.frombuffer(self.tree.order_column, dtype=np.int32)
        keys: list[Keys] = []
        for level in self._paths(nodes):
            places = order[level].astype(np.int64)
            far = np.flatnonzero(places == _FAR)
            if len(far):
                components = [self.tree.long_components[node] for node in level[far].tolist()]
                if any(abs(component[0]) >= 1 << 40 for component in components):
                    return None
                places[far] = [component[0] for component in components]
            places[self.kind[level] != ATTRIBUTE] += 1 << 42  # attributes sort first
            places[level == DOCUMENT_NODE] = -(1 << 62)
            keys.append(places)
            if len(far):
                ranks = np.zeros(len(nodes), dtype=np.int64)
                rank = {component: n for n, component in enumerate(sorted(set(components)), 1)}
                ranks[far] = [rank[component] for component in components]
                keys.append(ranks)
        return keys

    def _paths(self, nodes: Handles) -> list[Handles]:
        """The paths of the nodes, one array per level from the root, padded with node 0."""
        upward: list[Handles] = []
        at = nodes
        while at.any():
            upward.append(at)
            at = np.maximum(self.parent[at], DOCUMENT_NODE)
        depth = np.add.reduce([level != DOCUMENT_NODE for level in upward], axis=0)
        if (depth == len(upward)).all():
            return upward[::-1]
        paths = np.zeros((len(upward) + 1, len(nodes)), dtype=np.int32)
        columns = np.arange(len(nodes))
        for hops, level in enumerate(upward):
            paths[np.maximum(depth - hops, 0), columns] = level
        return list(paths[1:])


def columns_of(tree: Tree) -> Columns:
    """The columns of a tree, which must not change inside `with columns_of(tree) as it:`."""
    return Columns(tree)


def _attached(places: Handles, nodes: Handles) -> tuple[Handles, Handles]:
    """Pairs without those whose node is none: a removed subtree has no parent."""
    hangs = nodes != NONE
    return (places, nodes) if hangs.all() else (places[hangs], nodes[hangs])


def _within(places: Handles, nodes: Handles, among: Mask | None) -> tuple[Handles, Handles]:
    if among is None:
        return places, nodes
    hit = among[nodes]
    return places[hit], nodes[hit]


def in_order(tree: Tree, nodes: list[int]) -> list[int]:
    """Few nodes in document order, by their paths; equal parts of these are read once."""
    if len(nodes) < 2:
        return nodes
    parents, kinds, places = tree.parent_column, tree.kind_column, tree.order_column
    paths: dict[int, tuple[Any, ...]] = {DOCUMENT_NODE: (), NONE: ()}
    for node in nodes:
        at, below = node, []
        while at not in paths:
            below.append(at)
            at = parents[at]
        path = paths[at]
        for at in reversed(below):
            place: Any = places[at]
            component = tree.long_components[at] if place == _FAR else (place,)
            path = paths[at] = (*path, (kinds[at] != ATTRIBUTE, component))  # attributes first
    return sorted(nodes, key=paths.__getitem__)


def _walked_up(tree: Tree, nodes: list[int], seen: Mask | None) -> list[int]:
    """The nodes and all their ancestors, one node at a time, up to nodes already seen."""
    parent = tree.parent_column
    found: dict[int, None] = {}
    for node in nodes:
        while node != NONE and node not in found and (seen is None or not seen[node]):
            found[node] = None
            node = parent[node]
    return list(found)


def _is_sorted(keys: list[Keys]) -> bool:
    """Whether the rows of these columns ascend."""
    tied = np.ones(len(keys[0]) - 1, dtype=np.bool_)
    for key in keys:
        left, right = key[:-1], key[1:]
        if (tied & (left > right)).any():
            return False
        tied &= left == right
    return not tied.any()
