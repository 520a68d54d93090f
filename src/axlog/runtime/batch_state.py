"""State on the driver, durable by batches: what Spark's state store is to buckets on executors.

Every bucket has a map of bytes by texts (`timing.Store`). What comes for the buckets in a batch is
one record of a log (`store/log.py`), synced before Spark notes that the batch is done; what the
batch has changed in the maps is another one, behind it, written when the sinks have the batch's
changes. Now and then all that there is takes the place of the log. A record's version is its batch.

So a batch that Spark has noted is either told to the sinks, or its input is here: who starts again
applies and tells it again (`missed`), to sinks that know by its number whether they have it. A
batch that Spark had not noted comes from Spark again, and finds the state that it found: the log is
read up to the batch before it and no further, and a repeated batch's records stand behind the first
ones, which count no more. What cannot be brought to the version that is asked for is refused. The
whole that the last one replaced is kept until the next: a checkpoint of Spark's that lost its last
moments with the power still finds its state.

Not handled: two processes at one checkpoint, which Spark's own files do not stand either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from axlog.errors import PipelineError, StoreError
from axlog.runtime.packets import pack, unpack
from axlog.store.files import Files
from axlog.store.log import Log
from axlog.store.log_reader import read_log, segments

SMALLEST = 1 << 23
"""Bytes of log that are always let be."""
TIMES = 4
"""The whole is written when the log since has more than so many times its bytes."""
PIECE = 1 << 24
"""Bytes of the whole in one record, about."""
NOTHING = -1
"""The version before the first batch."""
INPUT = -1
"""In place of a piece's number: what came for the buckets in a batch."""

Row = tuple[str, bytes]
"""A bucket's key, and what is for it or what it says."""

Write = tuple[str, str, bytes | None]
"""Bucket, key, and the value; None where it was removed."""


class Record(NamedTuple):
    """A batch's input, its writes, or one of the pieces of all that was there after it."""

    version: int
    piece: int  # of a whole, counted from one; 0 for the writes of a batch
    pieces: int  # 0 where it is no whole
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

    def missed(self, last: int) -> list[Row] | None:
        """The input of the last batch that Spark has noted as done, if sinks may not have it.

        The state is then that before it.
        """
        self._log = Log(self._files)  # cuts off what was torn
        if self._restore(last):
            return None
        found = self._input(last)
        if found is None or not self._restore(last - 1):
            raise _unfit(last + 1)
        return [(bucket, value or b"") for bucket, _, value in found.writes]

    def begin(self, batch: int, rows: Iterable[Row]) -> None:
        """Note what comes for the buckets in a batch; they have the state after the one before."""
        if self._log is None:
            self._log = Log(self._files)
            self._restore(batch - 1)
        if self.version != batch - 1:
            raise _unfit(batch)
        if self._since > max(SMALLEST, TIMES * self.size):
            self._write_whole()
        self._append(Record(batch, INPUT, 0, tuple([(key, "", body) for key, body in rows])))
        self._changed = {}

    def store(self, bucket: str) -> BucketStore:
        """The map of one bucket."""
        return BucketStore(self, bucket, self._maps.setdefault(bucket, {}))

    def commit(self) -> None:
        """The batch is applied, and told to all; it need not be on disk before the next one's."""
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
        """Let the log go."""
        if self._log is not None:
            self._log.close()

    # What buckets write ---------------------------------------------------------------------------

    def note(self, bucket: str, key: str, before: bytes | None, after: bytes | None) -> None:
        """Take note of what a bucket writes."""
        self._changed.setdefault((bucket, key), before is not None)
        self.size += len(after or b"") - len(before or b"")

    # The log --------------------------------------------------------------------------------------

    def _restore(self, version: int) -> bool:
        """Read the state of a version; whether the log leads there."""
        for number, record in self._chain(version):
            if record.piece:
                self._whole = number - record.piece + 1
                self._since = 0
            else:
                self._since += sum(len(value or b"") for *_, value in record.writes)
            for bucket, key, value in record.writes:
                self._apply(bucket, key, value)
            self.version = record.version
        return self.version == version

    def _chain(self, version: int) -> list[tuple[int, Record]]:
        """The records that lead to a version, from as few segments as have them."""
        for records in self._readings() if version != NOTHING else ():
            found = chain_to(records, version)
            if found:
                return found
        return []

    def _input(self, version: int) -> Record | None:
        """What came for the buckets in a batch, when it came last."""
        for records in self._readings():
            for _, record in reversed(records):
                if (record.version, record.piece) == (version, INPUT):
                    return record
        return None

    def _readings(self) -> Iterator[list[tuple[int, Record]]]:
        """The records with their numbers: those of the last segment, of the last two, and so on.

        Of segments before those that are needed nobody knows which are left: they were to go.
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

    Where a batch came twice, what was before its last coming counts no more. Empty where no records
    lead there.
    """
    found: list[tuple[int, Record]] = []
    wanted = version
    for number, record in reversed(records):
        if record.piece == INPUT and record.version <= wanted:
            return []
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


def _unfit(batch: int) -> PipelineError:
    return PipelineError(
        "AX855",
        f"the state beside the checkpoint does not lead to batch {batch},"
        " with which Spark's checkpoint goes on",
        advice="restore the checkpoint's directory as a whole, or name a new one",
    )


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
