"""Elements drawn for a pattern: matches (complete or with calls), near misses, other data.

`active` builds its documents and messages from them. Three invariants make pertinence exact: a
label outside the pattern never matches any of its nodes; padding is never below an element whose
variable it could bind; a near miss lacks a leaf below its own top.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from axlog.samples.chance import Chance
from lab.generators.random_patterns import PatternNode

_SUBTREE = 60  # elements in one subtree of other data
_NEAR_MISSES = 0.3  # share of the subtrees between planted ones that are near misses
_STOCK = 4  # further elements for arriving values to join with
_TEXTS = 0.5  # share of padding elements with a text


@dataclass(eq=False, slots=True)
class Element:
    """A mutable element: a text, then children, then calls."""

    label: str
    text: str = ""
    children: list[Element] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """This element and all its descendants, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def size(self) -> int:
        """The number of elements; calls are not counted."""
        return sum(1 for _ in self.walk())

    def __str__(self) -> str:
        inside = self.text + "".join(map(str, self.children)) + "".join(self.calls)
        return f"<{self.label}>{inside}</{self.label}>" if inside else f"<{self.label}/>"


def leaves(node: PatternNode) -> list[PatternNode]:
    """The elements at the pattern's leaves: those with a variable, with text, or empty."""
    return [
        each
        for each in node.walk()
        if each.is_element and not any(child.is_element for child in each.children)
    ]


class Planter:
    """Draws elements; other data has labels outside the pattern."""

    def __init__(self, chance: Chance, noise: Sequence[str], values: int) -> None:
        self._chance = chance
        self._noise = noise
        self._values = values

    def value(self) -> str:
        """One of the values that variables take."""
        return f"v{self._chance.below(self._values)}"

    def match(
        self,
        node: PatternNode,
        bindings: dict[str, str] | None = None,
        calls: Mapping[int, str] | None = None,
        stocked: frozenset[int] = frozenset(),
        without: PatternNode | None = None,
    ) -> Element:
        """An element that matches the sub-pattern at `node`; unbound variables are drawn.

        `calls` maps the identity of a pattern node to the call that replaces it, half the time with
        some of the data that the call might have inserted. The nodes in `stocked` are drawn a few
        more times, with other values. The pattern node `without` is omitted.
        """
        bindings = {} if bindings is None else bindings
        element = Element(node.test)
        for child in node.children:
            if child.variable:
                element.text = bindings.setdefault(child.variable, self.value())
            elif not child.is_element:
                element.text = child.test[1:-1]
            elif calls and id(child) in calls:
                parent = self._below(element, child.axis)
                parent.calls.append(calls[id(child)])
                if self._chance.happens(0.5):
                    parent.children.append(self.match(child))
            elif child is not without:
                parent = self._below(element, child.axis)
                parent.children.append(self.match(child, bindings, calls, stocked, without))
                if id(child) in stocked:
                    parent.children += [self.match(child) for _ in range(_STOCK)]
        return element

    def _below(self, element: Element, axis: str) -> Element:
        """The parent for a child over this edge: for //, up to two other elements further down."""
        for _ in range(self._chance.below(3) if axis == "//" else 0):
            between = Element(self._chance.choose(self._noise))
            element.children.append(between)
            element = between
        return element

    def wrap(self, inside: str) -> str:
        """The text of one other element around the given ones."""
        label = self._chance.choose(self._noise)
        return f"<{label}>{inside}</{label}>"

    def near_miss(self, node: PatternNode) -> Element | None:
        """An element that matches except for one leaf, or None if no leaf can be omitted."""
        below = [leaf for leaf in leaves(node) if leaf is not node]
        if not below:
            return None
        return self.match(node, without=self._chance.choose(below))

    def other(self, size: int) -> Element:
        """A subtree of `size` elements whose labels are not the pattern's."""
        top = Element(self._chance.choose(self._noise))
        self._attach([top], size - 1)
        return top

    def pad(self, element: Element, node: PatternNode, size: int) -> list[Element]:
        """Fill an element drawn for `node` up to `size`; without room inside, add a sibling."""
        bound = {leaf.test for leaf in leaves(node) if leaf.children}
        room = [each for each in element.walk() if each.label not in bound]
        missing = size - element.size
        if missing <= 0:
            return [element]
        if not room:
            return [element, self.other(missing)]
        self._attach(room, missing)
        return [element]

    def _attach(self, room: list[Element], count: int) -> None:
        """Attach `count` elements below those in `room` and below each other."""
        for _ in range(count):
            added = Element(self._chance.choose(self._noise))
            if self._chance.happens(_TEXTS):
                added.text = self.value()
            self._chance.choose(room).children.append(added)
            room.append(added)

    def filling(self, root: PatternNode, size: int) -> Iterator[str]:
        """Children for `root` with `size` elements in total: other data and near misses."""
        branches = [child for child in root.children if child.is_element]
        while size > 0:
            subtree = None
            if branches and self._chance.happens(_NEAR_MISSES):
                subtree = self.near_miss(self._chance.choose(branches))
            if subtree is None or subtree.size > size:
                subtree = self.other(min(size, 1 + self._chance.below(2 * _SUBTREE - 1)))
            size -= subtree.size
            yield str(subtree)
