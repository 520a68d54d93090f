"""The time of a message: from a path in it, the file's time, its arrival, or none.

A message without a time gets the document's clock. A message whose required time is missing or
cannot be parsed is rejected.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from axlog.connect.kinds import Options, Origin
from axlog.connect.message_paths import MessagePath
from axlog.document.clock_bounds import Clock
from axlog.document.parser import Element
from axlog.document.times import Time, microseconds
from axlog.errors import StreamError


class TimeOptions(Options):
    """Options of sources whose messages are XML without an envelope."""

    time: str | list[str] | None = Field(
        default=None,
        description="A path in the message to its time: @at, header/created; or two, to a date"
        " and a time of the day.",
    )
    clock: Literal["none", "file", "arrival"] = Field(
        default="none",
        description="If `time` is not set: none, the file's (the broker's) time, or the time of "
        "arrival. Beside `settings: {clock: wall}` the default is arrival.",
    )


class Timing:
    """Determines the times of a source's messages."""

    def __init__(self, options: TimeOptions, origin: Origin) -> None:
        given = [] if options.time is None else options.time
        written = [given] if isinstance(given, str) else given
        self.paths = [MessagePath.parse(path, origin.namespaces) for path in written]
        self.clock = options.clock
        self.now: Clock = time.time
        """The clock of arrivals: a batch that is read again has the times of its first reading."""

    @property
    def needs_element(self) -> bool:
        """Whether the message must be parsed to find its time."""
        return bool(self.paths)

    def of(self, element: Element | None, stored: float | None) -> Time | None:
        """Return a message's time, given the message and the time of its storage."""
        if self.paths:
            parts = [] if element is None else [path.value(element) for path in self.paths]
            found = "T".join(part for part in parts if part is not None)
            if None in parts or not parts:
                raise StreamError("AX409", "the message has no time where it should have one")
            microseconds(found)  # an unparsable time is rejected here
            return found
        if self.clock == "file":
            return None if stored is None else _as_date(stored)
        return _as_date(self.now()) if self.clock == "arrival" else None


def _as_date(seconds: float) -> datetime:
    """Return the date of a time since 1970: a file's or broker's time belongs to no other clock."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        raise StreamError("AX409", f"{seconds} seconds since 1970 are not a valid date") from None
