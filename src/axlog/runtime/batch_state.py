"""State on the driver, durable by batches: the counterpart of Spark's state store on executors.

Every bucket has a map from texts to bytes (`timers.Store`). The input of a batch is one record of a
log (`store/log.py`), synced before Spark commits the batch. The writes of the batch are another
record after it, appended when the sinks have accepted the changes. From time to time the whole
state replaces the log. The version of a record is its batch.

Law: for a batch that Spark has committed, either the sinks have its changes, or its input is in the
log. A restart applies and delivers it again (`unfinished`), whether Spark has committed it or not;
sinks recognize its number. Spark repeats a batch that it has not committed, and the batch finds the
same state as before: the log is read up to the previous batch only, and the records of a repeated
batch supersede the first ones. If the log does not lead to the requested version, the query fails.
What precedes a whole state is kept for some batches, so that a checkpoint of Spark that lost its
last moments in a power failure still finds its state. Spark's own files are not read. The log since
the whole state is at most as large as the state, or 1 MB, and the input of one batch: so the
directory has at most twice the state, or the state and 1 MB, and twice that for these batches.

Not handled: two processes with one checkpoint, which Spark's own files do not support either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from axlog.errors import PipelineError, StoreError
from axlog.runtime.packets import pack, unpack
from axlog.store.files import Files
from axlog.store.log import Log
from axlog.store.log_reader import read_log, segments

SMALLEST = 1 << 20
"""The log is never compacted below this size in bytes, else when it is larger than the state."""
KEPT = 4
"""Batches after a whole state, for which that before it is kept."""
PIECE = 1 << 24
"""Approximate bytes of the whole state in one record."""
NOTHING = -1
"""The version before the first batch."""
INPUT = -1
"""Used instead of a part number: the record is the input of a batch."""

Row = tuple[str, bytes]
"""A bucket's key, and its input or output."""

Write = tuple[str, str, bytes | None]
"""Bucket, key, and the value; None if it was removed."""


class Record(NamedTuple):
    """The input of a batch, its writes, or a part of the whole state after it."""

    version: int
    piece: int  # of a whole state, counted from one; 0 for the writes of a batch
    pieces: int  # 0 if it is not part of a whole state
    writes: tuple[Write, ...]


class DurableState:
    """The maps of all buckets."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._log: Log | None = None
        self._maps: dict[str, dict[str, bytes]] = {}
        # whether the state existed before the batch
        self._changed: dict[tuple[str, str], bool] = {}
        self.version = NOTHING
        self.size = 0  # bytes of all values
        self._since = 0  # bytes of log since the last whole state
        self._whole = 0  # the first record of the last whole state
        self._until: int | None = None  # the batch after which nothing before it is needed

    def unfinished(self) -> tuple[int, list[Row]] | None:
        """Restore the last state; return the batch after it and its input, if the log ends with
        one: sinks may not have its changes.
        """
        self._log = Log(self._files)  # cuts off a torn end
        last = self._last()
        if last is None:
            return None
        is_input = last.piece == INPUT
        if not self._restore(last.version - is_input):
            raise _unfit(last.version + 1)
        if not is_input:
            return None
        return last.version, [(bucket, value or b"") for bucket, _, value in last.writes]

    def begin(self, batch: int, rows: Iterable[Row]) -> None:
        """Log the input of a batch; the buckets have the state of the batch before."""
        if self._log is None:
            self._log = Log(self._files)
        if self.version != batch - 1 and not self._restore(batch - 1):
            raise _unfit(batch)
        if self._since > max(SMALLEST, self.size):
            self._write_whole()
        elif self._until is not None and batch > self._until:
            self._log.drop_before(self._whole)
            self._until = None
        self._append(Record(batch, INPUT, 0, tuple([(key, "", body) for key, body in rows])))
        self._changed = {}

    def store(self, bucket: str) -> BucketStore:
        """Return the map of one bucket."""
        return BucketStore(self, bucket, self._maps.setdefault(bucket, {}))

    def commit(self) -> None:
        """The batch is applied and delivered. Its writes need not be on disk before the next
        input.
        """
        found = ((b, k, self._maps[b].get(k), was) for (b, k), was in self._changed.items())
        writes = tuple([(b, k, value) for b, k, value, was in found if was or value is not None])
        self.version += 1
        self._append(Record(self.version, 0, 0, writes), sync=False)

    def _append(self, record: Record, sync: bool = True) -> None:
        assert self._log is not None
        written = pack(tuple(record))
        self._log.append([written], sync=sync)
        self._since += len(written)

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    # What buckets write ---------------------------------------------------------------------------

    def note(self, bucket: str, key: str, before: bytes | None, after: bytes | None) -> None:
        """Record a write of a bucket."""
        self._changed.setdefault((bucket, key), before is not None)
        self.size += len(after or b"") - len(before or b"")

    # The log --------------------------------------------------------------------------------------

    def _restore(self, version: int) -> bool:
        """Load the state of a version; return whether the log leads to it."""
        self._maps, self.version, self.size = {}, NOTHING, 0
        self._since = self._whole = 0
        records, chain = self._chain(version)
        whole = 0
        for number, record in chain:
            if record.piece:
                self._whole, whole = number - record.piece + 1, number
            for bucket, key, value in record.writes:
                self._apply(bucket, key, value)
            self.version = record.version
        self._until = self.version + KEPT if self._whole else None
        later = (record for number, record in records if number > whole)
        self._since = sum(len(value or b"") for each in later for *_, value in each.writes)
        return self.version == version

    def _chain(self, version: int) -> tuple[list[tuple[int, Record]], list[tuple[int, Record]]]:
        """Return the records of as few segments as possible, and those that lead to a version."""
        for records in self._readings() if version != NOTHING else ():
            found = chain_to(records, version)
            if found:
                return records, found
        return [], []

    def _last(self) -> Record | None:
        """Return the last record of the log."""
        return next((records[-1][1] for records in self._readings() if records), None)

    def _readings(self) -> Iterator[list[tuple[int, Record]]]:
        """Yield the records with their numbers: those of the last segment, of the last two, and so
        on.

        Older segments may or may not still exist; compaction was deleting them.
        """
        firsts = segments(self._files)
        for first in reversed(firsts):
            try:
                yield [
                    (number + at, Record(*unpack(written)))
                    for number, frame in read_log(self._files, first - 1)
                    for at, written in enumerate(frame)
                ]
            except StoreError:
                if first == firsts[-1]:
                    raise
                return

    def _apply(self, bucket: str, key: str, value: bytes | None) -> None:
        known = self._maps.setdefault(bucket, {})
        before = known.pop(key, b"")
        if value is not None:
            known[key] = value
        self.size += len(value or b"") - len(before)

    def _write_whole(self) -> None:
        """Replace the log by the whole state; Spark has committed the batch of the version."""
        assert self._log is not None
        first = self._log.rotate()
        pieces = list(_pieces(self._maps))
        for number, writes in enumerate(pieces, 1):
            record = Record(self.version, number, len(pieces), tuple(writes))
            self._log.append([pack(tuple(record))], sync=number == len(pieces))
        self._log.drop_before(self._whole)
        self._whole, self._since, self._until = first, 0, self.version + KEPT


class BucketStore:
    """The map of one bucket, as `bucket_state.Keeper` uses it."""

    def __init__(self, state: DurableState, bucket: str, values: dict[str, bytes]) -> None:
        self._state, self._bucket, self._values = state, bucket, values

    def get(self, key: str) -> bytes | None:
        return self._values.get(key)

    def put(self, key: str, value: bytes) -> None:
        self._state.note(self._bucket, key, self._values.get(key), value)
        self._values[key] = value

    def remove(self, key: str) -> None:
        self._state.note(self._bucket, key, self._values.pop(key, None), None)

    def keys(self) -> Iterable[str]:
        return self._values.keys()


def chain_to(records: list[tuple[int, Record]], version: int) -> list[tuple[int, Record]]:
    """Return the records that lead to a version, from the last whole state or from the beginning.

    If a batch was repeated, only the records after its last repetition count. Empty if no records
    lead to the version.
    """
    found: list[tuple[int, Record]] = []
    wanted = version
    for number, record in reversed(records):
        if record.piece == INPUT and record.version <= wanted:
            return []
        if found and found[-1][1].piece:  # a whole state: all its parts, nothing before it
            if record.piece != found[-1][1].piece - 1 or record.version != wanted:
                break
            found.append((number, record))
        elif record.version == wanted and record.piece == record.pieces:
            found.append((number, record))
            wanted -= 0 if record.piece else 1
        if found and found[-1][1].piece == 1:
            break
    is_led_to = bool(found) and (found[-1][1].piece == 1 or wanted == NOTHING)
    return found[::-1] if is_led_to else []


def _unfit(batch: int) -> PipelineError:
    return PipelineError(
        "AX855",
        f"the state beside the checkpoint does not lead to batch {batch},"
        " at which Spark's checkpoint resumes",
        advice="restore the whole directory of the checkpoint, or use a new one",
    )


def _pieces(maps: dict[str, dict[str, bytes]]) -> Iterator[list[Write]]:
    """Return the whole state in parts; one empty part if there is nothing."""
    piece: list[Write] = []
    size = 0
    for bucket, values in maps.items():
        for key, value in values.items():
            piece.append((bucket, key, value))
            size += len(value)
            if size >= PIECE:
                yield piece
                piece, size = [], 0
    yield piece
