"""The order monitor's messages: in time order, in the shares asked for, keyed if they should be."""

import json
from collections import Counter
from hashlib import sha256
from itertools import islice

import pytest
from lxml import etree

from axlog.errors import WorkloadError
from axlog.samples.orders import DOCUMENT, LATE, LATE_AFTER, ON_TIME, messages


def read(message: dict[str, object]) -> etree._Element:
    return etree.fromstring(str(message["insert"]))


def times(drawn: list[dict[str, object]], stream: str) -> dict[str, float]:
    """When each oid came in a stream, the first time."""
    found: dict[str, float] = {}
    for message in drawn:
        if message["stream"] == stream:
            found.setdefault(str(read(message).findtext("oid")), float(str(message["at"])))
    return found


def test_the_document_has_a_call_for_each_stream():
    root = etree.fromstring(DOCUMENT)
    calls = {call.get("stream"): call.getparent() for call in root.iter("{urn:axlog}call")}
    assert calls.keys() == {"orders", "shipments"}
    assert calls["orders"] is root.find("webstore/orders")
    assert calls["shipments"] is root.find("shipping/orders")


def test_the_queries_are_the_papers():
    assert LATE == (
        'match /management[webstore/orders/order[client/"INRIA"][details/computer]/oid/$x#t1]'
        "[shipping/orders/order/oid/$x#t2] where t2 - t1 >= 50000 return $x"
    )
    assert LATE.replace(">=", "<=") == ON_TIME


def test_times_never_go_back_and_shipments_follow_orders():
    drawn = list(messages(5000))
    at = [float(str(message["at"])) for message in drawn]
    assert at == sorted(at)
    placed, shipped = times(drawn, "orders"), times(drawn, "shipments")
    assert shipped.keys() <= placed.keys()
    assert all(shipped[oid] > placed[oid] for oid in shipped)


def test_messages_are_small_and_well_formed():
    drawn = list(messages(500, keyed=False))
    assert [json.loads(json.dumps(message)) for message in drawn] == drawn
    for message in drawn:
        assert read(message).tag == "order"
        assert 18 <= sum(1 for _ in read(message).iter()) <= 22


def test_shares_are_kept():
    drawn = list(messages(20_000, late_share=0.25, ship_share=0.8, wanted_share=0.4))
    placed, shipped = times(drawn, "orders"), times(drawn, "shipments")
    # Only orders old enough: the youngest have had no time to ship late.
    end = max(placed.values())
    old = [oid for oid, at in placed.items() if at < end - 8 * LATE_AFTER]
    sent = [oid for oid in old if oid in shipped]
    assert len(sent) / len(old) == pytest.approx(0.8, abs=0.03)
    late = [oid for oid in sent if shipped[oid] - placed[oid] >= LATE_AFTER]
    assert len(late) / len(sent) == pytest.approx(0.25, abs=0.03)
    wanted = [
        message
        for message in drawn
        if message["stream"] == "orders"
        and read(message).findtext("client") == "INRIA"
        and read(message).find("details/computer") is not None
    ]
    assert len(wanted) / len(placed) == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize("keyed", [True, False])
def test_oids_come_again_only_without_keys(keyed):
    oids = Counter(
        (message["stream"], read(message).findtext("oid"))
        for message in messages(10_000, keyed=keyed)
    )
    repeated = {stream for (stream, _), count in oids.items() if count > 1}
    assert repeated == (set() if keyed else {"orders", "shipments"})


def test_the_rate_is_orders_a_second():
    placed = times(list(messages(5000, rate=2.0)), "orders")
    assert len(placed) / max(placed.values()) == pytest.approx(2.0, rel=0.1)
    with pytest.raises(WorkloadError):
        messages(1, rate=0)


def test_a_longer_run_starts_with_the_shorter_one():
    drawn = list(messages(100, seed=4))
    assert drawn == list(islice(messages(10_000, seed=4), 100))
    assert drawn != list(messages(100, seed=5))
    assert sha256(json.dumps(drawn).encode()).hexdigest()[:16] == "7b09bfb1a486f8cb"
