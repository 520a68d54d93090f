"""The operations of statements, found on a maintained tree.

A statement that was used before with other constants is parsed once: its template has variables in
place of them. So is one that is used again as it is. `MaintainedTree.update` imports this module
with the first statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from axlog.document.operations import Operation
from axlog.errors import AxlogError
from axlog.evaluate.statements import operations_of
from axlog.query.statement_templates import instance_of
from axlog.query.syntax_tree import Statement
from axlog.query.update_parser import parse_statements

if TYPE_CHECKING:
    from axlog.live.maintained import MaintainedTree


def by_template(
    document: MaintainedTree, statement: str, variables: Mapping[str, Any] | None
) -> Sequence[Operation] | None:
    """Return the operations of one statement, by the template of statements like it.

    None if it has no template, or raises an error: the error's place is found without it.
    """
    try:
        found = instance_of(statement, document.namespace_items, document.limits)
        if found is None or len(found[0]) != 1:
            return None
        (one,), strings = found
        return operations(document, one, strings if not variables else {**variables, **strings})
    except AxlogError:
        return None


def statements_of(document: MaintainedTree, text: str) -> list[Statement]:
    """Return the statements of a text."""
    return parse_statements(text, document.namespaces, document.limits)


def operations(
    document: MaintainedTree, one: Statement, variables: Mapping[str, Any] | None
) -> Sequence[Operation]:
    """Return the operations of a statement on the document as it is."""
    return operations_of(document.nodes(), one, document.value_index, variables, document.limits)
