"""A view as a Delta table, kept equal to it by one merge per batch (with the package deltalake).

A commit carries the run and the batch as the table's application transaction, so that a repeated
batch is recognized. Commits are atomic. Rows have a key derived from their values (`axlog_key`) and
their number of copies (`axlog_copies`). Old versions remain until the table is vacuumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from axlog.connect.kinds import Column, Options, Origin, SinkKind
from axlog.connect.locations import local_path
from axlog.connect.sinks.arrow import schema_of, table_of
from axlog.connect.sinks.sql import COPIES, KEY
from axlog.connect.sinks.tables import check_columns, columns_of, difference, key_of, view_of
from axlog.errors import ConnectorError
from axlog.extras import import_extra
from axlog.views.change import Change

_STORES = frozenset({"s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "hdfs", "viewfs"})
"""Schemes of object stores that deltalake supports; it reads their keys from the environment."""


def _is_known(written: str) -> str:
    if local_path(written) is None and written.partition(":")[0].lower() not in _STORES:
        raise PydanticCustomError(
            "address", "{written} is an address that deltalake does not support",
            {"written": repr(written)},
        )  # fmt: skip
    return written


class DeltaOptions(Options):
    """Options of `delta`."""

    path: Annotated[str, AfterValidator(_is_known)] = Field(
        description="The table's directory, or its address in an object store (s3://...);"
        " {view} in it creates one for each view."
    )


class DeltaSink:
    """The rows of a view in a Delta table."""

    exactly_once = True

    def __init__(self, options: DeltaOptions, origin: Origin) -> None:
        self._package = import_extra("deltalake")
        written = options.path.replace("{view}", view_of(origin).name)
        is_elsewhere = local_path(written) is None  # in an object store that deltalake supports
        self.path = written if is_elsewhere else str(origin.path(options.path))
        self.run = origin.run or "run"
        check_columns(view_of(origin), (KEY, COPIES))
        own = columns_of(view_of(origin))
        self.schema = schema_of((Column(KEY, "text"), *own, Column(COPIES, "integer")))
        self._batch = self._last()

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Update the table to the view's rows after a batch, in one commit."""
        if batch <= self._batch:
            return
        moved = difference(changes)
        rows = [(key_of(values), *values, number) for values, number in moved.items()]
        try:
            if self._batch < 0:  # a table of another run is replaced
                self._replace(rows, batch)
            elif rows:
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
            last = self._package.DeltaTable(self.path).transaction_version(self.run)
        except (self._package.exceptions.DeltaError, OSError) as error:
            raise ConnectorError("AX859", f"{self.path}: {error}") from error
        return -1 if last is None else int(last)

    def _commit(self, batch: int) -> Any:
        done = self._package.Transaction(self.run, batch)
        return self._package.CommitProperties(app_transactions=[done])

    def _replace(self, rows: list[tuple[Any, ...]], batch: int) -> None:
        self._package.write_deltalake(
            self.path,
            table_of(rows, self.schema),
            mode="overwrite",
            schema_mode="overwrite",
            commit_properties=self._commit(batch),
        )

    def _merge(self, rows: list[tuple[Any, ...]], batch: int) -> None:
        table = self._package.DeltaTable(self.path)
        copies = f"old.{COPIES} + new.{COPIES}"
        merging = table.merge(
            table_of(rows, self.schema),
            f"old.{KEY} = new.{KEY}",
            source_alias="new",
            target_alias="old",
            commit_properties=self._commit(batch),
        )
        merging = merging.when_matched_delete(f"{copies} <= 0")
        merging.when_matched_update({COPIES: copies}).when_not_matched_insert_all().execute()


DELTA = SinkKind(
    "delta",
    DeltaOptions,
    DeltaSink,
    "A Delta table kept equal to the view, with one commit per batch.",
    is_table=True,
    reserved=(KEY, COPIES),
)
