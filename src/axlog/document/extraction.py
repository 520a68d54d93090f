"""A copy of a document with only some of the children of some nodes.

Law: nodes that are copied have the labels, texts, times, identifiers and calls that they have in
the document, in the same order.

Names, prefixes and namespaces that are only written out, messages that replace, and the origins of
nodes are not copied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from axlog.document.tree import ATTRIBUTE, CALL, DOCUMENT_NODE, ELEMENT, Tree


def extracted(tree: Tree, kept: Mapping[int, Collection[int]]) -> Tree:
    """The document, of which the nodes in `kept` have only these children, and their attributes.

    The open calls must be among them. The cost is that of the nodes that are copied.
    """
    made = Tree()
    made.clock, made.ended, made.any_calls = tree.clock, set(tree.ended), tree.any_calls
    made.facts, made.references, made.types = tree.facts, tree.references, tree.types
    made.deliveries, made.violations = dict(tree.deliveries), tree.violations
    made.brought, made.called = dict(tree.brought), dict(tree.called)
    made.time_column[DOCUMENT_NODE] = tree.time_column[DOCUMENT_NODE]
    copies = {DOCUMENT_NODE: DOCUMENT_NODE}
    waiting = [DOCUMENT_NODE]
    while waiting:
        above = waiting.pop()
        for node in _below(tree, above, kept):
            copies[node] = _copied(tree, node, made, copies[above])
            waiting.append(node)
    for stream, node in tree.calls_by_stream.items():
        made.calls_by_stream[stream] = copies[node]
    return made


def _below(tree: Tree, node: int, kept: Mapping[int, Collection[int]]) -> Iterable[int]:
    if node not in kept:
        return tree.chain(node)
    return [*tree.attributes(node), *sorted(kept[node], key=tree.component)]


def _copied(tree: Tree, node: int, made: Tree, parent: int) -> int:
    """Copy one node, as the last one below its parent."""
    kind, time = tree.kind_column[node], tree.time_column[node]
    if kind == ELEMENT or kind == ATTRIBUTE:
        copy = made._new_named(kind, tree.label(node), time)
    elif kind == CALL:
        copy = made._new(kind, tree.label_column[node], time)
        made.calls_by_node[copy] = tree.calls_by_node[node]
    else:
        copy = made._new_text(kind, tree.text(node), time)
    made._append(parent, copy)
    made._place_at(copy, tree.component(node))
    made._enter(copy)
    made._size += 1
    return copy
