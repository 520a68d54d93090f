"""Times in query texts as integer microseconds, and back: dates, durations, seconds.

Time is integer microseconds since 1970-01-01T00:00:00Z everywhere (docs/meaning.md, Time). A time
with a higher precision is refused (AX207) instead of rounded. A date without a zone is in UTC.
Years are 1 to 9999, as in XML Schema without its extensions. Not handled: leap seconds, `24:00:00`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

from axlog.document.times import SECOND, UNITS
from axlog.errors import Place, QueryError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
EARLIEST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND

_DATE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6})0*)?)?)?"
    r"(?:Z|([+-])(\d\d):(\d\d))?",
    re.ASCII,
)
# Larger than any float: longer numbers would only cost time.
_MOST_DIGITS = 100
_MOST_EXPONENT = 400


def microseconds_of_date(text: str, place: Place | None = None) -> int:
    """The microseconds of `2024-05-01`, `2024-05-01T10:00Z` or `2024-05-01T10:00:00.5+02:00`."""
    found = _DATE.fullmatch(text.strip())
    if found is None:
        raise _no_date(text, place)
    year, month, day, hour, minute, second, fraction, sign, ahead, past = found.groups()
    try:
        zone = timedelta(hours=int(ahead or 0), minutes=int(past or 0))
        instant = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "0").ljust(6, "0")),
            timezone(-zone if sign == "-" else zone),
        )
    except ValueError:
        raise _no_date(text, place) from None
    microseconds = (instant - _EPOCH) // _MICROSECOND
    if not EARLIEST <= microseconds <= LATEST:
        raise _no_date(text, place)
    return microseconds


def _no_date(text: str, place: Place | None) -> QueryError:
    return QueryError(
        "AX207",
        f"{text!r} is not a date",
        place=place,
        expected="a date as 2024-05-01 or 2024-05-01T10:00:00Z, down to microseconds",
    )


def date_text(microseconds: int) -> str:
    """The canonical text of a moment: a date at midnight UTC, else a date and a time ending in Z.

    >>> date_text(0), date_text(1_500_000)
    ('1970-01-01', '1970-01-01T00:00:01.500000Z')
    """
    instant = (_EPOCH + microseconds * _MICROSECOND).replace(tzinfo=None)
    if microseconds % UNITS["d"] == 0:
        return instant.date().isoformat()
    return instant.isoformat() + "Z"


def exact_number(text: str, place: Place | None = None) -> Fraction:
    """A decimal number as written, without rounding."""
    exponent = text.lower().partition("e")[2]
    if len(text) > _MOST_DIGITS or (exponent and abs(int(exponent)) > _MOST_EXPONENT):
        raise QueryError(
            "AX207",
            "the number is too long" if len(text) > _MOST_DIGITS else "the exponent is too large",
            place=place,
            expected=f"at most {_MOST_DIGITS} digits, exponents up to {_MOST_EXPONENT}",
        )
    return Fraction(text)


def seconds_text(microseconds: int) -> str:
    """Microseconds as exact seconds, or with the unit `us` if seconds would need many decimals.

    >>> seconds_text(50_000_000_000), seconds_text(-1_500_000), seconds_text(7)
    ('50000', '-1.5', '7us')
    """
    if microseconds % UNITS["ms"]:
        return f"{microseconds}us"
    sign = "-" if microseconds < 0 else ""
    whole, rest = divmod(abs(microseconds), SECOND)
    decimals = f"{rest:06d}".rstrip("0")
    return f"{sign}{whole}.{decimals}" if decimals else f"{sign}{whole}"
