"""`ChangeFeed`: a view's changes, to iterate over, to await, or to read at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Lock
from typing import Self

from axlog.views.change import Change


class ChangeFeed:
    """The changes of a view since the feed was made, after a snapshot or a position if requested.

    `for change in feed` yields the changes received so far and stops. `async for change in feed`
    waits for more until the feed is closed. The document may be updated in another thread. `with`
    and `async with` close the feed at the end of the block.
    """

    def __init__(self, subscribe: Callable[[Callable[[Change], None]], Callable[[], None]]) -> None:
        self._waiting: deque[Change] = deque()
        self._lock = Lock()
        self._wake: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._closed = False
        self._stop = subscribe(self._receive)

    def _receive(self, change: Change) -> None:
        with self._lock:
            self._waiting.append(change)
            waking = list(self._wake)
        for loop, event in waking:
            loop.call_soon_threadsafe(event.set)

    def take(self) -> list[Change]:
        """Return the changes received since the last call."""
        with self._lock:
            taken = list(self._waiting)
            self._waiting.clear()
        return taken

    def __iter__(self) -> Iterator[Change]:
        while self._waiting:
            yield self._waiting.popleft()

    async def __aiter__(self) -> AsyncIterator[Change]:
        event = asyncio.Event()
        entry = (asyncio.get_running_loop(), event)
        with self._lock:
            self._wake.append(entry)
        try:
            while True:
                while self._waiting:
                    yield self._waiting.popleft()
                if self._closed:
                    return
                event.clear()
                if not self._waiting and not self._closed:
                    await event.wait()
        finally:
            with self._lock:
                self._wake.remove(entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop receiving changes. Changes already received can still be read."""
        self._stop()
        self._closed = True
        with self._lock:
            waking = list(self._wake)
        for loop, event in waking:
            loop.call_soon_threadsafe(event.set)
