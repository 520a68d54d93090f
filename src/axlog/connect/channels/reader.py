"""Read a channel without subscribing; the channel does not change.

A `Reader` is a position in the retained entries. Its filter runs when it reads, at its own cost; a
filter at the source needs a subscription. A reader that names a subscription uses that
subscription's filter and position and changes neither: entries that were not acknowledged are read
again.
"""

from __future__ import annotations

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.entries import Entry
from axlog.connect.channels.protocol import Delivery
from axlog.connect.channels.subscription_filters import passes
from axlog.errors import ChannelError
from axlog.match.filters import Filter


class Reader:
    """A position in a channel; as a context manager it counts as one of the channel's readers.

    >>> from axlog.document.stream_update import StreamUpdate
    >>> orders = LocalChannel("orders")
    >>> orders.publish(StreamUpdate("orders", "insert", "<order/>"))
    1
    >>> reader = Reader(orders, after=0)
    >>> reader.read().entries, orders.subscriptions()
    ([Entry(1, insert for 'orders')], {})
    """

    def __init__(
        self,
        channel: LocalChannel,
        name: str | None = None,
        *,
        wanted: Filter | None = None,
        after: int | None = None,
    ) -> None:
        known = None if name is None else channel.subscriptions().get(name)
        if name is not None and known is None:
            raise ChannelError("AX805", f"the channel {channel.name!r} has no such subscription")
        if after is None:
            after = channel.last if known is None else known.acknowledged
        self.channel = channel
        self.name = name
        self.seen = after
        self._wanted = wanted

    def __enter__(self) -> Reader:
        self.channel.follow(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.unfollow(self)

    @property
    def has_filter(self) -> bool:
        """Whether reading has to run a filter."""
        return self._wanted is not None

    def read(self, limit: int = 1000) -> Delivery:
        """Examine at most `limit` entries and return those that pass the filter."""
        found, upto, is_closed, is_wanted = self.channel.look(self.name, self.seen, limit)
        self.seen = upto
        clock = max((each.time for each in found if each.time is not None), default=None)
        entries = [entry for entry in found if is_wanted(entry) and self._passes(entry)]
        return Delivery(entries, upto, clock, is_closed)

    def _passes(self, entry: Entry) -> bool:
        return self._wanted is None or passes(self._wanted, entry.update, self.channel.limits)

    @property
    def is_behind(self) -> bool:
        """Whether more entries are available."""
        return self.seen < self.channel.last
