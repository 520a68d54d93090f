"""Features of streams, statements and questions, whose growth is counted (`growth.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from lxml.etree import fromstring

import axlog
from axlog import Document, Options
from axlog.match.filters import Filter
from lab.benchmarks.growth_feature import (
    DELETING,
    IDS,
    PAID,
    RUNS,
    SHOP,
    WHOLE,
    Feature,
    Operation,
    fed,
    order_of,
)


def _message(views: dict[str, str], **given: Any) -> Callable[[int], Operation]:
    """A message of the orders, after this many."""

    def make(size: int) -> Operation:
        doc = fed(views, size, **given)
        return lambda number: doc.feed("orders", order_of(10**6 + number))

    return make


def _document(size: int) -> Operation:
    old = "<old>" + "<a><b>1</b></a>" * size + "</old>"
    doc = axlog.parse(SHOP.replace("<old/>", old), views={"ids": IDS})
    doc.feed("orders", order_of(0))
    return lambda number: doc.feed("orders", order_of(10**6 + number))


def _completing(size: int) -> Operation:
    doc = fed({"paid": PAID}, size, options=Options(keep="needed"))
    return lambda number: doc.feed("paid", f"<p>o{number}</p>")


def _groups(size: int) -> Operation:
    query = "match /shop/orders/order[oid/$x]/sum/$s return $x, count() as n, sum($s) as total"
    doc = fed({"sums": query}, size, options=Options(keep="needed"))
    return lambda number: doc.feed("orders", order_of(number))


def _factor(size: int) -> Operation:
    """A branch that binds nothing: it multiplies the counts of all rows."""
    doc = fed({"v": "match /shop[orders/order/oid/$x][paid/p] return $x"}, size)
    doc.feed("paid", "<p>1</p>")
    return lambda number: doc.feed("paid", f"<p>{number}</p>")


def _constants(size: int) -> Operation:
    views = {
        f"v{n}": f'match /shop/orders/order[client/"k{n}"]/oid/$x return $x' for n in range(size)
    }
    doc = fed(views, 3)
    return lambda number: doc.feed("orders", order_of(10**6 + number))


def _shapes(size: int) -> Operation:
    """Views of which a message concerns one."""
    views = {f"v{n}": f"match /shop/orders/order[a{n}]/oid/$x return $x" for n in range(size)}
    doc = fed(views, 3)
    return lambda number: doc.feed("orders", f"<order><oid>{number}</oid><a1/></order>")


def _joined_shapes(size: int) -> Operation:
    """Joins with deadlines, of which a message concerns one."""
    query = "match /shop[orders/order[a{}]/oid/$x#o][paid/p[b{}]/$x#p] where p - o <= 5 return $x"
    doc = fed({f"v{n}": query.format(n, n) for n in range(size)}, 3)
    return lambda number: doc.feed("orders", f"<order><oid>{number}</oid><a1/></order>")


def _branches(size: int) -> Operation:
    """A view with this many branches, each with a stream; a message completes one of them."""
    names = [f"b{number}" for number in range(max(size, 1))]
    calls = "".join(f'<{name}><ax:call stream="{name}"/></{name}>' for name in names)
    query = f"match /shop{''.join(f'[{name}/p/$x]' for name in names)} return $x"
    doc = axlog.parse(f'<shop xmlns:ax="urn:axlog">{calls}</shop>', views={"v": query})
    for name in names[1:]:
        doc.feed_many(name, [f"<p>o{number}</p>" for number in range(2 * RUNS + 2)])
    return lambda number: doc.feed("b0", f"<p>o{number}</p>")


def _elements(size: int) -> Operation:
    """A message with this many elements that the view shows."""
    doc = fed({"ids": IDS}, 3)
    return lambda number: doc.feed(
        "orders", "<order>" + f"<oid>o{number}</oid>" * size + f"<a{number}/></order>"
    )


def _contents(size: int) -> Operation:
    """A message that becomes nodes at once, beside this many siblings."""
    doc = fed({"whole": WHOLE}, size)
    return lambda number: doc.feed("orders", order_of(10**6 + number))


def _filtered(size: int) -> Operation:
    """A message that one of this many filters wants."""
    made = Filter()
    for number in range(size):
        made.add(f"f{number}", f"match /order[a{number}]//oid/$x return $x")
    return lambda number: made.matches(fromstring(f"<order><a1/><oid>{number}</oid></order>"))


def _replaced(size: int) -> Operation:
    """A message that replaces another, of this many keys."""
    view = "match //positions/p[@v = $v]/at/$a return $v, $a"
    doc = Document(streams={"positions": {"replace": "@v"}}, views={"at": view})
    doc.feed_many("positions", [f'<p v="{n}"><at>0</at></p>' for n in range(size)])
    return lambda number: doc.feed("positions", f'<p v="{number}"><at>{number}</at></p>')


def _clock(size: int) -> Operation:
    """One of this many deadlines passes."""
    query = "match /shop[orders/order#o/oid/$x][paid/p#p/$x] where p - o <= 5 return $x"
    doc = axlog.parse(SHOP, views={"v": query}, options=Options(keep="needed"))
    for number in range(size):
        doc.feed("orders", order_of(number), at=100 + number / size)
    return lambda number: doc.advance(105 + number / size)


def _top(size: int) -> Operation:
    query = "match /shop/orders/order[oid/$x]/sum/$s return $x, $s order by $s descending limit 10"
    doc = fed({"top": query}, size, options=Options(keep="needed"))
    return lambda number: doc.feed("orders", order_of(10**6 + number))


def _extreme(size: int) -> Operation:
    """The largest sum of one group, of which this many rows are known; one is deleted."""
    query = "match /shop/orders/order/sum/$s return max(number($s)) as largest"
    doc = fed({"largest": query}, size, DELETING, options=Options(never="joins"))

    def operation(number: int) -> object:
        doc.feed("orders", order_of(10**6 + number))
        return doc.delete("orders", f'match /order[oid/"o{10**6 + number}"]')

    return operation


def _delete(
    never: Literal["kept", "joins"], views: dict[str, str] | None = None, path: str = "/"
) -> Callable[[int], Operation]:
    def make(size: int) -> Operation:
        doc = fed(views or {"ids": IDS}, size, DELETING, options=Options(never=never))

        def operation(number: int) -> object:
            doc.feed("orders", order_of(10**6 + number))
            return doc.delete("orders", f'match {path}order[oid/"o{10**6 + number}"]')

        return operation

    return make


def _statement(size: int) -> Operation:
    body = "".join(f"<person id='p{number}'><name>n</name></person>" for number in range(size))
    doc = axlog.parse(f"<people>{body}</people>", views={"names": "//person/name"})
    return lambda number: doc.update(
        f"insert node <phone>{number}</phone> into //person[@id = 'p{number % size}']"
    )


def _status(size: int) -> Operation:
    view = fed({"paid": PAID}, size).view("paid")
    return lambda number: view.status({"x": f"o{number}"})


def _never(size: int) -> Operation:
    doc = fed({"ids": IDS, "paid": PAID}, size, options=Options(never="all"))
    return lambda number: doc.feed("orders", order_of(10**6 + number))


_OPEN = "match /shop[orders/order/oid/$x][not(paid/p/$x)] return $x"


def _possible(size: int) -> Operation:
    """A page of possible rows of orders that are not paid."""
    view = fed({"open": _OPEN}, size).view("open")
    return lambda number: view.possible(limit=20)


_SHIPPED = (
    "match /shop[orders/order/oid/$x#o][paid/p/$x#p][sent/s/$x] where p - o <= 100000 return $x"
)


def _possible_of_three(size: int) -> Operation:
    """A page of possible rows of orders that are to be paid in time, and sent."""
    source = SHOP.replace("<old/>", '<sent><ax:call stream="sent"/></sent>')
    doc = axlog.parse(source, views={"shipped": _SHIPPED})
    for number in range(size):
        doc.feed("orders", order_of(number), at=number)
    view = doc.view("shipped")
    return lambda number: view.possible(limit=20)


def _blocking(size: int) -> Operation:
    """The payment of an order that waits."""
    doc = fed({"open": _OPEN}, size)
    return lambda number: doc.feed("paid", f"<p>o{number}</p>")


def _why(size: int) -> Operation:
    view = fed({"ids": IDS}, size).view("ids")
    return lambda number: view.why({"x": f"o{number}"})


def _retract(size: int) -> Operation:
    doc = fed({"ids": IDS}, size + 4 * RUNS, options=Options(never="joins"))
    return lambda number: doc.retract("orders", number + 1)


def _comparisons(condition: str) -> Callable[[int], Operation]:
    """Two branches with a comparison: each order meets the smaller prices, of which one fits."""
    query = f"match /shop[orders/order/sum/$s][paid/p/$l] where {condition} return $s, $l"

    def make(size: int) -> Operation:
        doc = fed({"v": query}, size)
        return lambda number: doc.feed("paid", f"<p>{size - 2}.{number}</p>")

    return make


def _times(size: int) -> Operation:
    """Two branches with a comparison of times: each payment meets the last order."""
    query = "match /shop[orders/order#o/oid/$x][paid/p#p/$l] where p - o < 2 return $x, $l"
    doc = axlog.parse(SHOP, views={"v": query}, options=Options(never="joins", keep="all"))
    for number in range(size):
        doc.feed("orders", order_of(number), at=2 * number)
    return lambda number: doc.feed("paid", f"<p>{number}</p>", at=2 * size - 1)


# fmt: off
STREAM_FEATURES = (
    Feature("a message", "nodes elsewhere in the document", "constant", _document),
    Feature("a message", "messages before it, kept", "constant", _message({"ids": IDS})),
    Feature(
        "a message", "messages before it, not kept", "constant",
        _message({"ids": IDS}, options=Options(keep="needed")),
    ),
    Feature(
        "a message that completes a row of a join", "rows in progress", "constant", _completing
    ),
    Feature("a message of a group", "groups", "constant", _groups),
    Feature("a message", "views that differ in constants", "constant", _constants, 1000),
    Feature("a message of one view", "views of different shapes", "constant", _shapes, 1000),
    Feature("a message for filters", "filters of different shapes", "constant", _filtered, 1000),
    Feature(
        "a message of one view", "joins of different shapes, with deadlines", "constant",
        _joined_shapes, 1000,
    ),
    Feature("a message for a branch that binds nothing", "rows of the view", "constant", _factor),
    Feature(
        "a message compared with another branch", "rows of that branch", "constant",
        _comparisons("$s > $l"),
    ),
    Feature(
        "a message compared with another branch by time", "rows of that branch", "constant",
        _times,
    ),
    Feature(
        "a message compared with another branch by a computed condition", "rows of that branch",
        "constant", _comparisons("number($s) > number($l)"),
    ),
    Feature("a stream's delete by key, never=joins", "siblings", "constant", _delete("joins")),
    Feature("a stream's delete by key, never=kept", "siblings", "constant", _delete("kept")),
    Feature("a stream's delete by key below //", "siblings", "constant",
            _delete("joins", path="//")),
    Feature("a stream's delete by key, of nodes", "siblings", "constant",
            _delete("joins", {"whole": WHOLE})),
    Feature("a stream's delete by key, of a join", "rows in progress", "constant",
            _delete("joins", {"paid": PAID})),
    Feature("a delete of the largest value of a group", "rows of the group", "constant", _extreme),
    Feature("a message that replaces another", "keys", "constant", _replaced),
    Feature("a message that becomes nodes at once", "siblings", "constant", _contents),
    Feature("a message of the ten largest", "rows", "constant", _top),
    Feature("a deadline that passes", "rows in progress", "constant", _clock),
    Feature("a message of one branch", "branches", "linear", _branches, 40,
            "it is joined with each of the other branches"),
    Feature("a message", "its elements that a view shows", "linear", _elements, 1000,
            "each is a row"),
    Feature("taking back a message", "messages", "constant", _retract),
    Feature("a statement that finds its target by value", "elements", "constant", _statement),
    Feature("status of a row", "rows in progress", "constant", _status),
    Feature("a message of a join, never=all", "rows in progress", "constant", _never),
    Feature("a message that ends a row of a view with not", "rows in progress", "constant",
            _blocking),
    Feature("a page of 20 possible rows of a view with not", "rows in progress", "constant",
            _possible),
    Feature("a page of 20 possible rows of a join of three", "rows in progress", "constant",
            _possible_of_three),
    Feature("why", "messages", "constant", _why),
)
# fmt: on
