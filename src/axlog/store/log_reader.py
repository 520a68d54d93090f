"""Reading a log: its segments, their frames, and their damaged or torn parts.

`log.py` describes the format and the effects of a crash.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from axlog.errors import StoreError
from axlog.store.files import Files
from axlog.store.manifest import read_manifest

VERSION = 2
READABLE = (1, VERSION)
"""Version 1 had no manifest; its segments are readable, and a new one follows them."""

TITLE = b"axlog log\n"
HEAD = struct.Struct(f">{len(TITLE)}sH8sQ")
MARK = b"AXFR"
FRAME = struct.Struct(">4sIIQQ")
SUM = struct.Struct(">I")
FRAME_SIZE = FRAME.size + 2 * SUM.size
HEAD_SIZE = HEAD.size + SUM.size
_PREFIX, _SUFFIX = "log-", ".axlog"


def segment_name(first: int) -> str:
    """The name of the segment that starts with a record."""
    return f"{_PREFIX}{first:016d}{_SUFFIX}"


def segments(files: Files) -> list[int]:
    """The first records of the existing segments, in order."""
    found = []
    for name in files.names():
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            number = name[len(_PREFIX) : -len(_SUFFIX)]
            if number.isdecimal():
                found.append(int(number))
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Frame:
    """Records that were written together; `start` is the frame's offset in its segment."""

    first: int
    synced: int
    records: tuple[bytes, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Torn:
    """The unfinished end of a segment after a crash: `size` bytes from `start` on."""

    segment: str
    start: int
    size: int

    def plain(self) -> dict[str, object]:
        """The torn end as a JSON object."""
        return {"segment": self.segment, "at": self.start, "bytes": self.size}


@dataclass(frozen=True, slots=True)
class Known:
    """The required content of a segment: good frames up to a record, and up to a size if known.

    `is_end`: nothing may follow them.
    """

    next: int = 0
    size: int = 0
    is_end: bool = False


class SegmentReader:
    """The frames of one segment; `end` is the end of the good ones, once all were read."""

    def __init__(self, name: str, data: bytes, known: Known) -> None:
        self.name = name
        self.end = 0
        self.is_empty = False  # the crash came before its head was complete
        self.version = VERSION
        self.salt = b""
        self._data = data
        self._known = known
        self.first = self.next = 0
        self._read_head()

    @property
    def torn(self) -> Torn | None:
        """The data after the good frames, once all were read."""
        left = len(self._data) - self.end
        return Torn(self.name, self.end, left) if left else None

    def _read_head(self) -> None:
        data = self._data
        if len(data) >= HEAD_SIZE:
            title, self.version, self.salt, self.first = HEAD.unpack_from(data)
            (checked,) = SUM.unpack_from(data, HEAD.size)
            if title == TITLE and checked == zlib.crc32(data[: HEAD.size]):
                if self.version not in READABLE:
                    raise StoreError(
                        "AX872",
                        f"{self.name} is of version {self.version}",
                        expected=f"version {VERSION}",
                        advice="open it with the axlog that wrote it",
                    )
                self.end = HEAD_SIZE
                self.next = self.first
                return
        if self._known.next or (len(data) > HEAD_SIZE and data.strip(b"\0")):
            raise StoreError("AX871", f"{self.name} has no head of a log at byte 0", advice=_ADVICE)
        self.is_empty = True

    def frames(self) -> Iterator[Frame]:
        """The frames in order; a torn end is skipped, other damage raises AX871."""
        while not self.is_empty and self.end < len(self._data):
            frame = self._frame(self.end)
            if frame is None:
                break
            if frame.first != self.next:
                raise StoreError(
                    "AX871",
                    f"{self.name} continues with record {frame.first} at byte {frame.start}",
                    expected=f"record {self.next}",
                    advice=_ADVICE,
                )
            self.next += len(frame.records)
            self.end = frame.end
            yield frame
        if not self.is_empty:
            self._refuse_unless_torn()

    def _frame(self, start: int) -> Frame | None:
        data = self._data
        if len(data) < start + FRAME_SIZE:
            return None
        mark, count, size, first, synced = FRAME.unpack_from(data, start)
        head = data[start : start + FRAME.size]
        (checked,) = SUM.unpack_from(data, start + FRAME.size)
        at = start + FRAME_SIZE
        if mark != MARK or checked != checksum(self.salt, head) or len(data) < at + size:
            return None
        (of_body,) = SUM.unpack_from(data, start + FRAME.size + SUM.size)
        body = data[at : at + size]
        if of_body != checksum(self.salt, body):
            return None
        records = _split(body)
        return Frame(first, synced, records, start, at + size) if len(records) == count else None

    def _refuse_unless_torn(self) -> None:
        known, is_short = self._known, False
        if self.next < known.next or self.end < known.size:
            is_short = True
        elif self.end == len(self._data):
            return
        if is_short or known.is_end or self._was_synced():
            raise StoreError(
                "AX871",
                f"{self.name} is damaged at byte {self.end}, in record {self.next}",
                expected=f"{known.next - self.next} more records" if is_short else None,
                advice=_ADVICE,
            )

    def _was_synced(self) -> bool:
        """Whether a good frame after the bad one proves that the bad one was on disk."""
        at = self._data.find(MARK, self.end + 1)
        while at >= 0:
            frame = self._frame(at)
            if frame is not None and frame.synced >= self.next:
                return True
            at = self._data.find(MARK, at + 1)
        return False


_ADVICE = "restore the directory from a copy; axlog replay can read the records before this place"


def checksum(salt: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(salt))


def _split(body: bytes) -> tuple[bytes, ...]:
    found, at = [], 0
    while at < len(body):
        (size,) = SUM.unpack_from(body, at)
        at += SUM.size
        found.append(body[at : at + size])
        at += size
    return tuple(found)


class LogReader:
    """A log open for reading, also while another process writes it."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.torn: Torn | None = None  # once the frames were read
        self.next = 0  # the record behind the last one, once the frames were read
        self.manifest = read_manifest(files)
        self.segments = segments(files)
        while self._has_moved():
            self.manifest = read_manifest(files)
            self.segments = segments(files)
        self._refuse_missing()

    @property
    def is_closed(self) -> bool:
        """Whether the process that wrote the log last has closed it."""
        return self.manifest is not None and self.manifest.is_closed

    def _has_moved(self) -> bool:
        """Whether another process has opened, rotated or closed the log in the meantime."""
        return read_manifest(self._files) != self.manifest

    def _refuse_missing(self) -> None:
        manifest = self.manifest
        if manifest is None:
            return
        if manifest.segment not in self.segments:
            raise missing(segment_name(manifest.segment))
        last = self.segments[-1]
        if manifest.is_closed and last != manifest.segment:
            raise StoreError(
                "AX871",
                f"{segment_name(last)} lies after the end of the log",
                expected=f"{segment_name(manifest.segment)} to be the last segment",
                advice=_ADVICE,
            )

    def segment(self, number: int) -> SegmentReader:
        """A reader of the segment with this index in `segments`."""
        name = segment_name(self.segments[number])
        data = self._files.read(name)
        known = self._known(number)
        if known.is_end and known.size and known.size < len(data) and self._has_moved():
            known = Known()
        return SegmentReader(name, data, known)

    def _known(self, number: int) -> Known:
        if number < len(self.segments) - 1:  # synced whole before the next one was started
            return Known(self.segments[number + 1], is_end=True)
        manifest = self.manifest
        if manifest is not None and manifest.segment == self.segments[number]:
            return Known(manifest.next, manifest.size, manifest.is_closed)
        return Known()

    def frames(self, after: int = 0) -> Iterator[Frame]:
        """The frames after a record."""
        for number, _ in enumerate(self.segments):
            is_last = number == len(self.segments) - 1
            if not is_last and self.segments[number + 1] <= after + 1:
                continue
            reader = self.segment(number)
            for frame in reader.frames():
                if frame.first > after:
                    yield frame
            self.next = self.segments[number] if reader.is_empty else reader.next
            self.torn = reader.torn


def read_log(files: Files, after: int = 0) -> Iterator[tuple[int, tuple[bytes, ...]]]:
    """The frames after a record, each with the number of its first record; read-only."""
    for frame in LogReader(files).frames(after):
        yield frame.first, frame.records


def missing(name: str) -> StoreError:
    """The error for a missing file of the log."""
    return StoreError(
        "AX878",
        f"{name} is missing",
        expected="all files of the store in one directory",
        advice="restore the directory from a copy",
    )
