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
"""Up to this many subtrees, their last nodes are found one by one."""
SMALL = 150
"""Up to this many nodes in all, walking is faster than to prove that subtrees are ranges."""
MANY = 200
"""From this many nodes on, removed nodes are collected in arrays."""
SHARE = 16
"""Where more than one of so many handles is removed, all partitions can be swept at its cost."""
KINDS_BY_LABEL = {label: kind for kind, label in LABELS_BY_KIND.items()}


def _column(column: Any, kind: Any = np.int32) -> Any:
    return np.frombuffer(column, dtype=kind)


def subtrees(tree: Tree, roots: Sequence[int] | Handles) -> Handles:
    """The roots and all nodes below them, of every kind, in no order; roots must not nest.

    Takes as many steps as the longest path down and to the right.
    """
    ranges = _unedited(tree, roots)
    if ranges is None:
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


def _unedited(tree: Tree, roots: Sequence[int] | Handles) -> Handles | None:
    """`subtrees` of loaded nodes in which no chain has changed: ranges of handles; None for others.

    Proof: their chains are as they were loaded, down to the last node, which so ends the range that
    the loader gave the subtree.
    """
    edited, last = tree.edited, tree.last_column
    size = len(edited)
    starts, ends, end = list[int](), list[int](), NONE
    for root in roots if isinstance(roots, list) else np.asarray(roots).tolist():
        at = root
        while (below := last[at]) != NONE:
            at = below
        if not root <= at < size or edited.find(1, root, at + 1) >= 0:
            return None
        if root != end:
            starts.append(root)
            ends.append(end)
        end = at + 1
    ends.append(end)
    begins = np.array(starts, dtype=np.int32)
    sizes = np.array(ends[1:], dtype=np.int32) - begins
    before = np.cumsum(sizes) - sizes
    nodes: Handles = np.repeat(begins - before, sizes).astype(np.int32)
    nodes += np.arange(len(nodes), dtype=np.int32)
    return nodes


def _ranges(tree: Tree, roots: Sequence[int] | Handles) -> Handles | None:
    """`subtrees` of nodes whose subtrees are ranges of handles, as after a load; None for others.

    Proof: the ranges contain the subtrees if no link to a child or sibling leaves them, but for
    the roots' own. They contain nothing else if all parents are in them, but for those of the roots
    where their ranges begin. So they do not overlap either: one would contain another's root.
    """
    starts = np.asarray(roots, dtype=np.int32)
    last = tree.last_column
    if len(starts) <= ONE_BY_ONE:
        found = []
        for at in starts.tolist():
            while (below := last[at]) != NONE:
                at = below
            found.append(at)
        ends = np.array(found, dtype=np.int32)
    else:
        ends = _last_below(_column(last), starts)
    sizes = ends - starts + 1
    total, size = int(sizes.sum()), len(tree.kind_column)
    if not SMALL < total <= size or sizes.min() < 1:
        return None
    begins = np.cumsum(sizes) - sizes
    nodes: Handles = np.repeat(starts - begins, sizes).astype(np.int32)
    nodes += np.arange(total, dtype=np.int32)
    is_in = np.zeros(size + 1, dtype=np.bool_)
    is_in[nodes] = True
    has_parent = is_in[_column(tree.parent_column)[nodes]]
    is_in[NONE] = True  # the last one: no link
    following = _column(tree.next_column)[nodes]
    following[begins] = NONE
    if not (is_in[following].all() and is_in[_column(tree.first_column)[nodes]].all()):
        return None
    if has_parent[begins].any() or np.count_nonzero(has_parent) != total - len(starts):
        return None
    return nodes if _column(tree.kind_column, np.int8)[nodes].all() else None  # none is free


def _last_below(last: Handles, nodes: Handles) -> Handles:
    """The last node below each node, or the node itself."""
    ends, below = nodes, last[nodes]
    while (goes_on := below != NONE).any():
        ends = np.where(goes_on, below, ends)
        below = np.where(goes_on, last[ends], NONE)
    return ends


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


def make_room(tree: Tree) -> None:
    """Let the columns have room for a sixteenth more: the next insertions do not move them."""
    for column in (*tree._columns(), *tree.nodes_by_label.values()):
        column.append(0)
        column.pop()


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
    """All nodes below some roots, and the same by label if `leave` needs it; None if few."""
    if few_below(tree, roots, MANY) is not None:
        return None, {}
    every = subtrees(tree, roots)
    return every, groups_to_leave(tree, every)


def groups_to_leave(tree: Tree, nodes: Handles) -> dict[str, Handles]:
    """The nodes by label; none if they are so many that `leave` only marks them."""
    return {} if len(nodes) * SHARE >= len(tree.kind_column) else by_label(tree, nodes)


def leave(tree: Tree, nodes: Handles, groups: dict[str, Handles]) -> None:
    """Remove nodes from their partitions: the last ones fill their slots.

    Many nodes without groups only lose their slots, and partitions are swept when they are read.
    """
    if groups:
        for label, each in groups.items():
            _left(tree, label, each)
    else:
        _column(tree.slot_column)[nodes] = NONE
        tree._stale.update(tree.nodes_by_label)


def sweep(tree: Tree, label: str) -> None:
    """Drop the nodes that have left from a partition: those that do not know their slot there.

    Their handles may be in use again, with another label, or the same one in another slot.
    """
    tree._stale.discard(label)
    partition = tree.nodes_by_label[label]
    if not partition:
        return
    slots, members = _column(tree.slot_column), _column(partition)
    stays = slots[members] == np.arange(len(members), dtype=np.int32)
    kinds = _column(tree.kind_column, np.int8)[members]
    if label[0] == "#":
        stays &= kinds == KINDS_BY_LABEL[label]
    else:
        stays &= kinds == (ATTRIBUTE if label[0] == "@" else ELEMENT)
        stays &= _column(tree.label_column)[members] == tree.name_ids[label]
    kept = members[stays]
    slots[kept] = np.arange(len(kept), dtype=np.int32)
    del members  # an array with an exported buffer cannot shrink
    del partition[len(kept) :]
    if len(kept):
        _column(partition)[:] = kept


def leave_few(tree: Tree, nodes: Sequence[int]) -> None:
    """`leave` for few nodes, one by one."""
    kinds, labels, slots = tree.kind_column, tree.label_column, tree.slot_column
    names, partitions, stale = tree.names, tree.nodes_by_label, tree._stale
    for node in nodes:
        kind = kinds[node]
        if kind == ELEMENT or kind == ATTRIBUTE:
            label = names[labels[node]]
        elif kind in LABELS_BY_KIND:
            label = LABELS_BY_KIND[kind]
        else:
            continue
        members = tree.partition(label) if stale else partitions[label]
        last = members.pop()
        if last != node:
            slot = slots[last] = slots[node]
            members[slot] = last


def _left(tree: Tree, label: str, nodes: Handles) -> None:
    partition = tree.partition(label)
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
    if tree.edited:
        edited = _column(tree.edited, np.uint8)
        edited[nodes[nodes < len(edited)]] = 1
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
