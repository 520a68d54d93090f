"""The layout of a message: its markup, with a place for each text and attribute value.

Most messages of a stream have one of a few layouts: they differ in their values alone. A layout is
found in the text of one message and compared with the tree that the parser made of it. Every other
message with the same markup, and with values of plain characters in its places, is then well formed
too, and its tree is the same but for the values. `layout_expression.py` reads such messages without
a parser.

    <order id="7"><oid>o1</oid></order>     <order id="·"><oid>·</oid></order>

White space between tags belongs to the layout. Not handled (None): references, sections, comments,
instructions, declarations, carriage returns, `xml:id` and `xml:space`, calls, and large messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from axlog.document.parser import Element, Limits
from axlog.document.recorder import SPACES
from axlog.document.tree import CALL_LABEL

LARGEST = 16384
"""The most characters of a message with a layout."""
MOST_ELEMENTS = 256
"""The most elements of a message with a layout."""

TEXT, DOUBLE, SINGLE = range(3)
"""Kinds of places: a text, and an attribute value in double or single quotes."""
Token: TypeAlias = str | int
"""Markup as it is written, or the kind of a place."""
Place: TypeAlias = int
"""The number of a place in its layout."""

_PLAIN = r"&\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff"
VALUES = {
    TEXT: rf"[^<>{_PLAIN}]*+",
    DOUBLE: rf'[^<"\t\n{_PLAIN}]*+',
    SINGLE: rf"[^<'\t\n{_PLAIN}]*+",
}
"""What a place can hold, as regular expressions: characters that stand for themselves."""

_NAME = r"[^\s<>/=\"'&!?]+"
_TAG = re.compile(
    rf"<(?:/{_NAME}\s*|{_NAME}(?:\s+{_NAME}\s*=\s*(?:\"[^\"<&]*\"|'[^'<&]*'))*\s*/?)>", re.ASCII
)
_ATTRIBUTE = re.compile(rf"\s+({_NAME})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.ASCII)
_ODD = re.compile(r"<!|<\?|[&\r]|xml:(?:id|space)")


@dataclass(eq=False, slots=True)
class LayoutElement:
    """An element of a layout: its tag, its attributes, and its content.

    An attribute value is a place, or a text that belongs to the layout. The content has elements,
    places of texts, and the white space between them.
    """

    tag: str = ""
    attributes: dict[str, Place | str] = field(default_factory=dict)
    content: list[LayoutElement | Place | str] = field(default_factory=list)

    def elements(self) -> list[LayoutElement]:
        """Its children."""
        return [each for each in self.content if isinstance(each, LayoutElement)]

    def places(self) -> list[Place]:
        """The places of its texts."""
        return [each for each in self.content if isinstance(each, int)]

    def walk(self) -> Iterator[LayoutElement]:
        """The element and all below it, in document order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.elements())


@dataclass(frozen=True, eq=False, slots=True)
class Layout:
    """The markup of a message, and its tree with places for the values."""

    tokens: tuple[Token, ...]
    root: LayoutElement


def tokens_of(text: str) -> tuple[Token, ...] | None:
    """The markup and the places of a message; None: it has no layout."""
    scan = _Scan(text)
    return tuple(scan.tokens) if scan.root is not None else None


def layout_of(text: str, root: Element, limits: Limits) -> Layout | None:
    """The layout of a message, with the root that the parser made of it; None: it has none."""
    scan = _Scan(text)
    if scan.root is None or not scan.agrees(root):
        return None
    names = sum(len(each.tag) + sum(map(len, each.attributes)) for each in scan.root.walk())
    if names > limits.expansion * sum(len(each) for each in scan.tokens if isinstance(each, str)):
        return None  # with shorter values its names might exceed the limit
    return Layout(tuple(scan.tokens), scan.root)


class _Scan:
    """One pass over the text of a message: its tokens, its values, and its tree without names."""

    def __init__(self, text: str) -> None:
        self.tokens: list[Token] = []
        self.values: list[str] = []
        self.root: LayoutElement | None = None
        self._path: list[LayoutElement] = []
        self._elements = 0
        if len(text) > LARGEST or text[:1] != "<" or _ODD.search(text) or not self._read(text):
            self.root = None

    def _read(self, text: str) -> bool:
        at = 0
        while at < len(text):
            tag = _TAG.match(text, at)
            if tag is None or not self._take(tag[0]):
                return False
            at = tag.end()
            end = text.find("<", at)
            value = text[at:] if end < 0 else text[at:end]
            is_leaf = tag[0][1] != "/" and tag[0][-2] != "/" and text.startswith("</", end)
            if is_leaf or value.strip(SPACES):
                if not self._path:
                    return False
                self._path[-1].content.append(self._place(TEXT, value))
            elif value:
                self.tokens.append(value)
                if self._path:
                    self._path[-1].content.append(value)
            at += len(value)
        return not self._path

    def _place(self, kind: int, value: str) -> Place:
        self.tokens.append(kind)
        self.values.append(value)
        return len(self.values) - 1

    def _take(self, tag: str) -> bool:
        """A tag: it opens or closes an element, or both; False: not in a tree."""
        if tag[1] == "/":
            self.tokens.append(tag)
            return bool(self._path) and self._path.pop() is not None
        element = LayoutElement()
        self._elements += 1
        if self._elements > MOST_ELEMENTS:
            return False
        if self._path:
            self._path[-1].content.append(element)
        elif self.root is None:
            self.root = element
        else:
            return False
        start = 0
        for attribute in _ATTRIBUTE.finditer(tag) if tag.find("=") > 0 else ():
            name, group = attribute[1], 2 if attribute[2] is not None else 3
            if name == "xmlns" or name.startswith("xmlns:"):
                continue  # declares a namespace: part of the layout
            if name.startswith("xml:"):
                element.attributes[name] = attribute[group]
                continue
            self.tokens.append(tag[start : attribute.start(group)])
            element.attributes[name] = self._place(DOUBLE if group == 2 else SINGLE,
                                                   attribute[group])  # fmt: skip
            start = attribute.end(group)
        self.tokens.append(tag[start:])
        if tag[-2] != "/":
            self._path.append(element)
        return True

    def agrees(self, root: Element) -> bool:
        """Whether the parser made the same tree; its names are taken over."""
        assert self.root is not None
        ours, theirs = list(self.root.walk()), list(root.iter())
        return len(ours) == len(theirs) and all(map(self._agree, ours, theirs))

    def _agree(self, ours: LayoutElement, theirs: Element) -> bool:
        if type(theirs.tag) is not str or theirs.tag == CALL_LABEL:
            return False
        ours.tag = theirs.tag
        texts = [""]  # before, between and after the children
        for each in ours.content:
            if isinstance(each, LayoutElement):
                texts.append("")
            else:
                texts[-1] += each if isinstance(each, str) else self.values[each]
        known = [theirs.text or "", *(child.tail or "" for child in theirs)]
        given = [each if isinstance(each, str) else self.values[each]
                 for each in ours.attributes.values()]  # fmt: skip
        if texts != known or given != list(theirs.attrib.values()):
            return False
        ours.attributes = dict(zip(map(str, theirs.attrib), ours.attributes.values(), strict=True))
        return True
