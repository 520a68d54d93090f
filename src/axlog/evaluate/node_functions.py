"""The functions of nodes: names, values, roots (F&O 3.1, sections 2 and 13)."""

from __future__ import annotations

from axlog.document.tree import DOCUMENT_NODE, ELEMENT, Tree
from axlog.errors import ValueProblem
from axlog.evaluate.atoms import Atom, Named
from axlog.evaluate.casts import number_of
from axlog.evaluate.items import Item, New, Node, label_of, label_of_new, text
from axlog.evaluate.signatures import Function, function


def _label(tree: Tree, item: Item | None) -> str:
    """The expanded name of a node, without the `@` of attributes."""
    if item is None:
        return ""
    if isinstance(item, Node):
        return label_of(tree, item)
    if isinstance(item, New):
        return label_of_new(item)
    raise ValueProblem("XPTY0004", "the argument of a name function is not a node")


def _local_name(tree: Tree, item: Item | None) -> str:
    return _label(tree, item).rpartition("}")[2]


def _namespace(tree: Tree, item: Item | None) -> str:
    return _label(tree, item).rpartition("}")[0].removeprefix("{")


def _prefix(tree: Tree, item: Item | None) -> str:
    """The prefix of the declarations in scope for the namespace of a node's name."""
    address = _namespace(tree, item)
    if not address or item is None:
        return ""
    if isinstance(item, New):
        if item.place is not None:
            return _prefix(item.place.tree, item.place.node)
        return str(getattr(item.pieces[0], "prefix", None) or "")
    assert isinstance(item, Node), "only nodes have names"
    scope = tree.namespaces(item)
    prefixes = [prefix for prefix, uri in scope.items() if uri == address and prefix]
    is_default = scope.get(None) == address and tree.kind_column[item] == ELEMENT
    return "" if is_default or not prefixes else prefixes[0]


def _name(tree: Tree, item: Item | None) -> str:
    prefix, local = _prefix(tree, item), _local_name(tree, item)
    return f"{prefix}:{local}" if prefix else local


def _node_name(tree: Tree, item: Item | None) -> Named | None:
    label = _label(tree, item)
    return Named(label, _prefix(tree, item)) if label else None


def _string(tree: Tree, item: Item | None) -> str:
    return "" if item is None else text(tree, item)


def _root(tree: Tree, item: Item | None) -> Item | None:
    if isinstance(item, Node):
        return Node(DOCUMENT_NODE)
    is_placed = isinstance(item, New) and item.place is not None
    return item.place.at(item.place.top) if is_placed else item  # type: ignore[union-attr]


def _number(value: Atom | None) -> float:
    return float("nan") if value is None else number_of(value)


def _qname(address: str | None, name: str) -> Named:
    prefix, _, local = name.rpartition(":")
    return Named(f"{{{address}}}{local}" if address else local, prefix)


NODE_FUNCTIONS: dict[str, Function] = {
    "name": function("[node?]", _name, takes_tree=True, takes_context=True),
    "local-name": function("[node?]", _local_name, takes_tree=True, takes_context=True),
    "namespace-uri": function("[node?]", _namespace, takes_tree=True, takes_context=True),
    "node-name": function("[node?]", _node_name, takes_tree=True, takes_context=True),
    "root": function("[node?]", _root, takes_tree=True, takes_context=True),
    "string": function("[item?]", _string, takes_tree=True, takes_context=True),
    "data": function("[any*]", lambda values: values, is_many=True, takes_context=True),
    "number": function("[any?]", _number, takes_context=True),
    "QName": function("string? string", _qname),
}
