"""Times as the user writes them, as integer microseconds.

Seconds as numbers, `timedelta`s, dates and times (aware or taken as UTC), ISO texts. DESIGN
section 3.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from math import isfinite
from typing import TypeAlias

from axlog.errors import StreamError

Time: TypeAlias = "int | float | Fraction | timedelta | datetime | date | str"
_SECONDS = re.compile(r"\s*[+-]?\d{1,40}(\.\d{0,40})?([eE][+-]?\d{1,2})?\s*", re.ASCII)
EARLIEST, LATEST = -(1 << 63), (1 << 63) - 1
"""Microseconds that a document has room for."""
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(given: Time) -> int:
    """A time as microseconds.

    >>> microseconds(12.5), microseconds("1970-01-01T00:00:01Z"), microseconds(timedelta(minutes=1))
    (12500000, 1000000, 60000000)
    """
    if type(given) is int:
        found = given * 1_000_000
    elif type(given) is float and isfinite(given):
        found = round(given * 1_000_000)
    else:
        found = _from_other(given)
    if not EARLIEST <= found <= LATEST:
        raise StreamError("AX409", "the time is beyond any time")
    return found


def _from_other(given: Time) -> int:
    if isinstance(given, str):
        given = _from_text(given)
    if isinstance(given, datetime):
        aware = given if given.tzinfo is not None else given.replace(tzinfo=UTC)
        return (aware - _EPOCH) // _MICROSECOND
    if isinstance(given, date):
        return (datetime.combine(given, time(), UTC) - _EPOCH) // _MICROSECOND
    if isinstance(given, timedelta):
        return given // _MICROSECOND
    if isinstance(given, Fraction):
        return round(given * 1_000_000)
    raise _no_time(given)


def _from_text(text: str) -> datetime | Fraction:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    if _SECONDS.fullmatch(text) is None:  # a longer exponent would take for ever
        raise _no_time(text[:100])
    return Fraction(text)


def _no_time(given: object) -> StreamError:
    return StreamError(
        "AX409",
        f"{given!r} is not a time",
        expected="seconds as a number, a timedelta, a datetime, or an ISO date and time",
    )
