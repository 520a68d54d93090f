"""The difference of two versions of a document: operations that turn the old one into the new one.

Elements are paired from the root down. The children of a pair are aligned in order. First, subtrees
that are equal are paired. Then, in the gaps between them, nodes with the same name and, if they
have one, the same id (`xml:id`, `id`). Remaining old nodes are deleted and remaining new nodes are
inserted. The difference of a pair is that of its attributes and children. A moved node is deleted
and inserted again. The result is simple rather than minimal; the time is about the sizes of the
documents plus that of the differing runs of children.

Law: `apply(old, diff(old, new)) == new` by canonical XML. Not detected: prefixes and namespace
declarations if the names are equal, the DOCTYPE, and white space that only an `xml:space` above the
inserted tree would keep.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from axlog.document.operations import (
    Attribute,
    Content,
    Delete,
    Insert,
    Item,
    Operation,
    ReplaceNode,
    ReplaceValue,
    Where,
)
from axlog.document.parser import parse
from axlog.document.serializer import serialise
from axlog.document.tree import ATTRIBUTE, CALL, DOCUMENT_NODE, ELEMENT, TEXT, NodeKind, Tree

ID_ATTRIBUTES = ("@{http://www.w3.org/XML/1998/namespace}id", "@id", "@ID")
MOST_CELLS = 250_000
"""Runs of children whose lengths have a larger product are not compared one by one."""

Pairs = list[tuple[int, int]]


def diff(old: Tree, new: Tree) -> list[Operation]:
    """Operations that turn the old tree into the new one.

    >>> from axlog.document.loader import load
    >>> [type(one).__name__ for one in diff(load("<r><a/><b/></r>"), load("<r><a/>x</r>"))]
    ['Insert', 'Delete']
    """
    return Difference(old, new).operations()


class Difference:
    """Two trees, with their equal subtrees."""

    def __init__(self, old: Tree, new: Tree) -> None:
        self.old = old
        self.new = new
        numbers: dict[Hashable, int] = {}
        self.old_content = _contents(old, numbers)
        self.new_content = _contents(new, numbers)

    def is_equal(self, old: int, new: int) -> bool:
        """Whether a subtree of the old tree equals one of the new tree."""
        return self.old_content[old] == self.new_content[new]

    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        pairs = [(DOCUMENT_NODE, DOCUMENT_NODE)]
        while pairs:
            old, new = pairs.pop()
            if not self.is_equal(old, new):
                found += self._attributes(old, new)
                found += self._children(old, new, pairs)
        return found

    # Attributes ---------------------------------------------------------------------------------

    def _attributes(self, old: int, new: int) -> Iterator[Operation]:
        before = {self.old.label(node): node for node in self.old.attributes(old)}
        values = {self.new.label(n): self.new.string_value(n) for n in self.new.attributes(new)}
        for label, node in before.items():
            if label not in values:
                yield Delete(node)
            elif values[label] != self.old.string_value(node):
                yield ReplaceValue(node, values[label])
        added = [Attribute(name[1:], value) for name, value in values.items() if name not in before]
        if added:
            yield Insert(Where.LAST, old, tuple(added))

    # Children -----------------------------------------------------------------------------------

    def _children(self, old: int, new: int, pairs: Pairs) -> Iterator[Operation]:
        """Operations on children; adds to `pairs` the elements to compare next."""
        before, after = list(self.old.children(old)), list(self.new.children(new))
        paired = self.aligned(before, after)
        kept = {i for i, _ in paired}
        stays = {j: before[i] for i, j in paired}
        yield from self._insertions(old, after, stays)
        for i, node in enumerate(before):
            if i not in kept:
                yield Delete(node)
        for i, j in paired:
            yield from self._pair(before[i], after[j], pairs)

    def _insertions(self, parent: int, after: list[int], stays: dict[int, int]) -> list[Operation]:
        """One insertion for each run of new children, after the remaining child before it."""
        found: list[Operation] = []
        anchor: tuple[Where, int] = (Where.FIRST, parent)
        run: list[Item] = []
        for j, node in enumerate(after):
            if j not in stays:
                run.append(self._item(node))
                continue
            if run:
                found.append(Insert(*anchor, tuple(run)))
                run = []
            anchor = (Where.AFTER, stays[j])
        if run:
            found.append(Insert(*anchor, tuple(run)))
        return found

    def _pair(self, old: int, new: int, pairs: Pairs) -> Iterator[Operation]:
        if self.is_equal(old, new):
            return
        if self.old.kind_column[old] == ELEMENT:
            pairs.append((old, new))
        elif self.old.kind_column[old] == CALL:
            yield ReplaceNode(old, self._content(new))
        else:
            yield ReplaceValue(old, self.new.string_value(new))

    def _content(self, node: int) -> Content:
        return (self._item(node),)

    def _item(self, node: int) -> Item:
        """A new node as an item of content."""
        if self.new.kind_column[node] == TEXT:
            return self.new.text(node)
        return parse(f"<_>{serialise(self.new, node)}</_>").root[0]

    # Alignment ----------------------------------------------------------------------------------

    def aligned(self, before: list[int], after: list[int]) -> Pairs:
        """Pairs of positions, ascending on both sides."""
        equal = common([self.old_content[n] for n in before], [self.new_content[n] for n in after])
        found: Pairs = []
        i = j = 0
        for at, other in (*equal, (len(before), len(after))):
            alike = common(
                [_likeness(self.old, node) for node in before[i:at]],
                [_likeness(self.new, node) for node in after[j:other]],
            )
            found += [(i + one, j + two) for one, two in alike]
            found.append((at, other))
            i, j = at + 1, other + 1
        return found[:-1]


def _likeness(tree: Tree, node: int) -> Hashable:
    """A key that is equal for two nodes if one can be changed into the other in place."""
    kind = tree.kind_column[node]
    if kind == ELEMENT:
        identities = [
            tree.string_value(a) for a in tree.attributes(node) if tree.label(a) in ID_ATTRIBUTES
        ]
        return kind, tree.label(node), tuple(identities)
    if kind == NodeKind.INSTRUCTION:
        return kind, tree.text(node).partition(" ")[0]
    return kind


def _contents(tree: Tree, numbers: dict[Hashable, int]) -> dict[int, int]:
    """A number for each node except attributes; equal subtrees have the same number."""
    kinds = tree.kind_column
    below: dict[int, list[int]] = {}
    found: dict[int, int] = {}
    for node in reversed(list(tree.subtree(DOCUMENT_NODE))):
        kind = kinds[node]
        parent = tree.parent_column[node]
        if kind == ATTRIBUTE or (parent >= 0 and kinds[parent] == ATTRIBUTE):
            continue
        key: Hashable
        if kind == ELEMENT or kind == NodeKind.DOCUMENT:
            attributes = frozenset(
                (tree.label(a), tree.string_value(a)) for a in tree.attributes(node)
            )
            key = (kind, tree.label(node), attributes, tuple(below.pop(node, ())))
        elif kind == CALL:
            key = (kind, tree.call(node).attributes)
        else:
            key = (kind, tree.text(node))
        found[node] = number = numbers.setdefault(key, len(numbers))
        if parent >= 0:
            below.setdefault(parent, []).append(number)
    return found


# Common subsequences ------------------------------------------------------------------------------


def common(one: Sequence[Hashable], two: Sequence[Hashable]) -> Pairs:
    """Positions of a long common subsequence: patience diff, exact on short runs.

    >>> common("abcd", "xbcy")
    [(1, 1), (2, 2)]
    """
    found: Pairs = []
    stack = [(0, len(one), 0, len(two))]
    while stack:
        i, i_end, j, j_end = stack.pop()
        while i < i_end and j < j_end and one[i] == two[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        while i < i_end and j < j_end and one[i_end - 1] == two[j_end - 1]:
            i_end, j_end = i_end - 1, j_end - 1
            found.append((i_end, j_end))
        if i == i_end or j == j_end:
            continue
        fixed = _ascending(_unique(one, two, i, i_end, j, j_end))
        if not fixed:
            if (i_end - i) * (j_end - j) <= MOST_CELLS:
                found += _longest(one, two, i, i_end, j, j_end)
            continue
        found += fixed
        for at, other in (*fixed, (i_end, j_end)):
            stack.append((i, at, j, other))
            i, j = at + 1, other + 1
    return sorted(found)


def _unique(
    one: Sequence[Hashable], two: Sequence[Hashable], i: int, i_end: int, j: int, j_end: int
) -> Pairs:
    """Pairs of the items that occur once on both sides."""
    counts, others = Counter(one[i:i_end]), Counter(two[j:j_end])
    places = {two[at]: at for at in range(j, j_end)}
    return [
        (at, places[one[at]])
        for at in range(i, i_end)
        if counts[one[at]] == 1 and others[one[at]] == 1
    ]


def _ascending(pairs: Pairs) -> Pairs:
    """A longest subsequence of the pairs that ascends on both sides."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, (_, other) in enumerate(pairs):
        pile = bisect_left(tops, other)
        before.append(ends[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(other)
            ends.append(at)
        else:
            tops[pile], ends[pile] = other, at
    found: Pairs = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _longest(
    one: Sequence[Hashable], two: Sequence[Hashable], i: int, i_end: int, j: int, j_end: int
) -> Pairs:
    """A longest common subsequence, by dynamic programming."""
    width = j_end - j
    rows = [[0] * (width + 1)]
    for at in range(i_end - 1, i - 1, -1):
        under = rows[-1]
        row = [0] * (width + 1)
        for column in range(width - 1, -1, -1):
            if one[at] == two[j + column]:
                row[column] = under[column + 1] + 1
            else:
                row[column] = max(row[column + 1], under[column])
        rows.append(row)
    rows.reverse()
    found: Pairs = []
    at = column = 0
    while at < i_end - i and column < width:
        if one[i + at] == two[j + column]:
            found.append((i + at, j + column))
            at, column = at + 1, column + 1
        elif rows[at + 1][column] >= rows[at][column + 1]:
            at += 1
        else:
            column += 1
    return found
