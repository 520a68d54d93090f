"""A rewriting: a row that is asked for by a node's value is asked for by the variable bound to it.

    match /shop[order/id#i = $v][not(paid = $v)] return i.val      status({"i.val": "17"})
    match /shop[order/id#i = $v][not(paid = $v)] return $v         status({"v": "17"})

Beside `not`, rows are decided by their strings, times and nodes, put in for the variables and names
of the query. The value of a node can be put in where a comparison binds it to a variable.

Law: a match has the value for the node exactly if it has it for the variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from axlog.query.pattern import Branch, Kind, Output, Pattern, PatternNode, Variable


def asked_by_variables(
    pattern: Pattern, row: Mapping[str, Any]
) -> tuple[Pattern, dict[str, Any]] | None:
    """The pattern and the row with variables for values of nodes.

    None if the row gives no value of a node, or one that no variable has.

    >>> from axlog.query.native import parse_pattern
    >>> pattern = parse_pattern("match /a[b#t = $x][not(c = $x)] return t.val, t.time")
    >>> asked, row = asked_by_variables(pattern, {"t.val": "1"})
    >>> print(asked, row)
    match /a[b#t = $x][not(c = $x)] return $x {'x': '1'}
    """
    outputs = {output.column: output for output in pattern.outputs}
    asked = {column: value for column, value in row.items() if value is not None}
    if not asked.keys() <= outputs.keys():
        return None
    if not any(outputs[column].kind is Kind.VAL for column in asked):
        return None
    variables = _bound_values(pattern.branches)
    found: dict[Output, Any] = {}
    for column, value in asked.items():
        output = outputs[column]
        if output.kind is Kind.VAL and output.of in variables:
            output = Output(Kind.VARIABLE, variables[output.of])
        elif output.kind is Kind.VARIABLE:
            output = Output(Kind.VARIABLE, output.of)
        elif output.kind in (Kind.VAL, Kind.CONT):
            return None
        if found.setdefault(output, value) != value:
            return None
    by_column = {output.column: value for output, value in found.items()}
    if len(by_column) < len(found):
        return None  # an alias has the name of a variable
    return replace(pattern, outputs=tuple(found)), by_column


def _bound_values(branches: Iterable[Branch]) -> dict[str, str]:
    """The variable that is equal to the value of a node in every match, by the node's name."""
    found: dict[str, str] = {}
    for branch in branches:
        if isinstance(branch, PatternNode):
            for comparison in branch.comparisons:
                is_equal = comparison.operator == "=" and isinstance(comparison.operand, Variable)
                if branch.name is not None and is_equal:
                    assert isinstance(comparison.operand, Variable)
                    found[branch.name] = comparison.operand.name
            found |= _bound_values(branch.branches)
    return found
