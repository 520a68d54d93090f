"""Scalar operations: the operators and functions of expressions, from sequences to a sequence.

Both are tables of pure functions of values. They read the values of nodes, but neither variables
nor positions; operations that need these, or sets of nodes, are in `expressions`. The names and
meanings are XPath's. Numbers are doubles; collations are by code point. The evaluator rejects a
wrong number of arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, floor, fmod, isfinite, isnan
from typing import TypeAlias

from axlog.document.operations import Attribute
from axlog.document.tree import ATTRIBUTE, CALL, CALL_LABEL, ELEMENT, NodeKind, Tree
from axlog.errors import QueryError
from axlog.evaluate.items import (
    COMPARISONS,
    Item,
    Items,
    Named,
    New,
    Node,
    Untyped,
    as_number,
    atom,
    compare,
    dated,
    is_true,
    text,
)
from axlog.evaluate.joins import MOST_ROWS

Function: TypeAlias = Callable[[Tree, list[Items]], Items]
Operator: TypeAlias = Callable[[Tree, Items, Items], Items]


def _string(tree: Tree, items: Items) -> str:
    """At most one item as a string; the empty sequence is the empty string."""
    if len(items) > 1:
        raise QueryError("XPTY0004", "expected one value, found several")
    return text(tree, items[0]) if items else ""


def _label(tree: Tree, items: Items) -> str:
    """The expanded name of a node, without the `@` of attributes."""
    if not items:
        return ""
    (item,) = items
    if isinstance(item, Node):
        kind = tree.kind_column[item]
        if kind in (ELEMENT, ATTRIBUTE):
            return tree.label(item).removeprefix("@")
        if kind == CALL:
            return CALL_LABEL
        return tree.text(item).partition(" ")[0] if kind == NodeKind.INSTRUCTION else ""
    if isinstance(item, New) and item.pieces:
        piece = item.pieces[0]
        if isinstance(piece, Attribute):
            return piece.name
        return "" if isinstance(piece, str) or not isinstance(piece.tag, str) else piece.tag
    raise QueryError("XPTY0004", "the argument of a name function is not a node")


def _local_name(tree: Tree, items: Items) -> str:
    return _label(tree, items).rpartition("}")[2]


def _namespace(tree: Tree, items: Items) -> str:
    return _label(tree, items).rpartition("}")[0].removeprefix("{")


def _name(tree: Tree, items: Items) -> str:
    """The name with the prefix of the declarations in scope."""
    local, address = _local_name(tree, items), _namespace(tree, items)
    if not address or not isinstance(items[0], Node):
        return local
    scope = tree.namespaces(items[0])
    prefixes = [prefix for prefix, uri in scope.items() if uri == address and prefix]
    is_default = scope.get(None) == address and tree.kind_column[items[0]] == ELEMENT
    return local if is_default or not prefixes else f"{prefixes[0]}:{local}"


def _substring(tree: Tree, given: list[Items]) -> Items:
    whole = _string(tree, given[0])
    start = _rounded(as_number(tree, given[1][0]))
    end = start + _rounded(as_number(tree, given[2][0])) if len(given) > 2 else float("inf")
    return ["".join(c for at, c in enumerate(whole, 1) if start <= at < end)]


def _rounded(value: float) -> float:
    return value if isnan(value) or value in (float("inf"), float("-inf")) else floor(value + 0.5)


def _extreme(pick: Callable[[list[float]], float]) -> Function:
    """The least or greatest value: as numbers, unless all are typed strings."""

    def extreme(tree: Tree, given: list[Items]) -> Items:
        atoms = [atom(tree, item) for item in given[0]]
        if atoms and all(isinstance(a, str) and not isinstance(a, Untyped) for a in atoms):
            ordered = sorted(str(a) for a in atoms)
            return [ordered[0] if pick is min else ordered[-1]]
        numbers = [as_number(tree, item) for item in given[0]]
        if any(isnan(value) for value in numbers):
            return [float("nan")]
        return [float(pick(numbers))] if numbers else []

    return extreme


def _distinct(tree: Tree, given: list[Items]) -> Items:
    seen: dict[object, Item] = {}
    for item in given[0]:
        value = atom(tree, item)
        seen.setdefault(value.label if isinstance(value, Named) else value, value)
    return list(seen.values())


def _translate(tree: Tree, given: list[Items]) -> Items:
    whole, old, new = (_string(tree, one) for one in given)
    table = {ord(c): new[at] if at < len(new) else None for at, c in reversed([*enumerate(old)])}
    return [whole.translate(table)]


def _qname(tree: Tree, given: list[Items]) -> Items:
    address, name = (_string(tree, one) for one in given)
    prefix, _, local = name.rpartition(":")
    return [Named(f"{{{address}}}{local}" if address else local, prefix)]


def _error(tree: Tree, given: list[Items]) -> Items:
    message = _string(tree, given[1]) if len(given) > 1 else "the statement raises an error"
    raise QueryError("FOER0000", message)


def _of_string(function: Callable[[str], Item]) -> Function:
    return lambda tree, given: [function(_string(tree, given[0]))]


def _of_strings(function: Callable[[str, str], Item]) -> Function:
    return lambda tree, given: [function(_string(tree, given[0]), _string(tree, given[1]))]


def _of_number(function: Callable[[float], float]) -> Function:
    def apply(tree: Tree, given: list[Items]) -> Items:
        values = [as_number(tree, item) for item in given[0]]
        return [value if isnan(value) else float(function(value)) for value in values]

    return apply


def _of_date(type_: str) -> Function:
    return lambda tree, given: [dated(type_, _string(tree, given[0]))] if given[0] else []


def _of_node(function: Callable[[Tree, Items], str]) -> Function:
    return lambda tree, given: [function(tree, given[0])]


FUNCTIONS: dict[str, tuple[int, int, Function]] = {
    "abs": (1, 1, _of_number(abs)),
    "ceiling": (1, 1, _of_number(ceil)),
    "concat": (2, 99, lambda tree, given: ["".join(_string(tree, one) for one in given)]),
    "contains": (2, 2, _of_strings(lambda whole, part: part in whole)),
    "count": (1, 1, lambda tree, given: [float(len(given[0]))]),
    "data": (0, 1, lambda tree, given: [atom(tree, item) for item in given[0]]),
    "distinct-values": (1, 1, _distinct),
    "empty": (1, 1, lambda tree, given: [not given[0]]),
    "ends-with": (2, 2, _of_strings(str.endswith)),
    "error": (0, 3, _error),
    "exists": (1, 1, lambda tree, given: [bool(given[0])]),
    "boolean": (1, 1, lambda tree, given: [is_true(given[0])]),
    "not": (1, 1, lambda tree, given: [not is_true(given[0])]),
    "true": (0, 0, lambda tree, given: [True]),
    "false": (0, 0, lambda tree, given: [False]),
    "floor": (1, 1, _of_number(floor)),
    "local-name": (0, 1, _of_node(_local_name)),
    "lower-case": (1, 1, _of_string(str.lower)),
    "max": (1, 1, _extreme(max)),
    "min": (1, 1, _extreme(min)),
    "name": (0, 1, _of_node(_name)),
    "namespace-uri": (0, 1, _of_node(_namespace)),
    "normalize-space": (0, 1, _of_string(lambda whole: " ".join(whole.split()))),
    "number": (
        0,
        1,
        lambda tree, given: [as_number(tree, given[0][0]) if given[0] else float("nan")],
    ),
    "QName": (2, 2, _qname),
    "round": (1, 1, _of_number(_rounded)),
    "starts-with": (2, 2, _of_strings(str.startswith)),
    "string": (0, 1, _of_node(_string)),
    "string-join": (
        1,
        2,
        lambda tree, given: [
            (_string(tree, given[1]) if len(given) > 1 else "").join(
                text(tree, item) for item in given[0]
            )
        ],
    ),
    "string-length": (0, 1, _of_string(lambda whole: float(len(whole)))),
    "substring": (2, 3, _substring),
    "sum": (1, 1, lambda tree, given: [float(sum(as_number(tree, item) for item in given[0]))]),
    "translate": (3, 3, _translate),
    "upper-case": (1, 1, _of_string(str.upper)),
    "xs:string": (1, 1, _of_node(_string)),
    "xs:integer": (1, 1, _of_number(int)),
    "xs:int": (1, 1, _of_number(int)),
    "xs:decimal": (1, 1, _of_number(float)),
    "xs:double": (1, 1, _of_number(float)),
    "xs:date": (1, 1, _of_date("xs:date")),
    "xs:dateTime": (1, 1, _of_date("xs:dateTime")),
    "xs:time": (1, 1, _of_date("xs:time")),
    "xs:boolean": (1, 1, lambda tree, given: [_string(tree, given[0]).strip() in ("true", "1")]),
}
"""The functions, with their least and greatest numbers of arguments; one less: the context item."""


# Operators ----------------------------------------------------------------------------------------


def _calculated(
    calculate: Callable[[float, float], float], tree: Tree, left: Items, right: Items
) -> Items:
    """A calculation with two numbers; empty if one of them is missing."""
    if not left or not right:
        return []
    one, other = _numbers(tree, left, right)
    try:
        return [calculate(one, other)]
    except (ZeroDivisionError, ValueError, OverflowError):
        return [float("nan") if one == 0 or isnan(one) else float("inf")]


def _numbers(tree: Tree, left: Items, right: Items) -> tuple[float, float]:
    if len(left) > 1 or len(right) > 1:
        raise QueryError("XPTY0004", "expected one number, found several values")
    return as_number(tree, left[0]), as_number(tree, right[0])


def _range(tree: Tree, left: Items, right: Items) -> Items:
    if not left or not right:
        return []
    one, other = _numbers(tree, left, right)
    if not (isfinite(one) and isfinite(other)):
        raise QueryError("XPTY0004", "the bounds of `to` are not numbers")
    if other - one >= MOST_ROWS:
        raise QueryError(
            "AX215",
            f"`to` gives more than {MOST_ROWS:,} numbers",
            advice="use a smaller range",
        )
    return [float(value) for value in range(int(one), int(other) + 1)]


def _concatenated(tree: Tree, left: Items, right: Items) -> Items:
    return ["".join(text(tree, item) for item in (*left, *right))]


def _compared(symbol: str, tree: Tree, left: Items, right: Items) -> Items:
    return [compare(tree, symbol, left, right)]


def _idiv(one: float, other: float) -> float:
    return float(int(one / other))


OPERATORS: dict[str, Operator] = {
    "+": partial(_calculated, lambda one, other: one + other),
    "-": partial(_calculated, lambda one, other: one - other),
    "*": partial(_calculated, lambda one, other: one * other),
    "div": partial(_calculated, lambda one, other: one / other),
    "idiv": partial(_calculated, _idiv),
    "mod": partial(_calculated, fmod),
    "to": _range,
    "||": _concatenated,
    **{symbol: partial(_compared, symbol) for symbol in COMPARISONS},
}
"""The operators on values; `and`, `or` and operators on nodes are in `expressions`."""
