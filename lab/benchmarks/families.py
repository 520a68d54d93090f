"""Many views that differ in constants, against one view (F17).

The order monitor with a view for each client, on messages of all clients, so that every message
matches some view; price alerts with different thresholds; the cost of watching one view more, the
message after it, and the memory of a view without rows. The other sides are one view of the same
query on messages of one client, and the bare parse. All times are processor times.
"""

from __future__ import annotations

import gc
import re
import sys
import tracemalloc
from collections.abc import Callable
from itertools import islice
from random import Random
from time import process_time

from axlog.live.document import Document
from axlog.live.options import Keep, Options
from axlog.samples import orders
from lab.benchmarks.measuring import Result, Side, interleave
from lab.benchmarks.messages import CHUNK, WARM, Message, feeding, parsing, plain

ALERT = "match /management/webstore/orders/order[details/price > {}]/oid/$x return $x"
_CLIENT = re.compile(rb"<client>[^<]*</client>")
_GOODS = re.compile(rb"<(/?)(?:printer|screen|keyboard|scanner|router)>")
_PRICE = re.compile(rb"<price>[^<]*</price>")


def families(count: int = 4000, rounds: int = 3, views: int = 10_000) -> Result:
    """Measure `count` messages with this many views against one view."""
    result = Result("families", "10,000 views against one (F17: 2 x one view, 3 x the bare parse)")
    result.sizes = {"messages": count, "rounds": rounds, "views": views}
    kinds: tuple[Keep, ...] = ("needed", "all")
    for keep in kinds:
        costs = interleave(
            {
                "many": feeding(_monitors(views, keep), client_messages(WARM, views)),
                "one": _of_its_own(
                    feeding(_monitors(1, keep), client_messages(WARM, 1)),
                    client_messages(count + WARM, 1)[WARM:],
                ),
                "bare parse": parsing,
            },
            client_messages(count + WARM, views)[WARM:],
            CHUNK,
            rounds,
            process_time,
        )
        what = f"order monitor, {views} clients, keep={keep}"
        result.compare(what, costs, "many", "one", "2 or less")
        result.compare(f"{what}, parse", costs, "many", "bare parse", "3 or less")
    costs = interleave(
        {
            "many": feeding(_alerts(views), _priced(WARM, views)),
            "one": feeding(_alerts(1), _priced(WARM, views)),
        },
        _priced(count + WARM, views)[WARM:],
        CHUNK,
        rounds,
        process_time,
    )
    what = f"{views} thresholds, ten match"
    result.compare(what, costs, "many", "one", "3 or less")
    _measure_watching(result, views)
    return result


def _of_its_own(
    make: Callable[[], Side[Message]], messages: list[Message]
) -> Callable[[], Side[Message]]:
    """A side that takes as many messages of its own as it is given."""

    def side() -> Side[Message]:
        work, left = make(), iter(messages)
        return lambda chunk: work(list(islice(left, len(chunk))))

    return side


def client_messages(count: int, clients: int) -> list[Message]:
    """Messages in which every order is of one of the clients and of a computer."""
    random = Random(7)
    return [
        (
            stream,
            _GOODS.sub(
                rb"<\1computer>",
                _CLIENT.sub(lambda _: b"<client>c%d</client>" % random.randrange(clients), message),
            ),
            at,
        )
        for stream, message, at in plain(orders.messages(count))
    ]


def _priced(count: int, views: int) -> list[Message]:
    """Orders with a price above ten of the thresholds, which are 0, 1, 2, ..."""
    return [
        (stream, _PRICE.sub(b"<price>10</price>", message), at)
        for stream, message, at in plain(orders.messages(3 * count))
        if stream == "orders"
    ][:count]


def monitor_of(client: int) -> str:
    """The order monitor of one client."""
    return orders.LATE.replace("INRIA", f"c{client}")


def _monitors(views: int, keep: Keep) -> Callable[[], Document]:
    def make() -> Document:
        doc = Document(orders.DOCUMENT, options=Options(keep=keep, share="always"))
        for number in range(views):
            doc.watch(monitor_of(number), f"v{number}")
        return doc

    return make


def _alerts(views: int) -> Callable[[], Document]:
    def make() -> Document:
        doc = Document(orders.DOCUMENT, options=Options(keep="needed", share="always"))
        for number in range(views):
            doc.watch(ALERT.format(number if views > 1 else 9), f"v{number}")
        return doc

    return make


def _measure_watching(result: Result, views: int) -> None:
    """Time and memory of one view more, and the message after it."""
    doc = _monitors(16, "needed")()
    sent = client_messages(2000, 16)
    start = process_time()
    for stream, message, at in sent:
        doc.feed(stream, message, at=at)
    message_cost = (process_time() - start) / len(sent)
    start = process_time()
    for number in range(16, views):
        doc.watch(monitor_of(number), f"v{number}")
    cost = (process_time() - start) / (views - 16)
    result.figures["watching one view more, us"] = 1e6 * cost
    result.figures["watching one view more, messages"] = cost / message_cost
    stream, message, at = sent[-1]
    start = process_time()
    doc.feed(stream, message, at=at)
    result.figures["the message after it, us"] = 1e6 * (process_time() - start)
    doc = _monitors(16, "needed")()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(16, views):
        doc.watch(monitor_of(number), f"v{number}")
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    result.figures["memory of an idle view, bytes"] = used / (views - 16)
    tracemalloc.stop()
    result.remarks.append(f"Python {sys.version.split()[0]}, processor time")
