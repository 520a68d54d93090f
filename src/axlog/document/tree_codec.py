"""A tree as bytes, and back: the columns as they are, so that ids, times and handles stay.

The columns go as arrays of integers in this machine's byte order, which is noted and turned where
it differs; names, texts and the small tables go as JSON. Bytes from a file are not trusted further
than their checksum: a link that leads outside the columns, or a table that does not fit, is
refused before anything uses it.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from axlog.document.calls import Call
from axlog.document.tree import NONE, NodeKind, Tree
from axlog.errors import StoreError

_COLUMNS = (
    "_kind", "_parent", "_first", "_last", "_next", "_prev",
    "_label", "_order", "_time", "_place",
)  # fmt: skip
_LINKS = ("_parent", "_first", "_last", "_next", "_prev")


def save_tree(tree: Tree) -> dict[str, bytes]:
    """The parts that say all of a tree, its declared facts aside."""
    parts = {f"tree{name}": getattr(tree, name).tobytes() for name in _COLUMNS}
    parts["tree_spans"] = tree._spans.tobytes()
    parts["tree_bytes"] = bytes(tree._bytes)
    said = {
        "byteorder": sys.byteorder,
        "nodes": len(tree._kind),
        "names": tree.names,
        "far": [[node, list(component)] for node, component in tree._far.items()],
        "texts": list(tree._texts.items()),
        "calls": [[node, [list(pair) for pair in call.attributes]]
                  for node, call in tree._call_at.items()],
        "open": tree._calls,
        "prefix": list(tree._prefix.items()),
        "declared": list(tree._declared.items()),
        "size": tree._size,
        "clock": tree.clock,
        "version": tree.version,
        "ended": sorted(tree.ended),
        "origins": [[node, *origin] for node, origin in tree._origins.items()],
        "brought": tree.brought,
        "called": tree.called,
        "any_calls": tree.any_calls,
    }  # fmt: skip
    parts["tree"] = json.dumps(said, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return parts


def load_tree(parts: Mapping[str, bytes]) -> Tree:
    """The tree that was saved."""
    try:
        said = json.loads(parts["tree"].decode("utf-8", "surrogatepass"))
        tree = Tree()
        turned = said["byteorder"] != sys.byteorder
        for name in (*_COLUMNS, "_spans"):
            column: array[int] = array(getattr(tree, name).typecode)
            column.frombytes(parts[f"tree{name}"])
            if turned:
                column.byteswap()
            setattr(tree, name, column)
        tree._bytes = parts["tree_bytes"]
        _fill(tree, said)
        _check(tree, said["nodes"])
    except (
        AttributeError, KeyError, IndexError, OverflowError, RecursionError, TypeError, ValueError
    ) as error:  # fmt: skip
        raise StoreError("AX871", f"the saved document does not fit together: {error}") from None
    return tree


def _fill(tree: Tree, said: dict[str, Any]) -> None:
    tree.names = [str(name) for name in said["names"]]
    tree._name_ids = {name: at for at, name in enumerate(tree.names)}
    tree._far = {int(node): tuple(map(int, component)) for node, component in said["far"]}
    tree._texts = {int(node): str(text) for node, text in said["texts"]}
    tree._call_at = {
        int(node): Call.of([(str(name), str(value)) for name, value in attributes])
        for node, attributes in said["calls"]
    }
    tree._calls = {str(stream): int(node) for stream, node in said["open"].items()}
    tree._prefix = {int(node): prefix for node, prefix in said["prefix"]}
    tree._declared = {
        int(node): tuple((prefix, str(address)) for prefix, address in declared)
        for node, declared in said["declared"]
    }
    tree._size = int(said["size"])
    tree.clock, tree.version = int(said["clock"]), int(said["version"])
    tree.ended = {str(stream) for stream in said["ended"]}
    tree._origins = {int(node): (str(stream), int(n)) for node, stream, n in said["origins"]}
    tree.brought = {str(stream): int(count) for stream, count in said["brought"].items()}
    tree.called = {str(stream): int(count) for stream, count in said.get("called", {}).items()}
    tree.any_calls = bool(said.get("any_calls", True))  # version 0.1 let every stream bring calls


def _check(tree: Tree, nodes: int) -> None:
    """Refuse columns that do not fit; put every living node into its partition."""
    if any(len(getattr(tree, name)) != nodes for name in _COLUMNS):
        raise ValueError("the columns have different lengths")
    for name in _LINKS:
        column = getattr(tree, name)
        if len(column) and not NONE <= min(column) <= max(column) < nodes:
            raise ValueError(f"a link of {name} leads nowhere")
    known = set(map(int, NodeKind))
    if not set(tree._kind) <= known:
        raise ValueError("a node is of no kind")
    _check_texts(tree)
    living = _living(tree)
    _free_others(tree, living)
    tree._partitions = {}
    for node in living[1:]:
        tree._enter(node)


def _check_texts(tree: Tree) -> None:
    """Refuse spans that are no texts, and labels that are no names."""
    tree._bytes.decode()
    starts = np.asarray(tree._spans)
    data = np.frombuffer(tree._bytes, dtype=np.uint8)
    if len(starts) == 0 or starts[0] < 0 or starts[-1] > len(data) or (np.diff(starts) < 0).any():
        raise ValueError("a text lies outside the document")
    inside = starts[starts < len(data)]
    if ((data[inside] & 0xC0) == 0x80).any():
        raise ValueError("a text begins inside a character")
    labels, kinds = np.asarray(tree._label), np.asarray(tree._kind)
    named = np.isin(kinds, (int(NodeKind.ELEMENT), int(NodeKind.ATTRIBUTE)))
    if (labels < NONE).any() or (labels[named] < 0).any():
        raise ValueError("a node has no name")
    if (labels[named] >= len(tree.names)).any():
        raise ValueError("a node has a name that is not there")
    spans = np.isin(kinds, (int(NodeKind.TEXT), int(NodeKind.COMMENT), int(NodeKind.INSTRUCTION)))
    loose = np.flatnonzero(spans & (labels == NONE)).tolist()
    if (labels[spans] >= len(starts) - 1).any() or not tree._texts.keys() >= set(loose):
        raise ValueError("a node has a text that is not there")


def _free_others(tree: Tree, living: list[int]) -> None:
    """What the last update removed is free now, like all that was free before."""
    kept = set(living)
    tree._free = [node for node in range(len(tree._kind)) if node not in kept]
    for node in tree._free:
        tree._kind[node] = NodeKind.FREE
    for table in (
        tree._texts, tree._far, tree._prefix, tree._declared, tree._call_at, tree._origins,
    ):  # fmt: skip
        for node in [node for node in table if node not in kept]:
            del table[node]


def _living(tree: Tree) -> list[int]:
    """The nodes that hang in the document; a tree that bites its tail is refused."""
    found: list[int] = []
    seen = bytearray(len(tree._kind))
    stack = [0]
    while stack:
        node = stack.pop()
        if seen[node] == 1:
            raise ValueError("a node hangs in two places")
        seen[node] = 1
        found.append(node)
        below, behind = tree._last[node], NONE
        while below != NONE:
            if seen[below] or tree._parent[below] != node or tree._kind[below] == NodeKind.FREE:
                raise ValueError(f"node {below} hangs nowhere")
            if tree._next[below] != behind:
                raise ValueError(f"the links of node {below} do not agree")
            seen[below] = 2  # met; 1 once it is looked into
            stack.append(below)
            below, behind = tree._prev[below], below
        if tree._first[node] != behind:
            raise ValueError(f"the links of node {node} do not agree")
    if len(found) - 1 != tree._size:
        raise ValueError("nodes are missing")
    return found
