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
from tests.amounts import chunks

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


def kept(doc: axlog.Document) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for waiting in streams_of(doc).collector.joins:
        sizes.update(waiting.sizes())
    return +sizes


@pytest.mark.parametrize("start", chunks(25, 25))
def test_differential_never_is_what_the_definition_says(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + 25):
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
    doc = monitor(orders.LATE, keep=keep)
    doc.feed("orders", PLACED.format(17), at=0)
    assert kept(doc) == {"rows": 1, "values": 1}
    assert never(doc.feed("shipments", SHIPPED.format(17), at=10)) == [("17",)]
    assert kept(doc) == {}


def test_example_13_without_keys_an_oid_may_come_again() -> None:
    doc = monitor(orders.LATE, keyed=False)
    doc.feed("orders", PLACED.format(17), at=0)
    assert doc.feed("shipments", SHIPPED.format(17), at=10) == []
    assert kept(doc) == {"rows": 1}  # no order to come can be so old: the shipment is not kept


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_example_13_not_shipped_in_time_is_never_on_time(keep: Keep) -> None:
    doc = monitor(orders.ON_TIME, keep=keep)
    doc.feed("orders", PLACED.format(17), at=100)
    doc.feed("orders", PLACED.format(18), at=200)
    told: list[Change] = []
    doc.view("v").subscribe(told.append)
    assert doc.advance(100 + orders.LATE_AFTER) == []
    assert never(doc.advance(101 + orders.LATE_AFTER)) == [("17",)]
    assert never(told) == [("17",)]
    assert never(doc.feed("shipments", SHIPPED.format(18), at=201 + orders.LATE_AFTER)) == [("18",)]
    assert kept(doc) == {"values": 1}  # 17 may still ship, and its shipment would wait


def test_window_on_both_sides_needs_no_memory() -> None:
    doc = monitor(orders.WITHIN, keep="needed")
    for number in range(100):
        doc.feed("orders", (PLACED if number % 2 else OTHER).format(number), at=number)
        if number % 3 == 0:
            doc.feed("shipments", SHIPPED.format(number), at=number)
    doc.advance(2 * orders.LATE_AFTER)
    assert kept(doc) == {}
    assert len(doc.view("v")) == 17


@pytest.mark.parametrize("keep", ["all", "needed"])
@pytest.mark.parametrize("is_read", [False, True])
def test_reading_a_shipment_of_this_instant_changes_no_later_never(
    keep: Keep, is_read: bool
) -> None:
    """An order after its own shipment waits until its deadline, whoever read the tables before."""
    doc = monitor(orders.WITHIN, keep=keep)
    doc.feed("shipments", SHIPPED.format(17), at=10)
    if is_read:
        list(doc.view("v").possible())
    assert never(doc.feed("orders", PLACED.format(17), at=11)) == []
    assert never(doc.advance(200_000)) == [("17",)]


@pytest.mark.parametrize("keep", ["all", "needed"])
@pytest.mark.parametrize("moment", [None, 12])
def test_a_key_value_after_the_deadline_of_its_row_has_no_second_never(
    moment: int | None, keep: Keep
) -> None:
    doc = axlog.parse(
        f"<r><p>{CALL.format('p')}</p><q>{CALL.format('q')}</q></r>",
        views={"v": "match /r[p/a/x/$x#t][q/b/x/$x#u] where u - t <= 2 and t - u <= 2 return $x"},
        facts=["key p/a by x trusted", "key q/b by x trusted"],
        options=axlog.Options(keep=keep),
    )
    view = doc.view("v")
    changes: list[Change] = []
    view.subscribe(changes.append)
    doc.feed("p", "<a><x>3</x></a>", at=8)
    if moment is not None:
        doc.advance(moment)
    doc.feed("q", "<b><x>3</x></b>", at=17)
    assert "3" not in {one.row["x"] for one in view.possible()}
    doc.advance(30)
    times = [change.microseconds for change in changes if change.op == "never"]
    assert times == [10_000_001]


@pytest.mark.parametrize("keep", ["all", "needed"])
@pytest.mark.parametrize("is_saved", [False, True])
def test_row_without_values_is_judged_after_the_instant_of_the_end(
    keep: Keep, is_saved: bool
) -> None:
    """A shipment whose order was no match waits for its instant: the key value is forgotten."""

    def document() -> axlog.Document:
        return monitor(orders.WITHIN, keep=keep)

    doc = document()
    doc.feed("orders", OTHER.format(17), at=6)
    doc.feed("shipments", SHIPPED.format(17), at=7)
    assert doc.end("shipments") == []
    if is_saved and keep == "needed":
        state = streams_of(doc).engine.state()
        doc = document()
        doc.end("shipments")
        streams_of(doc).engine.restore(state)
    (change,) = doc.advance(20)
    assert (change.op, change.row.values_, change.time) == ("never", (None,), 7.000001)
    assert doc.view("v").truth is Truth.NEVER
    assert doc.advance(30) == []


@pytest.mark.parametrize("is_saved", [False, True])
def test_never_is_reported_from_the_end_of_the_stream_that_made_the_join_inexact(
    is_saved: bool,
) -> None:
    """Law `prospects`, seed 5550139: only a restart made the view report."""

    def document() -> axlog.Document:
        return axlog.parse(
            f"<r><f>{CALL.format('f')}</f><g>{CALL.format('g')}</g></r>",
            facts=["key f/a by @k trusted"],
            views={"v": "match /r[f/a[@k/$x]/y/$y][g/a[w][@k/$y]/y/$x] return $y"},
            options=axlog.Options(keep="needed"),
        )

    doc = document()
    doc.feed("g", '<a k="2"><w/><y>2</y></a>', at=6)
    assert "not reported" in str(doc.view("v").explain())  # `y` is never empty, `@k` may be
    doc.end("g", at=9)
    if is_saved:
        state = streams_of(doc).engine.state()
        doc = document()
        doc.end("g")
        streams_of(doc).engine.restore(state)
    assert never(doc.feed("f", '<a k="2"><y>1</y></a>', at=15)) == [("2",)]


@pytest.mark.parametrize("is_last", [False, True])
def test_row_that_shows_no_values_is_never_once_after_the_instant_of_the_end(is_last: bool) -> None:
    doc = axlog.parse(
        f"<r><p>{CALL.format('p')}</p><q>{CALL.format('q')}</q></r>",
        views={"v": "match /r[p/a#t][q/b#u] where u - t >= 0 and u - t <= 2 return u.time"},
    )
    changes: list[Change] = []
    doc.view("v").subscribe(changes.append)
    doc.feed("p", "<a/>", at=7)
    doc.end("q")
    if is_last:
        doc.feed("p", "<a/>", at=7)
    doc.advance(8)
    doc.end("p")
    assert [(c.op, c.row.values_, c.microseconds) for c in changes] == [
        ("never", (None,), 7_000_001)
    ]


def test_row_without_values_is_not_never_if_the_instant_of_the_end_brings_a_row() -> None:
    doc = monitor(orders.WITHIN, keyed=False)
    doc.feed("shipments", SHIPPED.format(17), at=7)
    doc.end("shipments")
    (change,) = doc.feed("orders", PLACED.format(17), at=7)
    assert change.op == "insert"
    assert doc.advance(20) == []


def test_row_without_values_is_never_at_once_if_all_streams_end() -> None:
    doc = monitor(orders.WITHIN)
    doc.feed("shipments", SHIPPED.format(17), at=7)
    assert doc.end("shipments") == []
    assert never(doc.end("orders")) == [(None,)]
    assert doc.advance(20) == []


def test_rows_in_progress_tell_their_outcome_in_place_of_the_row_without_values() -> None:
    doc = monitor(orders.WITHIN)
    doc.feed("orders", PLACED.format(17), at=7)
    assert never(doc.end("orders")) == []
    assert never(doc.advance(200_000)) == [("17",)]
    assert doc.view("v").truth is Truth.NEVER
    assert doc.end("shipments") == []


def test_unwanted_order_ends_a_shipment_that_waited() -> None:
    doc = monitor(orders.ON_TIME)
    doc.feed("shipments", SHIPPED.format(5), at=0)
    assert never(doc.feed("orders", OTHER.format(5), at=1)) == [("5",)]
    assert kept(doc) == {}


def test_end_of_a_stream_ends_all_that_waited_for_it() -> None:
    doc = monitor(orders.LATE, keyed=False)
    doc.feed("orders", PLACED.format(1), at=0)
    doc.feed("orders", PLACED.format(2), at=0)
    assert never(doc.end("shipments")) == [(None,), ("1",), ("2",)]
    assert doc.view("v").truth is Truth.NEVER
    assert doc.feed("orders", PLACED.format(3), at=1) == []
    assert kept(doc) == {}


def test_statement_after_collection_finds_the_rows_again() -> None:
    doc = monitor(orders.ON_TIME, keyed=True)
    doc.feed("orders", PLACED.format(17), at=0)
    doc.feed("shipments", SHIPPED.format(17), at=10)
    assert kept(doc) == {"deadlines": 1}
    delete = 'delete nodes /management/shipping/orders/order[oid = "17"]'
    assert [change.op for change in doc.update(delete)] == ["delete"]
    assert doc.view("v").rows() == []


def test_statement_after_collection_is_refused_where_nothing_was_kept() -> None:
    doc = monitor(orders.ON_TIME, keep="needed")
    doc.feed("orders", PLACED.format(17), at=0)
    doc.feed("shipments", SHIPPED.format(17), at=10)
    with pytest.raises(UpdateError, match="AX307"):
        doc.update("delete nodes //order")


def test_nothing_is_dropped_where_a_stream_may_delete() -> None:
    document = orders.DOCUMENT.replace('stream="shipments"', 'stream="shipments" deletes="yes"')
    doc = axlog.parse(document, views={"v": orders.ON_TIME}, facts=orders.KEYS)
    doc.feed("orders", PLACED.format(17), at=0)
    doc.feed("shipments", SHIPPED.format(17), at=10)
    assert kept(doc) == {}
    assert [c.op for c in doc.delete("shipments", 'match /order[oid = "17"]')] == ["delete"]


@pytest.mark.parametrize("facts", [(), orders.KEYS])
@pytest.mark.parametrize("query", [orders.LATE, orders.ON_TIME, orders.WITHIN])
def test_differential_tuning_the_order_monitor_changes_nothing(
    query: str, facts: tuple[str, ...]
) -> None:
    options: tuple[dict[str, Any], ...] = (
        {},
        {"keep": "needed"},
        {"collect": "off"},
        {"keep": "needed", "validate": "wanted"},
    )
    documents = [
        axlog.parse(orders.DOCUMENT, views={"v": query}, facts=facts, options=axlog.Options(**o))
        for o in options
    ]
    for message in orders.messages(400, rate=0.002):
        stream, content, at = str(message["stream"]), str(message["insert"]), message["at"]
        first, *others = [w.feed(stream, content, at=at) for w in documents]  # type: ignore[arg-type]
        assert all(each == first for each in others)
    first, *others = [doc.end("shipments") for doc in documents]
    assert all(each == first for each in others)


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_view_that_counts_the_same_rows_takes_no_never_away(
    keep: Keep,
) -> None:
    query = (
        "match /document[orders/order/oid/$x#t][shipped/order/oid/$x#u] where u - t <= 2h return $x"
    )
    doc = axlog.Document(
        streams=["orders", "shipped"],
        views={"v": query, "counted": f"{query}, count() as n"},
        facts=["key orders/order by oid trusted"],
        options=axlog.Options(keep=keep, never="joins"),
    )
    for number in (1, 2):
        doc.feed("orders", f"<order><oid>{number}</oid></order>", at=0)
    doc.feed("shipped", "<order><oid>1</oid></order><order><oid>1</oid></order>", at=1)
    told = [c for c in doc.advance(7201) if c.view == "v"]
    assert [(c.op, c.row.values_) for c in told] == [("never", ("2",))]
    assert [row.values_ for row in doc.view("counted").rows()] == [("1", 2)]
