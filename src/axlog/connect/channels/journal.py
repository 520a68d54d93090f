"""A channel's journal on disk: a killed process restarts without loss.

One SQLite file holds the retained entries, the named subscriptions with their acknowledged numbers,
and the last number of every producer. When `publish` returns, the entry is on disk: a kill of the
process loses nothing. A power failure may lose the last moments, unless `sync="full"`. The journal
holds messages, so the file is readable by its owner only (mode 0600). Addresses and secrets of
webhooks are stored elsewhere (`server/webhook_secrets.py`).

Not handled: two processes that open one journal. A channel has one owner.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from axlog.connect.channels.entries import Entry, read_entry
from axlog.errors import ChannelError

VERSION = 1
_STRIDE = 64
_TABLES = """
create table if not exists entries (sequence integer primary key, body text not null);
create table if not exists subscriptions (
    name text primary key, acknowledged integer not null, filter text, options text not null);
create table if not exists producers (
    name text primary key, number integer not null, sequence integer not null);
create table if not exists notes (name text primary key, body text not null);
create table if not exists counters (name text primary key, value integer not null);
"""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A named subscription as stored in the journal."""

    name: str
    acknowledged: int
    filter: str | None
    options: str  # JSON of the server: an address, a lease


class Journal:
    """The journal file of one channel."""

    def __init__(self, path: str | Path, sync: str = "normal") -> None:
        if sync not in ("normal", "full"):
            raise ChannelError("AX807", f"sync={sync!r}", expected="normal or full")
        self.path = Path(path)
        self._cut = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._base = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
            self._base.execute("pragma journal_mode=wal")
            self._base.execute(f"pragma synchronous={sync}")
            self._base.executescript(_TABLES)
        except (OSError, sqlite3.OperationalError) as error:
            raise ChannelError(
                "AX808",
                f"{str(self.path)!r} cannot be opened: {getattr(error, 'strerror', None) or error}",
                advice="check that its directory exists and is writable",
            ) from None
        except sqlite3.DatabaseError as error:
            raise ChannelError(
                "AX806", f"{str(self.path)!r} is not a channel's journal: {error}"
            ) from None
        if self.counter("version", VERSION) != VERSION:
            raise ChannelError("AX806", f"{str(self.path)!r} has another version of the journal")

    def counter(self, name: str, initial: int = 0) -> int:
        """Return the counter of a name."""
        self._base.execute("insert or ignore into counters values (?, ?)", (name, initial))
        found = self._base.execute("select value from counters where name = ?", (name,))
        return int(found.fetchone()[0])

    def append(
        self,
        entries: Sequence[Entry],
        first: int,
        producer: tuple[str, int] | None = None,
        note: tuple[str, str] | None = None,
    ) -> None:
        """Write entries, their producer's number and a note, and drop all entries before `first`.

        Atomic: a crash leaves all of it or nothing.
        """
        with self._transaction() as base:
            base.executemany(
                "insert into entries values (?, ?)", [(e.sequence, e.text) for e in entries]
            )
            if entries:
                last = entries[-1].sequence
                base.execute("insert or replace into counters values ('last', ?)", (last,))
                if producer is not None:
                    given = (*producer, last)
                    base.execute("insert or replace into producers values (?, ?, ?)", given)
            if note is not None:
                base.execute("insert or replace into notes values (?, ?)", note)
            # deleting in strides is cheaper; extra entries do no harm
            if first // _STRIDE != self._cut:
                self._cut = first // _STRIDE
                base.execute("delete from entries where sequence < ?", (first,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._base.execute("begin")
            yield self._base
            self._base.execute("commit")
        except sqlite3.Error as error:  # the disk is full or unavailable
            raise ChannelError(
                "AX808",
                f"{str(self.path)!r} cannot be written: {error}",
                advice="nothing was published: free disk space and publish again",
            ) from error
        finally:
            if self._base.in_transaction:
                self._base.rollback()

    def note(self, name: str) -> str | None:
        """Return the last note stored under a name."""
        found = self._base.execute("select body from notes where name = ?", (name,)).fetchone()
        return None if found is None else str(found[0])

    def entries(self) -> Iterator[Entry]:
        found = self._base.execute("select body from entries order by sequence")
        try:
            for (body,) in found:
                yield read_entry(body)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise ChannelError(
                "AX806", f"{str(self.path)!r} has invalid entries: {error}"
            ) from None

    def producers(self) -> dict[str, tuple[int, int]]:
        """Return the last number of each producer, and the sequence number assigned to it."""
        found = self._base.execute("select name, number, sequence from producers")
        return {name: (number, sequence) for name, number, sequence in found}

    def subscriptions(self) -> list[Remembered]:
        found = self._base.execute("select name, acknowledged, filter, options from subscriptions")
        return [Remembered(*row) for row in found]

    def remember(self, subscription: Remembered) -> None:
        kept = subscription
        row = (kept.name, kept.acknowledged, kept.filter, kept.options)
        self._base.execute("insert or replace into subscriptions values (?, ?, ?, ?)", row)

    def acknowledge(self, name: str, sequence: int) -> None:
        given = (sequence, name)
        self._base.execute("update subscriptions set acknowledged = ? where name = ?", given)

    def forget(self, name: str) -> None:
        self._base.execute("delete from subscriptions where name = ?", (name,))

    def scrub(self) -> None:
        """Rewrite the file, so that replaced data is not recoverable from it."""
        self._base.execute("vacuum")
        self._base.execute("pragma wal_checkpoint(truncate)")

    def close(self) -> None:
        self._base.close()
