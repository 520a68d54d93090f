"""The base of polling sources: poll an external system and publish the differences.

An external system cannot be read again in an earlier state. A polling source therefore publishes
what it found to its own channel (`connect/channels/channel.py`), together with the state that the
next poll needs, in one transaction. A position is a number in that channel, so reading the same
range twice gives the same updates. With a `log` file this holds after a crash too; without one,
only while the process runs.

Most external systems are collections of items with keys: items of a feed, files of a directory,
rows of a table, records of a document. `Collection` compares two polls: it deletes removed items,
inserts new ones, and deletes and inserts changed ones. An item is a tree whose root has its key:

    <item key="5ba1..." id="https://example.org/17">...</item>

Several items may share an id: the second has `number="2"` and its own key, and so on. The duplicate
is logged; none is dropped.

A poll without differences publishes nothing.
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
_SHOWN = 5  # ids in one log event


class AlerterOptions(Options):
    """Options of all polling sources with a log."""

    interval: Seconds = Field(default=60.0, ge=0, description="The polling interval.")
    log: LocalPath | None = Field(
        default=None,
        description="File that stores the published updates; without it a restart starts over.",
    )
    only: str = Field(
        default="all",
        pattern="^(all|additions)$",
        description="additions: ignore changes and removals; the call then needs no deletes.",
    )


@dataclass(slots=True)
class Look:
    """The result of one poll."""

    updates: list[StreamUpdate] = field(default_factory=list)
    state: Any = None  # JSON: the state for the next poll
    refused: list[Refusal] = field(default_factory=list)


class Watched(Protocol):
    """An external system that can be polled."""

    stream: str

    def look(self, state: Any, now: float) -> Look:
        """Return the changes since the poll that returned this state (None: the first poll)."""

    def close(self) -> None:
        """Close connections."""


class Alerter:
    """A source that polls an external system at intervals."""

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
        self._next = 0.0  # monotonic time
        journal = None if options.log is None else Journal(origin.path(options.log))
        self.channel = LocalChannel(watched.stream, KEPT, journal)

    def read(self, position: Position, limit: int) -> Reading:
        """Return the updates after a position; poll again if all of them were read."""
        after = int(position or 0)
        if after > self.channel.last:
            raise ConnectorError(
                "AX858",
                f"position {after} was never returned: the last is {self.channel.last}",
                advice="keep the log of the source (`log:`) as long as the checkpoint",
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
        """Poll now and store the result; a failed poll is due again at once.

        The runner waits between retries. The error shows it that the external system is
        unreachable.
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
    """Return the stream of a source."""
    if origin.stream is None:
        raise PipelineError("AX852", f"{what} can only be the source of one stream")
    return origin.stream


# Collections --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Thing:
    """An item of a collection: its id, and its tree without the key.

    Items that share an id are numbered in their order, from 1.
    """

    id: str
    tree: etree._Element
    number: int = 1

    is_named: ClassVar[bool] = True  # its id is a name: two items should not share it

    @property
    def key(self) -> str:
        # No XML text contains the character 0, so no other id has this key.
        return digest(self.id if self.number == 1 else f"{self.id}\0{self.number}")

    def xml(self) -> str:
        self.tree.set("key", self.key)
        self.tree.set("id", clean(self.id))
        if self.number > 1:
            self.tree.set("number", str(self.number))
        return etree.tostring(self.tree, encoding="unicode", with_tail=False)


def numbered(things: Iterable[Thing]) -> list[Thing]:
    """Return the items; those that share an id with an earlier one get a number."""
    seen: Counter[str] = Counter()
    made = []
    for thing in things:
        seen[thing.id] += 1
        made.append(replace(thing, number=seen[thing.id]))
    return made


class Collection:
    """Items with keys, compared from one poll to the next."""

    def __init__(self, stream: str, name: str, only: str = "all") -> None:
        self.stream = stream
        self.name = name  # the name of the items' elements
        self.only = only

    def compared(
        self, before: Mapping[str, str], things: Iterable[Thing], at: float
    ) -> tuple[list[StreamUpdate], dict[str, str]]:
        """Return the updates, in the order of the items, and the digests for the next poll.

        An id shared by several items is logged when it is first seen.
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
        if self.only != "all":  # a removed item may return, and is not an addition then
            after = {**before, **after}
        return updates, after

    def _log_duplicates(self, new: list[Thing]) -> None:
        """Log one event for all new items with a duplicate id, with some of the ids."""
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
    """Remove characters that XML cannot contain."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def element(name: str, fields: Mapping[str, Any]) -> etree._Element:
    """Return a tree with one child per field; a list becomes several, None none."""
    made = etree.Element(name)
    for field_name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None and one != "":
                etree.SubElement(made, field_name).text = clean(str(one))
    return made


def refusal(stream: str, content: bytes | str, origin: str, error: AxlogError) -> Refusal:
    """Return input that could not be parsed, for the dead letters."""
    return Refusal(stream, content, origin, error.describe())
