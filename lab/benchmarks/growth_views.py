"""Features of views, families, maintainers and analyses, whose growth is counted (`growth.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import axlog
from axlog import Document, Options
from lab.benchmarks.growth_feature import (
    DELETING,
    IDS,
    PAID,
    SHOP,
    Feature,
    Operation,
    fed,
    order_of,
)

_LARGE = 10**6
_LATE = 10**5  # later than all messages
_NEEDED = Options(keep="needed")
_THREE = SHOP.replace("<old/>", '<sent><ax:call stream="sent"/></sent>')
_OPEN = "match /shop[orders/order/oid/$x][not(paid/p/$x)] return $x"
_OVERDUE = f"match /shop[orders/order#o/oid/$x][not(paid/p/$x)] where now - o >= {_LATE} return $x"


def _timed(query: str, count: int, source: str = SHOP) -> Document:
    """A shop with this many orders, a second apart."""
    doc = axlog.parse(source, views={"v": query}, options=_NEEDED)
    for number in range(count):
        doc.feed("orders", order_of(number), at=number)
    return doc


def _next_order(query: str) -> Callable[[int], Operation]:
    """A message of the orders, a second after these."""

    def make(size: int) -> Operation:
        doc = _timed(query, size)
        return lambda number: doc.feed("orders", order_of(_LARGE + number), at=size + number)

    return make


def _next_payment(query: str) -> Callable[[int], Operation]:
    """The payment of one order after the other."""

    def make(size: int) -> Operation:
        doc = _timed(query, size)
        return lambda number: doc.feed("paid", f"<p>o{number}</p>", at=size + number)

    return make


def _next_deadline(query: str, source: str = SHOP) -> Callable[[int], Operation]:
    """One row's time passes."""

    def make(size: int) -> Operation:
        doc = _timed(query, size, source)
        return lambda number: doc.advance(_LATE + 0.5 + number)

    return make


def _window(seconds: int) -> str:
    return f"match /shop/orders/order#o/oid/$x where now - o <= {seconds} return $x"


_COUNTED = (
    f"match /shop/orders/order#o[oid/$y]/client/$x where now - o <= {_LATE}"
    " return $x, count() as n having count() >= 3"
)


def _again(query: str) -> Callable[[int], Operation]:
    """One more message of a group, of this many."""

    def make(size: int) -> Operation:
        doc = fed({"v": query}, size, options=_NEEDED)
        return lambda number: doc.feed("orders", order_of(number))

    return make


def _best_goes(size: int) -> Operation:
    """The largest of the ten largest rows is deleted."""
    query = "match /shop/orders/order[oid/$x]/sum/$s return $x, $s order by $s descending limit 10"
    doc = fed({"v": query}, size, DELETING, options=Options(never="joins"))
    return lambda number: doc.delete("orders", f'match /order[oid/"o{size - 1 - number}"]')


def _members(query: str, first: int = 100, **given: Any) -> Callable[[int], Operation]:
    """A message that concerns few of the views that differ in a number, from the first one on."""

    def make(size: int) -> Operation:
        views = {f"v{number}": query.format(first + number) for number in range(size)}
        doc = axlog.parse(SHOP, views=views, options=Options(share="always", **given))
        doc.feed_many("orders", [order_of(0)] * 3)
        order = "<order><oid>o{}</oid><client>c0</client><sum>102</sum></order>"
        return lambda number: doc.feed("orders", order.format(number), at=1 + number / 100)

    return make


def _member_deadlines(size: int) -> Operation:
    """An order that each of the views waits for, and the time after the deadlines of all."""
    views = {f"v{number}": _JOINED.format(_DURATION + number) for number in range(size)}
    doc = axlog.parse(SHOP, views=views, options=Options(share="always", keep="needed"))

    def pass_deadlines(number: int) -> Any:
        start = number * 2 * _DURATION
        doc.feed("orders", order_of(number), at=start)
        return doc.advance(start + _DURATION + size)

    return pass_deadlines


def _payment_of_three(size: int) -> Operation:
    """A payment, which makes a row of a join of three possible with fewer needs."""
    query = "match /shop[orders/order/oid/$x][paid/p/$x][sent/s/$x] return $x"
    doc = axlog.parse(_THREE, views={"v": query}, options=Options(never="all"))
    doc.feed_many("orders", [order_of(number) for number in range(size)])
    return lambda number: doc.feed("paid", f"<p>o{number}</p>")


def _ask(query: str, why_not: bool) -> Callable[[int], Operation]:
    """`why_not` of a row, or a page of possible rows."""

    def make(size: int) -> Operation:
        view = fed({"v": query}, size).view("v")
        if why_not:
            return lambda number: view.why_not({"x": f"o{number}"})
        return lambda number: view.possible(limit=20)

    return make


def _limited(asks: bool) -> Callable[[int], Operation]:
    """A message, or `status`, where a stream brings a limited number of messages."""

    def make(size: int) -> Operation:
        doc = fed({"v": PAID}, size, SHOP.replace('stream="paid"', 'stream="paid" most="5"'))
        view = doc.view("v")
        if asks:
            return lambda number: view.status({"x": f"o{number}"})
        return lambda number: doc.feed("orders", order_of(_LARGE + number))

    return make


def _matched(size: int) -> Operation:
    """One of this many orders with an element arrives, in a view of the orders without."""
    doc = fed({"v": "match /shop[(orders/order/oid/$x or paid/p/$x)] return $x"}, size)
    return lambda number: doc.feed("paid", f"<p>o{number}</p>")


_NESTED = (
    "for $o in /shop/orders/order return <o>{$o/oid}"
    "{for $p in /shop/paid/p where $p = $o/oid return <paid>{string($p)}</paid>}</o>"
)


def _nested(stream: str) -> Callable[[int], Operation]:
    """A message that adds a row, or a part of the element of a row."""

    def make(size: int) -> Operation:
        doc = fed({"v": _NESTED}, size)
        if stream == "orders":
            return lambda number: doc.feed("orders", order_of(_LARGE + number))
        return lambda number: doc.feed("paid", f"<p>o{number}</p>")

    return make


def _people(size: int, view: str) -> Document:
    body = "".join(
        f"<person id='p{n}'><name>n</name><a><b>1</b></a></person>" for n in range(max(size, 20))
    )
    return axlog.parse(f"<people>{body}</people>", views={"v": view})


def _statement(statement: str, view: str = "//person[a/b]/name") -> Callable[[int], Operation]:
    """A statement that concerns one person."""

    def make(size: int) -> Operation:
        doc = _people(size, view)
        return lambda number: doc.update(statement.format(number))

    return make


def _sibling(size: int) -> Operation:
    """A node after this many siblings that are compared in their order."""
    doc = axlog.parse(f"<r>{'<a/><b/>' * size}</r>", views={"v": "//a/following-sibling::*[1]"})
    return lambda number: doc.update("insert node <a/> into /r")


def _source_filter(size: int) -> Operation:
    """The filter that a source needs, with the values that can still join."""
    doc = fed({"paid": PAID}, size)
    return lambda number: doc.filter("paid")


def _text(size: int) -> Operation:
    doc = fed({"ids": IDS}, size)
    return lambda number: doc.xml()


def _watched(size: int) -> Operation:
    """One view more, of a document with this many messages."""
    doc = fed({"ids": IDS}, size)
    query = 'match /shop/orders/order[client/"m{}"]/oid/$x return $x'
    doc.xml()  # its messages are nodes
    return lambda number: doc.watch(query.format(number), f"w{number}")


_JOINED = "match /shop[orders/order#o/oid/$x][paid/p#p/$x] where p - o <= {} return $x"
_DURATION = 2 * 10**6  # a thousand longer ones have the same magnitude: they share one plan
_SENT = _JOINED.format(_LATE).replace(" where", "[sent/s/$x] where")

# fmt: off
VIEW_FEATURES = (
    Feature("a message of a window of the clock", "rows of the window", "constant",
            _next_order(_window(_LATE))),
    Feature("a row leaves a window of the clock", "rows of the window", "constant",
            _next_deadline(_window(_LATE))),
    Feature("a message counted in a window, with having", "rows of the window", "constant",
            _next_order(_COUNTED)),
    Feature("a message of an overdue view", "rows in progress", "constant",
            _next_order(_OVERDUE)),
    Feature("a message that ends a row of an overdue view", "rows in progress", "constant",
            _next_payment(_OVERDUE)),
    Feature("a row becomes overdue", "rows in progress", "constant", _next_deadline(_OVERDUE)),
    Feature("a message of a group with having", "groups", "constant",
            _again("match /shop/orders/order[oid/$x]/sum/$s return $x, count() as n"
                   " having count() >= 2")),
    Feature("a message of the latest value of each key", "keys", "constant",
            _again("match /shop/orders/order[oid/$x]/sum/$s return $x, latest($s by $s) as last")),
    Feature("a delete of the largest of the ten largest", "rows", "constant", _best_goes),
    Feature("a message of a view with or", "rows", "constant", _matched),
    Feature("a message", "views that differ in a threshold", "constant",
            _members("match /shop/orders/order[sum > {}]/oid/$x return $x"), 1000),
    Feature("a message", "views that differ in having", "constant",
            _members("match /shop/orders/order/client/$c return $c, count() as n"
                     " having count() >= {}"), 1000),
    Feature("a message that waits", "joins that differ in a duration", "constant",
            _members(_JOINED, _DURATION, keep="needed"), 1000),
    Feature("the deadlines of a message pass", "joins that differ in a duration", "linear",
            _member_deadlines, 1000, "each has a `never` change"),
    Feature("a message of a join of three, never=all", "rows in progress", "constant",
            _payment_of_three),
    Feature("a deadline of a join of three that passes, with its never", "rows in progress",
            "constant", _next_deadline(_SENT, _THREE)),
    Feature("a page of 20 possible rows of a join of two", "rows in progress", "constant",
            _ask(PAID, why_not=False)),
    Feature("a message beside a stream with most", "messages", "constant", _limited(asks=False)),
    Feature("status beside a stream with most", "messages", "constant", _limited(asks=True)),
    Feature("why_not", "messages", "constant", _ask(PAID, why_not=True)),
    Feature("why_not of a view with not", "messages", "constant", _ask(_OPEN, why_not=True)),
    Feature("a message that adds an element of a nested XQuery view", "rows", "constant",
            _nested("orders")),
    Feature("a message that adds to an element of a nested XQuery view", "rows", "constant",
            _nested("paid")),
    Feature("a statement that inserts, with a view that has a branch", "elements", "constant",
            _statement("insert node <a><b>{0}</b></a> into //person[@id = 'p{0}']")),
    Feature("a statement that deletes", "elements", "constant",
            _statement("delete node //person[@id = 'p{}']")),
    Feature("a statement that changes a value", "elements", "constant",
            _statement("replace value of node //person[@id = 'p{0}']/name with '{0}'",
                       "//person/name")),
    Feature("a statement, with a view of sibling axes", "siblings", "constant", _sibling),
    Feature("the filter for a source", "rows in progress", "constant", _source_filter),
    Feature("watching one more view", "messages", "linear", _watched, 1000,
            "its rows are computed from the document"),
    Feature("the text of the document", "messages", "linear", _text, 1000, "it has each"),
)
# fmt: on
