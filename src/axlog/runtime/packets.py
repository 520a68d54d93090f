"""Plain data as bytes: packets between partitions and buckets, and values of the state store.

Packets are written and read once for every message. Their form is defined by `packet_format.py`;
it is that of Python's `marshal`, version 4, which writes and reads it in C. Rows are read back as
tuples and bags as dictionaries. Only data that axlog wrote is read this way, never input: messages
are texts inside it. A Python whose `marshal` has another form is found out at the start, and
`packet_format.py` takes its place, so a checkpoint does not depend on the version of Python.

Arrow columns were measured and not taken (docs/performance.md): they cost about twice as much for
packets of 1,000 messages, and many times as much for small ones.

Not handled: anything but numbers, texts, bytes, None, and tuples, lists and dictionaries of these.
"""

from __future__ import annotations

import marshal
from typing import Any

from axlog.errors import StoreError
from axlog.runtime import packet_format

_FORM = 4
_SAMPLE: Any = ((1, -(1 << 70), 0.5, None, True), ["text", "\u00e9", b"\xff"], {("a", 2): ("a",)})
"""One value of each type."""


def _is_same() -> bool:
    """Whether this Python's `marshal` reads and writes the form."""
    try:
        read = marshal.loads(packet_format.write(_SAMPLE))
        return bool(read == _SAMPLE == packet_format.read(marshal.dumps(_SAMPLE, _FORM)))
    except (ValueError, TypeError, EOFError, StoreError):
        return False


_IS_SAME = _is_same()


def pack(plain: Any) -> bytes:
    """Return plain data as bytes."""
    return marshal.dumps(plain, _FORM) if _IS_SAME else packet_format.write(plain)


def unpack(written: bytes) -> Any:
    """Return the plain data that `pack` wrote."""
    return marshal.loads(written) if _IS_SAME else packet_format.read(written)
