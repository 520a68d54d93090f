"""A rewriting pass: branches that start at the root element become branches of one node.

    /shop/order/$x, not(/shop/paid/$x)     becomes     /shop[order/$x][not(paid/$x)]

So the parts of the query are joined at the root element, where the joins of a document with
streams keep their state, instead of at the document node.

Law: rows and counts stay the same. A document has one root element, so a node of the pattern for it
has one choice, however often it is written; and where one branch requires its name, a `not` about
another branch with this name is one about the same node.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from axlog.query.pattern import Axis, Branch, Name, Not, Or, Pattern, PatternNode, Wildcard


def with_one_root(pattern: Pattern) -> Pattern:
    """The pattern with all branches about its root element under one node.

    >>> from axlog.query.native import parse_pattern
    >>> print(with_one_root(parse_pattern("match /a/b/$x, /a/c/$x, not(/a/d), //e return $x")))
    match /a[b/$x][c/$x][not(d)], //e return $x
    """
    first = next((b for b in pattern.branches if _is_element(b)), None)
    if first is None:
        return pattern
    root = first
    others: list[Branch] = []
    for branch in pattern.branches:
        if branch is first:
            others.append(first)  # its place
        elif _is_element(branch) and branch.test == first.test and not branch.name:
            root = replace(
                root,
                comparisons=root.comparisons + branch.comparisons,
                branches=root.branches + branch.branches,
            )
        elif isinstance(branch, Not | Or) and (below := _below(branch, first)):
            root = replace(root, branches=root.branches + below)
        else:
            others.append(branch)
    merged = tuple(root if branch is first else branch for branch in others)
    return replace(pattern, branches=merged)


def _is_element(branch: Branch) -> TypeGuard[PatternNode]:
    """Whether a branch of the document node finds only the root element."""
    return (
        isinstance(branch, PatternNode)
        and branch.axis is Axis.CHILD
        and isinstance(branch.test, Name | Wildcard)
    )


def _below(branch: Branch, root: PatternNode) -> tuple[Branch, ...]:
    """A branch of the document node as branches of the root element; none if it is not about it."""
    if isinstance(branch, Not):
        inside = _all_below(branch.branches, root)
        return (replace(branch, branches=inside),) if inside else ()
    if isinstance(branch, Or):
        alternatives = tuple(_all_below(each, root) for each in branch.alternatives)
        return (Or(alternatives),) if all(alternatives) else ()
    if not _is_element(branch) or branch.test != root.test or branch.name or branch.comparisons:
        return ()
    return branch.branches


def _all_below(branches: tuple[Branch, ...], root: PatternNode) -> tuple[Branch, ...]:
    found = [_below(branch, root) for branch in branches]
    return tuple(below for each in found for below in each) if all(found) else ()
