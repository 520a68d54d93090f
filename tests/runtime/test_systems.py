"""Systems of documents: wires, cycles to a fixpoint, what can ever be, letting go upstream.

Oracle: the whole system as one loop of documents fed by hand, in rounds, until nothing changes.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from axlog.connect.channels.row_updates import key_of, row_xml, seconds, updates_of
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.errors import PipelineError
from axlog.live.document import Document
from axlog.pipeline.loader import check, load
from axlog.pipeline.model import PipelineModel
from axlog.query.truth import Truth
from axlog.runtime.checkpoint import Input
from axlog.runtime.embedded import Runner
from axlog.runtime.instances import Instances
from axlog.runtime.system_truth import SystemTruth
from axlog.runtime.systems import System, in_order, wires_of
from axlog.views.change import Change, Row

AX = 'xmlns:ax="urn:axlog"'


def call(stream: str, **facts: str) -> str:
    said = "".join(f' {name}="{value}"' for name, value in facts.items())
    return f'<ax:call {AX} stream="{stream}"{said}/>'


def model(**written: Any) -> PipelineModel:
    return PipelineModel.model_validate({"engine": "embedded", **written})


class Running:
    """A system fed by hand."""

    def __init__(self, given: PipelineModel) -> None:
        self.instances = {name: Instances(given, name) for name in given.documents}
        self.system = System(given)
        self.system.begin(self.instances)

    def feed(self, doc: str, stream: str, content: str, at: int = 0) -> list[Change]:
        update = StreamUpdate(stream, "insert", content)
        return self.take(doc, update, at)

    def take(self, doc: str, update: StreamUpdate, at: int = 0) -> list[Change]:
        changes, refused = self.system.feed(self.instances, {doc: [Input("", update, at)]})
        assert refused == []
        return changes

    def rows(self, doc: str, view: str) -> list[tuple[Any, ...]]:
        return [row.values_ for row in self.instances[doc].documents[""].view(view).rows()]


def test_wires_and_their_order() -> None:
    given = model(
        documents={
            "c": {
                "document": f"<c>{call('in')}</c>",
                "streams": {"in": {"view": "b.v"}},
                "views": {"v": "match /c/row/x/$x return $x"},
            },
            "a": {"document": f"<a>{call('in')}</a>", "views": {"v": "match /a/b/$x return $x"}},
            "b": {
                "document": f"<b>{call('in')}</b>",
                "streams": {"in": {"view": "a.v"}},
                "views": {"v": "match /b/row/x/$x return $x"},
            },
        }
    )
    assert [str(wire) for wire in wires_of(given)] == ["b.v -> c/in", "a.v -> b/in"]
    assert in_order(list(given.documents), wires_of(given)) == [["a"], ["b"], ["c"]]
    running = Running(given)
    changes = running.feed("a", "in", "<b>17</b>", at=5_000_000)
    assert [(change.view, change.op) for change in changes] == [
        ("a.v", "insert"),
        ("b.v", "insert"),
        ("c.v", "insert"),
    ]
    assert {change.time for change in changes} == {5}


def test_a_row_that_is_lost_is_deleted_downstream() -> None:
    given = model(
        documents={
            "a": {
                "document": f"<a>{call('in', deletes='yes')}</a>",
                "views": {"v": "match /a/b#t/$x return $x, t.val"},
            },
            "b": {
                "document": f"<b>{call('in', deletes='yes')}<row><x>static</x></row></b>",
                "streams": {"in": {"view": "a.v"}},
                "views": {"v": "match /b/row/x/$x return $x"},
            },
        }
    )
    running = Running(given)
    for text in ("1", "quote \" and ' and &lt;"):
        running.feed("a", "in", f"<b>{text}</b>")
    assert len(running.rows("b", "v")) == 3
    changes = running.take("a", StreamUpdate("in", "delete", 'match /b/"1"'))
    assert [(change.view, change.op) for change in changes] == [
        ("a.v", "delete"),
        ("b.v", "delete"),
    ]
    assert running.rows("b", "v") == [("quote \" and ' and <",), ("static",)]


def closure(edges: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """By the definition: transitive closure by squaring until nothing is new."""
    reach = set(edges)
    while True:
        more = {(a, d) for a, b in reach for c, d in reach if b == c} | reach
        if more == reach:
            return sorted(reach)
        reach = more


def reachability() -> PipelineModel:
    """Paths are fed back into the document that they are found in."""
    return model(
        documents={
            "graph": {
                "document": f"<g><e>{call('edges')}</e><p>{call('paths')}</p></g>",
                "streams": {"paths": {"view": "graph.reach"}},
                "views": {
                    "reach": "match /g[e/edge[x/$x][y/$m] or p/row[x/$x][y/$m]]"
                    "[e/edge[x/$m][y/$y] or e/self[x/$m][y/$y]] return $x, $y",
                },
            }
        }
    )


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=7))
def test_a_cycle_comes_to_its_fixpoint(edges: list[tuple[str, str]]) -> None:
    running = Running(reachability())
    for node in "abcd":
        running.feed("graph", "edges", f"<self><x>{node}</x><y>{node}</y></self>")
    for x, y in edges:
        running.feed("graph", "edges", f"<edge><x>{x}</x><y>{y}</y></edge>")
    assert running.rows("graph", "reach") == closure(edges)


def test_two_documents_that_feed_each_other() -> None:
    def side(own: str, other: str) -> dict[str, Any]:
        return {
            "document": f"<{own}>{call('outside')}{call('back')}</{own}>",
            "streams": {"back": {"view": f"{other}.known"}},
            "views": {"known": f"match /{own}/row/x/$x return $x"},
        }

    running = Running(model(documents={"a": side("a", "b"), "b": side("b", "a")}))
    changes = running.feed("a", "outside", "<row><x>17</x></row>")
    assert sorted(str(change.view) for change in changes) == ["a.known", "b.known"]
    assert running.rows("b", "known") == [("17",)]
    assert running.feed("b", "outside", "<row><x>17</x></row>") == []


def cyclic(view: str, document: str | None = None) -> dict[str, Any]:
    return {
        "w": {
            "document": document or f"<w>{call('out')}{call('in')}</w>",
            "streams": {"in": {"view": "w.v"}},
            "views": {"v": view},
        }
    }


@pytest.mark.parametrize(
    ("view", "document", "why"),
    [
        ("match /w[not(b)]/row/x/$x return $x", None, "not"),
        ("match /w/row#t/x/$x return $x, t.val", None, "labels"),
        ("match /w/row#t return t.id", None, "labels"),
        ("match /w/row[. = $x] return $x", None, "string value"),
        (
            "match /w/row/x/$x return $x",
            f"<w>{call('out', deletes='yes')}{call('in')}</w>",
            "may delete",
        ),
    ],
)
def test_cycles_that_need_not_end_are_refused_or_bounded(
    view: str, document: str | None, why: str
) -> None:
    with pytest.raises(PipelineError, match="AX841") as told:
        System(model(documents=cyclic(view, document)))
    assert why in told.value.message
    System(model(documents=cyclic(view, document), settings={"rounds": 3}))


def test_a_bounded_cycle_goes_on_with_the_next_batch() -> None:
    grows = "match /w/row#t return t.val"
    running = Running(model(documents=cyclic(grows), settings={"rounds": 3}))
    changes = running.feed("w", "out", "<row>a</row>")
    assert len(changes) == 3
    assert len(running.feed("w", "out", "<other/>")) == 3


def satisfiability(given: PipelineModel) -> dict[str, Truth | None]:
    return {view: each.truth for view, each in SystemTruth(given).verdicts().items()}


# What can ever be ---------------------------------------------------------------------------------


def chain(second: str, first: str = "match /a/b/$x return $x", static: str = "") -> PipelineModel:
    return model(
        documents={
            "a": {"document": f"<a>{static}{call('in')}</a>", "views": {"v": first}},
            "b": {
                "document": f"<b>{call('in')}</b>",
                "streams": {"in": {"view": "a.v"}},
                "views": {"v": second},
            },
        }
    )


def test_satisfiability_over_the_system() -> None:
    through = "match /b/row/x/$x return $x"
    assert satisfiability(chain(through)) == {"a.v": Truth.POSSIBLE, "b.v": Truth.POSSIBLE}
    now = satisfiability(chain(through, static="<b>1</b>"))
    assert now == {"a.v": Truth.TRUE, "b.v": Truth.TRUE}
    never = satisfiability(chain(through, first="match /z/b/$x return $x"))
    assert never == {"a.v": Truth.NEVER, "b.v": Truth.NEVER}


def test_what_a_view_cannot_bring_is_never() -> None:
    """Each document alone says possible; the system says never."""
    first = "match /a[gate/go]/c/k/$x return $x"  # brings 1 and 2 only, once go has come
    alone = Document(f"<b>{call('in')}</b>", views={"v": 'match /b/row/x/"3"'})
    assert alone.view("v").truth is Truth.POSSIBLE
    for value, expected in (("2", Truth.POSSIBLE), ("3", Truth.NEVER)):
        given = chain(f'match /b/row/x/"{value}"', first)
        document = f"<a><c><k>1</k></c><c><k>2</k></c><gate>{call('in')}</gate></a>"
        doc = given.documents["a"].model_copy(update={"document": document})
        given = given.model_copy(update={"documents": {**given.documents, "a": doc}})
        assert satisfiability(given) == {"a.v": Truth.POSSIBLE, "b.v": expected}


def test_a_cycle_that_nothing_starts_is_never() -> None:
    """The least fixpoint: two documents that could only feed each other."""

    def side(own: str, other: str) -> dict[str, Any]:
        return {
            "document": f"<{own}>{call('back')}</{own}>",
            "streams": {"back": {"view": f"{other}.v"}},
            "views": {"v": f"match /{own}/row/x/$x return $x"},
        }

    given = model(documents={"a": side("a", "b"), "b": side("b", "a")})
    assert set(satisfiability(given).values()) == {Truth.NEVER}


# Letting go ---------------------------------------------------------------------------------------


def test_an_unsubscription_travels_upstream() -> None:
    """b needs one row of a and no more; then a's view is not needed, nor a's own stream."""
    given = model(
        documents={
            "a": {"document": f"<a>{call('in')}</a>", "views": {"v": "match /a/b/$x return $x"}},
            "b": {
                "document": f"<b>{call('in')}</b>",
                "streams": {"in": {"view": "a.v"}},
                "views": {"any": 'match /b/row/x/"17"'},
            },
        }
    )
    running = Running(given)
    running.feed("a", "in", "<b>17</b>")
    assert running.system.let_go(running.instances, {"b.any"}) == []
    running.instances["b"].documents[""].tune()
    assert running.system.let_go(running.instances, {"b.any"}) == ["a.v -> b/in", "a.v"]
    upstream = running.instances["a"].documents[""].streams()["in"]
    assert upstream.wanted == ()
    before = len(running.instances["b"].documents[""])
    running.feed("a", "in", "<b>18</b>")
    assert len(running.instances["b"].documents[""]) == before
    again = Running(given)
    again.feed("a", "in", "<b>17</b>")
    again.instances["b"].documents[""].tune()
    assert again.system.let_go(again.instances, {"b.any", "a.v"}) == [
        "a.v -> b/in"
    ]  # it has a sink


# The pipeline file --------------------------------------------------------------------------------


def written(tmp_path: Path, **content: Any) -> Path:
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump({"engine": "embedded", **content}))
    return path


def test_a_system_in_a_file_is_run_and_resumed(tmp_path: Path) -> None:
    """A view feeds a call, another a channel of a third document; killed between batches."""
    source = {"kind": "jsonl", "path": "in.jsonl"}
    content: dict[str, Any] = {
        "documents": {
            "a": {
                "document": f"<a>{call('in')}</a>",
                "streams": {"in": {"source": source}},
                "views": {"v": "match /a/b/$x return $x"},
            },
            "b": {
                "document": f"<b>{call('in')}</b>",
                "streams": {"in": {"view": "a.v"}},
                "views": {"v": {"query": "match /b/row/x/$x return $x", "channel": "out"}},
            },
            "c": {
                "document": f"<c>{call('in', deletes='yes')}</c>",
                "streams": {"in": {"channel": "out"}},
                "views": {
                    "v": {
                        "query": "match /c/row/x/$x return $x",
                        "sinks": [{"kind": "jsonl", "path": "out.jsonl"}],
                    }
                },
            },
        },
        "channels": {"out": {"kind": "memory", "journal": "out.channel"}},
        "settings": {"checkpoint": "state", "batch": 2},
    }
    path = written(tmp_path, **content)
    lines = [json.dumps({"insert": f"<b>{n}</b>", "at": n}) for n in range(10)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines[:5]) + "\n")
    for _ in range(3):
        runner = Runner(load(path), once=True)
        runner.run()
        runner.close()
        (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    got = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["row"]["x"] for one in got] == [str(n) for n in range(10)]
    assert all(one["op"] == "insert" for one in got)


def test_errors_of_a_system_are_reported_at_their_place(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        documents=cyclic("match /w/row/x/$x return $x"),
        channels={"a": {"kind": "memory"}, "b": {"kind": "nowhere"}},
        settings={"checkpoint": "state"},
    )
    told = sorted(
        (p.error.code, p.error.message) for p in check(path).problems if p.level == "error"
    )
    assert [code for code, _ in told] == ["AX852", "AX853"]


def test_what_is_derived_is_not_late_beside_later_input(tmp_path: Path) -> None:
    """A document's own source is ahead of the view that feeds it, within one batch."""
    call = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
    first = {"stream": "in", "insert": "<item><k>1</k></item>", "at": 5}
    later = {"stream": "own", "insert": "<row><x>2</x></row>", "at": 102}
    model = PipelineModel.model_validate(
        {
            "engine": "embedded",
            "documents": {
                "a": {
                    "document": f"<a>{call.format('in')}</a>",
                    "sources": [{"kind": "memory", "updates": [first]}],
                    "views": {"v": "match /a/item/k/$x return $x"},
                },
                "b": {
                    "document": f"<b>{call.format('own')}{call.format('rows')}</b>",
                    "streams": {"rows": {"view": "a.v", "deletes": "yes"}},
                    "sources": [{"kind": "memory", "updates": [later]}],
                    "views": {"w": {"query": "match /b/row/x/$x return $x",
                                    "sinks": [{"kind": "memory"}]}},
                },
            },
        }
    ).located(tmp_path)  # fmt: skip
    runner = Runner(model, once=True)
    runner.run()
    runner.close()
    assert runner.progress.refused == 0
    assert sorted(row["x"] for row in runner.instances["b"].documents[""].view("w").rows()) == [
        "1",
        "2",
    ]


# Rows as trees ------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from(["x", "t.val", "ü", "a b"]), st.text(max_size=5), min_size=1)
)
def test_rows_become_trees_that_are_deleted_exactly(values: dict[str, str]) -> None:
    values = {name: "".join(c for c in text if c.isprintable()) for name, text in values.items()}
    row = Row(tuple(values), tuple(values.values()))
    other = Row((*values, "z"), (*values.values(), "1"))
    doc = Document(f"<w>{call('in', deletes='yes')}</w>", views={"n": "match /w/row#r return r.id"})
    for each in (row, other):
        (update,) = updates_of(Change("insert", each), "in")
        doc.take(update)
    assert len(doc.view("n")) == 2
    (gone,) = updates_of(Change("delete", row), "in")
    doc.take(gone)
    assert len(doc.view("n")) == 1
    assert key_of(row) != key_of(other)


def test_contents_become_trees_and_times_stay_exact() -> None:
    row = Row(("t.cont",), ("<a><b/></a>",))
    assert "<t.cont><a><b/></a></t.cont>" in row_xml(row)
    for time in (0, 1, 1_000_000, 1_700_000_000_123_456, -1, -2_500_000):
        assert microseconds(seconds(time)) == time
