"""What a channel holds: numbered updates, and how much of them it keeps.

An entry is written once as JSON, when it is published; every subscriber is sent the same bytes.
`Retained` keeps the newest entries within a number and a size, in an array indexed by sequence
number, so that a subscriber is no more than a number: the last sequence it has seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.errors import ChannelError

WHEN_FULL = ("drop", "wait", "refuse")
_SLACK = 1024  # entries that may have left before the array is cut


@dataclass(frozen=True, slots=True)
class Retention:
    """How much a channel keeps for those who come back, and what it does when that is full.

    `drop`: the oldest entries go; a subscriber who had not read them is told so (AX803). `wait`:
    publishing waits until every named subscription has acknowledged the oldest. `refuse`: it raises
    AX802 instead of waiting.
    """

    messages: int = 10_000
    size: int = 64 * 1024 * 1024
    when_full: str = "drop"

    def __post_init__(self) -> None:
        if self.messages < 1 or self.size < 1 or self.when_full not in WHEN_FULL:
            raise ChannelError(
                "AX807",
                f"no channel can keep {self.messages} messages, {self.size} bytes and"
                f" {self.when_full!r} when full",
                expected=f"positive numbers and one of {', '.join(WHEN_FULL)}",
            )


class Entry:
    """One published update: its number, its time, its JSON, and who wanted it when it came."""

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
    """What stands in an update's place at a broker or peer: anybody may have written it there."""

    sequence: int
    content: str
    error: str


def plain(update: StreamUpdate) -> dict[str, object]:
    """An update for JSON; a time that JSON has no form for is written in seconds."""
    said = update.plain()
    if update.at is not None and not isinstance(update.at, int | float | str):
        said["at"] = microseconds(update.at) / 1_000_000
    return said


def read_entry(text: str) -> Entry:
    """The entry that `Entry.text` wrote."""
    written = json.loads(text)
    sequence = written.pop("sequence")
    return Entry(sequence, StreamUpdate.of(written))


class Retained:
    """The newest entries of a channel, by sequence number."""

    def __init__(self, retention: Retention, last: int = 0) -> None:
        self.retention = retention
        self.last = last  # the sequence number given out last
        self.size = 0
        self._entries: list[Entry] = []
        self._gone = 0  # entries at the front of the array that have left

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
        """Whether something must leave; the newest entry never does."""
        keep = self.retention
        return len(self) > 1 and (len(self) > keep.messages or self.size > keep.size)

    def would_be_over(self) -> bool:
        """Whether one more entry of no size would make something leave."""
        keep = self.retention
        return len(self) >= keep.messages or self.size > keep.size

    def drop_first(self) -> Entry:
        """The oldest entry, which leaves."""
        entry = self._entries[self._gone]
        self._gone += 1
        self.size -= len(entry.text)
        if self._gone >= _SLACK and 2 * self._gone >= len(self._entries):
            del self._entries[: self._gone]
            self._gone = 0
        return entry

    def after(self, sequence: int, limit: int) -> list[Entry]:
        """At most `limit` entries after a sequence number that is still within reach."""
        start = self._gone + max(sequence + 1 - self.first, 0)
        return self._entries[start : start + limit]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries[self._gone :])
