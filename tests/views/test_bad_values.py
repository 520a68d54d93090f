"""Values that cannot be computed, in all three languages: refused when written, null when data
brings them, or refused with the update; a view never stops."""

from __future__ import annotations

import pytest

import axlog
from axlog.errors import AxlogError, QueryError, ValueProblem

WRITTEN = [
    ("match //a/$x where matches($x, '(') return $x", "FORX0002", 32),
    ("match //a[matches(b, '[')]", "FORX0002", 22),
    ("match //a/$x return sum($x, 2) as s", "AX201", 21),
    ("match //a/$x where contains($x) return $x", "XPST0017", 20),
    ("//a[matches(b, '(')]", "FORX0002", 16),
    ("for $x in //a return replace($x, '(', 'b')", "FORX0002", 34),
]


@pytest.mark.parametrize(("text", "code", "column"), WRITTEN)
def test_refused_with_its_place_when_written(text: str, code: str, column: int) -> None:
    doc = axlog.parse("<r/>")
    with pytest.raises(QueryError) as caught:
        doc.watch(text, "v")
    assert caught.value.code == code
    assert caught.value.place is not None
    assert caught.value.place.column == column
    assert "v" not in doc.views


GOOD, LATER = "<a><k>x</k><t>2</t></a>", "<a><k>x</k><t>5</t></a>"
BAD = {
    "text": "<a><k>x</k><t>two</t></a>",
    "zero": "<a><k>x</k><t>0</t></a>",
    "huge": f"<a><k>x</k><t>{'9' * 3000}</t></a>",
    "keyless": "<a><t>3</t></a>",
    "empty": "<a><k>x</k><t/></a>",
}
VIEWS = {
    "sum": "match //a[k/$k]/t#t return $k, sum(t.val) as s",
    "quotient": "match //a[k/$k]/t#t return t.id, 1 div t.val as q",
    "product": "match //a/t#t return t.id, t.val * t.val as p",
    "predicate": "match //a#a[10 div t > 1] return a.id",
    "group": "for $a in //a group by $k := $a/k return <g k='{$k}'>{count($a)}</g>",
    "total": "sum(//a/t[. castable as xs:decimal]/xs:decimal(.))",
    "divided": "for $a in //a return 10 div xs:decimal($a/t)",
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("bad", BAD)
def test_null_by_default_and_the_view_goes_on(name: str, bad: str) -> None:
    doc = axlog.Document(streams=["s"], views={"v": VIEWS[name]})
    for text in (GOOD, BAD[bad], LATER):
        doc.feed("s", text)
    view = doc.view("v")
    assert view.broken is None
    again = axlog.parse(doc.xml()).watch(view.query.text)
    assert [row.to_dict() for row in view.rows()] == [row.to_dict() for row in again.rows()]
    assert len(view.rows()) >= 1


@pytest.mark.parametrize("name", ["sum", "quotient", "divided"])
def test_rejected_updates_leave_no_trace(name: str) -> None:
    doc = axlog.Document(streams=["s"])
    view = doc.watch(VIEWS[name], "v", on_value_error="reject")
    doc.feed("s", GOOD)
    before = [row.to_dict() for row in view.rows()]
    with pytest.raises(AxlogError) as caught:
        doc.feed("s", BAD["text"])
    assert caught.value.code == "FORG0001"
    assert [row.to_dict() for row in view.rows()] == before
    doc.feed("s", LATER)
    assert view.broken is None
    assert [row.to_dict() for row in view.rows()] != before


@pytest.mark.parametrize(
    "constructor",
    [
        "<e>{$a/k, count(//a), $a/@n}</e>",
        "<e n='{count(//a)}'>{$a/@n}</e>",
        "element {concat($a/@n, ' ', count(//a))} {}",
        "comment {concat(count(//a), $a/@n, '-')}",
    ],
)
def test_an_element_that_data_makes_impossible_has_no_value(constructor: str) -> None:
    doc = axlog.parse("<r><a><k>x</k></a></r>")
    query = f"for $a in //a return if ($a/@n) then {constructor} else 'none'"
    view = doc.watch(query, "v", language="xquery")
    doc.update("insert node <a n='1'/> into /r")
    assert view.items() == ["none", None]
    doc.update("delete node //@n")
    assert view.items() == ["none", "none"]


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("for $a in //a return $a * (1 div 0)", "FOAR0001", 30),
        ("//a/string(xs:date('2026-13-01'))", "FORG0001", 12),
        ("count(//a) + ('a' + 1)", "XPTY0004", 19),
        ("if (1 idiv 0 = 1) then 1 else 2", "FOAR0001", 7),
        ("match //a/$x return xs:date('today') as d", "FORG0001", 21),
    ],
)
def test_constants_without_a_value_are_refused_when_written(
    text: str, code: str, column: int
) -> None:
    with pytest.raises(ValueProblem) as caught:
        axlog.parse("<r/>").watch(text)
    place = caught.value.place
    assert (caught.value.code, place and (place.line, place.column)) == (code, (1, column))


@pytest.mark.parametrize(
    "text",
    ["if (//a) then 1 else 1 div 0", "boolean(//a) or 1 div 0 = 1", "1e0 div 0", "//a/b div 0"],
)
def test_what_may_have_a_value_is_watched(text: str) -> None:
    assert len(axlog.parse("<r><a><b>1</b></a></r>").watch(text).items()) == 1


def test_explain_names_the_last_error_of_a_tuple_without_a_value() -> None:
    doc = axlog.parse("<r><a>1</a><a>true</a></r>")
    view = doc.watch("//a[. = true()]", "v")
    assert "without a value" not in str(view.explain())
    doc.update("insert node <a>x</a> into /r")
    said = "tuples without a value since the view began: 1; last FORG0001: 'x'"
    assert said in str(view.explain())
