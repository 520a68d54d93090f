"""The rows of a pattern on a parsed document, without loading it into columns.

For documents that are read once, in a batch: a generated matcher (`matcher_generator.py`) walks the
parsed elements and binds nodes. The handle of an element is the element of lxml. That of a text or
an attribute is a tuple: its parent's handle, the text's number in its parent or the attribute's
label, and the string.

    rows = DocumentRows(pattern)            once for a view, where it is used
    found = rows.of(content)                None: load the document

Law: the rows and counts are those of the embedded engine on the loaded document.

Not handled (None): DOCTYPE, namespaces, comments, CDATA sections, instructions, `xml:space`, calls
and input near a limit. Such a document is loaded, which also reports what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from lxml import etree

from axlog.document.ids import Id, encode
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits, encoding_of, make_parser
from axlog.document.recorder import SPACES
from axlog.document.serializer import escape_text, escape_value
from axlog.document.tree import ATTRIBUTE, ELEMENT, TEXT
from axlog.errors import AxlogError
from axlog.evaluate.collected_paths import Step, steps_of
from axlog.evaluate.gathered import Gathered
from axlog.evaluate.interpreter import Interpreter
from axlog.evaluate.joins import Bag
from axlog.match.matcher_generator import RowWriter
from axlog.match.message_values import texts, value
from axlog.match.program_rows import top_edges
from axlog.match.walk_writer import DESCENT, Node, Then
from axlog.query.compile import Gather, Program, Relation, compile_pattern
from axlog.query.pattern import Axis, Kind, Output, Pattern, PatternNode, nodes_of

Handle: TypeAlias = Any
"""An element, or a tuple (parent's handle, number or label, string)."""
Show: TypeAlias = Callable[["_Document", tuple[Any, ...]], Any]
"""From a row of the program to the value of a column."""

_XML = "{http://www.w3.org/XML/1998/namespace}"
_DECLARATION = re.compile(rb"<\?xml[^>]*\?>\s*")
_DEEPEST = 1000
"""The deepest limit that is checked by one expression of XPath."""
_BLANKS = re.compile(r">[ \t\n]+(?=<)")
_ESCAPED = re.compile(r'="[^"<]*&gt;')


class DocumentRows:
    """The rows of a pattern, as they are shown, on one document after the other."""

    def __init__(self, pattern: Pattern, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        program = compile_pattern(pattern)
        self._here, self._deep = _tops(program)
        writer = _NodeWriter(limits)
        self._run: Any = writer.compiled("match", writer.function(self._here, self._deep))
        self._root = program.root
        self._interpreter = Interpreter(program.relations)
        self._shows = [_show(program, output) for output in pattern.outputs]

    def of(self, content: bytes | str) -> list[tuple[tuple[Any, ...], int]] | None:
        """The values of each row, and its count; None if the document must be loaded."""
        root = parsed(content.encode() if isinstance(content, str) else content, self.limits)
        if root is None:
            return None
        try:
            bag = self._bag(root)
        except AxlogError:
            return None  # over a limit of messages; that of a whole document may be larger
        document = _Document()
        shows = self._shows
        return [(tuple(show(document, row) for show in shows), n) for row, n in bag.items()]

    def _bag(self, root: Element) -> Bag:
        bags = self._run(root, 0, b"")
        at = len(self._here)
        below = Gathered(
            {relation: bag for relation, bag in zip(self._here, bags[:at], strict=True) if bag},
            {relation: bag for relation, bag in zip(self._deep, bags[at:], strict=True) if bag},
        )
        return self._interpreter.rows(self._root, (), below, {})


def refusal(pattern: Pattern) -> str | None:
    """Why the rows of a pattern are found on loaded documents only; None if there is no reason."""
    program = compile_pattern(pattern)
    if program.refusal is not None:
        return program.refusal
    if any(edge.axis not in (Axis.CHILD, *DESCENT) for edge in top_edges(program.root)):
        return "a step from the document node goes neither to children nor to descendants"
    for each in program.gathers:
        if each.anchor is None or steps_of(each.node) is None:
            return "a collected path has more than plain steps"
    return None


def parsed(content: bytes, limits: Limits = DEFAULT_LIMITS) -> Element | None:
    """The root of a document whose elements can be read directly; None if it must be loaded."""
    start = _DECLARATION.match(content)
    begin = start.end() if start else 0
    if not content.startswith(b"<", begin):
        return None
    if len(content) > limits.size or limits.depth > _DEEPEST:
        return None
    if start and encoding_of(content) != "utf-8":
        return None
    # One byte is found much faster than two.
    if content.find(b"!", begin) >= 0 and content.find(b"<!", begin) >= 0:
        return None
    if content.find(b"?", begin) >= 0 and content.find(b"<?", begin) >= 0:
        return None
    if b"xmlns" in content or b"xml:space" in content:
        return None
    tags = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == ord("<"))
    longest = int(np.diff(tags, append=len(content)).max())
    if longest > min(limits.text, limits.name, 4 * limits.attributes):
        return None
    try:
        root = etree.fromstring(content, _parser())
    except etree.XMLSyntaxError:
        return None  # the loader reports the error with its place
    return None if _too_deep(limits.depth)(root) else root


@lru_cache(maxsize=1)
def _parser() -> etree.XMLParser:
    return make_parser(True)


@lru_cache(maxsize=8)
def _too_deep(depth: int) -> Any:
    """Whether a document has an element below this many elements."""
    return etree.XPath(f"boolean({'/*' * (depth + 1)})")


# The matcher -------------------------------------------------------------------------------------


def _tops(program: Program) -> tuple[tuple[Relation, ...], tuple[Relation, ...]]:
    """The relations at the root, and those anywhere."""
    edges = list(top_edges(program.root))
    here = dict.fromkeys(edge.relation for edge in edges if edge.axis is Axis.CHILD)
    deep = dict.fromkeys(edge.relation for edge in edges if edge.axis in DESCENT)
    return tuple(here), tuple(deep)


class _NodeWriter(RowWriter):
    """Writes a matcher that also binds nodes."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.constants |= {"text_nodes": _text_nodes, "all_text_nodes": _all_text_nodes}

    def _own_column(self, source: str, at: Node) -> str:
        if source != "node":
            return super()._own_column(source, at)
        return at.handle or at.name

    def _texts(
        self, axis: Axis, relation: Relation, node: PatternNode, at: Node, then: Then
    ) -> None:
        handle, text = self.fresh("h"), self.fresh("s")
        reach = "text_nodes" if axis is Axis.CHILD else "all_text_nodes"
        self.open(f"for {handle} in {reach}({at.name}):{self.describe(relation)}")
        if axis in DESCENT:
            self.descend()
        self.line(f"{text} = {handle}[2]")
        self.write_text(node, text, then, handle)
        self.close()
        self.descents -= axis in DESCENT


def _text_nodes(element: Element) -> list[Handle]:
    return [(element, number, text) for number, text in enumerate(texts(element))]


def _all_text_nodes(element: Element) -> Iterator[Handle]:
    for below in element.iter():
        yield from _text_nodes(below)


# What a row shows --------------------------------------------------------------------------------


def _show(program: Program, output: Output) -> Show:
    """How a column of the view is made from a row of the program."""
    columns, kind = program.root.columns, output.kind
    if kind is Kind.VARIABLE:
        return _plain(columns.index(f"${output.of}"))
    for each in program.gathers:
        if output.of in {node.name for node in nodes_of(each.node)}:
            return _collected(columns.index(str(each.anchor)), each, kind)
    if kind in (Kind.LABEL, Kind.TIME):
        return _plain(columns.index(f"{output.of}.{'label' if kind is Kind.LABEL else 'time'}"))
    at = columns.index(f"{output.of}.node")
    return lambda document, row: document.shown(row[at], kind)


def _plain(at: int) -> Show:
    return lambda _, row: row[at]


def _collected(at: int, each: Gather, kind: Kind) -> Show:
    plain = steps_of(each.node)
    assert plain is not None
    steps, _ = plain

    def show(document: _Document, row: tuple[Any, ...]) -> tuple[Any, ...]:
        reached = [row[at]]
        for step in steps:
            reached = [below for handle in reached for below in _children(handle, step)]
        return tuple(document.shown(handle, kind) for handle in reached)

    return show


def _children(handle: Handle, step: Step) -> Iterator[Handle]:
    """The children or attributes of a node that a plain step reaches, in document order."""
    kind, label = step
    if isinstance(handle, tuple):
        if kind == TEXT and isinstance(handle[1], str):
            yield (handle, 0, handle[2])
    elif kind == ELEMENT:
        yield from handle.iterchildren(label or "*")
    elif kind == TEXT:
        yield from _text_nodes(handle)
    elif kind == ATTRIBUTE:
        for name, text in handle.items():
            if label is None or label == f"@{name}":
                yield (handle, f"@{name}", text)


class _Document:
    """Shows nodes of one document; positions among siblings are found once for each parent."""

    def __init__(self) -> None:
        self._keys: dict[Handle, bytes] = {}
        self._entered: set[Element] = set()

    def shown(self, handle: Handle, kind: Kind) -> Any:
        is_element = not isinstance(handle, tuple)
        match kind:
            case Kind.ID:
                return Id(self._key(handle))
            case Kind.VAL:
                return value(handle) if is_element else handle[2]
            case Kind.CONT:
                return content_of(handle) if is_element else handle[2]
            case Kind.TIME:
                return 0
            case _:
                if is_element:
                    return handle.tag
                return handle[1] if isinstance(handle[1], str) else handle[2]

    def _key(self, handle: Handle) -> bytes:
        if not isinstance(handle, tuple):
            parent = handle.getparent()
        elif isinstance(handle[0], tuple):
            return self._key(handle[0]) + encode((1,))
        else:
            parent = handle[0]
        if parent is None:
            return encode((1,))
        if parent not in self._entered:
            self._enter(parent)
        return self._keys[handle]

    def _enter(self, parent: Any) -> None:
        """Find the keys of the attributes and children of an element."""
        self._entered.add(parent)
        above, keys = self._key(parent), self._keys
        for number, (name, text) in enumerate(parent.items(), start=1):
            keys[parent, f"@{name}", text] = above + encode((number,), True)
        place = number = 0
        beside = parent.text
        for child in (None, *parent):
            if child is not None:
                place += 1
                keys[child] = above + encode((place,))
                beside = child.tail
            if beside and (not len(parent) or beside.strip(SPACES)):
                place += 1
                keys[parent, number, beside] = above + encode((place,))
                number += 1


def content_of(element: Element) -> str:
    """The text of an element without namespaces and markup, as `serializer.py` writes it."""
    written: str = etree.tostring(element, encoding="unicode", with_tail=False)
    # lxml also escapes `>` in values of attributes, and carriage returns in blanks.
    if "&#13;" in written or ("&gt;" in written and _ESCAPED.search(written)):
        parts: list[str] = []
        _write(element, parts)
        return "".join(parts)
    return _BLANKS.sub(_without_blanks, written) if _BLANKS.search(written) else written


def _without_blanks(found: re.Match[str]) -> str:
    """Blanks between tags are dropped, unless they are all that an element has."""
    written, at = found.string, found.start()
    if written.startswith("</", found.end()) and written[at - 1] != "/":
        opened = written.rfind("<", 0, at)
        if written[opened + 1] != "/":
            return found[0]
    return ">"


def _write(element: Any, parts: list[str]) -> None:
    tag = element.tag
    parts.append(f"<{tag}")
    for name, text in element.items():
        parts.append(f' {name.replace(_XML, "xml:")}="{escape_value(text)}"')
    text, is_mixed = element.text, len(element) > 0
    if not is_mixed and not text:
        parts.append("/>")
        return
    parts.append(">")
    for child in (None, *element):
        if child is not None:
            _write(child, parts)
            text = child.tail
        if text and (not is_mixed or text.strip(SPACES)):
            parts.append(escape_text(text))
    parts.append(f"</{tag}>")
