"""Constraints of the native text, from the two sides of an operator: `t2 - t1 >= 50000`.

All times are moved to one side, exactly: `sum of coefficient * time  operator  bound`. The
constraint is multiplied by the least number that makes the coefficients and the microseconds
integers (`0.5*t <= 10` is `t <= 20`), and is not simplified otherwise: `2*t <= 4` stays as written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

from lark import Token

from axlog.query.pattern import Constant, Moment, Number, TimeConstraint
from axlog.query.values import mirrored


@dataclass
class Sum:
    """One side of a constraint: times with coefficients, and a constant in microseconds.

    `plain` is the side as a constant to compare a variable with, if it is one number or moment.
    """

    start: Token
    times: dict[str, Fraction] = field(default_factory=dict)
    microseconds: Fraction = Fraction(0)
    plain: Constant | None = None

    def negated(self) -> Sum:
        return Sum(
            self.start,
            {name: -coefficient for name, coefficient in self.times.items()},
            -self.microseconds,
            Number(-self.plain.value) if isinstance(self.plain, Number) else None,
        )


def added(start: Token, terms: Iterable[Sum]) -> Sum:
    """The sum of terms; equal names are merged, and names that cancel are dropped."""
    whole = Sum(start)
    for term in terms:
        whole.microseconds += term.microseconds
        for name, coefficient in term.times.items():
            whole.times[name] = whole.times.get(name, Fraction(0)) + coefficient
    whole.times = {name: factor for name, factor in whole.times.items() if factor}
    return whole


def time_constraint(left: Sum, operator: str, right: Sum) -> TimeConstraint | None:
    """The constraint with its times on the left, or None when it names no time."""
    if not left.times:
        left, operator, right = right, mirrored(operator), left
    whole = added(left.start, (left, right.negated()))
    if not whole.times:
        return None
    bound = -whole.microseconds
    scale = lcm(bound.denominator, *(factor.denominator for factor in whole.times.values()))
    terms = tuple((int(factor * scale), name) for name, factor in whole.times.items())
    return TimeConstraint(terms, operator, int(bound * scale))


def constant_of(side: Sum) -> Constant | None:
    """The constant of a side, to compare with a variable on the other side; None if it is none."""
    return side.plain if isinstance(side.plain, Number | Moment) else None
