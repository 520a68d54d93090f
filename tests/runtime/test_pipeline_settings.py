"""Settings of pipelines that change what is kept, not what is told: collect, cache, tune, lists.

A run that is cut and goes on from a snapshot tells what a run tells that was never cut, and what a
run with the defaults tells.
"""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.connect.sinks.jsonl import read_log
from axlog.live import collector
from axlog.live.internals import maintained, streams_of
from axlog.pipeline.loader import check_text
from axlog.pipeline.model import PipelineModel
from axlog.runtime.embedded import Runner
from axlog.runtime.pipeline_definition import definition_of

DOCUMENT = (
    '<a xmlns:ax="urn:axlog"><d><ax:call stream="f"/></d><b><ax:call stream="g"/></b>'
    '<e><ax:call stream="h"/></e><o><ax:call stream="other"/></o></a>'
)
VIEWS = {
    "ready": "match /a[d/y][b/c/$x] return $x",
    "pairs": "match /a[b/c/$x][e/c/$x] return $x",
}
ABSENT = {"absent": "match /a[b/c/$x][d/y][not(e/c/$x)] return $x"}


def lines(count: int) -> list[dict[str, Any]]:
    random = Random(5)
    found = []
    for at in range(count):
        stream = random.choice(("f", "g", "h", "other"))
        body = "<y/>" if stream == "f" else f"<c>{random.randrange(9)}</c>"
        found.append({"stream": stream, "insert": body, "at": at})
    return found


def views(texts: dict[str, str]) -> dict[str, Any]:
    return {name: {"query": text, "sinks": ["log"]} for name, text in texts.items()}


def model(place: Path, settings: dict[str, Any], **more: Any) -> PipelineModel:
    given = {
        "engine": "embedded",
        "document": DOCUMENT,
        "sources": [{"kind": "jsonl", "path": "in.jsonl"}],
        "views": views(VIEWS),
        "sinks": {"log": {"kind": "jsonl", "path": "log.jsonl"}},
        "dead_letters": {"kind": "jsonl", "path": "dead.jsonl"},
        "settings": {"batch": 5, "hold": 0, "checkpoint": "state", "snapshot": 10, **settings},
        **more,
    }
    return PipelineModel.model_validate(given).located(place)


def told(place: Path, settings: dict[str, Any], cuts: tuple[int, ...] = ()) -> tuple[Any, Runner]:
    place.mkdir()
    (place / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines(60)))
    for rounds in (*cuts, None):
        runner = Runner(model(place, settings, views=views({**VIEWS, **ABSENT})), once=True)
        if rounds is None:
            runner.run()
            runner.close()
            break
        for _ in range(rounds):
            runner.round()
        runner.checkpoint.close()
        for sink in runner.sinks:
            sink.sink.close()
    log = [(line["view"], line["op"], line["row"]) for line in read_log(place / "log.jsonl")]
    return sorted(map(str, log)), runner


SETTINGS: dict[str, dict[str, Any]] = {
    "collect auto": {"collect": "auto"},
    "collect off": {"collect": "off"},
    "cache disk": {"cache": "disk", "memory": 0},
    "both": {"cache": "disk", "memory": 100, "collect": "auto"},
    "exact": {"tune": {"messages": 7, "exact": True}},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_oracle_settings_change_no_row(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "EVERY", 5)
    wanted, _ = told(tmp_path / "plain", {})
    assert len(wanted) > 8
    whole, runner = told(tmp_path / "whole", SETTINGS[name])
    assert whole == wanted
    cut, again = told(tmp_path / "cut", SETTINGS[name], (4, 3))
    assert cut == wanted
    for each in (runner, again):
        document = each.instances["document"].documents[""]
        if SETTINGS[name].get("collect") == "auto":
            assert "other" in streams_of(document).collector.closed
            assert maintained(document).collected > 1
        if SETTINGS[name].get("cache") == "disk":
            assert maintained(document).engine.shelf is not None


def test_settings_reach_the_documents_of_spark(tmp_path: Path) -> None:
    settings = {"collect": "auto", "cache": "disk", "memory": 7, "on_violation": "report"}
    made = definition_of(model(tmp_path, settings), "document").make(cached=True).options
    assert (made.collect, made.cache, made.memory, made.on_violation) == (
        "auto", "disk", 7, "report",
    )  # fmt: skip


# Lists of updates ---------------------------------------------------------------------------------

LISTS = [
    {"updates": [{"op": "insert-last", "target": "1.2", "content": [{"tree": "<c>50</c>"}]},
                 {"op": "insert-last", "target": "1.1", "content": [{"tree": "<y/>"}]}], "at": 3},
    {"updates": [{"op": "delete", "target": "1.77"}], "at": 4},
    {"what": 1},
    {"updates": [{"op": "delete", "target": "1.2"}], "at": 1000},
]  # fmt: skip


def test_a_pipeline_applies_lists(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps({"stream": "g", "insert": "<c>1</c>", "at": 2}))
    (tmp_path / "lists.jsonl").write_text("".join(json.dumps(each) + "\n" for each in LISTS))
    updates = {"kind": "jsonl", "path": "lists.jsonl"}
    for _ in range(2):  # the second run resumes, and has nothing to add
        runner = Runner(model(tmp_path, {"batch": 1}, updates=updates), once=True)
        runner.run()
        runner.close()
    log = [(line["op"], line["row"]["x"]) for line in read_log(tmp_path / "log.jsonl")]
    assert sorted(log[:2]) == [("insert", "1"), ("insert", "50")]
    assert sorted(log[2:]) == [("delete", "1"), ("delete", "50")]
    dead = [line["row"]["error"] for line in read_log(tmp_path / "dead.jsonl")]
    assert sorted(error[:5] for error in dead) == ["AX301", "AX306"]


def test_lists_as_xml_in_a_directory(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "1.xml").write_text(
        '<ax:updates xmlns:ax="urn:axlog"><ax:insert-last target="1.1"><y/></ax:insert-last>'
        '<ax:insert-last target="1.2"><c>8</c></ax:insert-last></ax:updates>'
    )
    (tmp_path / "lists" / "2.xml").write_text("<other/>")
    updates = [{"kind": "directory", "path": "lists"}]
    runner = Runner(model(tmp_path, {}, updates=updates), once=True)
    runner.run()
    runner.close()
    assert [line["row"] for line in read_log(tmp_path / "log.jsonl")] == [{"x": "8"}]
    assert len(read_log(tmp_path / "dead.jsonl")) == 1


@pytest.mark.parametrize(
    ("engine", "more", "why"),
    [
        ("spark", "", "splits the document"),
        ("embedded", "document_key: k\n", "one document for every key"),
        ("embedded", "settings: {keep: needed}\n", "does not keep"),
        ("embedded", "settings: {collect: auto}\n", "does not keep"),
    ],
)
def test_where_lists_cannot_be_applied_the_check_says_so(engine: str, more: str, why: str) -> None:
    text = (
        f"engine: {engine}\ndocument: <a/>\nviews: {{v: //b}}\n"
        f"updates: {{kind: jsonl, path: lists.jsonl}}\n{more}"
    )
    (found,) = [each.error for each in check_text(text).problems if each.error.code == "AX852"]
    assert why in found.message
