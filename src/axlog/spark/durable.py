"""State on the driver, durable by batches: what Spark's state store is to buckets on executors.

Every bucket has a map of bytes by texts (`timing.Store`). What a batch has changed in any of them
is one record of a log (`store/log.py`), written and synced in one piece before the batch's changes
reach a sink and before Spark notes that the batch is done; now and then all that there is takes the
place of the log. A record's version is its batch.

The log is read when the first batch comes, up to the batch before it and no further: Spark repeats
the batch that it had not noted as done, and that one finds the state that it found. A repeated
batch's record stands behind the first one's, which counts no more. What cannot be brought to the
version that is asked for is refused. The whole that the last one replaced is kept until the next:
a checkpoint of Spark's that lost its last moments with the power still finds its state.

Not handled: two processes at one checkpoint, which Spark's own files do not stand either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from axlog.errors import PipelineError
from axlog.spark.packets import pack, unpack
from axlog.store.files import Files
from axlog.store.log import Log, read_log, segments

SMALLEST = 1 << 20
"""Bytes of log that are always let be."""
TIMES = 4
"""The whole is written when the log since has more than so many times its bytes."""
PIECE = 1 << 24
"""Bytes of the whole in one record, about."""
NOTHING = -1
"""The version before the first batch."""

Write = tuple[str, str, bytes | None]
"""Bucket, key, and the value; None where it was removed."""


class Record(NamedTuple):
    """One record: the writes of a batch, or one of the pieces of all that was there after it."""

    version: int
    piece: int  # of a whole, counted from one; 0 for the writes of a batch
    pieces: int
    writes: tuple[Write, ...]


class DurableState:
    """The maps of all buckets."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._log: Log | None = None
        self._maps: dict[str, dict[str, bytes]] = {}
        self._changed: dict[tuple[str, str], bool] = {}  # whether it was there before the batch
        self.version = NOTHING
        self.size = 0  # bytes of all values
        self._since = 0  # bytes of log since the last whole
        self._whole = 0  # the record that the last whole begins with

    def begin(self, batch: int) -> None:
        """Have the state after the batch before this one."""
        if self._log is None:
            self._log = Log(self._files)  # cuts off what was torn
            self._restore(batch)
        if self.version != batch - 1:
            raise PipelineError(
                "AX855",
                f"the state beside the checkpoint does not lead to batch {batch},"
                " with which Spark's checkpoint goes on",
                advice="restore the checkpoint's directory as a whole, or name a new one",
            )
        self._changed = {}
        if self._since > max(SMALLEST, TIMES * self.size):
            self._write_whole()

    def store(self, bucket: str) -> BucketStore:
        """The map of one bucket."""
        return BucketStore(self, bucket, self._maps.setdefault(bucket, {}))

    def commit(self) -> None:
        """Make the batch that began durable."""
        assert self._log is not None
        found = ((b, k, self._maps[b].get(k), was) for (b, k), was in self._changed.items())
        writes = tuple([(b, k, value) for b, k, value, was in found if was or value is not None])
        self.version += 1
        written = pack(tuple(Record(self.version, 0, 0, writes)))
        self._log.append([written])
        self._since += len(written)

    def close(self) -> None:
        """Let the log go."""
        if self._log is not None:
            self._log.close()

    # What buckets write ---------------------------------------------------------------------------

    def note(self, bucket: str, key: str, before: bytes | None, after: bytes | None) -> None:
        """Take note of what a bucket writes."""
        self._changed.setdefault((bucket, key), before is not None)
        self.size += len(after or b"") - len(before or b"")

    # The log --------------------------------------------------------------------------------------

    def _restore(self, batch: int) -> None:
        """Read the state that a batch goes on from, as far as the log has it."""
        for number, record in self._chain(batch - 1):
            if record.piece:
                self._whole = number - record.piece + 1
                self._since = 0
            else:
                self._since += sum(len(value or b"") for *_, value in record.writes)
            for bucket, key, value in record.writes:
                self._apply(bucket, key, value)
            self.version = record.version

    def _chain(self, version: int) -> list[tuple[int, Record]]:
        """The records that lead to a version, from as few segments as have them.

        Of segments before those nobody knows which of them are left: they were to go.
        """
        for first in reversed(segments(self._files)) if version != NOTHING else ():
            records = [
                (number + at, Record(*unpack(written)))
                for number, frame in read_log(self._files, first - 1)
                for at, written in enumerate(frame)
            ]
            found = chain_to(records, version)
            if found:
                return found
        return []

    def _apply(self, bucket: str, key: str, value: bytes | None) -> None:
        known = self._maps.setdefault(bucket, {})
        before = known.pop(key, b"")
        if value is not None:
            known[key] = value
        self.size += len(value or b"") - len(before)

    def _write_whole(self) -> None:
        """Put all that there is in the log's place; Spark has noted the version's batch as done."""
        assert self._log is not None
        first = self._log.rotate()
        pieces = list(_pieces(self._maps))
        for number, writes in enumerate(pieces, 1):
            record = Record(self.version, number, len(pieces), tuple(writes))
            self._log.append([pack(tuple(record))], sync=number == len(pieces))
        self._log.drop_before(self._whole)
        self._whole, self._since = first, 0


class BucketStore:
    """The map of one bucket, as `state.Keeper` wants it."""

    def __init__(self, state: DurableState, bucket: str, values: dict[str, bytes]) -> None:
        self._state, self._bucket, self._values = state, bucket, values

    def get(self, key: str) -> bytes | None:
        return self._values.get(key)

    def put(self, key: str, value: bytes) -> None:
        self._state.note(self._bucket, key, self._values.get(key), value)
        self._values[key] = value

    def remove(self, key: str) -> None:
        self._state.note(self._bucket, key, self._values.pop(key, None), None)

    def clear(self) -> None:
        for key in list(self._values):
            self.remove(key)


def chain_to(records: list[tuple[int, Record]], version: int) -> list[tuple[int, Record]]:
    """The records that lead to a version, from the last whole before it or from the beginning.

    Later ones count where a version was written twice. Empty where none lead there.
    """
    found: list[tuple[int, Record]] = []
    wanted = version
    for number, record in reversed(records):
        if found and found[-1][1].piece:  # a whole: all its pieces, nothing before it
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


def _pieces(maps: dict[str, dict[str, bytes]]) -> Iterator[list[Write]]:
    """All that there is, in pieces; one that has nothing if there is nothing."""
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
