"""A channel as the source of a stream, and as the sink of a view.

As a source, its position is a sequence number. Messages dropped by the channel's filter advance the
position but not the document's clock: a source returns updates only. So a source may have a filter
only if the runner learns times in another way. As a sink, a change becomes updates
(`row_updates.py`) with numbers of the batch, so that a repeated batch publishes nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from axlog.connect.channels.protocol import Channel, Subscription
from axlog.connect.channels.row_updates import updates_of
from axlog.connect.protocol import Position, Reading, Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ChannelError
from axlog.match.filters import Filter
from axlog.views.change import Change

_NO_SUBSCRIPTION = "AX805"
_MOST_IN_BATCH = 1 << 24  # Redis counts in floating point


class ChannelSource:
    """The updates of a channel, as the source of a stream."""

    def __init__(
        self, channel: Channel, stream: str, name: str | None = None, wanted: Filter | None = None
    ) -> None:
        self.channel = channel
        self.stream = stream
        self.name = name
        self._wanted = wanted
        self._subscription: Subscription | None = None
        self._at: int | None = None
        self._patterns: tuple[str, ...] | None = None
        self.is_unsubscribed = False

    def read(self, position: Position, limit: int) -> Reading:
        """Return the updates after a number; none once it is unsubscribed."""
        after = int(position or 0)
        if self.is_unsubscribed:
            return Reading((), position)
        try:
            if self._subscription is None:
                self._subscription = self._subscribed(after)
            elif after != self._at:
                self._subscription.seek(after)
            delivery = self._subscription.read(limit)
        except ChannelError:
            # The owner may have restarted without the subscription: the next reading subscribes
            # again.
            self._subscription, self._patterns = None, None
            raise
        self._at = delivery.upto
        updates = [
            StreamUpdate(self.stream, each.update.action, each.update.content, each.update.at,
                         f"{self.channel.name}:{each.sequence}")
            for each in delivery.entries
        ]  # fmt: skip
        refused = [
            Refusal(self.stream, each.content, f"{self.channel.name}:{each.sequence}", each.error)
            for each in delivery.unreadable
        ]
        more = len(updates) + len(refused) == limit
        return Reading(updates, delivery.upto, refused, more)

    def want(self, wanted: tuple[str, ...], made: Filter | None) -> None:
        """Install a filter at the channel, unless it is already installed."""
        if self._subscription is not None and wanted != self._patterns:
            self._subscription.install(made)
            self._patterns = wanted

    @property
    def wants(self) -> tuple[str, ...] | None:
        """The patterns of the filter that `want` installed; None: it installed none."""
        return self._patterns

    def unsubscribe(self) -> None:
        """Unsubscribe: the channel removes the subscription, also that of an earlier run."""
        if self.is_unsubscribed:
            return
        try:
            if self._subscription is None and self.name is not None:
                self._subscription = self._subscribed(0)
            if self._subscription is not None:
                self._subscription.close(forget=True)
        except ChannelError as error:
            if error.code != _NO_SUBSCRIPTION:  # already removed
                raise
        self.is_unsubscribed = True

    def _subscribed(self, after: int) -> Subscription:
        return self.channel.subscribe(self.name, wanted=self._wanted, after=after)

    def committed(self, position: Position) -> None:
        """Acknowledge a position that is in a checkpoint: the channel need not retain entries
        before it.
        """
        if self._subscription is not None and position is not None and not self.is_unsubscribed:
            self._subscription.acknowledge(int(position))

    def close(self) -> None:
        if self._subscription is not None and not self.is_unsubscribed:
            self._subscription.close()


class ChannelSink:
    """Publishes the changes of views to a channel."""

    exactly_once = True

    def __init__(self, channel: Channel, stream: str, producer: str) -> None:
        self.channel = channel
        self.stream = stream
        self.producer = producer

    @property
    def is_needed(self) -> bool:
        """Whether the channel may have readers; a channel on demand knows when it has none."""
        return not getattr(self.channel, "is_abandoned", False)

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Publish the changes of a batch, numbered by the batch, so that none is repeated."""
        updates = [update for change in changes for update in updates_of(change, self.stream)]
        for at, update in enumerate(updates):
            self.channel.publish(update, (self.producer, batch * _MOST_IN_BATCH + at))

    def close(self) -> None:
        self.channel.close()
