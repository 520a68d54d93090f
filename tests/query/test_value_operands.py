"""Comparisons of the document with one node inside `not`, `or` and `every` are patterns."""

from __future__ import annotations

import pytest

import axlog
from axlog import Truth
from axlog.errors import UndecidedError, UnsupportedError
from axlog.query.query import parse_query
from axlog.query.xquery_compiler import parse_xquery

PATTERNS = {
    "for $i in /s/o/i where not(/s/p/i = $i) return string($i)": (
        "match /s[o[i#i = $v1]][not(p[i = $v1])] return i.val"
    ),
    "for $o in /s/o, $i in $o/i where empty(/s/p[i = $i]) return <r>{$o/@n}</r>": (
        "match /s[o#o[i#i = $v1][collect(@n#n)]][not(p[i = $v1])] return n.val"
    ),
    "for $i in /s/o/i where every $p in /s/p satisfies not($p/i = $i) return $i": (
        "match /s[o[i#i = $v1]][not(p[i = $v1])] return i.cont"
    ),
    "for $i in /s/o/i where not(/s/p/i > $i) and not(/s/q/i = $i) return string($i)": (
        "match /s[o[i#i = $v1]][not(p[i > $v1 as xs:string])][not(q[i = $v1])] return i.val"
    ),
    "/s/o/i[not(. = /s/p/i)]": "match /s[o[i#node = $v1]][not(p[i = $v1])] return node.id",
    "for $v in distinct-values(/s/o/i) where every $p in /s/p satisfies not($p/i = $v) return $v": (
        "match /s[o[i = $v]][not(p[i = $v])] return $v"
    ),
}


@pytest.mark.parametrize("query", PATTERNS)
def test_a_comparison_with_one_node_inside_a_connective_is_a_pattern(query: str) -> None:
    found = parse_query(query)
    assert found.plan is None
    assert str(found.pattern) == PATTERNS[query]


@pytest.mark.parametrize(
    "query",
    [
        "for $o in /s/o where not(/s/p/i = $o/i) return $o",  # several nodes, or none
        "for $o in /s/o let $i := $o/i where not(/s/p/i = $i) return $o",
        "for $i in /s/o/i where not(/s/p/i = $i and $i/@k) return $i",  # more than its value
        "/s/o[not(i = /s/p/i)]",
    ],
)
def test_a_comparison_with_several_nodes_is_more_than_a_pattern(query: str) -> None:
    view = axlog.parse("<s/>").watch(query)
    with pytest.raises(UndecidedError, match="more than a pattern") as refusal:
        view.possible()
    assert "$i in $o/id" in str(refusal.value)


def test_a_variable_of_a_quantifier_hides_the_node() -> None:
    query = "for $i in /s/o/i where not(some $i in /s/p/i satisfies $i = 3) return $i"
    document = axlog.parse("<s><o><i>1</i></o><p><i>3</i></p></s>")
    view = document.watch(query)
    assert view.rows() == []
    document.update("delete node /s/p")
    assert len(view.rows()) == 1


def test_a_query_that_a_pattern_would_evaluate_again_is_kept_by_its_plan() -> None:
    query = "for $i in /s/o/i where /s/p/i = $i or not(/s/q/i = $i) return string($i)"
    view = axlog.parse("<s><o><i>1</i></o></s>").watch(query)
    assert view.explain().maintainer == "dataflow"
    assert view.explain().is_incremental


def test_the_future_of_an_order_without_shipment_is_known_in_xquery() -> None:
    shop = axlog.Document(streams=["orders", "shipments"])
    query = (
        "for $x in distinct-values(/document/orders/order/id) "
        "where not(/document/shipments/shipment/order = $x) return $x"
    )
    view = shop.watch(query, name="open")
    emitted: list[tuple[str, str, bool]] = []
    view.subscribe(lambda change: emitted.append((change.op, change.row["x"], change.final)))
    shop.feed("orders", "<order><id>17</id></order>")
    assert view.status({"x": "17"}) is Truth.TRUE
    assert view.status({"x": "18"}) is Truth.POSSIBLE
    shop.feed("shipments", "<shipment><order>17</order></shipment>")
    assert view.status({"x": "17"}) is Truth.NEVER
    assert emitted == [("insert", "17", False), ("delete", "17", True)]
    assert "join's state" in str(view.explain())


def test_the_compiler_alone_still_refuses_what_is_no_pattern() -> None:
    with pytest.raises(UnsupportedError):
        parse_xquery("for $o in /s/o where not(/s/p/i = $o/i or /s/q = /s/r/i + 1) return $o")


@pytest.mark.parametrize(("first", "found"), [("true() or", []), ("false() and", ["1"])])
def test_a_value_is_bound_also_if_its_first_condition_is_constant(
    first: str, found: list[str]
) -> None:
    query = (
        f"for $i in /s/o/i where not({first} /s/p/i = $i) and not(/s/q/i = $i) return string($i)"
    )
    document = axlog.parse("<s><o><i>1</i><i>2</i></o><q><i>2</i></q></s>")
    assert parse_query(query).plan is None
    assert document.watch(query).items() == found
