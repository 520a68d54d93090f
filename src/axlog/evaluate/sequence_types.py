"""`instance of`, `treat as`, `castable as`, `cast as`, and the conversion of function arguments."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from axlog.document.tree import ATTRIBUTE, COMMENT, ELEMENT, INSTRUCTION, TEXT, NodeKind
from axlog.errors import AxlogError
from axlog.evaluate.functions import FUNCTIONS
from axlog.evaluate.items import Dated, Item, Items, Named, New, Node, Untyped, atom
from axlog.evaluate.node_tests import step_passes
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
_NUMBERS = ("xs:integer", "xs:int", "xs:decimal", "xs:double")


def typed(evaluator: Evaluator, given: Typed, items: Items) -> Items:
    """The value of an operator on types."""
    type_ = given.type
    match given.operator:
        case "instance of":
            return [is_instance(evaluator, items, type_)]
        case "castable as":
            try:
                _cast(evaluator, items, given)
            except AxlogError:
                return [False]
            return [True]
        case "cast as":
            return _cast(evaluator, items, given)
        case "convert":
            items = _converted(evaluator, items, given)
    if not is_instance(evaluator, items, type_):
        code = "XPDY0050" if given.operator == "treat as" else "XPTY0004"
        kind = f"{type_.kind}{type_.occurrence}"
        raise evaluator.refused(code, "the value has another type", given.at, expected=kind)
    return items


def is_instance(evaluator: Evaluator, items: Items, type_: SequenceType) -> bool:
    """Whether a sequence has a type."""
    if type_.kind == "empty-sequence()":
        return not items
    if not _LEAST[type_.occurrence] <= len(items) <= _MOST.get(type_.occurrence, len(items)):
        return False
    return all(_is(evaluator, item, type_) for item in items)


def _is(evaluator: Evaluator, item: Item, type_: SequenceType) -> bool:
    kind = type_.kind
    if kind == "item()":
        return True
    if isinstance(item, Node):
        if kind == "node()":
            return True
        tree = evaluator.tree
        if _KINDS.get(tree.kind_column[item]) != kind:
            return False
        axis = "attribute" if kind == "attribute()" else "child"
        return type_.test is None or step_passes(tree, item, axis, type_.test)
    if isinstance(item, New):
        return kind == "node()" or _NEW_KINDS[item.kind] == kind
    return kind in atomic_types(item)


def atomic_types(value: Item) -> tuple[str, ...]:
    """The names of the types that an atomic value is an instance of."""
    if isinstance(value, Untyped):
        names: tuple[str, ...] = ("xs:untypedAtomic",)
    elif isinstance(value, str):
        names = ("xs:string",)
    elif isinstance(value, bool):
        names = ("xs:boolean",)
    elif isinstance(value, int):
        names = ("xs:integer", "xs:decimal", "xs:numeric")
    elif isinstance(value, Decimal):
        names = ("xs:decimal", "xs:numeric")
    elif isinstance(value, float):
        names = ("xs:double", "xs:numeric")
    elif isinstance(value, Named):
        names = ("xs:QName",)
    elif isinstance(value, Dated):
        names = (value.type,)
    else:
        names = ()
    return (*names, "xs:anyAtomicType")


def _cast(evaluator: Evaluator, items: Items, given: Typed) -> Items:
    type_ = given.type
    if not items and type_.occurrence == "?":
        return []
    if len(items) != 1 or type_.kind not in FUNCTIONS:
        raise evaluator.refused("XPTY0004", "a cast needs one value", given.at)
    return FUNCTIONS[type_.kind][2](evaluator.tree, [items])


def _converted(evaluator: Evaluator, items: Items, given: Typed) -> Items:
    """The function conversion rules: atomise, cast untyped values, promote numbers."""
    kind = given.type.kind
    if not kind.startswith("xs:"):
        return items
    found: Items = []
    for item in items:
        value = atom(evaluator.tree, item)
        is_promoted = kind == "xs:double" and isinstance(value, int | Decimal)
        if kind in FUNCTIONS and (isinstance(value, Untyped) or is_promoted):
            found += FUNCTIONS[kind][2](evaluator.tree, [[value]])
        else:
            found.append(value)
    return found
