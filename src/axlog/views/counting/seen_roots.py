"""The roots of an update at many places that a relation may see: all or none, found together.

Law: for every root left out, `Interpreter.sees` is false.
"""

from __future__ import annotations

from collections.abc import Container

from axlog.document.delta import Delta
from axlog.evaluate.interpreter import Interpreter

MANY = 4
"""From this many removed subtrees on, their labels are looked at together."""


def seen_removed(interpreter: Interpreter, sites: Container[int], delta: Delta) -> list[int]:
    """The removed roots. Where no relation may match a node in them, only the sites among them.

    A subtree with very many nodes, or with a call, has a site.
    """
    nodes, roots = delta.nodes_removed, delta.removed
    if nodes is None or len(roots) < MANY or interpreter.reads_elements:
        return roots
    tree = delta.tree
    if tree.calls_by_node or interpreter.may_see(tree, nodes):
        return roots
    return [root for root in roots if root in sites]


def seen_added(interpreter: Interpreter, most: int, delta: Delta) -> list[int]:
    """The added roots; none if they are copies of a fragment that no relation sees.

    Whether it sees a copy depends on the label of its place.
    """
    tree, roots, blocks = delta.tree, delta.added, delta.blocks
    if interpreter.reads_elements or len(blocks) != 1 or len(blocks[0]) != len(roots):
        return roots
    parents, labels = tree.parent_column, tree.label_column
    places = {labels[parents[root]]: root for root in roots}
    return roots if any(interpreter.sees(tree, root, most) for root in places.values()) else []
