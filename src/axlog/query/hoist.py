"""A rewriting pass: moves connectives up to the node where their shared variables are bound.

A `not` (or an `or` whose alternatives mention different variables) can be evaluated at a node only
if every variable and name that it shares with the rest of the pattern is bound at or below that
node. Otherwise the connective is moved to the node above, wrapped in the step down to its own node,
and tied to that node by identity: both have the same name.

    /r[a/$x]/c[not(b/$x)]    becomes    /r[a/$x][c#n][not(c#n[b/$x])]

Law: valuations and counts stay the same; the step down adds no choice, because its node is given.
A variable that is bound only outside an enclosing `not` cannot be reached this way; `compile.py`
declines such a pattern.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from axlog.query.pattern import (
    Branch,
    Collect,
    Constraint,
    Not,
    Or,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    branches_of,
)
from axlog.query.scopes import bound_names, bound_variables

Token = str
"""`$x` for a variable, `#t` for a node's name."""


def hoist(pattern: Pattern) -> Pattern:
    """The pattern with every connective at a node where it can be evaluated, if there is one."""
    if not any(map(_has_connective, pattern.branches)):
        return pattern
    outputs = frozenset(f"${o.of}" for o in pattern.outputs) | {f"#{o.of}" for o in pattern.outputs}
    outside = outputs.union(*(mentioned_by(constraint) for constraint in pattern.where))
    return replace(pattern, branches=_Hoister().conjunction(pattern.branches, outside))


def _has_connective(branch: Branch) -> bool:
    return not isinstance(branch, PatternNode) or any(map(_has_connective, branch.branches))


def mentions(branch: Branch) -> frozenset[Token]:
    """All variables and names that a branch binds or uses, at any depth."""
    return own_mentions(branch).union(*(mentions(below) for below in branches_of(branch)))


def own_mentions(branch: Branch) -> frozenset[Token]:
    """The variables and names that a branch itself binds or uses, without the branches below."""
    if isinstance(branch, PatternNode):
        return frozenset(_own_mentions(branch))
    if isinstance(branch, Not):
        return frozenset[Token]().union(*(mentioned_by(each) for each in branch.where))
    return frozenset()


def mentioned_by(constraint: Constraint) -> frozenset[Token]:
    """The variables and names that a constraint compares."""
    if isinstance(constraint, TimeConstraint):
        return frozenset(f"#{name}" for _, name in constraint.terms)
    sides = (constraint.left, constraint.right)
    return frozenset(f"${side.name}" for side in sides if isinstance(side, Variable))


def bound_by(branches: Iterable[Branch]) -> frozenset[Token]:
    """The variables and names that a conjunction binds in every match."""
    branches = tuple(branches)
    variables = frozenset(f"${name}" for name in bound_variables(branches))
    return variables | {f"#{name}" for name in bound_names(branches)}


def _own_mentions(node: PatternNode) -> set[Token]:
    found = {f"${node.test.name}"} if isinstance(node.test, Variable) else set()
    for comparison in node.comparisons:
        if isinstance(comparison.operand, Variable):
            found.add(f"${comparison.operand.name}")
    return found if node.name is None else found | {f"#{node.name}"}


class _Hoister:
    def __init__(self) -> None:
        self._anchors = 0

    def conjunction(
        self, branches: tuple[Branch, ...], outside: frozenset[Token]
    ) -> tuple[Branch, ...]:
        """Rewrite the branches of one node; the rest of the pattern mentions `outside`."""
        kept: list[Branch] = []
        for position, branch in enumerate(branches):
            others = (mentions(b) for i, b in enumerate(branches) if i != position)
            beside = outside.union(*others)
            if isinstance(branch, PatternNode):
                kept += self._node(branch, beside)
            elif isinstance(branch, Not):
                inside = beside.union(*(mentioned_by(constraint) for constraint in branch.where))
                kept.append(replace(branch, branches=self.conjunction(branch.branches, inside)))
            elif isinstance(branch, Or):
                kept.append(Or(tuple(self.conjunction(a, beside) for a in branch.alternatives)))
            else:
                kept.append(branch)
        return tuple(kept)

    def _node(self, node: PatternNode, beside: frozenset[Token]) -> list[Branch]:
        """The node, followed by the connectives that were moved out of it."""
        alone = replace(node, branches=())
        branches = self.conjunction(node.branches, beside | _own_mentions(node))
        here = bound_by((replace(node, branches=branches),))
        leaving = [b for b in branches if _can_leave(b) and not mentions(b) & beside <= here]
        if any(isinstance(b, Collect) for b in branches) or leaving:
            alone = replace(alone, name=alone.name or self._new_name())
        staying = tuple(b for b in branches if b not in leaving)
        step = replace(alone, comparisons=())
        return [replace(alone, branches=staying), *(_wrap(step, b) for b in leaving)]

    def _new_name(self) -> str:
        self._anchors += 1
        return f"anchor~{self._anchors}"


def _can_leave(branch: Branch) -> bool:
    """Whether a branch is a `not`, or an `or` whose alternatives mention different variables."""
    if isinstance(branch, Or):
        each = [frozenset[Token]().union(*map(mentions, a)) for a in branch.alternatives]
        return any(one != each[0] for one in each)
    return isinstance(branch, Not)


def _wrap(step: PatternNode, branch: Branch) -> Branch:
    if isinstance(branch, Not):
        return replace(branch, branches=(replace(step, branches=branch.branches),))
    assert isinstance(branch, Or)
    return Or(tuple((replace(step, branches=a),) for a in branch.alternatives))
