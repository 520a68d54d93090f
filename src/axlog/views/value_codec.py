"""Values of rows: in Python (`python_value`), in JSON (`plain_value`), in stores (`saved_value`).

Python gets dates and durations as objects of `datetime`, JSON as texts. Stores keep the type of
every value, so that `restored_value(saved_value(value)) == value`.
"""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from math import isfinite, isinf, isnan
from typing import Any

from axlog.document.ids import Id
from axlog.query.dates import (
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Time,
    TimeValue,
    YearMonthDuration,
    duration_of,
    time_value_of,
)

_DATES: dict[str, type[Any]] = {
    kind.type: kind for kind in (Date, DateTime, Time, Duration, DayTimeDuration, YearMonthDuration)
}
_EXACT = 1 << 53  # integers up to it are exact as doubles


_AS_THEY_ARE = frozenset({str, int, float, bool, Decimal, Id, type(None)})


def python_value(value: Any) -> Any:
    """A value for Python: dates, times of day and durations of days as objects of `datetime`.

    What these cannot hold stays exact as a text: a date with a zone, a year after 9999, fractions
    of microseconds, durations of months.

    >>> python_value(Date(0)), python_value(Date(0, 120))
    (datetime.date(1970, 1, 1), '1970-01-01+02:00')
    """
    if type(value) in _AS_THEY_ARE:
        return value
    if type(value) is tuple:
        return tuple([python_value(each) for each in value])
    made: date | time | timedelta | None
    if isinstance(value, Duration):
        made = _timedelta(value)
    elif isinstance(value, TimeValue):
        made = _datetime(value)
    else:
        return value
    return str(value) if made is None else made


def _timedelta(value: Duration) -> timedelta | None:
    if not isinstance(value, DayTimeDuration) or value.nanoseconds % 1000:
        return None
    try:
        return timedelta(microseconds=int(value.nanoseconds // 1000))
    except OverflowError:
        return None


def _datetime(value: TimeValue) -> date | datetime | time | None:
    hours, minutes, rest = value.time
    if rest % 1000:
        return None
    seconds, microseconds = divmod(int(rest) // 1000, 1_000_000)
    zone = None if value.zone is None else timezone(timedelta(minutes=value.zone))
    if isinstance(value, Time):
        return time(hours, minutes, seconds, microseconds, zone)
    year, month, day = value.date
    if not MINYEAR <= year <= MAXYEAR:
        return None
    if isinstance(value, Date):
        return None if zone is not None else date(year, month, day)
    return datetime(year, month, day, hours, minutes, seconds, microseconds, zone)


_DATE_LENGTH = len("2024-05-01")


def utc_of(shown: Any) -> datetime | None:
    """A date with a time of day that Python has, in UTC; None for other values."""
    if not isinstance(shown, datetime):
        return None
    if shown.tzinfo is None:
        return shown.replace(tzinfo=UTC)
    try:
        return shown.astimezone(UTC)
    except OverflowError:
        return None


def day_of(shown: Any) -> date | None:
    """A date that Python has, without its zone; None for other values."""
    if isinstance(shown, date) and not isinstance(shown, datetime):
        return shown
    try:
        return date.fromisoformat(str(shown)[:_DATE_LENGTH])
    except ValueError:
        return None


def plain_value(value: Any) -> Any:
    """A value for readers of JSON.

    >>> plain_value(Decimal("2.50")), plain_value(Decimal("0.1234567890123456789"))
    (2.5, '0.1234567890123456789')
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is tuple:
        return [plain_value(each) for each in value]
    if kind is Decimal:
        return _plain_decimal(value)
    if kind is float:
        return value if isfinite(value) else _special(value)
    return str(value)


def _plain_decimal(value: Decimal) -> int | float | str:
    if value == value.to_integral_value() and abs(value) <= _EXACT:
        return int(value)
    rounded = float(value)
    if isfinite(rounded) and Decimal(repr(rounded)) == value:
        return rounded
    return decimal_text(value)


def decimal_text(value: Decimal) -> str:
    """A decimal as a text without an exponent, as xs:decimal has it, unless that is very long."""
    return format(value, "f") if abs(value.adjusted()) <= 100 else str(value)


def _special(value: float) -> str:
    if isnan(value):
        return "NaN"
    return "-INF" if value < 0 and isinf(value) else "INF"


def saved_value(value: Any) -> Any:
    """A value for a store, as JSON.

    >>> saved_value((Decimal("2.50"), "a", None))
    {'values': [{'decimal': '2.50'}, 'a', None]}
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is Id:
        return {"id": value.key.hex(), "labels": list(value.labels or ())}
    if kind is tuple:
        return {"values": [saved_value(each) for each in value]}
    if kind is Decimal:
        return {"decimal": str(value)}
    if kind is float:
        return {"double": repr(value)}
    if kind in _DATES.values():
        return {"atom": [value.type, str(value)]}
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"a value of the type {kind.__name__} in a row")


def restored_value(saved: Any) -> Any:
    """The value that `saved_value` wrote.

    >>> restored_value({"values": [{"decimal": "2.50"}, "a", None]})
    (Decimal('2.50'), 'a', None)
    """
    if not isinstance(saved, dict):
        return saved
    ((kind, content), *_) = saved.items()
    if kind == "id":
        return Id(bytes.fromhex(content), tuple(saved["labels"]))
    if kind == "values":
        return tuple(restored_value(each) for each in content)
    if kind == "atom":
        return _atom(*content)
    return Decimal(content) if kind == "decimal" else float(content)


def _atom(type_: str, text: str) -> Any:
    """A date, time or duration."""
    kind = _DATES[type_]
    if issubclass(kind, Duration):
        return duration_of(text, kind)
    return time_value_of(text, kind)


def saved_row(counted: tuple[tuple[Any, ...], int]) -> Any:
    """A row and its count for a store."""
    row, count = counted
    return tuple(map(saved_value, row)), count


def restored_row(saved: Any) -> tuple[tuple[Any, ...], int]:
    """The row and the count that `saved_row` gave."""
    row, count = saved
    return tuple(map(restored_value, row)), count
