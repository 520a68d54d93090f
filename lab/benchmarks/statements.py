"""One small statement with other constants each time: parse, find, apply and maintain (F22).

The same statements run on documents of two sizes, and on one of about 0.1 MB against lxml: find the
node, edit it, and evaluate the view's query again. Three kinds take turns: a new value, an inserted
element, and a deletion of that element. The view joins nothing and shows every order's price.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from time import process_time
from typing import Any

from lxml import etree

from axlog.live.document import Document, parse
from lab.benchmarks.measuring import Result, Side, interleave

_VIEW = "match /orders/order[@id = $i]/price/$p return $i, $p"
CHUNK = 30


def statements(
    small: int = 5_000, large: int = 500_000, count: int = 600, rounds: int = 3
) -> Result:
    """Compare documents of two sizes in nodes, and axlog with lxml on 0.1 MB."""
    result = Result("statements", "one small statement with other constants (F22)")
    result.sizes = {"small": small, "large": large, "statements": count}
    sides = {f"{size} nodes": _running(_orders(size // 8)) for size in (large, small)}
    work = _statements(count, small // 8)
    costs = interleave(sides, work, CHUNK, rounds, clock=process_time)
    over, under = f"{large} nodes", f"{small} nodes"
    result.compare("a statement", costs, over, under, "1.2 or less")
    orders = 1_450 if small >= 5_000 else 40
    xml = _orders(orders)
    result.sizes["bytes against lxml"] = len(xml)
    both = {"axlog": _running(xml), "lxml": _editing(xml)}
    work = _statements(count, orders)
    costs = interleave(both, work, CHUNK, rounds, clock=process_time)
    result.compare("0.1 MB", costs, "axlog", "lxml", "1 or less")
    return result


def _orders(count: int) -> str:
    """A document of so many orders, of eight nodes each."""
    inside = "".join(
        f'<order id="o{number}"><price>{number % 97}</price><client>c{number % 31}</client></order>'
        for number in range(count)
    )
    return f"<orders>{inside}</orders>"


Change = tuple[str, str, str]
"""The kind, the id of an order, and a value."""


def _statements(count: int, orders: int) -> list[Change]:
    random = Random(3)
    found: list[Change] = []
    while len(found) < count:
        order, value = f"o{random.randrange(orders)}", str(random.randrange(1_000_000))
        found += [("value", order, value), ("insert", order, value), ("delete", order, value)]
    return found[:count]


def _text(change: Change) -> str:
    kind, order, value = change
    target = f'/orders/order[@id = "{order}"]'
    if kind == "value":
        return f'replace value of node {target}/price with "{value}"'
    if kind == "insert":
        return f'insert node <note n="{value}">new {value}</note> into {target}'
    return f'delete node {target}/note[@n = "{value}"]'


def _running(xml: str) -> Callable[[], Side[Change]]:
    def side() -> Side[Change]:
        document: Document = parse(xml, views={"prices": _VIEW})
        for change in (("value", "o1", "1"), ("insert", "o1", "1"), ("delete", "o1", "1")):
            document.update(_text(change))

        def work(chunk: Sequence[Change]) -> None:
            for change in chunk:
                document.update(_text(change))

        return work

    return side


def _editing(xml: str) -> Callable[[], Side[Change]]:
    def side() -> Side[Change]:
        root: Any = etree.fromstring(xml)
        ids: Any = etree.XPath("/orders/order[price]/@id", smart_strings=False)
        prices: Any = etree.XPath("/orders/order/price/text()", smart_strings=False)

        def work(chunk: Sequence[Change]) -> None:
            for kind, order, value in chunk:
                (found,) = root.xpath(f'/orders/order[@id = "{order}"]')
                if kind == "value":
                    found.find("price").text = value
                elif kind == "insert":
                    found.append(etree.fromstring(f'<note n="{value}">new {value}</note>'))
                else:
                    for note in found.xpath(f'note[@n = "{value}"]'):
                        found.remove(note)
                list(zip(ids(root), prices(root), strict=True))

        return work

    return side
