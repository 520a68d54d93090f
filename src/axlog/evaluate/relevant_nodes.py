"""Which nodes of a large document an evaluation has to look at, found in arrays.

An evaluation from the document node visits children before parents. It needs the nodes that a
relation may match, by their label and the label of their parent, and the nodes above them. The
others give no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

import numpy as np

from axlog.document.tree import DOCUMENT_NODE, ELEMENT, NONE, Tree
from axlog.evaluate.columns import Columns, Handles, handles

LARGE = 5_000
"""Nodes from which on a document is looked at in arrays."""
_MOST_DEPTH = 100


def relevant_nodes(
    tree: Tree, may_match: Callable[[int], object], kept: Iterable[int]
) -> list[int]:
    """The nodes that may match, others that are kept, and all nodes above, in document order.

    `may_match` is called once for all nodes that agree in kind and label, and whose parents do.
    """
    with Columns(tree) as columns:
        every = _every(columns)
        above = columns.parent[every]
        most = len(tree.names) + 1
        codes = (columns.label[every].astype(np.int64) + 1) * (most + 1) + columns.label[above] + 1
        codes = codes * 256 + columns.kind[every].astype(np.int64) * 16 + columns.kind[above]
        _, first, of = np.unique(codes, return_index=True, return_inverse=True)
        found = np.array([bool(may_match(node)) for node in every[first].tolist()], dtype=np.bool_)
        nodes = np.concatenate([every[found[of]], handles([DOCUMENT_NODE, *kept])])
        return columns.in_document_order(columns.with_ancestors(nodes)).tolist()  # type: ignore[no-any-return]


def large_elements(tree: Tree, most: int) -> frozenset[int] | None:
    """The root element and those with more than `most` nodes, themselves included.

    Calls are not counted. None: the document is too deep for arrays. Views that are added one after
    the other need them for the same state of the document.
    """
    known = _LARGE_ELEMENTS.get(tree)
    if known is None or known[:2] != (tree.version, most):
        known = _LARGE_ELEMENTS[tree] = tree.version, most, _large_elements(tree, most)
    return known[2]


_LARGE_ELEMENTS: WeakKeyDictionary[Tree, tuple[int, int, frozenset[int] | None]] = (
    WeakKeyDictionary()
)


def _large_elements(tree: Tree, most: int) -> frozenset[int] | None:
    with Columns(tree) as columns:
        every = _every(columns)
        sizes = np.ones(len(columns.kind), dtype=np.int64)
        at = columns.parent[every]
        for _ in range(_MOST_DEPTH):
            at = at[at != NONE]
            if not len(at):
                break
            sizes += np.bincount(at, minlength=len(sizes))
            at = columns.parent[at]
        else:
            return None
        elements = columns.elements()
        is_root = columns.parent[elements] == DOCUMENT_NODE
        return frozenset(elements[is_root | (sizes[elements] > most)].tolist())


def _every(columns: Columns) -> Handles:
    """All nodes but calls and the document node."""
    return np.concatenate([columns.nodes(), columns.attributes()])


def elements_above(tree: Tree, nodes: Iterable[int]) -> set[int]:
    """The elements above some nodes."""
    found: set[int] = set()
    for node in nodes:
        at = tree.parent_column[node]
        while at not in found and at != NONE:
            if tree.kind_column[at] == ELEMENT:
                found.add(at)
            at = tree.parent_column[at]
    return found
