"""Beside `not`, a row given by the value of a node is decided by the variable bound to it."""

from __future__ import annotations

from random import Random

import pytest

import axlog
from axlog import Truth
from axlog.errors import UndecidedError

QUERY = "match /document[orders/order[id#i = $v]{more}][not(shipments/shipment/order = $v)] return"

LINES = "<lines><line/><line/></lines>"


@pytest.mark.parametrize("facts", [[], ["key orders/order by id trusted"]])
@pytest.mark.parametrize("more", ["", "[client = 'A']", "[lines/line]"])
def test_law_the_status_by_a_value_is_that_by_its_variable(facts: list[str], more: str) -> None:
    random = Random(f"{facts}{more}")
    seen = set()
    for _ in range(25):
        shop = axlog.Document(streams=["orders", "shipments"], facts=facts)
        by_value = shop.watch(f"{QUERY.format(more=more)} i.val", name="value")
        by_variable = shop.watch(f"{QUERY.format(more=more)} $v", name="variable")
        shown = shop.watch(f"{QUERY.format(more=more)} i.val as i, i.time", name="shown")
        for key in random.sample("123", random.randint(0, 3)):  # each once: it is a key
            rest = f"<client>{random.choice('AB')}</client>{random.choice(('', LINES))}"
            shop.feed("orders", f"<order><id>{key}</id>{rest}</order>")
        for key in random.sample("123", random.randint(0, 2)):
            shop.feed("shipments", f"<shipment><order>{key}</order></shipment>")
        if random.random() < 0.3:
            shop.end("orders")
        for key in "123":
            found = by_value.status({"i.val": key})
            assert found is by_variable.status({"v": key}), shop.xml()
            assert shown.status({"i": key}) is found
            seen.add(found)
    assert seen == {Truth.TRUE, Truth.POSSIBLE, Truth.NEVER}


def test_xquery_that_returns_the_compared_string() -> None:
    shop = axlog.Document(streams=["orders", "shipments"])
    query = (
        "for $i in /document/orders/order/id "
        "where not(/document/shipments/shipment/order = $i) return string($i)"
    )
    view = shop.watch(query, name="open")
    assert view.status({"i.val": "17"}) is Truth.POSSIBLE
    shop.feed("orders", "<order><id>17</id></order>")
    assert view.status({"i.val": "17"}) is Truth.TRUE
    shop.feed("shipments", "<shipment><order>17</order></shipment>")
    assert view.status({"i.val": "17"}) is Truth.NEVER


def test_a_value_without_a_variable_is_refused() -> None:
    shop = axlog.Document(streams=["orders", "shipments"])
    view = shop.watch(
        "match /document[orders/order[id = $v]/client#c][not(shipments/shipment/order = $v)] "
        "return c.val"
    )
    with pytest.raises(UndecidedError, match="status of a row by its c"):
        view.status({"c.val": "A"})
