"""The items of sequences: nodes and atomic values, and their conversions.

An item is a node of the document (`Node`, a handle), a node made by the statement (`New`), or an
atomic value (`atoms`). A node atomises to `Untyped`, which takes the type of the other side of an
operator, as in XQuery.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from axlog.document.operations import Attribute
from axlog.document.operations import Item as Piece
from axlog.document.tree import Tree
from axlog.errors import ValueProblem
from axlog.evaluate.atoms import NUMERIC, Atom, Untyped, text_of, type_of
from axlog.evaluate.comparisons import VALUE, general_comparison, value_comparison


class Node(int):
    """A node of the document, by its handle."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class New:
    """A node made by the statement: element, attribute, text, comment, instruction, document."""

    kind: str
    pieces: tuple[Piece, ...]
    home: tuple[Tree, Node] | None = field(default=None, compare=False, repr=False)
    """Its place in a tree of its own, once a path has entered it."""

    def settle(self, home: tuple[Tree, Node]) -> None:
        """Note its place in a tree, which is made once."""
        object.__setattr__(self, "home", home)

    @property
    def value(self) -> str:
        """The string value."""
        return "".join(_value_of_piece(piece) for piece in self.pieces)


Item: TypeAlias = Node | New | Atom
Items: TypeAlias = list[Item]


def _value_of_piece(piece: Piece) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, Attribute):
        return piece.value
    tag: object = piece.tag  # of a comment, a function
    if not isinstance(tag, str):
        return piece.text or ""
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
