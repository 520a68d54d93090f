"""What an aggregate ranges over: the distinct tuples of nodes that a pattern binds.

A pattern node binds if it has a name, if its test is a variable, or if its value is compared by
`= $x`. The node at which a path of the query ends binds too (the parser gives it a name). An
aggregate counts every distinct tuple of such nodes once (docs/meaning.md). The derivation counts of
a pattern give that number where

- a branch that binds nothing and mentions no variable counts once: it becomes an `or` with one
  alternative;
- every other node is determined by the nodes that bind: it is the parent of a determined node, or
  the root element.

Where this does not hold (`//a//b/$x`: one text below several `a`), the pattern gets an id output
for every node that binds, and each of its rows counts once (`Distinct`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from axlog.query.pattern import (
    Axis,
    Branch,
    Collect,
    Kind,
    Not,
    Or,
    Output,
    Pattern,
    PatternNode,
    Variable,
    nodes_of,
)
from axlog.query.steps import Distinct, Step

_ONE_PARENT = (Axis.CHILD, Axis.ATTRIBUTE, Axis.SELF)
ANCHOR = "anchor~"
"""How the names of nodes begin that only tell at which node a `not` stands; they do not bind."""
START = "from~"
"""How the names of nodes begin at which a collected path starts; they do not bind."""


def counted_pattern(pattern: Pattern) -> tuple[Pattern, tuple[Step, ...]]:
    """The pattern whose counts an aggregate ranges over, and the step before the others."""
    branches = _tested_once(pattern.branches)
    counted = replace(pattern, branches=branches)
    if all(_is_determined(branch, is_root=True) for branch in branches):
        return counted, ()
    return counted_once(counted), (Distinct(),)


def counted_once(pattern: Pattern) -> Pattern:
    """The pattern with an output for every node and every variable of an `or` that it binds."""
    taken = {node.name for node in pattern.nodes()}
    fresh = (name for number in count(1) if (name := f"node~{number}") not in taken)

    def named(branch: Branch) -> Branch:
        if not isinstance(branch, PatternNode):
            return branch
        name = next(fresh) if binds(branch) and branch.name is None else branch.name
        return replace(branch, name=name, branches=tuple(map(named, branch.branches)))

    whole = replace(pattern, branches=tuple(map(named, pattern.branches)))
    outputs = list(whole.outputs)
    known = {(output.kind, output.of) for output in outputs}
    for kind, of in _identifying(whole.branches):
        if (kind, of) not in known:
            known.add((kind, of))
            outputs.append(Output(kind, of))
    return replace(whole, outputs=tuple(outputs))


def _identifying(branches: tuple[Branch, ...]) -> list[tuple[Kind, str]]:
    """The outputs that identify a tuple: the ids of nodes, and what every `or` binds."""
    found: list[tuple[Kind, str]] = []
    for branch in branches:
        if isinstance(branch, PatternNode):
            if _is_bound(branch.name):
                found.append((Kind.ID, str(branch.name)))
            found += _identifying(branch.branches)
        elif isinstance(branch, Or):
            each = [_bound(alternative) for alternative in branch.alternatives]
            found += [part for part in each[0] if all(part in other for other in each)]
    return found


def _bound(branches: tuple[Branch, ...]) -> list[tuple[Kind, str]]:
    """The variables and names that the branches of an alternative bind."""
    found: list[tuple[Kind, str]] = []
    for branch in branches:
        if isinstance(branch, PatternNode):
            if _is_bound(branch.name):
                found.append((Kind.ID, str(branch.name)))
            found += [(Kind.VARIABLE, name) for name in variables_bound(branch)]
            found += _bound(branch.branches)
        elif isinstance(branch, Or):
            each = [_bound(alternative) for alternative in branch.alternatives]
            found += [part for part in each[0] if all(part in other for other in each)]
    return found


def variables_bound(node: PatternNode) -> list[str]:
    """The variables that a node binds itself."""
    found = [node.test.name] if isinstance(node.test, Variable) else []
    return found + [
        comparison.operand.name
        for comparison in node.comparisons
        if comparison.operator == "=" and isinstance(comparison.operand, Variable)
    ]


def binds(node: PatternNode) -> bool:
    """Whether a node binds: whether an aggregate tells its matches apart."""
    return _is_bound(node.name) or bool(variables_bound(node))


def _is_bound(name: str | None) -> bool:
    return name is not None and not name.startswith((ANCHOR, START))


def _mentions(node: PatternNode) -> bool:
    """Whether a node binds, or is compared with a variable that others bind."""
    compared = (comparison.operand for comparison in node.comparisons)
    return binds(node) or any(isinstance(operand, Variable) for operand in compared)


def _tested_once(branches: tuple[Branch, ...]) -> tuple[Branch, ...]:
    """Branches that neither bind nor mention a variable as ors of one alternative."""
    found: list[Branch] = []
    for branch in branches:
        if not isinstance(branch, PatternNode):
            found.append(branch)
        elif not any(_mentions(node) for node in nodes_of(branch)):
            found.append(Or(((branch,),)))
        else:
            found.append(replace(branch, branches=_tested_once(branch.branches)))
    return tuple(found)


def _is_determined(branch: Branch, *, is_root: bool = False) -> bool:
    """Whether the nodes of a branch that do not bind follow from those that do.

    A node follows from a node that binds if it is its parent, or the parent of one that follows.
    The root element is the only one of its kind.
    """
    if isinstance(branch, Or | Not | Collect):
        return True
    below = [_is_determined(each) for each in branch.branches]
    if not all(below):
        return False
    if binds(branch) or (is_root and branch.axis is Axis.CHILD):
        return True
    return any(
        isinstance(each, PatternNode) and each.axis in _ONE_PARENT for each in branch.branches
    )
