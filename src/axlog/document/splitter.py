"""Cutting one large file at its records, so that they can be parsed in parallel.

The file is read once as bytes, without parsing. Starts and ends of the record elements are found;
those in comments, CDATA sections and instructions are skipped, and only the outermost ones count.
Replacing each run of records by a placeholder gives the spine: small if records make up most of the
file, and parsed whole by the hardened parser. In a run, nothing is between two records but white
space that documents drop. The spine gives the position of each run (the parent's id, its place
among its siblings, namespaces in scope, `xml:space`). Runs are cut into pieces, which are parsed
with their parent's namespaces around them, or with all elements around them (`in_place`).

Law: the nodes of the spine and the pieces are those of the whole file, ids included. Errors inside
a record are found when the record is parsed.

Not handled: encodings in which a byte below 128 need not be that character (UTF-16, ISO-2022-JP).
Such a file is not cut (`can_split`), nor is one with a DOCTYPE, which could affect the records.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from secrets import token_hex
from xml.sax.saxutils import quoteattr

from axlog.document.ids import component_ends, encode
from axlog.document.loader import load
from axlog.document.node_table import NodeRow, rows_of
from axlog.document.parser import DEFAULT_LIMITS, Limits, parse
from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, NodeKind, Tree
from axlog.errors import MalformedError

PIECE = 4 << 20
"""The size of a piece in bytes; a single record may be larger."""

_DECLARATION = re.compile(rb"""^(?:\xef\xbb\xbf)?<\?xml\s[^>]*\?>""")
_ENCODING = re.compile(rb"""\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_SINGLE = re.compile(r"utf-?8|(us-)?ascii|iso-?8859-?\d+|latin-?\d+|(windows-|cp)125\d|koi8-[ru]")
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_TAG = re.compile(rb"""<[^\s>]+(?:[^'"<>]|'[^']*'|"[^"]*")*?>""")
_SLASH, _CLOSE = ord("/"), ord(">")
Span = tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """Consecutive records of one parent: the bytes in which they are, and their ids."""

    start: int
    end: int
    records: int
    first: int  # the place of the first record among its siblings
    parent: bytes
    opening: str  # the start tag put before them
    around: tuple[str, str]  # the tags of the elements around them, without their attributes
    labels: tuple[str, ...]  # the labels of these elements
    encoding: str

    @cached_property
    def keys(self) -> list[bytes]:
        """The ids of the records."""
        places = range(self.first, self.first + self.records)
        return [self.parent + encode((place,)) for place in places]

    def content(self, data: bytes, *, in_place: bool = False) -> bytes:
        """The XML of the piece, from its bytes in the file.

        The records are in one element, or `in_place`: in the elements that are around them.
        """
        opening, closing = self.around if in_place else (self.opening, "</_>")
        head = f'<?xml version="1.0" encoding="{self.encoding}"?>{opening}'
        return b"".join((head.encode(), data, closing.encode()))

    def key(self, key: bytes) -> bytes:
        """The id in the file of a node of the piece `in_place`, which is in one of its records."""
        ends = component_ends(key)
        start, end = ends[len(self.labels) - 1] if self.labels else 0, ends[len(self.labels)]
        return self.keys[self._numbers[key[start:end]]] + key[end:]

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {encode((number + 1,)): number for number in range(self.records)}

    def rows(self, data: bytes, limits: Limits = DEFAULT_LIMITS) -> Iterator[NodeRow]:
        """The nodes of the piece's records."""
        tree = load(self.content(data), limits=limits)
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
    runs = _runs(data, record_spans(data, records))
    name = "_"
    while (
        name.encode() in data
    ):  # a name that is not in the file and that its author could not foresee
        name = f"_{token_hex(8)}"
    tree = _spine(data, runs, name, limits)
    encoding = encoding_name(data[:1024])
    placed = dict(zip(_places(tree, name), runs, strict=False))
    if len(placed) != len(runs) or len(placed) != sum(1 for _ in _places(tree, name)):
        raise MalformedError("AX101", f"{_tags(records)} and the rest do not fit together")
    keys: dict[int, bytes] = {DOCUMENT_NODE: b""}
    before: dict[int, int] = {}  # of a parent: records so far, but one for each run
    own: list[NodeRow] = []
    pieces: list[Piece] = []
    for node, row in zip(_below(tree), rows_of(tree), strict=True):
        parent = tree.parent(node)
        if tree.kind_column[node] == ATTRIBUTE:
            key = keys[parent] + encode(tree.component(node), True)
        else:
            place = tree.component(node)[0] + before.get(parent, 0)
            key = keys[parent] + encode((place,))
            run = placed.get(node)
            if run is not None:
                before[parent] = before.get(parent, 0) + len(run) - 1
                pieces += _pieces(tree, parent, keys[parent], place, run, encoding)
                continue
        keys[node] = key
        own.append(row._replace(id=key, parent=keys[parent]))
    return Split(tuple(own), tuple(pieces))


def _runs(data: bytes, spans: list[Span]) -> list[list[Span]]:
    """Records with nothing between them but white space that is dropped."""
    dropped = b"" if b"xml:space" in data else b" \t\r\n"
    runs: list[list[Span]] = []
    end = -1
    for span in spans:
        if end >= 0 and (span[0] == end or not data[end : span[0]].strip(dropped)):
            runs[-1].append(span)
        else:
            runs.append([span])
        end = span[1]
    return runs


def _tags(records: Sequence[str]) -> str:
    return ", ".join(f"<{record}>" for record in records)


def record_spans(data: bytes, records: Sequence[str]) -> list[Span]:
    """The offsets of the outermost elements with these names.

    From the start tag of a record, the search goes on at the first end tag with its name, unless
    another start tag with this name is before it.
    """
    names = [record.encode() for record in records]
    start = re.compile(rb"<(" + b"|".join(map(re.escape, names)) + rb")(?=[\s/>])")
    stray = re.compile(rb"</(?:" + b"|".join(map(re.escape, names)) + rb")\s*>")
    tags = {name: re.compile(rb"<(/?)" + re.escape(name) + rb"(?=[\s/>])") for name in names}
    hidden = _Hidden(data)
    spans: list[Span] = []
    at = 0
    while found := hidden.search(start, at):
        if at < found.start() and hidden.search(stray, at, found.start()):
            raise MalformedError("AX101", f"an end tag before byte {found.start()} ends no record")
        name, opened = found[1], found.start()
        at = _tag_end(data, opened)
        if data[at - 2] != _SLASH:
            first = data.find(b"</" + name, at)
            if first < 0:
                raise MalformedError("AX101", f"a record at byte {opened} does not end")
            nested = data.find(b"<" + name, at, first) >= 0
            if nested or hidden.between(opened, first) or data[first + len(name) + 2] != _CLOSE:
                at = _record_end(data, tags[name], hidden, opened, at)
            else:
                at = first + len(name) + 3
        spans.append((opened, at))
    if hidden.search(stray, at):
        raise MalformedError("AX101", f"an end tag after byte {at} ends no record")
    return spans


def _record_end(data: bytes, tag: re.Pattern[bytes], hidden: _Hidden, opened: int, at: int) -> int:
    """The end of a record, found by counting the tags with its name."""
    depth = 1
    while found := hidden.search(tag, at):
        at = _tag_end(data, found.start())
        if found[1]:
            depth -= 1
            if not depth:
                return at
        elif data[at - 2] != _SLASH:
            depth += 1
    raise MalformedError("AX101", f"a record at byte {opened} does not end")


def _tag_end(data: bytes, at: int) -> int:
    """The end of the tag that starts here."""
    end = data.find(b">", at)
    tag = data[at : end + 1]
    if end > 0 and b"'" not in tag and b'"' not in tag:
        return end + 1
    whole = _TAG.match(data, at)
    if whole is None:
        raise MalformedError("AX101", f"a tag at byte {at} does not end")
    return whole.end()


class _Hidden:
    """Comments, CDATA sections and instructions: text in them is not a tag."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._spans = list(_hidden(data))
        self._starts = [start for start, _ in self._spans]

    def between(self, start: int, end: int) -> bool:
        """Whether one begins in a range of bytes."""
        at = bisect_left(self._starts, start)
        return at < len(self._starts) and self._starts[at] < end

    def search(
        self, wanted: re.Pattern[bytes], at: int, end: int | None = None
    ) -> re.Match[bytes] | None:
        """The first tag that is not in one of them."""
        stop = len(self._data) if end is None else end
        while found := wanted.search(self._data, at, stop):
            number = bisect_right(self._starts, found.start()) - 1
            if number < 0 or found.start() >= self._spans[number][1]:
                return found
            at = self._spans[number][1]
        return None


def _hidden(data: bytes) -> Iterator[Span]:
    # One byte is found much faster than two.
    if data.find(b"!") < 0 and data.find(b"?", 1024) < 0 and data.rfind(b"<?", 0, 1024) <= 0:
        return
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


def _spine(data: bytes, runs: list[list[Span]], name: str, limits: Limits) -> Tree:
    parts: list[bytes] = []
    at = 0
    for run in runs:
        parts += (data[at : run[0][0]], f"<{name}/>".encode())
        at = run[-1][1]
    parts.append(data[at:])
    spine = b"".join(parts)
    # Names are counted against the size of the whole file, not against the shorter spine.
    larger = len(data) // max(len(spine), 1) + 1
    read = replace(limits, expansion=limits.expansion * larger)
    return load(parse(spine, read).root, limits=limits)


def _below(tree: Tree) -> Iterator[int]:
    return (node for node in tree.subtree(DOCUMENT_NODE) if node != DOCUMENT_NODE)


def _places(tree: Tree, name: str) -> Iterator[int]:
    """The placeholders, in document order."""
    return (
        node
        for node in tree.subtree(DOCUMENT_NODE)
        if tree.kind(node) is NodeKind.ELEMENT and tree.label(node).rpartition("}")[2] == name
    )


def _pieces(
    tree: Tree, parent: int, key: bytes, first: int, run: list[Span], encoding: str
) -> Iterator[Piece]:
    """The pieces of a run, whose first record has this place among the children of its parent."""
    opening, around = _opening(tree, parent), _around(tree, parent)
    labels = tuple(tree.label(node) for node in _path(tree, parent))
    at = 0
    while at < len(run):
        begin, start = at, run[at][0]
        while at < len(run) and run[at][1] - start <= PIECE:
            at += 1
        at = max(at, begin + 1)
        yield Piece(
            start, run[at - 1][1], at - begin, first + begin, key, opening, around, labels, encoding
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
