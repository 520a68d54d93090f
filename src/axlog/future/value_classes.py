"""Sample values that represent all numbers, moments and times of day under given comparisons.

Constants divide numbers (and moments, and times of day) into cells: each constant, the interval
between two neighbours, and the intervals below and above all. Comparisons with the constants cannot
distinguish two values of one cell, so one value of each cell is enough to try. Callers handle texts
themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from axlog.query.formula import Formula
from axlog.query.pattern import Constant, Moment, Number
from axlog.query.values import ORDERS, ValueKind, key_of, parted

_HALF = Fraction(1, 2)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400_000_000
_LEAST_TIME, _GREATEST_TIME = -14 * 3_600_000_000, 38 * 3_600_000_000 - 1


def needs_types(operator: str) -> bool:
    """Whether an operator reads values as a type for which there are no cells."""
    return parted(operator)[1] not in (None, "xs:string")


def is_of_times(operator: str, operand: object) -> bool:
    """Whether a comparison is one of moments or of times of day."""
    if isinstance(operand, Moment):
        return True
    is_order = operator in ORDERS and isinstance(operand, str)
    return is_order and key_of(str(operand))[0] in (ValueKind.MOMENT, ValueKind.TIME)


def samples_of(constants: Iterable[Constant], share: Fraction = _HALF) -> list[str]:
    """One value of each cell of numbers, moments and times; `share` is its position inside."""
    numbers: set[Fraction] = set()
    moments: set[Fraction] = set()
    times: set[Fraction] = set()
    for constant in constants:
        if isinstance(constant, Formula):
            continue  # no cells: the callers try candidates, or refuse
        if isinstance(constant, Number):
            numbers.add(Fraction(constant.value))
        elif isinstance(constant, Moment):
            moments.add(Fraction(constant.microseconds))
        elif isinstance(constant, str):
            kind, value = key_of(constant)
            if kind is not ValueKind.TEXT:
                {0: numbers, 1: moments, 2: times}[int(kind)].add(Fraction(value))
        else:
            numbers.add(Fraction(Decimal(repr(constant))))
    found = [_number_text(each) for each in _cell_values(numbers, Fraction(1), share)]
    found += [_moment_text(each) for each in _cell_values(moments, Fraction(_DAY), share)]
    found += [_time_text(each) for each in _cell_values(times, Fraction(1), share)]
    return list(dict.fromkeys(text for text in found if text))


def _cell_values(values: set[Fraction], step: Fraction, share: Fraction) -> list[Fraction]:
    """The constants, one value between each two neighbours, and one on either side."""
    if not values:
        return []
    ordered = sorted(values)
    ends = [ordered[0] - step, *ordered, ordered[-1] + step]
    return [*ends, *(low + (high - low) * share for low, high in pairwise(ends))]


def _number_text(value: Fraction) -> str:
    return _decimals(value) or str(float(value))


def _decimals(value: Fraction) -> str:
    """A fraction as a decimal; empty if it has more than 40 decimal places."""
    scaled = value * 10**40
    if scaled.denominator != 1:
        return ""
    sign, digits = "-" if scaled < 0 else "", f"{abs(scaled.numerator):041d}"
    rest = digits[-40:].rstrip("0")
    return f"{sign}{digits[:-40]}{'.' if rest else ''}{rest}"


def _moment_text(value: Fraction) -> str:
    """An instant as a date and time in UTC; empty if it cannot be written."""
    seconds = value // 1_000_000
    part = _decimals(value / 1_000_000 - seconds)
    try:
        whole = (_EPOCH + timedelta(seconds=int(seconds))).replace(tzinfo=None)
    except OverflowError:
        return ""
    return f"{whole.isoformat()}{part.removeprefix('0')}Z" if part else ""


def _time_text(value: Fraction) -> str:
    if not _LEAST_TIME <= value <= _GREATEST_TIME:
        return ""
    zone, at = "Z", value
    if value < 0:
        zone, at = "+14:00", value + 14 * 3_600_000_000
    elif value >= _DAY:
        zone, at = "-14:00", value - 14 * 3_600_000_000
    text = _moment_text(at)
    return text.partition("T")[2].removesuffix("Z") + zone if text else ""
