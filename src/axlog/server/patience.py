"""Connections that say nothing, or say it one byte a minute, are closed.

uvicorn closes connections that are idle between requests, but waits for ever for the rest of a
request's head; a few hundred such clients would take all the places there are. The body of a
request is waited for by `answers.body_of`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 15.0
"""Seconds within which the head of a request must come, from the connection or its first byte."""
MOST_CONNECTIONS = 4096
LARGEST_HEAD = 64 * 1024


class Timely(H11Protocol):
    """The protocol of one connection, with a clock that runs while a head is incomplete."""

    _hurry: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._hurry is None:
            self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _start(self) -> None:
        self._hurry = self.loop.call_later(PATIENCE, self._too_late)

    def _stop(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None

    def _too_late(self) -> None:
        self._hurry = None
        if not self.transport.is_closing():
            self.transport.close()
