"""Memory that a parsed document leaves behind, given back to the system.

The C library keeps the memory of the many small pieces of a freed lxml tree for later. After a
large document is loaded, that is several times what its columns take.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CDLL
from functools import cache

LARGE = 1 << 20
"""Bytes of texts from which on a document leaves enough behind to give it back."""


def give_back() -> bool:
    """Give free memory back to the system; False where the C library cannot (it is not glibc)."""
    trim = _trim()
    return trim is not None and bool(trim(0))


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        found: Callable[[int], int] = CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found
