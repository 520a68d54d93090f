"""Features of XPath, XQuery, families, batches and streams in number, counted (`growth.py`)."""

from __future__ import annotations

from collections.abc import Callable

import axlog
from axlog import Document, Options
from lab.benchmarks.growth_feature import (
    DELETING,
    IDS,
    PAID,
    RUNS,
    SHOP,
    Feature,
    Operation,
    fed,
    order_of,
)

_LARGE = 10**6


def _order(query: str) -> Callable[[int], Operation]:
    """One more order."""

    def make(size: int) -> Operation:
        doc = fed({"v": query}, size)
        return lambda number: doc.feed("orders", order_of(_LARGE + number))

    return make


def _payment(query: str) -> Callable[[int], Operation]:
    """The payment of one of the orders."""

    def make(size: int) -> Operation:
        doc = fed({"v": query}, size)
        return lambda number: doc.feed("paid", f"<p>o{number}</p>")

    return make


def _batch(stream: str, message: str, query: str) -> Callable[[int], Operation]:
    """A batch of one message, after ten times as many messages that are nodes."""

    def make(size: int) -> Operation:
        doc = fed({"v": query}, 10 * size)
        doc.xml()

        def operation(number: int) -> None:
            with doc.batch():
                doc.feed(stream, message.format(number))

        return operation

    return make


def _head(size: int) -> Operation:
    view = fed({"ids": IDS}, size).view("ids")
    return lambda number: view.head(5)


def _head_of_groups(size: int) -> Operation:
    query = "match /shop/orders/order[oid/$x]/sum/$s return $x, sum($s) as total"
    view = fed({"v": query}, size).view("v")
    return lambda number: view.head(5)


def _streams(size: int) -> Operation:
    """A document with so many streams, with a view that each of them feeds."""

    def operation(number: int) -> object:
        names = [f"s{each}" for each in range(size)]
        doc = Document(streams=names, views={"v": "match //order/oid/$x return $x"})
        return doc.feed("s0", order_of(number))

    return operation


def _hidden_row_goes(size: int) -> Operation:
    """A row that is not among the ten largest is deleted."""
    query = "match /shop/orders/order[oid/$x]/sum/$s return $x, $s order by $s descending limit 10"
    doc = fed({"v": query}, size + 4 * RUNS, DELETING, options=Options(never="joins"))
    return lambda number: doc.delete("orders", f'match /order[oid/"o{number}"]')


def _family(query: str, stream: str) -> Callable[[int], Operation]:
    """A message of one of the views that differ in a constant."""

    def make(size: int) -> Operation:
        views = {f"v{number}": query.format(number) for number in range(size)}
        doc = axlog.parse(SHOP, views=views, options=Options(share="always"))
        order = "<order><oid>o{}</oid><client>k0</client><sum>5</sum></order>"
        if stream == "orders":
            return lambda number: doc.feed("orders", order.format(number))
        doc.feed_many("orders", [order.format(number) for number in range(4 * RUNS)])
        return lambda number: doc.feed("paid", f"<p>o{number}</p>")

    return make


def _unwatch(size: int) -> Operation:
    """One of the views that differ in a constant ends."""
    query = 'match /shop/orders/order[client/"k{}"]/oid/$x return $x'
    doc = fed({f"v{number}": query.format(number) for number in range(size + 2 * RUNS)}, 3)
    return lambda number: doc.unwatch(f"v{number}")


def _deadlines(size: int) -> Operation:
    """Several rows' deadlines pass at once."""
    query = "match /shop[orders/order#o/oid/$x][paid/p#p/$x] where p - o <= 5 return $x"
    doc = axlog.parse(SHOP, views={"v": query}, options=Options(keep="needed"))

    def operation(number: int) -> object:
        for each in range(size):
            doc.feed("orders", order_of(number * size + each), at=100 * number)
        return doc.advance(100 * number + 50)

    return operation


def _replaced(query: str) -> Callable[[int], Operation]:
    """A message that replaces another, of this many keys."""

    def make(size: int) -> Operation:
        streams = {"positions": {"replace": "@v"}, "asked": {}}
        doc = Document(streams=streams, views={"v": query})
        doc.feed_many("positions", [f'<p v="{n}"><at>0</at></p>' for n in range(size)])
        doc.feed_many("asked", [f"<q>{n}</q>" for n in range(size)])
        return lambda number: doc.feed("positions", f'<p v="{number}"><at>{number}</at></p>')

    return make


_NOT_PAID = 'match /shop[orders/order[client/"k{}"]/oid/$x][not(paid/p/$x)] return $x'

# fmt: off
QUERY_FEATURES = (
    Feature("a message, with a view of the last positions", "siblings", "constant",
            _order("/shop/orders/order[position() > last() - 5]/oid"), 1000),
    Feature("a message, with a view of the last items of a sequence", "items", "constant",
            _order("(//order)[position() > last() - 5]/oid"), 1000),
    Feature("a message, with a view of an item of a sequence", "items", "constant",
            _order("(/shop/orders/order)[3]"), 1000),
    Feature("a message, with a view that counts in XQuery", "items", "constant",
            _order("<n>{count(/shop/orders/order)}</n>"), 1000),
    Feature("a message, with a view of distinct values", "items", "constant",
            _order("for $c in distinct-values(/shop/orders/order/client) return"
                   " <c n='{count(/shop/orders/order[client = $c])}'>{$c}</c>"), 1000),
    Feature("a message, with a view with `some`", "items", "constant",
            _payment("for $o in /shop/orders/order where some $p in /shop/paid/p"
                     " satisfies $p = $o/oid return $o/oid"), 1000),
    Feature("a message, with a view that joins strings", "items", "linear",
            _order("match /shop/orders/order/oid/$x return string-join($x, ',') as all"), 1000,
            "its row has them all"),
    Feature("a message, with a view with `for ... at`", "items", "linear",
            _order("for $o at $i in /shop/orders/order return <o>{$i}</o>"), 1000,
            "the loop is evaluated again"),
    Feature("a message, with a view with a count in a predicate", "items of the path", "linear",
            _order("/shop[count(orders/order) > 5]/orders/order[1]/oid"), 100,
            "all items are counted"),
    Feature("a batch of one message", "tens of messages", "constant",
            _batch("orders", "<order><oid>n{}</oid></order>", IDS), 1000),
    Feature("a batch of one message of a join", "tens of rows in progress", "constant",
            _batch("paid", "<p>o{}</p>", PAID), 1000),
    Feature("the first rows of a view", "rows", "constant", _head),
    Feature("the first rows of a view with groups", "groups", "constant", _head_of_groups),
    Feature("a document with its first message", "streams of one view", "linear", _streams, 1000,
            "each feeds the view"),
    Feature("a delete of a row that is not among the ten largest", "rows", "constant",
            _hidden_row_goes),
    Feature("a message of a view with not", "views that differ in a constant", "constant",
            _family(_NOT_PAID, "orders"), 1000),
    Feature("a message that ends a row of a view with not", "views that differ in a constant",
            "constant", _family(_NOT_PAID, "paid"), 1000),
    Feature("a message of a sum", "views that differ in a constant", "constant",
            _family('match /shop/orders/order[client/"k{}"]/sum/$s return sum($s) as total',
                    "orders"), 1000),
    Feature("ending a view", "views that differ in a constant", "constant", _unwatch, 1000),
    Feature("deadlines that pass at once, with their messages", "rows", "linear", _deadlines, 1000,
            "each has a `never` change"),
    Feature("a message that replaces another of a join", "keys", "constant",
            _replaced("match //positions/p[@v = $v]/at/$a, //asked/q/$v return $v, $a")),
    Feature("a message that replaces another of a group", "keys", "constant",
            _replaced("match //positions/p/at/$a return sum($a) as total, max($a) as most")),
)
# fmt: on
