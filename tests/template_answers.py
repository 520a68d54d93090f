"""What templates make of rows, as a sequence of items in the order that XQuery defines.

Rows are a set: those of XPath are sorted by their nodes; those of XQuery by the nodes of the `for`
variables, which are added to the outputs. Queries beyond patterns give the items of their plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from axlog.document.ids import Id
from axlog.document.serializer import serialise
from axlog.document.tree import NodeKind, Tree
from axlog.evaluate.atoms import text_of
from axlog.evaluate.items import Item, New, Node
from axlog.query.normalize import names_of, variables_of
from axlog.query.pattern import Branch, Kind, Not, Or, Output, Pattern, PatternNode
from axlog.query.query import Query, parse_query
from axlog.query.template import Piece, PieceKind
from axlog.views.change import Row
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.maintainer import Counting
from axlog.views.dataflow.maintainer import Dataflow
from axlog.views.dataflow.results import new_text
from lab import reference
from lab.conformance.answering import Answer


def answer(
    text: str,
    tree: Tree,
    namespaces: Mapping[str, str] | None = None,
    language: str | None = None,
) -> Answer:
    """Return the answer of a query on a document; its refusal if it is outside the languages."""
    query = parse_query(text, namespaces, language, show=("id", "val", "cont"))
    if query.plan is not None:
        return _planned(query, tree)
    if query.template is not None:
        return _constructed(query, tree)
    if query.pattern.is_boolean:
        return Answer(truth=bool(list(rows(tree, query.pattern))))
    nodes = sorted(rows(tree, query.pattern), key=lambda row: _id(row["node.id"]))
    return Answer(tuple(_node(row) for row in nodes))


def _planned(query: Query, tree: Tree) -> Answer:
    """The items of a plan; the error for which one has no value."""
    flow = Dataflow(tree, query, CountingEngine(tree))
    items = flow.sequence()
    if flow.problem is not None:
        raise flow.problem
    if len(items) == 1 and isinstance(items[0], bool):
        return Answer(truth=items[0])
    if len(items) == 1 and type(items[0]) is int:
        return Answer(number=items[0])
    return Answer(tuple(_item(tree, item) for item in items))


def _item(tree: Tree, item: Item) -> Piece:
    if isinstance(item, New):
        kind = _NEW_KINDS.get(item.kind, PieceKind.XML)
        return Piece(kind, new_text(item))
    if not isinstance(item, Node):
        return Piece(PieceKind.VALUE, text_of(item))
    match tree.kind(item):
        case NodeKind.TEXT:
            return Piece(PieceKind.TEXT, tree.string_value(item))
        case NodeKind.ATTRIBUTE:
            return Piece(PieceKind.ATTRIBUTE, tree.string_value(item), tree.label(item)[1:])
        case NodeKind.DOCUMENT:
            return Piece(PieceKind.XML, serialise(tree, item), "/")
    return Piece(PieceKind.XML, serialise(tree, item))


_NEW_KINDS = {"text": PieceKind.TEXT, "attribute": PieceKind.ATTRIBUTE}


def rows(tree: Tree, pattern: Pattern) -> Iterable[Row]:
    """Return the rows of a pattern, by the fastest engine that accepts it."""
    if Counting.refusal(pattern) is None:
        return Counting(tree, pattern).rows()
    found = reference.rows(tree, replace(pattern, branches=_once(pattern.branches))).values()
    return [Row(pattern.columns, each.values) for each in found]


def _once(branches: tuple[Branch, ...]) -> tuple[Branch, ...]:
    """Turn branches that only test existence into conditions, so that they are evaluated once.

    The rows are the same; their counts differ, but are not used here.
    """
    found: list[Branch] = []
    for branch in branches:
        if not isinstance(branch, PatternNode):
            found.append(_once_inside(branch))
        elif names_of(branch) or variables_of(branch):
            found.append(replace(branch, branches=_once(branch.branches)))
        else:
            found.append(Not((Not((branch,)),)))
    return tuple(found)


def _once_inside(branch: Branch) -> Branch:
    if isinstance(branch, Or):
        return Or(tuple(_once(alternative) for alternative in branch.alternatives))
    return branch


def _constructed(query: Query, tree: Tree) -> Answer:
    template = query.template
    assert template is not None
    order = [Output(Kind.ID, name, f"order {name}") for name in template.bindings]
    pattern = replace(query.pattern, outputs=(*query.pattern.outputs, *order))
    found = list(rows(tree, pattern))
    if not pattern.outputs:
        found = found[:1]
    columns = [output.column for output in order]
    found.sort(key=lambda row: [_id(row[column]) for column in columns])
    items = [piece for row in found for piece in template.pieces(row)]
    return Answer(tuple(items), around=(template.before, template.after))


def _node(row: Row) -> Piece:
    label = (_id(row["node.id"]).labels or ("",))[-1]
    if label == "#text":
        return Piece(PieceKind.TEXT, row["node.val"])
    if label.startswith("@"):
        return Piece(PieceKind.ATTRIBUTE, row["node.val"], label[1:])
    return Piece(PieceKind.XML, row["node.cont"])


def _id(value: Any) -> Id:
    assert isinstance(value, Id)
    return value
