"""The canonical native text of a query with steps.

Law: the text parses to a query with the same rows. Operations inside others are in parentheses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from axlog.query.clock_terms import NOW
from axlog.query.lexemes import is_word, quoted, terms_text
from axlog.query.pattern import Branch, Not, Number, Pattern, branches_of
from axlog.query.steps import (
    Aggregate,
    Cell,
    ClockTest,
    Compute,
    Filter,
    Group,
    Order,
    Scalar,
    Step,
    clock_of,
    is_hidden,
    positions_of,
)
from axlog.query.syntax_tree import Binary, Call, Constant, Reference
from axlog.query.time_literals import seconds_text

Names = Mapping[object, str]
"""Texts for expressions that are written by name."""


def native_text(pattern: Pattern, steps: tuple[Step, ...]) -> str:
    """The text of a pattern and the steps after it."""
    if not steps:
        return str(pattern)
    group = next((at for at, step in enumerate(steps) if isinstance(step, Group)), len(steps))
    base: dict[object, str] = {("column", name): _column(name) for name in pattern.columns}
    conditions = [_text(s.condition, base) for s in steps[:group] if isinstance(s, Filter)]
    clock, positions = clock_of(steps), positions_of(steps)
    written = pattern if clock is None else clock.written
    if positions is not None:
        written = replace(written, branches=positions.written.branches)
    text = str(replace(written, outputs=()))
    tests = () if clock is None else clock.tests
    conditions += [_clock_text(test, base) for test in tests if test.value is not None]
    if conditions:
        has_where = bool(written.where) or any(map(_has_constraints, written.branches))
        text += (", " if has_where else " where ") + ", ".join(conditions)
    cells = _cells(steps)
    if group < len(steps):
        return text + _grouped(steps, group, cells, base)
    shown = [cell for cell in cells.values() if not is_hidden(cell.name)]
    text += _returned([(cell.name, _text(cell.expression, base)) for cell in shown])
    by_name = {placeless(c.expression): c.name for c in shown if is_word(c.name)}
    return text + _ordered(steps, cells, {**base, **by_name})


def _has_constraints(branch: Branch) -> bool:
    """Whether a `not` of a branch has constraints, which the text has at its end."""
    is_not = isinstance(branch, Not) and bool(branch.where)
    return is_not or any(map(_has_constraints, branches_of(branch)))


def _clock_text(test: ClockTest, names: Names) -> str:
    """A comparison of the clock with a value."""
    times = [(each, column.removesuffix(".time")) for each, column in test.terms]
    text = terms_text(((test.factor, NOW), *times))
    if test.bound:
        text += f" {'-' if test.bound > 0 else '+'} {seconds_text(abs(test.bound))}"
    assert test.value is not None, "a constraint of the pattern"
    return f"{text} {test.operator} {_text(test.value, names)}"


def _grouped(steps: tuple[Step, ...], at: int, cells: dict[str, Cell], base: Names) -> str:
    group = steps[at]
    assert isinstance(group, Group)
    given = _cells(steps[:at])
    arguments = {name: _text(cell.expression, base) for name, cell in given.items()}
    calls: dict[object, str] = {
        ("column", each.name): _call(each, arguments) for each in group.aggregates
    }  # fmt: skip
    keys: dict[object, str] = {("column", name): arguments[name] for name in group.keys}
    shown = [cell for cell in cells.values() if not is_hidden(cell.name)]
    text = _returned([(c.name, _text(c.expression, {**keys, **calls})) for c in shown])
    named: dict[object, str] = {
        ("column", name): name if is_word(name) else arguments[name] for name in group.keys
    }  # fmt: skip
    for step in steps[at:]:
        if isinstance(step, Filter):
            text += f" having {_text(step.condition, {**named, **calls})}"
    return text + _ordered(steps, cells, {**named, **calls})


def _call(aggregate: Aggregate, arguments: Mapping[str, str]) -> str:
    inside = "" if aggregate.argument is None else arguments[aggregate.argument]
    if aggregate.is_distinct:
        inside = f"distinct {inside}"
    if aggregate.function == "string-join":
        inside += f", {quoted(aggregate.separator)}"
    if aggregate.by is not None:
        inside += f" by {arguments[aggregate.by]}"
    return f"{aggregate.function}({inside})"


def _cells(steps: tuple[Step, ...]) -> dict[str, Cell]:
    """The cells of the last computation."""
    for step in reversed(steps):
        if isinstance(step, Compute):
            return {cell.name: cell for cell in step.cells}
    return {}


def _returned(outputs: list[tuple[str, str]]) -> str:
    if not outputs:
        return ""
    written = []
    for name, text in outputs:
        default = text.removeprefix("$") if is_word(text[1:]) else text.partition("(")[0]
        alias = name if is_word(name) else quoted(name)
        written.append(text if name in (default, text) else f"{text} as {alias}")
    return " return " + ", ".join(written)


def _ordered(steps: tuple[Step, ...], cells: dict[str, Cell], names: Names) -> str:
    text = ""
    for step in steps:
        if isinstance(step, Order):
            keys = [
                _text(cells[key.column].expression, names)
                + (" descending" if key.is_descending else "")
                for key in step.keys
            ]
            text += f" order by {', '.join(keys)}" if keys else ""
            text += "" if step.limit is None else f" limit {step.limit}"
    return text


def _column(name: str) -> str:
    return name if "." in name else f"${name}"


def placeless(expression: Scalar | None) -> object:
    """An expression without the places in the text, to compare it with others."""
    match expression:
        case Reference(name=name):
            return ("column", name)
        case Constant(value=value, exact=exact):
            return ("constant", value, exact)
        case Call(name=name, arguments=arguments):
            return ("call", name, *map(placeless, arguments))
        case Binary(operator=operator, left=left, right=right):
            return ("binary", operator, placeless(left), placeless(right))
    return None


def expression_text(expression: Scalar) -> str:
    """The text of an expression; a reference is written by its name, `.` as it is."""
    return _text(expression, {})


def _text(expression: Scalar, names: Names) -> str:
    known = names.get(placeless(expression))
    if known is not None:
        return known
    match expression:
        case Constant(value=str() as value):
            return quoted(value)
        case Constant(exact=exact, value=value):
            return str(Number(exact)) if exact is not None else str(value)  # type: ignore[arg-type]
        case Binary(operator=operator, left=left, right=right):
            return f"{_inside(left, names)} {operator} {_inside(right, names)}"
        case Call(name="unary-" | "unary+" as name, arguments=(operand,)):
            return f"{name[-1]}{_inside(operand, names)}"
        case Call(name="if", arguments=(condition, first, second)):
            one, other = _inside(first, names), _inside(second, names)
            return f"if ({_text(condition, names)}) then {one} else {other}"
        case Call(name=name, arguments=arguments):
            return f"{name}({', '.join(_text(each, names) for each in arguments)})"
        case Reference(name=name):
            return _column(name)
    raise AssertionError("an expression that the native text does not have")


def _inside(expression: Scalar, names: Names) -> str:
    """An operand, in parentheses if it is an operation."""
    text = _text(expression, names)
    is_operation = isinstance(expression, Binary) or (
        isinstance(expression, Call) and (expression.name == "if" or text[0] in "+-")
    )
    return f"({text})" if is_operation and placeless(expression) not in names else text
