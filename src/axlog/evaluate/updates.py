"""The operations of updating expressions.

Targets and content are checked by the rules of the XQuery Update recommendation (XUTY and XUDY
codes). In the short syntax, without `node`, an update applies to every node that its path finds,
possibly none. A target is a node of the document, or one that the statement made: those of each
tree are collected apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from axlog.document import pending
from axlog.document.operations import (
    Attribute,
    Content,
    Delete,
    Insert,
    Operation,
    Rename,
    Repeated,
    ReplaceNode,
    ReplaceValue,
)
from axlog.document.operations import Where as Place
from axlog.document.tree import ATTRIBUTE, CALL, DOCUMENT_NODE, ELEMENT, TEXT, NodeKind, Tree
from axlog.errors import UpdateError
from axlog.evaluate.constructors import content
from axlog.evaluate.items import KINDS, Item, Items, New, Node, joined
from axlog.evaluate.made_nodes import place_of
from axlog.evaluate.prefixes import check_prefixes
from axlog.evaluate.update_loops import loop_of
from axlog.query.positions import place_at
from axlog.query.syntax_tree import Call, Expression, Flwor, Update
from axlog.query.syntax_tree import (
    Sequence as Listed,
)

if TYPE_CHECKING:
    from axlog.evaluate.expressions import Evaluator, Scope

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
_NEW_KINDS = {name: kind for kind, name in KINDS.items()}


class _Target(NamedTuple):
    """The target of an update, and the operations of its tree."""

    tree: Tree
    node: int
    kind: int
    has_parent: bool
    operations: list[Operation]


class UpdateCollector:
    """Evaluates an updating expression and collects its operations.

    `collected` are those of the document, `of_new` those of trees that the statement made, by the
    number of the tree, and `new_targets` the first update of each of these.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._operations: list[Operation] = []
        self._repeated: Repeated | None = None  # the only operations until others follow
        self.of_new: dict[int, tuple[Tree, list[Operation]]] = {}
        self.new_targets: dict[int, Update] = {}

    def collected(self) -> Sequence[Operation]:
        """The operations of the document."""
        return self._operations if self._repeated is None else self._repeated

    def apply_to(self, numbers: Collection[int]) -> None:
        """Apply the operations to these trees; XUDY0014 if a target is in another one."""
        for number, (_, operations) in self.of_new.items():
            if operations and number not in numbers:
                message = "the target of an update in `modify` is not in a copy"
                raise self._wrong("XUDY0014", message, self.new_targets[number])
        self._apply()

    def refuse_new(self) -> None:
        """Refuse targets that the statement made; their conflicts are raised first."""
        self._apply()
        for number, (_, operations) in self.of_new.items():
            if operations:
                message = "the target is a node made by the statement"
                raise self._wrong("AX302", message, self.new_targets[number])

    def _apply(self) -> None:
        for tree, operations in self.of_new.values():
            check_prefixes(tree, operations)
            pending.apply(tree, operations, keep_whitespace=True)

    def update(self, given: Expression, scope: Scope) -> None:
        """Collect the operations of an expression."""
        match given:
            case Update():
                self._one(given, scope)
            case Call(name="if", arguments=(condition, first, second)):
                self.update(first if self._evaluator.holds(condition, scope) else second, scope)
            case Listed(items=items):
                for item in items:
                    self.update(item, scope)
            case Flwor(clauses=clauses, returned=returned):
                loop = loop_of(given)
                if loop is not None:
                    (scope,) = self._evaluator.tuples(clauses[: loop.lets], scope)
                    for each in loop.updates:
                        self._one(each, scope)
                    return
                for inner in self._evaluator.tuples(clauses, scope):
                    self.update(returned, inner)
            case _:
                self._evaluator.value(given, scope)  # vacuous: `error()` raises

    def _one(self, given: Update, scope: Scope) -> None:
        if self._repeated is not None:
            self._operations += self._repeated
            self._repeated = None
        found = self._evaluator.handles(given.arguments[-1], scope)
        if found is not None and given.is_each and self._all_at_once(given, found, scope):
            return
        targets: Items = (
            self._evaluator.value(given.arguments[-1], scope)
            if found is None
            else [Node(node) for node in found]
        )
        if given.name == "delete":
            self._delete(targets, given)
            return
        if given.is_each and not targets:
            return
        brought = self._evaluator.value(given.arguments[0], scope)
        make = self._maker(given, brought, scope)
        if given.is_each:
            for target in targets:
                make([target])
        else:
            make(targets)

    def _all_at_once(self, given: Update, found: list[int], scope: Scope) -> bool:
        """Make the operations for many nodes at once, if every node is a valid target."""
        if given.name == "delete":
            self._repeat(Repeated(self._tree, found))
            return True
        if not found:
            return True
        place, kinds = _PLACES.get(given.name), self._tree.kind_column
        if place is None or place in _BESIDE:
            return False
        if set(map(kinds.__getitem__, found)) != {ELEMENT}:
            return False
        pieces = content(self._tree, self._evaluator.value(given.arguments[0], scope))
        self._attributes_first(pieces, given)
        if pieces:
            self._repeat(Repeated(self._tree, found, place, pieces))
        return True

    def _repeat(self, operations: Repeated) -> None:
        if self._operations:
            self._operations += operations
        elif operations:
            self._repeated = operations

    def _delete(self, targets: Items, given: Update) -> None:
        for item in targets:
            if not isinstance(item, Node | New):
                raise self._wrong("XUTY0007", "the target of delete is a value", given)
        for item in targets:
            if isinstance(item, Node):
                if item == DOCUMENT_NODE:
                    raise self._wrong("AX302", "the document itself cannot be deleted", given)
                self._operations.append(Delete(int(item)))
            elif isinstance(item, New):
                target = self._target_of(item, given)
                if target.has_parent:  # else nothing to delete it from
                    target.operations.append(Delete(target.node))

    def _maker(self, given: Update, brought: Items, scope: Scope) -> Callable[[Items], None]:
        """A function that makes the operation for a target; its content is built once."""
        match given.name:
            case "rename":
                return lambda targets: self._rename(targets, brought, scope, given)
            case "replace-value":
                value = joined(self._tree, brought)
                return lambda targets: self._replace_value(targets, value, given)
            case "replace-node":
                pieces = content(self._tree, brought)
                return lambda targets: self._replace_node(targets, pieces, given)
        pieces = content(self._tree, brought)
        attributes = self._attributes_first(pieces, given)
        place = _PLACES[given.name]
        return lambda targets: self._insert(targets, place, pieces, attributes, given)

    # One operation each -------------------------------------------------------------------------

    def _insert(
        self, targets: Items, place: Place, pieces: Content, attributes: int, given: Update
    ) -> None:
        if place in _BESIDE:
            target = self._target(targets, _HAS_SIBLINGS, "XUTY0006", given)
            if not target.has_parent:
                raise self._wrong("XUDY0029", "the target has no parent", given)
            if attributes and target.tree.parent(target.node) == DOCUMENT_NODE:
                raise self._wrong("XUDY0030", "an attribute cannot be beside the root", given)
        else:
            into = frozenset({ELEMENT, int(NodeKind.DOCUMENT)})
            target = self._target(targets, into, "XUTY0005", given)
            if attributes and target.kind == NodeKind.DOCUMENT:
                raise self._wrong(
                    "XUTY0022", "an attribute cannot be inserted into a document", given
                )
        if pieces:
            target.operations.append(Insert(place, target.node, pieces))

    def _replace_node(self, targets: Items, pieces: Content, given: Update) -> None:
        target = self._target(targets, _REPLACEABLE, "XUTY0008", given)
        if not target.has_parent:
            raise self._wrong("XUDY0009", "the target has no parent", given)
        for piece in pieces:
            if isinstance(piece, Attribute) and target.kind != ATTRIBUTE:
                raise self._wrong("XUTY0010", "an attribute would replace another node", given)
            if not isinstance(piece, Attribute) and target.kind == ATTRIBUTE:
                raise self._wrong("XUTY0011", "another node would replace an attribute", given)
        target.operations.append(ReplaceNode(target.node, pieces))

    def _replace_value(self, targets: Items, value: str, given: Update) -> None:
        target = self._target(targets, _REPLACEABLE, "XUTY0008", given)
        if target.kind == _COMMENT and ("--" in value or value.endswith("-")):
            raise self._wrong("XQDY0072", "a comment cannot hold `--` or end with `-`", given)
        if target.kind == _INSTRUCTION and "?>" in value:
            raise self._wrong("XQDY0026", "an instruction cannot hold `?>`", given)
        if target.kind == _INSTRUCTION:
            value = value.lstrip()
        target.operations.append(ReplaceValue(target.node, value))

    def _rename(self, targets: Items, brought: Items, scope: Scope, given: Update) -> None:
        target = self._target(targets, _NAMED, "XUTY0012", given)
        builder, at = self._evaluator.builder(scope), given.arguments[0].at
        if target.kind == _INSTRUCTION:
            target.operations.append(Rename(target.node, builder.target(brought, at)))
            return
        label = builder.name(brought, target.kind == ELEMENT, at)
        target.operations.append(Rename(target.node, label, builder.prefix(brought)))

    # Checks -------------------------------------------------------------------------------------

    def _target(self, targets: Items, kinds: frozenset[int], code: str, given: Update) -> _Target:
        """The one target of an update; raises the recommendation's errors."""
        if not targets:
            raise self._wrong("XUDY0027", f"the target of {given.name} finds no node", given)
        if len(targets) > 1:
            raise self._wrong(
                code, f"{given.name} has {len(targets)} targets", given,
                advice=f"for $x in ... return {given.name.partition('-')[0]} ... $x",
            )  # fmt: skip
        (item,) = targets
        if self._kind(item) not in kinds:
            raise self._wrong(code, f"{given.name} cannot have this target", given)
        assert isinstance(item, Node | New), "values have no kind"
        return self._target_of(item, given)

    def _kind(self, item: Item) -> int:
        """The kind of a node; `FREE` for a value."""
        if isinstance(item, Node):
            return self._tree.kind_column[item]
        return _NEW_KINDS[item.kind] if isinstance(item, New) else int(NodeKind.FREE)

    def _target_of(self, item: Node | New, given: Update) -> _Target:
        """A plain handle: views keep it in their rows, and the cache on disk accepts only that."""
        if isinstance(item, Node):
            kind = self._tree.kind_column[item]
            return _Target(self._tree, int(item), kind, item != DOCUMENT_NODE, self._operations)
        place = place_of(self._evaluator, item, given.arguments[-1].at)
        self.new_targets.setdefault(place.number, given)
        operations = self.of_new.setdefault(place.number, (place.tree, []))[1]
        node, kind = int(place.node), place.tree.kind_column[place.node]
        return _Target(place.tree, node, kind, place.node != place.top, operations)

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
        place = place_at(self._evaluator.statement.text, at)
        return UpdateError(code, message, place=place, advice=advice)
