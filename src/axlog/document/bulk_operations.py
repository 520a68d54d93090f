"""Statements that do one thing at many places, applied to whole columns.

Covers one fragment inserted last into many elements, and the deletion of many nodes. The pending
update list of a statement mostly repeats one operation. `pending.Plan` works each out by itself;
here the fragment is built once, numpy fills in its copies, and links and partitions change for all
places together. The result equals that of `Plan` except for the handles of new nodes. The laws of
docs/design.md hold (maintenance, agreement, ids), and a test compares the two.

One place is enough for a fragment that was inserted before, because its block is kept.

`plan_of` returns None for everything else: mixed operations; content beside a node; content with
texts, attributes or calls; deletions that make texts adjacent; and all invalid lists, for which
`Plan` raises the error. (Paper 5, section 3.4.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from axlog.document.blocks import FixedContent, block_of
from axlog.document.bulk_columns import (
    MANY,
    few_below,
    groups_to_leave,
    leave,
    leave_few,
    release,
    subtrees,
)
from axlog.document.delta import Delta
from axlog.document.operations import Attribute, Content, Delete, Insert, Operation, Repeated, Where
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
"""Below this number, content that is new is inserted node by node, views see inserted nodes one by
one, and deleted nodes are collected in lists."""
FEW = 128
"""Up to this many targets are checked one by one."""
MOST_LISTED = 64
"""Up to this many nodes, a single copy of a fragment is made without arrays."""
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
    if not operations:
        return None
    if type(operations) is Repeated and operations.is_current(tree):
        targets, where, content = operations.targets, operations.where, operations.content
        if where is None:
            return None if targets[0] == DOCUMENT_NODE else _deletion(tree, targets, time)
        if where not in (Where.INTO, Where.LAST) or not _is_worth(targets, content):
            return None
        depth = _levels(tree, set(targets))
        assert depth is not None
        return Insertion(tree, targets, depth, content, time, limits, keep_whitespace)
    operations = list(operations) if type(operations) is Repeated else operations
    first = operations[0]
    if isinstance(first, Insert):
        content, where = first.content, first.where
        if where not in (Where.INTO, Where.LAST) or not _is_worth(operations, content):
            return None
        targets = []
        for each in operations:
            if type(each) is not Insert or each.content is not content:
                return None
            if each.where is not where or each.stream is not None:
                return None
            targets.append(each.target)
        depth = _depth(tree, targets)
        if depth is None or not _are_elements(tree, targets):
            return None
        return Insertion(tree, targets, depth, content, time, limits, keep_whitespace)
    if isinstance(first, Delete) and all(type(each) is Delete for each in operations):
        targets = [each.target for each in operations]
        return None if _depth(tree, targets) is None else _deletion(tree, targets, time)
    return None


def _are_elements(tree: Tree, targets: list[int]) -> bool:
    kinds = set(map(tree.kind_column.__getitem__, targets))
    return kinds == {ELEMENT}


def _is_worth(places: Sequence[object], content: Content) -> bool:
    """Whether content can be a block, and it pays: at many places, or if it is inserted again."""
    if len(places) < FEWEST:
        if type(content) is not FixedContent:
            return False
        if not content.was_inserted:
            content.was_inserted = True
            return False
    return _is_plain(content)


def _is_plain(content: Content) -> bool:
    """Whether content is elements only, with no call in them."""
    if type(content) is FixedContent and content.block is not None:
        return True  # a block was made of it
    if not content or any(isinstance(item, str | Attribute) for item in content):
        return False
    return all(
        not isinstance(item, str | Attribute) and next(item.iter(CALL_LABEL), None) is None
        for item in content
    )


def _depth(tree: Tree, targets: list[int]) -> int | None:
    """The greatest depth of the targets; None unless all are alive and distinct."""
    kinds, size = tree.kind_column, len(tree.kind_column)
    if min(targets) <= DOCUMENT_NODE or max(targets) >= size:
        return None
    if len(targets) > FEW:
        return _depth_of_many(tree, _handles(targets))
    if len(targets) == 1:
        return None if kinds[targets[0]] == _FREE else _level(tree, targets[0])
    at = set(targets)
    if len(at) != len(targets) or _FREE in map(kinds.__getitem__, at):
        return None
    return _levels(tree, at)


def _level(tree: Tree, node: int) -> int | None:
    """The depth of a node; None if it was removed by the last update."""
    parents, depth = tree.parent_column, 0
    while node != DOCUMENT_NODE:
        node = parents[node]
        if node == NONE:
            return None
        depth += 1
    return depth


def _levels(tree: Tree, at: set[int]) -> int | None:
    """The greatest depth of nodes; None if one was removed by the last update."""
    parent_of, depth = tree.parent_column.__getitem__, 0
    while at:  # level by level: the paths of targets soon merge
        at = set(map(parent_of, at))
        if NONE in at:
            return None
        at.discard(DOCUMENT_NODE)
        depth += 1
    return depth


def _depth_of_many(tree: Tree, targets: Handles) -> int | None:
    if (_column(tree.kind_column, np.int8)[targets] == _FREE).any():
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
    return depth


def _column(column: Any, kind: Any = np.int32) -> Any:
    return np.frombuffer(column, dtype=kind)


class Insertion:
    """The insertion of one fragment last into many elements."""

    def __init__(
        self, tree: Tree, targets: list[int], depth: int, content: Content, time: int,
        limits: Limits, keep_whitespace: bool,
    ) -> None:  # fmt: skip
        self.tree = tree
        self.time = time
        self._targets = targets
        self._block = block = block_of(content, limits, keep_whitespace, depth)
        self.delta = Delta(tree, time)
        self.delta.labels_added = block.labels
        self._row: list[int] | None = None  # the handles of the only copy
        if len(targets) == 1 and block.size <= MOST_LISTED:
            self._row = row = block.copied_once(tree, targets[0], time)
            self.delta.added = [row[at] for at in block.roots]
            return
        self._copies = copies = block.copied(tree, targets, time)
        only = block.roots[0] if len(block.roots) == 1 else None
        roots = copies[:, block.roots].ravel() if only is None else copies[:, only]
        self.delta.added = roots.tolist()
        if len(targets) >= FEWEST:
            self.delta.blocks = [copies]

    def abandon(self) -> None:
        """Free the new nodes; the tree is unchanged."""
        release(self.tree, self.delta.added)

    def commit(self) -> None:
        """Write the plan into the columns. Everything was checked before: this cannot fail."""
        tree = self.tree
        release(tree, tree._dying)
        tree._mark_edited(self._targets)
        if self._row is not None:
            for root in self.delta.added:
                self._link_few([root])
            self._block.enter_once(tree, self._row)
            tree._size += len(self._row)
        else:
            self._link_copies()
            self._block.enter(tree, self._copies)
            tree._size += self._copies.size
        tree.clock = self.time
        tree._dying = []
        tree.version += 1

    def _link_copies(self) -> None:
        few = len(self._targets) <= FEW
        for at in self._block.roots:
            roots = self._copies[:, at]
            if few:
                self._link_few(roots.tolist())
            else:
                self._link(roots)

    def _link_few(self, roots: list[int]) -> None:
        """`_link`, node by node."""
        tree = self.tree
        first, last, following = tree.first_column, tree.last_column, tree.next_column
        previous, order, kinds = tree.previous_column, tree.order_column, tree.kind_column
        for target, root in zip(self._targets, roots, strict=True):
            after = last[target]
            last[target] = root
            if after == NONE:
                first[target] = root
                order[root] = 1
                continue
            following[after] = root
            previous[root] = after
            if kinds[after] == ATTRIBUTE:
                order[root] = 1
            elif _FAR < (low := order[after]) < _HIGHEST:
                order[root] = low + 1
            else:
                tree._place_at(root, (tree.component(after)[0] + 1,))

    def _link(self, roots: Handles) -> None:
        """Append a root to the chain of each target, with the component after that of the last."""
        tree, targets = self.tree, _handles(self._targets)
        last = _column(tree.last_column)
        after = last[targets]
        has_before = after != NONE
        _column(tree.previous_column)[roots] = after
        _column(tree.next_column)[after[has_before]] = roots[has_before]
        _column(tree.first_column)[targets[~has_before]] = roots[~has_before]
        self._place(roots, after)
        last[targets] = roots

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


def _deletion(tree: Tree, nodes: list[int], time: int) -> Deletion | None:
    """The deletion of nodes; None if more than links must change."""
    if len(nodes) <= FEW:
        return _few_deletions(tree, nodes, time)
    targets = _handles(nodes)
    parent, kind = _column(tree.parent_column), _column(tree.kind_column, np.int8)
    above = parent[targets]
    if (above == DOCUMENT_NODE).any() or (kind[above] == ATTRIBUTE).any():
        return None
    is_gone = np.zeros(len(kind) + 1, dtype=np.bool_)  # the last one: no node
    is_gone[targets] = True
    roots = np.sort(targets[~_has_above(parent, is_gone, above)])
    left = _survivors(_column(tree.previous_column), roots, is_gone)
    right = _survivors(_column(tree.next_column), roots[::-1], is_gone)[::-1]
    are_texts = (left != NONE) & (right != NONE) & (kind[left] == TEXT) & (kind[right] == TEXT)
    if are_texts.any():
        return None
    return Deletion(tree, roots.tolist(), left.tolist(), right.tolist(), time)


def _few_deletions(tree: Tree, targets: list[int], time: int) -> Deletion | None:
    """`_deletion`, node by node."""
    parents, kinds, gone = tree.parent_column, tree.kind_column, set(targets)
    at = set(map(parents.__getitem__, targets))
    if DOCUMENT_NODE in at or ATTRIBUTE in map(kinds.__getitem__, at):
        return None
    is_nested = False
    while at and not is_nested:
        is_nested = not gone.isdisjoint(at)
        at = set(map(parents.__getitem__, at))
        at.discard(NONE)
    roots = sorted(_outermost(tree, gone) if is_nested else targets)
    left = _survivors_of_few(tree.previous_column, roots, gone)
    right = _survivors_of_few(tree.next_column, roots[::-1], gone)[::-1]
    for one, other in zip(left, right, strict=True):
        if one != NONE and other != NONE and kinds[one] == kinds[other] == TEXT:
            return None
    return Deletion(tree, roots, left, right, time)


def _outermost(tree: Tree, gone: set[int]) -> Iterator[int]:
    """The nodes that are below no other."""
    return (node for node in gone if gone.isdisjoint(tree.ancestors(node)))


def _survivors_of_few(links: Sequence[int], nodes: list[int], gone: set[int]) -> list[int]:
    """For each removed node the nearest remaining neighbour along the links.

    Usually the nodes are in the order in which that of one is that of the next.
    """
    known: dict[int, int] = {}
    for node in nodes:
        at = links[node]
        while at in gone:
            at = known[at] if at in known else links[at]
        known[node] = at
    return list(map(known.__getitem__, nodes))


def _handles(nodes: list[int]) -> Handles:
    return np.array(nodes, dtype=np.int32)


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
    """For each removed node the nearest remaining neighbour along the links.

    Mostly the removed neighbour of a node is the one before it, which has the same; else they are
    found by doubling.
    """
    reached = links[roots]
    starts = np.arange(len(roots))
    starts[1:][reached[1:] == roots[:-1]] = 0
    found: Handles = reached[np.maximum.accumulate(starts)]
    if not is_gone[found].any():
        return found
    place = np.zeros(len(is_gone), dtype=np.int32)
    place[roots] = np.arange(len(roots), dtype=np.int32)
    while (goes_on := is_gone[reached]).any():
        reached[goes_on] = reached[place[reached[goes_on]]]
    return reached


class Deletion:
    """The deletion of many subtrees, none below another."""

    def __init__(
        self, tree: Tree, roots: list[int], left: list[int], right: list[int], time: int
    ) -> None:
        self.tree = tree
        self.time = time
        self._left, self._right = left, right
        self._few = few_below(tree, roots, MANY) if len(roots) < FEWEST else None
        self._nodes = subtrees(tree, roots) if self._few is None else _handles(self._few)
        self.delta = Delta(tree, time)
        self.delta.removed = roots
        self.delta.nodes_removed = self._nodes
        if self._few is None:
            self.delta.labels_removed = groups_to_leave(tree, self._nodes)
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
        if self._few is None:
            leave(tree, self._nodes, self.delta.labels_removed)
        else:
            leave_few(tree, self._few)
        tree._size -= len(self._nodes)
        tree._close_streams(self.delta.closed)
        tree._forget_messages(self.delta.removed)
        tree._mark_edited(set(map(tree.parent_column.__getitem__, self.delta.removed)))
        if len(self._left) <= FEW:
            self._unlink_few()
        else:
            self._unlink()
        tree.clock = self.time
        tree._dying = list(self.delta.removed)
        tree.version += 1

    def _unlink_few(self) -> None:
        """`_unlink`, node by node."""
        tree = self.tree
        first, last, parents = tree.first_column, tree.last_column, tree.parent_column
        following, previous = tree.next_column, tree.previous_column
        for root, left, right in zip(self.delta.removed, self._left, self._right, strict=True):
            if left == NONE:
                first[parents[root]] = right
            else:
                following[left] = right
            if right == NONE:
                last[parents[root]] = left
            else:
                previous[right] = left
            parents[root] = NONE

    def _unlink(self) -> None:
        """Link the remaining neighbours; removed nodes keep their own links."""
        tree, roots = self.tree, _handles(self.delta.removed)
        left, right = _handles(self._left), _handles(self._right)
        parent = _column(tree.parent_column)
        above = parent[roots]
        has_left, has_right = left != NONE, right != NONE
        _column(tree.next_column)[left[has_left]] = right[has_left]
        _column(tree.previous_column)[right[has_right]] = left[has_right]
        _column(tree.first_column)[above[~has_left]] = right[~has_left]
        _column(tree.last_column)[above[~has_right]] = left[~has_right]
        parent[roots] = NONE
