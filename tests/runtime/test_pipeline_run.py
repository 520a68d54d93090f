"""The embedded runner: order, batches, restart, and what it does with what goes wrong."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from axlog import Document
from axlog.cli.application import application
from axlog.connect.sinks.jsonl import read_log
from axlog.connect.sinks.memory import MemorySink
from axlog.connect.sinks.tables import difference
from axlog.document.stream_update import StreamUpdate
from axlog.errors import PipelineError
from axlog.live.options import Options
from axlog.pipeline.loader import load
from axlog.pipeline.model import PipelineModel
from axlog.runtime.embedded import Runner, run
from axlog.runtime.order import BODY, EVERY, Order, lane_of
from axlog.runtime.pipeline_definition import definition_of
from axlog.samples import orders
from axlog.views.change import Change
from tests.amounts import cases
from tests.waiting import eventually

AXLOG = [sys.executable, "-c", "from axlog.cli import main; main()"]


def messages(count: int) -> Iterator[dict[str, object]]:
    """Orders and shipments, many of them late."""
    return orders.messages(count, seed=3, rate=0.001, late_share=0.6)


def pipeline(directory: Path, **changes: Any) -> PipelineModel:
    """The order monitor over memory sources; keyword arguments replace parts of it."""
    written: dict[str, Any] = {
        "engine": "embedded",
        "document": orders.DOCUMENT,
        "sources": [{"kind": "memory", "updates": list(messages(200))}],
        "views": {"late": {"query": orders.LATE, "sinks": [{"kind": "memory"}]}},
        "settings": {"batch": 30},
    }
    written.update(changes)
    return PipelineModel.model_validate(written).located(directory)


def sink_of(runner: Runner, at: int = 0) -> MemorySink:
    sink = runner.sinks[at].sink
    assert isinstance(sink, MemorySink)
    return sink


def ran(model: PipelineModel) -> Runner:
    runner = Runner(model, once=True)
    runner.run()
    runner.close()
    return runner


def rows_after(changes: list[Change]) -> Counter[Any]:
    return +difference(changes)


def test_the_runner_does_what_a_document_does(tmp_path: Path) -> None:
    doc = Document(orders.DOCUMENT, views={"late": orders.LATE})
    for message in messages(200):
        doc.take(StreamUpdate.of(message))
    runner = ran(pipeline(tmp_path))
    expected = Counter((row["x"],) for row in doc.view("late").rows())
    assert rows_after(sink_of(runner).changes) == expected
    assert len(expected) > 5
    assert (runner.progress.messages, runner.progress.rows) == (200, expected.total())
    assert list(sink_of(runner).batches) == list(range(8))


def test_streams_are_merged_by_time_whatever_their_sources(tmp_path: Path) -> None:
    updates = list(messages(200))
    streams = {
        name: {"source": {"kind": "memory", "updates": [m for m in updates if m["stream"] == name]}}
        for name in ("orders", "shipments")
    }
    apart = ran(pipeline(tmp_path, sources=[], streams=streams))
    together = ran(pipeline(tmp_path))
    assert sink_of(apart).batches == sink_of(together).batches


def test_rows_that_are_there_at_once_are_batch_0(tmp_path: Path) -> None:
    model = pipeline(
        tmp_path,
        document="<a><b>1</b></a>",
        sources=[],
        views={"v": {"query": "match /a/b/$x return $x", "sinks": [{"kind": "memory"}]}},
    )
    assert [change.row["x"] for change in sink_of(ran(model)).batches[0]] == ["1"]


def test_one_document_over_many_documents(tmp_path: Path) -> None:
    call = '<c xmlns:ax="urn:axlog"><ax:call stream="s"/></c>'
    updates = [
        {"stream": "s", "insert": f"<m k='{n % 7}'><v>{n}</v></m>", "at": n} for n in range(50)
    ]
    updates += [{"stream": "s", "insert": "<m><v>1</v></m>", "at": 60}]
    model = pipeline(
        tmp_path,
        document=call,
        document_key="@k",
        sources=[{"kind": "memory", "updates": updates}],
        views={"v": {"query": "match /c/m/v/$x return $x", "sinks": [{"kind": "memory"}]}},
        dead_letters={"kind": "memory"},
    )
    runner = ran(model)
    rows = rows_after(sink_of(runner).changes)
    assert rows == Counter((str(n % 7), str(n)) for n in range(50))
    assert len(runner.instances["document"].documents) == 7
    assert [change.row["stream"] for change in sink_of(runner, 1).changes] == ["s"]
    assert {doc.clock for doc in runner.instances["document"].documents.values()} == {49}


def test_several_documents_with_tables_by_view(tmp_path: Path) -> None:
    call = '<d xmlns:ax="urn:axlog"><ax:call stream="s"/></d>'

    def doc(values: str) -> dict[str, Any]:
        updates = [{"insert": f"<m>{value}</m>", "at": n} for n, value in enumerate(values)]
        return {
            "document": call,
            "streams": {"s": {"source": {"kind": "memory", "updates": updates}}},
            "views": {"v": {"query": "match /d/m/$x return $x", "sinks": ["table", "log"]}},
        }

    model = PipelineModel.model_validate(
        {
            "engine": "embedded",
            "documents": {"one": doc("abc"), "two": doc("xy")},
            "sinks": {
                "table": {"kind": "parquet", "path": "{view}.parquet"},
                "log": {"kind": "memory"},
            },
        }
    ).located(tmp_path)
    runner = ran(model)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.v.parquet", "two.v.parquet"]
    (log,) = [sink.sink for sink in runner.sinks if isinstance(sink.sink, MemorySink)]
    assert Counter((c.view, c.row["x"]) for c in log.changes) == Counter(
        [*(("one.v", x) for x in "abc"), *(("two.v", x) for x in "xy")]
    )


def test_the_command_refuses_what_cannot_run(tmp_path: Path) -> None:
    path = written_to(tmp_path / "p", 20)
    runner = CliRunner()
    run_once(path)
    path.write_text(path.read_text().replace("return $x", "return $x, t1.time"))
    done = runner.invoke(application(), ["run", "--once", str(path)])
    assert done.exit_code == 2
    assert "the query of the view document.late changed" in done.stderr
    path.write_text(path.read_text().replace("kind: sql", "kind: sequel"))
    done = runner.invoke(application(), ["run", "--engine", "spark", str(path)])
    assert done.exit_code == 2
    assert "line 11, column 14" in done.stderr


def test_bad_messages_are_dead_letters_with_their_place(tmp_path: Path) -> None:
    lines = [
        {"stream": "orders", "insert": "<order><oid>1</oid></order>", "at": 5},
        {"stream": "orders", "insert": "<order><oid>", "at": 6},
        {"stream": "nobody", "insert": "<a/>"},
        {"stream": "orders", "insert": "<order/>", "at": 1},
        {"stream": "orders", "insert": "<order/>", "at": "soon"},
        {"stream": "orders", "delete": "match /order"},
    ]
    written = "".join(json.dumps(line) + "\n" for line in lines) + "no JSON\n"
    (tmp_path / "in.jsonl").write_text(written)
    source = {"kind": "jsonl", "path": "in.jsonl"}
    model = pipeline(tmp_path, sources=[source], dead_letters={"kind": "memory"})
    runner = ran(model)
    letters = {c.row["origin"]: c.row["error"] for c in sink_of(runner, 1).changes}
    codes = {origin: error[:5] for origin, error in letters.items()}
    assert codes == {
        "in.jsonl:2": "AX101",
        "in.jsonl:3": "AX401",
        "in.jsonl:4": "AX404",
        "in.jsonl:5": "AX409",
        "in.jsonl:6": "AX405",
        "in.jsonl:7": "AX410",
    }
    assert runner.progress.refused == 6
    stopping = pipeline(tmp_path, sources=[source], settings={"on_error": "stop"})
    with pytest.raises(PipelineError, match=r"in\.jsonl:2"):
        run(stopping, once=True)


# Order --------------------------------------------------------------------------------------------


def never(_: object) -> bool:
    """No update has waited for too long."""
    return False


@settings(max_examples=cases(25), deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 20), max_size=12), min_size=1, max_size=3),
    st.randoms(use_true_random=False),
)
def test_order_and_batches_do_not_depend_on_the_reading(
    times: list[list[int]], chance: Random
) -> None:
    """Law: the released order is the stable merge by (time so far, stream, sequence)."""
    names = [f"s{n}" for n in range(len(times))]
    order = Order(hold=None)
    lanes = {name: lane_of(rank, EVERY) for rank, name in enumerate(names)}
    left = {name: list(enumerate(each)) for name, each in zip(names, times, strict=True)}
    released: list[str] = []
    for lane in lanes.values():
        order.expect(lane)
    while any(left.values()) or order.pending:
        name = chance.choice(names)
        for n, at in left[name][: chance.randint(0, 3)]:
            order.append(lanes[name], name, at, f"{name}{n}")
            left[name].pop(0)
        order.rest(lanes[name], rests=not left[name])
        released += [item[BODY] for item in order.release(chance.randint(0, 4), never)]
    keyed = []
    for name, each in zip(names, times, strict=True):
        latest = -1
        for n, at in enumerate(each):
            latest = max(latest, at)
            keyed.append((latest, name, n, f"{name}{n}"))
    assert released == [content for *_, content in sorted(keyed)]


@settings(max_examples=cases(25), deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.none() | st.integers(0, 5), st.sampled_from("abc")), max_size=6),
        min_size=1,
        max_size=3,
    ),
    st.randoms(use_true_random=False),
)
def test_a_sequence_of_several_streams_keeps_its_order(
    sequences: list[list[tuple[int | None, str]]], chance: Random
) -> None:
    """Law: the merge of whole sequences by their heads, however they are read."""
    order = Order(hold=None)
    lanes = [lane_of(rank, EVERY) for rank in range(len(sequences))]
    for lane in lanes:
        order.expect(lane)
    left = [list(enumerate(each)) for each in sequences]
    released: list[tuple[int, int]] = []
    while any(left) or order.pending:
        rank = chance.randrange(len(lanes))
        for n, (at, stream) in left[rank][: chance.randint(0, 3)]:
            order.append(lanes[rank], stream, at, (rank, n))
            left[rank].pop(0)
        order.rest(lanes[rank], rests=not left[rank])
        released += [item[BODY] for item in order.release(chance.randint(0, 4), never)]
    heads = [0] * len(lanes)
    latest = [-1] * len(lanes)
    merged: list[tuple[int, int]] = []
    while any(at < len(each) for at, each in zip(heads, sequences, strict=True)):
        found = []
        for rank, each in enumerate(sequences):
            if heads[rank] < len(each):
                at, stream = each[heads[rank]]
                found.append((max(latest[rank], -1 if at is None else at), stream, rank))
        time, _, rank = min(found)
        latest[rank] = time
        merged.append((rank, heads[rank]))
        heads[rank] += 1
    assert released == merged


def test_a_silent_stream_holds_the_others_back_for_a_while() -> None:
    order = Order(hold=None)
    a, b = lane_of(0, EVERY), lane_of(1, EVERY)
    order.expect(a)
    order.expect(b)
    order.append(a, "a", 5, "x")
    assert order.release(9, never) == []
    assert [item[BODY] for item in order.release(9, lambda _: True)] == ["x"]
    order.append(a, "a", 6, "y")
    assert order.release(9, never) == []
    order.append(b, "b", 7, "z")  # from now on it brings nothing earlier
    assert [item[BODY] for item in order.release(9, never)] == ["y"]
    order.append(a, "a", 9, "w")
    order.rest(b, rests=True)
    assert [item[BODY] for item in order.release(9, never)] == ["z", "w"]


# Restart ------------------------------------------------------------------------------------------


def durable(directory: Path, count: int = 200, **changes: Any) -> PipelineModel:
    lines = [json.dumps(one) for one in messages(count)]
    (directory / "in.jsonl").write_text("\n".join(lines) + "\n")
    given: dict[str, Any] = {
        "sources": [{"kind": "jsonl", "path": "in.jsonl"}],
        "views": {
            "late": {
                "query": orders.LATE,
                "sinks": [
                    {"kind": "jsonl", "path": "late.jsonl"},
                    {"kind": "parquet", "path": "late.parquet"},
                    {"kind": "sql", "url": "sqlite:///late.db"},
                ],
            }
        },
        "settings": {"batch": 20, "checkpoint": "state"},
    }
    return pipeline(directory, **{**given, **changes})


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    run(durable(tmp_path / "whole", 200), once=True)
    for count in (0, 50, 51, 130, 130, 200):
        run(durable(tmp_path / "parts", count), once=True)
    logs = [read_log(tmp_path / name / "late.jsonl") for name in ("whole", "parts")]
    shown = [[(line["op"], line["row"], line["position"]) for line in log] for log in logs]
    assert shown[0] == shown[1]
    assert len(shown[0]) > 5


def test_a_checkpoint_of_another_pipeline_is_refused_by_name(tmp_path: Path) -> None:
    run(durable(tmp_path), once=True)
    views = {"late": {"query": orders.ON_TIME}}
    with pytest.raises(PipelineError, match=r"the view document\.late changed") as raised:
        Runner(durable(tmp_path, views=views))
    assert raised.value.code == "AX855"
    other = orders.DOCUMENT.replace("web store", "shop")
    with pytest.raises(PipelineError, match="document of the document document changed"):
        Runner(durable(tmp_path, document=other))
    with pytest.raises(PipelineError, match="facts of the document document changed"):
        Runner(durable(tmp_path, facts=list(orders.KEYS)))
    with pytest.raises(PipelineError, match="was of kind jsonl"):
        Runner(durable(tmp_path, sources=[{"kind": "memory"}]))


def test_a_view_that_is_added_is_filled_from_the_input(tmp_path: Path) -> None:
    run(durable(tmp_path, 120), once=True)
    model = durable(tmp_path, 200)
    written = model.model_dump(by_alias=True)
    views = written["documents"]["document"]["views"]
    views["fine"] = {"query": orders.ON_TIME, "sinks": [{"kind": "jsonl", "path": "fine.jsonl"}]}
    added = PipelineModel.model_validate(
        {
            **{k: v for k, v in written.items() if k != "documents"},
            **written["documents"]["document"],
        }
        | {"settings": written["settings"]}
    ).located(tmp_path)
    run(added, once=True)
    whole = Document(orders.DOCUMENT, views={"fine": orders.ON_TIME})
    for message in messages(200):
        whole.take(StreamUpdate.of(message))
    log = read_log(tmp_path / "fine.jsonl")
    balance = Counter[str]()
    for line in log:
        balance[line["row"]["x"]] += 1 if line["op"] == "insert" else -1
    assert +balance == Counter(row["x"] for row in whole.view("fine").rows())
    assert len(log) > 5
    run(durable(tmp_path, 200), once=True)  # and can be removed again


PLACED = 'match /management/webstore/orders/order[client/"INRIA"]/oid/$x return $x'


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_restart_goes_on_from_a_snapshot(tmp_path: Path, keep: str) -> None:
    how = {"batch": 20, "checkpoint": "state", "keep": keep, "snapshot": 50}
    sinks = [{"kind": "jsonl", "path": "late.jsonl"}]
    views = {"late": {"query": PLACED, "sinks": sinks}}
    for count in (110, 110, 200):
        run(durable(tmp_path, count, settings=how, views=views), once=True)
    runner = Runner(durable(tmp_path, 200, settings=how, views=views), once=True)
    left = sum(len(batch.inputs) for batch in runner.checkpoint.batches())
    assert left < 60
    assert runner.progress.messages == 200
    doc = Document(orders.DOCUMENT, views={"late": PLACED})
    for message in messages(200):
        doc.take(StreamUpdate.of(message))
    rows = [row["x"] for row in doc.view("late").rows()]
    assert [
        row["x"] for row in runner.instances["document"].documents[""].view("late").rows()
    ] == rows
    assert runner.progress.rows == len(rows)
    log = read_log(tmp_path / "late.jsonl")
    assert sorted(line["row"]["x"] for line in log) == rows
    assert [line["position"] for line in log] == list(range(1, len(rows) + 1))
    runner.close()
    more = {**views, "fine": {"query": orders.ON_TIME}}
    if keep == "needed":
        with pytest.raises(PipelineError, match=r"document\.fine is new"):
            Runner(durable(tmp_path, 200, settings=how, views=more))
    else:
        run(durable(tmp_path, 200, settings=how, views=more), once=True)


@pytest.mark.parametrize("keep", ["all", "needed"])
@pytest.mark.parametrize("query", [orders.LATE, orders.ON_TIME, orders.WITHIN])
def test_joins_that_wait_are_in_snapshots(tmp_path: Path, keep: str, query: str) -> None:
    """What they know of keys and deadlines survives: the same changes, `never` among them."""
    how = {"batch": 20, "checkpoint": "state", "keep": keep, "snapshot": 35}
    views = {"v": {"query": query, "sinks": [{"kind": "jsonl", "path": "v.jsonl"}]}}
    logs = []
    for name, counts in (("whole", (200,)), ("cut", (70, 71, 130, 200))):
        directory = tmp_path / name
        directory.mkdir()
        for count in counts:
            model = durable(directory, count, settings=how, views=views, facts=list(orders.KEYS))
            run(model, once=True)
        runner = Runner(model, once=True)
        assert sum(len(batch.inputs) for batch in runner.checkpoint.batches()) < 60
        logs.append(read_log(directory / "v.jsonl"))
        runner.close()
    told = [Counter((line["op"], str(line["row"])) for line in log) for log in logs]
    assert told[0] == told[1]
    assert {op for op, _ in told[0]} == {"insert", "never"}


def test_two_runs_cannot_share_a_checkpoint(tmp_path: Path) -> None:
    runner = Runner(durable(tmp_path), once=True)
    with pytest.raises(PipelineError, match="another run"):
        Runner(durable(tmp_path))
    runner.close()


def test_a_source_that_vanishes_lags_and_comes_back(tmp_path: Path) -> None:
    model = durable(tmp_path, settings={"batch": 20, "trigger": 0.01})
    path = tmp_path / "in.jsonl"
    content = path.read_bytes()
    path.unlink()
    seen: list[str] = []
    runner = Runner(model, on_progress=lambda now: seen.extend(one.name for one in now.lagging))
    thread = threading.Thread(target=runner.run)
    thread.start()
    eventually(lambda: bool(seen))
    path.write_bytes(content)
    eventually(lambda: runner.progress.messages == 200)
    runner.stop()
    thread.join()
    runner.close()
    assert set(seen) == {"document/sources/0"}
    path.unlink()
    with pytest.raises(PipelineError, match=r"in\.jsonl"):
        run(durable(tmp_path, sources=[{"kind": "jsonl", "path": "absent/in.jsonl"}]), once=True)


def test_deadlines_pass_while_nothing_comes(tmp_path: Path) -> None:
    """With the wall clock a row turns never by itself, and a restart has heard of it."""
    order = {"stream": "orders", "at": time.time(), "insert": "<order><oid>7</oid>"
             "<client>INRIA</client><details><computer/></details></order>"}  # fmt: skip
    soon = orders.ON_TIME.replace("50000", "1")
    model = durable(
        tmp_path,
        sources=[{"kind": "memory", "updates": [order]}],
        facts=list(orders.KEYS),
        views={"soon": {"query": soon, "sinks": [{"kind": "memory"}]}},
        settings={"clock": "wall", "hold": 0.1, "trigger": 0.02, "checkpoint": "state"},
    )
    runner = Runner(model)
    thread = threading.Thread(target=runner.run)
    thread.start()
    eventually(lambda: runner.progress.never == 1)
    runner.stop()
    thread.join()
    runner.close()
    assert [(c.op, c.row["x"]) for c in sink_of(runner).changes] == [("never", "7")]
    again = ran(model)
    assert (again.progress.never, again.progress.messages) == (1, 1)
    assert sink_of(again).changes == []


BAG = """<r xmlns:ax="urn:axlog"><a><ax:call stream="a" deletes="yes" late="clock"/></a>
<b><ax:call stream="b" late="clock"/></b></r>"""
VIEWS = {
    "join": "match /r[a/m/x/$v][b/m/x/$v] return $v",
    "not": "match /r/a/m[not(y)]/x/$v return $v",
    "content": "match /r/b/m#n return n.cont",
}
UPDATES = st.lists(
    st.one_of(
        st.builds(
            lambda v, y: {"insert": f"<m><x>{v}</x>{'<y/>' if y else ''}</m>"},
            st.integers(0, 3),
            st.booleans(),
        ),
        st.builds(lambda v: {"delete": f"match /m[x/{v}]"}, st.sampled_from(['"0"', '"1"'])),
        st.just({"insert": "<m>"}),
        st.just({"end": True}),
    ),
    max_size=14,
)


@settings(max_examples=cases(12), deadline=None)
@given(
    UPDATES,
    UPDATES,
    st.integers(1, 5),
    st.lists(st.integers(0, 3), max_size=4),
    st.sampled_from([1, 3, 1000]),
)
def test_random_streams_cut_anywhere_come_to_the_rows_of_a_document(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[dict[str, Any]],
    second: list[dict[str, Any]],
    batch: int,
    cuts: list[int],
    snapshot: int,
) -> None:
    """Law 7: whatever the batches, and wherever the run is cut between them."""
    directory = tmp_path_factory.mktemp("run")
    streams = {
        name: [{**update, "at": 2 * number} for number, update in enumerate(updates)]
        for name, updates in (("a", first), ("b", second))
    }
    model = pipeline(
        directory,
        document=BAG,
        sources=[],
        streams={
            name: {"source": {"kind": "memory", "updates": updates}}
            for name, updates in streams.items()
        },
        views={name: {"query": query, "sinks": ["log"]} for name, query in VIEWS.items()},
        sinks={"log": {"kind": "jsonl", "path": "log.jsonl"}},
        dead_letters={"kind": "jsonl", "path": "dead.jsonl"},
        settings={"batch": batch, "checkpoint": "state", "snapshot": snapshot},
    )
    for rounds in cuts:
        runner = Runner(model, once=True)
        for _ in range(rounds):
            runner.round()
        runner.checkpoint.close()  # as a kill would: nothing is noted
        for sink in runner.sinks:
            sink.sink.close()
    run(model, once=True)
    doc = Document(BAG, views=VIEWS, options=Options(on_error="dead-letter"))
    ordered = [
        (update["at"], name, number, update)
        for name, updates in streams.items()
        for number, update in enumerate(updates)
    ]
    for _, name, _, update in sorted(ordered, key=lambda one: one[:3]):
        doc.take(StreamUpdate.of({"stream": name, **update}))
    told: Counter[Any] = Counter()
    for line in read_log(directory / "log.jsonl"):
        if line["op"] == "never":  # no row: a match in progress has ended
            continue
        key = (line["view"], json.dumps(line["row"]))
        told[key] += 1 if line["op"] in ("insert", "update") else -1
        if line["op"] == "update":
            told[line["view"], json.dumps(line["before"])] -= 1
    expected = Counter(
        (name, json.dumps(row.to_dict())) for name in VIEWS for row in doc.view(name).rows()
    )
    assert +told == expected
    assert not -told
    letters = [line["row"] for line in read_log(directory / "dead.jsonl")]
    assert Counter((each["stream"], each["error"][:5]) for each in letters) == Counter(
        (each.stream, each.error.code) for each in doc.dead_letters
    )


FILE = """\
engine: embedded
document: document.xml
sources: {kind: jsonl, path: in.jsonl}
views:
  late:
    query: |
      QUERY
    sinks:
    - {kind: jsonl, path: late.jsonl}
    - {kind: parquet, path: late.parquet}
    - {kind: sql, url: "sqlite:///late.db"}
settings: {batch: 25, checkpoint: state, trigger: 10ms, hold: 0, keep: KEEP, snapshot: 120}
"""


def written_to(directory: Path, count: int) -> Path:
    directory.mkdir()
    (directory / "document.xml").write_text(orders.DOCUMENT)
    lines = [json.dumps(one) for one in messages(count)]
    (directory / "in.jsonl").write_text("\n".join(lines) + "\n")
    path = directory / "p.yaml"
    path.write_text(FILE.replace("QUERY", orders.LATE).replace("KEEP", "needed"))
    return path


def state_of(directory: Path) -> tuple[Any, ...]:
    """All that the sinks of a pipeline have."""
    import sqlite3

    import pyarrow.parquet as parquet

    db = sqlite3.connect(directory / "late.db")
    rows = sorted(db.execute("select axlog_key, x from late"))
    db.close()
    table = parquet.read_table(directory / "late.parquet").to_pylist()
    return read_log(directory / "late.jsonl"), table, rows


def run_once(path: Path) -> None:
    done = CliRunner().invoke(application(), ["run", "--once", str(path)])
    assert done.exit_code == 0, done.output


@pytest.mark.system
def test_killed_at_any_moment_and_restarted_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """Law 7 for this runner: SIGKILL at seeded moments, then the sinks of an undisturbed run."""
    whole, cut = written_to(tmp_path / "whole", 500), written_to(tmp_path / "cut", 500)
    command = [*AXLOG, "run", "--once", "--progress", "json"]
    run_once(whole)
    chance = Random(7)
    kills = 0
    for _ in range(2):
        process = subprocess.Popen([*command, str(cut)], stderr=subprocess.PIPE)
        assert process.stderr is not None
        # Wait for some batches, then a little: a kill can fall anywhere in one.
        for _ in range(chance.randint(1, 6)):
            if not process.stderr.readline():
                break
        time.sleep(chance.random() * 0.01)  # the moment itself is what is random
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == 0:
            break
        kills += 1
    else:
        run_once(cut)
    assert kills == 2
    assert state_of(whole.parent) == state_of(cut.parent)
    assert len(state_of(cut.parent)[1]) > 20


@pytest.mark.system
def test_a_signal_ends_a_run_in_order(tmp_path: Path) -> None:
    path = written_to(tmp_path / "p", 300)
    command = [*AXLOG, "run", "--no-page", "--progress", "json", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if json.loads(line).get("messages") == 300:
            process.send_signal(signal.SIGTERM)
            break
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    assert len(read_log(path.parent / "late.jsonl")) > 5


def test_instructions_outside_the_root_are_part_of_the_document(tmp_path: Path) -> None:
    """Found by the law `pipelines`: the embedded runner started from the root element alone."""
    text = '<?q 1?><a><c><ax:call xmlns:ax="urn:axlog" stream="s"/></c></a><?q 2?>'
    query = 'match //processing-instruction("q")#t return t.val as x'
    views = {"v": {"query": query, "sinks": [{"kind": "memory"}]}}
    model = pipeline(tmp_path, document=text, sources=[], views=views)
    runner = ran(model)
    assert sorted(str(change.row["x"]) for change in sink_of(runner).changes) == ["1", "2"]
    assert definition_of(model, next(iter(model.documents))).document == text


def test_a_log_that_was_removed_begins_again(tmp_path: Path) -> None:
    """Its length before was written beside it: the new file began with that many zero bytes."""
    updates = "".join(
        json.dumps({"stream": "a", "insert": f"<a>{number}</a>"}) + "\n" for number in range(3)
    )
    (tmp_path / "in.jsonl").write_text(updates)
    (tmp_path / "p.yaml").write_text(
        "engine: embedded\n"
        "streams: {a: {source: {kind: jsonl, path: in.jsonl}}}\n"
        "views: {v: {query: 'match /document/a/a/$x return $x',"
        " sinks: [{kind: jsonl, path: out.jsonl}]}}\n"
    )
    for _ in range(2):
        run(load(str(tmp_path / "p.yaml")), once=True)
        lines = (tmp_path / "out.jsonl").read_text().splitlines()
        assert [json.loads(line)["row"]["x"] for line in lines] == ["0", "1", "2"]
        (tmp_path / "out.jsonl").unlink()
