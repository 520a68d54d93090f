"""`now`: the document's clock as a term of a time constraint (docs/meaning.md, Time).

    where now - t >= 2h

A `TimeConstraint` has the clock as a term with the name `NOW`. A node that is called `now` takes
this name: the clock cannot be used in such a query.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.query.pattern import Branch, Constraint, Not, TimeConstraint, branches_of, nodes_of

NOW = "now"
"""The name of the clock."""


def reads_clock(constraint: Constraint) -> bool:
    """Whether a constraint has the clock as a term."""
    if not isinstance(constraint, TimeConstraint):
        return False
    return any(name == NOW for _, name in constraint.terms)


def names_now(branches: Iterable[Branch]) -> bool:
    """Whether a node is called `now`, so that the word does not mean the clock."""
    return any(node.name == NOW for branch in branches for node in nodes_of(branch))


def has_clock(branch: Branch) -> bool:
    """Whether a constraint inside a `not` of a branch has the clock as a term."""
    if isinstance(branch, Not) and any(map(reads_clock, branch.where)):
        return True
    return any(map(has_clock, branches_of(branch)))
