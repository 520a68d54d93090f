"""Matches that end without a row, collection, and the law that it changes nothing (law 5)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import axlog
from axlog import Truth
from axlog.errors import UpdateError
from axlog.live.internals import streams_of
from axlog.live.options import Keep
from axlog.samples import orders
from axlog.views.change import Change
from lab.laws.never_law import check_never, make_never_case

PLACED = "<order><client>INRIA</client><oid>{}</oid><details><computer/></details></order>"
OTHER = "<order><client>CNRS</client><oid>{}</oid><details/></order>"
SHIPPED = "<order><oid>{}</oid></order>"
CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'


def monitor(query: str, keyed: bool = True, **options: Any) -> axlog.Document:
    facts = orders.KEYS if keyed else ()
    return axlog.parse(
        orders.DOCUMENT, views={"v": query}, facts=facts, options=axlog.Options(**options)
    )


def never(changes: list[Change]) -> list[tuple[object, ...]]:
    return [change.row.values_ for change in changes if change.op == "never"]


def kept(widget: axlog.Document) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for waiting in streams_of(widget).collector.joins:
        sizes.update(waiting.sizes())
    return +sizes


@pytest.mark.parametrize("start", range(0, 160, 40))
def test_differential_never_is_what_the_definition_says(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + 40):
        case = make_never_case(Random(seed))
        try:
            seen += check_never(case)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {case}: {error}") from error
    assert seen["never"] > 5
    assert seen["dropped"] > 20
    assert seen["rows"] > 5


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_example_11_the_clock_ends_a_match(keep: Keep) -> None:
    timed = axlog.parse(
        f"<r><p><a/></p><q>{CALL.format('f')}</q><e>{CALL.format('g')}</e></r>",
        views={"v": "match /r[p/a#t1][q/d#t2] where t2 - t1 <= 3"},
        options=axlog.Options(keep=keep),
    )
    assert timed.view("v").truth is Truth.POSSIBLE
    assert timed.feed("g", "<z/>", at=3) == []
    assert never(timed.feed("g", "<z/>", at=10)) == [()]
    assert timed.view("v").truth is Truth.NEVER
    assert kept(timed) == {}


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_example_13_shipped_early_is_never_late_with_keys(keep: Keep) -> None:
    widget = monitor(orders.LATE, keep=keep)
    widget.feed("orders", PLACED.format(17), at=0)
    assert kept(widget) == {"rows": 1, "values": 1}
    assert never(widget.feed("shipments", SHIPPED.format(17), at=10)) == [("17",)]
    assert kept(widget) == {}


def test_example_13_without_keys_an_oid_may_come_again() -> None:
    widget = monitor(orders.LATE, keyed=False)
    widget.feed("orders", PLACED.format(17), at=0)
    assert widget.feed("shipments", SHIPPED.format(17), at=10) == []
    assert kept(widget) == {"rows": 1}  # no order to come can be so old: the shipment is not kept


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_example_13_not_shipped_in_time_is_never_on_time(keep: Keep) -> None:
    widget = monitor(orders.ON_TIME, keep=keep)
    widget.feed("orders", PLACED.format(17), at=100)
    widget.feed("orders", PLACED.format(18), at=200)
    told: list[Change] = []
    widget.view("v").subscribe(told.append)
    assert widget.advance(100 + orders.LATE_AFTER) == []
    assert never(widget.advance(101 + orders.LATE_AFTER)) == [("17",)]
    assert never(told) == [("17",)]
    assert never(widget.feed("shipments", SHIPPED.format(18), at=201 + orders.LATE_AFTER)) == [
        ("18",)
    ]
    assert kept(widget) == {"values": 1}  # 17 may still ship, and its shipment would wait


def test_window_on_both_sides_needs_no_memory() -> None:
    widget = monitor(orders.WITHIN, keep="needed")
    for number in range(100):
        widget.feed("orders", (PLACED if number % 2 else OTHER).format(number), at=number)
        if number % 3 == 0:
            widget.feed("shipments", SHIPPED.format(number), at=number)
    widget.advance(2 * orders.LATE_AFTER)
    assert kept(widget) == {}
    assert len(widget.view("v")) == 17


def test_unwanted_order_ends_a_shipment_that_waited() -> None:
    widget = monitor(orders.ON_TIME)
    widget.feed("shipments", SHIPPED.format(5), at=0)
    assert never(widget.feed("orders", OTHER.format(5), at=1)) == [("5",)]
    assert kept(widget) == {}


def test_end_of_a_stream_ends_all_that_waited_for_it() -> None:
    widget = monitor(orders.LATE, keyed=False)
    widget.feed("orders", PLACED.format(1), at=0)
    widget.feed("orders", PLACED.format(2), at=0)
    assert never(widget.end("shipments")) == [(None,), ("1",), ("2",)]
    assert widget.view("v").truth is Truth.NEVER
    assert widget.feed("orders", PLACED.format(3), at=1) == []
    assert kept(widget) == {}


def test_statement_after_collection_finds_the_rows_again() -> None:
    widget = monitor(orders.ON_TIME, keyed=True)
    widget.feed("orders", PLACED.format(17), at=0)
    widget.feed("shipments", SHIPPED.format(17), at=10)
    assert kept(widget) == {"deadlines": 1}
    delete = 'delete nodes /management/shipping/orders/order[oid = "17"]'
    assert [change.op for change in widget.update(delete)] == ["delete"]
    assert widget.view("v").rows() == []


def test_statement_after_collection_is_refused_where_nothing_was_kept() -> None:
    widget = monitor(orders.ON_TIME, keep="needed")
    widget.feed("orders", PLACED.format(17), at=0)
    widget.feed("shipments", SHIPPED.format(17), at=10)
    with pytest.raises(UpdateError, match="AX307"):
        widget.update("delete nodes //order")


def test_nothing_is_dropped_where_a_stream_may_delete() -> None:
    document = orders.DOCUMENT.replace('stream="shipments"', 'stream="shipments" deletes="yes"')
    widget = axlog.parse(document, views={"v": orders.ON_TIME}, facts=orders.KEYS)
    widget.feed("orders", PLACED.format(17), at=0)
    widget.feed("shipments", SHIPPED.format(17), at=10)
    assert kept(widget) == {}
    assert [c.op for c in widget.delete("shipments", 'match /order[oid = "17"]')] == ["delete"]


@pytest.mark.parametrize("facts", [(), orders.KEYS])
@pytest.mark.parametrize("query", [orders.LATE, orders.ON_TIME, orders.WITHIN])
def test_differential_law_5_on_the_order_monitor(query: str, facts: tuple[str, ...]) -> None:
    options: tuple[dict[str, Any], ...] = (
        {},
        {"keep": "needed"},
        {"collect": "off"},
        {"keep": "needed", "validate": "wanted"},
    )
    widgets = [
        axlog.parse(orders.DOCUMENT, views={"v": query}, facts=facts, options=axlog.Options(**o))
        for o in options
    ]
    for message in orders.messages(400, rate=0.002):
        stream, content, at = str(message["stream"]), str(message["insert"]), message["at"]
        first, *others = [w.feed(stream, content, at=at) for w in widgets]  # type: ignore[arg-type]
        assert all(each == first for each in others)
    first, *others = [widget.end("shipments") for widget in widgets]
    assert all(each == first for each in others)
