"""The change log as a directory of Parquet files, one per batch that has changes.

A file is named by its batch and renamed when it is complete, so that a repeated batch finds it.
Columns: batch, view, position, op, key (JSON), time (a text: seconds, or an ISO date), row, before
and cause (JSON), and final.
Another run writes to another directory below the path.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from pydantic import Field

from axlog.connect.kinds import Column, LocalPath, Options, Origin, SinkKind
from axlog.connect.protocol import PartNumber, SinkPart
from axlog.connect.sinks.arrow import read_tables, schema_of, table_of, written_table
from axlog.connect.sinks.envelopes import logged
from axlog.connect.sinks.files import settle_file, unwritable
from axlog.extras import import_extra
from axlog.views.change import Change

COLUMNS = (
    Column("batch", "integer"),
    Column("view", "text"),
    Column("position", "integer"),
    Column("op", "text"),
    Column("key", "text"),
    Column("time", "text"),
    Column("row", "text"),
    Column("before", "text"),
    Column("cause", "text"),
    Column("final", "truth"),
)


class ParquetLogOptions(Options):
    """Options of `parquet-log`."""

    path: LocalPath = Field(description="The directory; each run creates a subdirectory.")


class ParquetLogSink:
    """Changes in a directory of files."""

    exactly_once = True

    def __init__(self, options: ParquetLogOptions, origin: Origin) -> None:
        self._parquet = import_extra("pyarrow.parquet")
        self.path = origin.path(options.path) / (f"run-{origin.run}" if origin.run else "run")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Write the file of a batch, unless it exists."""
        if changes:
            self.commit(batch, [SinkPart(0, _part(batch, PartNumber(), changes))])

    def commit(self, batch: int, parts: Sequence[SinkPart]) -> None:
        """Write the parts of a batch as one file, unless it exists."""
        path = self.path / f"batch-{batch:012}.parquet"
        written = [body for part in parts if (body := part.read())]
        if not written or path.exists():
            return
        partial = path.with_name(f".{path.name}.part")
        try:
            self._parquet.write_table(read_tables(written), partial)
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            settle_file(partial, path)
        except OSError as error:
            raise unwritable(path, error) from error

    def close(self) -> None:
        """Nothing to close: every file is complete."""


def _part(batch: int, part: PartNumber, changes: Sequence[Change]) -> bytes:
    """Write the rows of some changes."""
    rows = [
        (fields["batch"], fields["view"], fields["position"], fields["op"], change.key_text,
         str(fields["time"]), _json(fields["row"]), _json(fields.get("before")),
         _json(fields["cause"]), fields["final"])
        for change in changes
        for fields in (logged(batch, change),)
    ]  # fmt: skip
    return written_table(table_of(rows, schema_of(COLUMNS))) if rows else b""


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


PARQUET_LOG = SinkKind(
    "parquet-log",
    ParquetLogOptions,
    ParquetLogSink,
    "Every change, in Parquet files by batch.",
    needs=("pyarrow",),
    parts=lambda options, origin: _part,
)
