"""Numbers as values: integers, decimals and doubles of XQuery, and the native exact decimals.

An xs:integer is an `int`, an xs:decimal a `Decimal`, an xs:double a `float`. Integers and decimals
are exact, with at most `MOST_DIGITS` digits; a result with more is refused (FOAR0002). A quotient
of decimals has 18 decimals, and one more for each decimal that the dividend has more than the
divisor; the last one is rounded, a half down.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from fractions import Fraction
from math import floor, fmod, inf, isfinite, isinf, isnan, nan, trunc
from typing import TypeGuard

from axlog.errors import ValueProblem

MOST_DIGITS = 4_000
"""Digits of an integer or a decimal. Python converts integers of up to 4,300 digits to text."""
DECIMALS = Context(
    prec=MOST_DIGITS, Emin=-20_000, Emax=20_000, traps=[Inexact, InvalidOperation, Overflow]
)
_DIVISION_SCALE = 18
_LONG = 2**63
_LARGEST = 10**MOST_DIGITS
_INTEGER = re.compile(r"\d+", re.ASCII)

Number = int | Decimal | float


def literal(text: str) -> Number:
    """The number that a literal of a query writes: an integer, a decimal or a double.

    >>> literal("7"), literal("7.0"), literal("7e0")
    (7, Decimal('7.0'), 7.0)
    """
    if len(text) > MOST_DIGITS:
        raise ValueProblem("FOAR0002", "the number is too long")
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if "e" in text or "E" in text else Decimal(text)


def double(value: Number) -> float:
    """A number as a double: the nearest one. A decimal has one zero, without a sign."""
    if type(value) is float:
        return value
    try:
        return float(value) if value else 0.0
    except OverflowError:
        return inf if value > 0 else -inf


def is_whole(value: object) -> TypeGuard[Number]:
    """Whether a value is a number without a fraction.

    >>> is_whole(2), is_whole(Decimal("2.0")), is_whole(2.5), is_whole(inf), is_whole("2")
    (True, True, False, False, False)
    """
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) or (isinstance(value, Decimal) and value == int(value))


def checked(value: int) -> int:
    """An integer that has not too many digits."""
    if -_LARGEST < value < _LARGEST:
        return value
    raise _too_large()


def decimal_of(value: int | Decimal | float) -> Decimal:
    """A number as an exact decimal."""
    if type(value) is Decimal:
        return value
    if type(value) is float and not isfinite(value):
        raise ValueProblem("FOCA0002", f"{double_text(value)} is not a decimal")
    return Decimal(value)


def integer_of(value: Number) -> int:
    """A number as an integer, without its fraction."""
    if type(value) is float and not isfinite(value):
        raise ValueProblem("FOCA0002", f"{double_text(value)} is not an integer")
    if type(value) is Decimal and value.adjusted() > MOST_DIGITS:
        raise _too_large()
    return trunc(value)


def fraction_of(value: Number) -> Fraction:
    """A finite number, exactly."""
    if type(value) is Decimal and abs(value.adjusted()) > MOST_DIGITS:
        raise _too_large()
    return Fraction(value)


def _too_large() -> ValueProblem:
    return ValueProblem("FOAR0002", f"a number has more than {MOST_DIGITS:,} digits")


# Texts -------------------------------------------------------------------------------------------


def number_text(value: Number) -> str:
    """A number as XPath writes it.

    >>> number_text(3), number_text(Decimal("2.50")), number_text(1e6), number_text(0.5)
    ('3', '2.5', '1.0E6', '0.5')
    """
    if type(value) is int:
        return str(value)
    return decimal_text(value) if type(value) is Decimal else double_text(float(value))


def decimal_text(value: Decimal) -> str:
    """A decimal without exponent, without zeros at its end.

    >>> decimal_text(Decimal("100.00")), decimal_text(Decimal("-0.10"))
    ('100', '-0.1')
    """
    if not value:
        return "0"
    if abs(value.adjusted()) > MOST_DIGITS:
        return str(value.normalize(DECIMALS))
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def double_text(value: float) -> str:
    """A double: with an exponent unless its size is between 0.000001 and 1,000,000.

    >>> double_text(1.0), double_text(-1.5e-7), double_text(1234567.0), double_text(float("inf"))
    ('1', '-1.5E-7', '1.234567E6', 'INF')
    """
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "INF" if value > 0 else "-INF"
    if value == 0:
        return "-0" if str(value)[0] == "-" else "0"
    exact = Decimal(repr(value))
    if 1e-6 <= abs(value) < 1e6:
        return decimal_text(exact)
    sign, digits, _ = exact.as_tuple()
    kept = "".join(map(str, digits)).rstrip("0")
    return f"{'-' if sign else ''}{kept[0]}.{kept[1:] or '0'}E{exact.adjusted()}"


# Calculations ------------------------------------------------------------------------------------


def divided(one: int | Decimal, other: int | Decimal) -> Decimal:
    """The quotient of two exact numbers, as a decimal.

    >>> divided(1, 3), divided(1, 8)
    (Decimal('0.333333333333333333'), Decimal('0.125'))
    """
    if not other:
        raise ValueProblem("FOAR0001", "a number is divided by zero")
    is_long = type(one) is type(other) is int and max(abs(one), abs(other)) >= _LONG
    a, b = _parts(one, is_long), _parts(other, is_long)
    scale = _DIVISION_SCALE + max(b[1] - a[1], 0)
    power = scale + a[1] - b[1]
    if abs(power) > 2 * MOST_DIGITS:
        raise _too_large()
    top, bottom = a[0] * 10 ** max(power, 0), b[0] * 10 ** max(-power, 0)
    quotient, rest = divmod(abs(top), abs(bottom))
    if 2 * rest > abs(bottom):
        quotient += 1
    if quotient >= _LARGEST:
        raise _too_large()
    return decimal_from(quotient if (top < 0) == (bottom < 0) else -quotient, scale)


def decimal_from(value: int, scale: int) -> Decimal:
    """`value` with its last `scale` digits after the point, without zeros at the end."""
    while scale and value % 10 == 0:
        value //= 10
        scale -= 1
    return Decimal(value).scaleb(-scale, DECIMALS)


def _parts(value: int | Decimal, is_shortened: bool) -> tuple[int, int]:
    """An integer and the power of ten that multiplies it; a decimal has no zeros at its end."""
    if type(value) is int and not is_shortened:
        return value, 0
    sign, digits, exponent = decimal_of(value).normalize(DECIMALS).as_tuple()
    assert isinstance(exponent, int)
    size = int("".join(map(str, digits)))
    return (-size if sign else size), exponent


def double_quotient(one: float, other: float) -> float:
    """The quotient of two doubles, as IEEE 754 defines it."""
    try:
        return one / other
    except ZeroDivisionError:
        if isnan(one) or one == 0:
            return nan
        return inf if (one > 0) == (str(other)[0] != "-") else -inf


def double_remainder(one: float, other: float) -> float:
    """The remainder of two doubles, with the sign of the first."""
    try:
        return fmod(one, other)
    except ValueError:
        return nan


def remainder(one: int | Decimal, other: int | Decimal) -> int | Decimal:
    """The remainder of two exact numbers, with the sign of the first."""
    if not other:
        raise ValueProblem("FOAR0001", "a number is divided by zero")
    if type(one) is int and type(other) is int:
        rest = abs(one) % abs(other)
        return -rest if one < 0 else rest
    product = exactly(DECIMALS.multiply, other, whole_quotient(one, other))
    return exactly(DECIMALS.subtract, one, product)


def whole_quotient(one: Number, other: Number) -> int:
    """The quotient without its fraction."""
    if not other:
        raise ValueProblem("FOAR0001", "a number is divided by zero")
    if type(one) is int and type(other) is int:
        found = abs(one) // abs(other)
        return found if (one < 0) == (other < 0) else -found
    if type(one) is float or type(other) is float:
        left, right = double(one), double(other)
        if not isfinite(left) or isnan(right):
            raise ValueProblem("FOAR0002", "the quotient is not an integer")
        quotient = double_quotient(left, right)
        if not isfinite(quotient):
            raise ValueProblem("FOCA0002", "the quotient is infinite: no integer")
        return checked(trunc(quotient))
    return checked(trunc(fraction_of(one) / fraction_of(other)))


def exactly(
    operation: Callable[[Decimal, Decimal], Decimal], one: int | Decimal, other: int | Decimal
) -> Decimal:
    """A sum, difference or product of decimals, exact or refused."""
    try:
        return operation(decimal_of(one), decimal_of(other))
    except DecimalException:
        raise _too_large() from None


# Rounding ----------------------------------------------------------------------------------------


def rounded(value: Number, places: int = 0) -> Number:
    """fn:round: to the nearest; a half goes toward positive infinity.

    >>> rounded(2.5), rounded(Decimal("-2.5")), rounded(1234, -2)
    (3.0, Decimal('-2'), 1200)
    """
    return _at_scale(value, places, _half_up)


def rounded_to_even(value: Number, places: int = 0) -> Number:
    """fn:round-half-to-even: to the nearest; a half goes to the even neighbour.

    >>> rounded_to_even(2.5), rounded_to_even(Decimal("3.5"))
    (2.0, Decimal('4'))
    """
    return _at_scale(value, places, round)


def _half_up(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def _at_scale(value: Number, places: int, to_integer: Callable[[Fraction], int]) -> Number:
    if type(value) is float and (not isfinite(value) or value == 0):
        return value
    if type(value) is int and places >= 0:
        return value
    if abs(places) > MOST_DIGITS:
        return value if places > 0 else _of_type(value, Fraction(0))
    power = Fraction(10) ** places
    return _of_type(value, to_integer(fraction_of(value) * power) / power)


def _of_type(value: Number, found: Fraction) -> Number:
    """An exact result in the type of the argument."""
    if type(value) is int:
        return int(found)
    if type(value) is float:
        return float(found) or (-0.0 if value < 0 else 0.0)
    return DECIMALS.divide(Decimal(found.numerator), Decimal(found.denominator))


def size(value: Number) -> Number:
    """fn:abs; Python's abs() would round a decimal."""
    if type(value) is Decimal:
        return value.copy_abs()
    return abs(value) if type(value) is float else abs(integer_of(value))


def floored(value: Number) -> Number:
    """fn:floor."""
    return _whole(value, -1)


def ceiled(value: Number) -> Number:
    """fn:ceiling."""
    return _whole(value, 1)


def _whole(value: Number, toward: int) -> Number:
    if type(value) is int:
        return value
    if type(value) is float:
        if not isfinite(value) or value == 0:
            return value
        found = float(floor(value) if toward < 0 else -floor(-value))
        return found if found else (-0.0 if value < 0 else 0.0)
    exact = integer_of(value)
    if exact != value and (value > 0) == (toward > 0):
        exact += toward
    return Decimal(exact)
