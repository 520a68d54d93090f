"""The outbox of a publisher: changes that were logged and that its sink has not acknowledged.

A durable document puts the changes of a view into the outbox of each of its publishers: one batch
for each log record with changes, numbered by that record. A thread delivers the batches to the sink
in order and retries after a failure. Every batch therefore arrives at least once. A sink that
remembers the number of its last batch gets each exactly once.

The outbox is bounded. While it is full, threads that feed the document wait, before the update is
accepted and without any lock (the publisher needs the document's lock to record its progress). At
most `most` changes wait, plus those of one update for each feeding thread. If no sink is attached,
because `publish` was not called again after a restart, updates are rejected instead (AX877).
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

_log = getLogger("axlog.live.outbox")

MOST = 10_000
"""Changes that may wait for a sink before updates block."""

BACKOFF = Backoff(0.05, 5.0)
"""Seconds before a failed batch is retried: doubled each time, up to the second value."""


class Taking(Protocol):
    """The protocol of a publisher's sink (`Sink` of `connect/protocol.py`)."""

    def write(self, batch: int, changes: Sequence[Change]) -> None: ...


class Outbox:
    """The batches to deliver to one sink."""

    def __init__(self, name: str, view: str, most: int = MOST) -> None:
        self.name = name
        self.view = view
        self.taken = 0  # the last batch that the sink acknowledged
        self.failures = 0
        self.last_error: str | None = None
        self.most = most
        self.waiting = 0  # changes that the sink has not acknowledged
        self.largest = 0  # the largest value of `waiting` so far
        self.blocked = 0.0  # seconds that updates waited for room
        self._waiting: deque[tuple[int, list[Change]]] = deque()
        self._since: deque[float] = deque()  # when each batch was added
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
        """Wait while the outbox is full. Call it without the document's lock."""
        if self.waiting < self.most:
            return
        began = monotonic()
        with self._changed:
            # A sink that feeds its own document would wait for itself.
            while self.waiting >= self.most and self._thread is not current_thread():
                if self._closing:
                    return
                if self._thread is None:
                    raise StoreError(
                        "AX877",
                        f"{self.waiting} changes wait for the sink {self.name!r}, which is not"
                        " attached",
                        advice="call publish with this name again, or unpublish it",
                    )
                self._changed.wait(0.5)
        self.blocked += monotonic() - began

    def put(self, batch: int, changes: list[Change]) -> None:
        """Add a batch. Call `wait_for_room` first."""
        with self._changed:
            self._add(batch, changes)
            self._changed.notify_all()

    def _add(self, batch: int, changes: list[Change]) -> None:
        self._waiting.append((batch, changes))
        self._since.append(monotonic())
        self.waiting += len(changes)
        self.largest = max(self.largest, self.waiting)

    def restore(self, batches: Sequence[tuple[int, list[Change]]], taken: int) -> None:
        """Restore the batches of a snapshot, without those already acknowledged."""
        with self._changed:
            for number, changes in batches:
                self._add(number, changes)
        self.took(taken)

    def took(self, batch: int) -> None:
        """Record that the sink has acknowledged all batches up to this one."""
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
        """Start to deliver batches to a sink.

        `done` is called for each batch that it acknowledges.
        """
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
        """Deliver one batch to the sink. Return whether the sink acknowledged it."""
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
        """Wait until the sink has acknowledged all batches. Return whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, seconds)

    def close(self, seconds: float = 5.0) -> None:
        """Stop once all batches are delivered, or at the next failure.

        The rest stays in the log.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(seconds)
            self._thread = None
