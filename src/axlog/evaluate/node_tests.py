"""Axes, tests and branches at one node, by walking: for patterns, and for paths of statements.

For few nodes this is faster than arrays, and it covers every axis. The meaning is that of
docs/meaning.md: `*` is any element, `node()` any element, text, comment or instruction, and descent
never enters attributes. An axis yields its nodes in its own order, the nearest first; positions of
statements count in that order.

Statements have two further axes, `following` and `preceding`, and `node()` is then any node that an
axis reaches except calls, including attributes and the document node (`step_passes`).

Law: for patterns, the nodes equal those of `definition_axes`, which is written apart. Not handled:
variables that join, and times (`select.covers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from axlog.document.tree import (
    ATTRIBUTE,
    COMMENT,
    ELEMENT,
    INSTRUCTION,
    NONE,
    TEXT,
    NodeKind,
    Tree,
)
from axlog.evaluate.value_tests import comparison
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Literal,
    Name,
    Not,
    Or,
    PartialName,
    PatternNode,
    Test,
    Variable,
    Wildcard,
)

_NODES = frozenset({ELEMENT, TEXT, COMMENT, INSTRUCTION})


def reached(tree: Tree, node: int, axis: Axis) -> Iterator[int]:
    """The nodes of every kind that an axis reaches, nearest first."""
    return _WALKS[axis](tree, node)


def passes(tree: Tree, node: int, axis: Axis, test: Test) -> bool:
    """Whether a node that an axis reached passes a test."""
    kind = tree.kind_column[node]
    match test:
        case Name(label=label):
            if axis is Axis.ATTRIBUTE:
                return kind == ATTRIBUTE and tree.names[tree.label_column[node]] == f"@{label}"
            return kind == ELEMENT and tree.names[tree.label_column[node]] == label
        case PartialName():
            is_own = kind == (ATTRIBUTE if axis is Axis.ATTRIBUTE else ELEMENT)
            return is_own and test.matches(tree.names[tree.label_column[node]])
        case Wildcard():
            return kind == ELEMENT or axis is Axis.ATTRIBUTE
        case Literal(text=text):
            return kind == TEXT and tree.text(node) == text
        case AnyText():
            return kind == TEXT
        case AnyComment():
            return kind == COMMENT
        case AnyInstruction(target=target):
            return kind == INSTRUCTION and (target is None or tree.target(node) == target)
        case AnyNode():
            return kind in _NODES or axis is Axis.SELF
        case Variable():
            return kind == ELEMENT or kind == TEXT


def found(tree: Tree, node: int, step: PatternNode) -> Iterator[int]:
    """The nodes that match a pattern node from a node, with all its conditions."""
    for below in reached(tree, node, step.axis):
        if passes(tree, below, step.axis, step.test) and meets(tree, below, step):
            yield below


def meets(tree: Tree, node: int, step: PatternNode) -> bool:
    """Whether a node that passes a pattern node's test has the required values and branches."""
    if step.comparisons and not compares(tree, node, step):
        return False
    return all(holds(tree, node, branch) for branch in step.branches)


def compares(tree: Tree, node: int, step: PatternNode) -> bool:
    """Whether a node has the values that a pattern node requires."""
    if not step.comparisons:
        return True
    value = tree.string_value(node)
    for asked in step.comparisons:
        if not isinstance(asked.operand, Variable) and not comparison(
            asked.operator, asked.operand
        )(value):
            return False
    return True


def holds(tree: Tree, node: int, branch: Branch) -> bool:
    """Whether a branch holds at a node."""
    match branch:
        case PatternNode():
            return any(True for _ in found(tree, node, branch))
        case Or(alternatives=alternatives):
            return any(all(holds(tree, node, b) for b in inside) for inside in alternatives)
        case Not(branches=branches):
            return not all(holds(tree, node, inside) for inside in branches)
        case Collect():
            return True


# Walks --------------------------------------------------------------------------------------------


def _following(tree: Tree, node: int) -> Iterator[int]:
    if tree.kind_column[node] == ATTRIBUTE:
        return
    node = tree.next_column[node]
    while node != NONE:
        yield node
        node = tree.next_column[node]


def _preceding(tree: Tree, node: int) -> Iterator[int]:
    if tree.kind_column[node] == ATTRIBUTE:
        return
    node = tree.previous_column[node]
    while node != NONE and tree.kind_column[node] != ATTRIBUTE:
        yield node
        node = tree.previous_column[node]


def _nearest(walk: Callable[[Tree, int], Iterator[int]]) -> Callable[[Tree, int], Iterator[int]]:
    """A walk that ends at the first element."""

    def nearest(tree: Tree, node: int) -> Iterator[int]:
        for beside in walk(tree, node):
            if tree.kind_column[beside] == ELEMENT:
                yield beside
                return

    return nearest


def _parent(tree: Tree, node: int) -> Iterator[int]:
    if tree.parent_column[node] != NONE:
        yield tree.parent_column[node]


def _self_and(walk: Callable[[Tree, int], Iterator[int]]) -> Callable[[Tree, int], Iterator[int]]:
    def both(tree: Tree, node: int) -> Iterator[int]:
        yield node
        yield from walk(tree, node)

    return both


def _self(tree: Tree, node: int) -> Iterator[int]:
    yield node


_WALKS: dict[Axis, Callable[[Tree, int], Iterator[int]]] = {
    Axis.CHILD: Tree.children,
    Axis.DESCENDANT: Tree.descendants,
    Axis.ATTRIBUTE: Tree.attributes,
    Axis.SELF: _self,
    Axis.DESCENDANT_OR_SELF: _self_and(Tree.descendants),
    Axis.FOLLOWING_SIBLING: _following,
    Axis.NEXT_SIBLING: _nearest(_following),
    Axis.PRECEDING_SIBLING: _preceding,
    Axis.PREVIOUS_SIBLING: _nearest(_preceding),
    Axis.PARENT: _parent,
    Axis.ANCESTOR: Tree.ancestors,
    Axis.ANCESTOR_OR_SELF: _self_and(Tree.ancestors),
}


# Statements ---------------------------------------------------------------------------------------

_DOWN = frozenset(("child", "descendant", "descendant-or-self"))

_AXES = {axis.value: axis for axis in Axis}
_OWN_ATTRIBUTE = ("self", "attribute", "ancestor-or-self", "descendant-or-self")
"""The axes that reach an attribute: from its element, or from itself."""


def step_passes(tree: Tree, node: int, axis: str, test: Test) -> bool:
    """Whether a node that an axis of a statement reached passes a test."""
    kind = tree.kind_column[node]
    if isinstance(test, AnyNode) and (kind == NodeKind.DOCUMENT or axis in _OWN_ATTRIBUTE):
        return True
    return passes(tree, node, _AXES.get(axis, Axis.DESCENDANT), test)


def step_reached(tree: Tree, node: int, axis: str) -> Iterator[int]:
    """The nodes that an axis of a statement reaches, in its order."""
    if tree.kind_column[node] == ATTRIBUTE and axis in _DOWN:  # its value is not a node of XPath
        return iter((node,) if axis == "descendant-or-self" else ())
    if axis in _AXES:
        return reached(tree, node, _AXES[axis])
    return _all_following(tree, node) if axis == "following" else _all_preceding(tree, node)


def _all_following(tree: Tree, node: int) -> Iterator[int]:
    if tree.kind_column[node] == ATTRIBUTE:
        node = tree.parent(node)
        yield from tree.descendants(node)
    while node != NONE:
        for beside in _following(tree, node):
            yield beside
            yield from tree.descendants(beside)
        node = tree.parent(node)


def _all_preceding(tree: Tree, node: int) -> Iterator[int]:
    if tree.kind_column[node] == ATTRIBUTE:
        node = tree.parent(node)
    while node != NONE:
        for beside in _preceding(tree, node):
            yield from reversed(list(tree.descendants(beside)))
            yield beside
        node = tree.parent(node)
