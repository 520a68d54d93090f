"""A Delta table as a stream (with the package deltalake): one message per row that is appended.

The first plan has the rows of the table's current version; then the rows that later versions append
follow, version by version. Compaction changes no rows and brings nothing. A version that deletes or
changes rows ends the stream with an error: what was read cannot be taken back. The rows of a file
are read as `row_files.py` describes; tasks read the table's files, and the driver reads its log.

A position names the version of the beginning, the current version, the finished files of it, and
the rows read of the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple
from urllib.parse import unquote

from pydantic import AfterValidator, Field

from axlog.connect.kinds import Origin, SourceKind
from axlog.connect.locations import local_path
from axlog.connect.protocol import Load, Plan, Position
from axlog.connect.sinks.delta import known_address
from axlog.connect.sources.row_files import RowFile, RowOptions, RowParts, RowSource
from axlog.errors import ConnectorError
from axlog.extras import import_extra

_PARTITION = "partition."
_SAME_ROWS = frozenset({"OPTIMIZE", "REORG", "VACUUM START", "VACUUM END"})


class DeltaOptions(RowOptions):
    """Options of `delta`."""

    path: Annotated[str, AfterValidator(known_address)] = Field(
        description="The table's directory, or its address in an object store (s3://...)."
    )


class _Place(NamedTuple):
    """A parsed position."""

    first: int  # the version of the beginning
    version: int
    files: int = 0  # finished ones of the version
    rows: int = 0  # of the next file


class _File(NamedTuple):
    """A file of the table: its path below it, its rows, and the values of its partition."""

    path: str
    rows: int
    values: dict[str, Any]


class DeltaSource(RowSource):
    """The rows of a table as updates."""

    def __init__(self, options: DeltaOptions, origin: Origin) -> None:
        self._package = import_extra("deltalake")
        self.stream = origin.stream
        self.columns = options.columns
        is_elsewhere = local_path(options.path) is None
        self.path = options.path if is_elsewhere else str(origin.path(options.path))

    def plan(self, position: Position, load: Load, until: Position | None = None) -> Plan:
        """Return the next rows in parts, by the table's log."""
        last = self._open().version() if until is None else until[1]
        first = last if until is None else until[0]
        place = _Place(first, first) if position is None else _Place(*position)
        end = None if until is None else _Place(*until)
        parts = RowParts(load, is_bounded=end is None)
        for at, file in self._files(place, last):
            rows = file.rows
            if end is not None and at[:3] >= end[:3]:
                rows = end.rows if at[:3] == end[:3] else 0
            start = parts.take(file.path, at.rows, rows, file.values)
            if start < rows:
                place = at._replace(rows=start)
                break
            place = _Place(at.first, at.version, at.files + 1)
        else:
            place = place if place.version == last else _Place(place.first, last)
        more = parts.left <= 0 and end is None and any(self._files(place, last))
        return Plan(parts.all(), list(end or place), more)

    def locate(self, name: str) -> str:
        """Return the path or address of a file of the table."""
        return f"{self.path.rstrip('/')}/{unquote(name)}"

    def _files(self, place: _Place, last: int) -> Iterator[tuple[_Place, _File]]:
        """Yield the files after a position, each with the position at its beginning."""
        for version in range(place.version, last + 1):
            is_first = version == place.version
            files = self._added(version, is_whole=version == place.first)
            for at in range(place.files if is_first else 0, len(files)):
                rows = place.rows if is_first and at == place.files else 0
                yield _Place(place.first, version, at, rows), files[at]

    def _added(self, version: int, is_whole: bool) -> list[_File]:
        """Return the files that a version adds, or all that it has."""
        now = self._active(version)
        if is_whole:
            return list(now.values())
        operation = self._operation(version)
        if operation in _SAME_ROWS:
            return []
        before = self._active(version - 1)
        if before.keys() - now.keys():
            raise ConnectorError(
                "AX858",
                f"version {version} of {self.path} removes or changes rows"
                f" ({operation}), and only appended rows can be followed",
                advice="start with another checkpoint",
            )
        return [file for path, file in now.items() if path not in before]

    def _operation(self, version: int) -> str:
        """Return the name of the operation that made a version."""
        table = self._open()
        for done in table.history(table.version() - version + 1):
            if done["version"] == version:
                return str(done.get("operation"))
        return "unknown"

    def _active(self, version: int) -> Mapping[str, _File]:
        """Return the files of a version by their paths, in order."""
        arrow = import_extra("pyarrow")
        table = self._open(version)
        found = arrow.table(table.get_add_actions(flatten=True)).to_pylist()
        found.sort(key=lambda add: (add["modification_time"], add["path"]))
        files: dict[str, _File] = {}
        for add in found:
            values = {
                name.removeprefix(_PARTITION): value
                for name, value in add.items()
                if name.startswith(_PARTITION)
            }
            rows = add.get("num_records")
            if rows is None:
                with RowFile(self.locate(add["path"]), None, {}) as file:
                    rows = file.rows
            files[add["path"]] = _File(add["path"], rows, values)
        return files

    def _open(self, version: int | None = None) -> Any:
        try:
            return self._package.DeltaTable(self.path, version=version)
        except (self._package.exceptions.DeltaError, OSError) as error:
            raise ConnectorError("AX858", f"{self.path}: {error}") from error


DELTA = SourceKind(
    "delta",
    DeltaOptions,
    DeltaSource,
    "Rows appended to a Delta table with the columns stream, xml and time.",
    names_streams=True,
    needs=("deltalake", "pyarrow"),
)
