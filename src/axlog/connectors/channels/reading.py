"""What subscriptions to brokers share: a place, a filter that runs here, gaps told.

A broker keeps no filters; what the filter drops is read and dropped by the client, and moves time
all the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from time import monotonic
from uuid import uuid4

from axlog.channels.entries import Entry
from axlog.channels.protocol import Delivery
from axlog.channels.updates import StreamUpdate, read_line
from axlog.channels.wanting import passes
from axlog.errors import ChannelError, ConnectorError, StreamError
from axlog.matching.filters import Filter


class Placed(ABC):
    """A reader with a place of its own; `fetch` gives what is behind it."""

    def __init__(self, name: str | None, wanted: Filter | None, after: int) -> None:
        self.name = name or uuid4().hex
        self.lasts = name is not None
        self.wanted = wanted
        self.seen = after

    @abstractmethod
    def fetch(self, limit: int, timeout: float) -> list[Entry]:
        """Entries after `seen`, in order; waits up to `timeout` seconds for some."""

    def looked(self, limit: int, until: float) -> Delivery:
        """What passes the filter; waits for it until a moment of the monotonic clock."""
        clock: int | None = None
        while True:
            left = until - monotonic()
            entries = self.fetch(limit, max(left, 0.0))
            if entries and entries[0].sequence != self.seen + 1:
                first = entries[0].sequence
                raise ChannelError(
                    "AX803",
                    f"messages {self.seen + 1} to {first - 1} are not kept any more",
                    advice=f"take the state anew, then seek({first - 1})",
                )
            times = [each.time for each in entries if each.time is not None]
            clock = max([*times, *([] if clock is None else [clock])], default=None)
            if entries:
                self.seen = entries[-1].sequence
            if self.wanted is not None:
                wanted = self.wanted
                entries = [each for each in entries if passes(wanted, each.update)]
            if entries or left <= 0:
                return Delivery(entries, self.seen, clock)

    def seek(self, sequence: int) -> None:
        self.seen = sequence

    def install(self, wanted: Filter | None) -> None:
        self.wanted = wanted


def read_body(body: bytes | str | None, number: int) -> StreamUpdate:
    """The update that a broker's message holds: anybody may have written it there."""
    try:
        return read_line(body.decode() if isinstance(body, bytes) else body or "")
    except (UnicodeDecodeError, StreamError) as error:
        what = error.message if isinstance(error, StreamError) else str(error)
        raise ConnectorError(
            "AX824",
            f"message {number} is no update: {what}",
            advice=f"look at it, then seek({number}) to go on behind it",
        ) from None
