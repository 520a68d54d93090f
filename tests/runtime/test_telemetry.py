"""Traces and metrics of a run, exported with OpenTelemetry: from the source to the sink."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner

from axlog import telemetry
from axlog.cli.application import application
from axlog.errors import SetupError
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.runtime.health import RunnerReport

pytest.importorskip("opentelemetry.sdk")

PIPELINE = """
engine: embedded
streams:
  orders: {source: {kind: jsonl, path: orders.jsonl}}
  shipments: {source: {kind: jsonl, path: shipments.jsonl}}
views:
  shipped:
    query: match /document[orders/order/$x][shipments/order/$x] return $x
    sinks: [{kind: jsonl, path: out.jsonl}]
settings: {checkpoint: out/state}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    for at, stream in enumerate(("orders", "shipments")):
        line = {"stream": stream, "insert": "<order>secret 17</order>", "at": at}
        (tmp_path / f"{stream}.jsonl").write_text(json.dumps(line) + "\n")
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE, encoding="utf-8")
    return path


def test_a_batch_links_its_reads_and_contains_its_delivery(pipeline: Path) -> None:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    runner = Runner(load(str(pipeline)), once=True)
    report = RunnerReport(runner)
    with telemetry.exported(report.samples, spans=spans, reader=reader):
        runner.run()
        measured: Any = reader.get_metrics_data()
    runner.close()
    found: Any = spans.get_finished_spans()
    by_id = {one.context.span_id: one for one in found}
    batches = [one for one in found if one.name == "axlog.batch"]
    assert batches
    linked = {by_id[link.context.span_id].attributes["axlog.source"]
              for batch in batches for link in batch.links}  # fmt: skip
    assert len(linked) == 2  # both sources
    below = {one.name for one in found if one.parent and one.parent.span_id in
             {batch.context.span_id for batch in batches}}  # fmt: skip
    assert below == {"axlog.checkpoint", "axlog.apply", "axlog.deliver"}
    (sink,) = {one.attributes["axlog.sink"] for one in found if one.name == "axlog.deliver"}
    assert sink == "shipped/0"
    assert "secret" not in "".join(one.to_json() for one in found)
    metrics = {
        metric.name: [(dict(point.attributes), point.value) for point in metric.data.data_points]
        for resource in measured.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    updates = {labels["stream"]: value for labels, value in metrics["axlog_updates_total"]}
    assert updates == {"orders": 1, "shipments": 1}
    assert not telemetry.is_enabled()


class _Collector(BaseHTTPRequestHandler):
    received: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        type(self).received.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *given: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[tuple[str, list[str]]]:
    received: list[str] = []
    handler = type("Handler", (_Collector,), {"received": received})
    server = HTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()
    server.server_close()


def test_a_run_exports_to_the_collector_that_the_environment_names(
    pipeline: Path, collector: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    address, received = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    asked = ["run", str(pipeline), "--once", "--telemetry"]
    done = CliRunner().invoke(application(), asked)
    assert done.exit_code == 0, done.output
    assert set(received) == {"/v1/traces", "/v1/metrics"}


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.trace", None)
    with pytest.raises(SetupError) as caught:
        telemetry.enable()
    assert "pip install 'axlog[telemetry]'" in str(caught.value.advice)
