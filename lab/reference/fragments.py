"""All small trees over an alphabet: the insertions of a call, for brute force over futures.

A fragment is a tree that a stream may insert. It is an element, because top-level text in a message
is rejected. Its size counts each element, text and attribute (with its value) as one node.

There are two enumerations. Reduced: children are a set and no two siblings are isomorphic. This is
enough for patterns that see neither order nor string values, because a duplicate sibling or another
order changes none of their rows. Ordered: every sequence of children, with duplicates. In both,
texts are never adjacent (they would be merged) and no two attributes of an element share a name.

`futures.py` adds calls to fragments. Not handled: comments, processing instructions,
whitespace-only texts.

(Reduced trees: paper 2.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, zip_longest

from lxml import etree

from axlog.document.parser import Element
from axlog.document.tree import CALL_LABEL, NodeKind


@dataclass(frozen=True)
class Fragment:
    """A small tree: an element with its attributes and children, a text, an attribute or a call.

    The label is an expanded name, the string of a text or the stream of a call. The `value` of an
    attribute is its value; for a call, it is the number of calls that it may insert.
    """

    kind: NodeKind
    label: str
    below: tuple[Fragment, ...] = ()
    value: str = ""
    at: int | None = None  # arrival time, if later than its parent's

    @cached_property
    def size(self) -> int:
        return 1 + sum(child.size for child in self.below)

    def __str__(self) -> str:
        """The papers' notation: `a[b, "text"]`."""
        if self.kind is NodeKind.TEXT:
            return f'"{self.label}"'
        if self.kind is NodeKind.CALL:
            return f"?{self.label}"
        if self.kind is NodeKind.ATTRIBUTE:
            return f'@{self.label}="{self.value}"'
        below = ", ".join(map(str, self.below))
        return f"{self.label}[{below}]" if below else self.label


def element(label: str, *below: Fragment) -> Fragment:
    return Fragment(NodeKind.ELEMENT, label, below)


def text(string: str) -> Fragment:
    return Fragment(NodeKind.TEXT, string)


def call(stream: str, calls: int) -> Fragment:
    """A call whose messages contain this many calls in turn."""
    return Fragment(NodeKind.CALL, stream, value=str(calls * (calls + 1) // 2))


def attribute(name: str, value: str) -> Fragment:
    return Fragment(NodeKind.ATTRIBUTE, name, value=value)


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The labels of fragments; attributes use the texts as values."""

    elements: tuple[str, ...]
    texts: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def fragments(alphabet: Alphabet, nodes: int, ordered: bool = False) -> tuple[Fragment, ...]:
    """Every element over the alphabet with at most this many nodes, small ones first.

    >>> [str(f) for f in fragments(Alphabet(("a",), ("x",)), 3)]
    ['a', 'a[a]', 'a["x"]', 'a[a[a]]', 'a[a["x"]]', 'a[a, "x"]']
    """
    elements: list[Fragment] = []
    leaves = [text(string) for string in alphabet.texts]
    attributes = [attribute(n, v) for n in alphabet.attributes for v in alphabet.texts]
    for size in range(1, nodes + 1):
        elements += [
            element(label, *below)
            for below in _contents(elements, leaves, attributes, size - 1, ordered)
            for label in alphabet.elements
        ]
    return tuple(elements)


def _contents(
    elements: Sequence[Fragment],
    texts: Sequence[Fragment],
    attributes: Sequence[Fragment],
    size: int,
    ordered: bool,
) -> list[tuple[Fragment, ...]]:
    """Every choice of attributes and children of one element with exactly this many nodes."""
    found: list[tuple[Fragment, ...]] = []
    for taken in range(min(size, len(attributes)) + 1):
        for chosen in combinations(attributes, taken):
            if len({each.label for each in chosen}) == taken:
                children = (
                    _sequences(elements, texts, size - taken)
                    if ordered
                    else _sets(elements, texts, size - taken)
                )
                found += [(*chosen, *content) for content in children]
    return found


def _sequences(
    elements: Sequence[Fragment], texts: Sequence[Fragment], size: int
) -> Iterator[tuple[Fragment, ...]]:
    """Every sequence of children with exactly this many nodes, without adjacent texts."""
    if size == 0:
        yield ()
    for first in (*elements, *texts):
        if first.size <= size:
            is_text = first.kind is NodeKind.TEXT
            for others in _sequences(elements, texts, size - first.size):
                if not (is_text and others and others[0].kind is NodeKind.TEXT):
                    yield (first, *others)


def _sets(
    elements: Sequence[Fragment], texts: Sequence[Fragment], size: int
) -> Iterator[tuple[Fragment, ...]]:
    """Every set of children with exactly this many nodes, in an order that separates texts."""
    for taken in range(min(size, len(texts)) + 1):
        for inside in _subsets(elements, size - taken):
            if taken <= len(inside) + 1:
                for chosen in combinations(texts, taken):
                    yield _interleaved(inside, chosen)


def _subsets(elements: Sequence[Fragment], size: int) -> Iterator[tuple[Fragment, ...]]:
    if size == 0:
        yield ()
    for at, first in enumerate(elements):
        if first.size <= size:
            for others in _subsets(elements[at + 1 :], size - first.size):
                yield (first, *others)


def _interleaved(
    elements: tuple[Fragment, ...], texts: tuple[Fragment, ...]
) -> tuple[Fragment, ...]:
    starts_with_text = len(texts) > len(elements)
    pairs = zip_longest(texts, elements) if starts_with_text else zip_longest(elements, texts)
    return tuple(each for pair in pairs for each in pair if each is not None)


@lru_cache(maxsize=4096)
def as_element(fragment: Fragment) -> Element:
    """The fragment as the element of a message. Do not modify it: it is shared."""
    if fragment.kind is NodeKind.CALL:
        return etree.Element(CALL_LABEL, stream=fragment.label, calls=fragment.value)
    made = etree.Element(fragment.label)
    last: Element | None = None
    for child in fragment.below:
        if child.kind is NodeKind.ATTRIBUTE:
            made.set(child.label, child.value)
        elif child.kind is NodeKind.COMMENT:
            last = etree.Comment(child.label)
            made.append(last)
        elif child.kind is not NodeKind.TEXT:
            last = _copied(as_element(child))
            made.append(last)
        elif last is None:
            made.text = child.label
        else:
            last.tail = child.label
    return made


def _copied(made: Element) -> Element:
    # An lxml element has one parent: appending the shared one would move it.
    return etree.fromstring(etree.tostring(made))
