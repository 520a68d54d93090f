"""The types of columns in tables that a pipeline writes: sqlite, Parquet and Delta."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

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


def _run(place: Path, sink: dict[str, str]) -> None:
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
        "views": {"totals": {"query": QUERY, "sinks": [sink]}},
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


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_files_of_columns_have_numbers_and_truths(tmp_path: Path, kind: str) -> None:
    import pyarrow as pa

    _run(tmp_path, {"kind": kind, "path": str(tmp_path / "rows")})
    if kind == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(str(tmp_path / "rows")).to_pyarrow_table()
    else:
        import pyarrow.parquet as pq

        table = pq.read_table(str(tmp_path / "rows"))
    types = {field.name: field.type for field in table.schema}
    assert types["n"] == pa.int64()
    assert pa.types.is_decimal(types["total"])
    assert types["large"] == pa.bool_()
    rows = {(r["c"], r["n"], r["total"], r["due"], r["large"]) for r in table.to_pylist()}
    assert rows >= ROWS
