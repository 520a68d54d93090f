"""The outbox of a publisher: changes that were logged and not yet taken by its sink.

A durable widget gives each publisher the changes of its view, one batch for each log record that
made some, numbered by that record. A thread hands them to the sink in order, and again after a
failure, so every batch arrives at least once; a sink that remembers the last number it took has it
exactly once. The outbox is bounded: when it is full, whoever feeds the widget waits.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from threading import Condition, Thread
from typing import Protocol

from axlog.views.change import Change

log = logging.getLogger("axlog.outbox")

FIRST_WAIT, LONGEST_WAIT = 0.05, 5.0
"""Seconds before a failed batch is tried again: doubled each time, up to the second."""


class Taking(Protocol):
    """What a publisher needs of a sink (`connectors.protocol.Sink`)."""

    def write(self, batch: int, changes: Sequence[Change]) -> None: ...


class Outbox:
    """Batches under way to one sink."""

    def __init__(self, name: str, view: str, most: int = 10_000) -> None:
        self.name = name
        self.view = view
        self.taken = 0  # the last batch that the sink has
        self.failures = 0
        self.last_error: str | None = None
        self._most = most
        self._waiting: deque[tuple[int, list[Change]]] = deque()
        self._changed = Condition()
        self._closing = False
        self._thread: Thread | None = None
        self._done: Callable[[str, int], None] | None = None

    @property
    def waiting(self) -> int:
        """Changes that the sink does not have yet."""
        return sum(len(changes) for _, changes in self._waiting)

    def put(self, batch: int, changes: list[Change]) -> None:
        """Add a batch; waits while the outbox is full and somebody empties it."""
        with self._changed:
            while len(self._waiting) >= self._most and self._thread is not None:
                if self._closing:
                    break
                self._changed.wait(0.1)
            self._waiting.append((batch, changes))
            self._changed.notify_all()

    def restore(self, batches: Sequence[tuple[int, list[Change]]], taken: int) -> None:
        """Go on from what a snapshot says."""
        self._waiting.extend(batches)
        self.took(taken)

    def took(self, batch: int) -> None:
        """The sink has everything up to a batch."""
        with self._changed:
            self.taken = max(self.taken, batch)
            while self._waiting and self._waiting[0][0] <= self.taken:
                self._waiting.popleft()
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
        wait = FIRST_WAIT
        while (batch := self._next()) is not None:
            if self.deliver(sink, *batch):
                wait = FIRST_WAIT
                continue
            with self._changed:
                if self._closing:
                    return
                self._changed.wait_for(lambda: self._closing, wait)
            wait = min(2 * wait, LONGEST_WAIT)

    def deliver(self, sink: Taking, batch: int, changes: list[Change]) -> bool:
        """Hand one batch to the sink; whether it took it."""
        try:
            sink.write(batch, changes)
        except Exception as error:
            self.failures += 1
            self.last_error = f"{type(error).__name__}: {error}"
            log.warning("publisher %s: batch %d: %s", self.name, batch, self.last_error)
            return False
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
