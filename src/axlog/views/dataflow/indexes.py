"""The indexes of collections: the keys of an entry, and the keys that a look-up asks for."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from axlog.document.tree import Tree
from axlog.errors import ValueProblem
from axlog.evaluate.casts import cast
from axlog.evaluate.clauses import key_form, key_value
from axlog.evaluate.comparisons import grouping_key
from axlog.evaluate.expressions import Evaluator, Scope
from axlog.evaluate.items import Items, Node, atoms
from axlog.query.plan import Index

ALL: Hashable = ()
"""The only key of an index of kind `one`."""


def entry_keys(
    evaluator: Evaluator, index: Index, scope: Scope
) -> tuple[list[Hashable], list[Items]]:
    """The keys of an entry, each with the values that it stands for."""
    tree = evaluator.tree
    if index.kind == "one":
        return [ALL], [[]]
    values = [evaluator.value(value, scope) for value in index.values]
    match index.kind:
        case "group":
            labels = [key_value(evaluator, each) for each in values]
            whole: Items = [item for label in labels for item in (label or [_MISSING])]
            return [tuple(map(key_form, labels))], [whole]
        case "distinct":
            found = {grouping_key(value): value for value in reversed(atoms(tree, values[0]))}
            return list(found), [[value] for value in found.values()]
        case "node":
            nodes = dict.fromkeys(item for item in values[0] if isinstance(item, Node))
            return list(nodes), [[node] for node in nodes]
        case "parent":
            parents = [tree.parent(item) for item in values[0] if isinstance(item, Node)]
            return list(parents), [[Node(parent)] for parent in parents]
        case "order":
            extreme = extreme_value(tree, index, values[0], is_inner=True)
            return ([], []) if extreme is None else ([extreme], [[]])
    keys = asked_keys(tree, index, values[0])
    return keys, [[] for _ in keys]


_MISSING: Any = None
"""In the label of a group: the key is the empty sequence."""


def asked_keys(tree: Tree, index: Index, items: Items) -> list[Hashable]:
    """The keys of the values of one expression."""
    found: dict[Hashable, None] = {}
    for value in atoms(tree, items):
        if index.kind == "string":
            found[str(value)] = None
        else:
            number = as_number(value)
            if number is not None:
                found[number] = None
    return list(found)


def as_number(value: Any) -> float | None:
    """A value as a double; None if it is none, or NaN, which is equal to no number."""
    try:
        number = cast(value, "xs:double")
    except ValueProblem:
        return None
    return number if isinstance(number, float) and number == number else None


def extreme_value(tree: Tree, index: Index, items: Items, is_inner: bool) -> Any:
    """The value that decides an order comparison of two sequences; None if there is none.

    `outer > inner` holds for some values if it holds for the greatest outer and the least inner.
    Where the index has the pairs for which it does not hold, a side without values is in all pairs:
    its value is at the end of the order.
    """
    values: list[Any] = atoms(tree, items)
    if index.is_number:
        values = [number for value in values if (number := as_number(value)) is not None]
    else:
        values = [str(value) for value in values]
    outer_is_greater = index.operator in (">", ">=")
    if not values:
        if not index.is_negated:
            return None
        return _AT_END[outer_is_greater, is_inner]
    found = min(values) if outer_is_greater == is_inner else max(values)
    return (1, found) if index.is_negated else found


_AT_END = {(False, True): (0,), (False, False): (3,), (True, True): (2,), (True, False): (-1,)}
