"""The checkpoint of an embedded run: accepted inputs, source positions, delivered batches.

A checkpoint is a state log (`store/state_log.py`) in a directory. A batch is one record, on disk
before anything of it is applied or delivered:

    batch     its updates in the order of application; the updates that were read and are held back
              for a slower stream; the position of every source, before which everything is in a
              batch, held back or rejected; the rejected input that it reports
    facts     run, fingerprint of the pipeline, last batch, last delivered batch, last snapshot;
              with each batch, the place of the last applied update of every sequence

The whole state is a snapshot: the facts, the positions, the updates that are held back, and the
documents after some batch as parts of bytes (`live/recovery.py`).

An interrupted run resumes as if it had not been interrupted: the documents are loaded from the last
snapshot, the inputs after it are replayed, and the last batch, if it may not have been delivered,
is delivered again. Inputs before a snapshot are dropped unless they are retained.

Not handled: snapshots of 4 GiB or more.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple
from uuid import uuid4

from axlog.connect.protocol import Position, Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.errors import PipelineError, StoreError
from axlog.runtime.order import Place
from axlog.store.files import DiskFiles
from axlog.store.state_log import StateLog

FORMAT = 3
"""Formats 1 and 2 were a SQLite file. Format 1 belongs to version 0.1, whose sinks wrote times in
microseconds instead of seconds.
"""
_BEFORE = "run.sqlite"
_PART = b"part "
"""The beginning of a record that is a part of a document; every other record is JSON."""


@dataclass(frozen=True, slots=True)
class Input:
    """An update in transit: its source, its time (microseconds), and when it was read.

    `read` is in seconds of the process's monotonic clock; 0 after a restart. `placed` is the time
    of the place of an update that has no time or an earlier one, once its turn has come.
    """

    source: str  # with the partition, if it has some
    update: StreamUpdate
    at: int | None
    read: float = 0.0
    placed: int | None = None


Waiting = tuple[Input, int]
"""A held-back update, and the time of its place in the order."""


class Batch(NamedTuple):
    """A decided batch: its updates in order, and the rejected input that it reports."""

    number: int
    inputs: list[Input]
    refused: list[Refusal]


class Checkpoint:
    """The state of a run in a directory; without a directory, it is lost with the process."""

    def __init__(self, directory: Path | None) -> None:
        self._facts: dict[str, Any] = {}
        self._positions: dict[str, Position] = {}
        self._waiting: list[Waiting] = []
        self._parts: dict[str, dict[str, bytes]] = {}
        self._snapshot = 0  # the batch of the last snapshot
        self._log: StateLog | None = None
        self._lock = None if directory is None else _locked(directory)
        try:
            if directory is not None:
                self._load(directory)
        except (OSError, StoreError, ValueError) as error:
            self.close()
            raise _unusable(directory, error) from None
        except PipelineError:
            self.close()
            raise
        self.run: str = self.about("run") or uuid4().hex

    def _load(self, directory: Path) -> None:
        if (directory / _BEFORE).exists():
            raise PipelineError(
                "AX855",
                f"the checkpoint {directory} has the format of an earlier version ({_BEFORE}),"
                f" not format {FORMAT}",
                advice="start with a new checkpoint and new sink files",
            )
        self._log = StateLog(DiskFiles(directory), "checkpoint", FORMAT)
        if self._log.is_new:
            self._log.replace([])
        for number, records in enumerate(self._log.changes()):
            for record in records:
                self._apply(record)
            if not number:
                self._snapshot = (self.about("saved") or {}).get("batch", 0)

    def _apply(self, record: bytes) -> None:
        if record.startswith(_PART):
            name, _, data = record.removeprefix(_PART).partition(b"\n")
            document, part = json.loads(name)
            self._parts.setdefault(document, {})[part] = data
            return
        kind, *given = json.loads(record)
        if kind == "batch":
            number, _, waiting, positions, _ = given
            self._positions |= positions
            self._waiting = [(read_input(row), place) for row, place in waiting]
            self._facts |= {"last": number, "delivered": number - 1}
        elif kind == "sources":
            self._positions, waiting = given
            self._waiting = [(read_input(row), place) for row, place in waiting]
        else:
            self._facts |= given[0]

    def about(self, key: str) -> Any:
        """Return a fact about the run; None if it is unknown."""
        return self._facts.get(key)

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
        return dict(self._positions)

    def places(self) -> dict[str, Place]:
        """Return the place of the last applied update of every source and partition."""
        found: dict[str, list[Any]] = self.about("places") or {}
        return {source: (time, stream) for source, (time, stream) in found.items()}

    def waiting(self) -> list[Waiting]:
        """Return the held-back updates, in order."""
        return list(self._waiting)

    def batches(self, after: int = 0) -> Iterator[Batch]:
        """Return the batches decided after one, in order; one whose input was dropped is empty."""
        following, last = after + 1, self.last or 0
        is_before = after < self._snapshot
        changes = () if self._log is None else self._log.changes(retained=is_before)
        for record in (one for records in changes for one in records):
            if record.startswith(_PART):
                continue
            kind, *given = json.loads(record)
            if kind == "batch" and given[0] >= following:
                number, inputs, _, _, refused = given
                yield from (Batch(missing, [], []) for missing in range(following, number))
                yield Batch(
                    number,
                    [read_input(row) for row in inputs],
                    [Refusal(row[0], _content(row[1]), *row[2:]) for row in refused],
                )
                following = number + 1
        yield from (Batch(missing, [], []) for missing in range(following, last + 1))

    def begin(self, pipeline: Mapping[str, Any]) -> None:
        """Store the fingerprint of the pipeline; decide batch 0, the initial rows of the
        documents.
        """
        self._note(run=self.run, pipeline=pipeline, last=0)

    def fill(self, batch: int, views: Iterable[str], pipeline: Mapping[str, Any]) -> None:
        """Decide a batch that gives added views their current rows."""
        filling = {"batch": batch, "views": list(views)}
        known = {"pipeline": pipeline, "last": batch, "delivered": batch - 1, "filling": filling}
        if self.about("dropped") is None:  # an earlier snapshot does not have the views
            known["saved"] = None
        self._note(**known)

    def renew(self, pipeline: Mapping[str, Any]) -> None:
        """Store the current fingerprint of the pipeline."""
        self._note(pipeline=pipeline)

    def decide(
        self,
        batch: int,
        inputs: Iterable[Input],
        waiting: Sequence[Waiting],
        places: Mapping[str, Place],
        positions: Mapping[str, Position],
        refused: Iterable[Refusal],
    ) -> None:
        """Store a batch before it is applied; the batches before it have been delivered."""
        if self._log is None:
            return
        record = [
            "batch",
            batch,
            [input_row(one) for one in inputs],
            [[input_row(one), place] for one, place in waiting],
            positions,
            [[one.stream, _plain(one.content), one.origin, one.error] for one in refused],
        ]
        self._log.append([_record(*record), _record("facts", {"places": places})])
        self._positions |= positions
        self._waiting = list(waiting)
        self._facts |= {"last": batch, "delivered": batch - 1, "places": dict(places)}

    def save(
        self,
        batch: int,
        documents: Mapping[str, Mapping[str, bytes]],
        known: Mapping[str, Any],
        *,
        retains: bool,
    ) -> None:
        """Store the documents after a delivered batch, with the state of the run."""
        self._facts |= {"saved": {"batch": batch, **known}, "delivered": batch}
        if not retains:
            self._facts["dropped"] = batch
        if self._log is not None:
            waiting = [[input_row(one), place] for one, place in self._waiting]
            parts = [
                _PART + json.dumps([document, part]).encode() + b"\n" + data
                for document, each in documents.items()
                for part, data in each.items()
            ]
            sources = _record("sources", self._positions, waiting)
            whole = [_record("facts", self._facts), sources, *parts]
            self._log.replace(whole, retains=retains)
            self._snapshot = batch

    def saved(self) -> dict[str, dict[str, bytes]]:
        """Return the parts of the documents in the snapshot that this run starts from."""
        found, self._parts = self._parts, {}
        return found

    def deliver(self, batch: int) -> None:
        """Record that all sinks have a batch."""
        self._note(delivered=batch)

    def close(self) -> None:
        """Close the files."""
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._lock is not None:
            self._lock.close()

    def _note(self, **known: Any) -> None:
        if self._log is not None:
            self._log.append([_record("facts", known)])
        self._facts |= known


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
    reason = error.message if isinstance(error, StoreError) else error
    return PipelineError("AX855", f"{directory} cannot be used for a checkpoint: {reason}")


def _record(*plain: Any) -> bytes:
    return json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _plain(content: str | bytes) -> str | list[str]:
    """Return the content of an update for JSON; bytes as a list of one text."""
    return content if isinstance(content, str) else [content.decode("latin-1")]


def _content(plain: str | list[str]) -> str | bytes:
    return plain if isinstance(plain, str) else plain[0].encode("latin-1")


def input_row(one: Input) -> list[Any]:
    """Return an input for JSON; `read_input` reads it back."""
    update = one.update
    content = _plain(update.content)
    placed = [] if one.placed is None else [one.placed]
    return [one.source, update.stream, update.action, content, one.at, update.origin, *placed]


def read_input(row: Sequence[Any]) -> Input:
    """Return the input that `input_row` wrote."""
    source, stream, action, content, at, origin, *rest = row
    update = StreamUpdate(stream, action, _content(content), None, origin)
    return Input(source, update, at, placed=rest[0] if rest else None)
