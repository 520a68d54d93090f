"""A check that a message is well-formed, in less than half the time of a parse, for plain messages.

Expat reads a message without making a tree. It is asked only where it and libxml2 agree: ASCII
without references, sections, comments, instructions, prefixes and namespaces. What is left are
tags, attributes and texts.

Starting and ending a parser takes as long as reading a small message. So one parser reads many
messages, as the content of a root that is never closed. A message must not close that root, have a
second root or text outside of its own. If no other tag in it starts with the name of its first
element, except for the end tag that is its end, the message is this element. Else the content of
the message's root is put into an element with a random name, which anything else does not fit.

Law: a message that this check accepts is accepted by the parser (`document/parser.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias
from xml.parsers.expat import ExpatError, ParserCreate

Check: TypeAlias = Callable[[bytes], bool]
"""Whether a message is certainly well-formed; False: the parser has to decide."""

_ODD = b"!?&:"
_SPACES = b" \t\r\n"
_OPEN, _CLOSE, _SLASH, _SPACE = b"<>/ "
_NAME = b"m" + os.urandom(16).hex().encode()
_INSIDE, _END = b"<" + _NAME + b">", b"</" + _NAME + b">"
READ_BY_ONE = 1024
"""Messages that one parser of expat reads: it keeps every name that it has seen."""


def may_differ(message: bytes) -> bool:
    """Whether a message has something in which expat and libxml2 may differ."""
    return (
        not message.isascii()
        or len(message.translate(None, _ODD)) < len(message)
        or (message.find(b"=") >= 0 and message.find(b"xmlns") >= 0)
    )


def form_check() -> Check:
    """A check of messages, one after the other, in which expat and libxml2 do not differ.

    Not for several threads at once.
    """
    left = 0
    parse: Callable[[bytes, bool], int]

    def check(message: bytes) -> bool:
        nonlocal left, parse
        if message[0] != _OPEN:
            return False
        if message[-1] != _CLOSE:
            message = message.rstrip(_SPACES)
        start = message.find(b">")
        if start < 0:
            return False
        before = message[start - 1]
        if not (
            before > _SPACE
            and message.find(message[:start], 1) < 0
            and message.endswith(b"</" + message[1 : start + 1])
        ):  # several tags start alike; if not, only the last one can close the first
            start += 1
            end = message.rfind(b"</")
            if before == _SLASH:  # an empty tag, or inside an attribute
                if start < len(message) or message.find(b"=") > 0:
                    return False
            elif end < start or message.find(b">", end) < len(message) - 1:
                return False
            else:
                parts = (message[:start], _INSIDE, message[start:end], _END, message[end:])
                message = b"".join(parts)
        if not left:
            parser = ParserCreate()
            parse, left = parser.Parse, READ_BY_ONE
            parse(b"<_>", False)
        left -= 1
        try:
            parse(message, False)
        except ExpatError:
            left = 0
            return False
        return True

    return check
