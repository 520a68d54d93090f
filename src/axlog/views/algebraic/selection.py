"""The selections of a view, evaluated on many nodes: tests, comparisons, `or` and `not`.

Also the values other than nodes that identify rows: labels, times and strings. Strings become
codes, numbered in the order of their first use, so that all keys are integers.

Law: `members` equals the nodes that `definition` accepts for one pattern node, its `or` and `not`
included, without the branches that are pattern nodes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from axlog.document.tree import Tree
from axlog.evaluate.columns import Columns, Handles, Mask
from axlog.evaluate.node_sets import ROOT as DOCUMENT
from axlog.evaluate.node_sets import NodeSets, passing
from axlog.query.pattern import Kind, Name, Output, Variable
from axlog.views.algebraic.shape import ROOT, Shape, ShapeNode
from axlog.views.algebraic.tables import Column, Integers


class Codes:
    """Strings as numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._strings: list[str] = []

    def number(self, string: str) -> int:
        known = self._numbers.get(string)
        if known is None:
            known = self._numbers[string] = len(self._strings)
            self._strings.append(string)
        return known

    def string(self, number: int) -> str:
        return self._strings[number]


class Selections:
    """Answers for one view over one tree."""

    def __init__(self, tree: Tree, shape: Shape, codes: Codes) -> None:
        self.tree = tree
        self.shape = shape
        self.codes = codes

    def members(self, columns: Columns, node: ShapeNode, nodes: Handles) -> Handles:
        """The nodes that a pattern node's relation holds."""
        return self.selected(columns, node, nodes[self.is_tested(columns, node, nodes)])

    def is_tested(self, columns: Columns, node: ShapeNode, nodes: Handles) -> Mask:
        if node.number == ROOT:
            return np.equal(nodes, ROOT)
        return passing(columns, nodes, node.step)

    def selected(self, columns: Columns, node: ShapeNode, nodes: Handles) -> Handles:
        """Of nodes that pass the test, those that satisfy the comparisons and conditions."""
        if not node.is_selective or not len(nodes):
            return nodes
        sets = NodeSets(columns)
        kept = nodes
        for condition in node.conditions:
            kept = sets.where(kept, condition)
        for comparison in node.constants:
            kept = sets.with_value(kept, comparison)
        return columns.common(nodes, kept)

    def size(self) -> int:
        """The number of nodes in the relations of the view."""
        labels, others = _labels(self.shape)
        tree = self.tree
        return others * len(tree) + sum(len(tree.partition(label)) for label in labels)

    def missing_label(self, removed: frozenset[str]) -> str | None:
        """A label that every row needs and that no node has, after nodes of some were removed."""
        tree = self.tree
        for label in _labels(self.shape)[0]:
            if not tree.nodes_by_label.get(label):
                return label
            if label in removed and not tree.partition(label):
                return label
        return None

    def holds(self, columns: Columns) -> bool:
        """Whether the conditions at the document node hold: without them there are no rows."""
        return len(self.selected(columns, self.shape.nodes[ROOT], DOCUMENT)) > 0

    def values(
        self, node: ShapeNode, nodes: Handles, past: Mapping[tuple[int, int], int] | None = None
    ) -> dict[Column, Integers]:
        """The values that outputs show of nodes, other than the nodes themselves.

        `past` maps an output and a node to its value before the update, and takes precedence.
        """
        found: dict[Column, Integers] = {}
        for number in node.values:
            output = self.shape.pattern.outputs[number]
            shown = self._shown(node, output, nodes)
            for at, handle in enumerate(nodes.tolist()) if past else ():
                shown[at] = (past or {}).get((number, handle), int(shown[at]))
            found[Column("value", number)] = shown
        return found

    def _shown(self, node: ShapeNode, output: Output, nodes: Handles) -> Integers:
        tree = self.tree
        if output.kind is Kind.TIME:
            times = np.frombuffer(tree.time_column, dtype=np.int64)
            shown: Integers = times[nodes]
            return shown
        is_label = output.kind is Kind.LABEL or node.step.test == Variable(output.of)
        read = tree.label if is_label else tree.string_value
        number = self.codes.number
        return np.array([number(read(each)) for each in nodes.tolist()], dtype=np.int64)

    def shown(self, output: Output, value: int) -> str | int:
        """The shown form of a value in the key of a row."""
        return value if output.kind is Kind.TIME else self.codes.string(value)


@lru_cache(maxsize=512)
def _labels(shape: Shape) -> tuple[tuple[str, ...], int]:
    """The labels of the relations of a view, and the number that accept any label."""
    nodes = shape.nodes[1:]
    named = tuple(n.wanted for n in nodes if isinstance(n.step.test, Name))
    return named, len(nodes) - len(named)
