"""Pipeline files on Spark: every source, every sink, documents that feed each other, channels.

One file is run by both engines, and all that they leave is compared.
"""

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from axlog.connect.channels.http import HttpChannel
from axlog.connect.channels.registry import Channels
from axlog.connect.http import LOOPBACK, Allowance
from axlog.document.stream_update import StreamUpdate
from axlog.errors import PipelineError
from axlog.pipeline.loader import load
from axlog.pipeline.model import PipelineModel
from axlog.runtime import embedded
from axlog.runtime.progress import Progress
from axlog.server.application import make_application
from axlog.server.server import running
from axlog.spark import pipeline as on_spark
from tests.server_access import TOKEN, secured

PIPELINE = """
name: {engine}
engine: {engine}
documents:
  shop:
    document: |
      <shop xmlns:ax="urn:axlog"><a><ax:call stream="a"/></a><b><ax:call stream="b"/></b>
      <c><ax:call stream="c"/></c><d><ax:call stream="d"/></d></shop>
    streams:
      a: {{source: {{kind: directory, path: a, record: item, time: "@at"}}}}
      b: {{source: {{kind: jsonl, path: b.jsonl}}}}
      c: {{source: {{kind: kafka, brokers: "{brokers}", topic: c, time: "@at"}}}}
      d: {{source: {{kind: directory, path: d, time: "@at"}}}}
    views:
      both:
        query: match /shop[a/item/k/$x][b/item/k/$x] return $x
        sinks:
        - {{kind: parquet, path: "{engine}/both.parquet"}}
        - {{kind: delta, path: "{engine}/both.delta"}}
        - {{kind: sql, url: "sqlite:///{engine}/both.db"}}
        - {{kind: parquet-log, path: "{engine}/both.log"}}
        - {{kind: http, url: "http://127.0.0.1:{port}/{engine}"}}
        - {{kind: console}}
        - log
      others: {{query: "match /shop[c/item/k/$x][d/item/k/$x] return $x", sinks: [log]}}
  told:
    document: |
      <told xmlns:ax="urn:axlog"><ax:call stream="rows"/><ax:call stream="heard"/></told>
    streams:
      rows: {{view: shop.both, deletes: "yes"}}
      heard: {{channel: in}}
    views:
      seen:
        query: match /told/row/x/$x return $x
        sinks: [log]
        channel: out
      heard: {{query: "match /told/order/oid/$x return $x", sinks: [log]}}
channels:
  in: {{kind: http, url: "{peer}/channels/in", token: "{TOKEN}", allow: ["127.0.0.1"]}}
  out: {{kind: http, url: "{peer}/channels/{engine}", token: "{TOKEN}", allow: ["127.0.0.1"]}}
sinks:
  log: {{kind: jsonl, path: "{engine}/log.jsonl"}}
dead_letters: {{kind: jsonl, path: "{engine}/dead.jsonl"}}
settings: {{batch: 8, checkpoint: "{engine}/state", hold: 0.2, state: driver}}
"""


@pytest.fixture
def receiver() -> Iterator[tuple[int, list[tuple[str, str, Any]]]]:
    seen: list[tuple[str, str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, self.headers["Idempotency-Key"], body))
            self.send_response(204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *given: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, seen
    server.shutdown()
    server.server_close()


@pytest.fixture
def peer() -> Iterator[str]:
    settings = secured()
    with running(make_application(Channels(), settings), settings) as address:
        yield address


def item(key: int, at: int) -> str:
    return f'<item at="{at}"><k>{key}</k></item>'


def write_input(place: Path) -> Any:
    """Messages for every source; what is in Kafka lives as long as what is given back."""
    from confluent_kafka import Producer

    (place / "a").mkdir()
    (place / "d").mkdir()
    for name, keys in (("1.xml", (1, 2, 3)), ("2.xml", (4, 5))):
        items = "".join(item(key, key) for key in keys)
        (place / "a" / name).write_text(f"<items>{items}</items>")
    (place / "a" / "3.xml").write_text("<items>")
    lines = [json.dumps({"insert": item(key, key), "at": key}) for key in (2, 4, 5, 6)]
    (place / "b.jsonl").write_text("\n".join([*lines, "no line"]) + "\n")
    for key in (3, 7, 8):
        (place / "d" / f"{key}.xml").write_text(item(key, key))
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused"})
    (broker,) = cluster.list_topics(timeout=60).brokers.values()
    address = f"{broker.host}:{broker.port}"
    producer = Producer({"bootstrap.servers": address})
    for key in (3, 8, 9):
        producer.produce("c", item(key, key).encode(), partition=0)
    producer.flush(10)
    return cluster, address


def logged(path: Path) -> Counter[str]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return Counter(json.dumps([c["view"], c["op"], c["row"]], sort_keys=True) for c in lines)


def left_by(place: Path) -> dict[str, Any]:
    """What a run has left in its sinks."""
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

    with closing(sqlite3.connect(place / "both.db")) as table:
        names = table.execute("select name from sqlite_master where type = 'table'").fetchall()
        (name,) = [name for (name,) in names if "both" in name]
        rows = table.execute(f'select x from "{name}" order by x').fetchall()
    log = ds.dataset(place / "both.log", format="parquet").to_table().to_pylist()
    dead = [json.loads(line)["row"] for line in (place / "dead.jsonl").read_text().splitlines()]
    return {
        "parquet": ds.dataset(place / "both.parquet").to_table().sort_by("x")["x"].to_pylist(),
        "delta": sorted(DeltaTable(str(place / "both.delta")).to_pyarrow_table()["x"].to_pylist()),
        "sql": [x for (x,) in rows],
        "parquet-log": Counter((one["op"], one["row"]) for one in log),
        "log": logged(place / "log.jsonl"),
        "dead": sorted((one["stream"], one["origin"]) for one in dead),
    }


def channel_of(peer: str, name: str) -> HttpChannel:
    return HttpChannel(f"{peer}/channels/{name}", TOKEN, Allowance(hosts=LOOPBACK))


def heard(peer: str, name: str) -> list[str]:
    with closing(channel_of(peer, name)) as channel:
        reader = channel.subscribe("looking", after=0)
        found = [str(update.content) for update in reader.read(100).updates]
        reader.close()
    return sorted(found)


@pytest.mark.spark
def test_all_sources_and_sinks_as_the_embedded_engine_has_them(
    spark: Any,
    tmp_path: Path,
    receiver: tuple[int, list[tuple[str, str, Any]]],
    peer: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    port, posted = receiver
    cluster, brokers = write_input(tmp_path)
    for name in ("in", "embedded", "spark"):
        with closing(channel_of(peer, name)) as channel:
            channel.make()
            for number in (1, 2) if name == "in" else ():
                xml = f"<order><oid>{number}</oid></order>"
                channel.publish(StreamUpdate("heard", "insert", xml, 100 + number))
    models: dict[str, PipelineModel] = {}
    for engine in ("embedded", "spark"):
        (tmp_path / engine).mkdir()
        path = tmp_path / f"{engine}.yaml"
        path.write_text(
            PIPELINE.format(engine=engine, brokers=brokers, port=port, peer=peer, TOKEN=TOKEN)
        )
        models[engine] = load(str(path))
    embedded.run(models["embedded"], once=True)
    shown = {"embedded": capsys.readouterr().out}
    reports: list[Progress] = []
    progress = on_spark.run(models["spark"], once=True, on_progress=reports.append)
    shown["spark"] = capsys.readouterr().out
    expected = left_by(tmp_path / "embedded")
    assert left_by(tmp_path / "spark") == expected
    assert expected["sql"] == ["2", "4", "5"]
    assert {stream for stream, _ in expected["dead"]} == {"a", "b"}
    keys = {path: {key for at, key, _ in posted if at == path} for path in ("/embedded", "/spark")}
    bodies = [
        Counter(c["row"]["x"] for at, _, body in posted if at == path for c in body["changes"])
        for path in ("/embedded", "/spark")
    ]
    assert bodies[0] == bodies[1] == Counter(["2", "4", "5"])
    assert len(keys["/spark"]) == sum(at == "/spark" for at, *_ in posted)
    lines = [Counter(json.loads(s)["row"]["x"] for s in out.split("\n") if s) for out in
             shown.values()]  # fmt: skip
    assert lines[0] == lines[1]
    assert heard(peer, "spark") == heard(peer, "embedded") != []
    assert progress.lives == "on the driver (as configured)"
    assert progress.refused == 2
    assert progress.messages == 22  # rows that came over the wire are messages too
    assert reports[-1].plain()["possible"] is not None
    logs = [tmp_path / "spark" / name for name in ("log.jsonl", "dead.jsonl")]
    before = [log.read_text() for log in logs]
    on_spark.run(models["spark"], once=True)  # nothing is new: nothing comes twice
    assert [log.read_text() for log in logs] == before
    del cluster


def test_what_spark_cannot_wire_is_refused_before_it_starts(tmp_path: Path) -> None:
    def model(**changes: Any) -> PipelineModel:
        document = '<w xmlns:ax="urn:axlog"><ax:call stream="s"/></w>'
        doc = {"document": document, "views": {"v": "match /w/row/x/$x return $x"}}
        written = {"documents": {"w": {**doc, **changes.pop("document")}}, **changes}
        return PipelineModel.model_validate(written).located(tmp_path)

    taken_back = {"v": "match /w[not(b)]/row/x/$x return $x"}
    round_about = model(document={"streams": {"s": {"view": "w.v"}}, "views": taken_back})
    with pytest.raises(PipelineError, match="feeds itself"):
        on_spark.run(round_about, once=True)
    channels = {"c": {"kind": "memory"}}
    inside = model(document={"streams": {"s": {"channel": "c"}}}, channels=channels)
    with pytest.raises(PipelineError, match="belongs to one process"):
        on_spark.run(inside, once=True)


@pytest.mark.spark
def test_a_source_that_cannot_be_reached_ends_a_run_with_once(spark: Any, tmp_path: Path) -> None:
    """By the same error as with the embedded engine; alerters look again after a failed look."""
    document = '<w xmlns:ax="urn:axlog"><ax:call stream="s"/></w>'
    doc = {
        "document": document,
        "streams": {"s": {"source": {"kind": "folder", "path": "missing"}}},
        "views": {"v": "match /w/row/x/$x return $x"},
    }
    model = PipelineModel.model_validate({"documents": {"w": doc}}).located(tmp_path)
    with pytest.raises(PipelineError, match=r"AX858: .*missing: No such file or directory"):
        on_spark.run(model, once=True)


CYCLE = """
engine: {engine}
documents:
  graph:
    document: |
      <g xmlns:ax="urn:axlog"><e><ax:call stream="edges"/></e><p><ax:call stream="paths"/></p></g>
    streams:
      edges: {{source: {{kind: jsonl, path: edges.jsonl}}}}
      paths: {{view: graph.reach}}
    views:
      reach:
        query: >-
          match /g[e/edge[x/$x][y/$m] or p/row[x/$x][y/$m]]
          [e/edge[x/$m][y/$y] or e/self[x/$m][y/$y]] return $x, $y
        sinks: [{{kind: jsonl, path: "{engine}.jsonl"}}]
settings: {{hold: 0}}
"""


@pytest.mark.spark
def test_a_cycle_reaches_its_fixpoint(spark: Any, tmp_path: Path) -> None:
    """Paths are fed back into the document that they are found in, until there are no more."""
    nodes = "abcde"
    said = [f"<self><x>{node}</x><y>{node}</y></self>" for node in nodes]
    said += [f"<edge><x>{x}</x><y>{y}</y></edge>" for x, y in pairwise(nodes)]
    lines = [json.dumps({"stream": "edges", "insert": xml}) for xml in said]
    (tmp_path / "edges.jsonl").write_text("\n".join(lines) + "\n")
    found = {}
    for engine, run in (("embedded", embedded.run), ("spark", on_spark.run)):
        (tmp_path / f"{engine}.yaml").write_text(CYCLE.format(engine=engine))
        run(load(str(tmp_path / f"{engine}.yaml")), once=True)
        logged = map(json.loads, (tmp_path / f"{engine}.jsonl").read_text().splitlines())
        found[engine] = sorted((c["op"], c["row"]["x"], c["row"]["y"]) for c in logged)
    expected = [("insert", x, y) for at, x in enumerate(nodes) for y in nodes[at + 1 :]]
    assert found == {"embedded": expected, "spark": expected}


RETRACTED = """
engine: {engine}
streams: {{orders: {{deletes: yes, source: {{kind: jsonl, path: orders.jsonl}}}}}}
views:
  orders:
    query: match /document/orders/order/oid/$x return $x
    sinks: [{{kind: jsonl, path: {engine}.jsonl}}]
settings: {{checkpoint: state-{engine}, batch: 2}}
"""


def test_messages_are_taken_back_as_on_the_embedded_engine(spark: Any, tmp_path: Path) -> None:
    """A message of the same batch, one of an earlier batch, and one that is not there."""
    lines: list[dict[str, Any]] = [
        {"insert": f"<order><oid>{number}</oid></order>"} for number in range(1, 4)
    ]
    lines += [{"retract": 3}, {"retract": 1}, {"retract": 9}]
    updates = [{"stream": "orders", "at": at, **line} for at, line in enumerate(lines)]
    (tmp_path / "orders.jsonl").write_text("".join(json.dumps(each) + "\n" for each in updates))
    found, refused = {}, {}
    for engine, run in (("embedded", embedded.run), ("spark", on_spark.run)):
        (tmp_path / f"{engine}.yaml").write_text(RETRACTED.format(engine=engine))
        pipeline = load(str(tmp_path / f"{engine}.yaml"))
        refused[engine] = run(pipeline, once=True).refused
        logged = map(json.loads, (tmp_path / f"{engine}.jsonl").read_text().splitlines())
        rows: set[str] = set()
        for change in logged:
            (rows.add if change["op"] == "insert" else rows.remove)(change["row"]["x"])
        found[engine] = rows
    assert found == {"embedded": {"2"}, "spark": {"2"}}
    assert refused == {"embedded": 1, "spark": 1}


BY_TASKS = """
document: |
  <shop xmlns:ax="urn:axlog"><a><ax:call stream="a"/></a><b><ax:call stream="b"/></b></shop>
sources: [{{kind: jsonl, path: in.jsonl}}]
views:
  both:
    query: match /shop[a/item/k/$x][b/item/k/$x] return $x
    sinks:
    - {{kind: jsonl, path: "{engine}.jsonl"}}
    - {{kind: delta, path: "{engine}.delta"}}
    - {{kind: http, url: "http://127.0.0.1:{port}/{engine}"}}
  count:
    query: match /shop[a/item/k/$x][b/item/k/$x] return count() as n
    sinks: [{{kind: jsonl, path: "{engine}-count.jsonl"}}]
settings: {{checkpoint: "state-{engine}", batch: 12, hold: 0, state: executors, buckets: 4,
  partitions: 2}}
"""


def test_tasks_write_the_sinks_of_engines_on_executors(
    spark: Any, tmp_path: Path, receiver: tuple[int, list[tuple[str, str, Any]]]
) -> None:
    port, seen = receiver
    lines = [
        {"stream": "ab"[n % 2], "at": n, "insert": f"<item><k>{n // 2 % 9}</k></item>"}
        for n in range(30)
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    tables, logs, counts = {}, {}, {}
    for engine, run in (("embedded", embedded.run), ("spark", on_spark.run)):
        (tmp_path / f"{engine}.yaml").write_text(BY_TASKS.format(engine=engine, port=port))
        run(load(str(tmp_path / f"{engine}.yaml")), once=True)
        tables[engine] = sorted(delta_rows(tmp_path / f"{engine}.delta"))
        logs[engine] = read_lines(tmp_path / f"{engine}.jsonl")
        counts[engine] = read_lines(tmp_path / f"{engine}-count.jsonl")[-1]["row"]
    assert tables["spark"] == tables["embedded"] == sorted(str(n) for n in range(9))
    assert counts["spark"] == counts["embedded"] == {"n": 27}
    apart = (1 << 32) // 9  # eight engines, four for each view, and the driver
    positions = [change["position"] % (1 << 32) for change in logs["spark"]]
    assert len(positions) == 9
    assert all(position > apart for position in positions)  # none came by the driver
    posted = [each for each in seen if each[0] == "/spark"]
    assert len({key for _, key, _ in posted}) == len(posted) > 2  # one request for each part
    assert sum(len(body["changes"]) for *_, body in posted) == 9
    assert not list((tmp_path / "state-spark").glob("*/sink-parts/*"))


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def delta_rows(path: Path) -> list[str]:
    import deltalake

    return list(deltalake.DeltaTable(path).to_pyarrow_table()["x"].to_pylist())
