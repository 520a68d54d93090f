"""A view whose rows explode is set aside alone: the document, the log and the other views go on.

The reference is the same run without the view: what other views tell and have must not differ, nor
may the document, whatever is kept and however the updates come.
"""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

import axlog
from axlog.document.parser import Limits
from axlog.errors import QueryError
from axlog.live.verification import verify
from axlog.pipeline.model import PipelineModel
from axlog.runtime.bucket import Instance
from axlog.runtime.definition import Definition
from axlog.runtime.embedded import Runner
from axlog.runtime.health import RunnerReport
from axlog.runtime.order import Lane, Packet, lane_of
from axlog.runtime.packets import pack, unpack
from axlog.runtime.plan import Unit
from axlog.server.monitoring import DocumentsReport
from axlog.store.files import DiskFiles
from axlog.views.change import Change
from tests.amounts import cases

CALLS = "".join(
    f"<{s}><ax:call xmlns:ax='urn:axlog' stream='{s}' deletes='D'/></{s}>" for s in "st"
)
BOMB = "match /a[s/b/$x][t/c/$y][s/b/$z] return $x, $y, $z"
OTHERS = {
    "join": "match /a[s/b/$x][t/c/$x] return $x",
    "shared": "match /a[s/b/$x][not(t/c/$x)] return $x",
    "values": "match /a/s/b/$x return $x",
}
NODES = {"content": "match /a/s/b#t return t.cont", "sibling": "//b[following-sibling::b]"}
LIMITS = Limits(rows=60)


def document(deletes: str = "yes") -> str:
    return f"<a>{CALLS.replace('D', deletes)}</a>"


def messages(random: Random, count: int) -> list[tuple[str, str, str]]:
    """Updates of both streams, more and more values."""
    found = []
    for number in range(count):
        stream = random.choice("st")
        inner = {"s": "b", "t": "c"}[stream]
        if random.random() < 0.15:
            found.append((stream, "delete", f'match /{inner}["{random.randrange(number + 1)}"]'))
        else:
            body = "".join(
                f"<{inner}>{random.randrange(number + 2)}</{inner}>"
                for _ in range(random.choice((1, 1, 2)))
            )
            found.append((stream, "insert", body))
    return found


def told(changes: list[Change]) -> list[Any]:
    found = [(c.view, c.op, c.row.to_dict(), c.position) for c in changes if c.view != "bomb"]
    return sorted(found, key=repr)


def play(doc: Any, updates: list[tuple[str, str, str]]) -> list[Any]:
    """What each update tells of the views but one."""
    heard = []
    for at, (stream, action, content) in enumerate(updates, 1):
        if action == "insert":
            heard.append(told(doc.feed(stream, content, at=at)))
        else:
            heard.append(told(doc.delete(stream, content, at=at)))
    return heard


def rows(doc: Any) -> dict[str, Any]:
    return {n: [(r.to_dict(), r.count) for r in v.rows()] for n, v in doc.views.items()
            if n != "bomb"}  # fmt: skip


WAYS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "kept": (OTHERS, {}),
    "with nodes": ({**OTHERS, **NODES}, {}),
    "needed": (OTHERS, {"keep": "needed"}),
    "on disk": (OTHERS, {"keep": "needed", "cache": "disk"}),
    "tuned": (OTHERS, {"tune": "auto"}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", [True, False])
def test_differential_the_others_do_not_notice(way: str, first: bool) -> None:
    others, options = WAYS[way]
    is_needed = options.get("keep") == "needed"
    for seed in range(cases(2)):
        updates = [u for u in messages(Random(seed), 40) if not (is_needed and u[1] == "delete")]
        xml = document("no" if is_needed else "yes")
        views = {"bomb": BOMB, **others} if first else {**others, "bomb": BOMB}
        doc = axlog.parse(xml, views=views, options=axlog.Options(limits=LIMITS, **options))
        quiet = axlog.parse(xml, views=others, options=axlog.Options(limits=LIMITS, **options))
        assert play(doc, updates) == play(quiet, updates)
        assert rows(doc) == rows(quiet)
        if not is_needed:
            assert doc.xml() == quiet.xml()
        doc.tune()
        quiet.tune()
        assert play(doc, updates[:0]) == []
        late = [(s, a, c) for s, a, c in messages(Random(seed + 100), 10) if a == "insert"]
        moved = [(s, a, c.replace(">", ">9", 1)) for s, a, c in late]
        heard = [told(doc.feed(s, c, at=1000 + n)) for n, (s, _, c) in enumerate(moved)]
        expected = [told(quiet.feed(s, c, at=1000 + n)) for n, (s, _, c) in enumerate(moved)]
        assert heard == expected
        broken = doc.view("bomb").broken
        assert broken is not None
        assert broken.code == "AX215"
        with pytest.raises(QueryError, match="AX215"):
            doc.view("bomb").rows()
        assert "set aside" in repr(doc.view("bomb"))
        doc.advance(5000)


def test_statements_that_explode_a_view() -> None:
    """By the document face, inside a block, at once: the update is applied whole."""
    doc = axlog.parse("<a><s/><t/></a>", options=axlog.Options(limits=LIMITS))
    good, bomb = doc.watch(OTHERS["join"], "join"), doc.watch(BOMB, "bomb")
    many = "".join(f"<b>{n}</b>" for n in range(40))
    doc.update(f"insert nodes (<c>1</c>, <c>2</c>) into /a/t; insert node <s>{many}</s> into /a")
    assert bomb.broken is not None
    assert [row["x"] for row in good.rows()] == ["1", "2"]
    (change,) = doc.update("insert node <c>3</c> into /a/t")
    assert change.row["x"] == "3"
    again = doc.watch(BOMB, "again")  # the same program: it explodes by itself, and alone
    with pytest.raises(QueryError, match="AX215"):
        again.rows()
    doc.unwatch("again")
    doc.update("delete nodes /a/s/b[. > 2]")
    doc.unwatch("bomb")
    back = doc.watch(BOMB, "bomb")  # the way back
    assert back.broken is None
    left = ("0", "1", "2"), ("1", "2", "3"), ("0", "1", "2")
    assert {row.values_ for row in back.rows()} == set(product(*left))
    assert [row["x"] for row in good.rows()] == ["1", "2"]


def test_a_store_keeps_it_aside(tmp_path: Path) -> None:
    """By the log, by a snapshot; verify says so; the way back is logged."""
    views = {**OTHERS, "bomb": BOMB}
    for keep in ("all", "needed"):
        place = tmp_path / keep
        xml = document("no")
        updates = [u for u in messages(Random(3), 40) if u[1] == "insert"]
        quiet = axlog.parse(xml, views=OTHERS, options=axlog.Options(keep=keep))
        expected = play(quiet, updates)
        with axlog.open(
            place, xml, views=views, sync="off", options=axlog.Options(keep=keep, limits=LIMITS)
        ) as store:
            assert play(store, updates) == expected
            assert store.view("bomb").broken is not None
        for number, how in enumerate(("log", "snapshot", "again"), 100):
            with axlog.open(place) as store:
                broken = store.view("bomb").broken
                assert broken is not None
                assert broken.code == "AX215"
                assert rows(store) == rows(quiet), how
                assert told(store.feed("t", f"<c>{number}</c>", at=number)) == told(
                    quiet.feed("t", f"<c>{number}</c>", at=number)
                )
                if how != "again":
                    store.snapshot()
        found = {one.view: one for one in verify(DiskFiles(place)).views}
        assert not found["bomb"].is_right
        assert "set aside" in str(found["bomb"].reason)
        with axlog.open(place) as store:
            store.unwatch("bomb")
        assert all(one.is_right or keep == "needed" for one in verify(DiskFiles(place)).views)


def report_of_document(tmp_path: Path, updates: list[Any]) -> Any:
    doc = axlog.parse(
        document("no"), views={**OTHERS, "bomb": BOMB}, options=axlog.Options(limits=LIMITS)
    )
    play(doc, updates)
    return DocumentsReport({"w": doc})


def report_of_pipeline(tmp_path: Path, updates: list[Any]) -> Any:
    lines = [{"stream": s, "insert": c, "at": at} for at, (s, _, c) in enumerate(updates)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    big = "".join(f"<{t}>{n}</{t}>" for t in "bc" for n in range(200))
    written = {
        "engine": "embedded",
        "document": document("no").replace("<s>", f"<s>{big}").replace("<t>", f"<t>{big}"),
        "sources": [{"kind": "jsonl", "path": "in.jsonl"}],
        "views": {name: {"query": query, "sinks": [{"kind": "memory"}]}
                  for name, query in {**OTHERS, "bomb": BOMB}.items()},
    }  # fmt: skip
    runner = Runner(PipelineModel.model_validate(written).located(tmp_path), once=True)
    runner.run()
    return RunnerReport(runner)


@pytest.mark.parametrize("make", [report_of_document, report_of_pipeline])
def test_health_and_metrics_say_it(make: Callable[..., Any], tmp_path: Path) -> None:
    updates = [u for u in messages(Random(5), 40) if u[1] == "insert"]
    report = make(tmp_path, updates)
    health = report.health()
    assert health.status == 503
    states = {view.view: (str(view.state), view.reasons) for view in health.views}
    state, reasons = states.pop("bomb")
    assert state == "failed"
    assert "set aside" in reasons[-1]
    assert {state for state, _ in states.values()} == {"ok"}
    aside = {s.labels["view"]: s.value for s in report.samples() if s.name == "axlog_view_aside"}
    assert aside == {"bomb": 1, **dict.fromkeys(OTHERS, 0)}


def items(updates: list[tuple[str, str, str]]) -> list[Packet]:
    """Whole messages, one a batch."""
    return [
        Packet([[at * 1_000_000, stream, at, action, content, None, lane_of(0, stream), str(at), at,
                 None, stream]],
               {lane_of(0, stream): Lane(at, at * 1_000_000, None, 1)})
        for at, (stream, action, content) in enumerate(updates, 1)
    ]  # fmt: skip


@pytest.mark.parametrize("views", [{**OTHERS, "bomb": BOMB}, {**OTHERS, **NODES, "bomb": BOMB}])
def test_a_bucket_of_spark_keeps_it_aside(views: dict[str, str]) -> None:
    """Its state, put into a fresh engine, goes on as the engine itself does."""
    inserted = [u for u in messages(Random(7), 120) if u[1] == "insert"]
    updates = [u for u in inserted if u[2].count("<") == 2]  # one tree: it becomes no nodes
    doc = axlog.parse(document("no"), views=views, options=axlog.Options(limits=LIMITS))
    definition = Definition.of(doc)
    engine = bucket(definition)
    packets = items(updates)
    for packet in packets[:-10]:
        engine.batch([packet])
    assert engine.doc.view("bomb").broken is not None
    again = bucket(definition)
    again.restore(unpack(pack(engine.state())))
    assert again.doc.view("bomb").broken is not None
    quiet = axlog.parse(document("no"), views=views, options=axlog.Options(limits=LIMITS))
    play(quiet, updates)
    for packet in packets[-10:]:
        heard = [told(each.batch([packet]).changes) for each in (engine, again)]
        assert heard[0] == heard[1]
    assert rows(engine.doc) == rows(again.doc) == rows(quiet)


def bucket(definition: Definition) -> Instance:
    """The engine that has all the views."""
    unit = Unit("all", tuple(definition.views), "messages", 1, "for a test")
    return Instance(definition, unit, 0)


def test_types_are_in_the_state_of_a_bucket() -> None:
    types = "root: a  a -> |b| <= 3 & |s| >= 0  b -> |text()| <= 1  call s root: b"
    xml = "<a><ax:call xmlns:ax='urn:axlog' stream='s'/></a>"
    definition = Definition(xml, {"v": ("match /a/b/$x return $x", None)}, types=(types,))
    engine = bucket(definition)
    sent = items([("s", "insert", f"<b>{n}</b>") for n in range(5)])
    for packet in sent[:2]:
        assert engine.batch([packet]).refused == []
    again = bucket(definition)
    again.restore(unpack(pack(engine.state())))
    refused = [[bool(e.batch([p]).refused) for p in sent[2:]] for e in (engine, again)]
    assert refused == [[False, True, True]] * 2
    assert rows(again.doc) == rows(engine.doc)
