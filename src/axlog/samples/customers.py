"""Customers with limits, their orders and deliveries, for the example of alerts by customer.

    python -m axlog.samples.customers examples/customer-alerts/in 10000 400

writes `customers.csv` with this many customers, and `orders.jsonl` and `deliveries.jsonl` with this
many orders. `expected` says which alerts they cause.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from axlog.samples.chance import Chance

DAY = 86_400
PROMISE = 2 * DAY
"""Seconds in which an order is to be delivered."""


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer: the name, the price above which it wants an alert, and the address for it."""

    client: str
    most: int
    mail: str


@dataclass(frozen=True, slots=True)
class Order:
    """An order, and when it is delivered; None: it is lost."""

    oid: int
    client: str
    price: int
    ordered: int
    delivered: int | None


def customers(count: int, seed: int = 7) -> list[Customer]:
    """Return this many customers.

    >>> customers(1)[0].mail
    'c0@example.org'
    """
    chance = Chance(seed, "customers")
    return [
        Customer(f"c{n}", 100 * (1 + chance.below(20)), f"c{n}@example.org") for n in range(count)
    ]


def orders(count: int, clients: int, seed: int = 7) -> list[Order]:
    """Return this many orders, ten minutes apart.

    >>> len(orders(3, 10))
    3
    """
    chance = Chance(seed, "orders")
    made = []
    for oid in range(count):
        at = 600 * oid
        hours = 1 + chance.below(60)
        delivered = None if chance.below(20) == 0 else at + 3600 * hours
        client = f"c{chance.below(clients)}"
        made.append(Order(oid, client, 1 + chance.below(2500), at, delivered))
    return made


def expected(known: list[Customer], made: list[Order]) -> dict[str, set[str]]:
    """Return the orders with an alert: those that are too dear, and those that are late.

    A lost order is late once the deliveries after it show that its time is over.
    """
    most = {customer.client: customer.most for customer in known}
    last = max(_moments(made))
    return {
        "dear": {str(one.oid) for one in made if one.price > most[one.client]},
        "late": {
            str(one.oid)
            for one in made
            if one.ordered + PROMISE < (last if one.delivered is None else one.delivered)
        },
    }


def _moments(made: list[Order]) -> Iterator[int]:
    for one in made:
        yield one.ordered
        if one.delivered is not None:
            yield one.delivered


def write(directory: Path, known: list[Customer], made: list[Order]) -> None:
    """Write the files of the example."""
    directory.mkdir(parents=True, exist_ok=True)
    write_customers(directory, known)
    shipped = [one for one in made if one.delivered is not None]
    shipped.sort(key=lambda one: one.delivered or 0)
    lines = [
        (f"<order><oid>{one.oid}</oid><client>{one.client}</client><price>{one.price}</price>"
         "</order>", one.ordered)
        for one in made
    ]  # fmt: skip
    _write(directory / "orders.jsonl", "orders", lines)
    arrivals = [(f"<delivery><oid>{one.oid}</oid></delivery>", one.delivered) for one in shipped]
    _write(directory / "deliveries.jsonl", "deliveries", arrivals)


def write_customers(directory: Path, known: list[Customer]) -> None:
    """Write the table of customers, as a whole: a reader sees the old one or the new one."""
    aside = directory / "customers.part"
    rows = [f"{one.client},{one.most},{one.mail}" for one in known]
    aside.write_text("\n".join(["client,most,mail", *rows]) + "\n", encoding="utf-8")
    aside.replace(directory / "customers.csv")


def _write(path: Path, stream: str, lines: Sequence[tuple[str, int | None]]) -> None:
    written = (json.dumps({"stream": stream, "insert": xml, "at": at}) for xml, at in lines)
    path.write_text("".join(f"{line}\n" for line in written), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Write the files, and print how many alerts they cause."""
    place, count, sold = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    known, made = customers(count), orders(sold, count)
    write(place, known, made)
    found = {name: len(which) for name, which in expected(known, made).items()}
    print(f"{count} customers, {sold} orders: {found['dear']} too dear, {found['late']} late")


if __name__ == "__main__":
    main(sys.argv[1:])
