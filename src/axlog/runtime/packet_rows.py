"""The output of the stateless half as rows: what one partition sends to each bucket.

A bucket gets one row of a partition, whatever the number of views: the census of all messages once,
and the items of every engine that gets some. So a batch shuffles as many rows as there are
partitions times buckets. Dead letters and counts are one more row, which no engine gets.

A packet is what one engine gets of one row; it is stored in the engine's log as it was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from axlog.runtime.extraction import ASIDE, Extracted
from axlog.runtime.order import Item, Lane, Packet
from axlog.runtime.packets import pack, unpack
from axlog.runtime.plain_route import Shared
from axlog.runtime.plan import SparkPlan
from axlog.runtime.row_columns import read_rows, write_rows

Row = tuple[str, bytes]
"""A bucket's name (its number, or `ASIDE`), and its input or output."""


def packed(extracted: Extracted, plan: SparkPlan) -> Iterator[Row]:
    """Yield the output of a partition: one row for each bucket, and one of dead letters and counts.

    A bucket gets the census and the latest time, whatever its engines get: those without input may
    be due.
    """
    if extracted.census:
        census = _census(extracted.census.get("", {}))
        inside: list[dict[tuple[str, int], bytes]] = [{} for _ in range(plan.width)]
        units = {unit.name: unit for unit in plan.units}
        for (name, number), mine in extracted.items.items():
            unit = units[name]
            if unit.kind == "documents":
                every = {d: written(i, _census(extracted.census[d])) for d, i in mine.items()}
                inside[plan.place(unit, number)][name, number] = pack(every)
        for name, number in extracted.items.keys() | extracted.plain.keys():
            unit = units[name]
            if unit.kind != "documents":
                full = extracted.items.get((name, number), {}).get("", [])
                plain = extracted.plain.get((name, number), {})
                body = pack((full, {tuple(s): write_rows(rows) for s, rows in plain.items()}))
                inside[plan.place(unit, number)][name, number] = body
        latest = _latest(extracted)
        for bucket, engines in enumerate(inside):
            yield str(bucket), pack((census, engines, latest))
    aside = {
        "refused": [one.plain() for one in extracted.refused],
        "messages": extracted.messages,
        "kept": extracted.kept,
        "streams": extracted.streams,
        "latest": extracted.latest,
        "ended": extracted.ended,
        "parts": [part.plain() for part in extracted.parts],
        "ends": extracted.ends,
    }
    yield ASIDE, pack(aside)


def written(
    items: Sequence[Item] | bytes, census: bytes, passed: int = 0, frontier: bytes = b""
) -> bytes:
    """Return a packet as bytes; parts that are bytes already are not written again."""
    full = items if isinstance(items, bytes) else pack((items, {}))
    return pack((full, census, passed, frontier))


def read_packet(written: bytes) -> Packet:
    """Return the packet that `written` wrote."""
    body, census, passed, frontier = unpack(written)
    items, plain = unpack(body) if body else ([], {})
    runs = [Shared(*shared).items(read_rows(rows)) for shared, rows in plain.items()]
    before = unpack(frontier) if frontier else None
    return Packet(list(items), _lanes(census), passed, before, runs)


def _lanes(census: bytes) -> dict[str, Lane]:
    found = unpack(census) if census else {}
    return {lane: Lane(*told) for lane, told in found.items()}


class Opened(NamedTuple):
    """The row of a partition for a bucket."""

    census: bytes
    engines: Mapping[tuple[str, int], bytes]
    """By unit and number: the items of an engine, or the packets of its documents."""
    latest: int  # the latest time of any message

    def packet(self, unit: str, number: int) -> bytes:
        """Return the packet for one engine."""
        return written(self.engines.get((unit, number), b""), self.census)

    def without_items(self, passed: int) -> Packet:
        """Return the packet of an engine that gets nothing but the census and the time."""
        return Packet([], _lanes(self.census), passed)


def opened(body: bytes) -> Opened:
    """Return the content of a row of `packed`."""
    return Opened(*unpack(body))


def _latest(extracted: Extracted) -> int:
    """The latest time of any message."""
    lanes = [lane for census in extracted.census.values() for lane in census.values()]
    return max((time for lane in lanes for time in (lane.latest, lane.ended) if time), default=0)


def _census(lanes: Mapping[str, Lane]) -> bytes:
    return pack({lane: tuple(told) for lane, told in lanes.items()})
