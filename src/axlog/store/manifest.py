"""The manifest of a log: the position up to which it is known to be good, and a closed flag.

    "axlog manifest\\n", version (2 bytes), closed (1), segment (8), size (8), next record (8),
    checksum (4)

`segment` is the first record of the last segment, `size` the bytes of that segment that are known
to be good, `next` the number of the record after them. The manifest is written when the log is
opened, when old segments are dropped, and when the log is closed. It is always written under
another name, synced and renamed, so that a crash leaves the old one or the new one.

A closed log must have exactly these bytes. A log that was not closed must have at least these
bytes; data torn by a crash comes after them.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from axlog.errors import StoreError
from axlog.store.files import Files

VERSION = 1
NAME = "manifest.axlog"

_UNDER_WAY = NAME + ".tmp"
_TITLE = b"axlog manifest\n"
_BODY = struct.Struct(f">{len(_TITLE)}sHBQQQ")
_SUM = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The part of a log that is known to be good."""

    is_closed: bool
    segment: int
    size: int
    next: int


def read_manifest(files: Files) -> Manifest | None:
    """The manifest of a directory; None if there is none. A damaged one is refused."""
    if NAME not in files.names():
        return None
    data = files.read(NAME)
    if len(data) != _BODY.size + _SUM.size:
        raise _damaged(f"is damaged at byte {min(len(data), _BODY.size + _SUM.size)}")
    title, version, closed, segment, size, following = _BODY.unpack_from(data)
    (checked,) = _SUM.unpack_from(data, _BODY.size)
    if title != _TITLE or checked != zlib.crc32(data[: _BODY.size]):
        raise _damaged("is damaged at byte 0")
    if version != VERSION:
        raise StoreError(
            "AX872",
            f"{NAME} is of version {version}",
            expected=f"version {VERSION}",
            advice="open it with the axlog that wrote it",
        )
    return Manifest(bool(closed), segment, size, following)


def write_manifest(files: Files, manifest: Manifest) -> None:
    """Replace the manifest; on an OSError the old one stays."""
    body = _BODY.pack(
        _TITLE, VERSION, manifest.is_closed, manifest.segment, manifest.size, manifest.next
    )
    files.remove(_UNDER_WAY)
    file = files.append_to(_UNDER_WAY)
    try:
        file.append(body + _SUM.pack(zlib.crc32(body)))
        file.sync()
    finally:
        file.close()
    files.rename(_UNDER_WAY, NAME)
    files.sync_directory()


def _damaged(what: str) -> StoreError:
    return StoreError(
        "AX871",
        f"{NAME} {what}",
        advice=f"restore the directory from a copy; or, if the log files are whole, remove {NAME}:"
        " the log is then opened as after a crash",
    )
