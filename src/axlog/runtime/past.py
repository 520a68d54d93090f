"""What is known of earlier batches: the latest time, the ended streams, and the ends of sources.

The buckets decide whether a message is late, or comes after its stream's end. With this knowledge a
task can exclude a rejection for most messages: those at or after the latest time, of streams that
have not ended. Only the others are sent with their content. The driver writes the file beside the
checkpoint once the messages of a batch have been seen, before the next batch begins. It never knows
less than the buckets.

The file also has the number of the last batch and, by source, the end of its input: the position
and the number of messages before it. A view that is added later is filled up to there. Spark may
repeat that batch; a new view has it already, and skips it.

If it cannot be read (a checkpoint that is not a local path, or that an earlier version wrote),
nothing is known, and every message may be rejected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from axlog.connect.sinks.files import replace_file

_FILE = "past.json"


class End(NamedTuple):
    """The end of the input of a source after a batch."""

    position: Any  # JSON
    number: int  # upper bound of the number of messages before it


@dataclass(frozen=True)
class Past:
    """What is known of earlier batches; `is_known` is False if nothing is."""

    latest: int | None = None  # microseconds; None: no message has had a time
    ended: frozenset[str] = frozenset()
    is_known: bool = False
    batch: int = -1  # the last one that was seen
    ends: Mapping[int, End] = field(default_factory=dict)  # by source

    def may_refuse(self, stream: str, time: int | None) -> bool:
        """Whether a bucket may find that a message is late, or comes after its stream's end."""
        if not self.is_known or stream in self.ended:
            return True
        return self.latest is not None and time is not None and time < self.latest

    def at(self, passed: int) -> Past:
        """Return the same with the wall-clock time that has passed."""
        return replace(self, latest=passed if self.latest is None else max(self.latest, passed))

    def after(self, batch: int, aside: Iterable[Mapping[str, Any]]) -> Past:
        """Return what is known after a batch, from the reports of its partitions."""
        latest, ended, ends = self.latest, set(self.ended), dict(self.ends)
        for one in aside:
            times = [time for time in (latest, one["latest"]) if time is not None]
            latest = max(times, default=None)
            ended |= set(one["ended"])
            ends |= {source: End(*end) for source, end in one["ends"].items()}
        return Past(latest, frozenset(ended), self.is_known, max(batch, self.batch), ends)


NOTHING = Past(is_known=True)
"""Return what is known before the first batch."""


def read_past(place: str) -> Past:
    """Read what is known beside a checkpoint."""
    try:
        found = json.loads((Path(place) / _FILE).read_text(encoding="utf-8"))
        ends = {int(source): End(*end) for source, end in found["ends"].items()}
        return Past(found["latest"], frozenset(found["ended"]), True, found["batch"], ends)
    except (OSError, ValueError, KeyError, TypeError):
        return Past()


def write_past(place: str, past: Past) -> None:
    """Write what is known beside a checkpoint."""
    known = {"latest": past.latest, "ended": sorted(past.ended), "batch": past.batch,
             "ends": dict(past.ends)}  # fmt: skip
    replace_file(Path(place) / _FILE, json.dumps(known).encode())
