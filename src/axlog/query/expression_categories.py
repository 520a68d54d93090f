"""The category of each expression in a statement: updating, simple or vacuous.

XQuery Update allows an updating expression only in `return`, in both branches of `if`, and in a
sequence of updating expressions. Updates among values, and values among updates, are refused with
the recommendation's code (XUST0001); values where only updates are possible, in `modify` and in
updating functions, with XUST0002.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum

from axlog.errors import QueryError
from axlog.query.positions import place_at
from axlog.query.syntax_tree import Call, Expression, Flwor, Sequence, Transform, Update


class Category(Enum):
    """Whether an expression gives values, updates, or neither (`()`, `error()`)."""

    SIMPLE = "simple"
    UPDATING = "updating"
    VACUOUS = "vacuous"


def classify(expression: Expression, text: str) -> Category:
    """The category of an expression; refuses a mixture of updates and values."""
    match expression:
        case Update(arguments=arguments):
            for argument in arguments:
                _need_simple(argument, text)
            return Category.UPDATING
        case Call(name="if", arguments=(condition, first, second)):
            _need_simple(condition, text)
            return _together((first, second), text)
        case Call(name="error"):
            _need_simple_inside(expression, text)
            return Category.VACUOUS
        case Sequence(items=items):
            return _together(items, text)
        case Flwor(clauses=clauses, returned=returned):
            for clause in clauses:
                _need_simple_inside(clause, text)
            return classify(returned, text)
        case Transform(copies=copies, modified=modified, returned=returned):
            for clause in copies:
                _need_simple_inside(clause, text)
            need_updating(modified, text, "`modify`")
            _need_simple(returned, text)
            return Category.SIMPLE
    _need_simple_inside(expression, text)
    return Category.SIMPLE


def need_updating(expression: Expression, text: str, where: str) -> None:
    """Refuse a value where only updates are possible."""
    if classify(expression, text) is Category.SIMPLE:
        raise QueryError(
            "XUST0002",
            f"{where} gives a value",
            place=place_at(text, expression.at),
            expected="updates, or `()`",
        )


def _together(items: tuple[Expression, ...], text: str) -> Category:
    categories = [classify(item, text) for item in items]
    if Category.UPDATING in categories and Category.SIMPLE in categories:
        raise _misplaced(
            items[categories.index(Category.SIMPLE)].at, text, "a value beside updates"
        )
    for category in (Category.UPDATING, Category.SIMPLE):
        if category in categories:
            return category
    return Category.VACUOUS


def _need_simple(expression: Expression, text: str) -> None:
    if classify(expression, text) is Category.UPDATING:
        raise _misplaced(expression.at, text, "an update where a value is expected")


def _need_simple_inside(node: object, text: str) -> None:
    for expression in _expressions(node):
        _need_simple(expression, text)


def _expressions(node: object) -> Iterator[Expression]:
    """The expressions directly inside a node of the syntax tree."""
    if not is_dataclass(node):
        return
    for field in fields(node):
        yield from _within(getattr(node, field.name))


def _within(value: object) -> Iterator[Expression]:
    if isinstance(value, tuple):
        for item in value:
            yield from _within(item)
    elif isinstance(value, Expression):
        yield value
    else:
        yield from _expressions(value)


def _misplaced(at: int, text: str, problem: str) -> QueryError:
    return QueryError(
        "XUST0001",
        f"{problem} is not allowed",
        place=place_at(text, at),
        expected="updates in `return`, in both branches of `if`, and in lists of updates",
    )
