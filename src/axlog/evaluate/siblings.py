"""The siblings of a call that match a pattern, each as a document: what a stream's delete removes.

A pattern that names a constant value or text (`match /order[oid/"17"]`) is looked up in the value
index. The cost is then that of the nodes that have the value, not that of the siblings. For other
patterns every sibling whose name fits is matched.

Law: the result is that of matching every sibling.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from axlog.document.tree import CALL, ELEMENT, Tree
from axlog.document.value_index import ValueIndex
from axlog.evaluate.anchors import anchors_of, texts_of
from axlog.evaluate.answers import holds
from axlog.query.pattern import Axis, Name, Pattern, PatternNode


def matching_siblings(tree: Tree, pattern: Pattern, index: ValueIndex, call: int) -> list[int]:
    """The siblings of a call that match, without calls, in document order."""
    parent = tree.parent_column[call]
    found: Iterable[int] | None = _by_value(tree, pattern, index, parent)
    if found is None:
        kinds = tree.kind_column
        found = (node for node in tree.children(parent) if kinds[node] != CALL)
    labels = [branch.test.label for branch in _tops(pattern) if isinstance(branch.test, Name)]
    return [
        node
        for node in found
        if all(tree.kind_column[node] == ELEMENT and tree.label(node) == name for name in labels)
        and holds(tree, pattern, node)
    ]


def _tops(pattern: Pattern) -> list[PatternNode]:
    """The pattern nodes that the top of each sibling must match."""
    return [
        branch
        for branch in pattern.branches
        if isinstance(branch, PatternNode) and branch.axis is Axis.CHILD
    ]


def _by_value(tree: Tree, pattern: Pattern, index: ValueIndex, parent: int) -> list[int] | None:
    """The children of a node that have a value which the pattern names; None: it names none."""
    above = tree.parent_column
    best: Collection[int] | None = None
    levels = 0
    for top in _tops(pattern):
        named = [(index.find(each.label, each.value), each.levels) for each in anchors_of(top)]
        named += [(index.find_text(e.label, e.value), e.levels) for e in texts_of(top)]
        for nodes, depth in named:
            if nodes is not None and (best is None or len(nodes) < len(best)):
                best, levels = nodes, depth
    if best is None:
        return None
    found = set(best)
    for _ in range(levels):
        found = {above[node] for node in found}
    siblings = [node for node in found if above[node] == parent]
    return sorted(siblings, key=tree.id) if len(siblings) > 1 else siblings
