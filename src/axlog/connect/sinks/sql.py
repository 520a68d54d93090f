"""A view as a table of an SQL database, kept equal to it in one transaction per batch.

The transaction also updates the sink's row in the table `axlog_batches`, so that a repeated batch
is recognized and skipped, and an interrupted batch leaves nothing. A row has a key derived from its
values (`axlog_key`) and its number of copies (`axlog_copies`), beside its own columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import Field

from axlog.connect.databases import open_engine, reason_of
from axlog.connect.kinds import Options, Origin, Secret, SinkKind
from axlog.connect.sinks.tables import (
    Values,
    check_columns,
    columns_of,
    difference,
    key_of,
    reserved,
    view_of,
)
from axlog.errors import ConnectorError
from axlog.extras import import_extra
from axlog.views.change import Change

KEY, COPIES, BATCHES = "axlog_key", "axlog_copies", "axlog_batches"
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
            "seconds": sql.Double,
            "date": sql.DateTime(timezone=True),
            "truth": sql.Boolean,
        }
        self.table = sql.Table(
            self.name,
            about,
            sql.Column(KEY, sql.String(32), primary_key=True),
            *(sql.Column(column.name, types[column.type]) for column in columns_of(view)),
            sql.Column(COPIES, sql.Integer, nullable=False),
        )
        self.batches = sql.Table(
            BATCHES,
            about,
            sql.Column("sink", sql.String(200), primary_key=True),
            sql.Column("run", sql.String(200), nullable=False),
            sql.Column("batch", sql.BigInteger, nullable=False),
        )
        with self._told(), self._engine.begin() as connection:
            about.create_all(connection)

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Update the table to the view's rows after a batch, in one transaction."""
        with self._told(), self._engine.begin() as connection:
            run, last = self._last(connection)
            if run == self.run and batch <= last:
                return
            if run != self.run:
                connection.execute(self.table.delete())
            self._move(connection, difference(changes))
            self._note(connection, batch, is_new=run is None)

    def rows(self) -> dict[Values, int]:
        """Return the rows of the table, with their copies."""
        with self._told(), self._engine.begin() as connection:
            found = connection.execute(self._sql.select(self.table)).mappings().all()
        return {tuple(row[column] for column in self.columns): row[COPIES] for row in found}

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

    def _move(self, connection: Any, moved: Mapping[Values, int]) -> None:
        keyed = {key_of(values): (values, number) for values, number in moved.items()}
        column = self.table.c[KEY]
        for keys in _chunks(list(keyed)):
            wanted = self._sql.select(column, self.table.c[COPIES]).where(column.in_(keys))
            there = {row[0]: row[1] for row in connection.execute(wanted)}
            gone, fresh, other = [], [], []
            for key in keys:
                values, number = keyed[key]
                copies = there.get(key, 0) + number
                if copies <= 0:
                    gone.append(key)
                elif key in there:
                    other.append({"key": key, "copies": copies})
                else:
                    row = dict(zip(self.columns, values, strict=True))
                    fresh.append({KEY: key, **row, COPIES: copies})
            if gone:
                connection.execute(self.table.delete().where(column.in_(gone)))
            if other:
                mine = column == self._sql.bindparam("key")
                change = self.table.update().where(mine)
                connection.execute(change.values({COPIES: self._sql.bindparam("copies")}), other)
            if fresh:
                connection.execute(self.table.insert(), fresh)

    def _told(self) -> _Told:
        return _Told(self._sql)


class _Told:
    """Raise errors of the database as errors of axlog, without the address."""

    def __init__(self, sql: Any) -> None:
        self._sql = sql

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, self._sql.exc.SQLAlchemyError):
            raise ConnectorError("AX859", f"database error: {reason_of(error)}") from None


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
)
