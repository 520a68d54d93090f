"""Dates, times and durations as values: the types of XML Schema, with exact arithmetic.

`Date`, `DateTime` and `Time` keep the local time and the zone, as written; two of them are equal if
their instants are (the implicit zone is UTC). A `Duration` has months and nanoseconds, of one sign.
All are hashable, and their text is the canonical form of XML Schema.

Nanoseconds are integers; a literal with more than nine decimals has a `Fraction`, which sums and
differences keep. In a quotient, seconds are rounded to 20 decimals; months are rounded to whole
months. Years have at most twelve digits, and durations at most 2,147,483,647
months; results beyond are refused (FODT0001, FODT0002).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeVar

from axlog.errors import ValueProblem

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_MOST_YEAR = 999_999_999_999
_MOST_MONTHS = 2**31 - 1
_MOST_NANOSECONDS = 10**340
_ZONE = r"(Z|[+-]\d\d:\d\d)?"
_DAY_PART = r"(-?(?:[1-9]\d{4,11}|\d{4}))-(\d\d)-(\d\d)"
_TIME_PART = r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,400}))?"
_DATE = re.compile(_DAY_PART + _ZONE, re.ASCII)
_DATE_TIME = re.compile(f"{_DAY_PART}T{_TIME_PART}{_ZONE}", re.ASCII)
_TIME = re.compile(_TIME_PART + _ZONE, re.ASCII)
_DURATION = re.compile(
    r"(-)?P(?=\d|T\d)(?:(\d{1,15})Y)?(?:(\d{1,15})M)?(?:(\d{1,15})D)?"
    r"(?:T(?=\d)(?:(\d{1,18})H)?(?:(\d{1,18})M)?(?:(\d{1,18})(?:\.(\d{1,400}))?S)?)?",
    re.ASCII,
)
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SPACE = " \t\r\n"

Exact = int | Fraction
"""Nanoseconds."""


# The calendar ------------------------------------------------------------------------------------


def days_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970-01-01 in the Gregorian calendar with a year 0; None for an invalid date."""
    if not 1 <= month <= 12 or not 1 <= day <= length_of(year, month):
        return None
    shifted = year - (month <= 2)  # years that begin in March: the leap day is their last
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """The year, month and day of a number of days since 1970-01-01."""
    era, of_era = divmod(days + 719_468, 146_097)
    years = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + years + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def length_of(year: int, month: int) -> int:
    """The number of days of a month."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _LENGTHS[month - 1] + (is_leap and month == 2)


def whole(value: Exact) -> Exact:
    """Nanoseconds as an integer, if they are whole."""
    return value if isinstance(value, int) or value.denominator != 1 else value.numerator


def size_of(value: Exact) -> Exact:
    """Nanoseconds without their sign."""
    return -value if value < 0 else value


def _fraction(digits: str | None) -> Exact:
    """Nanoseconds of the decimals of a second."""
    if not digits:
        return 0
    if len(digits) <= 9:
        return int(digits.ljust(9, "0"))
    return whole(Fraction(int(digits) * SECOND, 10 ** len(digits)))


def _seconds_text(nanoseconds: Exact) -> str:
    """Seconds as a decimal; at most 640 decimals."""
    seconds, rest = divmod(nanoseconds, SECOND)
    if not rest:
        return str(seconds)
    if isinstance(rest, int):
        digits = f"{rest:09d}"
    else:
        places = 20
        while rest * 10**places % SECOND and places < 400:
            places *= 2
        digits = f"{int(rest * 10**places / SECOND):0{places}d}"
    return f"{seconds}.{digits.rstrip('0')}"


# Durations ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Duration:
    """An xs:duration: months and nanoseconds, of one sign.

    >>> str(Duration(14, 3 * DAY + 4 * HOUR)), str(Duration(0, 0))
    ('P1Y2M3DT4H', 'PT0S')
    """

    months: int = 0
    nanoseconds: Exact = 0
    type: ClassVar[str] = "xs:duration"

    def __post_init__(self) -> None:
        if abs(self.months) > _MOST_MONTHS or size_of(self.nanoseconds) > _MOST_NANOSECONDS:
            raise ValueProblem("FODT0002", "a duration is too long")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Duration):
            return NotImplemented
        return self.months == other.months and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(("duration", self.months, self.nanoseconds))

    def __str__(self) -> str:
        months, nanoseconds = abs(self.months), size_of(self.nanoseconds)
        sign = "-" if self.months < 0 or self.nanoseconds < 0 else ""
        years, months = divmod(months, 12)
        days, rest = divmod(nanoseconds, DAY)
        hours, rest = divmod(rest, HOUR)
        minutes, rest = divmod(rest, MINUTE)
        day = _units((years, "Y"), (months, "M"), (days, "D"))
        time = _units((hours, "H"), (minutes, "M"))
        if rest:
            time += f"{_seconds_text(rest)}S"
        if not day and not time:
            return self._zero()
        return f"{sign}P{day}{'T' if time else ''}{time}"

    def _zero(self) -> str:
        return "PT0S"


def _units(*numbers: tuple[Exact, str]) -> str:
    return "".join(f"{number}{unit}" for number, unit in numbers if number)


class DayTimeDuration(Duration):
    """An xs:dayTimeDuration: no months.

    >>> str(DayTimeDuration(0, 36 * HOUR))
    'P1DT12H'
    """

    __slots__ = ()
    type: ClassVar[str] = "xs:dayTimeDuration"


class YearMonthDuration(Duration):
    """An xs:yearMonthDuration: months only.

    >>> str(YearMonthDuration(-15))
    '-P1Y3M'
    """

    __slots__ = ()
    type: ClassVar[str] = "xs:yearMonthDuration"

    def _zero(self) -> str:
        return "P0M"


def duration_of(text: str, kind: type[Duration] = Duration) -> Duration | None:
    """The duration that a text writes; None if it writes none of this type.

    >>> duration_of("P30D", DayTimeDuration) == DayTimeDuration(0, 30 * DAY)
    True
    """
    found = _DURATION.fullmatch(text.strip(_SPACE))
    if found is None:
        return None
    sign, years, months, days, hours, minutes, seconds, decimals = found.groups()
    if kind is DayTimeDuration and (years or months):
        return None
    if kind is YearMonthDuration and (days or hours or minutes or seconds or "T" in text):
        return None
    together = int(years or 0) * 12 + int(months or 0)
    exact: Exact = int(days or 0) * DAY + int(hours or 0) * HOUR + int(minutes or 0) * MINUTE
    exact += int(seconds or 0) * SECOND + _fraction(decimals)
    return kind(-together, -exact) if sign else kind(together, exact)


# Dates and times ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TimeValue:
    """A date, a date and time, or a time of day.

    `local` is in nanoseconds: since 1970-01-01T00:00:00 of its zone, or since midnight. `zone` is
    the offset from UTC in minutes, or None.
    """

    local: Exact
    zone: int | None = None
    type: ClassVar[str] = "xs:anyAtomicType"

    @property
    def instant(self) -> Exact:
        """Nanoseconds since 1970-01-01T00:00:00Z (of a time of day: on that day)."""
        return self.local - (self.zone or 0) * MINUTE

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimeValue) or other.type != self.type:
            return NotImplemented
        return self.instant == other.instant

    def __hash__(self) -> int:
        return hash((self.type, self.instant))

    @property
    def date(self) -> tuple[int, int, int]:
        """The year, month and day."""
        return date_of(int(self.local // DAY))

    @property
    def time(self) -> tuple[int, int, Exact]:
        """The hour, the minute, and the nanoseconds of the minute."""
        hours, rest = divmod(self.local % DAY, HOUR)
        minutes, rest = divmod(rest, MINUTE)
        return int(hours), int(minutes), rest

    def __str__(self) -> str:
        raise NotImplementedError

    def _date_text(self) -> str:
        year, month, day = self.date
        return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"

    def _time_text(self) -> str:
        hours, minutes, rest = self.time
        padding = "0" if rest < 10 * SECOND else ""
        return f"{hours:02d}:{minutes:02d}:{padding}{_seconds_text(rest)}"

    def _zone_text(self) -> str:
        return zone_text(self.zone)


def zone_text(zone: int | None) -> str:
    """A zone as XML Schema writes it."""
    if not zone:
        return "" if zone is None else "Z"
    return f"{'-' if zone < 0 else '+'}{abs(zone) // 60:02d}:{abs(zone) % 60:02d}"


class Date(TimeValue):
    """An xs:date.

    >>> str(Date(0)), str(Date(DAY, 120))
    ('1970-01-01', '1970-01-02+02:00')
    """

    __slots__ = ()
    type: ClassVar[str] = "xs:date"

    def __str__(self) -> str:
        return self._date_text() + self._zone_text()


class DateTime(TimeValue):
    """An xs:dateTime.

    >>> str(DateTime(1_500_000_000, 0))
    '1970-01-01T00:00:01.5Z'
    """

    __slots__ = ()
    type: ClassVar[str] = "xs:dateTime"

    def __str__(self) -> str:
        return f"{self._date_text()}T{self._time_text()}{self._zone_text()}"


class Time(TimeValue):
    """An xs:time.

    >>> str(Time(10 * HOUR))
    '10:00:00'
    """

    __slots__ = ()
    type: ClassVar[str] = "xs:time"

    def __str__(self) -> str:
        return self._time_text() + self._zone_text()


_Kind = TypeVar("_Kind", bound=TimeValue)


def made(kind: type[_Kind], local: Exact, zone: int | None) -> _Kind:
    """A result; refused if its year has more than twelve digits."""
    if size_of(local) > (_MOST_YEAR - 1970) * 365 * DAY:
        raise ValueProblem("FODT0001", "a date is out of range")
    return kind(local, zone)


def time_value_of(text: str, kind: type[_Kind]) -> _Kind | None:
    """The date or time that a text writes; None if it writes none of this type.

    >>> str(time_value_of(" 2024-02-29T24:00:00Z ", DateTime))
    '2024-03-01T00:00:00Z'
    """
    form = {Date: _DATE, DateTime: _DATE_TIME, Time: _TIME}[kind]
    found = form.fullmatch(text.strip(_SPACE))
    if found is None:
        return None
    *parts, written = found.groups()
    zone = _zone_of(written)
    if written is not None and zone is None:
        return None
    local: Exact = 0
    if kind is not Time:
        days = days_of(int(parts[0]), int(parts[1]), int(parts[2]))
        if days is None or parts[0] == "-0000":
            return None
        local = days * DAY
    if kind is not Date:
        hours, minutes, seconds = (int(part) for part in parts[-4:-1])
        rest = _fraction(parts[-1])
        is_midnight = hours == 24 and minutes == seconds == rest == 0
        if (hours > 23 and not is_midnight) or minutes > 59 or seconds > 59:
            return None
        local += hours * HOUR + minutes * MINUTE + seconds * SECOND + rest
    return kind(local % DAY if kind is Time else local, zone)


def _zone_of(written: str | None) -> int | None:
    """Minutes ahead of UTC; None without a zone, or if the zone exceeds 14 hours."""
    if written is None or written == "Z":
        return None if written is None else 0
    hours, minutes = int(written[1:3]), int(written[4:])
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        return None
    return (hours * 60 + minutes) * (-1 if written[0] == "-" else 1)


def is_beyond_limits(text: str, kind: type[TimeValue] | type[Duration]) -> bool:
    """Whether a text writes a date or a duration that is too large to be represented.

    >>> is_beyond_limits("99999999999999-02-01", Date), is_beyond_limits("9999-02-30", Date)
    (True, False)
    """
    trimmed = text.strip(_SPACE)
    if issubclass(kind, Duration):
        return duration_of(_LONG_NUMBER.sub("1", trimmed), kind) is not None
    found = _LONG_YEAR.match(trimmed)
    if found is None:
        return False
    year = 2000 + int(found[2][-12:]) % 400  # the same leap years, by the last digits
    return time_value_of(f"{year}{trimmed[found.end() :]}", kind) is not None


_LONG_NUMBER = re.compile(r"\d{15,}(?=[YMDHS.])", re.ASCII)
_LONG_YEAR = re.compile(r"(-)?([1-9]\d{11,})(?=-)", re.ASCII)


# Arithmetic --------------------------------------------------------------------------------------


def shifted(value: _Kind, duration: Duration, sign: int = 1) -> _Kind:
    """A date or time plus (or minus) a duration: first its months, then the rest.

    >>> str(shifted(time_value_of("2024-01-31", Date), Duration(1)))
    '2024-02-29'
    """
    local = value.local
    kind = type(value)
    if duration.months and kind is not Time:
        year, month, day = value.date
        years, months = divmod(year * 12 + month - 1 + sign * duration.months, 12)
        day = min(day, length_of(years, months + 1))
        days = days_of(years, months + 1, day)
        assert days is not None
        local = days * DAY + local % DAY
    local = whole(local + sign * duration.nanoseconds)
    if kind is Date:
        local = local // DAY * DAY
    return made(kind, local % DAY if kind is Time else local, value.zone)


def between(one: TimeValue, other: TimeValue) -> DayTimeDuration:
    """The time from the second to the first, of one type."""
    return DayTimeDuration(0, whole(one.instant - other.instant))


def adjusted(value: _Kind, zone: int | None) -> _Kind:
    """The same instant in another zone; without a zone before, the same local time in it."""
    if zone is None or value.zone is None:
        return type(value)(value.local, zone)
    local = value.instant + zone * MINUTE
    if type(value) is Date:
        local = local // DAY * DAY
    return made(type(value), local % DAY if type(value) is Time else local, zone)


def half_up(value: Exact) -> int:
    """The nearest integer; a half goes toward positive infinity."""
    return int((2 * value + 1) // 2)


def scaled(duration: Duration, factor: Fraction, decimals: int = 400) -> Duration:
    """A duration times a number; the seconds have at most so many decimals."""
    exact = duration.nanoseconds * factor
    finest = 10 ** (decimals - 9)
    if finest % exact.denominator:
        exact = Fraction(half_up(exact * finest), finest)
    return type(duration)(half_up(duration.months * factor), whole(exact))
