"""The short path of a message through the stateless half: an insertion in order of time.

Most messages are insertions with a time that is not before any earlier one of their sequence, of a
stream whose views get bindings. Nothing can reject them later, so they need no content, and their
items differ in a few values only. A route is made for one stream of one partition; all that its
messages share is found once, and written once into the packets.

`take` returns False for every other message, which `extraction.py` handles in full; nothing has
been recorded then.

Law: the items, the census and the counts are those of the full path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from zlib import crc32

from axlog.document.parser import Element
from axlog.errors import AxlogError
from axlog.evaluate.joins import Bag
from axlog.match.plan_reader import PlanReader
from axlog.match.stream_plan import MessagePlan
from axlog.runtime.grid import ALL
from axlog.runtime.order import BINDINGS, SOURCES_APART, Item
from axlog.runtime.plan import Unit
from axlog.runtime.row_columns import Brief, Row, brief

if TYPE_CHECKING:
    from axlog.runtime.extraction import Extracted, ReadPart, Seen

Rows: TypeAlias = dict[int, list[Row]]
"""By bucket."""
_DIFFERENT = object()
"""Instead of a value: the rows of a message have several."""
FAR = 1 << 62
"""A bound in microseconds that no time reaches: sums of two still fit into Spark's integers."""


class Shared(NamedTuple):
    """The values that the items of a route share."""

    source: int
    lane: str
    stream: str
    has_rows: bool  # whether rows identify the messages, because numbers may be equal

    def items(self, rows: Iterable[Row]) -> list[Item]:
        """Return the items of rows, as `order.py` describes them."""
        source, lane, stream, has_rows = self
        first = source * SOURCES_APART
        if has_rows:
            return [
                [time, place, first + number, BINDINGS, bags, None, lane, origin, first + row,
                 None, stream]
                for time, place, number, bags, origin, row in rows
            ]  # fmt: skip
        return [
            [time, place, first + number, BINDINGS, bags, None, lane, origin, first + number,
             None, stream]
            for time, place, number, bags, origin in rows
        ]  # fmt: skip


class UnitRoute:
    """The part of a route that leads to one unit."""

    __slots__ = ("bags", "cells", "places", "positions", "rows", "unit")

    def __init__(self, unit: Unit, reader: PlanReader, stream: str) -> None:
        self.unit = unit
        self.cells = [(bucket,) for bucket in range(unit.buckets)]
        self.bags = reader.bags
        self.places = [each.positions.get(stream) or () for each in unit.grid]
        self.positions = self.places[0] if len(self.places) == 1 else None
        self.rows: Rows = {}

    @staticmethod
    def serves(unit: Unit, plan: MessagePlan | None, stream: str) -> bool:
        """Whether messages of a stream can take the short path to a unit."""
        if unit.kind != "bindings" or plan is None or plan.replace is not None or unit.by_message:
            return False
        if unit.buckets == 1:
            return True
        places = [each.positions.get(stream) or () for each in unit.grid]
        if len(places) == 1:
            return bool(places[0]) and ALL not in places[0]
        # all relations have the same columns of the grid
        return all(len({at == ALL for at in each}) == 1 for each in places)

    def sent(self, bags: tuple[Bag, ...]) -> tuple[Sequence[int], list[Brief]] | None:
        """Return the buckets of all rows of a message, and its bags, brief; None if the rows have
        different buckets.
        """
        if len(self.cells) == 1:
            return self.cells[0], list(map(brief, bags))
        positions = self.positions
        if positions is None:
            values = [self._value(bags, each) for each in self.places]
            buckets = None if _DIFFERENT in values else self.unit.cells(values)
            return None if buckets is None else (buckets, list(map(brief, bags)))
        found: object = None
        each: list[Brief] = []
        for bag, at in zip(bags, positions, strict=True):
            if not bag:
                each.append(None)
                continue
            is_alone = len(bag) == 1
            one: Brief = bag
            for row, count in bag.items():
                if found is not None and row[at] != found:
                    return None
                found = row[at]
                one = row if is_alone and count == 1 else bag
            each.append(one)
        return self.cells[crc32(str(found).encode()) % len(self.cells)], each

    @staticmethod
    def _value(bags: tuple[Bag, ...], positions: Sequence[int]) -> object:
        """Return the value of all rows of a message in a dimension; None if they have none."""
        found: object = None
        for bag, at in zip(bags, positions, strict=True):
            for row in bag if at != ALL else ():
                if found is not None and row[at] != found:
                    return _DIFFERENT
                found = row[at]
        return found


class Progress:
    """How far a partition has advanced, in all its streams."""

    __slots__ = ("floor", "stream", "time")

    def __init__(self) -> None:
        self.floor = -FAR  # the latest time of an accepted message
        # the place of the last message, also of a rejected one
        self.time = -FAR
        self.stream = ""

    @property
    def place(self) -> tuple[int, str] | None:
        """The place of its last message with a time."""
        return None if self.time == -FAR else (self.time, self.stream)


class PlainRoute:
    """The short path of one stream of one partition."""

    __slots__ = (
        "_first", "_kept", "_last", "_least", "_out", "_part", "_progress", "_seen", "_stream",
        "_taken", "_units", "shared",
    )  # fmt: skip

    def __init__(
        self,
        shared: Shared,
        units: Iterable[UnitRoute],
        least: int | None,
        out: Extracted,
        seen: Seen,
        part: ReadPart | None,
        progress: Progress,
    ) -> None:
        """`least`: the latest time of earlier batches. The others are those of the full path."""
        self.shared = shared
        self._stream = shared.stream
        self._units = tuple(units)
        self._least = -FAR if least is None else least
        self._out, self._seen, self._part = out, seen, part
        self._progress = progress
        self._first = self._last = self._taken = self._kept = 0

    def take(
        self,
        content: bytes,
        time: int,
        number: int,
        origin: str,
        row: int | None,
        root: Element | None,
    ) -> bool:
        """Send a message to its buckets; return False if it needs the full path."""
        progress = self._progress
        if time < progress.floor or time < self._least:
            return False
        found: list[tuple[UnitRoute, Sequence[int], list[Brief]]] = []
        try:
            for route in self._units:
                bags = route.bags(content, time, root)
                if bags is None:
                    return False
                if any(bags):
                    sent = route.sent(bags)
                    if sent is None:
                        return False
                    found.append((route, *sent))
        except AxlogError:
            return False
        place = self._stream
        if time > progress.time or (time == progress.time and place > progress.stream):
            progress.time, progress.stream = time, place
        elif time == progress.time:
            place = progress.stream
        for route, buckets, each in found:
            item: Row = (time, place, number, each, origin)
            if row is not None:
                item = (*item, row)
            for bucket in buckets:
                try:
                    route.rows[bucket].append(item)
                except KeyError:
                    route.rows[bucket] = [item]
        if found:
            self._kept += 1
        if not self._taken:
            self._first = time
        self._taken += 1
        progress.floor = self._last = time
        return True

    def finish(self) -> None:
        """Record the messages of the route in the census and the counts."""
        if not self._taken:
            return
        out, seen, part = self._out, self._seen, self._part
        seen.messages += self._taken
        seen.latest = self._last if seen.latest is None else max(seen.latest, self._last)
        out.latest = self._last if out.latest is None else max(out.latest, self._last)
        out.messages += self._taken
        out.kept += self._kept
        counts = out.streams[self._stream]
        counts[0], counts[1] = counts[0] + self._taken, counts[1] + self._kept
        if part is not None:
            part.latest = self._last if part.latest is None else max(part.latest, self._last)
            if part.follows:
                first = part.earliest
                part.earliest = self._first if first is None else min(first, self._first)
        for route in self._units:
            for bucket, rows in route.rows.items():
                out.plain.setdefault((route.unit.name, bucket), {})[self.shared] = rows
