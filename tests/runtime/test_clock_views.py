"""Views about the clock in pipelines: the wall clock passes without messages, on both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import axlog
from axlog.connect.sinks.memory import MemorySink
from axlog.pipeline.model import PipelineModel
from axlog.runtime.bucket import Instance
from axlog.runtime.definition import Definition
from axlog.runtime.embedded import Runner
from axlog.runtime.extraction import Extractor, Message
from axlog.runtime.order import Packet
from axlog.runtime.packet_rows import read_packet
from axlog.runtime.plan import make_plan
from axlog.testing import FakeClock
from axlog.views.change import Change
from tests.runtime.engine_packets import engine_packets

SHOP = """<shop xmlns:ax="urn:axlog"><orders><ax:call stream="orders"/></orders>
<shipped><ax:call stream="shipped"/></shipped></shop>"""
LATE = "match /shop[orders/order/$x#t][not(shipped/order/$x)] where now - t >= 2h return $x"
RECENT = "match /shop/orders/order/$x#t where now - t <= 1h return $x"
ORDERS: list[dict[str, Any]] = [
    {"stream": "orders", "at": 0, "insert": "<order>1</order>"},
    {"stream": "orders", "at": 60, "insert": "<order>2</order>"},
    {"stream": "shipped", "at": 90, "insert": "<order>1</order>"},
]


def _model(place: Path) -> PipelineModel:
    given = {
        "engine": "embedded",
        "document": SHOP,
        "sources": [{"kind": "memory", "updates": ORDERS}],
        "views": {
            name: {"query": query, "sinks": [{"kind": "memory"}]}
            for name, query in (("late", LATE), ("recent", RECENT))
        },
        "settings": {"clock": "wall", "hold": 1, "checkpoint": "state", "trigger": 0.01},
    }
    return PipelineModel.model_validate(given).located(place)


def _run(model: PipelineModel, clock: FakeClock) -> list[tuple[Any, ...]]:
    runner = Runner(model, once=True, wall=clock)
    runner.run()
    runner.close()
    found: list[Change] = []
    for sink in runner.sinks:
        assert isinstance(sink.sink, MemorySink)
        found += sink.sink.changes
    return [(c.view, c.op, c.row["x"], c.time, c.cause.kind if c.cause else None) for c in found]


def test_the_wall_clock_brings_and_takes_rows_without_messages(tmp_path: Path) -> None:
    model, clock = _model(tmp_path), FakeClock(100)
    assert _run(model, clock) == [
        ("late", "never", "1", 90, "message"),  # it shipped in time
        ("recent", "insert", "1", 0, "message"),
        ("recent", "insert", "2", 60, "message"),
    ]
    clock.advance(3600)
    assert _run(model, clock) == [
        ("recent", "delete", "1", 3600.000001, "clock"),
        ("recent", "delete", "2", 3660.000001, "clock"),
    ]
    assert _run(model, clock) == []
    clock.advance(7200)
    assert _run(model, clock) == [("late", "insert", "2", 7260, "clock")]


def _messages(updates: list[dict[str, Any]]) -> list[Message]:
    return [
        Message(0, each["stream"], "insert", each["insert"].encode(), each["at"] * 1_000_000,
                number, "")
        for number, each in enumerate(updates)
    ]  # fmt: skip


def test_a_rejected_message_moves_no_clock_in_a_bucket() -> None:
    doc = axlog.Document(SHOP.replace('"orders"/', '"orders" replace="@i" deletes="yes"/'))
    doc.watch("match /shop/orders/order/$x#t where now - t >= 2h return $x", "late")
    definition = Definition.of(doc)
    plan = make_plan(definition, buckets=3)
    (unit,) = plan.units
    assert unit.kind == "messages"
    sent = [
        {"stream": "orders", "at": 0, "insert": "<order i='1'>1</order>"},
        {"stream": "orders", "at": 7200, "insert": "<order>no key</order>"},
    ]
    instance = Instance(definition, unit, 0, hold=0)
    out = engine_packets(Extractor(definition, plan).extract(_messages(sent)), plan)
    bodies = [body for name, at, body in out if (name, at) == (unit.name, 0)]
    outcome = instance.batch([read_packet(body) for body in bodies])
    assert (len(outcome.refused), outcome.changes) == (1, [])
    later = instance.batch([Packet([], {}, 7200 * 1_000_000)])  # the wall clock
    assert [(c.op, c.row["x"], c.time) for c in later.changes] == [("insert", "1", 7200)]


def test_a_bucket_is_due_when_a_row_appears(tmp_path: Path) -> None:
    doc = axlog.Document(SHOP)
    doc.watch(LATE, "late")
    definition = Definition.of(doc)
    plan = make_plan(definition, buckets=3)
    (unit,) = plan.units
    assert (unit.kind, unit.key) == ("bindings", "$x")
    messages = _messages(ORDERS)
    found: list[Change] = []
    due = []
    for bucket in range(3):
        instance = Instance(definition, unit, bucket, hold=0)
        bodies = [
            body
            for name, at, body in engine_packets(
                Extractor(definition, plan).extract(messages), plan
            )
            if (name, at) == (unit.name, bucket)
        ]
        found += instance.batch([read_packet(body) for body in bodies]).changes
        due += [instance.due] if instance.due is not None else []
        found += instance.batch([Packet([], {}, 8000 * 1_000_000)]).changes
    assert due == [7260 * 1_000_000 - 1]
    told = {(c.op, c.row["x"], c.time) for c in found}
    assert told == {("never", "1", 90), ("insert", "2", 7260)}  # the first shipped in time


@pytest.mark.parametrize(
    ("query", "key"),
    [
        (LATE, "$x"),
        ("match /shop[orders/order/$x][not(shipped/order#h/$x)] where now - h <= 5 return $x",
         "$x"),
        ("match /shop[orders/order/$x][not(shipped/order#h)] where now - h <= 5 return $x", None),
        ("match /shop/orders/order/$x#t where now - t <= 5 return count() as n", None),
        ("match /shop/orders/order/$x#t where now - t <= 5 return $x, count() as n", "$x"),
    ],
)  # fmt: skip
def test_the_plan_splits_by_a_column_of_all_relations(query: str, key: str | None) -> None:
    doc = axlog.Document(SHOP)
    doc.watch(query, "v")
    (unit,) = make_plan(Definition.of(doc), buckets=3).units
    assert (unit.kind, unit.key) == ("bindings", key)
