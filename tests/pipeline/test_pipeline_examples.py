"""The pipelines of `examples/` do what they say."""

import json
import shutil
import sqlite3
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from axlog.connect.sinks.jsonl import read_log
from axlog.pipeline.loader import check, load
from axlog.runtime.embedded import run


@pytest.fixture
def examples(repository: Path, tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("out")
    return shutil.copytree(repository / "examples" / "pipelines", tmp_path / "p", ignore=ignored)


def test_every_example_is_in_order(repository: Path) -> None:
    paths = sorted((repository / "examples" / "pipelines").glob("*.yaml"))
    assert len(paths) >= 3
    for path in paths:
        checked = check(path)
        assert checked.errors == []
        # What is left are warnings of passwords that this machine does not have.
        assert {problem.error.code for problem in checked.problems} <= {"AX856"}


def test_the_order_monitor(examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # the second run finds nothing new
        run(load(examples / "orders.yaml"), once=True)
    rows = parquet.read_table(examples / "out" / "late.parquet").to_pylist()
    assert rows == [
        {"x": "17", "shipped": 60_000},
        {"x": "19", "shipped": 90_000},
    ]
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = [(line["op"], line["row"]["x"]) for line in shown]
    assert told == [("never", "18"), ("insert", "17"), ("insert", "19")]  # 18 shipped early
    log = read_log(examples / "out" / "changes.jsonl")
    assert [(line["op"], line["row"]["x"]) for line in log] == [("insert", "17"), ("insert", "19")]


def test_files_that_come_later_join(examples: Path) -> None:
    path = examples / "orders.yaml"
    run(load(path), once=True)
    late = examples / "in" / "shipments" / "2026-02.xml"
    late.write_text("<batch><order at='99000'><oid>20</oid></order><order at='5'/></batch>")
    more = examples / "in" / "orders" / "2026-00.xml"
    more.write_text("<batch><order at='95000'><oid>20</oid></order></batch>")
    run(load(path), once=True)
    assert len(read_log(examples / "out" / "changes.jsonl")) == 3
    (letter,) = read_log(examples / "out" / "dead-letters.jsonl")
    assert letter["row"]["origin"] == "2026-02.xml#2"
    assert letter["row"]["error"].startswith("AX404")


def test_a_document_for_every_customer(examples: Path) -> None:
    run(load(examples / "customers.yaml"), once=True)
    db = sqlite3.connect(examples / "out" / "customers.db")
    assert db.execute("select document, d from regular").fetchall() == [("ann", "mon")]
    db.close()
