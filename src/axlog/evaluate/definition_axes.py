"""The nodes that an axis reaches in a document, and the tests they pass, by definition.

Child, descendant and the sibling axes never enter attributes. An attribute has one text below it
and no siblings. Comments and processing instructions pass `node()` and their own tests. Axes may
reach calls and the document node, but these pass no test, except that the document node passes
`self::node()`. See docs/meaning.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from axlog.document.tree import NONE, NodeKind, Tree
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Literal,
    Name,
    PartialName,
    Test,
    Wildcard,
)

_LABELLED = (NodeKind.ELEMENT, NodeKind.TEXT)
_NODES = (*_LABELLED, NodeKind.COMMENT, NodeKind.INSTRUCTION)


def reached(tree: Tree, node: int, axis: Axis) -> Iterator[int]:
    """The nodes at the end of an axis, of every kind."""
    match axis:
        case Axis.CHILD:
            yield from tree.children(node)
        case Axis.DESCENDANT:
            yield from tree.descendants(node)
        case Axis.ATTRIBUTE:
            yield from tree.attributes(node)
        case Axis.SELF:
            yield node
        case Axis.DESCENDANT_OR_SELF:
            yield node
            yield from tree.descendants(node)
        case Axis.FOLLOWING_SIBLING:
            yield from _siblings(tree, node, tree.next)
        case Axis.PRECEDING_SIBLING:
            yield from _siblings(tree, node, tree.previous)
        case Axis.NEXT_SIBLING:
            yield from _nearest_element(tree, _siblings(tree, node, tree.next))
        case Axis.PREVIOUS_SIBLING:
            yield from _nearest_element(tree, _siblings(tree, node, tree.previous))
        case Axis.PARENT:
            if tree.parent(node) != NONE:
                yield tree.parent(node)
        case Axis.ANCESTOR:
            yield from tree.ancestors(node)
        case Axis.ANCESTOR_OR_SELF:
            yield node
            yield from tree.ancestors(node)


def _siblings(tree: Tree, node: int, step: Callable[[int], int]) -> Iterator[int]:
    if tree.kind(node) is NodeKind.ATTRIBUTE:
        return
    at = step(node)
    # Attributes come first in their element's chain: a backward walk ends there.
    while at != NONE and tree.kind(at) is not NodeKind.ATTRIBUTE:
        yield at
        at = step(at)


def _nearest_element(tree: Tree, siblings: Iterator[int]) -> Iterator[int]:
    for sibling in siblings:
        if tree.kind(sibling) is NodeKind.ELEMENT:
            yield sibling
            return


def passes(tree: Tree, node: int, axis: Axis, test: Test) -> bool:
    """Whether a node at the end of this axis passes the test."""
    kind = tree.kind(node)
    if axis is Axis.ATTRIBUTE:
        if isinstance(test, PartialName):
            return _has_parts(tree.label(node).removeprefix("@"), test)
        return isinstance(test, Wildcard) or (
            isinstance(test, Name) and tree.label(node) == f"@{test.label}"
        )
    match test:
        case Name(label=label):
            return kind is NodeKind.ELEMENT and tree.label(node) == label
        case PartialName():
            return kind is NodeKind.ELEMENT and _has_parts(tree.label(node), test)
        case Wildcard():
            return kind is NodeKind.ELEMENT
        case Literal(text=text):
            return kind is NodeKind.TEXT and tree.text(node) == text
        case AnyText():
            return kind is NodeKind.TEXT
        case AnyComment():
            return kind is NodeKind.COMMENT
        case AnyInstruction(target=target):
            return kind is NodeKind.INSTRUCTION and (target is None or tree.target(node) == target)
        case AnyNode():
            return axis is Axis.SELF or kind in _NODES
        case _:
            return kind in _LABELLED


def _has_parts(label: str, test: PartialName) -> bool:
    """Whether a name has the namespace and the local name of a test, as far as it gives them."""
    namespace, local = "", label
    if label.startswith("{"):
        namespace, local = label[1:].split("}")
    if test.namespace is not None and test.namespace != namespace:
        return False
    return test.local is None or test.local == local
