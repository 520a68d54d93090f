"""Views that compute and group, in pipelines: policies for values, and the plan on Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import axlog
from axlog.connect.protocol import Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.errors import PipelineError
from axlog.pipeline.model import PipelineModel
from axlog.runtime.definition import Definition
from axlog.runtime.embedded import Runner
from axlog.runtime.plan import make_plan

DOCUMENT = '<shop><ax:call xmlns:ax="urn:axlog" stream="orders"/></shop>'
TOTALS = "match //order[client/$c]/total/$t return $c, sum($t) as total"
COUNT = "match //order return count() as n"


def _model(place: Path, policy: str) -> PipelineModel:
    given = {
        "engine": "embedded",
        "document": DOCUMENT,
        "sources": [{"kind": "jsonl", "path": "in.jsonl"}],
        "views": {
            "totals": {"query": TOTALS, "on_value_error": policy},
            "count": {"query": COUNT, "sinks": [{"kind": "memory"}]},
        },
        "settings": {"checkpoint": "state"},
    }
    return PipelineModel.model_validate(given).located(place)


def test_a_message_that_a_view_rejects_is_a_dead_letter(tmp_path: Path) -> None:
    orders = [f"<order><client>A</client><total>{t}</total></order>" for t in ("1", "x", "2")]
    lines = [json.dumps(StreamUpdate("orders", "insert", order).plain()) for order in orders]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    refused: list[Refusal] = []
    runner = Runner(_model(tmp_path, "reject"), once=True)
    runner.on_refused = refused.append
    runner.run()
    rows = {change.view: change.row.to_dict() for change in runner.all_rows()}
    runner.close()
    assert [one.error.split(":")[0] for one in refused] == ["FORG0001"]
    assert rows == {"totals": {"c": "A", "total": 3}, "count": {"n": 2}}


def test_a_checkpoint_keeps_the_policy_of_its_views(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("")
    Runner(_model(tmp_path, "reject"), once=True).close()
    with pytest.raises(PipelineError, match=r"on_value_error .* of the view document\.totals"):
        Runner(_model(tmp_path, "null"), once=True)


def test_a_view_that_rejects_messages_shares_them_with_all_views() -> None:
    doc = axlog.parse(DOCUMENT)
    doc.watch(TOTALS, "totals", on_value_error="reject")
    doc.watch(COUNT, "count")
    definition = Definition.of(doc)
    assert Definition.read(definition.plain()) == definition
    (unit,) = make_plan(definition).units
    assert (unit.kind, unit.views, unit.buckets) == ("messages", ("totals", "count"), 1)
    assert "totals rejects messages" in str(unit)
