"""Plain data as bytes: packets between partitions and buckets, and values of the state store.

Packets are written and read once for every message, so they use Python's own format (`marshal`,
version 4, which every Python since 3.4 reads): rows are read back as tuples and bags as
dictionaries, several times faster than with JSON. Only data that axlog wrote is read this way,
never input: messages are texts inside it.

Not handled: anything but numbers, texts, bytes, None, and tuples, lists and dictionaries of these.
"""

from __future__ import annotations

import marshal
from typing import Any

_FORM = 4


def pack(plain: Any) -> bytes:
    """Return plain data as bytes."""
    return marshal.dumps(plain, _FORM)


def unpack(written: bytes) -> Any:
    """Return the plain data that `pack` wrote."""
    return marshal.loads(written)
