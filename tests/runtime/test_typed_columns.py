"""The types of columns in tables that a pipeline writes: sqlite, Parquet and Delta."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import axlog
from axlog.connect.sinks.tables import values_of
from axlog.document.stream_update import StreamUpdate
from axlog.pipeline.model import PipelineModel
from axlog.runtime.embedded import Runner

DOCUMENT = '<shop><ax:call xmlns:ax="urn:axlog" stream="orders"/></shop>'
QUERY = """match //order[client/$c][due/$d]/total/$t
           return $c, count() as n, sum($t) as total,
                  max($d) as due, sum($t) > 4 as large"""
ORDERS = [("Ada", "1.25", "2024-01-31"), ("Ada", "3.5", "2024-03-01"), ("Bob", "2", "2024-02-01")]
ROWS = {
    ("Ada", 2, Decimal("4.75"), "2024-03-01", True),
    ("Bob", 1, Decimal("2"), "2024-02-01", False),
}


def _run(place: Path, sink: dict[str, str], query: str = QUERY) -> None:
    lines = [
        json.dumps(
            StreamUpdate(
                "orders", "insert",
                f"<order><client>{c}</client><total>{t}</total><due>{d}</due></order>", at,
            ).plain()
        )
        for at, (c, t, d) in enumerate(ORDERS, 1)
    ]  # fmt: skip
    (place / "in.jsonl").write_text("\n".join(lines) + "\n")
    given = {
        "engine": "embedded",
        "document": DOCUMENT,
        "sources": [{"kind": "jsonl", "path": "in.jsonl"}],
        "views": {"totals": {"query": query, "sinks": [sink]}},
        "settings": {"checkpoint": "state"},
    }
    runner = Runner(PipelineModel.model_validate(given).located(place), once=True)
    runner.run()
    runner.close()


def test_a_database_has_numbers_and_truths(tmp_path: Path) -> None:
    _run(tmp_path, {"kind": "sql", "url": f"sqlite:///{tmp_path}/rows.db", "table": "totals"})
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database:
        types = {name: kind for _, name, kind, *_ in database.execute("pragma table_info(totals)")}
        found = set(database.execute("select c, n, total, due, large from totals"))
    assert types["n"] == "BIGINT"
    assert types["total"].startswith("NUMERIC")
    assert types["large"] == "BOOLEAN"
    assert {(c, n, Decimal(str(total)), due, bool(large)) for c, n, total, due, large in found} == (
        ROWS
    )


def _stored(place: Path, kind: str) -> Any:
    """The table that a sink wrote."""
    if kind == "delta":
        from deltalake import DeltaTable

        return DeltaTable(str(place / "rows")).to_pyarrow_table()
    import pyarrow.parquet as pq

    return pq.read_table(str(place / "rows"))


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_files_of_columns_have_numbers_and_truths(tmp_path: Path, kind: str) -> None:
    import pyarrow as pa

    _run(tmp_path, {"kind": kind, "path": str(tmp_path / "rows")})
    table = _stored(tmp_path, kind)
    types = {field.name: field.type for field in table.schema}
    assert types["n"] == pa.int64()
    assert pa.types.is_decimal(types["total"])
    assert types["large"] == pa.bool_()
    rows = {(r["c"], r["n"], r["total"], r["due"], r["large"]) for r in table.to_pylist()}
    assert rows >= ROWS


DATES = """match //order[client/$c]/due/$d
           return $c, xs:date($d) as day, xs:dateTime(concat($d, "T10:00:00+02:00")) as moment,
                  xs:date($d) + 30d as late, xs:date($d) - xs:date("2024-01-01") as waited,
                  xs:double("0.1") as share, xs:integer("7") as number"""
DAYS = {
    (c, date.fromisoformat(d), datetime.fromisoformat(f"{d}T08:00:00+00:00"),
     date.fromisoformat(d) + timedelta(30), 0.1, 7)
    for c, _, d in ORDERS
}  # fmt: skip


@pytest.mark.parametrize("kind", ["sql", "parquet", "delta"])
def test_dates_and_timestamps_have_their_types(tmp_path: Path, kind: str) -> None:
    url = f"sqlite:///{tmp_path}/rows.db"
    if kind == "sql":
        import sqlalchemy as sql

        _run(tmp_path, {"kind": "sql", "url": url, "table": "totals"}, DATES)
        engine = sql.create_engine(url)
        table = sql.Table("totals", sql.MetaData(), autoload_with=engine)
        kinds = {column.name: str(column.type) for column in table.columns}
        with engine.begin() as connection:
            found = [dict(row) for row in connection.execute(sql.select(table)).mappings()]
        for row in found:
            row["moment"] = row["moment"].replace(tzinfo=UTC)  # SQLite has no zones
        wanted = ("DATE", "DATETIME", "DATE", "TEXT", "DOUBLE", "BIGINT")
    else:
        _run(tmp_path, {"kind": kind, "path": str(tmp_path / "rows")}, DATES)
        stored = _stored(tmp_path, kind)
        kinds = {field.name: str(field.type) for field in stored.schema}
        found = stored.to_pylist()
        moment = "timestamp[us, tz=UTC]"
        wanted = ("date32[day]", moment, "date32[day]", "string", "double", "int64")
    assert tuple(kinds[name] for name in _NAMES) == wanted
    assert {row["waited"] for row in found} == {"P30D", "P60D", "P31D"}
    shown = ("c", "day", "moment", "late", "share", "number")
    assert {tuple(row[name] for name in shown) for row in found} == DAYS


_NAMES = ("day", "moment", "late", "waited", "share", "number")


def test_a_view_as_an_arrow_table_has_the_same_types() -> None:
    doc = axlog.parse("<r><order><client>A</client><due>2024-01-31</due></order></r>")
    schema = doc.watch(DATES).to_arrow().schema
    kinds = [str(schema.field(name).type) for name in _NAMES]
    moment = "timestamp[us, tz=UTC]"
    assert kinds == ["date32[day]", moment, "date32[day]", "string", "double", "int64"]


def test_a_value_that_its_type_cannot_hold_is_null_in_a_table_and_a_text_in_arrow() -> None:
    doc = axlog.parse("<r><d>-0044-03-15</d></r>")
    view = doc.watch(
        "match //d/$d return xs:date($d) as day, xs:dateTime(concat($d, 'T00:00:00')) as m"
    )
    (row,) = view.rows()
    assert values_of(row) == (None, None)
    assert view.to_arrow().to_pylist() == [
        {"day": "-0044-03-15", "m": "-0044-03-15T00:00:00", "count": 1}
    ]
