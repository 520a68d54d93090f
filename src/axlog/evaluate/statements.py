"""Statements to pending update lists: find the targets on the snapshot, make an operation for each.

The document is only read. `updates` defines the operations of an updating expression.
(compute-pul: paper 5, section 3.4.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from axlog.document.operations import Operation
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.document.tree import Tree
from axlog.document.value_index import ValueIndex
from axlog.evaluate.expressions import Evaluator
from axlog.evaluate.prefixes import check_prefixes
from axlog.evaluate.simple_statements import simple_of
from axlog.evaluate.updates import UpdateCollector
from axlog.evaluate.variables import Given, given_items
from axlog.query.depth import too_deep
from axlog.query.syntax_tree import Statement


def operations_of(
    tree: Tree,
    statement: Statement,
    index: ValueIndex | None = None,
    variables: Mapping[str, Given] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Sequence[Operation]:
    """The pending update list of a statement; `variables` are those given by its caller.

    >>> from axlog.document.loader import load
    >>> from axlog.query.update_parser import parse_statements
    >>> (statement,) = parse_statements("delete nodes //b")
    >>> operations_of(load("<a><b/><b/></a>"), statement)
    [Delete(target=2), Delete(target=3)]
    """
    simple = simple_of(statement, tree)
    found = None if simple is None else simple.operations(tree, index, variables)
    if found is not None:
        return found
    given = given_items(tree, variables, limits) if variables else None
    evaluator = Evaluator(tree, statement, index, given)
    collector = UpdateCollector(evaluator)
    try:
        collector.update(statement.expression, evaluator.scope())
    except RecursionError:
        raise too_deep(statement.text, statement.expression.at) from None
    collector.refuse_new()
    operations = collector.collected()
    check_prefixes(tree, operations)
    return operations
