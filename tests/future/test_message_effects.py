"""Which views must read every message, because it can make a row impossible."""

from __future__ import annotations

import pytest

import axlog
from axlog.live.internals import maintained

STREAMS = ("orders", "shipments")
KEYS = ("key orders/order by id trusted",)
ONE = "match /document/orders/order[client/$c]/id/$i return $c, $i"
GROUPS = "match /document/orders/order[client/$c]/id/$i return $c, count() as n"


def how(query: str, facts: tuple[str, ...] = KEYS, streams: object = STREAMS) -> str:
    doc = axlog.Document(streams=streams, facts=facts)  # type: ignore[arg-type]
    said = doc.watch(query).explain().never
    assert said is not None
    return said


@pytest.mark.parametrize(
    "query",
    [
        ONE,
        GROUPS,
        f"{GROUPS} having count() >= 3",
        f"{GROUPS} having count() < 3",
        "match //order/id/$i return $i",
    ],
)
def test_a_key_rules_nothing_out_where_one_message_brings_all(query: str) -> None:
    assert how(query).endswith("messages are read when a stream ends")


@pytest.mark.parametrize(
    "query",
    [
        'match /document/orders/order[id/"7"]/client/$c return $c',
        "match /document/orders[order[id/$i]/client/$c][order/id/$j] where $c = $j return $i",
        f"{GROUPS} having min($i) < 5 and count() < 4",
    ],
)
def test_messages_are_read_where_one_can_make_a_row_impossible(query: str) -> None:
    assert how(query).endswith("read as nodes") or how(query).endswith("read as they arrive")


def test_a_message_that_may_hold_calls_is_read() -> None:
    streams = {"orders": {"calls": "2"}, "shipments": {}}
    assert how(ONE, streams=streams).endswith("read as nodes")


def test_a_key_costs_a_view_of_one_part_nothing() -> None:
    """The messages of a view that needs no nodes stay as they came."""
    doc = axlog.Document(streams=["orders"], facts=KEYS)
    view = doc.watch(ONE, "v")
    before = len(maintained(doc).tree)
    for number in range(50):
        doc.feed("orders", f"<order><client>A</client><id>{number}</id></order>")
    assert len(view.rows()) == 50
    assert len(maintained(doc).tree) == before


def test_the_end_of_a_stream_is_never_for_a_view_without_rows() -> None:
    doc = axlog.Document(streams=["orders"], facts=KEYS)
    doc.watch(ONE, "v")
    doc.feed("orders", "<order><client>A</client></order>")
    assert [change.to_dict()["op"] for change in doc.end("orders")] == ["never"]
