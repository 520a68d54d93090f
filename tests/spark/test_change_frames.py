"""The changes and the rows of a view as DataFrames: those of an embedded document."""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.connect.sources.memory import MemorySource
from axlog.errors import AxlogError, PipelineError
from axlog.runtime.definition import Definition
from axlog.spark import changes, maintain, register, view
from axlog.spark.session import cores_of
from tests.runtime.test_spark_bucket import SHOP, definition_of, updates
from tests.spark.test_spark_streaming import given

pytestmark = [pytest.mark.spark, pytest.mark.system]


def fed(definition: Definition, messages: Any) -> Any:
    """A document that was fed the messages, and the changes of its views."""
    doc, told = definition.make(on_error="dead-letter"), []
    for message in messages:
        told += doc.feed(message.stream, message.content, at=(message.time or 0) / 1e6)
    return doc, told


def test_changes_are_a_typed_stream(spark: Any, tmp_path: Path) -> None:
    """Two batches of a source with a restart between, from a checkpoint of the query's own."""
    query = "match /shop[a/item/k/$x#s][b/item/k/$x#t] where t - s <= 5 return $x, s.time"
    definition = Definition(SHOP, {"soon": (query, None)}, ("key a/item by k trusted",))
    firsts: dict[Any, Any] = {}
    for message in updates(Random(2), 80):
        firsts.setdefault((message.stream, message.content), message._replace(source=0))
    messages = sorted(firsts.values(), key=lambda m: m.number)
    for share in (len(messages) // 2, len(messages)):
        source = partial(MemorySource, given(messages[:share]))
        frame = changes(spark, definition, [source], hold=0, buckets=3, limit=10)
        assert frame.schema["x"].dataType.simpleString() == "string"
        assert frame.schema["s.time"].dataType.simpleString() == "double"
        assert frame.isStreaming
        frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
            availableNow=True
        ).start(str(tmp_path / "out"), format="parquet").awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    _, told = fed(definition, messages)
    expected = Counter((c.op, c.row["x"], c.row.get("s.time"), c.time) for c in told)
    assert Counter((r.op, r.x, r["s.time"], r.time) for r in found) == expected
    assert {op for op, *_ in expected} >= {"insert", "never"}
    assert len({(r.batch, r.bucket, r.number) for r in found}) == len(found)
    assert len({r.batch for r in found}) > 2


def test_a_pipeline_file_names_the_document_and_its_sources(spark: Any, tmp_path: Path) -> None:
    document = '<r xmlns:ax="urn:axlog"><ax:call stream="a"/></r>'
    views = {"big": {"query": "match /r/i/n/$n where $n > 2 return $n"}}
    sources = [{"kind": "jsonl", "path": "in.jsonl"}]
    model = {"document": document, "sources": sources, "views": views}
    path = tmp_path / "pipeline.yaml"
    path.write_text(json.dumps(model), encoding="utf-8")
    lines = [{"stream": "a", "insert": f"<i><n>{n}</n></i>", "at": n} for n in range(6)]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    assert sorted(row.n for row in view(spark, str(path)).collect()) == ["3", "4", "5"]
    writer = changes(spark, path, hold=0).writeStream.trigger(availableNow=True)
    out = str(tmp_path / "out")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start(out, format="parquet").awaitTermination()
    found = spark.read.parquet(out).collect()
    assert sorted((row.op, row.n) for row in found) == [("insert", str(n)) for n in (3, 4, 5)]
    two = {"documents": {"d": model, "e": model}}
    path.write_text(json.dumps(two), encoding="utf-8")
    with pytest.raises(PipelineError, match="expected: one document"):
        view(spark, path)
    with pytest.raises(PipelineError, match="no sources"):
        view(spark, definition_of("path"))


@pytest.mark.parametrize("name", ["join", "static", "some", "cross", "content"])
def test_rows_are_a_table(spark: Any, tmp_path: Path, name: str) -> None:
    definition = definition_of("path", name)
    messages = [m for m in updates(Random(6), 60) if m.content != b"<item>"]
    doc, _ = fed(definition, messages)
    expected = Counter(tuple(row.to_dict().values()) for row in doc.views[name].rows())
    lines = [
        json.dumps({"stream": m.stream, "xml": m.content.decode(), "time": (m.time or 0) / 1e6})
        for m in messages
    ]
    (tmp_path / "a.json").write_text("\n".join(lines))
    frame = spark.read.schema("stream string, xml string, time double").json(str(tmp_path))
    for source in (frame, partial(MemorySource, given(messages))):
        found = view(spark, definition, [source], name, buckets=3).collect()
        assert Counter(map(tuple, found)) == expected != Counter()


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_a_batch_has_any_partitions_in_any_order(spark: Any, parts: int) -> None:
    """A DataFrame that is not streaming has no order but that of its times: nothing is late."""
    definition = definition_of("join", "time")
    messages = [m for m in updates(Random(6), 60) if m.content != b"<item>"]
    doc, told = fed(definition, messages)
    rows = [
        (m.stream, m.content.decode(), (m.time or 0) / 1e6, number)
        for number, m in enumerate(messages)
    ]
    Random(parts).shuffle(rows)
    schema = "stream string, xml string, time double, number long"
    frame = spark.createDataFrame(rows, schema).repartition(parts)
    for name in ("join", "time"):
        found = view(spark, definition, [frame], name, buckets=3).collect()
        expected = Counter(tuple(row.to_dict().values()) for row in doc.views[name].rows())
        assert Counter(map(tuple, found)) == expected != Counter()
    frame_of_changes = changes(spark, definition, [frame], "time", buckets=3)
    emitted = Counter((r.op, r.x) for r in frame_of_changes.collect())
    assert emitted == Counter((c.op, c.row["x"]) for c in told if c.view == "time")
    with pytest.raises(AxlogError, match="the DataFrame is not streaming"):
        maintain(spark, definition, [frame])


def test_a_source_is_read_by_plain_options(spark: Any, tmp_path: Path) -> None:
    """As a table and as a stream; a stream of it feeds a document."""
    definition = definition_of("join")
    messages = [m._replace(source=0) for m in updates(Random(4), 40) if m.content != b"<item>"]
    lines = [
        json.dumps({"stream": m.stream, "insert": m.content.decode(), "at": (m.time or 0) / 1e6})
        for m in messages
    ]
    (tmp_path / "in.jsonl").write_text("\n".join([*lines, "no JSON", ""]))
    register(spark)
    options = {"kind": "jsonl", "path": "in.jsonl", "directory": str(tmp_path)}
    rows = spark.read.format("axlog").options(**options).load().collect()
    assert [(r.stream, r.xml) for r in rows[:-1]] == [
        (m.stream, m.content.decode()) for m in messages
    ]
    assert (rows[-1].action, rows[-1].xml) == ("refused", "no JSON\n")
    stream = spark.readStream.format("axlog").options(**options).load()
    told = changes(spark, definition, [stream.where("action = 'insert'")], buckets=2)
    query = told.writeStream.format("memory").queryName("told").trigger(availableNow=True).start()
    query.awaitTermination()
    doc, _ = fed(definition, messages)
    assert Counter(r.x for r in spark.table("told").where("op = 'insert'").collect()) == Counter(
        row["x"] for row in doc.views["join"].rows()
    )
    with pytest.raises(Exception, match="option 'path' of the source 'jsonl' is missing"):
        spark.read.format("axlog").option("kind", "jsonl").load().count()


def test_options_that_are_lists_or_mappings_are_json(spark: Any, tmp_path: Path) -> None:
    register(spark)
    rows = spark.createDataFrame([("a", "<item><k>1</k></item>")], "stream string, body string")
    rows.write.parquet(str(tmp_path / "in"))
    reader = spark.read.format("axlog").option("kind", "parquet").option("directory", str(tmp_path))
    reader = reader.option("path", "in")
    (found,) = reader.option("columns", '{"xml": "body"}').load().collect()
    assert (found.stream, found.xml) == ("a", "<item><k>1</k></item>")
    with pytest.raises(Exception, match="'columns' of the source 'parquet' must be a list or a ma"):
        reader.option("columns", "body").load().count()
    with pytest.raises(Exception, match="did you mean 'columns'"):
        reader.option("columns", "{}").option("column", "body").load().count()


def test_what_cannot_be_a_table_is_refused(spark: Any) -> None:
    source = partial(MemorySource, [])
    with pytest.raises(PipelineError, match="view= one of join, path"):
        changes(spark, definition_of("join", "path"), [source])
    taken = Definition(SHOP, {"v": ("match /shop/a/item/k/$op return $op", None)})
    with pytest.raises(PipelineError, match="reserved for axlog"):
        changes(spark, taken, [source])


def test_sources_that_do_not_fit_are_refused(spark: Any) -> None:
    definition, source = definition_of("join"), partial(MemorySource, [])
    batch = spark.createDataFrame([("a", "<item/>")], "stream string, xml string")
    stream = spark.readStream.format("rate").load().selectExpr("'a' as stream", "'<i/>' as xml")
    for sources, message in (
        ([], "there are no sources"),
        (batch, r"expected: \[DataFrame\]"),
        ([batch, stream], "another is a DataFrame that is not"),
        ([source, batch], "another is a DataFrame that is not"),
        ([batch.selectExpr("stream", "1 as xml")], "the column 'xml' is int"),
    ):
        with pytest.raises(AxlogError, match=message):
            changes(spark, definition, sources)
    with pytest.raises(AxlogError, match="the DataFrame is streaming"):
        view(spark, definition, [stream])


def test_a_session_is_checked_for_what_it_lacks(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The store of state must be RocksDB, and far more partitions than buckets are told."""
    form = "spark.sql.streaming.stateStore.checkpointFormatVersion"
    names = ("spark.sql.streaming.stateStore.providerClass", "spark.sql.shuffle.partitions", form)
    before = {name: spark.conf.get(name) for name in names}
    try:
        spark.conf.set(names[1], "200")
        changes(spark, definition_of("join"), [partial(MemorySource, [])])
        assert "many state partitions" in caplog.text
        spark.conf.set(form, "1")
        with pytest.raises(PipelineError, match="without their lineage"):
            changes(spark, definition_of("join"), [partial(MemorySource, [])])
        spark.conf.set(form, "2")
        place = "org.apache.spark.sql.execution.streaming.state"
        spark.conf.set(names[0], f"{place}.HDFSBackedStateStoreProvider")
        with pytest.raises(PipelineError, match="needs RocksDB"):
            changes(spark, definition_of("join"), [partial(MemorySource, [])])
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_a_session_of_spark_connect_is_told() -> None:
    """By the package of its class: the client itself needs packages that axlog does not install."""

    class Settings:
        def get(self, name: str, default: str | None = None) -> str | None:
            found = {"spark.sql.shuffle.partitions": "4"}
            return found.get(name, default)

    attributes = {"__module__": "pyspark.sql.connect.session", "conf": Settings()}
    made: Any = type("SparkSession", (), attributes)()
    with pytest.raises(PipelineError, match="maintain needs Spark's driver"):
        maintain(made, definition_of("join"), [])
    assert cores_of(made) == 4
