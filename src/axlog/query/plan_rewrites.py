"""Static facts about syntax trees, and rewritings of their parts, for the compilation to a plan.

- `rebuilt`, `in_context`: a tree with its parts changed; with a variable for the context item
- `references_in`, `is_absolute`, `has_context`: what an expression needs
- `is_position`, `position_bounds`: predicates that count
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from axlog.query.numbers import is_whole
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Clause,
    Constant,
    Context,
    Counted,
    Expression,
    For,
    ForAt,
    Group,
    GroupBy,
    Kept,
    Let,
    OrderBy,
    Path,
    Predicate,
    Quantified,
    Reference,
    Root,
    Sequence,
    Step,
    field_names,
    walk,
)
from axlog.query.value_kinds import kind_of_value

ON_CONTEXT = frozenset(
    """data local-name name namespace-uri node-name normalize-space number root string
    string-length""".split()
)
"""Functions that take the context item if they have no argument."""


def rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """A node of the tree with `change` applied to each of its parts."""
    if isinstance(value, tuple):
        return tuple(change(each) for each in value)
    names = field_names(type(value))
    if names is None:
        return value
    return type(value)(**{name: change(getattr(value, name)) for name in names})


def references_in(value: object) -> set[str]:
    """The variables that an expression mentions and does not declare."""
    declared: set[str] = set()
    found: set[str] = set()
    for node in walk(value):
        match node:
            case Reference(name=name):
                found.add(name)
            case ForAt(variable=variable, position=position):
                declared |= {variable, position}
            case For() | Let() | Counted() | Quantified():
                declared.add(node.variable)
            case GroupBy(keys=keys):
                declared |= {name for name, inside in keys if inside is not None}
    return found - declared


def is_absolute(value: object) -> bool:
    """Whether an expression reads the document by a path from its root."""
    return any(isinstance(node, Root | Kept) for node in walk(value))


def has_context(value: Any) -> bool:
    """Whether an expression uses the context item that it is evaluated with."""
    match value:
        case Context():
            return True
        case Path(start=start):
            return has_context(start)
        case Call(name=name, arguments=()):
            return name in ON_CONTEXT or name in ("position", "last")
    if isinstance(value, tuple):
        return any(has_context(each) for each in value)
    return any(has_context(getattr(value, name)) for name in field_names(type(value)) or ())


def in_context(value: Any, name: str) -> Any:
    """An expression with a variable in place of its context item."""
    match value:
        case Path(start=Context(at=at), steps=steps):
            return Path(Reference(name, at), steps, value.at)
        case Path(start=start):
            return replace(value, start=in_context(start, name))
        case Call(name=called, arguments=(), at=at) if called in ON_CONTEXT:
            return replace(value, arguments=(Path(Reference(name, at), (), at),))
        case Step() | Predicate():
            return value
    return rebuilt(value, lambda part: in_context(part, name))


# Static facts -------------------------------------------------------------------------------------


def is_position(condition: Expression) -> bool:
    """Whether a predicate may depend on positions: it may be a number, or it asks for one."""
    if _asks_position(condition):
        return True
    kind = kind_of_value(condition, {})
    is_values = isinstance(condition, Path) and bool(condition.steps)
    return kind in ("number", "unknown") or (kind == "untyped" and not is_values)


def _asks_position(value: Any) -> bool:
    match value:
        case Call(name="position" | "last", arguments=()):
            return True
        case Path(start=start):
            return _asks_position(start)
        case Step() | Predicate() | Group():
            return False
    if isinstance(value, tuple):
        return any(_asks_position(each) for each in value)
    return any(_asks_position(getattr(value, name)) for name in field_names(type(value)) or ())


def reads_nodes(value: Any) -> bool:
    """Whether an expression has a path: its value may change while positions stay."""
    if isinstance(value, Path | Root | Context):
        return True
    if isinstance(value, Call) and not value.arguments and value.name in ON_CONTEXT:
        return True
    if isinstance(value, tuple):
        return any(map(reads_nodes, value))
    return any(reads_nodes(getattr(value, name)) for name in field_names(type(value)) or ())


def position_bounds(condition: Expression) -> tuple[int, int] | None:
    """The positions that a predicate selects, if they are one range with constant ends.

    Positive ends count from the first item, negative ones from the last: [1] is (1, 1),
    [last()] is (-1, -1), [position() > 2] is (3, -1), [position() > last() - 2] is (-2, -1).
    """
    back = _back(condition)
    if back is not None:
        return -1 - back, -1 - back
    match condition:
        case Constant(value=value) if not isinstance(value, str):
            return (int(value), int(value)) if is_whole(value) and value > 0 else (1, 0)
        case Binary(operator=operator, left=Call(name="position"), right=Constant(value=value)):
            return _range(operator, value)
        case Binary(operator=operator, left=Constant(value=value), right=Call(name="position")):
            return _range(_MIRRORED.get(operator, operator), value)
        case Binary(
            operator="=" | "eq",
            left=Call(name="position"),
            right=Binary(operator="to", left=Constant(value=low), right=Constant(value=high)),
        ) if not isinstance(low, str) and not isinstance(high, str):
            if is_whole(low) and is_whole(high) and 1 <= low <= high:
                return int(low), int(high)
        case Binary(operator=operator, left=Call(name="position"), right=right):
            return _range_to_the_end(operator, _back(right))
        case Binary(operator=operator, left=left, right=Call(name="position")):
            return _range_to_the_end(_MIRRORED.get(operator, operator), _back(left))
    return None


def _back(expression: Expression) -> int | None:
    """How far before the last position an expression is."""
    match expression:
        case Call(name="last"):
            return 0
        case Binary(operator="-", left=Call(name="last"), right=Constant(value=value)) if (
            is_whole(value) and value >= 0
        ):
            return int(value)
    return None


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "lt": "gt", "le": "ge", "gt": "lt",
             "ge": "le"}  # fmt: skip


def _range(operator: str, value: Any) -> tuple[int, int] | None:
    if not is_whole(value):
        return None
    whole = int(value)
    match operator:
        case "=" | "eq":
            return (whole, whole) if whole > 0 else (1, 0)
        case "<" | "lt":
            return (1, whole - 1) if whole > 1 else (1, 0)
        case "<=" | "le":
            return (1, whole) if whole > 0 else (1, 0)
        case ">" | "gt":
            return max(whole + 1, 1), -1
        case ">=" | "ge":
            return max(whole, 1), -1
    return None


def _range_to_the_end(operator: str, back: int | None) -> tuple[int, int] | None:
    """The positions that compare so with a position at this distance from the last one."""
    if back is None:
        return None
    last = -1 - back
    match operator:
        case "=" | "eq":
            return last, last
        case "<" | "lt":
            return 1, last - 1
        case "<=" | "le":
            return 1, last
        case ">" | "gt":
            return (last + 1, -1) if back else (1, 0)
        case ">=" | "ge":
            return last, -1
    return None


def conjuncts(condition: Expression) -> list[Expression]:
    """The operands of `and`."""
    if isinstance(condition, Binary) and condition.operator == "and":
        return [*conjuncts(condition.left), *conjuncts(condition.right)]
    return [condition]


def sequence_items(value: Expression) -> tuple[Expression, ...]:
    """The parts of a sequence; of another expression, itself."""
    return value.items if isinstance(value, Sequence) else (value,)


def order_keys(clauses: Iterable[Clause]) -> bool:
    """Whether a clause sorts."""
    return any(isinstance(clause, OrderBy) for clause in clauses)


def has_positional_filter(steps: Iterable[Any]) -> bool:
    """Whether a filter of the whole sequence, or a step, may count positions in the sequence."""
    for step in steps:
        if isinstance(step, Step):
            if step.is_filter and any(is_position(each.condition) for each in step.predicates):
                return True
        elif _asks_position(step.inside if isinstance(step, Group) else step):
            return True
    return False


def declared_by(clause: Clause) -> set[str]:
    """The variables that a clause declares."""
    match clause:
        case ForAt(variable=variable, position=position):
            return {variable, position}
        case For(variable=variable) | Let(variable=variable):
            return {variable}
    return set()
