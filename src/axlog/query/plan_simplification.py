"""A whole query, made ready for the compiler of plans.

- relative paths of the query start at the document, and every variable has a name of its own
- `let` variables that stand for paths and queries are replaced by them; nested queries are merged
- `for` over another query continues that query: what it constructs is data of the same tuple
- `head`, `tail` and `subsequence` are positions, `data` of a path is its last step
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from axlog.errors import QueryError
from axlog.query.pattern import AnyNode
from axlog.query.plan_rewrites import (
    ON_CONTEXT,
    has_context,
    is_absolute,
    rebuilt,
    references_in,
)
from axlog.query.positions import place_at
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

MOST_COPIED = 500
"""Nodes of a value that takes the place of several uses of a variable: chains of `let` multiply."""
_DOCUMENTS = ("doc", "document", "collection")
_BY_IDENTITY = frozenset("is << >> | intersect except".split())
"""Operators that tell two copies of a constructed node apart."""


def prepared(expression: Expression) -> Expression:
    """A whole query, ready for the compiler."""
    renaming = _Renaming()
    found = renaming.of(_at_document(expression), {})
    simple: Expression = _Simplification(renaming, compares_identity(found)).of(found)
    return simple


def refuse_undeclared(expression: Expression, given: set[str], text: str) -> None:
    """Raise AX203 for a variable that nothing declares."""
    missing = references_in(expression) - given
    for node in walk(expression):
        if isinstance(node, Reference) and node.name in missing:
            raise QueryError(
                "AX203",
                f"${node.name} is used but never declared",
                place=place_at(text, node.at),
            )


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
            if not arguments and name in ON_CONTEXT:
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


class _Simplification:
    """Replaces `let` variables, joins paths and merges nested queries."""

    def __init__(self, renaming: _Renaming, has_identity: bool) -> None:
        self._renaming = renaming
        self._has_identity = has_identity

    def of(self, value: Any) -> Any:
        """The tree, simplified."""
        if isinstance(value, Flwor):
            return self._query(value)
        found = rebuilt(value, self.of)
        match found:
            case Call(name="head" | "tail" | "subsequence"):
                return _by_position(found)
            case Call(name="data", arguments=(Path() as items,), at=at):
                each = Call("data", (Path(Context(at), (), at),), at)
                return _joined(Path(items, (Group(each, at, is_map=True),), at))
            case Path():
                return _joined(found)
        return found

    def _query(self, query: Flwor) -> Any:
        clauses = list(query.clauses)
        returned: Any = query.returned
        kept: list[Clause] = []
        while clauses:
            clause = clauses.pop(0)
            if type(clause) is Let and self._is_replaced(clause, clauses, returned):
                value = self.of(clause.value)
                clauses = [self._substituted(each, clause.variable, value) for each in clauses]
                returned = self._substituted(returned, clause.variable, value)
                continue
            made: Any = rebuilt(clause, self.of)
            kept += _continued(made, kept) if type(made) is For else [made]
        inside = self.of(returned)
        if not kept:
            return inside
        if isinstance(inside, Flwor) and isinstance(inside.clauses[0], For):
            both = (*kept, *inside.clauses)
            if all(isinstance(clause, For | Let | Where) for clause in both):
                return Flwor(both, inside.returned, query.at)
        return Flwor(tuple(kept), inside, query.at)

    def _is_replaced(self, clause: Let, clauses: Iterable[Clause], returned: Expression) -> bool:
        """Whether the value of a `let` may take the place of its variable.

        It must not be evaluated in another context, or after `group by`, which changes variables;
        and what it constructs may be constructed once only, if the query compares identities.
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
        if uses > 1 and sum(1 for _ in walk(value)) > MOST_COPIED:
            return False
        if uses > 1 and any(isinstance(n, Constructor) or _constructs(n) for n in walk(value)):
            return not self._has_identity and isinstance(value, Flwor) and is_absolute(value)
        match value:
            case Constant() | Path() | Flwor():
                return True
        return uses <= 1 or is_absolute(value)

    def _substituted(self, value: Any, name: str, by: Expression) -> Any:
        """The tree with an expression in place of a variable; its own variables are new ones."""
        match value:
            case Path(start=Reference(name=found), steps=steps) if found == name:
                changed = tuple(self._substituted(step, name, by) for step in steps)
                made = self._renaming.of(by, {})
                if isinstance(made, Path):
                    return Path(made.start, (*made.steps, *changed), value.at)
                return Path(made, changed, value.at) if changed else made
        return rebuilt(value, lambda part: self._substituted(part, name, by))


def _constructs(node: object) -> bool:
    is_computed = isinstance(node, Call) and node.name.startswith("new-")
    return is_computed or isinstance(node, Transform)


def compares_identity(expression: Expression) -> bool:
    """Whether a query may tell a constructed node from a copy of it."""
    for node in walk(expression):
        match node:
            case Binary(operator=operator) if operator in _BY_IDENTITY:
                return True
            case Path(start=Sequence(), steps=(_, *_)):  # gives each node once
                return True
    return False


def _joined(path: Path) -> Any:
    """A path from a path as one; a path into what each tuple of a query constructs, by tuple."""
    start: Any = path.start
    if isinstance(start, Path):
        return replace(start, steps=(*start.steps, *path.steps), at=path.at)
    if not path.steps and not isinstance(start, Root | Context | Reference):
        return start
    is_filtered = any(isinstance(step, Step) and step.is_filter for step in path.steps)
    if isinstance(start, Flwor) and isinstance(start.returned, Constructor) and not is_filtered:
        return replace(start, returned=Path(start.returned, path.steps, path.at))
    return path


def _continued(clause: For, before: list[Clause]) -> list[Clause]:
    """The clauses of `for` over another query: those of the query, then one for what it returns."""
    source = clause.source
    if clause.allows_empty or not isinstance(source, Flwor):
        return [clause]
    allowed: tuple[type, ...] = (For, Let, Where)
    if not before:  # it sorts all tuples, not those of one tuple before it
        allowed = (*allowed, OrderBy)
    if not all(type(each) in allowed for each in source.clauses):
        return [clause]
    if any(isinstance(each, For) and each.allows_empty for each in source.clauses):
        return [clause]
    if isinstance(source.returned, Constructor):
        return [*source.clauses, Let(clause.variable, source.returned, clause.at)]
    return [*source.clauses, For(clause.variable, source.returned, clause.at)]


def _by_position(call: Call) -> Expression:
    """`head`, `tail` and `subsequence` with constant bounds, as a filter by position."""
    condition: Expression
    position = Call("position", (), call.at)
    match call:
        case Call(name="head", arguments=(items,)):
            condition = Constant(1, call.at, 1)
        case Call(name="tail", arguments=(items,)):
            condition = Binary(">", position, Constant(1, call.at, 1), call.at)
        case Call(name="subsequence", arguments=(items, Constant(exact=int(low)))):
            condition = Binary(">=", position, Constant(low, call.at, low), call.at)
        case Call(
            name="subsequence", arguments=(items, Constant(exact=int(low)), Constant(exact=int(n)))
        ) if n > 0 and low + n > 1:
            first, last = max(low, 1), low + n - 1
            both = Binary(
                "to", Constant(first, call.at, first), Constant(last, call.at, last), call.at
            )
            condition = Binary("=", position, both, call.at)
        case _:
            return call
    step = Step("self", AnyNode(), (Predicate(condition),), call.at, is_filter=True)
    found: Expression = _joined(Path(items, (step,), call.at))
    return found
