"""Paths and addresses: `file:` addresses are paths, others are honoured or refused by the check."""

import json
from pathlib import Path
from typing import Any

import pytest

from axlog.connect.kinds import Origin
from axlog.connect.locations import local_path
from axlog.connect.sources.memory import MemorySource
from axlog.errors import ConnectorError, PipelineError
from axlog.pipeline import kinds
from axlog.pipeline.loader import check, load
from axlog.runtime import embedded
from axlog.runtime.definition import Definition
from axlog.spark import maintain
from axlog.spark import pipeline as on_spark
from tests.spark.test_spark_streaming import Collecting

PIPELINE = """\
engine: {engine}
document: {document}
streams:
  s:
    source: {source}
views:
  v:
    query: match /w/m/$x return $x
    sinks:
    - {sink}
types: {types}
settings:
  checkpoint: {checkpoint}
"""
DOCUMENT = """'<w xmlns:ax="urn:axlog"><ax:call stream="s"/></w>'"""
PLAIN = {
    "engine": "embedded",
    "document": DOCUMENT,
    "source": "{kind: jsonl, path: in.jsonl}",
    "sink": "{kind: jsonl, path: out.jsonl}",
    "types": "[]",
    "checkpoint": "state",
}
ADDRESSES = ["hdfs://host:8020/place", "s3://bucket/place", "S3A://bucket/place", "viewfs:/place"]
PATHS: dict[tuple[str, str, str], dict[str, Any]] = {
    ("source", "directory", "path"): {},
    ("source", "jsonl", "path"): {},
    ("source", "parquet", "path"): {},
    ("source", "access-log", "path"): {},
    ("source", "folder", "path"): {},
    ("source", "feed", "url"): {},
    ("source", "document", "url"): {},
    ("source", "feed", "log"): {"url": "feed.xml"},
    ("source", "table", "log"): {"database": "sqlite:///t.db", "table": "t", "by": "id"},
    ("sink", "jsonl", "path"): {},
    ("sink", "parquet", "path"): {},
    ("sink", "parquet-log", "path"): {},
    ("sink", "page", "path"): {},
    ("sink", "xml", "path"): {},
    ("sink", "feed", "path"): {},
    ("sink", "mail", "state"): {"server": "127.0.0.1", "sender": "a@b", "to": ["c@d"]},
}


def checked(tmp_path: Path, **parts: str) -> list[tuple[str, int, int]]:
    """The codes and places of what the check finds."""
    path = tmp_path / "pipeline.yaml"
    path.write_text(PIPELINE.format(**{**PLAIN, **parts}))
    return [
        (problem.error.code, *problem.order)
        for problem in check(str(path)).problems
        if problem.level == "error"
    ]


@pytest.mark.parametrize("engine", ["embedded", "spark"])
@pytest.mark.parametrize(("role", "kind", "key"), PATHS)
def test_an_address_in_place_of_a_path_is_refused_with_its_place(
    tmp_path: Path, engine: str, role: str, kind: str, key: str
) -> None:
    rest = PATHS[role, kind, key]
    for address in ADDRESSES:
        written = json.dumps({"kind": kind, **rest, key: address})
        code, line, column = checked(tmp_path, engine=engine, **{role: written})[0]
        before = 12 if role == "source" else 6
        assert (code, line) == ("AX864", 5 if role == "source" else 10)
        assert column == before + written.index(json.dumps(address)) + 1
    for path in ("file:///data/there", "there", "C:there", "a:b/c"):
        written = json.dumps({"kind": kind, **rest, key: path})
        assert checked(tmp_path, engine=engine, **{role: written}) == []


def test_every_option_that_is_a_path_is_in_the_table() -> None:
    """By what the options say of themselves: a new one is not forgotten here."""
    words = ("file", "directory", "path of")
    for role, names, find in (
        ("source", kinds.source_names(), kinds.source_kind),
        ("sink", kinds.sink_names(), kinds.sink_kind),
    ):
        for kind in names:
            for key, field in find(kind).options.model_fields.items():
                said = (field.description or "").lower()
                is_path = field.annotation in (str, str | None) and any(w in said for w in words)
                if is_path and key not in ("pattern", "record", "order", "time", "clock"):
                    covered = (role, kind, key) in PATHS or (kind, key) == ("delta", "path")
                    assert covered or key == "log", (role, kind, key)


@pytest.mark.parametrize("address", ADDRESSES)
def test_documents_types_and_checkpoints(tmp_path: Path, address: str) -> None:
    assert checked(tmp_path, document=address) == [("AX864", 2, 11)]
    assert checked(tmp_path, types=f"['{address}']")[0][:2] == ("AX864", 11)
    assert checked(tmp_path, checkpoint=address) == [("AX864", 13, 15)]
    assert checked(tmp_path, checkpoint=address, engine="spark") == []
    assert checked(tmp_path, checkpoint="file:///data/state") == []
    documents = {
        name: {"document": '<w xmlns:ax="urn:axlog"/>', "views": {"v": "match /w"}}
        for name in ("one", "two")
    }
    path = tmp_path / "two.yaml"
    path.write_text(json.dumps({"documents": documents, "settings": {"checkpoint": address}}))
    assert [problem.error.code for problem in check(str(path)).problems] == ["AX865"]


def test_a_delta_table_may_lie_in_an_object_store(tmp_path: Path) -> None:
    for scheme in ("s3", "abfss", "gs", "hdfs"):
        sink = f'{{kind: delta, path: "{scheme}://there/table"}}'
        assert checked(tmp_path, sink=sink) == []
    assert checked(tmp_path, sink='{kind: delta, path: "ftp://there/table"}')[0][0] == "AX864"
    kind = kinds.sink_kind("delta")
    options = kind.options.model_validate({"path": "hdfs://127.0.0.1:1/{view}"})
    from axlog.connect.kinds import Column, ViewShape

    with pytest.raises(ConnectorError, match=r"hdfs://127\.0\.0\.1:1/v: "):
        kind.make(options, Origin(tmp_path, views=[ViewShape("v", (Column("x", "text"),))]))
    assert list(tmp_path.rglob("hdfs*")) == []


def test_what_no_check_has_seen_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="AX864"):
        Origin(tmp_path).path("hdfs://host/place")
    assert Origin(tmp_path).path("file:///data/a%20b") == Path("/data/a b")
    assert Origin(tmp_path).path("there") == tmp_path / "there"
    assert local_path("file://elsewhere/data") is None


def test_file_addresses_are_paths(tmp_path: Path) -> None:
    where = f"file://{tmp_path}"
    (tmp_path / "document.xml").write_text(DOCUMENT.strip("'"))
    (tmp_path / "in.jsonl").write_text('{"insert": "<m>1</m>", "at": 1}\n')
    path = tmp_path / "deep" / "pipeline.yaml"
    path.parent.mkdir()
    path.write_text(PIPELINE.format(
        engine="embedded", document=f"{where}/document.xml", types="[]",
        source=f'{{kind: jsonl, path: "{where}/in.jsonl"}}',
        sink=f'{{kind: delta, path: "{where}/out/{{view}}"}}', checkpoint=f"{where}/state",
    ))  # fmt: skip
    embedded.run(load(str(path)), once=True)
    from deltalake import DeltaTable

    assert DeltaTable(str(tmp_path / "out" / "v")).to_pyarrow_table()["x"].to_pylist() == ["1"]
    assert (tmp_path / "state" / "manifest.axlog").exists()
    assert not list(path.parent.glob("file*"))


@pytest.fixture
def mounted(spark: Any, tmp_path: Path) -> str:
    """A file system of Hadoop's with a scheme of its own, over a directory of this machine."""
    (tmp_path / "mounted").mkdir()
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    name = f"mounts{abs(hash(tmp_path))}"  # systems of one name are kept by Hadoop
    hadoop.set(f"fs.viewfs.mounttable.{name}.link./here", f"file://{tmp_path}/mounted")
    return f"viewfs://{name}/here"


SENT = [{"stream": "s", "insert": f"<m>{n}</m>", "at": n} for n in range(20)]


@pytest.mark.spark
@pytest.mark.system
def test_a_checkpoint_lies_in_a_file_system_of_spark(
    spark: Any, tmp_path: Path, mounted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    definition = Definition(DOCUMENT.strip("'"), {"v": ("match /w/m/$x return $x", None)})
    sink = Collecting()
    late = {"stream": "s", "insert": "<m>late</m>", "at": 3}
    for count in (10, 20):
        sent = [*SENT[:count], *([late] if count == 20 else [])]
        query = maintain(
            spark, definition, [lambda sent=sent: MemorySource(sent)], [sink], once=True,
            checkpoint=f"{mounted}/state", hold=0, dead_letters=sink.refuse,
        )  # fmt: skip
        query.wait()
    assert sorted(int(c.row["x"]) for c in sink.changes) == list(range(20))
    refused = [one.content for each in sink.refused.values() for one in each]
    assert refused == ["<m>late</m>"]
    assert (tmp_path / "mounted" / "state" / "axlog.json").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"mounted"}
    with pytest.raises(PipelineError, match="AX866"):
        maintain(spark, definition, [lambda: MemorySource(SENT)], checkpoint="no-such://a/b")


@pytest.mark.spark
@pytest.mark.system
def test_a_pipeline_file_names_a_file_system_of_spark(
    spark: Any, tmp_path: Path, mounted: str
) -> None:
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in SENT))
    path = tmp_path / "pipeline.yaml"
    path.write_text(PIPELINE.format(**{**PLAIN, "engine": "spark",
                                       "checkpoint": f"{mounted}/pipeline"}))  # fmt: skip
    for _ in range(2):
        on_spark.run(load(str(path)), once=True)
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    rows = [json.loads(line)["row"]["x"] for line in lines]
    assert sorted(map(int, rows)) == list(range(20))
    assert (tmp_path / "mounted" / "pipeline" / "document" / "axlog.json").exists()
    assert not list(tmp_path.glob("viewfs*"))
