"""Families on Spark: one plan for views that differ in constants; their table is in the buckets."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import axlog
from axlog.connect.sinks.jsonl import read_log
from axlog.connect.sources.memory import MemorySource
from axlog.document.stream_update import StreamUpdate
from axlog.live.document import Document
from axlog.live.options import Options
from axlog.pipeline.loader import load
from axlog.runtime import embedded
from axlog.runtime.pipeline_definition import plans_of
from axlog.samples.customers import customers, expected, orders, write, write_customers
from axlog.spark import pipeline as on_spark
from axlog.spark.streaming_query import Maintained, maintain
from axlog.views.change import Change

EXAMPLE = Path(__file__).parents[2] / "examples" / "customer-alerts" / "alerts.yaml"
DOCUMENT = '<r xmlns:ax="urn:axlog"><p><ax:call stream="p"/></p><q><ax:call stream="q"/></q></r>'
MONITOR = 'match /r[p/a[k/"{}"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= 3 return $x'
WITHIN = 'match /r[p/a[k/"{}"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= {} return $x'
OTHER = 'match /r/p/a[k != "{}"][n * 2 > 60]/x/$x return $x'
PRICE = "match /r/p/a[n > {}]/x/$x return $x"


def kept(path: Path) -> Counter[str]:
    """The changes of a sink, without their batches and positions."""
    return Counter(json.dumps([c["op"], c["row"]], sort_keys=True) for c in read_log(path))


@pytest.mark.spark
def test_customers_get_the_alerts_of_the_embedded_engine(spark: Any, tmp_path: Path) -> None:
    known, made = customers(120), orders(80, 120)
    models = {}
    for engine in ("embedded", "spark"):
        place = tmp_path / engine
        place.mkdir()
        text = EXAMPLE.read_text().replace("settings: {", "settings: {checkpoint: state, ")
        text = text.replace("engine: embedded", f"engine: {engine}")
        (place / "alerts.yaml").write_text(text)
        write(place / "in", known, made)
        models[engine] = load(str(place / "alerts.yaml"))
    runs = {"embedded": embedded.run, "spark": on_spark.run}
    for leaver in (None, made[0].client):  # the second run begins where the first one ended
        for engine, run in runs.items():
            left = [one for one in known if one.client != leaver]
            write_customers(tmp_path / engine / "in", left)
            run(models[engine], once=True)
        for name in ("dear", "late"):
            wanted = kept(tmp_path / "embedded" / "out" / f"{name}.jsonl")
            assert kept(tmp_path / "spark" / "out" / f"{name}.jsonl") == wanted
    alerts = expected(known, made)
    dear = list(read_log(tmp_path / "spark" / "out" / "dear.jsonl"))
    assert {one["row"]["order"] for one in dear if one["op"] == "insert"} == alerts["dear"]
    mine = {str(one.oid) for one in made if one.client == made[0].client}
    gone = {one["row"]["order"] for one in dear if one["op"] == "delete"}
    assert gone == alerts["dear"] & mine
    ((_, plan),) = plans_of(models["spark"])
    assert [unit.views for unit in plan.units] == [("dear",), ("in_time",)]
    assert plan.units[0].parameter == 0  # a customer is in one bucket
    assert plan.units[1].outputs == ("order",)
    assert "one plan for all members" in str(plan)


class Collected:
    """A sink that keeps all changes."""

    exactly_once = True

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        self.changes += changes

    def close(self) -> None:
        pass

    def shown(self) -> Counter[tuple[Any, ...]]:
        """The changes since the last call."""
        found, self.changes = self.changes, []
        return Counter((c.view, c.op, *c.row.to_dict().values()) for c in found)


def messages(start: int, stop: int) -> list[StreamUpdate]:
    found = []
    for at in range(start, stop):
        key = at % 13
        found.append(StreamUpdate("p", "insert", f"<a><k>{key}</k><n>{at}</n><x>{at}</x></a>", at))
        if at % 3:
            found.append(StreamUpdate("q", "insert", f"<b><x>{at - at % 5}</x></b>", at))
    return found


@pytest.mark.spark
def test_views_of_one_shape_are_one_unit_and_may_change_at_a_start(
    spark: Any, tmp_path: Path
) -> None:
    sent = messages(1, 40)

    def watched(keys: Sequence[int]) -> Document:
        doc = axlog.parse(DOCUMENT, options=Options(never="joins"))
        for key in keys:
            doc.watch(MONITOR.format(key), f"k{key}")
        for least in range(30, 40):
            doc.watch(PRICE.format(least), f"n{least}")
        for number in range(10):
            doc.watch(WITHIN.format(number, 4.5 + number / 2), f"w{number}")
            doc.watch(OTHER.format(number), f"o{number}")
        doc.watch("match /r/q/b/x/$x return $x", "plain")
        return doc

    def run(doc: Document, count: int) -> Maintained:
        query = maintain(
            spark, doc, [partial(MemorySource, tuple(sent[:count]))], [sink], once=True,
            checkpoint=str(tmp_path / "state"), buckets=3, hold=0.05,
        )  # fmt: skip
        query.wait()
        return query

    sink, half = Collected(), len(sent) // 2
    reference = watched(range(12))
    mine: list[Change] = []
    for name in reference.views:
        reference.view(name).subscribe(mine.append)
    for update in sent[:half]:
        reference.take(update)
    plan = run(watched(range(12)), half).plan
    # Families of equal durations, of different ones, of prices, of keys to leave out, and a view.
    assert sorted(unit.views[0][:18] for unit in plan.units) == [
        "plain", *["views of the shape"] * 4,
    ]  # fmt: skip
    assert sink.shown() == Counter((c.view, c.op, *c.row.to_dict().values()) for c in mine)
    mine.clear()
    reference.unwatch("k3")
    late = reference.watch(MONITOR.format(12), "k12")
    rows = [("k12", "insert", *row.to_dict().values()) for row in late.rows()]
    late.subscribe(mine.append)
    for update in sent[half:]:
        reference.take(update)
    run(watched([0, 1, 2, *range(4, 13)]), len(sent))
    wanted = Counter((c.view, c.op, *c.row.to_dict().values()) for c in mine)
    assert sink.shown() == wanted + Counter(rows)
    assert any(view == "k12" for view, *_ in wanted)


def test_a_family_in_each_of_many_documents_runs_embedded(tmp_path: Path) -> None:
    place = shutil.copy(EXAMPLE, tmp_path)
    text = Path(place).read_text().replace("name: customer-alerts", "document_key: client")
    Path(place).write_text(text)
    write(tmp_path / "in", customers(3), orders(3, 3))
    assert load(str(place)).embedded_for() is not None
