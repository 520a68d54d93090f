"""The limits of a message, decided from its bytes and its parsed root, without making nodes.

Most messages are so short that they can exceed no limit. For the others each limit has a bound that
is cheap to compute: the longest stretch of bytes between two tags bounds names and attributes, the
number of tags bounds the depth. If that bound is too high, libxml2 looks for a level that is too
deep.

Law: a message that is within these limits is accepted by `document/loader.py`.

An XML declaration that says nothing new (version 1.0, UTF-8) is left out before anything else.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import numpy as np
from lxml.etree import XPath

from axlog.document.name_expansion import fits
from axlog.document.parser import Element, Limits

_LEVEL = len("<a></a>")
_ATTRIBUTE = len("a=''")
_SPACE = r"[ \t\r\n]"
_EQUAL = rf"{_SPACE}*={_SPACE}*"
DECLARATION = (
    rf"<\?xml{_SPACE}+version{_EQUAL}(?:\"1\.0\"|'1\.0')"
    rf"(?:{_SPACE}+encoding{_EQUAL}(?:\"[Uu][Tt][Ff]-8\"|'[Uu][Tt][Ff]-8'))?"
    rf"(?:{_SPACE}+standalone{_EQUAL}(?:\"(?:yes|no)\"|'(?:yes|no)'))?{_SPACE}*\?>{_SPACE}*"
)
"""A declaration that says nothing new, with the white space after it."""
_declared = re.compile(DECLARATION.encode()).match


def without_declaration(message: bytes) -> bytes:
    """The message without a declaration that says nothing new."""
    found = _declared(message)
    return message if found is None else message[found.end() :]


class MessageLimits:
    """The limits of messages whose root is at a depth of the document."""

    def __init__(self, limits: Limits, depth: int) -> None:
        self._limits = limits
        self.deepest = limits.depth - depth
        """The greatest depth of a message."""
        shortest = min(limits.size, limits.text, limits.name, 4 * limits.attributes)
        shortest = min(shortest, 16 * limits.expansion)
        self.safe = min(shortest, _LEVEL * self.deepest - 1)
        """The size in bytes up to which no limit can be exceeded."""

    def admits(self, message: bytes) -> bool:
        """Whether a message certainly exceeds no limit but that of its depth."""
        limits = self._limits
        if len(message) > min(limits.size, limits.text) or self.deepest < 1:
            return False
        is_short = len(message) <= min(limits.name, 4 * limits.attributes)
        return (is_short or self._admits_tags(message)) and fits(message, limits)

    def _admits_tags(self, message: bytes) -> bool:
        """Whether no name is too long, and no element has too many attributes."""
        limits = self._limits
        starts = np.flatnonzero(np.frombuffer(message, dtype=np.uint8) == ord("<"))
        lengths = np.diff(starts, append=len(message))
        most = min(limits.name, _ATTRIBUTE * limits.attributes)
        for start in starts[lengths > most].tolist():  # usually a long text
            tag = message[start : message.find(b">", start)]
            if len(tag) > most or tag.count(b'"') % 2 or b"'" in tag:
                return False  # or the tag does not end there
        return True

    def may_be_too_deep(self, message: bytes, root: Element) -> bool:
        """Whether a message that was parsed may be deeper than it may be."""
        return message.count(b"<") >= self.deepest and bool(self._level(root))

    @cached_property
    def _level(self) -> Any:
        """Whether an element has one so many levels below it."""
        return XPath(f"boolean({'/'.join('*' * self.deepest)})")
