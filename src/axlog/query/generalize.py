"""Generalization: a query with its constants taken out, so that queries of one shape share a plan.

    match //order[client/"INRIA"]/oid/$x return $x
    match //order[client/text() = $parameter~1]/oid/$x return $x, $parameter~1

A constant that the value of a node is compared with, at a place where every row has exactly one
such node, becomes a variable that the general pattern binds and shows. The rows of the query are
the rows of the general pattern whose values pass the comparisons with the constants; the counts of
those that then show the same add up. This holds outside of `or`, `not` and collected paths. Inside
an `or` with one alternative, which only says that the branch counts once, it holds for equality of
strings. All other constants stay, so that queries that differ in them have different shapes.
A formula over the value of one node (`price * 2 > 5`) is a constant as a whole.

With `durations`, the bounds of times and of their differences are constants, too. The general
pattern shows these times, and keeps a weaker bound, which many durations and dates have in common
(`weaker`): so its joins still drop rows that are too old for all of them.

    match ... where u - t <= 3600 return $x
    match ... where u - t <= 4294.967296 return $x, t.time, u.time

Law: for every document, rows and counts of a query are those of its general pattern, selected by
its constants and summed up (`python -m lab fuzz --law shared`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from axlog.query.formula import Formula
from axlog.query.lexemes import terms_text
from axlog.query.pattern import (
    AnyText,
    Branch,
    Comparison,
    Constant,
    Constraint,
    Kind,
    Literal,
    Or,
    Output,
    PartialName,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    branches_of,
)
from axlog.query.steps import Step
from axlog.query.values import parted

PREFIX = "parameter~"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A place where a constant was: the variable that is compared, and the comparison."""

    variable: str
    operator: str
    type: str  # of the constant

    @property
    def is_text(self) -> bool:
        """Whether the value must be equal to the constant, as a string."""
        return self.operator == "=" and self.type == "str"

    def __str__(self) -> str:
        if self.type == "Formula":
            return f"a condition on ${self.variable}"
        symbol, type_ = parted(self.operator)
        return f"${self.variable} {symbol} a {type_ or _TYPES[self.type]}"


_TYPES = {"str": "text", "Number": "number", "float": "number", "Moment": "date"}


@dataclass(frozen=True, slots=True)
class StepParameter:
    """A place where a constant of a step was; members run the step with their own.

    `kind`: `where`, `having`, `clock` or `limit`.
    """

    kind: str
    variable: ClassVar[str] = ""
    is_text: ClassVar[bool] = False

    def __str__(self) -> str:
        what = {"clock": "a duration in a condition on `now`", "limit": "a `limit`"}
        return what.get(self.kind, f"a constant in `{self.kind}`")


@dataclass(frozen=True, slots=True)
class Duration:
    """A place where a duration or a date was: what it bounds, and the operator.

    It bounds a difference of times, or one time. Constants are in microseconds.
    """

    terms: tuple[tuple[int, str], ...]
    operator: str  # `<=` or `>=`
    bound: int  # of the general pattern
    variable: ClassVar[str] = ""  # it bounds times, and compares no variable
    is_text: ClassVar[bool] = False

    def __str__(self) -> str:
        kind = "date" if len(self.terms) == 1 else "duration"
        return f"{terms_text(self.terms)} {self.operator} a {kind}"

    @property
    def constraint(self) -> TimeConstraint:
        """The weaker constraint that the general pattern has."""
        return TimeConstraint(self.terms, self.operator, self.bound)


AnyParameter = Parameter | Duration | StepParameter
ParameterValue = Constant | int
"""A constant of a query; an integer is a duration in microseconds."""


@dataclass(frozen=True, slots=True)
class General:
    """A general pattern, its parameters, and the constants of the pattern that it was made from.

    Durations come after the constants that values are compared with, and those of steps are last.
    `steps`: those of the query, without their constants (`general_steps.py`).
    """

    pattern: Pattern
    parameters: tuple[AnyParameter, ...]
    constants: tuple[ParameterValue, ...]
    steps: tuple[Step, ...] = ()

    @property
    def has_durations(self) -> bool:
        """Whether some parameters are durations."""
        return bool(self.durations)

    @property
    def durations(self) -> tuple[Duration, ...]:
        """The parameters that are durations or dates."""
        return tuple(each for each in self.parameters if isinstance(each, Duration))


_CLASSES = 4
"""The factor between the bounds of general patterns."""


WIDEST = 2**60
"""A bound in microseconds that no duration and no date exceeds."""


def weaker(operator: str, bound: int, *, is_wide: bool = False) -> int:
    """A bound that is weaker than this one, and the same for durations of about the same length.

    `is_wide`: the same for all durations. Rows of a join then wait without an end.

    >>> weaker("<=", 3_600_000_000), weaker(">=", 3_600_000_000), weaker("<=", -5)
    (4294967296, 1073741824, -4)
    """
    is_outward = (operator == "<=") == (bound > 0)
    if is_wide:
        return WIDEST if operator == "<=" else -WIDEST
    size = 1
    while size * _CLASSES <= abs(bound):
        size *= _CLASSES
    if is_outward and size < abs(bound):
        size *= _CLASSES
    return size if bound > 0 else -size


def generalize(pattern: Pattern, *, durations: bool = False, is_wide: bool = False) -> General:
    """The general pattern of a pattern; without parameters if no constant can be taken out.

    `durations`: whether durations are taken out, too. `is_wide`: whatever their length.

    >>> from axlog.query.query import parse_query
    >>> made = generalize(parse_query('match //a[b/"1"][c > 5]/$x return $x').pattern)
    >>> print(made.pattern)
    match //a[b[text() = $parameter~1]][c = $parameter~2]/$x return $x, $parameter~1, $parameter~2
    >>> made.constants
    ('1', Number(value=Decimal('5')))
    """
    return _Generalizer(durations, is_wide).general(pattern)


class _Generalizer:
    def __init__(self, takes_durations: bool, is_wide: bool) -> None:
        self.parameters: list[Parameter] = []
        self.constants: list[Constant] = []
        self._takes_durations = takes_durations
        self._is_wide = is_wide
        self._durations: list[tuple[Duration, int]] = []

    def general(self, pattern: Pattern) -> General:
        branches = tuple(self._branch(branch) for branch in pattern.branches)
        where = tuple(self._where(pattern))
        shown = {output.of for output in pattern.outputs if output.kind is Kind.VARIABLE}
        compared = dict.fromkeys(parameter.variable for parameter in self.parameters)
        hidden = [Output(Kind.VARIABLE, name) for name in compared if name not in shown]
        timed = {output.of for output in pattern.outputs if output.kind is Kind.TIME}
        names = dict.fromkeys(name for each, _ in self._durations for _, name in each.terms)
        hidden += [Output(Kind.TIME, name) for name in names if name not in timed]
        taken = {output.column for output in pattern.outputs}
        if any(output.column in taken for output in hidden):
            return General(pattern, (), ())  # an alias has the name of a variable
        outputs = (*pattern.outputs, *hidden)
        general = Pattern(branches, where, outputs)
        durations = tuple(each for each, _ in self._durations)
        bounds = tuple(bound for _, bound in self._durations)
        return General(general, (*self.parameters, *durations), (*self.constants, *bounds))

    def _new(self, operator: str, constant: Constant) -> Variable:
        name = f"{PREFIX}{len(self.parameters) + 1}"
        self._add(name, operator, constant)
        return Variable(name)

    def _add(self, variable: str, operator: str, constant: Constant) -> None:
        self.parameters.append(Parameter(variable, operator, type(constant).__name__))
        self.constants.append(constant)

    def _branch(self, branch: Branch, only_texts: bool = False) -> Branch:
        """A branch without its constants; `only_texts`: only those that strings are equal to."""
        if isinstance(branch, PatternNode):
            below = tuple(self._branch(each, only_texts) for each in branch.branches)
            test, comparisons = branch.test, branch.comparisons
            if isinstance(test, Literal) and test.text:
                equal = Comparison("=", self._new("=", test.text))
                return replace(
                    branch, test=AnyText(), comparisons=(*comparisons, equal), branches=below
                )
            kept = tuple(self._compared(each, only_texts) for each in comparisons)
            return replace(branch, comparisons=kept, branches=below)
        if isinstance(branch, Or) and len(branch.alternatives) == 1:
            (alternative,) = branch.alternatives
            return Or((tuple(self._branch(each, True) for each in alternative),))
        return branch

    def _compared(self, asked: Comparison, only_texts: bool) -> Comparison:
        operand = asked.operand
        if isinstance(operand, Variable | PartialName):
            return asked
        if only_texts and not (asked.operator == "=" and isinstance(operand, str)):
            return asked
        return Comparison("=", self._new(asked.operator, operand))

    def _where(self, pattern: Pattern) -> Iterator[Constraint]:
        """The constraints that stay."""
        bound = set(_certain_variables(pattern))
        named = set(_certain_names(pattern)) if self._takes_durations else set()
        for each in pattern.where:
            if isinstance(each, TimeConstraint):
                is_named = {name for _, name in each.terms} <= named
                made = _duration(each, self._is_wide) if is_named else None
                if made is not None and made[0] not in {one for one, _ in self._durations}:
                    self._durations.append(made)
                    each = made[0].constraint
                yield each
            elif (
                isinstance(each.right, Variable | Formula | PartialName)
                or each.left.name not in bound
            ):
                yield each
            else:
                self._add(each.left.name, each.operator, each.right)


def _duration(asked: TimeConstraint, is_wide: bool) -> tuple[Duration, int] | None:
    """The duration or date of a constraint, and its bound; None: it has none, or only an order."""
    factors = sorted(factor for factor, _ in asked.terms)
    if factors not in ([-1, 1], [1]) or asked.operator in ("=", "!="):
        return None
    strict = {"<": -1, ">": 1}.get(asked.operator, 0)
    operator, bound = f"{asked.operator[0]}=", asked.bound + strict
    if abs(bound) < 2:
        return None
    return Duration(asked.terms, operator, weaker(operator, bound, is_wide=is_wide)), bound


def _certain_nodes(pattern: Pattern) -> Iterator[PatternNode]:
    """The nodes outside of connectives."""
    waiting = list(pattern.branches)
    while waiting:
        branch = waiting.pop()
        if isinstance(branch, PatternNode):
            waiting += branches_of(branch)
            yield branch


def _certain_names(pattern: Pattern) -> Iterator[str]:
    return (node.name for node in _certain_nodes(pattern) if node.name is not None)


def _certain_variables(pattern: Pattern) -> Iterator[str]:
    """The variables that nodes outside of connectives bind."""
    for branch in _certain_nodes(pattern):
        if isinstance(branch.test, Variable):
            yield branch.test.name
        for asked in branch.comparisons:
            if asked.operator == "=" and isinstance(asked.operand, Variable):
                yield asked.operand.name
