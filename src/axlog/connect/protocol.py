"""The interfaces of sources and sinks, which every connector implements.

A source is read by position, so that one connector serves the embedded runner, channels and Spark.
`read(position, limit)` returns the updates after a position, and the position after them. A
position is JSON and has a meaning only for its source; None is the beginning. Positions are stored
in checkpoints and outlive the process.

Law: reading the same range twice gives the same updates. A source that cannot guarantee this keeps
the updates that it returned in its own log.

A source is one sequence of updates, or several: its partitions. A reading then names the partition
of each update. A source that may return other updates when a position is read a second time (a
topic with interleaved partitions, a directory that receives a file between two others) is `Ranged`:
a range is identified by both its ends.

A sink receives changes in numbered batches. After a crash a batch may be written twice. A sink
skips a batch whose number it has seen (idempotent by batch), or declares with `exactly_once =
False` that its receivers must do so.
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
    """Input that is not a valid update. It goes to the dead letters, and reading continues."""

    stream: str
    content: str | bytes
    origin: str  # its position: a file and line, a partition and offset
    error: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A range of a source: its updates in order, and the position after them."""

    updates: Sequence[StreamUpdate]
    position: Position
    refused: Sequence[Refusal] = ()
    more: bool = False  # more updates are known to be available after this range
    partitions: Sequence[int] = ()  # of each update; empty: the source is one sequence
    waiting: Mapping[int, bool] = field(default_factory=dict)
    """By partition, whether more updates are known to be available; empty: no partitions."""


NO_TIME = -(1 << 62)
"""The latest time of a range in which no message has a time."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The end of a range of a source, and its number of updates and rejected inputs."""

    count: int
    position: Position
    more: bool = False
    came: Mapping[int, bool] = field(default_factory=dict)
    """By partition, whether it has updates in the range or known to be available after it."""
    latest: int | None = None  # upper bound of the latest time in it (microseconds); None: unknown


@runtime_checkable
class Source(Protocol):
    """A source: brings updates to streams."""

    def read(self, position: Position, limit: int) -> Reading:
        """Return at most `limit` updates after a position; none if nothing is new. Never blocks for
        long.
        """

    def close(self) -> None:
        """Close files and connections."""


@runtime_checkable
class Measured(Protocol):
    """A source that can find the end of a range cheaper than by reading it."""

    def reach(self, position: Position, limit: int) -> Reach:
        """Return the end that `read` with the same arguments would reach."""


@runtime_checkable
class Ranged(Protocol):
    """A source whose ranges are identified by both their ends."""

    def between(self, start: Position, end: Position) -> Reading:
        """Return the updates between two positions that it returned; always the same, in order."""

    def spans(self, start: Position, end: Position, limit: int) -> Sequence[Position]:
        """Return positions that split a range into parts of about `size` updates; the last is its
        end.
        """


def reach_of(source: Source, position: Position, limit: int) -> Reach:
    """Return the end of a range of any source."""
    if isinstance(source, Measured):
        return source.reach(position, limit)
    return reach_by_reading(source, position, limit)


def reach_by_reading(source: Source, position: Position, limit: int) -> Reach:
    """Return the end of a range of a source that has to be read for it."""
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
            continue  # rejected, and advances no clock
    return latest


@runtime_checkable
class Sink(Protocol):
    """A sink: receives the changes of views."""

    exactly_once: bool

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Write a batch of changes as a whole; a batch that was written before changes nothing."""

    def close(self) -> None:
        """Close files and connections; everything written is durable."""
