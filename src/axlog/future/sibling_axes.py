"""Truth of patterns with sibling axes, where the siblings can no longer change.

Streams insert just before their calls, and calls are anywhere among siblings: in which order data
stands is only known where no more of it comes. An element is *settled* if no call is open below its
parent. Its siblings, and all below them, stay as they are, so a step along a sibling axis from it
holds or does not hold, for good. The truth lies between two patterns without sibling axes:

    least   only settled elements with the required siblings match
    most    siblings may stand in any order; settled elements without the required ones do not match

If some future makes `least` true, the pattern is POSSIBLE. If none makes `most` true, it is NEVER.
Otherwise the question is refused (AX503): siblings that decide it may still come.

The pattern has no row at present; outputs do not matter. Not decided, too: reverse axes, sibling
axes in `or` and `not`, and variables or times in what a sibling axis leads to. (Paper 4 maintains
such patterns and asks no questions about the future.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from axlog.document import pending
from axlog.document.operations import Attribute, Insert, Rename, Where
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.node_tests import holds
from axlog.future.truth import Outlook
from axlog.query.pattern import (
    Axis,
    Branch,
    Name,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    nodes_of,
)
from axlog.query.truth import Truth

SIBLINGS = frozenset(
    {Axis.NEXT_SIBLING, Axis.FOLLOWING_SIBLING, Axis.PREVIOUS_SIBLING, Axis.PRECEDING_SIBLING}
)
Change = Callable[[PatternNode, int], Iterable[PatternNode]]
"""Makes one element with sibling steps, by its number, into elements without."""
_MARK, _NONE = "axlog-settled", "axlog-none"


def has_sibling_axes(pattern: Pattern) -> bool:
    """Whether some step leads to a sibling."""
    return any(node.axis in SIBLINGS for node in pattern.nodes())


def truth_over_siblings(tree: Tree, pattern: Pattern) -> Truth:
    """The truth of a pattern with sibling axes that has no row now; AX503 if it is not decided."""
    if not tree.calls():
        return Truth.NEVER
    asking = _Asking(tree, pattern)
    if asking.least() is not Truth.NEVER:
        return Truth.POSSIBLE
    if asking.most() is Truth.NEVER:
        return Truth.NEVER
    raise UndecidedError(
        "AX503",
        "siblings that a sibling axis of the query leads to may still come",
        advice="the truth is decided where no call is open below their parent",
    )


class _Asking:
    """The two patterns without sibling axes, and the documents that they are asked of."""

    def __init__(self, tree: Tree, pattern: Pattern) -> None:
        self._tree = tree
        self._pattern = replace(pattern, outputs=())
        self._beside = [node for node in pattern.nodes() if any(map(_is_sibling, node.branches))]
        self._check()
        self._settled = {
            number: [n for n in tree.partition(str(_label(node))) if self._is_settled(n)]
            for number, node in enumerate(self._beside)
        }

    def _check(self) -> None:
        sibling_steps = sum(node.axis in SIBLINGS for node in self._pattern.nodes())
        led_to = [b for node in self._beside for b in node.branches if _is_sibling(b)]
        inner = [node for branch in led_to for node in nodes_of(branch)]
        times = [each for each in self._pattern.where if isinstance(each, TimeConstraint)]
        used = {name for each in times for _, name in each.terms}
        why = None
        axes = {node.axis for node in self._pattern.nodes()}
        if not all(axis.is_downward or axis in SIBLINGS for axis in axes):
            why = "it has reverse axes"
        elif sibling_steps != sum(node.axis in SIBLINGS for node in inner):
            why = "a sibling axis is inside `or` or `not`, or starts at the document"
        elif any(_label(node) is None for node in self._beside):
            why = "a sibling axis starts at a node without a fixed name"
        elif any(node.axis not in (Axis.CHILD, Axis.DESCENDANT) for node in self._beside):
            why = "a sibling axis starts at a node that is itself a sibling, or an attribute"
        elif any(isinstance(n.test, Variable) or n.name in used or _compares(n) for n in inner):
            why = "a sibling axis leads to a variable, or to a time that is compared"
        if why is not None:
            raise UndecidedError("AX503", f"the truth over sibling axes is not decided: {why}")

    def _is_settled(self, node: int) -> bool:
        """Whether no call is open below the parent of a node."""
        tree = self._tree
        parent = tree.parent(node)
        return parent != DOCUMENT_NODE and not any(
            tree.kind_column[below] == NodeKind.CALL for below in tree.subtree(parent)
        )

    def _has_siblings(self, number: int, node: int) -> bool:
        beside = filter(_is_sibling, self._beside[number].branches)
        return all(holds(self._tree, node, branch) for branch in beside)

    def least(self) -> Truth:
        """Marks the settled elements that have the siblings. A new element has no such mark: it is
        younger than the clock of the question."""
        tree = self._tree.copied()
        marks = [
            Insert(Where.INTO, node, (Attribute(f"{_MARK}-{number}", "1"),))
            for number, nodes in self._settled.items()
            for node in nodes
            if self._has_siblings(number, node)
        ]
        if not marks:
            return Truth.NEVER
        pending.apply(tree, marks)
        clock = tree.clock
        tree.clock = clock + 1
        where = list(self._pattern.where)
        names = {}
        for number, node in enumerate(self._beside):
            name = node.name or f"{_MARK}-{number}".replace("-", "_")
            names[number] = name
            where.append(TimeConstraint(((1, name),), "<=", clock))

        def marked(node: PatternNode, number: int) -> Iterator[PatternNode]:
            kept = tuple(b for b in node.branches if not _is_sibling(b))
            mark = PatternNode(Axis.ATTRIBUTE, Name(f"{_MARK}-{number}"))
            yield replace(node, name=names[number], branches=(*self._within(kept, marked), mark))

        branches = self._within(self._pattern.branches, marked)
        return Outlook(tree, replace(self._pattern, branches=branches, where=tuple(where))).truth

    def most(self) -> Truth:
        """Siblings in any order, without the settled elements that lack them."""
        tree = self._tree.copied()
        tests = [node.test for node in self._pattern.nodes()]
        is_plain = all(isinstance(test, Name) for test in tests)
        labels = [test.label for test in tests if isinstance(test, Name)]
        renames = [
            Rename(node, _NONE)
            for number, nodes in self._settled.items()
            if is_plain and labels.count(str(_label(self._beside[number]))) == 1
            for node in nodes
            if not self._has_siblings(number, node)
        ]
        if renames:
            pending.apply(tree, renames)

        def loose(node: PatternNode, number: int) -> Iterator[PatternNode]:
            kept = tuple(b for b in node.branches if not _is_sibling(b))
            yield replace(node, branches=self._within(kept, loose))
            for branch in node.branches:
                if isinstance(branch, PatternNode) and _is_sibling(branch):
                    yield from _loosened(branch, node.axis)

        branches = self._within(self._pattern.branches, loose)
        return Outlook(tree, replace(self._pattern, branches=branches)).truth

    def _within(self, branches: Iterable[Branch], change: Change) -> tuple[Branch, ...]:
        """The branches with every element that has sibling steps changed."""
        found: list[Branch] = []
        for branch in branches:
            if not isinstance(branch, PatternNode):
                found.append(branch)
            elif branch in self._beside:
                found += change(branch, self._beside.index(branch))
            else:
                found.append(replace(branch, branches=self._within(branch.branches, change)))
        return tuple(found)


def _is_sibling(branch: Branch) -> bool:
    return isinstance(branch, PatternNode) and branch.axis in SIBLINGS


def _label(node: PatternNode) -> str | None:
    return node.test.label if isinstance(node.test, Name) else None


def _compares(node: PatternNode) -> bool:
    return any(isinstance(each.operand, Variable) for each in node.comparisons)


def _loosened(branch: PatternNode, axis: Axis) -> Iterator[PatternNode]:
    """What a sibling step leads to, as a child or descendant of the common parent or above."""
    kept = tuple(b for b in branch.branches if not _is_sibling(b))
    yield replace(branch, axis=axis, branches=kept)
    for inner in branch.branches:
        if isinstance(inner, PatternNode) and _is_sibling(inner):
            yield from _loosened(inner, axis)
