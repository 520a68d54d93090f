"""Comparing values: strings by code point, numbers as numbers, dates as moments.

A comparison with a number reads the string as XPath 1.0's number() does; what is no number compares
as NaN (only `!=` holds). A comparison with a moment reads an ISO date or dateTime; what is no date
passes none, `!=` included. Two variables compare as strings.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from axlog.errors import QueryError
from axlog.language.moments import microseconds_of_date
from axlog.language.pattern import Constant, Moment

_APPLY: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NUMBER = re.compile(r"\s*(-?(\d+(\.\d*)?|\.\d+))\s*", re.ASCII)


def number(text: str) -> float:
    """A string as XPath 1.0's number() reads it."""
    matched = _NUMBER.fullmatch(text)
    return float(matched[1]) if matched else float("nan")


@lru_cache(maxsize=65536)
def moment(text: str) -> int | None:
    """A string as microseconds, or None if it is no date."""
    try:
        return microseconds_of_date(text.strip())
    except QueryError:
        return None


def comparison(symbol: str, operand: Constant) -> Callable[[str], bool]:
    """A test of string values against a constant."""
    holds = _APPLY[symbol]
    if isinstance(operand, str):
        return lambda text: holds(text, operand)
    if isinstance(operand, Moment):
        bound = operand.microseconds

        def compare_moment(text: str) -> bool:
            value = moment(text)
            return value is not None and holds(value, bound)

        return compare_moment
    return lambda text: holds(number(text), operand)


def compare(left: str | int, symbol: str, right: str | int) -> bool:
    """Two values of one kind."""
    return _APPLY[symbol](left, right)
