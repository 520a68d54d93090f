"""What a stream can deliver, where that is known: trees whose strings are known or unknown.

A stream that a view feeds delivers the view's rows and nothing else: an element for the row, with
one element for each column. `Delivery` lists these trees for a stream (`tree.deliveries`); a column
whose value is unknown has the conditions of the view's generalised row. A sub-pattern is matched
with each tree as with a document, except that an unknown string passes a test under the condition
that it has the string tested for. Unknown strings are columns of the needs, so that two
sub-patterns at one tree agree on them.

The contents of a node (`cont`) may be any forest. The value of an element with several unknown
strings inside is any string; this is the only loss. (Paper 2, remark 4.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from axlog.errors import UndecidedError
from axlog.evaluate.value_tests import comparison
from axlog.future.arrivals import bringable, same_times
from axlog.future.generalized_rows import (
    NOTHING,
    Need,
    Rows,
    add_need,
    choose,
    meet,
    project,
)
from axlog.future.unknowns import ValueNeeds
from axlog.query.compile import Relation
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Comparison,
    Literal,
    Name,
    PartialName,
    PatternNode,
    Variable,
    Wildcard,
)

ELEMENT, TEXT, ATTRIBUTE = "element", "text", "attribute"
Shown = Callable[[Relation], tuple[str, ...]]
"""The columns that a relation passes up."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of a delivered row: its element, and the text inside it."""

    label: str
    text: str | None  # None: unknown
    is_forest: bool = False  # anything may be inside, elements too


@dataclass(frozen=True, slots=True)
class RowTree:
    """A row as a tree; `needs` are conditions on its unknown texts, by the labels of the cells."""

    label: str
    cells: tuple[Cell, ...]
    attributes: tuple[str, ...] = ()  # with unknown values
    needs: ValueNeeds = field(default_factory=ValueNeeds)

    def covers(self, other: RowTree) -> bool:
        """Whether every tree that the other stands for is one of this one's."""
        return (
            self.label == other.label
            and self.attributes == other.attributes
            and len(self.cells) == len(other.cells)
            and all(
                mine.label == its.label
                and (mine.is_forest or (mine.text in (None, its.text) and not its.is_forest))
                for mine, its in zip(self.cells, other.cells, strict=True)
            )
            and self.needs.asks_no_more_than(other.needs)
        )


@dataclass(frozen=True, slots=True)
class Delivery:
    """Everything that a stream can deliver."""

    origin: str  # the view that feeds it
    trees: tuple[RowTree, ...] = ()


class _Node(NamedTuple):
    """A node of a delivered tree. Its string is known, an unknown by name, or neither."""

    kind: str
    label: str
    text: str | None
    unknown: str | None = None
    children: tuple[_Node, ...] = ()
    attributes: tuple[_Node, ...] = ()
    is_open: bool = False

    def below(self) -> Iterator[_Node]:
        for child in self.children:
            yield child
            yield from child.below()


def delivered(
    delivery: Delivery,
    stream: str,
    relation: Relation,
    is_root: bool,
    is_whole: bool,
    shown: Shown,
) -> Rows:
    """The rows of a relation in the trees of a delivery.

    `is_root`: at the root of a tree; otherwise at any node. `is_whole`: all nodes of a tree have
    one time.
    """
    found: Rows = {}
    for number, tree in enumerate(delivery.trees):
        matcher = _Matcher(f"{stream}:{number}:{relation.name}:", tree, is_whole, shown)
        for values, needs in matcher.rows(relation, is_root).items():
            for need in needs:
                add_need(found, values, need)
    return found


class _Matcher:
    """Matches sub-patterns with one delivered tree."""

    def __init__(self, prefix: str, tree: RowTree, is_whole: bool, shown: Shown) -> None:
        self._prefix, self._tree, self._is_whole, self._shown = prefix, tree, is_whole, shown
        self._root = self._made(tree)

    def _made(self, tree: RowTree) -> _Node:
        cells = tuple(self._cell(cell) for cell in tree.cells)
        attributes = tuple(
            _Node(ATTRIBUTE, f"@{name}", None, self._prefix + f"@{name}",
                  (_Node(TEXT, "", None, self._prefix + f"@{name}"),))
            for name in tree.attributes
        )  # fmt: skip
        text = unknown = None
        if all(cell.text is not None and not cell.is_open for cell in cells):
            text = "".join(cell.text or "" for cell in cells)
        elif sum(cell.text != "" for cell in cells) == 1:  # the others are empty
            unknown = next(cell.unknown for cell in cells if cell.text != "")
        return _Node(ELEMENT, tree.label, text, unknown, cells, attributes)

    def _cell(self, cell: Cell) -> _Node:
        if cell.is_forest:
            return _Node(ELEMENT, cell.label, None, is_open=True)
        unknown = self._prefix + cell.label if cell.text is None else None
        inside = () if cell.text == "" else (_Node(TEXT, "", cell.text, unknown),)
        return _Node(ELEMENT, cell.label, cell.text, unknown, inside)

    def rows(self, relation: Relation, is_root: bool) -> Rows:
        nodes = [self._root] if is_root else [self._root, *self._root.below()]
        found: Rows = {}
        start = self._tree.needs.renamed(lambda column: self._prefix + column)
        for values, needs in self._at_any(relation, nodes, with_open=not is_root).items():
            for need in needs:
                values_needed = start.joined(need.values)
                if values_needed.is_satisfiable({}):
                    times = same_times(need.unknown_times) if self._is_whole else []
                    add_need(found, values, replace(
                        need, values=values_needed, times=need.times.union(times)
                    ))  # fmt: skip
        return project(found, list(self._shown(relation)), (), self._shown(relation), add_need)

    def _at_any(self, relation: Relation, nodes: Iterable[_Node], with_open: bool = True) -> Rows:
        """The rows of a relation at some of these nodes, or in the forests inside them."""
        found: Rows = {}
        is_open = False
        for node in nodes:
            is_open |= with_open and node.is_open
            _add(found, self._at(relation, node))
        if is_open:
            rows, layout = bringable((relation,), False, self._is_whole)
            _add(found, project(rows, layout, (), self._shown(relation), add_need))
        return found

    def _at(self, relation: Relation, node: _Node) -> Rows:
        assert relation.node is not None
        own = _own(relation, relation.node, node)
        if own is None:
            return {}
        known, need = own
        return self._joined({tuple(known.values()): [need]}, list(known), relation, node)

    def _joined(self, rows: Rows, layout: list[str], relation: Relation, node: _Node) -> Rows:
        if relation.absences:
            raise UndecidedError("AX503", "`not` in data that a stream may deliver is not covered")
        for edge in relation.edges:
            part = self._part(edge.axis, edge.relation, node)
            rows, layout = meet(rows, layout, part, self._shown(edge.relation))
            if not rows:
                return {}
        for choice in relation.choices:
            parts = [
                (self._joined({(): [NOTHING]}, [], each, node), self._shown(each))
                for each in choice.alternatives
            ]
            rows, layout = choose(rows, layout, parts, add_need)
        return project(rows, layout, relation.tests, self._shown(relation), add_need)

    def _part(self, axis: Axis, relation: Relation, node: _Node) -> Rows:
        if axis is Axis.ATTRIBUTE:
            return self._at_any(relation, node.attributes)
        if axis is Axis.SELF:
            return self._at_any(relation, [node], with_open=False)
        nodes = list(node.children)
        if axis is not Axis.CHILD:
            nodes = list(node.below()) if node.kind == ELEMENT else []
        found = self._at_any(relation, nodes, with_open=axis is not Axis.CHILD)
        if node.is_open:  # whatever is there, or below it
            rows, layout = bringable((relation,), False, self._is_whole)
            _add(found, project(rows, layout, (), self._shown(relation), add_need))
        if axis is Axis.DESCENDANT_OR_SELF:
            _add(found, self._at(relation, node))
        return found


def _add(found: Rows, more: Rows) -> None:
    for values, needs in more.items():
        for need in needs:
            add_need(found, values, need)


def _own(
    relation: Relation, test: PatternNode, node: _Node
) -> tuple[dict[str, str | int | None], Need] | None:
    """The columns that a relation reads from a node, with the conditions; None if it fails."""
    compared = _passes(test, node)
    if compared is None:
        return None
    same: set[tuple[str, str]] = set()
    known: dict[str, str | int | None] = {}
    for column, source in relation.own:
        text, unknown = node.text, node.unknown
        if source in ("node", "time"):
            known.setdefault(column, None)
            continue
        if source == "label" and node.kind != TEXT:
            text, unknown = node.label, None
        there = known.get(column)
        if text is not None and there not in (None, text):
            return None
        known[column] = text if there is None else there
        if unknown is not None:
            same.add((unknown, column))
    for unknown, column in same:
        if known[column] is not None:
            compared.add((unknown, Comparison("=", str(known[column]))))
    needs = ValueNeeds(
        frozenset(compared), same=frozenset(pair for pair in same if known[pair[1]] is None)
    )
    if not needs.is_satisfiable({}):
        return None
    names = frozenset() if test.name is None else frozenset({test.name})
    return known, replace(NOTHING, values=needs, unknown_times=names)


def _passes(test: PatternNode, node: _Node) -> set[tuple[str, Comparison]] | None:
    """The conditions under which a node passes a test; None if it never does."""
    if not _passes_label(test, node):
        return None
    compared: set[tuple[str, Comparison]] = set()
    if node.kind == TEXT and node.unknown is not None:
        compared.add((node.unknown, Comparison("!=", "")))
        if isinstance(test.test, Literal):
            compared.add((node.unknown, Comparison("=", test.test.text)))
    for each in test.comparisons:
        operand = each.operand
        if isinstance(operand, Variable):
            continue  # a column of the relation
        if node.text is not None:
            if not comparison(each.operator, operand)(node.text):
                return None
        elif node.unknown is not None:
            compared.add((node.unknown, each))
    return compared


def _passes_label(test: PatternNode, node: _Node) -> bool:
    """Whether a node can pass a test, values aside."""
    is_any = isinstance(test.test, AnyNode)
    if (test.axis is Axis.ATTRIBUTE) != (node.kind == ATTRIBUTE):
        return test.axis is Axis.SELF and is_any
    match test.test:
        case Name(label=label):
            return node.kind != TEXT and node.label.removeprefix("@") == label
        case PartialName() as partial:
            return node.kind != TEXT and partial.matches(node.label)
        case Wildcard():
            return node.kind != TEXT
        case Literal(text=text):
            return node.kind == TEXT and node.text in (None, text)
        case AnyText():
            return node.kind == TEXT
        case AnyNode() | Variable():
            return True
    return False  # comments and processing instructions
