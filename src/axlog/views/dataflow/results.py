"""Items of a result, as rows hold them and as people read them."""

from __future__ import annotations

from typing import Any

from lxml import etree

from axlog.document.operations import Attribute
from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.evaluate.atoms import Named, Untyped
from axlog.evaluate.items import Item, New, Node


def item_value(tree: Tree, item: Item) -> Any:
    """The value of an item in a row: the string of a node, the XML of a new one, else the value."""
    if isinstance(item, Node):
        return tree.string_value(item)
    return item_text(tree, item)


def item_text(tree: Tree, item: Item) -> Any:
    """An item as people read it: XML of elements, strings of other nodes, else the value."""
    if isinstance(item, Node):
        return serialise(tree, item)
    if isinstance(item, New):
        return new_text(item)
    if type(item) is Untyped or isinstance(item, Named):
        return str(item)
    return item


def new_text(item: New) -> str:
    """A constructed node as text."""
    parts = []
    for piece in item.pieces:
        if isinstance(piece, str):
            parts.append(piece)
        elif isinstance(piece, Attribute):
            parts.append(piece.value)
        else:
            parts.append(etree.tostring(piece, encoding="unicode", with_tail=False))
    return "".join(parts)
