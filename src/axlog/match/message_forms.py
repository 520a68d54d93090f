"""The forms of one message that patterns are evaluated on: its parsed elements, and a tree.

Generated code reads the parsed elements. A tree is made on first use, for the patterns and messages
that generated code does not handle: nodes in rows, and texts that differ between the two forms
(messages with calls or `xml:space`).

Law: on messages without calls and `xml:space`, both forms have the same elements, texts, attributes
and string values.
"""

from __future__ import annotations

from functools import cached_property

from lxml import etree

from axlog.document.loader import load
from axlog.document.parser import DEEPEST, Element, Limits
from axlog.document.tree import Tree

_CALL_OR_SPACE = etree.XPath(
    "boolean(descendant-or-self::*[@xml:space or self::ax:call])", namespaces={"ax": "urn:axlog"}
)
_LIMITS = Limits(depth=DEEPEST)


class MessageForms:
    """One message: its root element, its time, and its tree."""

    def __init__(self, root: Element, time: int) -> None:
        self.root = root
        self.time = time

    @cached_property
    def tree(self) -> Tree:
        """The message as a separate document."""
        return load(self.root, limits=_LIMITS, time=self.time)


def needs_tree(root: Element, content: bytes | None = None) -> bool:
    """Whether a message's texts can be read on a tree only: it has calls or `xml:space`.

    `content`, if available, is the UTF-8 that the message was parsed from.
    """
    if content is not None and not may_need_tree(content):
        return False
    return bool(_CALL_OR_SPACE(root))


def may_need_tree(content: bytes) -> bool:
    """Whether calls or `xml:space` may be in the bytes of a message: both are written with a colon.

    One byte is found much faster than three.
    """
    if content.find(b":") < 0 and content.find(b"&") < 0:
        return False
    return content.find(b"xml") >= 0
