"""The node table: a document's nodes as rows that Spark can hold, and back.

    document string, id binary, parent binary, label string, kind string, value string

`id` is the byte form of the document's own identifiers (`ids.py`): it sorts in document order, and
an ancestor's is a prefix of its descendants'. `parent` is empty for top-level nodes. `label` is the
expanded name of an element, `@` and the name of an attribute, `#text`, `#comment`, `#instruction`,
or the label of calls. `value` is the string of a text, comment, instruction or attribute, the JSON
of a call's declarations, and null for an element.

Law: `read_rows(rows_of(tree))` is an equal document, with equal ids if the rows are those of a
whole document as loaded. Prefixes are not kept: content written from rows gets new ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from lxml import etree

from axlog.document.ids import encode
from axlog.document.loader import load
from axlog.document.tree import CALL_LABEL, DOCUMENT_NODE, NodeKind, Tree

NODES = "document string, id binary, parent binary, label string, kind string, value string"

_KINDS = {
    int(NodeKind.ELEMENT): "element",
    int(NodeKind.ATTRIBUTE): "attribute",
    int(NodeKind.TEXT): "text",
    int(NodeKind.CALL): "call",
    int(NodeKind.COMMENT): "comment",
    int(NodeKind.INSTRUCTION): "instruction",
}
_LABELS = {"text": "#text", "comment": "#comment", "instruction": "#instruction"}
_OPEN = "<_/>"


class NodeRow(NamedTuple):
    """One node, without the column of its document."""

    id: bytes
    parent: bytes
    label: str
    kind: str
    value: str | None


def rows_of(
    tree: Tree, top: int = DOCUMENT_NODE, keys: Sequence[tuple[bytes, bytes]] | None = None
) -> Iterator[NodeRow]:
    """The rows of all nodes below `top`, in document order.

    `keys` are the ids of the nodes right below the top, each with its parent's id, if they differ
    from the tree's own: for records cut out of a larger file.
    """
    found: dict[int, bytes] = {top: b""}
    given = dict(zip(tree.children(top), keys, strict=True)) if keys is not None else {}
    parents, kinds = tree.parent_column, tree.kind_column
    for node in tree.subtree(top):
        if node == top:
            continue
        is_attribute = kinds[node] == NodeKind.ATTRIBUTE
        if node in given:
            key, above = given[node]
        elif is_attribute and parents[node] == top and keys is not None:
            continue  # attributes of the wrapper element
        else:
            above = found.get(parents[node], b"")
            key = above + encode(tree.component(node), is_attribute)
        if keys is not None and parents[node] not in found:
            continue
        found[node] = key
        kind = _KINDS[kinds[node]]
        yield NodeRow(key, above, _label(tree, node, kind), kind, _value(tree, node, kind))


def _label(tree: Tree, node: int, kind: str) -> str:
    return _LABELS.get(kind) or tree.label(node)


def _value(tree: Tree, node: int, kind: str) -> str | None:
    if kind == "element":
        return None
    if kind == "call":
        return json.dumps(dict(tree.call(node).attributes))
    return tree.string_value(node) if kind == "attribute" else tree.text(node)


def read_rows(rows: Iterable[NodeRow]) -> tuple[Tree, dict[int, bytes]]:
    """The document or subtree that rows describe, and the former id of each node.

    The row with the lowest id is the top; rows of a whole document may have several tops.
    """
    ordered = sorted(rows)
    tree = load(_build(ordered), keep_whitespace=True)
    handles = [node for node in tree.subtree(DOCUMENT_NODE) if node != DOCUMENT_NODE]
    return tree, dict(zip(handles, (row.id for row in ordered), strict=True))


def _build(ordered: list[NodeRow]) -> Any:
    """Build lxml elements from rows in document order; the root element."""
    elements: dict[bytes, Any] = {}
    root: Any = None
    waiting: list[Any] = []  # comments and instructions before the root
    for row in ordered:
        above = elements.get(row.parent)
        if row.kind == "text":
            if above is not None:
                _add_text(above, row.value or "")
            continue  # the attribute's row has the text below it
        if row.kind == "attribute":
            if above is not None:
                above.set(row.label[1:], row.value or "")
            continue
        made = _element(row)
        if row.kind == "element":
            elements[row.id] = made
        if above is not None:
            above.append(made)
        elif row.kind == "element" and root is None:
            root = made
            for one in waiting:
                root.addprevious(one)
        elif root is None:
            waiting.append(made)
        else:
            _last_beside(root).addnext(made)
    return root


def _last_beside(root: Any) -> Any:
    following = list(root.itersiblings())
    return following[-1] if following else root


def _element(row: NodeRow) -> Any:
    if row.kind == "comment":
        return etree.Comment(row.value or "")
    if row.kind == "instruction":
        target, _, data = (row.value or "").partition(" ")
        return etree.ProcessingInstruction(target, data)
    made = etree.Element(CALL_LABEL if row.kind == "call" else row.label)
    if row.kind == "call":
        for name, value in json.loads(row.value or "{}").items():
            made.set(name, value)
    return made


def _add_text(above: Any, text: str) -> None:
    if len(above):
        above[-1].tail = (above[-1].tail or "") + text
    else:
        above.text = (above.text or "") + text
