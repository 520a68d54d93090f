"""Functions of the native language that differ from those of XQuery, and tests of operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from axlog.errors import ValueProblem
from axlog.evaluate import native_values
from axlog.query.numbers import decimal_of
from axlog.query.syntax_tree import Expression, Reference


def _present(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else function(value)


def is_node(operand: Expression | Reference) -> bool:
    """Whether an operand is the id of a node."""
    return isinstance(operand, Reference) and operand.name.endswith(".id")


def is_content(argument: Expression | Reference) -> bool:
    """Whether an argument is the content of a node, or of all nodes of a collected path."""
    return isinstance(argument, Reference) and argument.name.endswith(".cont")


NATIVE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "number": _present(native_values.number),
    "string": native_values.text,
    "name": native_values.text,
    "local-name": _present(native_values.local_name),
    "namespace-uri": _present(native_values.namespace_uri),
    "xs:decimal": _present(lambda value: decimal_of(native_values.number(value))),
    "unary-": _present(native_values.negated),
    "unary+": _present(native_values.operand),
    "boolean": lambda items: any(native_values.holds(item) for item in items),
    "not": lambda items: not any(native_values.holds(item) for item in items),
    "sum": native_values.total,
    "avg": native_values.average,
    "min": native_values.least,
    "max": native_values.greatest,
    "string-join": native_values.joined,
}
"""Functions that differ from those of XQuery."""


def holds_for_some(
    holds: Callable[[Sequence[Any]], Any], places: Sequence[int], row: Sequence[Any]
) -> bool:
    """Whether a condition holds for some values of the columns at these places."""
    cells = list(row)
    for values in product(*(row[at] for at in places)):
        for at, value in zip(places, values, strict=True):
            cells[at] = value
        try:
            if holds(cells) is True:
                return True
        except ValueProblem:
            continue  # these values do not pass
    return False
