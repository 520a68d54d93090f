"""The clock times at which a condition on the clock holds, exactly, in whole microseconds.

    factor * now  operator  amount

A set of clock times is a tuple of spans in their order. A span begins with its first moment and
ends before its second; None is no end. A condition has at most two spans, a conjunction a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from axlog.query.values import mirrored

Span: TypeAlias = tuple[int | None, int | None]
Spans: TypeAlias = tuple[Span, ...]

ALWAYS: Spans = ((None, None),)
NEVER: Spans = ()


def spans_of(factor: int, operator: str, amount: int | Fraction) -> Spans:
    """The clock times at which a condition holds; the factor is not zero.

    >>> spans_of(2, "<=", 5), spans_of(-1, "<", -3), spans_of(1, "!=", 4)
    (((None, 3),), ((4, None),), ((None, 4), (5, None)))
    """
    if factor < 0:
        factor, operator, amount = -factor, mirrored(operator), -amount
    bound = Fraction(amount) / factor
    is_whole = bound.denominator == 1
    match operator:
        case "<":
            return ((None, ceil(bound)),)
        case "<=":
            return ((None, floor(bound) + 1),)
        case ">":
            return ((floor(bound) + 1, None),)
        case ">=":
            return ((ceil(bound), None),)
        case "=":
            return ((int(bound), int(bound) + 1),) if is_whole else NEVER
    return ((None, int(bound)), (int(bound) + 1, None)) if is_whole else ALWAYS


def common_spans(each: Iterable[Spans]) -> Spans:
    """The clock times of all of some sets.

    >>> common_spans([((2, 9),), ((None, 4), (5, None))])
    ((2, 4), (5, 9))
    """
    found = ALWAYS
    for spans in each:
        found = tuple(_common(found, spans))
        if not found:
            return NEVER
    return found


def _common(one: Spans, other: Spans) -> Iterator[Span]:
    for start, end in one:
        for first, last in other:
            begin = max((at for at in (start, first) if at is not None), default=None)
            until = min((at for at in (end, last) if at is not None), default=None)
            if begin is None or until is None or begin < until:
                yield begin, until


def holds_at(spans: Spans, clock: int) -> bool:
    """Whether a clock time is in one of the spans."""
    return any(
        (start is None or start <= clock) and (end is None or clock < end) for start, end in spans
    )


def next_change(spans: Spans, clock: int) -> int | None:
    """The first moment after a clock time at which a span begins or ends; None: there is none."""
    for start, end in spans:
        if start is not None and clock < start:
            return start
        if end is not None and clock < end:
            return end
    return None
