"""What an update moves by its labels: enough to know which views it cannot concern.

One look at the delta for all views: the labels of what comes, of what goes, of what stands above
the places, of what is renamed or revalued. Propositions 3.6, 3.8 and 4.7 on labels alone then leave
most views no term at all, at the price of a lookup, as updates of one kind have the same labels.

A set of labels has the classes too that its labels are in (`*`, `@*`, `.`), so that every test of a
pattern is one membership.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from axlog.document.delta import Delta
from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, LABELS_BY_KIND, Tree
from axlog.evaluate.columns import Columns, Handles
from axlog.views.algebraic.shape import ANY_ATTRIBUTE, ANY_ELEMENT, ANYTHING, Shape
from axlog.views.algebraic.terms import Facts

FEW = 80
"""So many nodes are asked for their labels one by one."""

Labels = frozenset[str]
Depths = frozenset[int]
"""How many nodes stand above a place, and itself: the document node's is 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """The labels of one update."""

    removed: Labels
    added: Labels
    above: Labels
    changed: Labels
    depths: Depths


@lru_cache(maxsize=1024)
def moved_of(
    removed: Labels, added: Labels, above: Labels, changed: Labels, depths: Depths
) -> Moved:
    """The labels of an update, the same object for updates alike: views know these again."""
    return Moved(removed, added, above, changed, depths)


@lru_cache(maxsize=4096)
def with_classes(labels: Labels) -> Labels:
    """With the classes that the labels are in; the largest is always there."""
    classes = {ANYTHING}
    for label in labels:
        if label[0] == "@":
            classes.add(ANY_ATTRIBUTE)
        elif label[0] != "#":
            classes.add(ANY_ELEMENT)
    return labels | classes


NO_LABELS: Labels = frozenset()


def labels_of(columns: Columns, nodes: Handles) -> Labels:
    """The labels of nodes, with their classes; none of no nodes."""
    if not len(nodes):
        return NO_LABELS
    tree = columns.tree
    if len(nodes) <= FEW:
        return with_classes(frozenset(named(tree, nodes.tolist())))
    kinds, labels = columns.kind[nodes], columns.label[nodes]
    present = np.zeros(len(tree.names), dtype=np.bool_)
    present[labels[(kinds == ELEMENT) | (kinds == ATTRIBUTE)]] = True
    found = [tree.names[number] for number in np.flatnonzero(present).tolist()]
    found += [label for kind, label in LABELS_BY_KIND.items() if (kinds == kind).any()]
    return with_classes(frozenset(found))


def labels_above(columns: Columns, places: Handles) -> tuple[Labels, Depths]:
    """The labels of places and of all nodes above them; how deep the places stand."""
    if not len(places):
        return NO_LABELS, frozenset()
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
    """The same one by one."""
    labels, depths = _walked_up(tree, places)
    return with_classes(frozenset(labels)), frozenset(depths)


def _walked_up(tree: Tree, places: Iterable[int]) -> tuple[set[str], set[int]]:
    """Level by level, each node of a level once: places soon have their way in common."""
    kinds, numbers, parent = tree.kind_column, tree.label_column, tree.parent_column
    found, named_by, depths = set[str](), set[int](), set[int]()
    at, level = set(places), 0
    while at:
        if DOCUMENT_NODE in at:
            depths.add(level)
            at.discard(DOCUMENT_NODE)
        for node in at:
            kind = kinds[node]
            if kind == ELEMENT or kind == ATTRIBUTE:
                named_by.add(numbers[node])
            elif kind in LABELS_BY_KIND:
                found.add(LABELS_BY_KIND[kind])
        at = {parent[node] for node in at}
        level += 1
    return found | {tree.names[number] for number in named_by}, depths


def named(tree: Tree, nodes: Iterable[int]) -> Iterable[str]:
    """The labels of nodes that have one, as often as they come."""
    kinds, labels, names = tree.kind_column, tree.label_column, tree.names
    for node in nodes:
        kind = kinds[node]
        if kind == ELEMENT or kind == ATTRIBUTE:
            yield names[labels[node]]
        elif kind in LABELS_BY_KIND:
            yield LABELS_BY_KIND[kind]


def changed_labels(tree: Tree, delta: Delta) -> Labels:
    """The labels that renamed nodes had and will have; those of texts, comments and instructions
    where one is another."""
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
    """Which pattern nodes the labels of a delta and of what stands above it can match.

    And which can be topmost in a delta: that is a child of a place (P5 3.8: ids know their paths).
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
    """The nodes that can be in the delta of some term: those worth looking at."""
    found: set[int] = set()
    for number in facts.matched - facts.barred:
        inside = shape.subpatterns[number]
        if facts.matched.issuperset(inside) and facts.above.issuperset(shape.above[number]):
            found |= set(inside)
    return frozenset(found)


@lru_cache(maxsize=4096)
def may_turn(shape: Shape, above: Labels, changed: Labels) -> bool:
    """Whether a node that stays may come into a relation of the view, or leave it."""
    return any(
        node.wanted in changed or (node.reads_below and node.wanted in above)
        for node in shape.nodes[1:]
    )


@lru_cache(maxsize=4096)
def may_turn_guards(shape: Shape, moved: Moved) -> bool:
    """Whether the conditions at the document node may hold no more after an update, or again.

    What they ask for is a view of its own, and the update concerns it.
    """
    return any(
        may_concern(asked, moved) or may_turn_guards(asked, moved) for asked in shape.guarding
    )


@lru_cache(maxsize=4096)
def may_concern(shape: Shape, moved: Moved) -> bool:
    """Whether an update may move a row of the view."""
    return bool(
        asked_of(shape, facts_of(shape, moved.added, moved.above, moved.depths))
        or asked_of(shape, facts_of(shape, moved.removed, moved.above, moved.depths))
        or may_turn(shape, moved.above, moved.changed)
    )
