"""Functions of the prolog, expanded where they are called.

A call becomes `let` clauses for the arguments and the body of the function. Each expansion renames
the variables of the function, so that no name of the caller is captured. Recursion is refused: its
expansion has no end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import count
from typing import Any

from axlog.errors import QueryError
from axlog.query.depth import check_depth, too_deep
from axlog.query.expression_categories import Category, classify, need_updating
from axlog.query.plan_rewrites import ON_CONTEXT
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    Call,
    Context,
    Counted,
    Expression,
    Flwor,
    For,
    ForAt,
    GroupBy,
    Let,
    Path,
    Predicate,
    Quantified,
    Reference,
    Root,
    SequenceType,
    Typed,
    Update,
)
from axlog.query.tokenizer import unsupported

MOST_CALLS = 1_000
"""Calls that the expansion of one query may have: nested functions multiply them."""
_POSITIONS = ("position", "last")
MOST_NESTED = 30
"""Functions that may call each other in a row."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the prolog: its parameters with their types, its result type, its body.

    `is_updating`: a call of it is an updating expression.
    """

    name: str
    parameters: tuple[tuple[str, SequenceType | None], ...]
    result: SequenceType | None
    body: Expression
    at: int
    is_updating: bool = False


def expanded(
    expression: Expression, functions: Mapping[tuple[str, int], Function], text: str
) -> Expression:
    """The expression with every call of a declared function replaced by the function's body."""
    for function in functions.values():
        check_depth(function.body, text)
        _check_category(function, functions, text)
        _check_context(function, function.body, text)
    found: Expression = _Expansion(functions, text).of(expression, ())
    return found


def _check_category(
    function: Function, functions: Mapping[tuple[str, int], Function], text: str
) -> None:
    """Refuse a function that updates and is not declared so, and the other way round."""
    body = _with_updates(function.body, functions)
    if function.is_updating:
        need_updating(body, text, f"the updating function {function.name}()")
    elif classify(body, text) is Category.UPDATING:
        raise QueryError(
            "XUST0001",
            f"the function {function.name}() updates",
            place=place_at(text, function.at),
            advice="declare updating function",
        )


def _check_context(function: Function, value: Any, text: str) -> None:
    """Refuse a body that reads the context item: inside a function there is none.

    Steps and predicates have a context item of their own.
    """
    match value:
        case Context(at=at) | Root(at=at):
            raise _without_context(function, at, text)
        case Call(name=name, arguments=(), at=at) if name in ON_CONTEXT or name in _POSITIONS:
            raise _without_context(function, at, text)
        case Path(start=start):
            _check_context(function, start, text)
            return
    parts = value if isinstance(value, tuple) else ()
    if is_dataclass(value) and not isinstance(value, type):
        parts = tuple(getattr(value, each.name) for each in fields(value))
    for part in parts:
        _check_context(function, part, text)


def _without_context(function: Function, at: int, text: str) -> QueryError:
    return QueryError(
        "XPDY0002",
        f"inside the function {function.name}() there is no context item",
        place=place_at(text, at),
        advice=f"pass the document as an argument: {function.name}(..., /)",
    )


def _with_updates(value: Any, functions: Mapping[tuple[str, int], Function]) -> Any:
    """A part of the tree with calls of updating functions marked as updates."""
    if isinstance(value, tuple):
        return tuple(_with_updates(each, functions) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    parts = {f.name: _with_updates(getattr(value, f.name), functions) for f in fields(value)}
    made = type(value)(**parts)
    if isinstance(made, Call):
        called = functions.get((made.name, len(made.arguments)))
        if called is not None and called.is_updating:
            return Update(made.name, made.arguments, made.at)
    return made


class _Expansion:
    def __init__(self, functions: Mapping[tuple[str, int], Function], text: str) -> None:
        self._functions = functions
        self._text = text
        self._calls = count(1)

    def of(self, value: Any, inside: tuple[str, ...]) -> Any:
        """A part of the tree with its calls expanded; `inside` are the functions around it."""
        if isinstance(value, tuple):
            return tuple(self.of(each, inside) for each in value)
        if not is_dataclass(value) or isinstance(value, type):
            return value
        parts = {each.name: self.of(getattr(value, each.name), inside) for each in fields(value)}
        made = type(value)(**parts)
        if isinstance(made, Call) and ":" in made.name and not made.name.startswith("xs:"):
            return self._call(made, inside)
        return made

    def _call(self, call: Call, inside: tuple[str, ...]) -> Expression:
        function = self._functions.get((call.name, len(call.arguments)))
        if function is None:
            known = ", ".join(f"{name}() with {n}" for name, n in sorted(self._functions))
            raise unsupported(
                self._text,
                call.at,
                f"the function {call.name}() with {len(call.arguments)} arguments",
                expected=f"one of {known}" if known else None,
            )
        if call.name in inside:
            raise unsupported(self._text, call.at, f"recursion of {call.name}()")
        if len(inside) >= MOST_NESTED:
            raise too_deep(self._text, call.at)
        number = next(self._calls)
        if number > MOST_CALLS:
            raise QueryError(
                "AX213",
                f"the functions of the query are called more than {MOST_CALLS:,} times",
                place=place_at(self._text, call.at),
            )
        body = self.of(function.body, (*inside, call.name))
        names = {name: f"{name}~{number}" for name in declared_variables(body)}
        names |= {name: f"{name}~{number}" for name, _ in function.parameters}
        clauses = tuple(
            Let(names[name], _converted(argument, type_), argument.at)
            for (name, type_), argument in zip(function.parameters, call.arguments, strict=True)
        )
        returned = _converted(_renamed(body, names), function.result)
        return Flwor(clauses, returned, call.at) if clauses else returned


def _converted(value: Expression, type_: SequenceType | None) -> Expression:
    return value if type_ is None else Typed("convert", value, type_, value.at)


def declared_variables(value: object) -> set[str]:
    """The variables that a part of the tree declares."""
    found: set[str] = set()
    if isinstance(value, tuple):
        return found.union(*map(declared_variables, value))
    match value:
        case ForAt(variable=variable, position=position):
            found = {variable, position}
        case For(variable=variable) | Let(variable=variable) | Counted(variable=variable):
            found = {variable}
        case Quantified(variable=variable):
            found = {variable}
        case GroupBy(keys=keys):
            found = {variable for variable, _ in keys}
    if is_dataclass(value) and not isinstance(value, type):
        return found.union(
            *(declared_variables(getattr(value, each.name)) for each in fields(value))
        )
    return found


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A part of the tree with its variables renamed."""
    if isinstance(value, tuple):
        return tuple(_renamed(each, names) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    parts = {each.name: _renamed(getattr(value, each.name), names) for each in fields(value)}
    match value:
        case Reference(name=name):
            parts["name"] = names.get(name, name)
        case ForAt(variable=variable, position=position):
            parts["variable"] = names.get(variable, variable)
            parts["position"] = names.get(position, position)
        case For() | Let() | Quantified() | Counted():
            parts["variable"] = names.get(value.variable, value.variable)
        case Predicate(variable=str() as variable):
            parts["variable"] = names.get(variable, variable)
        case GroupBy(keys=keys):
            parts["keys"] = tuple(
                (names.get(name, name), _renamed(inside, names)) for name, inside in keys
            )
    return type(value)(**parts)
