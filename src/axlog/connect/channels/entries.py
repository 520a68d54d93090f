"""The entries of a channel: numbered updates, and their retention.

An entry is written once as JSON, when it is published; every subscriber receives the same bytes.
`Retained` keeps the newest entries within a number and a size, in an array indexed by sequence
number, so that a subscriber is only a number: the last sequence number it has seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.errors import ChannelError

WHEN_FULL = ("drop", "wait", "refuse")
_SLACK = 1024  # dropped entries before the array is compacted


@dataclass(frozen=True, slots=True)
class Retention:
    """How much a channel retains, and what it does when that is full.

    `drop`: remove the oldest entries; a subscriber that had not read them gets AX803. `wait`:
    publishing waits until every named subscription has acknowledged the oldest entry. `refuse`:
    raise AX802 instead of waiting.
    """

    messages: int = 10_000
    size: int = 64 * 1024 * 1024
    when_full: str = "drop"

    def __post_init__(self) -> None:
        if self.messages < 1 or self.size < 1 or self.when_full not in WHEN_FULL:
            raise ChannelError(
                "AX807",
                f"invalid retention: {self.messages} messages, {self.size} bytes and"
                f" {self.when_full!r} when full",
                expected=f"positive numbers and one of {', '.join(WHEN_FULL)}",
            )


class Entry:
    """A published update: its number, its time, its JSON, and the subscriptions that wanted it."""

    __slots__ = ("sequence", "text", "time", "update", "wanted_by")

    def __init__(
        self,
        sequence: int,
        update: StreamUpdate,
        wanted_by: frozenset[str] = frozenset(),
    ) -> None:
        self.sequence = sequence
        self.update = update
        self.time = None if update.at is None else microseconds(update.at)
        self.wanted_by = wanted_by
        self.text = json.dumps({"sequence": sequence, **plain(update)}, ensure_ascii=False)

    def __repr__(self) -> str:
        return f"Entry({self.sequence}, {self.update.action} for {self.update.stream!r})"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A message at a broker or peer that is not an update; anyone may have written it."""

    sequence: int
    content: str
    error: str


def plain(update: StreamUpdate) -> dict[str, object]:
    """Return an update for JSON; a time without a JSON form is written in seconds."""
    fields = update.plain()
    if update.at is not None and not isinstance(update.at, int | float | str):
        fields["at"] = microseconds(update.at) / 1_000_000
    return fields


def read_entry(text: str) -> Entry:
    """Parse the entry that `Entry.text` wrote."""
    written = json.loads(text)
    sequence = written.pop("sequence")
    return Entry(sequence, StreamUpdate.of(written))


class Retained:
    """The newest entries of a channel, by sequence number."""

    def __init__(self, retention: Retention, last: int = 0) -> None:
        self.retention = retention
        self.last = last  # the last assigned sequence number
        self.size = 0
        self._entries: list[Entry] = []
        self._gone = 0  # dropped entries at the front of the array

    @property
    def first(self) -> int:
        """The sequence number of the oldest entry; one after the last if there is none."""
        return self.last - len(self) + 1

    def __len__(self) -> int:
        return len(self._entries) - self._gone

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)
        self.size += len(entry.text)
        self.last = entry.sequence

    def is_over(self) -> bool:
        """Whether the oldest entry must be dropped; the newest entry never is."""
        keep = self.retention
        return len(self) > 1 and (len(self) > keep.messages or self.size > keep.size)

    def would_be_over(self) -> bool:
        """Whether one more entry of size zero would cause a drop."""
        keep = self.retention
        return len(self) >= keep.messages or self.size > keep.size

    def drop_first(self) -> Entry:
        """Drop and return the oldest entry."""
        entry = self._entries[self._gone]
        self._gone += 1
        self.size -= len(entry.text)
        if self._gone >= _SLACK and 2 * self._gone >= len(self._entries):
            del self._entries[: self._gone]
            self._gone = 0
        return entry

    def after(self, sequence: int, limit: int) -> list[Entry]:
        """Return at most `limit` entries after a sequence number that is still retained."""
        start = self._gone + max(sequence + 1 - self.first, 0)
        return self._entries[start : start + limit]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries[self._gone :])
