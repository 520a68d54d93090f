"""Parameter tables: the rows for which a pipeline watches a view (`for_each`).

    for_each: {kind: csv, path: customers.csv, types: {least: number}}

A table is read as a whole and compared with the rows that were read before, so rows may come, go
and change in place. A file is read again when its size or time of change differs, a database at
every poll. Each row is a set of values by column: strings, or numbers and dates where `types` says
so. Values that JSON and SQL have as numbers stay numbers. Equal rows count once.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import Field, model_validator

from axlog.connect.databases import open_engine, reason_of
from axlog.connect.kinds import LocalPath, Options, Origin, Seconds, Secret
from axlog.errors import ConnectorError, PipelineError
from axlog.extras import import_extra
from axlog.query.columns import ColumnType
from axlog.query.parameters import Value

Type: TypeAlias = Literal["text", "number", "date"]
ParameterRow: TypeAlias = "tuple[Value, ...]"
"""The values of one row, in the order of the columns."""

_COLUMN_TYPES: dict[Type, ColumnType] = {"text": "text", "number": "decimal", "date": "day"}
SAMPLES: dict[Type, Value] = {"text": "text", "number": 1000, "date": date(2000, 1, 1)}
"""A value of each type, to check a query with."""


class ForEach(Options):
    """The table that has a row for each member of a family of views."""

    kind: Literal["csv", "jsonl", "sql", "http"] = Field(
        description="The form of the table; http: only subscribers add members (`axlog serve`)."
    )
    path: LocalPath | None = Field(default=None, description="The file, for csv and jsonl.")
    database: Secret | None = Field(
        default=None, description="For sql: SQLAlchemy's address, such as sqlite:///shop.db"
    )
    table: str | None = Field(
        default=None, description="For sql: the table, with its schema before a dot if it has one."
    )
    columns: list[str] = Field(
        default=[], description="The columns to read (default: all that the table has)."
    )
    types: dict[str, Type] = Field(
        default={},
        description="Columns that are numbers or dates in the query: {least: number}.",
    )
    poll: Seconds = Field(default=1.0, gt=0, description="Interval between two looks at the table.")

    @model_validator(mode="after")
    def _has_place(self) -> ForEach:
        if self.kind == "sql" and (self.database is None or self.table is None):
            raise ValueError("a sql table needs `database` and `table`")
        if self.kind == "http" and not self.columns:
            raise ValueError("without a table, name the parameters: columns: [...]")
        if self.kind in ("csv", "jsonl") and self.path is None:
            raise ValueError(f"a {self.kind} table needs `path`")
        return self

    def samples(self) -> dict[str, Value]:
        """A value for each column with a type, to check a query with."""
        return {column: SAMPLES[type_] for column, type_ in self.types.items()}

    def column_type(self, column: str) -> ColumnType:
        """The type of a column in rows."""
        return _COLUMN_TYPES[self.types.get(column, "text")]


class ParameterTable:
    """A parameter table of a pipeline file."""

    def __init__(self, options: ForEach, origin: Origin) -> None:
        self.options = options
        self._origin = origin
        self._stamp: object = None
        self._engine: Any = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table; AX852 if it has none yet and the file names none."""
        if self.options.columns:
            return tuple(self.options.columns)
        found = self._database_columns() if self.options.kind == "sql" else self._file_columns()
        if not found:
            raise PipelineError(
                "AX852",
                f"the table {self._name} has no columns",
                advice="name them: for_each: {columns: [...]}",
            )
        return tuple(found)

    @property
    def _name(self) -> str:
        return repr(self.options.table or self.options.path)

    def changed_rows(self) -> dict[ParameterRow, None] | None:
        """The rows; None if the table is certainly the same as at the last call."""
        if self.options.kind == "http":
            return {}
        if self.options.kind == "sql":
            return self._checked(self._database_rows())
        path = self._origin.path(self.options.path or "")
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp == self._stamp:
                return None
            rows = self._checked(self._file_rows(path))
        except OSError as error:
            raise self._unreadable(error.strerror or type(error).__name__) from None
        self._stamp = stamp
        return rows

    def _checked(self, rows: Iterable[Mapping[str, Any]]) -> dict[ParameterRow, None]:
        columns = self.columns
        found: dict[ParameterRow, None] = {}
        for number, row in enumerate(rows, start=1):
            values = [self._value(column, row.get(column), number) for column in columns]
            found[tuple(values)] = None
        return found

    def _value(self, column: str, value: Any, number: int) -> Value:
        asked = self.options.types.get(column)
        try:
            if value is None:
                raise ValueError
            if asked == "number":
                made = Decimal(str(value).strip())
                if not made.is_finite():
                    raise ValueError
                return made
            if asked == "date":
                return value if isinstance(value, date) else _date(str(value).strip())
        except (ValueError, InvalidOperation):
            wanted = "a value" if value is None else f"a {asked}"
            raise ConnectorError(
                "AX858",
                f"row {number} of the table {self._name} has no {asked or 'value'} at {column!r}",
                expected=wanted,
            ) from None
        if asked == "text" or not isinstance(value, bool | int | float | Decimal | date):
            return str(value)
        return value

    # Files ----------------------------------------------------------------------------------------

    def _file_columns(self) -> list[str]:
        path = self._origin.path(self.options.path or "")
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                if self.options.kind == "csv":
                    return [name.strip() for name in next(csv.reader(file), [])]
                first = next((line for line in file if line.strip()), "{}")
            return list(_object(first))
        except (OSError, ValueError) as error:
            raise self._unreadable(str(error)) from None

    def _file_rows(self, path: Path) -> list[dict[str, Any]]:
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                if self.options.kind == "csv":
                    names = [name.strip() for name in next(csv.reader(file), [])]
                    return list(csv.DictReader(file, names))
                return [_object(line) for line in file if line.strip()]
        except (ValueError, csv.Error) as error:
            raise self._unreadable(str(error)) from None

    def _unreadable(self, why: str) -> ConnectorError:
        return ConnectorError("AX858", f"the table {self._name} cannot be read: {why}")

    # Databases ------------------------------------------------------------------------------------

    def _reflected(self) -> tuple[Any, Any]:
        sql = import_extra("sqlalchemy")
        assert self.options.database is not None
        assert self.options.table is not None
        if self._engine is None:
            self._engine = open_engine(self.options.database, self._origin)
        schema, _, name = self.options.table.rpartition(".")
        try:
            table = sql.Table(
                name, sql.MetaData(), schema=schema or None, autoload_with=self._engine
            )
        except sql.exc.SQLAlchemyError as error:
            raise self._unreadable(reason_of(error)) from None
        return sql, table

    def _database_columns(self) -> list[str]:
        return list(self._reflected()[1].c.keys())

    def _database_rows(self) -> list[dict[str, Any]]:
        sql, table = self._reflected()
        try:
            with self._engine.connect() as connection:
                return [dict(row) for row in connection.execute(table.select()).mappings()]
        except sql.exc.SQLAlchemyError as error:
            raise self._unreadable(reason_of(error)) from None

    def close(self) -> None:
        if self._engine is not None:
            self._engine.dispose()


def _object(line: str) -> dict[str, Any]:
    found = json.loads(line, parse_float=Decimal)
    if not isinstance(found, dict):
        raise ValueError("a line is not an object")
    return found


def _date(text: str) -> date:
    return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)


# JSON ---------------------------------------------------------------------------------------------


def written_row(row: ParameterRow) -> str:
    """A row as JSON; `read_row` reads it back. Equal rows are written alike."""
    return json.dumps([_written(value) for value in row], ensure_ascii=False)


def _written(value: Value) -> Any:
    match value:
        case Decimal():
            return {"number": format(value.normalize(), "f")}
        case datetime():
            return {"time": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
    return value


def read_row(written: str) -> ParameterRow:
    """The row that `written_row` wrote."""
    return tuple(_read(value) for value in json.loads(written))


def _read(value: Any) -> Value:
    match value:
        case {"number": text}:
            return Decimal(text)
        case {"time": text}:
            return datetime.fromisoformat(text)
        case {"date": text}:
            return date.fromisoformat(text)
    found: Value = value
    return found
