"""The items of sequences: nodes and atomic values, and their conversions.

An item is a node of the document (`Node`, a handle), a node made by the statement (`New`), or an
atomic value (`atoms`). A node atomises to `Untyped`, which takes the type of the other side of an
operator, as in XQuery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from axlog.document.operations import Attribute
from axlog.document.operations import Item as Piece
from axlog.document.parser import parse
from axlog.document.serializer import serialise
from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    CALL_LABEL,
    DOCUMENT_NODE,
    ELEMENT,
    TEXT,
    NodeKind,
    Tree,
)
from axlog.errors import ValueProblem
from axlog.evaluate.atoms import NUMERIC, Atom, Untyped, text_of, type_of
from axlog.evaluate.comparisons import VALUE, general_comparison, value_comparison

KINDS = {
    int(NodeKind.DOCUMENT): "document",
    int(NodeKind.ELEMENT): "element",
    int(NodeKind.ATTRIBUTE): "attribute",
    int(NodeKind.TEXT): "text",
    int(NodeKind.COMMENT): "comment",
    int(NodeKind.INSTRUCTION): "instruction",
}
"""The kinds of new nodes, by those of nodes in trees."""


class Node(int):
    """A node of the document, by its handle."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A node in a tree of its own, which the statement made.

    `top` is the highest node of the tree that the statement knows: nodes above it, which only hold
    it, are not reached. `number` orders the trees by the time they were made.
    """

    tree: Tree
    node: Node
    top: Node
    number: int

    def holds(self, node: int) -> bool:
        """Whether a node of the tree belongs to what the statement made."""
        if self.top == DOCUMENT_NODE:
            return True
        return node == self.top or (self.top == self.tree.root and node != DOCUMENT_NODE)

    def at(self, node: int) -> New:
        """Another node of the same tree."""
        return New(KINDS[self.tree.kind_column[node]], None, replace(self, node=Node(node)))


class New:
    """A node made by the statement: element, attribute, text, comment, instruction, document.

    It has pieces, as content has them, or a place in a tree of its own, or both: a place is made
    when a path enters the node (`made_nodes`), pieces when the node is copied.
    """

    __slots__ = ("_pieces", "kind", "place")

    def __init__(
        self, kind: str, pieces: tuple[Piece, ...] | None, place: Place | None = None
    ) -> None:
        self.kind = kind
        self._pieces = pieces
        self.place = place

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The node as content."""
        if self._pieces is None:
            assert self.place is not None, "a new node has pieces or a place"
            self._pieces = tuple(copied(self.place.tree, self.place.node))
        return self._pieces

    @property
    def value(self) -> str:
        """The string value."""
        if self.place is not None:
            return self.place.tree.string_value(self.place.node)
        return "".join(_value_of_piece(piece, self.kind) for piece in self.pieces)

    def __repr__(self) -> str:
        return f"New({self.kind!r}, {self.value!r})"


def copied(tree: Tree, node: int) -> list[Piece]:
    """A node of a tree as content; for the document node, its children."""
    if node == DOCUMENT_NODE:
        return [piece for below in tree.children(node) for piece in copied(tree, below)]
    kind = tree.kind_column[node]
    if kind == ATTRIBUTE:
        return [Attribute(tree.label(node)[1:], tree.string_value(node))]
    if kind == TEXT:
        return [tree.text(node)]
    return [parse(f"<_>{serialise(tree, node)}</_>").root[0]]


def label_of(tree: Tree, node: int) -> str:
    """The expanded name of a node of a tree, without the `@` of attributes; else nothing."""
    kind = tree.kind_column[node]
    if kind in (ELEMENT, ATTRIBUTE):
        return tree.label(node).removeprefix("@")
    if kind == CALL:
        return CALL_LABEL
    return tree.text(node).partition(" ")[0] if kind == NodeKind.INSTRUCTION else ""


def label_of_new(item: New) -> str:
    """The expanded name of a new node."""
    if item.place is not None:
        return label_of(item.place.tree, item.place.node)
    if item.kind not in ("element", "attribute", "instruction"):
        return ""
    piece: Any = item.pieces[0]
    if isinstance(piece, Attribute):
        return piece.name
    return str(piece.tag if item.kind == "element" else piece.target)


Item: TypeAlias = Node | New | Atom
Items: TypeAlias = list[Item]


class Later:
    """The items of a variable of `let`: evaluated when they are needed, and once.

    A value that no other clause needs raises no error.
    """

    __slots__ = ("_evaluate", "_items")

    def __init__(self, evaluate: Callable[[], Items]) -> None:
        self._evaluate: Callable[[], Items] | None = evaluate
        self._items: Items = []

    def items(self) -> Items:
        """The items."""
        if self._evaluate is not None:
            self._items = self._evaluate()
            self._evaluate = None
        return self._items


def _value_of_piece(piece: Piece, kind: str) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, Attribute):
        return piece.value
    tag: object = piece.tag  # of a comment, a function
    if not isinstance(tag, str):  # in a document, comments and instructions have no value
        return piece.text or "" if kind != "document" else ""
    return "".join(str(one) for one in piece.itertext("*", with_tail=True)).removesuffix(
        piece.tail or ""
    )


def atom(tree: Tree, item: Item) -> Atom:
    """An item's typed value."""
    if isinstance(item, Node):
        return Untyped(tree.string_value(item))
    if isinstance(item, New):
        return Untyped(item.value)
    return item


def atoms(tree: Tree, items: Iterable[Item]) -> list[Any]:
    """The typed values of a sequence."""
    return [atom(tree, item) for item in items]


def text(tree: Tree, item: Item) -> str:
    """An item's string value."""
    return text_of(atom(tree, item))


def joined(tree: Tree, items: Iterable[Item]) -> str:
    """The values of items, separated by spaces: a sequence as content."""
    return " ".join(text(tree, item) for item in items)


def is_true(items: Items) -> bool:
    """The effective Boolean value of a sequence."""
    if not items:
        return False
    first = items[0]
    if isinstance(first, Node | New):
        return True
    if len(items) > 1:
        raise ValueProblem("FORG0006", "a condition is a sequence of several values")
    return truth(first)


def truth(value: Atom) -> bool:
    """The effective Boolean value of one value."""
    if type(value) is bool:
        return value
    if isinstance(value, str):
        return value != ""
    if type(value) in NUMERIC:
        return bool(value) and value == value  # NaN is false
    raise ValueProblem("FORG0006", f"a value of {type_of(value)} is no condition")


def compare(tree: Tree, symbol: str, left: Items, right: Items) -> bool | None:
    """A comparison of sequences.

    `=`, `<` and so on: whether some item of the one compares with some item of the other. `eq`,
    `lt` and so on compare single values; None if one is missing.
    """
    ones, others = atoms(tree, left), atoms(tree, right)
    if symbol not in VALUE:
        return any(general_comparison(symbol, one, other) for one in ones for other in others)
    if not ones or not others:
        return None
    if len(ones) > 1 or len(others) > 1:
        raise ValueProblem("XPTY0004", f"`{symbol}` compares single values", advice="`=`")
    return value_comparison(symbol, ones[0], others[0])
