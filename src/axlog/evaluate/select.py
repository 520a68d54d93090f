"""The nodes that a pattern selects, in document order: targets of statements, first rows of views.

This is the one evaluator for selections. It chooses between three ways by their cost:

- From a value upwards. If the end of the path requires an indexed value (`[@id = "person0"]`), the
  index gives the few nodes that have it. Each is checked for its other conditions, then its parent,
  up to the root. The cost is the number of nodes with the value times the length of the path,
  whatever the size of the document. Used for up to `MOST_CLIMBED` nodes, and for paths of child and
  descendant steps.
- Down the path, node by node, in a generated function (`path_walker`), for up to `MOST_WALKED`
  nodes. A pattern for which it gave up is not walked again, unless the document is far smaller.
- Top-down along the path, with a set of nodes at each pattern node. Branches beside the path keep
  or drop nodes of the set (`node_sets`).

Sets suffice if no variable joins and there is no constraint. `covers` gives the reason if they do
not; then the interpreter (`answers`) walks the document.

A pattern may have holes: constants `hole(name)` for strings to fill in later, so that one pattern
serves a statement for all values.

Law: `select(tree, p) == answers.selected(tree, p)`, and both equal the rows by definition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from axlog.document.tree import DOCUMENT_NODE, NONE, Tree
from axlog.document.value_index import ValueIndex
from axlog.errors import UnsupportedError
from axlog.evaluate import node_tests
from axlog.evaluate.anchors import Anchor, anchors_of, is_equality
from axlog.evaluate.answers import selected
from axlog.evaluate.columns import NOTHING, Handles, columns_of, in_order
from axlog.evaluate.node_sets import ROOT, NodeSets
from axlog.evaluate.path_walker import Climber, Step, climber_of, walker_of
from axlog.query.path_patterns import HOLE
from axlog.query.pattern import (
    AnyNode,
    Axis,
    Branch,
    Collect,
    Comparison,
    Constant,
    Kind,
    Not,
    Or,
    Pattern,
    PatternNode,
    Variable,
    branches_of,
    nodes_of,
)

MOST_CLIMBED = 64
"""With more nodes than this to check, arrays are faster."""

MOST_WALKED = 1_500
"""With more nodes than this to visit, arrays are faster."""

_DOWN = (Axis.CHILD, Axis.DESCENDANT)
_BELOW = (Axis.CHILD, Axis.ATTRIBUTE)


def select(
    tree: Tree,
    pattern: Pattern,
    index: ValueIndex | None = None,
    values: Mapping[str, str] | None = None,
) -> list[int]:
    """The nodes that a pattern with one node as output selects; `values` fill its holes.

    >>> from axlog.document.loader import load
    >>> from axlog.query.native import parse_pattern
    >>> tree = load("<r><a><b/></a><a/></r>")
    >>> [tree.path(n) for n in select(tree, parse_pattern("match //a#x[b] return x.id"))]
    ['/r/a[1]']
    """
    selection = selection_of(pattern)
    found = selection.from_value(tree, index, values or {})
    if found is None:
        found = selection.walked(tree, values or {})
    if found is None and values:
        pattern = replace(pattern, branches=_filled(pattern.branches, values))
        selection = Selection(pattern)
        found = selection.from_value(tree, index, {})
    if found is not None:
        return found
    if selection.refusal is not None:
        return selected(tree, pattern)
    with columns_of(tree) as columns:
        nodes = selection.below(NodeSets(columns, index), ROOT, pattern.branches)
        in_order: list[int] = columns.in_document_order(nodes).tolist()
        return in_order


def covers(pattern: Pattern) -> str | None:
    """The reason why sets of nodes do not suffice for a pattern, or None."""
    return selection_of(pattern).refusal


_SELECTIONS: dict[int, tuple[Pattern, Selection]] = {}


def selection_of(pattern: Pattern) -> Selection:
    """The selection of a pattern; cached by identity, because hashing a pattern is slow."""
    known = _SELECTIONS.get(id(pattern))
    if known is not None:
        return known[1]
    if len(_SELECTIONS) > 1024:
        _SELECTIONS.clear()
    made = Selection(pattern)
    _SELECTIONS[id(pattern)] = (pattern, made)
    return made


def _constant(operand: Constant | Variable, values: Mapping[str, str]) -> Constant | Variable:
    """A constant, or the value that fills the hole."""
    if isinstance(operand, str) and operand.startswith(HOLE):
        return values[operand[1:]]
    return operand


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    """Branches, or parts of them, with the holes of comparisons filled."""
    if isinstance(value, tuple):
        return tuple(_filled(one, values) for one in value)
    if isinstance(value, Comparison):
        return replace(value, operand=_constant(value.operand, values))
    if isinstance(value, PatternNode):
        comparisons, branches = (_filled(v, values) for v in (value.comparisons, value.branches))
        return replace(value, comparisons=comparisons, branches=branches)
    if isinstance(value, Or):
        return replace(value, alternatives=_filled(value.alternatives, values))
    if isinstance(value, Not):
        return replace(value, branches=_filled(value.branches, values))
    return replace(value, node=_filled(value.node, values))


class Selection:
    """The path of a pattern to the node that it selects."""

    def __init__(self, pattern: Pattern) -> None:
        self.name = selected_name(pattern)
        self.refusal = _refusal(pattern, self.name)
        self._leading: set[int] = set()
        for branch in pattern.branches:
            self._find(branch)
        path = path_of(pattern, self.name) if self.refusal is None else None
        self._climb = None if path is None else _climb_of(path)
        self._walker = None if path is None else walker_of(path)
        self._too_large: int | None = None  # the size of a document that was too large to walk

    def from_value(
        self, tree: Tree, index: ValueIndex | None, values: Mapping[str, str]
    ) -> list[int] | None:
        """The selected nodes by the value index; None if arrays are cheaper, or needed."""
        climb = self._climb
        if index is None or climb is None:
            return None
        value = str(_constant(climb.anchor.value, values))
        candidates = index.above(climb.anchor.label, value, climb.anchor.levels, MOST_CLIMBED)
        if candidates is None:
            return None
        found = None if climb.climber is None else climb.climber(tree, values, candidates)
        if found is None:
            if climb.holes:
                climb = climb.filled(values)
            near = [node for node in candidates if climb.holds(tree, node, climb.at)]
            found = climb.down(tree, near)
        return in_order(tree, found)

    def walked(self, tree: Tree, values: Mapping[str, str]) -> list[int] | None:
        """The selected nodes by a walk; None if arrays are cheaper, or needed."""
        if self._walker is None or (
            self._too_large is not None and 2 * len(tree) > self._too_large
        ):
            return None
        found = self._walker(tree, values, MOST_WALKED)
        if found is None:
            self._too_large = len(tree)
        return found

    def _find(self, branch: Branch) -> bool:
        """Record the branches that contain the selected node."""
        if isinstance(branch, Not | Collect):
            return False
        inside = [self._find(below) for below in branches_of(branch)]
        own = isinstance(branch, PatternNode) and branch.name == self.name
        if own or any(inside):
            self._leading.add(id(branch))
            return True
        return False

    def below(self, sets: NodeSets, contexts: Handles, branches: tuple[Branch, ...]) -> Handles:
        """The selected nodes below the contexts at which all branches hold."""
        path: Branch | None = None
        for branch in branches:
            if path is None and id(branch) in self._leading:
                path = branch
            else:
                contexts = sets.where(contexts, branch)
        if path is None or not len(contexts):
            return NOTHING
        if isinstance(path, Or):
            parts = [self.below(sets, contexts, inside) for inside in path.alternatives]
            return np.unique(np.concatenate(parts))
        assert isinstance(path, PatternNode)
        attribute = attribute_anywhere(path)
        if attribute is not None and attribute.name == self.name:
            return sets.attributes_below(contexts, attribute)
        if path.name == self.name:
            return sets.below(contexts, path)
        found = sets.reached(contexts, path)
        for asked in path.comparisons:
            found = sets.with_value(found, asked)
        return self.below(sets, found, path.branches)


@dataclass(frozen=True, slots=True)
class _Climb:
    """A path with a value on its way, to check from the value upwards, and then down to its end.

    `steps` are the path's nodes from the root, each with its other conditions: without the rest of
    the path and without the condition that the index answers.
    """

    anchor: Anchor
    at: int  # the step that has the value; the steps after it are child steps
    steps: tuple[Step, ...]
    holes: tuple[int, ...]  # the steps with holes, besides that of the anchor
    climber: Climber | None  # None: `holds` and `down` do it

    def filled(self, values: Mapping[str, str]) -> _Climb:
        """The climb with its holes filled."""
        steps = list(self.steps)
        for number in self.holes:
            step, branches = steps[number]
            asked = _filled(step.comparisons, values)
            steps[number] = replace(step, comparisons=asked), _filled(branches, values)
        return replace(self, steps=tuple(steps), holes=())

    def down(self, tree: Tree, nodes: list[int]) -> list[int]:
        """The nodes at the end of the path, below those that have the value."""
        for step, branches in self.steps[self.at + 1 :]:
            nodes = [
                child
                for node in nodes
                for child in tree.children(node)
                if node_tests.passes(tree, child, step.axis, step.test)
                and node_tests.compares(tree, child, step)
                and all(node_tests.holds(tree, child, branch) for branch in branches)
            ]
        return nodes

    def holds(self, tree: Tree, node: int, at: int) -> bool:
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
            return self.holds(tree, above, at - 1)
        while above != NONE:
            if self.holds(tree, above, at - 1):
                return True
            above = tree.parent_column[above]
        return False


def _climb_of(path: Sequence[Step]) -> _Climb | None:
    """The climb of a path with a value, and child steps after it; None for other paths."""
    steps = list(path)
    for at in reversed(range(len(steps))):
        step, beside = steps[at]
        anchor = next(anchors_of(replace(step, branches=beside)), None)
        if anchor is not None:
            steps[at] = _without_answered(steps[at], anchor.levels)
            holes = tuple(n for n, each in enumerate(steps) if _has_holes(each))
            return _Climb(anchor, at, tuple(steps), holes, climber_of(steps, at))
        if step.axis is not Axis.CHILD:
            return None
    return None


def path_of(pattern: Pattern, name: str) -> list[Step] | None:
    """The pattern nodes down to the selected one, each with its branches beside the path."""
    if len(pattern.branches) != 1:
        return None
    steps: list[Step] = []
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


def _without_answered(last: Step, levels: int) -> Step:
    """The last step without the condition that the index answers."""
    step, branches = last
    if levels == 0:
        at = next(n for n, asked in enumerate(step.comparisons) if is_equality(asked))
        rest = step.comparisons[:at] + step.comparisons[at + 1 :]
        return replace(step, comparisons=rest), branches
    if levels == 1:
        for number, below in enumerate(branches):
            if isinstance(below, PatternNode) and below.axis in _BELOW and any(anchors_of(below)):
                if len(below.comparisons) == 1 and not below.branches:
                    return step, branches[:number] + branches[number + 1 :]
                break
    return last


def _has_holes(step: Step) -> bool:
    inside = [node for branch in step[1] for node in nodes_of(branch)]
    operands = [asked.operand for node in (step[0], *inside) for asked in node.comparisons]
    return any(isinstance(operand, str) and operand.startswith(HOLE) for operand in operands)


def _refusal(pattern: Pattern, name: str) -> str | None:
    if pattern.where:
        return "it has constraints"
    occurrences: Counter[str] = Counter()
    for branch in _every(pattern.branches):
        match branch:
            case PatternNode(test=test, comparisons=comparisons):
                operands = [asked.operand for asked in comparisons]
                occurrences.update(v.name for v in (test, *operands) if isinstance(v, Variable))
                if any(a.operator != "=" and isinstance(a.operand, Variable) for a in comparisons):
                    return "it compares values of variables"
            case Not(where=where) if where:
                return "it has constraints"
            case Collect(node=node) if any(n.name == name for n in nodes_of(node)):
                return "the selected node is in collect(...)"
    if any(count > 1 for count in occurrences.values()):
        return "variables join parts of it"
    return None


def selected_name(pattern: Pattern) -> str:
    """The name of the node that a pattern returns; raises if it returns something else."""
    names = {output.of for output in pattern.outputs if output.kind is not Kind.VARIABLE}
    if len(names) != 1 or any(output.kind is Kind.VARIABLE for output in pattern.outputs):
        raise UnsupportedError(
            "AX211",
            "the pattern does not select nodes",
            advice="use an XPath such as //person[phone], or return one node: `return t.id`",
        )
    return names.pop()


def attribute_anywhere(step: PatternNode) -> PatternNode | None:
    """The attribute of `//@a`, which is written as two nodes: descendant-or-self::node()/@a."""
    match step:
        case PatternNode(
            Axis.DESCENDANT_OR_SELF,
            AnyNode(),
            None,
            (),
            (PatternNode(axis=Axis.ATTRIBUTE) as attribute,),
        ):
            return attribute
    return None


def _every(branches: tuple[Branch, ...]) -> Iterator[Branch]:
    for branch in branches:
        yield branch
        yield from _every(tuple(branches_of(branch)))
