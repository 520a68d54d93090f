"""Payments between banks in ISO 20022 messages: credit transfers, status reports, returns.

A bank sends credit transfers (pacs.008, up to three in a message). The receiving bank answers each
with a status report (pacs.002): settled (ACSC) or rejected with a reason (RJCT). The answer arrives
within ten seconds as instant payments require, too late, or never. A settled transfer may be
returned later (pacs.004). `transfers` draws the outcome of each transfer, `messages` generates the
messages, and `write` writes them to files, which `examples/payments/payments.yaml` reads:

    python -m axlog.samples.payments examples/payments/in 200

Not handled: reports in several steps (ACTC, ACSP before ACSC), and the parts of the messages that
no view uses (agents, accounts, charges), which a schema would require.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from axlog.samples.chance import Chance

ISO = "urn:iso:std:iso:20022:tech:xsd:"
NAMESPACES = {
    "t": f"{ISO}pacs.008.001.08",
    "s": f"{ISO}pacs.002.001.10",
    "r": f"{ISO}pacs.004.001.09",
}
STREAMS = {"transfers": "pacs.008", "reports": "pacs.002", "returns": "pacs.004"}
DEADLINE = 10
"""Seconds within which the receiving bank must answer."""

REJECTIONS = ("AC04", "AM04", "RR04")  # account closed, insufficient funds, regulatory reason
RETURNS = ("AC03", "CUST", "FOCR")  # wrong account, requested by the customer, recalled
_SECOND = 1000  # times are milliseconds from the start of the first day
_START = datetime(2026, 1, 5, 8, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Transfer:
    """One credit transfer and its outcome; times in milliseconds from the start."""

    number: str
    message: int
    asked: int
    cents: int
    answered: int | None
    rejection: str | None
    returned: int | None
    reason: str | None

    @property
    def in_time(self) -> bool:
        """Whether the answer came before the deadline."""
        return self.answered is not None and self.answered - self.asked <= DEADLINE * _SECOND

    @property
    def amount(self) -> str:
        """The amount as messages write it."""
        return f"{self.cents // 100}.{self.cents % 100:02}"


def transfers(seed: int = 0, count: int = 200, faults: float = 0.2) -> list[Transfer]:
    """Transfers, sorted by time; `faults` is the probability of each kind of failure.

    >>> transfers(7, 3) == transfers(7, 3)
    True
    """
    chance = Chance(seed, "payments")
    drawn: list[Transfer] = []
    now = message = 0
    while len(drawn) < count:
        now += 1 + int(chance.exponential(2 * _SECOND))
        message += 1
        for _ in range(min(1 + chance.below(3), count - len(drawn))):
            drawn.append(_drawn(chance, f"TX{len(drawn):06}", message, now, faults))
    return drawn


def _drawn(chance: Chance, number: str, message: int, asked: int, faults: float) -> Transfer:
    cents = 100 + chance.below(1_000_000)
    answered: int | None = asked + 1 + chance.below(DEADLINE * _SECOND)
    if chance.happens(faults / 2):
        answered = None
    elif chance.happens(faults):
        answered = asked + DEADLINE * _SECOND + 1 + chance.below(60 * _SECOND)
    rejection = returned = reason = None
    if answered is not None and chance.happens(faults):
        rejection = chance.choose(REJECTIONS)
    elif answered is not None and chance.happens(faults):
        returned = answered + 1 + int(chance.exponential(300 * _SECOND))
        reason = chance.choose(RETURNS)
    return Transfer(number, message, asked, cents, answered, rejection, returned, reason)


def messages(drawn: Sequence[Transfer]) -> Iterator[tuple[int, str, str]]:
    """Time, stream and text of every message, sorted by time."""
    sent: list[tuple[int, str, str]] = []
    by_message: dict[int, list[Transfer]] = {}
    for transfer in drawn:
        by_message.setdefault(transfer.message, []).append(transfer)
        if transfer.answered is not None:
            sent.append((transfer.answered, "reports", _report(transfer)))
        if transfer.returned is not None:
            sent.append((transfer.returned, "returns", _return(transfer)))
    sent += [(group[0].asked, "transfers", _transfers(group)) for group in by_message.values()]
    return iter(sorted(sent))


def write(directory: Path, drawn: Sequence[Transfer]) -> int:
    """Write the messages to files, one directory for each kind; return their number."""
    for kind in STREAMS.values():
        (directory / kind).mkdir(parents=True, exist_ok=True)
    number = 0
    for number, (_, stream, text) in enumerate(messages(drawn), 1):
        path = directory / STREAMS[stream] / f"{number:08}.xml"
        path.write_text(text, encoding="utf-8")
    return number


# Messages -----------------------------------------------------------------------------------------


def _stamp(time: int) -> str:
    stamp = _START + timedelta(milliseconds=time)
    return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _document(prefix: str, root: str, header: str, time: int, inside: str) -> str:
    return (
        f'<Document xmlns="{NAMESPACES[prefix]}"><{root}><GrpHdr><MsgId>{header}</MsgId>'
        f"<CreDtTm>{_stamp(time)}</CreDtTm></GrpHdr>{inside}</{root}></Document>"
    )


def _transfers(group: Sequence[Transfer]) -> str:
    inside = "".join(
        f"<CdtTrfTxInf><PmtId><EndToEndId>E-{one.number}</EndToEndId><TxId>{one.number}</TxId>"
        f'</PmtId><IntrBkSttlmAmt Ccy="EUR">{one.amount}</IntrBkSttlmAmt></CdtTrfTxInf>'
        for one in group
    )
    first = group[0]
    return _document("t", "FIToFICstmrCdtTrf", f"M{first.message}", first.asked, inside)


def _report(one: Transfer) -> str:
    assert one.answered is not None
    status = "ACSC" if one.rejection is None else "RJCT"
    reason = "" if one.rejection is None else _reason("StsRsnInf", one.rejection)
    inside = (
        f"<TxInfAndSts><OrgnlTxId>{one.number}</OrgnlTxId><TxSts>{status}</TxSts>{reason}"
        "</TxInfAndSts>"
    )
    return _document("s", "FIToFIPmtStsRpt", f"S-{one.number}", one.answered, inside)


def _return(one: Transfer) -> str:
    assert one.returned is not None
    assert one.reason is not None
    inside = (
        f"<TxInf><RtrId>R-{one.number}</RtrId><OrgnlTxId>{one.number}</OrgnlTxId>"
        f'<RtrdIntrBkSttlmAmt Ccy="EUR">{one.amount}</RtrdIntrBkSttlmAmt>'
        f"{_reason('RtrRsnInf', one.reason)}</TxInf>"
    )
    return _document("r", "PmtRtr", f"P-{one.number}", one.returned, inside)


def _reason(name: str, code: str) -> str:
    return f"<{name}><Rsn><Cd>{code}</Cd></Rsn></{name}>"


if __name__ == "__main__":
    where, *rest = sys.argv[1:]
    print(write(Path(where), transfers(count=int(rest[0]) if rest else 200)), "messages")
