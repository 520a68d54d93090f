"""The checkpoint of an embedded run: accepted inputs, source positions, delivered batches.

One SQLite file, one transaction per batch, on disk before anything is applied or delivered:

    inputs    every update in the order of application, with its batch
    waiting   updates that were read and are held back for a slower stream
    sources   the position of every source: all before it is in inputs, waiting or refused
    refused   input that is not an update, with the batch that reports it
    snapshot  the widgets after some batch, as parts of bytes (`live/recovery.py`)
    about     format, run, fingerprint of the pipeline, last batch, last delivered batch

An interrupted run resumes as if it had not been interrupted: the widgets are loaded from the last
snapshot, the inputs after it are replayed, and the last batch, if it may not have been delivered,
is delivered again. Inputs before a snapshot are dropped unless they are retained.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from axlog.connect.protocol import Position, Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.errors import PipelineError

FORMAT = 2
"""Format 1 belongs to version 0.1, whose sinks wrote times in microseconds instead of seconds."""
_TABLES = """
create table if not exists about (key text primary key, value text not null);
create table if not exists sources (name text primary key, position text not null);
create table if not exists inputs (
    id integer primary key, batch integer not null, source text not null, stream text not null,
    action text not null, content blob not null, at integer, origin text not null);
create table if not exists waiting (
    id integer primary key, source text not null, stream text not null,
    action text not null, content blob not null, at integer, origin text not null,
    effective integer not null);
create table if not exists refused (
    id integer primary key, batch integer not null, stream text not null, content blob not null,
    origin text not null, error text not null);
create table if not exists snapshot (
    widget text not null, part text not null, data blob not null, primary key (widget, part));
create index if not exists inputs_by_batch on inputs (batch);
create index if not exists refused_by_batch on refused (batch);
"""


@dataclass(frozen=True, slots=True)
class Input:
    """An update in transit: its source, its time (microseconds), and when it was read.

    `read` is in seconds of the process's monotonic clock; 0 after a restart.
    """

    source: str  # with the partition, if it has some
    update: StreamUpdate
    at: int | None
    read: float = 0.0


class Checkpoint:
    """The state of a run in a directory; without a directory, it is lost with the process."""

    def __init__(self, directory: Path | None) -> None:
        self._keeps = directory is not None
        self._lock = None if directory is None else _locked(directory)
        try:
            path = ":memory:" if directory is None else str(directory / "run.sqlite")
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute("pragma synchronous=full")
            self._db.executescript(_TABLES)
            self.run = self.about("run") or uuid4().hex
            if self.about("format") not in (None, FORMAT):
                raise PipelineError(
                    "AX855",
                    f"the checkpoint has format {self.about('format')}, not {FORMAT}",
                    advice="start with a new checkpoint and new sink files",
                )
        except sqlite3.Error as error:
            self.close()
            raise _unusable(directory, error) from None
        except PipelineError:
            self.close()
            raise

    def about(self, key: str) -> Any:
        """Return a fact about the run; None if it is unknown."""
        found = self._db.execute("select value from about where key = ?", (key,)).fetchone()
        return None if found is None else json.loads(found[0])

    @property
    def last(self) -> int | None:
        """The last decided batch."""
        found: int | None = self.about("last")
        return found

    @property
    def delivered(self) -> int | None:
        """The last batch that all sinks are known to have."""
        found: int | None = self.about("delivered")
        return found

    def positions(self) -> dict[str, Position]:
        """Return the position of every source."""
        rows = self._db.execute("select name, position from sources")
        return {name: json.loads(position) for name, position in rows}

    def waiting(self) -> list[tuple[Input, int]]:
        """Return the held-back updates, each with the time of its place in the order."""
        rows = self._db.execute(
            "select source, stream, action, content, at, origin, effective from waiting order by id"
        )
        return [(read_input(row[:6]), row[6]) for row in rows]

    def batches(self, after: int = 0) -> Iterator[tuple[int, list[Input]]]:
        """Return the batches decided after one, in order."""
        for number in range(after + 1, (self.last or 0) + 1):
            yield number, self.batch(number)

    def batch(self, number: int) -> list[Input]:
        """Return the updates of a batch, in order."""
        rows = self._db.execute(
            "select source, stream, action, content, at, origin from inputs"
            " where batch = ? order by id",
            (number,),
        )
        return [read_input(row) for row in rows]

    def refused(self, number: int) -> list[Refusal]:
        """Return the rejected input of a batch."""
        rows = self._db.execute(
            "select stream, content, origin, error from refused where batch = ? order by id",
            (number,),
        )
        return [Refusal(row[0], row[1], row[2], row[3]) for row in rows]

    def begin(self, pipeline: Mapping[str, Any]) -> None:
        """Store the fingerprint of the pipeline; decide batch 0, the initial rows of the
        documents.
        """
        with self._transaction():
            self._note(format=FORMAT, run=self.run, pipeline=pipeline, last=0)

    def fill(self, batch: int, views: Iterable[str], pipeline: Mapping[str, Any]) -> None:
        """Decide a batch that gives added views their current rows."""
        with self._transaction():
            filling = {"batch": batch, "views": list(views)}
            if self.about("dropped") is None:  # an earlier snapshot does not have the views
                self._db.execute("delete from snapshot")
                self._note(saved=None)
            self._note(pipeline=pipeline, last=batch, delivered=batch - 1, filling=filling)

    def renew(self, pipeline: Mapping[str, Any]) -> None:
        """Store the current fingerprint of the pipeline."""
        with self._transaction():
            self._note(pipeline=pipeline)

    def decide(
        self,
        batch: int,
        inputs: Iterable[Input],
        waiting: Iterable[tuple[Input, int]],
        positions: Mapping[str, Position],
        refused: Iterable[Refusal],
    ) -> None:
        """Store a batch before it is applied; the batches before it have been delivered."""
        if not self._keeps:
            return
        with self._transaction():
            self._db.executemany(
                "insert into inputs (batch, source, stream, action, content, at, origin)"
                " values (?, ?, ?, ?, ?, ?, ?)",
                ((batch, *input_row(one)) for one in inputs),
            )
            self._db.execute("delete from waiting")
            self._db.executemany(
                "insert into waiting (source, stream, action, content, at, origin, effective)"
                " values (?, ?, ?, ?, ?, ?, ?)",
                ((*input_row(one), place) for one, place in waiting),
            )
            self._db.executemany(
                "insert into sources values (?, ?)"
                " on conflict (name) do update set position = excluded.position",
                ((name, json.dumps(position)) for name, position in positions.items()),
            )
            self._db.executemany(
                "insert into refused (batch, stream, content, origin, error)"
                " values (?, ?, ?, ?, ?)",
                ((batch, one.stream, one.content, one.origin, one.error) for one in refused),
            )
            self._note(last=batch, delivered=batch - 1)

    def save(
        self,
        batch: int,
        widgets: Mapping[str, Mapping[str, bytes]],
        known: Mapping[str, Any],
        *,
        retains: bool,
    ) -> None:
        """Store the widgets after a delivered batch, with the state of the run."""
        with self._transaction():
            self._db.execute("delete from snapshot")
            self._db.executemany(
                "insert into snapshot values (?, ?, ?)",
                (
                    (widget, part, data)
                    for widget, parts in widgets.items()
                    for part, data in parts.items()
                ),
            )
            self._note(saved={"batch": batch, **known}, delivered=batch)
            if not retains:
                self._db.execute("delete from inputs where batch <= ?", (batch,))
                self._db.execute("delete from refused where batch <= ?", (batch,))
                self._note(dropped=batch)

    def saved(self) -> dict[str, dict[str, bytes]]:
        """Return the parts of the widgets in the last snapshot."""
        found: dict[str, dict[str, bytes]] = {}
        for widget, part, data in self._db.execute("select widget, part, data from snapshot"):
            found.setdefault(widget, {})[part] = data
        return found

    def deliver(self, batch: int) -> None:
        """Record that all sinks have a batch."""
        with self._transaction():
            self._note(delivered=batch)

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def _note(self, **known: Any) -> None:
        self._db.executemany(
            "insert into about values (?, ?)"
            " on conflict (key) do update set value = excluded.value",
            ((key, json.dumps(value)) for key, value in known.items()),
        )

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)


class _Transaction:
    """A transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("begin immediate")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._db.execute("commit" if kind is None else "rollback")


def _locked(directory: Path) -> IO[str]:
    """Lock the checkpoint: two runs would mistake each other's batches for their own."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / "lock").open("w")
    except OSError as error:
        raise _unusable(directory, error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise PipelineError("AX855", f"another run is using the checkpoint {directory}") from None
    return lock


def _unusable(directory: Path | None, error: Exception) -> PipelineError:
    return PipelineError("AX855", f"{directory} cannot be used for a checkpoint: {error}")


def input_row(one: Input) -> tuple[Any, ...]:
    """Return an input as plain values; `read_input` reads it back."""
    update = one.update
    return (one.source, update.stream, update.action, update.content, one.at, update.origin)


def read_input(row: Sequence[Any]) -> Input:
    """Return the input that `input_row` wrote."""
    source, stream, action, content, at, origin = row
    return Input(source, StreamUpdate(stream, action, content, None, origin), at)
