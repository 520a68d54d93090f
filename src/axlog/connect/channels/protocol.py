"""The interface of every channel: in process, over HTTP, or through a broker.

Law: a subscription receives, in the order of their numbers, exactly the updates after its start
that pass its filter. None is repeated unless the reader seeks back, and none is missing without the
error AX803. Updates that the filter drops still advance the time: `Delivery.clock`. A message that
is not an update blocks no reader: it is reported beside the updates (`Delivery.unreadable`), for
the reader's dead letters.

The protocol is that of paper 3, section 2.3.
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
    """The result of one reading of a subscription."""

    entries: Sequence[Entry]
    upto: int  # every entry up to this number was examined
    microseconds: int | None = None  # the latest time of all examined entries, dropped or not
    is_closed: bool = False  # the channel is closed and read to its end
    unreadable: Sequence[Unreadable] = ()  # messages among them that are not updates

    @property
    def clock(self) -> Shown | None:
        """The latest time of all examined entries, in seconds."""
        return None if self.microseconds is None else shown(self.microseconds)

    @property
    def updates(self) -> list[StreamUpdate]:
        return [entry.update for entry in self.entries]


@runtime_checkable
class Subscription(Protocol):
    """One reader of a channel."""

    name: str

    def read(self, limit: int = 1000, timeout: float = 0.0) -> Delivery:
        """Return the entries since the last reading; wait up to `timeout` seconds for the first."""

    def seek(self, sequence: int) -> None:
        """Continue after this number."""

    def acknowledge(self, sequence: int) -> None:
        """Record that everything up to this number was processed; a new reader resumes after it."""

    def install(self, wanted: Filter | None) -> None:
        """Install a filter at the source from now on; None passes everything."""

    def close(self, *, forget: bool = False) -> None:
        """Stop reading. With `forget`, unsubscribe: the channel retains nothing for it."""


@runtime_checkable
class Channel(Protocol):
    """A named flow of updates."""

    name: str

    def publish(self, update: StreamUpdate, producer: tuple[str, int] | None = None) -> int:
        """Publish an update and return its sequence number.

        `producer` is a name and that producer's ascending number: a repetition after a crash is not
        published twice.
        """

    def subscribe(
        self, name: str | None = None, *, wanted: Filter | None = None, after: int | None = None
    ) -> Subscription:
        """Subscribe. A named one resumes after its acknowledged number, others start now."""

    def close(self) -> None:
        """Close files and connections."""
