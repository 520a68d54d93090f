"""The generator of matchers for messages with one layout: the walks are done in advance.

The tree of such a message is known but for its values. So the code has no loops over elements: it
tests and joins values alone, which it reads from the groups of a regular expression.

Law: the bags are those of the matcher of `matcher_generator.py` on the parsed message.

Not handled: layouts for which the code would be too long (`TooLong`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from axlog.document.parser import Limits
from axlog.document.recorder import SPACES
from axlog.match.matcher_generator import Emit, RowWriter, product
from axlog.match.message_layout import Layout, LayoutElement, Place
from axlog.match.walk_writer import ATTRIBUTE, DESCENT, DOCUMENT, ELEMENT, TEXT, Node, Then
from axlog.query.compile import Column, Edge, Relation
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
_FEW_ROWS = 4
"""The most rows for which branches are nested in each other."""
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
        self._most: dict[tuple[Edge, LayoutElement], int] = {}  # see `_rows_at_most`
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

    def rows_of_loops(self, relation: Relation, at: Node, parts: list[Edge], emit: Emit) -> int:
        """Several branches with columns: one inside the other, if few rows can result."""
        is_known = at.name in self._nodes  # an element
        if not is_known or prod(self._rows_at_most(edge, at) for edge in parts) > _FEW_ROWS:
            return super().rows_of_loops(relation, at, parts, emit)
        counted = self.count_branches([each for each in relation.edges if each not in parts], at)
        own = self.own_columns(relation, at)

        def nest(left: list[Edge], known: dict[Column, str], counts: list[str]) -> None:
            if not left:
                self.use_row(relation, known, product(counts), emit)
                return

            def inside(values: dict[Column, str], count: str) -> None:
                same = [f"{known[c]} == {v}" for c, v in values.items() if c in known]
                levels = self.open_if(same)
                nest(left[1:], values | known, [*counts, count])
                self.close(levels)

            self.write_edge(left[0], at, inside)

        nest(parts, dict(own), counted)
        return len(counted)

    def _rows_at_most(self, edge: Edge, at: Node) -> int:
        """The number of times that the code of a branch uses a row; many if it is long or loops."""
        known = self._most.get((edge, self._nodes[at.name]))
        if known is not None:
            return known
        lines, depth, used, found = len(self.lines), self.depth, set(self.used), [0]

        def count(values: dict[Column, str], number: str) -> None:
            found[0] += 1

        try:
            self.write_edge(edge, at, count)
            if any(line.lstrip().startswith("for ") for line in self.lines[lines:]):
                found[0] = _FEW_ROWS + 1
        except TooLong:
            found[0] = _FEW_ROWS + 1
        del self.lines[lines:]
        self.depth, self.used = depth, used
        self._most[edge, self._nodes[at.name]] = found[0]
        return found[0]

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
