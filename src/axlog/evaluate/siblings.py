"""The siblings of a call that match a pattern, each as a document: what a stream's delete removes.

A pattern that names a constant value or text (`match /order[oid/"17"]`) is looked up in the value
index. The cost is then that of the nodes that have the value, not that of the siblings. For other
patterns every sibling whose name fits is matched. Patterns that differ in such strings only are
parsed and compiled once: the strings are parameters of a general pattern (`query/generalize.py`).

Law: the result is that of matching every sibling with the pattern itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from axlog.document.tree import CALL, ELEMENT, Tree
from axlog.document.value_index import ValueIndex
from axlog.evaluate.answers import answers
from axlog.query.compile import Program, compile_pattern
from axlog.query.generalize import General, generalize
from axlog.query.pattern import (
    AnyText,
    Axis,
    Constant,
    Literal,
    Name,
    PatternNode,
    Variable,
)
from axlog.query.query import Query
from axlog.query.query_templates import QueryTemplates, skeleton_of

_DOWN = (Axis.CHILD, Axis.ATTRIBUTE, Axis.DESCENDANT)
MOST_REFUSED = 256
"""The most texts without a template that are remembered."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """An element or attribute whose value a pattern names: a constant, or one of its parameters."""

    label: str
    value: str | Variable
    levels: int | None
    """Its depth below the sibling; None: any depth."""
    is_text: bool
    """Whether the value is that of a text inside, not of the whole element."""


class SiblingPattern:
    """A compiled pattern, with constants that are given when it is matched."""

    def __init__(self, general: General) -> None:
        self._pattern = general.pattern
        tops = [
            branch
            for branch in general.pattern.branches
            if isinstance(branch, PatternNode) and branch.axis in (Axis.CHILD, Axis.DESCENDANT)
        ]
        self._labels = [
            top.test.label for top in tops if isinstance(top.test, Name) and top.axis is Axis.CHILD
        ]
        self._numbers = {each.variable: n for n, each in enumerate(general.parameters)}
        self.anchors = [anchor for top in tops for anchor in self._anchors_of(top, _below(top, -1))]
        self._parameters = [f"${each.variable}" for each in general.parameters]
        columns = self.program.root.columns if general.parameters else ()
        self._columns = self.places_in(columns)
        self._is_by_value = self._is_by_one_value()

    @property
    def program(self) -> Program:
        """The compiled pattern."""
        return compile_pattern(self._pattern)

    def places_in(self, columns: Sequence[str]) -> list[int]:
        """The places of the parameters among these columns."""
        return [columns.index(each) for each in self._parameters]

    def value_of(self, anchor: Anchor, constants: tuple[Constant, ...]) -> str:
        """The value that an anchor must have."""
        value = anchor.value
        return str(constants[self._numbers[value.name]] if isinstance(value, Variable) else value)

    def matching(
        self, tree: Tree, index: ValueIndex, call: int, constants: tuple[Constant, ...] = ()
    ) -> list[int]:
        """The siblings of a call that match, without calls, in document order."""
        parent = tree.parent_column[call]
        found: Iterable[int] | None = self.by_value(tree, index, parent, constants)
        if found is None:
            kinds = tree.kind_column
            found = (node for node in tree.children(parent) if kinds[node] != CALL)
        is_known = self._is_by_value and isinstance(found, list) and constants != ("",)
        return [
            node
            for node in found
            if all(
                tree.kind_column[node] == ELEMENT and tree.label(node) == name
                for name in self._labels
            )
            and (is_known or self._holds(tree, node, constants))
        ]

    def _is_by_one_value(self) -> bool:
        """Whether the siblings that match are those with the name of the pattern that have one
        value: that of a child or attribute, or of a text in a child. An empty text is none.
        """
        branches, numbers = self._pattern.branches, self._numbers
        if len(branches) != 1 or len(self._labels) != 1 or len(self.anchors) != 1 or not numbers:
            return False
        (top,), (anchor,) = branches, self.anchors
        if self._pattern.where or not isinstance(top, PatternNode) or anchor.levels != 1:
            return False
        inside = top
        for _ in range(2 if anchor.is_text else 1):
            below = inside.branches[0] if len(inside.branches) == 1 else None
            if inside.comparisons or not isinstance(below, PatternNode):
                return False
            inside = below
        return len(inside.comparisons) == 1 and not inside.branches

    def _holds(self, tree: Tree, node: int, constants: tuple[Constant, ...]) -> bool:
        rows = answers(tree, self._pattern, node)
        columns = self._columns
        return any(tuple(row[column] for column in columns) == constants for row in rows)

    def by_value(
        self, tree: Tree, index: ValueIndex, parent: int, constants: tuple[Constant, ...]
    ) -> list[int] | None:
        """The children of a node that have a value which the pattern names; None: it names none."""
        above = tree.parent_column
        best: Collection[int] | None = None
        levels: int | None = 0
        for anchor in self.anchors:
            find = index.find_text if anchor.is_text else index.find
            nodes = find(anchor.label, self.value_of(anchor, constants))
            if nodes is not None and (best is None or len(nodes) < len(best)):
                best, levels = nodes, anchor.levels
        if not best:
            return None if best is None else []
        found = set(best)
        for _ in range(levels or 0):
            found = {above[node] for node in found}
        if levels is None:
            found = {each for node in found for each in (node, *tree.ancestors(node))}
        siblings = [node for node in found if above[node] == parent]
        return sorted(siblings, key=tree.id) if len(siblings) > 1 else siblings

    def _anchors_of(self, step: PatternNode, levels: int | None) -> Iterator[Anchor]:
        """The values that a pattern node names: its own, those of its attributes and children."""
        if not isinstance(step.test, Name):
            return
        is_attribute = step.axis is Axis.ATTRIBUTE
        label = f"@{step.test.label}" if is_attribute else step.test.label
        for value in self._equal(step):
            yield Anchor(label, value, levels, False)
        for below in step.branches:
            if not isinstance(below, PatternNode) or below.axis not in _DOWN:
                continue
            if isinstance(below.test, Literal) and below.axis is Axis.CHILD and not is_attribute:
                yield Anchor(label, below.test.text, levels, True)
            if isinstance(below.test, AnyText) and below.axis is Axis.CHILD and not is_attribute:
                for value in self._equal(below):
                    yield Anchor(label, value, levels, True)
            yield from self._anchors_of(below, _below(below, levels))

    def _equal(self, step: PatternNode) -> Iterator[str | Variable]:
        """The constants and parameters that the value of a node equals."""
        for asked in step.comparisons:
            operand = asked.operand
            is_parameter = isinstance(operand, Variable) and operand.name in self._numbers
            if asked.operator == "=" and (isinstance(operand, str) or is_parameter):
                assert isinstance(operand, str | Variable)
                yield operand


def _below(step: PatternNode, levels: int | None) -> int | None:
    """The depth of a step, from that of the step above it."""
    return None if levels is None or step.axis is Axis.DESCENDANT else levels + 1


class SiblingPatterns:
    """The patterns of deletes, compiled once for texts that differ in strings only."""

    def __init__(self, parse: Callable[[str], Query]) -> None:
        self._parse = parse
        self._templates = QueryTemplates()
        self._refused: set[str] = set()  # texts without their strings, that have no template

    def matching(self, tree: Tree, text: str, index: ValueIndex, call: int) -> list[int]:
        """The siblings of a call that match the pattern of a text, in document order."""
        pattern, constants = self.find(text)
        return pattern.matching(tree, index, call, constants)

    def find(self, text: str) -> tuple[SiblingPattern, tuple[Constant, ...]]:
        """The compiled pattern of a text, and its constants."""
        found = self._templates.find(text)
        return self._compiled(text) if found is None else found

    def _compiled(self, text: str) -> tuple[SiblingPattern, tuple[Constant, ...]]:
        query = self._parse(text)
        pattern = query.only_pattern
        skeleton = skeleton_of(text)
        if query.selects is None and skeleton not in self._refused:
            general = generalize(query.row_key.pattern)
            if general.parameters and all(each.is_text for each in general.parameters):
                made = SiblingPattern(general)
                self._templates.learn(text, general, self._parse, made)
                if self._templates.find(text) is not None:
                    return made, general.constants
            if len(self._refused) >= MOST_REFUSED:
                self._refused.clear()
            self._refused.add(skeleton)
        return SiblingPattern(General(pattern, (), ())), ()
