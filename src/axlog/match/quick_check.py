"""A check that a message is well-formed, in half the time of a parse, for messages in plain form.

Expat reads a message without making a tree. It is asked only where it and libxml2 agree: ASCII
without references, sections, comments, instructions, prefixes and namespaces. What is left are
tags, attributes and texts.

Law: a message that this check accepts is accepted by the parser (`document/parser.py`).
"""

from __future__ import annotations

from xml.parsers.expat import ExpatError, ParserCreate


def is_well_formed(message: bytes) -> bool:
    """Whether a message is certainly well-formed; False: the parser has to decide."""
    if (
        not message.isascii()
        or message.find(b"!") >= 0
        or message.find(b"?") >= 0
        or message.find(b"&") >= 0
        or message.find(b":") >= 0
        or (message.find(b"=") >= 0 and message.find(b"xmlns") >= 0)
    ):
        return False
    try:
        ParserCreate().Parse(message, True)
    except ExpatError:
        return False
    return True
