"""A document under an algebra of forests, kept through updates: O(depth x log width) steps each.

    own(u)   = node(letter(u), below(u))        below(u) = the product of own over u's children

An update changes letters, or takes and gives subtrees; then every node on the way to the document
node has its own value and the path in its parent's balanced tree worked out again (P4 theorem 6.1,
theorem 3.2). A new subtree is one bulk step: its summaries are made bottom-up in a single pass.
Where a value comes out as it was, nothing further up changes and the climb ends; with `is_seen` it
goes on, so that whoever reads the totals from the top finds the way to what changed. A tree that no
step of the pattern can notice is put into its parent's row and nothing above is touched (law 8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Protocol

from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, NONE, NodeKind, Tree
from axlog.views.records.sequences import Sequences

Letter = Callable[[int], int]
NEUTRAL = 0
"""A tree with the summary of no tree: beside and above it nobody can tell that it is there."""
_PARENTS = (ELEMENT, int(NodeKind.DOCUMENT))


class Algebra(Protocol):
    """Summaries of forests by number: 0 is the empty forest's."""

    def join(self, one: int, other: int) -> int: ...

    def node(self, letter: int, is_element: bool, below: int) -> int: ...


class Forest:
    """The summaries of every subtree and of every run of siblings that is a part of a tree."""

    def __init__(self, tree: Tree, algebra: Algebra, letter: Letter, is_seen: bool = False) -> None:
        self.tree = tree
        self.algebra = algebra
        self.letter = letter
        self.sequences = Sequences(algebra.join, is_seen)
        self._climbs_always = is_seen
        self.nodes = 0  # nodes whose own summary was worked out
        self.sequences.reserve(len(tree.kind_column))
        self._load(DOCUMENT_NODE)

    @property
    def whole(self) -> int:
        """The summary of the document."""
        return self.sequences.own[DOCUMENT_NODE]

    @property
    def steps(self) -> int:
        """Summaries worked out since the start: of nodes, and in balanced trees."""
        return self.nodes + self.sequences.steps

    def _load(self, root: int) -> None:
        """Summaries of a whole subtree, bottom-up."""
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
        """Work out a node's own summary; whether it changed."""
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
        """Follow a delta that was applied: removed roots come with the parents that they had."""
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
        self._settle(dirty)

    def _hang(self, node: int, new: set[int]) -> set[int]:
        """Put new siblings that stand in a row into their parent's tree, the first one first.

        The parent, if one of them can make a difference to it.
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

    def _settle(self, dirty: Iterable[int]) -> None:
        """Climb from everything that changed, the deepest first."""
        tree = self.tree
        waiting = [(-sum(1 for _ in tree.ancestors(node)), node) for node in dirty]
        heapify(waiting)
        queued = {node for _, node in waiting}
        while waiting:
            depth, node = heappop(waiting)
            changed = self._make(node)
            if self._climbs_always and self.sequences.own[node] != NEUTRAL:
                changed = True  # who is selected inside may be others than before
            if node != DOCUMENT_NODE and changed and self.sequences.climb(node):
                parent = tree.parent(node)
                if parent not in queued:
                    queued.add(parent)
                    heappush(waiting, (depth + 1, parent))
