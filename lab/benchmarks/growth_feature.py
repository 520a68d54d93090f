"""A feature whose cost is counted at several sizes, and the shop of which most features are.

(`growth.py`.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import axlog
from axlog import Document

Operation: TypeAlias = Callable[[int], object]
"""Runs the operation once; the number tells apart the runs at one size."""
Growth: TypeAlias = Literal["constant", "linear", "quadratic"]
RUNS = 5
SHOP = (
    '<shop xmlns:ax="urn:axlog"><orders><ax:call stream="orders"/></orders>'
    '<paid><ax:call stream="paid"/></paid><old/></shop>'
)
DELETING = SHOP.replace('stream="orders"', 'stream="orders" deletes="yes"')


@dataclass(frozen=True, slots=True)
class Feature:
    """One operation, the size that it may depend on, and how its cost grows with it."""

    name: str
    size: str
    growth: Growth
    make: Callable[[int], Operation]
    """The operation at a size, on a document that was made for it."""
    most: int = 10_000  # the largest size
    why: str = ""  # the reason for a growth that is not constant


def order_of(number: int) -> str:
    return f"<order><oid>o{number}</oid><client>c{number % 7}</client><sum>{number}</sum></order>"


def fed(views: dict[str, str], count: int, source: str = SHOP, **given: Any) -> Document:
    """A shop with this many orders."""
    doc = axlog.parse(source, views=views, **given)
    doc.feed_many("orders", [order_of(number) for number in range(count)])
    return doc


PAID = "match /shop[orders/order/oid/$x][paid/p/$x] return $x"
IDS = "match /shop/orders/order/oid/$x return $x"
WHOLE = "match /shop/orders/order#o/oid/$x return $x, o.cont"
