"""The nodes that a pattern selects, in document order: targets of statements, first rows of views.

The evaluation goes top-down along the path to the selected node, with a set of nodes at each
pattern node. Branches beside the path keep or drop nodes of the set (`node_sets`). Sets suffice if
no variable joins and there is no constraint. `covers` gives the reason if they do not; then the
interpreter (`answers`) walks the document.

A pattern may have holes: constants `hole(name)` for strings to fill in later, so that one pattern
serves a statement for all values.

Law: `select(tree, p) == answers.selected(tree, p)`, and both equal the rows by definition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from axlog.document.tree import Tree
from axlog.errors import UnsupportedError
from axlog.evaluate.answers import selected
from axlog.evaluate.columns import NOTHING, Handles, columns_of
from axlog.evaluate.node_sets import ROOT, Bulk
from axlog.evaluate.value_index import ValueIndex
from axlog.evaluate.value_lookup import climb_of, filled
from axlog.query.pattern import (
    AnyNode,
    Axis,
    Branch,
    Collect,
    Comparison,
    Kind,
    Not,
    Or,
    Pattern,
    PatternNode,
    Variable,
    branches_of,
    nodes_of,
)


def select(
    tree: Tree,
    pattern: Pattern,
    index: ValueIndex | None = None,
    values: Mapping[str, str] | None = None,
) -> list[int]:
    """The nodes that a pattern with one node as output selects; `values` fill its holes.

    >>> from axlog.document.loader import load
    >>> from axlog.query.native import parse_pattern
    >>> tree = load("<r><a><b/></a><a/></r>")
    >>> [tree.path(n) for n in select(tree, parse_pattern("match //a#x[b] return x.id"))]
    ['/r/a[1]']
    """
    selection = selection_of(pattern)
    found = selection.by_index(tree, index, values or {})
    if found is None and values:
        pattern = replace(pattern, branches=_filled(pattern.branches, values))
        selection = Selection(pattern)
        found = selection.by_index(tree, index, {})
    if found is not None:
        return found
    if selection.refusal is not None:
        return selected(tree, pattern)
    with columns_of(tree) as columns:
        nodes = selection.nodes(Bulk(columns, index), ROOT, pattern.branches)
        in_order: list[int] = columns.in_document_order(nodes).tolist()
        return in_order


def covers(pattern: Pattern) -> str | None:
    """The reason why sets of nodes do not suffice for a pattern, or None."""
    return selection_of(pattern).refusal


_SELECTIONS: dict[int, tuple[Pattern, Selection]] = {}


def selection_of(pattern: Pattern) -> Selection:
    """The selection of a pattern; cached by identity, because hashing a pattern is slow."""
    known = _SELECTIONS.get(id(pattern))
    if known is not None:
        return known[1]
    if len(_SELECTIONS) > 1024:
        _SELECTIONS.clear()
    made = Selection(pattern)
    _SELECTIONS[id(pattern)] = (pattern, made)
    return made


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    """Branches, or parts of them, with the holes of comparisons filled."""
    if isinstance(value, tuple):
        return tuple(_filled(one, values) for one in value)
    if isinstance(value, Comparison):
        return replace(value, operand=filled(value.operand, values))
    if isinstance(value, PatternNode):
        comparisons, branches = (_filled(v, values) for v in (value.comparisons, value.branches))
        return replace(value, comparisons=comparisons, branches=branches)
    if isinstance(value, Or):
        return replace(value, alternatives=_filled(value.alternatives, values))
    if isinstance(value, Not):
        return replace(value, branches=_filled(value.branches, values))
    return replace(value, node=_filled(value.node, values))


class Selection:
    """The path of a pattern to the node that it selects."""

    def __init__(self, pattern: Pattern) -> None:
        self.name = selected_name(pattern)
        self.refusal = _refusal(pattern, self.name)
        self._leading: set[int] = set()
        for branch in pattern.branches:
            self._find(branch)
        self.climb = climb_of(pattern, self.name) if self.refusal is None else None

    def by_index(
        self, tree: Tree, index: ValueIndex | None, values: Mapping[str, str]
    ) -> list[int] | None:
        """The selected nodes by the value index; None if it does not apply."""
        if index is None or self.climb is None:
            return None
        found = self.climb.nodes(tree, index, values)
        if found is None or len(found) < 2:
            return found
        return sorted(found, key=tree.id)

    def _find(self, branch: Branch) -> bool:
        """Record the branches that contain the selected node."""
        if isinstance(branch, Not | Collect):
            return False
        inside = [self._find(below) for below in branches_of(branch)]
        own = isinstance(branch, PatternNode) and branch.name == self.name
        if own or any(inside):
            self._leading.add(id(branch))
            return True
        return False

    def nodes(self, bulk: Bulk, contexts: Handles, branches: tuple[Branch, ...]) -> Handles:
        """The selected nodes below the contexts at which all branches hold."""
        path: Branch | None = None
        for branch in branches:
            if path is None and id(branch) in self._leading:
                path = branch
            else:
                contexts = bulk.keeping(contexts, branch)
        if path is None or not len(contexts):
            return NOTHING
        if isinstance(path, Or):
            parts = [self.nodes(bulk, contexts, inside) for inside in path.alternatives]
            return np.unique(np.concatenate(parts))
        assert isinstance(path, PatternNode)
        attribute = attribute_anywhere(path)
        if attribute is not None and attribute.name == self.name:
            return bulk.attributes_below(contexts, attribute)
        if path.name == self.name:
            return bulk.below(contexts, path)
        found = bulk.reached(contexts, path)
        for asked in path.comparisons:
            found = bulk.with_value(found, asked)
        return self.nodes(bulk, found, path.branches)


def _refusal(pattern: Pattern, name: str) -> str | None:
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
            case Collect(node=node) if any(n.name == name for n in nodes_of(node)):
                return "the selected node is in collect(...)"
    if any(count > 1 for count in occurrences.values()):
        return "variables join parts of it"
    return None


def selected_name(pattern: Pattern) -> str:
    """The name of the node that a pattern returns; raises if it returns something else."""
    names = {output.of for output in pattern.outputs if output.kind is not Kind.VARIABLE}
    if len(names) != 1 or any(output.kind is Kind.VARIABLE for output in pattern.outputs):
        raise UnsupportedError(
            "AX211",
            "the pattern does not select nodes",
            advice="use an XPath such as //person[phone], or return one node: `return t.id`",
        )
    return names.pop()


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
