"""The generator of matchers on the bytes of small plain messages, which are not parsed.

A pattern names few of the elements of a message. So their tags are searched for in its bytes, and
the number of tags that are open between two places says whether one is the child of the other.
Expat checks that the message is well-formed (`quick_check.py`); together this takes half the time
of a parse and of walks over its tree.

Law: the bags are those of the matcher of `matcher_generator.py` on the parsed message, if the
message is well-formed; or None, and it has to be parsed.

Not handled at generation (`NotInBytes`): tests of other nodes than named elements and the texts and
values of such elements, `or`, `not`, namespaces. Not handled in a message (None): other characters
than ASCII, references, comments, instructions, attributes, tags with white space, elements inside
elements with the same name, mixed content where a text is needed, and names that occur often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from axlog.document.parser import Limits
from axlog.evaluate.joins import Bag
from axlog.match.matcher_generator import NO_SIGNS, Emit, RowWriter
from axlog.match.walk_writer import ATTRIBUTE, DESCENT, DOCUMENT, ELEMENT, TEXT, Node, Then
from axlog.query.compile import Edge, Relation
from axlog.query.pattern import AnyText, Axis, Literal, Name, PatternNode, Variable

Read: TypeAlias = Callable[..., "tuple[Bag | int, ...] | None"]
"""From a message, its time, its size and signs to a bag or a number for each relation.

None: it has to be parsed."""

LONGEST = 1024
"""The most bytes of a message: counting the tags between two places must be cheap."""
MOST_FOUND = 24
"""The most elements that are looked at after the first of their name."""
MOST_LINES = 400
_MOST_DEPTH = 60
ODD, SPACES = b"&=!?:\r", b" \t\n"
"""Bytes of messages that are not plain, and bytes that must not be in a tag."""


class NotInBytes(Exception):
    """A relation has something that cannot be matched on bytes."""


def generate_reader(
    here: tuple[Relation, ...],
    everywhere: tuple[Relation, ...],
    limits: Limits,
    signs: Mapping[Relation, str] = NO_SIGNS,
) -> tuple[Read, str] | None:
    """The matcher of relations at the root of messages and anywhere in them, with its source.

    None: some relation cannot be matched on bytes. `signs` are names of further parameters: whether
    a message may have rows of a relation of `everywhere`.
    """
    writer = ByteWriter(limits)
    try:
        source = writer.reader(here, everywhere, signs)
        return cast("Read", writer.compiled("read", source)), source
    except (NotInBytes, SyntaxError):  # Python nests at most twenty loops
        return None


def as_bags(found: tuple[Bag | int, ...]) -> tuple[Bag, ...]:
    """The bags of a message, from what a reader found."""
    return tuple([({(): e} if e else {}) if type(e) is int else e for e in found])  # type: ignore[misc]


class ByteWriter(RowWriter):
    """Writes a function that matches a message `m` of `size` bytes with the time `t`.

    The variable of an element has the place of its tag.
    """

    deepest = _MOST_DEPTH

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._labels: dict[str, bytes] = {}
        self._ends: dict[str, str] = {"0": "size"}  # the places of the closing tags

    def reader(
        self,
        here: tuple[Relation, ...],
        everywhere: tuple[Relation, ...],
        signs: Mapping[Relation, str] = NO_SIGNS,
    ) -> str:
        """The source of the function; `signs` are further parameters, see `bags`."""
        self.open(f"def read({', '.join(['m', 't', 'size', *dict.fromkeys(signs.values())])}):")
        self.open(f"if not m.isascii() or m[-1] != {ord('>')} or m[-2] == {ord('/')}:")
        self.line("return None")
        self.close()
        self.open(f"if len(m.translate(None, {ODD + SPACES!r})) < size and not is_plain(m):")
        self.line("return None")
        self.close()
        self.line(f"left = {MOST_FOUND}")
        found = self.bags(here, everywhere, signs)
        self.line(f"return ({''.join(f'{name}, ' for _, name in found)})")
        self.end()
        self.constants["is_plain"] = is_plain
        return "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        if len(self.lines) > MOST_LINES or self.depth > _MOST_DEPTH:
            raise NotInBytes
        super().line(text)

    def open_if_written(self, relations: list[Relation]) -> int:
        """Write nothing: the search for tags is as fast."""
        return 0

    def share_children(self, edges: list[Edge], at: Node) -> bool:
        """Write nothing: children are not visited."""
        return False

    def counts(self, edge: Edge) -> bool:
        return False

    # Walks ----------------------------------------------------------------------------------------

    def write_edge(self, edge: Edge, at: Node, emit: Emit) -> None:
        """The rows of an edge; elements at any depth that need no content are only counted."""
        relation = edge.relation
        is_below = edge.axis is Axis.DESCENDANT and at.kind == ELEMENT
        is_anywhere = edge.axis in DESCENT and at.kind == DOCUMENT
        if _is_bare(relation) and (is_below or is_anywhere):
            number, tag = self.fresh("n"), b"<" + self._label(relation)
            where = f"{self._place(at)}{'' if at.kind == DOCUMENT else ' + 1'}, {self._end(at)}"
            opened, empty = tag + b">", tag + b"/>"
            self.line(f"{number} = m.count({opened!r}, {where}) + m.count({empty!r}, {where})")
            self.open(f"if {number}:{self.describe(relation)}")
            emit({}, number)
            self.close()
            return
        super().write_edge(edge, at, emit)

    def walk(self, axis: Axis, relation: Relation, at: Node, then: Then) -> None:
        node = relation.node
        if node is None or relation.choices or relation.absences:
            raise NotInBytes
        if at.kind in (TEXT, ATTRIBUTE):
            self.walk_string(axis, relation, at, then)
        elif axis is Axis.ATTRIBUTE:
            return  # the message has no attributes
        elif isinstance(node.test, Name):
            self._tags(axis, relation, at, then)
        elif axis is Axis.CHILD and isinstance(node.test, Literal | AnyText | Variable):
            self._text(relation, node, at, then)
        else:
            raise NotInBytes

    def _tags(self, axis: Axis, relation: Relation, at: Node, then: Then) -> None:
        """Elements with a name."""
        label = self._label(relation)
        if at.kind == DOCUMENT and axis is Axis.CHILD:
            self.open(f"if m.startswith({b'<' + label + b'>'!r}):{self.describe(relation)}")
            self._labels["0"] = label
            then(Node("0"))
            self.close()
            return
        if axis is not Axis.CHILD and axis not in DESCENT:
            raise NotInBytes
        if axis is Axis.DESCENDANT_OR_SELF and at.kind == ELEMENT:
            raise NotInBytes
        place, end = self.fresh("p"), self.fresh("q")
        above, last = self._place(at), self._end(at)
        is_leaf = not relation.edges and not _needs_value(relation)
        tag = b"<" + label + (b"" if is_leaf else b">")
        start = above if at.kind == DOCUMENT else f"{above} + 1"
        if not is_leaf and not relation.edges:
            self.open(f"if m.find({b'<' + label + b'/>'!r}, {start}, {last}) >= 0:")
            self.line("return None  # its value is empty")
            self.close()
        self.line(f"{place} = m.find({tag!r}, {start}, {last})")
        self.open(f"while {place} >= 0:{self.describe(relation)}")
        levels = 0
        if is_leaf:
            self._labels[place] = label
            levels += self.open_if([f"m[{place} + {len(tag)}] in b'/>'"])
        if axis is Axis.CHILD:
            levels += self._open_if_child(above, place)
        else:
            self.descend()
        if not is_leaf:
            self._labels[place], self._ends[place] = label, end
        if _has_names(relation):
            self.line(f"{end} = m.find({b'</' + label + b'>'!r}, {place})")
            self.open(f"if m.find({tag!r}, {place} + 1, {end}) >= 0:")
            self.line("return None  # inside an element with the same name")
            self.close()
        then(Node(place))
        self.close(levels)
        self.line(f"{place} = m.find({tag!r}, {place} + 1, {last})")
        self.open(f"if {place} >= 0:")
        self.line("left -= 1")
        self.open("if not left:")
        self.line("return None")
        self.close(3)
        self.descents -= axis in DESCENT

    def _open_if_child(self, above: str, place: str) -> int:
        """Start a block for a tag that is a child of the element of another tag."""
        inside = self.fresh("is")
        self.line(
            f"{inside} = {place} == {above} + {len(self._labels[above]) + 2}  # the first one"
        )
        self.open(f"if not {inside}:")
        every, ends, closing, empty = (
            f"m.count({each!r}, {above}, {place})" for each in (b"<", b">", b"</", b"/>")
        )
        self.line(f"tags = {every}")
        self.line(f"empty = {empty}")
        self.open(f"if empty and tags != {ends}:")
        self.line("return None  # '>' in a text, which may look like the end of a tag")
        self.close()
        self.line(f"{inside} = tags - 2 * {closing} - empty == 1")
        self.close()
        return self.open_if([inside])

    def _text(self, relation: Relation, node: PatternNode, at: Node, then: Then) -> None:
        """The text of an element that has no elements."""
        if at.kind != ELEMENT:
            raise NotInBytes
        text = self._value(at)
        self.write_text(node, text, then)

    def _value(self, at: Node) -> str:
        """Write the reading of the text in an element; the variable that has it."""
        start, text, end = self.fresh("p"), self.fresh("s"), self.fresh("q")
        self.line(f"{start} = {at.name} + {len(self._labels[at.name]) + 2}")
        self.line(f"{end} = m.find(b'<', {start})")
        self.open(f"if m[{end} + 1] != {ord('/')}:")
        self.line("return None  # elements beside texts")
        self.close()
        self.line(f"{text} = m[{start}:{end}].decode()")
        return text

    def _label(self, relation: Relation) -> bytes:
        test = relation.node.test if relation.node is not None else None
        if not isinstance(test, Name) or test.label.startswith("{") or not test.label.isascii():
            raise NotInBytes
        return test.label.encode()

    def _place(self, at: Node) -> str:
        return "0" if at.kind == DOCUMENT else at.name

    def _end(self, at: Node) -> str:
        return "size" if at.kind == DOCUMENT else self._ends[at.name]

    # Values ---------------------------------------------------------------------------------------

    def value_of(self, at: Node) -> str:
        return self._value(at) if at.kind == ELEMENT else at.name

    def equals(self, at: Node, wanted: str) -> str:
        return f"{self.value_of(at)} == {wanted!r}"

    def own_value(self, at: Node) -> str:
        return self._value(at)

    def label_of(self, at: Node) -> str:
        return repr(self._labels[at.name].decode()) if at.kind == ELEMENT else at.name


def _needs_value(relation: Relation) -> bool:
    """Whether a relation shows or compares the value of its element."""
    has_value = any(source == "value" for _, source in relation.own)
    return has_value or (relation.node is not None and bool(relation.node.comparisons))


def _has_names(relation: Relation) -> bool:
    """Whether a relation looks for elements inside its element."""
    nodes = [edge.relation.node for edge in relation.edges]
    return any(node is not None and isinstance(node.test, Name) for node in nodes)


def _is_bare(relation: Relation) -> bool:
    """Whether a relation only tests the name of an element."""
    test = relation.node.test if relation.node is not None else None
    has_parts = relation.edges or relation.own or relation.choices or relation.absences
    return isinstance(test, Name) and not (has_parts or relation.tests or _needs_value(relation))


def is_plain(message: bytes) -> bool:
    """Whether a message has no odd bytes and no white space in a tag."""
    if len(message.translate(None, ODD)) < len(message):
        return False
    if len(message.translate(None, SPACES)) == len(message):
        return True
    ends = (bytes((space,)) + end for space in SPACES for end in (b">", b"/>"))
    return all(message.find(each) < 0 for each in ends)
