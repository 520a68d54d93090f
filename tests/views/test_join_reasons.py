"""The reasons for rows where messages are not kept, read off the state of joins."""

from __future__ import annotations

import pytest

import axlog
from axlog.errors import UpdateError

SHOP = (
    '<shop xmlns:ax="urn:axlog"><orders><ax:call stream="orders"/></orders>'
    '<shipped><ax:call stream="shipped"/></shipped></shop>'
)
KEY = ["key orders/order by oid trusted"]
ON_TIME = "match /shop[orders/order/oid/$x#t][shipped/order/oid/$x#u] where u - t <= 2h return $x"
OPEN = "match /shop[orders/order/oid/$x][not(shipped/order/oid/$x)] return $x"
LATE = OPEN.replace("$x]", "$x#t]", 1).replace(" return", " where now - t >= 2h return")


def monitor(query: str, *facts: str) -> axlog.Document:
    options = axlog.Options(keep="needed")
    return axlog.parse(SHOP, views={"v": query}, facts=facts or KEY, options=options)


def shop(query: str, *shipped: int) -> axlog.View:
    """A view of three orders at 0, some of which have shipped at 5."""
    doc = monitor(query)
    for number in (1, 2, 3):
        doc.feed("orders", f"<order><oid>{number}</oid></order>", at=0)
    for number in shipped:
        doc.feed("shipped", f"<order><oid>{number}</oid></order>", at=5)
    return doc.view("v")


def reasons(view: axlog.View, x: str) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in view.why_not({"x": x}).reasons]


def test_a_row_in_progress_names_the_stream_and_the_deadline() -> None:
    view = shop(ON_TIME, 1)
    stays = ("ends", "nothing that may still come ends it")
    assert reasons(view, "1") == [("holds", "the row is there"), stays]
    text = "shipped can still bring order/oid/$x#u until 7200"
    assert reasons(view, "2") == [("needs", text)]


def test_a_row_that_is_never_names_the_key() -> None:
    doc = monitor(ON_TIME)
    doc.feed("orders", "<order><oid>2</oid></order>", at=0)
    doc.advance(8000)
    text = "`key orders/order by oid trusted`: the value has come, and comes only once"
    assert reasons(doc.view("v"), "2") == [("key", text)]


def test_a_row_is_never_if_no_open_stream_can_bring_it() -> None:
    doc = monitor(OPEN)
    doc.feed("orders", "<order><oid>1</oid></order>", at=0)
    doc.end("orders")
    assert reasons(doc.view("v"), "2") == [("streams", "no stream is open that can bring it")]


@pytest.mark.parametrize("query", [OPEN, LATE])
def test_what_must_be_absent_and_is_there_is_a_reason(query: str) -> None:
    view = shop(query, 1)
    wanted = ("absence", "shipped/order/oid/$x must be absent, and is there for good")
    assert reasons(view, "1") == [wanted]


def test_a_row_that_time_brings_names_its_moment() -> None:
    assert reasons(shop(LATE), "2") == [("deadline", "it holds from 7200 on")]
    assert reasons(shop(LATE), "9") == [("needs", "orders can still bring order/oid/$x#t")]


def test_a_question_that_the_state_does_not_decide_is_refused() -> None:
    doc = monitor(ON_TIME, *KEY, KEY[0].replace("orders", "shipped"))
    for stream in ("orders", "shipped"):
        doc.feed(stream, "<order><oid>1</oid></order>", at=0)
    with pytest.raises(UpdateError) as caught:
        doc.view("v").why_not({"x": "9"})
    assert caught.value.code == "AX307"
