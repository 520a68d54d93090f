"""The clauses of FLWOR expressions: streams of scopes, one scope for each tuple.

Each clause turns a stream of scopes into another. `for`, `let` and `where` are lazy; `group by`
and `order by` read all tuples first. Keys are atomised; an untyped key is a string. Groups come in
the order of their first tuples. Sorting is stable, by code point for strings; NaN is next to the
empty sequence, which is the least value unless the clause says `empty greatest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, total_ordering
from math import isnan
from operator import lt
from typing import TYPE_CHECKING, Any

from axlog.errors import ValueProblem
from axlog.evaluate.atoms import Atom, Untyped
from axlog.evaluate.comparisons import compared, grouping_key
from axlog.evaluate.items import Items, Later, atoms
from axlog.query.syntax_tree import (
    Clause,
    Counted,
    External,
    For,
    ForAt,
    ForKept,
    GroupBy,
    Let,
    OrderBy,
    OrderKey,
    Where,
)

if TYPE_CHECKING:
    from axlog.evaluate.expressions import Evaluator, Scope

    Scopes = Iterable[Scope]


def tuples(evaluator: Evaluator, clauses: Sequence[Clause], scope: Scope) -> Iterator[Scope]:
    """The scopes of the tuples that clauses make from one scope."""
    found: Scopes = (scope,)
    for clause in clauses:
        found = _STAGES[type(clause)](evaluator, clause, found)
    return iter(found)


def _bound(evaluator: Evaluator, clause: Let, scopes: Scopes) -> Iterator[Scope]:
    for scope in scopes:
        yield scope.binding(clause.variable, Later(partial(evaluator.value, clause.value, scope)))


def _given(evaluator: Evaluator, clause: External, scopes: Scopes) -> Iterator[Scope]:
    if clause.variable in evaluator.given:
        return iter(scopes)
    return _bound(evaluator, clause, scopes)


def _filtered(evaluator: Evaluator, clause: Where, scopes: Scopes) -> Iterator[Scope]:
    return (scope for scope in scopes if evaluator.holds(clause.condition, scope))


def _looped(evaluator: Evaluator, clause: For, scopes: Scopes) -> Iterator[Scope]:
    position = clause.position if isinstance(clause, ForAt) else None
    for scope in scopes:
        items = evaluator.value(clause.source, scope)
        if not items and clause.allows_empty:
            empty = scope.binding(clause.variable, [])
            yield empty if position is None else empty.binding(position, [0])
        for number, item in enumerate(items, 1):
            inner = scope.binding(clause.variable, [item])
            if position is not None:
                inner = inner.binding(position, [number])
            yield inner


def _counted(evaluator: Evaluator, clause: Counted, scopes: Scopes) -> Iterator[Scope]:
    for number, scope in enumerate(scopes, 1):
        yield scope.binding(clause.variable, [number])


def _found(evaluator: Evaluator, clause: ForKept, scopes: Scopes) -> Iterator[Scope]:
    for scope in scopes:
        yield from evaluator.tuples_kept(clause, scope)


def _grouped(evaluator: Evaluator, clause: GroupBy, scopes: Scopes) -> Iterator[Scope]:
    groups: dict[tuple[object, ...], tuple[list[Items], list[Scope]]] = {}
    for scope in scopes:
        for name, value in clause.keys:
            if value is not None:
                scope = scope.binding(name, evaluator.value(value, scope))
        keys = [key_value(evaluator, scope.items(name)) for name, _ in clause.keys]
        group = groups.setdefault(tuple(map(key_form, keys)), (keys, []))
        group[1].append(scope)
    names = [name for name, _ in clause.keys]
    for keys, members in groups.values():
        merged: dict[str, Items | Later] = {}
        for variable in members[0].variables:
            merged[variable] = Later(partial(_of_all, members, variable))
        merged.update(zip(names, keys, strict=True))
        for name in evaluator.given:  # the same in every tuple
            merged[name] = members[0].variables[name]
        yield members[0].with_variables(merged)


def _of_all(members: Sequence[Scope], variable: str) -> Items:
    return [item for each in members for item in each.items(variable)]


def _sorted(evaluator: Evaluator, clause: OrderBy, scopes: Scopes) -> Iterator[Scope]:
    listed = list(scopes)
    keys = [order_key(evaluator, clause.keys, scope) for scope in listed]
    for at in sorted(range(len(listed)), key=keys.__getitem__):
        yield listed[at]


_STAGES: dict[type, Callable[[Evaluator, Any, Scopes], Iterator[Scope]]] = {
    For: _looped,
    ForAt: _looped,
    ForKept: _found,
    Let: _bound,
    External: _given,
    Where: _filtered,
    GroupBy: _grouped,
    OrderBy: _sorted,
    Counted: _counted,
}


# Keys ---------------------------------------------------------------------------------------------


def key_value(evaluator: Evaluator, items: Items) -> Items:
    """The value of a key of `group by` or `order by`: at most one atom, a string if untyped."""
    found = atoms(evaluator.tree, items)
    if len(found) > 1:
        raise ValueProblem("XPTY0004", "a key of `group by` or `order by` has several values")
    return [str(each) if type(each) is Untyped else each for each in found]


def key_form(items: Items) -> object:
    """A hashable form of a key: equal forms are equal keys. NaN is equal to itself."""
    return grouping_key(items[0]) if items else None  # type: ignore[arg-type]


def order_key(evaluator: Evaluator, keys: Sequence[OrderKey], scope: Scope) -> tuple[object, ...]:
    """The sort key of a tuple."""
    return tuple(_order_part(evaluator, key, evaluator.value(key.value, scope)) for key in keys)


def _order_part(evaluator: Evaluator, key: OrderKey, items: Items) -> object:
    found = key_value(evaluator, items)
    if not found:
        part = _Place(2 if key.is_empty_greatest else 0, None)
    elif isinstance(found[0], float) and isnan(found[0]):
        part = _Place(1, None)
    else:
        part = _Place(0 if key.is_empty_greatest else 2, found[0])  # type: ignore[arg-type]
    return _Reversed(part) if key.is_descending else part


@total_ordering
class _Place:
    """A value among the values of one key; `rank` places the empty sequence and NaN."""

    __slots__ = ("rank", "value")

    def __init__(self, rank: int, value: Atom | None) -> None:
        self.rank = rank
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and self.rank == other.rank and self.value == other.value

    def __lt__(self, other: _Place) -> bool:
        if self.rank != other.rank:
            return self.rank < other.rank
        if self.value is None or other.value is None:
            return False
        return compared(lt, self.value, other.value)

    def __hash__(self) -> int:
        return hash((self.rank, self.value))


@total_ordering
class _Reversed:
    """A place in descending order."""

    __slots__ = ("place",)

    def __init__(self, place: _Place) -> None:
        self.place = place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and self.place == other.place

    def __lt__(self, other: _Reversed) -> bool:
        return other.place < self.place

    def __hash__(self) -> int:
        return hash(self.place)
