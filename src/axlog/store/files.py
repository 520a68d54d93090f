"""The few operations on files that logs and snapshots use.

They are here so that tests can put a disk that fails in their place: one that forgets what was not
synced, is full, tears writes (`lab/stress/faulty_disk.py`). `sync` of a file makes its bytes
survive a power failure; `sync_directory` makes its name survive.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol


class Appending(Protocol):
    """A file that grows at its end."""

    def append(self, data: bytes) -> None:
        """Write all of it, or raise OSError; part of it may have been written then."""

    def sync(self) -> None:
        """Wait until all that was written is safe."""

    def cut(self, size: int) -> None:
        """Remove what stands behind this size."""

    def close(self) -> None:
        """Let the file go; nothing is synced."""


class Files(Protocol):
    """A directory."""

    def names(self) -> list[str]: ...

    def read(self, name: str) -> bytes: ...

    def append_to(self, name: str) -> Appending:
        """Open a file to append to; it is made if it is not there."""

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, name: str) -> None: ...

    def sync_directory(self) -> None: ...


class DiskFiles:
    """A directory of the operating system."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)

    def names(self) -> list[str]:
        return sorted(each.name for each in self.path.iterdir() if each.is_file())

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def append_to(self, name: str) -> Appending:
        return _DiskFile(self.path / name)

    def rename(self, old: str, new: str) -> None:
        (self.path / old).replace(self.path / new)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def sync_directory(self) -> None:
        handle = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class _DiskFile:
    def __init__(self, path: Path) -> None:
        # Unbuffered, so that a killed process loses nothing it has written.
        self._file = path.open("ab", buffering=0)

    def append(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def cut(self, size: int) -> None:
        self._file.truncate(size)

    def close(self) -> None:
        self._file.close()
