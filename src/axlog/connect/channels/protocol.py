"""What every channel does, whoever carries it (P3 2.3): in process, over HTTP, through a broker.

Law: a subscription is given, in the order of their numbers, exactly the updates after its starting
point that its filter lets pass; none twice unless it asks again from before, none left out without
an error that says so (AX803). What the filter drops still moves time: `Delivery.clock`. What stands
in a channel and is no update holds nobody up: it is told beside the updates
(`Delivery.unreadable`), for the dead letters of whoever reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from axlog.connect.channels.entries import Entry, Unreadable
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import Shown, shown
from axlog.match.filters import Filter


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a subscription is given at once."""

    entries: Sequence[Entry]
    upto: int  # everything up to this number has been looked at
    microseconds: int | None = None  # the latest time of all that was looked at, dropped or not
    is_closed: bool = False  # nothing will come any more
    unreadable: Sequence[Unreadable] = ()  # messages among them that are no updates

    @property
    def clock(self) -> Shown | None:
        """The latest time of all that was looked at, in seconds."""
        return None if self.microseconds is None else shown(self.microseconds)

    @property
    def updates(self) -> list[StreamUpdate]:
        return [entry.update for entry in self.entries]


@runtime_checkable
class Subscription(Protocol):
    """One reader of a channel."""

    name: str

    def read(self, limit: int = 1000, timeout: float = 0.0) -> Delivery:
        """What has come since the last reading; waits up to `timeout` seconds for something."""

    def seek(self, sequence: int) -> None:
        """Read on after this number."""

    def acknowledge(self, sequence: int) -> None:
        """Everything up to this number is safe here; coming back starts after it."""

    def install(self, wanted: Filter | None) -> None:
        """Put a filter at the source, from now on; None for everything."""

    def close(self, *, forget: bool = False) -> None:
        """Stop reading; with `forget` unsubscribe, so that the channel keeps nothing for it."""


@runtime_checkable
class Channel(Protocol):
    """A named flow of updates."""

    name: str

    def publish(self, update: StreamUpdate, producer: tuple[str, int] | None = None) -> int:
        """The number that the update is given.

        `producer` is a name and that producer's own ascending number: what it publishes again after
        a crash is not published twice.
        """

    def subscribe(
        self, name: str | None = None, *, wanted: Filter | None = None, after: int | None = None
    ) -> Subscription:
        """A subscription; a named one goes on after what it acknowledged, others from now on."""

    def close(self) -> None:
        """Let go of files and connections."""
