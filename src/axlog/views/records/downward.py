"""Downward patterns with `and`, `or` and `not`: the records S and D with their counts.

    S(u)          the steps that hold at u
    countS(u, q)  the children of u at which q holds
    D(u)          the steps that hold at some descendant of u: countS > 0 or countD > 0
    countD(u, q)  the children u' of u with q in D(u')

S and D are bit sets, one integer each. The counts are in one array for every node with children.
An update adjusts the counts on the path to the document node and ends where neither S nor D
changes: O(depth x |Q|), independent of the width. No balanced trees are needed, because the order
of siblings does not matter here. Law: S and D of every node equal their definitions after every
update. (Paper 4, theorem 4.1.)
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, NONE, Tree
from axlog.views.records.forest import climb
from axlog.views.records.question import Conjunction, Either, Neither, Question, Way

_DEEP = frozenset({Way.DESCENDANT, Way.DESCENDANT_OR_SELF})
DOWNWARD = frozenset({Way.HERE, Way.SELF, Way.CHILD}) | _DEEP


class DownwardRecords:
    """The records of every node of a document, for one Boolean downward question."""

    def __init__(self, tree: Tree, question: Question, letter: Callable[[int], int]) -> None:
        self.tree = tree
        self.question = question
        self.letter = letter
        self.root = len(question.steps) - 1
        ways = [step.way for step in question.steps]
        self._counted = sum(
            1 << n for n, way in enumerate(ways) if way is Way.CHILD or way in _DEEP
        )
        self._deep = sum(1 << n for n, way in enumerate(ways) if way in _DEEP)
        self._here: list[int] = []  # S
        self._below: list[int] = []  # D
        self._counts: dict[int, array[int]] = {}  # countS, then countD
        self._known: dict[tuple[int, int, int], int] = {}
        self.steps = 0  # records computed and counts adjusted
        self._reserve()
        self._load(DOCUMENT_NODE)

    def _reserve(self) -> None:
        more = len(self.tree.kind_column) - len(self._here)
        self._here += [0] * more
        self._below += [0] * more

    def answer(self) -> bool:
        return bool(self._here[DOCUMENT_NODE] >> self.root & 1)

    def _load(self, root: int) -> None:
        """Compute the records of a subtree, bottom-up, in one pass."""
        tree = self.tree
        order = [root]
        for node in order:
            order += tree.children(node)
        for node in order:
            self._here[node] = self._below[node] = 0
            self._counts.pop(node, None)
        for node in reversed(order):
            self._make(node)
            if node != root:
                self._move(tree.parent(node), self._here[node], self._below[node])

    # One record -----------------------------------------------------------------------------------

    def _make(self, node: int) -> tuple[int, int]:
        """Compute S and D of a node from its counts; return the bits that changed in each."""
        self.steps += 1
        children = deeper = 0
        counts = self._counts.get(node)
        if counts is not None:
            width = self.root + 1
            for number in range(width):
                children |= (counts[number] > 0) << number
                deeper |= (counts[width + number] > 0) << number
        below = (children | deeper) & self._deep
        here = self._holding(self.letter(node), children, below)
        changed = here ^ self._here[node], below ^ self._below[node]
        self._here[node], self._below[node] = here, below
        return changed

    def _holding(self, letter: int, children: int, below: int) -> int:
        key = (letter, children, below)
        found = self._known.get(key)
        if found is None:
            found = 0
            for number, step in enumerate(self.question.steps):
                if letter >> number & 1 and self._all(step.items, found, children, below):
                    found |= 1 << number
            self._known[key] = found
        return found

    def _all(self, items: Conjunction, here: int, children: int, below: int) -> bool:
        for item in items:
            if isinstance(item, Either):
                holds = any(self._all(i, here, children, below) for i in item.alternatives)
            elif isinstance(item, Neither):
                holds = not self._all(item.inside, here, children, below)
            else:
                way = self.question.steps[item].way
                looked = {Way.SELF: here, Way.CHILD: children, Way.DESCENDANT: below}
                holds = bool(looked.get(way, here | below) >> item & 1)
            if not holds:
                return False
        return True

    def _move(self, parent: int, here: int, below: int, sign: int = 1) -> None:
        """Add S and D of a child to the counts of its parent, or subtract them."""
        here &= self._counted
        if not (here or below):
            return
        width = self.root + 1
        counts = self._counts.get(parent)
        if counts is None:
            counts = self._counts[parent] = array("i", [0]) * (2 * width)
        for bits, start in ((here, 0), (below, width)):
            while bits:
                lowest = bits & -bits
                counts[start + lowest.bit_length() - 1] += sign
                self.steps += 1
                bits ^= lowest

    # An update ------------------------------------------------------------------------------------

    def update(
        self, removed: Iterable[tuple[int, int]], added: Iterable[int], changed: Iterable[int]
    ) -> None:
        """Follow an applied delta; removed roots are given with their former parents."""
        tree = self.tree
        self._reserve()
        dirty = set(changed)
        gone = [(root, parent) for root, parent in removed if tree.kind_column[root] != ATTRIBUTE]
        for root, parent in gone:
            self._move(parent, self._here[root], self._below[root], -1)
            dirty.add(parent)
        for root, _ in gone:
            for dead in tree.subtree(root):
                self._counts.pop(dead, None)
                dirty.discard(dead)
        for root in added:
            if tree.kind_column[root] != ATTRIBUTE:
                self._load(root)
                self._move(tree.parent(root), self._here[root], self._below[root])
                dirty.add(tree.parent(root))
        climb(tree, dirty, self._remake)

    def _remake(self, node: int) -> bool:
        """Recompute the records of a node and its parent's counts; return whether these changed."""
        was_here, was_below = self._here[node], self._below[node]
        here, below = self._make(node)
        parent = self.tree.parent(node)
        if parent == NONE or not (here & self._counted or below):
            return False
        self._move(parent, here & ~was_here, below & ~was_below)
        self._move(parent, here & was_here, below & was_below, -1)
        return True

    def __sizeof__(self) -> int:
        """Bytes of the records: two references per node, and the counts."""
        counts = sum(each.__sizeof__() for each in self._counts.values())
        return self._here.__sizeof__() + self._below.__sizeof__() + counts
