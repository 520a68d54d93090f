"""Law 7 on Spark: streaming queries say what the embedded engine says, batch by batch.

One session for all tests here; queries that are killed have processes of their own, in
`test_spark_kills.py`.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.connect.protocol import Refusal
from axlog.connect.sources.memory import MemorySource
from axlog.document.stream_update import StreamUpdate
from axlog.pipeline.loader import load
from axlog.runtime import embedded
from axlog.runtime.bucket import TUNE_EVERY
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import Message
from axlog.runtime.plan import make_plan
from axlog.spark import maintain
from axlog.spark.batch_result import BatchReport
from axlog.spark.pipeline import SparkPipeline
from axlog.spark.streaming_query import Maintained
from axlog.views.change import Change
from tests.runtime.test_spark_bucket import VIEWS, by_document, definition_of, plain, updates

pytestmark = pytest.mark.spark


class Collecting:
    """A sink that keeps batches apart, and takes each once."""

    exactly_once = True

    def __init__(self) -> None:
        self.batches: dict[int, list[Change]] = {}
        self.refused: dict[int, list[Refusal]] = {}
        self.reports: list[BatchReport] = []

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        self.batches.setdefault(batch, list(changes))

    def refuse(self, batch: int, refused: Sequence[Refusal]) -> None:
        self.refused.setdefault(batch, list(refused))

    def close(self) -> None:
        """Nothing to let go of."""

    @property
    def changes(self) -> list[Change]:
        return [change for batch in sorted(self.batches) for change in self.batches[batch]]


def given(messages: Any) -> list[StreamUpdate]:
    return [
        StreamUpdate(m.stream, m.action, m.content, (m.time or 0) / 1e6, m.origin) for m in messages
    ]


def run(spark: Any, definition: Definition, messages: Any, sink: Collecting, **options: Any) -> Any:
    """Take all messages in one go, and wait for the end."""
    sent = given(messages)
    query = maintain(
        spark,
        definition,
        [lambda: MemorySource(sent)],
        [sink],
        once=True,
        dead_letters=sink.refuse,
        report=sink.reports.append,
        **options,
    )
    query.wait()
    return query


WAYS = pytest.mark.parametrize("state", ["executors", "driver"])


@WAYS
def test_views_of_every_kind_batch_by_batch(spark: Any, state: str) -> None:
    definition = definition_of(*VIEWS)
    messages = [m._replace(source=0) for m in updates(Random(7), 90)]
    sink = Collecting()
    query = run(spark, definition, messages, sink, limit=40, hold=0, buckets=3, state=state)
    assert query.plan.state.at == state
    parts = [[messages[at : at + 40]] for at in range(0, 90, 40)]
    expected = by_document(definition, parts)
    assert [plain(sink.batches[n]) for n in sorted(sink.batches)] == [plain(e) for e in expected]
    assert sum(map(len, expected)) > 50
    malformed = {m.origin for m in messages if m.content == b"<item>"}
    assert {one.origin for each in sink.refused.values() for one in each} == malformed != set()
    assert sum(report.messages for report in sink.reports) == 90
    assert sink.reports[-1].state > 0


@WAYS
def test_tuned_filters_reach_the_tasks(spark: Any, tmp_path: Path, state: str) -> None:
    """Once some b has a v no other matters: tasks of later batches do not look at them."""
    texts = [f"<item><{'kv'[n % 2]}>{n}</{'kv'[n % 2]}></item>" for n in range(6 * TUNE_EVERY)]
    said = [
        Message(0, "ab"[n % 2], "insert", text.encode(), n, n, f"m{n}")
        for n, text in enumerate(texts)
    ]
    sink = Collecting()
    run(spark, definition_of("some"), said, sink, limit=5, hold=0, buckets=2, state=state,
        checkpoint=str(tmp_path / "checkpoint"))  # fmt: skip
    assert sorted(int(c.row["x"]) for c in sink.changes) == list(range(0, len(said), 2))
    kept = [report.streams["b"] for report in sink.reports if "b" in report.streams]
    assert sum(messages for messages, _ in kept) == len(said) // 2
    assert kept[0] == (2, 2)
    assert kept[-1][1] == 0


@WAYS
def test_two_sources_are_ordered_and_a_checkpoint_is_resumed(
    spark: Any, tmp_path: Path, state: str
) -> None:
    definition = definition_of("join", "time", "content")
    messages = updates(Random(3), 80)
    sides = {s: given([m for m in messages if m.stream == s]) for s in "ab"}
    sink = Collecting()
    place = str(tmp_path / "checkpoint")
    for share in (0.5, 1.0):
        sources = [partial(MemorySource, s[: int(len(s) * share)]) for s in sides.values()]
        query = maintain(
            spark, definition, sources, [sink], once=True, checkpoint=place, limit=40, hold=0.1,
            state=state,
        )  # fmt: skip
        query.wait()
    doc = definition.make(on_error="dead-letter")
    reference = Collecting()
    for number, message in enumerate(sorted(messages, key=lambda m: (m.time, m.stream, m.number))):
        at = (message.time or 0) / 1e6
        reference.write(number, doc.feed(message.stream, message.content, at=at))
    assert state_after(sink.changes) == state_after(reference.changes) != Counter()


def state_after(changes: Sequence[Change]) -> Counter[str]:
    """The rows that changes leave, if applied in order."""
    rows: Counter[str] = Counter()
    for change in changes:
        for sign, row in ((1, change.row), (-1, change.before)):
            if row is not None:
                key = json.dumps([change.view, row.to_dict()], sort_keys=True)
                rows[key] += -1 if change.op == "delete" else sign
    return +rows


@WAYS
def test_documents_and_a_users_own_dataframe(spark: Any, tmp_path: Path, state: str) -> None:
    definition = definition_of("join", "content")
    messages = [m for m in updates(Random(5), 60, documents=7) if m.content != b"<item>"]
    lines = [
        {"stream": m.stream, "xml": m.content.decode(), "time": (m.time or 0) / 1e6,
         "document": m.document, "number": m.number}
        for m in messages
    ]  # fmt: skip
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("\n".join(map(json.dumps, lines)))
    schema = "stream string, xml string, time double, document string, number bigint"
    frame = spark.readStream.schema(schema).json(str(tmp_path / "in"))
    sink = Collecting()
    maintain(spark, definition, [frame], [sink], once=True, documents="k", state=state).wait()
    found = state_after(sink.changes)
    expected: Counter[str] = Counter()
    for key in {m.document for m in messages}:
        for change in by_document(definition, [[[m for m in messages if m.document == key]]])[0]:
            row = {"document": key, **change.row.to_dict()}
            expected[json.dumps([change.view, row], sort_keys=True)] += 1
    assert found == expected != Counter()


SITE = """
engine: {engine}
document: |
  <site><log xmlns:ax="urn:axlog"><ax:call stream="log"/></log></site>
streams:
  log:
    source: {{kind: access-log, path: access.log}}
views:
  missing:
    query: match /site/log/in-call[status/"404"]/path/$p return $p
    sinks:
    - {{kind: feed, path: {engine}/missing.rss}}
    - {{kind: xml, path: {engine}/rows.xml}}
    - {{kind: sql, url: "sqlite:///{engine}/rows.db"}}
settings: {{checkpoint: {engine}/checkpoint}}
"""


def test_alerters_and_publishers_by_the_same_pipeline_file(spark: Any, tmp_path: Path) -> None:
    """An access log, a feed, an XML file and a table: the same on Spark as embedded."""
    lines = [
        f'10.0.0.{n} - - [10/Oct/2026:13:55:{n:02} +0000] "GET /{n}.html HTTP/1.1" {status} 1'
        for n, status in enumerate((200, 404, 404, 200, 404))
    ]
    (tmp_path / "access.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for engine in ("embedded", "spark"):
        (tmp_path / engine).mkdir()
        (tmp_path / f"{engine}.yaml").write_text(SITE.format(engine=engine), encoding="utf-8")
    embedded.run(load(str(tmp_path / "embedded.yaml")), once=True)
    model = load(str(tmp_path / "spark.yaml"))
    model = model.located(model.directory.absolute())
    pipeline = SparkPipeline(model, once=True)
    pipeline.start(spark, next(iter(model.documents)), print).wait()
    pipeline.close()
    rows = [(tmp_path / engine / "rows.xml").read_text() for engine in ("embedded", "spark")]
    assert rows[0] == rows[1]
    assert rows[0].count("/1.html") == rows[0].count("/4.html") == 1
    for engine in ("embedded", "spark"):
        assert "/2.html" in (tmp_path / engine / "missing.rss").read_text()
        with closing(sqlite3.connect(tmp_path / engine / "rows.db")) as table:
            assert table.execute("select count(*) from missing").fetchone() == (3,)


class _Gone:
    """A query whose Java process has ended."""

    def __getattr__(self, name: str) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")


def test_a_query_is_stopped_after_its_java_process() -> None:
    """A signal to stop may reach both at once: resources of the driver are released."""
    closed: list[bool] = []
    query: Any = _Gone()
    plan = make_plan(Definition("<a/>", {}))
    Maintained(query, plan, "run", close=lambda: closed.append(True)).stop()
    assert closed == [True]
