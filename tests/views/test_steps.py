"""Views with computed values, aggregates and order: changes, keys, policies, stores, answers."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

import axlog
from axlog import Options, Truth
from axlog.document.loader import load
from axlog.errors import QueryError
from axlog.evaluate.steps_definition import rows_by_definition
from axlog.live.document import Document
from axlog.live.options import Keep
from axlog.query.query import parse_query

SHOP = (
    "<orders>"
    "<order><client>A</client><total>10</total><item/><item/></order>"
    "<order><client>B</client><total>5.50</total></order>"
    "</orders>"
)
TOTALS = "match //order[client/$c]/total/$t return $c, count() as orders, sum($t) as total"
FED = '<r><ax:call xmlns:ax="urn:axlog" stream="s"/></r>'
MAINTAINERS = ("counting", "algebraic", "adaptive", "reevaluate")


def _order(client: str, total: str) -> str:
    return f"<order><client>{client}</client><total>{total}</total></order>"


@pytest.mark.parametrize("maintainer", MAINTAINERS)
def test_a_moved_aggregate_is_an_update_and_an_emptied_group_is_deleted(maintainer: str) -> None:
    doc = axlog.parse(SHOP)
    view = doc.watch(TOTALS, "totals", maintainer=maintainer)
    assert [dict(row) for row in view] == [
        {"c": "A", "orders": 1, "total": Decimal(10)},
        {"c": "B", "orders": 1, "total": Decimal("5.5")},
    ]
    (change,) = doc.update(f"insert node {_order('A', '7')} into /orders")
    assert (change.op, change.key) == ("update", ("A",))
    assert change.before is not None
    assert (change.before["total"], change.row["total"]) == (Decimal(10), Decimal(17))
    (change,) = doc.update("delete nodes //order[client = 'A']")
    assert (change.op, dict(change.row)) == (
        "delete",
        {"c": "A", "orders": 2, "total": Decimal(17)},
    )


def test_a_predicate_that_binds_nothing_counts_once() -> None:
    doc = axlog.parse(SHOP)
    (row,) = doc.watch("match //order[item]/total/$t return count(), sum($t)").rows()
    assert dict(row) == {"count": 1, "sum": 10}
    (row,) = doc.watch("match //order/item return count()").rows()
    assert row["count"] == 2


def test_one_text_below_several_ancestors_counts_once() -> None:
    doc = axlog.parse("<a><a><b>1</b></a></a>")
    view = doc.watch("match //a//b/$x return count(), sum($x)")
    assert [dict(row) for row in view] == [{"count": 1, "sum": 1}]
    doc.update("delete node /a/a/b")
    assert [dict(row) for row in view] == [{"count": 0, "sum": 0}]


def test_a_query_without_plain_outputs_always_has_one_row() -> None:
    doc = axlog.parse("<a/>")
    view = doc.watch("match //b/$x return count(), sum($x), min($x), max($x), avg($x)")
    expected = {"count": 0, "sum": 0, "min": None, "max": None, "avg": None}
    assert [dict(row) for row in view] == [expected]
    (change,) = doc.update("insert node <b>3</b> into /a")
    assert (change.op, change.key) == ("update", ())


def test_the_maximum_goes_and_the_next_one_is_found() -> None:
    doc = axlog.parse("<a><b>9</b><b>10</b><b>x</b></a>")
    view = doc.watch("match //b/$x where $x < 100 return min($x), max($x)")
    assert [dict(row) for row in view] == [{"min": Decimal(9), "max": Decimal(10)}]
    doc.update("delete node //b[2]")
    assert [dict(row) for row in view] == [{"min": Decimal(9), "max": Decimal(9)}]


def test_a_row_that_enters_the_first_rows_moves_another_out() -> None:
    doc = axlog.parse("<a><b>1</b><b>2</b><b>3</b></a>")
    view = doc.watch("match //b/$x return $x order by x descending limit 2", "top")
    assert [row["x"] for row in view] == ["3", "2"]
    changes = doc.update("insert node <b>10</b> into /a")
    assert [(change.op, change.row["x"]) for change in changes] == [
        ("delete", "2"),
        ("insert", "10"),
    ]
    assert doc.update("insert node <b>0</b> into /a") == []
    assert [row["x"] for row in view] == ["10", "3"]


def test_latest_by_key_over_a_stream() -> None:
    query = "match //pos[vehicle/$v][at/$t]/p/$p return $v, latest($p by $t) as at"
    doc = Document(FED, views={"v": query}, options=Options(keep="needed"))
    for at, (vehicle, place) in enumerate((("bus", "X"), ("tram", "Y"), ("bus", "Z"))):
        doc.feed("s", f"<pos><vehicle>{vehicle}</vehicle><at>{at}</at><p>{place}</p></pos>", at=at)
    assert [(row["v"], row["at"]) for row in doc.view("v")] == [("bus", "Z"), ("tram", "Y")]
    assert doc.code("s") is not None
    late = doc.feed("s", "<pos><vehicle>bus</vehicle><at>0</at><p>W</p></pos>", at=9)
    assert late == []


def test_a_value_of_a_node_is_read_again_when_it_changes() -> None:
    doc = axlog.parse("<a><b>1</b><b>2</b></a>")
    view = doc.watch("match //b#t return t.val, t.val * 2 as twice")
    (change,) = doc.update("replace value of node //b[1] with '5'")
    assert (change.op, change.row["twice"]) == ("update", Decimal(10))
    assert [row["twice"] for row in view] == [Decimal(4), Decimal(10)]
    assert view.key == ("t.id",)


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_rejected_value_is_a_dead_letter_and_changes_nothing(keep: Keep) -> None:
    doc = Document(FED, options=Options(keep=keep, on_error="dead-letter"))
    doc.watch(TOTALS, "totals", on_value_error="reject")
    doc.watch("match //order/client/$c return $c, count() as n", "clients")
    doc.feed("s", _order("A", "3"), at=1)
    before = [doc.view(name).rows() for name in ("totals", "clients")]
    assert doc.feed("s", _order("A", "x"), at=2) == []
    assert doc.dead_letters[0].error.code == "FORG0001"
    assert [doc.view(name).rows() for name in ("totals", "clients")] == before
    assert doc.clock == 1
    (one, other) = doc.feed("s", _order("A", "4"), at=3)
    assert (one.row["total"], other.row["n"]) == (7, 2)


def test_a_statement_with_a_rejected_value_changes_nothing() -> None:
    doc = axlog.parse(SHOP)
    view = doc.watch(TOTALS, "totals", on_value_error="reject")
    before, text = view.rows(), doc.xml()
    with pytest.raises(QueryError, match="FORG0001"):
        doc.update("replace value of node //order[1]/total with 'y'")
    assert (view.rows(), doc.xml()) == (before, text)


def test_a_view_that_rejects_values_of_the_document_is_not_watched() -> None:
    doc = Document(FED.replace("<ax:call", "<order><total>x</total></order><ax:call"))
    clients = doc.watch("match //order/client/$c return $c, count() as n", "clients")
    with pytest.raises(QueryError, match="FORG0001"):
        doc.watch("match //order/total/$t return sum($t)", "totals", on_value_error="reject")
    assert list(doc.views) == ["clients"]
    doc.feed("s", _order("A", "x"), at=1)
    assert [row["n"] for row in clients] == [1]


def test_a_value_that_cannot_be_computed_is_null_by_default() -> None:
    doc = axlog.parse("<a><b>0</b><b>x</b></a>")
    view = doc.watch("match //b/$x return $x, 1 div $x as inverse")
    assert [row["inverse"] for row in view] == [None, None]
    with pytest.raises(QueryError, match="AX211"):
        doc.watch("match //b/$x return 1 div $x as y", on_value_error="stop")  # type: ignore[arg-type]


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_aggregated_views_survive_a_restart(tmp_path: Path, keep: Keep) -> None:
    query = f"{TOTALS}, max($t), collect($t) order by total descending limit 2"
    with axlog.open(tmp_path, FED, options=Options(keep=keep)) as store:
        store.watch(query, "v", on_value_error="reject")
        store.feed("s", _order("A", "3.5"), at=1)
        store.feed("s", _order("B", "4"), at=2)
        store.snapshot()
        store.feed("s", _order("B", "5"), at=3)
        rows, position = store.view("v").rows(), store.view("v").position
    with axlog.open(tmp_path) as store:
        assert (store.view("v").rows(), store.view("v").position) == (rows, position)
        (change,) = store.feed("s", _order("A", "1"), at=4)
        assert (change.op, change.row["total"]) == ("update", Decimal("4.5"))


def test_a_failed_batch_leaves_the_groups() -> None:
    doc = axlog.parse(SHOP)
    view = doc.watch(TOTALS)
    before = view.rows()
    with suppress(ZeroDivisionError), doc.batch():
        doc.update("delete nodes //order")
        raise ZeroDivisionError
    assert view.rows() == before
    heard: list[axlog.Change] = []
    view.subscribe(heard.append)
    with doc.batch():
        doc.update(f"insert node {_order('A', '1')} into /orders")
        doc.update(f"insert node {_order('A', '2')} into /orders")
    assert [(change.op, change.row["total"]) for change in heard] == [("update", Decimal(13))]


def test_a_deferred_view_emits_the_net_update() -> None:
    doc = axlog.parse(SHOP)
    view = doc.watch(TOTALS).defer()
    doc.update(f"insert node {_order('A', '1')} into /orders")
    doc.update(f"insert node {_order('A', '2')} into /orders")
    (change,) = view.refresh()
    assert (change.op, change.row["total"]) == ("update", Decimal(13))


def test_why_names_the_rows_behind_a_group() -> None:
    doc = axlog.parse(SHOP)
    doc.update(f"insert node {_order('A', '7')} into /orders")
    view = doc.watch(TOTALS)
    found = view.why(view.rows()[0])
    paths = [derivation.matched[-1].path for derivation in found]
    assert paths == ["/orders/order[1]/total/text()", "/orders/order[3]/total/text()"]


def test_arrow_has_the_types_of_the_columns() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    doc = axlog.parse(SHOP)
    table = doc.watch(f"{TOTALS}, sum($t) > 6 as large").to_arrow()
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    assert types["orders"] == pyarrow.int64()
    assert pyarrow.types.is_decimal(types["total"])
    assert types["large"] == pyarrow.bool_()
    assert table.column("total").to_pylist() == [Decimal("10.00"), Decimal("5.50")]


def test_json_has_numbers_where_they_are_exact() -> None:
    doc = axlog.parse("<a><b>0.1</b><b>0.12345678901234567890123</b></a>")
    rows = doc.watch("match //b/$x return $x, number($x) as n").rows()
    assert [row.to_dict()["n"] for row in rows] == [0.1, "0.12345678901234567890123"]


def test_groups_may_come_and_tuning_and_collection_decline_them_by_name() -> None:
    doc = Document(FED, views={"v": TOTALS})
    assert doc.view("v").truth is Truth.POSSIBLE
    (possible,) = doc.view("v").possible()
    assert possible.row == {"c": None, "orders": None, "total": None}
    assert "computes values" in doc.tune().streams["s"].reason
    assert "computes values" in str(doc.collect().kept)


def test_explain_lists_the_operators_with_their_costs_and_keys() -> None:
    doc = axlog.parse(SHOP)
    said = str(doc.watch(TOTALS).explain())
    (line,) = [line.strip() for line in said.splitlines() if line.strip().startswith("group ")]
    assert line.startswith("group (c, aggregate~1, aggregate~2): ")
    assert line.endswith("split by c; per row 1 look-ups, 0 scans")


@pytest.mark.parametrize(
    "query",
    [
        # What only one alternative of an `or` binds does not tell tuples apart.
        "match //$y[descendant-or-self::node()[//*#t][node()#u or $x]] return $y, count() as n",
        # An average that does not end is rounded before it is used.
        "match //t/$t return avg($t) * 2 as m, sum($t) as s",
    ],
)
def test_cases_that_the_law_of_aggregates_found(query: str) -> None:
    text = "<a><b/><b><c><a><t>1</t></a></c><t>2</t><b/></b><t>1.02</t></a>"
    found = Counter(tuple(row.values()) for row in axlog.parse(text).watch(query).rows())
    assert found == rows_by_definition(load(text), parse_query(query))


def test_names_of_nodes_are_read_from_labels() -> None:
    doc = axlog.parse("<r xmlns:p='urn:p'><p:o><c>1</c></p:o><o><c>2</c></o></r>")
    query = "match //*#o/c/$c return $c, local-name(o) as l, namespace-uri(o) as n, name(o) as q"
    assert [row.to_dict() for row in doc.watch(query)] == [
        {"c": "1", "l": "o", "n": "urn:p", "q": "{urn:p}o"},
        {"c": "2", "l": "o", "n": "", "q": "o"},
    ]
    grouped = (
        "match //*#o/c/$c where namespace-uri(o) = 'urn:p' return local-name(o) as l, count() as n"
    )
    assert [row.to_dict() for row in doc.watch(grouped)] == [{"l": "o", "n": 1}]


def test_the_items_of_lists_are_joined() -> None:
    doc = axlog.parse("<r><o>gold ring</o><o>ink</o></r>")
    view = doc.watch("match //o/$x return string-join(tokenize($x, ' '), '+') as words")
    assert [row.to_dict() for row in view] == [{"words": "ink+gold+ring"}]


@pytest.mark.parametrize("maintainer", [None, "counting", "reevaluate"])
@pytest.mark.parametrize(
    "condition", ["count(p) = 0", "not(p)", "count(p) < 3 or t", "string-length(name) = 0 or t"]
)
def test_steps_with_conditions_that_compute_only_test(
    condition: str, maintainer: str | None
) -> None:
    """Found by `fuzz --law aggregates`: a text counted once for each `o` around it."""
    doc = axlog.parse("<r><o><o><t>5</t></o></o></r>")
    text = f"match //o[{condition}]//t/$t return count() as n, sum($t) as s"
    view = doc.watch(text, maintainer=maintainer)
    assert [row.to_dict() for row in view.rows()] == [{"n": 1, "s": 5}]
    doc.update("insert node <p>1</p> into /r/o")
    assert [row.to_dict() for row in view.rows()] == [{"n": 1, "s": 5}]
    doc.update("delete node /r/o/o/t")
    assert [row.to_dict() for row in view.rows()] == [{"n": 0, "s": 0}]


def test_a_node_with_a_variable_and_a_collected_path_binds() -> None:
    """Found by `fuzz --law aggregates`."""
    doc = axlog.parse("<r><a/><a/></r>")
    view = doc.watch("match /r/$y[collect(node()#t)] return count() as n")
    assert [row.to_dict() for row in view.rows()] == [{"n": 2}]
    plain = doc.watch("match //$y[collect(node()#t)], /$x return $x, count() as n")
    assert [row.to_dict() for row in plain.rows()] == [{"x": "r", "n": 3}]


@pytest.mark.parametrize(
    ("returned", "key"),
    [
        ("t.val + $y as c", ("t.id", "y")),
        ("$y, t.val + $y as c", ("y", "t.id")),
        ("t.val + (u.time - u.time) as c", ("t.id", "u.time")),
        ("$y + 1 as c", ("c",)),
    ],
)
def test_computed_columns_have_the_key_of_all_that_they_read(
    returned: str, key: tuple[str, ...]
) -> None:
    """Found by `fuzz --law aggregates`: rows with other values of a variable had equal keys."""
    doc = axlog.parse("<r><a>1</a><b>2</b><b>3</b></r>")
    view = doc.watch(f"match /r[a#t]/b#u/$y return {returned}")
    assert view.key == key
    assert len({row.key for row in view.rows()}) == len(view.rows())
