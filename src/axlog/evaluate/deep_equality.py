"""fn:deep-equal: two sequences are equal if their items are, nodes by content (F&O 3.1, 14.2).

A node becomes a stream of events (start with the attributes, text, end), and two nodes are equal if
their streams are. Comments and processing instructions inside nodes do not count, and neither do
calls.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterator
from itertools import zip_longest
from math import isnan

from axlog.document.operations import Attribute
from axlog.document.parser import Element
from axlog.document.tree import ATTRIBUTE, COMMENT, DOCUMENT_NODE, ELEMENT, INSTRUCTION, TEXT, Tree
from axlog.errors import ValueProblem
from axlog.evaluate.atoms import Atom, Untyped
from axlog.evaluate.comparisons import compared
from axlog.evaluate.items import Item, Items, New, Node

_END = ("end",)


def deep_equal(tree: Tree, one: Items, other: Items) -> bool:
    """Whether two sequences are deep-equal.

    >>> from axlog.document.loader import load
    >>> tree = load('<a><b k="1" l="2">x</b><b l="2" k="1">x<!--y--></b></a>')
    >>> deep_equal(tree, [Node(2)], [Node(8)]), deep_equal(tree, [1], [1.0])
    (True, True)
    """
    return len(one) == len(other) and all(
        _items_equal(tree, left, right) for left, right in zip(one, other, strict=True)
    )


def _items_equal(tree: Tree, one: Item, other: Item) -> bool:
    if isinstance(one, Node | New):
        if not isinstance(other, Node | New):
            return False
        pairs = zip_longest(events(tree, one), events(tree, other))
        return all(left == right for left, right in pairs)
    return not isinstance(other, Node | New) and atoms_equal(one, other)


def atoms_equal(one: Atom, other: Atom) -> bool:
    """`eq`, with NaN equal to itself; False for types that do not compare."""
    if isinstance(one, float) and isinstance(other, float) and isnan(one) and isnan(other):
        return True
    left, right = (str.__str__(v) if type(v) is Untyped else v for v in (one, other))
    try:
        return compared(operator.eq, left, right)
    except ValueProblem:
        return False


def events(tree: Tree, item: Node | New) -> Iterator[Hashable]:
    """A node as the events that are compared."""
    if isinstance(item, Node):
        return _of_tree(tree, item)
    return (event for piece in item.pieces for event in _of_piece(item.kind, piece))


def _of_tree(tree: Tree, top: Node) -> Iterator[Hashable]:
    kind = tree.kind_column[top]
    if kind == ATTRIBUTE:
        yield "attribute", tree.label(top)[1:], tree.string_value(top)
    elif kind in (COMMENT, INSTRUCTION):
        yield kind, tree.text(top)
    waiting: list[int | None] = [top]
    while waiting:
        node = waiting.pop()
        if node is None:
            yield _END
        elif tree.kind_column[node] == TEXT:
            yield "text", tree.text(node)
        elif tree.kind_column[node] == ELEMENT:
            keys = tree.attributes(node)
            yield (
                tree.label(node),
                frozenset((tree.label(k)[1:], tree.string_value(k)) for k in keys),
            )
            waiting += [None, *reversed(list(tree.children(node)))]
        elif node == DOCUMENT_NODE:
            yield ("document",)
            waiting += [None, *reversed(list(tree.children(node)))]


def _of_piece(kind: str, piece: Attribute | str | Element) -> Iterator[Hashable]:
    if isinstance(piece, Attribute):
        yield "attribute", piece.name, piece.value
        return
    if isinstance(piece, str):
        yield "text", piece
        return
    tag: object = piece.tag
    if not isinstance(tag, str):
        is_comment = kind == "comment"
        yield (COMMENT if is_comment else INSTRUCTION), piece.text or ""
        return
    waiting: list[Element | str | None] = [piece]
    while waiting:
        node = waiting.pop()
        if node is None:
            yield _END
        elif isinstance(node, str):
            yield "text", node
        elif isinstance(node.tag, str):
            yield node.tag, frozenset((str(k), str(v)) for k, v in node.attrib.items())
            below: list[Element | str | None] = [node.text] if node.text else []
            for child in node:
                below.append(child)
                if child.tail:
                    below.append(child.tail)
            waiting += [None, *reversed(below)]
