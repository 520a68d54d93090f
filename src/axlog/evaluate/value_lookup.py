"""A selection from a value upwards: the few nodes in the index, checked towards the root.

For `/site/people/person[@id = "person0"]` the index gives the attributes with that value. The
person with the attribute is checked for all its other conditions, then its parent for `people`, and
so on. The cost is the number of nodes with the value times the length of the path, whatever the
size of the document.

Only for paths down to the selected node, with child and descendant steps, whose last node requires
an indexed value of its own, of an attribute or of a child. The value may be a hole: a constant
`hole(name)` that is filled when the pattern is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from axlog.document.tree import DOCUMENT_NODE, NONE, Tree
from axlog.evaluate import node_tests
from axlog.evaluate.value_index import ValueIndex
from axlog.query.pattern import (
    Axis,
    Branch,
    Comparison,
    Constant,
    Name,
    Pattern,
    PatternNode,
    Variable,
    nodes_of,
)

MOST = 64
"""With more nodes than this to check, arrays are faster."""

_HOLE = "\x00"  # no document contains it
_DOWN = (Axis.CHILD, Axis.DESCENDANT)
_BELOW = (Axis.CHILD, Axis.ATTRIBUTE)


def hole(name: str) -> str:
    """A constant that stands for a string to fill in later."""
    return _HOLE + name


def filled(operand: Constant | Variable, values: Mapping[str, str]) -> Constant | Variable:
    """A constant, or the value that fills the hole."""
    if isinstance(operand, str) and operand.startswith(_HOLE):
        return values[operand[1:]]
    return operand


@dataclass(frozen=True, slots=True)
class Climb:
    """The path to the selected node, and the depth of the value below it.

    `label` and `value` are looked up in the index. `steps` are the path's nodes from the root, each
    with its other conditions: without the rest of the path and the part answered by the index.
    """

    label: str
    value: str
    levels: int
    steps: tuple[tuple[PatternNode, tuple[Branch, ...]], ...]
    has_holes: bool

    def nodes(self, tree: Tree, index: ValueIndex, values: Mapping[str, str]) -> list[int] | None:
        """The selected nodes in no order; None if the index does not help."""
        if self.has_holes:
            return None
        found = index.find(self.label, str(filled(self.value, values)))
        if found is None or len(found) > MOST:
            return None
        parent = tree.parent_column
        candidates = set(found)
        for _ in range(self.levels):
            candidates = {parent[node] for node in candidates}
        last = len(self.steps) - 1
        return [node for node in candidates if self._holds(tree, node, last)]

    def _holds(self, tree: Tree, node: int, at: int) -> bool:
        """Whether a node matches a step, and nodes above it the steps before."""
        step, branches = self.steps[at]
        if not node_tests.passes(tree, node, step.axis, step.test):
            return False
        if not node_tests.compares(tree, node, step):
            return False
        if not all(node_tests.holds(tree, node, branch) for branch in branches):
            return False
        above = tree.parent_column[node]
        if at == 0:
            return step.axis is Axis.DESCENDANT or above == DOCUMENT_NODE
        if step.axis is Axis.CHILD:
            return self._holds(tree, above, at - 1)
        while above != NONE:
            if self._holds(tree, above, at - 1):
                return True
            above = tree.parent_column[above]
        return False


def climb_of(pattern: Pattern, name: str) -> Climb | None:
    """The climb of a pattern, if it is a path with a value at its end."""
    steps = _path(pattern, name)
    anchor = None if steps is None else _anchor(steps[-1][0], 0)
    if steps is None or anchor is None:
        return None
    label, value, levels = anchor
    steps[-1] = _without_answered(steps[-1], levels)
    return Climb(label, value, levels, tuple(steps), any(map(_has_holes, steps)))


def _path(pattern: Pattern, name: str) -> list[tuple[PatternNode, tuple[Branch, ...]]] | None:
    """The pattern nodes down to the selected one, each with its branches beside the path."""
    if len(pattern.branches) != 1:
        return None
    steps: list[tuple[PatternNode, tuple[Branch, ...]]] = []
    branch: Branch = pattern.branches[0]
    while isinstance(branch, PatternNode) and branch.axis in _DOWN:
        if branch.name == name:
            return [*steps, (branch, branch.branches)]
        onward = [below for below in branch.branches if _has(below, name)]
        if len(onward) != 1:
            return None
        beside = tuple(below for below in branch.branches if below is not onward[0])
        steps.append((branch, beside))
        branch = onward[0]
    return None


def _has(branch: Branch, name: str) -> bool:
    if not isinstance(branch, PatternNode):
        return False
    return branch.name == name or any(_has(below, name) for below in branch.branches)


def _anchor(step: PatternNode, levels: int) -> tuple[str, str, int] | None:
    """The label and value to look up in the index, and their depth below the path."""
    if not isinstance(step.test, Name):
        return None
    label = f"@{step.test.label}" if step.axis is Axis.ATTRIBUTE else step.test.label
    for asked in step.comparisons:
        if _is_equality(asked):
            return label, str(asked.operand), levels
    for below in step.branches:
        if isinstance(below, PatternNode) and below.axis in _BELOW:
            found = _anchor(below, levels + 1)
            if found is not None:
                return found
    return None


def _is_equality(asked: Comparison) -> bool:
    return asked.operator == "=" and isinstance(asked.operand, str)


def _without_answered(
    last: tuple[PatternNode, tuple[Branch, ...]], levels: int
) -> tuple[PatternNode, tuple[Branch, ...]]:
    """The last step without the condition that the index answers."""
    step, branches = last
    if levels == 0:
        at = next(n for n, asked in enumerate(step.comparisons) if _is_equality(asked))
        rest = step.comparisons[:at] + step.comparisons[at + 1 :]
        return replace(step, comparisons=rest), branches
    if levels == 1:
        for number, below in enumerate(branches):
            if isinstance(below, PatternNode) and below.axis in _BELOW and _anchor(below, 1):
                if len(below.comparisons) == 1 and not below.branches:
                    return step, branches[:number] + branches[number + 1 :]
                break
    return last


def _has_holes(step: tuple[PatternNode, tuple[Branch, ...]]) -> bool:
    inside = [node for branch in step[1] for node in nodes_of(branch)]
    operands = [asked.operand for node in (step[0], *inside) for asked in node.comparisons]
    return any(isinstance(operand, str) and operand.startswith(_HOLE) for operand in operands)
