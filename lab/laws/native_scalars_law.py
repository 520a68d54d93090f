"""The law of native scalars: compiled native expressions are exact.

The reference calculates with `Fraction`, `datetime` and `timedelta`, while the expression is drawn.
Sums, differences, products, remainders and roundings must be equal, a quotient must be the nearest
decimal with 18 decimals or more. A text where a number is needed, and a division by zero, must
raise the code of the recommendation. Conditions that decide leave the rest unevaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, trunc
from random import Random
from typing import Any

from axlog.errors import ValueProblem
from axlog.evaluate.scalars import compile_scalar
from axlog.query.dates import Date, DateTime, DayTimeDuration
from axlog.query.syntax_tree import Binary, Call, Constant, Expression, Reference
from axlog.query.values import compare

NUMBERS = ("0", "1", "-1", "2.5", " 007 ", "1e3", "-0.10", "99999999999999999999.99", "3", "1E-7",
           "+4", ".5", "5.", "0.333", "12.50", "-7")  # fmt: skip
TEXTS = ("", "x", "5 kg", "NaN", "1,5")
MOMENTS = ("2024-02-29", "2024-05-01T10:00:00Z", "2023-12-31T23:59:59.25+02:00", "1969-07-20",
           "2024-05-01T10:00", "2000-01-01Z")  # fmt: skip
DURATIONS = ("P30D", "PT1H", "-P1D", "PT0.5S", "P1DT12H", "PT90M")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


class _Problem(Exception):
    """The reference has no value: a code."""


Reading = Callable[[], Any]
"""Calculates the reference's value, or raises a `_Problem`."""


@dataclass(frozen=True, slots=True)
class NativeScalarsCase:
    """An expression, a row, and the outcome: a value, or a code."""

    expression: Expression | Reference
    row: tuple[str | None, ...]
    wanted: Any
    code: str | None
    is_quotient: bool = False


def make_native_scalars_case(random: Random) -> NativeScalarsCase:
    """A random case."""
    writer = _Writer(random)
    roll = random.random()
    is_quotient = False
    if roll < 0.35:
        expression, read = writer.calculation(3)
    elif roll < 0.5:
        is_quotient = True
        expression, read = writer.quotient()
    elif roll < 0.8:
        expression, read = writer.condition(2)
    else:
        expression, read = writer.time()
    try:
        wanted, code = read(), None
    except _Problem as problem:
        wanted, code = None, str(problem)
    return NativeScalarsCase(expression, tuple(writer.row), wanted, code, is_quotient)


def check_native_scalars(case: NativeScalarsCase) -> None:
    """Compile the expression, and compare its value for the row."""
    columns = [f"c{at}" for at in range(len(case.row))]
    compiled = compile_scalar(case.expression, columns, "native")
    try:
        found = compiled(case.row)
    except ValueProblem as problem:
        if problem.code != case.code:
            raise AssertionError(f"{case}: raised {problem.code}") from None
        return
    if case.code is not None or not _is_equal(found, case):
        raise AssertionError(f"{case}: found {found!r}")


def _is_equal(found: Any, case: NativeScalarsCase) -> bool:
    wanted = case.wanted
    if isinstance(found, DateTime | Date) and isinstance(wanted, datetime):
        exact = (wanted - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)
        return Fraction(found.instant, 1_000) == Fraction(exact)
    if isinstance(found, DayTimeDuration) and isinstance(wanted, timedelta):
        return Fraction(found.nanoseconds, 1_000) == wanted // timedelta(microseconds=1)
    if isinstance(wanted, Fraction):
        if type(found) is not Decimal:
            return False
        if case.is_quotient:
            return abs(Fraction(found) - wanted) * 2 * 10**18 <= 1
        return Fraction(found) == wanted
    return type(found) is type(wanted) and bool(found == wanted)


class _Writer:
    """Writes random expressions with their reference."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.row: list[str | None] = []

    def _column(self, value: str | None) -> Reference:
        self.row.append(value)
        return Reference(f"c{len(self.row) - 1}", 0)

    def number(self, depth: int) -> tuple[Expression | Reference, Reading]:
        random = self._random
        if depth == 0 or random.random() < 0.2:
            return self._leaf()
        roll = random.randrange(10)
        if roll < 7:
            operator = random.choice(("+", "-", "*", "mod", "idiv"))
            left, one = self.number(depth - 1)
            right, other = self.number(depth - 1)
            return _binary(operator, left, right), lambda: _calculated(operator, one(), other())
        if roll == 7:
            inside, value = self.number(depth - 1)
            name, function = random.choice(_ROUNDINGS)
            return Call(name, (_expression(inside),), 0), lambda: _of(value(), function)
        condition, holds = self.condition(depth - 1)
        first, value = self.calculation(depth - 1)
        second, other_value = self.calculation(depth - 1)
        choice = Call("if", tuple(map(_expression, (condition, first, second))), 0)
        return choice, lambda: value() if holds() else other_value()

    def _leaf(self) -> tuple[Expression | Reference, Reading]:
        random = self._random
        text = random.choice(NUMBERS)
        roll = random.random()
        if roll < 0.04:
            return self._column(None), lambda: None
        if roll < 0.08:
            return self._column(random.choice(TEXTS)), lambda: _TEXT
        value = Fraction(Decimal(text.strip()))
        if roll < 0.4:
            return Constant(float(value), 0, Decimal(text.strip())), lambda: value
        return self._column(text), lambda: value

    def quotient(self) -> tuple[Expression | Reference, Reading]:
        """A division, as the last calculation: its rounding is compared."""
        left, one = self.number(2)
        right, other = self.number(2)
        operator = self._random.choice(("div", "/"))
        return _binary(operator, left, right), lambda: _calculated("div", one(), other())

    def condition(self, depth: int) -> tuple[Expression | Reference, Reading]:
        random = self._random
        symbol = random.choice(tuple(_COMPARISONS))
        holds = _COMPARISONS[symbol]
        roll = random.random()
        if depth and roll < 0.3:
            operator = random.choice(("and", "or"))
            left, one = self.condition(depth - 1)
            right, other = self.condition(depth - 1)
            read: Reading = (
                (lambda: one() and other()) if operator == "and" else (lambda: one() or other())
            )
            return _binary(operator, left, right), read
        if roll < 0.5:
            a, b = (random.choice((*NUMBERS, *TEXTS, *MOMENTS)) for _ in range(2))
            return _binary(symbol, self._column(a), self._column(b)), lambda: compare(a, symbol, b)
        if roll < 0.6:
            inside, value = self.condition(max(depth - 1, 0))
            return Call("not", (_expression(inside),), 0), lambda: not value()
        left, one = self.calculation(depth)
        right, other = self.calculation(depth)
        return _binary(symbol, left, right), lambda: _compared(holds, one(), other())

    def calculation(self, depth: int) -> tuple[Expression | Reference, Reading]:
        """A number that is no column: a column alone is a string, also in a comparison."""
        inside, value = self.number(depth)
        if isinstance(inside, Reference):
            return Call("number", (_expression(inside),), 0), lambda: _number(value())
        return inside, value

    def time(self) -> tuple[Expression | Reference, Reading]:
        random = self._random
        text, length = random.choice(MOMENTS), random.choice(DURATIONS)
        moment, duration = _moment(text), _duration(length)
        match random.randrange(4):
            case 0:
                found = _binary("+", self._column(text), self._column(length))
                return found, lambda: moment + duration
            case 1:
                found = _binary("-", self._column(text), Constant(length, 0))
                return found, lambda: moment - duration
            case 2:
                text2 = random.choice(MOMENTS)
                found = _binary("-", self._column(text), self._column(text2))
                return found, lambda: moment - _moment(text2)
        symbol = random.choice(tuple(_COMPARISONS))
        text2 = random.choice(MOMENTS)
        later = _binary("+", self._column(text), Constant(length, 0))
        return (
            _binary(symbol, later, self._column(text2)),
            lambda: _COMPARISONS[symbol](moment + duration, _moment(text2)),
        )


_TEXT = object()
"""The value of a text; a missing operand beside it makes the result missing."""


def _number(value: Any) -> Any:
    if value is _TEXT:
        raise _Problem("FORG0001")
    return value


def _expression(part: Expression | Reference) -> Any:
    return part


def _binary(operator: str, left: Any, right: Any) -> Binary:
    return Binary(operator, left, right, 0)


def _calculated(operator: str, one: Any, other: Any) -> Any:
    if one is None or other is None:
        return None
    one, other = _number(one), _number(other)
    match operator:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
    if not other:
        raise _Problem("FOAR0001")
    if operator == "div":
        return one / other
    whole = trunc(one / other)
    return Fraction(whole) if operator == "idiv" else one - other * whole


def _compared(holds: Callable[[Any, Any], bool], one: Any, other: Any) -> bool:
    return one is not None and other is not None and holds(one, other)


def _of(value: Any, function: Callable[[Fraction], int]) -> Fraction | None:
    return None if value is None else Fraction(function(_number(value)))


_ROUNDINGS: tuple[tuple[str, Callable[[Fraction], Any]], ...] = (
    ("round", lambda value: floor(value + Fraction(1, 2))),
    ("floor", floor),
    ("ceiling", ceil),
    ("abs", abs),
    ("round-half-to-even", round),
    ("unary-", lambda value: -value),
)


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text.removesuffix("Z"))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _duration(text: str) -> timedelta:
    return {
        "P30D": timedelta(days=30), "PT1H": timedelta(hours=1), "-P1D": timedelta(days=-1),
        "PT0.5S": timedelta(seconds=0.5), "P1DT12H": timedelta(hours=36),
        "PT90M": timedelta(minutes=90),
    }[text]  # fmt: skip
