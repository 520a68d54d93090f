"""A directory of XML or JSON files as a stream: one message per file, or one per record of a file.

Files are read in the order of their names. A file that appears later is read whatever its name, so
the position lists the finished files. `order: name` promises that new names sort after old ones;
the position is then one name. Move complete files into the directory: names that begin with `.` or
end with `.tmp` or `.part` are ignored. A file is read once; later changes to it have no effect.

Under `sources` a directory feeds several streams: each subdirectory is one, by its name. Their
files form one sequence by name, across the subdirectories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from lxml import etree
from pydantic import Field

from axlog.connect.kinds import LocalPath, Origin, SourceKind
from axlog.connect.protocol import Load, Part, Plan, Position, Reading, Refusal
from axlog.connect.sources.file_listing import FileListing, Place
from axlog.connect.sources.formats import FormatOptions
from axlog.connect.sources.record_ranges import fit_together, ranges_of, read_range
from axlog.connect.sources.times import TimeOptions, Timing
from axlog.document.parser import DEFAULT_LIMITS, parse
from axlog.document.record_reader import split
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, ConnectorError, PipelineError

_SAMPLE = 1 << 16
"""Bytes from which the length of records is estimated."""
_JSON = 256
"""Estimated bytes of a message in a JSON file."""


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
    divide: bool = Field(
        default=False,
        description="On Spark, divide a large file at its records among tasks. Outside of records,"
        " only the root may declare namespaces. It is an error if a part begins in a comment or"
        " CDATA section that contains the tag of a record, or in a record that contains another.",
    )
    order: Literal["any", "name"] = Field(
        default="any",
        description="name: new files sort after old ones by name, so positions stay small.",
    )


class DirectorySource:
    """The files of a directory as updates of one stream."""

    def __init__(self, options: DirectoryOptions, origin: Origin) -> None:
        self.stream = origin.stream
        self.path = origin.path(options.path)
        self.options = options
        pattern = options.pattern or f"*.{options.format}"
        self._files = FileListing(self.path, self.stream, pattern, options.order == "name")
        if options.format == "json" and options.record is not None:
            raise PipelineError(
                "AX852",
                "`record` is for XML: of a JSON array, each item is a message",
                advice="leave out `record`",
            )
        self.label = _expanded(options.record, origin)
        self.timing = Timing(options, origin)
        self._open: tuple[Place, Iterator[StreamUpdate | Refusal]] | None = None

    def read(self, position: Position, limit: int) -> Reading:
        """Return at most `limit` messages of the unfinished files."""
        place = Place.of(position)
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        waiting = self._files.waiting(place)
        for at, path in enumerate(waiting):
            name = self._files.key(path)
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
            place = self._files.after(place, name)
            if len(updates) + len(refused) >= limit:
                return Reading(updates, place.plain(), refused, more=at + 1 < len(waiting))
        return Reading(updates, place.plain(), refused)

    def plan(self, position: Position, load: Load, until: Position | None = None) -> Plan:
        """Return the next files in parts: by their names, and by their sizes if a file may contain
        several messages. The size in bytes bounds the number of messages.
        """
        place = Place.of(position)
        end = None if until is None else Place.of(until)
        files = self._files.waiting(place) if end is None else self._files.between(place, end)
        after = place.records
        if self._is_single and place.file is not None:
            place, files, after = self._files.after(place, place.file), files[1:], 0
        each = self._length(files)
        step = load.step(self._available(files, each, load.limit))
        divides = load.joins and self.options.divide and self.label is not None and not after
        parts: list[Part] = []
        group: list[str] = []
        bound = weight = taken = 0
        for path in files:
            self._files.check_readable(path)
            if divides and path.stat().st_size > step * each:
                if group:
                    parts.append(Part({"files": group, "after": after if not parts else 0}, bound))
                    group, bound, weight = [], 0, 0
                key, size = self._files.key(path), path.stat().st_size
                for first, last in ranges_of(size, step * each):
                    parts.append(Part({"file": key, "bytes": [first, last]}, 1 + last - first))
                place = self._files.after(place, key)
                taken += -(-size // each)
                if until is None and taken >= load.limit:
                    return Plan(parts, place.plain(), more=path is not files[-1])
                continue
            key, size = self._files.key(path), 1 if self._is_single else 1 + path.stat().st_size
            place = self._files.after(place, key)
            group.append(key)
            bound, weight = bound + size, weight + -(-size // each)
            taken += -(-size // each)
            is_full = until is None and taken >= load.limit
            if weight >= step or is_full or path is files[-1]:
                work = {"files": group} if parts else {"files": group, "after": after}
                parts.append(Part(work, bound))
                group, bound, weight = [], 0, 0
            if is_full:
                return Plan(parts, place.plain(), more=path is not files[-1])
        return Plan(parts, place.plain())

    def fetch(self, work: Any) -> Reading:
        """Return the messages of some files, whatever files have appeared since."""
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        if "bytes" in work:
            return self._fetch_range(work["file"], *work["bytes"])
        after = work.get("after", 0)
        for key in work["files"]:
            for read in islice(self._messages(self._files.file(key)), after, None):
                if isinstance(read, Refusal):
                    refused.append(read)
                else:
                    updates.append(read)
            after = 0
        return Reading(updates, None, refused)

    def check_joints(self, joints: Sequence[Any]) -> None:
        """Raise an error if the ranges of a divided file do not fit together."""
        fit_together(joints)

    def _fetch_range(self, key: str, start: int, end: int) -> Reading:
        """Return the records that start in a range of bytes; their origins are numbers in it."""
        assert self.label is not None
        path = self._files.file(key)
        stored, stream = path.stat().st_mtime, self._stream(path)
        try:
            records, joint = read_range(path, self.label, start, end)
        except OSError as error:
            raise ConnectorError("AX858", f"{path}: {error.strerror or error}") from error
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        for number, content in enumerate(records, start=1):
            origin = f"{path.name}@{start}#{number}"
            try:
                element = parse(content, name=origin).root if self.timing.needs_element else None
                updates.append(
                    StreamUpdate(stream, "insert", content, self.timing.of(element, stored), origin)
                )
            except AxlogError as error:
                refused.append(Refusal(stream, content, origin, error.describe()))
        return Reading(updates, None, refused, joint=[key, *joint[1:]])

    @property
    def _is_single(self) -> bool:
        """Whether every file is one message."""
        return self.label is None and self.options.format != "json"

    def _available(self, files: Sequence[Path], each: int, limit: int) -> int:
        """Return about how many messages files have, as far as this matters for a limit."""
        if self._is_single:
            return len(files)
        found = 0
        for path in files:
            with suppress(OSError):
                found += -(-path.stat().st_size // each)
            if found >= limit:
                break
        return found

    def _length(self, files: Sequence[Path]) -> int:
        """Return about how many bytes a message has; 1 if every file is one."""
        if self._is_single or not files:
            return 1
        if self.label is None:
            return _JSON
        with suppress(OSError), files[0].open("rb") as file:
            some = file.read(_SAMPLE)
            name = re.escape(etree.QName(self.label).localname.encode())
            return max(1, len(some) // max(1, len(re.findall(rb"[<:]" + name + rb"[\s/>]", some))))
        return 1

    def close(self) -> None:
        """Close the file that is being read."""
        self._open = None

    def _stream(self, path: Path) -> str:
        return self.stream if self.stream is not None else path.parent.name

    def _continued(self, place: Place, path: Path) -> Iterator[StreamUpdate | Refusal]:
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
