"""The bound on message times ahead of the receiver's clock.

The clock of a document follows its messages. A message dated 9999-12-31 would make every later
message late and hold back every other stream. So a message whose time is a date may be at most
`ahead` past the receiver's wall clock: one day, or the stream's declaration (`ahead="2h"`;
`ahead="none"` for no bound). Times that are plain numbers may follow any clock, and are checked
only for a stream that declares `ahead`.

A message is checked once, when it is received. A replayed message keeps the bound of that check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from time import time as wall_clock
from typing import TypeAlias

from axlog.document.times import LATEST, UNITS, Time, microseconds
from axlog.errors import StreamError

Clock: TypeAlias = "Callable[[], float]"
"""The receiver's clock: seconds since 1970, as `time.time`."""

DAY = 86_400_000_000
"""The default bound in microseconds, for streams that declare none."""
_DURATION = re.compile(r"([0-9]{1,12})(us|ms|s|m|h|d)")
_NUMBER = re.compile(r"\s*[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*(us|ms|s|m|h|d)?\s*", re.ASCII)


def read_ahead(text: str) -> int | None:
    """The value of an attribute `ahead` in microseconds; None if it is not valid.

    >>> read_ahead("2h"), read_ahead("none") == LATEST, read_ahead("soon")
    (7200000000, True, None)
    """
    if text == "none":
        return LATEST
    found = _DURATION.fullmatch(text)
    return None if found is None else int(found[1]) * UNITS[found[2]]


def is_date(at: Time) -> bool:
    """Whether a time is written as a date.

    >>> is_date("2024-05-01"), is_date("12.5"), is_date("3us"), is_date(12.5)
    (True, False, False, False)
    """
    return isinstance(at, date) or (isinstance(at, str) and _NUMBER.fullmatch(at) is None)


def latest_for(at: Time | None, declared: int | None, is_dated: bool, now: Clock) -> int | None:
    """The latest allowed time, in microseconds, of a message received now; None: any.

    `declared` is its stream's bound; `is_dated`, whether all times of the document are dates.
    """
    if at is None or (declared is None and not is_dated and not is_date(at)):
        return None
    return round(now() * 1_000_000) + (DAY if declared is None else declared)


def check_ahead(time: int | None, latest: int | None, stream: str) -> None:
    """Reject a time after the latest allowed one."""
    if latest is not None and time is not None and time > latest:
        raise StreamError(
            "AX417",
            f"the message is {_duration_text(time - latest)} further ahead of the receiver's clock"
            f" than the stream {stream!r} allows",
            advice='correct its date, or raise the bound of the stream: ahead="2d", ahead="none"',
        )


@dataclass(frozen=True)
class Horizon:
    """The bounds of the streams of one document, for the receivers of their messages."""

    declared: Mapping[str, int | None] = field(default_factory=dict)  # by stream
    is_dated: bool = False  # whether numbers are dates
    now: Clock = wall_clock

    def bounds_numbers(self, stream: str) -> bool:
        """Whether a number can be too far ahead as the time of a message of this stream."""
        return self.is_dated or self.declared.get(stream) is not None

    def check(self, stream: str, at: Time | None) -> None:
        """Reject a message received now if its time is too far ahead."""
        latest = latest_for(at, self.declared.get(stream), self.is_dated, self.now)
        if latest is not None and at is not None:
            check_ahead(microseconds(at), latest, stream)


def _duration_text(difference: int) -> str:
    days = difference // DAY
    return f"{days} days" if days else f"{difference / 1e6:.6f}".rstrip("0").rstrip(".") + " s"
