"""Paths into nodes that a query makes: `let $x := <a><b/></a> return $x/b`.

A constructed element becomes a tree of its own when a path first enters it. The steps are evaluated
there, and the nodes that they find are items that remember their place in it, so that identity,
order and further steps are those of one tree. Variables that hold nodes of the document are copied
for the steps. Refused: paths from the document inside the steps, and documents that are not one
element.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from axlog.document.loader import load
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.evaluate.constructors import copied
from axlog.evaluate.items import Items, New, Node
from axlog.query.syntax_tree import (
    AnyStep,
    Kept,
    Path,
    Reference,
    Root,
    Step,
    walk,
)
from axlog.query.tokenizer import unsupported

if TYPE_CHECKING:
    from axlog.evaluate.expressions import Evaluator, Scope

_KINDS = {
    NodeKind.ELEMENT: "element",
    NodeKind.ATTRIBUTE: "attribute",
    NodeKind.TEXT: "text",
    NodeKind.COMMENT: "comment",
    NodeKind.INSTRUCTION: "instruction",
}
_DOWN = frozenset({"child", "attribute", "descendant", "descendant-or-self", "self"})


def inside(
    evaluator: Evaluator, steps: tuple[AnyStep, ...], current: Items, scope: Scope, at: int
) -> Items:
    """The items at the end of steps from nodes that the query makes."""
    if any(isinstance(node, Root | Kept) for node in walk(steps)):
        raise _refused(evaluator, at, "a path from the document inside a path into a new node")
    by_tree: dict[int, tuple[Tree, list[Node]]] = {}
    for item in current:
        if not isinstance(item, New):
            raise _refused(evaluator, at, "a path from nodes of the document and new nodes")
        tree, node = home(evaluator, item, at)
        by_tree.setdefault(id(tree), (tree, []))[1].append(node)
    found: Items = []
    for tree, nodes in by_tree.values():
        found += _walked(evaluator, tree, nodes, steps, scope, at)
    return found


def home(evaluator: Evaluator, item: New, at: int) -> tuple[Tree, Node]:
    """The tree of a new node, and its place in it; made when it is first asked for."""
    if item.home is not None:
        return item.home
    piece: Any = item.pieces[0] if len(item.pieces) == 1 else None
    if not isinstance(getattr(piece, "tag", None), str):
        raise _refused(evaluator, at, "a path into a new node that is not one element")
    alone = deepcopy(piece)
    alone.tail = None
    tree = load(alone, keep_whitespace=True)
    is_document = item.kind == "document"
    made = (tree, Node(DOCUMENT_NODE if is_document else tree.root))
    item.settle(made)
    return made


def _walked(
    evaluator: Evaluator,
    tree: Tree,
    nodes: list[Node],
    steps: tuple[AnyStep, ...],
    scope: Scope,
    at: int,
) -> Items:
    """The items at the end of steps inside one tree."""
    inner = evaluator.of_tree(tree)
    names = {node.name for node in walk(steps) if isinstance(node, Reference)}
    variables = {
        name: [_moved(evaluator, tree, item) for item in scope.variables[name]]
        for name in names
        if name in scope.variables
    }
    start: Any = inner.ordered(set(nodes)) if len(nodes) > 1 else nodes
    path = Path(Reference("", at), steps, at)
    found = inner.path(path, scope.with_variables({**variables, "": list(start)}))
    is_rooted = not any(node == DOCUMENT_NODE for node in nodes)
    made: Items = []
    for item in found:
        if not isinstance(item, Node):
            made.append(item)
        elif item != DOCUMENT_NODE:
            kind = _KINDS[tree.kind(item)]
            made.append(New(kind, tuple(copied(tree, item)), (tree, item)))
        elif not is_rooted:
            made.append(New("document", tuple(copied(tree, item)), (tree, item)))
        elif any(s.predicates for s in steps if isinstance(s, Step) and s.axis not in _DOWN):
            raise _refused(evaluator, at, "a position above a new node")
    return made


def _moved(evaluator: Evaluator, tree: Tree, item: Any) -> Any:
    """The item of a variable, for expressions inside another tree."""
    if isinstance(item, New) and item.home is not None and item.home[0] is tree:
        return item.home[1]
    if isinstance(item, Node):
        kind = _KINDS.get(evaluator.tree.kind(item), "document")
        return New(kind, tuple(copied(evaluator.tree, item)))
    return item


def _refused(evaluator: Evaluator, at: int, construct: str) -> Exception:
    return unsupported(evaluator.statement.text, at, construct, advice="nodes of the document")
