"""Readable paths to nodes, such as /site/people/person[2]/@id, for messages and explanations."""

from __future__ import annotations

from typing import Any

import numpy as np

from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, NONE, Tree

MANY = 64
"""From this many nodes of a label on, positions are counted in columns."""


def _column(column: Any) -> Any:
    return np.frombuffer(column, dtype=np.int32)


def path_of(tree: Tree, node: int) -> str:
    """The path from the root to a node, with positions where siblings have the same label."""
    steps: list[str] = []
    while node != DOCUMENT_NODE and node != NONE:
        kind = tree.kind_column[node]
        is_named = kind in (ELEMENT, ATTRIBUTE)
        label = tree.label(node) if is_named else f"{tree.kind(node).name.lower()}()"
        parent = tree.parent_column[node]
        if parent != NONE and kind != ATTRIBUTE:
            position, count = _place_among_equals(tree, node, parent)
            label += f"[{position}]" if count > 1 else ""
        steps.append(label)
        node = parent
    return "/" + "/".join(reversed(steps))


def _place_among_equals(tree: Tree, node: int, parent: int) -> tuple[int, int]:
    """The position of a node among the siblings of its kind and label, and their number."""
    kind, label = tree.kind_column[node], tree.label_column[node]
    if kind == ELEMENT and len(tree.partition(tree.names[label])) > MANY:
        found = _place_among(tree, node, parent)
        if found is not None:
            return found
    same = [
        other
        for other in tree.chain(parent)
        if tree.kind_column[other] == kind
        and (kind != ELEMENT or tree.label_column[other] == label)
    ]
    return same.index(node) + 1, len(same)


def _place_among(tree: Tree, node: int, parent: int) -> tuple[int, int] | None:
    """The position of an element among its siblings with its label, and their number.

    None if one of them has an order of several integers.
    """
    handles = _column(tree.partition(tree.label(node)))
    same = handles[_column(tree.parent_column)[handles] == parent]
    if tree.long_components and not tree.long_components.keys().isdisjoint(same.tolist()):
        return None
    order = _column(tree.order_column)
    return int((order[same] < order[node]).sum()) + 1, len(same)
