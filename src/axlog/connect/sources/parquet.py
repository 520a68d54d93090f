"""Parquet files of a directory, or one file, as a stream: one message per row.

Files are listed as those of `directory`, and read as `row_files.py` describes. A plan divides them
by rows, which the footers count, so that tasks read row groups in parallel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from axlog.connect.kinds import LocalPath, Origin, SourceKind
from axlog.connect.protocol import Load, Part, Plan, Position, Reading, Refusal
from axlog.connect.sources.file_listing import FileListing, Place
from axlog.connect.sources.row_files import RowFile, RowOptions
from axlog.document.stream_update import StreamUpdate
from axlog.extras import import_extra


class ParquetOptions(RowOptions):
    """Options of `parquet`."""

    path: LocalPath = Field(description="The directory, or one file.")
    pattern: str = Field(default="*.parquet", description="A glob pattern for its files.")
    order: Literal["any", "name"] = Field(
        default="any",
        description="name: new files sort after old ones by name, so positions stay small.",
    )


class ParquetSource:
    """The rows of files as updates."""

    def __init__(self, options: ParquetOptions, origin: Origin) -> None:
        import_extra("pyarrow")  # what is missing is said before a file is looked for
        self.stream = origin.stream
        self.options = options
        path = origin.path(options.path)
        # The streams are those of the rows: all files are in one directory.
        self._files = FileListing(path, self.stream or "", options.pattern, options.order == "name")

    def read(self, position: Position, limit: int) -> Reading:
        """Return at most `limit` rows after a position."""
        plan = self.plan(position, Load(limit, least=limit))
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        for part in plan.parts:
            reading = self.fetch(part.work)
            updates += reading.updates
            refused += reading.refused
        return Reading(updates, plan.position, refused, plan.more)

    def plan(self, position: Position, load: Load, until: Position | None = None) -> Plan:
        """Return the next rows in parts, by the numbers of rows in the footers."""
        place = Place.of(position)
        end = None if until is None else Place.of(until)
        files = self._files.waiting(place) if end is None else self._files.between(place, end)
        step, left = load.step(), load.limit
        parts: list[Part] = []
        work: list[list[Any]] = []
        room = step
        for path in files:
            key = self._files.key(path)
            rows = self._rows(path)
            if end is not None and key == end.file:
                rows = end.records
            first = place.records if place.file == key else 0
            while first < rows and (left > 0 or end is not None):
                count = min(rows - first, room, left if end is None else rows)
                work.append([key, first, count])
                first, room, left = first + count, room - count, left - count
                if not room:
                    parts.append(_part(work))
                    work, room = [], step
            if first < rows or (end is not None and key == end.file):
                place = Place(place.done, key, first)
                break
            place = self._files.after(place, key)
        if work:
            parts.append(_part(work))
        more = end is None and (place.file is not None or place.plain() != self._end(place, files))
        return Plan(parts, place.plain(), more and bool(parts))

    def fetch(self, work: Any) -> Reading:
        """Return some rows of some files."""
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        for key, first, count in work:
            file = self._open(self._files.file(key))
            try:
                for read in file.read(first, count, key):
                    if isinstance(read, Refusal):
                        refused.append(read)
                    else:
                        updates.append(read)
            finally:
                file.close()
        return Reading(updates, None, refused)

    def close(self) -> None:
        """Nothing stays open between readings."""

    def _end(self, place: Place, files: list[Path]) -> Position:
        """Return the position after all files."""
        done = {self._files.key(path) for path in files}
        is_by_name = self._files.is_by_name
        return Place({max(done)} if is_by_name and done else place.done | done).plain()

    def _rows(self, path: Path) -> int:
        self._files.check_readable(path)
        file = self._open(path)
        try:
            return file.rows
        finally:
            file.close()

    def _open(self, path: Path) -> RowFile:
        return RowFile(str(path), self.stream, self.options.columns)


def _part(work: list[list[Any]]) -> Part:
    return Part(work, sum(count for _, _, count in work))


PARQUET = SourceKind(
    "parquet",
    ParquetOptions,
    ParquetSource,
    "Rows of Parquet files with the columns stream, xml and time.",
    names_streams=True,
    needs=("pyarrow",),
)
