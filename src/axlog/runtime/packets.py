"""Plain data as bytes: what travels between partitions and buckets, and what the state store has.

Packets are made and read once for every message, so their form is Python's own (`marshal`, format
4, which every Python since 3.4 reads): rows come back as the tuples that they were, bags as
dictionaries, several times faster than by JSON. Only what axlog made is read this way, never input:
messages are texts in it.

Not handled: anything but numbers, texts, bytes, None, tuples, lists and dictionaries of these.
"""

from __future__ import annotations

import marshal
from typing import Any

_FORM = 4


def pack(plain: Any) -> bytes:
    """Plain data as bytes."""
    return marshal.dumps(plain, _FORM)


def unpack(written: bytes) -> Any:
    """The plain data that `pack` wrote."""
    return marshal.loads(written)
