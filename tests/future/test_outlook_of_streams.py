"""What documents say of answers to come: the clock, declared keys (EXAMPLES 11 and 13)."""

from __future__ import annotations

import pytest

import axlog
from axlog import Truth
from axlog.errors import LateError, QueryError, StreamError
from axlog.samples import orders

PLACED = (
    "<order><client>INRIA</client><oid>{}</oid><details><computer/></details></order>"  # wanted
)
KEYS = ("key webstore/orders/order by oid trusted", "key shipping/orders/order by oid trusted")


def monitor(query: str, facts: tuple[str, ...] = ()) -> axlog.Document:
    return axlog.parse(orders.DOCUMENT, views={"v": query}, facts=facts)


def test_example_13_an_order_shipped_early_may_come_again_unless_keys_say_no() -> None:
    for facts, verdict in (((), Truth.POSSIBLE), (KEYS, Truth.NEVER)):
        doc = monitor(orders.LATE, facts)
        doc.feed("orders", PLACED.format(17), at=0)
        view = doc.view("v")
        assert view.status({"x": "17"}) is Truth.POSSIBLE
        doc.feed("shipments", "<order><oid>17</oid></order>", at=10)
        assert view.status({"x": "17"}) is verdict
        assert view.status({"x": "18"}) is Truth.POSSIBLE


def test_example_13_an_order_not_shipped_in_time_is_never_on_time_with_keys() -> None:
    doc = monitor(orders.ON_TIME, KEYS)
    doc.feed("orders", PLACED.format(17), at=100)
    view = doc.view("v")
    (mine,) = [possible for possible in view.possible() if possible.row["x"] == "17"]
    assert mine.deadline == 100 + orders.LATE_AFTER
    assert [wanted.stream for wanted in mine.needs] == ["shipments"]
    doc.advance(100 + orders.LATE_AFTER)
    assert view.status({"x": "17"}) is Truth.POSSIBLE
    doc.advance(101 + orders.LATE_AFTER)
    assert view.status({"x": "17"}) is Truth.NEVER
    assert view.truth is Truth.POSSIBLE


def test_the_clock_does_not_go_back() -> None:
    doc = monitor(orders.LATE)
    doc.advance(10)
    with pytest.raises(LateError, match="AX404"):
        doc.advance(9)
    assert doc.clock == 10


def test_an_enforced_key_refuses_a_second_node_and_changes_nothing() -> None:
    doc = monitor(orders.LATE, ("key webstore/orders/order by oid enforced",))
    doc.feed("orders", PLACED.format(17), at=0)
    before = doc.xml()
    with pytest.raises(StreamError, match="AX413"):
        doc.feed("orders", PLACED.format(17), at=1)
    with pytest.raises(StreamError, match="AX413"):
        doc.feed("orders", PLACED.format(18) + PLACED.format(18), at=1)
    assert doc.xml() == before
    doc.feed("orders", PLACED.format(18), at=2)
    assert len(doc.xml()) > len(before)


def test_a_fact_that_does_not_parse_says_what_it_should_be() -> None:
    with pytest.raises(QueryError, match="key PATH by PATH"):
        monitor(orders.LATE, ("oid is unique",))
