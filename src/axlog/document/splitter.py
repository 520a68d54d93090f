"""Cutting one large file at its records, so that they can be parsed in parallel.

The file is read once as bytes, without parsing. Starts and ends of the record elements are found;
those in comments, CDATA sections and instructions are skipped, and only the outermost ones count.
Replacing each record by a placeholder gives the spine: small if records make up most of the file,
and parsed whole by the hardened parser. The spine gives the position of each record (the parent's
id, its place among its siblings, namespaces in scope, `xml:space`). Consecutive records of one
parent form pieces, which are parsed with their parent's namespaces around them.

Law: the nodes of the spine and the pieces are those of the whole file, ids included. Errors inside
a record are found when the record is parsed.

Not handled: encodings in which a byte below 128 need not be that character (UTF-16, ISO-2022-JP).
Such a file is not cut (`can_split`), nor is one with a DOCTYPE, which could affect the records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from secrets import token_hex
from xml.sax.saxutils import quoteattr

from axlog.document.ids import component_ends, encode
from axlog.document.loader import load
from axlog.document.node_table import NodeRow, rows_of
from axlog.document.parser import DEFAULT_LIMITS, Limits, parse
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.errors import MalformedError

PIECE = 4 << 20
"""The size of a piece in bytes; a single record may be larger."""

_DECLARATION = re.compile(rb"""^(?:\xef\xbb\xbf)?<\?xml\s[^>]*\?>""")
_ENCODING = re.compile(rb"""\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_SINGLE = re.compile(r"utf-?8|(us-)?ascii|iso-?8859-?\d+|latin-?\d+|(windows-|cp)125\d|koi8-[ru]")
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
Span = tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """Consecutive records of one parent: their offsets and their ids."""

    spans: tuple[Span, ...]
    keys: tuple[bytes, ...]
    parent: bytes
    opening: str  # the start tag put before them
    around: tuple[str, str]  # the tags of the elements around them, without their attributes
    labels: tuple[str, ...]  # the labels of these elements
    encoding: str

    def content(self, data: bytes, start: int = 0, *, in_place: bool = False) -> bytes:
        """The XML of the piece; `data` starts at this offset of the file.

        The records are in one element, or `in_place`: in the elements that are around them.
        """
        opening, closing = self.around if in_place else (self.opening, "</_>")
        parts = [data[a - start : b - start] for a, b in self.spans]
        head = f'<?xml version="1.0" encoding="{self.encoding}"?>{opening}'
        return head.encode() + b"".join(parts) + closing.encode()

    def key(self, key: bytes) -> bytes:
        """The id in the file of a node of the piece `in_place`, which is in one of its records."""
        ends = component_ends(key)
        record = key[ends[len(self.labels) - 1] if self.labels else 0 : ends[len(self.labels)]]
        return self.keys[self._numbers[record]] + key[ends[len(self.labels)] :]

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {encode((number + 1,)): number for number in range(len(self.keys))}

    def rows(
        self, data: bytes, start: int = 0, limits: Limits = DEFAULT_LIMITS
    ) -> Iterator[NodeRow]:
        """The nodes of the piece's records."""
        tree = load(self.content(data, start), limits=limits)
        return rows_of(tree, tree.root, [(key, self.parent) for key in self.keys])


@dataclass(frozen=True, slots=True)
class Split:
    """A split file: the spine's own nodes, and the pieces."""

    spine: tuple[NodeRow, ...]
    pieces: tuple[Piece, ...]


def can_split(data: bytes) -> bool:
    """Whether a file's bytes can be searched for its tags."""
    head = data[:1024]
    if b"<!DOCTYPE" in data:
        return False
    return bool(_SINGLE.fullmatch(encoding_name(head))) and not head.startswith(
        (b"\xff", b"\xfe", b"\0")
    )


def encoding_name(head: bytes) -> str:
    """Return the encoding that a file declares; utf-8 if it declares none."""
    declared = _DECLARATION.match(head)
    named = _ENCODING.search(declared[0]) if declared else None
    return named[1].decode().lower().replace("_", "-") if named else "utf-8"


def split(data: bytes, records: Sequence[str], limits: Limits = DEFAULT_LIMITS) -> Split:
    """Cut a file at elements, named as they are written in the file."""
    spans = record_spans(data, records)
    name = "_"
    while (
        name.encode() in data
    ):  # a name that is not in the file and that its author could not foresee
        name = f"_{token_hex(8)}"
    tree = _spine(data, spans, name, limits)
    encoding = encoding_name(data[:1024])
    placed = _places(tree, name)
    if len(placed) != len(spans):
        raise MalformedError("AX101", f"{_tags(records)} and the rest do not fit together")
    held = {node for node, _ in placed}
    keys: dict[int, bytes] = {DOCUMENT_NODE: b""}
    own: list[NodeRow] = []
    for node, row in zip(_below(tree), rows_of(tree), strict=True):
        keys[node] = row.id
        if node not in held and tree.parent(node) not in held:
            own.append(row)
    return Split(tuple(own), tuple(_pieces(tree, placed, spans, keys, encoding)))


def _tags(records: Sequence[str]) -> str:
    return ", ".join(f"<{record}>" for record in records)


def record_spans(data: bytes, records: Sequence[str]) -> list[Span]:
    """The offsets of the outermost elements with these names."""
    name = b"(?:" + b"|".join(re.escape(record.encode()) for record in records) + b")"
    start = re.compile(rb"<" + name + rb"(?=[\s/>])")
    end = re.compile(rb"</" + name + rb"\s*>")
    tag = re.compile(rb"""<[^\s/>]+(?:[^'"<>]|'[^']*'|"[^"]*")*?(/?)>""")
    hidden = list(_hidden(data))
    events = sorted(
        [(m.start(), m.start()) for m in start.finditer(data)]
        + [(m.start(), -m.end()) for m in end.finditer(data)]
    )
    spans: list[Span] = []
    depth, opened, at = 0, 0, 0
    for position, what in events:
        while at < len(hidden) and hidden[at][1] <= position:
            at += 1
        if at < len(hidden) and hidden[at][0] <= position:
            continue
        if what < 0 and position != -what:
            depth -= 1
            if depth == 0:
                spans.append((opened, -what))
            continue
        whole = tag.match(data, position)
        if whole is None:
            raise MalformedError("AX101", f"a tag at byte {position} does not end")
        if whole[1]:
            if depth == 0:
                spans.append((position, whole.end()))
            continue
        if depth == 0:
            opened = position
        depth += 1
    if depth:
        raise MalformedError("AX101", f"a record at byte {opened} does not end")
    return spans


def _hidden(data: bytes) -> Iterator[Span]:
    """Comments, CDATA sections and instructions: text in them is not a tag."""
    opens = re.compile(rb"<!--|<!\[CDATA\[|<\?")
    ends = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
    at = 0
    while found := opens.search(data, at):
        close = ends[found[0]]
        stop = data.find(close, found.end())
        if stop < 0:
            return  # the parser reports the error
        at = stop + len(close)
        yield found.start(), at


def _spine(data: bytes, spans: list[Span], name: str, limits: Limits) -> Tree:
    parts: list[bytes] = []
    at = 0
    for start, end in spans:
        parts += (data[at:start], f"<{name}/>".encode())
        at = end
    parts.append(data[at:])
    spine = b"".join(parts)
    # Names are counted against the size of the whole file, not against the shorter spine.
    larger = len(data) // max(len(spine), 1) + 1
    read = replace(limits, expansion=limits.expansion * larger)
    return load(parse(spine, read).root, limits=limits)


def _below(tree: Tree) -> Iterator[int]:
    return (node for node in tree.subtree(DOCUMENT_NODE) if node != DOCUMENT_NODE)


def _places(tree: Tree, name: str) -> list[tuple[int, int]]:
    """The placeholders' nodes with the numbers of their records, in document order."""
    placeholders = (
        node
        for node in tree.subtree(DOCUMENT_NODE)
        if tree.kind(node) is NodeKind.ELEMENT and tree.label(node).rpartition("}")[2] == name
    )
    return [(node, number) for number, node in enumerate(placeholders)]


def _pieces(
    tree: Tree,
    placed: list[tuple[int, int]],
    spans: list[Span],
    keys: dict[int, bytes],
    encoding: str,
) -> Iterator[Piece]:
    at = 0
    while at < len(placed):
        parent = tree.parent(placed[at][0])
        begin, size = at, 0
        while at < len(placed) and tree.parent(placed[at][0]) == parent and size < PIECE:
            start, end = spans[placed[at][1]]
            size += end - start
            at += 1
        chosen = placed[begin:at]
        yield Piece(
            tuple(spans[number] for _, number in chosen),
            tuple(keys[node] for node, _ in chosen),
            keys[parent],
            _opening(tree, parent),
            _around(tree, parent),
            tuple(tree.label(node) for node in _path(tree, parent)),
            encoding,
        )


def _opening(tree: Tree, parent: int) -> str:
    """A start tag with the namespaces and `xml:space` that apply to the children of a node."""
    attributes = ""
    if parent != DOCUMENT_NODE:
        for prefix, uri in tree.namespaces(parent).items():
            attributes += f" xmlns{':' + prefix if prefix else ''}={quoteattr(uri)}"
    if _preserves(tree, parent):
        attributes += ' xml:space="preserve"'
    return f"<_{attributes}>"


def _path(tree: Tree, node: int) -> list[int]:
    """The elements from the root to a node."""
    above = [at for at in tree.ancestors(node) if at != DOCUMENT_NODE]
    return [*reversed(above), node] if node != DOCUMENT_NODE else []


def _around(tree: Tree, parent: int) -> tuple[str, str]:
    """The start tags and the end tags of the elements around the children of a node."""
    starts, ends = "", ""
    for node in _path(tree, parent):
        address, _, local = tree.label(node).rpartition("}")
        scope = tree.namespaces(node)
        prefix = next((prefix for prefix, uri in scope.items() if uri == address[1:]), None)
        name = f"{prefix}:{local}" if prefix else local
        starts = f"{starts}<{name}{_opening(tree, node)[2:-1]}>"
        ends = f"</{name}>{ends}"
    return starts, ends


def _preserves(tree: Tree, node: int) -> bool:
    for at in (node, *tree.ancestors(node)):
        for attribute in tree.attributes(at):
            if tree.label(attribute) == f"@{_SPACE}":
                return tree.string_value(attribute) == "preserve"
    return False
