"""The interfaces of sources and sinks, which every connector implements.

A source is read by position, so that one connector serves the embedded runner, channels and Spark.
`read(position, limit)` returns the updates after a position, and the position after them. A
position is JSON and has a meaning only for its source; None is the beginning. Positions are stored
in checkpoints and outlive the process.

Law: reading the same range twice gives the same updates. A source that cannot guarantee this keeps
the updates that it returned in its own log.

A source is one sequence of updates, or several: its partitions. A reading then names the partition
of each update.

On Spark the driver plans a batch and tasks read it. A `Planned` source finds the end of a batch and
its parts without reading messages: by byte offsets, file names, keys or offsets of a topic. Each
part is read by one task (`fetch`), and always gives the same updates, whatever has arrived since.
Any other source is read by the driver first, which then knows positions and counts (`plan_of`).

A sink receives changes in numbered batches. After a crash a batch may be written twice. A sink
skips a batch whose number it has seen (idempotent by batch), or declares with `exactly_once =
False` that its receivers must do so.

On Spark many sinks are written by tasks: each writes the changes of its engines as a part of the
batch (`PartWriter`), and the driver commits the parts of a batch once (`Parted`). Parts are bytes
with a meaning only for their sink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from axlog.document.stream_update import StreamUpdate
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
    joint: Any = None
    """JSON: how a part fits to its neighbours, which its task cannot know. See `Joined`."""


PART = 2_000
"""Default minimum number of messages per task when a batch is divided."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much a batch may bring, and among how many tasks it is divided."""

    limit: int  # about how many messages
    tasks: int = 1
    least: int = PART  # messages per task
    joins: bool = False  # whether the joints of parts will be compared (`Reading.joint`)

    def step(self, available: int | None = None) -> int:
        """Return how many messages a task gets, of those that are available."""
        count = self.limit if available is None else min(self.limit, available)
        return max(1, self.least, -(-count // self.tasks))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a source, for one task."""

    work: Any  # JSON: what `fetch` gets
    size: int  # upper bound of the number of its updates and rejected inputs


@dataclass(frozen=True, slots=True)
class Plan:
    """The next updates of a source, in parts in their order, and the position after them."""

    parts: Sequence[Part]
    position: Position
    more: bool = False  # more updates are known to be available after them
    came: Mapping[int, bool] = field(default_factory=dict)
    """By partition, whether it has updates in the plan or known to be available after it."""


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
class Planned(Protocol):
    """A source whose updates can be divided among tasks without reading them."""

    def plan(self, position: Position, load: Load, until: Position | None = None) -> Plan:
        """Return the next updates after a position in parts; with `until`, all updates up to that
        position, whatever their number.
        """

    def fetch(self, work: Any) -> Reading:
        """Return the updates of a part; always the same, in order."""


@runtime_checkable
class Joined(Protocol):
    """A planned source whose parts have to fit together."""

    def check_joints(self, joints: Sequence[Any]) -> None:
        """Raise an error if the parts of a batch do not fit together: their updates are wrong."""


@runtime_checkable
class Locating(Protocol):
    """A planned source whose tasks do not know the usual names of positions."""

    def origin(self, found: str) -> str:
        """Return the origin that `read` gives an update, from the one that `fetch` gave it."""


def plan_of(source: Source, position: Position, load: Load) -> Plan:
    """Return the next updates of any source in parts; one that is not `Planned` is read for it."""
    if isinstance(source, Planned):
        return source.plan(position, load)
    parts: list[Part] = []
    more, left = True, load.limit
    while more and left > 0:
        reading = source.read(position, min(load.step(), left))
        count = len(reading.updates) + len(reading.refused)
        more = reading.more
        if not count:
            break
        parts.append(Part([position, count], count))
        position, left = reading.position, left - count
    return Plan(parts, position, more)


@runtime_checkable
class Sink(Protocol):
    """A sink: receives the changes of views."""

    exactly_once: bool

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Write a batch of changes as a whole; a batch that was written before changes nothing."""

    def close(self) -> None:
        """Close files and connections; everything written is durable."""


class PartNumber(NamedTuple):
    """A part of a batch of changes."""

    number: int = 0  # the same if the batch is repeated; 0 is the driver's own
    first: int = 0  # the number in the batch of its first change


@dataclass(frozen=True, slots=True)
class SinkPart:
    """A written part of a batch, for one sink: bytes, or a file with them."""

    number: int
    body: bytes = b""
    path: str = ""

    def read(self) -> bytes:
        """Return its bytes."""
        return Path(self.path).read_bytes() if self.path else self.body


PartWriter = Callable[[int, PartNumber, Sequence[Change]], bytes]
"""Writes the changes of one part of a batch, in any process; the batch is not committed by it."""


@runtime_checkable
class Parted(Protocol):
    """A sink whose batches may be written in parts."""

    def commit(self, batch: int, parts: Sequence[SinkPart]) -> None:
        """Commit the parts of a batch as a whole; a batch that was written before changes nothing.

        No two parts have changes of one row.
        """
