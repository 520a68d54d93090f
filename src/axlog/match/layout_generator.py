"""The generator of matchers for messages with one layout: the walks are done in advance.

The tree of such a message is known but for its values. So the code has no loops over elements: it
tests and joins values alone, which it reads from the groups of a regular expression.

Law: the bags are those of the matcher of `matcher_generator.py` on the parsed message.

Not handled: layouts for which the code would be too long (`TooLong`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from axlog.document.parser import Limits
from axlog.document.recorder import SPACES
from axlog.match.matcher_generator import RowWriter
from axlog.match.message_layout import Layout, LayoutElement, Place
from axlog.match.walk_writer import ATTRIBUTE, DESCENT, DOCUMENT, ELEMENT, TEXT, Node, Then
from axlog.query.compile import Edge, Relation
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyText,
    Axis,
    Literal,
    Name,
    PatternNode,
    Wildcard,
)

MOST_LINES = 600
"""The most lines of a matcher."""
_MOST_DEPTH = 60
"""Python indents at most a hundred blocks."""


class TooLong(Exception):
    """The code of a matcher would be too long."""


class LayoutWriter(RowWriter):
    """Writes the matcher of messages with one layout; `used` are the places that it reads."""

    deepest = _MOST_DEPTH

    def __init__(self, layout: Layout, limits: Limits) -> None:
        super().__init__(limits)
        self._root = layout.root
        self._nodes: dict[str, LayoutElement] = {"e": layout.root}
        self.used: set[Place] = set()
        self.constants["SPACES"] = SPACES

    def matcher(self, here: tuple[Relation, ...], everywhere: tuple[Relation, ...]) -> str:
        """The source of a function from the match, the time and the message to bags and numbers."""
        self.open("def match(g, t, m):")
        found = self.bags(here, everywhere)
        self.line(f"return ({''.join(f'{name}, ' for _, name in found)})")
        self.end()
        return "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        if len(self.lines) > MOST_LINES or self.depth > _MOST_DEPTH:
            raise TooLong
        super().line(text)

    def open_if_written(self, relations: list[Relation]) -> int:
        """Write nothing: values are compared faster than they are searched for."""
        return 0

    def share_children(self, edges: list[Edge], at: Node) -> bool:
        """Write nothing: the children are known."""
        return False

    # Walks ----------------------------------------------------------------------------------------

    def walk(self, axis: Axis, relation: Relation, at: Node, then: Then) -> None:
        node = relation.node
        assert node is not None
        test = node.test
        if at.kind in (TEXT, ATTRIBUTE):
            self.walk_string(axis, relation, at, then)
        elif axis is Axis.ATTRIBUTE:
            self._known_attributes(node, self._nodes[at.name], then)
        elif not isinstance(test, AnyComment | AnyInstruction):
            is_text_only = isinstance(test, Literal | AnyText)
            for element in () if is_text_only else self._reached(axis, at):
                if not isinstance(test, Name) or element.tag == test.label:
                    name = self.fresh("e")
                    self._nodes[name] = element
                    then(Node(name))
            if not isinstance(test, Name | Wildcard):
                self._known_texts(axis, node, at, then)

    def _reached(self, axis: Axis, at: Node) -> Iterator[LayoutElement]:
        """The elements that an axis reaches."""
        element = self._nodes[at.name]
        if axis is Axis.SELF or (axis is Axis.CHILD and at.kind == DOCUMENT):
            return iter((element,))
        if axis is Axis.CHILD:
            return iter(element.elements())
        every = element.walk()
        if axis is Axis.DESCENDANT and at.kind == ELEMENT:
            next(every)
        return every

    def _known_texts(self, axis: Axis, node: PatternNode, at: Node, then: Then) -> None:
        element = self._nodes[at.name]
        above: Iterable[LayoutElement] = ()
        if axis in DESCENT:
            above = element.walk()
        elif axis is Axis.CHILD and at.kind == ELEMENT:
            above = (element,)
        for each in above:
            is_mixed = bool(each.elements())
            for place in each.places():
                text = self._read(place)
                levels = self.open_if([f"{text}.strip(SPACES)"] if is_mixed else [])
                self.write_text(node, text, then)
                self.close(levels)

    def _read(self, place: Place) -> str:
        """Write the reading of a value; the variable that has it."""
        name = self.fresh("s")
        self.line(f"{name} = {self._value_at(place)}")
        return name

    def _value_at(self, place: Place) -> str:
        self.used.add(place)
        return f"g[PLACE_{place}]"

    def _known_attributes(self, node: PatternNode, element: LayoutElement, then: Then) -> None:
        for name, value in element.attributes.items():
            if not isinstance(node.test, Name) or node.test.label == name:
                text = self.fresh("s")
                given = self._value_at(value) if isinstance(value, int) else repr(value)
                self.line(f"{text} = {given}")
                then(Node(text, ATTRIBUTE, repr(f"@{name}")))

    # Values ---------------------------------------------------------------------------------------

    def value_of(self, at: Node) -> str:
        if at.kind not in (ELEMENT, DOCUMENT):
            return at.name
        parts = []
        for each in _content(self._nodes[at.name]):
            is_mixed, place = each
            value = self._value_at(place)
            parts.append(f"({value} if {value}.strip(SPACES) else '')" if is_mixed else value)
        return f"({' + '.join(parts)})" if parts else "''"

    def equals(self, at: Node, wanted: str) -> str:
        return f"{self.value_of(at)} == {wanted!r}"

    def own_value(self, at: Node) -> str:
        name = self.fresh("v")
        self.line(f"{name} = {self.value_of(at)}")
        return name

    def label_of(self, at: Node) -> str:
        return repr(self._nodes[at.name].tag) if at.kind == ELEMENT else super().label_of(at)


def _content(top: LayoutElement) -> Iterator[tuple[bool, Place]]:
    """The places of texts below an element, in document order; whether each is beside elements."""
    waiting: list[tuple[LayoutElement | Place | str, bool]] = [(top, False)]
    while waiting:
        each, is_mixed = waiting.pop()
        if isinstance(each, int):
            yield is_mixed, each
        elif isinstance(each, LayoutElement):
            has_elements = bool(each.elements())
            waiting += [(inside, has_elements) for inside in reversed(each.content)]
