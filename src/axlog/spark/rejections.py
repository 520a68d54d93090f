"""The rejected messages of a batch that no task could know, with their contents.

The parts of a batch are read at the same time. A message is late if a message before it in its
sequence is later, and that may be one of another part. Tasks report the earliest and the latest
time of their parts. If the earliest is before the latest of the parts before it, the driver reads
that part again: its late messages are rejected, also those that no view needs and no bucket has
seen. Buckets reject the others without their contents, which are found the same way. If a stream
ends in a batch, the parts with messages that may be after its end are read again, too.

In a source that is in order, and whose streams do not end, nothing is read again.

The parts of a file that was divided at its records are checked here, before anything is delivered
(`Joined`). Rejected messages also get the usual names of their positions here (`Locating`).

Law: the rejected messages, with their contents and reasons, are those of a batch that was read as
one part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from axlog.connect.protocol import Joined, Locating, Refusal, Source
from axlog.document.clock_bounds import Horizon
from axlog.document.operations import late_error
from axlog.runtime.bucket import ended_error
from axlog.runtime.extraction import Message, refused_message
from axlog.runtime.order import EARLIEST, SOURCES_APART
from axlog.spark.sources import Cut, read_part

End: TypeAlias = tuple[int, int]
"""The time at which a stream ends, and the number of the message that ends it."""


class _Read(NamedTuple):
    """A part that was read, as `ReadPart.plain`."""

    source: int
    partition: int | None
    number: int
    work: str
    earliest: int | None
    latest: int | None
    joint: str = ""
    ended: Mapping[str, End] = MappingProxyType({})
    streams: Collection[str] = ()

    def ends(self, others: Iterable[_Read]) -> dict[str, End]:
        """Return where streams end in other parts, of which this part has messages.

        What follows in the same sequence is after the end, whatever its time.
        """
        found: dict[str, End] = {}
        for other in others:
            for stream, end in other.ended.items() if other is not self else ():
                if (self.source, self.partition) == (other.source, other.partition):
                    if self.number < other.number:
                        continue
                    end = (EARLIEST, 0)
                if stream in self.streams:
                    found[stream] = min(end, found.get(stream, end))
        return found


class Rejections:
    """Completes the rejected messages of batches."""

    def __init__(
        self,
        sources: Sequence[Callable[[], Source] | None],
        policies: Mapping[str, str],
        horizon: Horizon | None = None,
    ) -> None:
        """`sources`: None for those that cannot be read again. `policies`: `late` by stream; empty
        if it depends on more than the sequence whether a message is late.
        """
        self._sources = sources
        self._opened: dict[int, Source] = {}
        self._policies = policies
        self._horizon = horizon

    def complete(self, asides: Iterable[Mapping[str, Any]], found: dict[int, Refusal]) -> None:
        """Add late messages, and contents that are missing, to the rejected messages of a batch."""
        parts = [
            _Read._make((*part, aside["streams"])) for aside in asides for part in aside["parts"]
        ]
        ending = [part for part in parts if part.ended]
        parts.sort(key=itemgetter(0, 2))
        self._check_joints(parts)
        lacking = {identity for identity, refusal in found.items() if not refusal.content}
        for part, floor in self._late_parts(parts):
            size = json.loads(part.work)[1]
            first = part.source * SOURCES_APART + part.number
            mine = {identity for identity in lacking if first <= identity < first + size}
            ends = part.ends(ending) if self._policies else {}
            if floor is None and not mine and not ends:
                continue
            for message in self._messages(part):
                self._add(message, floor, mine, found)
                self._add_ended(message, ends, found)
        for identity, refusal in found.items():
            source: Any = self._source(identity // SOURCES_APART)
            if isinstance(source, Locating):
                found[identity] = replace(refusal, origin=source.origin(refusal.origin))

    def _check_joints(self, parts: Iterable[_Read]) -> None:
        """Raise an error if parts of a source do not fit together; nothing is delivered then."""
        joints: dict[int, list[Any]] = {}
        for part in parts:
            if part.joint:
                joints.setdefault(part.source, []).append(json.loads(part.joint))
        for index, each in joints.items():
            source: Any = self._source(index)
            if isinstance(source, Joined):
                source.check_joints(each)

    def _source(self, index: int) -> Source | None:
        """Return a source, which stays open."""
        make = self._sources[index] if index < len(self._sources) else None
        if make is None:
            return None
        if index not in self._opened:
            self._opened[index] = make()
        return self._opened[index]

    def _late_parts(self, parts: Iterable[_Read]) -> Iterator[tuple[_Read, int | None]]:
        """Yield parts, each with the latest time before it if one of its messages is earlier."""
        latest: dict[tuple[int, int | None], int] = {}
        for part in parts:
            of = part.source, part.partition
            floor = latest.get(of)
            is_late = floor is not None and part.earliest is not None and part.earliest < floor
            yield part, floor if is_late else None
            if part.latest is not None:
                latest[of] = part.latest if floor is None else max(part.latest, floor)

    def _messages(self, part: _Read) -> Iterator[Message]:
        make = self._sources[part.source]
        if make is None:
            return
        cut = Cut(*json.loads(part.work))
        for rows in read_part(make, part.source, cut, self._horizon):
            yield from map(Message._make, rows)

    def _add_ended(
        self, message: Message, ends: Mapping[str, End], found: dict[int, Refusal]
    ) -> None:
        """Reject a message after the end of its stream."""
        end = ends.get(message.stream)
        identity, time = message.identity, message.time
        if end is None or identity in found or message.action == "end":
            return
        if end[0] == EARLIEST or (time is not None and (time, identity) > end):
            error = ended_error(message.stream).describe()
            refused = refused_message(message, error)
            found[identity] = Refusal(refused.stream, refused.content, refused.origin, error)

    def _add(
        self, message: Message, floor: int | None, lacking: set[int], found: dict[int, Refusal]
    ) -> None:
        identity, time = message.identity, message.time
        known = found.get(identity)
        if known is not None and identity in lacking:
            content = refused_message(message, "").content
            found[identity] = replace(known, content=content)
        is_refused = self._policies.get(message.stream) == "refuse"
        if known is None and floor is not None and time is not None and time < floor and is_refused:
            error = late_error(message.stream, time, floor).describe()
            refused = refused_message(message, error)
            found[identity] = Refusal(refused.stream, refused.content, refused.origin, error)
