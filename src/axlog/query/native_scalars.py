"""Scalar expressions of the native text: rules of `native.lark` to expressions of the syntax tree.

A column is a `Reference`: `x` for `$x`, `t.val` for a property of a node. A bare word is a
`Reference` whose name begins with `#`. It is the time of a node in `where`, and an output in
`having` and `order by`; `native_steps.py` resolves it. Durations and dates are calls of their
types. An aggregate is an `AggregateCall`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from lark import Token, Transformer_NonRecursive

from axlog.document.times import UNITS
from axlog.errors import Place, QuerySyntaxError, UnsupportedError, ValueProblem, did_you_mean
from axlog.query.function_names import CLOCK, FUNCTIONS, TYPES
from axlog.query.pattern import Kind
from axlog.query.positions import place_at
from axlog.query.regex_matcher import check_regex
from axlog.query.steps import AGGREGATES, Scalar
from axlog.query.syntax_tree import Binary, Call, Constant, Reference
from axlog.query.time_literals import date_text, exact_number, microseconds_of_date

_KINDS = tuple(kind.value for kind in Kind if kind is not Kind.VARIABLE)
_ONE_ARGUMENT = frozenset(AGGREGATES) - {"count", "string-join"}
_CHOICES = ("latest", "earliest")
_DIVISIONS = ("div", "idiv", "mod")


@dataclass(frozen=True, slots=True)
class TimeLiteral(Call):
    """A duration or a date in the text, with its microseconds."""

    microseconds: Fraction = Fraction(0)
    written: str | None = None  # of a date


@dataclass(frozen=True, slots=True)
class AggregateCall(Call):
    """An aggregate: `count(distinct $x)`, `latest($p by $t)`."""

    is_distinct: bool = False
    by: Scalar | None = None


class ScalarBuilder(Transformer_NonRecursive[Token, Any]):
    """The rules of scalar expressions; `native_builder.PatternBuilder` adds those of patterns."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def _place(self, token: Token) -> Place:
        return place_at(self._text, offset_of(token))

    def _refuse(
        self, token: Token, message: str, expected: str | None = None, advice: str | None = None
    ) -> NoReturn:
        raise QuerySyntaxError(
            "AX201", message, place=self._place(token), expected=expected, advice=advice
        )

    # operators

    def disjunction(self, children: list[Scalar]) -> Scalar:
        return _joined("or", children)

    def both(self, children: list[Scalar]) -> Scalar:
        return _joined("and", children)

    def compared(self, children: list[Any]) -> Scalar:
        left, operator, right = children
        return Binary(str(operator), left, right, left.at)

    def calculated(self, children: list[Any]) -> Scalar:
        left, operator, right = children
        if str(operator) in _DIVISIONS and isinstance(right, Constant) and right.exact == 0:
            raise ValueProblem(
                "FOAR0001", "a division by zero", place=place_at(self._text, right.at)
            )
        return Binary(str(operator), left, right, left.at)

    def sign(self, children: list[Any]) -> Scalar:
        sign, operand = children
        if isinstance(operand, Constant) and isinstance(operand.exact, Decimal):
            factor = -1 if sign == "-" else 1
            value, exact = factor * float(operand.value), factor * operand.exact
            return replace(operand, value=value, exact=exact, at=offset_of(sign))
        return Call(f"unary{sign}", (operand,), offset_of(sign))

    def parenthesized(self, children: list[Scalar]) -> Scalar:
        return children[0]

    def conditional(self, children: list[Any]) -> Scalar:
        token, condition, first, second = children
        return Call("if", (condition, first, second), offset_of(token))

    # operands

    def variable_value(self, children: list[Token]) -> Scalar:
        return Reference(children[0][1:], offset_of(children[0]))

    def node_value(self, children: list[Token]) -> Scalar:
        name, kind = children
        if kind[1:] not in _KINDS:
            known = ", ".join(f"`.{each}`" for each in _KINDS)
            self._refuse(kind, f"a node has no {kind[1:]}", expected=f"one of {known}")
        return Reference(f"{name}{kind}", offset_of(name))

    def time(self, children: list[Token]) -> Scalar:
        return Reference(f"#{children[0]}", offset_of(children[0]))

    def seconds(self, children: list[Token]) -> Scalar:
        (token,) = children
        exact_number(token, self._place(token))  # not too long
        return Constant(float(token), offset_of(token), Decimal(token))

    def text_value(self, children: list[Token]) -> Scalar:
        return Constant(unquoted(children[0]), offset_of(children[0]))

    def duration(self, children: list[Token]) -> Scalar:
        (token,) = children
        digits = token.rstrip("".join(UNITS))
        exact = exact_number(digits, self._place(token)) * UNITS[token[len(digits) :]]
        text = f"PT{_seconds(exact)}S"
        at = offset_of(token)
        return TimeLiteral("xs:dayTimeDuration", (Constant(text, at),), at, exact)

    def date(self, children: list[Token]) -> Scalar:
        (token,) = children
        written = unquoted(token)
        exact = Fraction(microseconds_of_date(written, self._place(token)))
        at = offset_of(token)
        moment = Constant(date_text(int(exact)), at)
        type_ = "xs:dateTime" if "T" in str(moment.value) else "xs:date"
        return TimeLiteral(type_, (moment,), at, exact, written)

    # calls

    def arguments(self, children: list[Scalar]) -> tuple[Scalar, ...]:
        return tuple(children)

    def call(self, children: list[Any]) -> Scalar:
        token, distinct, arguments, by = children
        name, given = str(token), arguments or ()
        if name in AGGREGATES:
            return self._aggregate(token, given, distinct, by)
        if distinct is not None:
            self._refuse(distinct, f"{name}() has no `distinct`", advice="count(distinct $x)")
        if by is not None:
            self._refuse(token, f"{name}() has no `by`", advice="latest($x by $t)")
        known = name[3:] in TYPES if name.startswith("xs:") else name in FUNCTIONS
        known = known or (name == "some" and len(given) == 1)
        if not known:
            clock = "where t2 - t1 < 60 compares times" if name in CLOCK else None
            raise UnsupportedError(
                "AX211",
                f"there is no function {name}()",
                place=self._place(token),
                expected="a function such as contains, substring, round, number, xs:date",
                advice=clock or did_you_mean(name, sorted({*FUNCTIONS, *AGGREGATES})),
            )
        check_regex(name, given, self._text)
        return Call(name, given, offset_of(token))

    def _aggregate(
        self, token: Token, given: tuple[Scalar, ...], distinct: Token | None, by: Scalar | None
    ) -> Scalar:
        name = str(token)
        if name in _ONE_ARGUMENT and len(given) != 1:
            self._refuse(token, f"{name}() has one argument", expected=f"{name}($x)")
        if name == "count" and len(given) > 1:
            self._refuse(token, "count() has at most one argument", expected="count($x)")
        if name == "string-join" and not 1 <= len(given) <= 2:
            self._refuse(token, "string-join() has two arguments", expected='string-join($x, ", ")')
        if name == "string-join" and len(given) == 2 and not _is_text(given[1]):
            self._refuse(token, "the separator of string-join() is a string", expected='", "')
        if distinct is not None and (name != "count" or not given):
            self._refuse(distinct, "only count has `distinct`", expected="count(distinct $x)")
        if (by is None) == (name in _CHOICES):
            self._refuse(
                token,
                f"{name}() needs `by`" if by is None else f"{name}() has no `by`",
                expected="latest($x by $t)",
            )
        is_distinct = distinct is not None
        return AggregateCall(name, given, offset_of(token), is_distinct, by)  # type: ignore[arg-type]


def _joined(operator: str, parts: list[Scalar]) -> Scalar:
    first, *rest = parts
    for part in rest:
        first = Binary(operator, first, part, first.at)  # type: ignore[arg-type]
    return first


def _is_text(expression: Scalar) -> bool:
    return isinstance(expression, Constant) and isinstance(expression.value, str)


def _seconds(microseconds: Fraction) -> str:
    text = format(Decimal(microseconds.numerator) / Decimal(microseconds.denominator * 10**6), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def unquoted(token: str) -> str:
    """The text of a string in quotation marks."""
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


def offset_of(token: Token) -> int:
    """The offset of a token in its text."""
    return token.start_pos or 0
