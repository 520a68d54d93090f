"""Views that compute and group, in pipelines: policies for values, and the plan on Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import axlog
from axlog.cli.application import application
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


SHOP = (
    '<shop><a><ax:call xmlns:ax="urn:axlog" stream="a"/></a>'
    '<b><ax:call xmlns:ax="urn:axlog" stream="b"/></b></shop>'
)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("//order[s/$s]/t/$t return $s, sum($t) as total", "16 buckets, key $s, bindings travel"),
        ("//order return count() as n", "16 buckets, by message"),
        ("//order/t/$t return avg($t) as mean", "partial aggregates are merged on the driver"),
        ("//order[s/$s]/t/$t return upper-case($s) as up, max($t)", "partial aggregates by up"),
        (
            "/shop/a/order[k/$k][s/$s]/t/$t, /shop/b/order/k/$k return $s, sum($t) as g",
            "16 buckets, key $k, bindings travel (every relation that a stream feeds has the key;"
            " partial aggregates by s are merged on the driver)",
        ),
        (
            "/shop[a/order[k/$k]/t/$t][not(b/order/k/$k)] return sum($t) as open",
            "16 buckets, key $k",
        ),
        (
            "//order[s/$s]/t/$t return $s, sum($t) as g order by g descending limit 2",
            "key $s, bindings travel (every relation that a stream feeds has the key;"
            " the first 2 rows of each bucket are merged on the driver)",
        ),
        ("//order/t/$t return $t * 2 as c", "equal rows of buckets are merged on the driver"),
        (
            "/shop[a/order/t/$t][b/order/t/$u] return $t * $u as c",
            "16 buckets, keys $t (4 parts) x $u (4 parts), bindings travel",
        ),
        ("/shop[a/order/t#x/$t][b/order/t#y/$u] where y - x <= 1s return $t, $u", "16 buckets"),
        (
            "/shop[a/order[not(s)]/t#x/$t][b/order/t#y/$u][not(b/none)] where y - x <= 1s"
            " return $t, $u",
            "16 buckets, keys $t (4 parts) x $u (4 parts), bindings travel",
        ),
        ("/shop[a/order/k/$k][b/order[k/$k]/t/$t] return $t", "no column that splits it is shown"),
    ],
)
def test_the_plan_says_how_steps_are_spread(query: str, said: str) -> None:
    (unit,) = make_plan(Definition(SHOP, {"v": (f"match {query}", None)})).units
    assert said in str(unit)


def test_the_command_prints_the_plan_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        f"engine: spark\ndocument: '{SHOP}'\nsources: [{{kind: jsonl, path: in.jsonl}}]\n"
        "views: {n: 'match //order return count() as n'}\n"
    )
    done = CliRunner().invoke(application(["check"]), ["check", "--table", str(path)])
    assert done.exit_code == 0, done.output
    assert "plan: document: n: 16 buckets, by message, bindings travel" in done.stdout


def test_final_steps_need_a_place_on_the_driver() -> None:
    views: dict[str, tuple[str, str | None]] = {"n": ("match //order return count() as n", None)}
    (unit,) = make_plan(Definition(SHOP, views, final_steps=False)).units
    assert (unit.buckets, unit.cut) == (1, None)
    assert "no place" in unit.reason
    added = Definition(SHOP, {**views, "m": views["n"]}, groups=(("n",), ("m",)))
    first, second = make_plan(added).units
    assert (first.buckets, second.buckets) == (16, 1)
