"""The removal of one small subtree beside other nodes, without a pending update list.

What a stream's delete mostly does. Law: the document and its value index are those of
`pending.commit` with the deletion of the node.

Not handled (None): more than `MANY` nodes, calls in the subtree, and texts that become adjacent.
"""

from __future__ import annotations

from axlog.document.bulk_columns import few_below, leave_few, release
from axlog.document.tree import CALL, DOCUMENT_NODE, NONE, TEXT, Tree
from axlog.document.value_index import ValueIndex

MANY = 200
"""The most nodes of a subtree that are handled one by one."""


def removable(tree: Tree, root: int) -> list[int] | None:
    """The nodes of the subtree of an element's child, the root first; None: not handled."""
    kinds = tree.kind_column
    left, right = tree.previous_column[root], tree.next_column[root]
    if left != NONE and right != NONE and kinds[left] == kinds[right] == TEXT:
        return None
    nodes = few_below(tree, (root,), MANY)
    if nodes is None or (tree.calls_by_stream and CALL in map(kinds.__getitem__, nodes)):
        return None
    return None if tree.parent_column[root] <= DOCUMENT_NODE else nodes


def remove(tree: Tree, nodes: list[int], values: ValueIndex, time: int) -> None:
    """Remove the nodes of a subtree that `removable` has found, at a time."""
    root = nodes[0]
    parents, following, previous = tree.parent_column, tree.next_column, tree.previous_column
    parent, left, right = parents[root], previous[root], following[root]
    release(tree, tree._dying)
    leave_few(tree, nodes)
    tree._size -= len(nodes)
    tree._forget_messages((root,))
    tree._mark_edited((parent,))
    if left == NONE:
        tree.first_column[parent] = right
    else:
        following[left] = right
    if right == NONE:
        tree.last_column[parent] = left
    else:
        previous[right] = left
    parents[root] = NONE
    tree.clock = time
    tree._dying = [root]
    tree.version += 1
    values.leave(nodes, parent)
