"""Statements to pending update lists: find the targets on the snapshot, make an operation for each.

The document is only read. If a statement is written in the syntax of the XQuery Update
recommendation, targets and content are checked by its rules (XUTY and XUDY codes). In the short
syntax, without `node`, an update applies to every node that its path finds, possibly none. A loop
over one path whose update refers to the loop's node only as its target becomes one search for all
nodes, and its content is built once. (compute-pul: paper 5, section 3.4.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from axlog.document.operations import (
    Attribute,
    Content,
    Delete,
    Insert,
    Operation,
    Rename,
    ReplaceNode,
    ReplaceValue,
)
from axlog.document.operations import Where as Place
from axlog.document.tree import ATTRIBUTE, CALL, DOCUMENT_NODE, ELEMENT, TEXT, NodeKind, Tree
from axlog.document.value_index import ValueIndex
from axlog.errors import UpdateError
from axlog.evaluate.atoms import Atom
from axlog.evaluate.constructors import content
from axlog.evaluate.expressions import DOCUMENT, Evaluator, Scope
from axlog.evaluate.items import Item, Items, New, Node, joined
from axlog.evaluate.prefixes import check_prefixes
from axlog.query.pattern import AnyNode
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    Call,
    Expression,
    Flwor,
    For,
    ForAt,
    Let,
    Path,
    Predicate,
    Reference,
    Statement,
    Step,
    Update,
    Where,
)
from axlog.query.syntax_tree import (
    Sequence as Listed,
)

_PLACES = {
    "insert-into": Place.INTO,
    "insert-first": Place.FIRST,
    "insert-last": Place.LAST,
    "insert-before": Place.BEFORE,
    "insert-after": Place.AFTER,
}
_BESIDE = (Place.BEFORE, Place.AFTER)
_COMMENT, _INSTRUCTION = int(NodeKind.COMMENT), int(NodeKind.INSTRUCTION)
_HAS_SIBLINGS = frozenset({ELEMENT, TEXT, CALL, _COMMENT, _INSTRUCTION})
_REPLACEABLE = frozenset({ELEMENT, ATTRIBUTE, TEXT, CALL, _COMMENT, _INSTRUCTION})
_NAMED = frozenset({ELEMENT, ATTRIBUTE, _INSTRUCTION})
_NEW_KINDS = {
    "element": ELEMENT,
    "attribute": ATTRIBUTE,
    "text": TEXT,
    "comment": _COMMENT,
    "instruction": _INSTRUCTION,
    "document": int(NodeKind.DOCUMENT),
}


def operations_of(
    tree: Tree,
    statement: Statement,
    index: ValueIndex | None = None,
    variables: Mapping[str, Atom] | None = None,
) -> list[Operation]:
    """The pending update list of a statement; `variables` are its external variables.

    >>> from axlog.document.loader import load
    >>> from axlog.query.update_parser import parse_statements
    >>> (statement,) = parse_statements("delete nodes //b")
    >>> operations_of(load("<a><b/><b/></a>"), statement)
    [Delete(target=2), Delete(target=3)]
    """
    builder = _UpdateListBuilder(tree, statement, index, variables)
    builder.update(statement.expression, builder.scope())
    check_prefixes(tree, builder.operations)
    return builder.operations


class _UpdateListBuilder(Evaluator):
    """Evaluates one statement and collects its operations."""

    def __init__(
        self,
        tree: Tree,
        statement: Statement,
        index: ValueIndex | None,
        variables: Mapping[str, Atom] | None,
    ) -> None:
        super().__init__(tree, statement, index, variables)
        self.operations: list[Operation] = []

    def update(self, given: Expression, scope: Scope) -> None:
        match given:
            case Update():
                self._one(given, scope)
            case Call(name="if", arguments=(condition, first, second)):
                self.update(first if self.holds(condition, scope) else second, scope)
            case Listed(items=items):
                for item in items:
                    self.update(item, scope)
            case Flwor(clauses=clauses, returned=returned):
                loop = _loop(given)
                if loop is not None:
                    (scope,) = self.tuples(clauses[: loop.lets], scope)
                    for each in loop.updates:
                        self._one(each, scope)
                    return
                for inner in self.tuples(clauses, scope):
                    self.update(returned, inner)
            case _:
                self.value(given, scope)  # vacuous: `error()` raises

    def _one(self, given: Update, scope: Scope) -> None:
        found = self.handles(given.arguments[-1], scope)
        if found is not None and given.is_each and self._all_at_once(given, found, scope):
            return
        targets: Items = (
            self.value(given.arguments[-1], scope)
            if found is None
            else [Node(node) for node in found]
        )
        if given.name == "delete":
            self.operations += [Delete(node) for node in self._deleted(targets, given)]
            return
        brought = self.value(given.arguments[0], scope)
        make = self._maker(given, brought, scope)
        if given.is_each:
            for target in targets:
                make([target])
        else:
            make(targets)

    def _all_at_once(self, given: Update, found: list[int], scope: Scope) -> bool:
        """Make the operations for many nodes at once, if every node is a valid target."""
        if given.name == "delete":
            self.operations += [Delete(node) for node in found]
            return True
        place, kinds = _PLACES.get(given.name), self.tree.kind_column
        if place is None or place in _BESIDE or any(kinds[node] != ELEMENT for node in found):
            return False
        pieces = content(self.tree, self.value(given.arguments[0], scope))
        self._attributes_first(pieces, given)
        if pieces:
            self.operations += [Insert(place, node, pieces) for node in found]
        return True

    def _deleted(self, targets: Items, given: Update) -> list[int]:
        for item in targets:
            if not isinstance(item, Node | New):
                raise self._wrong("XUTY0007", "the target of delete is a value", given)
        nodes = [int(item) for item in targets if isinstance(item, Node)]
        if DOCUMENT in nodes:
            raise self._wrong("XUDY0021", "the document itself cannot be deleted", given)
        return nodes

    def _maker(self, given: Update, brought: Items, scope: Scope) -> Callable[[Items], None]:
        """A function that makes the operation for a target; its content is built once."""
        match given.name:
            case "rename":
                label = self.builder(scope).name(brought, True, given.arguments[0].at)
                plain = self.builder(scope).name(brought, False, given.arguments[0].at)
                prefix = self.builder(scope).prefix(brought)
                return lambda targets: self._rename(targets, label, plain, prefix, given)
            case "replace-value":
                value = joined(self.tree, brought)
                return lambda targets: self._replace_value(targets, value, given)
            case "replace-node":
                pieces = content(self.tree, brought)
                return lambda targets: self._replace_node(targets, pieces, given)
        pieces = content(self.tree, brought)
        attributes = self._attributes_first(pieces, given)
        place = _PLACES[given.name]
        return lambda targets: self._insert(targets, place, pieces, attributes, given)

    # One operation each -------------------------------------------------------------------------

    def _insert(
        self, targets: Items, place: Place, pieces: Content, attributes: int, given: Update
    ) -> None:
        if place in _BESIDE:
            target, _ = self._target(targets, _HAS_SIBLINGS, "XUTY0006", given)
            if attributes and self.tree.parent(target) == DOCUMENT_NODE:
                raise self._wrong("XUDY0030", "an attribute cannot be beside the root", given)
        else:
            into = frozenset({ELEMENT, int(NodeKind.DOCUMENT)})
            if attributes and any(self._kind(item) == NodeKind.DOCUMENT for item in targets):
                raise self._wrong(
                    "XUTY0022", "an attribute cannot be inserted into a document", given
                )
            target, _ = self._target(targets, into, "XUTY0005", given)
        if pieces:
            self.operations.append(Insert(place, target, pieces))

    def _replace_node(self, targets: Items, pieces: Content, given: Update) -> None:
        target, kind = self._target(targets, _REPLACEABLE, "XUTY0008", given)
        for piece in pieces:
            if isinstance(piece, Attribute) and kind != ATTRIBUTE:
                raise self._wrong("XUTY0010", "an attribute would replace another node", given)
            if not isinstance(piece, Attribute) and kind == ATTRIBUTE:
                raise self._wrong("XUTY0011", "another node would replace an attribute", given)
        self.operations.append(ReplaceNode(target, pieces))

    def _replace_value(self, targets: Items, value: str, given: Update) -> None:
        target, kind = self._target(targets, _REPLACEABLE, "XUTY0008", given)
        if kind == _COMMENT and ("--" in value or value.endswith("-")):
            raise self._wrong("XQDY0072", "a comment cannot hold `--` or end with `-`", given)
        if kind == _INSTRUCTION and "?>" in value:
            raise self._wrong("XQDY0026", "an instruction cannot hold `?>`", given)
        self.operations.append(ReplaceValue(target, value))

    def _rename(self, targets: Items, label: str, plain: str, prefix: str, given: Update) -> None:
        target, kind = self._target(targets, _NAMED, "XUTY0012", given)
        self.operations.append(Rename(target, label if kind == ELEMENT else plain, prefix))

    # Checks -------------------------------------------------------------------------------------

    def _target(
        self, targets: Items, kinds: frozenset[int], code: str, given: Update
    ) -> tuple[int, int]:
        """The one target of an update and its kind; raises the recommendation's errors.

        A plain handle: views keep it in their rows, and the cache on disk accepts only that.
        """
        if not targets:
            raise self._wrong("XUDY0027", f"the target of {given.name} finds no node", given)
        if len(targets) > 1:
            raise self._wrong(
                code, f"{given.name} has {len(targets)} targets", given,
                advice=f"for $x in ... return {given.name.partition('-')[0]} ... $x",
            )  # fmt: skip
        (item,) = targets
        kind = self._kind(item)
        if kind not in kinds:
            raise self._wrong(code, f"{given.name} cannot have this target", given)
        if not isinstance(item, Node):
            raise self._not_in_document(given)
        return int(item), kind

    def _kind(self, item: Item) -> int:
        """The kind of a node; `FREE` for a value."""
        if isinstance(item, Node):
            return self.tree.kind_column[item]
        return _NEW_KINDS[item.kind] if isinstance(item, New) else int(NodeKind.FREE)

    def _not_in_document(self, given: Update) -> UpdateError:
        if given.name in ("insert-before", "insert-after"):
            return self._wrong("XUDY0029", "the target has no parent", given)
        if given.name == "replace-node":
            return self._wrong("XUDY0009", "the target has no parent", given)
        return self._wrong("AX302", "the target is a node made by the statement", given)

    def _attributes_first(self, pieces: Content, given: Update) -> int:
        """The number of attributes; raises XUTY0004 unless they come first."""
        count = sum(isinstance(piece, Attribute) for piece in pieces)
        if any(not isinstance(piece, Attribute) for piece in pieces[:count]):
            raise self._wrong("XUTY0004", "an attribute comes after other content", given)
        return count

    def _wrong(
        self, code: str, message: str, given: Update, advice: str | None = None
    ) -> UpdateError:
        at = given.arguments[-1].at
        return UpdateError(code, message, place=place_at(self.statement.text, at), advice=advice)


# Loops --------------------------------------------------------------------------------------------


class _Loop:
    """A loop as one search: the number of `let`s before it, and its updates without it."""

    __slots__ = ("lets", "updates")

    def __init__(self, lets: int, updates: list[Update]) -> None:
        self.lets = lets
        self.updates = updates


_LOOPS: dict[int, tuple[Flwor, _Loop | None]] = {}


def _loop(flwor: Flwor) -> _Loop | None:
    """The loop as a search; cached by identity, like paths."""
    known = _LOOPS.get(id(flwor))
    if known is None:
        if len(_LOOPS) > 1024:
            _LOOPS.clear()
        known = _LOOPS[id(flwor)] = (flwor, _as_search(flwor))
    return known[1]


def _as_search(flwor: Flwor) -> _Loop | None:
    clauses = flwor.clauses
    lets = next((at for at, clause in enumerate(clauses) if not isinstance(clause, Let)), 0)
    rest = clauses[lets:]
    if not rest or type(rest[0]) is not For or isinstance(rest[0], ForAt):
        return None
    loop, conditions = rest[0], rest[1:]
    if not isinstance(loop.source, Path) or not all(isinstance(c, Where) for c in conditions):
        return None
    steps = loop.source.steps
    for where in conditions:
        assert isinstance(where, Where)
        predicate = Predicate(where.condition, loop.variable)
        steps = (*steps, Step("self", AnyNode(), (predicate,), where.at, is_filter=True))
    source = replace(loop.source, steps=steps)
    returned = flwor.returned
    updates = returned.items if isinstance(returned, Listed) else (returned,)
    found = [_without_loop(update, loop.variable, source) for update in updates]
    made = [update for update in found if update is not None]
    return _Loop(lets, made) if made and len(made) == len(found) else None


def _without_loop(update: Expression, variable: str, source: Path) -> Update | None:
    """The update without the loop, if it refers to the loop's node only as its target."""
    if not isinstance(update, Update) or _mentions(update.arguments[:-1], variable):
        return None
    target = update.arguments[-1]
    if not isinstance(target, Path) or not isinstance(target.start, Reference):
        return None
    if target.start.name != variable or _mentions(target.steps, variable):
        return None
    if target.steps and not (update.name == "delete" and all(map(_is_plain, target.steps))):
        return None  # the recommendation requires one target for each node of the loop
    path = replace(source, steps=(*source.steps, *target.steps))
    return replace(update, arguments=(*update.arguments[:-1], path), is_each=True)


def _is_plain(step: object) -> bool:
    return isinstance(step, Step) and not step.is_filter


def _mentions(value: object, variable: str) -> bool:
    """Whether a variable of this name occurs."""
    if isinstance(value, tuple):
        return any(_mentions(one, variable) for one in value)
    if isinstance(value, Reference):
        return value.name == variable
    slots = getattr(value, "__dataclass_fields__", {})
    return any(_mentions(getattr(value, name), variable) for name in slots)
