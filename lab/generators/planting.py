"""Elements drawn after a pattern: matches, whole or with calls for parts, near misses, other data.

What `active` builds its documents and messages from. Three things hold for everything drawn here,
and make pertinence exact: labels that are not the pattern's never match any of its nodes; padding
never stands below an element whose variable it could bind; a near miss lacks a leaf below its own
top.
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
    """An element in the making: a text, then children, then calls."""

    label: str
    text: str = ""
    children: list[Element] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """This element and all below, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def size(self) -> int:
        """How many elements this is; calls are not counted."""
        return sum(1 for _ in self.walk())

    def __str__(self) -> str:
        inside = self.text + "".join(map(str, self.children)) + "".join(self.calls)
        return f"<{self.label}>{inside}</{self.label}>" if inside else f"<{self.label}/>"


def leaves(node: PatternNode) -> list[PatternNode]:
    """The elements at the pattern's leaves: those that carry a variable or text, or nothing."""
    return [
        each
        for each in node.walk()
        if each.is_element and not any(child.is_element for child in each.children)
    ]


class Planter:
    """Draws elements, with labels outside the pattern as other data."""

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

        `calls` maps the identity of a pattern node to the call that stands in for it, half the time
        with some of the data that it might have brought; nodes `stocked` are drawn a few times
        more, with other values; the pattern node `without` is left out.
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
        """Where a child over this edge may hang: for // up to two other elements further down."""
        for _ in range(self._chance.below(3) if axis == "//" else 0):
            between = Element(self._chance.choose(self._noise))
            element.children.append(between)
            element = between
        return element

    def wrap(self, inside: str) -> str:
        """Text of one other element around some."""
        label = self._chance.choose(self._noise)
        return f"<{label}>{inside}</{label}>"

    def near_miss(self, node: PatternNode) -> Element | None:
        """An element that matches but for one leaf, or None where no leaf can lack."""
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
        """Fill an element drawn for `node` up to `size`; without room inside, a sibling does."""
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
        """Hang `count` elements below those in `room` and below each other."""
        for _ in range(count):
            added = Element(self._chance.choose(self._noise))
            if self._chance.happens(_TEXTS):
                added.text = self.value()
            self._chance.choose(room).children.append(added)
            room.append(added)

    def filling(self, root: PatternNode, size: int) -> Iterator[str]:
        """Subtrees of `size` elements in all to go below `root`: other data and near misses."""
        branches = [child for child in root.children if child.is_element]
        while size > 0:
            subtree = None
            if branches and self._chance.happens(_NEAR_MISSES):
                subtree = self.near_miss(self._chance.choose(branches))
            if subtree is None or subtree.size > size:
                subtree = self.other(min(size, 1 + self._chance.below(2 * _SUBTREE - 1)))
            size -= subtree.size
            yield str(subtree)
