"""Every attack through a real Spark session: dead letters, and the rest of the batch unaffected.

All attacks are messages of one query, of which bindings and whole messages travel: from files,
records of files, JSON lines and a DataFrame, with good messages between them. Spark accepts
exactly what a document of this process accepts (law 7).
"""

import json
import sys
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lxml import etree
from pyspark import cloudpickle
from pyspark.errors import PythonException

import axlog
from axlog.connect.kinds import Origin
from axlog.connect.protocol import Reading, Refusal
from axlog.connect.sinks.memory import MemorySink
from axlog.connect.sources.directory import DirectoryOptions, DirectorySource
from axlog.connect.sources.jsonl import JsonLinesOptions, JsonLinesSource
from axlog.document.parser import DEFAULT_LIMITS
from axlog.document.record_reader import split
from axlog.errors import AxlogError
from axlog.runtime.bucket import Instance
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import Extractor, Message
from axlog.runtime.packet_rows import read_packet
from axlog.runtime.plan import make_plan
from axlog.spark import evaluate, maintain, shred
from axlog.spark.batch.shredder import _shred_texts
from tests.hostile_attacks import LINE_ATTACKS, XML_ATTACKS, XML_LURES, Outside, aims, is_text
from tests.runtime.engine_packets import engine_packets

pytestmark = [pytest.mark.spark, pytest.mark.system]

STREAMS = ("files", "records", "lines", "frame")
CALLS = "".join(f'<ax:call xmlns:ax="urn:axlog" stream="{stream}"/>' for stream in STREAMS)
DOCUMENT = f"<a>{CALLS}</a>"
VIEWS = {"bindings": "match /a/b/c/$x return $x", "whole": "match /a/b#t return t.cont"}
FRAME = pa.schema(
    [("stream", pa.string()), ("xml", pa.binary()), ("time", pa.float64()),
     ("number", pa.int64()), ("action", pa.string()), ("origin", pa.string())]
)  # fmt: skip


@pytest.fixture(scope="module")
def attacks(outside: Outside) -> dict[str, bytes]:
    """Every attack and every lure, aimed, by a name that says what it is."""
    named = {**XML_ATTACKS, **XML_LURES}
    return {
        f"{at:02}{'' if n == 0 else 'b'} {what}": aimed
        for at, (what, content) in enumerate(named.items())
        for n, aimed in enumerate(aims(content, outside))
    }


def good(stream: str, at: int) -> bytes:
    return f"<b><c>{stream}-{at}</c></b>".encode()


def around(given: dict[str, bytes], stream: str) -> dict[str, bytes]:
    """Messages with a good one before, between and after."""
    found = {"! first": good(stream, 0)}
    for at, (name, content) in enumerate(given.items()):
        found[name] = content
        if at % 20 == 10:
            found[f"{name} and a good one"] = good(stream, at)
    return {**found, "~ last": good(stream, 999)}


@cache
def is_taken(content: bytes | str) -> bool:
    """Whether a document takes a message; the definition of what Spark is to take."""
    doc = axlog.parse('<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>', views=VIEWS)
    try:
        doc.feed("s", content, at=1)
    except AxlogError:
        return False
    return True


def is_kept(stream: str, name: str, content: bytes) -> bool:
    """Whether a message of a source is taken; a file without records has none to refuse."""
    if name in LINE_ATTACKS:
        return False
    if stream != "records":
        return is_taken(content.decode() if stream == "lines" else content)
    try:
        return all(is_taken(etree.tostring(one)) for one in split(BytesIO(content), "b"))
    except AxlogError:
        return False


def named(origin: str) -> str:
    """The message's name in where it was read: a file, a record of it, a line's number."""
    return origin.partition("#")[0].removesuffix(".xml").removeprefix("lines.jsonl:")


def write_files(place: Path, given: dict[str, bytes]) -> None:
    place.mkdir()
    for name, content in given.items():
        (place / f"{name}.xml").write_bytes(content)


def write_lines(path: Path, given: dict[str, bytes]) -> None:
    lines = [
        text if name in LINE_ATTACKS else json.dumps({"insert": text, "at": 1})
        for name, text in ((name, content.decode()) for name, content in given.items())
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_frame(place: Path, given: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    """Rows of a user's own table, those that are no message among them."""
    rows = [
        {"stream": "frame", "xml": content, "time": 1.0, "action": "insert", "origin": name}
        for name, content in given.items()
    ]
    wrong: dict[str, dict[str, Any]] = {
        "no stream": {"stream": None},
        "no message": {"xml": None},
        "another stream": {"stream": "elsewhere"},
        "no action": {"action": None},
        "another action": {"action": "run"},
        "an action of our own": {"action": "mark"},
        "a rest": {"action": "rest"},
        "a time without end": {"time": 1e300},
        "a time that is none": {"time": float("nan")},
        "an infinite time": {"time": float("inf")},
    }
    plain = {"stream": "frame", "xml": good("wrong", 0), "time": 1.0, "action": "insert"}
    wrong = {f"row with {name}": changed for name, changed in wrong.items()}
    rows += [{**plain, **changed, "origin": name} for name, changed in wrong.items()]
    place.mkdir()
    numbered = [{**row, "number": number} for number, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(numbered, FRAME), place / "rows.parquet")
    return wrong


class InTurn:
    """Sources one after the other, as one: each by itself costs Spark seconds to start."""

    def __init__(self, place: Path) -> None:
        lines = JsonLinesOptions(path="lines.jsonl")
        self._sources = (
            DirectorySource(DirectoryOptions(path="files"), Origin(place, stream="files")),
            DirectorySource(
                DirectoryOptions(path="records", record="b"), Origin(place, stream="records")
            ),
            JsonLinesSource(lines, Origin(place, stream="lines")),
        )

    def read(self, position: Any, limit: int) -> Reading:
        at, inner = position or (0, None)
        read, is_last = self._sources[at].read(inner, limit), at + 1 == len(self._sources)
        if not read.updates and not read.refused and not is_last:
            return self.read((at + 1, None), limit)
        return Reading(
            read.updates, (at, read.position), read.refused, more=read.more or not is_last
        )

    def close(self) -> None:
        for source in self._sources:
            source.close()


def test_attacks_on_a_streaming_query(
    spark: Any, outside: Outside, attacks: dict[str, bytes], tmp_path: Path
) -> None:
    small = {name: content for name, content in attacks.items() if len(content) < 1_000_000}
    texts = {name: content for name, content in small.items() if is_text(content)}
    given = {
        "files": around(attacks, "files"),
        "records": around(small, "records"),
        "lines": around(
            {**texts, **{name: line.encode() for name, line in LINE_ATTACKS.items()}}, "lines"
        ),
        "frame": around(small, "frame"),
    }
    write_files(tmp_path / "files", given["files"])
    write_files(tmp_path / "records", given["records"])
    write_lines(tmp_path / "lines.jsonl", given["lines"])
    wrong = write_frame(tmp_path / "frame", given["frame"])
    frame = spark.readStream.schema(
        "stream string, xml binary, time double, number bigint, action string, origin string"
    ).parquet(str(tmp_path / "frame"))
    refused: list[Refusal] = []
    sink = MemorySink()
    by_value: Any = cloudpickle.register_pickle_by_value
    by_value(sys.modules[__name__])  # workers have no tests
    query = maintain(
        spark,
        axlog.parse(DOCUMENT, views=VIEWS),
        [lambda: InTurn(tmp_path), frame],
        [sink],
        once=True,
        buckets=2,
        checkpoint=str(tmp_path / "state"),
        dead_letters=lambda _, letters: refused.extend(letters),
    )
    query.wait()
    assert not outside.was_asked()
    kept = {
        stream: {name for name, content in messages.items() if is_kept(stream, name, content)}
        for stream, messages in given.items()
    }
    letters = {stream: [one for one in refused if one.stream == stream] for stream in STREAMS}
    lines = list(given["lines"])
    names = {stream: {named(one.origin) for one in letters[stream]} for stream in STREAMS}
    names["lines"] = {lines[int(number) - 1] for number in names["lines"]}
    for stream, messages in given.items():
        assert names[stream] - wrong.keys() == messages.keys() - kept[stream], stream
    assert wrong.keys() <= {one.origin for one in refused}
    assert all(one.error for one in refused)
    found = {str(change.row["x"]) for change in sink.changes if change.view == "bindings"}
    assert found == {
        content.decode()[6:-8]
        for stream in STREAMS
        for content in given[stream].values()
        if content.startswith(b"<b><c>" + stream.encode())
    }
    roots = sum(map(len, kept.values())) - 1  # the file whose only element is no record
    assert sum(change.view == "whole" for change in sink.changes) == roots > len(found)


@pytest.mark.parametrize("view", VIEWS)
def test_attacks_on_both_halves_of_a_plan(
    attacks: dict[str, bytes], outside: Outside, view: str
) -> None:
    """Without Spark, one message a batch: what travels, and what the engine makes of it."""
    definition = Definition.of(axlog.parse(DOCUMENT, views={view: VIEWS[view]}))
    plan = make_plan(definition, 1)
    extractor, (unit,) = Extractor(definition, plan), plan.units
    for name, content in {**attacks, "good": good("files", 1)}.items():
        message = Message(0, "files", "insert", content, 1_000_000, 1, name)
        extracted = extractor.extract([message])
        *sent, _ = engine_packets(extracted, plan)
        engine = Instance(definition, unit, 0)
        refused = extracted.refused + [
            letter for _, _, body in sent for letter in engine.batch([read_packet(body)]).refused
        ]
        assert bool(refused) != is_taken(content), name
        assert [one.origin for one in refused] == [name] * len(refused)
        assert engine.rows == 0 or not refused, name
    assert not outside.was_asked()


def test_attacks_on_documents_as_tables(
    spark: Any, attacks: dict[str, bytes], outside: Outside, tmp_path: Path
) -> None:
    """All attacks in Spark's workers, each as a document by itself; then a file among others."""
    table = spark.createDataFrame(list(attacks.items()), "document string, xml binary")

    def judged(batches: Any) -> Any:
        for batch in batches:
            for at in range(len(batch)):
                try:
                    rows = sum(map(len, _shred_texts(DEFAULT_LIMITS)([batch.slice(at, 1)])))
                    said = str(rows)
                except AxlogError as error:
                    said = error.code
                yield pa.RecordBatch.from_pydict(
                    {"document": batch.column(0)[at : at + 1], "said": pa.array([said])}
                )

    found = table.mapInArrow(judged, "document string, said string").collect()
    assert len(found) == len(attacks)
    for name, said in found:
        is_attack = name.partition(" ")[2] in XML_ATTACKS
        assert said.startswith("AX") if is_attack else int(said) > 0, (name, said)
    (tmp_path / "good.xml").write_bytes(good("files", 1))
    assert evaluate(shred(spark, tmp_path), "match //c/$x return $x").count() == 1
    aimed = {name.partition(" ")[2]: content for name, content in attacks.items()}
    (tmp_path / "bad.xml").write_bytes(aimed["an external entity"])
    with pytest.raises(PythonException, match="AX111"):
        shred(spark, tmp_path).count()
    records = b"".join(good("files", at) for at in range(100))
    for what in ("an external entity in an attribute", "deep nesting", "a NUL"):
        (tmp_path / "bad.xml").write_bytes(b"<a>" + records + aimed[what] + b"</a>")
        with pytest.raises((PythonException, AxlogError), match="AX1"):
            shred(spark, tmp_path / "bad.xml", "b", large=100).count()
    assert not outside.was_asked()
