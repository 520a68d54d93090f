"""Builders of pattern branches: mutable while a query is compiled, immutable after `build()`.

An XQuery variable names a node, and any later clause can add conditions and paths to that node. So
the whole query is compiled before the first branch is built.
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
class NodeBuilder:
    """Builds a pattern node."""

    axis: Axis
    test: Test
    name: str | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    branches: list[BranchBuilder] = field(default_factory=list)

    def add(self, items: Iterable[Condition]) -> None:
        """Add conditions that must hold at this node."""
        for item in items:
            if isinstance(item, Comparison):
                self.comparisons.append(item)
            else:
                self.branches.append(item)

    def build(self) -> PatternNode:
        below = tuple(branch.build() for branch in self.branches)
        return PatternNode(self.axis, self.test, self.name, tuple(self.comparisons), below)


@dataclass(eq=False, slots=True)
class ConjunctionBuilder:
    """Conditions without a node of their own: of the whole query, an alternative or a `not`.

    `is_root`: they hold at the document node, whose string value is that of the root element.
    """

    is_root: bool
    items: list[Condition] = field(default_factory=list)

    def add(self, items: Iterable[Condition]) -> None:
        self.items += items

    def build(self) -> tuple[Branch, ...]:
        return tuple(
            _compared(item, self.is_root) if isinstance(item, Comparison) else item.build()
            for item in self.items
        )


def _compared(comparison: Comparison, is_root: bool) -> PatternNode:
    if is_root:
        return PatternNode(Axis.CHILD, Wildcard(), comparisons=(comparison,))
    return PatternNode(Axis.SELF, AnyNode(), comparisons=(comparison,))


@dataclass(eq=False, slots=True)
class OrBuilder:
    """Builds an `or` of two or more alternatives."""

    alternatives: Sequence[ConjunctionBuilder]

    def build(self) -> Or:
        return Or(tuple(alternative.build() for alternative in self.alternatives))


@dataclass(eq=False, slots=True)
class NotBuilder:
    """Builds a `not`."""

    inside: ConjunctionBuilder

    def build(self) -> Not:
        return Not(self.inside.build())


@dataclass(eq=False, slots=True)
class CollectBuilder:
    """Builds a `collect`."""

    node: NodeBuilder

    def build(self) -> Collect:
        return Collect(self.node.build())


BranchBuilder: TypeAlias = NodeBuilder | OrBuilder | NotBuilder | CollectBuilder
Condition: TypeAlias = BranchBuilder | Comparison
"""A condition on a node: a branch below it, or a comparison of its value."""
Anchor: TypeAlias = NodeBuilder | ConjunctionBuilder
"""A builder that conditions can be added to."""
Conditions: TypeAlias = list[Condition] | None
"""Conditions that must all hold: an empty list always holds, None never does."""


def nothing(name: str | None = None) -> NodeBuilder:
    """A node that no document has; it stands for a path that is statically empty."""
    never = NotBuilder(ConjunctionBuilder(False, [NodeBuilder(Axis.SELF, AnyNode())]))
    return NodeBuilder(Axis.CHILD, Wildcard(), name, branches=[never])


def without_parent() -> NotBuilder:
    """The condition that an element is the root element."""
    return NotBuilder(ConjunctionBuilder(False, [NodeBuilder(Axis.PARENT, Wildcard())]))
