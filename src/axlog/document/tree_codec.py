"""A tree as bytes, and back: the columns unchanged, so that ids, times and handles stay.

The columns are stored as arrays of integers in this machine's byte order, which is recorded and
swapped on a machine with another one. Names, texts and the small tables are stored as JSON. Bytes
from a file are not trusted beyond their checksum: a link to a node outside the columns, or a table
that does not fit, is refused before it is used.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from axlog.document.calls import Call
from axlog.document.ids import Id
from axlog.document.tree import NONE, NodeKind, Tree
from axlog.errors import StoreError

_COLUMNS = {
    "tree_kind": "kind_column",
    "tree_parent": "parent_column",
    "tree_first": "first_column",
    "tree_last": "last_column",
    "tree_next": "next_column",
    "tree_prev": "previous_column",
    "tree_label": "label_column",
    "tree_order": "order_column",
    "tree_time": "time_column",
    "tree_place": "slot_column",
}
"""Part in the file format to attribute of the tree: the columns with one entry per node."""
_LINKS = ("parent_column", "first_column", "last_column", "next_column", "previous_column")


def save_tree(tree: Tree) -> dict[str, bytes]:
    """A tree as named parts of bytes, without its declared facts."""
    parts = {part: getattr(tree, name).tobytes() for part, name in _COLUMNS.items()}
    labels = np.array(tree.label_column, dtype=np.int32)
    sharing = np.flatnonzero(labels < NONE)  # a saved text has a string of its own
    labels[sharing] = NONE
    parts["tree_label"] = labels.tobytes()
    shared = ((n, tree.text(n)) for n in sharing.tolist() if tree.kind_column[n] != NodeKind.FREE)
    parts["tree_spans"] = tree.text_starts.tobytes()
    parts["tree_bytes"] = bytes(tree.text_bytes)
    saved = {
        "byteorder": sys.byteorder,
        "nodes": len(tree.kind_column),
        "names": tree.names,
        "far": [[node, list(component)] for node, component in tree.long_components.items()],
        "texts": [*tree.texts_by_node.items(), *shared],
        "calls": [[node, [list(pair) for pair in call.attributes]]
                  for node, call in tree.calls_by_node.items()],
        "open": tree.calls_by_stream,
        "prefix": list(tree.prefixes_by_node.items()),
        "declared": list(tree.namespaces_by_node.items()),
        "size": tree._size,
        "clock": tree.clock,
        "version": tree.version,
        "ended": sorted(tree.ended),
        "origins": [[node, *origin] for node, origin in tree.origins_by_node.items()],
        "keys": [[node, stream, key] for node, (stream, key) in tree.keys_by_node.items()],
        "brought": tree.brought,
        "called": tree.called,
        "any_calls": tree.any_calls,
        "violations": tree.violations,
        "recorded_ids": [[str(a), str(b)] for a, b in tree.recorded_ids.items()],
    }  # fmt: skip
    parts["tree"] = json.dumps(saved, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return parts


def load_tree(parts: Mapping[str, bytes]) -> Tree:
    """Load a saved tree; raises AX871 if its parts are inconsistent."""
    try:
        saved = json.loads(parts["tree"].decode("utf-8", "surrogatepass"))
        tree = Tree()
        turned = saved["byteorder"] != sys.byteorder
        for part, name in (*_COLUMNS.items(), ("tree_spans", "text_starts")):
            column: array[int] = array(getattr(tree, name).typecode)
            column.frombytes(parts[part])
            if turned:
                column.byteswap()
            setattr(tree, name, column)
        tree.text_bytes = parts["tree_bytes"]
        _fill(tree, saved)
        _check(tree, saved["nodes"])
    except (
        AttributeError, KeyError, IndexError, OverflowError, RecursionError, TypeError, ValueError
    ) as error:  # fmt: skip
        raise StoreError("AX871", f"the saved document is inconsistent: {error}") from None
    return tree


def _fill(tree: Tree, saved: dict[str, Any]) -> None:
    tree.names = [str(name) for name in saved["names"]]
    tree.name_ids = {name: at for at, name in enumerate(tree.names)}
    tree.long_components = {
        int(node): tuple(map(int, component)) for node, component in saved["far"]
    }
    tree.texts_by_node = {int(node): str(text) for node, text in saved["texts"]}
    tree.calls_by_node = {
        int(node): Call.of([(str(name), str(value)) for name, value in attributes])
        for node, attributes in saved["calls"]
    }
    tree.calls_by_stream = {str(stream): int(node) for stream, node in saved["open"].items()}
    tree.prefixes_by_node = {int(node): prefix for node, prefix in saved["prefix"]}
    tree.namespaces_by_node = {
        int(node): tuple((prefix, str(address)) for prefix, address in declared)
        for node, declared in saved["declared"]
    }
    tree._size = int(saved["size"])
    tree.clock, tree.version = int(saved["clock"]), int(saved["version"])
    tree.ended = {str(stream) for stream in saved["ended"]}
    tree.origins_by_node = {
        int(node): (str(stream), int(n)) for node, stream, n in saved["origins"]
    }
    for node, stream, key in saved.get("keys", ()):
        tree._record_message(str(stream), str(key), int(node))
    tree.brought = {str(stream): int(count) for stream, count in saved["brought"].items()}
    tree.called = {str(stream): int(count) for stream, count in saved.get("called", {}).items()}
    tree.any_calls = bool(
        saved.get("any_calls", True)
    )  # in version 0.1 every stream could insert calls
    tree.violations = int(saved.get("violations", 0))
    tree.recorded_ids = {Id.parse(a): Id.parse(b) for a, b in saved.get("recorded_ids", ())}


def _check(tree: Tree, nodes: int) -> None:
    """Refuse inconsistent columns; add every node of the document to its partition."""
    if any(len(getattr(tree, name)) != nodes for name in _COLUMNS.values()):
        raise ValueError("the columns have different lengths")
    for name in _LINKS:
        column = getattr(tree, name)
        if len(column) and not NONE <= min(column) <= max(column) < nodes:
            raise ValueError(f"a link of {name} points outside the columns")
    known = set(map(int, NodeKind))
    if not set(tree.kind_column) <= known:
        raise ValueError("a node has an unknown kind")
    _check_texts(tree)
    living = _living(tree)
    _free_others(tree, living)
    tree.nodes_by_label = {}
    for node in living[1:]:
        tree._enter(node)


def _check_texts(tree: Tree) -> None:
    """Refuse spans that are not texts, and labels that are not names."""
    tree.text_bytes.decode()
    starts = np.asarray(tree.text_starts)
    data = np.frombuffer(tree.text_bytes, dtype=np.uint8)
    if len(starts) == 0 or starts[0] < 0 or starts[-1] > len(data) or (np.diff(starts) < 0).any():
        raise ValueError("a text is outside of the stored bytes")
    inside = starts[starts < len(data)]
    if ((data[inside] & 0xC0) == 0x80).any():
        raise ValueError("a text begins inside a character")
    labels, kinds = np.asarray(tree.label_column), np.asarray(tree.kind_column)
    named = np.isin(kinds, (int(NodeKind.ELEMENT), int(NodeKind.ATTRIBUTE)))
    if (labels < NONE).any() or (labels[named] < 0).any():
        raise ValueError("a node has no name")
    if (labels[named] >= len(tree.names)).any():
        raise ValueError("a node has an unknown name")
    spans = np.isin(kinds, (int(NodeKind.TEXT), int(NodeKind.COMMENT), int(NodeKind.INSTRUCTION)))
    loose = np.flatnonzero(spans & (labels == NONE)).tolist()
    if (labels[spans] >= len(starts) - 1).any() or not tree.texts_by_node.keys() >= set(loose):
        raise ValueError("a node has an unknown text")


def _free_others(tree: Tree, living: list[int]) -> None:
    """Free all handles outside the document, also those that the last update removed."""
    kept = set(living)
    tree._free = [node for node in range(len(tree.kind_column)) if node not in kept]
    for node in tree._free:
        tree.kind_column[node] = NodeKind.FREE
    for table in (
        tree.texts_by_node,
        tree.long_components,
        tree.prefixes_by_node,
        tree.namespaces_by_node,
        tree.calls_by_node,
        tree.origins_by_node,
    ):
        for node in [node for node in table if node not in kept]:
            del table[node]


def _living(tree: Tree) -> list[int]:
    """The nodes of the document; a cycle is refused."""
    found: list[int] = []
    seen = bytearray(len(tree.kind_column))
    stack = [0]
    while stack:
        node = stack.pop()
        if seen[node] == 1:
            raise ValueError("a node has two parents")
        seen[node] = 1
        found.append(node)
        below, behind = tree.last_column[node], NONE
        while below != NONE:
            if (
                seen[below]
                or tree.parent_column[below] != node
                or tree.kind_column[below] == NodeKind.FREE
            ):
                raise ValueError(f"node {below} is not in the document")
            if tree.next_column[below] != behind:
                raise ValueError(f"the links of node {below} do not agree")
            seen[below] = 2  # seen; 1 once its chain was read
            stack.append(below)
            below, behind = tree.previous_column[below], below
        if tree.first_column[node] != behind:
            raise ValueError(f"the links of node {node} do not agree")
    if len(found) - 1 != tree._size:
        raise ValueError("nodes are missing")
    return found
