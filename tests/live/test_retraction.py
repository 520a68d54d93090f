"""A message taken back by its stream, named by its number: documents, stores and pipelines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import axlog
from axlog import Document
from axlog.document.stream_update import StreamUpdate, read_line
from axlog.errors import StreamError
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner

CALL = '<ax:call xmlns:ax="urn:axlog" stream="s" deletes="{}"/>'
VIEW = "match /r/a/$x return $x"
PIPELINE = """
engine: embedded
document: <r>{call}</r>
streams: {{s: {{source: {{kind: jsonl, path: in.jsonl}}}}}}
views: {{v: {{query: "match /r/a/$x return $x", sinks: [log]}}}}
sinks: {{log: {{kind: jsonl, path: out.jsonl}}}}
dead_letters: {{kind: jsonl, path: dead.jsonl}}
settings: {{checkpoint: state}}
"""


def _update(**given: object) -> StreamUpdate:
    return read_line(json.dumps({"stream": "s", **given}))


def _ops(changes: list[axlog.Change]) -> list[tuple[str, object]]:
    return [(change.op, change.row["x"]) for change in changes if change.op != "never"]


def test_a_stream_takes_back_its_message_by_number() -> None:
    doc = Document(f"<r>{CALL.format('yes')}</r>", views={"v": VIEW})
    for number in ("1", "2", "2"):
        doc.take(_update(insert=f"<a>{number}</a>"))
    assert _ops(doc.take(_update(retract=2))) == []  # the equal row is derived once more
    assert _ops(doc.take(_update(retract=3))) == [("delete", "2")]
    assert [row["x"] for row in doc.view("v")] == ["1"]
    for gone in (2, 7):
        with pytest.raises(StreamError) as refused:
            doc.take(_update(retract=gone))
        assert refused.value.code == "AX422"
    (change,) = doc.take(_update(insert="<a>4</a>"))
    assert change.cause is not None
    assert _ops(doc.take(_update(retract=change.cause.number))) == [("delete", "4")]


def test_a_stream_that_may_not_delete_may_not_retract() -> None:
    doc = Document(f"<r>{CALL.format('no')}</r>", views={"v": VIEW})
    doc.take(_update(insert="<a>1</a>"))
    with pytest.raises(StreamError) as refused:
        doc.take(_update(retract=1))
    assert refused.value.code == "AX405"
    assert len(doc.view("v")) == 1


@pytest.mark.parametrize("number", [0, -1, True, "1", 1.0, None])
def test_a_retraction_names_a_number(number: object) -> None:
    with pytest.raises(StreamError) as refused:
        _update(retract=number)
    assert refused.value.code == "AX410"


def test_a_store_remembers_a_retraction(tmp_path: Path) -> None:
    with axlog.open(tmp_path / "store", f"<r>{CALL.format('yes')}</r>", views={"v": VIEW}) as doc:
        doc.take(_update(insert="<a>1</a>"))
        doc.take(_update(insert="<a>2</a>"))
        doc.take(_update(retract=1))
    with axlog.open(tmp_path / "store") as doc:
        assert [row["x"] for row in doc.view("v")] == ["2"]


def _run(tmp_path: Path, deletes: str, lines: list[dict[str, object]]) -> list[tuple[str, str]]:
    (tmp_path / "p.yaml").write_text(PIPELINE.format(call=CALL.format(deletes)), encoding="utf-8")
    written = "".join(json.dumps({"stream": "s", **line}) + "\n" for line in lines)
    (tmp_path / "in.jsonl").write_text(written, encoding="utf-8")
    runner = Runner(load(str(tmp_path / "p.yaml")), once=True)
    runner.run()
    runner.close()
    changes = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    return [(change["op"], change["row"]["x"]) for change in changes if change["op"] != "never"]


def test_a_pipeline_takes_back_messages(tmp_path: Path) -> None:
    """The second run continues at the checkpoint of the first, and so do the numbers."""
    lines: list[dict[str, object]] = [{"insert": "<a>1</a>"}, {"insert": "<a>2</a>"}]
    assert _run(tmp_path, "yes", lines) == [("insert", "1"), ("insert", "2")]
    lines += [{"retract": 1}, {"retract": 9}, {"insert": "<a>3</a>"}, {"retract": 5}]
    assert _run(tmp_path, "yes", lines) == [("insert", "1"), ("insert", "2"), ("delete", "1")]
    (letter,) = (tmp_path / "dead.jsonl").read_text().splitlines()
    assert "AX422" in letter


def test_a_pipeline_refuses_the_retraction_of_a_stream_that_only_adds(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [{"insert": "<a>1</a>"}, {"retract": 1}]
    assert _run(tmp_path, "no", lines) == [("insert", "1")]
    assert "AX405" in (tmp_path / "dead.jsonl").read_text()
