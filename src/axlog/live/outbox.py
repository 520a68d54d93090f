"""The outbox of a publisher: changes that were logged and not yet taken by its sink.

A durable widget gives each publisher the changes of its view, one batch for each log record that
made some, numbered by that record. A thread hands them to the sink in order, and again after a
failure, so every batch arrives at least once; a sink that remembers the last number it took has it
exactly once.

The outbox is bounded: when it is full, whoever feeds the widget waits, before the update is
accepted and without any lock (the publisher needs the widget's to note how far it is). So at most
`most` changes wait, and those of one update more for each thread that feeds. Where nobody takes
them, since `publish` was not called again after a restart, updates are refused instead (AX877).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from logging import INFO, WARNING, getLogger
from threading import Condition, Thread, current_thread
from time import monotonic
from typing import Protocol

from axlog.errors import StoreError
from axlog.reporting import report
from axlog.retry import Backoff
from axlog.views.change import Change

_log = getLogger("axlog.outbox")

MOST = 10_000
"""Changes that may wait for a sink before feeding has to."""

BACKOFF = Backoff(0.05, 5.0)
"""Seconds before a failed batch is tried again: doubled each time, up to the second."""


class Taking(Protocol):
    """What a publisher needs of a sink (`connectors.protocol.Sink`)."""

    def write(self, batch: int, changes: Sequence[Change]) -> None: ...


class Outbox:
    """Batches under way to one sink."""

    def __init__(self, name: str, view: str, most: int = MOST) -> None:
        self.name = name
        self.view = view
        self.taken = 0  # the last batch that the sink has
        self.failures = 0
        self.last_error: str | None = None
        self.most = most
        self.waiting = 0  # changes that the sink does not have yet
        self.largest = 0  # that ever waited
        self.blocked = 0.0  # seconds that feeding waited for room
        self._waiting: deque[tuple[int, list[Change]]] = deque()
        self._since: deque[float] = deque()  # when each of them was put here
        self._changed = Condition()
        self._closing = False
        self._thread: Thread | None = None
        self._done: Callable[[str, int], None] | None = None

    @property
    def lag(self) -> float:
        """Seconds that the oldest change has waited."""
        with self._changed:
            return monotonic() - self._since[0] if self._since else 0.0

    def wait_for_room(self) -> None:
        """Wait while the outbox is full; to be called without the widget's lock."""
        if self.waiting < self.most:
            return
        began = monotonic()
        with self._changed:
            # A sink that feeds its own widget would wait for itself.
            while self.waiting >= self.most and self._thread is not current_thread():
                if self._closing:
                    return
                if self._thread is None:
                    raise StoreError(
                        "AX877",
                        f"{self.waiting} changes wait for the publisher {self.name!r}, and nobody"
                        " takes them",
                        advice="call publish with this name again, or unpublish it",
                    )
                self._changed.wait(0.5)
        self.blocked += monotonic() - began

    def put(self, batch: int, changes: list[Change]) -> None:
        """Add a batch; `wait_for_room` comes before."""
        with self._changed:
            self._add(batch, changes)
            self._changed.notify_all()

    def _add(self, batch: int, changes: list[Change]) -> None:
        self._waiting.append((batch, changes))
        self._since.append(monotonic())
        self.waiting += len(changes)
        self.largest = max(self.largest, self.waiting)

    def restore(self, batches: Sequence[tuple[int, list[Change]]], taken: int) -> None:
        """Go on from what a snapshot says."""
        with self._changed:
            for number, changes in batches:
                self._add(number, changes)
        self.took(taken)

    def took(self, batch: int) -> None:
        """The sink has everything up to a batch."""
        with self._changed:
            self.taken = max(self.taken, batch)
            while self._waiting and self._waiting[0][0] <= self.taken:
                self.waiting -= len(self._waiting.popleft()[1])
                self._since.popleft()
            self._changed.notify_all()

    def pending(self) -> list[tuple[int, list[Change]]]:
        with self._changed:
            return list(self._waiting)

    def start(self, sink: Taking, done: Callable[[str, int], None]) -> None:
        """Begin to hand batches to a sink; `done` hears of each that it took."""
        self._done = done
        self._thread = Thread(
            target=self._deliver, args=(sink,), daemon=True, name=f"axlog-publisher-{self.name}"
        )
        self._thread.start()

    def _deliver(self, sink: Taking) -> None:
        failures = 0
        while (batch := self._next()) is not None:
            if self.deliver(sink, *batch):
                failures = 0
                continue
            failures += 1
            with self._changed:
                if self._closing:
                    return
                self._changed.wait_for(lambda: self._closing, BACKOFF.pause(failures))

    def deliver(self, sink: Taking, batch: int, changes: list[Change]) -> bool:
        """Hand one batch to the sink; whether it took it."""
        try:
            sink.write(batch, changes)
        except Exception as error:
            self.failures += 1
            self.last_error = f"{type(error).__name__}: {error}"
            report(_log, WARNING, "publisher failed", view=self.view, publisher=self.name,
                   seq=batch, waiting=self.waiting, error=self.last_error)  # fmt: skip
            return False
        if self.last_error is not None:
            report(_log, INFO, "publisher works again", view=self.view, publisher=self.name,
                   seq=batch, waiting=self.waiting)  # fmt: skip
        self.last_error = None
        self.took(batch)
        if self._done is not None:
            self._done(self.name, batch)
        return True

    def _next(self) -> tuple[int, list[Change]] | None:
        with self._changed:
            while not self._waiting:
                if self._closing:
                    return None
                self._changed.wait(0.5)
            return self._waiting[0]

    def flush(self, seconds: float) -> bool:
        """Wait until the sink has everything; whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, seconds)

    def close(self, seconds: float = 5.0) -> None:
        """Stop when all is delivered, or at the next failure; what is left stays in the log."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(seconds)
            self._thread = None
