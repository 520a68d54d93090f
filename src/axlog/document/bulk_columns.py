"""Operations on many nodes at once: collect subtrees, update partitions, free handles.

The numpy form of what `Tree` does for one node. Few nodes are handled one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from axlog.document.tree import ATTRIBUTE, ELEMENT, LABELS_BY_KIND, NONE, TEXT, NodeKind, Tree

Handles: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]

FEW = 24
"""Up to this many nodes, one by one is faster than arrays."""
ONE_BY_ONE = 64
"""Up to this many nodes of a label, positions are counted one by one."""
_FREE = int(NodeKind.FREE)
SMALL = 150
"""Up to this many nodes in all, walking is faster than to prove that subtrees are ranges."""
MANY = 200
"""From this many nodes on, removed nodes are collected in arrays."""


def _column(column: Any, kind: Any = np.int32) -> Any:
    return np.frombuffer(column, dtype=kind)


def subtrees(tree: Tree, roots: Sequence[int] | Handles) -> Handles:
    """The roots and all nodes below them, of every kind, in no order; roots must not nest.

    Takes as many steps as the longest path down and to the right.
    """
    ranges = _ranges(tree, roots)
    if ranges is not None:
        return ranges
    if len(roots) < SMALL:
        few = few_below(tree, np.asarray(roots).tolist(), SMALL)
        if few is not None:
            return np.array(few, dtype=np.int32)
    first, following = _column(tree.first_column), _column(tree.next_column)
    frontier = np.asarray(roots, dtype=np.int32)
    found = [frontier]
    frontier = first[frontier]
    frontier = frontier[frontier != NONE]
    while len(frontier) > FEW:
        found.append(frontier)
        frontier = np.concatenate([first[frontier], following[frontier]])
        frontier = frontier[frontier != NONE]
    if len(frontier):
        found.append(_walked(tree, frontier.tolist()))
    return np.concatenate(found)


def few_below(tree: Tree, roots: Sequence[int], most: int) -> list[int] | None:
    """The same for few nodes, the roots first; None if there are more than `most`."""
    first, following = tree.first_column, tree.next_column
    found = list(roots)
    for node in found:  # it grows
        below = first[node]
        while below != NONE:
            found.append(below)
            below = following[below]
        if len(found) > most:
            return None
    return found


def _ranges(tree: Tree, roots: Sequence[int] | Handles) -> Handles | None:
    """`subtrees` of nodes whose subtrees are ranges of handles, as after a load; None for others.

    Proof: a range that its links to children and siblings do not leave contains the subtree; a
    range whose parents are all in it, each before its children, contains nothing else.
    """
    starts = np.asarray(roots, dtype=np.int32)
    if len(starts) <= FEW:
        ends = np.array([_last_below(tree, root) for root in starts.tolist()], dtype=np.int32)
    else:
        last = _column(tree.last_column)
        ends, below = starts, last[starts]
        while (goes_on := below != NONE).any():
            ends = np.where(goes_on, below, ends)
            below = np.where(goes_on, last[ends], NONE)
    sizes = ends - starts + 1
    total = int(sizes.sum())
    if not SMALL < total <= len(tree.kind_column) or sizes.min() < 1:
        return None
    begins = np.cumsum(sizes) - sizes
    nodes: Handles = np.repeat(starts - begins, sizes).astype(np.int32)
    nodes += np.arange(total, dtype=np.int32)
    low, high = np.repeat(starts, sizes), np.repeat(ends, sizes)
    parent, first = _column(tree.parent_column)[nodes], _column(tree.first_column)[nodes]
    following = _column(tree.next_column)[nodes]
    parent[begins], following[begins] = starts, NONE
    if (parent < low).any() or (parent > nodes).any() or (first > high).any():
        return None
    is_out = (following > high) | ((first < low) & (first != NONE))
    is_out |= (following < low) & (following != NONE)
    is_out |= _column(tree.kind_column, np.int8)[nodes] == _FREE
    return None if is_out.any() else nodes


def _last_below(tree: Tree, node: int) -> int:
    last = tree.last_column
    while (below := last[node]) != NONE:
        node = below
    return node


def place_among_equals(tree: Tree, node: int, parent: int) -> tuple[int, int]:
    """The position of a node among the siblings of its kind and label, and their number."""
    kind, label = tree.kind_column[node], tree.label_column[node]
    if kind == ELEMENT and len(tree.partition(tree.names[label])) > ONE_BY_ONE:
        found = _place_among(tree, node, parent)
        if found is not None:
            return found
    same = [
        other
        for other in tree.chain(parent)
        if tree.kind_column[other] == kind
        and (kind != ELEMENT or tree.label_column[other] == label)
    ]
    return same.index(node) + 1, len(same)


def _place_among(tree: Tree, node: int, parent: int) -> tuple[int, int] | None:
    """The position of an element among its siblings with its label, and their number.

    None if one of them has an order of several integers.
    """
    handles = _column(tree.partition(tree.label(node)))
    same = handles[_column(tree.parent_column)[handles] == parent]
    if tree.long_components and not tree.long_components.keys().isdisjoint(same.tolist()):
        return None
    order = _column(tree.order_column)
    return int((order[same] < order[node]).sum()) + 1, len(same)


def _walked(tree: Tree, stack: list[int]) -> Handles:
    """The same, one node at a time, starting from first children or following siblings."""
    first, following = tree.first_column, tree.next_column
    found: list[int] = []
    while stack:
        at = stack.pop()
        while at != NONE:
            found.append(at)
            if following[at] != NONE:
                stack.append(following[at])
            at = first[at]
    return np.array(found, dtype=np.int32)


def enter_groups(tree: Tree, groups: dict[str, Handles]) -> None:
    """Add nodes, grouped by label, to the partitions."""
    place = _column(tree.slot_column)
    for label, nodes in groups.items():
        partition = tree.nodes_by_label.get(label)
        if partition is None:
            partition = tree.nodes_by_label[label] = type(tree.slot_column)("i")
        place[nodes] = np.arange(len(partition), len(partition) + len(nodes), dtype=np.int32)
        partition.frombytes(nodes.tobytes())


def by_label(tree: Tree, nodes: Handles) -> dict[str, Handles]:
    """Nodes grouped by partition, without those that have none."""
    kinds, labels = _column(tree.kind_column, np.int8)[nodes], _column(tree.label_column)[nodes]
    if len(tree.names) < 1 << 14:  # numpy sorts short integers by radix
        labels = labels.astype(np.int16)
    is_named = (kinds == ELEMENT) | (kinds == ATTRIBUTE)
    keys = np.where(is_named, labels, ~kinds.astype(labels.dtype))
    order = np.argsort(keys, kind="stable")
    nodes, keys = nodes[order], keys[order]
    starts = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist()] if len(nodes) else []
    groups: dict[str, Handles] = {}
    for start, end in zip(starts, [*starts[1:], len(nodes)], strict=True):
        key = int(keys[start])
        label = tree.names[key] if key >= 0 else LABELS_BY_KIND.get(~key)
        if label is not None:
            groups[label] = nodes[start:end]
    return groups


def gathered(tree: Tree, roots: Sequence[int]) -> tuple[Handles | None, dict[str, Handles]]:
    """All nodes below some roots, and the same by label; empty if they are few."""
    if few_below(tree, roots, MANY) is not None:
        return None, {}
    every = subtrees(tree, roots)
    return every, by_label(tree, every)


def leave(tree: Tree, groups: dict[str, Handles]) -> None:
    """Remove nodes from their partitions: the last ones fill their slots."""
    for label, nodes in groups.items():
        _left(tree, label, nodes)


def _left(tree: Tree, label: str, nodes: Handles) -> None:
    partition = tree.nodes_by_label[label]
    kept = len(partition) - len(nodes)
    if not kept:
        del partition[:]
        return
    if len(nodes) <= FEW:
        slots = tree.slot_column
        for node in nodes.tolist():
            last = partition.pop()
            if last != node:
                slot = slots[last] = slots[node]
                partition[slot] = last
        return
    members, place = _column(partition), _column(tree.slot_column)
    places = place[nodes]
    stays = np.ones(len(nodes), dtype=np.bool_)
    stays[places[places >= kept] - kept] = False
    moved = members[kept:][stays]
    holes = places[places < kept]
    members[holes] = moved
    place[moved] = holes
    del members  # an array with an exported buffer cannot shrink
    del partition[kept:]


def release(tree: Tree, roots: Sequence[int]) -> None:
    """Free the handles of subtrees for reuse."""
    if not roots:
        return
    few = few_below(tree, roots, FEW)
    if few is not None:
        tree._release_nodes(few)
        return
    nodes = subtrees(tree, roots)
    kind = _column(tree.kind_column, np.int8)
    if tree.texts_by_node:
        for node in nodes[
            (kind[nodes] >= TEXT) & (_column(tree.label_column)[nodes] == NONE)
        ].tolist():
            tree.texts_by_node.pop(node, None)
    freed = nodes.tolist()
    for table in tree._side_tables()[1:]:  # the texts are gone
        if table:
            for node in freed:
                table.pop(node, None)
    kind[nodes] = int(NodeKind.FREE)
    tree._free += freed
