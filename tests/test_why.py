"""Why a row is there: every derivation, with the message that brought each node."""

from __future__ import annotations

import axlog

DOCUMENT = '<m><o><k>1</k><ax:call xmlns:ax="urn:axlog" stream="orders"/></o></m>'


def widget(query: str) -> axlog.Widget:
    made = axlog.Widget(DOCUMENT, views={"v": query})
    made.feed("orders", "<a>1</a>", at=1)
    made.feed("orders", "<b/><a>1</a>", at=2)  # two trees: the long way
    return made


def test_each_derivation_names_the_message_of_its_nodes() -> None:
    view = widget("match /m/o/a/$x return $x").view("v")
    (row,) = view.rows()
    assert row.count == 2
    reasons = [derivation.matched[-1] for derivation in view.why(row)]
    assert [matched.origin for matched in reasons] == [
        "message 1 of 'orders'",
        "message 2 of 'orders'",
    ]
    assert [matched.time for matched in reasons] == [1_000_000, 2_000_000]
    assert [matched.path for matched in reasons] == ["/m/o/a[1]/text()", "/m/o/a[2]/text()"]


def test_a_node_of_the_document_itself_has_no_origin() -> None:
    view = widget("match /m/o/k/$x return $x").view("v")
    (derivation,) = view.why({"x": "1"})
    assert {matched.origin for matched in derivation.matched} == {None}


def test_a_row_that_does_not_hold_has_no_derivation() -> None:
    assert widget("match /m/o/a/$x return $x").view("v").why({"x": "9"}) == []


def test_the_origin_goes_with_its_node() -> None:
    made = widget("match /m/o/a/$x return $x")
    made.document.delete("match //a#n return n.id")
    made.document.insert("match /m/o#n return n.id", "<a>1</a>")
    (derivation,) = made.view("v").why({"x": "1"})
    assert derivation.matched[-1].origin is None
