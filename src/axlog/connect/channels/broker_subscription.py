"""Shared by subscriptions to brokers: a position, a filter in the client, detection of gaps.

A broker runs no filters. The client reads and drops the messages that do not pass; they still
advance the time. A broker does not validate its messages either: a message that is not an update is
reported as such, and reading continues after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from time import monotonic
from uuid import uuid4

from axlog.connect.channels.entries import Entry, Unreadable
from axlog.connect.channels.protocol import Delivery
from axlog.connect.channels.subscription_filters import passes
from axlog.document.stream_update import read_line
from axlog.errors import AxlogError, ChannelError, ConnectorError
from axlog.match.filters import Filter


class Placed(ABC):
    """A reader with its own position; `fetch` returns the messages after it."""

    def __init__(self, name: str | None, wanted: Filter | None, after: int) -> None:
        self.name = name or uuid4().hex
        self.lasts = name is not None
        self.wanted = wanted
        self.seen = after

    @abstractmethod
    def fetch(self, limit: int, timeout: float) -> list[Entry | Unreadable]:
        """Return the messages after `seen`, in order; wait at most `timeout` seconds for one."""

    def looked(self, limit: int, until: float) -> Delivery:
        """Return the messages that pass the filter; wait for them until a monotonic time."""
        clock: int | None = None
        while True:
            left = until - monotonic()
            found = self.fetch(limit, max(left, 0.0))
            if found and found[0].sequence != self.seen + 1:
                first = found[0].sequence
                raise ChannelError(
                    "AX803",
                    f"messages {self.seen + 1} to {first - 1} are no longer retained",
                    advice=f"load the current state, then seek({first - 1})",
                )
            judged = [self._judged(each) for each in found]
            unreadable = [each for each in judged if isinstance(each, Unreadable)]
            entries = [each for each in judged if isinstance(each, Entry)]
            times = [e.time for e in found if isinstance(e, Entry) and e.time is not None]
            clock = max([*times, *([] if clock is None else [clock])], default=None)
            if found:
                self.seen = found[-1].sequence
            if entries or unreadable or left <= 0:
                return Delivery(entries, self.seen, clock, unreadable=unreadable)

    def _judged(self, found: Entry | Unreadable) -> Entry | Unreadable | None:
        """Return an entry if it passes the filter; None if the filter cannot parse it."""
        if self.wanted is None or isinstance(found, Unreadable):
            return found
        try:
            return found if passes(self.wanted, found.update) else None
        except AxlogError as error:
            return Unreadable(found.sequence, str(found.update.content), error.describe())

    def seek(self, sequence: int) -> None:
        self.seen = sequence

    def install(self, wanted: Filter | None) -> None:
        self.wanted = wanted


def read_body(body: bytes | str | None, number: int) -> Entry | Unreadable:
    """Return the content of a broker's message: an update with its number, or the reason why it is
    none.
    """
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body or ""
    try:
        if isinstance(body, bytes):
            text = body.decode()
        return Entry(number, read_line(text))
    except (UnicodeDecodeError, OverflowError, AxlogError) as error:
        return no_update(number, text, error)


def no_update(number: int, content: str, error: Exception) -> Unreadable:
    """A message that is not an update, with the error."""
    what = error.message if isinstance(error, AxlogError) else str(error)
    found = ConnectorError("AX824", f"message {number} is not an update: {what}")
    return Unreadable(number, content, found.describe())
