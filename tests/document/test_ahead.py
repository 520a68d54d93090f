"""Messages dated far ahead: rejected when they are received, and what is logged stays decided."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import axlog
from axlog.connect.sinks.jsonl import read_log
from axlog.connect.sources.memory import MemorySource
from axlog.document.clock_bounds import Horizon, is_date, read_ahead
from axlog.document.stream_update import StreamUpdate
from axlog.errors import InputError, StreamError
from axlog.live.internals import streams_of
from axlog.pipeline.loader import load as load_pipeline
from axlog.runtime.embedded import run

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
VIEWS = {"v": "match /r/a/$x return $x"}
FAR = "9999-12-31T23:59:59Z"


def document(attributes: str = "") -> str:
    call = '<ax:call xmlns:ax="urn:axlog" stream="{}" {}/>'
    return f"<r>{call.format('f', attributes)}{call.format('g', '')}</r>"


def document_at(now: datetime = NOW, attributes: str = "", **options) -> axlog.Document:
    made = axlog.parse(document(attributes), views=VIEWS, options=axlog.Options(**options))
    streams_of(made).now = now.timestamp
    return made


def code_of(act) -> str | None:
    try:
        act()
    except StreamError as error:
        return error.code
    return None


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_date_may_be_a_day_ahead(keep):
    doc = document_at(keep=keep)
    day = timedelta(days=1)
    assert code_of(lambda: doc.feed("f", "<a>1</a>", at=NOW + day)) is None
    late = NOW + day + timedelta(microseconds=1)
    for at in (late, late.isoformat(), FAR, late.date() + day):
        assert code_of(lambda at=at: doc.feed("f", "<a>2</a>", at=at)) == "AX417"
        assert code_of(lambda at=at: doc.end("f", at=at)) == "AX417"
    doc.feed("g", "<a>3</a>", at=NOW + day)  # nobody is held back
    assert [row["x"] for row in doc.view("v").rows()] == ["1", "3"]


@pytest.mark.parametrize("at", [1e12, "253402300799", 253402300799, timedelta(days=10**6)])
def test_numbers_are_of_any_clock(at):
    doc = document_at()
    doc.feed("f", "<a>1</a>", at=at)
    assert [row["x"] for row in doc.view("v").rows()] == ["1"]


def test_streams_declare_how_far_ahead_they_may_be():
    hour = timedelta(hours=1)
    assert (
        code_of(lambda: document_at(attributes='ahead="2h"').feed("f", "<a/>", NOW + hour)) is None
    )
    near = document_at(attributes='ahead="30m"')
    assert code_of(lambda: near.feed("f", "<a/>", at=NOW + hour)) == "AX417"
    assert code_of(lambda: near.feed("f", "<a/>", at=(NOW + hour).timestamp())) == "AX417"
    assert code_of(lambda: near.delete("f", "match /a", at=NOW + hour)) == "AX417"
    assert code_of(lambda: near.feed("g", "<a/>", at=NOW + hour)) is None
    assert code_of(lambda: document_at(attributes='ahead="none"').feed("f", "<a/>", FAR)) is None
    for wrong in ("soon", "1 day", "-1h", ""):
        with pytest.raises(InputError) as refused:
            axlog.parse(document(f'ahead="{wrong}"'))
        assert refused.value.code == "AX105"


def test_what_is_a_date():
    assert [is_date(at) for at in ("2024-01-01", "20240101T10", NOW, NOW.date())] == [True] * 4
    assert [is_date(at) for at in (1, 1.5, "17", "1e3", "2h", "-3us", timedelta(1))] == [False] * 7
    assert (read_ahead("90s"), read_ahead("3us")) == (90_000_000, 3)


@pytest.mark.parametrize("on_error", ["raise", "dead-letter"])
def test_a_store_decides_once(tmp_path: Path, on_error):
    """A message that was rejected then is not accepted by a replay that comes later."""
    at = NOW + timedelta(days=2)
    with axlog.open(
        tmp_path, document(), views=VIEWS, options=axlog.Options(on_error=on_error)
    ) as doc:
        streams_of(doc).now = NOW.timestamp
        doc.feed("f", "<a>1</a>", at=NOW)
        code = code_of(lambda: doc.feed("f", "<a>2</a>", at=at))
        assert code == (None if on_error == "dead-letter" else "AX417")
        streams_of(doc).now = at.timestamp
        doc.feed("g", "<a>3</a>", at=at)
        letters = [letter.error.code for letter in doc.dead_letters]
        xml = doc.xml()
    with axlog.open(tmp_path) as again:
        assert again.xml() == xml
        assert [letter.error.code for letter in again.dead_letters] == letters
        assert [row["x"] for row in again.view("v").rows()] == ["1", "3"]


PIPELINE = """
documents:
  w:
    document: <r xmlns:ax="urn:axlog"><ax:call stream="f"/><ax:call stream="g"/></r>
    streams:
      f: {{source: {{kind: jsonl, path: f.jsonl}}{declared}}}
      g: {{source: {{kind: jsonl, path: g.jsonl}}}}
    views:
      v: {{query: "match /r/a/$x return $x", sinks: [log]}}
sinks:
  log: {{kind: jsonl, path: log.jsonl}}
dead_letters: {{kind: jsonl, path: dead.jsonl}}
settings: {{on_error: dead-letter, checkpoint: state}}
"""


def run_pipeline(directory: Path, declared: str = "") -> tuple[list[str], list[str]]:
    directory.mkdir()
    (directory / "f.jsonl").write_text(
        '{"stream": "f", "insert": "<a>1</a>", "at": "2024-01-01T00:00:00Z"}\n'
        f'{{"stream": "f", "insert": "<a>2</a>", "at": "{FAR}"}}\n'
        '{"stream": "f", "insert": "<a>3</a>", "at": "2024-01-01T00:00:02Z"}\n'
    )
    (directory / "g.jsonl").write_text(
        '{"stream": "g", "insert": "<a>4</a>", "at": "2024-01-01T00:00:01Z"}\n'
    )
    path = directory / "pipeline.yaml"
    path.write_text(PIPELINE.format(declared=declared))
    run(load_pipeline(path), once=True)
    rows = [line["row"]["x"] for line in read_log(directory / "log.jsonl")]
    dead = directory / "dead.jsonl"
    return rows, [line["row"]["error"] for line in read_log(dead)] if dead.exists() else []


def test_a_pipeline_puts_it_aside_and_goes_on(tmp_path: Path):
    rows, errors = run_pipeline(tmp_path / "default")
    assert sorted(rows) == ["1", "3", "4"]
    assert [error.partition(":")[0] for error in errors] == ["AX417"]
    rows, errors = run_pipeline(tmp_path / "none", ", ahead: none")
    # What the bound is for: after the far date everything else of its stream is late.
    assert sorted(rows) == ["1", "2", "4"]
    assert [error.partition(":")[0] for error in errors] == ["AX404"]


def test_updates_as_they_travel_keep_their_dates():
    update = StreamUpdate.of({"stream": "f", "insert": "<a/>", "at": FAR})
    again = StreamUpdate.of(update.plain())
    assert update.at == again.at == FAR
    assert is_date(FAR)


def test_tasks_of_spark_judge_by_the_driver_s_clock():
    """However often and whenever a part is read again, its messages have the same verdicts."""
    sources = pytest.importorskip("axlog.spark.sources")
    at = NOW + timedelta(days=2)
    update = StreamUpdate("f", "insert", "<a/>", at.isoformat(), "here")
    for now, action in ((NOW, "refused"), (at, "insert")):
        part = sources.Cut([None, 1], 1, 0, now=round(now.timestamp() * 1_000_000))
        for horizon in (Horizon(), Horizon(now=at.timestamp)):
            ((row,),) = sources.read_part(lambda: MemorySource([update]), 0, part, horizon)
            assert (row[1], row[2], "AX417" in str(row[8])) == ("f", action, action == "refused")
