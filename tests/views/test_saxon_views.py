"""Views of any XQuery, by Saxon."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

import axlog
from axlog import Document
from axlog.cli.application import application
from axlog.connect.sinks.memory import MemorySink
from axlog.document.stream_update import StreamUpdate
from axlog.errors import QueryError, UnsupportedError, ValueProblem
from axlog.live.internals import maintained
from axlog.pipeline.model import PipelineModel
from axlog.runtime.embedded import Runner
from axlog.samples import orders
from axlog.views.saxon import process

pytest.importorskip("saxonche")

ORDERS = "<r><o><c>x</c><t>1</t></o><o><c>y</c><t>2</t></o></r>"
TRY = "for $o in //o return try { if ($o/c = 'x') then 'ex' else $o/t } catch * { 'none' }"


def _changes(changes: list[axlog.Change]) -> list[tuple[str, object]]:
    return [(change.op, change.row["value"]) for change in changes]


def test_a_query_outside_our_evaluator_is_a_view() -> None:
    doc = axlog.parse(ORDERS)
    view = doc.watch(TRY, "names")
    assert view.items() == ["ex", "<t>2</t>"]
    assert _changes(doc.update("insert node <o><c>x</c></o> into /r")) == [("insert", "ex")]
    assert [row.key for row in view.rows()] == [
        ("string ex#1",),
        ("xml <t>2</t>#1",),
        ("string ex#2",),
    ]
    assert _changes(doc.update("delete node (//o)[1]")) == [("delete", "ex")]
    assert view.items() == ["<t>2</t>", "ex"]
    assert view.explain().maintainer == "saxon"


def test_an_order_that_changes_alone_is_no_change() -> None:
    doc = axlog.parse("<r><a>1</a><a>2</a></r>")
    view = doc.watch("for $a in //a order by $a/@k return string($a)", maintainer="saxon")
    assert view.items() == ["1", "2"]
    assert doc.update("insert node attribute k {'z'} into (//a)[1]") == []
    assert view.items() == ["2", "1"]
    assert [row["value"] for row in view.rows()] == ["2", "1"]


def test_values_are_python_values() -> None:
    doc = axlog.parse("<r k='v'>text<!--c--></r>")
    query = (
        "1, 1.5, 2e0, true(), 'a', xs:date('2026-01-02'), xs:yearMonthDuration('P1Y'), "
        "xs:QName('a'), //@k, //text(), //comment(), map { 'a': [1, 2] }, xs:untypedAtomic('u'), "
        "xs:float('0.1')"
    )
    assert doc.watch(query, maintainer="saxon").items() == [
        1, Decimal("1.5"), 2.0, True, "a", date(2026, 1, 2), "P1Y", "a",
        "v", "text", "<!--c-->", 'map{"a":[1,2]}', "u", 0.1,
    ]  # fmt: skip


def test_updates_outside_of_what_is_read_evaluate_nothing() -> None:
    doc = axlog.parse(ORDERS)
    view = doc.watch(TRY, "names")
    inside = maintained(doc).views["names"].maintainer
    for statement in (
        "insert node <other><c>x</c></other> into /r",
        "insert node <!--x--> into /r",
        "insert node attribute k {'1'} into (//o)[1]",
        "replace value of node //other/c with 'y'",
        "rename node //other as 'another'",
        "delete node //another",
    ):
        assert doc.update(statement) == []
    assert (inside.evaluations, inside.skipped) == (1, 6)  # type: ignore[attr-defined]
    doc.update("replace value of node (//o/c)[1] with 'z'")
    assert view.items() == ["<t>1</t>", "<t>2</t>"]
    lines = str(view.explain())
    assert "reads //o/t ..." in lines
    assert "evaluated 2 times" in lines
    assert "6 updates proved to be outside" in lines


def test_ten_views_build_the_document_once() -> None:
    doc = axlog.parse(ORDERS)
    for number in range(10):
        doc.watch(f"array {{ //o/t, {number} }}")
    document = maintained(doc).engines.saxon
    assert document.builds == 1
    doc.update("insert node <o><t>3</t></o> into /r")
    assert document.builds == 2


def test_a_query_without_a_value_has_the_item_none_until_it_has_one() -> None:
    doc = axlog.parse(ORDERS)
    view = doc.watch("array { //o/xs:integer(t) }", "numbers")
    bad = doc.update("insert node <o><t>many</t></o> into /r")
    assert _changes(bad) == [("delete", "[1,2]"), ("insert", None)]
    assert view.items() == [None]
    assert view.broken is None
    assert "no value now: Saxon has no value for the query" in str(view.explain())
    good = doc.update("replace value of node //t[. = 'many'] with '3'")
    assert _changes(good) == [("delete", None), ("insert", "[1,2,3]")]


def test_an_update_without_a_value_can_be_rejected() -> None:
    doc = axlog.parse(ORDERS)
    view = doc.watch("array { //o/xs:integer(t) }", "numbers", on_value_error="reject")
    with pytest.raises(ValueProblem) as problem:
        doc.update("insert node <o><t>many</t></o> into /r")
    assert problem.value.code == "AX217"
    assert doc.xml() == ORDERS
    assert view.items() == ["[1,2]"]
    doc.update("insert node <o><t>3</t></o> into /r")
    assert view.items() == ["[1,2,3]"]


def test_incremental_refuses_it() -> None:
    with pytest.raises(QueryError) as refused:
        axlog.parse(ORDERS).watch(TRY, maintainer="incremental")
    assert refused.value.code == "AX212"
    assert "`try` is not supported" in refused.value.message


def test_a_tree_pattern_is_not_saxons() -> None:
    with pytest.raises(QueryError) as refused:
        axlog.parse(ORDERS).watch("match //o/$x return $x", maintainer="saxon")
    assert refused.value.code == "AX212"


@pytest.mark.parametrize(
    ("query", "code", "column"),
    [
        ("for $x in //o retrun $x", "AX201", 15),
        ("count(//o", "AX201", 10),
        ("sum(//t))", "AX201", 9),
        ("//p:o/@id", "AX206", 3),
        ("//o[@id = 1 && @id = 2]", "AX201", 13),
        ("//o[@id = 'a & b'", "AX201", 18),
        ("//o/lenght()", "AX211", 5),
    ],
)
def test_a_query_that_neither_parses_is_refused_at_its_place(
    query: str, code: str, column: int
) -> None:
    for language in (None, "xquery" if query[0] == "f" else "xpath"):
        with pytest.raises(QueryError) as refused:
            axlog.parse(ORDERS).watch(query, language=language)
        found = refused.value.code, str(refused.value.place)
        assert found == (code, f"line 1, column {column}")


def test_xpath_that_is_no_xquery_is_still_asked_of_saxon() -> None:
    doc = axlog.parse("<r><o>a &amp; b</o></r>")
    query = "//o[. = fold-left('a & b', '', function($a, $b) { $b })]/string()"
    assert doc.watch(query).items() == ["a & b"]


def test_a_query_that_saxon_refuses_is_refused_at_its_place() -> None:
    with pytest.raises(QueryError) as refused:
        axlog.parse(ORDERS).watch("for $x in //o\nreturn map { 'a': $y }")
    assert refused.value.code == "AX201"
    assert "XPST0008" in refused.value.message
    assert refused.value.place is not None
    assert refused.value.place.line == 2


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("//o[xs:date(d) lt current-date()]", 19),
        ("fn:current-dateTime()", 4),
        ("map { 'a': current-time#0 }?a()", 12),
        ("format-date(current-date(), '[Y]')", 13),
        ("random-number-generator()?number", 1),
    ],
)
def test_a_query_whose_answer_changes_without_an_update_is_refused(text: str, column: int) -> None:
    with pytest.raises(UnsupportedError) as refused:
        axlog.parse(ORDERS).watch(text)
    place = refused.value.place
    assert (refused.value.code, place and place.column) == ("AX211", column)


@pytest.mark.parametrize(
    "text", ["(: current-date() :) <a>{'current-date()'}</a>", "<a>current-date()</a>"]
)
def test_the_name_of_a_function_in_a_text_calls_nothing(text: str) -> None:
    query = axlog.parse(ORDERS).watch(f"{text}, try {{ 1 div 0 }} catch * {{ 2 }}")
    assert query.explain().maintainer == "saxon"
    assert query.items() == ["<a>current-date()</a>", 2]


def test_without_the_extra_the_refusal_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "is_installed", lambda: False)
    with pytest.raises(UnsupportedError) as refused:
        axlog.parse(ORDERS).watch(TRY)
    assert refused.value.code == "AX211"
    assert refused.value.advice is not None
    assert 'pip install "axlog[xquery]"' in refused.value.advice


def test_streams_feed_it_and_their_calls_are_not_seen() -> None:
    call = '<ax:call xmlns:ax="urn:axlog" stream="orders"/>'
    doc = axlog.parse(f"<r><o><c>x</c></o>{call}</r>")
    view = doc.watch("array { /r/node() ! name() }")
    assert view.items() == ['["o"]']
    changes = doc.feed("orders", "<o><c>y</c></o>")
    assert _changes(changes) == [("delete", '["o"]'), ("insert", '["o","o"]')]


def test_deferred_views_evaluate_when_they_are_read() -> None:
    doc = axlog.parse(ORDERS)
    view = doc.watch(TRY, "names")
    maintained(doc).views["names"].defer()
    doc.update("insert node <o><c>x</c></o> into /r")
    doc.update("insert node <o><c>x</c></o> into /r")
    inside = maintained(doc).views["names"].maintainer
    assert inside.evaluations == 1  # type: ignore[attr-defined]
    assert view.items() == ["ex", "<t>2</t>", "ex", "ex"]
    assert inside.evaluations == 2  # type: ignore[attr-defined]


def test_a_durable_document_keeps_it(tmp_path: Path) -> None:
    with axlog.open(tmp_path / "store", ORDERS) as doc:
        doc.watch(TRY, "names")
        doc.update("insert node <o><c>x</c></o> into /r")
    with axlog.open(tmp_path / "store") as doc:
        assert doc.views["names"].items() == ["ex", "<t>2</t>", "ex"]
        changes = doc.update("delete node (//o)[1]")
        assert _changes(changes) == [("delete", "ex")]


def test_a_pipeline_keeps_it(tmp_path: Path) -> None:
    model = PipelineModel.model_validate(
        {
            "engine": "embedded",
            "document": orders.DOCUMENT,
            "sources": [{"kind": "memory", "updates": list(orders.messages(20, seed=3))}],
            "views": {
                "count": {"query": "array { count(//order) }", "sinks": [{"kind": "memory"}]}
            },
        }
    ).located(tmp_path)
    runner = Runner(model, once=True)
    runner.run()
    runner.close()
    sink = runner.sinks[0].sink
    assert isinstance(sink, MemorySink)
    doc = Document(orders.DOCUMENT, views={"count": "array { count(//order) }"})
    for message in orders.messages(20, seed=3):
        doc.take(StreamUpdate.of(message))
    last = [change for change in sink.changes if change.op == "insert"][-1]
    assert [last.row["value"]] == doc.view("count").items() != ["[0]"]


def test_axlog_query_prints_its_items(tmp_path: Path) -> None:
    file = tmp_path / "orders.xml"
    file.write_text(ORDERS)
    arguments = ["query", str(file), "map { 'n': count(//o) }", "--table"]
    result = CliRunner().invoke(application(["query"]), arguments)
    assert (result.exit_code, result.output) == (0, 'map{"n":2}\n')


def test_explain_has_the_cost_of_evaluations() -> None:
    doc = axlog.parse(ORDERS)
    whole = doc.watch("for $x at $i in //o/c/ancestor::o count $n return $n", "whole")
    doc.update("insert node <o><c>z</c></o> into /r")
    assert whole.explain().maintainer == "dataflow"
    assert "evaluated 1 times, " in str(whole.explain())
