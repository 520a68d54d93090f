"""Absence and deadlines in the payments and purchase-to-pay examples, on both engines.

The wall clock is one that the test moves. Messages come in steps; after each step the clock passes.
The embedded runner reads the files of the example. The buckets of Spark get the same messages,
split as Spark splits them. Both emit the same changes, at the same moments.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from axlog.connect.sinks.jsonl import read_log
from axlog.pipeline.loader import check, load
from axlog.pipeline.model import PipelineModel
from axlog.runtime.bucket import Instance
from axlog.runtime.embedded import Runner
from axlog.runtime.extraction import Extractor, Message
from axlog.runtime.order import Packet
from axlog.runtime.packet_rows import read_packet
from axlog.runtime.pipeline_definition import definition_of
from axlog.runtime.plan import make_plan
from axlog.samples import payments
from axlog.testing import FakeClock
from axlog.views.change import Change
from tests.runtime.engine_packets import engine_packets

_START = datetime(2026, 1, 5, 8, tzinfo=UTC)
_HOLD = 1
"""Seconds that the examples wait for a slower stream."""

Told = tuple[Any, ...]


@dataclass(frozen=True)
class Step:
    """Messages (seconds from the start, stream, content), and the wall clock after them."""

    messages: tuple[tuple[float, str, str], ...]
    clock: float


def _told(lines: Iterable[Mapping[str, Any]]) -> list[Told]:
    return sorted(
        (line["time"], line["view"], line["op"], *line["row"].values(), line["cause"]["kind"])
        for line in lines
    )


def _embedded(
    model: PipelineModel, steps: list[Step], directories: dict[str, str]
) -> Iterator[list[Told]]:
    clock, number, seen = FakeClock(), 0, 0
    assert model.directory is not None
    for name in directories.values():
        (model.directory / "in" / name).mkdir(parents=True)
    for step in steps:
        for _, stream, content in step.messages:
            place = model.directory / "in" / directories[stream]
            (place / f"{number:04}.xml").write_text(content, encoding="utf-8")
            number += 1
        clock.now = _START.timestamp() + step.clock + _HOLD
        runner = Runner(model, once=True, wall=clock)
        runner.run()
        runner.close()
        log = model.directory / "out" / "changes.jsonl"
        lines = read_log(log) if log.exists() else []
        yield _told(lines[seen:])
        seen = len(lines)


def _microseconds(seconds: float) -> int:
    return round((_START + timedelta(seconds=seconds)).timestamp() * 1_000_000)


def _buckets(model: PipelineModel, steps: list[Step]) -> Iterator[list[Told]]:
    (name,) = model.documents
    definition = definition_of(model, name)
    plan = make_plan(definition, buckets=3)
    extractor = Extractor(definition, plan)
    instances = {
        (unit.name, at): Instance(definition, unit, at, hold=0)
        for unit in plan.units
        for at in range(unit.buckets)
    }
    number = 0
    for step in steps:
        messages = []
        for at, stream, content in step.messages:
            time = _microseconds(at)
            messages.append(Message(0, stream, "insert", content.encode(), time, number, ""))
            number += 1
        sent: dict[tuple[str, int], list[Packet]] = {key: [] for key in instances}
        for unit, at, body in engine_packets(extractor.extract(messages), plan):
            if (unit, at) in sent:
                sent[unit, at].append(read_packet(body))
        changes: list[Change] = []
        for key, instance in instances.items():
            tick = Packet([], {}, _microseconds(step.clock))
            changes += instance.batch(sent[key]).changes
            changes += instance.batch([tick]).changes
        yield _told(change.to_dict() for change in changes)


def _both(example: Path, steps: list[Step], directories: dict[str, str]) -> list[list[Told]]:
    """The changes of each step, which are the same on both engines."""
    assert check(example).problems == []
    model = load(example)
    found = list(_embedded(model, steps, directories))
    assert list(_buckets(model, steps)) == found
    return found


def _date(seconds: float) -> str:
    moment = _START + timedelta(seconds=seconds)
    return moment.isoformat().replace("+00:00", "Z")


@pytest.fixture
def example(repository: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    source = repository / "examples" / request.param
    return Path(shutil.copy(source, tmp_path / source.name))


_DAY = 86_400


@pytest.mark.parametrize("example", ["purchase-to-pay/purchase-to-pay.yaml"], indirect=True)
def test_purchase_to_pay(example: Path) -> None:
    def sent(at: float, stream: str, inside: str) -> tuple[float, str, str]:
        return at, stream, f'<{stream[:-1]} at="{_date(at)}">{inside}</{stream[:-1]}>'

    steps = [
        Step(
            (sent(0, "orders", "<id>1</id>"), sent(60, "orders", "<id>2</id>"),
             sent(120, "invoices", "<id>I1</id><order>1</order>")),
            _DAY,
        ),
        Step((sent(2 * _DAY, "receipts", "<order>1</order>"),), 3 * _DAY),
        Step((), 6 * _DAY),  # order 2 is overdue
        Step(
            (sent(7 * _DAY, "receipts", "<order>2</order>"),
             sent(7 * _DAY + 60, "invoices", "<id>I2</id><order>2</order>")),
            8 * _DAY,
        ),
        Step((sent(9 * _DAY, "payments", "<invoice>I2</invoice>"),), 10 * _DAY),
        Step((), 40 * _DAY),  # I1 was not paid within 30 days
    ]  # fmt: skip
    found = _both(example, steps, {s: s for s in ("orders", "receipts", "invoices", "payments")})
    late = _date(120 + 30 * _DAY).replace("Z", ".000001Z")
    assert found == [
        [
            (_date(0), "not_received", "insert", "1", "message"),
            (_date(60), "not_received", "insert", "2", "message"),
            (_date(120), "without_goods", "insert", "I1", "1", "message"),
        ],
        [
            (_date(2 * _DAY), "not_received", "delete", "1", "message"),
            (_date(2 * _DAY), "overdue", "never", "1", "message"),
            (_date(2 * _DAY), "without_goods", "delete", "I1", "1", "message"),
        ],
        [(_date(60 + 5 * _DAY), "overdue", "insert", "2", "clock")],
        [
            (_date(7 * _DAY), "not_received", "delete", "2", "message"),
            (_date(7 * _DAY), "overdue", "delete", "2", "message"),
        ],
        [(_date(9 * _DAY), "paid_in_time", "insert", "I2", "message")],
        [(late, "paid_in_time", "never", "I1", "clock")],
    ]
    out = example.parent / "out"
    assert [line["op"] for line in read_log(out / "missed.jsonl")] == ["never"]
    assert {line["op"] for line in read_log(out / "alerts.jsonl")} == {"insert"}


@pytest.mark.parametrize("example", ["payments/alerts.yaml"], indirect=True)
def test_payments(example: Path) -> None:
    drawn = payments.transfers(seed=3, count=12)
    messages = [m for m in payments.messages(drawn) if m[1] != "returns"]
    steps = []
    for at, stream, content in messages:
        steps.append(Step(((at / 1000, stream, content),), at / 1000))
    end = messages[-1][0] / 1000 + payments.DEADLINE + 1
    steps.append(Step((), end))
    found = [told for each in _both(example, steps, dict(payments.STREAMS)) for told in each]
    overdue = {tx for _, view, op, tx, _ in found if (view, op) == ("overdue", "insert")}
    never = {tx for _, view, op, tx, _ in found if (view, op) == ("answered_in_time", "never")}
    assert overdue == never == {t.number for t in drawn if not t.in_time} != set()
    causes = {cause for _, view, op, _, cause in found if (view, op) == ("overdue", "insert")}
    assert causes == {"clock"}
    waiting = {tx for _, view, op, tx, _ in found if (view, op) == ("waiting", "delete")}
    assert waiting == {t.number for t in drawn if t.answered is not None}
