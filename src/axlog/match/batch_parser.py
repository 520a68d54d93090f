"""Messages parsed together: one parse for many takes half the time of one for each.

Starting and ending a parser costs as much as a small message. So several messages are put into one
document, each in a wrapper element with a random name chosen when the process starts. No message
can close its wrapper or open another one, because the name is unknown outside of the process. If
the parser rejects the whole, or a message is not exactly one tree, that message is parsed alone,
and the error is reported there.

Law: a root from here equals the root that `fromstring` gives for that message alone, as seen from
inside.

Not handled: messages that do not begin with an element (declarations, comments, encodings), and
large messages, which would gain nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from lxml.etree import XMLParser, XMLSyntaxError, fromstring

from axlog.document.parser import Element, make_parser

MOST = 64
"""The most messages parsed together."""
LARGEST = 4096
"""The largest message, in bytes, that gains from it."""
_OPEN, _CLOSE = ord("<"), ord(">")
_ODD = b"!?/\0"
_SPACES = b" \t\r\n"
_NAME = b"m" + os.urandom(16).hex().encode()
_START, _BETWEEN, _END = (
    b"<_><" + _NAME + b">",
    b"</" + _NAME + b"><" + _NAME + b">",
    b"</" + _NAME + b"></_>",
)
Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int = MOST) -> Iterator[list[Item]]:
    """Yield the items in lists of at most `size`."""
    chunk: list[Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def roots_of(messages: Sequence[bytes]) -> list[Element | None]:
    """The root of each message; None if it must be parsed alone."""
    found: list[Element | None] = [None] * len(messages)
    fit = [
        at
        for at, message in enumerate(messages)
        if 3 < len(message) <= LARGEST and message[0] == _OPEN and message[1] not in _ODD
    ]
    if len(fit) < 2:
        return found
    parts = (messages[at] for at in fit)
    written = _BETWEEN.join([m if m[-1] == _CLOSE else m.rstrip(_SPACES) for m in parts])
    if written.find(b"xml:id") >= 0:  # ids must be unique within a document
        return found
    try:
        together = fromstring(_START + written + _END, _parser())
    except XMLSyntaxError:
        return found  # one of the messages is malformed
    if len(together) != len(fit):
        return found
    for at, around in zip(fit, together, strict=True):
        if len(around) == 1:
            root = around[0]
            if root.tail is None:  # otherwise text follows the element
                found[at] = root
    return found


@lru_cache(maxsize=1)
def _parser() -> XMLParser:
    return make_parser()
