"""Rows of Parquet files as updates: the columns `stream`, `xml`, `time` and `action`.

Only `xml` (text or bytes) is required; `stream` is not needed by the source of one stream. A time
is a timestamp, a number of seconds, or a text. A row that is not an update is rejected with its
position.

A source of such files only plans (`RowSource.plan`), with `RowParts`: runs of rows, divided among
tasks. Reading them is the same for all.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias

from pydantic import Field

from axlog.connect.kinds import Options
from axlog.connect.locations import is_address
from axlog.connect.protocol import Load, Part, Plan, Position, Reading, Refusal
from axlog.document.stream_update import ACTIONS, StreamUpdate
from axlog.errors import ConnectorError
from axlog.extras import import_extra

Name: TypeAlias = Literal["stream", "xml", "time", "action"]
COLUMNS: tuple[Name, ...] = ("stream", "xml", "time", "action")


class RowOptions(Options):
    """Options of sources whose messages are rows of Parquet files."""

    columns: dict[Name, str] = Field(
        default={},
        description="The names of the columns stream, xml, time and action, where they differ.",
    )


class RowFile:
    """A Parquet file whose rows are updates."""

    def __init__(
        self,
        path: str,
        stream: str | None,
        columns: Mapping[Name, str],
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """`path` may be an address that pyarrow supports. `values`: of columns that are not in the
        file, because it is part of a partitioned table.
        """
        parquet, files = import_extra("pyarrow.parquet"), import_extra("pyarrow.fs")
        self._stream, self._values = stream, dict(values or {})
        self._names: dict[Name, str] = {name: columns.get(name, name) for name in COLUMNS}
        try:
            system, inside = None, path
            if is_address(path):
                system, inside = files.FileSystem.from_uri(path)
            self._file = parquet.ParquetFile(inside, filesystem=system)
        except (OSError, ValueError) as error:
            raise ConnectorError("AX858", f"{path}: {error}") from error

    @property
    def rows(self) -> int:
        """The number of rows, from the file's footer."""
        return int(self._file.metadata.num_rows)

    def read(self, first: int, count: int, name: str) -> Iterator[StreamUpdate | Refusal]:
        """Yield rows as updates; only the row groups that contain them are read."""
        at = 0
        present = set(self._file.schema_arrow.names)
        wanted = [column for column in self._names.values() if column in present]
        for group in range(self._file.metadata.num_row_groups):
            size = int(self._file.metadata.row_group(group).num_rows)
            start, end = max(first - at, 0), min(first + count - at, size)
            if start < end:
                table = self._file.read_row_group(group, columns=wanted).slice(start, end - start)
                for number, row in enumerate(table.to_pylist(), at + start + 1):
                    yield self._update(row, f"{name}#{number}")
            at += size

    def _update(self, row: Mapping[str, Any], origin: str) -> StreamUpdate | Refusal:
        given = {**row, **self._values}
        stream, xml, time, action = (given.get(self._names[name]) for name in COLUMNS)
        stream, action = stream if stream is not None else self._stream, action or "insert"
        error = (
            "AX407: it names no stream"
            if not isinstance(stream, str)
            else f"AX407: it is for the stream {stream!r}"
            if self._stream is not None and stream != self._stream
            else "AX407: it has no content"
            if not isinstance(xml, str | bytes) and action != "end"
            else "AX407: its action is none"
            if action not in ACTIONS
            else None
        )
        if error is not None or not isinstance(stream, str):
            content = xml if isinstance(xml, str | bytes) else ""
            return Refusal(str(stream or ""), content, origin, error or "")
        return StreamUpdate(stream, action, xml or "", time, origin)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


class RowParts:
    """Runs of rows of files, divided into parts for tasks."""

    def __init__(self, load: Load, is_bounded: bool) -> None:
        """`is_bounded`: at most `load.limit` rows are taken; otherwise all that are offered."""
        self.left = load.limit if is_bounded else sys.maxsize
        self._step = self._room = load.step()
        self._work: list[list[Any]] = []
        self._parts: list[Part] = []

    def take(self, name: str, first: int, end: int, values: Mapping[str, Any] | None = None) -> int:
        """Take rows of a file, as many as are left; return the number of the next row."""
        while first < end and self.left > 0:
            count = min(end - first, self._room, self.left)
            self._work.append([name, first, count, values])
            first, self._room, self.left = first + count, self._room - count, self.left - count
            if not self._room:
                self._finish()
        return first

    def all(self) -> list[Part]:
        """Return the parts, in order."""
        if self._work:
            self._finish()
        return self._parts

    def _finish(self) -> None:
        self._parts.append(Part(self._work, sum(count for _, _, count, _ in self._work)))
        self._work, self._room = [], self._step


class RowSource(Protocol):
    """A source whose messages are rows of files."""

    stream: str | None
    columns: Mapping[Name, str]

    @abstractmethod
    def plan(self, position: Position, load: Load, until: Position | None = None) -> Plan:
        """Return the next rows in parts (`RowParts`); see `Planned`."""

    @abstractmethod
    def locate(self, name: str) -> str:
        """Return the path or address of a file that a plan names."""

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

    def fetch(self, work: Any) -> Reading:
        """Return the rows of a part."""
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        for name, first, count, values in work:
            with RowFile(self.locate(name), self.stream, self.columns, values) as file:
                for read in file.read(first, count, name):
                    if isinstance(read, Refusal):
                        refused.append(read)
                    else:
                        updates.append(read)
        return Reading(updates, None, refused)

    def close(self) -> None:
        """Nothing stays open between readings."""
