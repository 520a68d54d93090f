"""The types of native scalar expressions, as far as the query alone decides them.

A variable and a value of a node are texts; as operands they are numbers or moments by their form.
A result that can be of several types is `any`.
"""

from __future__ import annotations

from collections.abc import Mapping

from axlog.query.columns import ColumnType
from axlog.query.dates import duration_of
from axlog.query.steps import Scalar
from axlog.query.syntax_tree import Binary, Call, Constant, Reference

_NUMBERS = ("integer", "decimal")
_TRUTHS = frozenset(
    """boolean contains deep-equal empty ends-with exists false matches not some starts-with
    true xs:boolean codepoint-equal""".split()
)
_INTEGERS = frozenset(
    """compare count day-from-date day-from-dateTime days-from-duration hours-from-dateTime
    hours-from-duration hours-from-time minutes-from-dateTime minutes-from-duration
    minutes-from-time month-from-date month-from-dateTime months-from-duration string-length
    xs:int xs:integer year-from-date year-from-dateTime years-from-duration""".split()
)
_DECIMALS = frozenset(
    """abs avg ceiling floor number round round-half-to-even seconds-from-dateTime
    seconds-from-duration seconds-from-time sum xs:decimal""".split()
)
_TEXTS = frozenset(
    """codepoints-to-string concat encode-for-uri local-name lower-case name namespace-uri
    normalize-space replace string string-join substring substring-after substring-before translate
    upper-case xs:string""".split()
)
_DURATIONS = frozenset("xs:duration xs:dayTimeDuration xs:yearMonthDuration".split())
_OF_CALLS: dict[str, ColumnType] = {
    **dict.fromkeys(_TRUTHS, "truth"),
    **dict.fromkeys(_INTEGERS, "integer"),
    **dict.fromkeys(_DECIMALS, "decimal"),
    **dict.fromkeys(_TEXTS, "text"),
    "xs:double": "double",
    "xs:dateTime": "moment",
    "xs:date": "day",
    **dict.fromkeys(_DURATIONS, "duration"),
    "tokenize": "any",
}
_DAY = 86_400 * 10**9  # nanoseconds
_COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">=", "and", "or", "is", "<<", ">>"))


def scalar_type(expression: Scalar, columns: Mapping[str, ColumnType]) -> ColumnType:
    """The type of an expression over columns of these types."""
    match expression:
        case Reference(name=name):
            return columns.get(name, "any")
        case Constant(value=value):
            return "text" if isinstance(value, str) else "decimal"
        case Binary(operator=operator, left=left, right=right):
            if operator in _COMPARISONS:
                return "truth"
            sides = scalar_type(left, columns), scalar_type(right, columns)
            if sides == ("day", "duration") and operator in ("+", "-"):
                return "day" if _is_whole_days(right) else "any"
            return _calculated(operator, *sides)
        case Call(name="unary-" | "unary+", arguments=(inside,)):
            return "decimal" if scalar_type(inside, columns) in _NUMBERS else "any"
        case Call(name="if", arguments=(_, first, second)):
            one, other = scalar_type(first, columns), scalar_type(second, columns)
            if one == other and one != "time":
                return one
            return "decimal" if one in _NUMBERS and other in _NUMBERS else "any"
        case Call(name=name):
            return _OF_CALLS.get(name, "any")
    return "any"


_OF_TIMES: dict[tuple[str, ColumnType, ColumnType], ColumnType] = {
    ("+", "moment", "duration"): "moment",
    ("+", "duration", "moment"): "moment",
    ("-", "moment", "duration"): "moment",
    ("-", "moment", "moment"): "duration",
    ("-", "day", "day"): "duration",
    ("-", "moment", "day"): "duration",
    ("-", "day", "moment"): "duration",
    ("+", "duration", "duration"): "duration",
    ("-", "duration", "duration"): "duration",
}


def _is_whole_days(duration: Scalar) -> bool:
    """Whether a duration is written as a number of days or months: a date plus it is a date."""
    match duration:
        case Call(name=name, arguments=(Constant(value=str() as text),)) if name in _DURATIONS:
            found = duration_of(text)
            return found is not None and found.nanoseconds % _DAY == 0
    return False


def _calculated(operator: str, left: ColumnType, right: ColumnType) -> ColumnType:
    """The type of a calculation; sums and differences of two texts may be moments or durations."""
    sides = (left, right)
    if (operator, *sides) in _OF_TIMES:
        return _OF_TIMES[operator, left, right]
    if not all(side in (*_NUMBERS, "text") for side in sides):
        return "any"
    is_number = operator not in ("+", "-") or any(side in _NUMBERS for side in sides)
    return "decimal" if is_number else "any"


def aggregate_type(function: str, argument: ColumnType) -> ColumnType:
    """The type of an aggregate of values of a type."""
    match function:
        case "count":
            return "integer"
        case "sum" | "avg":
            return "decimal" if argument in ("text", "double", *_NUMBERS) else "any"
        case "string-join":
            return "text"
        case "collect":
            return "list"
        case "min" | "max":
            return "any" if argument == "text" else argument
    return argument
