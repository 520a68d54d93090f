"""Snapshots: named parts of bytes in one file, written whole or not at all.

    "axlog snapshot\n", version (2 bytes), record (8), parts (4), checksum (4)
    for each part: its name's size (2), its size (8), checksum (4), name, bytes

`record` is the number of the last log record that the snapshot includes. A snapshot is written
under another name, synced, renamed, and the directory is synced: a crash leaves the old one or the
new one. A damaged snapshot is refused; the store then opens from the previous one, if it exists.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from axlog.errors import StoreError
from axlog.store.files import Files

VERSION = 1

_TITLE = b"axlog snapshot\n"
_HEAD = struct.Struct(f">{len(_TITLE)}sHQI")
_PART = struct.Struct(">HQI")
_SUM = struct.Struct(">I")
_PREFIX, _SUFFIX, _UNDER_WAY = "snapshot-", ".axlog", ".tmp"


def snapshot_name(record: int) -> str:
    """The name of the snapshot of everything up to a record."""
    return f"{_PREFIX}{record:016d}{_SUFFIX}"


def snapshots(files: Files) -> list[int]:
    """The records of the existing snapshots, oldest first."""
    numbers = [
        name[len(_PREFIX) : -len(_SUFFIX)]
        for name in files.names()
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX)
    ]
    return sorted(int(number) for number in numbers if number.isdecimal())


def write_snapshot(files: Files, record: int, parts: Mapping[str, bytes]) -> None:
    """Write a snapshot; on an error its file is removed."""
    name = snapshot_name(record)
    try:
        files.remove(name + _UNDER_WAY)
        file = files.append_to(name + _UNDER_WAY)
        try:
            head = _HEAD.pack(_TITLE, VERSION, record, len(parts))
            file.append(head + _SUM.pack(zlib.crc32(head)))
            for title, data in parts.items():
                file.append(_PART.pack(len(title), len(data), zlib.crc32(data, _of(title))))
                file.append(title.encode("ascii"))
                file.append(data)
            file.sync()
        finally:
            file.close()
        files.rename(name + _UNDER_WAY, name)
        files.sync_directory()
    except OSError as error:
        raise StoreError(
            "AX873",
            f"the snapshot cannot be written: {error.strerror or error}",
            advice="free disk space; the log continues without the snapshot",
        ) from error


def read_snapshot(files: Files, record: int) -> dict[str, bytes]:
    """The parts of a snapshot; raises AX871 if it is damaged."""
    name = snapshot_name(record)
    data = files.read(name)
    try:
        title, version, number, count = _HEAD.unpack_from(data)
        (checked,) = _SUM.unpack_from(data, _HEAD.size)
        if title != _TITLE or checked != zlib.crc32(data[: _HEAD.size]) or number != record:
            raise _damaged(name, 0)
        if version != VERSION:
            raise StoreError(
                "AX872", f"{name} is of version {version}", expected=f"version {VERSION}"
            )
        at = _HEAD.size + _SUM.size
        parts: dict[str, bytes] = {}
        for _ in range(count):
            named, size, checked = _PART.unpack_from(data, at)
            start = at + _PART.size
            part = data[start : start + named].decode("ascii", "replace")
            body = data[start + named : start + named + size]
            if len(body) != size or checked != zlib.crc32(body, _of(part)):
                raise _damaged(name, at)
            parts[part] = body
            at = start + named + size
        if at != len(data):
            raise _damaged(name, at)
    except struct.error:
        raise _damaged(name, len(data)) from None
    return parts


def remove_snapshots(files: Files, before: int) -> None:
    """Remove older snapshots and the files of unfinished ones."""
    for record in snapshots(files):
        if record < before:
            files.remove(snapshot_name(record))
    for name in files.names():
        if name.startswith(_PREFIX) and name.endswith(_UNDER_WAY):
            files.remove(name)


def _of(title: str) -> int:
    return zlib.crc32(title.encode("ascii", "replace"))


def _damaged(name: str, at: int) -> StoreError:
    return StoreError(
        "AX871",
        f"{name} is damaged at byte {at}",
        advice="remove it: the store opens from an older snapshot and the log, if they exist",
    )
