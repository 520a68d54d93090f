"""Updates as data: the notation of fixture files and failing cases.

A message of a stream is the JSON object that `axlog maintain` reads. An operation of a pending
update list is an object too, identified by its first key:

    {"insert": CONTENT, "where": "last", "target": NODE}     {"delete": NODE}
    {"rename": NODE, "label": "b"}                           {"replace": NODE, "content": CONTENT}
    {"replace value": NODE, "value": "5"}

CONTENT is XML text, or a list of XML texts, `{"text": "5"}` and `{"attribute": "k", "value": "5"}`.
NODE is a path as `Tree.path` prints it (`/a/b[2]/@k`), a pattern that returns one node's id, or the
node's number in document order. Any object may have `at`.

Users write statements of XQuery Update instead; this notation identifies the nodes exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lxml import etree

from axlog.document.loader import read_forest
from axlog.document.operations import (
    Attribute,
    Content,
    Delete,
    Insert,
    Item,
    Operation,
    Rename,
    ReplaceNode,
    ReplaceValue,
    Where,
)
from axlog.document.stream_update import StreamUpdate
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import UpdateError
from axlog.evaluate.answers import selected
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.query.native import parse_pattern
from axlog.views.change import Change

Edit = Mapping[str, Any]


def carry_out(doc: Document, edits: Sequence[Edit]) -> list[Change]:
    """Apply one update: a message of a stream, or operations that are applied together."""
    if "stream" in edits[0]:
        (message,) = edits
        return doc.take(StreamUpdate.of(message))
    operations = operations_of(maintained(doc).nodes(), edits)
    return maintained(doc).apply(operations, edits[0].get("at"))


def operations_of(tree: Tree, edits: Iterable[Edit]) -> list[Operation]:
    """The operations of edits, for the current tree."""
    return [operation for edit in edits for operation in _operations(tree, edit)]


def _operations(tree: Tree, edit: Edit) -> list[Operation]:
    match edit:
        case {"insert": content, "target": target}:
            where, items = Where(edit.get("where", "last")), content_of(content)
            return [Insert(where, node, items) for node in nodes_of(tree, target)]
        case {"delete": target}:
            return [Delete(node) for node in nodes_of(tree, target)]
        case {"rename": target, "label": label}:
            return [Rename(node, label) for node in nodes_of(tree, target)]
        case {"replace": target, "content": content}:
            items = content_of(content)
            return [ReplaceNode(node, items) for node in nodes_of(tree, target)]
        case {"replace value": target, "value": value}:
            return [ReplaceValue(node, value) for node in nodes_of(tree, target)]
    raise UpdateError("AX302", f"{dict(edit)} is no operation")


def nodes_of(tree: Tree, target: str | int) -> list[int]:
    """The nodes of a path, a pattern or a number."""
    if isinstance(target, str) and target.startswith("match "):
        return selected(tree, parse_pattern(target))
    nodes = list(tree.subtree(DOCUMENT_NODE))
    if isinstance(target, str):
        found = [node for node in nodes if tree.path(node) == target]
    else:
        found = nodes[target : target + 1]
    if not found:
        raise UpdateError("AX301", f"there is no node {target!r}")
    return found


def content_of(written: str | Sequence[str | Edit]) -> Content:
    """Content in the form that operations accept."""
    items: list[Item] = []
    for item in [written] if isinstance(written, str) else written:
        match item:
            case {"text": text}:
                items.append(text)
            case {"attribute": name, "value": value}:
                items.append(Attribute(name, value))
            case str():
                items += read_forest(item)
            case _:
                raise UpdateError("AX303", f"{item!r} is no content")
    return tuple(items)


def edit_of(tree: Tree, operation: Operation) -> dict[str, Any]:
    """An operation as data, its target by number."""
    number = list(tree.subtree(DOCUMENT_NODE)).index(operation.target)
    match operation:
        case Insert(where=where, content=content):
            return {"insert": _written(content), "where": where.value, "target": number}
        case Delete():
            return {"delete": number}
        case Rename(label=label):
            return {"rename": number, "label": label}
        case ReplaceNode(content=content):
            return {"replace": number, "content": _written(content)}
        case ReplaceValue(value=value):
            return {"replace value": number, "value": value}


def with_paths(tree: Tree, edit: Edit) -> dict[str, Any]:
    """The edit with its target as a path, for readable output."""
    keys = ("target", "delete", "rename", "replace", "replace value")
    key = next((key for key in keys if isinstance(edit.get(key), int)), None)
    if key is None:
        return dict(edit)
    found = list(tree.subtree(DOCUMENT_NODE))[edit[key] : edit[key] + 1]
    return {**edit, key: tree.path(found[0]) if found else edit[key]}


def _written(content: Content) -> list[Any]:
    written: list[Any] = []
    for item in content:
        if isinstance(item, str):
            written.append({"text": item})
        elif isinstance(item, Attribute):
            written.append({"attribute": item.name, "value": item.value})
        else:
            written.append(etree.tostring(item, encoding="unicode", with_tail=False))
    return written
