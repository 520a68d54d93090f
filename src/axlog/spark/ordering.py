"""The order in which updates are applied: by time, stream and number (DESIGN section 3, Time).

Every bucket sees only its own part of the input, but knows of all of it how far each stream has
come: a census comes with every batch. From that alone each bucket works out the same clock, and
which of its items may be applied now: an item waits while an open stream could still bring an
earlier one, unless that stream rests (its source had nothing for a while, and said so in the
input). `hold` bounds the wait, in the document's time: 0 applies everything that a batch brings,
None waits for the slowest stream. Nothing here looks at a wall clock, so a batch that is replayed
releases the same items; where time passes by itself, a packet says how much of it has (`passed`).

Late is judged within a lane (a stream as one source brings it), in the lane's own order: an item
earlier than one before it. `Item.floor` is the latest time before it in its partition.

Law: whatever the batching, with `hold=None` the released items of all batches, one after the other,
are in the order of (time, stream, number).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

TIME, STREAM, NUMBER, KIND, BODY, FLOOR, LANE, ORIGIN = range(8)
Item: TypeAlias = list[Any]
"""[time, stream, number, kind, body, floor, lane, origin]; kind is bindings, or an action.

`body` is the bags of a message, one for each relation of its stream's plan, or the content of an
update; `floor` is there only if it is later than the item's time.
"""
BINDINGS = "bindings"
SET_ASIDE = "set aside"
"""Kinds of items: bindings that a message brings, and a view that exceeds a limit with it."""
EVERY = "*"
"""In place of a stream: all that a source brings."""
_ORDER = itemgetter(TIME, STREAM, NUMBER)
Hold: TypeAlias = int | None
_EARLIEST = -(1 << 63)


class Lane(NamedTuple):
    """How far one partition has come with one lane."""

    first: int  # number of its first message
    latest: int | None  # time of the latest that is no end; None if none has a time
    ended: int | None  # the end's time
    messages: int
    rests: bool = False  # its source has nothing more for now


class Packet(NamedTuple):
    """What one partition sends to one bucket: its items, and the census of all its messages."""

    items: list[Item]
    census: Mapping[str, Lane]  # by lane: `source:stream`
    passed: int = 0  # nothing of this time or an earlier one can come any more


class Late(NamedTuple):
    """An item that came too late to be taken, and the time it should have had at least."""

    item: Item
    clock: int


@dataclass(slots=True)
class Order:
    """What has been seen, and what waits."""

    streams: tuple[str, ...]  # that have a call from the start
    late: Mapping[str, str]  # policy by stream: refuse or clock
    hold: Hold = 0
    lanes: dict[str, int] = field(default_factory=dict)  # latest time of each
    ended: set[str] = field(default_factory=set)
    resting: set[str] = field(default_factory=set)  # lanes; `source:*` for all of a source
    pending: list[Item] = field(default_factory=list)
    clock: int = 0
    heard: int = 0  # the latest time of a message that is no end
    passed: int = 0  # the time that has passed by itself
    start: int = 0  # the document's first clock

    def __post_init__(self) -> None:
        self.clock = self.heard = self.passed = self.start

    def take(self, packets: Sequence[Packet]) -> tuple[list[Item], list[Late]]:
        """The items that can be applied now, in order, and those that came too late."""
        refused: list[Late] = []
        self.passed = max([self.passed, *(packet.passed or self.start for packet in packets)])
        newest = max(*self.lanes.values(), self.passed, self.start)
        pending = self.pending
        for packet, floors in self._in_order(packets):
            for item in packet.items:
                time, before = item[TIME], floors.get(item[LANE])
                if (
                    time is None
                    or item[FLOOR] is not None
                    or (before is not None and time < before)
                ):
                    late = self._judge(item, before, newest)
                    if late is not None:
                        refused.append(late)
                        continue
                pending.append(item)
        self.clock = max(self.clock, self._clock())
        pending.sort(key=_ORDER)
        count = self._first_that_waits(pending)
        released, self.pending = pending[:count], pending[count:]
        return released, refused

    def _in_order(
        self, packets: Sequence[Packet]
    ) -> Iterable[tuple[Packet, dict[str, int | None]]]:
        """Each packet with the latest time of its lanes before it; the lanes move on."""
        floors: list[dict[str, int | None]] = [{} for _ in packets]
        arrived = sorted(
            (lane, told.first, number, told)
            for number, packet in enumerate(packets)
            for lane, told in packet.census.items()
        )
        for lane, _, number, told in arrived:
            before = self.lanes.get(lane)
            floors[number][lane] = before
            if told.rests:
                self.resting.add(lane)
                continue
            self.resting -= {lane, f"{lane.partition(':')[0]}:{EVERY}"}
            times = [time for time in (before, told.latest, told.ended) if time is not None]
            if times:
                self.lanes[lane] = max(times)
            if told.latest is not None:
                self.heard = max(self.heard, told.latest)
            if told.ended is not None:
                self.ended.add(_stream(lane))
        return zip(packets, floors, strict=True)

    def _judge(self, item: Item, before: int | None, newest: int) -> Late | None:
        """Give an item its time, if it has none or is late; what it is if that is refused."""
        known = [time for time in (item[FLOOR], before) if time is not None]
        floor = max(known, default=self.start)
        if item[TIME] is None:
            item[TIME] = newest  # it has no time of its own: the clock's
        elif item[TIME] < floor:
            if self.late.get(item[STREAM], "refuse") == "refuse":
                return Late(item, floor)
            item[TIME] = floor
        return None

    def _open(self) -> dict[str, int | None]:
        """The streams that may bring more, with their latest time."""
        found: dict[str, int | None] = dict.fromkeys(self.streams)
        for lane, latest in self.lanes.items():
            stream = _stream(lane)
            if stream in found:
                known = found[stream]
                found[stream] = latest if known is None else min(known, latest)
        return {
            stream: latest
            for stream, latest in found.items()
            if stream not in self.ended and not self._rests(stream)
        }

    def _rests(self, stream: str) -> bool:
        """Whether every source that has brought a stream has nothing more for now."""
        lanes = {lane for lane in self.lanes if _stream(lane) == stream}
        lanes |= {lane for lane in self.resting if _stream(lane) == stream}
        whole = {lane.partition(":")[0] for lane in self.resting if _stream(lane) == EVERY}
        if not lanes:
            return bool(whole)
        return all(lane in self.resting or lane.partition(":")[0] in whole for lane in lanes)

    def _clock(self) -> int:
        """The document's clock: what has this time or an earlier one has come."""
        newest = max(self.lanes.values(), default=self.start)
        still_open = self._open()
        if self.hold == 0 or not still_open:
            return max(newest, self.passed)
        slowest = min(self.start if each is None else each for each in still_open.values())
        waited = slowest if self.hold is None else max(slowest, newest - self.hold)
        return max(waited, self.passed)

    def _first_that_waits(self, pending: Sequence[Item]) -> int:
        """Where the items begin before which an open stream could still bring something."""
        if self.hold == 0:
            return len(pending)
        past = self.passed
        if self.hold is not None:
            past = max(past, max(self.lanes.values(), default=self.start) - self.hold)
        still_open = self._open()
        bounds: dict[str, tuple[int, str] | None] = {}  # the earliest that another stream can bring
        for at, item in enumerate(pending):
            time, stream = item[TIME], item[STREAM]
            if stream not in bounds:
                others = [
                    (_EARLIEST if latest is None else latest, other)
                    for other, latest in still_open.items()
                    if other != stream
                ]
                bounds[stream] = min(others, default=None)
            bound = bounds[stream]
            if bound is not None and time > past and bound < (time, stream):
                return at
        return len(pending)

    def state(self) -> dict[str, Any]:
        """What is known, for JSON."""
        return {
            "lanes": self.lanes,
            "ended": sorted(self.ended),
            "resting": sorted(self.resting),
            "pending": self.pending,
            "clock": self.clock,
            "heard": self.heard,
            "passed": self.passed,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.lanes = dict(state["lanes"])
        self.ended = set(state["ended"])
        self.resting = set(state["resting"])
        self.pending = [list(item) for item in state["pending"]]
        self.clock, self.heard, self.passed = state["clock"], state["heard"], state["passed"]


def lane_of(source: int, stream: str) -> str:
    """The name of a stream as one source brings it."""
    return f"{source}:{stream}"


def _stream(lane: str) -> str:
    return lane.partition(":")[2]
