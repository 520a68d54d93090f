"""Variables of the prolog whose values are literals, replaced by these literals.

`declare variable $least := 5; //a[b > $least]` is compiled as `//a[b > 5]`: a pattern, where a
query with a variable would be a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from axlog.query.function_expansion import declared_variables
from axlog.query.syntax_tree import (
    Call,
    Clause,
    Constant,
    Expression,
    External,
    Let,
    Path,
    Reference,
)


def without_constants(
    clauses: Sequence[Clause], found: Expression
) -> tuple[tuple[Clause, ...], Expression]:
    """The clauses that are left, and the expression with literals in place of their variables.

    A variable stays if its name is declared again, or if a path goes on from it.
    """
    whole = (*clauses, found)
    names = [clause.variable for clause in clauses if isinstance(clause, Let)]
    taken = declared_variables(found) | set(_path_starts(whole))
    values: dict[str, Expression] = {
        clause.variable: clause.value
        for clause in clauses
        if isinstance(clause, Let)
        and not isinstance(clause, External)
        and _is_literal(clause.value)
        and names.count(clause.variable) == 1
        and clause.variable not in taken
    }
    left = [c for c in clauses if not (isinstance(c, Let) and c.variable in values)]
    return tuple(_replaced(clause, values) for clause in left), _replaced(found, values)


def _is_literal(value: Expression) -> bool:
    if isinstance(value, Call) and value.name.startswith("xs:") and len(value.arguments) == 1:
        return isinstance(value.arguments[0], Constant)
    return isinstance(value, Constant)


def _path_starts(value: Any) -> Iterator[str]:
    """The variables that a path goes on from."""
    if isinstance(value, tuple):
        for each in value:
            yield from _path_starts(each)
    elif is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, Path) and isinstance(value.start, Reference) and value.steps:
            yield value.start.name
        for each in fields(value):
            yield from _path_starts(getattr(value, each.name))


def _replaced(value: Any, values: Mapping[str, Expression]) -> Any:
    if isinstance(value, tuple):
        return tuple(_replaced(each, values) for each in value)
    if not values or not is_dataclass(value) or isinstance(value, type):
        return value
    if isinstance(value, Path) and isinstance(value.start, Reference):
        found = values.get(value.start.name)
        return _with_parts(value, values) if found is None else found
    if isinstance(value, Reference):
        return values.get(value.name, value)
    return _with_parts(value, values)


def _with_parts(value: Any, values: Mapping[str, Expression]) -> Any:
    parts = {each.name: _replaced(getattr(value, each.name), values) for each in fields(value)}
    return type(value)(**parts)
