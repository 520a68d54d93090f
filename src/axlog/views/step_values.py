"""The values that operators of steps read from rows: arguments of aggregates, clock times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

from axlog.evaluate.joins import Row
from axlog.evaluate.native_values import clock_amount, number, text
from axlog.evaluate.sort_keys import exact_key, order_key
from axlog.query.clock_spans import NEVER, Spans, common_spans, spans_of
from axlog.query.steps import ClockTest, Scalar
from axlog.query.values import number_of

Compute_: TypeAlias = Callable[[Row], Any]
_CACHED = 40  # characters, as in `query/values.py`


def row_spans(
    tests: Sequence[ClockTest], columns: Sequence[str], scalar: Callable[[Scalar], Compute_]
) -> Callable[[Row], Spans]:
    """The clock times at which all tests hold for a row; `scalar` compiles an expression."""
    each = [_test_spans(test, columns, scalar) for test in tests]
    if len(each) == 1:
        return each[0]
    return lambda row: common_spans(spans(row) for spans in each)


def _test_spans(
    test: ClockTest, columns: Sequence[str], scalar: Callable[[Scalar], Compute_]
) -> Callable[[Row], Spans]:
    factor, operator, bound = test.factor, test.operator, test.bound
    terms = [(each, columns.index(column)) for each, column in test.terms]
    value = None if test.value is None else scalar(test.value)
    is_duration = factor + sum(each for each, _ in terms) == 0

    def spans(row: Row) -> Spans:
        amount: Any = bound - sum(each * int(row[at]) for each, at in terms)
        if value is not None:
            more = clock_amount(value(row), is_duration)
            if more is None:
                return NEVER
            amount += more
        return spans_of(factor, operator, amount)

    return spans


def reader(at: int) -> Compute_:
    return itemgetter(at)


def pair(value: Compute_, by: Compute_) -> Compute_:
    """The value by which a row is chosen, and the value that it shows; None without one of them."""

    def both(row: Row) -> tuple[Any, Any] | None:
        found, place = value(row), by(row)
        return None if found is None or place is None else (place, found)

    return both


def choice_key(pair: tuple[Any, Any]) -> tuple[Any, ...]:
    place, found = pair
    return order_key(place), order_key(found), exact_key(found), exact_key(place)


def extreme_key(value: Any) -> tuple[Any, ...]:
    return order_key(value), exact_key(value)


def addend(read: Compute_) -> Compute_:
    """The value of a row as a number, to be added."""

    def value(row: Row) -> Any:
        found = read(row)
        if type(found) is str and len(found) <= _CACHED:
            return _number_of_text(found)
        return found if found is None or type(found) is Decimal else number(found)

    return value


@lru_cache(maxsize=65536)
def _number_of_text(text: str) -> Decimal:
    found = number_of(text)  # without the other caches: most sums see a text once
    return number(text) if found is None else found


def number_first(read: Compute_) -> Compute_:
    """The value of a row, as a number if it is one."""

    def value(row: Row) -> Any:
        found = read(row)
        if isinstance(found, str):
            key = order_key(found)[1]
            return key if type(key) is Decimal else found
        return found

    return value


def texts(read: Compute_, separator: str) -> Compute_:
    """The value of a row as a text; of a list, its items as one text."""

    def value(row: Row) -> Any:
        found = read(row)
        if type(found) is tuple:
            return separator.join(map(text, found))
        return None if found is None else text(found)

    return value
