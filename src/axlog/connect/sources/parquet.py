"""Parquet files of a directory, or one file, as a stream: one message per row.

Files are listed as those of `directory`, and read as `row_files.py` describes. A plan divides them
by rows, which the footers count, so that tasks read row groups in parallel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from axlog.connect.kinds import LocalPath, Origin, SourceKind
from axlog.connect.protocol import Load, Plan, Position
from axlog.connect.sources.file_listing import FileListing, Place
from axlog.connect.sources.row_files import RowFile, RowOptions, RowParts, RowSource
from axlog.extras import import_extra


class ParquetOptions(RowOptions):
    """Options of `parquet`."""

    path: LocalPath = Field(description="The directory, or one file.")
    pattern: str = Field(default="*.parquet", description="A glob pattern for its files.")
    order: Literal["any", "name"] = Field(
        default="any",
        description="name: new files sort after old ones by name, so positions stay small.",
    )


class ParquetSource(RowSource):
    """The rows of files as updates."""

    def __init__(self, options: ParquetOptions, origin: Origin) -> None:
        import_extra("pyarrow")  # a missing package is reported before a missing file
        self.stream = origin.stream
        self.columns = options.columns
        path = origin.path(options.path)
        # The streams are those of the rows: all files are in one directory.
        self._files = FileListing(path, self.stream or "", options.pattern, options.order == "name")

    def plan(self, position: Position, load: Load, until: Position | None = None) -> Plan:
        """Return the next rows in parts, by the numbers of rows in the footers."""
        place = Place.of(position)
        end = None if until is None else Place.of(until)
        files = self._files.waiting(place) if end is None else self._files.between(place, end)
        parts = RowParts(load, is_bounded=end is None)
        for path in files:
            key = self._files.key(path)
            is_last = end is not None and key == end.file
            rows = end.records if end is not None and is_last else self._rows(path)
            first = parts.take(key, place.records if place.file == key else 0, rows)
            if first < rows or is_last:
                place = Place(place.done, key, first)
                break
            place = self._files.after(place, key)
        found = parts.all()
        more = end is None and (place.file is not None or place.plain() != self._end(place, files))
        return Plan(found, place.plain(), more and bool(found))

    def locate(self, name: str) -> str:
        """Return the path of a file."""
        return str(self._files.file(name))

    def _end(self, place: Place, files: list[Path]) -> Position:
        """Return the position after all files."""
        done = {self._files.key(path) for path in files}
        is_by_name = self._files.is_by_name
        return Place({max(done)} if is_by_name and done else place.done | done).plain()

    def _rows(self, path: Path) -> int:
        self._files.check_readable(path)
        with RowFile(str(path), self.stream, self.columns) as file:
            return file.rows


PARQUET = SourceKind(
    "parquet",
    ParquetOptions,
    ParquetSource,
    "Rows of Parquet files with the columns stream, xml and time.",
    names_streams=True,
    needs=("pyarrow",),
)
