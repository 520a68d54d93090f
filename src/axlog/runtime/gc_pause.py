"""A batch without Python's cyclic collector.

A batch makes some ten objects for each message that all live until it ends, and every so many of
them the collector looks through all: half of a batch's time went there. Nothing that a batch makes
for its messages has cycles; counting references frees it. What else has cycles waits until after.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Let no cyclic collection start inside, unless nobody had them start before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
