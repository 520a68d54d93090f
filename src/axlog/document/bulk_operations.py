"""Statements that do one thing at many places, applied to whole columns.

Covers one fragment inserted last into many elements, and the deletion of many nodes. The pending
update list of a statement mostly repeats one operation. `pending.Plan` works each out by itself;
here the fragment is built once, numpy fills in its copies, and links and partitions change for all
places together. The result equals that of `Plan` except for the handles of new nodes. The laws of
docs/design.md hold (maintenance, agreement, ids), and a test compares the two.

`plan_of` returns None for everything else: mixed operations; content beside a node; content with
texts, attributes or calls; deletions that make texts adjacent; and all invalid lists, for which
`Plan` raises the error. (Paper 5, section 3.4.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np

from axlog.document.bulk_columns import by_label, enter, leave, release, subtrees
from axlog.document.delta import Delta
from axlog.document.loader import graft
from axlog.document.operations import Attribute, Content, Delete, Insert, Operation, Where
from axlog.document.parser import Limits
from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    CALL_LABEL,
    DOCUMENT_NODE,
    ELEMENT,
    NONE,
    TEXT,
    NodeKind,
    Tree,
)

Handles: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]

FEWEST = 3
"""Below this number, applying operations one by one is as fast."""
FEW = 64
"""Up to this many targets are checked one by one."""
_FREE = int(NodeKind.FREE)
_FAR = -(1 << 31)  # as in tree.py: the component is in `long_components`
_HIGHEST = (1 << 31) - 2


def plan_of(
    tree: Tree,
    operations: Sequence[Operation],
    time: int,
    limits: Limits,
    keep_whitespace: bool,
) -> Insertion | Deletion | None:
    """The plan of a statement that does one thing at many places; None for others."""
    if len(operations) < FEWEST:
        return None
    first = operations[0]
    if isinstance(first, Insert):
        content, where = first.content, first.where
        if where not in (Where.INTO, Where.LAST) or not _is_plain(content):
            return None
        for each in operations:
            if type(each) is not Insert or each.content is not content:
                return None
            if each.where is not where or each.stream is not None:
                return None
        placed = _targets(tree, operations)
        if placed is None or (_column(tree.kind_column, np.int8)[placed[0]] != ELEMENT).any():
            return None
        return Insertion(tree, *placed, content, time, limits, keep_whitespace)
    if isinstance(first, Delete) and all(type(each) is Delete for each in operations):
        placed = _targets(tree, operations)
        return None if placed is None else _deletion(tree, placed[0], time)
    return None


def _is_plain(content: Content) -> bool:
    """Whether content is elements only, with no call in them."""
    if not content or any(isinstance(item, str | Attribute) for item in content):
        return False
    return all(
        not isinstance(item, str | Attribute) and next(item.iter(CALL_LABEL), None) is None
        for item in content
    )


def _targets(tree: Tree, operations: Sequence[Operation]) -> tuple[Handles, int] | None:
    """The targets and the greatest depth; None unless all are alive and distinct."""
    if len(operations) <= FEW:
        return _few_targets(tree, [each.target for each in operations])
    targets = np.fromiter((each.target for each in operations), np.int32, len(operations))
    if targets.min() <= DOCUMENT_NODE or targets.max() >= len(tree.kind_column):
        return None
    if (_column(tree.kind_column, np.int8)[targets] == NodeKind.FREE).any():
        return None
    seen = np.zeros(len(tree.kind_column), dtype=np.bool_)
    seen[targets] = True
    if np.count_nonzero(seen) != len(targets):
        return None
    parent = _column(tree.parent_column)
    depth, at = 0, targets
    while len(at):
        depth += 1
        at = parent[at]
        if at.min() == NONE:
            return None  # removed by the last update
        at = at[at != DOCUMENT_NODE]
        if len(at) > FEWEST and (at == at[0]).all():
            at = at[:1]  # siblings share the rest of the path
    return targets, depth


def _few_targets(tree: Tree, targets: list[int]) -> tuple[Handles, int] | None:
    """`_targets`, node by node; siblings share the path above them."""
    kinds, parents, size = tree.kind_column, tree.parent_column, len(tree.kind_column)
    depths = {DOCUMENT_NODE: 0}
    for target in targets:
        if not DOCUMENT_NODE < target < size or kinds[target] == _FREE:
            return None
        path, at = [], target
        while at not in depths:
            path.append(at)
            at = parents[at]
            if at == NONE:
                return None  # removed by the last update
        depth = depths[at]
        for node in reversed(path):
            depth += 1
            depths[node] = depth
    if len(set(targets)) != len(targets):
        return None
    return _handles(targets), max(map(depths.__getitem__, targets))


def _column(column: Any, kind: Any = np.int32) -> Any:
    return np.frombuffer(column, dtype=kind)


class Insertion:
    """The insertion of one fragment last into many elements."""

    def __init__(
        self,
        tree: Tree,
        targets: Handles,
        depth: int,
        content: Content,
        time: int,
        limits: Limits,
        keep_whitespace: bool,
    ) -> None:
        self.tree = tree
        self.time = time
        self._targets = targets
        elements = [item for item in content if not isinstance(item, str | Attribute)]
        roots = graft(
            tree, elements, time, limits=limits, keep_whitespace=keep_whitespace, above=depth
        )
        first = np.array([n for root in roots for n in tree.subtree(root)], dtype=np.int32)
        self._copies = _copied(tree, first, len(targets), time)
        self._roots = [self._copies[:, int(np.flatnonzero(first == root)[0])] for root in roots]
        parent = _column(tree.parent_column)
        for each in self._roots:
            parent[each] = targets
        self.delta = Delta(tree, time)
        self.delta.added = np.stack(self._roots, axis=1).ravel().tolist()
        self.delta.blocks = [self._copies]

    def abandon(self) -> None:
        """Free the new nodes; the tree is unchanged."""
        release(self.tree, self.delta.added)

    def commit(self) -> None:
        """Write the plan into the columns. Everything was checked before: this cannot fail."""
        tree = self.tree
        release(tree, tree._dying)
        self._link()
        enter(tree, self._copies)
        tree._size += self._copies.size
        tree.clock = self.time
        tree._dying = []
        tree.version += 1

    def _link(self) -> None:
        tree, targets = self.tree, self._targets
        last = _column(tree.last_column)
        after = last[targets]
        for roots in self._roots:
            has_before = after != NONE
            _column(tree.previous_column)[roots] = after
            _column(tree.next_column)[after[has_before]] = roots[has_before]
            _column(tree.first_column)[targets[~has_before]] = roots[~has_before]
            self._place(roots, after)
            after = roots
        last[targets] = after

    def _place(self, roots: Handles, after: Handles) -> None:
        """Set the components: one after the last child's, as in `ids.between`."""
        tree = self.tree
        order, kind = _column(tree.order_column), _column(tree.kind_column, np.int8)
        is_first = (after == NONE) | (kind[after] == ATTRIBUTE)
        low = order[after]
        is_far = ~is_first & ((low == _FAR) | (low >= _HIGHEST))
        order[roots] = np.where(is_first, 1, low + 1)
        for node, before in zip(roots[is_far].tolist(), after[is_far].tolist(), strict=True):
            tree._place_at(node, (tree.component(before)[0] + 1,))


def _copied(tree: Tree, first: Handles, count: int, time: int) -> Handles:
    """Copies of nodes that were just built, the first row: a row of handles for each."""
    more = (count - 1) * len(first)
    start = len(tree.kind_column) - len(first)
    if len(tree._free) < more and first.tolist() == list(range(start, start + len(first))):
        return _appended(tree, start, len(first), count)
    rows = _allocated(tree, more).reshape(count - 1, len(first))
    by_handle = np.argsort(first)
    for column in (
        tree.parent_column,
        tree.first_column,
        tree.last_column,
        tree.next_column,
        tree.previous_column,
    ):
        values = _column(column)
        links = values[first]
        is_none = links == NONE
        links[is_none] = first[0]
        copied = rows[:, by_handle[np.searchsorted(first, links, sorter=by_handle)]]
        copied[:, is_none] = NONE
        values[rows] = copied
    for column, kind in (
        (tree.kind_column, np.int8),
        (tree.label_column, np.int32),
        (tree.order_column, np.int32),
        (tree.time_column, np.int64),
    ):
        values = _column(column, kind)
        values[rows] = values[first]
    _copy_tables(tree, first, rows)
    return np.concatenate([first[None, :], rows])


def _appended(tree: Tree, start: int, size: int, count: int) -> Handles:
    """Copies of the last nodes of the columns, appended to the columns one after the other."""
    for column in (tree.kind_column, tree.label_column, tree.order_column, tree.time_column):
        column.extend(column[start:] * (count - 1))
    linked = (
        tree.parent_column,
        tree.first_column,
        tree.last_column,
        tree.next_column,
        tree.previous_column,
    )
    links = np.array([column[start:] for column in linked], dtype=np.int32)[:, None, :]
    further = np.arange(size, size * count, size, dtype=np.int32)[None, :, None]
    for column, copied in zip(linked, np.where(links == NONE, links, links + further), strict=True):
        column.frombytes(copied.tobytes())
    tree.slot_column.extend(tree.slot_column[start:] * (count - 1))
    rows = np.arange(start, start + size * count, dtype=np.int32).reshape(count, size)
    _copy_tables(tree, rows[0], rows[1:])
    return rows


def _copy_tables(tree: Tree, first: Handles, rows: Handles) -> None:
    """Copy the texts and names beside the columns."""
    every: tuple[dict[int, Any], ...] = (
        tree.texts_by_node,
        tree.prefixes_by_node,
        tree.namespaces_by_node,
    )
    tables = [table for table in every if table]
    for at, node in enumerate(first.tolist()):
        for table in tables:
            if node in table:
                table.update(zip(rows[:, at].tolist(), repeat(table[node]), strict=False))


def _allocated(tree: Tree, count: int) -> Handles:
    """Handles for this many nodes: free ones if there are enough, else new ones."""
    if len(tree._free) >= count:
        start = len(tree._free) - count
        taken = np.array(tree._free[start:], dtype=np.int32)
        del tree._free[start:]
        return taken
    size = len(tree.kind_column)
    for column in tree._columns():
        column.frombytes(bytes(column.itemsize * count))
    return np.arange(size, size + count, dtype=np.int32)


def _deletion(tree: Tree, targets: Handles, time: int) -> Deletion | None:
    """The deletion of nodes; None if more than links must change."""
    if len(targets) <= FEW:
        return _few_deletions(tree, targets.tolist(), time)
    parent, kind = _column(tree.parent_column), _column(tree.kind_column, np.int8)
    above = parent[targets]
    if (above == DOCUMENT_NODE).any() or (kind[above] == ATTRIBUTE).any():
        return None
    is_gone = np.zeros(len(kind), dtype=np.bool_)
    is_gone[targets] = True
    roots = np.sort(targets[~_has_above(parent, is_gone, above)])
    left = _survivors(_column(tree.previous_column), roots, is_gone)
    right = _survivors(_column(tree.next_column), roots, is_gone)
    are_texts = (left != NONE) & (right != NONE) & (kind[left] == TEXT) & (kind[right] == TEXT)
    return None if are_texts.any() else Deletion(tree, roots, left, right, time)


def _few_deletions(tree: Tree, targets: list[int], time: int) -> Deletion | None:
    """`_deletion`, node by node."""
    parents, kinds, gone = tree.parent_column, tree.kind_column, set(targets)
    is_below = {DOCUMENT_NODE: False}  # by node: whether it, or a node above it, is removed
    roots: list[int] = []
    for target in targets:
        above = parents[target]
        if above == DOCUMENT_NODE or kinds[above] == ATTRIBUTE:
            return None
        path, at = [], above
        while at not in is_below and at not in gone:
            path.append(at)
            at = parents[at]
        found = is_below.get(at, True)
        is_below.update(zip(path, repeat(found), strict=False))
        if not found:
            roots.append(target)
    roots.sort()
    left = [_survivor(tree.previous_column, root, gone) for root in roots]
    right = [_survivor(tree.next_column, root, gone) for root in roots]
    for one, other in zip(left, right, strict=True):
        if one != NONE and other != NONE and kinds[one] == kinds[other] == TEXT:
            return None
    return Deletion(tree, _handles(roots), _handles(left), _handles(right), time)


def _handles(nodes: list[int]) -> Handles:
    return np.array(nodes, dtype=np.int32)


def _survivor(links: Sequence[int], node: int, gone: set[int]) -> int:
    """The nearest remaining neighbour of a removed node along the links."""
    node = links[node]
    while node in gone:
        node = links[node]
    return node


def _has_above(parent: Handles, is_gone: Any, above: Handles) -> Any:
    """A mask of the nodes, given by their parents, that are below a removed node."""
    found = is_gone[above]
    places = np.flatnonzero(~found)
    at = parent[above[places]]
    while len(places):
        is_inside = at != DOCUMENT_NODE
        places, at = places[is_inside], at[is_inside]
        hit = is_gone[at]
        found[places[hit]] = True
        places, at = places[~hit], parent[at[~hit]]
    return found


def _survivors(links: Handles, roots: Handles, is_gone: Any) -> Handles:
    """For each removed node the nearest remaining neighbour along the links; by doubling."""
    reached = links[roots]
    place = np.zeros(len(is_gone), dtype=np.int32)
    place[roots] = np.arange(len(roots), dtype=np.int32)
    while True:
        goes_on = (reached != NONE) & is_gone[reached]
        if not goes_on.any():
            return reached
        reached[goes_on] = reached[place[reached[goes_on]]]


class Deletion:
    """The deletion of many subtrees, none below another."""

    def __init__(
        self, tree: Tree, roots: Handles, left: Handles, right: Handles, time: int
    ) -> None:
        self.tree = tree
        self.time = time
        self._roots, self._left, self._right = roots, left, right
        self._nodes = subtrees(tree, roots)
        self.delta = Delta(tree, time)
        self.delta.removed = roots.tolist()
        self.delta.nodes_removed = self._nodes
        self.delta.labels_removed = by_label(tree, self._nodes)
        if tree.calls_by_stream and (_column(tree.kind_column, np.int8)[self._nodes] == CALL).any():
            self.delta.closed = [
                tree.call(node).stream
                for root in self.delta.removed
                for node in tree.subtree(root)
                if tree.kind_column[node] == CALL
            ]

    def abandon(self) -> None:
        """Do nothing: no nodes were built."""

    def commit(self) -> None:
        """Write the plan into the columns. Everything was checked before: this cannot fail."""
        tree = self.tree
        release(tree, tree._dying)
        leave(tree, self.delta.labels_removed)
        tree._size -= len(self._nodes)
        tree._close_streams(self.delta.closed)
        tree._forget_messages(self.delta.removed)
        self._unlink()
        tree.clock = self.time
        tree._dying = list(self.delta.removed)
        tree.version += 1

    def _unlink(self) -> None:
        """Link the remaining neighbours; removed nodes keep their own links."""
        tree, left, right = self.tree, self._left, self._right
        parent = _column(tree.parent_column)
        above = parent[self._roots]
        has_left, has_right = left != NONE, right != NONE
        _column(tree.next_column)[left[has_left]] = right[has_left]
        _column(tree.previous_column)[right[has_right]] = left[has_right]
        _column(tree.first_column)[above[~has_left]] = right[~has_left]
        _column(tree.last_column)[above[~has_right]] = left[~has_right]
        parent[self._roots] = NONE
