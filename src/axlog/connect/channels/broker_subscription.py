"""What subscriptions to brokers share: a place, a filter that runs here, gaps told.

A broker keeps no filters; what the filter drops is read and dropped by the client, and moves time
all the same. Nor does a broker look at what it keeps: a message that is no update is told as such,
and reading goes on behind it.
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
    """A reader with a place of its own; `fetch` gives what is behind it."""

    def __init__(self, name: str | None, wanted: Filter | None, after: int) -> None:
        self.name = name or uuid4().hex
        self.lasts = name is not None
        self.wanted = wanted
        self.seen = after

    @abstractmethod
    def fetch(self, limit: int, timeout: float) -> list[Entry | Unreadable]:
        """What is after `seen`, in order; waits up to `timeout` seconds for something."""

    def looked(self, limit: int, until: float) -> Delivery:
        """What passes the filter; waits for it until a moment of the monotonic clock."""
        clock: int | None = None
        while True:
            left = until - monotonic()
            found = self.fetch(limit, max(left, 0.0))
            if found and found[0].sequence != self.seen + 1:
                first = found[0].sequence
                raise ChannelError(
                    "AX803",
                    f"messages {self.seen + 1} to {first - 1} are not kept any more",
                    advice=f"take the state anew, then seek({first - 1})",
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
        """An entry if the filter lets it pass; one that it cannot read is none."""
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
    """What a broker's message holds: an update with its number, or why it is none."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body or ""
    try:
        if isinstance(body, bytes):
            text = body.decode()
        return Entry(number, read_line(text))
    except (UnicodeDecodeError, OverflowError, AxlogError) as error:
        return no_update(number, text, error)


def no_update(number: int, content: str, error: Exception) -> Unreadable:
    """A message that is no update, with the error that says why."""
    what = error.message if isinstance(error, AxlogError) else str(error)
    told = ConnectorError("AX824", f"message {number} is no update: {what}")
    return Unreadable(number, content, told.describe())
