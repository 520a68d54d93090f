"""The value that an output shows of its node, for all maintainers."""

from __future__ import annotations

from typing import Any

from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.query.pattern import Kind


def shown_of(tree: Tree, kind: Kind, node: int) -> Any:
    """The id, value, content, time or label of a node."""
    match kind:
        case Kind.VAL:
            return tree.string_value(node)
        case Kind.ID:
            return tree.id(node)
        case Kind.CONT:
            return serialise(tree, node)
        case Kind.TIME:
            return tree.time(node)
        case _:
            return tree.label(node)
