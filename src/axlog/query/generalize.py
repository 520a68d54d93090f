"""Generalization: a query with its constants taken out, so that queries of one shape share a plan.

    match //order[client/"INRIA"]/oid/$x return $x
    match //order[client/text() = $parameter~1]/oid/$x return $x, $parameter~1

A constant that the value of a node is compared with, at a place where every row has exactly one
such node, becomes a variable that the general pattern binds and shows. The rows of the query are
the rows of the general pattern whose values pass the comparisons with the constants; the counts of
those that then show the same add up. This holds outside of `or`, `not` and collected paths. Inside
an `or` with one alternative, which only says that the branch counts once, it holds for equality of
strings. All other constants stay, so that queries that differ in them have different shapes.

Law: for every document, rows and counts of a query are those of its general pattern, selected by
its constants and summed up (`python -m lab fuzz --law shared`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from axlog.query.formula import Formula
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
    ValueConstraint,
    Variable,
    branches_of,
)
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
        symbol, type_ = parted(self.operator)
        return f"${self.variable} {symbol} a {type_ or _TYPES[self.type]}"


_TYPES = {"str": "text", "Number": "number", "float": "number", "Moment": "date"}


@dataclass(frozen=True, slots=True)
class General:
    """A general pattern, its parameters, and the constants of the pattern that it was made from."""

    pattern: Pattern
    parameters: tuple[Parameter, ...]
    constants: tuple[Constant, ...]


def generalize(pattern: Pattern) -> General:
    """The general pattern of a pattern; without parameters if no constant can be taken out.

    >>> from axlog.query.query import parse_query
    >>> made = generalize(parse_query('match //a[b/"1"][c > 5]/$x return $x').pattern)
    >>> print(made.pattern)
    match //a[b[text() = $parameter~1]][c = $parameter~2]/$x return $x, $parameter~1, $parameter~2
    >>> made.constants
    ('1', Number(value=Decimal('5')))
    """
    return _Generalizer().general(pattern)


class _Generalizer:
    def __init__(self) -> None:
        self.parameters: list[Parameter] = []
        self.constants: list[Constant] = []

    def general(self, pattern: Pattern) -> General:
        branches = tuple(self._branch(branch) for branch in pattern.branches)
        where = tuple(self._where(pattern))
        shown = {output.of for output in pattern.outputs if output.kind is Kind.VARIABLE}
        compared = dict.fromkeys(parameter.variable for parameter in self.parameters)
        hidden = [Output(Kind.VARIABLE, name) for name in compared if name not in shown]
        taken = {output.column for output in pattern.outputs}
        if any(output.column in taken for output in hidden):
            return General(pattern, (), ())  # an alias has the name of a variable
        outputs = (*pattern.outputs, *hidden)
        general = Pattern(branches, where, outputs)
        return General(general, tuple(self.parameters), tuple(self.constants))

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
        if isinstance(operand, Variable | Formula | PartialName) or _is_unequal(asked.operator):
            return asked
        if only_texts and not (asked.operator == "=" and isinstance(operand, str)):
            return asked
        return Comparison("=", self._new(asked.operator, operand))

    def _where(self, pattern: Pattern) -> Iterator[Constraint]:
        """The constraints that stay."""
        bound = set(_certain_variables(pattern))
        for each in pattern.where:
            if (
                not isinstance(each, ValueConstraint)
                or isinstance(each.right, Variable | Formula | PartialName)
                or _is_unequal(each.operator)
                or each.left.name not in bound
            ):
                yield each
            else:
                self._add(each.left.name, each.operator, each.right)


def _is_unequal(operator: str) -> bool:
    """Whether nearly every constant passes: there is nothing to share."""
    return parted(operator)[0] == "!="


def _certain_variables(pattern: Pattern) -> Iterator[str]:
    """The variables that nodes outside of connectives bind."""
    waiting = list(pattern.branches)
    while waiting:
        branch = waiting.pop()
        if not isinstance(branch, PatternNode):
            continue
        waiting += branches_of(branch)
        if isinstance(branch.test, Variable):
            yield branch.test.name
        for asked in branch.comparisons:
            if asked.operator == "=" and isinstance(asked.operand, Variable):
                yield asked.operand.name
