"""Test doubles for your tests: streams that abort and end, a clock, a sink that collects changes.

    orders = FakeStream((0, "<order><oid>17</oid></order>"), ABORT, (5, "<order/>"), END)
    sink = Collecting()
    with standing_in(orders=orders, sink=sink):   # registers two kinds for pipeline files
        model = load("pipeline.yaml")             # source: {kind: orders}, sinks: [{kind: sink}]
        with pytest.raises(Aborted):
            run(model, once=True)                 # the run stops at ABORT
        run(model, once=True)                     # and continues from its checkpoint
    assert sink.received("late") == [("insert", {"x": "17"})]

A stream is the source of a pipeline, or a test feeds it to a document (`FakeStream.feed`). `ABORT`
stops a run once, at its place in the stream. The next run reads again the messages that were not
committed.

Not simulated: a process killed during a write and a disk that loses or tears writes (`lab torture`
tests both with real files and processes), networks, concurrent processes, and Spark, whose workers
cannot see the objects of a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from axlog.connect.kinds import Options, Origin, SinkKind, SourceKind
from axlog.connect.protocol import Position, Reading
from axlog.connect.sinks.memory import MemorySink
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ConnectorError
from axlog.live.document import Document
from axlog.pipeline import kinds
from axlog.views.change import Change


class Mark(Enum):
    """An item of a fake stream that is not a message."""

    ABORT = "abort"
    END = "end"


ABORT = Mark.ABORT
"""Stops the run that reads this item, once."""
END = Mark.END
"""Ends the stream."""

Item = str | tuple[float, str] | StreamUpdate | Mark


class Aborted(Exception):
    """A fake stream stopped the run."""


class FakeStream:
    """A source with scripted items: XML, (time, XML), updates, `ABORT`, `END`."""

    def __init__(self, *items: Item) -> None:
        self.items = items
        self._aborted: set[int] = set()

    def updates(self, stream: str) -> Iterator[StreamUpdate]:
        """The items as updates of a stream, without the aborts."""
        for number in range(len(self.items)):
            if self.items[number] is not ABORT:
                yield self._update(stream, number)

    def feed(self, doc: Document, stream: str) -> list[Change]:
        """Feed all messages to a document; return the changes."""
        return [change for update in self.updates(stream) for change in doc.take(update)]

    def _update(self, stream: str, number: int) -> StreamUpdate:
        origin = f"item {number + 1}"
        match self.items[number]:
            case StreamUpdate() as update:
                return update
            case Mark():
                return StreamUpdate(stream, "end", origin=origin)
            case (time, xml):
                return StreamUpdate(stream, "insert", xml, time, origin)
            case str() as xml:
                return StreamUpdate(stream, "insert", xml, origin=origin)
        raise TypeError(f"{self.items[number]!r} is not an item of a fake stream")

    def opened(self, stream: str) -> _Reading:
        """The stream as a source; each abort takes effect once over all sources."""
        return _Reading(self, stream)

    def cuts(self, number: int) -> bool:
        """Whether the run stops at an item; true once per abort."""
        if self.items[number] is not ABORT or number in self._aborted:
            return False
        self._aborted.add(number)
        return True


@dataclass(frozen=True)
class _Reading:
    """A fake stream being read; the position is the number of items."""

    script: FakeStream
    stream: str

    def read(self, position: Position, limit: int) -> Reading:
        start = position or 0
        end = min(start + limit, len(self.script.items))
        updates: list[StreamUpdate] = []
        for number in range(start, end):
            if self.script.items[number] is ABORT:
                if updates:  # the items before it are processed first
                    return Reading(updates, number, more=True)
                if self.script.cuts(number):
                    raise Aborted(f"item {number + 1} of {self.stream!r}")
                continue
            updates.append(self.script._update(self.stream, number))
        return Reading(updates, end, more=end < len(self.script.items))

    def close(self) -> None:
        """Do nothing: a fake stream holds no resources."""


class FakeClock:
    """A clock that a test advances, for alerters (`Alerter(..., clock=clock)`)."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        """Move the clock forward; return the new time."""
        if seconds < 0:
            raise ValueError("time cannot go back")
        self.now += seconds
        return self.now


class Collecting(MemorySink):
    """A sink that stores its changes, each batch once; `refuse` makes it unreachable."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0
        self._refusals = 0

    def refuse(self, times: int = 1) -> None:
        """Fail the next `times` writes, like an outside system that is down."""
        self._refusals += times

    def write(self, batch: int, changes: Any) -> None:
        """Store a batch, unless the write is to fail."""
        if self._refusals:
            self._refusals -= 1
            self.refused += 1
            raise ConnectorError("AX859", "the sink is down")
        super().write(batch, changes)

    def received(self, view: str | None = None) -> list[tuple[str, dict[str, Any]]]:
        """Return the changes of all views or of one, in order: operations and rows."""
        selected = [change for change in self.changes if view is None or change.view == view]
        return [(change.op, change.row.to_dict()) for change in selected]


class _NoOptions(Options):
    """Test doubles have no options."""


@contextmanager
def standing_in(**fakes: FakeStream | Collecting) -> Iterator[None]:
    """Register sources and sinks as kinds of pipeline files for the duration of the block."""
    made = [
        _source(name, fake) if isinstance(fake, FakeStream) else _sink(name, fake)
        for name, fake in fakes.items()
    ]
    with kinds.lent(*made):
        yield


def _source(name: str, fake: FakeStream) -> SourceKind[_NoOptions]:
    def make(options: _NoOptions, origin: Origin) -> _Reading:
        return fake.opened(origin.stream or name)

    return SourceKind(name, _NoOptions, make, "A fake stream for tests.")


def _sink(name: str, fake: Collecting) -> SinkKind[_NoOptions]:
    return SinkKind(
        name, _NoOptions, lambda options, origin: fake, "A sink that collects changes, for tests."
    )
