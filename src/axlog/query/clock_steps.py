"""Queries about the clock: the pattern without `now`, and the step that looks at the clock.

The rows of a pattern do not depend on the clock. The step `Clock` after it holds back the rows that
do not hold yet, and drops those that do not hold any more:

- A constraint of the query that names `now` is a test of the step. The pattern shows the times of
  the nodes that it names.
- A `not` with such a constraint leaves the pattern. Its inside is a pattern of its own, whose rows
  block those that stand at the same node, have the same values in common variables, and the same
  times in common names. It has a step `Clock` of its own, so that nested `not`s follow.

The node at which such a `not` stands is identified by its id, unless it is the root element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from axlog.errors import Place, QueryError, UnsupportedError
from axlog.query.aggregate_patterns import ANCHOR, variables_bound
from axlog.query.clock_terms import NOW, has_clock, reads_clock
from axlog.query.normalize import bound_names, bound_variables, check, normalise, variables_of
from axlog.query.pattern import (
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
    Wildcard,
    branches_of,
)
from axlog.query.steps import Clock, ClockTest, Unless

_Part = tuple[Kind, str]
_ROOT = PatternNode(Axis.CHILD, Wildcard())
"""Matches once in every document: the pattern of a query that is one `not`."""


@dataclass(frozen=True, slots=True)
class Clocked:
    """A pattern without `now`, its step, and the outputs of the pattern that the step reads."""

    pattern: Pattern
    clock: Clock
    outputs: tuple[Output, ...]


def split_clock(
    written: Pattern, more: tuple[ClockTest, ...] = (), place: Place | None = None
) -> Clocked:
    """The parts of a pattern whose constraints name the clock; `more` tests are added.

    Outputs are left to the caller. Raises AX211, at the place, where a `not` about the clock cannot
    be split off.
    """
    return _Split(normalise(written), place).parts(written, more)


@dataclass(slots=True)
class _Hung:
    """A `not` about the clock, and the nodes above it; the last one, where it stands, is named."""

    branch: Not
    spine: tuple[PatternNode, ...]


@dataclass(slots=True)
class _Split:
    pattern: Pattern
    place: Place | None = None
    hung: list[_Hung] = field(default_factory=list)

    def parts(self, written: Pattern, more: tuple[ClockTest, ...]) -> Clocked:
        names = {node.name for node in self.pattern.nodes()}
        fresh = (name for n in count(1) if (name := f"{ANCHOR}{n}") not in names)
        branches = tuple(self._without(self.pattern.branches, (), fresh))
        rest = tuple(c for c in self.pattern.where if not reads_clock(c))
        base = Pattern(branches or (_ROOT,), rest)
        unless = tuple(self._unless(each, base) for each in self.hung)
        tests = (*(_test(c) for c in self.pattern.where if reads_clock(c)), *more)
        outputs: dict[_Part, None] = {}
        for test in tests:
            outputs |= dict.fromkeys(_part(column) for _, column in test.terms)
        for each in unless:
            outputs |= dict.fromkeys(map(_part, each.columns))
        dropped = [Output(*part).column for part in outputs if part[1].startswith(ANCHOR)]
        clock = Clock(written, tests, unless, tuple(dropped))
        return Clocked(base, clock, tuple(Output(*part) for part in outputs))

    def _without(
        self, branches: Iterable[Branch], spine: tuple[PatternNode, ...], fresh: Iterator[str]
    ) -> Iterator[Branch]:
        """The branches without the `not`s about the clock, which are noted."""
        for branch in branches:
            if isinstance(branch, Not) and has_clock(branch):
                self.hung.append(_Hung(branch, spine))
            elif isinstance(branch, PatternNode):
                yield self._node(branch, spine, fresh)
            elif isinstance(branch, Or) and has_clock(branch):
                raise _refused("a `not` about the clock inside an `or`", self.place)
            elif isinstance(branch, Collect):
                raise _refused("`collect` beside the clock", self.place)
            else:
                yield branch

    def _node(
        self, node: PatternNode, spine: tuple[PatternNode, ...], fresh: Iterator[str]
    ) -> PatternNode:
        stands = any(isinstance(each, Not) and has_clock(each) for each in node.branches)
        if stands and node.name is None:
            name = next(fresh)  # a node that binds keeps its place among those that do
            name = name.replace(ANCHOR, "at~") if variables_bound(node) else name
            node = replace(node, name=name)
        below = tuple(self._without(node.branches, (*spine, node), fresh))
        return replace(node, branches=below)

    def _unless(self, hung: _Hung, base: Pattern) -> Unless:
        inside = hung.branch
        shared = bound_variables(base.branches) & _variables(inside)
        outer = bound_names(base.branches)
        parts: dict[_Part, None] = {}
        if hung.spine and not (len(hung.spine) == 1 and hung.spine[0].axis is Axis.CHILD):
            parts[Kind.ID, str(hung.spine[-1].name)] = None
        parts |= dict.fromkeys((Kind.VARIABLE, name) for name in sorted(shared))
        timed = [name for name in _timed(inside) if name in outer]
        parts |= dict.fromkeys((Kind.TIME, name) for name in timed)
        alone = _alone(hung)
        is_enough = shared <= bound_variables(alone.branches) and _is_valid(alone)
        found = split_clock(alone if is_enough else _beside(hung, base), (), self.place)
        outputs = dict.fromkeys(Output(*part) for part in parts)
        outputs |= dict.fromkeys(found.outputs)
        pattern = replace(found.pattern, outputs=tuple(outputs))
        clock = replace(found.clock, dropped=())
        return Unless(pattern, clock, tuple(Output(*part).column for part in parts))


def _alone(hung: _Hung) -> Pattern:
    """The inside of a `not` below the nodes above it, without the rest of the query."""
    branches = hung.branch.branches
    for node in reversed(hung.spine):
        kept = tuple(
            each
            for each in node.comparisons
            if each.operator == "=" or not isinstance(each.operand, Variable)
        )
        branches = (replace(node, comparisons=kept, branches=branches),)
    return Pattern(branches, hung.branch.where)


def _beside(hung: _Hung, base: Pattern) -> Pattern:
    """The inside of a `not` as a part of the query, for constraints that name both."""
    where = (*base.where, *hung.branch.where)
    if not hung.spine:
        return Pattern((*base.branches, *hung.branch.branches), where)
    anchor, inside = hung.spine[-1].name, hung.branch.branches

    def put(branch: Branch) -> Branch:
        if not isinstance(branch, PatternNode):
            return branch
        below = tuple(map(put, branch.branches))
        return replace(branch, branches=(*below, *inside) if branch.name == anchor else below)

    return Pattern(tuple(map(put, base.branches)), where)


def _is_valid(pattern: Pattern) -> bool:
    """Whether a pattern binds all that its comparisons and constraints name."""
    try:
        check(pattern)
    except QueryError:
        return False
    return True


def _test(constraint: Constraint) -> ClockTest:
    assert isinstance(constraint, TimeConstraint), "only times are compared with the clock"
    factor = next(each for each, name in constraint.terms if name == NOW)
    terms = tuple((each, f"{name}.time") for each, name in constraint.terms if name != NOW)
    return ClockTest(factor, terms, constraint.operator, constraint.bound)


def _part(column: str) -> _Part:
    of, dot, kind = column.rpartition(".")
    return (Kind(kind), of) if dot else (Kind.VARIABLE, column)


def _variables(branch: Branch) -> set[str]:
    """The variables that occur in a `not`, in its constraints too."""
    found = set(variables_of(branch))
    for constraint in _constraints(branch):
        if not isinstance(constraint, TimeConstraint):
            operands = (constraint.left, constraint.right)
            found |= {operand.name for operand in operands if isinstance(operand, Variable)}
    return found


def _timed(branch: Branch) -> list[str]:
    """The names whose times the constraints of a `not` compare."""
    found: dict[str, None] = {}
    for constraint in _constraints(branch):
        if isinstance(constraint, TimeConstraint):
            found |= dict.fromkeys(name for _, name in constraint.terms)
    return list(found)


def _constraints(branch: Branch) -> Iterator[Constraint]:
    if isinstance(branch, Not):
        yield from branch.where
    for below in branches_of(branch):
        yield from _constraints(below)


def _refused(what: str, place: Place | None) -> UnsupportedError:
    return UnsupportedError(
        "AX211",
        f"{what} is not supported",
        place=place,
        expected="`now` in a constraint of the query, or of a `not` outside of any `or`",
    )
