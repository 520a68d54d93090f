"""The functions of sequences: aggregates, choices and equality (F&O 3.1, section 14)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import inf, isnan
from typing import Any

from axlog.document.tree import Tree
from axlog.errors import ValueProblem
from axlog.evaluate.arithmetic import ARITHMETIC
from axlog.evaluate.atoms import NUMERIC, Atom, Untyped, type_of
from axlog.evaluate.casts import cast
from axlog.evaluate.comparisons import compared, grouping_key
from axlog.evaluate.deep_equality import deep_equal
from axlog.evaluate.items import Items, is_true
from axlog.evaluate.signatures import Function, function
from axlog.query.dates import DayTimeDuration, YearMonthDuration
from axlog.query.numbers import double, rounded

_DURATIONS = (DayTimeDuration, YearMonthDuration)


def _alike(values: Sequence[Atom], name: str) -> list[Any]:
    """The values of an aggregate in one type: untyped ones as doubles, numbers beside doubles."""
    found = [cast(value, "xs:double") if type(value) is Untyped else value for value in values]
    kinds = {type(value) for value in found}
    if kinds <= NUMERIC:
        if float in kinds:
            return [double(value) for value in found]  # type: ignore[arg-type]
        return found
    if len(kinds) > 1:
        raise ValueProblem("FORG0006", f"{name}() has values of several types")
    return found


def _sum(values: Sequence[Atom], *zeros: Atom | None) -> Atom | None:
    if not values:
        return zeros[0] if zeros else 0
    return _total(_alike(values, "sum"), "sum")


def _avg(values: Sequence[Atom]) -> Atom | None:
    if not values:
        return None
    return ARITHMETIC["div"](_total(_alike(values, "avg"), "avg"), len(values))


def _total(values: list[Atom], name: str) -> Atom:
    if type(values[0]) not in NUMERIC and not isinstance(values[0], _DURATIONS):
        raise ValueProblem("FORG0006", f"{name}() is not defined for {type_of(values[0])}")
    total = values[0]
    for value in values[1:]:
        total = ARITHMETIC["+"](total, value)
    return total


def _extreme(name: str, holds: Callable[[Any, Any], bool]) -> Callable[..., Atom | None]:
    """min() or max(): `holds` says whether a value replaces the best one so far."""

    def extreme(values: Sequence[Atom], collation: str | None = None) -> Atom | None:
        found = _alike(values, name)
        if not found:
            return None
        if any(type(value) is float and isnan(value) for value in found):
            return float("nan")
        best = found[0]
        try:
            compared(holds, best, best)
            for value in found[1:]:
                if compared(holds, value, best):
                    best = value
        except ValueProblem as problem:
            raise ValueProblem("FORG0006", problem.message) from None
        return best  # type: ignore[no-any-return]

    return extreme


def _distinct(values: Sequence[Atom]) -> list[Atom]:
    found: dict[object, Atom] = {}
    for value in values:
        found.setdefault(grouping_key(value), value)
    return list(found.values())


def _index_of(values: Sequence[Atom], wanted: Atom) -> list[int]:
    found = []
    for at, value in enumerate(values, 1):
        try:
            is_equal = compared(operator.eq, _string(value), _string(wanted))
        except ValueProblem:
            continue
        if is_equal:
            found.append(at)
    return found


def _string(value: Atom) -> Atom:
    return str.__str__(value) if type(value) is Untyped else value


def _subsequence(items: Items, start: float, length: float | None = None) -> Items:
    first = float(rounded(start))
    last = inf if length is None else first + float(rounded(length))
    return [item for at, item in enumerate(items, 1) if first <= at < last]


def _insert_before(items: Items, at: int, inserted: Items) -> Items:
    place = max(at, 1) - 1
    return [*items[:place], *inserted, *items[place:]]


def _remove(items: Items, at: int) -> Items:
    return [item for place, item in enumerate(items, 1) if place != at]


def _with_size(code: str, least: int, most: float, name: str) -> Callable[[Items], Items]:
    def check(items: Items) -> Items:
        if not least <= len(items) <= most:
            raise ValueProblem(code, f"{name}() has {len(items)} items")
        return items

    return check


def _deep_equal(tree: Tree, one: Items, other: Items) -> bool:
    return deep_equal(tree, one, other)


SEQUENCE_FUNCTIONS: dict[str, Function] = {
    "count": function("item*", len),
    "empty": function("item*", lambda items: not items),
    "exists": function("item*", bool),
    "boolean": function("item*", is_true),
    "not": function("item*", lambda items: not is_true(items)),
    "true": function("", lambda: True),
    "false": function("", lambda: False),
    "sum": function("any* [any?]", _sum),
    "avg": function("any*", _avg),
    "min": function("any* [string]", _extreme("min", lambda one, other: one < other)),
    "max": function("any* [string]", _extreme("max", lambda one, other: one > other)),
    "distinct-values": function("any*", _distinct, is_many=True),
    "index-of": function("any* any", _index_of, is_many=True),
    "reverse": function("item*", lambda items: items[::-1], is_many=True),
    "head": function("item*", lambda items: items[:1], is_many=True),
    "tail": function("item*", lambda items: items[1:], is_many=True),
    "subsequence": function("item* double [double]", _subsequence, is_many=True),
    "insert-before": function("item* integer item*", _insert_before, is_many=True),
    "remove": function("item* integer", _remove, is_many=True),
    "zero-or-one": function("item*", _with_size("FORG0003", 0, 1, "zero-or-one"), is_many=True),
    "one-or-more": function("item*", _with_size("FORG0004", 1, inf, "one-or-more"), is_many=True),
    "exactly-one": function("item*", _with_size("FORG0005", 1, 1, "exactly-one"), is_many=True),
    "deep-equal": function("item* item*", _deep_equal, takes_tree=True),
}
