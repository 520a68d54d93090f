"""How much a call may bring: at most m trees, or all in one message (P1 4, theorem 3; P2 5).

A scenario asks a stream for sub-patterns. Those that must stand at the root of a tree can share one
only if their root tests agree; all others fit inside any tree. So the least number of trees is the
least number of groups of root patterns that agree: with names only, the number of different names.
A pattern whose root is `*` or a variable joins any group.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.datalog.compile import Relation
from axlog.document.tree import Tree
from axlog.language.pattern import Axis, Name


def fits(tree: Tree, brought: Iterable[tuple[Relation, str]]) -> bool:
    """Whether every stream may still bring as many trees as it is asked for."""
    asked: dict[str, list[Relation]] = {}
    for relation, stream in brought:
        asked.setdefault(stream, []).append(relation)
    for stream, relations in asked.items():
        call = tree.call(tree.calls()[stream])
        if call.most is None:
            continue
        left = call.most - tree.brought.get(stream, 0)
        if trees_needed(relations) > left:
            return False
    return True


def trees_needed(relations: list[Relation]) -> int:
    """The least number of trees that hold all these sub-patterns."""
    roots = [r.node for r in relations if r.node is not None and r.node.axis is Axis.CHILD]
    names = {node.test.label for node in roots if isinstance(node.test, Name)}
    return max(len(names), 1 if relations else 0)
