"""Patterns with `not` whose joins are replaced by constants.

With joins and `not` together, truth is undecidable. Once every value that ties two places of the
pattern is given, no join is left, and `profiles.py` decides. This module finds these values
(`ties_of`) and puts given values in (`ground`):

- A variable is tied if it occurs in two places of one match, or is compared with another variable.
- The time of a node is tied if a constraint compares it with the time of another node.

A tied variable or node must stand outside every `not`, because only the values of a row, or of a
way to match the rest of the query, can be given. A variable that two places inside one `not` share,
or two times that are compared there, remain joins: AX501.

In a ground pattern every variable occurs once and stands for a known string or for any, and every
time constraint restricts one node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from axlog.errors import UndecidedError
from axlog.evaluate.value_tests import comparison
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    Branch,
    Collect,
    Comparison,
    Constant,
    Constraint,
    Not,
    Or,
    Pattern,
    PatternNode,
    TimeConstraint,
    ValueConstraint,
    Variable,
    branches_of,
)
from axlog.query.values import compare, compare_numbers, mirrored

_ADVICE = "give the value in the row, or remove the join; the rows of the view are still maintained"


def has_not(pattern: Pattern) -> bool:
    """Whether a pattern contains `not`."""
    return any(isinstance(branch, Not) for branch in _branches(pattern.branches))


def _branches(branches: Iterable[Branch]) -> Iterator[Branch]:
    for branch in branches:
        yield branch
        yield from _branches(branches_of(branch))


# Ties ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ties:
    """The variables and the names of nodes whose values must be given."""

    variables: tuple[str, ...]
    times: tuple[tuple[frozenset[str], bool], ...]
    """For each constraint that compares times: the names outside every `not`, and whether it has
    another name inside one."""

    def open_times(self, known: Iterable[str]) -> list[str]:
        """Names to give so that every constraint has at most one unknown time."""
        found = set(known)
        given: list[str] = []
        for names, has_inside in self.times:
            left = sorted(names - found)
            chosen = left if has_inside else left[1:]
            given += chosen
            found.update(chosen)
        return given


def ties_of(pattern: Pattern) -> Ties:
    """The values that tie places of a pattern; AX501 if one of them is inside a `not`."""
    whole = normalise(pattern)
    for branch in _branches(whole.branches):
        if isinstance(branch, Collect):
            raise UndecidedError("AX503", "`not` beside a collected path is not covered")
    outside = _Outside()
    outside.add(whole.branches)
    uses = _uses(whole.branches)
    tied = {name for name, number in uses.items() if number > 1}
    times: list[tuple[frozenset[str], bool]] = []
    for constraint in constraints_of(whole):
        if isinstance(constraint, TimeConstraint):
            names = {name for _, name in constraint.terms}
            if len(names) > 1:
                times.append((frozenset(names & outside.names), not names <= outside.names))
                _check_inside(sorted(names - outside.names), f"the constraint {constraint}")
        elif isinstance(constraint.right, Variable):
            both = {constraint.left.name, constraint.right.name}
            tied |= both & outside.variables
            _check_inside(sorted(both - outside.variables), f"the constraint {constraint}")
    for variable in sorted(tied - outside.variables):
        raise UndecidedError(
            "AX501",
            f"${variable} is a join inside a `not`: whether the query can hold is undecidable",
            advice="remove the join or the `not`; the rows of the view are still maintained",
        )
    return Ties(tuple(sorted(tied)), tuple(times))


def _check_inside(names: list[str], what: str) -> None:
    if len(names) > 1:
        raise UndecidedError(
            "AX501",
            f"{what} compares two places inside a `not`: whether the query can hold is undecidable",
            advice="remove the constraint or the `not`; the rows of the view are still maintained",
        )


@dataclass(slots=True)
class _Outside:
    """The variables and names that occur outside every `not`."""

    variables: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def add(self, branches: Iterable[Branch]) -> None:
        for branch in branches:
            if isinstance(branch, Not):
                continue
            if isinstance(branch, PatternNode):
                self.variables |= set(_variables(branch))
                self.names |= {branch.name} if branch.name is not None else set()
            self.add(branches_of(branch))


def _variables(node: PatternNode) -> Iterator[str]:
    for operand in (node.test, *(each.operand for each in node.comparisons)):
        if isinstance(operand, Variable):
            yield operand.name


def _uses(branches: Iterable[Branch]) -> Counter[str]:
    """How often one match uses each variable; of an `or`, it uses one alternative."""
    found: Counter[str] = Counter()
    for branch in branches:
        if isinstance(branch, Or):
            most: Counter[str] = Counter()
            for each in branch.alternatives:
                most |= _uses(each)
            found += most
            continue
        if isinstance(branch, PatternNode):
            found.update(_variables(branch))
            # a comparison other than `=` only uses the value that another place binds
            found.update(c.operand.name for c in branch.comparisons
                         if isinstance(c.operand, Variable) and c.operator != "=")  # fmt: skip
        found += _uses(branches_of(branch))
    return found


def constraints_of(pattern: Pattern) -> list[Constraint]:
    """The constraints of a normalised pattern, those inside its `not`s included."""
    found = list(pattern.where)
    for branch in _branches(pattern.branches):
        if isinstance(branch, Not):
            found += branch.where
    return found


# Ground patterns ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeTest:
    """A constraint on the time of one node: `factor * time  operator  bound`."""

    factor: int
    operator: str
    bound: int

    def holds(self, time: int) -> bool:
        return compare_numbers(self.factor * time, self.operator, self.bound)

    @property
    def turns(self) -> tuple[int, int, int]:
        """The times around which the verdict may change."""
        at = self.bound // self.factor
        return at - 1, at, at + 1


@dataclass(frozen=True, slots=True)
class Given:
    """Known values: strings by variable; times, nodes and labels by the name of a node."""

    strings: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, pins: Mapping[str, str | int]) -> Given:
        """The values of a row, by the columns of the program."""
        given = cls({}, {}, {}, {})
        for column, value in pins.items():
            name, dot, source = column.rpartition(".")
            if not dot:
                given.strings[column[1:]] = str(value)  # type: ignore[index]
            else:
                target = {"time": given.times, "node": given.nodes, "label": given.labels}[source]
                target[name] = value  # type: ignore[index]
        return given

    def with_values(self, strings: Mapping[str, str], times: Mapping[str, int]) -> Given:
        return Given({**self.strings, **strings}, {**self.times, **times}, self.nodes, self.labels)


@dataclass(frozen=True, slots=True)
class Ground:
    """A pattern without joins: what its variables and names stand for."""

    pattern: Pattern  # without outputs and constraints; every variable occurs once
    strings: Mapping[str, str]  # the known label or value of a variable's node
    tests: Mapping[str, tuple[tuple[str, Constant], ...]]  # comparisons of other labels
    times: Mapping[str, tuple[TimeTest, ...]]  # by the name of a node
    nodes: Mapping[str, int]
    labels: Mapping[str, str]


def ground(pattern: Pattern, given: Given) -> Ground | None:
    """The pattern with the given values; None if these contradict its constraints."""
    whole = normalise(pattern)
    tests: dict[str, list[tuple[str, Constant]]] = {}
    times: dict[str, list[TimeTest]] = {n: [TimeTest(1, "=", t)] for n, t in given.times.items()}
    for constraint in constraints_of(whole):
        if isinstance(constraint, TimeConstraint):
            if not _add_time(constraint, given.times, times):
                return None
        elif not _add_value(constraint, given.strings, tests):
            return None
    grounding = _Grounding(given.strings, tests)
    branches = grounding.branches(whole.branches)
    return Ground(
        Pattern(branches),
        grounding.known,
        grounding.tests,
        {name: tuple(each) for name, each in times.items()},
        given.nodes,
        given.labels,
    )


def as_written(text: str) -> str:
    """A part of a ground pattern with the names that its variables had."""
    return re.sub(r"(\$[^\s~\[\]()/]+)~\d+", r"\1", text)


def loosened(pattern: Pattern) -> Ground:
    """The pattern without its joins and constraints: it asks for no less of the data."""
    grounding = _Grounding({}, {}, is_loose=True)
    return Ground(
        Pattern(grounding.branches(normalise(pattern).branches)), {}, grounding.tests, {}, {}, {}
    )


def _add_time(
    constraint: TimeConstraint, known: Mapping[str, int], tests: dict[str, list[TimeTest]]
) -> bool:
    """Add a constraint to the node that it restricts; False if known times contradict it."""
    total, left = 0, Counter[str]()
    for factor, name in constraint.terms:
        if name in known:
            total += factor * known[name]
        else:
            left[name] += factor
    unknown = {name: factor for name, factor in left.items() if factor}
    bound = constraint.bound - total
    if not unknown:
        return compare_numbers(0, constraint.operator, bound)
    if len(unknown) > 1:
        raise UndecidedError(
            "AX503", f"the constraint {constraint} has several unknown times", advice=_ADVICE
        )
    ((name, factor),) = unknown.items()
    tests.setdefault(name, []).append(TimeTest(factor, constraint.operator, bound))
    return True


def _add_value(
    constraint: ValueConstraint,
    known: Mapping[str, str],
    tests: dict[str, list[tuple[str, Constant]]],
) -> bool:
    left, operator, right = constraint.left, constraint.operator, constraint.right
    if isinstance(right, Variable):
        if left.name in known and right.name in known:
            return compare(known[left.name], operator, known[right.name])
        if left.name in known:
            left, operator, right = right, mirrored(operator), known[left.name]
        elif right.name in known:
            right = known[right.name]
        else:
            raise UndecidedError(
                "AX503", f"the constraint {constraint} has two unknown values", advice=_ADVICE
            )
    elif left.name in known:
        return comparison(operator, right)(known[left.name])
    tests.setdefault(left.name, []).append((operator, right))
    return True


class _Grounding:
    """Rewrites a pattern: constants for known variables, and a name of its own for each other."""

    def __init__(
        self,
        strings: Mapping[str, str],
        tests: Mapping[str, list[tuple[str, Constant]]],
        is_loose: bool = False,
    ) -> None:
        self._strings, self._tests, self._is_loose = strings, tests, is_loose
        self.known: dict[str, str] = {}
        self.tests: dict[str, tuple[tuple[str, Constant], ...]] = {}

    def branches(self, branches: Iterable[Branch]) -> tuple[Branch, ...]:
        return tuple(self._branch(branch) for branch in branches)

    def _branch(self, branch: Branch) -> Branch:
        match branch:
            case PatternNode():
                return self._node(branch)
            case Or(alternatives=alternatives):
                return Or(tuple(self.branches(each) for each in alternatives))
            case Not(branches=branches):
                return Not(self.branches(branches))
        raise UndecidedError("AX503", "`not` beside a collected path is not covered")

    def _node(self, node: PatternNode) -> PatternNode:
        test = node.test
        if isinstance(test, Variable):
            test = self._own(test)
        comparisons = [new for each in node.comparisons for new in self._comparisons(each)]
        return replace(
            node,
            test=test,
            comparisons=tuple(comparisons),
            branches=self.branches(node.branches),
        )

    def _own(self, variable: Variable) -> Variable:
        """A variable of its own for one occurrence."""
        name = f"{variable.name}~{len(self.known) + len(self.tests)}"
        if variable.name in self._strings:
            self.known[name] = self._strings[variable.name]
        else:
            self.tests[name] = tuple(self._tests.get(variable.name, ()))
        return Variable(name)

    def _comparisons(self, each: Comparison) -> Iterator[Comparison]:
        if not isinstance(each.operand, Variable):
            yield each
        elif each.operand.name in self._strings:
            is_bound = each.operator == "="  # the compiled pattern is the same for all strings
            known = self._strings[each.operand.name]
            yield Comparison(each.operator, self._own(each.operand) if is_bound else known)
        elif self._is_loose:  # the value matters, whatever it is compared with
            yield Comparison("!=", "")
        elif each.operator == "=":  # it only binds the value
            for operator, constant in self._tests.get(each.operand.name, ()):
                yield Comparison(operator, constant)
        else:
            raise UndecidedError(
                "AX503", f"${each.operand.name} has no known value", advice=_ADVICE
            )
