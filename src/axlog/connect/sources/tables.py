"""A SQL table (or database view) as a stream, polled by key.

    <row key="..." id="17"><number>17</number><status>sent</status></row>

`mode: append` reads the rows with a greater key than the last, in the order of the key. The
position is that key, so no log is needed; a plan divides the rows by keys, which the database
counts. Rows that change later are not noticed, and a row that is
committed after one with a greater key is missed, as with every auto-increment key. `mode: all`
reads the whole table at every poll and compares it with the poll before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from lxml import etree
from pydantic import Field

from axlog.connect.databases import open_engine, reason_of
from axlog.connect.kinds import Origin, Secret, SourceKind
from axlog.connect.protocol import Load, Part, Plan, Position, Reading, Source
from axlog.connect.sources.poller import (
    Alerter,
    AlerterOptions,
    Collection,
    Look,
    Thing,
    element,
    stream_of,
)
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ConnectorError, PipelineError
from axlog.extras import import_extra

if TYPE_CHECKING:
    import sqlalchemy

ROW = "row"


class TableOptions(AlerterOptions):
    """Options of `table`."""

    database: Secret = Field(description="SQLAlchemy's address: sqlite:///orders.db")
    table: str = Field(description="The table's name, with its schema before a dot if it has one.")
    by: str = Field(description="The key: one column, ascending for `mode: append`.")
    columns: list[str] = Field(default=[], description="The columns to read (default: all).")
    time: str | None = Field(default=None, description="The column with the time of a row.")
    mode: Literal["append", "all"] = Field(
        default="append", description="append: read new rows; all: compare the whole table."
    )


class Table:
    """A table that is polled."""

    def __init__(self, options: TableOptions, origin: Origin) -> None:
        sql = import_extra("sqlalchemy")
        self.stream = stream_of(origin, "a table")
        self._sql = sql
        self._options = options
        self._engine = open_engine(options.database, origin)
        if self._engine.dialect.name == "sqlite":
            sql.event.listen(self._engine, "connect", _read_any_text)
        self._table: sqlalchemy.Table | None = None

    def _reflected(self) -> sqlalchemy.Table:
        """Return the table as the database describes it: names come from there, never from
        texts.
        """
        if self._table is None:
            schema, _, name = self._options.table.rpartition(".")
            try:
                table: sqlalchemy.Table = self._sql.Table(
                    name, self._sql.MetaData(), schema=schema or None, autoload_with=self._engine
                )
            except self._sql.exc.SQLAlchemyError as error:
                raise self._unreadable(error) from None
            wanted = [self._options.by, *self._options.columns, *filter(None, [self._options.time])]
            for column in wanted:
                if column not in table.c:
                    raise PipelineError(
                        "AX852",
                        f"the table {name!r} has no column {column!r}",
                        expected=", ".join(table.c.keys()),
                    )
            for column in self._options.columns or table.c.keys():
                _check_name(name, column)
            self._table = table
        return self._table

    def rows(
        self, after: Any = None, limit: int | None = None, until: Any = None
    ) -> list[dict[str, Any]]:
        """Return rows in the order of the key; those after a key, and up to a key, if given."""
        table = self._reflected()
        asked = self._between(table.select(), after, until).order_by(table.c[self._options.by])
        return self._asked(asked if limit is None else asked.limit(limit))

    def range(self, after: Any, limit: int, until: Any = None) -> tuple[int, Any]:
        """Return the number of the next rows after a key, at most `limit`, and the last key."""
        sql = self._sql
        key = self._reflected().c[self._options.by]
        some = self._between(sql.select(key), after, until).order_by(key).limit(limit).subquery()
        count, last = sql.func.count().label("count"), sql.func.max(some.c[key.name]).label("last")
        (found,) = self._asked(sql.select(count, last).select_from(some))
        return found["count"], found["last"]

    def _between(self, asked: Any, after: Any, until: Any) -> Any:
        key = self._reflected().c[self._options.by]
        asked = asked if after is None else asked.where(key > after)
        return asked if until is None else asked.where(key <= until)

    def _asked(self, asked: Any) -> list[dict[str, Any]]:
        try:
            with self._engine.connect() as connection:
                return [dict(row) for row in connection.execute(asked).mappings()]
        except self._sql.exc.SQLAlchemyError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Any) -> ConnectorError:
        return ConnectorError(
            "AX858", f"the table {self._options.table!r} cannot be read: {reason_of(error)}"
        )

    def thing(self, row: dict[str, Any]) -> Thing:
        wanted = self._options.columns or list(row)
        return Thing(str(row[self._options.by]), element(ROW, {c: row[c] for c in wanted}))

    def time_of(self, row: dict[str, Any]) -> Any:
        column = self._options.time
        return None if column is None else row[column]

    def close(self) -> None:
        self._engine.dispose()


def _read_any_text(connection: Any, _: Any) -> None:
    """Decode texts leniently: SQLite checks no text, and one bad text must not block other rows."""
    connection.text_factory = lambda text: text.decode("utf-8", "replace")


def _check_name(table: str, column: str) -> None:
    try:
        etree.Element(column)
    except ValueError:
        raise PipelineError(
            "AX852",
            f"the column {column!r} of {table!r} cannot be an element",
            advice="select columns with `columns`, or read a database view that renames it",
        ) from None


class GrowingTable(Table):
    """The source of `mode: append`."""

    def read(self, position: Position, limit: int) -> Reading:
        """Return the rows after the position's key."""
        rows = self.rows(position, limit)
        last = rows[-1][self._options.by] if rows else position
        return Reading(self._updates(rows), self._key(last), more=len(rows) == limit)

    def plan(self, position: Position, load: Load, until: Position | None = None) -> Plan:
        """Return the next rows in parts by key: the database counts them, and sends keys only.

        A row that is committed later with a key inside of a part may appear in it when it is read
        again, so the bound of its size is generous.
        """
        step = load.step()
        parts: list[Part] = []
        taken, more = 0, True
        while more and (until is not None or taken < load.limit):
            most = step if until is not None else min(step, load.limit - taken)
            count, last = self.range(position, most, until)
            if count:
                parts.append(Part([position, self._key(last)], 2 * count + step))
                position, taken = last, taken + count
            more = count >= most
        return Plan(parts, position, more)

    def fetch(self, work: Any) -> Reading:
        """Return the rows with a key after the first and up to the last."""
        after, last = work
        return Reading(self._updates(self.rows(after, until=last)), last)

    def _updates(self, rows: list[dict[str, Any]]) -> list[StreamUpdate]:
        return [
            StreamUpdate(
                self.stream,
                "insert",
                self.thing(row).xml(),
                self.time_of(row),
                f"{self._options.table}[{row[self._options.by]}]",
            )
            for row in rows
        ]

    def _key(self, key: Any) -> Any:
        """Return a key as a position."""
        if key is not None and not isinstance(key, int | float | str):
            raise PipelineError(
                "AX852",
                f"the key {self._options.by!r} is a {type(key).__name__}",
                expected="numbers or texts",
            )
        return key


class WholeTable(Collection):
    """The polled system of `mode: all`."""

    def __init__(self, options: TableOptions, origin: Origin) -> None:
        self._table = Table(options, origin)
        super().__init__(self._table.stream, ROW, options.only)

    def look(self, state: Any, now: float) -> Look:
        things = map(self._table.thing, self._table.rows())
        updates, after = self.compared(state or {}, things, now)
        return Look(updates, after)

    def close(self) -> None:
        self._table.close()


def _make(options: TableOptions, origin: Origin) -> Source:
    if options.mode == "append":
        return GrowingTable(options, origin)
    return Alerter(WholeTable(options, origin), options, origin)


TABLE = SourceKind(
    "table", TableOptions, _make, "A SQL table polled by key.", needs=("sqlalchemy",)
)
