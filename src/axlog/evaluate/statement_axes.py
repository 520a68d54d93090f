"""The axes and tests of statements: all of XPath's, over the walks that patterns have.

`node()` is any node that an axis reaches except calls, including the document node
(docs/meaning.md). An axis yields its nodes in its own order, the nearest first; positions count in
that order.
"""

from __future__ import annotations

from collections.abc import Iterator

from axlog.document.tree import ATTRIBUTE, NONE, NodeKind, Tree
from axlog.evaluate import node_tests
from axlog.query.pattern import AnyNode, Axis, Test

_AXES = {axis.value: axis for axis in Axis}


def passes(tree: Tree, node: int, axis: str, test: Test) -> bool:
    """Whether a node that an axis reached passes a test."""
    kind = tree.kind_column[node]
    if isinstance(test, AnyNode) and (kind == NodeKind.DOCUMENT or axis in ("self", "attribute")):
        return True
    return node_tests.passes(tree, node, _AXES.get(axis, Axis.DESCENDANT), test)


def walk(tree: Tree, node: int, axis: str) -> Iterator[int]:
    """The nodes that an axis reaches, in its order."""
    if axis in _AXES:
        return node_tests.reached(tree, node, _AXES[axis])
    return _following(tree, node) if axis == "following" else _preceding(tree, node)


def _following(tree: Tree, node: int) -> Iterator[int]:
    if tree.kind_column[node] == ATTRIBUTE:
        node = tree.parent(node)
        yield from tree.descendants(node)
    while node != NONE:
        for beside in node_tests.reached(tree, node, Axis.FOLLOWING_SIBLING):
            yield beside
            yield from tree.descendants(beside)
        node = tree.parent(node)


def _preceding(tree: Tree, node: int) -> Iterator[int]:
    if tree.kind_column[node] == ATTRIBUTE:
        node = tree.parent(node)
    while node != NONE:
        for beside in node_tests.reached(tree, node, Axis.PRECEDING_SIBLING):
            yield from reversed(list(tree.descendants(beside)))
            yield beside
        node = tree.parent(node)
