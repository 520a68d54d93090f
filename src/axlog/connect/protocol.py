"""What a source and a sink are: the two shapes that every connector has.

A source is read by position, so that the same connector serves the embedded runner, a channel and
Spark: `read(position, limit)` gives the updates after a position and the position after them. A
position is JSON and means something to its source alone; None is the beginning. Reading the same
span twice gives the same updates (a source that cannot promise this keeps what it has given out in
a log of its own). Positions are stored in checkpoints and outlive the process.

A source is one sequence of updates, or several: its partitions. A reading then says which partition
each update is of. A source that may bring other updates when a position is read a second time (a
topic whose partitions are interleaved by chance, a directory that gets a file between two others)
is `Ranged`: a span of it is known by both its ends, and is read again by them.

A sink takes changes in numbered batches. A batch may be written twice after a crash: a sink that
has seen its number writes nothing the second time (idempotent by batch), or says with
`exactly_once = False` that its receivers must.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.errors import AxlogError
from axlog.views.change import Change

Position = Any
"""JSON: None, a number, a string, or lists and mappings of them."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Input that is no update: it goes to the dead letters, the rest goes on."""

    stream: str
    content: str | bytes
    origin: str  # where it was read: a file and line, a partition and offset
    error: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A span of a source: its updates in order, and where to go on."""

    updates: Sequence[StreamUpdate]
    position: Position
    refused: Sequence[Refusal] = ()
    more: bool = False  # something is known to be waiting behind this span
    partitions: Sequence[int] = ()  # of each update; empty: the source is one sequence
    waiting: Mapping[int, bool] = field(default_factory=dict)
    """By partition, whether something is known to be waiting in it; empty: it has no partitions."""


NO_TIME = -(1 << 62)
"""The latest time of a span in which no message has one."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a span of a source ends, and how many updates and refusals are in it."""

    count: int
    position: Position
    more: bool = False
    came: Mapping[int, bool] = field(default_factory=dict)
    """By partition, whether something of it is in the span or known to be waiting behind it."""
    latest: int | None = None  # at most, the latest time in it (microseconds); None: not known


@runtime_checkable
class Source(Protocol):
    """Something that brings updates to streams."""

    def read(self, position: Position, limit: int) -> Reading:
        """At most `limit` updates after a position; none if nothing is new. Never waits long."""

    def close(self) -> None:
        """Let go of files and connections."""


@runtime_checkable
class Measured(Protocol):
    """A source that knows where a span ends for less than it takes to read it."""

    def reach(self, position: Position, limit: int) -> Reach:
        """What `read` with the same arguments would come to."""


@runtime_checkable
class Ranged(Protocol):
    """A source whose spans are known by both their ends."""

    def between(self, start: Position, end: Position) -> Reading:
        """The updates between two positions that it gave out; always the same, in order."""

    def spans(self, start: Position, end: Position, limit: int) -> Sequence[Position]:
        """Positions that cut a range into spans of about so many updates; the last is its end."""


def reach_of(source: Source, position: Position, limit: int) -> Reach:
    """Where a span of any source ends."""
    if isinstance(source, Measured):
        return source.reach(position, limit)
    reading = source.read(position, limit)
    count = len(reading.updates) + len(reading.refused)
    came = {p: waits or p in reading.partitions for p, waits in reading.waiting.items()}
    return Reach(count, reading.position, reading.more, came, _latest(reading.updates))


def _latest(updates: Sequence[StreamUpdate]) -> int | None:
    latest = NO_TIME
    for update in updates:
        try:
            latest = max(latest, NO_TIME if update.at is None else microseconds(update.at))
        except AxlogError:
            continue  # it is refused, and moves nothing
    return latest


@runtime_checkable
class Sink(Protocol):
    """Something that takes the changes of views."""

    exactly_once: bool

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Take a batch of changes whole; a batch that was taken before changes nothing."""

    def close(self) -> None:
        """Let go of files and connections; what was written is there."""
