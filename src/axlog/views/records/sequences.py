"""The children of every node as balanced trees that support insertions and deletions.

Each document node is a node of one such tree, in the order of its siblings. The tree is a treap:
its priorities are a fixed hash of the handles. Its depth is therefore logarithmic for any sequence
of updates, and the same handles give the same tree. Law: every node holds the product of its left
part, itself and its right part:

    total(x) = total(left(x)) · own(x) · total(right(x))

`times` is any associative operation on integers, with the unit 0. The trees are columns, not
objects: five integers per document node. (Paper 4, section 5.1.)
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

NONE = -1
UNKNOWN = -1


def priority(handle: int) -> int:
    """A pseudorandom number that depends only on the handle."""
    mixed = (handle ^ handle >> 16) * 0x45D9F3B & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 16) * 0x45D9F3B & 0xFFFFFFFF
    return (mixed ^ mixed >> 16) << 32 | handle


class Sequences:
    """One balanced tree for the children of every document node that has children."""

    def __init__(self, times: Callable[[int, int], int], is_seen: bool = False) -> None:
        self._times = times
        self.seen = array("q") if is_seen else None
        """A number for each total that a reader may set; UNKNOWN after the total changed."""
        self.left = array("i")
        self.right = array("i")
        self.up = array("i")
        self.own = array("i")
        self.total = array("i")
        self.top: dict[int, int] = {}  # from a document node to the top of the tree of its children
        self.steps = 0  # nodes whose total was computed

    def reserve(self, handles: int) -> None:
        """Make room for handles up to this number."""
        more = handles - len(self.own)
        if more > 0:
            for column, value in ((self.left, NONE), (self.right, NONE), (self.up, NONE)):
                column.extend(array("i", [value]) * more)
            for column in (self.own, self.total):
                column.extend(array("i", [0]) * more)
            if self.seen is not None:
                self.seen.extend(array("q", [UNKNOWN]) * more)

    def below(self, parent: int) -> int:
        """The product over the children of a document node."""
        top = self.top.get(parent, NONE)
        return self.total[top] if top != NONE else 0

    # Changing ---------------------------------------------------------------------------------

    def build(self, parent: int, children: Iterable[int]) -> None:
        """Build the tree of children whose own values are set, in one pass (a Cartesian tree)."""
        left, right, up = self.left, self.right, self.up
        spine: list[int] = []
        ranks: list[int] = []
        for child in children:
            rank = priority(child)
            last = NONE
            while ranks and ranks[-1] < rank:
                last = spine.pop()
                ranks.pop()
                self._sum(last)
            left[child], right[child] = last, NONE
            if last != NONE:
                up[last] = child
            up[child] = spine[-1] if spine else NONE
            if spine:
                right[spine[-1]] = child
            spine.append(child)
            ranks.append(rank)
        if spine:
            self.top[parent] = spine[0]
        else:
            self.top.pop(parent, None)
        for node in reversed(spine):
            self._sum(node)

    def insert(self, parent: int, after: int, node: int) -> None:
        """Insert a child after another, or first (after NONE), and recompute totals to the top."""
        self.climb(self._insert(parent, after, node), False)

    def _insert(self, parent: int, after: int, node: int) -> int:
        left, right, up = self.left, self.right, self.up
        left[node] = right[node] = NONE
        top = self.top.get(parent, NONE)
        if top == NONE:
            up[node] = NONE
            self.top[parent] = node
            return node
        at = top if after == NONE else right[after]
        if at == NONE:
            right[after] = node
            up[node] = after
        else:
            while left[at] != NONE:
                at = left[at]
            left[at] = node
            up[node] = at
        return self._rise(parent, node)

    def _rise(self, parent: int, node: int) -> int:
        """Rotate a new leaf up to the place of its priority."""
        rank = priority(node)
        while True:
            above = self.up[node]
            if above == NONE:
                self.top[parent] = node
                return node
            if priority(above) > rank:
                return node
            self._rotate(node, above)
            self._sum(above)  # it is complete now; the climb computes the total of the new leaf

    def _rotate(self, node: int, above: int) -> None:
        left, right, up = self.left, self.right, self.up
        near, far = (right, left) if left[above] == node else (left, right)
        moved = near[node]
        far[above] = moved
        if moved != NONE:
            up[moved] = above
        near[node] = above
        over = up[above]
        up[node], up[above] = over, node
        if over != NONE:
            (left if left[over] == above else right)[over] = node

    def remove(self, parent: int, node: int) -> None:
        """Remove a child, and recompute totals to the top."""
        self.climb(self._remove(parent, node), False)

    def _remove(self, parent: int, node: int) -> int:
        """Remove a child; return the lowest node whose total must be recomputed, or NONE."""
        left, right, up = self.left, self.right, self.up
        lowest = up[node]
        hang = up[node]
        is_left = hang != NONE and left[hang] == node
        one, other = left[node], right[node]
        while one != NONE or other != NONE:
            take_one = other == NONE or (one != NONE and priority(one) > priority(other))
            taken = one if take_one else other
            if hang == NONE:
                self.top[parent] = taken
            elif is_left:
                left[hang] = taken
            else:
                right[hang] = taken
            up[taken] = hang
            if one == NONE or other == NONE:
                break
            lowest, hang, is_left = taken, taken, not take_one
            if take_one:
                one = right[taken]
            else:
                other = left[taken]
        else:
            if hang == NONE:
                del self.top[parent]
            elif is_left:
                left[hang] = NONE
            else:
                right[hang] = NONE
        left[node] = right[node] = up[node] = NONE
        return lowest

    def climb(self, node: int, stop_early: bool = True) -> bool:
        """Recompute totals from a node to the top; return whether to continue above it.

        An unchanged total ends the climb, unless a reader uses `seen`.
        """
        total, up = self.total, self.up
        stop_early = stop_early and self.seen is None
        while node != NONE:
            old = total[node]
            self._sum(node)
            if stop_early and total[node] == old:
                return False
            node = up[node]
        return True

    def _sum(self, node: int) -> None:
        self.steps += 1
        one, other = self.left[node], self.right[node]
        value = self.own[node]
        if one != NONE:
            value = self._times(self.total[one], value)
        if other != NONE:
            value = self._times(value, self.total[other])
        self.total[node] = value
        if self.seen is not None:
            self.seen[node] = UNKNOWN

    def __sizeof__(self) -> int:
        """Bytes of the columns."""
        columns = [self.left, self.right, self.up, self.own, self.total]
        if self.seen is not None:
            columns.append(self.seen)
        return sum(column.__sizeof__() for column in columns) + self.top.__sizeof__()
