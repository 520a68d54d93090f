"""The append-only log: numbered records in frames that are written and synced whole.

A log is a sequence of segments `log-NUMBER.axlog`; the number is that of the segment's first
record.

    segment   "axlog log\n", version (2 bytes), salt (8), first record (8), checksum (4)
    frame     "AXFR", records (4), bytes (4), first record (8), last record synced before (8),
              checksum (4), checksum of the body (4)
    body      for each record its size (4) and its bytes

Integers are big-endian. Checksums are CRC-32 over the salt and the covered bytes. Each segment has
a random salt, so that an attacker cannot forge a frame of the log inside a record.

The manifest (`manifest.py`) gives the position up to which the log is known to be good; for a
closed log that is its end. A bad frame before that position is damage. It is refused with its
offset, and no byte is changed. A crash can tear unsynced data, and only that. So behind the known
position a bad frame and all data after it are cut off when the log is opened, unless a good frame
behind it proves that it had been synced. The cut is reported (`Torn`). A log whose last segment is
missing is refused.

Only the process that opened a log can write to it; a forked child cannot.

Policies: `always`: a record is on disk before `append` returns. `batch`: a record is passed to the
operating system, and reaches the disk within `INTERVAL`; a killed process loses nothing, a power
failure loses the last moments. `off`: the operating system decides when to write.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from itertools import pairwise
from logging import WARNING, getLogger
from threading import Event, Lock, Thread
from time import perf_counter

from axlog.errors import StoreError
from axlog.reporting import Durations, report
from axlog.store.files import Appending, Files
from axlog.store.log_reader import (
    FRAME,
    FRAME_SIZE,
    HEAD,
    HEAD_SIZE,
    MARK,
    SUM,
    TITLE,
    VERSION,
    LogReader,
    SegmentReader,
    Torn,
    checksum,
    segment_name,
    segments,
)
from axlog.store.manifest import Manifest, write_manifest

_events = getLogger("axlog.store")

POLICIES = ("always", "batch", "off")
INTERVAL = 0.05
"""Seconds between two syncs of the policy `batch`."""


class Log:
    """A log open for writing, by one process at a time (the store's lock ensures it)."""

    torn: Torn | None = None
    """The torn end that was cut off when the log was opened."""

    def __init__(self, files: Files, policy: str = "always") -> None:
        self._files = files
        self._process = os.getpid()
        self.policy = policy
        self._lock = Lock()
        self._broken: Exception | None = None
        self._file: Appending | None = None
        self._salt = b""
        self._first = self._size = 0  # of the current segment
        self._noted = 0  # the segment that the manifest names
        self._last = (0, 0)  # the frame that was appended last: its first record and its place
        self.next = 1  # the number of the next record
        self.synced = 0  # the last record that survives a power failure
        self.written = 0  # bytes since the log was opened
        self.syncs = Durations()
        self._open_last()
        self._closing = Event()
        self._syncer: Thread | None = None
        if policy == "batch":
            self._syncer = Thread(target=self._sync_now_and_then, daemon=True, name="axlog-log")
            self._syncer.start()

    def _open_last(self) -> None:
        """Continue after the last good frame; cut off a torn end."""
        found = LogReader(self._files)
        for number in reversed(range(len(found.segments))):
            reader = found.segment(number)
            for _ in reader.frames():
                pass
            if not reader.is_empty:
                self._go_on(reader)
                return
            self._files.remove(reader.name)
            self._files.sync_directory()  # otherwise it may reappear beside a later segment
            self.next = found.segments[number]
        self._start_segment(self.next)
        self._note(is_closed=False)

    def _go_on(self, reader: SegmentReader) -> None:
        """Continue in the segment of a reader; in a new one if that has an older version."""
        self.torn = reader.torn
        self._file = self._files.append_to(reader.name)
        if self.torn is not None:
            report(_events, WARNING, "torn end cut", seq=reader.next - 1, **self.torn.plain())
            self._file.cut(reader.end)
        self._file.sync()
        self._salt, self._size, self.next = reader.salt, reader.end, reader.next
        self._first, self.synced = reader.first, self.next - 1
        if reader.version != VERSION and self.next > reader.first:
            self._file.close()
            self._start_segment(self.next)
        self._note(is_closed=False)

    def _note(self, is_closed: bool) -> None:
        """Write the manifest: all records up to here are on disk."""
        write_manifest(self._files, Manifest(is_closed, self._first, self._size, self.next))
        self._noted = self._first

    def _start_segment(self, first: int) -> None:
        salt = os.urandom(8)
        head = HEAD.pack(TITLE, VERSION, salt, first)
        file = self._files.append_to(segment_name(first))
        file.append(head + SUM.pack(zlib.crc32(head)))
        file.sync()
        self._files.sync_directory()
        self._file, self._salt, self._first, self._size = file, salt, first, HEAD_SIZE

    def append(self, records: Sequence[bytes], *, sync: bool = True) -> int:
        """Write records as one frame; the number of the first. Nothing is written on an error.

        Without `sync` the policy `always` delays their sync until the next frame: for records that
        need no acknowledgement.
        """
        with self._lock:
            file = self._usable()
            body = b"".join([SUM.pack(len(record)) + record for record in records])
            head = FRAME.pack(MARK, len(records), len(body), self.next, self.synced)
            sums = SUM.pack(checksum(self._salt, head)) + SUM.pack(checksum(self._salt, body))
            try:
                file.append(head + sums + body)
            except OSError as error:
                self._take_back(error)
                raise _unwritten(error) from error
            first = self.next
            self._last = first, self._size
            self.next += len(records)
            self._size += FRAME_SIZE + len(body)
            self.written += FRAME_SIZE + len(body)
            if self.policy == "always" and sync:
                self._sync()
            return first

    def take_back(self, first: int) -> None:
        """Remove the last appended frame, because its update was rejected."""
        with self._lock:
            last, size = self._last
            if last == first:
                self._usable().cut(size)
                self._size, self.next = size, first
                self.synced = min(self.synced, first - 1)

    @property
    def is_ours(self) -> bool:
        """Whether this process opened the log; a forked child did not."""
        return os.getpid() == self._process

    def _usable(self) -> Appending:
        if not self.is_ours:
            raise forked()
        if self._broken is not None or self._file is None:
            raise StoreError(
                "AX873",
                f"the log is not writable: {self._broken or 'it is closed'}",
                advice="open the store again: acknowledged records are safe",
            )
        return self._file

    def _take_back(self, error: OSError) -> None:
        """Remove a half-written frame; if that fails, the log is broken."""
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
            # The state of the pages is unknown: later syncs cannot be trusted.
            self._broken = error
            raise _unwritten(error) from error
        self.synced = last
        self.syncs.note(perf_counter() - began)

    def sync(self) -> None:
        """Wait until all appended records are on disk."""
        with self._lock:
            self._sync()

    def settle(self) -> None:
        """Sync, and write to the manifest that all records up to here are on disk."""
        with self._lock:
            self._sync()
            try:
                self._note(is_closed=False)
            except OSError as error:
                raise _unwritten(error) from error

    def _sync_now_and_then(self) -> None:
        while not self._closing.wait(INTERVAL):
            with self._lock:
                if self._broken is None and self.synced < self.next - 1:
                    try:
                        self._sync()
                    except StoreError:
                        return  # the next append raises the error

    def rotate(self) -> int:
        """Start a new segment; the number of its first record."""
        with self._lock:
            old = self._usable()
            if self._size == HEAD_SIZE:
                return self.next
            self._sync()
            try:
                self._start_segment(self.next)
            except OSError as error:
                self._files.remove(segment_name(self.next))
                raise _unwritten(error) from error
            old.close()
            return self.next

    def drop_before(self, first: int) -> None:
        """Remove the segments whose records all come before this one.

        The manifest names the current segment first: without that the log would seem incomplete.
        """
        with self._lock:
            self._usable()
            if self._noted != self._first:
                begun = Manifest(False, self._first, HEAD_SIZE, self._first)
                write_manifest(self._files, begun)
                self._noted = self._first
        firsts = segments(self._files)
        for number, following in pairwise(firsts):
            if following <= first:
                self._files.remove(segment_name(number))

    def abandon(self) -> None:
        """Close the files as a killed process leaves them: nothing is synced or marked."""
        self._closing.set()
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Sync, mark the log as closed in the manifest, and close the files.

        In a forked child only close the files: the log belongs to the parent.
        """
        if not self.is_ours:
            self.abandon()
            return
        self._closing.set()
        if self._syncer is not None:
            self._syncer.join()
        with self._lock:
            if self._file is not None:
                try:
                    if self._broken is None:
                        self._sync()
                        self._note_end()
                finally:
                    self._file.close()
                    self._file = None

    def _note_end(self) -> None:
        try:
            self._note(is_closed=True)
        except OSError as error:  # all records are safe; the next open works as after a crash
            report(_events, WARNING, "log not marked as closed", seq=self.next - 1, error=error)


def forked() -> StoreError:
    """The error for a forked child that writes to its parent's store."""
    return StoreError(
        "AX879",
        "the store was opened by another process: a forked child cannot write to it",
        advice="send the update to the process that opened the store",
    )


def _unwritten(error: OSError) -> StoreError:
    return StoreError(
        "AX873",
        f"the log cannot be written: {error.strerror or error}",
        advice="free disk space; the update was not accepted",
    )
