"""Values that show that formulas can hold: candidates made of the constants of their expressions.

Whether some string passes a formula is not decidable in general. A candidate that passes shows that
one does. If none passes, nothing is known, and the analyses refuse the question by name (AX503).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, DecimalException
from functools import lru_cache
from itertools import islice, product

from axlog.errors import UndecidedError
from axlog.evaluate.value_tests import comparison
from axlog.query.formula import Formula
from axlog.query.pattern import Comparison, Constant, Number, Variable
from axlog.query.syntax_tree import Binary, Call
from axlog.query.syntax_tree import Constant as Written
from axlog.query.values import number_of

MOST = 600
"""Most candidates of one formula."""
_LONGEST = 200
_PLAIN = ("a", "0", "1", "-1", "A", "x1", "10", "2000-01-01", "2100-01-01", "")


@lru_cache(maxsize=512)
def candidates(formula: Formula) -> tuple[str, ...]:
    """Values to try for a formula, without duplicates."""
    return tuple(dict.fromkeys(islice(_candidates(formula.expression), MOST)))


def can_hold(comparisons: Sequence[Comparison]) -> bool:
    """Whether a candidate passes all these comparisons with constants and formulas.

    Raises UndecidedError if none does: another value may.
    """
    constants = [
        (c.operator, c.operand) for c in comparisons if not isinstance(c.operand, Variable)
    ]
    tests = [comparison(operator, operand) for operator, operand in constants]
    formulas = [operand for _, operand in constants if isinstance(operand, Formula)]
    found = (value for formula in formulas for value in candidates(formula))
    if any(all(test(value) for test in tests) for value in (*found, *_written(constants))):
        return True
    raise UndecidedError(
        "AX503",
        f"whether a value that has not arrived passes {formulas[0]} is not decided",
    )


def _written(constants: Iterable[tuple[str, Constant]]) -> Iterator[str]:
    """The constants of other comparisons, and values beside them."""
    for _, operand in constants:
        if isinstance(operand, str):
            yield from (operand, f"{operand}a")
        elif isinstance(operand, Number):
            yield from (str(Number(operand.value + step)) for step in (0, 1, -1))


def _candidates(expression: object) -> Iterator[str]:
    constants = list(_constants(expression))
    texts = [each for each in constants if isinstance(each, str)]
    numbers = [each for each in constants if isinstance(each, Decimal)]
    numbers += [found for text in texts if (found := number_of(text)) is not None]
    yield from texts
    yield from _PLAIN
    yield from _numbers(list(dict.fromkeys(numbers)))
    yield from _dates(texts)
    for number in numbers:  # lengths and positions
        if 0 <= number <= _LONGEST:
            length = int(number)
            yield from ("a" * length, "a" * (length + 1), "a" * max(0, length - 1))
            yield from ("a" * max(0, length - 1) + text for text in texts)
    for text in texts:
        yield from (f"{text}a", f"a{text}", f"{text}0", text.upper(), text.lower(), f"0{text}0")
        yield text.translate({ord(each): None for each in "^$\\.*+?()[]{}|"})
    for one, other in product(texts, texts):
        yield from (one + other, f"{one}a{other}", f"a{one}a{other}a")


def _numbers(numbers: list[Decimal]) -> Iterator[str]:
    steps = (Decimal(0), Decimal(1), Decimal(-1), Decimal("0.5"), Decimal(10**6), -Decimal(10**6))
    found: list[Decimal] = [Decimal(0), Decimal("0.5")]
    for one in numbers:
        found += [one, -one]
        for other in numbers:
            try:
                found += [one + other, one - other, one * other]
                found += [one / other] if other else []
            except DecimalException:
                continue
    for number in dict.fromkeys(found):
        for step in steps:
            try:
                yield str(Number(number + step))
            except DecimalException:
                continue


def _dates(texts: list[str]) -> Iterator[str]:
    for text in texts:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            continue
        for days in (0, 1, -1, 31, -31, 366, -366, 3660, -3660):
            try:
                moved = at + timedelta(days=days)
            except OverflowError:
                continue
            yield date.isoformat(moved.date())
            yield moved.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _constants(expression: object) -> Iterator[str | Decimal]:
    match expression:
        case Written(value=str() as text):
            yield text
        case Written(exact=exact, value=value):
            yield Decimal(repr(value)) if exact is None else Decimal(exact)
        case Call(arguments=arguments):
            for each in arguments:
                yield from _constants(each)
        case Binary(left=left, right=right):
            yield from _constants(left)
            yield from _constants(right)
