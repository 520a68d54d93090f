"""What tasks know of the batches before theirs: the latest time, and the streams that have ended.

Whether a message is late, or comes after its stream's end, is decided by the buckets. With what is
known here a task can tell of most messages that they will not be refused: a message that is at or
after the latest time of all, of a stream that nothing has ended. Only the others travel with their
content. It is written beside the checkpoint by the driver once a batch's messages have been seen,
before the next batch begins, and is never less than what the buckets know.

Where it cannot be read (a checkpoint that is no local path, one that an earlier version made)
nothing is known, and every message may be refused.
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
    """What is known of the batches before; `is_known` is False where nothing is."""

    latest: int | None = None  # microseconds; None: no message has had a time
    ended: frozenset[str] = frozenset()
    is_known: bool = False

    def may_refuse(self, stream: str, time: int | None) -> bool:
        """Whether a bucket may find that a message is late, or comes after its stream's end."""
        if not self.is_known or stream in self.ended:
            return True
        return self.latest is not None and time is not None and time < self.latest

    def at(self, passed: int) -> Past:
        """The same, where time has passed by itself up to here."""
        return replace(self, latest=passed if self.latest is None else max(self.latest, passed))

    def after(self, aside: Iterable[Mapping[str, Any]]) -> Past:
        """What is known once a batch has been seen, by what its partitions put aside."""
        latest, ended = self.latest, set(self.ended)
        for one in aside:
            times = [time for time in (latest, one["latest"]) if time is not None]
            latest = max(times, default=None)
            ended |= set(one["ended"])
        return Past(latest, frozenset(ended), self.is_known)


NOTHING = Past(is_known=True)
"""What is known before the first batch."""


def read_past(place: str) -> Past:
    """What is known beside a checkpoint."""
    try:
        latest, ended = json.loads((Path(place) / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Past()
    return Past(latest, frozenset(ended), is_known=True)


def write_past(place: str, past: Past) -> None:
    """Leave what is known beside a checkpoint."""
    path = Path(place) / _FILE
    aside = path.with_suffix(".part")
    aside.write_text(json.dumps([past.latest, sorted(past.ended)]), encoding="utf-8")
    aside.replace(path)
