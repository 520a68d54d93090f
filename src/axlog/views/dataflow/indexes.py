"""The indexes of collections: the keys of an entry, and the keys that a look-up asks for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from axlog.document.tree import Tree
from axlog.errors import ValueProblem
from axlog.evaluate.casts import cast
from axlog.evaluate.clauses import key_form, key_value
from axlog.evaluate.comparisons import grouping_key
from axlog.evaluate.expressions import Evaluator, Scope
from axlog.evaluate.items import Items, Node, atoms
from axlog.query.plan import Index

if TYPE_CHECKING:
    from axlog.views.dataflow.groups import Entry
    from axlog.views.dataflow.units import Unit

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
    """
    values: list[Any] = atoms(tree, items)
    if index.is_number:
        values = [number for value in values if (number := as_number(value)) is not None]
    else:
        values = [str(value) for value in values]
    if not values:
        return None
    outer_is_greater = index.operator in (">", ">=")
    return min(values) if outer_is_greater == is_inner else max(values)


class OrderedEntries:
    """The entries of a collection by one value, and the units that compared a value with them."""

    def __init__(self, index: Index) -> None:
        self._operator = index.operator
        self._values: list[Any] = []
        self._entries: list[list[Entry]] = []
        self._asked: list[Any] = []
        self._units: list[dict[Unit, None]] = []

    def add(self, value: Any, entry: Entry) -> None:
        at = bisect_left(self._values, value)
        if at == len(self._values) or self._values[at] != value:
            self._values.insert(at, value)
            self._entries.insert(at, [])
        self._entries[at].append(entry)

    def remove(self, value: Any, entry: Entry) -> None:
        at = bisect_left(self._values, value)
        self._entries[at].remove(entry)
        if not self._entries[at]:
            del self._values[at], self._entries[at]

    def found(self, asked: Any) -> list[Entry]:
        """The entries whose value compares with the asked one."""
        low, high = self._range(self._values, asked, self._operator)
        return [entry for each in self._entries[low:high] for entry in each]

    def watch(self, unit: Unit, asked: Any) -> None:
        at = bisect_left(self._asked, asked)
        if at == len(self._asked) or self._asked[at] != asked:
            self._asked.insert(at, asked)
            self._units.insert(at, {})
        self._units[at][unit] = None

    def unwatch(self, unit: Unit, asked: Any) -> None:
        at = bisect_left(self._asked, asked)
        if at < len(self._asked) and self._asked[at] == asked:
            self._units[at].pop(unit, None)
            if not self._units[at]:
                del self._asked[at], self._units[at]

    def watching(self, value: Any) -> list[Unit]:
        """The units whose value compares with that of an entry."""
        mirrored = {">": "<", ">=": "<=", "<": ">", "<=": ">="}[self._operator]
        low, high = self._range(self._asked, value, mirrored)
        return [unit for each in self._units[low:high] for unit in each]

    @staticmethod
    def _range(values: list[Any], asked: Any, operator: str) -> tuple[int, int]:
        """The values v in a sorted list with `asked operator v`."""
        match operator:
            case ">":
                return 0, bisect_left(values, asked)
            case ">=":
                return 0, bisect_right(values, asked)
            case "<":
                return bisect_right(values, asked), len(values)
        return bisect_left(values, asked), len(values)
