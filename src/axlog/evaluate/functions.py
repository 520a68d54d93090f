"""The tables of operators and functions on sequences: `OPERATORS` and `FUNCTIONS`.

They read the values of nodes, but neither variables nor positions; operations that need these, or
sets of nodes, are in `expressions`. Names, types and errors are those of XPath 3.1; collations are
by code point. A new function is an entry in the table of its subject, with its signature, and a
name in `query.function_names`. The evaluator rejects a wrong number of arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from axlog.document.tree import Tree
from axlog.errors import QueryError, ValueProblem
from axlog.evaluate.arithmetic import ARITHMETIC, negated, signed
from axlog.evaluate.atoms import Atom, Untyped, text_of, type_of
from axlog.evaluate.casts import CASTS, cast
from axlog.evaluate.comparisons import COMPARISONS
from axlog.evaluate.date_functions import DATE_FUNCTIONS
from axlog.evaluate.items import Items, atoms, compare
from axlog.evaluate.joins import MOST_ROWS
from axlog.evaluate.node_functions import NODE_FUNCTIONS
from axlog.evaluate.sequence_functions import SEQUENCE_FUNCTIONS
from axlog.evaluate.signatures import Function, function
from axlog.evaluate.string_functions import STRING_FUNCTIONS
from axlog.query.numbers import Number, ceiled, floored, rounded, rounded_to_even, size

Operator: TypeAlias = Callable[[Tree, Items, Items], Items]


def _of_number(calculate: Callable[..., Number], signature: str = "numeric?") -> Function:
    """A function of a number that may be missing."""

    def apply(value: Number | None, *more: int) -> Number | None:
        return None if value is None else calculate(value, *more)

    return function(signature, apply)


def _cast(type_: str) -> Function:
    """The constructor function of a type."""
    convert = CASTS[type_]
    return function("any?", lambda value: None if value is None else convert(value))


def _error(code: Any = None, message: str = "the statement raises an error", *_: Any) -> None:
    raise QueryError("FOER0000", message)


FUNCTIONS: dict[str, Function] = {
    **SEQUENCE_FUNCTIONS,
    **STRING_FUNCTIONS,
    **DATE_FUNCTIONS,
    **NODE_FUNCTIONS,
    "abs": _of_number(size),
    "ceiling": _of_number(ceiled),
    "floor": _of_number(floored),
    "round": _of_number(rounded, "numeric? [integer]"),
    "round-half-to-even": _of_number(rounded_to_even, "numeric? [integer]"),
    "error": function("[any?] [string] [item*]", _error),
    "xs:int": _cast("xs:integer"),
    **{type_: _cast(type_) for type_ in CASTS},
    "unary-": function("any?", lambda value: None if value is None else negated(value)),
    "unary+": function("any?", lambda value: None if value is None else signed(value)),
}
"""The functions by name; `unary-` and `unary+` are the signs."""


# Operators ----------------------------------------------------------------------------------------


def single(values: list[Any], what: str) -> Atom | None:
    """The one value of an operand; None if there is none."""
    if len(values) > 1:
        raise ValueProblem("XPTY0004", f"expected one {what}, found several values")
    return values[0] if values else None


def _calculated(
    calculate: Callable[[Any, Any], Atom], tree: Tree, left: Items, right: Items
) -> Items:
    """A calculation with two values; empty if one of them is missing."""
    one, other = single(atoms(tree, left), "number"), single(atoms(tree, right), "number")
    return [] if one is None or other is None else [calculate(one, other)]


def _range(tree: Tree, left: Items, right: Items) -> Items:
    one, other = single(atoms(tree, left), "integer"), single(atoms(tree, right), "integer")
    return [] if one is None or other is None else number_range(one, other)


def number_range(one: Atom, other: Atom) -> Items:
    """`one to other`, with a limit."""
    first, last = (cast(v, "xs:integer") if type(v) is Untyped else v for v in (one, other))
    for bound in (first, last):
        if type(bound) is not int:
            raise ValueProblem("XPTY0004", f"a bound of `to` is of {type_of(bound)}, no integer")
    assert isinstance(first, int)
    assert isinstance(last, int)
    if last - first >= MOST_ROWS:
        raise QueryError(
            "AX215",
            f"`to` gives more than {MOST_ROWS:,} numbers",
            advice="use a smaller range",
        )
    return list(range(first, last + 1))


def _concatenated(tree: Tree, left: Items, right: Items) -> Items:
    sides = (single(atoms(tree, side), "string") for side in (left, right))
    return ["".join(text_of(side) for side in sides if side is not None)]


def _compared(symbol: str, tree: Tree, left: Items, right: Items) -> Items:
    found = compare(tree, symbol, left, right)
    return [] if found is None else [found]


OPERATORS: dict[str, Operator] = {
    **{symbol: partial(_calculated, calculate) for symbol, calculate in ARITHMETIC.items()},
    "to": _range,
    "||": _concatenated,
    **{symbol: partial(_compared, symbol) for symbol in COMPARISONS},
}
"""The operators on values; `and`, `or` and operators on nodes are in `expressions`."""
