"""Work budgets: a view that makes one update look at too many rows is set aside, alone.

The reference is the same run without the view: other views must have the same rows and changes. The
budget counts rows, so every outcome here is the same on every machine.
"""

import json
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import axlog
from axlog.connect.channels.registry import Channels
from axlog.document.parser import Limits
from axlog.document.stream_update import StreamUpdate
from axlog.errors import QueryError
from axlog.live.internals import maintained, maintained_view, streams_of
from axlog.match.filters import Filter
from axlog.pipeline.model import PipelineModel
from axlog.runtime.bucket import Instance, instance_report
from axlog.runtime.definition import Definition
from axlog.runtime.embedded import Runner
from axlog.runtime.health import ProgressReport, RunnerReport
from axlog.runtime.packets import pack
from axlog.runtime.plan import Unit
from axlog.runtime.progress import Progress
from axlog.spark.batch_result import gather_batch
from axlog.views.change import Change

CALL = "<ax:call xmlns:ax='urn:axlog' stream='s'/>"
DOCUMENT = f"<a>{CALL}</a>"


def pairwise(count: int) -> str:
    """Branches that all differ from each other: the rows read grow with the count's power."""
    branches = "".join(f"[b/$x{i}]" for i in range(count))
    tests = " and ".join(f"$x{i} != $x{j}" for i in range(count) for j in range(i))
    return f"match /a{branches} where {tests} return $x0"


def delays(count: int) -> str:
    """Branches whose times are bound to each other by differences."""
    branches = "".join(f"[b/c{i}#t{i}]" for i in range(count))
    tests = " and ".join(f"t{i + 1} - t{i} >= 1" for i in range(count - 1))
    return f"match /a{branches} where {tests} return t0.time"


def same_key(count: int) -> str:
    """Branches that share one variable, and bind one more each: no product by its looks."""
    branches = "".join(f"[b[k/$k]/v{i}/$x{i}]" for i in range(count))
    return f"match /a{branches} return {', '.join(f'$x{i}' for i in range(count))}"


BOMBS = {
    "differences": (pairwise(8), "<b>{n}</b>"),
    "delays": (delays(6), "<b>" + "".join(f"<c{i}/>" for i in range(6)) + "</b>"),
    "one key": (
        same_key(6),
        "<b><k>1</k>" + "".join(f"<v{i}>{{n}}</v{i}>" for i in range(6)) + "</b>",
    ),
    "inside a block": (
        "match /a/b" + "".join(f"[c/$x{i}]" for i in range(9))
        + " return " + ", ".join(f"$x{i}" for i in range(9)),
        "<b>" + "".join(f"<c>{i}</c>" for i in range(6)) + "</b>",
    ),
}  # fmt: skip
OTHERS = {
    "values": "match /a/b//$x return $x",
    "join": "match /a[b/$x][b/c/$x] return $x",
    "not": "match /a/b/$x where $x != 3 return $x",
}
WAYS: dict[str, dict[str, Any]] = {
    "kept": {},
    "needed": {"keep": "needed"},
    "on disk": {"cache": "disk"},
    "every never": {"never": "all"},
}


def seen(changes: list[Change]) -> list[Any]:
    found = [(c.view, c.op, c.row.to_dict(), c.position) for c in changes if c.view != "bomb"]
    return sorted(found, key=repr)


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("way", WAYS)
def test_differential_the_others_do_not_notice(bomb: str, way: str) -> None:
    query, message = BOMBS[bomb]
    limits = Limits(work=2_000)
    doc = axlog.parse(
        DOCUMENT, views={"bomb": query, **OTHERS}, options=axlog.Options(limits=limits, **WAYS[way])
    )
    quiet = axlog.parse(DOCUMENT, views=OTHERS, options=axlog.Options(limits=limits, **WAYS[way]))
    for number in range(12):
        content = message.replace("{n}", str(number))
        fed = doc.feed("s", content, at=10 * number)
        assert seen(fed) == seen(quiet.feed("s", content, at=10 * number))
    for name in OTHERS:
        assert [(r.to_dict(), r.count) for r in doc.view(name).rows()] == [
            (r.to_dict(), r.count) for r in quiet.view(name).rows()
        ]
    broken = doc.view("bomb").broken
    assert broken is not None
    assert broken.code == "AX216"
    with pytest.raises(QueryError, match="AX216"):
        doc.view("bomb").rows()


def test_a_view_has_its_own_budget_though_it_shares_a_plan() -> None:
    """Equal queries are one plan; the member with the smaller budget is split off."""
    query = "match /a[b/k/$k][c/$k] return $k"
    doc = axlog.parse(DOCUMENT)
    large = doc.watch(query, "large")
    small = doc.watch(query, "small", work=5)
    other = doc.watch("match /a/c/$k return $k")
    for number in range(100):
        doc.feed("s", f"<b><k>{number}</k></b>")
    for number in (1, 2, 1, 2):
        doc.feed("s", f"<c>{number}</c>")
    assert small.broken is None  # one row a key
    heavy = "match /a[b/k/$x][c/$y] return $x, $y"
    wide = doc.watch(heavy, "wide")
    narrow = doc.watch(heavy, "narrow", work=5)
    changes = doc.feed("s", "<c>200</c>")
    assert narrow.broken is not None
    assert wide.broken is None
    assert {c.view for c in changes} == {other.name, "wide"}
    assert {row["x"] for row in wide.rows()} == set(map(str, range(100)))
    assert large.rows() == small.rows()
    assert [row["k"] for row in large.rows()] == ["1", "2"]
    again = doc.watch(heavy, "again", work=1_000)
    doc.feed("s", "<c>300</c>")
    assert again.rows() == wide.rows()


def test_a_large_update_may_read_in_proportion() -> None:
    """A budget bounds what an update costs beyond its own size."""
    doc = axlog.parse("<a><s/></a>", options=axlog.Options(limits=Limits(work=50)))
    view = doc.watch("match /a[s/b/$x][s/c/$x] return $x")
    many = "".join(f"<b>{n}</b><c>{n}</c>" for n in range(1_000))
    doc.update(f"insert nodes <s>{many}</s> into /a")
    assert view.broken is None
    assert {row["x"] for row in view.rows()} == set(map(str, range(1_000)))


def test_a_large_document_sets_a_product_aside() -> None:
    """The algebra, which keeps views over large documents, refuses a join before it is made."""
    doc = axlog.parse("<r>" + "<a/>" * 20_001 + "</r>")
    good = doc.watch("match /r/c#n return n.id")
    late = doc.watch("match /r[a#x][b#y] return x.id, y.id", "late")
    assert maintained_view(late).chosen.name == "adaptive"
    (change,) = doc.update(f"insert nodes ({'<b/>, ' * 10_000}<c/>) into /r")
    assert change.view == good.name
    assert late.broken is not None
    assert late.broken.code == "AX215"
    with pytest.raises(QueryError, match="AX215"):
        doc.watch("match /r[a#x][b#y] return x.id, y.id", "product").rows()
    assert good.rows() == [change.row]


def test_a_message_that_multiplies_loops_is_accepted() -> None:
    """Descendants below descendants: the generated code gives up, the engine counts."""
    steps = "//b" * 12
    doc = axlog.parse(DOCUMENT, views={"deep": f"match /a{steps}/$x return $x"})
    deep = "<b>" * 60 + "<c>1</c>" + "</b>" * 60
    changes = doc.feed("s", deep)
    assert sorted(change.row["x"] for change in changes) == ["b", "c"]
    (counts,) = axlog.parse(doc.xml()).watch(f"match /a{steps}/c#n return n.id").rows()
    assert counts.count > 10**11  # ways that loops inside loops would have tried


def test_a_batch_that_is_rolled_back_keeps_the_budget() -> None:
    doc = axlog.parse(DOCUMENT)
    view = doc.watch("match /a[b/$x][c/$y] return $x", "view", work=5)
    for number in range(100):
        doc.feed("s", f"<b>{number}</b>")
    with suppress(ValueError), doc.batch():
        doc.feed("s", "<b>x</b>")
        raise ValueError
    doc.feed("s", "<c>1</c>")
    assert view.broken is not None


def test_a_store_keeps_the_budget(tmp_path: Path) -> None:
    query = "match /a[b/$x][c/$y] return $x"
    with axlog.open(tmp_path / "store", DOCUMENT) as doc:
        doc.watch(query, "view", work=5)
        for number in range(100):
            doc.feed("s", f"<b>{number}</b>")
    for is_snapshot in (False, True):
        with axlog.open(tmp_path / "store") as doc:
            assert doc.view("view").work == 5
            assert doc.view("view").broken is None
            if not is_snapshot:
                doc.compact()
    with axlog.open(tmp_path / "store") as doc:
        doc.feed("s", "<c>1</c>")
        assert doc.view("view").broken is not None


def test_never_is_given_up_with_its_reason_and_rows_go_on() -> None:
    """The analysis of a view with many timed branches has a budget of its own."""
    message = "<b>" + "".join(f"<c{i}/>" for i in range(12)) + "</b>"
    doc = axlog.parse(DOCUMENT, views={"bomb": delays(12), "values": "match /a/b#t return t.time"})
    for number in range(3):
        doc.feed("s", message, at=10 * number)
    assert "too many ways" in str(doc.view("bomb").explain())
    assert [row["t.time"] for row in doc.view("values").rows()] == [0, 10, 20]
    assert list(doc.view("bomb").possible())  # one way for each row is found


def test_a_filter_that_exceeds_its_budget_is_removed() -> None:
    """Publishing goes on; the subscription gets everything, other filters hold."""
    branches = "".join(f"[c/$x{i}]" for i in range(9))
    tests = " and ".join(f"$x{i} < $x{i + 1}" for i in range(8))
    heavy, light = Filter(), Filter()
    heavy.add("heavy", f"match /b{branches} where {tests} and $x8 < $x0")
    light.add("light", "match /b/d")
    channel = Channels().make("orders")
    greedy = channel.subscribe("greedy", wanted=heavy)
    modest = channel.subscribe("modest", wanted=light)
    bomb = "<b>" + "".join(f"<c>{i}</c>" for i in range(9)) + "</b>"
    for content in ("<b/>", bomb, "<b/>", "<b><d/></b>"):
        channel.publish(StreamUpdate("orders", "insert", content))
    assert [entry.sequence for entry in greedy.read(10).entries] == [2, 3, 4]
    assert [entry.sequence for entry in modest.read(10).entries] == [4]


# Where it is said ---------------------------------------------------------------------------------


def pipeline(tmp_path: Path) -> dict[str, Any]:
    lines = [{"stream": "s", "insert": f"<b>{n}</b>", "at": n} for n in range(60)]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return {
        "engine": "embedded",
        "document": DOCUMENT,
        "sources": [{"kind": "jsonl", "path": str(tmp_path / "in.jsonl")}],
        "views": {
            "bomb": {"query": "match /a[b/$x][b/$y] return $x, $y", "work": 3},
            "values": "match /a/b/$x return $x",
        },
    }


def test_a_pipeline_says_which_view_is_set_aside(tmp_path: Path) -> None:
    runner = Runner(PipelineModel.model_validate(pipeline(tmp_path)), once=True)
    runner.run()
    health = RunnerReport(runner).health().plain()
    runner.close()
    said = {view["view"]: (view["status"], view["why"]) for view in health["views"]}
    assert health["status"] == "failed"
    assert said["values"] == ("ok", [])
    assert said["bomb"][0] == "failed"
    assert "more than 3 rows" in said["bomb"][1][0]


def test_an_added_view_that_is_set_aside_is_no_failure_of_the_run(tmp_path: Path) -> None:
    given = pipeline(tmp_path)
    del given["views"]["bomb"]
    runner = Runner(PipelineModel.model_validate(given), once=True)
    (instances,) = runner.instances.values()
    instances.documents[""].watch("match /a[b/$x][b/$y] return $x, $y", "added", work=3)
    runner.run()
    health = RunnerReport(runner).health()
    runner.close()
    assert health.status == 200
    assert health.plain()["status"] == "degraded"
    assert "more than 3 rows" in health.troubles[0]


def test_a_bucket_of_spark_says_it_too() -> None:
    definition = Definition(
        DOCUMENT, {"bomb": ("match /a[b/$x][b/$y] return $x, $y", None)}, work={"bomb": 3}
    )
    assert Definition.read(json.loads(json.dumps(definition.plain()))) == definition
    unit = Unit("views", ("bomb",), "whole", 1, "")
    instance = Instance(definition, unit, 0)
    for number in range(60):
        instance.doc.feed("s", f"<b>{number}</b>")
    said = instance_report(instance.batch([]), instance)
    body = pack({"told": [said], "instances": 1, "rows": 0, "waiting": 0, "state": 0})
    batch = gather_batch(0, [("views/0/x", body)])
    assert list(batch.set_aside) == ["bomb"]
    assert batch.set_aside["bomb"].startswith("AX216")
    report = ProgressReport()
    report(Progress(set_aside=batch.set_aside))
    assert report.health().status == 503
    assert "bomb" in report.health().failures[0]


# Views that come while others are kept ------------------------------------------------------------

QUERIES = [
    "match /r/s/a/$x return $x",
    "match /r[s/a/$x][s/b/$x] return $x",
    "match /r[s//$x#t][t/c/$x] return $x, t.time",
    "match /r/s[a/$x][not(b/$x)] return $x",
    "match /r[s/a/$x or t/c/$x] return $x",
    "match //a[$x] return $x",
    "match //s#n[a] return n.id",
    "match /r/t/c#n return n.cont",
    "//c[. = 3]",
    "match /r[s/a/$x][s/b/$y] where $x < $y return $x, $y",
    "match /r[not(//c)]",
]


def play(random: Random, doc: axlog.Document) -> list[Any]:
    stream = random.choice("st")
    names = {"s": "ab", "t": "c"}[stream]
    body = "".join(f"<{n}>{random.randrange(5)}</{n}>" for n in random.choices(names, k=2))
    return [(c.view, c.op, c.row.to_dict()) for c in doc.feed(stream, body)]


@pytest.mark.parametrize("seed", range(12))
def test_differential_views_that_come_later(seed: int) -> None:
    """A view added while others are kept is what it is when all start together."""
    calls = "".join(f"<{s}>{CALL.replace(chr(39) + 's' + chr(39), repr(s))}</{s}>" for s in "st")
    random = Random(seed)
    chosen = random.sample(QUERIES, 6)
    doc = axlog.parse(f"<r>{calls}</r>")
    messages = Random(seed + 1)
    for number, query in enumerate(chosen):
        doc.watch(query, f"v{number}")
        for _ in range(random.randrange(6)):
            play(messages, doc)
        if number > 2 and random.random() < 0.4:
            doc.unwatch(f"v{number - 2}")
    fresh = axlog.parse(doc.xml(), views={n: v.query for n, v in doc.views.items()})
    assert {n: [(r.to_dict(), r.count) for r in v.rows()] for n, v in doc.views.items()} == {
        n: [(r.to_dict(), r.count) for r in v.rows()] for n, v in fresh.views.items()
    }
    one, other = Random(seed + 2), Random(seed + 2)
    for _ in range(10):
        assert sorted(play(one, doc), key=repr) == sorted(play(other, fresh), key=repr)


def test_adding_a_view_leaves_no_work_for_the_next_message() -> None:
    """What the new view needs is evaluated and generated when it is added."""
    doc = axlog.parse(DOCUMENT, views={"values": "match /a/b/$x return $x"})
    for number in range(200):
        doc.feed("s", f"<b>{number}</b>")
    doc.watch("match /a[b/$x][c/$x] return $x", "join")
    engine, ways = maintained(doc).engine, dict(streams_of(doc).engine._ways)
    visited = engine.visited
    doc.feed("s", "<c>7</c>")
    assert engine.visited == visited
    assert dict(streams_of(doc).engine._ways) == ways
    assert [row["x"] for row in doc.view("join").rows()] == ["7"]
