"""Sources that are planned without reading: their parts are what they read, whatever the limit."""

import json
import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.connect.kinds import Origin
from axlog.connect.protocol import Load, Plan, Planned, Reading, Source
from axlog.errors import ConnectorError
from axlog.pipeline import kinds


def source(kind: str, directory: Path, stream: str | None = "s", **options: Any) -> Any:
    found = kinds.source_kind(kind)
    made = found.options.model_validate(options)
    return found.make(made, Origin(directory=directory, stream=stream, namespaces={"p": "urn:p"}))


def _text(content: str | bytes) -> str:
    return content.decode() if isinstance(content, bytes) else content


def planned(one: Source, limit: int, tasks: int) -> tuple[list[Plan], list[Reading]]:
    """All plans of a source, and what another task reads of their parts."""
    assert isinstance(one, Planned)
    plans: list[Plan] = []
    position = None
    while (plan := one.plan(position, Load(limit, tasks, 1))).parts:
        plans.append(plan)
        position = json.loads(json.dumps(plan.position))
    readings = [
        one.fetch(json.loads(json.dumps(part.work))) for plan in plans for part in plan.parts
    ]
    for part, reading in zip((p for plan in plans for p in plan.parts), readings, strict=True):
        assert len(reading.updates) + len(reading.refused) <= part.size
    return plans, readings


def _read_by(readings: Sequence[Reading]) -> tuple[list[tuple[str, Any]], list[bytes | str]]:
    return (
        [(_text(one.content), one.at) for reading in readings for one in reading.updates],
        [one.content for reading in readings for one in reading.refused],
    )


@pytest.mark.parametrize("order", ["any", "name"])
def test_a_directory_is_planned_without_reading(
    tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every position of a plan is one of reading, and every file is in one part."""
    for number in range(7):
        (tmp_path / f"{number}.xml").write_text("<o" if number == 3 else f'<o at="{number}"/>')
    one = source("directory", tmp_path, path=".", time="@at", order=order)
    position, found = None, []
    for limit in (1, 2, 3, 5):
        with monkeypatch.context() as context:
            context.setattr(type(one), "_messages", None)
            plan = one.plan(position, Load(limit, 2, 1))
        found += [name for part in plan.parts for name in part.work["files"]]
        assert plan.more == (len(found) < 7)
        position = plan.position
        (tmp_path / f"a{limit}.tmp").write_text("")
        assert not one.read(position, 9).refused or "3.xml" not in found
    assert found == [f"{number}.xml" for number in range(7)]
    assert not one.read(position, 9).updates


@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize("options", [{"record": "o"}, {"format": "json"}, {}])
def test_the_parts_of_a_directory_are_what_it_reads(
    tmp_path: Path, limit: int, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_json = "format" in options
    for number in range(6):
        text = '[{"at": "1"}, {"at": "2"}]' if is_json else '<l><o at="1"/><o/></l>'
        name = f"{number}.{'json' if is_json else 'xml'}"
        (tmp_path / name).write_text("{" if number == 4 else text)
    made = partial(source, "directory", tmp_path, path=".", clock="none", **options)
    plans, readings = planned(made(), limit, 2)
    assert len(plans) > 1 or limit == 100
    read: Reading = made().read(None, 1000)
    assert _read_by(readings) == _read_by([read])


LINES = [
    *(json.dumps({"stream": "s", "insert": f"<m n='{n}'/>", "at": n}) for n in range(30)),
    "", "  ", "no json", '{"stream": "s", "insert": "<m/>"}', "é" * 300,
]  # fmt: skip


@pytest.mark.parametrize("limit", [1, 4, 1000])
@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("end", ["\n", "", '\n{"stream": "s", "insert": "<m', "\r\n\n"])
def test_the_parts_of_a_file_of_lines_are_what_it_reads(
    tmp_path: Path, limit: int, tasks: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Divided by bytes; the driver's side reads a bounded part of it."""
    monkeypatch.setattr("axlog.connect.sources.jsonl._SAMPLE", 64)
    monkeypatch.setattr("axlog.connect.sources.jsonl._PIECE", 100)
    for seed in range(5):
        lines = Random(seed).sample(LINES, len(LINES))
        (tmp_path / "in.jsonl").write_text("\n".join([*lines, LINES[3]]) + end)
        one = source("jsonl", tmp_path, stream=None, path="in.jsonl")
        plans, readings = planned(one, limit, tasks)
        assert len(plans) > 3 or limit == 1000
        assert _read_by(readings) == _read_by([one.read(None, 1000)])
        content = (tmp_path / "in.jsonl").read_bytes()
        for reading in readings:
            for update in reading.updates:
                at = int(update.origin.partition("@")[2])
                assert _text(update.content).encode() in content[at:].partition(b"\n")[0]
        wanted = [update.origin for update in one.read(None, 1000).updates]
        origins = [update.origin for reading in readings for update in reading.updates]
        assert [one.origin(each) for each in origins] == wanted
        assert [one.origin(each) for each in origins[::-1]] == wanted[::-1]


def test_a_plan_follows_a_file_of_lines_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    one = source("jsonl", tmp_path, stream="s", path="in.jsonl")
    found, position = [], None
    for text in ('{"insert": "<a/>"}', '{"insert": "<b/>"}\n{"ins', 'ert": "<c/>"}', "\n", "\n"):
        with path.open("a") as file:
            file.write(text)
        plan = one.plan(position, Load(10, 2))
        found.append([u.content for part in plan.parts for u in one.fetch(part.work).updates])
        position = plan.position
    assert found == [["<a/>"], ["<b/>"], ["<c/>"], [], []]
    path.write_text("")
    with pytest.raises(ConnectorError, match="has 0 bytes"):
        one.plan(position, Load(10, 2))


@pytest.mark.parametrize("limit", [1, 4, 1000])
@pytest.mark.parametrize("key", ["integer", "text"])
def test_the_parts_of_a_table_are_what_it_reads(
    tmp_path: Path, limit: int, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys only are read by the driver's side; later rows with greater keys are in no part."""
    with sqlite3.connect(tmp_path / "o.db") as database:
        database.execute(f"create table o (n {key} primary key, at real)")
        database.executemany("insert into o values (?, ?)", [(n * n, n) for n in range(25)])
    options = {"database": f"sqlite:///{tmp_path}/o.db", "table": "o", "by": "n", "time": "at"}
    one = source("table", tmp_path, **options)
    with monkeypatch.context() as context:
        context.setattr(type(one), "rows", None)
        plan = one.plan(None, Load(limit, 3, 1))
    plans, readings = planned(one, limit, 3)
    assert plans[0] == plan
    assert len(plans) == -(-25 // limit)
    assert len(plans[0].parts) == {1: 1, 4: 2, 1000: 1}[limit]
    assert _read_by(readings) == _read_by([one.read(None, 1000)])
    whole = one.plan(None, Load(10), until=plans[-1].position)
    with sqlite3.connect(tmp_path / "o.db") as database:
        database.execute("insert into o values (9999, 1)")
    again = [one.fetch(part.work) for part in whole.parts]
    assert _read_by(again) == _read_by(readings)


def test_a_plan_up_to_a_position_has_nothing_after_it(tmp_path: Path) -> None:
    """As for views that are added to a checkpoint."""
    for number in range(5):
        (tmp_path / f"{number}.xml").write_text(f"<m n='{number}'/>")
    lines = [json.dumps({"insert": f"<m n='{number}'/>"}) for number in range(5)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines[:3]) + "\n")
    for one, more in (
        (source("jsonl", tmp_path, path="in.jsonl"), lambda: _append(tmp_path, lines[3:])),
        (source("directory", tmp_path, path="."), lambda: (tmp_path / "1a.xml").write_text("<n/>")),
    ):
        plans, readings = planned(one, 3, 2)
        more()
        plan = one.plan(None, Load(2, 1, 1), until=plans[-1].position)
        assert _read_by([one.fetch(part.work) for part in plan.parts]) == _read_by(readings)


def _append(place: Path, lines: Sequence[str]) -> None:
    with (place / "in.jsonl").open("a") as file:
        file.write("\n".join(lines) + "\n")


def _rows(numbers: Sequence[int]) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            "stream": ["s" if n % 7 else None for n in numbers],
            "xml": [f"<m n='{n}'/>" if n % 5 else None for n in numbers],
            "time": [float(n) for n in numbers],
        }
    )


@pytest.mark.parametrize("limit", [1, 4, 1000])
@pytest.mark.parametrize("order", ["any", "name"])
def test_the_rows_of_parquet_files(tmp_path: Path, limit: int, order: str) -> None:
    """In parts of rows, whatever their row groups; rows that are no updates are rejected."""
    import pyarrow.parquet as parquet

    for number in range(3):
        rows = _rows(range(10 * number, 10 * number + 10))
        parquet.write_table(rows, tmp_path / f"{number}.parquet", row_group_size=4)
    one = source("parquet", tmp_path, None, path=".", order=order)
    plans, readings = planned(one, limit, 3)
    kept = [n for n in range(30) if n % 5 and n % 7]
    wanted = [(f"<m n='{n}'/>", float(n)) for n in kept]
    assert _read_by(readings)[0] == wanted
    assert sum(part.size for plan in plans for part in plan.parts) == 30
    assert len(plans) == -(-30 // limit)
    assert [plan.more for plan in plans] == [True] * (len(plans) - 1) + [False]
    origins = [refusal.origin for reading in readings for refusal in reading.refused]
    assert origins[:3] == ["0.parquet#1", "0.parquet#6", "0.parquet#8"]
    position, read = None, []
    while (reading := one.read(position, 7)).updates:
        read.append(reading)
        position = reading.position
    assert _read_by(read)[0] == wanted
    whole = one.plan(None, Load(4, 1, 1), until=plans[len(plans) // 2].position)
    half = sum(len(plan.parts) for plan in plans[: len(plans) // 2 + 1])
    again = [one.fetch(part.work) for part in whole.parts]
    assert _read_by(again) == _read_by(readings[:half])


@pytest.mark.parametrize("limit", [1, 4, 1000])
def test_the_rows_that_a_delta_table_gets(tmp_path: Path, limit: int) -> None:
    """Those of the first version that is read, then those of each version; compaction is none."""
    from deltalake import DeltaTable, write_deltalake

    where = str(tmp_path / "t")
    numbers = iter(range(1000))

    def append(count: int) -> None:
        some = [next(numbers) for _ in range(count)]
        write_deltalake(where, _rows(some), mode="append", partition_by=["stream"])

    append(5)
    append(4)
    one = source("delta", tmp_path, "s", path="t")
    found: list[tuple[str, Any]] = []
    position = None
    ends = []
    for step in range(5):
        while (plan := one.plan(position, Load(limit, 2, 1))).parts:
            assert all(part.size for part in plan.parts)
            found += _read_by([one.fetch(json.loads(json.dumps(p.work))) for p in plan.parts])[0]
            position = json.loads(json.dumps(plan.position))
            ends.append((position, len(found)))
        position = plan.position
        if step == 1:
            DeltaTable(where).optimize.compact()
        else:
            append(3)
    kept = [n for n in range(18) if n % 5]
    assert sorted(found) == sorted((f"<m n='{n}'/>", float(n)) for n in kept)
    for end, count in ends[:: max(1, len(ends) // 4)]:
        again = one.plan(None, Load(100), until=end)
        assert _read_by([one.fetch(part.work) for part in again.parts])[0] == found[:count]
    DeltaTable(where).delete("time = 3")
    with pytest.raises(ConnectorError, match="removes or changes rows"):
        one.plan(position, Load(10))


@pytest.mark.parametrize("stream", [None, "s", "other"])
def test_odd_lines_are_read_alike_by_a_task(tmp_path: Path, stream: str | None) -> None:
    """Tasks recognize plain insertions, and give every other line to the parser of all lines."""
    plain = b'{"stream": "s", "insert": "<o/>", "at": 1}'
    lines = [
        plain, b"\xef\xbb\xbf" + plain, plain + b"\r", b" " + plain + b" ", b"", b"  ", b"\xff",
        b'{"insert": "<o/>", "at": 2.5}', b'{"insert": "<o/>"}', b'{"stream": "s", "at": 1}',
        b'{"stream": "s", "insert": "<o/>", "at": "2026-01-01"}', b'["s", "<o/>", 1]',
        b'{"stream": "s", "insert": "<o/>", "at": true}', b'{"stream": "s", "end": true}',
        b'{"stream": "s", "insert": "<o/>", "at": 1, "more": 1}', plain + plain,
        b'{"stream": 1, "insert": "<o/>", "at": 1}',
        b'{"stream": "s", "insert": {"o": 1}, "at": 1}',
        b'{"stream": "s", "insert": "<o>\\ud800</o>", "at": 1}',
        b'{"stream": "s", "insert": "<o>\\u00e9</o>", "at": 1}',
        b'{"stream": "s", "insert": "<o>\xff</o>", "at": 1}',
        b'{"stream": "s", "stream": "t", "insert": "<o/>", "at": 1}',
        b'{"insert": "<o/>", "at": NaN}',
    ]  # fmt: skip
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    one = source("jsonl", tmp_path, stream, path="in.jsonl")
    (part,) = one.plan(None, Load(100, 1, 1)).parts
    by_task, by_reader = one.fetch(part.work), one.read(None, 100)

    def shown(reading: Reading) -> Any:
        each = [(u.stream, u.action, u.content, repr(u.at)) for u in reading.updates]
        # A task knows the byte at which a line begins, a reader its number.
        said = [one.error.partition(" (in.jsonl")[0] for one in reading.refused]
        return each, [(one.stream, one.content) for one in reading.refused], said

    assert shown(by_task) == shown(by_reader)
    assert (len(by_reader.updates) > 3) == (stream != "other")
    assert len(by_reader.refused) > 5
