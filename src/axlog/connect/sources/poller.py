"""What alerters share: something outside is looked at now and then, and what changed is told.

What is outside cannot be read again as it was. So an alerter publishes what it saw to a channel of
its own (`connect/channels/channel.py`), together with what it needs to know for the next look, in
one step; a position is a number in that channel, and reading the same span twice gives the same
updates. With a `log` file this holds after a crash too; without one, only while the process runs.

Most outside systems are collections of things with keys: items of a feed, files of a directory,
rows of a table, records of a document. `Collection` compares two looks: what is gone is deleted,
what is new inserted, what changed deleted and inserted. A thing is a tree whose root has its key:

    <item key="5ba1..." id="https://example.org/17">...</item>

Several things may share an id: the second one has `number="2"` and a key of its own, and so on, and
the duplicate is logged. None is dropped.

A look that brings nothing new publishes nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from logging import WARNING, getLogger
from time import monotonic
from time import time as wall_clock
from typing import Any, ClassVar, Protocol

from lxml import etree
from pydantic import Field

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.entries import Retention
from axlog.connect.channels.journal import Journal
from axlog.connect.kinds import LocalPath, Options, Origin, Seconds
from axlog.connect.protocol import Position, Reading, Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, ConnectorError, PipelineError
from axlog.reporting import report

_events = getLogger("axlog.connect")

KEPT = Retention(messages=100_000, size=256 * 1024 * 1024)
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STATE = "state"
_SHOWN = 5  # ids in one event


class AlerterOptions(Options):
    """Options that all alerters with a log have."""

    interval: Seconds = Field(default=60.0, ge=0, description="How often to look.")
    log: LocalPath | None = Field(
        default=None,
        description="File that keeps what was seen; without it a restart looks anew.",
    )
    only: str = Field(
        default="all",
        pattern="^(all|additions)$",
        description="additions: what changes or goes is not told; the call need not delete.",
    )


@dataclass(slots=True)
class Look:
    """What one look at the outside brought."""

    updates: list[StreamUpdate] = field(default_factory=list)
    state: Any = None  # JSON: what the next look needs to know
    refused: list[Refusal] = field(default_factory=list)


class Watched(Protocol):
    """An outside system."""

    stream: str

    def look(self, state: Any, now: float) -> Look:
        """What changed since the look that gave this state (None: the first)."""

    def close(self) -> None:
        """Let go of connections."""


class Alerter:
    """A source that looks at something now and then."""

    def __init__(
        self,
        watched: Watched,
        options: AlerterOptions,
        origin: Origin,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self.watched = watched
        self.interval = options.interval
        self._clock = clock
        self._next = 0.0  # on the monotonic clock
        journal = None if options.log is None else Journal(origin.path(options.log))
        self.channel = LocalChannel(watched.stream, KEPT, journal)

    def read(self, position: Position, limit: int) -> Reading:
        """What was seen after a position; looks again where all of it was read."""
        after = int(position or 0)
        if after > self.channel.last:
            raise ConnectorError(
                "AX858",
                f"position {after} was never given out: the last is {self.channel.last}",
                advice="keep the alerter's log (`log:`) as long as the checkpoint",
            )
        refused: list[Refusal] = []
        if after == self.channel.last and monotonic() >= self._next:
            refused = self._look()
        subscription = self.channel.subscribe(after=after)
        delivery = subscription.read(limit)
        subscription.close()
        more = delivery.upto < self.channel.last
        return Reading(delivery.updates, delivery.upto, refused, more)

    def _look(self) -> list[Refusal]:
        """Look now, and keep what was seen; a look that fails is due again at once.

        The runner waits between tries, and knows by the error that the outside is unreachable.
        """
        noted = self.channel.note(_STATE)
        look = self.watched.look(None if noted is None else json.loads(noted), self._clock())
        state = json.dumps(look.state)
        if look.updates or state != noted:
            self.channel.publish_all(look.updates, (_STATE, state))
        self._next = monotonic() + self.interval
        return look.refused

    def close(self) -> None:
        self.channel.close()
        self.watched.close()


def stream_of(origin: Origin, what: str) -> str:
    """The stream that a source is made for."""
    if origin.stream is None:
        raise PipelineError("AX852", f"{what} is the source of one stream")
    return origin.stream


# Collections --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing of a collection: its id as people know it, and its tree without the key.

    Things that share an id are numbered in the order they stand in, from 1.
    """

    id: str
    tree: etree._Element
    number: int = 1

    is_named: ClassVar[bool] = True  # its id is a name: two things should not share it

    @property
    def key(self) -> str:
        # No XML text holds the character 0: no other id has this key.
        return digest(self.id if self.number == 1 else f"{self.id}\0{self.number}")

    def xml(self) -> str:
        self.tree.set("key", self.key)
        self.tree.set("id", clean(self.id))
        if self.number > 1:
            self.tree.set("number", str(self.number))
        return etree.tostring(self.tree, encoding="unicode", with_tail=False)


def numbered(things: Iterable[Thing]) -> list[Thing]:
    """The same things; those that share an id with an earlier one get a number of their own."""
    seen: Counter[str] = Counter()
    made = []
    for thing in things:
        seen[thing.id] += 1
        made.append(replace(thing, number=seen[thing.id]))
    return made


class Collection:
    """Things with keys, compared from one look to the next; part of what is watched."""

    def __init__(self, stream: str, name: str, only: str = "all") -> None:
        self.stream = stream
        self.name = name  # of the things' elements
        self.only = only

    def compared(
        self, before: Mapping[str, str], things: Iterable[Thing], at: float
    ) -> tuple[list[StreamUpdate], dict[str, str]]:
        """What to tell, in the order of the things; and the digests for the next look.

        An id that several things share is logged when it is first seen.
        """
        given = numbered(things)
        self._log_duplicates([each for each in given if each.key not in before])
        written = {thing.key: thing.xml() for thing in given}
        after = {key: digest(xml) for key, xml in written.items()}
        updates = []
        if self.only == "all":
            lost = [key for key, was in before.items() if after.get(key) != was]
            updates += [self._delete(key, at) for key in lost]
        for key, xml in written.items():
            if key not in before or (self.only == "all" and before[key] != after[key]):
                updates.append(StreamUpdate(self.stream, "insert", xml, at))
        if self.only != "all":  # what left may come back, and is no addition then
            after = {**before, **after}
        return updates, after

    def _log_duplicates(self, new: list[Thing]) -> None:
        """One event for all new things whose id is taken, with some of the ids."""
        found = [thing for thing in new if thing.number > 1 and thing.is_named]
        if found:
            some = ", ".join(dict.fromkeys(thing.id[:200] for thing in found[:_SHOWN]))
            report(
                _events, WARNING, "duplicate ids", stream=self.stream, count=len(found), ids=some
            )

    def _delete(self, key: str, at: float) -> StreamUpdate:
        return StreamUpdate(self.stream, "delete", f'match /{self.name}[@key = "{key}"]', at)


def digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def clean(text: str) -> str:
    """A text with what no XML can hold taken out."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def element(name: str, fields: Mapping[str, Any]) -> etree._Element:
    """A tree with one child a field; lists become several, None none."""
    made = etree.Element(name)
    for field_name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None and one != "":
                etree.SubElement(made, field_name).text = clean(str(one))
    return made


def refusal(stream: str, content: bytes | str, origin: str, error: AxlogError) -> Refusal:
    """Input that could not be understood, for the dead letters."""
    return Refusal(stream, content, origin, error.describe())
