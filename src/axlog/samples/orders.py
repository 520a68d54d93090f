"""The order monitor: document, queries and messages.

The orders of a web store arrive in one stream, shipments in another. `LATE` selects INRIA's
computers that shipped 50,000 seconds or more after the order, `ON_TIME` those that shipped earlier.
`WITHIN` also requires that the order comes first. Messages have about twenty elements and are
sorted by time across both streams.

The generator is unbounded: orders arrive at the given rate, and each ships after a delay or never.
`count` limits the messages. A heap holds the pending shipments, so memory is proportional to rate
times delay, not to `count`. (Paper 3, sections 1 and 5.4.)
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count as count_up
from itertools import islice

from axlog.errors import WorkloadError
from axlog.samples.chance import Chance
from axlog.samples.vocabulary import CITIES, COUNTRIES, FIRST_NAMES, LAST_NAMES

DOCUMENT = (
    '<management xmlns:ax="urn:axlog">'
    '<webstore><name>web store</name><orders><ax:call stream="orders"/></orders></webstore>'
    '<shipping><name>shipping</name><orders><ax:call stream="shipments"/></orders></shipping>'
    "</management>"
)

LATE_AFTER = 50_000

_MATCH = (
    'match /management[webstore/orders/order[client/"INRIA"][details/computer]/oid/$x#t1]'
    "[shipping/orders/order/oid/$x#t2]"
)
LATE = f"{_MATCH} where t2 - t1 >= {LATE_AFTER} return $x"
ON_TIME = f"{_MATCH} where t2 - t1 <= {LATE_AFTER} return $x"
WITHIN = ON_TIME.replace(" return", " and t2 - t1 >= 0 return")
"""On time and not before the order: past orders can then be dropped from memory."""

KEYS = ("key webstore/orders/order by oid trusted", "key shipping/orders/order by oid trusted")

_CLIENT = "INRIA"
_CLIENTS = ("CNRS", "CWI", "DFKI", "EPFL", "ETH", "INESC", "MPI", "NTUA", "SINTEF", "VTT")
_GOODS = ("printer", "screen", "keyboard", "scanner", "router")
_CARRIERS = ("road", "rail", "air", "sea", "bicycle")
_SECOND = 1_000_000  # in microseconds, so that sums of times are exact


def messages(
    count: int,
    seed: int = 0,
    rate: float = 0.02,
    late_share: float = 0.3,
    ship_share: float = 0.9,
    wanted_share: float = 0.5,
    keyed: bool = True,
) -> Iterator[dict[str, object]]:
    """`count` messages of both streams as updates `{"stream", "insert", "at"}`, by time.

    `rate` is orders per second. A share `ship_share` of the orders ships, `late_share` of these
    late, and `wanted_share` are computers for INRIA. Unless `keyed`, one order in twenty reuses an
    oid and one shipment in twenty is sent twice.

    >>> [message["stream"] for message in messages(2)]
    ['orders', 'orders']
    """
    if rate <= 0:
        raise WorkloadError(
            "AX601", f"orders cannot come at the rate {rate}", expected="orders a second, above 0"
        )
    endless = _messages(Chance(seed, "orders"), rate, late_share, ship_share, wanted_share, keyed)
    return islice(endless, count)


def _messages(
    chance: Chance,
    rate: float,
    late_share: float,
    ship_share: float,
    wanted_share: float,
    keyed: bool,
) -> Iterator[dict[str, object]]:
    pending: list[tuple[int, int, str]] = []
    placed = 0
    for number in count_up():
        placed += max(1, int(chance.exponential(_SECOND / rate)))
        while pending and pending[0][0] <= placed:
            at, _, oid = heappop(pending)
            yield {"stream": "shipments", "insert": _shipment(oid, chance), "at": at / _SECOND}
        again = not keyed and number > 0 and chance.happens(0.05)
        oid = f"o{chance.below(number) if again else number}"
        insert = _order(oid, chance.happens(wanted_share), chance)
        yield {"stream": "orders", "insert": insert, "at": placed / _SECOND}
        if chance.happens(ship_share):
            shipped = placed + _delay(chance.happens(late_share), chance)
            heappush(pending, (shipped, number, oid))
            if not keyed and chance.happens(0.05):
                heappush(pending, (shipped + LATE_AFTER * _SECOND, number, oid))


def _delay(late: bool, chance: Chance) -> int:
    """Microseconds from order to shipment: 50,000 seconds or more if late, else less."""
    if late:
        return LATE_AFTER * _SECOND + int(chance.exponential(LATE_AFTER * _SECOND / 2))
    return _SECOND + chance.below((LATE_AFTER - 1) * _SECOND)


def _order(oid: str, wanted: bool, chance: Chance) -> str:
    client, goods = _CLIENT, "computer"
    if not wanted:
        # Half of the other orders have another client, half have other goods.
        if chance.happens(0.5):
            client = chance.choose(_CLIENTS)
            goods = chance.choose(("computer", *_GOODS))
        else:
            goods = chance.choose(_GOODS)
    last, price, pieces = chance.choose(LAST_NAMES), 100 + chance.below(2900), 1 + chance.below(5)
    return (
        f"<order><oid>{oid}</oid><client>{client}</client>"
        f"<contact><name>{chance.choose(FIRST_NAMES)} {last}</name>"
        f"<phone>{chance.below(10**8):08}</phone></contact>"
        f"<address><street>{1 + chance.below(99)} {chance.choose(LAST_NAMES)} St</street>"
        f"<city>{chance.choose(CITIES)}</city><country>{chance.choose(COUNTRIES)}</country>"
        f"</address><details><{goods}><model>m{chance.below(50)}</model>"
        f"<weight>{1 + chance.below(20)}</weight></{goods}>"
        f"<pieces>{pieces}</pieces><price>{price}</price></details>"
        f"<payment><method>invoice</method><total>{price * pieces}</total></payment></order>"
    )


def _shipment(oid: str, chance: Chance) -> str:
    return (
        f"<order><oid>{oid}</oid><carrier><name>{chance.choose(_CARRIERS)}</name>"
        f"<service>{chance.choose(('standard', 'express'))}</service></carrier>"
        f"<parcel><tracking>{chance.below(10**10):010}</tracking>"
        f"<weight>{1 + chance.below(20)}</weight>"
        f"<size><length>{10 + chance.below(90)}</length><width>{10 + chance.below(90)}</width>"
        f"<height>{10 + chance.below(90)}</height></size></parcel>"
        f"<from><city>{chance.choose(CITIES)}</city><country>{chance.choose(COUNTRIES)}</country>"
        f"</from><to><city>{chance.choose(CITIES)}</city>"
        f"<country>{chance.choose(COUNTRIES)}</country></to>"
        f"<customs><declared>{100 + chance.below(2900)}</declared></customs></order>"
    )
