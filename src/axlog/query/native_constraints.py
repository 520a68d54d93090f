"""Constraints of the native text, from the two sides of an operator: `t2 - t1 >= 50000`.

A comparison of two sums of times and constants is a time constraint. A comparison of a variable
with a variable or a constant is a value constraint. Both belong to the pattern. Any other condition
is a step after it.

All times are moved to one side, exactly: `sum of coefficient * time  operator  bound`. The
constraint is multiplied by the least number that makes the coefficients and the microseconds
integers (`0.5*t <= 10` is `t <= 20`), and is not simplified otherwise: `2*t <= 4` stays as written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import lcm

from axlog.document.times import SECOND
from axlog.query.native_scalars import TimeLiteral
from axlog.query.pattern import Constant, Moment, Number, TimeConstraint
from axlog.query.steps import Scalar
from axlog.query.syntax_tree import Binary, Call, Reference
from axlog.query.syntax_tree import Constant as Written
from axlog.query.values import mirrored


@dataclass
class Sum:
    """One side of a constraint: times with coefficients, and a constant in microseconds.

    `plain` is the side as a constant to compare a variable with, if it is one number or moment.
    """

    at: int  # its offset in the text
    times: dict[str, Fraction] = field(default_factory=dict)
    microseconds: Fraction = Fraction(0)
    plain: Constant | None = None

    def negated(self) -> Sum:
        return Sum(
            self.at,
            {name: -coefficient for name, coefficient in self.times.items()},
            -self.microseconds,
            Number(-self.plain.value) if isinstance(self.plain, Number) else None,
        )


def sum_of(side: Scalar) -> Sum | None:
    """A side as a sum of times and constants; None if it is not one."""
    match side:
        case TimeLiteral(microseconds=exact, written=written, at=at):
            moment = None if written is None else Moment(int(exact), written)
            return Sum(at, microseconds=exact, plain=moment)
        case Written(exact=Decimal() as number, at=at):
            return Sum(at, microseconds=Fraction(number) * SECOND, plain=Number(number))
        case Reference(name=name, at=at) if name.startswith("#"):
            return Sum(at, {name[1:]: Fraction(1)})
        case Call(name="unary-" | "unary+" as sign, arguments=(inside,), at=at):
            found = sum_of(inside)
            if found is None:
                return None
            found = found.negated() if sign == "unary-" else found
            return Sum(at, found.times, found.microseconds, found.plain)
        case Binary(operator="+" | "-" as sign, left=left, right=right, at=at):
            one, other = sum_of(left), sum_of(right)
            if one is None or other is None:
                return None
            return added(at, (one, other.negated() if sign == "-" else other))
        case Binary(operator="*", left=left, right=right):
            return _product(left, right) or _product(right, left)
    return None


def _product(factor: Scalar, side: Scalar) -> Sum | None:
    """The sum of one scaled time: `2*t`."""
    match factor, side:
        case Written(exact=Decimal() as number, at=at), Reference(name=name) if name[0] == "#":
            return Sum(at, {name[1:]: Fraction(number)})
    return None


def added(at: int, terms: Iterable[Sum]) -> Sum:
    """The sum of terms; equal names are merged, and names that cancel are dropped."""
    whole = Sum(at)
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
    whole = added(left.at, (left, right.negated()))
    if not whole.times:
        return None
    bound = -whole.microseconds
    scale = lcm(bound.denominator, *(factor.denominator for factor in whole.times.values()))
    terms = tuple((int(factor * scale), name) for name, factor in whole.times.items())
    return TimeConstraint(terms, operator, int(bound * scale))


def constant_of(side: Sum) -> Constant | None:
    """The constant of a side, to compare with a variable on the other side; None if it is none."""
    return side.plain if isinstance(side.plain, Number | Moment) else None
