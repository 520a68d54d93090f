"""Rows on their way up a tree: the bags that subtrees pass to the nodes above them."""

from __future__ import annotations

from dataclasses import dataclass, field

from axlog.evaluate.joins import Bag, add_all
from axlog.query.compile import Relation
from axlog.query.pattern import Axis

Bags = dict[Relation, Bag]
_EMPTY: Bag = {}


@dataclass(slots=True)
class Rising:
    """The rows that a subtree passes to its parent: those of its root, and of all its nodes."""

    here: Bags = field(default_factory=dict)
    everywhere: Bags = field(default_factory=dict)


@dataclass(slots=True)
class Gathered:
    """The rows passed up to a node: the sums over its children and over all nodes below it."""

    children: Bags = field(default_factory=dict)
    descendants: Bags = field(default_factory=dict)

    def part(self, axis: Axis, relation: Relation, here: Bags) -> Bag:
        """The rows of an edge at the node; `here` holds the rows of the node itself."""
        if axis is Axis.CHILD or axis is Axis.ATTRIBUTE:
            return self.children.get(relation, _EMPTY)
        if axis is Axis.DESCENDANT:
            return self.descendants.get(relation, _EMPTY)
        if axis is Axis.SELF:
            return here.get(relation, _EMPTY)
        both = dict(self.descendants.get(relation, _EMPTY))
        add_all(both, here.get(relation, _EMPTY))
        return both


def merge(into: Bags, more: Bags) -> None:
    """Add bags to bags."""
    for relation, bag in more.items():
        known = into.get(relation)
        if known is None:
            into[relation] = dict(bag)
        else:
            add_all(known, bag)
