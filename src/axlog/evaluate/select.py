"""The nodes that a pattern selects, in document order: targets of statements, first rows of views.

Top-down along the path to the selected node, a set of nodes at each pattern node; what hangs beside
the path keeps or drops nodes of the set (`bulk`). Sets suffice where no variable joins and no
constraint is written: `covers` says why not, and the interpreter (`answers`) walks the document.

Law: `select(tree, p) == answers.selected(tree, p)`, and both are the reference's rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from axlog.document.tree import Tree
from axlog.errors import UnsupportedError
from axlog.evaluate.answers import selected
from axlog.evaluate.bulk import ROOT, Bulk
from axlog.evaluate.columns import NOTHING, Handles, columns_of
from axlog.evaluate.values import ValueIndex
from axlog.language.pattern import (
    AnyNode,
    Axis,
    Branch,
    Collect,
    Kind,
    Not,
    Or,
    Pattern,
    PatternNode,
    Variable,
    branches_of,
)


def select(tree: Tree, pattern: Pattern, index: ValueIndex | None = None) -> list[int]:
    """The nodes that a pattern with one node as output selects.

    >>> from axlog.document.xml import load
    >>> from axlog.language.tree_syntax import parse_pattern
    >>> tree = load("<r><a><b/></a><a/></r>")
    >>> [tree.path(n) for n in select(tree, parse_pattern("match //a#x[b] return x.id"))]
    ['/r/a[1]']
    """
    if covers(pattern) is not None:
        return selected(tree, pattern)
    with columns_of(tree) as columns:
        found = _named(Bulk(columns, index), ROOT, pattern.branches, selected_name(pattern))
        nodes: list[int] = columns.in_document_order(found).tolist()
        return nodes


@lru_cache(maxsize=1024)
def covers(pattern: Pattern) -> str | None:
    """Why sets of nodes do not suffice for a pattern, or None."""
    name = selected_name(pattern)
    if pattern.where:
        return "it has constraints"
    occurrences: Counter[str] = Counter()
    for branch in _every(pattern.branches):
        match branch:
            case PatternNode(test=test, comparisons=comparisons):
                operands = [asked.operand for asked in comparisons]
                occurrences.update(v.name for v in (test, *operands) if isinstance(v, Variable))
                if any(a.operator != "=" and isinstance(a.operand, Variable) for a in comparisons):
                    return "it compares values of variables"
            case Not(where=where) if where:
                return "it has constraints"
            case Collect(node=node) if any(n.name == name for n in _nodes((node,))):
                return "the selected node stands in collect(...)"
    if any(count > 1 for count in occurrences.values()):
        return "variables join parts of it"
    return None


@lru_cache(maxsize=1024)
def selected_name(pattern: Pattern) -> str:
    """The name of the node that a pattern returns; refused where it returns something else."""
    names = {output.of for output in pattern.outputs if output.kind is not Kind.VARIABLE}
    if len(names) != 1 or any(output.kind is Kind.VARIABLE for output in pattern.outputs):
        raise UnsupportedError(
            "AX211",
            "the pattern does not say which nodes it selects",
            advice="use an XPath such as //person[phone], or return one node: `return t.id`",
        )
    return names.pop()


def _named(bulk: Bulk, contexts: Handles, branches: tuple[Branch, ...], name: str) -> Handles:
    """The nodes with a name below the contexts at which all branches hold."""
    path: Branch | None = None
    for branch in branches:
        if path is None and _leads_to(branch, name):
            path = branch
        else:
            contexts = bulk.keeping(contexts, branch)
    if path is None or not len(contexts):
        return NOTHING
    if isinstance(path, Or):
        parts = [_named(bulk, contexts, inside, name) for inside in path.alternatives]
        return np.unique(np.concatenate(parts))
    assert isinstance(path, PatternNode)
    attribute = attribute_anywhere(path)
    if attribute is not None and attribute.name == name:
        return bulk.attributes_below(contexts, attribute)
    if path.name == name:
        return bulk.below(contexts, path)
    found = bulk.reached(contexts, path)
    for asked in path.comparisons:
        found = bulk.with_value(found, asked)
    return _named(bulk, found, path.branches, name)


@lru_cache(maxsize=4096)
def _leads_to(branch: Branch, name: str) -> bool:
    """Whether the node of this name stands in a branch, where it can be selected."""
    match branch:
        case PatternNode(name=own, branches=branches):
            return own == name or any(_leads_to(below, name) for below in branches)
        case Or(alternatives=alternatives):
            return any(_leads_to(below, name) for inside in alternatives for below in inside)
        case Not() | Collect():
            return False


def attribute_anywhere(step: PatternNode) -> PatternNode | None:
    """The attribute of `//@a`, which is written as two nodes: descendant-or-self::node()/@a."""
    match step:
        case PatternNode(
            Axis.DESCENDANT_OR_SELF,
            AnyNode(),
            None,
            (),
            (PatternNode(axis=Axis.ATTRIBUTE) as attribute,),
        ):
            return attribute
    return None


def _every(branches: tuple[Branch, ...]) -> Iterator[Branch]:
    for branch in branches:
        yield branch
        yield from _every(tuple(branches_of(branch)))


def _nodes(branches: tuple[Branch, ...]) -> Iterator[PatternNode]:
    return (branch for branch in _every(branches) if isinstance(branch, PatternNode))
