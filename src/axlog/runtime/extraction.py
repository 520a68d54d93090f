"""The stateless half of a plan, before the shuffle: messages in, input of the buckets out.

Every message is parsed once by each unit's plan for its stream: the generated matchers of the
embedded engine, compiled on the worker from the definition. For units of bindings only the bindings
are sent, to the buckets of their keys. A census of all messages, needed or not, goes to every
bucket and advances its clock. A rejected message becomes a dead letter with its content and origin;
the rest of its batch is not affected.

The buckets decide whether a message is late, because they know the earlier messages. A message that
may be rejected there (`Past.may_refuse`: few, if messages arrive in order) is sent with its
content, even if no view needs it. The parts of a batch are read at the same time, so a task does
not know the times of the parts before its own: it reports the earliest and the latest time of its
part, and the driver reads a part again in which a message proves late (`spark/rejections.py`).
If bindings depend on a time that the message does not have yet (it has none, or may get the
clock's), it is sent unread to all buckets of the unit.

Messages that the matchers decline but the document would accept (several trees, a declaration,
significant white space) are parsed by the full parser here. A message that contains calls needs the
document: a plan of bindings rejects it, with advice.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from axlog.connect.message_paths import MessagePath
from axlog.document.parser import Element, parse
from axlog.errors import AxlogError, QueryError, StreamError, UnknownStreamError
from axlog.evaluate.joins import Bag
from axlog.live.internals import streams_of
from axlog.match.batch_parser import chunks, roots_of
from axlog.match.plan_reader import PlanReader
from axlog.match.stream_plan import MessagePlan
from axlog.runtime.bindings import bags_of, bucket_of, by_bucket, key_of, text_of
from axlog.runtime.bucket_tuner import Tuned
from axlog.runtime.definition import Definition
from axlog.runtime.family_members import PARAMETERS
from axlog.runtime.order import (
    BINDINGS,
    ELSEWHERE,
    NOTHING,
    SET_ASIDE,
    SOURCES_APART,
    UNREAD,
    Item,
    Lane,
    Refused,
    lane_of,
)
from axlog.runtime.past import Past
from axlog.runtime.plain_route import FAR, PlainRoute, Progress, Shared, UnitRoute
from axlog.runtime.plan import SparkPlan, Unit
from axlog.runtime.row_columns import Row
from axlog.runtime.upstream_filters import tests_time

_NOTES = frozenset({"mark", "rest", "part", "ends", "joint", PARAMETERS})
"""Actions of rows that are no messages."""
ASIDE = "-"
"""The bucket for dead letters and counts, which no engine processes."""


class Message(NamedTuple):
    """One row of a source."""

    source: int
    stream: str
    action: str
    """insert, delete, end, refused; rest: nothing more for now; mark: a start; part: the part of
    the source that the following messages are, as JSON in `origin`; joint: how the part before
    fits to its neighbours, in the same way; ends: where the batch ends in its source, in the same
    way; parameters: rows of the table of a family, the stream.
    """
    content: bytes
    time: int | None
    number: int
    origin: str
    document: str | None = None
    error: str | None = None
    partition: int | None = None  # None: its source is one sequence
    row: int | None = None  # identifies it where others may have the same number

    @property
    def identity(self) -> int:
        """A value that no other message of the batch has."""
        return self.source * SOURCES_APART + (self.number if self.row is None else self.row)


Values: TypeAlias = tuple[Any, ...]
"""The values of a message, in the order of `Message`."""
_STREAM, _CONTENT = map(Message._fields.index, ("stream", "content"))


@dataclass(slots=True)
class ReadPart:
    """A part of a source that was read, and its times."""

    source: int
    partition: int | None
    number: int  # of its first message
    work: str  # JSON, from which it can be read again
    follows: bool  # another part of its sequence is before it in the batch
    earliest: int | None = None  # time of a message without content that may prove late
    latest: int | None = None
    joint: str = ""  # JSON: how it fits to its neighbours
    ended: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By stream that ends in it: the time and the number of the end."""

    def plain(self) -> tuple[Any, ...]:
        where = self.source, self.partition, self.number
        return *where, self.work, self.earliest, self.latest, self.joint, self.ended


@dataclass
class Extracted:
    """The output of one partition: items and census by unit and bucket, and rejected messages."""

    items: dict[tuple[str, int], dict[str, list[Item]]] = field(default_factory=dict)
    census: dict[str, dict[str, Lane]] = field(default_factory=dict)  # by document
    refused: list[Refused] = field(default_factory=list)
    messages: int = 0
    kept: int = 0
    streams: dict[str, list[int]] = field(default_factory=dict)  # by stream: messages, kept
    latest: int | None = None  # the latest time of any message
    ended: list[str] = field(default_factory=list)  # streams
    parts: list[ReadPart] = field(default_factory=list)
    ends: dict[int, tuple[Any, int]] = field(default_factory=dict)
    """By source: its position after the batch, and the number of messages before it."""
    plain: dict[tuple[str, int], dict[Shared, list[Row]]] = field(default_factory=dict)
    """By unit and bucket: the items of the short path (`plain_route.py`)."""


_Sequence = tuple[int, int | None]
"""A source, and a partition of it."""


@dataclass(slots=True)
class Seen:
    """How far a partition has advanced in one lane of one document."""

    name: str
    document: str
    first: int
    latest: int | None = None
    ended: int | None = None
    messages: int = 0
    sequence: _Sequence = (0, None)

    def lane(self, progress: Mapping[_Sequence, Progress]) -> Lane:
        place = progress[self.sequence].place
        return Lane(self.first, self.latest, self.ended, self.messages, False, place)


@dataclass(frozen=True)
class Narrow:
    """A plan for some relations only; its bags have the positions of the whole plan's."""

    plan: MessagePlan
    numbers: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, plan: MessagePlan, numbers: Iterable[int]) -> Narrow:
        wanted, own = tuple(sorted(numbers)), len(plan.here)
        here = tuple(plan.here[n] for n in wanted if n < own)
        everywhere = tuple(plan.everywhere[n - own] for n in wanted if n >= own)
        size = own + len(plan.everywhere)
        return cls(MessagePlan(here, everywhere, plan.limits, plan.depth), wanted, size)

    def bags(self, content: bytes, time: int, root: Element | None) -> tuple[Bag, ...]:
        found: list[Bag] = [{} for _ in range(self.size)]
        for number, bag in zip(self.numbers, bags_of(self.plan, content, time, root), strict=True):
            found[number] = bag
        return tuple(found)


class Extractor:
    """The stateless half of a plan."""

    def __init__(self, definition: Definition, plan: SparkPlan, key: str | None = None) -> None:
        self.plan = plan
        self._streams = frozenset(plan.streams)
        self._key = None if key is None else MessagePath.parse(key, definition.namespaces)
        self._start = definition.start
        self._tuned = Tuned()
        self.past = Past()  # what is known of earlier batches
        self._progress = defaultdict[_Sequence, Progress](Progress)
        self._floors: dict[tuple[str, int, int | None], int] = {}  # of documents
        self._part: dict[_Sequence, ReadPart] = {}
        self._timed = {name for name, query in definition.queries().items() if tests_time(query)}
        self._policies = plan.late
        self._whole = {s for s in plan.streams if any(unit.takes(s) for unit in plan.units)}
        self._narrow: dict[tuple[str, str], Narrow] = {}
        self._plans: list[tuple[Unit, dict[str, MessagePlan]]] = []
        for unit in plan.units:
            if unit.kind != "bindings":
                self._plans.append((unit, {}))
                continue
            document = definition.make(unit.views, keep="needed")
            found = {stream: streams_of(document).engine.plan(stream) for stream in plan.streams}
            self._plans.append((unit, {s: p for s, p in found.items() if p is not None}))
        self._matches = any(unit.kind == "bindings" for unit in plan.units)
        self._readers = {
            (unit.name, stream): PlanReader(plan)
            for unit, plans in self._plans
            for stream, plan in plans.items()
            if UnitRoute.serves(unit, plan, stream)
        }
        self._routes: dict[tuple[int, str, int | None], PlainRoute | None] = {}

    def tune(self, tuned: Tuned) -> None:
        """From now on, match only what units still need of their streams."""
        if tuned == self._tuned:
            return
        self._tuned, self._narrow = tuned, {}
        for unit, plans in self._plans:
            for stream, numbers in tuned.units.get(unit.name, {}).items():
                plan = plans.get(stream)
                if plan is not None and len(numbers) < len(plan.here) + len(plan.everywhere):
                    self._narrow[unit.name, stream] = Narrow.of(plan, numbers)

    def extract(self, messages: Iterable[Values]) -> Extracted:
        """Return the output for the messages of one partition: tuples as `Message`."""
        out = Extracted()
        seen: dict[tuple[str, str], Seen] = {}
        self._floors, self._part, self._routes = {}, {}, {}
        self._progress = defaultdict(Progress)
        routes: list[PlainRoute] = []
        for values, root in self._parsed(messages):
            source, stream, action, content, time, number, origin, _, _, partition, row = values
            if action == "insert" and time is not None:
                try:
                    route = self._routes[source, stream, partition]
                except KeyError:
                    route = self._route(Message._make(values), out, seen)
                    self._routes[source, stream, partition] = route
                    routes += [] if route is None else [route]
                if route is not None and route.take(content, time, number, origin, row, root):
                    continue
            message = Message._make(values)
            if message.action in _NOTES:
                self._note(message, out)
                continue
            out.messages += 1
            out.streams.setdefault(message.stream, [0, 0])[0] += 1
            try:
                self._take(message, root, out, seen, self._place(message))
            except AxlogError as error:
                out.refused.append(refused_message(message, error.describe()))
                if self._key is None:  # its partition has advanced this far
                    lane = lane_of(message.source, message.stream, message.partition)
                    number = message.source * SOURCES_APART + message.number
                    of = (message.source, message.partition)
                    seen.setdefault(("", lane), Seen(lane, "", number, sequence=of))
        for each_route in routes:
            each_route.finish()
        for each in seen.values():
            out.census.setdefault(each.document, {})[each.name] = each.lane(self._progress)
        self._routes = {}  # their rows, if kept, would be scanned by collections of garbage
        return out

    def _note(self, message: Message, out: Extracted) -> None:
        """Take a row that is no message: of the source, or of a parameter table."""
        of = (message.source, message.partition)
        match message.action:
            case "mark":
                out.census.setdefault("", {})  # all buckets hear of the batch
            case "rest":
                lane = lane_of(message.source, message.stream, message.partition)
                out.census.setdefault("", {})[lane] = Lane(0, None, None, 0, True)
            case "part":
                follows = message.time is not None
                part = self._part[of] = ReadPart(*of, message.number, message.origin, follows)
                out.parts.append(part)
            case "ends":
                out.ends[message.source] = tuple(json.loads(message.origin))
            case "joint":
                if of in self._part:
                    self._part[of].joint = message.origin
            case _:
                self._send_table(message, out)

    def _send_table(self, message: Message, out: Extracted) -> None:
        """Send rows of a parameter table to all buckets of its family. They move no clock."""
        out.census.setdefault("", {})
        body, identity = text_of(message.content), message.identity
        item = [None, "", identity, PARAMETERS, body, None, "", message.origin, identity, None,
                message.stream]  # fmt: skip
        for unit in self.plan.units:
            for bucket in range(unit.buckets) if message.stream in unit.views else ():
                out.items.setdefault((unit.name, bucket), {}).setdefault("", []).append(item)

    def _route(
        self, message: Message, out: Extracted, seen: dict[tuple[str, str], Seen]
    ) -> PlainRoute | None:
        """Return the short path of a stream of a partition, from its first message; None if there
        is none.
        """
        source, stream, partition = message.source, message.stream, message.partition
        units = self._unit_routes(stream, source, partition, out)
        if units is None:
            return None
        of, lane = (source, partition), lane_of(source, stream, partition)
        first = Seen(lane, "", source * SOURCES_APART + message.number, sequence=of)
        known = seen.setdefault(("", lane), first)
        out.streams.setdefault(stream, [0, 0])
        shared = Shared(source, lane, stream, message.row is not None)
        part, progress = self._part.get(of), self._progress[of]
        return PlainRoute(shared, units, self.past.latest, out, known, part, progress)

    def _unit_routes(
        self, stream: str, source: int, partition: int | None, out: Extracted
    ) -> list[UnitRoute] | None:
        """Return the short path to every unit that uses a stream; None if one needs more."""
        part = self._part.get((source, partition))
        may_be_late = part is not None and part.follows
        if (
            self._key is not None
            or not self.past.is_known
            or stream in self.past.ended
            or stream in out.ended
            or stream in self._whole
            or (may_be_late and self._policies.get(stream, "refuse") == "clock")
        ):
            return None
        found: list[UnitRoute] = []
        for unit in self.plan.units:
            if unit.kind == "bindings" and stream in unit.unused:
                continue
            if unit.kind != "bindings" and not unit.takes(stream):
                continue
            reader = self._readers.get((unit.name, stream))
            if reader is None or (unit.name, stream) in self._narrow:
                return None
            found.append(UnitRoute(unit, reader, stream))
        return found

    def _parsed(self, messages: Iterable[Values]) -> Iterator[tuple[Values, Element | None]]:
        """Yield messages with their roots; parse many together if some unit needs them.

        Messages of streams with known layouts are left: most of them are not parsed.
        """
        if not self._matches:
            return ((message, None) for message in messages)
        return chain.from_iterable(
            zip(chunk, self._roots(chunk), strict=True) for chunk in chunks(messages)
        )

    def _roots(self, chunk: Sequence[Values]) -> Sequence[Element | None]:
        known = {stream for (_, stream), each in self._readers.items() if each.knows_layouts}
        if known >= self._streams:
            return [None] * len(chunk)
        return roots_of([b"" if m[_STREAM] in known else m[_CONTENT] for m in chunk])

    def _document(self, message: Message) -> str:
        if message.action == "refused":
            raise StreamError("AX407", message.error or "it could not be parsed")
        if self._key is None:
            return ""
        if message.document is not None:
            return message.document
        found = self._key.value(parse(message.content).root) if message.content else None
        if found is None:
            raise StreamError("AX407", "the message does not name its document")
        return found

    def _place(self, message: Message) -> str:
        """Return the stream by which a message is ordered among those of its time.

        It keeps its place after its predecessor, also after one that is rejected.
        """
        progress = self._progress[message.source, message.partition]
        before = progress.place
        if message.time is None:
            if before is None:
                return message.stream
            place = max((before[0], message.stream), before)
        else:
            place = (message.time, message.stream)
            place = place if before is None else max(place, before)
        progress.time, progress.stream = place
        return place[1] if message.time in (None, place[0]) else message.stream

    def _take(
        self,
        message: Message,
        root: Element | None,
        out: Extracted,
        seen: dict[tuple[str, str], Seen],
        place: str,
    ) -> None:
        """Send what units need of a message, and record it in the census."""
        source, stream, action, _, time, given, origin, _, _, partition, _ = message
        is_plain = self._key is None and action != "refused"
        document = "" if is_plain else self._document(message)
        number = source * SOURCES_APART + given
        progress = self._progress[source, partition]
        floor = self._floor(progress, document, source, partition)
        is_late = floor is not None and time is not None and time < floor
        may_be_refused = is_late or stream in out.ended or self.past.may_refuse(stream, time)
        part = self._part.get((source, partition))
        may_be_late = may_be_refused or (part is not None and part.follows)
        parts = self._parts(message, root, document, may_be_refused, may_be_late)
        lane = lane_of(source, stream, partition)
        known = seen.get((document, lane))
        if known is None:
            of = (source, partition)
            known = seen[document, lane] = Seen(lane, document, number, sequence=of)
        if part is not None and part.follows and time is not None and not may_be_refused:
            part.earliest = time if part.earliest is None else min(part.earliest, time)
        late = floor if is_late else None
        if time is None and progress.place is not None:
            late = progress.time
        for unit_name, bucket, kind, body, content in parts:
            item = [
                time, place, number, kind, body, late, lane, origin, message.identity, content,
                stream,
            ]  # fmt: skip
            try:
                out.items[unit_name, bucket][document].append(item)
            except KeyError:
                out.items.setdefault((unit_name, bucket), {})[document] = [item]
        if any(kind != NOTHING for _, _, kind, _, _ in parts):
            out.kept += 1
            out.streams[stream][1] += 1
        known.messages += 1
        if action == "end":
            known.ended = self._start if time is None else time
            out.ended.append(stream)
            if part is not None:
                part.ended.setdefault(stream, (known.ended, message.identity))
            self._routes = {of: None if of[1] == stream else r for of, r in self._routes.items()}
        elif time is not None and (known.latest is None or time > known.latest):
            known.latest = time
        if time is not None and (floor is None or time > floor):
            progress.floor = max(progress.floor, time)
            if self._key is not None:
                self._floors[document, source, partition] = time
            if part is not None:
                part.latest = time if part.latest is None else max(part.latest, time)
            out.latest = time if out.latest is None else max(out.latest, time)

    def _floor(
        self, progress: Progress, document: str, source: int, partition: int | None
    ) -> int | None:
        """Return the latest time of a message of a document before, in its partition."""
        if self._key is not None:
            return self._floors.get((document, source, partition))
        return None if progress.floor == -FAR else progress.floor

    def _parts(
        self,
        message: Message,
        root: Element | None,
        document: str,
        may_be_refused: bool,
        may_be_late: bool,
    ) -> list[tuple[str, int, str, Any, str | None]]:
        """Yield the items of a message: unit, bucket, kind, body, and once the content, if it may
        be rejected and is not sent otherwise.
        """
        stream, time = message.stream, message.time
        is_given_time = time is None or (
            may_be_late and self._policies.get(stream, "refuse") == "clock"
        )
        found = [
            (unit.name, *part)
            for unit, plans in self._plans
            for part in self._send(unit, plans, message, root, document, is_given_time)
        ]
        if message.stream in self._whole and message.action != "end":
            kinds = (BINDINGS, UNREAD)
            return [(*part, ELSEWHERE if part[2] in kinds else None) for part in found]
        if not may_be_refused or message.action == "end":
            return [(*part, None) for part in found]
        content = text_of(message.content)
        if not found:
            unit, _ = self._plans[0]
            return [(unit.name, 0, NOTHING, content, None)]
        return [(*part, ELSEWHERE if at else content) for at, part in enumerate(found)]

    def _send(
        self,
        unit: Unit,
        plans: dict[str, MessagePlan],
        message: Message,
        root: Element | None,
        document: str,
        is_given_time: bool,
    ) -> Iterable[tuple[int, str, Any]]:
        """Return what a unit receives of a message: buckets, the kind of item, its body."""
        if unit.kind != "bindings":
            if not unit.takes(message.stream):
                return ()
            bucket = unit.bucket_of(document) if unit.kind == "documents" else 0
            return [(bucket, message.action, text_of(message.content))]
        plan = plans.get(message.stream)
        if message.stream in unit.unused and message.action != "end":
            return ()
        if message.action == "end" and message.stream in self._streams:
            return [(bucket, "end", "") for bucket in range(unit.buckets)]
        if plan is None:
            raise UnknownStreamError("AX401", f"there is no stream {message.stream!r}")
        if message.action == "delete":
            raise StreamError("AX405", f"the stream {message.stream!r} may not delete")
        key = None if plan.replace is None else key_of(plan, message.content, root)
        narrow = self._narrow.get((unit.name, message.stream))
        try:
            if narrow is not None:
                bags = narrow.bags(message.content, message.time or 0, root)
            else:
                bags = bags_of(plan, message.content, message.time or 0, root)
        # over a limit: the unit's view is set aside, the others continue
        except QueryError as error:
            reason = [error.code, error.message]
            return [(bucket, SET_ASIDE, reason) for bucket in range(unit.buckets)]
        if is_given_time and not self._timed.isdisjoint(unit.views):
            content = text_of(message.content)
            every = range(unit.buckets)
            if unit.by_message:
                every = range(at := bucket_of(unit, key, message.identity), at + 1)
            return [(bucket, UNREAD, content) for bucket in every]
        return by_bucket(unit, message.stream, bags, key, message.identity)


def refused_message(message: Message, error: str) -> Refused:
    """Return a rejected message with its content."""
    content = message.content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    return Refused(message.stream, content, message.origin, error, message.identity)


@lru_cache(maxsize=16)
def extractor_of(
    definition: str, key: str | None, buckets: int, width: int, only: tuple[str, ...] = ()
) -> Extractor:
    """Return the extractor of a definition given as JSON, cached per worker; for some units
    `only`.
    """
    from axlog.runtime.plan import make_plan

    given = Definition.read(json.loads(definition))
    plan = make_plan(given, buckets, key is not None, width)
    if only:
        plan = replace(plan, units=tuple(plan.unit(name) for name in only))
    return Extractor(given, plan, key)
