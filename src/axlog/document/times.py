"""Times at the borders of the API: the forms that are accepted and returned.

Inside, a time is an integer: microseconds since 1970-01-01T00:00:00Z. Callers never see it.

Accepted (`microseconds`): seconds (`int`, `float`, `Fraction`, `Decimal`), a `timedelta`
since 1970, a `datetime` or `date` (UTC unless aware), and texts: seconds (`12.5`), a number with a
unit (`3us`, `2h`; us, ms, s, m, h, d), and ISO dates and times. A time between two microseconds is
rounded to the nearest. A text of digits alone is seconds, never a date.

Returned (`shown`): seconds, or an aware `datetime` in UTC if the document was made with
`times="dates"`. Seconds are an `int` if they are whole, else the nearest `float` if that float
means the same microsecond (from 1698 to 2242), else a `Fraction`. So a returned time can be passed
back and is exactly the same time. A time that no `datetime` can hold (outside the years 1 to 9999)
is returned as seconds. In JSON (`plain`) a datetime is an ISO text that ends in Z, and a `Fraction`
is a text such as `-9000000000000001us`.

>>> microseconds(12.5), microseconds("3us"), microseconds("1970-01-01T00:00:01Z")
(12500000, 3, 1000000)
>>> shown(12_500_000), shown(7_000_000), shown(12_500_000, "dates")
(12.5, 7, datetime.datetime(1970, 1, 1, 0, 0, 12, 500000, tzinfo=datetime.timezone.utc))
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from axlog.errors import QueryError, StreamError

Time: TypeAlias = "int | float | Fraction | Decimal | timedelta | datetime | date | str"
"""A time in any accepted form."""
Shown: TypeAlias = "float | Any"
"""A returned time: `int`, `float`, `Fraction` or `datetime`, as its document is set to return."""
Times: TypeAlias = Literal["seconds", "dates"]
"""The form in which a document returns times."""

EARLIEST, LATEST = -(1 << 63), (1 << 63) - 1
"""The first and last time that a document can store, in microseconds."""
SECOND = 1_000_000
UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3_600 * SECOND,
    "d": 86_400 * SECOND,
}
_SECONDS = re.compile(
    r"\s*([+-]?\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,2})?)\s*(us|ms|s|m|h|d)?\s*", re.ASCII
)
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DATE = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST_DATE = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_EXACT = 1 << 33  # seconds below which neighbouring floats are less than a microsecond apart
_PRODUCT = float(1 << 51)
"""Below it a product of floats is off by 1/8 at most, which cannot change the nearest integer of a
product that is within 1/4 of it."""


def microseconds(given: Time) -> int:
    """A time as microseconds since 1970.

    >>> microseconds(-0.000001), microseconds(timedelta(minutes=1)), microseconds("2h")
    (-1, 60000000, 7200000000)
    """
    if type(given) is int:
        found = given * SECOND
    elif type(given) is float and isfinite(given):
        scaled = given * SECOND
        if -_PRODUCT < scaled < _PRODUCT and abs(scaled - round(scaled)) <= 0.25:
            return round(scaled)
        over, under = given.as_integer_ratio()  # a product of floats would be rounded twice
        found = round(Fraction(over * SECOND, under)) if under > 1 else over * SECOND
    else:
        found = _from_other(given)
    if not EARLIEST <= found <= LATEST:
        raise StreamError("AX409", "the time does not fit in 64 bits of microseconds")
    return found


def exact_microseconds(given: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Times in seconds as microseconds; None if one is not finite, or so large that it may be an
    integer that is no float.
    """
    with np.errstate(all="ignore"):
        scaled = given * SECOND
    if not (np.abs(scaled) < _PRODUCT).all():
        return None
    rounded = np.rint(scaled)
    found = rounded.astype(np.int64)
    for at in np.flatnonzero(np.abs(scaled - rounded) > 0.25):
        found[at] = microseconds(float(given[at]))
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
        return round(given * SECOND)
    if isinstance(given, Decimal) and given.is_finite() and abs(given.adjusted()) < 40:
        return round(Fraction(given) * SECOND)
    raise _no_time(given)


def _from_text(text: str) -> datetime | Fraction:
    found = _SECONDS.fullmatch(text)  # a longer exponent would take very long to compute
    if found is not None:
        return Fraction(found[1]) * Fraction(UNITS[found[2] or "s"], SECOND)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise _no_time(text[:100]) from None


def _no_time(given: object) -> StreamError:
    return StreamError(
        "AX409",
        f"{given!r} is not a time",
        expected="seconds as a number, a timedelta, a datetime, a text such as 3us or 2h,"
        " or an ISO date and time",
    )


def shown(time: int, times: Times = "seconds") -> Shown:
    """Microseconds as a document returns them.

    >>> shown(-1), shown(9_000_000_000_000_001)
    (-1e-06, Fraction(9000000000000001, 1000000))
    """
    if times == "dates" and _FIRST_DATE <= time <= _LAST_DATE:
        return _EPOCH + timedelta(microseconds=time)
    whole, rest = divmod(time, SECOND)
    if not rest:
        return whole
    return time / SECOND if -_EXACT < whole < _EXACT else Fraction(time, SECOND)


def plain(time: Shown) -> int | float | str:
    """A returned time for JSON: seconds as a number, a date as an ISO text."""
    if isinstance(time, datetime):
        return time.isoformat().removesuffix("+00:00") + "Z"
    return f"{microseconds(time)}us" if isinstance(time, Fraction) else time


def checked_times(given: str) -> Times:
    """The option `times`; raises AX211 for an unknown value."""
    if given in ("seconds", "dates"):
        return cast("Times", given)
    raise QueryError("AX211", f"times={given!r}", expected="seconds or dates")


def start_of(at: Time | None, times: Times) -> int:
    """The time in microseconds at which a document starts: its clock and the time of its nodes.

    The default is 0 if times are seconds. If they are dates it is the earliest date, so that no
    date lies before the clock.
    """
    if at is not None:
        return microseconds(at)
    return _FIRST_DATE if times == "dates" else 0
