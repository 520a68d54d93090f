"""Which engines wake in a batch: those that get messages, and those whose deadline has passed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import pytest

from axlog.runtime.bucket import Instance
from axlog.runtime.bucket_engines import Buckets
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import ASIDE, Extractor
from axlog.runtime.message_rows import Values
from axlog.runtime.packet_rows import packed
from axlog.runtime.past import NOTHING
from axlog.runtime.plan import make_plan
from tests.runtime.test_spark_bucket import Memory

DOCUMENT = (
    """<r xmlns:ax="urn:axlog"><a><ax:call stream="a"/></a><b><ax:call stream="b"/></b></r>"""
)
SOON = "match /r[a/i/k/$k#s][b/i/k/$k#t] where t - s <= 50 return $k"


def test_engines_wake_with_messages_and_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = Definition(DOCUMENT, {"soon": (SOON, None)}, ("key a/i by k trusted",))
    plan = make_plan(definition, 16)
    extractor = Extractor(definition, plan)
    extractor.past = NOTHING
    buckets = Buckets(definition, plan, 0, "run", live=OrderedDict())
    stores: dict[str, Memory] = {}
    woken: list[Instance] = []
    apply = Instance.batch

    def batch(instance: Instance, packets: Sequence[Any]) -> Any:
        woken.append(instance)
        return apply(instance, packets)

    monkeypatch.setattr(Instance, "batch", batch)

    def send(stream: str, key: str, time: int) -> set[str]:
        """Apply a batch of one message; return the buckets whose engine woke."""
        row: Values = (
            0, stream, "insert", f"<i><k>{key}</k></i>".encode(), time * 1_000_000, time, "",
            None, None, None, None,
        )  # fmt: skip
        found = set()
        sent = [each for each in packed(extractor.extract([row]), plan) if each[0] != ASIDE]
        assert len(sent) == 16  # every bucket gets the time
        for bucket, body in sent:
            before = len(woken)
            buckets.take(f"{bucket}/0", stores.setdefault(f"{bucket}/0", Memory()), [body])
            if len(woken) > before:
                found.add(f"{bucket}/0")
        return found

    assert len(send("b", "first", 0)) == 16  # with the first batch of a process all engines report
    (x,), (y,), (z,) = send("a", "x", 10), send("a", "y", 20), send("a", "z", 30)
    assert len({x, y, z}) == 3
    assert send("b", "z", 65) == {z, x}  # 60 was the last moment for x
    assert send("b", "z", 75) == {z, y}
    assert send("b", "z", 76) == {z}
