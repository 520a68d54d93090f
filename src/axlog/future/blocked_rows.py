"""A pattern with `not` as positive patterns, for the verdicts on what can be dropped.

A pattern with `or` is the union of its *ways*: one alternative is chosen for each `or`. In a way,
the *positive* pattern leaves the `not`s out. For each `not` there is a *blocked* pattern, which has
the content of the `not` in its place: its matches are those that the `not` takes away. Where
nothing is deleted, matches only come, so a match that is blocked stays blocked.

Whether a match of the positive pattern is blocked depends on the node at which the `not` stands, on
the variables that the `not` shares, and on the times that it compares. The positive pattern shows
them, so that a scenario dominates only scenarios that are blocked with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from axlog.query.pattern import (
    AnyNode,
    Axis,
    Branch,
    Collect,
    Constraint,
    Kind,
    Not,
    Or,
    Output,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    branches_of,
    nodes_of,
)
from axlog.query.scopes import variables_of

_DOCUMENT = PatternNode(Axis.SELF, AnyNode())


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pattern with the content of one `not`."""

    pattern: Pattern
    inside: frozenset[str]  # the names of the nodes that are in the `not`


@dataclass(frozen=True, slots=True)
class PositiveParts:
    """The positive pattern and the blocked patterns of a pattern; all nodes have names."""

    positive: Pattern
    blocked: tuple[Blocked, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """The branches with the content of one `not`."""

    branches: tuple[Branch, ...]
    absence: Not
    at: str | None  # the name of the node at which the `not` stands; None: the document


def is_covered(pattern: Pattern) -> bool:
    """Whether a pattern collects no path, and has no `not` inside a `not`."""
    return all(map(_is_covered, pattern.branches))


def positive_parts(way: Pattern) -> PositiveParts:
    """Split a way through a normal pattern; all its nodes have names."""
    branches, ways = _split(way.branches, None)
    positive = replace(way, branches=branches or (_DOCUMENT,))
    shown = dict.fromkeys(output for way in ways for output in _shown_for(way, positive))
    outputs = (*positive.outputs, *(each for each in shown if each not in positive.outputs))
    positive = replace(positive, outputs=outputs)
    return PositiveParts(
        positive,
        tuple(
            Blocked(
                replace(
                    positive, branches=way.branches, where=(*positive.where, *way.absence.where)
                ),
                frozenset(n.name or "" for b in way.absence.branches for n in nodes_of(b)),
            )
            for way in ways
        ),
    )


def with_names(pattern: Pattern) -> Pattern:
    """The pattern with a name for each of its nodes."""
    known = {node.name for node in pattern.nodes()}
    names = (name for n in count(1) if (name := f"node{n}") not in known)
    return replace(pattern, branches=_with_names(pattern.branches, names))


def _with_names(branches: Iterable[Branch], names: Iterator[str]) -> tuple[Branch, ...]:
    found: list[Branch] = []
    for branch in branches:
        match branch:
            case PatternNode():
                below = _with_names(branch.branches, names)
                found.append(replace(branch, name=branch.name or next(names), branches=below))
            case Or():
                ways = tuple(_with_names(each, names) for each in branch.alternatives)
                found.append(Or(ways))
            case Not():
                found.append(replace(branch, branches=_with_names(branch.branches, names)))
            case _:
                found.append(branch)
    return tuple(found)


def _is_covered(branch: Branch, is_inside: bool = False) -> bool:
    if isinstance(branch, Collect) or (is_inside and isinstance(branch, Not)):
        return False
    below = is_inside or isinstance(branch, Not)
    return all(_is_covered(each, below) for each in branches_of(branch))


def _split(branches: tuple[Branch, ...], at: str | None) -> tuple[tuple[Branch, ...], list[_Way]]:
    """The branches without their `not`s, and a way for each of these."""
    positive: list[tuple[Branch, ...]] = []
    ways: list[tuple[int, _Way]] = []
    for number, branch in enumerate(branches):
        match branch:
            case PatternNode():
                below, inner = _split(branch.branches, branch.name)
                positive.append((replace(branch, branches=below),))
                more = [
                    replace(way, branches=(replace(branch, branches=way.branches),))
                    for way in inner
                ]
            case Not():
                positive.append(())
                more = [_Way(branch.branches, branch, at)]
            case _:
                raise AssertionError(f"{branch} is not part of a way")
        ways += [(number, way) for way in more]
    found = []
    for number, way in ways:
        parts = [*positive[:number], way.branches, *positive[number + 1 :]]
        found.append(replace(way, branches=tuple(each for part in parts for each in part)))
    return tuple(each for part in positive for each in part), found


def _shown_for(way: _Way, positive: Pattern) -> Iterator[Output]:
    """What decides whether a match of the positive pattern is blocked."""
    if way.at is not None:
        yield Output(Kind.ID, way.at)
    outside = frozenset().union(*map(variables_of, positive.branches))
    inside = frozenset().union(*map(variables_of, way.absence.branches))
    names = {node.name for node in positive.nodes()}
    for constraint in way.absence.where:
        inside |= _variables(constraint)
        if isinstance(constraint, TimeConstraint):
            for _, name in constraint.terms:
                if name in names:
                    yield Output(Kind.ID, name)
                    yield Output(Kind.TIME, name)
    for name in sorted(inside & outside):
        yield Output(Kind.VARIABLE, name)


def _variables(constraint: Constraint) -> frozenset[str]:
    if isinstance(constraint, TimeConstraint):
        return frozenset()
    sides = (constraint.left, constraint.right)
    return frozenset(each.name for each in sides if isinstance(each, Variable))
