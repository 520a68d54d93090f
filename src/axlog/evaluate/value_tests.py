"""Tests of string values: the comparisons of patterns with constants and formulas, as functions.

`query/values.py` defines how values compare. A formula (`query/formula.py`) is an expression over
the value, compiled by `scalars.py`. A value for which it has no value (a text where a number is
needed, a division by zero) does not pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from axlog.errors import ValueProblem
from axlog.query.formula import OWN_VALUE, Formula
from axlog.query.pattern import (
    Constant,
    Moment,
    Number,
    PartialName,
    Pattern,
    PatternNode,
    branches_of,
)
from axlog.query.values import APPLY, ORDERS, READ, Key, ValueKind, double_of, key_of, parted


def comparison(written: str, operand: Constant) -> Callable[[str], bool]:
    """A test of string values against a constant or by a formula, or of labels."""
    if isinstance(operand, Formula):
        return formula_test(operand)
    if isinstance(operand, PartialName):
        return operand.matches
    symbol, type_ = parted(written)
    holds = APPLY[symbol]
    if isinstance(operand, str):
        if type_ is not None:
            return _with_type(holds, READ[type_], operand)
        if symbol not in ORDERS:
            return lambda text: holds(text, operand)
        return _with_key(holds, key_of(operand))
    if isinstance(operand, Moment):
        return _with_key(holds, (ValueKind.MOMENT, operand.microseconds))
    if isinstance(operand, Number):
        key = (ValueKind.NUMBER, operand.value)
        if symbol == "!=":
            return lambda text: key_of(text) != key
        return _with_key(holds, key)
    return lambda text: holds(double_of(text), operand)


def _with_key(holds: Callable[[Any, Any], bool], key: Key) -> Callable[[str], bool]:
    kind, bound = key

    def compare_key(text: str) -> bool:
        found = key_of(text)
        return found[0] is kind and holds(found[1], bound)

    return compare_key


def _with_type(
    holds: Callable[[Any, Any], bool], read: Callable[[str], Any], operand: str
) -> Callable[[str], bool]:
    bound = read(operand)

    def compare_typed(text: str) -> bool:
        value = read(text)
        return value is not None and bound is not None and holds(value, bound)

    return compare_typed


def check_formulas(pattern: Pattern) -> None:
    """Raise QueryError, with the place in the text, for a formula that cannot be compiled."""
    waiting = list(pattern.branches)
    while waiting:
        branch = waiting.pop()
        waiting += branches_of(branch)
        for asked in branch.comparisons if isinstance(branch, PatternNode) else ():
            if isinstance(asked.operand, Formula):
                formula_test(asked.operand)


@lru_cache(maxsize=512)
def formula_test(formula: Formula) -> Callable[[str], bool]:
    """A formula as a test of string values; raises if a function is not known or not supported."""
    # Imported here: most patterns have no formula, and need no scalar expressions.
    from axlog.evaluate.native_values import holds
    from axlog.evaluate.scalars import compile_scalar

    value_of = compile_scalar(formula.expression, (OWN_VALUE,), "native", text=formula.source)

    def passes(text: str) -> bool:
        try:
            return holds(value_of((text,)))
        except ValueProblem:
            return False

    return passes
