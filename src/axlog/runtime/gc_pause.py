"""Run a batch without Python's cyclic garbage collector, and exempt what lives long from it.

A batch creates some ten objects for each message, which all live until it ends, and the collector
scans all of them repeatedly: this took half of the time of a batch. The objects of a batch have no
cycles; reference counting frees them. Other cyclic garbage waits until after the batch.

Spark runs a full collection in a Python process after each of its tasks. It scans all modules and
engines: about a tenth of a second, whatever the task did. So a task exempts them (`exempt_made`),
again when modules were imported or a quarter more engines have been made. Engines that were dropped
are collected after some of them have gathered.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

MOST_DROPPED = 64
"""Engines that may be dropped before what is exempt is scanned again."""


@dataclass
class _Counts:
    """The engines that were made in this process, and what of it is exempt."""

    made: int = 0
    exempt: int = 0
    dropped: int = 0
    modules: int = 0  # that are exempt


_COUNTS = _Counts()


def note_made() -> None:
    """An engine was made."""
    _COUNTS.made += 1


def note_dropped() -> None:
    """An engine was dropped."""
    _COUNTS.dropped += 1


def exempt_made() -> bool:
    """Exempt modules and engines from later collections if there are enough new ones; return
    whether it was done.
    """
    counts = _COUNTS
    is_dirty = counts.dropped >= MOST_DROPPED
    has_many = counts.made - counts.exempt > counts.exempt // 4
    if not (is_dirty or has_many or len(sys.modules) > counts.modules):
        return False
    if is_dirty:
        gc.unfreeze()
        counts.dropped = 0
    gc.collect()
    gc.freeze()
    counts.exempt, counts.modules = counts.made, len(sys.modules)
    return True


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable the garbage collector inside the block; leave it off if it was off."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
