"""The labels that an update moves, which determine the views that it cannot affect.

One pass over the delta serves all views. It collects the labels of inserted nodes, of deleted
nodes, of the nodes above the places, and of renamed nodes or nodes with new values. The rules
`empty` and `above` of `terms`, on labels alone, then prune all terms of most views, at the cost of
one lookup, because updates of one kind have the same labels.

Law: a view that `may_concern` and `may_flip_guards` exclude has the same rows after the update.

A set of labels also contains the classes of its labels (`*`, `@*`, `.`), so that every test of a
pattern is one membership check.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from axlog.document.delta import Delta
from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, LABELS_BY_KIND, NONE, Tree
from axlog.evaluate.columns import Columns, Handles
from axlog.views.algebraic.shape import ANY_ATTRIBUTE, ANY_ELEMENT, ANYTHING, Shape
from axlog.views.algebraic.terms import Facts

_ELEMENTS = frozenset((ELEMENT,))
FEW = 80
"""Up to this many nodes, labels are read one by one."""

Labels = frozenset[str]
Depths = frozenset[int]
"""The depths of places: 0 for the document node."""


@dataclass(frozen=True, slots=True, eq=False)
class MovedLabels:
    """The labels of one update."""

    removed: Labels
    added: Labels
    above: Labels
    changed: Labels
    depths: Depths


@lru_cache(maxsize=1024)
def moved_labels(
    removed: Labels, added: Labels, above: Labels, changed: Labels, depths: Depths
) -> MovedLabels:
    """The labels of an update; the same object for equal labels, so that views can cache by it."""
    return MovedLabels(removed, added, above, changed, depths)


@lru_cache(maxsize=4096)
def with_classes(labels: Labels) -> Labels:
    """Add the classes of the labels; the largest class is always included."""
    classes = {ANYTHING}
    for label in labels:
        if label[0] == "@":
            classes.add(ANY_ATTRIBUTE)
        elif label[0] != "#":
            classes.add(ANY_ELEMENT)
    return labels | classes


NO_LABELS: Labels = frozenset()


def labels_of(columns: Columns, nodes: Handles) -> Labels:
    """The labels of nodes, with their classes; empty for no nodes."""
    if not len(nodes):
        return NO_LABELS
    tree = columns.tree
    if len(nodes) <= FEW:
        return with_classes(frozenset(named(tree, nodes.tolist())))
    kinds, labels = columns.kind[nodes], columns.label[nodes]
    np.putmask(labels, kinds > ATTRIBUTE, NONE)  # nodes without a name
    present = np.zeros(len(tree.names) + 1, dtype=np.bool_)
    present[labels] = True
    present[NONE] = False
    found = [tree.names[number] for number in np.flatnonzero(present).tolist()]
    every = kinds.tobytes()
    found += [label for kind, label in LABELS_BY_KIND.items() if kind in every]
    return with_classes(frozenset(found))


def labels_above(columns: Columns, places: Handles) -> tuple[Labels, Depths]:
    """The labels of places and of all nodes above them, and the depths of the places."""
    if not len(places):
        return NO_LABELS, frozenset()
    if len(places) <= FEW:
        return labels_above_few(columns.tree, places.tolist())
    tree, found, depths = columns.tree, set[str](), set[int]()
    at, level = places, 0
    while len(at) > FEW:
        if (at == at[0]).all():
            at = at[:1]
            break
        numbers = columns.label[at]
        if (numbers == numbers[0]).all() and (columns.kind[at] == ELEMENT).all():
            found.add(tree.names[int(numbers[0])])
        else:
            found |= labels_of(columns, at)
        inside = at > DOCUMENT_NODE
        at, level = columns.parent[at], level + 1
        if not inside.all():
            depths.add(level - 1)
            at = at[inside]
    labels, rest = _walked_up(tree, at.tolist())
    depths |= {level + depth for depth in rest}
    return with_classes(frozenset(found | labels)), frozenset(depths)


def labels_above_few(tree: Tree, places: Iterable[int]) -> tuple[Labels, Depths]:
    """`labels_above`, node by node."""
    labels, depths = _walked_up(tree, places)
    return with_classes(frozenset(labels)), frozenset(depths)


def _walked_up(tree: Tree, places: Iterable[int]) -> tuple[set[str], set[int]]:
    """Level by level, each node once: the paths of places soon merge."""
    names, kind_of, label_of, parent_of = (
        tree.names, tree.kind_column.__getitem__, tree.label_column.__getitem__,
        tree.parent_column.__getitem__,
    )  # fmt: skip
    found, depths = set[str](), set[int]()
    at, level = set(places), 0
    while at:
        if len(at) == 1:
            (node,) = at
            while node > DOCUMENT_NODE:
                if kind_of(node) == ELEMENT:
                    found.add(names[label_of(node)])
                else:
                    found.update(named(tree, (node,)))
                node = parent_of(node)
                level += 1
            if node == DOCUMENT_NODE:
                depths.add(level)
            break
        if DOCUMENT_NODE in at:
            depths.add(level)
            at.discard(DOCUMENT_NODE)
        if set(map(kind_of, at)) <= _ELEMENTS:
            found.update(map(names.__getitem__, set(map(label_of, at))))
        else:
            found.update(named(tree, at))
        at = set(map(parent_of, at))
        level += 1
    return found, depths


def named(tree: Tree, nodes: Iterable[int]) -> Iterable[str]:
    """The labels of nodes that have one, with repetitions."""
    kinds, labels, names = tree.kind_column, tree.label_column, tree.names
    for node in nodes:
        kind = kinds[node]
        if kind == ELEMENT or kind == ATTRIBUTE:
            yield names[labels[node]]
        elif kind in LABELS_BY_KIND:
            yield LABELS_BY_KIND[kind]


def changed_labels(tree: Tree, delta: Delta) -> Labels:
    """The old and new labels of renamed nodes, and of changed texts, comments, instructions."""
    found = set()
    for change in delta.changed:
        kind = tree.kind_column[change.node]
        if kind == ELEMENT or kind == ATTRIBUTE:
            found |= {change.old, change.new}
        else:
            found.add(LABELS_BY_KIND[kind])
    return with_classes(frozenset(found)) if found else NO_LABELS


@lru_cache(maxsize=4096)
def facts_of(shape: Shape, moved: Labels, above: Labels, depths: Depths) -> Facts:
    """The pattern nodes that the labels of a delta, and of the nodes above it, can match.

    Also those that cannot be topmost in a delta: a topmost node is a child of a place.
    """
    nodes = shape.nodes[1:]
    matched = frozenset(node.number for node in nodes if node.wanted in moved)
    barred = frozenset(
        node.number
        for node in nodes
        if (depth := shape.depths[node.number]) is not None and depth - 1 not in depths
    )
    over = frozenset(node.number for node in nodes if node.below and node.wanted in above)
    return Facts(matched, over, barred)


@lru_cache(maxsize=4096)
def asked_of(shape: Shape, facts: Facts) -> frozenset[int]:
    """The pattern nodes that can be in the delta of some term."""
    found: set[int] = set()
    for number in facts.matched - facts.barred:
        inside = shape.subpatterns[number]
        if facts.matched.issuperset(inside) and facts.above.issuperset(shape.above[number]):
            found |= set(inside)
    return frozenset(found)


@lru_cache(maxsize=4096)
def may_flip(shape: Shape, above: Labels, changed: Labels) -> bool:
    """Whether a node that stays may enter or leave a relation of the view."""
    return any(
        node.wanted in changed or (node.reads_below and node.wanted in above)
        for node in shape.nodes[1:]
    )


@lru_cache(maxsize=4096)
def may_flip_guards(shape: Shape, moved: MovedLabels) -> bool:
    """Whether an update may change the conditions at the document node.

    Their patterns are views without outputs, and the update may affect one of them.
    """
    return any(
        may_concern(asked, moved) or may_flip_guards(asked, moved) for asked in shape.guarding
    )


@lru_cache(maxsize=4096)
def may_concern(shape: Shape, moved: MovedLabels) -> bool:
    """Whether an update may change a row of the view."""
    return bool(
        asked_of(shape, facts_of(shape, moved.added, moved.above, moved.depths))
        or asked_of(shape, facts_of(shape, moved.removed, moved.above, moved.depths))
        or may_flip(shape, moved.above, moved.changed)
    )
