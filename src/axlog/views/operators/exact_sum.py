"""Exact sums: numbers that are added and taken away again leave no trace."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from fractions import Fraction
from math import inf, isfinite, nan
from typing import Any

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_plus, _times = _EXACT.add, _EXACT.multiply
_ZERO = Decimal(0)

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


class OtherSum:
    """The sum of values that add up among themselves, such as durations."""

    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total: Any = None

    def add(self, value: Any, count: int) -> None:
        """Add a value so many times; a negative count takes it away."""
        self.count += count
        more = value if count == 1 else value * count
        self.total = more if self.total is None else self.total + more


class ExactSum:
    """The exact sum of values, of which any may be taken away again.

    Integers and decimals are added without rounding. Floats are added as multiples of a power of
    two, and the sum is rounded once, when it is read; a sum with a float in it is a float. Values
    of another type (durations) add up with values of the same type only.
    """

    __slots__ = ("decimal", "decimals", "integer", "integers", "others")

    def __init__(self) -> None:
        self.integers = 0  # how many there are
        self.integer = 0  # their sum
        self.decimals = 0
        self.decimal = _ZERO
        self.others: dict[type, FloatSum | OtherSum] | None = None

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

    def _other(self, kind: type) -> FloatSum | OtherSum:
        if self.others is None:
            self.others = {}
        found = self.others.get(kind)
        if found is None:
            found = self.others[kind] = FloatSum() if kind is float else OtherSum()
        return found

    @property
    def count(self) -> int:
        """How many values were added."""
        more = sum(each.count for each in self.others.values()) if self.others else 0
        return self.integers + self.decimals + more

    def total(self) -> Any:
        """The sum; None if the values do not add up: a duration and a number."""
        if self.others is not None:
            return self._mixed(is_average=False)
        if not self.decimals:
            return self.integer
        return _plus(self.decimal, self.integer) if self.integer else self.decimal

    def average(self) -> Any:
        """The sum divided by the number of values; None if there are none or no sum."""
        if self.others is not None:
            return self._mixed(is_average=True)
        count = self.integers + self.decimals
        return quotient(_plus(self.decimal, self.integer), count) if count else None

    def _mixed(self, is_average: bool) -> Any:
        numbers = self.integers + self.decimals
        kinds = {kind: each for kind, each in (self.others or {}).items() if each.count}
        if not kinds:
            only = ExactSum()
            only.integers, only.integer = self.integers, self.integer
            only.decimals, only.decimal = self.decimals, self.decimal
            return only.average() if is_average else only.total()
        if len(kinds) > 1:
            return None
        (kind,) = kinds
        each = kinds[kind]
        if isinstance(each, FloatSum):
            more = Fraction(self.decimal) + self.integer if numbers else Fraction()
            return each.divided(numbers + each.count if is_average else 1, more)
        if numbers:
            return None
        return each.total / each.count if is_average else each.total

    # The state as rows --------------------------------------------------------------------------

    def rows(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """The sum as plain rows with counts: those of two sums together are those of both."""
        if self.integers or self.integer:
            yield (("integer", self.integer), self.integers)
        if self.decimals or self.decimal:
            yield (("decimal", self.decimal), self.decimals)
        for each in (self.others or {}).values():
            if isinstance(each, OtherSum):
                yield (("other", each.total), each.count)
            elif each.count or each.units or each.nans or each.highs or each.lows:
                specials = (each.nans, each.highs, each.lows)
                yield (("float", each.units, each.shift, *specials), each.count)

    def load(self, row: tuple[Any, ...], count: int) -> None:
        """Add a row of another sum."""
        kind, total, *rest = row
        if kind == "integer":
            self.integers += count
            self.integer += total
        elif kind == "decimal":
            self.decimals += count
            self.decimal = _plus(self.decimal, total)
        elif kind == "other":
            found = self._other(type(total))
            found.add(total, 1)
            found.count += count - 1
        else:
            floats = self._other(float)
            assert isinstance(floats, FloatSum)
            floats.count += count
            floats.add_units(total, rest[0])
            floats.nans += rest[1]
            floats.highs += rest[2]
            floats.lows += rest[3]

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
