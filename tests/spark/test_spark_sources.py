"""Sources that tasks read in parts: the same as one part, although tasks know only their own."""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from axlog.connect.kinds import Origin
from axlog.connect.protocol import Refusal, Source
from axlog.connect.sinks.memory import MemorySink
from axlog.pipeline import kinds
from axlog.runtime.definition import Definition
from axlog.runtime.message_rows import SCHEMA
from axlog.spark import maintain
from axlog.spark.reading_tasks import following, reading_tasks
from axlog.spark.sources import LEAST, Cut, SourceReader, read_part

pytestmark = pytest.mark.spark
DOCUMENT = '<l xmlns:ax="urn:axlog"><a><ax:call stream="a"/></a></l>'
VIEW = "match /l/a/o[@w]/k/$x return $x"


@pytest.fixture(autouse=True)
def small_parts(spark: Any) -> Iterator[None]:
    spark.conf.set(LEAST, "2")
    yield
    spark.conf.unset(LEAST)


def _source(kind: str, place: Path, **options: Any) -> Callable[[], Source]:
    """A function that opens a source in any process: it refers to nothing of this module."""

    def make() -> Source:
        found = kinds.source_kind(kind)
        made = found.options.model_validate(options)
        source: Source = found.make(made, Origin(directory=place, stream="a"))
        return source

    return make


def _run(spark: Any, source: Any) -> tuple[Counter[Any], list[Refusal]]:
    sink = MemorySink()
    refused: list[Refusal] = []
    definition = Definition(DOCUMENT, {"v": (VIEW, None)})
    query = maintain(
        spark, definition, [source], [sink], once=True, hold=0, state="driver",
        dead_letters=lambda _, found: refused.extend(found),
    )  # fmt: skip
    query.wait()
    return Counter(change.row["x"] for change in sink.changes), refused


def _records(hidden: str = "") -> str:
    """Thirty records in order, the last ones of which no view needs; then two that are late."""
    wanted = ["", " w='1'", " w='1'"]
    each = [f"<o t='{n}'{wanted[n % 3]}><k>{n}</k></o>" for n in range(30)]
    late = ["<o t='3' w='1'><k>late</k></o>", "<o t='4'><k>unneeded</k></o>"]
    return "<l>" + "\n".join([*each[:20], hidden, *each[20:], *late]) + "</l>"


def test_a_file_that_is_divided_at_its_records(spark: Any, tmp_path: Path) -> None:
    """Messages that are late because of another part are rejected with their contents."""
    (tmp_path / "f.xml").write_text(_records())
    options = {"path": "f.xml", "record": "o", "time": "@t"}
    rows, refused = _run(spark, _source("directory", tmp_path, divide=True, **options))
    assert rows == Counter(str(n) for n in range(30) if n % 3)
    assert sorted(str(one.content) for one in refused) == [
        "<o t='3' w='1'><k>late</k></o>", "<o t='4'><k>unneeded</k></o>",
    ]  # fmt: skip
    assert {one.error.partition(":")[0] for one in refused} == {"AX404"}


def test_a_part_that_begins_in_a_comment_stops_the_query(spark: Any, tmp_path: Path) -> None:
    """Nothing is delivered: its records are none."""
    hidden = "<!--" + "<o t='1' w='1'><k>hidden</k></o>" * 40 + "-->"
    (tmp_path / "f.xml").write_text(_records(hidden))
    options = {"path": "f.xml", "record": "o", "time": "@t"}
    with pytest.raises(Exception, match="cannot be divided at its records"):
        _run(spark, _source("directory", tmp_path, divide=True, **options))
    rows, _ = _run(spark, _source("directory", tmp_path, **options))
    assert rows == Counter(str(n) for n in range(30) if n % 3)


def test_lines_that_are_late_in_another_part(spark: Any, tmp_path: Path) -> None:
    """By lines of the file, as the embedded engine reports them."""
    lines = [{"insert": f"<o w='1'><k>{n}</k></o>", "at": n} for n in range(20)]
    lines += [{"insert": "<o><k>unneeded</k></o>", "at": 2}, {"insert": "<o", "at": 30}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows, refused = _run(spark, _source("jsonl", tmp_path, path="in.jsonl"))
    assert rows == Counter(map(str, range(20)))
    found = [(one.origin, one.content, one.error.partition(":")[0]) for one in refused]
    assert sorted(found) == [
        ("in.jsonl:21", "<o><k>unneeded</k></o>", "AX404"), ("in.jsonl:22", "<o", "AX101"),
    ]  # fmt: skip


class _Allocating:
    """A session whose executors come and go."""

    def __init__(self, dynamic: str) -> None:
        self.conf = {"spark.dynamicAllocation.enabled": dynamic}
        self.sparkContext = self
        self.defaultParallelism = 2


@pytest.mark.parametrize(("dynamic", "tasks"), [("false", [2, 3]), ("true", [4, 6])])
def test_the_tasks_that_read_a_batch_follow_the_cores(
    tmp_path: Path, dynamic: str, tasks: list[int]
) -> None:
    """With dynamic allocation some wait, so that Spark requests executors."""
    lines = [json.dumps({"stream": "a", "xml": "<o/>", "time": n}) for n in range(48)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    dumps: Any = cloudpickle.dumps
    pickled = base64.b64encode(dumps(_source("jsonl", tmp_path, path="in.jsonl"))).decode()
    options = {"source": pickled, "place": str(tmp_path), "least": "1", "parts": "1"}

    def parts() -> int:
        reader = SourceReader(options)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        return len(reader.partitions(start, end))

    assert parts() == 1
    spark: Any = _Allocating(dynamic)
    take = following(spark, str(tmp_path), lambda frame, number: None)
    for spark.defaultParallelism, wanted in zip((2, 3), tasks, strict=True):
        take(spark, 0)
        assert parts() == wanted == reading_tasks(spark)


@pytest.mark.parametrize("kind", ["jsonl", "directory"])
def test_times_of_arrival_are_those_of_the_plan(tmp_path: Path, kind: str) -> None:
    """Tasks read the parts of a batch at any moment, and again after a crash: no message becomes
    late by it, and none gets another time.
    """
    if kind == "jsonl":
        (tmp_path / "in").write_text("".join(f'{{"o": {{"k": {n}}}}}\n' for n in range(9)))
        make = _source(kind, tmp_path, path="in", format="json", clock="arrival")
    else:
        (tmp_path / "in").mkdir()
        for n in range(9):
            (tmp_path / "in" / f"{n}.xml").write_text(f"<o><k>{n}</k></o>")
        make = _source(kind, tmp_path, path="in", clock="arrival")
    given = base64.b64encode(cloudpickle.dumps(make)).decode()
    reader = SourceReader({"source": given, "least": "2", "parts": "3"})
    start = reader.initialOffset()
    parts = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    cuts = [part for part in parts if isinstance(part, Cut)]
    assert len(cuts) == len(parts) > 1
    for cut in (*reversed(cuts), *cuts):
        rows = [row for rows in read_part(make, 0, cut) for row in rows]
        times = {row[SCHEMA.names.index("time")] for row in rows}
        assert times == {cut.now} == {cuts[0].now}
