"""A large file of many records, read as a sequence of small elements in the memory of one record.

`split(file, label)` yields every whole element of a label that is not inside another such element,
in file order. The content around them is skipped and dropped. Input is hostile, as in `parser.py`:
a DOCTYPE is refused, because its declarations are known only after the records have been read. A
record over the size limit raises an error.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import IO, Any

from lxml import etree

from axlog.document.name_expansion import expanded_size, refuse_growth, scope_size
from axlog.document.parser import (
    DEFAULT_LIMITS,
    Element,
    Limits,
    declares_entities,
    encoding_of,
    make_pull_parser,
    syntax_error,
    too_many_attributes,
)
from axlog.errors import LimitError, MalformedError

_PIECE = 1 << 16


def split(
    file: IO[bytes], label: str, limits: Limits = DEFAULT_LIMITS, name: str | None = None
) -> Iterator[Element]:
    """Yield the records of a file; an element is valid until the next one is requested.

    >>> from io import BytesIO
    >>> [order.get("id") for order in split(BytesIO(b"<l><o id='1'/><o id='2'/></l>"), "o")]
    ['1', '2']
    """
    return _Splitter(label, limits, name).records(file)


class _Splitter:
    def __init__(self, label: str, limits: Limits, name: str | None) -> None:
        self.label = label
        self.limits = limits
        self.name = name
        self.parser = make_pull_parser()
        self.started = False
        self.size = 0  # bytes read
        self.expanded = 0  # characters of names and namespaces
        self.inside: Any = None  # the record being read

    def records(self, file: IO[bytes]) -> Iterator[Element]:
        read = 0  # since the last record ended
        for piece in _pieces(file, self.name):
            read += len(piece)
            self.size += len(piece)
            self._feed(piece)
            for record in self._ended():
                yield record
                _forget(record)
                read = 0
            if read > self.limits.size:
                raise LimitError(
                    "AX122",
                    f"{self.name or 'the file'} has a record over {self.limits.size} bytes",
                    advice="raise it with limits=Limits(size=...)",
                )
        try:
            self.parser.close()
        except etree.XMLSyntaxError as error:
            raise syntax_error(error, b"", self.name, self.limits) from None
        yield from self._ended()

    def _feed(self, piece: bytes) -> None:
        try:
            self.parser.feed(piece)
        except etree.XMLSyntaxError as error:
            raise syntax_error(error, b"", self.name, self.limits) from None

    def _ended(self) -> Iterator[Element]:
        """The records that the parser has finished."""
        for event, element in self.parser.read_events():
            if event == "start":
                if not self.started:
                    self.started = True
                    if element.getroottree().docinfo.doctype:
                        raise declares_entities(self.name)
                if len(element.attrib) > self.limits.attributes:
                    raise too_many_attributes(self.limits)
                self._count(expanded_size(element))
                if self.inside is None and element.tag == self.label:
                    self.inside = element
                    self._count(scope_size(element))  # a record is passed on alone, with its scope
            elif element is self.inside:
                self.inside = None
                yield element
            elif self.inside is None:
                _forget(element)

    def _count(self, characters: int) -> None:
        self.expanded += characters
        refuse_growth(self.expanded, self.size, self.limits)


def _forget(element: Element) -> None:
    """Free a finished element; its parent stays, because the parser is inside it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _pieces(file: IO[bytes], name: str | None) -> Iterator[bytes]:
    """Yield the file in pieces of UTF-8."""
    first = file.read(_PIECE)
    encoding = encoding_of(first)
    decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)()
    piece = first
    while True:
        if decoder is None:
            yield piece
        else:
            try:
                yield decoder.decode(piece, final=not piece).encode()
            except UnicodeDecodeError as error:
                raise MalformedError(
                    "AX113", f"{name or 'the file'} is not in {error.encoding}"
                ) from None
        if not piece:
            return
        piece = file.read(_PIECE)
