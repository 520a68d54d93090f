"""A view as a table of an SQL database, kept equal to it in one transaction per batch.

The transaction also updates the sink's row in the table `axlog_batches`, so that a repeated batch
is recognized and skipped, and an interrupted batch leaves nothing. A row of the table has the
digest of the row's key (`axlog_key`) beside its own columns. Batches are merged by it.

Tables of 0.1 counted equal rows in a column `axlog_copies`. Such a table is replaced when another
run starts, and refused (AX859) when its run continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import Field

from axlog.connect.databases import open_engine, reason_of
from axlog.connect.kinds import Options, Origin, Secret, SinkKind
from axlog.connect.sinks.tables import (
    DECIMAL,
    Values,
    check_columns,
    columns_of,
    merged,
    reserved,
    view_of,
)
from axlog.errors import ConnectorError
from axlog.extras import import_extra
from axlog.views.change import Change

KEY, BATCHES = "axlog_key", "axlog_batches"
COPIES = "axlog_copies"  # of 0.1
_AT_ONCE = 500


class SqlOptions(Options):
    """Options of `sql`."""

    url: Secret = Field(description="The database: sqlite:///out.db, postgresql+psycopg://...")
    table: str = Field(default="{view}", description="The table's name.")


class SqlSink:
    """The rows of a view in a table."""

    exactly_once = True

    def __init__(self, options: SqlOptions, origin: Origin) -> None:
        sql = import_extra("sqlalchemy")
        view = view_of(origin)
        self.run = origin.run
        self.name = options.table.replace("{view}", view.name.replace(".", "_"))
        self.columns = [column.name for column in columns_of(view)]
        self._sql = sql
        check_columns(view, (KEY, COPIES))
        if self.name.lower() == BATCHES:
            raise reserved(f"the table {self.name!r} of the view {view.name!r}", (BATCHES,))
        self._engine = open_engine(options.url, origin)
        about = sql.MetaData()
        types = {
            "text": sql.Text,
            "integer": sql.BigInteger,
            "decimal": sql.Numeric(*DECIMAL),
            "double": sql.Double,
            "seconds": sql.Double,
            "date": sql.DateTime(timezone=True),
            "day": sql.Date,
            "truth": sql.Boolean,
        }
        self.table = sql.Table(
            self.name,
            about,
            sql.Column(KEY, sql.String(32), primary_key=True),
            *(sql.Column(column.name, types[column.type]) for column in columns_of(view)),
        )
        self.batches = sql.Table(
            BATCHES,
            about,
            sql.Column("sink", sql.String(200), primary_key=True),
            sql.Column("run", sql.String(200), nullable=False),
            sql.Column("batch", sql.BigInteger, nullable=False),
        )
        with self._translated(), self._engine.begin() as connection:
            self._drop_old(connection)
            about.create_all(connection)

    def _drop_old(self, connection: Any) -> None:
        """Drop a table of 0.1, unless this run wrote it."""
        known = self._sql.inspect(connection)
        if not known.has_table(self.name):
            return
        if COPIES not in {column["name"] for column in known.get_columns(self.name)}:
            return
        if known.has_table(BATCHES) and self._last(connection)[0] == self.run:
            raise old_table(f"the table {self.name!r}")
        self.table.drop(connection)

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Update the table to the view's rows after a batch, in one transaction."""
        with self._translated(), self._engine.begin() as connection:
            run, last = self._last(connection)
            if run == self.run and batch <= last:
                return
            if run != self.run:
                connection.execute(self.table.delete())
            self._merge(connection, merged(changes))
            self._note(connection, batch, is_new=run is None)

    def rows(self) -> list[Values]:
        """Return the rows of the table, without their keys."""
        with self._translated(), self._engine.begin() as connection:
            found = connection.execute(self._sql.select(self.table)).mappings().all()
        return [tuple(row[column] for column in self.columns) for row in found]

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _last(self, connection: Any) -> tuple[str | None, int]:
        wanted = self._sql.select(self.batches).where(self.batches.c.sink == self.name)
        found = connection.execute(wanted).first()
        return (None, -1) if found is None else (found.run, found.batch)

    def _note(self, connection: Any, batch: int, *, is_new: bool) -> None:
        values = {"sink": self.name, "run": self.run, "batch": batch}
        if is_new:
            connection.execute(self.batches.insert().values(values))
            return
        mine = self.batches.c.sink == self.name
        connection.execute(self.batches.update().where(mine).values(values))

    def _merge(self, connection: Any, rows: Mapping[str, Values | None]) -> None:
        """Set the rows of these keys: those that are there are deleted first."""
        column = self.table.c[KEY]
        for keys in _chunks(list(rows)):
            connection.execute(self.table.delete().where(column.in_(keys)))
            fresh = [
                {KEY: key, **dict(zip(self.columns, values, strict=True))}
                for key in keys
                if (values := rows[key]) is not None
            ]
            if fresh:
                connection.execute(self.table.insert(), fresh)

    def _translated(self) -> _ErrorTranslation:
        return _ErrorTranslation(self._sql)


class _ErrorTranslation:
    """Raise errors of the database as errors of axlog, without the address."""

    def __init__(self, sql: Any) -> None:
        self._sql = sql

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, self._sql.exc.SQLAlchemyError):
            raise ConnectorError("AX859", f"database error: {reason_of(error)}") from None


def old_table(what: str) -> ConnectorError:
    """Return the error for a table of 0.1 whose run continues."""
    return ConnectorError(
        "AX859",
        f"{what} was written by axlog 0.1 and has no keys",
        advice="start the pipeline with a new checkpoint: the table is then written anew",
    )


def _chunks(keys: list[str]) -> Iterator[list[str]]:
    rest = iter(keys)
    while chunk := list(islice(rest, _AT_ONCE)):
        yield chunk


SQL = SinkKind(
    "sql",
    SqlOptions,
    SqlSink,
    "A table kept equal to the view, with one transaction per batch.",
    is_table=True,
    reserved=(KEY, COPIES),
    needs=("sqlalchemy",),
)
