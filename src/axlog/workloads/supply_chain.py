"""A supply chain (P3 2.4) in today's documents: UBL 2 orders, remittances, despatches, invoices.

Six partners publish: the web store its orders and invoices, the bank what was paid, the plant what
it assembled, the warehouse and the supplier the level of each part, the shipper what it sent. Two
widgets watch them. `ORDERS` follows each order: which are on time, which are late, which waited for
the bank, the plant or the shipper, and which invoices name an order whose goods never left
(three-way match). `STOCK` keeps the present level of every part, where a report replaces the one
before, and shows the parts that run low.

Messages come by time. An order takes its way with delays drawn for each partner; a share `faults`
of the steps goes wrong: a slow bank, a missing part, a shipper that is late or loses the goods, an
invoice that comes too early, a message that is not XML.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count as count_up

from axlog.workloads.chance import Chance

UBL = "urn:oasis:names:specification:ubl:schema:xsd:"
NAMESPACES = {
    "o": f"{UBL}Order-2",
    "r": f"{UBL}RemittanceAdvice-2",
    "p": f"{UBL}OrderResponse-2",
    "d": f"{UBL}DespatchAdvice-2",
    "i": f"{UBL}Invoice-2",
    "s": f"{UBL}InventoryReport-2",
    "cac": f"{UBL}CommonAggregateComponents-2",
    "cbc": f"{UBL}CommonBasicComponents-2",
}

HOUR = 3600
PROMISE = 48 * HOUR
"""Seconds from order to despatch that the web store promises."""

ORDERS = """<chain xmlns:ax="urn:axlog">
  <store><ax:call stream="orders"/></store>
  <bank><ax:call stream="payments"/></bank>
  <plant><ax:call stream="assembled"/></plant>
  <shipper><ax:call stream="despatches"/></shipper>
  <billing><ax:call stream="invoices"/></billing>
</chain>"""

_ORDER = "store/o:Order/cbc:ID/$order#placed"
_PAID = "bank/r:RemittanceAdvice/cbc:PaymentOrderReference/$order#paid"
_BUILT = "plant/p:OrderResponse/cac:OrderReference/cbc:ID/$order#built"
_SENT = "shipper/d:DespatchAdvice/cac:OrderReference/cbc:ID/$order#sent"
_LATE = f"sent - placed > {PROMISE}"

ORDER_VIEWS = {
    "on_time": f"match /chain[{_ORDER}][{_SENT}] where sent - placed <= {PROMISE} "
    "and sent - placed >= 0 return $order",
    "late": f"match /chain[{_ORDER}][{_SENT}] where {_LATE} return $order, sent.time as sent",
    "waited_for_bank": f"match /chain[{_ORDER}][{_PAID}][{_SENT}] where {_LATE} "
    f"and paid - placed > {24 * HOUR} return $order",
    "waited_for_plant": f"match /chain[{_PAID}][{_BUILT}][{_ORDER}][{_SENT}] where {_LATE} "
    f"and built - paid > {24 * HOUR} return $order",
    "waited_for_shipper": f"match /chain[{_BUILT}][{_SENT}][{_ORDER}] where {_LATE} "
    f"and sent - built > {24 * HOUR} return $order",
    "invoiced_without_goods": "match /chain[billing/i:Invoice[cac:OrderReference/cbc:ID/$order]"
    "/cbc:ID/$invoice][not(shipper/d:DespatchAdvice/cac:OrderReference/cbc:ID/$order)] "
    "return $invoice, $order",
}
ORDER_FACTS = (
    "key store/o:Order by cbc:ID trusted",
    "key bank/r:RemittanceAdvice by cbc:PaymentOrderReference trusted",
    "key plant/p:OrderResponse by cac:OrderReference/cbc:ID trusted",
    "key shipper/d:DespatchAdvice by cac:OrderReference/cbc:ID trusted",
)

STOCK = '<stock xmlns:ax="urn:axlog"><ax:call stream="levels" deletes="yes"/></stock>'
LOW = 20
STOCK_VIEWS = {
    "low_parts": f"match /stock/s:InventoryReport[cac:InventoryReportLine[cbc:Quantity#q < {LOW}]"
    "/cac:Item/cac:SellersItemIdentification/cbc:ID/$part] return $part, q.val as level",
}

PARTS = ("bolt", "case", "cell", "chip", "fan", "glass", "hinge", "key")
_SECOND = 1_000_000


def messages(
    seed: int = 0, rate: float = 2.0, faults: float = 0.08, orders: int | None = None
) -> Iterator[dict[str, object]]:
    """Updates of all streams by time, without end unless a number of orders is given.

    `rate` is orders an hour. Times are seconds from the start.

    >>> first = next(messages())
    >>> first["stream"], sorted(first)
    ('levels', ['at', 'insert', 'stream'])
    """
    return _Chain(Chance(seed, "supply chain"), rate, faults).run(orders)


class _Chain:
    """The simulated partners: what each does next, by time."""

    def __init__(self, chance: Chance, rate: float, faults: float) -> None:
        self._chance = chance
        self._rate = rate
        self._faults = faults
        self._due: list[tuple[int, int, dict[str, object]]] = []
        self._numbers = count_up()
        self._levels = dict.fromkeys(PARTS, 60)

    def run(self, orders: int | None) -> Iterator[dict[str, object]]:
        for part in PARTS:
            yield self._at(0, "levels", insert=_report(part, self._levels[part]))
        placed = 0
        for number in count_up():
            if number == orders:
                break
            placed += max(1, int(self._chance.exponential(HOUR * _SECOND / self._rate)))
            yield from self._until(placed)
            yield from self._place(f"O{number}", placed)
        yield from self._until(None)

    def _until(self, time: int | None) -> Iterator[dict[str, object]]:
        while self._due and (time is None or self._due[0][0] <= time):
            yield heappop(self._due)[2]

    def _place(self, order: str, placed: int) -> Iterator[dict[str, object]]:
        chance = self._chance
        wanted = chance.sample(PARTS, 2)
        yield self._at(placed, "orders", insert=_order(order, wanted, chance))
        paid = self._later(placed, 5, slow=40)
        self._send(paid, "payments", _remittance(order))
        built = self._later(paid, 8, slow=50)
        self._send(built, "assembled", _response(order))
        self._use(wanted, built)
        sent: int | None = self._later(built, 6, slow=60)
        if chance.happens(self._faults / 3):
            sent = None  # lost
        early = chance.happens(self._faults / 2)
        if sent is not None:
            self._send(sent, "despatches", _despatch(order))
        if sent is not None or early:
            invoiced = built if early or sent is None else sent + HOUR * _SECOND
            self._send(invoiced, "invoices", _invoice(order))

    def _later(self, time: int, hours: float, slow: float) -> int:
        mean = hours + (slow if self._chance.happens(self._faults) else 0)
        return time + max(1, int(self._chance.exponential(mean * HOUR * _SECOND)))

    def _use(self, wanted: list[str], time: int) -> None:
        for part in wanted:
            level = self._levels[part] - 1
            if level < LOW / 2:
                level += 60  # the supplier has delivered
            self._levels[part] = level
            self._push(time, self._at(time, "levels", delete=_of_part(part)))
            self._push(time, self._at(time, "levels", insert=_report(part, level)))

    def _send(self, time: int, stream: str, message: str) -> None:
        if self._chance.happens(self._faults / 20):
            self._push(time, self._at(time, stream, insert=message[: len(message) // 2]))
        self._push(time, self._at(time, stream, insert=message))

    def _push(self, time: int, update: dict[str, object]) -> None:
        heappush(self._due, (time, next(self._numbers), update))

    @staticmethod
    def _at(time: int, stream: str, **what: str) -> dict[str, object]:
        return {"stream": stream, **what, "at": time / _SECOND}


# Documents ----------------------------------------------------------------------------------------

_COMMON = f'xmlns:cac="{NAMESPACES["cac"]}" xmlns:cbc="{NAMESPACES["cbc"]}"'


def _document(kind: str, prefix: str, inside: str) -> str:
    return f'<{kind} xmlns="{NAMESPACES[prefix]}" {_COMMON}>{inside}</{kind}>'


def _reference(order: str) -> str:
    return f"<cac:OrderReference><cbc:ID>{order}</cbc:ID></cac:OrderReference>"


def _item(part: str) -> str:
    return (
        f"<cac:Item><cbc:Name>{part}</cbc:Name><cac:SellersItemIdentification>"
        f"<cbc:ID>{part}</cbc:ID></cac:SellersItemIdentification></cac:Item>"
    )


def _order(order: str, wanted: list[str], chance: Chance) -> str:
    lines = "".join(
        f"<cac:OrderLine><cac:LineItem><cbc:ID>{n}</cbc:ID><cbc:Quantity>1</cbc:Quantity>"
        f"{_item(part)}</cac:LineItem></cac:OrderLine>"
        for n, part in enumerate(wanted, 1)
    )
    price = 50 + chance.below(400)
    total = (
        "<cac:AnticipatedMonetaryTotal><cbc:PayableAmount currencyID='EUR'>"
        f"{price}</cbc:PayableAmount></cac:AnticipatedMonetaryTotal>"
    )
    head = f"<cbc:UBLVersionID>2.1</cbc:UBLVersionID><cbc:ID>{order}</cbc:ID>"
    return _document("Order", "o", head + total + lines)


def _remittance(order: str) -> str:
    inside = f"<cbc:ID>R-{order}</cbc:ID><cbc:PaymentOrderReference>{order}"
    return _document("RemittanceAdvice", "r", f"{inside}</cbc:PaymentOrderReference>")


def _response(order: str) -> str:
    return _document("OrderResponse", "p", f"<cbc:ID>A-{order}</cbc:ID>{_reference(order)}")


def _despatch(order: str) -> str:
    return _document("DespatchAdvice", "d", f"<cbc:ID>D-{order}</cbc:ID>{_reference(order)}")


def _invoice(order: str) -> str:
    return _document("Invoice", "i", f"<cbc:ID>I-{order}</cbc:ID>{_reference(order)}")


def _report(part: str, level: int) -> str:
    line = f"<cbc:ID>1</cbc:ID><cbc:Quantity>{level}</cbc:Quantity>{_item(part)}"
    inside = f"<cac:InventoryReportLine>{line}</cac:InventoryReportLine>"
    return _document("InventoryReport", "s", f"<cbc:ID>S-{part}</cbc:ID>{inside}")


def _of_part(part: str) -> str:
    return f'match /s:InventoryReport/cbc:ID/"S-{part}"'
