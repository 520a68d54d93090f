"""The channel of one process: sequence numbers, subscriptions with filters, retention,
back-pressure.

A subscription is a cursor into the retained entries, not a queue. Two hundred readers cost two
hundred numbers, and a reader that does not read costs nothing until the retention is full. Then the
reader gets a gap error (`when_full="drop"`), or publishing waits for it or is refused. Filters run
once, when a message is published. Only messages published before a filter was installed are matched
when they are read. With a journal all of this survives the process.

The server's channels are of this class; other processes reach them with `http.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Condition
from time import monotonic
from typing import Any
from uuid import uuid4

from axlog.connect.channels.entries import Entry, Retained, Retention
from axlog.connect.channels.journal import Journal, Remembered
from axlog.connect.channels.protocol import Delivery
from axlog.connect.channels.subscription_filters import Wanting, passes
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ChannelError
from axlog.match.filters import Filter

PATIENCE = 30.0
"""Seconds that publishing waits for slow subscribers (`when_full="wait"`)."""


class LocalChannel:
    """A channel owned by this process.

    >>> orders = LocalChannel("orders")
    >>> reader = orders.subscribe()
    >>> orders.publish(StreamUpdate("orders", "insert", "<order/>"))
    1
    >>> reader.read().entries
    [Entry(1, insert for 'orders')]
    """

    def __init__(
        self,
        name: str,
        retention: Retention | None = None,
        journal: Journal | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        patience: float = PATIENCE,
        on_demand: bool = False,
    ) -> None:
        self.name = name
        self.retention = retention or Retention()
        self.patience = patience
        self.limits = limits
        self.is_closed = False
        self.on_demand = on_demand
        self._was_left = False
        self._changed = Condition()
        self._journal = journal
        self._path = None if journal is None else journal.path
        self._wanting = Wanting(limits)
        self._installed: dict[str, Installed] = {}
        self._producers: dict[str, tuple[int, int]] = {}
        self._open: dict[str, LocalSubscription] = {}
        self._named: dict[str, Remembered] = {}
        self._notes: dict[str, str] = {}
        self._followers: set[int] = set()  # readers without a subscription
        self._listeners: list[Callable[[], None]] = []
        self.dropped = 0  # entries dropped before a named subscription acknowledged them
        self._retained = Retained(self.retention)
        if journal is not None:
            self._recall(journal)

    def _recall(self, journal: Journal) -> None:
        """Restore the state of the journal."""
        self._retained = Retained(self.retention, journal.last)
        for entry in journal.entries():
            self._retained.append(entry)
            while self._retained.is_over():
                self._retained.drop_first()
        self._producers = journal.producers()
        for each in journal.subscriptions():
            self._named[each.name] = each
            self._install(each.name, None if each.filter is None else Filter.from_json(each.filter))

    # Publishing -----------------------------------------------------------------------------------

    def publish(self, update: StreamUpdate, producer: tuple[str, int] | None = None) -> int:
        """Assign the next number to an update and store it; see `protocol.Channel`."""
        with self._changed:
            self._check_open()
            if producer is not None:
                number, sequence = self._producers.get(producer[0], (-1, 0))
                if producer[1] <= number:
                    return sequence
            wanted_by = self._wanting.subscribers(update)
            self._make_room()
            entry = Entry(self._retained.last + 1, update, wanted_by)
            # Journal before delivering: a subscriber must never see an entry that a crash could
            # lose.
            if self._journal is not None:
                self._journal.append([entry], self._retained.first, producer)
            self._retain(entry)
            if producer is not None:
                self._producers[producer[0]] = (producer[1], entry.sequence)
            self._changed.notify_all()
        self._notify()
        return entry.sequence

    def publish_all(self, updates: Iterable[StreamUpdate], note: tuple[str, str]) -> None:
        """Publish updates and store a note under a name, atomically; an empty one is dropped."""
        with self._changed:
            self._check_open()
            entries = [
                Entry(self._retained.last + at, update, self._wanting.subscribers(update))
                for at, update in enumerate(updates, 1)
            ]
            if self._journal is not None:
                self._journal.append(entries, self._retained.first, note=note)
            for entry in entries:
                self._retain(entry)
            self._notes[note[0]] = note[1]
            if not note[1]:
                del self._notes[note[0]]
            self._changed.notify_all()
        self._notify()

    def note(self, name: str) -> str | None:
        """Return the last note stored under a name."""
        with self._changed:
            if name not in self._notes and self._journal is not None:
                noted = self._journal.note(name)
                if noted is not None:
                    self._notes[name] = noted
            return self._notes.get(name)

    def notes(self, prefix: str) -> dict[str, str]:
        """Return the notes whose names have a prefix; empty ones are dropped."""
        with self._changed:
            kept = {} if self._journal is None else self._journal.notes(prefix)
            own = {name: body for name, body in self._notes.items() if name.startswith(prefix)}
            return kept | own

    def _retain(self, entry: Entry) -> None:
        self._retained.append(entry)
        while self._retained.is_over():
            gone = self._retained.drop_first()
            if any(each.acknowledged < gone.sequence for each in self._named.values()):
                self.dropped += 1

    def _make_room(self) -> None:
        """Wait or refuse if the oldest entry may not be dropped yet."""
        if self.retention.when_full == "drop":
            return
        until = monotonic() + self.patience
        while self._retained.would_be_over() and self._is_needed(self._retained.first):
            left = until - monotonic()
            if self.retention.when_full == "refuse" or left <= 0:
                raise ChannelError(
                    "AX802",
                    f"the channel {self.name!r} is full: {len(self._retained)} messages,"
                    f" {self._retained.size} bytes are not acknowledged yet",
                    advice="publish again later, or unsubscribe readers that have stopped reading",
                )
            self._changed.wait(left)
            self._check_open()

    def _is_needed(self, sequence: int) -> bool:
        return any(each.acknowledged < sequence for each in self._named.values())

    def _check_open(self) -> None:
        if self.is_closed:
            raise ChannelError("AX804", f"the channel {self.name!r} is closed")

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function after every publication; the returned function stops it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # Subscribing ----------------------------------------------------------------------------------

    def subscribe(
        self,
        name: str | None = None,
        *,
        wanted: Filter | None = None,
        after: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> LocalSubscription:
        """Subscribe. A named subscription is durable and resumes after its acknowledged number.

        Only one reader at a time can use a name: a newer one replaces the older.
        """
        with self._changed:
            self._check_open()
            known = None if name is None else self._named.get(name)
            if after is None:
                after = self._retained.last if known is None else known.acknowledged
            subscription = LocalSubscription(self, name or uuid4().hex, after, name is not None)
            if subscription.name in self._open:
                self._open[subscription.name].is_closed = True
            if wanted is not None:
                self._install(subscription.name, wanted)
            self._open[subscription.name] = subscription
            if subscription.lasts:
                acknowledged = after if known is None else min(known.acknowledged, after)
                kept = known.options if known is not None else "{}"
                encoded = kept if options is None else json.dumps(dict(options))
                self._remember(subscription, acknowledged, encoded)
            return subscription

    def _remember(self, subscription: LocalSubscription, acknowledged: int, encoded: str) -> None:
        installed = self._installed.get(subscription.name)
        text = None if installed is None else installed.text
        self._named[subscription.name] = Remembered(subscription.name, acknowledged, text, encoded)
        if self._journal is not None:
            self._journal.remember(self._named[subscription.name])

    def _install(self, name: str, wanted: Filter | None) -> None:
        """Install a subscription's filter at the source; it lasts as long as the subscription."""
        known = self._installed.pop(name, None)
        if wanted is None:
            self._wanting.remove(name)
            return
        text = wanted.to_json()
        if known is None or known.text != text:
            self._wanting.install(name, wanted)
            known = Installed(wanted, text, self._retained.last)
        self._installed[name] = known

    def unsubscribe(self, name: str) -> None:
        """Remove a subscription with its filter: nothing is retained for it."""
        with self._changed:
            open_one = self._open.pop(name, None)
            if self._named.pop(name, None) is None and open_one is None:
                raise self._no_subscription(name)
            if open_one is not None:
                open_one.is_closed = True
            self._install(name, None)
            self._was_left = True
            if self._journal is not None:
                self._journal.forget(name)
            self._changed.notify_all()
        self._notify()

    def acknowledge(self, name: str, sequence: int) -> None:
        """Record that a named subscription has processed everything up to this number."""
        with self._changed:
            known = self._named.get(name)
            if known is None:
                raise self._no_subscription(name)
            if not 0 <= sequence <= self._retained.last:
                raise ChannelError(
                    "AX805",
                    f"number {sequence} cannot be acknowledged",
                    expected=f"a number from 0 to {self._retained.last}",
                )
            if sequence > known.acknowledged:
                self._named[name] = Remembered(name, sequence, known.filter, known.options)
                if self._journal is not None:
                    self._journal.acknowledge(name, sequence)
                self._changed.notify_all()

    def _no_subscription(self, name: str) -> ChannelError:
        known = ", ".join(sorted(self._named)) or "none"
        return ChannelError(
            "AX805", f"the channel {self.name!r} has no subscription {name!r}", expected=known
        )

    def subscriptions(self) -> dict[str, Remembered]:
        """Return the named subscriptions."""
        with self._changed:
            return dict(self._named)

    def replace_options(self, name: str, options: Mapping[str, Any]) -> None:
        """Replace the options of a subscription; nothing of the old options remains."""
        with self._changed:
            known = self._named[name]
            self._named[name] = replace(known, options=json.dumps(dict(options)))
            if self._journal is not None:
                self._journal.remember(self._named[name])
                self._journal.scrub()

    def newest(self, number: int) -> list[Entry]:
        """Return the newest entries, oldest first."""
        with self._changed:
            return self._retained.after(max(self.first - 1, self.last - number), number)

    # Reading without a subscription (`reader.py`) ------------------------------------------------

    def follow(self, reader: object) -> None:
        """Count a reader without a subscription."""
        with self._changed:
            self._followers.add(id(reader))

    def unfollow(self, reader: object) -> None:
        """Stop counting it."""
        with self._changed:
            self._followers.discard(id(reader))

    def look(
        self, name: str | None, after: int, limit: int
    ) -> tuple[list[Entry], int, bool, Callable[[Entry], bool]]:
        """Return the entries after a number, the end, whether the channel is closed, and the
        filter.

        The filter is that of the subscription `name`. It runs outside the channel's lock.
        """
        with self._changed:
            if name is not None and name not in self._named:  # it was unsubscribed meanwhile
                return [], after, True, _everything
            self._check_kept(after)
            found = self._retained.after(after, limit)
            upto = found[-1].sequence if found else after
            installed = None if name is None else self._installed.get(name)
            ended = self.is_closed and upto >= self._retained.last
        if installed is None:
            return found, upto, ended, _everything
        return found, upto, ended, partial(installed.wants, name or "", limits=self.limits)

    def _check_kept(self, seen: int) -> None:
        """Raise AX803 if entries after `seen` are no longer retained; called with the lock held."""
        first = self._retained.first
        if seen + 1 < first:
            raise ChannelError(
                "AX803",
                f"messages {seen + 1} to {first - 1} of the channel {self.name!r}"
                " are no longer retained",
                advice=f"load the current state, then seek({first - 1})",
            )

    def producers(self, prefix: str) -> set[str]:
        """Return the producers whose names have this prefix."""
        with self._changed:
            return {name for name in self._producers if name.startswith(prefix)}

    @property
    def readers(self) -> int:
        """The number of current readers and named subscriptions."""
        with self._changed:
            return len(self._named.keys() | self._open.keys()) + len(self._followers)

    @property
    def is_abandoned(self) -> bool:
        """Whether it is kept on demand only, and its last subscriber has unsubscribed."""
        return self.on_demand and self._was_left and self.readers == 0

    @property
    def journal_path(self) -> Path | None:
        """The path of its journal."""
        return self._path

    @property
    def first(self) -> int:
        return self._retained.first

    @property
    def last(self) -> int:
        return self._retained.last

    @property
    def size(self) -> int:
        """Bytes of the retained entries."""
        return self._retained.size

    def close(self) -> None:
        """Refuse further publications; retained entries can still be read."""
        with self._changed:
            if not self.is_closed:
                self.is_closed = True
                self._changed.notify_all()
                if self._journal is not None:
                    self._journal.close()
                    self._journal = None
        self._notify()


@dataclass(frozen=True, slots=True)
class Installed:
    """A subscription's filter, and the first number that was matched by it when published."""

    wanted: Filter
    text: str
    after: int

    def wants(self, name: str, entry: Entry, *, limits: Limits) -> bool:
        """Whether an entry passes the filter of the subscription of this name."""
        if entry.sequence > self.after:
            return name in entry.wanted_by
        return passes(self.wanted, entry.update, limits)


def _everything(entry: Entry) -> bool:
    return True


class LocalSubscription:
    """A reader of a channel of this process; created by `LocalChannel.subscribe`."""

    def __init__(self, channel: LocalChannel, name: str, after: int, lasts: bool) -> None:
        self.channel = channel
        self.name = name
        self.lasts = lasts
        self.seen = after
        self.is_closed = False

    def read(self, limit: int = 1000, timeout: float = 0.0) -> Delivery:
        channel = self.channel
        with channel._changed:
            until = monotonic() + timeout
            clock: int | None = None
            while True:
                delivery = self._look(limit)
                if clock is not None:  # the time of entries dropped earlier
                    known = delivery.microseconds
                    clock = max(clock, clock if known is None else known)
                    delivery = replace(delivery, microseconds=clock)
                clock = delivery.microseconds
                if delivery.entries or delivery.is_closed:
                    return delivery
                if self.seen < channel._retained.last:
                    continue
                left = until - monotonic()
                if left <= 0:
                    return delivery
                channel._changed.wait(left)

    def _look(self, limit: int) -> Delivery:
        """Return the available entries; called with the channel's lock held."""
        retained = self.channel._retained
        if self.is_closed:
            return Delivery((), self.seen, is_closed=True)
        self.channel._check_kept(self.seen)
        found = retained.after(self.seen, limit)
        clock = max((each.time for each in found if each.time is not None), default=None)
        if found:
            self.seen = found[-1].sequence
        installed = self.channel._installed.get(self.name)
        if installed is not None:
            limits = self.channel.limits
            found = [entry for entry in found if installed.wants(self.name, entry, limits=limits)]
        ended = self.channel.is_closed and self.seen >= retained.last
        return Delivery(found, self.seen, clock, ended)

    def seek(self, sequence: int) -> None:
        with self.channel._changed:
            self.seen = min(sequence, self.channel._retained.last)

    def acknowledge(self, sequence: int) -> None:
        if self.lasts:
            self.channel.acknowledge(self.name, sequence)
        with self.channel._changed:
            self.seen = max(self.seen, sequence)

    def install(self, wanted: Filter | None) -> None:
        """Replace the filter; it also applies to entries that were published before and not read
        yet.
        """
        channel = self.channel
        with channel._changed:
            channel._install(self.name, wanted)
            known = channel._named.get(self.name)
            if known is not None:
                channel._remember(self, known.acknowledged, known.options)

    def close(self, *, forget: bool = False) -> None:
        channel = self.channel
        with channel._changed:
            if self.is_closed:
                return
            self.is_closed = True
            if channel._open.get(self.name) is not self:
                return
            if not forget:
                del channel._open[self.name]
                if not self.lasts:
                    channel._install(self.name, None)
                return
        channel.unsubscribe(self.name)
