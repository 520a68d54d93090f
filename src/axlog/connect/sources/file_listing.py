"""The files of a directory in the order of their names, and positions among them.

A file that appears later is read whatever its name, so a position lists the finished files. `order:
name` promises that new names sort after old ones; the position is then one name. Names that begin
with `.` or end with `.tmp` or `.part` are ignored.

Without a stream, each subdirectory is one, by its name. Their files form one sequence by name,
across the subdirectories.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axlog.connect.protocol import Position
from axlog.errors import ConnectorError

_UNFINISHED = (".tmp", ".part")


@dataclass(slots=True)
class Place:
    """A parsed position."""

    done: set[str]  # with order "name": the last one only
    file: str | None = None
    records: int = 0  # messages of that file already read

    @classmethod
    def of(cls, position: Position) -> Place:
        given: dict[str, Any] = position or {}
        return cls(set(given.get("done", ())), given.get("file"), given.get("records", 0))

    def plain(self) -> Position:
        state: dict[str, Any] = {"done": sorted(self.done)}
        if self.file is not None:
            state |= {"file": self.file, "records": self.records}
        return state


@dataclass(frozen=True, slots=True)
class FileListing:
    """A directory (or one file), and which of its files are messages."""

    path: Path
    stream: str | None
    pattern: str
    is_by_name: bool = False

    def waiting(self, place: Place) -> list[Path]:
        """Return the files to read, in order; a partly read file first."""
        try:
            found = self._listed()
        except OSError as error:
            raise ConnectorError("AX858", f"{self.path}: {error.strerror or error}") from error
        last = max(place.done, default="") if self.is_by_name else None
        fresh = [
            (key != place.file, key, path)
            for key, path in found
            if (key not in place.done if last is None else key > last) and self._is_wanted(path)
        ]
        return [path for _, _, path in sorted(fresh)]

    def between(self, place: Place, end: Place) -> list[Path]:
        """Return the files between two positions, in order."""
        last = max(end.done, default="")
        paths = {self.key(path): path for path in self.waiting(place)}
        gone = set() if self.is_by_name else end.done - place.done - paths.keys()
        if gone or (end.file is not None and end.file not in paths):
            raise self._gone(min(gone, default=end.file or ""))
        return [
            path
            for key, path in paths.items()
            if key == end.file or (key <= last if self.is_by_name else key in end.done)
        ]

    def after(self, place: Place, key: str) -> Place:
        """Return the position after a file."""
        if self.is_by_name:
            return Place({key})
        place.done.add(key)
        return Place(place.done)

    def key(self, path: Path) -> str:
        """Return the sort key of a file: its name, then the stream."""
        return path.name if self.stream is not None else f"{path.name}/{path.parent.name}"

    def file(self, key: str) -> Path:
        """Return the file of a sort key, which must still exist."""
        found = self.path
        if not found.is_file():
            name, _, directory = key.rpartition("/")
            found = found / key if self.stream is not None else found / directory / name
        if not found.exists():
            raise self._gone(key)
        return found

    def check_readable(self, path: Path) -> None:
        """Raise an error if a file cannot be read now."""
        if not os.access(path, os.R_OK):
            raise ConnectorError("AX858", f"{path} cannot be read")

    def _gone(self, key: str) -> ConnectorError:
        return ConnectorError(
            "AX858",
            f"{self.path} no longer has {key}, which was read before",
            advice="put the file back, or start with another checkpoint",
        )

    def _listed(self) -> list[tuple[str, Path]]:
        """Return the files with their sort keys."""
        if self.path.is_file():
            return [(self.path.name, self.path)]
        if self.stream is not None:
            return [(path.name, path) for path in self.path.iterdir()]
        first = max((key for key, _ in self._below()), default="")
        # A file that was not yet visible in one directory may be older than one seen in the next.
        # Only files up to those of the first scan are complete in the second.
        return [(key, path) for key, path in self._below() if key <= first]

    def _below(self) -> Iterator[tuple[str, Path]]:
        for directory in sorted(self.path.iterdir()):
            if directory.is_dir() and not directory.name.startswith("."):
                for path in directory.iterdir():
                    if not path.name.endswith(_UNFINISHED):
                        yield self.key(path), path

    def _is_wanted(self, path: Path) -> bool:
        if path == self.path:
            return True
        name = path.name
        if name.startswith(".") or name.endswith(_UNFINISHED):
            return False
        return fnmatch.fnmatchcase(name, self.pattern) and path.is_file()
