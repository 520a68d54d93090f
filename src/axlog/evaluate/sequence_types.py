"""`instance of`, `treat as`, `castable as`, `cast as`, and the conversion of function arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axlog.document.tree import ATTRIBUTE, COMMENT, ELEMENT, INSTRUCTION, TEXT, NodeKind, Tree
from axlog.errors import ValueProblem
from axlog.evaluate.atoms import NUMERIC, Atom, Untyped, is_of
from axlog.evaluate.casts import CASTS
from axlog.evaluate.items import Item, Items, New, Node, atoms, label_of_new
from axlog.evaluate.node_tests import step_passes
from axlog.query.pattern import AnyInstruction, Name, Test
from axlog.query.positions import place_at
from axlog.query.syntax_tree import SequenceType, Typed

if TYPE_CHECKING:
    from axlog.evaluate.expressions import Evaluator

_LEAST = {"": 1, "?": 0, "*": 0, "+": 1}
_MOST = {"": 1, "?": 1}
_NEW_KINDS = {
    "element": "element()", "attribute": "attribute()", "text": "text()", "comment": "comment()",
    "instruction": "processing-instruction()", "document": "document-node()",
}  # fmt: skip
_KINDS = {
    ELEMENT: "element()", ATTRIBUTE: "attribute()", TEXT: "text()", COMMENT: "comment()",
    INSTRUCTION: "processing-instruction()", int(NodeKind.DOCUMENT): "document-node()",
}  # fmt: skip


def typed(evaluator: Evaluator, given: Typed, items: Items) -> Items:
    """The value of an operator on types."""
    tree, type_ = evaluator.tree, given.type
    match given.operator:
        case "instance of":
            return [is_instance(tree, items, type_)]
        case "castable as":
            return [is_castable(atoms(tree, items), type_)]
        case "cast as":
            return cast_items(atoms(tree, items), type_)
        case "convert":
            items = _converted(tree, items, type_)
    if not is_instance(tree, items, type_):
        problem, kind = "the value has another type", f"{type_.kind}{type_.occurrence}"
        place = place_at(evaluator.statement.text, given.at)
        if given.operator == "treat as":
            raise ValueProblem("XPDY0050", problem, place=place, expected=kind)
        raise ValueProblem("XPTY0004", problem, place=place, expected=kind)
    return items


def is_instance(tree: Tree, items: Items, type_: SequenceType) -> bool:
    """Whether a sequence has a type."""
    if type_.kind == "empty-sequence()":
        return not items
    if not _LEAST[type_.occurrence] <= len(items) <= _MOST.get(type_.occurrence, len(items)):
        return False
    return all(_is(tree, item, type_) for item in items)


def _is(tree: Tree, item: Item, type_: SequenceType) -> bool:
    kind = type_.kind
    if kind == "item()":
        return True
    if isinstance(item, Node):
        if kind == "node()":
            return True
        if _KINDS.get(tree.kind_column[item]) != kind:
            return False
        axis = "attribute" if kind == "attribute()" else "child"
        return type_.test is None or step_passes(tree, item, axis, type_.test)
    if isinstance(item, New):
        if kind == "node()":
            return True
        return _NEW_KINDS[item.kind] == kind and _passes_new(item, type_.test)
    return is_of(item, _plain(kind))


def _passes_new(item: New, test: Test | None) -> bool:
    """Whether the name of a new node passes the test of its kind."""
    match test:
        case Name(label=wanted) | AnyInstruction(target=str() as wanted):
            return label_of_new(item) == wanted
    return True


def _plain(kind: str) -> str:
    return "xs:integer" if kind == "xs:int" else kind


def cast_items(values: list[Atom], type_: SequenceType) -> Items:
    """`cast as`."""
    convert = CASTS.get(_plain(type_.kind))
    if convert is None:
        raise ValueProblem("XPST0080", f"no value can be cast to {type_.kind}")
    if not values and type_.occurrence == "?":
        return []
    if len(values) != 1:
        raise ValueProblem("XPTY0004", f"{len(values)} values cannot be cast to {type_.kind}")
    return [convert(values[0])]


def is_castable(values: list[Atom], type_: SequenceType) -> bool:
    """`castable as`."""
    try:
        cast_items(values, type_)
    except ValueProblem as problem:
        if problem.code == "XPST0080":
            raise
        return False
    return True


def _converted(tree: Tree, items: Items, type_: SequenceType) -> Items:
    """The function conversion rules: atomise, cast untyped values, promote numbers."""
    kind = _plain(type_.kind)
    if not kind.startswith("xs:"):
        return items
    convert = CASTS.get("xs:double" if kind == "xs:numeric" else kind)
    if convert is None:
        return list(atoms(tree, items))
    return [
        convert(value)
        if type(value) is Untyped or (kind == "xs:double" and type(value) in NUMERIC)
        else value
        for value in atoms(tree, items)
    ]
