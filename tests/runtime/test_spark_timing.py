"""Time that passes by itself: who is due, documents that hear of each other's time, timers."""

import json
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axlog.connect.kinds import Origin
from axlog.connect.sources.jsonl import JsonLinesOptions, JsonLinesSource
from axlog.runtime.order import Order, Packet, lane_of
from axlog.runtime.plan import make_plan
from axlog.runtime.timers import Due
from axlog.spark import maintain
from axlog.views.change import Change
from axlog.views.net_changes import net
from tests.amounts import cases
from tests.runtime.test_spark_bucket import (
    Memory,
    _without_document,
    cut,
    definition_of,
    plain,
    run,
    updates,
)
from tests.spark.test_spark_streaming import Collecting

KEYS = ("key a/item by k trusted", "key b/item by k trusted")
FIRST = (("a", "k1"), ("a", "k2"), ("b", "k2"))


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9_000_000)), max_size=12))
def test_who_is_due_is_who_was_put_before(puts: list[tuple[str, int]]) -> None:
    due, naive = Due(Memory()), list(puts)
    for name, at in puts:
        due.put(name, at)
    for passed in range(0, 10_000_001, 1_250_000):
        expected = {name for name, at in naive if at < passed}
        found = due.take(passed)
        assert set(found) <= expected  # one that was put twice into a slot is due at the later
        naive = [(name, at) for name, at in naive if at >= passed]
        first = due.first()
        assert first is None or first >= passed
    assert due.first() is None


@settings(max_examples=cases(8))
@given(st.integers(0, 10_000))
def test_time_passes_for_all_documents(seed: int) -> None:
    """A message for one document makes a row of another impossible, as with the runner."""
    random = Random(seed)
    definition = definition_of("time", facts=KEYS)
    messages = [m for m in updates(random, 60, documents=5) if b"<k>" in m.content]
    firsts = {(m.document, m.stream, m.content[:14]): m for m in reversed(messages)}
    messages = sorted(firsts.values(), key=lambda m: m.number)
    batches = list(cut(random, messages, 5))
    told, _ = run(definition, make_plan(definition, documents=True), batches, key="k",
                  forgets=random)  # fmt: skip
    documents: dict[str, Any] = {}
    clock = 0.0
    for batch, found in zip(batches, told, strict=True):
        heard: dict[str, list[Change]] = {}
        for m in sorted((m for p in batch for m in p), key=lambda m: (m.time, m.stream, m.number)):
            key, at = str(m.document), (m.time or 0) / 1e6
            doc = documents.setdefault(key, definition.make())
            heard.setdefault(key, []).extend(doc.feed(m.stream, m.content, at=at))
            clock = max(clock, at)
        for key, doc in documents.items():
            if doc.clock < clock:
                heard.setdefault(key, []).extend(doc.advance(clock))
        expected = {key: plain(list(net(changes))) for key, changes in heard.items()}
        mine: dict[str, Counter[str]] = {key: Counter() for key in expected}
        for change in found:
            mine.setdefault(change.row["document"], Counter())[_without_document(change)] += 1
        assert {k: c for k, c in mine.items() if c} == {k: c for k, c in expected.items() if c}
    assert any(change.op == "never" for found in told for change in found)


def test_what_waits_goes_when_its_time_has_passed() -> None:
    order = Order(("a", "b"), {}, hold=None)
    item = [7, "a", 1, "bindings", [], None, lane_of(0, "a"), "m", 1, None, "a"]
    assert order.take([Packet([item], {})]) == ([], [])
    assert order.take([Packet([], {}, passed=6)]) == ([], [])
    assert order.take([Packet([], {}, passed=7)]) == ([item], [])
    assert order.clock == 7


def write(path: Path, messages: list[tuple[str, str]], at: float) -> None:
    with path.open("a", encoding="utf-8") as lines:
        for stream, key in messages:
            insert = f"<item><k>{key}</k></item>"
            lines.write(json.dumps({"stream": stream, "insert": insert, "at": at}) + "\n")


@pytest.mark.spark
@pytest.mark.system
def test_deadlines_pass_while_nothing_comes(spark: Any, tmp_path: Path) -> None:
    """With the wall clock a timer makes rows never and lets their state go; no message is needed.

    What a run heard of the time is heard again by one that goes on from its checkpoint.
    """
    definition = definition_of("time", "some", facts=KEYS)
    path = tmp_path / "in.jsonl"
    place = str(tmp_path / "checkpoint")
    sink = Collecting()
    write(path, [*FIRST, ("b", "k3")], time.time() + 5)

    def lines() -> JsonLinesSource:
        return JsonLinesSource(JsonLinesOptions(path=str(path)), Origin())

    def start(once: bool) -> Any:
        return maintain(
            spark, definition, [lines], [sink], checkpoint=place,
            clock="wall", hold=0.5, buckets=2, once=once, report=sink.reports.append,
        )  # fmt: skip

    start(once=True).wait()
    assert said(sink, "insert") == {("time", "k2")}
    query = start(once=False)
    until = time.monotonic() + 60
    while not said(sink, "never") and time.monotonic() < until and query.is_active:
        time.sleep(0.2)
    query.stop()
    assert said(sink, "never") == {("time", "k1")}
    assert sum(report.messages for report in sink.reports) == 4
    with_data = [report for report in sink.reports if report.messages]
    assert sink.reports[-1].clock > with_data[-1].clock


def said(sink: Collecting, op: str) -> set[tuple[str | None, str]]:
    return {(c.view, c.row["x"]) for c in sink.changes if c.op == op}
