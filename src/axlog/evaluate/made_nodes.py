"""Nodes that a query makes, in trees of their own: `let $x := <a><b/></a> return $x/b`.

A new node gets a place in a tree of its own when a path first enters it. The nodes that steps find
there are new nodes of the same tree, so identity, order and further steps are those of one tree.
Predicates are evaluated like all others, so they may use the document too. Trees of new nodes come
after the document, in the order in which they were made. An element without a parent is the root of
its tree; an attribute, text, comment or instruction is held by an element that no path reaches.
Refused: paths into documents that are not one element, and into empty texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from itertools import count
from typing import TYPE_CHECKING, Any

from lxml import etree

from axlog.document.loader import load
from axlog.document.operations import Attribute
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.evaluate.items import Items, New, Node, Place
from axlog.evaluate.node_tests import step_passes, step_reached
from axlog.query.syntax_tree import Step
from axlog.query.tokenizer import unsupported

if TYPE_CHECKING:
    from axlog.evaluate.expressions import Evaluator, Scope

_NUMBERS = count(1)


def place_of(evaluator: Evaluator, item: New, at: int) -> Place:
    """The place of a new node in a tree; the tree is made when it is first asked for."""
    if item.place is None:
        tree, node = _planted(evaluator, item, at)
        item.place = Place(tree, node, node, next(_NUMBERS))
    return item.place


def copy_of(evaluator: Evaluator, item: Node | New, at: int) -> New:
    """A copy of a node in a tree of its own."""
    if isinstance(item, New):
        made = New(item.kind, item.pieces)
    else:
        place = Place(evaluator.tree, item, item, 0)
        made = New(place.at(item).kind, place.at(item).pieces)
    place_of(evaluator, made, at)
    return made


def _planted(evaluator: Evaluator, item: New, at: int) -> tuple[Tree, Node]:
    """A tree with a new node, and the node in it."""
    pieces: Any = item.pieces
    if item.kind == "element":
        tree = _loaded([pieces[0]], 0)
        return tree, Node(tree.root)
    if item.kind == "document":
        elements = [n for n, piece in enumerate(pieces) if _is_element(piece)]
        if len(elements) != 1 or any(isinstance(piece, str) for piece in pieces):
            raise _refused(evaluator, at, "a path into a new document that is not one element")
        return _loaded(pieces, elements[0]), Node(DOCUMENT_NODE)
    holder = etree.Element("_")
    (piece,) = pieces
    if isinstance(piece, Attribute):
        holder.set(piece.name, piece.value)
    elif isinstance(piece, str):
        if not piece:
            raise _refused(evaluator, at, "a path into an empty text")
        holder.text = piece
    else:
        holder.append(_alone(piece))
    tree = _loaded([holder], 0)
    return tree, Node(tree.first_column[tree.root])


def _loaded(pieces: list[Any], root: int) -> Tree:
    """The tree of a document: its root element, and comments and instructions beside it."""
    element = _alone(pieces[root])
    for piece in pieces[:root]:
        element.addprevious(_alone(piece))
    for piece in reversed(pieces[root + 1 :]):
        element.addnext(_alone(piece))
    return load(element, keep_whitespace=True)


def _alone(piece: Any) -> Any:
    copy = deepcopy(piece)
    copy.tail = None
    return copy


def _is_element(piece: Any) -> bool:
    return isinstance(getattr(piece, "tag", None), str)


# Steps --------------------------------------------------------------------------------------------


def reached(evaluator: Evaluator, step: Step, item: New, scope: Scope) -> Items:
    """The nodes of one step from one new node, in the order of its axis."""
    place = place_of(evaluator, item, step.at)
    found: Items = [
        place.at(node)
        for node in step_reached(place.tree, place.node, step.axis)
        if place.holds(node) and step_passes(place.tree, node, step.axis, step.test)
    ]
    return evaluator.filtered(step.predicates, found, scope)


def root_of(evaluator: Evaluator, item: New, at: int) -> New:
    """The highest node of the tree of a new node."""
    place = place_of(evaluator, item, at)
    return place.at(place.top)


def identity(evaluator: Evaluator, item: Node | New, at: int) -> tuple[int, int]:
    """A key of a node among the nodes of all trees."""
    if isinstance(item, Node):
        return 0, int(item)
    place = place_of(evaluator, item, at)
    return place.number, int(place.node)


def order_key(evaluator: Evaluator, item: Node | New, at: int) -> tuple[int, Any]:
    """A key by which the nodes of all trees are in document order."""
    if isinstance(item, Node):
        return 0, evaluator.tree.id(item)
    place = place_of(evaluator, item, at)
    return place.number, place.tree.id(place.node)


def in_order(evaluator: Evaluator, items: Iterable[Node | New], at: int) -> Items:
    """Distinct nodes of any trees, in document order."""
    distinct = {identity(evaluator, item, at): item for item in items}
    found = list(distinct.values())
    found.sort(key=lambda item: order_key(evaluator, item, at))
    return [*found]


def _refused(evaluator: Evaluator, at: int, construct: str) -> Exception:
    return unsupported(evaluator.statement.text, at, construct, advice="nodes of the document")
