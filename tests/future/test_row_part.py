"""The part of a document that decides on one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

import axlog
from axlog.document.extraction import extracted
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.document.value_index import ValueIndex
from axlog.future.row_part import part_for
from axlog.live.internals import maintained_view
from lab.laws.row_parts import compare_part

SHOP = (
    '<shop xmlns:ax="urn:axlog"><orders><ax:call stream="orders"{}/></orders>'
    '<shipped><ax:call stream="shipped"/></shipped><open>yes</open></shop>'
)
ORDER = "<order><oid>{}</oid><client>{}</client></order>"
KEYS = ("key orders/order by oid trusted", "key shipped/order by oid trusted")
JOIN = "match /shop[orders/order/oid/$x#t][shipped/order/oid/$x#u] return $x"
WITHIN = JOIN.replace(" return", " where u - t <= 2h return")
OPEN = "match /shop[orders/order/oid/$x][not(shipped/order/oid/$x)] return $x"


def shop(query: str, facts: Sequence[str] = (), attributes: str = "", **options: Any) -> axlog.View:
    """A view of a shop with ten orders, of which two have shipped."""
    source = SHOP.format(attributes)
    doc = axlog.parse(source, views={"v": query}, facts=facts, **options)
    for number in range(10):
        doc.feed("orders", ORDER.format(number, number % 3))
    for number in (3, 12):
        doc.feed("shipped", ORDER.format(number, 0))
    doc.advance(8000)
    return doc.view("v")


def asked(view: axlog.View, **row: str) -> tuple[Tree, Tree | None]:
    """The document of a view, and its part for a row."""
    inner = maintained_view(view)
    tree = inner.around.nodes_left()
    return tree, part_for(tree, inner.pattern, row, ValueIndex(tree))


@pytest.mark.parametrize("facts", [(), KEYS], ids=["", "keys"])
@pytest.mark.parametrize("query", [JOIN, WITHIN, OPEN])
def test_reasons_in_the_part_are_those_of_the_whole_document(
    query: str, facts: Sequence[str]
) -> None:
    view, seen = shop(query, facts), Counter[str]()
    tree = maintained_view(view).around.nodes_left()
    for x in ("3", "5", "12", "new"):
        compare_part(tree, maintained_view(view).pattern, {"x": x}, seen)
    assert seen["answered in a smaller part"] == 4


@pytest.mark.parametrize(
    ("query", "facts", "attributes"),
    [
        (OPEN.replace("/oid/$x)", "/client)"), (), ""),  # any shipment matters
        (JOIN.replace("[shipped/order/oid/$x#u]", "[shipped/order#u]"), (), ""),
        (JOIN.replace("order/oid/$x#t", 'order[oid/$x#t][client/"1"]'),
         ("key orders/order by client trusted",), ""),
        (JOIN, ("every orders/order by client refers shipped/order by client trusted",), ""),
        (JOIN, (), ' deletes="yes"'),
        (JOIN, (), ' replace="oid"'),
        (JOIN.replace("shop[", 'shop[orders = "a"]['), (), ""),
        (JOIN.replace("return $x", "return $x, t.id"), (), ""),
        (JOIN.replace("order/oid/$x#t", "order[oid/$x#t][client/$y]").replace(
            " return", " where $y > 1 return"), (), ""),
    ],
)  # fmt: skip
def test_other_messages_matter(query: str, facts: Sequence[str], attributes: str) -> None:
    tree, part = asked(shop(query, facts, attributes), x="5")
    assert part is None or len(part) == len(tree)


def test_the_values_of_keys_are_looked_at() -> None:
    """Client 1 has ordered once, so no order with another number can come from it."""
    query = "match /shop/orders/order[oid/$x][client/$y] return $x, $y"
    fact = "key orders/order by client trusted"
    doc = axlog.parse(SHOP.format(""), views={"v": query}, facts=[fact])
    doc.feed("orders", ORDER.format(1, 1))
    found = doc.view("v").why_not({"x": "2", "y": "1"})
    assert [each.kind for each in found.reasons] == ["key"]
    assert doc.view("v").why_not({"x": "2"}).truth is axlog.Truth.POSSIBLE


def test_what_a_future_node_refers_to_is_looked_at() -> None:
    """Order 2 of a known client can come, though no client has its number."""
    query = "match /shop/orders/order/oid/$x return $x"
    fact = "every orders/order by client refers shipped/order by client trusted"
    doc = axlog.parse(SHOP.format(""), views={"v": query}, facts=[fact])
    doc.feed("shipped", ORDER.format(1, 1))
    doc.end("shipped")
    assert doc.view("v").why_not({"x": "2"}).truth is axlog.Truth.POSSIBLE


def test_an_extracted_document_has_the_nodes_that_are_left() -> None:
    tree = maintained_view(shop(JOIN)).around.nodes_left()
    (orders,) = tree.partition("orders")
    few = [*list(tree.children(orders))[2:4], tree.calls()["orders"]]
    made = extracted(tree, {orders: few})
    wanted = {
        (tree.id(n), tree.label(n), tree.time(n))
        for n in tree.subtree(DOCUMENT_NODE)
        if not any(tree.parent(at) == orders and at not in few for at in (n, *tree.ancestors(n)))
    }
    found = [(made.id(n), made.label(n), made.time(n)) for n in made.subtree(DOCUMENT_NODE)]
    assert (set(found), len(made)) == (wanted, len(wanted) - 1)
    oids = {made.id(n) for n in made.partition("oid")}
    assert len(oids) == 4
    assert oids == {i for i, label, _ in wanted if label == "oid"}
    assert {s: made.id(n) for s, n in made.calls().items()} == {
        s: tree.id(n) for s, n in tree.calls().items()
    }
