"""What the live page is given: bounded histories, rows by truth, systems, reasons read again."""

import json
from pathlib import Path

import pytest

from axlog.connect.protocol import Refusal
from axlog.errors import PipelineError
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.runtime.replay import Replay
from axlog.server.history import POINTS, Curve, History
from axlog.server.pipelines import observe_runner
from axlog.server.reports import BatchSummary, Reported
from axlog.server.row_lists import Asked, Listing, Prospect

WIRED = """
engine: embedded
documents:
  first:
    document: <a><ax:call xmlns:ax="urn:axlog" stream="in"/></a>
    sources: [{kind: jsonl, path: in.jsonl}]
    views: {big: 'match /a/n/$x return $x'}
  second:
    document: <b><ax:call xmlns:ax="urn:axlog" stream="rows" deletes="yes"/></b>
    streams: {rows: {view: first.big}}
    views:
      seen: {query: 'match /b/row/x/$x return $x', sinks: [{kind: memory}]}
"""
MANY = """
engine: embedded
document: <d><ax:call xmlns:ax="urn:axlog" stream="in"/></d>
document_key: "@of"
sources: [{kind: jsonl, path: in.jsonl}]
views: {v: 'match /d/n/$x return $x'}
"""
JOINED = """
engine: embedded
document: |
  <r xmlns:ax="urn:axlog"><a><ax:call stream="a"/></a><b><ax:call stream="b"/></b></r>
sources: [{kind: jsonl, path: in.jsonl}]
views:
  pairs: 'match /r[a/n/$x][b/n/$x] return $x'
  alone: 'match /r[a/n/$x][not(b/n/$x)] return $x'
settings: {keep: needed}
"""


def place(directory: Path, pipeline: str, *messages: tuple[str, str]) -> Path:
    lines = [
        json.dumps({"stream": s, "insert": text, "at": n}) for n, (s, text) in enumerate(messages)
    ]
    (directory / "in.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    written = directory / "p.yaml"
    written.write_text(pipeline, encoding="utf-8")
    return written


def test_documents_that_feed_each_other_are_wired(tmp_path: Path) -> None:
    runner = Runner(load(str(place(tmp_path, WIRED, ("in", "<n>1</n>")))), once=True)
    observer = observe_runner(runner)
    runner.run()
    state = observer.state(Asked("second", "seen"))
    wire = {"from": "first", "view": "big", "to": "second", "stream": "rows"}
    assert state["system"]["wires"] == [wire]
    assert state["system"]["sources"] == [
        {"document": "first", "stream": None, "says": "jsonl in.jsonl"}
    ]
    assert state["system"]["sinks"] == [{"says": "memory", "views": [["second", "seen"]]}]
    assert [line["row"] for line in state["shown"]["lines"] if line["truth"] == "true"] == [
        {"x": "1"}
    ]
    runner.close()


def test_documents_of_one_document_are_shown_one_by_one(tmp_path: Path) -> None:
    messages = [("in", f'<n of="k{n}">{n}</n>') for n in range(30)]
    runner = Runner(load(str(place(tmp_path, MANY, *messages))), once=True)
    observer = observe_runner(runner)
    runner.run()
    names = [doc["name"] for doc in observer.state(Asked())["documents"]]
    assert len(names) == 20
    assert "document k7" in names
    runner.close()


def test_why_is_read_from_the_messages_with_the_value_or_from_all(tmp_path: Path) -> None:
    messages = [("a", "<n>&#49;7</n>"), ("b", "<n>17</n>"), ("a", "<n>18</n>"), ("b", "<n>18</n>")]
    model = load(str(place(tmp_path, JOINED, *messages, ("a", "<n>5</n>"))))
    replay = Replay(model)
    (found,) = replay.why("document", "pairs", {"x": "18"})
    assert {m.origin for m in found.matched if m.origin} == {"in.jsonl:3", "in.jsonl:4"}
    (found,) = replay.why("document", "pairs", {"x": "17"})  # one writes it otherwise
    assert {m.origin for m in found.matched if m.origin} == {"in.jsonl:1", "in.jsonl:2"}
    (found,) = replay.why("document", "alone", {"x": "5"})
    assert {m.origin for m in found.matched if m.origin} == {"in.jsonl:5"}
    assert replay.why("document", "alone", {"x": "18"}) == []
    assert (
        "more than 2 messages"
        in Replay(model, most=2).plain("document", "alone", {"x": "5"})["reason"]
    )


def test_what_cannot_be_read_again_is_named(tmp_path: Path) -> None:
    model = load(str(place(tmp_path, WIRED, ("in", "<n>1</n>"))))
    with pytest.raises(PipelineError, match="a view cannot be read again"):
        Replay(model).why("second", "seen", {"x": "1"})


def test_a_curve_keeps_the_whole_run_in_few_points() -> None:
    curve = Curve(interval=1)
    for second in range(10_000):
        curve.add(second, second)
    assert len(curve.points) <= POINTS
    assert sum(curve.points[0]) == 0
    assert sum(curve.points[-1]) == 2 * 9999
    assert curve.points == sorted(curve.points)


def test_a_run_elsewhere_that_goes_on_says_what_is_not_listed(tmp_path: Path) -> None:
    pipeline = MANY.replace('document_key: "@of"\n', "").replace("<d>", "<d><n>0</n>")
    model = load(str(place(tmp_path, pipeline)))
    reported = Reported(model, "spark")
    shown = reported.shown(Asked("document", "v"))
    assert shown is not None
    assert [line["row"] for line in shown["lines"]] == [{"x": "0"}]  # the document has it
    reported.take(BatchSummary("document", batch=7))
    shown = reported.shown(Asked("document", "v"))
    assert shown is not None
    assert "resumed from a checkpoint" in shown["note"]


def test_each_truth_has_its_share_of_the_lines() -> None:
    possible = [{"row": {"x": str(n)}, "needs": []} for n in range(50)]
    listing = Listing(
        ({"x": f"t{n}"} for n in range(1000)), {"true": 1000, "never": 1},
        Prospect("true", 50, possible), [{"row": {"x": "n"}, "time": 1}],
    )  # fmt: skip
    lines = listing.plain(Asked(show=90))["lines"]
    counted = {t: sum(line["truth"] == t for line in lines) for t in ("true", "possible", "never")}
    assert counted["never"] == 1
    assert counted["possible"] >= 30
    assert counted["true"] >= 30
    assert sum(counted.values()) == 90


def test_rows_are_found_by_a_text_in_small_letters_or_large() -> None:
    rows = [{"x": "Alpha"}, {"x": "beta"}]
    listing = Listing(rows, {"true": 2, "never": 0})
    found = listing.plain(Asked(find="ALPH"))
    assert [line["row"]["x"] for line in found["lines"]] == ["Alpha"]
    assert found["found"] == {"true": 1, "possible": 0, "never": 0}
    assert found["counts"]["true"] == 2
    assert listing.plain(Asked(find="none of them"))["lines"] == []


def test_a_message_that_several_documents_reject_counts_once() -> None:
    history = History()
    for stream in ("orders", "statistics", "orders"):
        history.refuse(Refusal(stream, "<a", "in/7.xml", "AX101: it is no XML"))
    letters, count = history.letters()
    assert count == 1
    assert [letter["stream"] for letter in letters] == ["orders, statistics"]


def test_dead_letters_are_the_newest_ones_with_their_codes() -> None:
    history = History()
    for n in range(80):
        history.refuse(Refusal("s", "", f"f:{n}", "AX101: it is no XML"))
    letters, count = history.letters()
    assert (len(letters), count) == (50, 80)
    assert letters[0] == {"stream": "s", "origin": "f:79", "code": "AX101", "error": "it is no XML"}
