"""How far ahead of the receiver's clock a message may be dated.

The clock of a document is that of its messages: a message dated 9999-12-31 would make everything
that comes after it late, and hold back every other stream. So a message whose time is a date may be
at most `ahead` past the receiver's wall clock: one day, or what its stream declares (`ahead="2h"`;
`ahead="none"` for no bound). Where times are plain numbers they may be of any clock, and only a
stream that declares `ahead` is judged.

The verdict is taken once, when a message is received; what is replayed has the bound that it was
judged by.
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
"""Microseconds that a message may be ahead, unless its stream declares something else."""
_DURATION = re.compile(r"([0-9]{1,12})(us|ms|s|m|h|d)")
_NUMBER = re.compile(r"\s*[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*(us|ms|s|m|h|d)?\s*", re.ASCII)


def read_ahead(text: str) -> int | None:
    """The microseconds that an attribute `ahead` says; None if it says nothing of the kind.

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
    """The latest time, in microseconds, that a message may have which comes now; None: any.

    `declared` is what its stream says; `is_dated`, that all times of the document are dates.
    """
    if at is None or (declared is None and not is_dated and not is_date(at)):
        return None
    return round(now() * 1_000_000) + (DAY if declared is None else declared)


def check_ahead(time: int | None, latest: int | None, stream: str) -> None:
    """Refuse a time that lies beyond the latest one."""
    if latest is not None and time is not None and time > latest:
        raise StreamError(
            "AX417",
            f"the message is {_apart(time - latest)} further ahead of the receiver's clock than the"
            f" stream {stream!r} may be",
            advice='correct its date, or declare more on the stream: ahead="2d", ahead="none"',
        )


@dataclass(frozen=True)
class Horizon:
    """How far ahead the streams of one document may be, for whoever receives their messages."""

    declared: Mapping[str, int | None] = field(default_factory=dict)  # by stream
    is_dated: bool = False  # whether numbers are dates, too
    now: Clock = wall_clock

    def check(self, stream: str, at: Time | None) -> None:
        """Refuse a message that comes now with this time."""
        latest = latest_for(at, self.declared.get(stream), self.is_dated, self.now)
        if latest is not None and at is not None:
            check_ahead(microseconds(at), latest, stream)


def _apart(difference: int) -> str:
    days = difference // DAY
    return f"{days} days" if days else f"{difference / 1e6:.6f}".rstrip("0").rstrip(".") + " s"
