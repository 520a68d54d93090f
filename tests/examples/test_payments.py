"""The payments example: its views say what became of every transfer that the generator drew."""

import shutil
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from axlog.connect.sinks.jsonl import read_log
from axlog.pipeline.loader import check, load
from axlog.runtime.embedded import run
from axlog.samples import payments

LIMIT = payments.DEADLINE * 1000


@pytest.fixture
def example(repository: Path, tmp_path: Path) -> Path:
    path = tmp_path / "payments.yaml"
    shutil.copy(repository / "examples" / "payments" / "payments.yaml", path)
    return path


def test_oracle_views_say_what_became_of_the_transfers(example: Path) -> None:
    drawn = payments.transfers(seed=3, count=120)
    sent = payments.write(example.parent / "in", drawn)
    assert check(example).problems == []
    for _ in range(2):  # the second run finds nothing new
        run(load(example), once=True)
    out = example.parent / "out"

    def rows(view: str) -> set[tuple[str, ...]]:
        found = parquet.read_table(out / f"{view}.parquet").to_pylist()
        assert len(found) == len({tuple(row.values()) for row in found})
        return {tuple(row.values()) for row in found}

    settled = {(t.number,) for t in drawn if t.in_time and t.rejection is None}
    assert rows("settled_in_time") == settled != set()
    rejected = {(t.number, t.rejection) for t in drawn if t.rejection is not None}
    assert rows("rejected") == rejected != set()
    returned = {(t.number, t.amount, t.reason) for t in drawn if t.reason is not None}
    assert rows("returned") == returned != set()

    told = [(line["op"], line["row"]["tx"]) for line in read_log(out / "answers.jsonl")]
    assert sorted(tx for op, tx in told if op == "insert") == [t.number for t in drawn if t.in_time]
    end = max(time for time, _, _ in payments.messages(drawn))
    never = {t.number for t in drawn if not t.in_time and t.asked + LIMIT < end}
    assert any(t.answered is None for t in drawn if t.number in never)
    assert any(t.answered is not None for t in drawn if t.number in never)
    assert sorted(tx for op, tx in told if op == "never") == sorted(never)
    assert len(told) == sum(t.in_time for t in drawn) + len(never)
    assert not (out / "dead-letters.jsonl").exists() or not read_log(out / "dead-letters.jsonl")
    assert sent == len(list((example.parent / "in").rglob("*.xml")))


def test_messages_come_by_time_and_are_the_same_for_a_seed() -> None:
    drawn = payments.transfers(seed=7)
    assert drawn == payments.transfers(seed=7) != payments.transfers(seed=8)
    times = [time for time, _, _ in payments.messages(drawn)]
    assert times == sorted(times)
    assert {stream for _, stream, _ in payments.messages(drawn)} == set(payments.STREAMS)
