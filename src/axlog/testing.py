"""Stand-ins for tests, yours too: streams that abort and end, a clock, a publisher that collects.

    orders = FakeStream((0, "<order><oid>17</oid></order>"), ABORT, (5, "<order/>"), END)
    told = Collecting()
    with standing_in(orders=orders, told=told):   # kinds of pipeline files while it lasts
        model = load("pipeline.yaml")             # source: {kind: orders}, sinks: [{kind: told}]
        with pytest.raises(Aborted):
            run(model, once=True)                 # the run dies at ABORT
        run(model, once=True)                     # and goes on from its checkpoint
    assert told.told("late") == [("insert", {"x": "17"})]

A stream is given to its pipeline or fed to a widget by hand (`FakeStream.feed`). `ABORT` cuts a
run once, wherever it stands: what was not committed by then is read again.

What this does not simulate: a process that is killed inside a write, a disk that forgets or tears
(`lab torture` does both with real files and processes), a network, two processes at once, and
Spark, whose workers cannot see objects of a test.
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
    """What can stand in a fake stream beside messages."""

    ABORT = "abort"
    END = "end"


ABORT = Mark.ABORT
"""The run is cut when it reads this, once."""
END = Mark.END
"""The stream ends here."""

Item = str | tuple[float, str] | StreamUpdate | Mark


class Aborted(Exception):
    """A fake stream cut the run."""


class FakeStream:
    """A source with a script: XML, (time, XML), updates, `ABORT`, `END`."""

    def __init__(self, *items: Item) -> None:
        self.items = items
        self._aborted: set[int] = set()

    def updates(self, stream: str) -> Iterator[StreamUpdate]:
        """The messages as updates of a stream, without the aborts."""
        for number in range(len(self.items)):
            if self.items[number] is not ABORT:
                yield self._update(stream, number)

    def feed(self, widget: Document, stream: str) -> list[Change]:
        """Give everything to a widget; the changes that come of it."""
        return [change for update in self.updates(stream) for change in widget.take(update)]

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
        raise TypeError(f"{self.items[number]!r} is no item of a fake stream")

    def opened(self, stream: str) -> _Reading:
        """The stream as a source; every source of it has aborts only once."""
        return _Reading(self, stream)

    def cuts(self, number: int) -> bool:
        """Whether the run is cut at an item, which it is once."""
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
                if updates:  # what stands before it is taken first
                    return Reading(updates, number, more=True)
                if self.script.cuts(number):
                    raise Aborted(f"item {number + 1} of {self.stream!r}")
                continue
            updates.append(self.script._update(self.stream, number))
        return Reading(updates, end, more=end < len(self.script.items))

    def close(self) -> None:
        """Nothing to let go of."""


class FakeClock:
    """A clock that moves when it is told to: for alerters (`Alerter(..., clock=clock)`)."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        """Let time pass; never back."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self.now += seconds
        return self.now


class Collecting(MemorySink):
    """A publisher that keeps what it is given, each batch once; `refuse` makes it unreachable."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0
        self._refusals = 0

    def refuse(self, times: int = 1) -> None:
        """Fail that many writes, as an outside system that is down."""
        self._refusals += times

    def write(self, batch: int, changes: Any) -> None:
        """Take a batch, unless it is to be refused."""
        if self._refusals:
            self._refusals -= 1
            self.refused += 1
            raise ConnectorError("AX859", "the publisher is down")
        super().write(batch, changes)

    def told(self, view: str | None = None) -> list[tuple[str, dict[str, Any]]]:
        """What was told, of all views or one: operations and rows, in order."""
        said = [change for change in self.changes if view is None or change.view == view]
        return [(change.op, change.row.to_dict()) for change in said]


class _NoOptions(Options):
    """A stand-in has no options."""


@contextmanager
def standing_in(**fakes: FakeStream | Collecting) -> Iterator[None]:
    """While it lasts, pipeline files can name these as kinds of sources and sinks."""
    made = [
        _source(name, fake) if isinstance(fake, FakeStream) else _sink(name, fake)
        for name, fake in fakes.items()
    ]
    with kinds.lent(*made):
        yield


def _source(name: str, fake: FakeStream) -> SourceKind[_NoOptions]:
    def make(options: _NoOptions, origin: Origin) -> _Reading:
        return fake.opened(origin.stream or name)

    return SourceKind(name, _NoOptions, make, "A fake stream of a test.")


def _sink(name: str, fake: Collecting) -> SinkKind[_NoOptions]:
    return SinkKind(name, _NoOptions, lambda options, origin: fake, "A collecting publisher.")
