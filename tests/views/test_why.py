"""Why a row is there: every derivation, with the message that brought each node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import axlog
from axlog.cli.application import application
from axlog.errors import QueryError
from axlog.live.internals import maintained

DOCUMENT = '<m><o><k>1</k><ax:call xmlns:ax="urn:axlog" stream="orders"/></o></m>'


def doc(query: str) -> axlog.Document:
    made = axlog.parse(DOCUMENT, views={"v": query})
    made.feed("orders", "<a>1</a>", at=1)
    made.feed("orders", "<b/><a>1</a>", at=2)  # two trees: the long way
    return made


def test_each_derivation_names_the_message_of_its_nodes() -> None:
    view = doc("match /m/o/a/$x return $x").view("v")
    (row,) = view.rows()
    assert row.count == 2
    reasons = [derivation.matched[-1] for derivation in view.why(row)]
    assert [matched.origin for matched in reasons] == [
        "message 1 of 'orders'",
        "message 2 of 'orders'",
    ]
    assert [matched.time for matched in reasons] == [1, 2]
    assert [matched.path for matched in reasons] == ["/m/o/a[1]/text()", "/m/o/a[2]/text()"]


def test_a_node_of_the_document_itself_has_no_origin() -> None:
    view = doc("match /m/o/k/$x return $x").view("v")
    (derivation,) = view.why({"x": "1"})
    assert {matched.origin for matched in derivation.matched} == {None}


@pytest.mark.parametrize(
    "query",
    [
        "match //a/@k/$x return $x",
        "match //p:a/@p:k/$x return $x",
        "match //*/@*/$x return $x",
        "match //a[b > 1]/@k/$x return $x",
        "match //a[@k/$x][b/$x] return $x",
        "match //a[@k/$x]/b/@k/$x return $x",
        "match //a[@k/$x or b/$x] return $x",
    ],
)
def test_values_of_attributes_have_as_many_derivations_as_their_row_counts(query: str) -> None:
    made = axlog.parse(
        """<r xmlns:p="urn:p"><a k="1"><b k="1">1</b></a><a k="2"><b k="1">2</b></a>
           <a k="2"><b>3</b></a><p:a p:k="4"/></r>""",
        options=axlog.Options(namespaces={"p": "urn:p"}),
    )
    view = made.watch(query)
    assert view.rows()
    assert [len(view.why(row)) for row in view] == [row.count for row in view]


def test_a_row_that_does_not_hold_has_no_derivation() -> None:
    assert doc("match /m/o/a/$x return $x").view("v").why({"x": "9"}) == []


def test_the_origin_goes_with_its_node() -> None:
    made = doc("match /m/o/a/$x return $x")
    maintained(made).delete("match //a#n return n.id")
    maintained(made).insert("match /m/o#n return n.id", "<a>1</a>")
    (derivation,) = made.view("v").why({"x": "1"})
    assert derivation.matched[-1].origin is None


# On the command line ------------------------------------------------------------------------------


def ask(*arguments: object) -> Result:
    return CliRunner().invoke(application(), ["why", *map(str, arguments)])


def test_why_on_the_command_line(tmp_path: Path) -> None:
    updates = tmp_path / "updates.jsonl"
    updates.write_text(
        '{"stream": "s", "insert": "<b>1</b>", "at": 5}\n'
        '{"stream": "s", "insert": "<b>2</b>", "at": 6}\n',
        encoding="utf-8",
    )
    document = '<a><b>1</b><ax:call xmlns:ax="urn:axlog" stream="s"/></a>'
    query = "match /a/b/$x return $x"
    said = ask(document, query, "--after", updates, "--row", "x=1")
    assert said.exit_code == 0, said.output
    lines = [json.loads(line) for line in said.stdout.splitlines()]
    assert [line["row"] for line in lines] == [{"x": "1"}] * 2
    assert [line["matched"][1]["path"] for line in lines] == ["/a/b[1]", "/a/b[2]"]
    assert "from" not in lines[0]["matched"][1]
    assert lines[1]["matched"][1]["from"] == "message 1 of 's'"
    assert lines[1]["matched"][1]["time"] == 5
    assert len(ask(document, query, "--after", updates).stdout.splitlines()) == 3
    assert "/a/b/text()" in ask(document, query, "--table").stdout


def test_why_of_what_is_not_there() -> None:
    assert ask("<a/>", "match /a/b/$x return $x").exit_code == 1
    assert ask("<a><b>1</b></a>", "match /a/b/$x return $x", "--row", "x=2").exit_code == 1
    assert ask("<a><b>1</b></a>", "match /a/b/$x return $x", "--row", "y=2").exit_code == 2
    assert ask("<a/>", "match /a[").exit_code == 2


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ("match //x[c/$c]/i/$i return $c, $i", [1, 2, 1, 3]),
        ("match //x[c/$c]/i/$i return $c, count() as n", [2, 2, 2, 3]),
        ("match //x[c/$c]/i/$i return $c, $i + 1 as j", [1, 2, 1, 3]),
        ("match //x[c/$c]/i/$i return $c, $i order by $i limit 1", [1, 1, 1, 1]),
    ],
)
def test_a_column_that_is_left_out_may_have_any_value(query: str, counts: list[int]) -> None:
    doc = axlog.parse(
        "<r><x><c>A</c><i>1</i></x><x><c>A</c><i>2</i></x><x><c>B</c><i>2</i></x></r>"
    )
    view = doc.watch(query)
    row = view.rows()[0].to_dict()
    asked = [row, *({name: value} for name, value in row.items()), {}]
    assert [len(view.why(each)) for each in asked] == counts


@pytest.mark.parametrize(
    "query", ["match //c/$c return $c", "match //c/$c return $c, count() as n", "//c", "count(//c)"]
)
def test_a_column_that_the_view_does_not_have_is_refused(query: str) -> None:
    view = axlog.parse("<r><c>A</c></r>").watch(query)
    with pytest.raises(QueryError, match="no column zz"):
        view.why({"zz": 1})
