"""`instance of`, `treat as`, `castable as` and `cast as`, on sequences."""

from __future__ import annotations

from axlog.document.tree import ATTRIBUTE, ELEMENT, TEXT, NodeKind, Tree
from axlog.errors import ValueProblem
from axlog.evaluate.atoms import is_of
from axlog.evaluate.casts import CASTS
from axlog.evaluate.items import Item, Items, New, Node, atoms

_KINDS = {
    "element()": (ELEMENT, "element"),
    "attribute()": (ATTRIBUTE, "attribute"),
    "text()": (TEXT, "text"),
    "comment()": (int(NodeKind.COMMENT), "comment"),
    "processing-instruction()": (int(NodeKind.INSTRUCTION), "instruction"),
    "document-node()": (int(NodeKind.DOCUMENT), "document"),
}


def type_operation(tree: Tree, operator: str, items: Items, type_: str, occurrence: str) -> Items:
    """The value of an operator with a type."""
    match operator:
        case "instance of":
            return [is_instance(tree, items, type_, occurrence)]
        case "treat as":
            if not is_instance(tree, items, type_, occurrence):
                raise ValueProblem("XPDY0050", f"the value is not of {type_}{occurrence}")
            return items
    values = atoms(tree, items)
    convert = CASTS.get(_plain(type_))
    if convert is None:
        raise ValueProblem("XPST0080", f"no value can be cast to {type_}")
    if len(values) != 1:
        is_allowed = not values and occurrence == "?"
        if operator == "castable as":
            return [is_allowed]
        if not is_allowed:
            raise ValueProblem("XPTY0004", f"{len(values)} values cannot be cast to {type_}")
        return []
    if operator == "cast as":
        return [convert(values[0])]
    try:
        convert(values[0])
    except ValueProblem:
        return [False]
    return [True]


def _plain(type_: str) -> str:
    return "xs:integer" if type_ == "xs:int" else type_


def is_instance(tree: Tree, items: Items, type_: str, occurrence: str) -> bool:
    """Whether a sequence is of a sequence type."""
    if type_ == "empty-sequence()":
        return not items
    if (not items and occurrence not in ("?", "*")) or (len(items) > 1 and occurrence not in "*+"):
        return False
    if len(items) > 1 and not occurrence:
        return False
    return all(_is_item(tree, item, type_) for item in items)


def _is_item(tree: Tree, item: Item, type_: str) -> bool:
    if type_ == "item()":
        return True
    if not isinstance(item, Node | New):
        return is_of(item, _plain(type_))
    if type_ == "node()":
        return True
    kind = _KINDS.get(type_)
    if kind is None:
        return False
    return tree.kind_column[item] == kind[0] if isinstance(item, Node) else item.kind == kind[1]
