"""A channel's journal on disk: a killed process restarts without loss.

A journal is a state log (`store/state_log.py`) in a directory of its own. It holds the retained
entries, the named subscriptions with their acknowledged numbers, and the last number of every
producer. When `publish` returns, the entry is written: a kill of the process loses nothing. A power
failure may lose the last moments, unless `sync="full"`. The journal holds messages, so only its
owner can read the directory and its files (modes 0700 and 0600). Addresses and secrets of webhooks
are stored elsewhere (`server/webhook_secrets.py`).

A journal of version 1, a SQLite file, is migrated when it is opened; the file stays beside it as
`NAME.version-1`.

Not handled: two processes that open one journal. A channel has one owner.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from axlog.connect.channels.entries import Entry, read_entry
from axlog.errors import ChannelError, StoreError
from axlog.store.files import DiskFiles, Files
from axlog.store.state_log import StateLog

VERSION = 2
"""Version 1 was a SQLite file."""
_KIND = "journal"
_STRIDE = 64
_POLICIES = {"normal": "off", "full": "always"}
"""Policies of the log; with `off` a killed process loses nothing, as every write is unbuffered."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A named subscription as stored in the journal."""

    name: str
    acknowledged: int
    filter: str | None
    options: str  # JSON of the server: an address, a lease


class _State:
    """The content of a journal."""

    def __init__(self) -> None:
        self.last = 0
        self.entries: dict[int, str] = {}
        self.subscriptions: dict[str, Remembered] = {}
        self.producers: dict[str, tuple[int, int]] = {}
        self.notes: dict[str, str] = {}

    def records(self) -> Iterator[list[Any]]:
        """The whole state as records."""
        yield ["last", self.last]
        yield from (["entry", sequence, text] for sequence, text in self.entries.items())
        yield from (["subscription", *astuple(one)] for one in self.subscriptions.values())
        yield from (["producer", name, *given] for name, given in self.producers.items())
        yield from (["note", name, body] for name, body in self.notes.items())

    def apply(self, kind: str, *given: Any) -> None:
        """Apply one record."""
        match kind, given:
            case "last", (int(sequence),):
                self.last = sequence
            case "entry", (int(sequence), str(text)):
                self.entries[sequence] = text
                self.last = max(self.last, sequence)
            case "first", (int(first),):
                self.entries = {n: text for n, text in self.entries.items() if n >= first}
            case "subscription", (str(name), int(acknowledged), wanted, str(options)):
                self.subscriptions[name] = Remembered(name, acknowledged, wanted, options)
            case "acknowledged", (str(name), int(sequence)):
                if name in self.subscriptions:
                    known = self.subscriptions[name]
                    self.subscriptions[name] = replace(known, acknowledged=sequence)
            case "forgotten", (str(name),):
                self.subscriptions.pop(name, None)
            case "producer", (str(name), int(number), int(sequence)):
                self.producers[name] = (number, sequence)
            case "note", (str(name), str(body)):
                self.notes[name] = body
                if not body:
                    del self.notes[name]
            case _:
                raise ValueError(f"there is no record {kind!r} with {len(given)} values")


class Journal:
    """The journal of one channel."""

    def __init__(
        self, path: str | Path, sync: str = "normal", *, files: Files | None = None
    ) -> None:
        """`files` replaces the directory, for tests."""
        if sync not in _POLICIES:
            raise ChannelError("AX807", f"sync={sync!r}", expected="normal or full")
        self.path = Path(path)
        self._cut = 0
        self._state = _State()
        try:
            if files is None:
                _migrate(self.path)
                files = DiskFiles(self.path, private=True)
            self._log = StateLog(files, _KIND, VERSION, _POLICIES[sync])
        except OSError as error:
            raise ChannelError(
                "AX808",
                f"{str(self.path)!r} cannot be opened: {error.strerror or error}",
                advice="check that its directory exists and is writable",
            ) from None
        except StoreError as error:
            raise self._unread(error.message) from None
        if self._log.is_new:
            self._write_whole()
            return
        try:
            for records in self._log.changes():
                for record in records:
                    self._state.apply(*json.loads(record))
        except (RecursionError, TypeError, ValueError, StoreError) as error:
            self._log.close()
            raise self._unread(error) from None

    def _unread(self, error: object) -> ChannelError:
        return ChannelError("AX806", f"{str(self.path)!r} is not a channel's journal: {error}")

    @property
    def last(self) -> int:
        """The number of the last entry that was written."""
        return self._state.last

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
        records: list[list[Any]] = [["entry", e.sequence, e.text] for e in entries]
        if entries and producer is not None:
            records.append(["producer", *producer, entries[-1].sequence])
        if note is not None:
            records.append(["note", *note])
        # dropping in strides is cheaper; extra entries do no harm
        cut = first // _STRIDE
        if cut != self._cut:
            records.append(["first", first])
        self._write(*records)
        self._cut = cut

    def _write(self, *records: list[Any]) -> None:
        """Write a change; nothing has changed on an error."""
        if records:
            try:
                self._log.append([_record(one) for one in records])
            except StoreError as error:  # the disk is full or unavailable
                raise self._unwritten(error) from error
            for one in records:
                self._state.apply(*one)
            if self._log.is_long:
                self._write_whole()

    def _write_whole(self) -> None:
        try:
            self._log.replace([_record(one) for one in self._state.records()])
        except StoreError as error:
            raise self._unwritten(error) from error

    def _unwritten(self, error: StoreError) -> ChannelError:
        return ChannelError(
            "AX808",
            f"{str(self.path)!r} cannot be written: {error.message}",
            advice="nothing was published: free disk space and publish again",
        )

    def note(self, name: str) -> str | None:
        """Return the last note stored under a name; an empty one is dropped."""
        return self._state.notes.get(name)

    def notes(self, prefix: str) -> dict[str, str]:
        """Return the notes whose names have a prefix."""
        return {name: body for name, body in self._state.notes.items() if name.startswith(prefix)}

    def entries(self) -> Iterator[Entry]:
        """Return the retained entries, in order."""
        try:
            for sequence, text in sorted(self._state.entries.items()):
                entry = read_entry(text)
                self._state.entries[sequence] = entry.text  # one text, shared with the channel
                yield entry
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise ChannelError(
                "AX806", f"{str(self.path)!r} has invalid entries: {error}"
            ) from None

    def producers(self) -> dict[str, tuple[int, int]]:
        """Return the last number of each producer, and the sequence number assigned to it."""
        return dict(self._state.producers)

    def subscriptions(self) -> list[Remembered]:
        """Return the named subscriptions."""
        return list(self._state.subscriptions.values())

    def remember(self, subscription: Remembered) -> None:
        """Store a named subscription."""
        self._write(["subscription", *astuple(subscription)])

    def acknowledge(self, name: str, sequence: int) -> None:
        """Store the last number that a subscription has acknowledged."""
        self._write(["acknowledged", name, sequence])

    def forget(self, name: str) -> None:
        """Remove a named subscription."""
        self._write(["forgotten", name])

    def scrub(self) -> None:
        """Write the whole state again, so that replaced data is not recoverable from the files."""
        self._write_whole()

    def close(self) -> None:
        """Close the files."""
        self._log.close()

    def __del__(self) -> None:
        if hasattr(self, "_log"):  # dropped without `close`: everything is written
            self._log.abandon()


def _record(plain: list[Any]) -> bytes:
    return json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass")


# Version 1 ----------------------------------------------------------------------------------------


def _migrate(path: Path) -> None:
    """Replace the SQLite file of version 1 by a directory.

    The directory is complete before the file is renamed, so a crash leaves one of them.
    """
    made, old = (path.with_name(f"{path.name}.{end}") for end in ("migrating", "version-1"))
    if path.is_file():
        state = _read_version_1(path)
        shutil.rmtree(made, ignore_errors=True)
        log = StateLog(DiskFiles(made, private=True), _KIND, VERSION)
        log.replace([_record(one) for one in state.records()])
        log.close()
        path.rename(old)
    if not path.exists() and old.exists() and made.is_dir():
        made.rename(path)


def _read_version_1(path: Path) -> _State:
    state = _State()
    try:
        with closing(sqlite3.connect(path)) as base:
            counters = dict(base.execute("select name, value from counters"))
            if counters.get("version") != 1:
                raise ChannelError("AX806", f"{str(path)!r} has another version of the journal")
            for kind, columns in (
                ("entry", "sequence, body from entries order by sequence"),
                ("subscription", "name, acknowledged, filter, options from subscriptions"),
                ("producer", "name, number, sequence from producers"),
                ("note", "name, body from notes"),
            ):
                for row in base.execute(f"select {columns}"):
                    state.apply(kind, *row)
            state.last = max(state.last, counters.get("last", 0))
    except (sqlite3.Error, ValueError) as error:
        raise ChannelError("AX806", f"{str(path)!r} is not a channel's journal: {error}") from None
    return state
