"""What must hold of the columns of a tree after every step, checked by a full walk.

`invariants` fails with the fact that is broken. `snapshot` is everything of a tree that can be seen
from outside: two equal snapshots are the same document, node by node.
"""

from collections.abc import Iterator
from itertools import pairwise

from axlog.document.serializer import serialise
from axlog.document.tree import DOCUMENT_NODE, NONE, NodeKind, Tree

PARTITIONS = {
    NodeKind.TEXT: "#text",
    NodeKind.COMMENT: "#comment",
    NodeKind.INSTRUCTION: "#instruction",
}
LEAVES = (NodeKind.TEXT, NodeKind.CALL, NodeKind.COMMENT, NodeKind.INSTRUCTION)


def invariants(tree: Tree) -> None:
    """Links, order, partitions, calls, free handles and sizes are as a walk finds them."""
    nodes = list(_walk(tree, DOCUMENT_NODE, NONE))
    assert len(nodes) == len(set(nodes)), "a node hangs twice"
    assert nodes == list(tree.subtree(DOCUMENT_NODE))
    assert len(tree) == len(nodes) - 1
    for node in nodes:
        _check_chain(tree, node)
        assert tree.time(node) <= tree.clock
    _check_partitions(tree, nodes)
    _check_calls(tree, nodes)
    _check_handles(tree, set(nodes))
    _check_edited(tree, set(nodes))


def _walk(tree: Tree, node: int, parent: int) -> Iterator[int]:
    assert tree.parent(node) == parent
    yield node
    previous, below = NONE, tree.first_column[node]
    while below != NONE:
        assert tree.previous(below) == previous
        yield from _walk(tree, below, node)
        previous, below = below, tree.next(below)
    assert tree.last_column[node] == previous


def _check_chain(tree: Tree, node: int) -> None:
    chain = list(tree.chain(node))
    kinds = [tree.kind(below) for below in chain]
    kind = tree.kind(node)
    if kind in LEAVES:
        assert not chain
        assert kind is NodeKind.CALL or tree.text(node) is not None
    elif kind is NodeKind.ATTRIBUTE:
        assert kinds == [NodeKind.TEXT]
    elif kind is NodeKind.DOCUMENT:
        assert not kinds or kinds.count(NodeKind.ELEMENT) == 1
        assert not {NodeKind.TEXT, NodeKind.ATTRIBUTE, NodeKind.CALL} & set(kinds)
    attributes = list(tree.attributes(node))
    children = list(tree.children(node))
    assert chain == attributes + children, "attributes come first"
    for group in (attributes, children):
        components = [tree.component(below) for below in group]
        assert all(one < two for one, two in pairwise(components)), components
    labels = [tree.label(attribute) for attribute in attributes]
    assert len(labels) == len(set(labels))
    if kind is NodeKind.ELEMENT:
        is_text = [tree.kind(below) is NodeKind.TEXT for below in children]
        assert not any(one and two for one, two in pairwise(is_text)), "two texts side by side"
        assert all(tree.text(n) for n, text in zip(children, is_text, strict=True) if text)


def _check_partitions(tree: Tree, nodes: list[int]) -> None:
    found: dict[str, set[int]] = {}
    for node in nodes:
        kind = tree.kind(node)
        if kind in (NodeKind.ELEMENT, NodeKind.ATTRIBUTE):
            found.setdefault(tree.label(node), set()).add(node)
        elif kind in PARTITIONS:
            found.setdefault(PARTITIONS[kind], set()).add(node)
    assert set(tree.labels()) == set(found)
    for label, handles in found.items():
        partition = tree.partition(label)
        assert sorted(partition) == sorted(handles)
        assert all(partition[tree.slot_column[node]] == node for node in handles)


def _check_calls(tree: Tree, nodes: list[int]) -> None:
    calls = {tree.call(n).stream: n for n in nodes if tree.kind(n) is NodeKind.CALL}
    assert tree.calls() == calls
    assert not set(calls) & tree.ended
    assert set(tree.brought) <= set(calls)


def _check_handles(tree: Tree, live: set[int]) -> None:
    dying = {node for root in tree._dying for node in tree.subtree(root)}
    free = set(tree._free)
    assert len(free) == len(tree._free), "a handle is free twice"
    everything = range(len(tree.kind_column))
    assert free == {node for node in everything if tree.kind_column[node] == NodeKind.FREE}
    assert live.isdisjoint(dying)
    assert live | dying | free == set(everything), "a handle is lost"
    for table in (
        tree.texts_by_node,
        tree.long_components,
        tree.prefixes_by_node,
        tree.namespaces_by_node,
        tree.calls_by_node,
    ):
        assert not free & set(table), "a side table keeps what is gone"
    columns = (
        tree.parent_column,
        tree.first_column,
        tree.last_column,
        tree.next_column,
        tree.previous_column,
        tree.label_column,
    )
    others = (tree.order_column, tree.time_column, tree.slot_column)
    assert {len(column) for column in (*columns, *others)} == {len(tree.kind_column)}


def _check_edited(tree: Tree, live: set[int]) -> None:
    """The subtree of a loaded node without edits is the range of handles up to its last node."""
    for node in live:
        last = node
        while tree.last_column[last] != NONE:
            last = tree.last_column[last]
        if node <= last < len(tree.edited) and not any(tree.edited[node : last + 1]):
            assert list(tree.subtree(node)) == list(range(node, last + 1))
    assert all(tree.edited[node] for node in tree._free if node < len(tree.edited))


def snapshot(tree: Tree) -> dict[str, object]:
    """Everything of a tree that can be seen from outside."""
    nodes = list(tree.subtree(DOCUMENT_NODE))
    return {
        "xml": serialise(tree),
        "nodes": [(n, tree.kind(n), tree.label(n), tree.time(n)) for n in nodes],
        "ids": [(str(tree.id(n)), tree.id(n).labels) for n in nodes],
        "partitions": {label: sorted(tree.partition(label)) for label in tree.labels()},
        "calls": tree.calls(),
        "len": len(tree),
        "clock": tree.clock,
        "ended": set(tree.ended),
        "brought": dict(tree.brought),
    }
