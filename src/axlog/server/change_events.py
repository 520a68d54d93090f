"""A view's changes as server-sent events: a snapshot, or a position, and every change after it.

The events are read from the changes that the view retains (`View.retain`, `View.changes_since`). A
slow reader therefore costs no memory: it falls behind the retained changes and gets a new snapshot.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from axlog.errors import AxlogError, ChannelError
from axlog.live.document import Document
from axlog.live.view import View
from axlog.views.change import Change

ALIVE = 15.0
"""Seconds of silence before a comment is sent, so that a closed connection is noticed."""
AT_ONCE = 500
"""Events that are sent as one part."""


class Bell:
    """Wakes one coroutine after changes of a view, from any thread, once however many they are."""

    def __init__(self, view: View) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._is_due = False
        self.close = view.subscribe(self._ring)

    def _ring(self, change: Change) -> None:
        if not self._is_due:
            self._is_due = True
            try:
                self._loop.call_soon_threadsafe(self._event.set)
            except RuntimeError:
                return  # the loop is closed: the reader is gone

    def reset(self) -> None:
        """Call it before the changes are read, so that no later change is missed."""
        self._event.clear()
        self._is_due = False

    async def wait(self, seconds: float, gone: asyncio.Future[None]) -> bool:
        """Wait for a change, or for the reader to leave; return False if nothing came."""
        rung = asyncio.ensure_future(self._event.wait())
        waiting: list[asyncio.Future[Any]] = [rung, gone]
        first = asyncio.FIRST_COMPLETED
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=first)
        finally:
            rung.cancel()
        return self._event.is_set() or gone.done()


async def followed(
    doc: Document,
    view: View,
    since: int | None,
    gone: asyncio.Future[None],
    check: Callable[[], None],
) -> AsyncIterator[bytes]:
    """Yield the events of a view until the reader leaves, loses its grant, or the view is removed.

    `since` is the position of the last change that the reader has; None: it gets a snapshot.
    """
    bell = Bell(view)
    try:
        while not gone.done():
            bell.reset()
            check()
            if doc.views.get(view.name) is not view:
                yield _event({}, "end")
                return
            try:
                if since is None:
                    since, rows = await asyncio.to_thread(view.snapshot)
                    yield _event({"position": since, "count": len(rows)}, "snapshot")
                    for part in _parts(rows):
                        yield b"".join(_event(each.to_dict()) for each in part)
                    yield _event({"position": since}, "position", since)
                    continue
                changes = await asyncio.to_thread(view.changes_since, since)
            except ChannelError as error:
                since = None
                yield _event({"code": error.code, "detail": error.message}, "gap")
                continue
            for part in _parts(changes):
                since = part[-1].position
                yield b"".join(_event(each.to_dict(), None, each.position) for each in part)
            if not changes and not await bell.wait(ALIVE, gone):
                yield b": alive\n\n"
    except AxlogError as error:
        yield _event({"code": error.code, "detail": error.message}, "gap")
    finally:
        bell.close()


def _parts(changes: list[Change]) -> Iterable[list[Change]]:
    return (changes[at : at + AT_ONCE] for at in range(0, len(changes), AT_ONCE))


def _event(data: dict[str, Any], kind: str | None = None, position: int | None = None) -> bytes:
    head = "" if position is None else f"id: {position}\n"
    head += "" if kind is None else f"event: {kind}\n"
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
