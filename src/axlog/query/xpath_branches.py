"""Patterns while a query text is being read: branches that can still be added to.

An XQuery variable names a node that later clauses hang conditions and further paths on, wherever
they stand in the text; so nodes grow until the text is at its end, and are frozen then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from axlog.query.pattern import (
    AnyNode,
    Axis,
    Branch,
    Collect,
    Comparison,
    Not,
    Or,
    PatternNode,
    Test,
    Wildcard,
)


@dataclass(eq=False, slots=True)
class Growing:
    """A pattern node to be."""

    axis: Axis
    test: Test
    name: str | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    branches: list[Grown] = field(default_factory=list)

    def take(self, items: Iterable[Item]) -> None:
        """Let conditions hold at this node."""
        for item in items:
            if isinstance(item, Comparison):
                self.comparisons.append(item)
            else:
                self.branches.append(item)

    def freeze(self) -> PatternNode:
        below = tuple(branch.freeze() for branch in self.branches)
        return PatternNode(self.axis, self.test, self.name, tuple(self.comparisons), below)


@dataclass(eq=False, slots=True)
class Conjunction:
    """Conditions at a node that is not there to take them: the root's, an alternative's, a not's.

    `is_root`: they stand at the document node, whose string value is the root element's.
    """

    is_root: bool
    items: list[Item] = field(default_factory=list)

    def take(self, items: Iterable[Item]) -> None:
        self.items += items

    def freeze(self) -> tuple[Branch, ...]:
        return tuple(
            _compared(item, self.is_root) if isinstance(item, Comparison) else item.freeze()
            for item in self.items
        )


def _compared(comparison: Comparison, is_root: bool) -> PatternNode:
    if is_root:
        return PatternNode(Axis.CHILD, Wildcard(), comparisons=(comparison,))
    return PatternNode(Axis.SELF, AnyNode(), comparisons=(comparison,))


@dataclass(eq=False, slots=True)
class Choice:
    """An `or` to be, of two alternatives or more."""

    alternatives: Sequence[Conjunction]

    def freeze(self) -> Or:
        return Or(tuple(alternative.freeze() for alternative in self.alternatives))


@dataclass(eq=False, slots=True)
class Absence:
    """A `not` to be."""

    inside: Conjunction

    def freeze(self) -> Not:
        return Not(self.inside.freeze())


@dataclass(eq=False, slots=True)
class Gathering:
    """A `collect` to be."""

    node: Growing

    def freeze(self) -> Collect:
        return Collect(self.node.freeze())


Grown: TypeAlias = Growing | Choice | Absence | Gathering
Item: TypeAlias = Grown | Comparison
Holder: TypeAlias = Growing | Conjunction


def nothing(name: str | None = None) -> Growing:
    """A node that no document has: how what is statically empty stands in a pattern."""
    never = Absence(Conjunction(False, [Growing(Axis.SELF, AnyNode())]))
    return Growing(Axis.CHILD, Wildcard(), name, branches=[never])


def no_parent() -> Absence:
    """At an element: it is the root element."""
    return Absence(Conjunction(False, [Growing(Axis.PARENT, Wildcard())]))
