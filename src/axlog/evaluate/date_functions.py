"""The functions of dates, times and durations (F&O 3.1, sections 8 and 9).

The functions of the clock (current-date() and so on) are missing: an answer is a function of the
document.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from axlog.errors import ValueProblem
from axlog.evaluate.signatures import Function, function
from axlog.query.dates import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Exact,
    Time,
    TimeValue,
    adjusted,
    size_of,
)
from axlog.query.numbers import decimal_from

_UTC = DayTimeDuration(0, 0)
_MOST_ZONE = 14 * HOUR
_DECIMALS = 20


def _seconds(nanoseconds: Exact) -> Decimal:
    """Nanoseconds as seconds."""
    return decimal_from(int(Fraction(nanoseconds) * 10**_DECIMALS / SECOND), _DECIMALS)


def _of_date(part: int) -> Callable[[TimeValue], int]:
    return lambda value: value.date[part]


def _zone(value: TimeValue) -> DayTimeDuration | None:
    return None if value.zone is None else DayTimeDuration(0, value.zone * MINUTE)


def _part_of(size: int, unit: int) -> Callable[[Duration], int]:
    """A part of a duration, with the sign of the duration."""

    def part(value: Duration) -> int:
        found = int(size_of(value.nanoseconds) % size // unit)
        return -found if value.nanoseconds < 0 else found

    return part


def _days(value: Duration) -> int:
    found = int(size_of(value.nanoseconds) // DAY)
    return -found if value.nanoseconds < 0 else found


def _seconds_of(value: Duration) -> Decimal:
    found = _seconds(size_of(value.nanoseconds) % MINUTE)
    return found.copy_negate() if found and value.nanoseconds < 0 else found


def _years(value: Duration) -> int:
    return abs(value.months) // 12 * (-1 if value.months < 0 else 1)


def _months(value: Duration) -> int:
    return abs(value.months) % 12 * (-1 if value.months < 0 else 1)


def _adjusted(value: TimeValue | None, *zones: DayTimeDuration | None) -> TimeValue | None:
    """The same instant in another zone; by default, the implicit zone, UTC."""
    if value is None:
        return None
    zone = zones[0] if zones else _UTC
    if zone is None:
        return adjusted(value, None)
    if zone.nanoseconds % MINUTE or size_of(zone.nanoseconds) > _MOST_ZONE:
        raise ValueProblem("FODT0003", f"{zone} is not a zone", expected="-PT14H to PT14H")
    return adjusted(value, int(zone.nanoseconds // MINUTE))


def _date_time(date: Date | None, time: Time | None) -> DateTime | None:
    if date is None or time is None:
        return None
    if date.zone is not None and time.zone is not None and date.zone != time.zone:
        raise ValueProblem("FORG0008", "the date and the time have two zones")
    return DateTime(date.local + time.local, time.zone if date.zone is None else date.zone)


def _part(type_: str, read: Callable[[Any], object]) -> Function:
    """A function of one value that may be missing."""
    return function(f"{type_}?", lambda value: None if value is None else read(value))


def _hours(value: TimeValue) -> int:
    return value.time[0]


def _minutes(value: TimeValue) -> int:
    return value.time[1]


def _clock_seconds(value: TimeValue) -> Decimal:
    return _seconds(value.time[2])


DATE_FUNCTIONS: dict[str, Function] = {
    **{
        f"{name}-from-{type_}": _part(type_, _of_date(number))
        for type_ in ("date", "dateTime")
        for number, name in enumerate(("year", "month", "day"))
    },
    **{
        f"{name}-from-{type_}": _part(type_, read)
        for type_ in ("dateTime", "time")
        for name, read in (
            ("hours", _hours),
            ("minutes", _minutes),
            ("seconds", _clock_seconds),
        )
    },
    **{f"timezone-from-{type_}": _part(type_, _zone) for type_ in ("date", "dateTime", "time")},
    **{
        f"adjust-{type_}-to-timezone": function(f"{type_}? [dayTimeDuration?]", _adjusted)
        for type_ in ("date", "dateTime", "time")
    },
    "years-from-duration": _part("duration", _years),
    "months-from-duration": _part("duration", _months),
    "days-from-duration": _part("duration", _days),
    "hours-from-duration": _part("duration", _part_of(DAY, HOUR)),
    "minutes-from-duration": _part("duration", _part_of(HOUR, MINUTE)),
    "seconds-from-duration": _part("duration", _seconds_of),
    "dateTime": function("date? time?", _date_time),
}
