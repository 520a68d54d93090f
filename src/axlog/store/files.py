"""The file operations that logs and snapshots use.

They are separate so that tests can replace them with a failing disk: one that loses unsynced data,
is full, or tears writes (`lab/stress/faulty_disk.py`). `sync` of a file makes its bytes survive a
power failure; `sync_directory` makes its name survive.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol


class Appending(Protocol):
    """A file that is appended to."""

    def append(self, data: bytes) -> None:
        """Write all data, or raise OSError, possibly after writing a part."""

    def sync(self) -> None:
        """Wait until all written data is on disk."""

    def cut(self, size: int) -> None:
        """Truncate the file to this size."""

    def close(self) -> None:
        """Close the file without a sync."""


class Files(Protocol):
    """A directory."""

    def names(self) -> list[str]: ...

    def read(self, name: str) -> bytes: ...

    def append_to(self, name: str) -> Appending:
        """Open a file for appending; create it if it does not exist."""

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, name: str) -> None: ...

    def sync_directory(self) -> None: ...


class DiskFiles:
    """A directory of the operating system.

    `private`: only its owner can read it and its files.
    """

    def __init__(self, path: str | Path, *, private: bool = False) -> None:
        self.path = Path(path)
        self._mode = 0o600 if private else 0o666
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700 if private else 0o777, exist_ok=True)

    def names(self) -> list[str]:
        return sorted(each.name for each in self.path.iterdir() if each.is_file())

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def append_to(self, name: str) -> Appending:
        return _DiskFile(self.path / name, self._mode)

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
    def __init__(self, path: Path, mode: int) -> None:
        opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode)
        # Unbuffered, so that a killed process loses no written data.
        self._file = os.fdopen(opened, "ab", buffering=0)

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
