"""A list of updates as a source, for tests, examples and programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from axlog.connect.kinds import Options, Origin, SourceKind
from axlog.connect.protocol import Position, Reading, Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError


class MemoryOptions(Options):
    """Options of the source `memory`."""

    updates: list[dict[str, Any]] = Field(
        default=[], description="The updates, as in a file of JSON lines."
    )


class MemorySource:
    """Updates from a list that may grow; the position is an index."""

    def __init__(self, updates: Iterable[StreamUpdate | Mapping[str, Any]] = ()) -> None:
        self.updates: list[StreamUpdate | Mapping[str, Any]] = list(updates)

    def read(self, position: Position, limit: int) -> Reading:
        """Return the next updates."""
        start = position or 0
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        for number, given in enumerate(self.updates[start : start + limit], start=start + 1):
            if isinstance(given, StreamUpdate):
                updates.append(given)
                continue
            try:
                update = StreamUpdate.of(given)
            except AxlogError as error:
                stream = str(given.get("stream", ""))
                refused.append(Refusal(stream, str(given), f"update {number}", error.describe()))
                continue
            updates.append(
                StreamUpdate(
                    update.stream, update.action, update.content, update.at, f"update {number}"
                )
            )
        end = min(start + limit, len(self.updates))
        return Reading(updates, end, refused, more=end < len(self.updates))

    def close(self) -> None:
        """Nothing to close."""


def _make(options: MemoryOptions, origin: Origin) -> MemorySource:
    named = {} if origin.stream is None else {"stream": origin.stream}
    return MemorySource([{**named, **update} for update in options.updates])


MEMORY = SourceKind(
    "memory", MemoryOptions, _make, "Updates listed in the pipeline file.", names_streams=True
)
