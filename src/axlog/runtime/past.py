"""What tasks know of earlier batches: the latest time, and the ended streams.

The buckets decide whether a message is late, or comes after its stream's end. With this knowledge a
task can exclude a rejection for most messages: those at or after the latest time, of streams that
have not ended. Only the others are sent with their content. The driver writes the file beside the
checkpoint once the messages of a batch have been seen, before the next batch begins. It never knows
less than the buckets.

If it cannot be read (a checkpoint that is not a local path, or that an earlier version wrote),
nothing is known, and every message may be rejected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_FILE = "past.json"


@dataclass(frozen=True)
class Past:
    """What is known of earlier batches; `is_known` is False if nothing is."""

    latest: int | None = None  # microseconds; None: no message has had a time
    ended: frozenset[str] = frozenset()
    is_known: bool = False

    def may_refuse(self, stream: str, time: int | None) -> bool:
        """Whether a bucket may find that a message is late, or comes after its stream's end."""
        if not self.is_known or stream in self.ended:
            return True
        return self.latest is not None and time is not None and time < self.latest

    def at(self, passed: int) -> Past:
        """Return the same with the wall-clock time that has passed."""
        return replace(self, latest=passed if self.latest is None else max(self.latest, passed))

    def after(self, aside: Iterable[Mapping[str, Any]]) -> Past:
        """Return what is known after a batch, from the reports of its partitions."""
        latest, ended = self.latest, set(self.ended)
        for one in aside:
            times = [time for time in (latest, one["latest"]) if time is not None]
            latest = max(times, default=None)
            ended |= set(one["ended"])
        return Past(latest, frozenset(ended), self.is_known)


NOTHING = Past(is_known=True)
"""Return what is known before the first batch."""


def read_past(place: str) -> Past:
    """Read what is known beside a checkpoint."""
    try:
        latest, ended = json.loads((Path(place) / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Past()
    return Past(latest, frozenset(ended), is_known=True)


def write_past(place: str, past: Past) -> None:
    """Write what is known beside a checkpoint."""
    path = Path(place) / _FILE
    aside = path.with_suffix(".part")
    aside.write_text(json.dumps([past.latest, sorted(past.ended)]), encoding="utf-8")
    aside.replace(path)
