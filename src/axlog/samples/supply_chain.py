"""A supply chain that exchanges UBL documents: a simulator of its partners, and its pipeline.

Six partners publish UBL 2 documents into directories: the web store orders and invoices, the bank
payments, the warehouse and the supplier the availability of parts, the plant assemblies, the
shipper despatches and transport status (which no view uses). The warehouse also keeps a file with
the stock level of each part, and all its reports in another directory. `pipeline`
(supply_chain.yaml) watches the directories.

Documents are sorted by time. Each partner delays an order by a random time, and a share `faults` of
the steps fails: a slow bank, a part that the supplier must deliver, a slow plant, a shipper that is
late or loses the goods, an invoice that is sent too early, a truncated document.

    python -m axlog.samples.supply_chain DIRECTORY [ORDERS [SEED]]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from importlib.resources import files
from itertools import count as count_up
from pathlib import Path

from axlog.samples.chance import Chance

UBL = "urn:oasis:names:specification:ubl:schema:xsd:"
START = datetime(2026, 3, 2, 8, tzinfo=UTC)
HOUR = 3600
PROMISE = 48 * HOUR
"""Seconds from order to despatch that the web store guarantees."""
SLOW = 24 * HOUR
"""Seconds after which a late order is attributed to a partner."""
LOW = 20
STREAMS = ("orders", "payments", "parts", "assembled", "despatches", "invoices")
STOCK = "stock"
REPORTS = "reports"
"""The directory of all reports of the stock; `stock` has the newest of each part."""
PARTS = ("bolt", "case", "cell", "chip", "fan", "glass", "hinge", "key")
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Published:
    """A document that a partner publishes."""

    at: int  # microseconds after START
    stream: str
    order: str  # for the stock: the part
    text: str

    @property
    def is_whole(self) -> bool:
        return self.text.endswith(">")


def pipeline() -> str:
    """The pipeline file that watches the partners."""
    return (files("axlog.samples") / "supply_chain.yaml").read_text(encoding="utf-8")


def documents(
    seed: int = 0, rate: float = 2.0, faults: float = 0.08, orders: int | None = None
) -> Iterator[Published]:
    """The documents of all partners, sorted by time; endless unless `orders` is given.

    `rate` is orders per hour.

    >>> first = next(documents())
    >>> first.stream, first.order
    ('stock', 'bolt')
    """
    return _Chain(Chance(seed, "supply chain"), rate, faults).run(orders)


class Simulator:
    """Simulated partners that write their documents to a directory as time advances."""

    def __init__(
        self,
        directory: Path,
        *,
        seed: int = 0,
        rate: float = 2.0,
        faults: float = 0.08,
        orders: int | None = None,
    ) -> None:
        self.directory = directory
        self.written = 0
        self.counts = dict.fromkeys((*STREAMS, STOCK), 0)
        self._documents = documents(seed, rate, faults, orders)
        self._next = next(self._documents, None)
        for stream in STREAMS:
            (directory / "in" / stream).mkdir(parents=True, exist_ok=True)
        for name in (STOCK, REPORTS, "out"):
            (directory / name).mkdir(exist_ok=True)

    def until(self, seconds: float | None = None) -> int:
        """Write the documents up to a time of the simulated clock; return their number."""
        before = self.written
        while self._next is not None and (seconds is None or self._next.at <= seconds * _SECOND):
            self._write(self._next)
            self._next = next(self._documents, None)
        return self.written - before

    def _write(self, published: Published) -> None:
        """Write a document to the directory of its stream."""
        self.written += 1
        self.counts[published.stream] += 1
        path = self.directory / "in" / published.stream / f"{self.written:08}.xml"
        if published.stream == STOCK:
            path = self.directory / STOCK / f"{published.order}.xml"
            _move_in(self.directory / REPORTS / f"{self.written:08}.xml", published.text)
        _move_in(path, published.text)


def _move_in(path: Path, text: str) -> None:
    """Write a file beside its place, and move it there when it is complete."""
    aside = path.with_suffix(".tmp")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def write(directory: Path, *, orders: int = 200, seed: int = 0, faults: float = 0.08) -> int:
    """Write the pipeline file and all documents of `orders` orders; return their number."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "supply-chain.yaml").write_text(pipeline(), encoding="utf-8")
    simulator = Simulator(directory, seed=seed, faults=faults, orders=orders)
    return simulator.until()


class _Chain:
    """The simulated partners: a queue of their documents, sorted by time."""

    def __init__(self, chance: Chance, rate: float, faults: float) -> None:
        self._chance = chance
        self._rate = rate
        self._faults = faults
        self._due: list[tuple[int, int, Published]] = []
        self._numbers = count_up()
        self._levels = {part: 24 + 5 * at for at, part in enumerate(PARTS)}

    def run(self, orders: int | None) -> Iterator[Published]:
        for part in PARTS:
            yield Published(0, STOCK, part, _report(part, self._levels[part], 0))
        placed = 0
        for number in count_up():
            if number == orders:
                break
            placed += max(_SECOND, int(self._chance.exponential(HOUR * _SECOND / self._rate)))
            yield from self._until(placed)
            yield from self._place(f"O{number}", placed)
        yield from self._until(None)

    def _until(self, time: int | None) -> Iterator[Published]:
        while self._due and (time is None or self._due[0][0] <= time):
            yield heappop(self._due)[2]

    def _place(self, order: str, placed: int) -> Iterator[Published]:
        chance = self._chance
        wanted = chance.sample(PARTS, 2)
        yield Published(placed, "orders", order, _order(order, wanted, chance, placed))
        paid = self._later(placed, 5, slow=40)
        self._send(paid, "payments", order, _remittance(order, paid))
        stocked, partner = self._stocked(wanted, paid)
        self._send(stocked, "parts", order, _receipt(order, wanted, partner, stocked))
        built = self._later(stocked, 8, slow=50)
        self._send(built, "assembled", order, _response(order, built))
        sent: int | None = self._later(built, 6, slow=60)
        if chance.happens(self._faults / 3):
            sent = None  # lost
        early = chance.happens(self._faults / 2)
        for at in (built, *(() if sent is None else (sent,))):
            moved = self._later(at, 2, slow=0)
            self._send(moved, "despatches", order, _status(order, moved))
        if sent is not None:
            self._send(sent, "despatches", order, _despatch(order, sent))
        if sent is not None or early:
            invoiced = built if early or sent is None else sent + HOUR * _SECOND
            self._send(invoiced, "invoices", order, _invoice(order, invoiced))

    def _stocked(self, wanted: list[str], paid: int) -> tuple[int, str]:
        """When the parts of an order are available, and the partner that delivered them."""
        is_missing = self._chance.happens(self._faults)
        stocked = self._later(paid, 36 if is_missing else 1, slow=0)
        for part in wanted:
            level = self._levels[part] - 1
            if level < LOW / 2:
                level += 60  # the supplier has delivered
            self._levels[part] = level
            report = Published(stocked, STOCK, part, _report(part, level, stocked))
            heappush(self._due, (stocked, next(self._numbers), report))
        return stocked, "supplier" if is_missing else "warehouse"

    def _later(self, time: int, hours: float, slow: float) -> int:
        mean = hours + (slow if self._chance.happens(self._faults) else 0)
        return time + max(_SECOND, int(self._chance.exponential(mean * HOUR * _SECOND)))

    def _send(self, time: int, stream: str, order: str, text: str) -> None:
        if self._chance.happens(self._faults / 20):
            broken = Published(time, stream, order, text[: len(text) // 2])
            heappush(self._due, (time, next(self._numbers), broken))
        heappush(self._due, (time, next(self._numbers), Published(time, stream, order, text)))


# Documents ----------------------------------------------------------------------------------------

_COMMON = f'xmlns:cac="{UBL}CommonAggregateComponents-2" xmlns:cbc="{UBL}CommonBasicComponents-2"'


def _document(kind: str, number: str, time: int, inside: str) -> str:
    at = START + timedelta(microseconds=time)
    stamp = at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    date, _, clock = stamp.partition("T")
    return (
        f'<{kind} xmlns="{UBL}{kind}-2" {_COMMON}><cbc:UBLVersionID>2.1</cbc:UBLVersionID>'
        f"<cbc:ID>{number}</cbc:ID><cbc:IssueDate>{date}</cbc:IssueDate>"
        f"<cbc:IssueTime>{clock}</cbc:IssueTime>{inside}</{kind}>"
    )


def _reference(order: str) -> str:
    return f"<cac:OrderReference><cbc:ID>{order}</cbc:ID></cac:OrderReference>"


def _item(part: str) -> str:
    return (
        f"<cac:Item><cbc:Name>{part}</cbc:Name><cac:SellersItemIdentification>"
        f"<cbc:ID>{part}</cbc:ID></cac:SellersItemIdentification></cac:Item>"
    )


def _order(order: str, wanted: list[str], chance: Chance, time: int) -> str:
    lines = "".join(
        f"<cac:OrderLine><cac:LineItem><cbc:ID>{n}</cbc:ID><cbc:Quantity>1</cbc:Quantity>"
        f"{_item(part)}</cac:LineItem></cac:OrderLine>"
        for n, part in enumerate(wanted, 1)
    )
    price = 50 + chance.below(400)
    total = (
        '<cac:AnticipatedMonetaryTotal><cbc:PayableAmount currencyID="EUR">'
        f"{price}</cbc:PayableAmount></cac:AnticipatedMonetaryTotal>"
    )
    return _document("Order", order, time, total + lines)


def _remittance(order: str, time: int) -> str:
    inside = f"<cbc:PaymentOrderReference>{order}</cbc:PaymentOrderReference>"
    return _document("RemittanceAdvice", f"R-{order}", time, inside)


def _receipt(order: str, wanted: list[str], partner: str, time: int) -> str:
    party = (
        "<cac:DespatchSupplierParty><cac:Party><cac:PartyName>"
        f"<cbc:Name>{partner}</cbc:Name></cac:PartyName></cac:Party></cac:DespatchSupplierParty>"
    )
    lines = "".join(
        f"<cac:ReceiptLine><cbc:ID>{n}</cbc:ID>{_item(part)}</cac:ReceiptLine>"
        for n, part in enumerate(wanted, 1)
    )
    return _document("ReceiptAdvice", f"P-{order}", time, _reference(order) + party + lines)


def _response(order: str, time: int) -> str:
    return _document("OrderResponse", f"A-{order}", time, _reference(order))


def _despatch(order: str, time: int) -> str:
    return _document("DespatchAdvice", f"D-{order}", time, _reference(order))


def _status(order: str, time: int) -> str:
    """Transport status: no view uses it, so filters drop it."""
    return _document("TransportationStatus", f"T-{order}", time, _reference(order))


def _invoice(order: str, time: int) -> str:
    return _document("Invoice", f"I-{order}", time, _reference(order))


def _report(part: str, level: int, time: int) -> str:
    line = f"<cbc:ID>1</cbc:ID><cbc:Quantity>{level}</cbc:Quantity>{_item(part)}"
    inside = f"<cac:InventoryReportLine>{line}</cac:InventoryReportLine>"
    return _document("InventoryReport", f"S-{part}", time, inside)


if __name__ == "__main__":
    where, *rest = sys.argv[1:]
    numbers = [int(one) for one in rest]
    made = write(
        Path(where),
        orders=numbers[0] if numbers else 200,
        seed=numbers[1] if len(numbers) > 1 else 0,
    )
    print(made, "documents")
