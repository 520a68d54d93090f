"""Sources read by positions, sinks that take a batch once: also when written twice or cut."""

import json
import os
import sqlite3
import threading
from collections import Counter
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axlog.connect.kinds import Column, Origin, ViewShape
from axlog.connect.message_paths import MessagePath
from axlog.connect.protocol import Reading, Sink, Source
from axlog.connect.sinks.jsonl import read_log
from axlog.connect.sinks.tables import difference
from axlog.document.parser import Limits, parse
from axlog.document.record_reader import split
from axlog.document.times import microseconds
from axlog.errors import AxlogError, ConnectorError
from axlog.pipeline import kinds
from axlog.query.columns import Columns
from axlog.views.change import Change, Op, Row

VIEW = ViewShape("late", (Column("x", "text"), Column("t.time", "seconds")))
COLUMNS = Columns((column.name for column in VIEW.columns), ("text", "time"), ("text",))


def source(kind: str, directory: Path, stream: str | None = "s", **options: Any) -> Source:
    found = kinds.source_kind(kind)
    made = found.options.model_validate(options)
    return found.make(made, Origin(directory=directory, stream=stream, namespaces={"p": "urn:p"}))


def sink(kind: str, directory: Path, run: str = "r1", **options: Any) -> Sink:
    found = kinds.sink_kind(kind)
    made = found.options.model_validate(options)
    return found.make(made, Origin(directory=directory, run=run, views=[VIEW]))


def read_all(one: Source, limit: int) -> tuple[list[tuple[str, Any]], list[str]]:
    """All updates (content and time) and the origins of what was refused, in small readings."""
    position = None
    updates: list[tuple[str, Any]] = []
    refused: list[str] = []
    while True:
        reading: Reading = one.read(position, limit)
        json.dumps(reading.position)  # positions are JSON
        assert len(reading.updates) + len(reading.refused) <= limit
        updates += [(_text(update.content), update.at) for update in reading.updates]
        refused += [each.origin for each in reading.refused]
        position = json.loads(json.dumps(reading.position))
        if not reading.updates and not reading.refused:
            return updates, refused


def _text(content: str | bytes) -> str:
    return content.decode() if isinstance(content, bytes) else content


# Sources ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("order", ["any", "name"])
def test_a_directory_of_messages(tmp_path: Path, limit: int, order: str) -> None:
    for number in (3, 1, 2):
        (tmp_path / f"m{number}.xml").write_text(f"<m at='{number}'/>")
    (tmp_path / "m0.txt").write_text("passed over")
    (tmp_path / ".m.xml").write_text("passed over")
    (tmp_path / "m4.xml").write_text("<m/>")
    one = source("directory", tmp_path, path=".", time="@at", order=order)
    updates, refused = read_all(one, limit)
    assert updates == [(f"<m at='{n}'/>", str(n)) for n in (1, 2, 3)]
    assert refused == ["m4.xml"]


@pytest.mark.parametrize("limit", [1, 2, 5, 100])
def test_a_directory_of_records(tmp_path: Path, limit: int) -> None:
    (tmp_path / "a.xml").write_text(
        '<l xmlns="urn:p"><o at="1"><o at="9"/></o><x/><o at="2">t</o></l>'
    )
    (tmp_path / "b.xml").write_text('<p:l xmlns:p="urn:p"><p:o at="3"/><p:o/><p:o at="4"/><p:o')
    one = source("directory", tmp_path, path=".", record="p:o", time="@at")
    updates, refused = read_all(one, limit)
    assert [at for _, at in updates] == ["1", "2", "3", "4"]
    assert all(parse(xml).root.tag == "{urn:p}o" for xml, _ in updates)
    assert refused == ["b.xml#2", "b.xml#4"]
    again = source("directory", tmp_path, path=".", record="p:o", time="@at")
    middle = again.read(None, 3).position
    fresh = source("directory", tmp_path, path=".", record="p:o", time="@at")
    assert fresh.read(middle, 9).updates == one.read(middle, 9).updates


def test_later_files_are_read_whatever_their_names(tmp_path: Path) -> None:
    (tmp_path / "m5.xml").write_text("<m/>")
    one = source("directory", tmp_path, path=".", clock="file")
    first = one.read(None, 10)
    (tmp_path / "m1.xml").write_text("<n/>")
    os.utime(tmp_path / "m1.xml", (50, 50))
    (second,) = one.read(first.position, 10).updates
    fifty = datetime.fromtimestamp(50, UTC)
    assert (second.content, second.at, second.origin) == (b"<n/>", fifty, "m1.xml")
    with pytest.raises(ConnectorError):
        source("directory", tmp_path, path="absent").read(None, 1)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "utf-32-le"])
def test_records_are_split_in_any_encoding(encoding: str) -> None:
    text = "<l>" + "".join(f"<o n='{n}'>é{n}</o>" for n in range(5000)) + "</l>"
    declared = f'<?xml version="1.0" encoding="{encoding}"?>' if encoding == "iso-8859-1" else ""
    content = (declared + text).encode(encoding)
    found = [element.text for element in split(BytesIO(content), "o")]
    assert found == [f"é{n}" for n in range(5000)]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b'<!DOCTYPE l [<!ENTITY a "b">]><l><o>&a;</o></l>', "AX111"),
        (b'<!DOCTYPE l SYSTEM "file:///etc/passwd"><l><o/></l>', "AX111"),
        (b"<l><o/></m>", "AX101"),
        (b"<l><o/>", "AX101"),
        (b"<l><o>" + b"x" * 3_000_000 + b"</o></l>", "AX122"),
    ],
)
def test_hostile_files_of_records_are_refused(content: bytes, code: str) -> None:
    with pytest.raises(AxlogError) as raised:
        list(split(BytesIO(content), "o", Limits(size=1_000_000)))
    assert raised.value.code == code


def test_splitting_needs_the_memory_of_a_record_only() -> None:
    file = BytesIO(b"<l>" + b"<o><a>1</a><b>2</b></o>" * 40_000 + b"</l>")
    kept = 0
    for record in split(file, "o"):
        parent = record.getparent()
        assert parent is not None
        kept = max(kept, len(parent))
    assert kept < 10_000  # what one piece of the file holds, not the file


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_json_lines_are_followed(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"insert": "<a/>", "at": 1}\n\n{"stream": "t", "end": true}\n{"insert": "<b')
    one = source("jsonl", tmp_path, path="in.jsonl")
    updates, refused = read_all(one, limit)
    assert updates == [("<a/>", 1)]
    assert refused == ["in.jsonl:3"]
    position = one.read(None, 100).position
    with path.open("a") as file:
        file.write('/>"}')
    (late,) = one.read(position, 100).updates
    assert (late.content, late.origin) == ("<b/>", "in.jsonl:4")
    path.write_text("")
    with pytest.raises(ConnectorError, match="were read before"):
        one.read(position, 100)


def test_paths_into_messages() -> None:
    root = parse('<m xmlns:p="urn:p" k="1"><p:h><c> 5 </c></p:h><h p:k="2"/></m>').root
    spaces = {"p": "urn:p"}
    found = [MessagePath.parse(path, spaces).value(root) for path in
             ("@k", "p:h/c", "h/@p:k", ".", "x", "h/@k")]  # fmt: skip
    assert found == ["1", "5", "2", "5", None, None]
    for wrong in ("@a/b", "a//b", "q:a", "a[1]", ""):
        with pytest.raises(AxlogError):
            MessagePath.parse(wrong, spaces)


def test_kafka_by_offsets(tmp_path: Path) -> None:
    from confluent_kafka import Consumer, Producer

    cluster = Consumer({"test.mock.num.brokers": 1, "group.id": "x", "bootstrap.servers": ""})
    # The mock cluster lives in this client; others reach it by its address.
    brokers = next(iter(cluster.list_topics(timeout=60).brokers.values()))
    address = f"{brokers.host}:{brokers.port}"
    producer = Producer({"bootstrap.servers": address})
    for number in range(20):
        producer.produce("t", f"<m at='{number}'/>".encode(), partition=number % 2)
    producer.produce("t", b"<m", partition=0)
    producer.flush(10)
    options = {"brokers": address, "topic": "t", "time": "@at", "wait": "5s"}
    one = source("kafka", tmp_path, **options)
    updates, refused = read_all(one, 7)
    assert Counter(at for _, at in updates) == Counter(str(n) for n in range(20))
    for parity in (0, 1):
        mine = [int(at) for _, at in updates if int(at) % 2 == parity]
        assert mine == sorted(mine)
    assert refused == ["t/0@10"]
    middle = one.read(None, 8).position
    rest = one.read(middle, 100)
    other = source("kafka", tmp_path, **options)
    assert Counter(u.origin for u in other.read(middle, 100).updates) == Counter(
        u.origin for u in rest.updates
    )
    with pytest.raises(ConnectorError):
        source("kafka", tmp_path, brokers=address, topic="t/none").read(None, 1)
    for each in (one, other, cluster):
        each.close()


# Sinks --------------------------------------------------------------------------------------------


def change(
    op: Op, x: str, at: int = 1, before: str | None = None, key: str | None = None
) -> Change:
    known = (key or before or x,)
    was = None if before is None else Row(COLUMNS, (before, at), key=known)
    return Change(op, Row(COLUMNS, (x, at), key=known), was, view="late")


BATCHES = [
    [change("insert", "a"), change("insert", "b")],
    [],
    [change("delete", "a"), change("update", "c", before="b"), change("never", "z")],
    [change("insert", "é"), change("insert", "é", key="2"), change("insert", "d", 1 << 62)],
    [change("delete", "é"), change("insert", "line\nbreak")],
]


def shown(kind: str, directory: Path) -> Counter[tuple[Any, ...]]:
    """The rows that a sink's outside shows."""
    if kind == "parquet":
        table = parquet.read_table(directory / "t.parquet").to_pylist()
        return Counter((row["x"], row["t.time"]) for row in table)
    if kind == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(str(directory / "t")).to_pyarrow_table().to_pylist()
        return Counter((row["x"], row["t.time"]) for row in table)
    if kind == "sql":
        db = sqlite3.connect(directory / "t.db")
        rows = db.execute('select x, "t.time" from late').fetchall()
        db.close()
        return Counter(rows)
    if kind == "jsonl":
        lines = read_log(directory / "t.jsonl")
    else:
        (run,) = (directory / "t").iterdir()
        files = sorted(run.glob("batch-*.parquet"))
        lines = [line for file in files for line in parquet.read_table(file).to_pylist()]
        for line in lines:
            line["row"] = json.loads(line["row"])
            line["before"] = line["before"] and json.loads(line["before"])
    changes = [
        Change(
            line["op"],
            _read(line["row"]),
            _read(line["before"]) if line.get("before") else None,
        )
        for line in lines
    ]
    return +difference(changes)


def _read(row: dict[str, Any]) -> Row:
    return Row(COLUMNS, (row["x"], microseconds(row["t.time"])))


OPTIONS: dict[str, dict[str, Any]] = {
    "parquet": {"path": "t.parquet"},
    "delta": {"path": "t"},
    "sql": {"url": "sqlite:///t.db"},
    "jsonl": {"path": "t.jsonl"},
    "parquet-log": {"path": "t"},
}


@pytest.mark.parametrize("kind", list(OPTIONS))
def test_a_batch_that_comes_twice_changes_nothing(tmp_path: Path, kind: str) -> None:
    one = sink(kind, tmp_path, **OPTIONS[kind])
    assert one.exactly_once
    for number, batch in enumerate(BATCHES):
        one.write(number, batch)
        one.write(number, batch)
        if number % 2:
            one.close()
            one = sink(kind, tmp_path, **OPTIONS[kind])  # as after a crash behind the write
            one.write(number, batch)
        if number in (0, 2, 3, 4):
            expected = +difference([c for each in BATCHES[: number + 1] for c in each])
            assert shown(kind, tmp_path) == expected
    one.close()


@pytest.mark.parametrize("kind", ["parquet", "delta", "sql"])
def test_a_table_of_another_run_starts_anew(tmp_path: Path, kind: str) -> None:
    first = sink(kind, tmp_path, **OPTIONS[kind])
    for number, batch in enumerate(BATCHES):
        first.write(number, batch)
    first.close()
    second = sink(kind, tmp_path, run="r2", **OPTIONS[kind])
    second.write(0, [change("insert", "new")])
    second.close()
    assert shown(kind, tmp_path) == Counter({("new", 1e-06): 1})


class Cut(Exception):
    """The power went."""


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 30), st.sampled_from(["parquet", "jsonl", "parquet-log"]))
def test_a_batch_that_is_cut_comes_again_whole(
    tmp_path_factory: pytest.TempPathFactory, at: int, kind: str
) -> None:
    """Every step on disk of these sinks can be the last one before the process dies."""
    directory = tmp_path_factory.mktemp("cut")
    steps = iter([None] * at)

    def cutting(call: Any) -> Any:
        def step(*args: Any, **named: Any) -> Any:
            if next(steps, Cut) is Cut:
                raise Cut
            return call(*args, **named)

        return step

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", cutting(os.fsync))
        patch.setattr(Path, "replace", cutting(Path.replace))
        one = None
        try:
            one = sink(kind, directory, **OPTIONS[kind])
            for number, batch in enumerate(BATCHES):
                one.write(number, batch)
        except Cut:
            pass
        if one is not None:
            one.close()
    again = sink(kind, directory, **OPTIONS[kind])
    for number, batch in enumerate(BATCHES):
        again.write(number, batch)
    again.close()
    assert shown(kind, directory) == +difference([c for each in BATCHES for c in each])


def test_a_torn_line_of_the_log_is_cut_off(tmp_path: Path) -> None:
    one = sink("jsonl", tmp_path, path="t.jsonl")
    one.write(0, BATCHES[0])
    one.close()
    with (tmp_path / "t.jsonl").open("ab") as file:
        file.write(b'{"batch": 1, "view": "la')
    one = sink("jsonl", tmp_path, path="t.jsonl")
    one.write(1, BATCHES[3])
    one.close()
    lines = (tmp_path / "t.jsonl").read_text().splitlines()
    assert [json.loads(line)["batch"] for line in lines] == [0, 0, 1, 1, 1]


def test_a_transaction_that_is_cut_leaves_nothing(tmp_path: Path) -> None:
    one = sink("sql", tmp_path, url="sqlite:///t.db")
    one.write(0, BATCHES[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(one), "_note", lambda *given, **named: (_ for _ in ()).throw(Cut))
        with pytest.raises(Cut):
            one.write(1, BATCHES[2])
    assert shown("sql", tmp_path) == +difference(BATCHES[0])
    one.write(1, BATCHES[2])
    one.close()
    assert shown("sql", tmp_path) == +difference([*BATCHES[0], *BATCHES[2]])


def test_changes_are_posted_with_a_key_that_stays_the_same(tmp_path: Path) -> None:
    seen: list[tuple[str, str, dict[str, Any]]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            key = self.headers["Idempotency-Key"]
            seen.append((key, self.headers["Authorization"], json.loads(body)))
            self.send_response(503 if len(seen) == 1 else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *given: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXLOG_TEST_TOKEN", "word")
        url = f"http://127.0.0.1:{server.server_port}/changes"
        one = sink("http", tmp_path, url=url, token="${AXLOG_TEST_TOKEN}")
    one.write(1, BATCHES[0])
    one.write(2, [])
    one.close()
    server.shutdown()
    server.server_close()
    assert [key for key, *_ in seen] == ["r1-1-late", "r1-1-late"]
    assert seen[1][1] == "Bearer word"
    assert [each["row"]["x"] for each in seen[1][2]["changes"]] == ["a", "b"]
    dead = sink("http", tmp_path, url=url, retries=0)
    with pytest.raises(ConnectorError, match="rejects batch 3"):
        dead.write(3, BATCHES[0])
    dead.close()


def test_a_database_error_is_reported_without_its_address(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError) as raised:
        sink("sql", tmp_path, url="sqlite:////proc/none/hush.db")
    assert "hush" not in str(raised.value)


def test_a_table_in_postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    import psycopg
    from pgserver.postgres_server import get_server

    server = get_server(tmp_path / "pg", cleanup_mode="delete")
    address = server.get_uri()
    url = address.replace("postgresql://", "postgresql+psycopg://")
    one = sink("sql", tmp_path, url=url)
    for number, batch in enumerate(BATCHES):
        one.write(number, batch)
        one.write(number, batch)
    one.close()
    with psycopg.connect(address) as db:
        rows = db.execute('select x, "t.time" from late').fetchall()
    server.cleanup()
    assert Counter(rows) == +difference([c for each in BATCHES for c in each])
