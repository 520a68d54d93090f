"""A view as one Parquet file, always complete and equal to the view after some batch.

Every batch that changes the view rewrites the file under another name and renames it. The metadata
holds the run and the batch. A batch costs the size of the view: for millions of rows use `sql`,
`delta` or longer batches.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from axlog.connect.kinds import LocalPath, Options, Origin, SinkKind
from axlog.connect.sinks.arrow import arrow, schema_of, table_of
from axlog.connect.sinks.files import settle_file, unwritable
from axlog.connect.sinks.tables import Values, check_columns, columns_of, difference, view_of
from axlog.errors import ConnectorError
from axlog.extras import import_extra
from axlog.views.change import Change


class ParquetOptions(Options):
    """Options of `parquet`."""

    path: LocalPath = Field(description="The file; {view} in it creates one for each view.")


class ParquetSink:
    """The rows of a view in a file."""

    exactly_once = True

    def __init__(self, options: ParquetOptions, origin: Origin) -> None:
        self._parquet = import_extra("pyarrow.parquet")
        self.path = origin.path(options.path)
        self.run = origin.run
        check_columns(view_of(origin))
        self.columns = columns_of(view_of(origin))
        self.rows: Counter[Values] = Counter()
        self._batch = -1
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                self._load()
        except OSError as error:
            raise unwritable(self.path, error) from error

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Update the file to the view's rows after a batch."""
        if batch <= self._batch:
            return
        moved = difference(changes)
        if moved or self._batch < 0:
            rows = self.rows.copy()
            rows.update(moved)
            self._store(+rows, batch)
            self.rows = +rows
        self._batch = batch

    def close(self) -> None:
        """Nothing to close: the file is complete after every batch."""

    def _load(self) -> None:
        try:
            table = self._parquet.read_table(self.path, partitioning=None)
        except arrow().ArrowInvalid as error:
            raise ConnectorError("AX859", f"{self.path} is not a Parquet file: {error}") from error
        metadata = table.schema.metadata or {}
        if metadata.get(b"axlog.run") != self.run.encode():
            return  # a file of another run is replaced by the first batch
        self._batch = int(metadata[b"axlog.batch"])
        self.rows.update(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def _store(self, rows: Counter[Values], batch: int) -> None:
        named = {"axlog.run": self.run, "axlog.batch": str(batch)}
        listed = sorted(rows.elements(), key=_in_order)
        table = table_of(listed, schema_of(self.columns, **named))
        partial = self.path.with_name(f".{self.path.name}.part")
        try:
            self._parquet.write_table(table, partial)
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            settle_file(partial, self.path)
        except OSError as error:
            raise unwritable(self.path, error) from error


def _in_order(values: Values) -> tuple[tuple[bool, str, object], ...]:
    return tuple((value is not None, type(value).__name__, value) for value in values)


PARQUET = SinkKind(
    "parquet",
    ParquetOptions,
    ParquetSink,
    "The rows of a view in one Parquet file, replaced by every batch.",
    is_table=True,
    needs=("pyarrow",),
)
