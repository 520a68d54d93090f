"""The forms of one message that patterns are evaluated on: its parsed elements, and a tree.

Generated code reads the parsed elements. A tree is made on first use, for the patterns and messages
that generated code does not handle: nodes in rows, and texts that differ between the two forms
(messages with calls or `xml:space`).
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


def has_own_texts(root: Element, content: bytes | None = None) -> bool:
    """Whether a message has calls or `xml:space`: its texts are not those of its elements.

    `content`, if available, is the UTF-8 that the message was parsed from.
    """
    if content is not None and b"xml" not in content:  # neither xmlns nor xml:space
        return False
    return bool(_CALL_OR_SPACE(root))
