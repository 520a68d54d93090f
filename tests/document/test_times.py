"""Times at the borders: what is accepted is what is returned, exact to the microsecond."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from typer.testing import CliRunner

import axlog
from axlog.cli.application import application
from axlog.connect.channels.channel import LocalChannel
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import EARLIEST, LATEST, Times, microseconds, plain, shown
from axlog.errors import AxlogError, LateError
from axlog.live.internals import maintained
from axlog.pipeline.model import PipelineModel
from axlog.runtime.definition import Definition
from axlog.runtime.embedded import Runner

PAIRS = """match /m[o/a/$x#asked][s/b/$x#answered]
           where answered - asked >= 0 and answered - asked <= 10 return $x, asked.time"""
DOCUMENT = '<m xmlns:ax="urn:axlog"><o><ax:call stream="o"/></o><s><ax:call stream="s"/></s></m>'
KEYS = ["key o/a by . trusted", "key s/b by . trusted"]
BOTH: list[Times] = ["seconds", "dates"]

# Texts, numbers and dates ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (12, 12_000_000),
        (12.5, 12_500_000),
        (-0.000001, -1),
        (Fraction(1, 3), 333_333),
        (Decimal("0.0000015"), 2),  # half to even
        (timedelta(hours=-1), -3_600_000_000),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), -1_000_000),
        (datetime(1970, 1, 1, 1), 3_600_000_000),  # without a zone: UTC
        (date(1969, 12, 31), -86_400_000_000),
        ("12.5", 12_500_000),
        ("3us", 3),
        ("-3 us", -3),
        ("250ms", 250_000),
        ("2h", 7_200_000_000),
        ("1.5d", 129_600_000_000),
        ("5m", 300_000_000),
        ("20240101", 20_240_101_000_000),  # digits are seconds, never a date
        ("1969-12-31T23:59:59Z", -1_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("0001-01-01", -62_135_596_800_000_000),
    ],
)
def test_what_is_accepted(given: Any, wanted: int) -> None:
    assert microseconds(given) == wanted


@pytest.mark.parametrize(
    "given",
    ["", "h", "2 weeks", "2024-13-01", "1e999", float("nan"), float("inf"), True, None,
     Decimal("nan"), Decimal("1e1000"), 1 << 80, "1e30d"],
)  # fmt: skip
def test_what_is_refused(given: Any) -> None:
    with pytest.raises(AxlogError) as raised:
        microseconds(given)
    assert raised.value.code == "AX409"


def test_a_returned_time_that_is_given_back_is_the_same() -> None:
    random = Random(17)
    edges = [0, 1, -1, EARLIEST, LATEST, (1 << 33) * 1_000_000 - 1, (1 << 33) * 1_000_000 + 1]
    drawn = [random.randrange(-(1 << bits), 1 << bits) for bits in range(1, 64) for _ in range(50)]
    for time in edges + drawn:
        for times in BOTH:
            assert microseconds(shown(time, times)) == time, time
            said = json.loads(json.dumps(plain(shown(time, times))))
            assert microseconds(said) == time, time


def test_returned_seconds_are_whole_floats_or_fractions() -> None:
    assert [type(shown(time)) for time in (2_000_000, 2_500_000, LATEST)] == [int, float, Fraction]
    assert shown(LATEST, "dates") == Fraction(LATEST, 1_000_000)  # no datetime has it
    assert shown(-1, "dates") == datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)


def test_there_are_two_ways_to_return_times() -> None:
    with pytest.raises(AxlogError, match="times='hours'"):
        axlog.parse("<a/>", options=axlog.Options(times="hours"))  # type: ignore[arg-type]


# Every public name that takes or returns a time ---------------------------------------------------


def _fed(times: Times, start: int) -> axlog.Document:
    """A pair complete, one under way, some microseconds after a start."""
    made = axlog.parse(
        DOCUMENT,
        views={"v": PAIRS},
        facts=KEYS,
        options=axlog.Options(times=times, at=timedelta(microseconds=start)),
    )
    made.feed("o", "<a>1</a>", at=timedelta(microseconds=start + 1_000_001))
    made.feed("s", "<b>1</b>", at=timedelta(microseconds=start + 2_000_003))
    made.feed("o", "<a>2</a>", at=timedelta(microseconds=start + 3_000_007))
    return made


RETURNED: dict[str, tuple[Callable[[axlog.Document], Any], int]] = {
    "Document.clock": (lambda w: w.clock, 3_000_007),
    "Document.streams().last": (lambda w: w.streams()["s"].last, 2_000_003),
    "Document.tune().clock": (lambda w: w.tune().clock, 3_000_007),
    "Document.collect().clock": (lambda w: w.collect().clock, 3_000_007),
    "View.rows()": (lambda w: w.view("v").rows()[0]["asked.time"], 1_000_001),
    "View.head()": (lambda w: w.view("v").head(1)[0]["asked.time"], 1_000_001),
    "View.possible().deadline": (lambda w: _under_way(w).deadline, 13_000_007),
    "View.possible().row": (lambda w: _under_way(w).row["asked.time"], 3_000_007),
    "View.why().time": (lambda w: _why(w)[-1].time, 2_000_003),
    "Change.time": (lambda w: w.feed("s", "<b>2</b>", at=w.clock)[0].time, 3_000_007),
    "Change.row": (lambda w: w.feed("s", "<b>2</b>")[0].row["asked.time"], 3_000_007),
}  # fmt: skip


def _under_way(doc: axlog.Document) -> Any:
    return next(one for one in doc.view("v").possible() if one.row["x"] == "2")


def _why(doc: axlog.Document) -> Any:
    view = doc.view("v")
    (derivation,) = view.why(view.rows()[0])
    assert view.why({"x": "1", "asked.time": view.rows()[0]["asked.time"]}) == [derivation]
    return derivation.matched


@pytest.mark.parametrize("start", [0, -62_135_596_800_000_000, -5_000_000, 1_700_000_000_123_457])
@pytest.mark.parametrize("times", BOTH)
@pytest.mark.parametrize("name", RETURNED)
def test_every_returned_time_has_the_documents_unit(name: str, times: Times, start: int) -> None:
    ask, wanted = RETURNED[name]
    found = ask(_fed(times, start))
    assert found == shown(start + wanted, times)
    assert isinstance(found, datetime) == (times == "dates")
    assert microseconds(found) == start + wanted


@pytest.mark.parametrize("times", BOTH)
def test_every_accepted_time_may_be_a_returned_one(times: Times) -> None:
    made = _fed(times, -7_000_000)
    until = _under_way(made).deadline
    row = {"x": "2", "asked.time": _under_way(made).row["asked.time"]}
    assert made.view("v").status(row) is axlog.Truth.POSSIBLE
    assert made.feed("o", "<a>3</a>", at=made.clock) == []
    assert made.update("insert node <z/> into /m", at=made.clock) == []
    assert maintained(made).insert("match /m#t return t.id", "<z/>", at=made.clock) == []
    assert maintained(made).delete("match /m/z#t return t.id", at=made.clock) == []
    with made.batch():
        made.feed("o", "<a>4</a>", at=until)
    assert made.clock == until
    assert made.end("o", at=until) == []
    assert made.advance(until) == []
    with pytest.raises(LateError):
        made.advance(microseconds(until) / 1_000_000 - 0.000001)


def test_a_document_of_dates_begins_before_all_dates() -> None:
    document = axlog.parse("<r/>", options=axlog.Options(times="dates"))
    document.watch("match //a#t return t.time", name="v")
    (change,) = maintained(document).insert("match /r#t return t.id", "<a/>", at="1815-12-10")
    assert change.time == change.row["t.time"] == datetime(1815, 12, 10, tzinfo=UTC)
    assert change.to_dict()["row"] == {"t.time": "1815-12-10T00:00:00Z"}


def test_what_lies_before_the_start_is_refused_with_advice() -> None:
    with pytest.raises(LateError, match="at="):
        axlog.parse(DOCUMENT).feed("o", "<a/>", at=-1)
    with pytest.raises(LateError, match="at="):
        axlog.parse("<r/>").update("insert node <a/> into /r", at=-1)


# The deadline -------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", BOTH)
def test_advancing_to_a_deadline_lands_on_it(times: Times) -> None:
    """At the deadline a row may still come; a microsecond later it never comes."""
    random = Random(8)
    for _ in range(60):
        start = random.randrange(-(1 << random.randrange(2, 55)), 1 << random.randrange(2, 55))
        made = _fed(times, start)
        made.feed("o", f"<a>{random.random()}</a>", at=made.clock)
        one = random.choice([one for one in made.view("v").possible() if one.deadline is not None])
        assert one.deadline is not None
        assert not [c for c in made.advance(one.deadline) if c.row["x"] == one.row["x"]]
        assert made.clock == one.deadline
        assert made.view("v").status(one.row) is axlog.Truth.POSSIBLE
        later = timedelta(microseconds=microseconds(made.clock) + 1)
        assert [c.op for c in made.advance(later) if c.row["x"] == one.row["x"]] == ["never"]
        assert microseconds(made.clock) == microseconds(one.deadline) + 1


def test_times_may_all_be_moved_to_before_1970() -> None:
    """Changes, truth and possible rows are the same, whenever it all happens."""
    told = []
    for start in (0, -40_000_000_000_000_000):
        made = _fed("seconds", start)
        moved = [c.to_dict() for c in made.advance(timedelta(microseconds=start + 13_000_008))]
        told.append(([c["row"]["x"] for c in moved], made.view("v").truth, len(made.view("v"))))
    assert told[0] == told[1]
    assert told[0][0] == ["2"]


# Stores, tables, pipelines, commands --------------------------------------------------------------


@pytest.mark.parametrize("times", BOTH)
def test_a_store_keeps_its_unit_and_its_start(tmp_path: Path, times: Times) -> None:
    views = {"v": "match //a#t return t.time"}
    with axlog.open(
        tmp_path, DOCUMENT, views=views, options=axlog.Options(times=times, at="-3us")
    ) as store:
        store.feed("o", "<a/>", at="-2us")
        clock = store.clock
        assert clock == shown(-2, times)
    with axlog.open(tmp_path) as store:
        assert (store.clock, store.view("v").rows()[0]["t.time"]) == (clock, clock)


def test_columns_of_arrow_tables() -> None:
    for times, kind in (("seconds", pa.float64()), ("dates", pa.timestamp("us", "UTC"))):
        table = _fed(times, 0).view("v").to_arrow()  # type: ignore[arg-type]
        assert table.schema.field("asked.time").type == kind
        (found,) = table.column("asked.time").to_pylist()
        assert microseconds(found) == 1_000_001


def test_the_clock_of_a_channel_is_in_seconds() -> None:
    channel = LocalChannel("c")
    reader = channel.subscribe("r")
    channel.publish(StreamUpdate("s", "insert", "<a/>", at=2.5))
    assert reader.read().clock == 2.5


def test_a_pipeline_of_dates(tmp_path: Path) -> None:
    update = {"insert": "<a/>", "at": "1960-01-01T00:00:01.5Z"}
    sinks = [{"kind": "jsonl", "path": "out.jsonl"}, {"kind": "parquet", "path": "out.parquet"}]
    written = {
        "engine": "embedded",
        "document": '<r xmlns:ax="urn:axlog"><ax:call stream="s"/></r>',
        "streams": {"s": {"source": {"kind": "memory", "updates": [update]}}},
        "views": {"v": {"query": "match //a#t return t.time as at", "sinks": sinks}},
        "settings": {"times": "dates"},
    }
    runner = Runner(PipelineModel.model_validate(written).located(tmp_path), once=True)
    runner.run()
    runner.close()
    (line,) = [json.loads(one) for one in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert line["time"] == line["row"]["at"] == "1960-01-01T00:00:01.500000Z"
    (row,) = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert row["at"] == datetime(1960, 1, 1, 0, 0, 1, 500_000, UTC)


def test_the_command_line_writes_seconds_or_dates(tmp_path: Path) -> None:
    updates = tmp_path / "updates.jsonl"
    updates.write_text('{"stream": "o", "insert": "<a>1</a>", "at": "12.5"}\n', encoding="utf-8")
    wanted: dict[str, list[Any]] = {
        "seconds": [22.5, 12.5],
        "dates": ["1970-01-01T00:00:22.500000Z", "1970-01-01T00:00:12.500000Z"],
    }
    for times, (deadline, asked) in wanted.items():
        given = ["truth", DOCUMENT, PAIRS, "--after", str(updates), "--times", times, "--json"]
        said = json.loads(CliRunner().invoke(application(), given).stdout)
        (one,) = [one for one in said["possible"] if one["row"]["x"] == "1"]
        assert (one["deadline"], one["row"]["asked.time"]) == (deadline, asked)


@pytest.mark.parametrize("times", BOTH)
def test_a_definition_for_spark_keeps_unit_and_start(times: Times) -> None:
    made = axlog.parse(DOCUMENT, views={"v": PAIRS}, options=axlog.Options(times=times, at="-3us"))
    again = Definition.read(json.loads(json.dumps(Definition.of(made).plain()))).make()
    assert again.clock == made.clock == shown(-3, times)


def test_seconds_as_floats_are_rounded_once() -> None:
    random = Random(7)
    for _ in range(20_000):
        seconds = random.choice(
            (random.uniform(-1, 1) * 10 ** random.randint(-7, 10),
             round(random.uniform(0, 2e9), random.randint(0, 8)),
             (random.randrange(1 << 40) + 0.5) / 1e6,
             random.randrange(1 << 52) / 1e6)
        )  # fmt: skip
        assert microseconds(seconds) == round(Fraction(seconds) * 1_000_000), seconds
