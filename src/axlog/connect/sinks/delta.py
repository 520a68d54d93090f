"""A view as a Delta table, kept equal to it by one merge per batch (with the package deltalake).

A commit carries the run and the batch as the table's application transaction, so that a repeated
batch is recognized. Commits are atomic. A row of the table has the digest of the row's key
(`axlog_key`) beside its own columns; batches are merged by it. Old versions remain until the table
is vacuumed. A table of 0.1, which has no such keys, is refused (AX859) when its run continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from axlog.connect.kinds import Column, Options, Origin, SinkKind
from axlog.connect.locations import local_path
from axlog.connect.protocol import PartNumber, SinkPart
from axlog.connect.sinks.arrow import read_tables, schema_of, table_of, written_table
from axlog.connect.sinks.sql import COPIES, KEY, old_table
from axlog.connect.sinks.tables import check_columns, columns_of, merged, view_of
from axlog.errors import ConnectorError
from axlog.extras import import_extra
from axlog.views.change import Change

GONE = "axlog_gone"
"""The column of a batch that marks deleted rows; tables do not have it."""
_STORES = frozenset({"s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "hdfs", "viewfs"})
"""Schemes of object stores that deltalake supports; it reads their keys from the environment."""


def known_address(written: str) -> str:
    """Return a path, or an address that deltalake supports; any other is refused."""
    if local_path(written) is None and written.partition(":")[0].lower() not in _STORES:
        raise PydanticCustomError(
            "address", "{written} is an address that deltalake does not support",
            {"written": repr(written)},
        )  # fmt: skip
    return written


class DeltaOptions(Options):
    """Options of `delta`."""

    path: Annotated[str, AfterValidator(known_address)] = Field(
        description="The table's directory, or its address in an object store (s3://...);"
        " {view} in it creates one for each view."
    )


class DeltaParts:
    """Writes the rows that changes leave, with their keys."""

    def __init__(self, origin: Origin) -> None:
        columns = columns_of(view_of(origin))
        self._nothing = (None,) * len(columns)
        self._schema = schema_of((Column(KEY, "text"), *columns, Column(GONE, "truth")))

    def __call__(self, batch: int, part: PartNumber, changes: Sequence[Change]) -> bytes:
        rows = [
            (key, *(values or self._nothing), values is None)
            for key, values in merged(changes).items()
        ]
        return written_table(table_of(rows, self._schema))


class DeltaSink:
    """The rows of a view in a Delta table."""

    exactly_once = True

    def __init__(self, options: DeltaOptions, origin: Origin) -> None:
        self._package = import_extra("deltalake")
        written = options.path.replace("{view}", view_of(origin).name)
        is_elsewhere = local_path(written) is None  # in an object store that deltalake supports
        self.path = written if is_elsewhere else str(origin.path(options.path))
        self.run = origin.run or "run"
        check_columns(view_of(origin), (KEY, COPIES, GONE))
        self.columns = columns_of(view_of(origin))
        self._part = DeltaParts(origin)
        self._batch = self._last()

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Update the table to the view's rows after a batch, in one commit."""
        if batch > self._batch:
            self.commit(batch, [SinkPart(0, self._part(batch, PartNumber(), changes))])

    def commit(self, batch: int, parts: Sequence[SinkPart]) -> None:
        """Merge the rows of all parts into the table, in one commit."""
        if batch <= self._batch:
            return
        rows = read_tables([part.read() for part in parts])
        try:
            if self._batch < 0:  # a table of another run is replaced
                self._replace(rows, batch)
            elif rows.num_rows:
                self._merge(rows, batch)
        except self._package.exceptions.DeltaError as error:
            raise ConnectorError("AX859", f"{self.path}: {error}") from error
        self._batch = batch

    def close(self) -> None:
        """Nothing to close: every commit is complete."""

    def _last(self) -> int:
        try:
            if not self._package.DeltaTable.is_deltatable(self.path):
                return -1
            table = self._package.DeltaTable(self.path)
            last = table.transaction_version(self.run)
            if last is not None and COPIES in {field.name for field in table.schema().fields}:
                raise old_table(self.path)
        except (self._package.exceptions.DeltaError, OSError) as error:
            raise ConnectorError("AX859", f"{self.path}: {error}") from error
        return -1 if last is None else int(last)

    def _commit(self, batch: int) -> Any:
        done = self._package.Transaction(self.run, batch)
        return self._package.CommitProperties(app_transactions=[done])

    def _replace(self, rows: Any, batch: int) -> None:
        there = import_extra("pyarrow.compute").invert(rows[GONE])
        self._package.write_deltalake(
            self.path,
            rows.filter(there).drop_columns([GONE]),
            mode="overwrite",
            schema_mode="overwrite",
            commit_properties=self._commit(batch),
        )

    def _merge(self, rows: Any, batch: int) -> None:
        table = self._package.DeltaTable(self.path)
        merging = table.merge(
            rows,
            f"old.{KEY} = new.{KEY}",
            source_alias="new",
            target_alias="old",
            commit_properties=self._commit(batch),
        )
        new = {f'"{name}"': f'new."{name}"' for name in rows.column_names if name != GONE}
        merging = merging.when_matched_delete(f"new.{GONE}")
        merging = merging.when_matched_update(new, f"NOT new.{GONE}")
        merging.when_not_matched_insert(new, f"NOT new.{GONE}").execute()


DELTA = SinkKind(
    "delta",
    DeltaOptions,
    DeltaSink,
    "A Delta table kept equal to the view, with one commit per batch.",
    is_table=True,
    reserved=(KEY, COPIES, GONE),
    needs=("deltalake", "pyarrow"),
    parts=lambda options, origin: DeltaParts(origin),
)
