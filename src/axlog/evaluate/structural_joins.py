"""Structural joins that keep pairs: from nodes to all nodes above them, and tests of many nodes.

`columns` asks whether a node exists above or below. Here every pair counts, as derivation counts
need. `navigate` is Path Navigate (from nodes, and so from their ids, to parents or ancestors);
`passing` with it is Path Filter (whether a node above has a label). All follow the parent column,
so they work for a subtree before and after it is removed or added.

Cost: nodes times depth for `navigate`. (Paper 5, section 3.4.)
"""

from __future__ import annotations

import numpy as np

from axlog.document.tree import (
    ATTRIBUTE,
    COMMENT,
    DOCUMENT_NODE,
    ELEMENT,
    INSTRUCTION,
    NONE,
    TEXT,
    Tree,
)
from axlog.evaluate.columns import NOTHING, Columns, Handles, Mask, handles
from axlog.evaluate.node_sets import FEW, Bulk
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Literal,
    Name,
    PatternNode,
    Wildcard,
)


def navigate(columns: Columns, nodes: Handles, axis: Axis) -> tuple[Handles, Handles]:
    """The start nodes of an axis that reaches these nodes: positions among them, and starts."""
    positions = np.arange(len(nodes), dtype=np.int32)
    if axis is Axis.SELF:
        return positions, nodes
    if axis is Axis.CHILD or axis is Axis.ATTRIBUTE:
        above = columns.parent[nodes]
        hangs = above != NONE
        return (positions, above) if hangs.all() else (positions[hangs], above[hangs])
    found = [(positions, nodes)] if axis is Axis.DESCENDANT_OR_SELF else []
    places, at = positions, columns.parent[nodes]
    while len(places):
        hangs = at != NONE
        places, at = places[hangs], at[hangs]
        found.append((places, at))
        goes_on = (at != DOCUMENT_NODE) & (columns.kind[at] != ATTRIBUTE)
        places, at = places[goes_on], columns.parent[at[goes_on]]
    if not found:
        return NOTHING, NOTHING
    return np.concatenate([p for p, _ in found]), np.concatenate([a for _, a in found])


def from_document(columns: Columns, nodes: Handles, axis: Axis) -> Mask:
    """A mask of the nodes that an axis reaches from the document node."""
    if axis is Axis.SELF:
        return np.equal(nodes, DOCUMENT_NODE)
    above = columns.parent[nodes]
    if axis is Axis.CHILD or axis is Axis.ATTRIBUTE:
        return np.equal(above, DOCUMENT_NODE)
    # Only the text of an attribute is out of reach of descent.
    is_reached: Mask = (above != NONE) & (columns.kind[above] != ATTRIBUTE)
    return is_reached | (nodes == DOCUMENT_NODE) if axis is Axis.DESCENDANT_OR_SELF else is_reached


def ancestors(columns: Columns, nodes: Handles) -> Handles:
    """The nodes and all their ancestors, each once, including the document node."""
    found: list[Handles] = []
    at = nodes
    seen: Mask | None = None
    while len(at) > FEW:
        if (at == at[0]).all():
            at = at[:1]
            break
        if seen is None:
            seen = np.zeros(len(columns.kind), dtype=np.bool_)
            place = np.empty(len(columns.kind), dtype=np.int32)
        at = at[~seen[at]]
        numbers = np.arange(len(at), dtype=np.int32)
        place[at] = numbers
        at = at[place[at] == numbers]  # each once
        seen[at] = True
        found.append(at)
        at = columns.parent[at]
        at = at[at != NONE]
    found.append(handles(_walked_up(columns.tree, at.tolist(), seen)))
    return found[0] if len(found) == 1 else np.concatenate(found)


def _walked_up(tree: Tree, nodes: list[int], seen: Mask | None) -> list[int]:
    """The same, one node at a time, up to nodes already seen."""
    parent = tree.parent_column
    found: dict[int, None] = {}
    for node in nodes:
        while node != NONE and node not in found and (seen is None or not seen[node]):
            found[node] = None
            node = parent[node]
    return list(found)


def passing(columns: Columns, nodes: Handles, step: PatternNode) -> Mask:
    """A mask of the nodes that pass a pattern node's test at the end of its axis."""
    kind = columns.kind[nodes]
    own = ATTRIBUTE if step.axis is Axis.ATTRIBUTE else ELEMENT
    match step.test:
        case Name(label=label):
            written = f"@{label}" if own == ATTRIBUTE else label
            number = columns.tree.name_ids.get(written, -2)
            is_named: Mask = (columns.label[nodes] == number) & (kind == own)
            return is_named
        case Wildcard():
            return np.asarray(kind == own)
        case AnyText():
            return np.asarray(kind == TEXT)
        case Literal(text=text):
            return _texts_equal(columns, nodes, kind == TEXT, text)
        case AnyComment():
            return np.asarray(kind == COMMENT)
        case AnyInstruction(target=target):
            return _of_target(columns, nodes, kind == INSTRUCTION, target)
        case AnyNode() if step.axis is Axis.SELF:
            return np.ones(len(nodes), dtype=np.bool_)
        case AnyNode():
            return np.isin(kind, (ELEMENT, TEXT, COMMENT, INSTRUCTION))
    is_labelled: Mask = (kind == ELEMENT) | (kind == TEXT)
    return is_labelled


def _of_target(columns: Columns, nodes: Handles, is_one: Mask, target: str | None) -> Mask:
    if target is None:
        return np.asarray(is_one)
    found: Mask = is_one.copy()
    found[is_one] = [columns.tree.target(node) == target for node in nodes[is_one].tolist()]
    return found


def _texts_equal(columns: Columns, nodes: Handles, is_text: Mask, text: str) -> Mask:
    equal = Bulk(columns).texts_equal(nodes[is_text], text)
    found: Mask = is_text.copy()
    found[is_text] = np.isin(nodes[is_text], equal)
    return found
