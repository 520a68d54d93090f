"""A directory of XML or JSON files as a stream: one message per file, or one per record of a file.

Files are read in the order of their names. A file that appears later is read whatever its name, so
the position lists the finished files. `order: name` promises that new names sort after old ones;
the position is then one name. Move complete files into the directory: names that begin with `.` or
end with `.tmp` or `.part` are ignored. A file is read once; later changes to it have no effect.

Under `sources` a directory feeds several streams: each subdirectory is one, by its name. Their
files form one sequence by name, across the subdirectories.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from lxml import etree
from pydantic import Field

from axlog.connect.kinds import LocalPath, Origin, SourceKind
from axlog.connect.protocol import (
    NO_TIME,
    Position,
    Reach,
    Reading,
    Refusal,
    reach_by_reading,
)
from axlog.connect.sources.formats import FormatOptions
from axlog.connect.sources.times import TimeOptions, Timing
from axlog.document.parser import DEFAULT_LIMITS, parse
from axlog.document.record_reader import split
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, ConnectorError, PipelineError

_UNFINISHED = (".tmp", ".part")


class DirectoryOptions(TimeOptions, FormatOptions):
    """Options of `directory`."""

    path: LocalPath = Field(description="The directory, or one file.")
    pattern: str | None = Field(
        default=None, description="A glob pattern for its files (default: *.xml, or *.json)."
    )
    record: str | None = Field(
        default=None,
        description="The name of the elements that are messages (default: the whole file is one;"
        " of a JSON array, each item is one).",
    )
    order: Literal["any", "name"] = Field(
        default="any",
        description="name: new files sort after old ones by name, so positions stay small.",
    )


@dataclass(slots=True)
class _Place:
    """A parsed position."""

    done: set[str]  # with order "name": the last one only
    file: str | None = None
    records: int = 0  # messages of that file already read

    @classmethod
    def of(cls, position: Position) -> _Place:
        given: dict[str, Any] = position or {}
        return cls(set(given.get("done", ())), given.get("file"), given.get("records", 0))

    def plain(self) -> Position:
        state: dict[str, Any] = {"done": sorted(self.done)}
        if self.file is not None:
            state |= {"file": self.file, "records": self.records}
        return state


class DirectorySource:
    """The files of a directory as updates of one stream."""

    def __init__(self, options: DirectoryOptions, origin: Origin) -> None:
        self.stream = origin.stream
        self.path = origin.path(options.path)
        self.options = options
        self.pattern = options.pattern or f"*.{options.format}"
        if options.format == "json" and options.record is not None:
            raise PipelineError(
                "AX852",
                "`record` is for XML: of a JSON array, each item is a message",
                advice="leave out `record`",
            )
        self.label = _expanded(options.record, origin)
        self.timing = Timing(options, origin)
        self._open: tuple[_Place, Iterator[StreamUpdate | Refusal]] | None = None

    def read(self, position: Position, limit: int) -> Reading:
        """Return at most `limit` messages of the unfinished files."""
        place = _Place.of(position)
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        waiting = self._waiting(place)
        for at, path in enumerate(waiting):
            name = self._key(path)
            if place.file != name:
                place.file, place.records = name, 0
            for read in self._continued(place, path):
                place.records += 1
                if isinstance(read, Refusal):
                    refused.append(read)
                else:
                    updates.append(read)
                if len(updates) + len(refused) >= limit:
                    return Reading(updates, place.plain(), refused, more=True)
            self._open = None
            place.done = {name} if self.options.order == "name" else place.done | {name}
            place.file, place.records = None, 0
            if len(updates) + len(refused) >= limit:
                return Reading(updates, place.plain(), refused, more=at + 1 < len(waiting))
        return Reading(updates, place.plain(), refused)

    def reach(self, position: Position, limit: int) -> Reach:
        """Find where `limit` messages end; of files that are one message each, by their names."""
        if self.label is not None or self.options.format == "json":
            return reach_by_reading(self, position, limit)
        place, count = _Place.of(position), 0
        for path in self._waiting(place):
            name = self._key(path)
            if place.file != name:
                place.file, place.records = name, 0
            if not place.records:
                if not os.access(path, os.R_OK):
                    raise ConnectorError("AX858", f"{path} cannot be read")
                place.records, count = 1, count + 1
                if count >= limit:
                    return Reach(count, place.plain(), more=True)
            if self.options.order == "name":
                place.done.clear()
            place.done.add(name)
            place.file, place.records = None, 0
        return Reach(count, place.plain(), latest=None if count else NO_TIME)

    def between(self, start: Position, end: Position) -> Reading:
        """Return the messages between two positions, whatever files have appeared since."""
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        for _, read in self._range(_Place.of(start), _Place.of(end)):
            if isinstance(read, Refusal):
                refused.append(read)
            else:
                updates.append(read)
        return Reading(updates, end, refused)

    def spans(self, start: Position, end: Position, limit: int) -> list[Position]:
        """Return positions that split a range into parts of `size` messages; the last is its
        end.
        """
        found: list[Position] = []
        for number, (place, _) in enumerate(self._range(_Place.of(start), _Place.of(end)), 1):
            if number % limit == 0:
                found.append(place.plain())
        return [*found, end]

    def _range(self, place: _Place, end: _Place) -> Iterator[tuple[_Place, StreamUpdate | Refusal]]:
        """Yield the messages up to a position, each with the position after it."""
        is_by_name = self.options.order == "name"
        last = max(end.done, default="")
        paths = {self._key(path): path for path in self._waiting(place)}
        names = [n for n in paths if n == end.file or (n <= last if is_by_name else n in end.done)]
        gone = set() if is_by_name else end.done - place.done - paths.keys()
        if gone or (end.file is not None and end.file not in paths):
            raise ConnectorError(
                "AX858",
                f"{self.path} no longer has {min(gone, default=end.file)}, which was read before",
                advice="put the file back, or start with another checkpoint",
            )
        for name in names:
            if place.file != name:
                place.file, place.records = name, 0
            most = end.records if name == end.file else None
            for read in islice(self._messages(paths[name]), place.records, most):
                place.records += 1
                yield place, read
            if name != end.file:
                place.done = {name} if is_by_name else place.done | {name}
                place.file, place.records = None, 0

    def close(self) -> None:
        """Close the file that is being read."""
        self._open = None

    def _waiting(self, place: _Place) -> list[Path]:
        """Return the files to read, in order; a partly read file first."""
        try:
            found = self._listed()
        except OSError as error:
            raise ConnectorError("AX858", f"{self.path}: {error.strerror or error}") from error
        last = max(place.done, default="") if self.options.order == "name" else None
        fresh = [
            (key != place.file, key, path)
            for key, path in found
            if (key not in place.done if last is None else key > last) and self._is_wanted(path)
        ]
        return [path for _, _, path in sorted(fresh)]

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
                        yield self._key(path), path

    def _key(self, path: Path) -> str:
        """Return the sort key of a file: its name, then the stream."""
        return path.name if self.stream is not None else f"{path.name}/{path.parent.name}"

    def _stream(self, path: Path) -> str:
        return self.stream if self.stream is not None else path.parent.name

    def _is_wanted(self, path: Path) -> bool:
        if path == self.path:
            return True
        name = path.name
        if name.startswith(".") or name.endswith(_UNFINISHED):
            return False
        return fnmatch.fnmatchcase(name, self.pattern) and path.is_file()

    def _continued(self, place: _Place, path: Path) -> Iterator[StreamUpdate | Refusal]:
        """Yield the messages of a file after those already read."""
        if self._open is not None and self._open[0].plain() == place.plain():
            messages = self._open[1]
        else:
            messages = self._messages(path)
            for _ in range(place.records):
                next(messages, None)
        self._open = (place, messages)
        return messages

    def _messages(self, path: Path) -> Iterator[StreamUpdate | Refusal]:
        number, stream = 0, self._stream(path)
        try:
            with path.open("rb") as file:
                stored = path.stat().st_mtime
                if self.options.format == "json":
                    yield from self._objects(file.read(DEFAULT_LIMITS.size + 1), path, stored)
                    return
                if self.label is None:
                    yield self._message(file.read(DEFAULT_LIMITS.size + 1), path, stored)
                    return
                for element in split(file, self.label, name=path.name):
                    number += 1
                    origin = f"{path.name}#{number}"
                    content = etree.tostring(element, with_tail=False)
                    try:
                        at = self.timing.of(element, stored)
                    except AxlogError as error:
                        yield Refusal(stream, content, origin, error.describe())
                    else:
                        yield StreamUpdate(stream, "insert", content, at, origin)
        except OSError as error:
            raise ConnectorError("AX858", f"{path}: {error.strerror or error}") from error
        except AxlogError as error:
            # The rest of the file cannot be split into records.
            yield Refusal(stream, "", f"{path.name}#{number + 1}", error.describe())

    def _objects(
        self, content: bytes, path: Path, stored: float
    ) -> Iterator[StreamUpdate | Refusal]:
        """Yield the messages of a JSON file: one, or one for each item of its array."""
        try:
            made = self.options.messages(content, path.name)
        except AxlogError as error:
            yield Refusal(self._stream(path), content, self._origin(path), error.describe())
            return
        for number, xml in enumerate(made, start=1):
            yield self._message(xml, path, stored, f"#{number}" if len(made) > 1 else "")

    def _origin(self, path: Path) -> str:
        return path.name if self.stream is not None else f"{self._stream(path)}/{path.name}"

    def _message(
        self, content: bytes, path: Path, stored: float, place: str = ""
    ) -> StreamUpdate | Refusal:
        stream, origin = self._stream(path), self._origin(path) + place
        try:
            element = parse(content, name=origin).root if self.timing.needs_element else None
            at = self.timing.of(element, stored)
        except AxlogError as error:
            return Refusal(stream, content, origin, error.describe())
        return StreamUpdate(stream, "insert", content, at, origin)


def _expanded(record: str | None, origin: Origin) -> str | None:
    """Return a record's name as the parser reports it."""
    if record is None:
        return None
    prefix, colon, name = record.rpartition(":")
    if not colon:
        default = origin.namespaces.get("")
        return f"{{{default}}}{name}" if default else name
    if prefix not in origin.namespaces:
        raise PipelineError("AX852", f"record: the prefix {prefix!r} is not declared")
    return f"{{{origin.namespaces[prefix]}}}{name}"


DIRECTORY = SourceKind(
    "directory",
    DirectoryOptions,
    DirectorySource,
    "XML or JSON files of a directory, one message per file, record element or item.",
    names_streams=True,  # by its subdirectories
)
