"""A rewriting: a node that an `or` or a `not` only compares is replaced by its string value.

    for $i in /shop/order/id where not(/shop/shipment/order = $i) return ...
    /shop/order/id[not(. = /shop/shipment/order)]

Both conditions are about two places, the document and one node, so no node of a pattern can have
them. But of the node only the value matters, and a comparison takes one value from one node. So a
variable of the pattern can be bound to the value at the node, and the condition, with the variable
for the node, is one of the document.

Law: the rewritten condition is true for the value exactly if the condition is true for the node.
It does not hold for a path with steps (`$o/id`), which may find no node or several.
"""

from __future__ import annotations

from typing import Any

from axlog.query.plan_rewrites import rebuilt
from axlog.query.syntax_tree import (
    Binary,
    Context,
    Expression,
    Path,
    Predicate,
    Quantified,
    Reference,
    walk,
)

_COMPARISONS = frozenset("= != < <= > >= eq ne lt le gt ge".split())


def with_value(condition: Expression, node: str, value: str) -> Expression | None:
    """The condition with the variable `value` for `$node`, or None if it needs the node itself.

    >>> from axlog.query.xquery_parser import XQueryParser
    >>> from axlog.query.syntax_tree import references
    >>> parsed = XQueryParser("not(/a/b[c = $i])", {}).parse_query()
    >>> references(with_value(parsed, "i", "v"))
    {'v'}
    >>> with_value(XQueryParser("not(/a/b = $i/c)", {}).parse_query(), "i", "v") is None
    True
    """
    if any(_declares(part, node) for part in walk(condition)):
        return None
    found = _replaced(condition, node, value)
    is_left = any(isinstance(part, Reference) and part.name == node for part in walk(found))
    return None if is_left else found


def _declares(part: object, node: str) -> bool:
    return isinstance(part, Quantified | Predicate) and part.variable == node


def _replaced(part: Any, node: str, value: str) -> Any:
    match part:
        case Binary(operator=operator, left=left, right=right) if operator in _COMPARISONS:
            if _is_node(left, node) and _is_path(right):
                left = Path(Reference(value, left.at), (), left.at)
            elif _is_node(right, node) and _is_path(left):
                right = Path(Reference(value, right.at), (), right.at)
            part = Binary(operator, left, right, part.at)
    return rebuilt(part, lambda each: _replaced(each, node, value))


def _is_node(side: Expression, node: str) -> bool:
    match side:
        case Path(start=Reference(name=name), steps=()):
            return name == node
    return False


def _is_path(side: Expression) -> bool:
    return isinstance(side, Path) and (
        bool(side.steps) or isinstance(side.start, Context | Reference)
    )
