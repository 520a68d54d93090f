"""The nodes with a given label, found in the columns: elements and attributes, texts, comments.

A text of a loaded document is searched for in the bytes of all texts; texts of nodes made by
updates are in a dictionary, or share their strings. So the search takes a pass over bytes and
columns, not over nodes.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from axlog.document.tree import FIRST, NONE, TEXT, NodeKind, Tree

_WITH_TEXT = (TEXT, int(NodeKind.COMMENT), int(NodeKind.INSTRUCTION))


def labelled(tree: Tree, label: str) -> set[int]:
    """The nodes whose label (`Tree.label`) is this one, without the document node and calls."""
    found = set(tree.partition(label))
    found.update(node for node, text in tree.texts_by_node.items() if text == label)
    spans = _spans(tree, label.encode(errors="surrogatepass"))
    if label in tree.shared_texts:
        spans.append(FIRST - tree.shared_texts.index(label))
    if spans:
        labels = np.frombuffer(tree.label_column, dtype=np.int32)
        kinds = np.frombuffer(tree.kind_column, dtype=np.int8)
        is_one = np.isin(labels, np.array(spans, dtype=np.int32)) & np.isin(kinds, _WITH_TEXT)
        found.update(np.flatnonzero(is_one).tolist())
    targets = tree.partition("#instruction")
    found.update(node for node in targets if tree.label(node) == label)
    return {node for node in found if tree.label(node) == label}


def _spans(tree: Tree, text: bytes) -> list[int]:
    """The numbers of the loaded texts that are this one."""
    starts, found = tree.text_starts, []
    at = tree.text_bytes.find(text) if text else NONE
    while at >= 0:
        span = bisect_right(starts, at) - 1  # not an empty text that begins here
        if span + 1 < len(starts) and starts[span] == at and starts[span + 1] == at + len(text):
            found.append(span)
        at = tree.text_bytes.find(text, at + 1)
    return found
