"""Comparisons that a computed condition implies, for the join below it.

A condition of two numbers (`where number($a) > number($b)`) is computed for the rows that the
pattern gives. If its two sides come from different branches, these are all pairs. The join is
therefore given a weaker comparison of the two values, by which it finds the rows of a branch in an
order (`operators/range_lookup.py`). The condition is still computed, exactly.

Law: a row for which the condition is true passes the comparison. Numbers are exact decimals, and
rounding to doubles keeps their order or makes them equal; a text that is no number has no value in
the condition, and compares with nothing.

Not handled: conditions that reject texts which are no numbers (`on_value_error="reject"`): each
pair has to be computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from axlog.query.pattern import Kind, Pattern, ValueConstraint, Variable
from axlog.query.steps import Filter, Scalar, Step
from axlog.query.syntax_tree import Binary, Call, Reference
from axlog.query.values import typed

_WEAKER = {"<": "<=", "<=": "<=", ">": ">=", ">=": ">="}


def bounded(pattern: Pattern, steps: tuple[Step, ...]) -> Pattern:
    """The pattern with the comparisons that the conditions right above it imply."""
    variables = {
        output.alias or output.of: Variable(output.of)
        for output in pattern.outputs
        if output.kind is Kind.VARIABLE
    }
    more: list[ValueConstraint] = []
    for step in steps:
        if not isinstance(step, Filter):
            break
        for part in _conjuncts(step.condition):
            if isinstance(part, Binary) and part.operator in _WEAKER:
                left, right = _number(part.left, variables), _number(part.right, variables)
                if left is not None and right is not None and left != right:
                    operator = typed(_WEAKER[part.operator], "xs:double")
                    more.append(ValueConstraint(left, operator, right))
    return replace(pattern, where=(*pattern.where, *more)) if more else pattern


def _conjuncts(condition: Scalar) -> Iterator[Scalar]:
    if isinstance(condition, Binary) and condition.operator == "and":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition


def _number(value: Scalar, variables: dict[str, Variable]) -> Variable | None:
    """The variable of which a value is the number; None: it is something else."""
    if not isinstance(value, Call) or value.name != "number" or len(value.arguments) != 1:
        return None
    inside: Scalar = value.arguments[0]
    return variables.get(inside.name) if isinstance(inside, Reference) else None
