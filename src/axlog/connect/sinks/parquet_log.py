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
from axlog.connect.sinks.arrow import schema_of, table_of
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
        path = self.path / f"batch-{batch:012}.parquet"
        if not changes or path.exists():
            return
        rows = [
            (fields["batch"], fields["view"], fields["position"], fields["op"], change.key_text,
             str(fields["time"]), _json(fields["row"]), _json(fields.get("before")),
             _json(fields["cause"]), fields["final"])
            for change in changes
            for fields in (logged(batch, change),)
        ]  # fmt: skip
        partial = path.with_name(f".{path.name}.part")
        try:
            self._parquet.write_table(table_of(rows, schema_of(COLUMNS)), partial)
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            settle_file(partial, path)
        except OSError as error:
            raise unwritable(path, error) from error

    def close(self) -> None:
        """Nothing to close: every file is complete."""


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


PARQUET_LOG = SinkKind(
    "parquet-log",
    ParquetLogOptions,
    ParquetLogSink,
    "Every change, in Parquet files by batch.",
    needs=("pyarrow",),
)
