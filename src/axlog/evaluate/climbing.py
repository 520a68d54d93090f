"""A selection from a value up: the few nodes that the index has for it, checked towards the root.

For `/site/people/person[@id = "person0"]` the index gives the attributes with that value; the
person that has one is checked for all else that is asked of it, then its parent for `people`, and
so on. The cost is the nodes with the value times the length of the path, whatever the document.

Only for paths down to the selected node, with child and descendant steps, whose last node asks for
an indexed value of its own, of an attribute or of a child.
"""

from __future__ import annotations

from dataclasses import dataclass

from axlog.document.tree import DOCUMENT_NODE, NONE, Tree
from axlog.evaluate import pointwise
from axlog.evaluate.values import ValueIndex
from axlog.language.pattern import Axis, Branch, Name, Pattern, PatternNode

MOST = 64
"""With more nodes than this to check, arrays are quicker."""

_DOWN = (Axis.CHILD, Axis.DESCENDANT)
_BELOW = (Axis.CHILD, Axis.ATTRIBUTE)


@dataclass(frozen=True, slots=True)
class Climb:
    """The path to the selected node, and how far below it the value stands.

    `label` and `value` are what the index is asked; `steps` are the path's nodes from the root,
    each with what is asked of it besides the rest of the path.
    """

    label: str
    value: str
    levels: int
    steps: tuple[tuple[PatternNode, tuple[Branch, ...]], ...]

    def nodes(self, tree: Tree, index: ValueIndex) -> list[int] | None:
        """The selected nodes in no order; None where the index does not help."""
        found = index.find(self.label, self.value)
        if found is None or len(found) > MOST:
            return None
        parent = tree._parent
        candidates = set(found)
        for _ in range(self.levels):
            candidates = {parent[node] for node in candidates}
        return [node for node in candidates if self._holds(tree, node, len(self.steps) - 1)]

    def _holds(self, tree: Tree, node: int, at: int) -> bool:
        """Whether a node can be that of a step, and nodes above it those of the steps before."""
        step, branches = self.steps[at]
        if not pointwise.passes(tree, node, step.axis, step.test):
            return False
        if not pointwise.compares(tree, node, step):
            return False
        if not all(pointwise.holds(tree, node, branch) for branch in branches):
            return False
        above = tree._parent[node]
        if at == 0:
            return step.axis is Axis.DESCENDANT or above == DOCUMENT_NODE
        if step.axis is Axis.CHILD:
            return self._holds(tree, above, at - 1)
        while above != NONE:
            if self._holds(tree, above, at - 1):
                return True
            above = tree._parent[above]
        return False


def climb_of(pattern: Pattern, name: str) -> Climb | None:
    """The climb of a pattern, if it is a path with a value at its end."""
    if len(pattern.branches) != 1:
        return None
    steps: list[tuple[PatternNode, tuple[Branch, ...]]] = []
    branch: Branch = pattern.branches[0]
    while True:
        if not isinstance(branch, PatternNode) or branch.axis not in _DOWN:
            return None
        if branch.name == name:
            steps.append((branch, branch.branches))
            break
        onward = [below for below in branch.branches if _has(below, name)]
        if len(onward) != 1:
            return None
        beside = tuple(below for below in branch.branches if below is not onward[0])
        steps.append((branch, beside))
        branch = onward[0]
    anchor = _anchor(steps[-1][0], 0)
    return None if anchor is None else Climb(*anchor, tuple(steps))


def _has(branch: Branch, name: str) -> bool:
    if not isinstance(branch, PatternNode):
        return False
    return branch.name == name or any(_has(below, name) for below in branch.branches)


def _anchor(step: PatternNode, levels: int) -> tuple[str, str, int] | None:
    """Label and value to ask the index for, and how many levels below the path they stand."""
    if not isinstance(step.test, Name):
        return None
    label = f"@{step.test.label}" if step.axis is Axis.ATTRIBUTE else step.test.label
    for asked in step.comparisons:
        if asked.operator == "=" and isinstance(asked.operand, str):
            return label, asked.operand, levels
    for below in step.branches:
        if isinstance(below, PatternNode) and below.axis in _BELOW:
            found = _anchor(below, levels + 1)
            if found is not None:
                return found
    return None
