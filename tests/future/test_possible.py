"""Possible rows: what is known of them, what they need, from which stream, until when; status."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.document.tree import Tree
from axlog.errors import QueryError, UndecidedError
from axlog.future.truth import Outlook, Possible
from axlog.live.document import Document, parse
from axlog.live.internals import maintained
from axlog.query.native import parse_pattern
from axlog.query.truth import Truth
from tests.papers import SECOND, document, end, feed, xml


def outlook(tree: Tree | str, query: str) -> Outlook:
    tree = document(tree) if isinstance(tree, str) else tree
    return Outlook(tree, parse_pattern(query))


def possible(tree: Tree | str, query: str) -> list[tuple[dict[str, Any], list[str]]]:
    """Each possible row, and its needs as `pattern from stream`."""
    return [(dict(one.row), needs(one)) for one in outlook(tree, query).possible()]


def needs(one: Possible) -> list[str]:
    return [f"{wanted.pattern} from {wanted.stream}" for wanted in one.needs]


# The papers' examples -----------------------------------------------------------------------------

FIGURE_4 = "match /r[p/$x][q/$y]/w/s return $x, $y"


def test_example_2_p1_figure_4_a_row_that_is_there() -> None:
    found = outlook("r[p[b], q[c], w[s]]", FIGURE_4)
    assert found.possible() == []
    assert found.status({"x": "b", "y": "c"}) is Truth.TRUE


def test_example_2_p1_figure_4_a_value_to_come() -> None:
    assert possible("r[p[b], q[?f], w[s]]", FIGURE_4) == [({"x": "b", "y": None}, ["$y from f"])]


def test_example_2_p1_figure_4_a_row_known_and_not_there() -> None:
    found = outlook("r[p[b], q[c], w[?f]]", FIGURE_4)
    assert [(dict(one.row), needs(one)) for one in found.possible()] == [
        ({"x": "b", "y": "c"}, ["s from f"])
    ]
    assert found.status({"x": "b", "y": "c"}) is Truth.POSSIBLE
    assert found.status({"x": "b", "y": "d"}) is Truth.NEVER
    assert found.status({"x": "b"}) is Truth.POSSIBLE


def test_example_7_p2_figure_3() -> None:
    found = outlook("a[b[a], a[c, ?f]]", "match /a[b/$x]/$x/$y return $x, $y")
    assert found.truth is Truth.TRUE
    assert found.status({"x": "a", "y": "c"}) is Truth.TRUE
    assert found.status({"x": "a", "y": "other"}) is Truth.POSSIBLE
    assert found.status({"x": "c", "y": "c"}) is Truth.NEVER
    assert [dict(one.row) for one in found.possible()] == [{"x": "a", "y": None}]


LATE = (
    'match /management[webstore/orders/order[client/"INRIA"][details/computer]/oid/$x#t1]'
    "[shipping/orders/order/oid/$x#t2] where t2 - t1 {} 50000 return $x"
)
SITES = "management[webstore[orders[?placed]], shipping[orders[?shipped]], clock[?tick]]"
ORDER = 'order[client["INRIA"], details[computer], oid["17"]]'


def test_example_13_p3_an_order_under_way_is_not_hidden_by_an_open_row() -> None:
    tree = document(SITES)
    feed(tree, "placed", ORDER, 100)
    found = outlook(tree, LATE.format(">="))
    rows = [dict(one.row) for one in found.possible()]
    assert {"x": "17"} in rows
    assert {"x": None} in rows
    assert found.status({"x": "17"}) is Truth.POSSIBLE


def test_example_13_p3_an_order_has_a_deadline() -> None:
    tree = document(SITES)
    feed(tree, "placed", ORDER, 100)
    deadlines = {one.row["x"]: one.deadline for one in outlook(tree, LATE.format("<=")).possible()}
    assert deadlines == {"17": 50_100 * SECOND, None: None}


def test_example_13_p3_with_keys_an_early_order_is_never_late() -> None:
    doc = Document(xml(SITES), views={"late": LATE.format(">=")}, facts=(
        "key webstore/orders/order by oid trusted", "key shipping/orders/order by oid trusted",
    ))  # fmt: skip
    doc.feed("placed", xml(ORDER), at=100)
    late = doc.view("late")
    assert late.status({"x": "17"}) is Truth.POSSIBLE
    doc.feed("shipped", xml('order[oid["17"]]'), at=150)
    assert late.status({"x": "17"}) is Truth.NEVER
    assert late.status({"x": "18"}) is Truth.POSSIBLE


def test_example_14_p3_figure_4() -> None:
    query = "match /a[d/y]/b/c/$x return $x"
    tree = document("a[d[?f], b[?g]]")
    assert possible(tree, query) == [({"x": None}, ["y from f", "c/$x from g"])]
    feed(tree, "f", "y")
    assert possible(tree, query) == [({"x": None}, ["c/$x from g"])]
    other = document("a[d[?f], b[?g]]")
    end(other, "f")
    assert possible(other, query) == []


def test_example_16_p3_figure_6_dominated_scenarios_are_not_shown() -> None:
    found = outlook("r[s[a2], m[u, ?f], n[v, ?g]]", "match /r[s/$x][m/u][n/v] return $x")
    assert found.status({"x": "a2"}) is Truth.TRUE
    assert found.possible() == []


# What is known ------------------------------------------------------------------------------------


def test_a_deadline_is_the_latest_over_the_scenarios() -> None:
    tree = document("r[p[?f], q[?g]]")
    feed(tree, "f", "a", 2)
    feed(tree, "f", "a", 5)
    end(tree, "f")
    (one,) = outlook(tree, "match /r[p/a#t][q/b#u] where u - t <= 3").possible()
    assert one.deadline == 8 * SECOND


def test_an_id_is_known_of_nodes_that_are_here_only() -> None:
    tree = document("r[a[?f], ?g]")
    query = "match /r/a#t/b return t.id"
    rows = [one.row["t.id"] for one in outlook(tree, query).possible()]
    known = [row for row in rows if row is not None]
    assert len(rows) == 2
    assert outlook(tree, query).status({"t.id": known[0]}) is Truth.POSSIBLE
    assert outlook(tree, query).status({"t.id": tree.id(tree.root)}) is Truth.NEVER


def test_a_value_that_may_change_is_not_known() -> None:
    tree = document('r[a["1", ?f], a["2"], ?g]')
    query = "match /r[b]/a#t return t.val"
    rows = [one.row["t.val"] for one in outlook(tree, query).possible()]
    assert sorted(map(str, rows)) == ["2", "None", "None"]
    with pytest.raises(UndecidedError):
        outlook(tree, query).status({"t.val": "1"})


def test_the_status_of_a_value_that_cannot_change() -> None:
    tree = document('r[a["2"], c[?g]]')
    found = outlook(tree, "match /r[c/b]/a#t return t.val")
    assert found.status({"t.val": "2"}) is Truth.POSSIBLE
    assert found.status({"t.val": "3"}) is Truth.NEVER


def test_the_times_of_rows_to_come_are_at_or_after_the_clock() -> None:
    tree = document("r[?f]")
    feed(tree, "f", "b", 5)
    found = outlook(tree, "match /r/a#t return t.time")
    assert found.status({"t.time": 4 * SECOND}) is Truth.NEVER
    assert found.status({"t.time": 5 * SECOND}) is Truth.POSSIBLE


def test_values_are_compared_with_constants_as_intervals() -> None:
    found = outlook("r[?f]", 'match /r/a[. >= "b"][. < "c"] return $x'.replace("return $x", ""))
    assert found.truth is Truth.POSSIBLE
    assert outlook("r[?f]", 'match /r/a[. >= "c"][. < "b"]').truth is Truth.NEVER
    bounded = outlook("r[?f]", "match /r/a/$x where $x >= 5 return $x")
    assert bounded.status({"x": "7"}) is Truth.POSSIBLE
    assert bounded.status({"x": "4"}) is Truth.NEVER
    assert bounded.status({"x": "word"}) is Truth.NEVER


def test_unknowns_that_must_be_equal_or_differ() -> None:
    found = outlook("r[?f]", "match /r[a/$x][b/$y] where $x != $y return $x, $y")
    assert found.status({"x": "1", "y": "1"}) is Truth.NEVER
    assert found.status({"x": "1", "y": "2"}) is Truth.POSSIBLE
    same = outlook("r[?f]", "match /r[a/$x][b/$y] where $x = $y return $x, $y")
    assert same.status({"x": "1", "y": "1"}) is Truth.POSSIBLE
    assert same.status({"x": "1", "y": "2"}) is Truth.NEVER


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(QueryError, match="no column z"):
        outlook("r[?f]", "match /r/a/$x return $x").status({"z": "1"})


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("match /r/o[id/$x][k][not(bad)] return $x", {("2", "g"), (None, "g"), (None, "f")}),
        ("match /r/o[not(bad)]/id/$x return $x", {(None, "g"), (None, "f")}),
        ("match /r[not(not(z))]/o/id/$x return $x",
         {("1", "f"), ("2", "f"), (None, "f"), (None, "f g")}),
    ],
)  # fmt: skip
def test_rows_of_a_query_with_not_are_listed(query: str, shown: set[tuple[str, str]]) -> None:
    found = outlook('r[o[id["1"], bad], o[id["2"], ?g], ?f]', query).possible()
    rows = {(p.row["x"], " ".join(sorted({n.stream for n in p.needs}))) for p in found}
    assert rows == shown


def test_the_status_of_rows_with_not() -> None:
    asked = outlook('r[o[id["1"], bad], o[id["2"]]]', "match /r/o[not(bad)]/id/$x return $x")
    found = [asked.status({"x": value}) for value in ("1", "2", "3")]
    assert found == [Truth.NEVER, Truth.TRUE, Truth.NEVER]
    by_node = outlook("r[o[bad], ?f]", "match /r/o#t[not(bad)] return t.id")
    (mine,) = by_node.possible()
    assert mine.row == {"t.id": None}
    tree = by_node.tree
    first = next(iter(tree.children(tree.root)))
    assert by_node.status({"t.id": tree.id(first)}) is Truth.NEVER


def test_rows_with_not_and_two_times_are_decided() -> None:
    asked = outlook("r[?f]", "match /r[a#t][b#u][not(c)] return t.time, u.time")
    assert asked.status({"t.time": 5, "u.time": 6}) is Truth.POSSIBLE
    assert asked.status({"t.time": -5, "u.time": 6}) is Truth.NEVER


def test_rows_with_not_by_their_values_are_refused() -> None:
    asked = outlook("r[?f]", "match /r/a#t[not(c)] return t.val")
    with pytest.raises(UndecidedError, match="AX503"):
        asked.status({"t.val": "x"})


def test_deletion_that_would_merge_texts_is_refused() -> None:
    with pytest.raises(UndecidedError, match="merge"):
        outlook('r["1", a, "2", ?f{deletes=only}]', 'match /r/"12"')


# Faces --------------------------------------------------------------------------------------------


def test_a_view_lists_what_may_come() -> None:
    view = parse(xml("r[p[b], q[?f], w[s]]")).watch(FIGURE_4)
    assert [one.to_dict() for one in view.possible()] == [
        {"row": {"x": "b", "y": None}, "needs": [{"stream": "f", "pattern": "$y"}]}
    ]
    assert view.status({"x": "b", "y": "anything"}) is Truth.POSSIBLE


def test_axlog_truth_prints_example_2() -> None:
    arguments = ["truth", xml("r[p[b], q[c], w[?f]]"), FIGURE_4]
    result = CliRunner().invoke(application(["truth"]), arguments)
    assert json.loads(result.stdout) == {
        "truth": "possible",
        "possible": [{"row": {"x": "b", "y": "c"}, "needs": [{"stream": "f", "pattern": "s"}]}],
    }


def test_rows_beside_not_where_calls_are_limited_are_asked_for_by_what_they_show() -> None:
    """Limited calls keep every variable of a scenario, also those that its row does not show."""
    call = '<ax:call xmlns:ax="urn:axlog" stream="s" most="2"/>'
    tree = maintained(parse(f"<r><a><b>1</b>{call}</a></r>")).tree
    assert outlook(tree, "match /r/a[not(c)][b/$x]").truth is Truth.TRUE
    for negated in ("", "[not(c)]"):
        assert possible(tree, f"match /r/a{negated}[b/$x]") == []  # it is there
        (one,) = possible(tree, f"match /r/a{negated}[b/$x]/d")
        assert one == ({}, ["d from s"])  # another `b` may come, and is not needed


@pytest.mark.parametrize("deletes", ["no", "yes"])
def test_values_of_attributes_are_known(deletes: str) -> None:
    call = f'<ax:call xmlns:ax="urn:axlog" stream="s" deletes="{deletes}"/>'
    doc = Document(f'<watch><site name="j">{call}</site></watch>')
    view = doc.watch("match /watch/site[@name/$site]/item/link/$link return $site, $link", "v")
    (one,) = view.possible()
    assert dict(one.row) == {"site": "j", "link": None}
    assert view.status({"site": "j", "link": "x"}) is Truth.POSSIBLE
    assert view.status({"site": "k", "link": "x"}) is Truth.NEVER
