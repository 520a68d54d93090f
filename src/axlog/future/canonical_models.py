"""Canonical documents of a twig, complete or with some choices left open.

These are Miklau and Suciu's canonical models: every descendant edge becomes a chain of fresh
elements, and every node without a required label gets a fresh one. Here a choice may also stay
open. An open descendant edge is a single gap node, which no test matches and only a descendant step
crosses. An open leaf is an element or a text, and only `$x` and `node()` match it. A match of a
positive pattern in a model with open choices holds for every way to make them. With all choices
open, such a match is a homomorphism. So one search serves both (`containment.py`).

A `Sketch` is the document as a tree of objects, for construction. A `Model` is the same document
with numbered nodes and bit sets, for matching. Fresh strings are valid names, so that they can be
labels, texts and values. They differ from each other and from all strings of the patterns, so two
strings are equal only where they must be.

Two adjacent texts would merge, so a comment, which no test matches, separates them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from lxml import etree

from axlog.document.parser import Element
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.future.disjuncts import ATTRIBUTE, ELEMENT, Disjunct, Twig, constant_of
from axlog.query.pattern import Axis, PartialName


class Sort(Enum):
    """The sorts of nodes in a model."""

    DOCUMENT = "document"
    ELEMENT = "element"
    TEXT = "text"
    ATTRIBUTE = "attribute"
    EITHER = "either"
    GAP = "gap"


_SORTS = {
    NodeKind.DOCUMENT: Sort.DOCUMENT,
    NodeKind.ELEMENT: Sort.ELEMENT,
    NodeKind.TEXT: Sort.TEXT,
    NodeKind.ATTRIBUTE: Sort.ATTRIBUTE,
}


@dataclass(eq=False, slots=True)
class Sketch:
    """A node of a canonical document; `value` is its string value where that is known."""

    sort: Sort
    label: str = ""
    value: str | None = None
    below: list[Sketch] = field(default_factory=list)
    twig: Twig | None = None

    def walk(self) -> Iterator[Sketch]:
        yield self
        for below in self.below:
            yield from below.walk()

    @property
    def text(self) -> str:
        """The string value that results from its texts."""
        if self.sort is Sort.TEXT:
            return self.label
        return "".join(below.text for below in self.below if below.sort is not Sort.ATTRIBUTE)


# Choices ------------------------------------------------------------------------------------------

Choices = Mapping[Twig, int]
"""For a twig on a descendant edge, the length of the chain above it; for a leaf of either kind, 0
for an element and 1 for a text."""


class Canon:
    """The canonical models of one twig."""

    def __init__(self, disjunct: Disjunct, prefix: str) -> None:
        self.disjunct = disjunct
        self._prefix = prefix
        self._strings: dict[str, str] = {}
        self._links = 0  # elements of chains in the current sketch
        self.chains: list[Twig] = []
        self.leaves: list[Twig] = []
        waiting = [disjunct.root]
        while waiting:
            twig = waiting.pop()
            self.chains += twig.descendants
            if len(twig.kinds) > 1:
                self.leaves.append(twig)
            waiting += reversed(twig.below())

    def string(self, term: str) -> str:
        """The string of a class of terms: its constant, or a fresh one."""
        found = self.disjunct.terms.find(term)
        constant = constant_of(found)
        if constant is not None:
            return constant
        if found not in self._strings:
            mark = "@" if found.startswith("?@") else ""
            self._strings[found] = f"{mark}{self._prefix}{len(self._strings) + 1}"
        return self._strings[found]

    def row(self) -> list[str | Twig]:
        """The row of the canonical match: strings, and nodes by their twigs."""
        return [
            self.string(shown) if isinstance(shown, str) else shown
            for shown in self.disjunct.outputs
        ]

    def sketch(self, chains: Choices, leaves: Choices) -> Sketch:
        """The document with these choices made and the others open."""
        self._links = 0
        return Sketch(Sort.DOCUMENT, below=[self._node(self.disjunct.root, chains, leaves)])

    def _node(self, twig: Twig, chains: Choices, leaves: Choices) -> Sketch:
        if ATTRIBUTE in twig.kinds:
            return self._attribute(twig)
        made = Sketch(self._sort(twig, leaves), self.string(twig.label), twig=twig)
        if made.sort is Sort.TEXT:
            made.value = made.label
        elif twig.value is not None:
            made.value = self.string(twig.value)
        for attribute in (*twig.attributes.values(), *twig.any_attributes):
            made.below.append(self._attribute(attribute))
        for child in twig.children:
            made.below.append(self._node(child, chains, leaves))
        for deep in twig.descendants:
            node = self._node(deep, chains, leaves)
            if deep not in chains:
                node = Sketch(Sort.GAP, below=[node])
            for _ in range(chains.get(deep, 0)):
                self._links += 1
                node = Sketch(Sort.ELEMENT, f"{self._prefix}_{self._links}", below=[node])
            made.below.append(node)
        return made

    def _sort(self, twig: Twig, leaves: Choices) -> Sort:
        if len(twig.kinds) == 1:
            return Sort.ELEMENT if ELEMENT in twig.kinds else Sort.TEXT
        if twig not in leaves:
            return Sort.EITHER
        return Sort.TEXT if leaves[twig] else Sort.ELEMENT

    def _attribute(self, twig: Twig) -> Sketch:
        value = self.string(twig.children[0].label)
        text = Sketch(Sort.TEXT, value, value, twig=twig.children[0])
        return Sketch(Sort.ATTRIBUTE, self.string(twig.label), value, [text], twig)


# Models -------------------------------------------------------------------------------------------


class Model:
    """Nodes numbered in preorder, the document node 0; sets of nodes are bits of an integer."""

    def __init__(self) -> None:
        self.sorts: list[Sort] = []
        self.labels: list[str] = []
        self.values: list[str | None] = []
        self.parents: list[int] = []
        self.ancestors: list[int] = []
        self.number: dict[Twig, int] = {}
        self._sorted: dict[Sort, int] = dict.fromkeys(Sort, 0)
        self._labelled: dict[tuple[Sort, str], int] = {}
        self._valued: dict[str, int] = {}
        self._children: list[int] = []  # these three are built on first use
        self._attributes: list[int] = []
        self._descendants: list[int] = []

    @classmethod
    def of_sketch(cls, document: Sketch) -> Model:
        model = cls()
        waiting: list[tuple[Sketch, int]] = [(document, -1)]
        while waiting:
            sketch, parent = waiting.pop()
            number = model._add(sketch.sort, sketch.label, sketch.value, parent)
            if sketch.twig is not None:
                model.number[sketch.twig] = number
            waiting += [(below, number) for below in reversed(sketch.below)]
        return model

    @classmethod
    def of_tree(cls, tree: Tree) -> Model:
        """A model of a document, without calls, comments and instructions."""
        model = cls()
        numbers: dict[int, int] = {}
        for node in tree.subtree(DOCUMENT_NODE):
            kind = tree.kind(node)
            if kind in _SORTS:
                parent = numbers.get(tree.parent(node), -1)
                value = tree.string_value(node)
                numbers[node] = model._add(_SORTS[kind], tree.label(node), value, parent)
        return model

    def _add(self, sort: Sort, label: str, value: str | None, parent: int) -> int:
        number = len(self.sorts)
        bit = 1 << number
        self.sorts.append(sort)
        self.labels.append(label)
        self.values.append(value)
        self.parents.append(parent)
        self.ancestors.append(self._above(sort, parent))
        self._sorted[sort] |= bit
        self._labelled[sort, label] = self._labelled.get((sort, label), 0) | bit
        if value is not None:
            self._valued[value] = self._valued.get(value, 0) | bit
        return number

    def _above(self, sort: Sort, parent: int) -> int:
        """The ancestors of a node; the descendant axis never enters attributes."""
        if parent < 0 or sort is Sort.ATTRIBUTE:
            return 0
        if self.sorts[parent] is Sort.ATTRIBUTE:
            return 1 << parent
        return self.ancestors[parent] | 1 << parent

    @property
    def everything(self) -> int:
        return (1 << len(self.sorts)) - 1

    def reached(self, axis: Axis, node: int) -> int:
        """The nodes that a downward axis reaches."""
        if not self._children:
            self._index()
        if axis is Axis.SELF:
            return 1 << node
        if axis is Axis.CHILD:
            return self._children[node]
        if axis is Axis.ATTRIBUTE:
            return self._attributes[node]
        below = self._descendants[node]
        return below | 1 << node if axis is Axis.DESCENDANT_OR_SELF else below

    def _index(self) -> None:
        count = len(self.sorts)
        self._children, self._attributes = [0] * count, [0] * count
        self._descendants = [0] * count
        for number in range(1, count):
            table = self._attributes if self.sorts[number] is Sort.ATTRIBUTE else self._children
            table[self.parents[number]] |= 1 << number
            for above in bits(self.ancestors[number]):
                self._descendants[above] |= 1 << number

    def of_sort(self, *sorts: Sort) -> int:
        found = 0
        for sort in sorts:
            found |= self._sorted[sort]
        return found

    def with_label(self, label: str, *sorts: Sort) -> int:
        found = 0
        for sort in sorts:
            found |= self._labelled.get((sort, label), 0)
        return found

    def with_part(self, test: PartialName, sort: Sort) -> int:
        """The nodes of a sort whose names have the parts of a test."""
        found = 0
        for (of, label), mask in self._labelled.items():
            if of is sort and test.matches(label):
                found |= mask
        return found

    def with_value(self, value: str) -> int:
        """The nodes whose string value is known to be this one."""
        return self._valued.get(value, 0)


def bits(mask: int) -> Iterator[int]:
    """The numbers in a bit set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


# Documents ----------------------------------------------------------------------------------------


def as_element(sketch: Sketch) -> Element:
    """The XML element of a sketch without open choices."""
    made = etree.Element(sketch.label)
    last: Element | None = None
    was_text = False
    for below in sketch.below:
        if below.sort is Sort.ATTRIBUTE:
            made.set(below.label[1:], below.below[0].label)
        elif below.sort is Sort.ELEMENT:
            last, was_text = as_element(below), False
            made.append(last)
        else:
            if was_text:
                last = etree.Comment("")
                made.append(last)
            if last is None:
                made.text = below.label
            else:
                last.tail = below.label
            was_text = True
    return made
