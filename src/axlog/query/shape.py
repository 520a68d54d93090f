"""Checks of a pattern's shape, for patterns of every language.

Refused here, so that no other module needs to check:

- patterns that the native text cannot express: an `or` of one alternative, an empty `not`;
- patterns without a meaning in the engines: an attribute tested by a variable, `collect` inside
  `or` or `not`;
- patterns that are nested so deeply that recursion over them would fail;
- queries that exceed the user's limits (`Limits.parts`, `Limits.branches`): planning a join takes
  time quadratic in its branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import isfinite

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import QueryError, UnsupportedError
from axlog.query.pattern import (
    Axis,
    Branch,
    Collect,
    Constant,
    Constraint,
    Moment,
    Name,
    Not,
    Or,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    Wildcard,
    branches_of,
)
from axlog.query.positions import Places
from axlog.query.time_literals import EARLIEST, LATEST

MOST_NESTING = 200


def check_shape(pattern: Pattern, places: Places, limits: Limits | None = DEFAULT_LIMITS) -> None:
    """Refuse a pattern of a wrong shape or size. Not recursive, so any depth can be checked."""
    if not pattern.branches:
        raise _malformed("a pattern has at least one branch")
    for constraint in pattern.where:
        _check_constraint(constraint)
    if limits is not None:
        _check_size(pattern, limits)
    collects = count()
    waiting: list[tuple[Branch, int, bool]] = [(b, 1, False) for b in reversed(pattern.branches)]
    while waiting:
        branch, depth, is_enclosed = waiting.pop()
        if depth > MOST_NESTING:
            raise QueryError(
                "AX213",
                f"the query is nested more than {MOST_NESTING} deep",
                expected=f"at most {MOST_NESTING} steps and predicates inside each other",
            )
        _check_branch(branch)
        if isinstance(branch, Collect):
            place = places.collect(next(collects))
            if is_enclosed:
                raise UnsupportedError(
                    "AX211",
                    "collect(...) or a function of a whole path inside `or`, `not` or another"
                    " collect(...) is not supported",
                    place=place,
                    advice="XPath or XQuery: //order[not(item[count(part) > 1])]",
                )
        is_enclosed = is_enclosed or not isinstance(branch, PatternNode)
        below = [(inner, depth + 1, is_enclosed) for inner in branches_of(branch)]
        waiting += reversed(below)


def _check_size(pattern: Pattern, limits: Limits) -> None:
    """Check the number of all parts and of sibling branches, without recursion."""
    total = len(pattern.where) + len(pattern.outputs)
    waiting: list[Sequence[Branch]] = [pattern.branches]
    while waiting:
        beside = waiting.pop()
        total += len(beside)
        if len(beside) > limits.branches:
            raise _too_large(f"{len(beside):,} branches side by side", "branches", limits.branches)
        for branch in beside:
            if isinstance(branch, Or):
                waiting += branch.alternatives
            else:
                waiting.append(list(branches_of(branch)))
            if isinstance(branch, PatternNode):
                total += len(branch.comparisons)
            elif isinstance(branch, Not):
                total += len(branch.where)
        if total > limits.parts:
            raise _too_large(f"more than {limits.parts:,} parts", "parts", limits.parts)


def _too_large(size: str, name: str, most: int) -> QueryError:
    return QueryError(
        "AX213",
        f"the query has {size}",
        expected=f"at most {most:,}",
        advice=f"split it into several views, or raise the limit with limits=Limits({name}=...)",
    )


def _check_branch(branch: Branch) -> None:
    match branch:
        case PatternNode(axis=axis, test=test, comparisons=comparisons):
            if axis is Axis.ATTRIBUTE and not isinstance(test, Name | Wildcard):
                raise UnsupportedError("AX211", "an attribute is tested by its name or by `*`")
            for comparison in comparisons:
                _check_constant(comparison.operand)
        case Or(alternatives=alternatives):
            if not alternatives or not all(alternatives):
                raise _malformed("an `or` has alternatives, and none is empty")
        case Not(branches=branches, where=where):
            if not branches:
                raise _malformed("a `not` holds at least one branch")
            for constraint in where:
                _check_constraint(constraint)


def _check_constraint(constraint: Constraint) -> None:
    if not isinstance(constraint, TimeConstraint):
        _check_constant(constraint.right)
        return
    names = {name for coefficient, name in constraint.terms if coefficient}
    if not names or len(names) != len(constraint.terms):
        raise _malformed("a time constraint names nodes once each, with coefficients other than 0")


def _check_constant(value: Constant | Variable) -> None:
    if isinstance(value, float) and not isfinite(value):
        raise QueryError("AX207", f"{value} is not a number to compare with")
    if isinstance(value, Moment) and not EARLIEST <= value.microseconds <= LATEST:
        raise QueryError("AX207", f"the moment {value.written!r} is outside the years 1 to 9999")


def _malformed(expected: str) -> QueryError:
    return QueryError("AX201", "the pattern is not well formed", expected=expected)
