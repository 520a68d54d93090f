"""Rows and changes as Arrow tables, for the sinks that write Parquet and Delta."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from axlog.connect.kinds import Column
from axlog.connect.sinks.tables import DECIMAL
from axlog.extras import import_extra

if TYPE_CHECKING:
    import pyarrow


def arrow() -> Any:
    """Import pyarrow, or raise an error that names the extra to install."""
    return import_extra("pyarrow")


def schema_of(columns: Iterable[Column], **metadata: str) -> pyarrow.Schema:
    """The schema of a table with these columns."""
    package = arrow()
    types = {
        "text": package.string(),
        "integer": package.int64(),
        "decimal": package.decimal128(*DECIMAL),
        "double": package.float64(),
        "seconds": package.float64(),
        "date": package.timestamp("us", "UTC"),
        "day": package.date32(),
        "truth": package.bool_(),
    }
    fields = [package.field(column.name, types[column.type]) for column in columns]
    return package.schema(fields, metadata=metadata or None)


def table_of(rows: Sequence[Sequence[Any]], schema: pyarrow.Schema) -> pyarrow.Table:
    """Rows as an Arrow table."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [
        arrow().array(values, field.type) for values, field in zip(columns, schema, strict=True)
    ]
    return arrow().Table.from_arrays(arrays, schema=schema)


def written_table(table: pyarrow.Table) -> bytes:
    """Return a table as the bytes of an Arrow stream."""
    out = arrow().BufferOutputStream()
    with import_extra("pyarrow.ipc").new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return bytes(out.getvalue())


def read_tables(written: Iterable[bytes]) -> pyarrow.Table:
    """Return the tables that `written_table` wrote, as one; there is at least one."""
    ipc = import_extra("pyarrow.ipc")
    return arrow().concat_tables([ipc.open_stream(each).read_all() for each in written])
