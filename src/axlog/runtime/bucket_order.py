"""The order in which updates are applied: by time, stream and number (DESIGN section 3, Time).

Every bucket sees only its own part of the input, but knows of all of it how far each stream has
come: a census comes with every batch. From that alone each bucket works out the same clock, and
which of its items may be applied now: an item waits while an open stream could still bring an
earlier one, unless that stream rests (its source had nothing for a while, and said so in the
input). `hold` bounds the wait, in the document's time: 0 applies everything that a batch brings,
None waits for the slowest stream. Nothing here looks at a wall clock, so a batch that is replayed
releases the same items; where time passes by itself, a packet says how much of it has (`passed`).

Late is judged within a partition of a source (which is the whole source, if it has none), in the
partition's own order: an item earlier than one before it, of whatever stream. The item's `floor` is
the latest time before it in its packet. A lane is a stream as one partition of a source brings it.

Law: whatever the batching, with `hold=None` the released items of all batches, one after the other,
are in the order of (time, stream, number).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

TIME, STREAM, NUMBER, KIND, BODY, FLOOR, LANE, ORIGIN, MESSAGE, CONTENT = range(10)
Item: TypeAlias = list[Any]
"""[time, stream, number, kind, body, floor, lane, origin, message, content].

`kind` is bindings, unread, nothing, or an action. `body` is the bags of a message, one for each
relation of its stream's plan, or the content. `floor` is there only if it is later than the item's
time, or if the item has no time. `message` is the number that all items of one message have, and no
other message of the batch. `content` is there if `body` is not the content and the message may be
refused.
"""
BINDINGS = "bindings"
SET_ASIDE = "set aside"
"""Kinds of items: bindings that a message brings, and a view that exceeds a limit with it."""
UNREAD = "unread"
"""The kind of a message whose bindings depend on the time that its bucket gives it."""
NOTHING = "nothing"
"""The kind of a message that no view wants, and that may be refused all the same."""
EVERY = "*"
"""In place of a stream: all that a source brings."""
SOURCES_APART = 1 << 64
"""Numbers of messages that one source can have: a number tells the source too."""
PARTITIONS_APART = 1 << 44
"""Numbers of messages that one partition of a source can have: a number tells the partition too."""
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
    census: Mapping[str, Lane]  # by lane: `source:stream`, `source/partition:stream`
    passed: int = 0  # nothing of this time or an earlier one can come any more


@dataclass(slots=True)
class Refused:
    """An update that could not be taken, where it came from and why."""

    stream: str
    content: str
    origin: str
    error: str
    message: int = 0  # as its items have it

    def plain(self) -> tuple[str, str, str, str, int]:
        return self.stream, self.content, self.origin, self.error, self.message


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
    ended: dict[str, int] = field(default_factory=dict)  # by stream: the end's time
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
        now = max(self.clock, self.passed)
        pending = self.pending
        for packet, floors in self._in_order(packets):
            for item in packet.items:
                time, before = item[TIME], floors.get(item[LANE])
                if (
                    time is None
                    or item[FLOOR] is not None
                    or (before is not None and time < before)
                ):
                    late = self._judge(item, before, now)
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
        """Each packet with the latest time before it in its partitions; the lanes move on."""
        floors: list[dict[str, int | None]] = [{} for _ in packets]
        told: dict[tuple[str, int], list[tuple[str, Lane]]] = {}
        for number, packet in enumerate(packets):
            for lane, one in packet.census.items():
                told.setdefault((_partition(lane), number), []).append((lane, one))
        latest: dict[str, int] = {}
        for lane, time in self.lanes.items():
            latest[_partition(lane)] = max(time, latest.get(_partition(lane), time))
        for partition, number in sorted(
            told, key=lambda each: (each[0], min(lane.first for _, lane in told[each]), each[1])
        ):
            before = latest.get(partition)
            for lane, one in told[partition, number]:
                floors[number][lane] = before
                self._move(lane, one)
                if lane in self.lanes:
                    latest[partition] = max(self.lanes[lane], latest.get(partition, _EARLIEST))
        # What came after an end is refused, and moves nothing.
        for lane, time in self.lanes.items():
            self.lanes[lane] = min(time, self.ended.get(_stream(lane), time))
        return zip(packets, floors, strict=True)

    def _move(self, lane: str, told: Lane) -> None:
        """A lane has come so far."""
        if told.rests:
            self.resting.add(lane)
            return
        self.resting.difference_update(_resting_with(lane))
        known = (self.lanes.get(lane), told.latest, told.ended)
        self.lanes[lane] = max((time for time in known if time is not None), default=self.start)
        if told.latest is not None:
            self.heard = max(self.heard, told.latest)
        if told.ended is not None:
            stream = _stream(lane)
            self.ended[stream] = min(told.ended, self.ended.get(stream, told.ended))

    def _judge(self, item: Item, before: int | None, now: int) -> Late | None:
        """Give an item its time, if it has none or is late; what it is if that is refused."""
        known = [time for time in (item[FLOOR], before) if time is not None]
        floor = max(known, default=self.start)
        if item[TIME] is None:
            # It has the place of the one before it, and the clock's time.
            item[TIME] = max(floor, now)
        elif item[TIME] < floor:
            if self.late.get(item[STREAM], "refuse") == "refuse":
                return Late(item, floor)
            item[TIME] = floor
        return None

    def _open(self) -> list[tuple[int, str, int, str]]:
        """The partitions that may bring more: what each can bring at the earliest, as items are
        ordered, and its name. A stream that has come from nowhere yet is one without a name."""
        latest: dict[str, int] = {}
        streams: dict[str, list[str]] = {}  # those that a partition may still bring
        for lane, time in self.lanes.items():
            partition, stream = _partition(lane), _stream(lane)
            latest[partition] = max(time, latest.get(partition, time))
            if self.resting.isdisjoint(_resting_with(lane)):
                streams.setdefault(partition, []).append(stream)
        found = [
            (latest[partition], min(each), _rank(partition), partition)
            for partition, each in streams.items()
            # What comes after a stream's end is refused: nobody waits for it.
            if any(s not in self.ended or latest[partition] < self.ended[s] for s in each)
        ]
        heard = {_stream(lane) for lane in self.lanes} | self.ended.keys()
        unheard = [s for s in self.streams if s not in heard and not self._rests(s)]
        return [*found, *((_EARLIEST, stream, 0, "") for stream in unheard)]

    def _rests(self, stream: str) -> bool:
        """Whether some source that could bring a stream has said that it has nothing for now."""
        return any(_stream(lane) in (stream, EVERY) for lane in self.resting)

    def _clock(self) -> int:
        """The document's clock: what has this time or an earlier one has come."""
        newest = max(self.lanes.values(), default=self.start)
        still_open = self._open()
        if self.hold == 0 or not still_open:
            return max(newest, self.passed)
        slowest = max(self.start, min(still_open)[0])
        waited = slowest if self.hold is None else max(slowest, newest - self.hold)
        return max(waited, self.passed)

    def _first_that_waits(self, pending: Sequence[Item]) -> int:
        """Where the items begin before which another partition could still bring something."""
        if self.hold == 0:
            return len(pending)
        past = self.passed
        if self.hold is not None:
            past = max(past, max(self.lanes.values(), default=self.start) - self.hold)
        earliest = sorted(self._open())[:2]  # one of them is of another partition than an item
        for at, item in enumerate(pending):
            others = [one for one in earliest if one[3] != _partition(item[LANE])]
            if not others or item[TIME] <= past:
                continue
            if others[0][:3] < (item[TIME], item[STREAM], item[NUMBER] // PARTITIONS_APART):
                return at
        return len(pending)

    def state(self) -> dict[str, Any]:
        """What is known, for JSON."""
        return {
            "lanes": self.lanes,
            "ended": self.ended,
            "resting": sorted(self.resting),
            "pending": self.pending,
            "clock": self.clock,
            "heard": self.heard,
            "passed": self.passed,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.lanes = dict(state["lanes"])
        self.ended = dict(state["ended"])
        self.resting = set(state["resting"])
        self.pending = [list(item) for item in state["pending"]]
        self.clock, self.heard, self.passed = state["clock"], state["heard"], state["passed"]


def lane_of(source: int, stream: str, partition: int | None = None) -> str:
    """The name of a stream as one source, or one partition of it, brings it."""
    return f"{source}:{stream}" if partition is None else f"{source}/{partition}:{stream}"


def _stream(lane: str) -> str:
    return lane.partition(":")[2]


def _partition(lane: str) -> str:
    """The source of a lane, with its partition."""
    return lane.partition(":")[0]


def _rank(written: str) -> int:
    """What the numbers of a partition's items begin with."""
    source, _, partition = written.partition("/")
    return int(source) * (SOURCES_APART // PARTITIONS_APART) + int(partition or 0)


def _resting_with(lane: str) -> tuple[str, ...]:
    """What may have said that a lane rests: itself, its partition, its source."""
    partition, _, stream = lane.partition(":")
    source = partition.partition("/")[0]
    return lane, f"{partition}:{EVERY}", f"{source}:{stream}", f"{source}:{EVERY}"
