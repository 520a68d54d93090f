"""The value that an output shows of its node, for all maintainers; the columns that tables show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.query.columns import Columns
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


def shown_columns(columns: Columns, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns of a table: identifiers only if some row has one, which values have not."""
    given = list(rows)
    return [
        name
        for name, type_ in zip(columns, columns.types, strict=True)
        if type_ != "id" or not given or any(row[name] is not None for row in given)
    ]
