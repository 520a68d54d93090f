"""Statements that need no evaluator: a deletion, or the insertion of a constant element, at a path.

Most statements are of this kind, as they are or as a loop (`update_loops`). What does not depend on
the document is worked out once for each statement. Then only the path is followed, and all nodes
that it finds are targets.

Law: where the operations are found here, they are those of `updates`.

Not handled (None): other updates and contents; variables that are no strings; targets that are no
elements; and all that is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axlog.document.blocks import FixedContent
from axlog.document.operations import Delete, Insert, Operation, Repeated, Where
from axlog.document.tree import DOCUMENT_NODE, ELEMENT, Tree
from axlog.document.value_index import ValueIndex
from axlog.errors import AxlogError
from axlog.evaluate.constructors import content
from axlog.evaluate.expressions import Evaluator
from axlog.evaluate.select import covers, select
from axlog.evaluate.update_loops import loop_of
from axlog.query.path_patterns import pattern_of
from axlog.query.syntax_tree import (
    Call,
    Clause,
    Constant,
    Constructor,
    Flwor,
    Let,
    Path,
    Reference,
    Root,
    Statement,
    Update,
)

_INSIDE = {
    "insert-into": Where.INTO,
    "insert-first": Where.FIRST,
    "insert-last": Where.LAST,
}
_DOCUMENTS = ("doc", "document", "collection")
_ELEMENTS = {ELEMENT}


@dataclass(frozen=True, slots=True)
class SimpleStatement:
    """A statement with what does not depend on the document."""

    statement: Statement
    path: Path
    is_each: bool
    where: Where | None  # None: a deletion
    content: FixedContent

    def operations(
        self, tree: Tree, index: ValueIndex | None, variables: Mapping[str, Any] | None
    ) -> Sequence[Operation] | None:
        """The pending update list; None: an evaluator must find it."""
        values = variables or {}
        for value in values.values():
            if type(value) is not str:
                return None
        patterns, path = self.statement.patterns, self.path
        if id(path) in patterns:
            pattern = patterns[id(path)]
        else:
            pattern = pattern_of(path, self.statement.text, frozenset(values))
        if pattern is None or covers(pattern) is not None:
            return None
        found = select(tree, pattern, index, values)
        if self.where is None:
            if self.is_each:
                return Repeated(tree, found) if found else []
            return None if DOCUMENT_NODE in found else list(map(Delete, found))
        if not found and self.is_each:
            return []
        if set(map(tree.kind_column.__getitem__, found)) != _ELEMENTS:
            return None
        if self.is_each:
            return Repeated(tree, found, self.where, self.content)
        return [Insert(self.where, found[0], self.content)] if len(found) == 1 else None


_KNOWN: dict[int, tuple[Statement, SimpleStatement | None]] = {}


def simple_of(statement: Statement, tree: Tree) -> SimpleStatement | None:
    """The statement as a simple one; None if it is another. Cached by identity, like paths."""
    known = _KNOWN.get(id(statement))
    if known is None:
        if len(_KNOWN) > 1024:
            _KNOWN.clear()
        known = _KNOWN[id(statement)] = (statement, _simple(statement, tree))
    return known[1]


def _simple(statement: Statement, tree: Tree) -> SimpleStatement | None:
    update, documents = _only_update(statement)
    if update is None:
        return None
    path = update.arguments[-1]
    if not isinstance(path, Path) or not path.steps:
        return None
    start = path.start
    if not isinstance(start, Root) and not (
        isinstance(start, Reference) and start.name in documents
    ):
        return None
    if update.name == "delete":
        return SimpleStatement(statement, path, update.is_each, None, FixedContent())
    where, brought = _INSIDE.get(update.name), update.arguments[0]
    if where is None or not isinstance(brought, Constructor):
        return None
    evaluator = Evaluator(tree, statement)
    try:
        pieces = content(tree, evaluator.value(brought, evaluator.scope()))
    except (AxlogError, RecursionError):
        return None  # it has variables, or is an error
    if type(pieces) is not FixedContent:
        return None
    return SimpleStatement(statement, path, update.is_each, where, pieces)


def _only_update(statement: Statement) -> tuple[Update | None, set[str]]:
    """The only update of a statement, and the variables that are the document; None: no such."""
    expression = statement.expression
    if isinstance(expression, Update):
        return expression, set()
    loop = loop_of(expression) if isinstance(expression, Flwor) else None
    if loop is None or len(loop.updates) != 1:
        return None, set()
    assert isinstance(expression, Flwor)
    lets = expression.clauses[: loop.lets]
    if not all(map(_is_document, lets)):
        return None, set()
    return loop.updates[0], {each.variable for each in lets if isinstance(each, Let)}


def _is_document(clause: Clause) -> bool:
    """Whether a clause is `let $x := doc("...")`."""
    return (
        isinstance(clause, Let)
        and isinstance(clause.value, Call)
        and clause.value.name in _DOCUMENTS
        and all(isinstance(each, Constant) for each in clause.value.arguments)
    )
