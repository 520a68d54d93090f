"""Wake many coroutines that wait for one channel, without a wake-up for every message.

A channel notifies its pulse from any thread after a publication. The pulse wakes all waiters, at
once after silence, otherwise at most once in `interval` seconds. Two hundred readers of five
hundred messages per second are then woken fifty times per second, each for ten messages, and those
that read the same range without a filter are sent the same bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.entries import Entry

INTERVAL = 0.02


class Pulse:
    """Wakes the waiters of a channel; belongs to one event loop."""

    def __init__(self, channel: LocalChannel, interval: float = INTERVAL) -> None:
        self.interval = interval
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.create_future()
        self._is_due = False
        self._last = 0.0
        self._span: tuple[int, int] = (0, 0)
        self._bytes = b""
        self._stop: Callable[[], None] = channel.listen(self._published)

    def _published(self) -> None:
        """Notify of a publication, from any thread."""
        if not self._is_due:
            self._is_due = True
            try:
                self._loop.call_soon_threadsafe(self._schedule)
            except RuntimeError:  # the loop is closed: there are no waiters
                self._stop()

    def _schedule(self) -> None:
        left = self._last + self.interval - self._loop.time()
        if left > 0:
            self._loop.call_later(left, self._beat)
        else:
            self._beat()

    def _beat(self) -> None:
        self._last = self._loop.time()
        self._is_due = False
        done, self._next = self._next, self._loop.create_future()
        if not done.done():
            done.set_result(None)

    def ticket(self) -> asyncio.Future[None]:
        """Return a ticket to wait for; take it before reading, so that no publication is missed."""
        return self._next

    async def wait(
        self, ticket: asyncio.Future[None], seconds: float, *ends: asyncio.Future[None]
    ) -> bool:
        """Wait for a ticket, or until something ends the wait; return False if nothing came."""
        if ticket.done():
            return True
        first = asyncio.FIRST_COMPLETED
        await asyncio.wait([ticket, *ends], timeout=seconds, return_when=first)
        return ticket.done()

    def events(self, entries: Sequence[Entry]) -> bytes:
        """Return entries as server-sent events; the last range is cached for the next reader."""
        if not entries:
            return b""
        span = (entries[0].sequence, entries[-1].sequence)
        is_whole = span[1] - span[0] + 1 == len(entries)
        if is_whole and span == self._span:
            return self._bytes
        written = "".join(f"id: {e.sequence}\ndata: {e.text}\n\n" for e in entries).encode()
        if is_whole:
            self._span, self._bytes = span, written
        return written

    def close(self) -> None:
        self._stop()


class Pulses:
    """The pulse of each channel."""

    def __init__(self, interval: float = INTERVAL) -> None:
        self.interval = interval
        self._by_name: dict[str, Pulse] = {}

    def of(self, channel: LocalChannel) -> Pulse:
        known = self._by_name.get(channel.name)
        if known is None:
            known = self._by_name[channel.name] = Pulse(channel, self.interval)
        return known

    def close(self) -> None:
        for pulse in self._by_name.values():
            pulse.close()
        self._by_name.clear()
