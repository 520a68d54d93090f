"""Sinks written in parts: by tasks where the changes are made, committed once by the driver."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark import cloudpickle

from axlog.connect.kinds import ViewShape
from axlog.pipeline.loader import load
from axlog.pipeline.model import PipelineModel
from axlog.runtime.bucket_engines import Buckets
from axlog.runtime.connections import BATCHES_APART
from axlog.runtime.delivery import DocumentSinks, SharedSinks
from axlog.runtime.extraction import ASIDE, Extractor
from axlog.runtime.packet_rows import packed
from axlog.runtime.pipeline_definition import definition_of
from axlog.runtime.plan import make_plan
from axlog.runtime.shared_sinks import Numbering
from axlog.runtime.sink_parts import DIRECTORY, PartStage, delivery_lines
from axlog.runtime.unreachable import Patience
from axlog.runtime.wires import Wiring
from axlog.spark.batch_result import BatchReport, gather_batch
from tests.runtime.test_spark_bucket import Memory, cut, updates

PIPELINE = """
document: |
  <shop xmlns:ax="urn:axlog"><a><ax:call stream="a"/></a><b><ax:call stream="b"/></b></shop>
sources: [{{kind: jsonl, path: in.jsonl}}]
views:
  join:
    query: match /shop[a/item/k/$x][b/item/k/$x] return $x
    sinks:
    - {{kind: jsonl, path: join.jsonl}}
    - {{kind: jsonl, path: join.cloud, envelope: native}}
    - {{kind: delta, path: join.delta}}
    - {{kind: parquet-log, path: join.log}}
    - {{kind: http, url: "http://127.0.0.1:{port}/http"}}
    - {{kind: webhook, url: "http://127.0.0.1:{port}/hook", allow: ["127.0.0.1"]}}
  total:
    query: match /shop[a/item/k/$x]/b/item/v/$y return count() as n
    sinks: [{{kind: jsonl, path: total.jsonl}}]
  path:
    query: match /shop/a/item[k]/v/$y return $y
    sinks: [{{kind: jsonl, path: path.jsonl}}, {{kind: sql, url: "sqlite:///path.db"}}]
"""


@pytest.fixture
def posted() -> Iterator[tuple[int, dict[str, list[Any]], set[str]]]:
    """A receiver: its port, bodies by key, and the keys that it rejects once."""
    bodies: dict[str, list[Any]] = {}
    rejects: set[str] = set()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.path + " " + self.headers["Idempotency-Key"]
            if self.path in rejects:
                rejects.remove(self.path)
                self.send_response(503)
            else:
                bodies.setdefault(key, []).append(body)
                self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *given: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, bodies, rejects
    server.shutdown()
    server.server_close()


def opened(model: PipelineModel) -> DocumentSinks:
    (document,) = model.documents
    queries = definition_of(model, document, Wiring(model, Path())).queries()
    shapes = {
        model.full_name(document, view): ViewShape.of(model.full_name(document, view), query)
        for view, query in queries.items()
    }
    shared = SharedSinks(model, shapes, Numbering(None), Patience(once=True))
    sinks = DocumentSinks(
        model, document, shapes, shared, Wiring(model, Path()), Patience(once=True)
    )
    sinks.open("r", [])
    return sinks


def run(
    model: PipelineModel, stage: PartStage | None, seed: int = 7
) -> list[tuple[int, BatchReport]]:
    """The reports on random batches, of three buckets; `stage` as tasks get it."""
    (document,) = model.documents
    definition = definition_of(model, document, Wiring(model, Path()))
    plan = make_plan(definition, buckets=3)
    extractor = Extractor(definition, plan)
    written = None if stage is None else cloudpickle.loads(cloudpickle.dumps(stage)).write
    buckets = Buckets(definition, plan, 0, f"run {seed} {stage is None}", stage=written)
    stores: dict[str, Memory] = {}
    random = Random(seed)
    reports = []
    for number, batch in enumerate(cut(random, updates(random, 120), 5)):
        inbox: dict[str, list[bytes]] = {}
        for partition in batch:
            for bucket, body in packed(extractor.extract(partition), plan):
                if bucket != ASIDE:
                    inbox.setdefault(f"{bucket}/0", []).append(body)
        rows = []
        for key, bodies in inbox.items():
            store = stores.setdefault(key, Memory())
            rows += buckets.take(key, store, bodies, batch=number).rows
        reports.append((number + 1, gather_batch(number + 1, rows)))
    return reports


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_parts_of_tasks_are_the_batch(
    tmp_path: Path,
    posted: tuple[int, dict[str, list[Any]], set[str]],
    small: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each sink has every change once, though a batch is committed twice and a post is rejected."""
    monkeypatch.setattr("axlog.runtime.sink_parts.SMALL", small)
    port, bodies, rejects = posted
    (tmp_path / "pipeline.yaml").write_text(PIPELINE.format(port=port))
    model = load(str(tmp_path / "pipeline.yaml"))
    expected = run(model, None)
    sinks = opened(model)
    stage = sinks.stage(engines=12, first=1, place=str(tmp_path))
    assert stage is not None
    assert set(stage.names) == {"join", "total"}  # `path` has a table of SQL
    rejects |= {"/http", "/hook"}
    for (batch, found), (_, wanted) in zip(run(model, stage), expected, strict=True):
        assert {change.view for change in found.changes} <= {"path"}
        assert found.ops == wanted.ops
        assert any(part.path for each in found.parts.parts.values() for part in each) == (
            small == 0 and bool(found.parts.parts)
        )
        for _ in range(2):
            sinks.write_parts(batch, found.changes, found.parts)
        found.parts.remove()
    sinks.close()
    assert not list((tmp_path / DIRECTORY).iterdir())
    changes = [c for _, report in expected for c in report.changes if c.view == "join"]
    assert len(changes) > 3
    rows = Counter(c.row["x"] for c in changes if c.op == "insert")
    lines = [json.loads(line) for line in (tmp_path / "join.jsonl").read_text().splitlines()]
    assert Counter(line["row"]["x"] for line in lines) == rows
    positions = [line["position"] for line in lines]
    assert len(set(positions)) == len(positions)
    assert [p // BATCHES_APART for p in positions] == [line["batch"] for line in lines]
    native = [json.loads(line) for line in (tmp_path / "join.cloud").read_text().splitlines()]
    assert len({line["id"] for line in native}) == len(native) == len(changes)
    log = pq.read_table(next((tmp_path / "join.log").iterdir()))
    assert Counter(json.loads(row)["x"] for row in log["row"].to_pylist()) == rows
    table = DeltaTable(tmp_path / "join.delta").to_pyarrow_table()
    assert Counter(table["x"].to_pylist()) == rows
    for path in ("/http ", "/hook "):
        mine = {key: each for key, each in bodies.items() if key.startswith(path)}
        assert all(one == each[0] for each in mine.values() for one in each)  # by key: the same
        told = [each[0] for each in mine.values()]
        each = [c for body in told for c in (body["changes"] if path == "/http " else body)]
        assert Counter(change["row"]["x"] for change in each) == rows


def test_what_is_written_where_is_said(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE.format(port=1))
    model = load(str(tmp_path / "pipeline.yaml"))
    assert delivery_lines(model) == [
        "join: sinks jsonl, jsonl, delta, parquet-log, http, webhook are written by tasks,"
        " if the state is with executors",
        "total: sinks jsonl are written by tasks, if the state is with executors",
        "path: sinks jsonl, sql are written on the driver: sql takes a batch as a whole",
    ]
    text = PIPELINE.format(port=1).replace(
        "[a/item/k/$x]/b/item/v/$y return count()", "/a/item/k/$x return count()"
    )
    (tmp_path / "pipeline.yaml").write_text(text)
    assert delivery_lines(load(str(tmp_path / "pipeline.yaml")))[1] == (
        "total: sinks jsonl are written on the driver: the final step makes its rows there"
    )
    (tmp_path / "pipeline.yaml").write_text(
        text.replace("sinks: [{kind: jsonl, path: total.jsonl}]", "")
    )
    lines = delivery_lines(load(str(tmp_path / "pipeline.yaml")))
    assert [line.partition(":")[0] for line in lines] == ["join", "path"]  # total has no sink
