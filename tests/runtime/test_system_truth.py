"""The truth of systems of documents, against runs of them, and where users read it."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.document.stream_update import StreamUpdate
from axlog.errors import PipelineError
from axlog.future.unknowns import ValueNeeds
from axlog.pipeline.model import PipelineModel
from axlog.query.truth import Truth
from axlog.runtime import system_truth
from axlog.runtime.checkpoint import Input
from axlog.runtime.embedded import Runner
from axlog.runtime.health import RunnerReport
from axlog.runtime.system_truth import SystemTruth
from axlog.server.pipelines import observe_runner
from axlog.server.row_lists import Asked
from lab.laws.systems_law import check_systems, make_systems_case

AX = 'xmlns:ax="urn:axlog"'


@pytest.mark.parametrize("first", range(0, 20, 5))
def test_verdicts_are_those_of_runs(first: int) -> None:
    """`python -m lab fuzz --law systems` goes on."""
    assert sum(check_systems(make_systems_case(Random(first + n))) for n in range(5)) > 5


def _without_conditions(patch: pytest.MonkeyPatch) -> None:
    made = system_truth._row_tree
    patch.setattr(system_truth, "_row_tree", lambda c, row, needs: made(c, row, ValueNeeds()))


def _with_one_row(patch: pytest.MonkeyPatch) -> None:
    add = system_truth._Rows.add
    patch.setattr(
        system_truth._Rows, "add", lambda rows, *one: None if rows.trees else add(rows, *one)
    )


def _with_the_last_row(patch: pytest.MonkeyPatch) -> None:
    add = system_truth._Rows.add

    def keep_last(rows: system_truth._Rows, *one: Any) -> None:
        add(rows, *one)
        rows.trees = rows.trees[-1:]

    patch.setattr(system_truth._Rows, "add", keep_last)


def _with_free_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(system_truth, "MOST_ROWS", 1)


@pytest.mark.parametrize(
    ("breaks", "seed"),
    [
        (_without_conditions, 6),
        (_with_one_row, 2),
        (_with_the_last_row, 23),
        (_with_free_rows, 23),
    ],
)
def test_the_law_notices(
    breaks: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What wires carry: conditions on unknown values, several rows, and known values in each."""
    case = make_systems_case(Random(f"systems:{seed}"))
    assert check_systems(case)
    breaks(monkeypatch)
    with pytest.raises(AssertionError, match=r"has no row|has a row"):
        check_systems(case)


def chain(*second: str, first: str = "match /a/in/b/$x return $x", **more: Any) -> PipelineModel:
    """A document whose view feeds another."""
    return PipelineModel.model_validate(
        {
            "engine": "embedded",
            "documents": {
                "a": {
                    "document": f'<a><c><k>1</k></c><gate><ax:call {AX} stream="go"/></gate>'
                    f'<in><ax:call {AX} stream="in"/></in></a>',
                    "views": {"v": first},
                },
                "b": {
                    "document": f'<b><ax:call {AX} stream="rows"/></b>',
                    "streams": {"rows": {"view": "a.v"}},
                    "views": {f"v{at}": query for at, query in enumerate(second)},
                    **more,
                },
            },
        }
    )


def truths(model: PipelineModel) -> list[str | None]:
    """The truth of the views of the second document."""
    found = SystemTruth(model).verdicts()
    return [
        None if one.truth is None else one.truth.value
        for view, one in found.items()
        if view.startswith("b.")
    ]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # the shape of rows
        ("match /a/in/b/$x return $x", "match /b/other", "never"),
        ("match /a/in/b/$x return $x", "match /b/row/x/$x return $x", "possible"),
        ("match /a/in/b/$x return $x", "match /b/row/y", "never"),
        ("match /a/in/b/$x return $x", "match /b/row/@key", "possible"),
        ("match /a/in/b/$x return $x", "match /b/row/x/z", "never"),
        ("match /a/in/b#t return t.cont", 'match /b/row/*/z[. = "1"]', "possible"),
        ("match /a/in/b#t return t.val", "match /b/row/*/z", "never"),
        ("match /a/in/b/$x return count() as n", "match /b/row[n > 5]", "possible"),
        ("match /a/in/b/$x return count() as n", "match /b/row/x", "never"),
        # known values, and conditions on unknown ones
        ("match /a[gate/go]/c/k/$x return $x", 'match /b/row/x/"1"', "possible"),
        ("match /a[gate/go]/c/k/$x return $x", 'match /b/row/x/"2"', "never"),
        ('match /a/in/b/$x where $x != "1" return $x', 'match /b/row/x/"1"', "never"),
        ('match /a/in/b/$x where $x != "1" return $x', 'match /b/row[x = "2"]', "possible"),
        ("match /a/in/b[n = $x] where $x > 5 return $x", "match /b/row[x < 3]", "never"),
        ("match /a/in/b[n = $x] where $x > 5 return $x", "match /b/row[x < 7]", "possible"),
        # joins inside one row, and between rows
        ("match /a/in[b/$x][d/$x] return $x", 'match /b[row/x/"1"][row/x/"2"]', "possible"),
        ("match /a/in[b/$x][d/$x] return $x", 'match /b/row[x/"1"][x/"2"]', "never"),
        ('match /a/in/b[$x][y/$z] where $z != "1" return $x, $z',
         'match /b[row/x/$v][row/z/$v] where $v = "1" return $v', "never"),
        # a value that must equal a constant is as good as known
        ('match /a/in/b[n = $x][m = $y] where $x = "1" and $y = "1" and $x != $y return $x, $y',
         "match /b/row", "never"),
        ("match /a/in/b[n = $x][m = $y] where $y < 2 and $x != $y return $x, $y",
         'match /b/row[x/"1"][y = 1]', "possible"),
        ("match /a/in/b[n = $x][m = $y] where $y < 2 and $x != $y return $x, $y",
         'match /b/row[x/"1"][y/"1"]', "never"),
        # `not`: the rows without it
        ("match /a/in/b[not(d)]/$x return $x", "match /b[not(row/x)]/row/y", "never"),
    ],
)  # fmt: skip
def test_generalised_rows_travel_along_the_wires(first: str, second: str, expected: str) -> None:
    assert truths(chain(second, first=first)) == [expected]


def test_other_sources_open_a_stream_and_lists_leave_it_undecided() -> None:
    source = [{"kind": "memory", "updates": []}]
    assert truths(chain("match /b/other", sources=source)) == ["possible"]
    lists = chain("match /b/other", updates=source)
    assert truths(lists) == [None]
    assert "lists of updates" in SystemTruth(lists).verdict("b.v0").reasons[0]


def test_a_cycle_carries_conditions_to_its_fixpoint() -> None:
    model = chain("match /b[row/x/$x] return $x", "match /b/row/x/$y return $y")
    written = model.model_dump(mode="json", exclude_unset=True)
    written["documents"]["a"]["streams"] = {"go": {"view": "b.v0"}}
    written["documents"]["a"]["views"] = {
        "v": 'match /a[in/b/$x or gate/row/x/$x] where $x != "1" return $x',
        "one": 'match /a/gate/row/x/"1"',
        "two": 'match /a/gate/row/x/"2"',
    }
    found = SystemTruth(PipelineModel.model_validate(written)).verdicts()
    assert found["a.one"].truth is Truth.NEVER
    assert found["a.two"].truth is Truth.POSSIBLE


def test_documents_of_a_key_bring_their_key() -> None:
    model = chain('match /b/row[document/"7"][x]', "match /b/row/key")
    written = model.model_dump(mode="json", exclude_unset=True)
    written["documents"]["a"]["document_key"] = "@of"
    assert truths(PipelineModel.model_validate(written)) == ["possible", "never"]


def test_an_unknown_view_is_an_error() -> None:
    with pytest.raises(PipelineError, match="AX854"):
        SystemTruth(chain("match /b/row")).verdict("b.other")


# Where users read it ------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path: Path) -> Path:
    model = chain("match /b/row/x/$x return $x", "match /b/other")
    content = model.model_dump(mode="json", exclude_unset=True)
    content["documents"]["a"]["streams"] = {"in": {"source": {"kind": "jsonl", "path": "in"}}}
    (tmp_path / "in").write_text("")
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_commands_say_it(written: Path) -> None:
    run, app = CliRunner(), application()
    never = json.loads(run.invoke(app, ["truth", str(written), "--view", "b.v1", "--json"]).stdout)
    assert never["truth"] == "never"
    assert never["reasons"] == [
        "the stream 'rows' brings only rows of the view a.v, and none of them fits"
    ]
    some = json.loads(run.invoke(app, ["truth", str(written), "--view", "b.v0", "--json"]).stdout)
    assert some["possible"] == [
        {"row": {"x": None}, "needs": [{"stream": "rows", "pattern": "row/x/$x"}]}
    ]
    assert run.invoke(app, ["truth", str(written)]).exit_code == 2
    assert run.invoke(app, ["truth", str(written), "match /a", "--view", "b.v0"]).exit_code == 2
    told = run.invoke(app, ["check", str(written), "--json"])
    assert told.exit_code == 0
    (problem,) = [json.loads(line) for line in told.stdout.splitlines() if "AX843" in line]
    assert problem["level"] == "warning"
    assert "the view b.v1 can never have a row: the stream 'rows'" in problem["message"]


def test_check_names_the_views_whose_never_a_sink_waits_for_in_vain(tmp_path: Path) -> None:
    sink = {"kind": "jsonl", "path": "{view}.jsonl", "ops": ["never"]}
    both = "match /shop[orders/order/oid/$x#t][shipped/order/oid/$x#u]"
    content = {
        "document": '<shop xmlns:ax="urn:axlog"><orders><ax:call stream="o"/></orders>'
        '<shipped><ax:call stream="s"/></shipped></shop>',
        "facts": ["key orders/order by oid trusted"],
        "streams": {name: {"source": {"kind": "jsonl", "path": "in"}} for name in "os"},
        "sinks": {"log": sink},
        "views": {
            "on_time": {"query": f"{both} where u - t <= 2h return $x", "sinks": [sink]},
            "many": {"query": f"{both} return $x, count() as n", "sinks": ["log", dict(sink)]},
            "one": {"query": "match /shop/orders/order/oid/$x return $x", "sinks": ["log"]},
            "rows": {
                "query": "match /shop/orders/order/oid/$x return $x",
                "sinks": [{"kind": "jsonl", "path": "rows.jsonl"}],
            },
        },
    }
    (tmp_path / "in").write_text("")
    path = tmp_path / "p.yaml"
    path.write_text(json.dumps(content))
    told = CliRunner().invoke(application(), ["check", str(path), "--json"])
    found = [json.loads(line) for line in told.stdout.splitlines() if "AX844" in line]
    assert [one["level"] for one in found] == ["warning"] * 2
    assert "the view many takes" in found[0]["message"]
    assert "the view one takes" in found[1]["message"]


def test_health_and_the_page_say_it_as_the_system_runs() -> None:
    """Once the gate has ended, nothing more comes over the wire."""
    model = chain("match /b/row/x/$x return $x", 'match /b/row/x/"2"',
                  first="match /a[gate/go]/c/k/$x return $x")  # fmt: skip
    runner = Runner(model, once=True)
    try:
        health = {view.view: view for view in RunnerReport(runner).health().views}
        assert (health["v0"].truth, health["v1"].truth) == ("possible", "never")
        assert "none of them fits" in health["v1"].never[0]
        plain = health["v1"].plain()
        assert (plain["truth"], plain["never"]) == ("never", list(health["v1"].never))
        end = Input("", StreamUpdate("go", "end", ""), 1)
        runner.system.feed(runner.instances, {"a": [end]})
        health = {view.view: view for view in RunnerReport(runner).health().views}
        assert (health["v"].truth, health["v0"].truth) == ("never", "never")
        assert "which cannot get any" in health["v0"].never[0]
        shown = observe_runner(runner).state(Asked("b", "v0"))["shown"]
        assert shown["truth"] == "never"
        assert "rows of the view a.v" in shown["note"]
    finally:
        runner.close()
