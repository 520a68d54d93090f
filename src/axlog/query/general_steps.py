"""Generalization of steps: a query with the constants of its pattern and of its steps taken out.

    match //a/x/$x return $x, count() as n having n > 3
    match //a/x/$x return $x, count() as n having n > a number

Taken out of steps are the numbers and texts that a value is compared with, the durations of the
clock (`now - t >= 7200`), and limits. Every member runs steps of its own: those of the shape with
its constants (`bound_steps`). Positions in the text are not part of the shape.

Law: the steps of a query are those of its shape with its constants, but for positions in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple

from axlog.query.columns import Columns
from axlog.query.generalize import General, ParameterValue, StepParameter, generalize
from axlog.query.pattern import Number, Pattern
from axlog.query.row_key import RowKey
from axlog.query.steps import Clock, Filter, Group, Order, Step, columns_after
from axlog.query.syntax_tree import (
    Binary,
    Constant,
    Reference,
    field_names,
    references,
    walk,
)

_COMPARED = frozenset("= != < <= > >= eq ne lt le gt ge".split())
MOST_PARTS = 100
"""The most expressions of steps whose constants are taken out: they may be deep."""
_NOTHING = Pattern((), ())
Exchange = Callable[[str, ParameterValue], ParameterValue]
"""Called with each constant, in their order, and what it is for; returns what takes its place."""


def generalize_query(key: RowKey, *, durations: bool = False, is_wide: bool = False) -> General:
    """The general pattern of a query and its steps without their constants.

    `durations`: whether bounds of times are taken out, too; `is_wide`: whatever their length.
    """
    general = generalize(key.pattern, durations=durations, is_wide=is_wide)
    if sum(1 for _ in islice(walk(key.steps), MOST_PARTS)) == MOST_PARTS:
        return replace(general, steps=key.steps)
    parameters: list[StepParameter] = []
    constants: list[ParameterValue] = []

    def take(kind: str, constant: ParameterValue) -> ParameterValue:
        parameters.append(StepParameter(kind))
        constants.append(constant)
        return _neutral(constant)

    steps = tuple(_exchanged(key.steps, take))
    return replace(
        general,
        parameters=(*general.parameters, *parameters),
        constants=(*general.constants, *constants),
        steps=steps,
    )


def bound_steps(
    general: tuple[Step, ...], constants: tuple[ParameterValue, ...]
) -> tuple[Step, ...]:
    """The steps of a shape with the constants of one query: the last of its parameters."""
    left = iter(constants[len(constants) - _count(general) :])
    return tuple(_exchanged(general, lambda kind, neutral: next(left)))


class OrderedHaving(NamedTuple):
    """A condition of `having` that compares a column of the group with a number of each query."""

    position: int  # of the column in a row of the group
    symbol: str
    number: int  # of the constant among those of the steps


def after_group(general: tuple[Step, ...]) -> bool:
    """Whether queries with these steps have a group, and differ only after the first one."""
    at = next((n for n, step in enumerate(general) if isinstance(step, Group)), None)
    if at is None:
        return False
    return _count(general[: at + 1]) == 0 < _count(general)


def ordered_having(general: tuple[Step, ...], columns: Columns) -> OrderedHaving | None:
    """The first condition of `having` on a number that differs between queries, if it has an order.

    `columns`: of the pattern. None: there is none.
    """
    at = next(n for n, step in enumerate(general) if isinstance(step, Group))
    group, numbers = general[at], iter(range(MOST_PARTS))
    assert isinstance(group, Group)
    types = columns_after(general[: at + 1], iter(zip(columns, columns.types, strict=True)))
    schema = [*group.keys, *(each.name for each in group.aggregates)]
    readable = {each.name for each in group.aggregates if each.by is None} | {*group.keys}
    readable -= {name for name, type_ in types.items() if type_ == "time"}

    def numbered(kind: str, constant: ParameterValue) -> ParameterValue:
        number = next(numbers)
        return Number(Decimal(number)) if isinstance(constant, Number) else constant

    for step in tuple(_exchanged(general, numbered))[at + 1 :]:
        if not isinstance(step, Filter):
            return None
        for part in _conjuncts(step.condition):
            symbol, column, number = _comparison(part)
            if column in readable and number is not None:
                return OrderedHaving(schema.index(column), symbol, int(number))
    return None


_SYMBOLS = {"=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _comparison(part: Any) -> tuple[str, str, Decimal | None]:
    """A comparison of a column with a number, the column on the left; None: it is another one."""
    if isinstance(part, Binary) and part.operator in _SYMBOLS:
        sides: tuple[Any, Any] = (part.left, part.right)
        for (left, right), symbols in ((sides, _SYMBOLS), (sides[::-1], _TURNED)):
            if isinstance(left, Reference) and isinstance(right, Constant):
                exact = right.exact if isinstance(right.exact, Decimal) else None
                return symbols[part.operator], left.name, exact
    return "", "", None


def _conjuncts(condition: Any) -> Iterator[Any]:
    if isinstance(condition, Binary) and condition.operator == "and":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition


def _count(steps: tuple[Step, ...]) -> int:
    """The number of constants that are taken out of steps."""
    found: list[str] = []

    def counted(kind: str, constant: ParameterValue) -> ParameterValue:
        found.append(kind)
        return constant

    for _ in _exchanged(steps, counted):
        pass
    return len(found)


def _neutral(constant: ParameterValue) -> ParameterValue:
    if isinstance(constant, Number):
        return Number(Decimal(1))
    return 1 if isinstance(constant, int) else ""


def _exchanged(steps: tuple[Step, ...], exchange: Exchange) -> Iterator[Step]:
    is_grouped = False
    for step in steps:
        if isinstance(step, Filter):
            where = "having" if is_grouped else "where"
            yield Filter(_condition(step.condition, where, exchange))
        elif isinstance(step, Clock) and not step.unless:
            tests = tuple(_replaced(test, bound=_clock(test, exchange)) for test in step.tests)
            yield replace(step, written=_NOTHING, tests=tests)
        elif isinstance(step, Order) and step.limit is not None:
            limit = exchange("limit", Number(Decimal(step.limit)))
            assert isinstance(limit, Number)
            yield replace(step, limit=int(limit.value))
        else:
            yield _replaced(step)
        is_grouped = is_grouped or isinstance(step, Group)


def _clock(test: Any, exchange: Exchange) -> int:
    bound = exchange("clock", test.bound)
    assert isinstance(bound, int)
    return bound


def _condition(found: Any, where: str, exchange: Exchange) -> Any:
    """An expression whose compared constants are exchanged, without positions."""
    if not isinstance(found, Binary) or found.operator not in (*_COMPARED, "and", "or"):
        return _replaced(found)
    sides: dict[str, Any] = {}
    for name, other in (("left", found.right), ("right", found.left)):
        operand = getattr(found, name)
        constant = _constant_of(operand)
        if found.operator in _COMPARED and constant is not None and references(other):
            sides[name] = _expression(exchange(where, constant))
        elif found.operator in _COMPARED:
            sides[name] = _replaced(operand)
        else:
            sides[name] = _condition(operand, where, exchange)
    return replace(found, at=0, **sides)


def _constant_of(operand: Any) -> ParameterValue | None:
    """The constant of an expression; None: it is none, or not a text or a decimal."""
    if not isinstance(operand, Constant):
        return None
    if isinstance(operand.exact, Decimal):
        return Number(operand.exact)
    return operand.value if operand.exact is None and isinstance(operand.value, str) else None


def _expression(constant: ParameterValue) -> Constant:
    if isinstance(constant, Number):
        return Constant(float(constant.value), 0, constant.value)
    return Constant(str(constant), 0)


def _replaced(node: Any, **given: Any) -> Any:
    """A step or an expression without its positions in the text, and with these fields."""
    if isinstance(node, tuple):
        return tuple([_replaced(each) for each in node])
    if isinstance(node, Pattern):
        return node
    names = field_names(type(node))
    if names is None:
        return node
    fields = {name: _replaced(getattr(node, name)) for name in names}
    if "at" in fields:
        fields["at"] = 0
    return replace(node, **{**fields, **given})
