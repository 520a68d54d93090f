"""Limits on connections: slow clients are disconnected and cannot block others.

A connection has three timeouts, one at a time. Each starts with its phase, so bytes that trickle in
do not reset it:

    head   the head of a request is incomplete              `HEAD_SECONDS`
    body   its body is incomplete                           `BODY_SECONDS`
    rest   it was answered before its body had arrived      `REST_SECONDS`

Connections are limited per address and in total. At a limit, the connection that has waited longest
for its client is closed for the new one; if every connection is being served, the new one is
refused. uvicorn itself times out idle connections, but waits without end for the rest of a head or
a body, and its own limit counts requests only.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from time import monotonic
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from axlog.reporting import report

log = logging.getLogger("axlog.server")

HEAD_SECONDS = 15.0
BODY_SECONDS = 60.0
REST_SECONDS = 5.0
SECONDS: dict[str, float] = {
    "head": HEAD_SECONDS,
    "body": BODY_SECONDS,
    "rest": REST_SECONDS,
}
LARGEST_HEAD = 64 * 1024
"""Bytes of a request's head."""
MOST_CONNECTIONS = 4096
MOST_OF_ADDRESS = 1024
"""Connections per address; browsers open six, and all clients of a proxy share one address."""
SPARE_FILES = 256
"""File descriptors reserved for sinks, sources and the store."""
_CLOSE_SECONDS = 1.0
_LOG_EVERY = 60.0


class Connections:
    """The connections of one server by address, those waiting longest for their client first."""

    def __init__(
        self, most: int = MOST_CONNECTIONS, most_of_address: int = MOST_OF_ADDRESS
    ) -> None:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = max(16, min(most, files - SPARE_FILES))
        self.most_of_address = min(most_of_address, self.most)
        self._by_address: dict[str, dict[Timely, None]] = {}
        self._waiting: dict[Timely, None] = {}  # waiting for their clients, in the order of waiting
        self.count = 0
        self.refused = 0

    def admit(self, connection: Timely) -> bool:
        """Accept a connection, if necessary in place of a waiting one; return False if there is
        none.
        """
        mine = self._by_address.setdefault(connection.address, {})
        if len(mine) >= self.most_of_address and not self._evict(mine):
            return self._refuse(connection.address)
        if self.count >= self.most and not self._evict(self._waiting):
            return self._refuse(connection.address)
        mine[connection] = None
        self.count += 1
        return True

    def _evict(self, among: dict[Timely, None]) -> bool:
        """Close the connection that has waited longest among some; return False if all are being
        served.
        """
        longest = next((one for one in self._waiting if one in among), None)
        if longest is None:
            return False
        self.release(longest)
        longest.transport.abort()
        return True

    def _refuse(self, address: str) -> bool:
        if not self._by_address[address]:
            del self._by_address[address]
        self.refused += 1
        return False

    def waits(self, connection: Timely, is_waiting: bool) -> None:
        """Record whether a connection waits for its client."""
        if is_waiting:
            self._waiting.setdefault(connection)
        else:
            self._waiting.pop(connection, None)

    def release(self, connection: Timely) -> None:
        """Remove a closed connection; idempotent."""
        self._waiting.pop(connection, None)
        mine = self._by_address.get(connection.address, {})
        if connection in mine:
            del mine[connection]
            self.count -= 1
            if not mine:
                del self._by_address[connection.address]


class Timely(H11Protocol):
    """The protocol of one connection, with a timeout for its client."""

    registry: Connections
    address = ""
    _clock: asyncio.TimerHandle | None = None
    _phase: str | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if not self.registry.admit(self):
            transport.abort()
            return
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(None)
        self.registry.release(self)
        super().connection_lost(exc)

    def _look(self) -> None:
        """Determine what the client has to send next, and start its timeout if the phase is new."""
        theirs = self.conn.their_state
        if self.transport.is_closing():
            self._enter(None)
        elif theirs is h11.IDLE:
            self._enter("head")
        elif theirs is h11.SEND_BODY:
            self._enter("rest" if self.cycle.response_complete else "body")
        else:
            self._enter(None)

    def _enter(self, phase: str | None) -> None:
        if phase == self._phase:
            return
        self._phase = phase
        self.registry.waits(self, phase is not None)
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        if phase is not None:
            self._clock = self.loop.call_later(SECONDS[phase], self._too_late)

    def _too_late(self) -> None:
        """Close the connection; abort it if the client does not read."""
        self.transport.close()
        self._clock = self.loop.call_later(_CLOSE_SECONDS, self.transport.abort)


def protocol(connections: Connections) -> type[Timely]:
    """Return the protocol factory of a server's connections."""
    return type("TimelyConnection", (Timely,), {"registry": connections})


class AcceptErrors:
    """Logs errors of the listening socket once a minute: asyncio reports every attempt."""

    def __init__(self) -> None:
        self._next = 0.0
        self._left_out = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The event loop's handler of unhandled errors."""
        if "socket.accept()" not in context.get("message", ""):
            loop.default_exception_handler(context)
            return
        if monotonic() < self._next:
            self._left_out += 1
            return
        self._next = monotonic() + _LOG_EVERY
        error = context.get("exception")
        report(log, logging.ERROR, "connections cannot be accepted", error=str(error),
               repeated=self._left_out)  # fmt: skip
        self._left_out = 0
