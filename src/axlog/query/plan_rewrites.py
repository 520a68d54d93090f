"""Rewritings of syntax trees before the compilation to a plan, and static facts about them.

- `prepared`: relative paths of the whole query start at the document; every variable has a name of
  its own; `let` variables that stand for paths and queries are replaced by them
- `in_context`: a predicate with a variable in place of the context item
- `is_position`, `position_bounds`: predicates that count
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import count
from typing import Any

from axlog.query.syntax_tree import (
    Binary,
    Call,
    Clause,
    Constant,
    Constructor,
    Context,
    Counted,
    Expression,
    External,
    Flwor,
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
    Transform,
    Where,
    walk,
)
from axlog.query.value_kinds import kind_of_value

_DOCUMENTS = ("doc", "document", "collection")
_ON_CONTEXT = frozenset(
    """data local-name name namespace-uri node-name normalize-space number root string
    string-length""".split()
)
"""Functions that take the context item if they have no argument."""


MOST_COPIED = 500
"""Nodes of a value that takes the place of several uses of a variable: chains of `let` multiply."""


def rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """A node of the tree with `change` applied to each of its parts."""
    if isinstance(value, tuple):
        return tuple(change(each) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    parts = {each.name: change(getattr(value, each.name)) for each in fields(value)}
    return type(value)(**parts)


def prepared(expression: Expression) -> Expression:
    """A whole query, ready for the compiler."""
    found = _Renaming().of(_at_document(expression), {})
    simple: Expression = _simplified(found)
    return simple


def _at_document(value: Any) -> Any:
    """The whole query with the document in place of its context item."""
    match value:
        case Path(start=Context(at=at), steps=steps):
            return Path(Root(at, True), _steps_at_document(steps), value.at)
        case Root(at=at):
            return Root(at, True)
        case Path(steps=steps):
            return replace(value, start=_at_document(value.start), steps=_steps_at_document(steps))
        case Call(name=name, arguments=arguments, at=at):
            if name in _DOCUMENTS:
                return Path(Root(at, True), (), at)
            if not arguments and name in _ON_CONTEXT:
                return replace(value, arguments=(Path(Root(at, True), (), at),))
    return rebuilt(value, _at_document)


def _steps_at_document(steps: tuple[Any, ...]) -> tuple[Any, ...]:
    """Steps as they are: inside them, the context item is another one."""
    return tuple(_documents_inside(step) for step in steps)


def _documents_inside(value: Any) -> Any:
    if isinstance(value, Call) and value.name in _DOCUMENTS:
        return Path(Root(value.at, True), (), value.at)
    return rebuilt(value, _documents_inside)


class _Renaming:
    """Gives every variable a name of its own."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def _new(self, name: str) -> str:
        made = name
        for number in count(2):
            if made not in self._used:
                break
            made = f"{name}~{number}"
        self._used.add(made)
        return made

    def of(self, value: Any, names: Mapping[str, str]) -> Any:
        match value:
            case Reference(name=name, at=at):
                return Reference(names.get(name, name), at)
            case Flwor(clauses=clauses, returned=returned, at=at):
                inner = dict(names)
                made = tuple(self._clause(clause, inner) for clause in clauses)
                return Flwor(made, self.of(returned, inner), at)
            case Transform(copies=copies, modified=modified, returned=returned, at=at):
                inner = dict(names)
                lets = tuple(self._renamed(clause, inner) for clause in copies)
                return Transform(lets, self.of(modified, inner), self.of(returned, inner), at)
            case Quantified(variable=variable):
                source = self.of(value.source, names)
                new = self._new(variable)
                condition = self.of(value.condition, {**names, variable: new})
                return replace(value, variable=new, source=source, condition=condition)
        return rebuilt(value, lambda part: self.of(part, names))

    def _clause(self, clause: Clause, names: dict[str, str]) -> Clause:
        made: Clause = self._renamed(clause, names)
        return made

    def _renamed(self, clause: Any, names: dict[str, str]) -> Any:
        match clause:
            case External(variable=variable):
                self._used.add(variable)
                return clause
            case GroupBy(keys=keys):
                made = []
                for name, value in keys:
                    inside = None if value is None else self.of(value, names)
                    if value is not None:
                        names[name] = self._new(name)
                    made.append((names.get(name, name), inside))
                return replace(clause, keys=tuple(made))
            case For() | Let() | Counted():
                found = rebuilt(clause, lambda part: self.of(part, names))
                names[clause.variable] = new = self._new(clause.variable)
                found = replace(found, variable=new)
                if isinstance(clause, ForAt):
                    names[clause.position] = place = self._new(clause.position)
                    found = replace(found, position=place)
                return found
        return rebuilt(clause, lambda part: self.of(part, names))


# Substitution -------------------------------------------------------------------------------------


def _simplified(value: Any) -> Any:
    """The tree with `let` variables replaced, paths joined and nested queries merged."""
    if isinstance(value, Flwor):
        return _simple_query(value)
    found = rebuilt(value, _simplified)
    if not isinstance(found, Path):
        return found
    start: Any = found.start
    if isinstance(start, Path):
        return replace(start, steps=(*start.steps, *found.steps), at=found.at)
    is_alone = not found.steps and not isinstance(start, Root | Context | Reference)
    return start if is_alone else found


def _simple_query(query: Flwor) -> Any:
    clauses = list(query.clauses)
    returned: Any = query.returned
    kept: list[Clause] = []
    while clauses:
        clause = clauses.pop(0)
        if type(clause) is Let and _is_replaced(clause, clauses, returned):
            value = _simplified(clause.value)
            clauses = [substituted(each, clause.variable, value) for each in clauses]
            returned = substituted(returned, clause.variable, value)
        else:
            kept.append(rebuilt(clause, _simplified))
    inside = _simplified(returned)
    if not kept:
        return inside
    if isinstance(inside, Flwor) and isinstance(inside.clauses[0], For):
        both = (*kept, *inside.clauses)
        if all(isinstance(clause, For | Let | Where) for clause in both):
            return Flwor(both, inside.returned, query.at)
    return Flwor(tuple(kept), inside, query.at)


def _is_replaced(clause: Let, clauses: Iterable[Clause], returned: Expression) -> bool:
    """Whether the value of a `let` may take the place of its variable.

    It must not be evaluated in another context, or after `group by`, which changes variables; and
    what it constructs may be constructed once only.
    """
    value = clause.value
    following = list(clauses)
    for each in following:
        if isinstance(each, GroupBy):
            return not references_in(value) and clause.variable not in {n for n, _ in each.keys}
    if has_context(value):
        return False
    uses = sum(
        1
        for part in (*following, returned)
        for node in walk(part)
        if isinstance(node, Reference) and node.name == clause.variable
    )
    if any(isinstance(n, Constructor) or _constructs(n) for n in walk(value)) and uses > 1:
        return False
    if uses > 1 and sum(1 for _ in walk(value)) > MOST_COPIED:
        return False
    match value:
        case Constant() | Path() | Flwor():
            return True
    return uses <= 1 or is_absolute(value)


def _constructs(node: object) -> bool:
    is_computed = isinstance(node, Call) and node.name.startswith("new-")
    return is_computed or isinstance(node, Transform)


def substituted(value: Any, name: str, by: Expression) -> Any:
    """The tree with an expression in place of a variable."""
    match value:
        case Path(start=Reference(name=found), steps=steps) if found == name:
            changed = tuple(substituted(step, name, by) for step in steps)
            if isinstance(by, Path):
                return Path(by.start, (*by.steps, *changed), value.at)
            return Path(by, changed, value.at) if changed else by
    return rebuilt(value, lambda part: substituted(part, name, by))


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
            return name in _ON_CONTEXT or name in ("position", "last")
    if isinstance(value, tuple):
        return any(has_context(each) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return False
    return any(has_context(getattr(value, each.name)) for each in fields(value))


def in_context(value: Any, name: str) -> Any:
    """An expression with a variable in place of its context item."""
    match value:
        case Path(start=Context(at=at), steps=steps):
            return Path(Reference(name, at), steps, value.at)
        case Path(start=start):
            return replace(value, start=in_context(start, name))
        case Call(name=called, arguments=(), at=at) if called in _ON_CONTEXT:
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
    if not is_dataclass(value) or isinstance(value, type):
        return False
    return any(_asks_position(getattr(value, each.name)) for each in fields(value))


def position_bounds(condition: Expression) -> tuple[int, int] | None:
    """The positions that a predicate selects, if they are one range with constant ends.

    Positive ends count from the first item, negative ones from the last: [1] is (1, 1),
    [last()] is (-1, -1), [position() > 2] is (3, -1).
    """
    match condition:
        case Constant(value=value) if not isinstance(value, str):
            return (int(value), int(value)) if value == int(value) and value > 0 else (1, 0)
        case Call(name="last"):
            return -1, -1
        case Binary(operator="-", left=Call(name="last"), right=Constant(value=back)) if (
            not isinstance(back, str) and back == int(back) and back >= 0
        ):
            return -1 - int(back), -1 - int(back)
        case Binary(operator=operator, left=Call(name="position"), right=Constant(value=value)):
            return _range(operator, value)
        case Binary(operator=operator, left=Constant(value=value), right=Call(name="position")):
            return _range(_MIRRORED.get(operator, operator), value)
        case Binary(operator="=" | "eq", left=Call(name="position"), right=Call(name="last")):
            return -1, -1
        case Binary(
            operator="=" | "eq",
            left=Call(name="position"),
            right=Binary(operator="to", left=Constant(value=low), right=Constant(value=high)),
        ) if not isinstance(low, str) and not isinstance(high, str):
            if low == int(low) and high == int(high) and 1 <= low <= high:
                return int(low), int(high)
    return None


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "lt": "gt", "le": "ge", "gt": "lt",
             "ge": "le"}  # fmt: skip


def _range(operator: str, value: Any) -> tuple[int, int] | None:
    if isinstance(value, str) or value != int(value):
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
