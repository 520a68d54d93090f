"""Exact sums: numbers that are added and taken away again leave no trace."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, DecimalException
from fractions import Fraction
from math import inf, isfinite, nan
from typing import Any, TypeAlias

from axlog.errors import ValueProblem
from axlog.evaluate.arithmetic import ARITHMETIC
from axlog.query.dates import DayTimeDuration, Duration, YearMonthDuration, whole
from axlog.query.numbers import DECIMALS

EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""The context of sums: nothing is rounded."""
_plus, _times = EXACT.add, EXACT.multiply
_shown = DECIMALS.add
"""An exact sum; raises if it has more than `MOST_DIGITS` digits."""
ZERO = Decimal(0)

DIGITS = 34
"""Significant digits of a quotient that has no end; more if it needs them for eighteen decimals."""


def quotient(total: int | Decimal, count: int) -> Decimal:
    """A total divided by a count: exact where the quotient ends within `DIGITS` digits.

    >>> quotient(10, 4), quotient(Decimal(2), 3)
    (Decimal('2.5'), Decimal('0.6666666666666666666666666666666667'))
    """
    exact = Decimal(total)
    digits = max(DIGITS, exact.adjusted() + 1 + 18)
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN).divide(exact, Decimal(count))


class FloatSum:
    """The exact sum of floats: a whole number of units of a power of two."""

    __slots__ = ("count", "highs", "lows", "nans", "shift", "units")

    def __init__(self) -> None:
        self.count = 0
        self.units = 0
        self.shift = 0  # a unit is 2 ** -shift
        self.nans = 0
        self.highs = 0  # how often inf was added
        self.lows = 0  # how often -inf was added

    def add(self, value: float, count: int) -> None:
        """Add a value so many times; a negative count takes it away."""
        self.count += count
        if isfinite(value):
            above, below = value.as_integer_ratio()
            self.add_units(above * count, below.bit_length() - 1)
        elif value != value:
            self.nans += count
        elif value > 0:
            self.highs += count
        else:
            self.lows += count

    def add_units(self, units: int, shift: int) -> None:
        """Add a whole number of units of `2 ** -shift`."""
        if shift > self.shift:
            self.units <<= shift - self.shift
            self.shift = shift
        self.units += units << (self.shift - shift)

    def divided(self, count: int, more: Fraction) -> float:
        """The sum with another number, divided by a count, rounded once."""
        if self.nans or (self.highs and self.lows):
            return nan
        if self.highs or self.lows:
            return inf if self.highs else -inf
        above, below = self.units, 1 << self.shift
        if more:
            above, below = (Fraction(above, below) + more).as_integer_ratio()
        try:
            return above / (below * count)
        except OverflowError:
            return inf if above > 0 else -inf


class DurationSum:
    """The exact sum of durations of one type."""

    __slots__ = ("count", "kind", "months", "nanoseconds")

    def __init__(self, kind: type[Duration]) -> None:
        self.kind = kind
        self.count = 0
        self.months = 0
        self.nanoseconds = Fraction()

    def add(self, value: Duration, count: int) -> None:
        """Add a value so many times; a negative count takes it away."""
        self.count += count
        self.months += value.months * count
        self.nanoseconds += value.nanoseconds * count

    def divided(self, count: int) -> Any:
        """The sum divided by a count; None if it is too long for a duration."""
        try:
            total = self.kind(self.months, whole(self.nanoseconds))
            return total if count == 1 else ARITHMETIC["div"](total, count)
        except ValueProblem:
            return None


class NoSum:
    """Values that do not add up: there is no sum as long as there is one."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def add(self, value: Any, count: int) -> None:
        """Add a value so many times; a negative count takes it away."""
        self.count += count


_Other: TypeAlias = FloatSum | DurationSum | NoSum
_DURATIONS = {kind.type: kind for kind in (DayTimeDuration, YearMonthDuration)}
_SUMMED = {float, *_DURATIONS.values()}


class ExactSum:
    """The exact sum of values, of which any may be taken away again.

    Integers and decimals are added without rounding. Floats are added as multiples of a power of
    two, and the sum is rounded once, when it is read; a sum with a float in it is a float.
    Durations add up with durations of the same type. There is no sum (None) of other values, of
    values that do not add up, and of numbers that together have more than `MOST_DIGITS` digits.
    """

    __slots__ = ("decimal", "decimals", "integer", "integers", "others")

    def __init__(self) -> None:
        self.integers = self.integer = self.decimals = 0  # integers: their number and their sum
        self.decimal = ZERO
        self.others: dict[type, _Other] | None = None

    def add(self, value: Any, count: int) -> None:
        """Add a value so many times; a negative count takes it away."""
        kind = type(value)
        if kind is Decimal:
            self.decimals += count
            self.decimal = _plus(self.decimal, value if count == 1 else _times(value, count))
        elif kind is int:
            self.integers += count
            self.integer += value * count
        else:
            self._other(kind).add(value, count)

    def _other(self, kind: type) -> Any:
        if kind not in _SUMMED:
            kind = object
        if self.others is None:
            self.others = {}
        found = self.others.get(kind)
        if found is None:
            found = self.others[kind] = _new_sum(kind)
        return found

    @property
    def count(self) -> int:
        """How many values were added."""
        more = sum(each.count for each in self.others.values()) if self.others else 0
        return self.integers + self.decimals + more

    def total(self) -> Any:
        """The sum."""
        if self.others is not None:
            return self._mixed(is_average=False)
        if not self.decimals:
            return self.integer
        try:
            return _shown(self.decimal, self.integer)
        except DecimalException:
            return None

    def average(self) -> Any:
        """The sum divided by the number of values; None if there are none."""
        if self.others is not None:
            return self._mixed(is_average=True)
        count = self.integers + self.decimals
        if not count:
            return None
        try:
            return _shown(quotient(_plus(self.decimal, self.integer), count), 0)
        except DecimalException:
            return None

    def _mixed(self, is_average: bool) -> Any:
        numbers = self.integers + self.decimals
        kinds = [each for each in (self.others or {}).values() if each.count]
        if not kinds:
            only = ExactSum()
            only.integers, only.integer = self.integers, self.integer
            only.decimals, only.decimal = self.decimals, self.decimal
            return only.average() if is_average else only.total()
        (each, *more) = kinds
        if more:
            return None
        if isinstance(each, FloatSum):
            rest = Fraction(self.decimal) + self.integer if numbers else Fraction()
            return each.divided(numbers + each.count if is_average else 1, rest)
        if numbers or isinstance(each, NoSum):
            return None
        return each.divided(each.count if is_average else 1)

    # The state as rows --------------------------------------------------------------------------

    def rows(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """The sum as plain rows with counts: those of two sums together are those of both."""
        if self.integers or self.integer:
            yield (("integer", self.integer), self.integers)
        if self.decimals or self.decimal:
            yield (("decimal", self.decimal), self.decimals)
        for each in (self.others or {}).values():
            if isinstance(each, FloatSum):
                specials = (each.nans, each.highs, each.lows)
                if each.count or each.units or any(specials):
                    yield (("float", each.units, each.shift, *specials), each.count)
            elif isinstance(each, DurationSum):
                exact = each.nanoseconds.as_integer_ratio()
                if each.count or each.months or each.nanoseconds:
                    yield ((each.kind.type, each.months, *exact), each.count)
            elif each.count:
                yield (("none",), each.count)

    def load(self, row: tuple[Any, ...], count: int) -> None:
        """Add a row of another sum."""
        kind, *rest = row
        if kind == "integer":
            self.integers += count
            self.integer += rest[0]
        elif kind == "decimal":
            self.decimals += count
            self.decimal = _plus(self.decimal, rest[0])
        elif kind == "float":
            floats = self._other(float)
            floats.count += count
            floats.add_units(rest[0], rest[1])
            floats.nans += rest[2]
            floats.highs += rest[3]
            floats.lows += rest[4]
        elif kind == "none":
            self._other(object).add(None, count)
        else:
            durations = self._other(_DURATIONS[kind])
            durations.count += count
            durations.months += rest[0]
            durations.nanoseconds += Fraction(rest[1], rest[2])

    def merge(self, other: ExactSum) -> None:
        """Add all of another sum."""
        if other.others is not None:
            for row, count in other.rows():
                self.load(row, count)
            return
        self.integers += other.integers
        self.integer += other.integer
        if other.decimals or other.decimal:
            self.decimals += other.decimals
            self.decimal = _plus(self.decimal, other.decimal)


def _new_sum(kind: type) -> _Other:
    if kind is float:
        return FloatSum()
    return DurationSum(kind) if kind in _DURATIONS.values() else NoSum()
