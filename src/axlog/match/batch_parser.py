"""Messages parsed together: one parse for many, half the time of one for each.

A parser's start and end cost as much as a small message. So many messages are put into one
document, each in an element of its own whose name is drawn at random when the process starts: no
message can close it, or open another one, since nobody outside knows the name. Where the parser
refuses the whole, or a message is not exactly one tree, that message is parsed alone, as before,
and what is wrong with it is said there.

Law: a root that comes from here is the root that `fromstring` gives of that message alone, seen
from its inside.

Not handled: what does not begin with an element (declarations, comments, encodings), and what is
large: these gain nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from lxml.etree import XMLParser, XMLSyntaxError, fromstring

from axlog.document.parser import Element, make_parser

MOST = 64
"""Messages that are parsed together."""
LARGEST = 4096
"""Bytes of a message that is worth it."""
_OPEN = ord("<")
_ODD = b"!?/\0"
_SPACES = b" \t\r\n"
_NAME = b"m" + os.urandom(16).hex().encode()
_START, _BETWEEN, _END = (
    b"<_><" + _NAME + b">",
    b"</" + _NAME + b"><" + _NAME + b">",
    b"</" + _NAME + b"></_>",
)
Thing = TypeVar("Thing")


def chunks(things: Iterable[Thing], size: int = MOST) -> Iterator[list[Thing]]:
    """The same, so many at a time."""
    chunk: list[Thing] = []
    for thing in things:
        chunk.append(thing)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def roots_of(messages: Sequence[bytes]) -> list[Element | None]:
    """The root of each message; None where it is to be parsed alone."""
    found: list[Element | None] = [None] * len(messages)
    fit = [
        at
        for at, message in enumerate(messages)
        if 3 < len(message) <= LARGEST
        and message[0] == _OPEN
        and message[1] not in _ODD
        and message.find(b"xml:id") < 0  # unique within a document
    ]
    if len(fit) < 2:
        return found
    written = _BETWEEN.join([messages[at].rstrip(_SPACES) for at in fit])
    try:
        together = fromstring(_START + written + _END, _parser())
    except XMLSyntaxError:
        return found  # one of them is wrong
    if len(together) != len(fit):
        return found
    for at, around in zip(fit, together, strict=True):
        if len(around) == 1:
            root = around[0]
            if root.tail is None:  # else something stands behind it that is no element
                found[at] = root
    return found


@lru_cache(maxsize=1)
def _parser() -> XMLParser:
    return make_parser()
