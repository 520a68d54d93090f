"""The order of updates in both engines: by time, stream and number (docs/meaning.md, Time).

A source is one sequence of updates, or one for each of its partitions. A *lane* is a stream as one
partition brings it, or all streams of the partition (`source:*`). Every lane has a frontier: the
place of the earliest update that it can still bring. The lane is open until its stream ends, and it
rests while its source has nothing.

An update keeps its place after its predecessor: its place (time, stream) is at least that of the
one before it in its partition, also of one before a restart.

Law: an update is released when no open lane of another partition has an earlier frontier. So the
released updates of all batches, concatenated, are in the order of (time, stream, number), however
the sources were read and the batches were cut. `hold` bounds the wait for a slow lane; an update
released by it may be followed by an earlier one, which is then late.

The engines differ in three points, which are parameters:

- The embedded runner reads every sequence whole and appends each update (`append`). The document
  judges whether it is late.
- A bucket of Spark sees only its part of a sequence (`take`). A census with every packet contains
  how far each lane has advanced, so every bucket computes the same clock. Lateness is judged within
  a partition, in the partition's own order: an item is late if it is earlier than one before it, of
  any stream. An item's `floor` is the latest time before it in its packet.
- `hold` is in the document's time: 0 releases everything that a batch brings, None waits for the
  slowest stream. With a wall clock a packet contains the time that has passed (`passed`). The
  embedded runner bounds the wait by its own wall clock instead (`is_overdue`). This module reads no
  wall clock, so a replayed batch releases the same items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

TIME, PLACE, NUMBER, KIND, BODY, FLOOR, LANE, ORIGIN, MESSAGE, CONTENT, STREAM = range(11)
Item: TypeAlias = list[Any]
"""[time, place, number, kind, body, floor, lane, origin, message, content, stream].

`place` is the stream by which the item is ordered among those of its time: its own, or that of an
item before it in its partition, if that is later. `kind` is bindings, unread, nothing, or an
action. `body` is the bags of a message, one for each relation of its stream's plan, which may be
brief (`row_columns.py`), or the content.
`floor` is present only if it is later than the item's time, or if the item has no time: then it is
the time of its place, also in an item that was taken. `message` is a number that all items of one
message share, and no other message of the batch has. `content` is present if `body` is not the
content and the message may be rejected.
"""
BINDINGS = "bindings"
SET_ASIDE = "set aside"
"""Kinds of items: bindings of a message, and a view that exceeds a limit with it."""
UNREAD = "unread"
"""The kind of a message whose bindings depend on the time that its bucket assigns."""
ELSEWHERE = "\0"
"""Instead of the content: another item of the message has it, and reports a rejection."""
NOTHING = "nothing"
"""The kind of a message that no view needs, and that may still be rejected."""
INPUT = "input"
"""The kind of an appended update: `body` is the update as its engine knows it."""
EVERY = "*"
"""Used instead of a stream: all streams of a source."""
SOURCES_APART = 1 << 64
"""Message numbers of one source: a number identifies the source too."""
PARTITIONS_APART = 1 << 44
"""Message numbers of one partition of a source: a number identifies the partition too."""
_ORDER = itemgetter(TIME, PLACE, NUMBER)
Hold: TypeAlias = int | None
Place: TypeAlias = tuple[int, str]
"""A time, and the stream by which updates of that time are ordered."""
EARLIEST = -(1 << 62)
"""The frontier of a lane that has brought nothing."""


class Lane(NamedTuple):
    """How far one partition has advanced in one lane."""

    first: int  # number of its first message
    latest: int | None  # latest time of a message other than an end; None if none has a time
    ended: int | None  # the time of the end
    messages: int
    rests: bool = False  # its source has nothing more for now
    place: Place | None = None  # of the last message of the partition, of any lane


class Packet(NamedTuple):
    """What one partition sends to one engine: its items, and the census of all its messages."""

    items: list[Item]
    census: Mapping[str, Lane]  # by lane: `source:stream`, `source/partition:stream`
    passed: int = 0  # no item of this time or earlier can come any more
    frontier: Mapping[str, Any] | None = None
    """How far the lanes had advanced before the batch, for an engine that missed batches."""
    runs: Sequence[list[Item]] = ()
    """More items: each list is of one lane, in the order of time and place. All have a time."""


@dataclass(slots=True)
class Refused:
    """A rejected update, its origin and the reason."""

    stream: str
    content: str
    origin: str
    error: str
    message: int = 0  # as in its items

    def plain(self) -> tuple[str, str, str, str, int]:
        return self.stream, self.content, self.origin, self.error, self.message


class Late(NamedTuple):
    """An item that came too late to be accepted, and the earliest time it could have had."""

    item: Item
    clock: int


@dataclass(slots=True)
class Order:
    """The lanes of one document, how far each has advanced, and the waiting items."""

    streams: tuple[str, ...] = ()  # those with a call from the start
    # policy by stream: refuse or clock
    late: Mapping[str, str] = field(default_factory=dict)
    hold: Hold = 0
    lanes: dict[str, int] = field(default_factory=dict)  # latest time of each
    ended: dict[str, int] = field(default_factory=dict)  # by stream: the time of the end
    resting: set[str] = field(default_factory=set)  # lanes; `source:*` for all of a source
    pending: list[Item] = field(default_factory=list)
    clock: int = 0
    latest: int = 0  # the latest time of a message other than an end
    passed: int = 0  # the wall-clock time that has passed
    start: int = 0  # the document's first clock
    # by partition: the place of its last update
    places: dict[str, Place] = field(default_factory=dict)
    appended: int = 0

    def __post_init__(self) -> None:
        self.clock = self.latest = self.passed = self.start

    # Whole sequences ------------------------------------------------------------------------------

    def expect(self, lane: str) -> None:
        """Add a lane; the others wait for it."""
        latest, _ = self.places.get(_partition(lane), (EARLIEST, ""))
        self.lanes.setdefault(lane, latest)

    def resume(self, lane: str, place: Place) -> None:
        """Set the place of the last update that a lane brought before a restart."""
        self.places[_partition(lane)] = place
        if lane in self.lanes:
            self.lanes[lane] = place[0]

    def drop(self, lane: str) -> None:
        """Remove a lane that has brought nothing: its partitions are known now."""
        self.lanes.pop(lane, None)
        self.resting.discard(lane)

    def rest(self, lane: str, *, rests: bool) -> None:
        """Set whether the others need not wait for a lane."""
        (self.resting.add if rests else self.resting.discard)(lane)

    def append(self, lane: str, stream: str, time: int | None, body: Any) -> None:
        """Append an update to its lane, after its predecessor."""
        partition = _partition(lane)
        latest = self.lanes[lane]
        latest = latest if time is None else max(latest, time)
        self.lanes[lane] = latest
        place = max((latest, stream), self.places.get(partition, (latest, stream)))
        self.places[partition] = place
        self.appended += 1
        number = _rank(partition) * PARTITIONS_APART + self.appended
        self.pending.append([*place, number, INPUT, body, None, lane])

    def held(self) -> Counter[str]:
        """Return the number of waiting items of each lane that has some."""
        return Counter([item[LANE] for item in self.pending])

    # Packets --------------------------------------------------------------------------------------

    def take(self, packets: Sequence[Packet]) -> tuple[list[Item], list[Late]]:
        """Return the items that can be applied now, in order, and the rejected late items."""
        refused: list[Late] = []
        for packet in packets:
            if packet.frontier is not None:
                self.restore({**packet.frontier, "pending": self.pending})
        self.passed = max([self.passed, *(packet.passed or self.start for packet in packets)])
        now = max(self.clock, self.passed)
        pending = self.pending
        for packet, floors, places in self._in_order(packets):
            items = packet.items
            for run in packet.runs:
                if _follows(run[0], floors, places):
                    pending += run
                else:
                    items = [*items, *run]
            for item in items:
                time, before = item[TIME], floors.get(item[LANE])
                if (
                    time is None
                    or item[FLOOR] is not None
                    or (before is not None and time < before)
                ):
                    late = self._judge(item, before, now, places.get(item[LANE]))
                    if late is not None:
                        refused.append(late)
                        continue
                place = places.get(item[LANE])
                if place is not None and (item[TIME], item[PLACE]) < place:
                    item[PLACE] = place[1] if item[TIME] == place[0] else item[PLACE]
                pending.append(item)
        self.clock = max(self.clock, self._clock())
        return self.release(), refused

    def _in_order(
        self, packets: Sequence[Packet]
    ) -> Iterable[tuple[Packet, dict[str, int | None], dict[str, Place]]]:
        """Yield each packet with the latest time and the last place before it in its partitions, by
        lane; advance the lanes.
        """
        floors: list[dict[str, int | None]] = [{} for _ in packets]
        places: list[dict[str, Place]] = [{} for _ in packets]
        census: dict[tuple[str, int], list[tuple[str, Lane]]] = {}
        for number, packet in enumerate(packets):
            for lane, one in packet.census.items():
                census.setdefault((_partition(lane), number), []).append((lane, one))
        latest: dict[str, int] = {}
        for lane, time in self.lanes.items():
            latest[_partition(lane)] = max(time, latest.get(_partition(lane), time))
        for partition, number in sorted(
            census, key=lambda each: (each[0], min(lane.first for _, lane in census[each]), each[1])
        ):
            before, place = latest.get(partition), self.places.get(partition)
            for lane, one in census[partition, number]:
                floors[number][lane] = before
                if place is not None:
                    places[number][lane] = place
                if one.place is not None:
                    self.places[partition] = max(one.place, place or one.place)
                self._move(lane, one)
                if lane in self.lanes:
                    latest[partition] = max(self.lanes[lane], latest.get(partition, EARLIEST))
        # Messages after an end are rejected and advance nothing.
        for lane, time in self.lanes.items():
            self.lanes[lane] = min(time, self.ended.get(_stream(lane), time))
        return zip(packets, floors, places, strict=True)

    def _move(self, lane: str, news: Lane) -> None:
        """Advance a lane."""
        if news.rests:
            self.resting.add(lane)
            return
        self.resting.difference_update(_resting_with(lane))
        known = (self.lanes.get(lane), news.latest, news.ended)
        self.lanes[lane] = max((time for time in known if time is not None), default=self.start)
        if news.latest is not None:
            self.latest = max(self.latest, news.latest)
        if news.ended is not None:
            stream = _stream(lane)
            self.ended[stream] = min(news.ended, self.ended.get(stream, news.ended))

    def _judge(self, item: Item, before: int | None, now: int, place: Place | None) -> Late | None:
        """Assign a time to an item without one or to a late item; return its rejection, if any.

        An item without a time gets that of its place, which a rejected message may have moved, or
        the clock's.
        """
        known = [time for time in (item[FLOOR], before) if time is not None]
        floor = max(known, default=self.start)
        if item[TIME] is None:
            floor = floor if place is None else max(floor, place[0])
            item[TIME], item[FLOOR] = max(floor, now), floor
            return None
        if item[TIME] < floor:
            if self.late.get(item[STREAM], "refuse") == "refuse":
                return Late(item, floor)
            item[TIME] = floor
        item[FLOOR] = None
        return None

    def _open(self) -> list[tuple[int, str, int, str]]:
        """Return the partitions that may bring more, each with its earliest possible item and its
        name. A stream without a known source is one without a name.
        """
        latest: dict[str, int] = {}
        streams: dict[str, list[str]] = {}  # those that a partition may still bring
        for lane, time in self.lanes.items():
            partition, stream = _partition(lane), _stream(lane)
            latest[partition] = max(time, latest.get(partition, time))
            if self.resting.isdisjoint(_resting_with(lane)):
                streams.setdefault(partition, []).append(stream)
        found = [
            (*self._frontier(partition, latest[partition], min(each)), _rank(partition), partition)
            for partition, each in streams.items()
            # Messages after a stream's end are rejected: nothing waits for them.
            if any(s not in self.ended or latest[partition] < self.ended[s] for s in each)
        ]
        reporting = {_stream(lane) for lane in self.lanes} | self.ended.keys()
        missing = [s for s in self.streams if s not in reporting and not self._rests(s)]
        return [*found, *((EARLIEST, stream, 0, "") for stream in missing)]

    def _frontier(self, partition: str, latest: int, stream: str) -> Place:
        """Return the earliest place at which a partition can bring an update."""
        first = (latest, "" if stream == EVERY else stream)
        place = self.places.get(partition, first)
        return max(first, place) if place[0] == latest else first

    def _rests(self, stream: str) -> bool:
        """Whether some source that could bring a stream has reported that it has nothing for
        now.
        """
        return any(_stream(lane) in (stream, EVERY) for lane in self.resting)

    def _clock(self) -> int:
        """The document's clock: all items of this time or earlier have arrived."""
        newest = max(self.lanes.values(), default=self.start)
        still_open = self._open()
        if self.hold == 0 or not still_open:
            return max(newest, self.passed)
        slowest = max(self.start, min(still_open)[0])
        waited = slowest if self.hold is None else max(slowest, newest - self.hold)
        return max(waited, self.passed)

    # Releasing ------------------------------------------------------------------------------------

    def release(
        self, most: int | None = None, is_overdue: Callable[[Item], bool] | None = None
    ) -> list[Item]:
        """Remove and return the items that can be applied now, in order.

        `is_overdue`: whether an item has waited long enough; by default `hold` decides.
        """
        self.pending.sort(key=_ORDER)
        count = self._first_that_waits(self.pending[:most], is_overdue or self._is_past())
        released, self.pending = self.pending[:count], self.pending[count:]
        return released

    def _is_past(self) -> Callable[[Item], bool]:
        """Return whether an item is as old as `hold` and the time that has passed allow."""
        past = self.passed
        if self.hold is not None:
            past = max(past, max(self.lanes.values(), default=self.start) - self.hold)
        return lambda item: item[TIME] <= past

    def _first_that_waits(self, pending: Sequence[Item], is_overdue: Callable[[Item], bool]) -> int:
        """Return the first index from which another partition could still bring an earlier item."""
        if self.hold == 0:
            return len(pending)
        earliest = sorted(self._open())[:2]  # one of them belongs to another partition than an item
        bounds: dict[str, tuple[int, str, int] | None] = {}
        for at, item in enumerate(pending):
            lane = item[LANE]
            if lane not in bounds:
                others = [one for one in earliest if one[3] != _partition(lane)]
                bounds[lane] = others[0][:3] if others else None
            bound = bounds[lane]
            place = (item[TIME], item[PLACE], item[NUMBER] // PARTITIONS_APART)
            if bound is not None and bound < place and not is_overdue(item):
                return at
        return len(pending)

    def state(self) -> dict[str, Any]:
        """Return the state of an engine's order, for JSON."""
        return {**self.frontier(), "pending": self.pending}

    def frontier(self) -> dict[str, Any]:
        """Return how far the lanes have advanced: the same for all engines of a document."""
        return {
            "lanes": self.lanes,
            "ended": self.ended,
            "resting": sorted(self.resting),
            "clock": self.clock,
            "heard": self.latest,
            "passed": self.passed,
            "places": self.places,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.lanes = dict(state["lanes"])
        self.ended = dict(state["ended"])
        self.resting = set(state["resting"])
        self.pending = [list(item) for item in state["pending"]]
        self.clock, self.latest, self.passed = state["clock"], state["heard"], state["passed"]
        self.places = {name: (time, stream) for name, (time, stream) in state["places"].items()}


def _follows(item: Item, floors: Mapping[str, int | None], places: Mapping[str, Place]) -> bool:
    """Whether an item with a time comes after all that its lane brought before."""
    time, lane = item[TIME], item[LANE]
    before, place = floors.get(lane), places.get(lane)
    return (before is None or time >= before) and (place is None or (time, item[PLACE]) >= place)


def lane_of(source: int, stream: str, partition: int | None = None) -> str:
    """Return the name of a stream as one source, or one partition of it, brings it."""
    return f"{source}:{stream}" if partition is None else f"{source}/{partition}:{stream}"


def _stream(lane: str) -> str:
    return lane.partition(":")[2]


def _partition(lane: str) -> str:
    """Return the source of a lane, with its partition."""
    return lane.partition(":")[0]


def _rank(written: str) -> int:
    """Return the prefix of the numbers of a partition's items."""
    source, _, partition = written.partition("/")
    return int(source) * (SOURCES_APART // PARTITIONS_APART) + int(partition or 0)


def _resting_with(lane: str) -> tuple[str, ...]:
    """Return the names that may report that a lane rests: itself, its partition, its source."""
    partition, _, stream = lane.partition(":")
    source = partition.partition("/")[0]
    return lane, f"{partition}:{EVERY}", f"{source}:{stream}", f"{source}:{EVERY}"
