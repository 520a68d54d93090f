"""What it means to compare a string value with a constant or with another value.

The rules (DESIGN 3 leaves them to choose; every engine must follow these):

- Two strings compare by code point, `<` and the others too. So do two variables: what looks like a
  number is not treated as one.
- With a number, the value is read as XPath 1.0's number() reads it: spaces around an optional minus
  and decimal digits, no exponent, no plus; anything else is not a number. As in XPath, that is
  different from every number: `!=` holds, the other five operators do not.
- With a moment, the value is read as a date or date and time; one that is neither is outside the
  order of dates: no operator holds, `!=` included.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from math import nan
from typing import Any

from axlog.errors import QueryError
from axlog.language.moments import microseconds_of_date
from axlog.language.pattern import Constant, Moment

OPERATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:\d+(?:\.\d*)?|\.\d+))[ \t\r\n]*", re.ASCII)


def compare(value: str, comparing: str, operand: Constant) -> bool:
    """Whether a value stands in this relation to a constant, or to the value of a variable.

    >>> compare("10", "<", "9"), compare("10", "<", 9.0), compare("ten", "!=", 9.0)
    (True, False, True)
    """
    holds = OPERATIONS[comparing]
    if isinstance(operand, str):
        return holds(value, operand)
    if isinstance(operand, Moment):
        moment = moment_of(value)
        return moment is not None and holds(moment, operand.microseconds)
    return holds(number_of(value), operand)


def number_of(value: str) -> float:
    """XPath 1.0's number() of a string: not-a-number where it writes none."""
    found = _NUMBER.fullmatch(value)
    return float(found.group(1)) if found else nan


def moment_of(value: str) -> int | None:
    """The microseconds of a date or of a date and time, None for anything else."""
    try:
        return microseconds_of_date(value)
    except QueryError:
        return None
