"""The append-only log: numbered records in frames that are written and synced whole.

A log is a row of segments `log-NUMBER.axlog`; the number is that of the segment's first record.

    segment   "axlog log\n", version (2 bytes), salt (8), first record (8), checksum (4)
    frame     "AXFR", records (4), bytes (4), first record (8), last record synced before (8),
              checksum (4), checksum of the body (4)
    body      for each record its size (4) and its bytes

Integers are big-endian, checksums CRC-32 over the salt and what they cover. The salt is drawn for
each segment, so that nobody can put bytes into a record that look like a frame of the log.

A crash can tear what was not synced, and only that: when the log is opened, a bad frame and all
behind it are cut off, unless a good frame behind it says that it had been synced. That is damage,
and refused with its place.

Policies: `always`: a record is on disk before `append` returns. `batch`: it has been given to the
system, and reaches the disk within `INTERVAL`; a killed process loses nothing, a power failure the
last moments. `off`: the system writes when it likes.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Event, Lock, Thread
from time import perf_counter

from axlog.errors import StoreError
from axlog.reporting import Durations
from axlog.store.files import Appending, Files

VERSION = 1
POLICIES = ("always", "batch", "off")
INTERVAL = 0.05
"""Seconds between two syncs of the policy `batch`."""

_TITLE = b"axlog log\n"
_HEAD = struct.Struct(f">{len(_TITLE)}sH8sQ")
_MARK = b"AXFR"
_FRAME = struct.Struct(">4sIIQQ")
_SUM = struct.Struct(">I")
_FRAME_SIZE = _FRAME.size + 2 * _SUM.size
HEAD_SIZE = _HEAD.size + _SUM.size
_PREFIX, _SUFFIX = "log-", ".axlog"


def segment_name(first: int) -> str:
    """The name of the segment that starts with a record."""
    return f"{_PREFIX}{first:016d}{_SUFFIX}"


def segments(files: Files) -> list[int]:
    """The first records of the segments that are there, in order."""
    found = []
    for name in files.names():
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            number = name[len(_PREFIX) : -len(_SUFFIX)]
            if number.isdecimal():
                found.append(int(number))
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Frame:
    """Records that were written together; `start` is where the frame stands in its segment."""

    first: int
    synced: int
    records: tuple[bytes, ...]
    start: int
    end: int


class SegmentReader:
    """The frames of one segment; `end` is where the good ones end, once all were read."""

    def __init__(self, name: str, data: bytes, is_last: bool) -> None:
        self.name = name
        self.end = 0
        self.is_empty = False  # the crash came before its head was whole
        self._data = data
        self._is_last = is_last
        self._salt = b""
        self.first = self.next = 0
        self._read_head()

    def _read_head(self) -> None:
        data = self._data
        if len(data) >= HEAD_SIZE:
            title, version, self._salt, self.first = _HEAD.unpack_from(data)
            (checked,) = _SUM.unpack_from(data, _HEAD.size)
            if title == _TITLE and checked == zlib.crc32(data[: _HEAD.size]):
                if version != VERSION:
                    raise StoreError(
                        "AX872",
                        f"{self.name} is of version {version}",
                        expected=f"version {VERSION}",
                        advice="open it with the axlog that wrote it",
                    )
                self.end = HEAD_SIZE
                self.next = self.first
                return
        if not self._is_last or (len(data) > HEAD_SIZE and data.strip(b"\0")):
            raise StoreError("AX871", f"{self.name} has no head of a log", advice=_ADVICE)
        self.is_empty = True

    def frames(self) -> Iterator[Frame]:
        """The frames in order; a torn end is left out, any other damage is refused."""
        while not self.is_empty and self.end < len(self._data):
            frame = self._frame(self.end)
            if frame is None:
                self._refuse_unless_torn()
                return
            if frame.first != self.next:
                raise StoreError(
                    "AX871",
                    f"{self.name} goes on with record {frame.first} at byte {frame.start}",
                    expected=f"record {self.next}",
                    advice=_ADVICE,
                )
            self.next += len(frame.records)
            self.end = frame.end
            yield frame

    def _frame(self, start: int) -> Frame | None:
        data = self._data
        if len(data) < start + _FRAME_SIZE:
            return None
        mark, count, size, first, synced = _FRAME.unpack_from(data, start)
        head = data[start : start + _FRAME.size]
        (checked,) = _SUM.unpack_from(data, start + _FRAME.size)
        at = start + _FRAME_SIZE
        if mark != _MARK or checked != _checksum(self._salt, head) or len(data) < at + size:
            return None
        (of_body,) = _SUM.unpack_from(data, start + _FRAME.size + _SUM.size)
        body = data[at : at + size]
        if of_body != _checksum(self._salt, body):
            return None
        records = _split(body)
        return Frame(first, synced, records, start, at + size) if len(records) == count else None

    def _refuse_unless_torn(self) -> None:
        at, was_synced = self._data.find(_MARK, self.end + 1), not self._is_last
        while at >= 0 and not was_synced:
            frame = self._frame(at)
            was_synced = frame is not None and frame.synced >= self.next
            at = self._data.find(_MARK, at + 1)
        if was_synced:
            raise StoreError(
                "AX871",
                f"{self.name} is damaged at byte {self.end}, in record {self.next}",
                advice=_ADVICE,
            )


_ADVICE = "restore the directory from a copy; what is before this place can be read by axlog replay"


def _checksum(salt: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(salt))


def _split(body: bytes) -> tuple[bytes, ...]:
    found, at = [], 0
    while at < len(body):
        (size,) = _SUM.unpack_from(body, at)
        at += _SUM.size
        found.append(body[at : at + size])
        at += size
    return tuple(found)


def read_log(files: Files, after: int = 0) -> Iterator[tuple[int, tuple[bytes, ...]]]:
    """The frames behind a record, each with the number of its first record; nothing is changed."""
    firsts = segments(files)
    for number, first in enumerate(firsts):
        is_last = number == len(firsts) - 1
        if not is_last and firsts[number + 1] <= after + 1:
            continue
        reader = SegmentReader(segment_name(first), files.read(segment_name(first)), is_last)
        for frame in reader.frames():
            if frame.first > after:
                yield frame.first, frame.records
        if not is_last and reader.next != firsts[number + 1]:
            raise StoreError(
                "AX871",
                f"records {reader.next} to {firsts[number + 1] - 1} are missing",
                advice=_ADVICE,
            )


class Log:
    """A log that is written to. One process at a time (the store's lock sees to it)."""

    def __init__(self, files: Files, policy: str = "always") -> None:
        self._files = files
        self.policy = policy
        self._lock = Lock()
        self._broken: Exception | None = None
        self._file: Appending | None = None
        self._salt = b""
        self._size = 0
        self._last = (0, 0)  # the frame that was appended last: its first record and its place
        self.next = 1  # the number that the next record gets
        self.synced = 0  # the last record that is certain to survive a power failure
        self.written = 0  # bytes, since it was opened
        self.syncs = Durations()
        self._open_last()
        self._closing = Event()
        self._syncer: Thread | None = None
        if policy == "batch":
            self._syncer = Thread(target=self._sync_now_and_then, daemon=True, name="axlog-log")
            self._syncer.start()

    def _open_last(self) -> None:
        """Go on behind the last good frame; a torn end is cut off."""
        firsts = segments(self._files)
        while firsts:
            name = segment_name(firsts[-1])
            reader = SegmentReader(name, self._files.read(name), is_last=True)
            for _ in reader.frames():
                pass
            if not reader.is_empty:
                self._file = self._files.append_to(name)
                self._file.cut(reader.end)
                self._file.sync()
                self._salt, self._size, self.next = reader._salt, reader.end, reader.next
                self.synced = self.next - 1
                return
            self._files.remove(name)
            self._files.sync_directory()  # or it may be back beside a later segment
            self.next = firsts.pop()
        self._start_segment(self.next)

    def _start_segment(self, first: int) -> None:
        self._salt = os.urandom(8)
        head = _HEAD.pack(_TITLE, VERSION, self._salt, first)
        self._file = self._files.append_to(segment_name(first))
        self._file.append(head + _SUM.pack(zlib.crc32(head)))
        self._file.sync()
        self._files.sync_directory()
        self._size = HEAD_SIZE

    def append(self, records: Sequence[bytes], *, sync: bool = True) -> int:
        """Write records as one frame; the number of the first. Nothing is written on an error.

        Without `sync` the policy `always` lets them wait for the next frame's: for records that
        are not acknowledged to anybody.
        """
        with self._lock:
            file = self._usable()
            body = b"".join(_SUM.pack(len(record)) + record for record in records)
            head = _FRAME.pack(_MARK, len(records), len(body), self.next, self.synced)
            sums = _SUM.pack(_checksum(self._salt, head)) + _SUM.pack(_checksum(self._salt, body))
            try:
                file.append(head + sums + body)
            except OSError as error:
                self._take_back(error)
                raise _unwritten(error) from error
            first = self.next
            self._last = first, self._size
            self.next += len(records)
            self._size += _FRAME_SIZE + len(body)
            self.written += _FRAME_SIZE + len(body)
            if self.policy == "always" and sync:
                self._sync()
            return first

    def take_back(self, first: int) -> None:
        """Remove the frame that was appended last: what it says was refused."""
        with self._lock:
            last, size = self._last
            if last == first:
                self._usable().cut(size)
                self._size, self.next = size, first
                self.synced = min(self.synced, first - 1)

    def _usable(self) -> Appending:
        if self._broken is not None or self._file is None:
            raise StoreError(
                "AX873",
                f"the log cannot be written any more: {self._broken or 'it is closed'}",
                advice="open the store again: what was acknowledged is there",
            )
        return self._file

    def _take_back(self, error: OSError) -> None:
        """Remove a frame that was half written; a log that cannot even do that is broken."""
        assert self._file is not None
        try:
            self._file.cut(self._size)
        except OSError:
            self._broken = error

    def _sync(self) -> None:
        last, began = self.next - 1, perf_counter()
        try:
            self._usable().sync()
        except OSError as error:
            # What the system did with the pages is not known: nothing more can be promised.
            self._broken = error
            raise _unwritten(error) from error
        self.synced = last
        self.syncs.note(perf_counter() - began)

    def sync(self) -> None:
        """Wait until everything that was appended is safe."""
        with self._lock:
            self._sync()

    def _sync_now_and_then(self) -> None:
        while not self._closing.wait(INTERVAL):
            with self._lock:
                if self._broken is None and self.synced < self.next - 1:
                    try:
                        self._sync()
                    except StoreError:
                        return  # the next append says so

    def rotate(self) -> int:
        """Go on in a new segment; the number of its first record."""
        with self._lock:
            old = self._usable()
            if self._size == HEAD_SIZE:
                return self.next
            self._sync()
            try:
                self._start_segment(self.next)
            except OSError as error:
                self._files.remove(segment_name(self.next))
                self._file = old
                raise _unwritten(error) from error
            old.close()
            return self.next

    def drop_before(self, first: int) -> None:
        """Remove the segments whose records all come before this one."""
        firsts = segments(self._files)
        for number, following in pairwise(firsts):
            if following <= first:
                self._files.remove(segment_name(number))

    def close(self) -> None:
        """Sync and let go."""
        self._closing.set()
        if self._syncer is not None:
            self._syncer.join()
        with self._lock:
            if self._file is not None:
                try:
                    if self._broken is None:
                        self._sync()
                finally:
                    self._file.close()
                    self._file = None


def _unwritten(error: OSError) -> StoreError:
    return StoreError(
        "AX873",
        f"the log cannot be written: {error.strerror or error}",
        advice="make room on the disk; nothing was accepted",
    )
