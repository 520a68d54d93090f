"""Operations: events, metrics, health, and stopping in order, on real processes."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from time import sleep
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import axlog
from axlog.cli.application import application
from axlog.connect.sinks.jsonl import read_log
from axlog.errors import ConnectorError, StoreError
from axlog.live.metrics import document_health, document_samples
from axlog.pipeline.model import PipelineModel
from axlog.reporting import (
    Durations,
    Health,
    Sample,
    State,
    configure_logs,
    counter,
    exposition,
    gauge,
    report,
)
from axlog.runtime.embedded import Runner
from axlog.runtime.health import ProgressReport, RunnerReport
from axlog.runtime.progress import Lagging, Progress
from axlog.samples import orders
from axlog.server.monitoring import DocumentsReport, serving_report
from axlog.views.change import Change
from tests.server_access import TOKEN, client_of, secured
from tests.waiting import eventually

AXLOG = [sys.executable, "-c", "from axlog.cli import main; main()"]
DOCUMENT = '<r><ax:call xmlns:ax="urn:axlog" stream="f"/></r>'
VIEWS = {"v": "match /r/a/$x return $x"}


@pytest.fixture
def events() -> Iterator[io.StringIO]:
    """What is logged as JSON lines while a test runs."""
    out = io.StringIO()
    logger = logging.getLogger("axlog")
    before = (list(logger.handlers), logger.level, logger.propagate)
    configure_logs("json", "debug", out)
    yield out
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def said(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


# Events -------------------------------------------------------------------------------------------


def test_events_are_json_lines_with_their_fields(events: io.StringIO) -> None:
    logger = logging.getLogger("axlog.some")
    report(logger, logging.INFO, "opened", document="w", seq=3, view=None, said='a "b"\nc')
    (event,) = said(events)
    assert event["event"] == "opened"
    assert (event["level"], event["logger"], event["document"]) == ("info", "axlog.some", "w")
    assert (event["seq"], event["said"]) == (3, 'a "b"\nc')
    assert "view" not in event
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", event["time"])


def test_events_are_lines_for_people() -> None:
    out = io.StringIO()
    logger = logging.getLogger("axlog")
    before = list(logger.handlers)
    try:
        configure_logs("text", "info", out)
        configure_logs("text", "info", out)  # again: not twice
        report(logging.getLogger("axlog.x"), logging.WARNING, "refused", stream="f", error="a b")
        report(logging.getLogger("axlog.x"), logging.DEBUG, "not shown")
    finally:
        logger.handlers[:] = before
        logger.propagate = True
        logger.setLevel(logging.NOTSET)
    (line,) = out.getvalue().splitlines()
    assert line[9:] == 'warning refused stream=f error="a b"'


def test_a_store_says_what_it_does(tmp_path: Path, events: io.StringIO) -> None:
    with axlog.open(
        tmp_path / "s", DOCUMENT, views=VIEWS, options=axlog.Options(on_error="dead-letter")
    ) as doc:
        doc.feed("f", "<a>1</a>")
        doc.feed("f", "<a>")
        doc.snapshot()
    found = [(e["event"], e.get("document"), e.get("stream")) for e in said(events)]
    assert found == [
        ("store opened", "s", None),
        ("refused", None, "f"),
        ("snapshot", "s", None),
        ("store closed", "s", None),
    ]
    assert said(events)[1]["seq"] == 2


# Metrics ------------------------------------------------------------------------------------------

_LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*\})? (\S+)')


def parsed(text: str) -> dict[str, float]:
    """The samples of an exposition; every line must be as the format says."""
    found: dict[str, float] = {}
    typed: dict[str, str] = {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in typed, "a family is said once"
            typed[name] = kind
        elif not line.startswith("# HELP "):
            match = _LINE.fullmatch(line)
            assert match is not None, line
            family = re.sub("_(bucket|sum|count)$", "", match[1])
            assert match[1] in typed or typed[family] == "histogram"
            key = match[1] + (match[2] or "")
            assert key not in found, "a sample is said once"
            found[key] = float(match[3])
    return found


def test_the_text_format() -> None:
    times = Durations()
    for seconds in (0.0004, 0.004, 0.3, 100.0):
        times.note(seconds)
    text = exposition(
        [
            counter("x_total", 3, "Things\nthat \\ came", stream='a "b"\\\n'),
            gauge("y", 0.5, "Else"),
            counter("x_total", 4, "Things", stream="c"),
            *times.samples("z_seconds", "Times", document="w"),
        ]
    )
    assert text.startswith("# HELP x_total Things\\nthat \\\\ came\n# TYPE x_total counter\n")
    found = parsed(text)
    assert found['x_total{stream="a \\"b\\"\\\\\\n"}'] == 3
    assert found['x_total{stream="c"}'] == 4
    assert found['z_seconds_bucket{document="w",le="0.0005"}'] == 1
    assert found['z_seconds_bucket{document="w",le="0.5"}'] == 3
    assert (
        found['z_seconds_bucket{document="w",le="+Inf"}'] == found['z_seconds_count{document="w"}']
    )
    assert found['z_seconds_sum{document="w"}'] == pytest.approx(100.3044)


def values(samples: Iterator[Sample]) -> dict[str, float]:
    return parsed(exposition(samples))


class Failing:
    """A sink that takes nothing until it is told to."""

    def __init__(self) -> None:
        self.works = False
        self.taken: list[str] = []

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        if not self.works:
            raise OSError("not now")
        self.taken += [change.row["x"] for change in changes]


def test_a_durable_document_counts(tmp_path: Path) -> None:
    sink = Failing()
    with axlog.open(
        tmp_path,
        DOCUMENT,
        views=VIEWS,
        options=axlog.Options(on_error="dead-letter", validate="wanted"),
    ) as doc:
        box = doc.publish("v", sink, "out")
        for message in ("<a>1</a>", "<a>2</a>", "<b/>", "<a>"):
            doc.feed("f", message)
        eventually(lambda: box.failures)
        found = values(document_samples("w", doc))
        at = '{document="w",stream="f"}'
        assert found[f"axlog_updates_total{at}"] == 4
        assert found[f"axlog_updates_dropped_total{at}"] == 1
        assert found[f"axlog_updates_refused_total{at}"] == 1
        assert found['axlog_view_rows{document="w",view="v"}'] == 2
        assert found['axlog_view_changes_total{document="w",view="v"}'] == 2
        assert found['axlog_dead_letters{document="w"}'] == 1
        assert found['axlog_store_records_total{document="w"}'] == doc.record
        assert found['axlog_store_sync_seconds_count{document="w"}'] >= 4
        assert found['axlog_publisher_waiting{document="w",publisher="out"}'] == 2
        assert found['axlog_publisher_failures_total{document="w",publisher="out"}'] >= 1
        health = document_health("w", doc)
        (view,) = health.views
        assert (health.state, health.status, view.undelivered) == (State.DEGRADED, 200, 2)
        assert view.reasons == ("publisher out has yet to take 2 changes: OSError: not now",)
        sink.works = True
        assert box.flush(10)
        assert document_health("w", doc).state is State.OK
        doc._broken = "the disk is gone"
        assert document_health("w", doc).failures == ("w: the disk is gone",)
        assert document_health("w", doc).status == 503
        doc._broken = None


def test_a_deferred_view_is_behind() -> None:
    doc = axlog.parse(DOCUMENT, views=VIEWS)
    doc.view("v").defer()
    for number in range(3):
        doc.update(f"insert node <a>{number}</a> into /r")
    (view,) = document_health("w", doc).views
    assert (view.state, view.updates) == (State.DEGRADED, 3)
    assert len(doc.view("v")) == 3
    assert document_health("w", doc).state is State.OK


def test_dead_letters_are_bounded() -> None:
    doc = axlog.parse(DOCUMENT, views=VIEWS, options=axlog.Options(on_error="dead-letter"))
    for _ in range(1100):
        doc.feed("f", "<a>")
    assert len(doc.dead_letters) == 1000
    assert doc.dead_letters[-1].sequence == 1100
    assert doc.streams()["f"].refused == 1100


# Health of a run ----------------------------------------------------------------------------------


def model_of(directory: Path, **changes: Any) -> PipelineModel:
    written: dict[str, Any] = {
        "engine": "embedded",
        "documents": {
            "a": {
                "document": DOCUMENT,
                "streams": {"f": {"source": {"kind": "memory", "updates": [
                    {"stream": "f", "insert": f"<a>{n}</a>", "at": n} for n in range(5)]}}},
                "views": {"v": {"query": VIEWS["v"], "sinks": [{"kind": "memory"}]}},
            },
            "b": {
                "document": '<b><ax:call xmlns:ax="urn:axlog" stream="rows"/></b>',
                "streams": {"rows": {"view": "a.v"}},
                "views": {"again": {"query": "match /b/row/x/$x return $x"}},
            },
        },
    }  # fmt: skip
    written.update(changes)
    return PipelineModel.model_validate(written).located(directory)


def test_a_run_says_how_far_its_views_are_behind_and_why(tmp_path: Path) -> None:
    runner = Runner(model_of(tmp_path), once=True)
    asked = RunnerReport(runner)
    sink = runner.sinks[0]
    taking = sink.sink.write
    fails = [True]

    def write(batch: int, changes: Sequence[Change]) -> None:
        if fails[0]:
            raise ConnectorError("AX859", "the table is locked")
        taking(batch, changes)

    sink.sink.write = write  # type: ignore[method-assign]  # a sink that cannot be reached
    try:
        assert asked.health().state is State.OK
        work = threading.Thread(target=runner.run)
        work.start()
        late = eventually(lambda: [v for v in asked.health().views if v.state is State.DEGRADED])
        assert [(v.document, v.view) for v in late] == [("a", "v")]
        assert late[0].undelivered == 1
        assert late[0].reasons[-1].endswith("is unreachable: the table is locked")
        found = values(asked.samples())
        assert found[f'axlog_sink_errors_total{{sink="{sink.name}"}}'] >= 1
        assert found[f'axlog_sink_lag_seconds{{sink="{sink.name}"}}'] > 0
        fails[0] = False
        work.join(60)
        assert asked.health().state is State.OK
        found = values(asked.samples())
        assert found['axlog_source_updates_total{source="a/streams/f"}'] == 5
        assert found['axlog_view_rows{document="b",view="again"}'] == 5
        assert found["axlog_messages_total"] == 5
        assert found["axlog_batch_seconds_count"] == 1
        runner.failure = "it is over"
        assert asked.health().status == 503
    finally:
        runner.close()


def test_views_wait_for_a_slower_source(tmp_path: Path) -> None:
    call = DOCUMENT.replace("</r>", '<ax:call xmlns:ax="urn:axlog" stream="g"/></r>')
    updates = [{"stream": "f", "insert": "<a>1</a>", "at": 1}]
    streams = {
        "f": {"source": {"kind": "memory", "updates": updates}},
        "g": {"source": {"kind": "jsonl", "path": "nothing.jsonl"}},
    }
    documents = {"w": {"document": call, "streams": streams, "views": VIEWS}}
    runner = Runner(model_of(tmp_path, documents=documents, settings={"hold": "60s"}))
    try:
        runner.round()
        (view,) = RunnerReport(runner).health().views
        assert view.updates == 1
        assert "1 updates wait for w/streams/g" in view.reasons
    finally:
        runner.close()


def test_a_run_known_by_its_progress_alone() -> None:
    asked = ProgressReport()
    assert asked.health().state is State.OK
    asked(Progress(batch=3, rows=7, state=40, lagging=[Lagging("sink", "gone", 2.5, 4)]))
    found = values(asked.samples())
    assert (found["axlog_batches_total"], found["axlog_rows"]) == (3, 7)
    assert found['axlog_lagging_seconds{connector="sink"}'] == 2.5
    assert found["axlog_state_bytes"] == 40
    assert asked.health().plain()["troubles"] == ["sink is unreachable for 2.5 s: gone"]


def test_the_worst_of_all_is_the_whole() -> None:
    assert Health().state is State.OK
    assert Health(troubles=("late",)).status == 200
    assert Health(failures=("gone",), troubles=("late",)).plain()["status"] == "failed"


def test_metrics_and_health_are_served() -> None:
    doc = axlog.parse(DOCUMENT, views=VIEWS)
    doc.feed("f", "<a>1</a>")
    with (
        serving_report(DocumentsReport({"w": doc}), secured()) as address,
        client_of(address) as client,
    ):
        metrics = client.get("/metrics")
        assert metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = parsed(metrics.text)
        assert found['axlog_view_rows{document="w",view="v"}'] == 1
        assert found["process_resident_memory_bytes"] > 1_000_000
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "ok")
        assert health.json()["views"][0]["behind"]["updates"] == 0
        assert client.get("/health", headers={"host": "elsewhere.example"}).status_code == 403
        del client.headers["Authorization"]
        assert client.get("/metrics").status_code == 401
        assert client.get("/health").json() == {"status": "ok"}


# Stopping -----------------------------------------------------------------------------------------

FILE = """
engine: embedded
documents:
  monitor:
    document: document.xml
    sources: [{kind: jsonl, path: in.jsonl}]
    views:
      late: {query: 'QUERY', sinks: [{kind: jsonl, path: late.jsonl}]}
settings: {batch: 10, checkpoint: state, trigger: 10ms, hold: 0, snapshot: 60}
"""


def written_to(directory: Path, query: str = orders.LATE, document: str = orders.DOCUMENT) -> Path:
    directory.mkdir()
    (directory / "document.xml").write_text(document)
    (directory / "in.jsonl").write_text("")
    path = directory / "p.yaml"
    path.write_text(FILE.replace("QUERY", query.replace("'", "''")))
    return path


def rows_of(path: Path) -> Counter[str]:
    """The rows after all changes that a sink was given."""
    rows: Counter[str] = Counter()
    for change in read_log(path):
        rows[json.dumps(change["row"])] += {"insert": 1, "delete": -1}[change["op"]]
    return rows


def append(path: Path, messages: Sequence[dict[str, object]]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(one) + "\n" for one in messages)


def started(path: Path, *options: str) -> subprocess.Popen[str]:
    command = [*AXLOG, "run", "--no-page", "--log-format", "json", *options, str(path)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def run_once(path: Path) -> None:
    done = CliRunner().invoke(application(), ["run", "--once", str(path)])
    assert done.exit_code == 0, done.output


@pytest.mark.system
def test_runs_that_are_stopped_lose_and_double_nothing(tmp_path: Path) -> None:
    """SIGTERM and SIGINT in the middle of the work; then an undisturbed run's rows."""
    messages = list(orders.messages(300, seed=3, rate=0.001, late_share=0.6))
    whole, cut = written_to(tmp_path / "whole"), written_to(tmp_path / "cut")
    append(whole.parent / "in.jsonl", messages)
    run_once(whole)
    for part in range(2):
        process = started(cut, "--log-level", "debug")
        assert process.stderr is not None
        append(cut.parent / "in.jsonl", messages[150 * part : 150 * part + 150])
        for line in process.stderr:  # once there is something to do, stop in the middle of it
            if json.loads(line)["event"] == "batch" and (part == 0 or _is_whole(cut, whole)):
                break
        process.send_signal(signal.SIGINT if part % 2 else signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
        assert process.returncode == 0, rest
        assert [json.loads(line)["event"] for line in rest.splitlines()][-1] == "closed"
    assert rows_of(cut.parent / "late.jsonl") == rows_of(whole.parent / "late.jsonl")
    assert max(rows_of(cut.parent / "late.jsonl").values()) == 1
    assert rows_of(whole.parent / "late.jsonl").total() > 20


def _is_whole(cut: Path, whole: Path) -> bool:
    logs = [rows_of(path.parent / "late.jsonl").total() for path in (cut, whole)]
    return logs[0] == logs[1]


@pytest.mark.system
def test_a_stop_while_a_sink_cannot_be_reached_leaves_the_batch_for_the_next_run(
    tmp_path: Path,
) -> None:
    path = written_to(tmp_path / "p", VIEWS["v"], DOCUMENT)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    sink = f"{{kind: http, url: 'http://127.0.0.1:{port}/', retries: 0}}"
    path.write_text(path.read_text().replace("{kind: jsonl, path: late.jsonl}", sink))
    append(path.parent / "in.jsonl", [{"stream": "f", "insert": "<a>1</a>", "at": 1}])
    process = started(path)
    assert process.stderr is not None
    for line in process.stderr:
        if json.loads(line)["event"] == "cannot be reached":
            break
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    bodies: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", port), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run_once(path)
        server.shutdown()
    assert b"".join(bodies).count(b'"row":{"x":"1"}') == 1


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    script = (
        "import time\n"
        "from axlog.cli.service import stopped_by_signals\n"
        "with stopped_by_signals(lambda: print('asked', flush=True)):\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM


SERVED = """
engine: embedded
documents:
  w:
    document: document.xml
    streams: {f: {channel: in}}
    views:
      v: {query: 'match /r/a/$x return $x', sinks: [{kind: jsonl, path: out.jsonl}]}
channels:
  in: {kind: memory, journal: in.channel, when_full: wait}
settings: {batch: 10, checkpoint: state, trigger: 10ms, hold: 0}
"""


def serving(path: Path) -> tuple[subprocess.Popen[str], str]:
    command = [*AXLOG, "serve", "--port", "0", str(path)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=path.parent,
        env={**os.environ, "AXLOG_TOKEN": TOKEN},
    )
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    return process, address


@pytest.mark.system
def test_a_server_that_is_stopped_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    """Publishing over HTTP until SIGTERM: what was answered with success is in the sink, once."""
    (tmp_path / "document.xml").write_text(DOCUMENT)
    path = tmp_path / "p.yaml"
    path.write_text(SERVED)
    acknowledged: list[str] = []
    number = 0
    process, address = serving(path)
    with client_of(address) as client:
        assert client.get("/health").json()["status"] == "ok"
        with suppress(httpx.HTTPError):  # the server goes away in the middle of it
            while True:
                number += 1
                update = {"stream": "f", "insert": f"<a>{number}</a>", "at": number}
                answered = client.post("/channels/in/updates", json=update)
                if answered.is_success:
                    acknowledged.append(str(number))
                if len(acknowledged) == 30:
                    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    process, address = serving(path)  # what was acknowledged last may be on its way
    wanted = Counter(json.dumps({"x": x}) for x in acknowledged)
    eventually(lambda: rows_of(tmp_path / "out.jsonl") >= wanted)
    with client_of(address) as client:
        found = client.get("/metrics").text
    assert 'axlog_channel_entries_total{channel="in"}' in found
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert max(rows_of(tmp_path / "out.jsonl").values()) == 1
    assert len(acknowledged) >= 30


@pytest.mark.system
def test_the_health_of_a_run_is_served_beside_it(tmp_path: Path) -> None:
    path = written_to(tmp_path / "p", VIEWS["v"], DOCUMENT)
    append(path.parent / "in.jsonl", [{"stream": "f", "insert": "<a>1</a>", "at": 1}])
    command = [*AXLOG, "run", "--no-page", "--listen", "127.0.0.1:0", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("engine embedded: ")
    address = process.stderr.readline().split()[-1].removesuffix("/health")
    token = process.stderr.readline().split()[-1]
    with client_of(address, token) as client:
        row = 'axlog_view_rows{document="monitor",view="late"} 1'
        eventually(lambda: row in client.get("/metrics").text)
        said = client.get("/health").json()
    assert said["views"][0]["view"] == "late"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0


# Publishers that are slow -------------------------------------------------------------------------


class Slow:
    """A sink that takes a batch a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.rows: list[str] = []

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        sleep(self.seconds)
        self.rows += [change.row["x"] for change in changes]


def test_a_slow_publisher_makes_feeding_wait_and_nothing_grow(tmp_path: Path) -> None:
    sink = Slow(0.002)
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS, sync="off") as doc:
        box = doc.publish("v", sink, most=10)
        for number in range(300):
            doc.feed("f", f"<a>{number}</a>")
        assert box.largest <= 11
        assert box.blocked > 0
        assert box.flush(20)
    assert sink.rows == [str(n) for n in range(300)]


def test_feeding_from_several_threads_waits_too(tmp_path: Path) -> None:
    """The publisher needs the document's lock to note how far it is: nobody waits holding it."""
    sink = Slow(0.0)
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS, sync="off") as doc:
        box = doc.publish("v", sink, most=3)

        def feed(start: int) -> None:
            for number in range(start, start + 100):
                doc.feed("f", f"<a>{number}</a>")

        threads = [threading.Thread(target=feed, args=(1000 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "feeding and publishing wait for each other"
        assert box.largest <= 3 + 4
        assert box.flush(20)
    assert len(sink.rows) == len(set(sink.rows)) == 400


def test_updates_are_refused_when_the_outbox_is_full(tmp_path: Path) -> None:
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as doc:
        box = doc.outbox("v", "out")
        box.most = 2
        doc.feed("f", "<a>1</a>")
        doc.feed("f", "<a>2</a>")
        with pytest.raises(StoreError) as refused:
            doc.feed("f", "<a>3</a>")
        assert refused.value.code == "AX877"
        doc.unpublish("out")
        doc.feed("f", "<a>3</a>")
        with pytest.raises(StoreError):
            doc.unpublish("out")
    with axlog.open(tmp_path) as again:
        assert again.outboxes == {}
        assert len(again.view("v")) == 3
