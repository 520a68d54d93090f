"""A source of lists of updates: `updates:` of a document in a pipeline file.

Any source can bring them. `jsonl` reads lists as JSON lines. Of the others, each message is one
list or several as XML (`ax:updates`, `ax:lists`). A message that is no list becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from axlog.connect.protocol import Position, Reading, Refusal, Source
from axlog.document.list_codec import from_xml, to_json
from axlog.document.stream_update import LISTS, StreamUpdate
from axlog.errors import AxlogError, UpdateError


class ListSource:
    """The lists that another source brings."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def read(self, position: Position, limit: int) -> Reading:
        """Return at most `limit` messages after the position, as lists."""
        reading = self._source.read(position, limit)
        updates: list[StreamUpdate] = []
        partitions: list[int] = []
        refused = [replace(one, stream="") for one in reading.refused]
        each = reading.partitions or (None,) * len(reading.updates)
        for update, partition in zip(reading.updates, each, strict=True):
            try:
                found = list(_lists(update))
            except AxlogError as error:
                refused.append(Refusal("", update.content, update.origin, error.describe()))
                continue
            updates += found
            partitions += [partition] * len(found) if partition is not None else []
        return replace(reading, updates=updates, partitions=partitions, refused=refused)

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _lists(update: StreamUpdate) -> Iterator[StreamUpdate]:
    if update.action == LISTS:
        yield replace(update, stream="")
        return
    if update.action != "insert":
        raise UpdateError("AX306", f"a message that says {update.action!r} is no list of updates")
    content = update.content
    text = content if isinstance(content, str) else content.decode()
    for one in from_xml(text):
        yield StreamUpdate("", LISTS, to_json(one), update.at, update.origin)
