"""A document under an algebra of forests, kept through updates: O(depth x log width) steps each.

The law, which holds for every node u after every update:

    own(u)   = node(letter(u), below(u))        below(u) = the product of own over u's children

An update changes letters, or inserts and deletes subtrees. Then the own value of every node on the
path to the document node is recomputed, and so is the path in the balanced tree of its parent. A
new subtree is one bulk step: its summaries are computed bottom-up in a single pass. Where a value
does not change, no value above it changes, and the climb ends. With `is_seen` the climb continues,
so that a reader that descends from the top finds the changed parts. A tree that no step of the
pattern can match is added to the children of its parent, and no value above is touched (law 8).
(Paper 4, theorems 3.2 and 6.1.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Protocol

from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, NONE, NodeKind, Tree
from axlog.views.records.sequences import Sequences

Letter = Callable[[int], int]
NEUTRAL = 0
"""The summary of a tree that equals that of no tree: it has no effect beside or above it."""
_PARENTS = (ELEMENT, int(NodeKind.DOCUMENT))


class Algebra(Protocol):
    """Summaries of forests, by number; 0 is the empty forest."""

    def join(self, one: int, other: int) -> int: ...

    def node(self, letter: int, is_element: bool, below: int) -> int: ...


class Forest:
    """The summaries of all subtrees, and of the runs of siblings in the balanced trees."""

    def __init__(self, tree: Tree, algebra: Algebra, letter: Letter, is_seen: bool = False) -> None:
        self.tree = tree
        self.algebra = algebra
        self.letter = letter
        self.sequences = Sequences(algebra.join, is_seen)
        self._climbs_always = is_seen
        self.nodes = 0  # nodes whose own summary was computed
        self.sequences.reserve(len(tree.kind_column))
        self._load(DOCUMENT_NODE)

    @property
    def whole(self) -> int:
        """The summary of the document."""
        return self.sequences.own[DOCUMENT_NODE]

    @property
    def steps(self) -> int:
        """Summaries computed since the start: of nodes, and in balanced trees."""
        return self.nodes + self.sequences.steps

    def _load(self, root: int) -> None:
        """Compute the summaries of a whole subtree, bottom-up."""
        kinds, children = self.tree.kind_column, self.tree.children
        build = self.sequences.build
        waiting = [root]
        order = []
        while waiting:
            node = waiting.pop()
            order.append(node)
            if kinds[node] in _PARENTS:
                waiting += children(node)
        for node in reversed(order):
            if kinds[node] in _PARENTS:
                build(node, children(node))
            self._make(node)

    def _make(self, node: int) -> bool:
        """Compute the own summary of a node; return whether it changed."""
        self.nodes += 1
        sequences = self.sequences
        is_element = self.tree.kind_column[node] == ELEMENT
        value = self.algebra.node(self.letter(node), is_element, sequences.below(node))
        changed = value != sequences.own[node]
        sequences.own[node] = value
        return changed

    # An update ------------------------------------------------------------------------------------

    def update(
        self, removed: Iterable[tuple[int, int]], added: Iterable[int], changed: Iterable[int]
    ) -> None:
        """Follow an applied delta; removed roots are given with their former parents."""
        tree, sequences = self.tree, self.sequences
        sequences.reserve(len(tree.kind_column))
        dirty = set(changed)
        gone = [(root, parent) for root, parent in removed if tree.kind_column[root] != ATTRIBUTE]
        for root, parent in gone:
            sequences.remove(parent, root)
            if sequences.own[root] != NEUTRAL:
                dirty.add(parent)
        for root, _ in gone:
            for dead in tree.subtree(root):
                sequences.top.pop(dead, None)
                dirty.discard(dead)
        new = {node for node in added if tree.kind_column[node] != ATTRIBUTE}
        for node in new:
            self._load(node)
        while new:
            dirty |= self._hang(next(iter(new)), new)
        climb(tree, dirty, self._remake)

    def _hang(self, node: int, new: set[int]) -> set[int]:
        """Insert a run of new siblings into the tree of their parent, in order.

        Returns the parent if one of them can affect it.
        """
        is_noticed = False
        tree = self.tree
        while tree.previous(node) in new:
            node = tree.previous(node)
        parent = tree.parent(node)
        while node in new:
            new.discard(node)
            is_noticed = is_noticed or self.sequences.own[node] != NEUTRAL
            before = tree.previous(node)
            if before != NONE and tree.kind_column[before] == ATTRIBUTE:
                before = NONE
            self.sequences.insert(parent, before, node)
            node = tree.next(node)
        return {parent} if is_noticed else set()

    def _remake(self, node: int) -> bool:
        """Recompute the summary of a node and of its run; return whether its parent may change."""
        changed = self._make(node)
        if self._climbs_always and self.sequences.own[node] != NEUTRAL:
            changed = True  # the selected nodes inside may differ
        return node != DOCUMENT_NODE and changed and self.sequences.climb(node)


def climb(tree: Tree, nodes: Iterable[int], remake: Callable[[int], bool]) -> None:
    """Call `remake` for nodes, the deepest first, and for the parents of those it is true for."""
    waiting = [(-sum(1 for _ in tree.ancestors(node)), node) for node in nodes]
    heapify(waiting)
    queued = {node for _, node in waiting}
    while waiting:
        depth, node = heappop(waiting)
        if remake(node):
            parent = tree.parent(node)
            if parent not in queued:
                queued.add(parent)
                heappush(waiting, (depth + 1, parent))
