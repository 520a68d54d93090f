"""Cardinality constraints: Boolean combinations of `|e| >= k` over the content of an element.

A constraint is a formula over symbols: the labels, services and attributes that a type names,
`text()` for texts, and `dom` for every text and every element whose label the type does not name.
Beyond the published definition, two numbers can be compared (`|a| = |b|`), which expresses repeated
groups such as `(a, b)*`.

`judge` evaluates a formula over bounds and returns True, False or None for "depends"; with exact
numbers it never returns None. `solutions` finds numbers for which formulas hold, each at least the
requested minimum: a small search, pruned where a formula is already false. Numbers matter only up
to the greatest constant, so few values are tried; with compared numbers, one more per kind.
(Paper 2, section 4.)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

DOM = "dom"
TEXT = "text()"

_OPERATIONS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Count:
    """`|symbol| operator k`, where k is a number or another symbol."""

    symbol: str
    operator: str
    than: int | str


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds; true without parts."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """The part does not hold."""

    part: Formula


Formula: TypeAlias = Count | All | Some | Negation
Range: TypeAlias = tuple[int, int | None]
"""A minimum and a maximum; None for no maximum."""


def counts_of(formula: Formula) -> Iterator[Count]:
    """Every count of a formula."""
    match formula:
        case Count():
            yield formula
        case All(parts=parts) | Some(parts=parts):
            for part in parts:
                yield from counts_of(part)
        case Negation(part=part):
            yield from counts_of(part)


def symbols_of(formula: Formula) -> Iterator[str]:
    """Every symbol that a formula mentions, with repetitions."""
    for count in counts_of(formula):
        yield count.symbol
        if isinstance(count.than, str):
            yield count.than


def constants_of(formula: Formula) -> Iterator[int]:
    """The numbers that a formula compares with."""
    return (count.than for count in counts_of(formula) if isinstance(count.than, int))


def judge(formula: Formula, number: Callable[[str], Range]) -> bool | None:
    """Whether a formula holds for all numbers within the ranges (True), for none (False)."""
    match formula:
        case Count(symbol=symbol, operator=asked, than=than):
            if symbol == than:
                return _OPERATIONS[asked](0, 0)
            other = number(than) if isinstance(than, str) else (than, than)
            return _compare(number(symbol), asked, other)
        case Negation(part=part):
            verdict = judge(part, number)
            return None if verdict is None else not verdict
        case All(parts=parts):
            verdicts = [judge(part, number) for part in parts]
            return False if False in verdicts else None if None in verdicts else True
        case Some(parts=parts):
            verdicts = [judge(part, number) for part in parts]
            return True if True in verdicts else None if None in verdicts else False


def _compare(left: Range, asked: str, right: Range) -> bool | None:
    if left[0] == left[1] and right[0] == right[1]:
        return _OPERATIONS[asked](left[0], right[0])
    if asked in (">", "<"):
        verdict = _compare(left, _OPPOSITE[asked], right)
        return None if verdict is None else not verdict
    if asked == "!=":
        verdict = _compare(left, "=", right)
        return None if verdict is None else not verdict
    if asked == "<=":
        return _compare(right, ">=", left)
    if asked == "=":
        apart = _is_below(left, right) or _is_below(right, left)
        return False if apart else None
    if right[1] is not None and left[0] >= right[1]:
        return True
    return False if _is_below(left, right) else None


def _is_below(left: Range, right: Range) -> bool:
    return left[1] is not None and left[1] < right[0]


# Writing ------------------------------------------------------------------------------------------


def formula_text(formula: Formula, around: str = "") -> str:
    """A formula as `schema_parser` reads it, in brackets if its context needs them."""
    match formula:
        case Count(symbol=symbol, operator=operator, than=than):
            right = f"|{_symbol(than)}|" if isinstance(than, str) else str(than)
            return f"|{_symbol(symbol)}| {operator} {right}"
        case Negation(part=part):
            return f"not {formula_text(part, 'not')}"
        case All(parts=()):
            return "()"
        case All(parts=parts):
            text = " & ".join(formula_text(part, "all") for part in parts)
            return f"({text})" if around in ("not", "all") else text
        case Some(parts=parts):
            text = " or ".join(formula_text(part, "some") for part in parts)
            return f"({text})" if around else text


def _symbol(symbol: str) -> str:
    if symbol in (DOM, TEXT):
        return symbol
    if symbol[0] == "@":
        return "@" + label_text(symbol[1:])
    return symbol.removeprefix("?") if symbol[0] == "?" else label_text(symbol)


def label_text(label: str) -> str:
    """A label in the notation of types: `Q{address}name`; `Q{}dom` for the label `dom`."""
    if label == DOM:
        return f"Q{{}}{label}"
    return f"Q{label}" if label.startswith("{") else label


# Solving ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constraint:
    """A formula, with the kinds of nodes that each of its symbols counts."""

    formula: Formula
    kinds: Mapping[str, tuple[str, ...]]

    @cached_property
    def counts(self) -> tuple[Count, ...]:
        return tuple(counts_of(self.formula))

    @cached_property
    def allowed(self) -> frozenset[str]:
        """The kinds that it mentions."""
        return frozenset(kind for kinds in self.kinds.values() for kind in kinds)

    @cached_property
    def constants(self) -> tuple[int, ...]:
        return tuple(constants_of(self.formula))

    @cached_property
    def is_comparing(self) -> bool:
        """Whether numbers are compared with each other."""
        return any(isinstance(count.than, str) for count in self.counts)

    def holds(self, numbers: Mapping[str, int]) -> bool:
        """Whether an element with these numbers of nodes of each kind meets the constraint."""
        verdict = judge(self.formula, lambda symbol: self._exactly(numbers, symbol))
        assert verdict is not None
        return verdict

    def _exactly(self, numbers: Mapping[str, int], symbol: str) -> Range:
        count = sum(numbers.get(kind, 0) for kind in self.kinds.get(symbol, ()))
        return count, count


def solutions(
    constraints: Sequence[Constraint],
    least: Mapping[str, int],
    most: Mapping[str, int | None],
) -> Iterator[dict[str, int]]:
    """Numbers of nodes for which all constraints hold, at least `least` and at most `most`.

    The kinds are the keys of `most`. Every solution is equivalent to a listed one: equal below the
    greatest constant, with the same order among the numbers that formulas compare.
    """
    if any(number and kind not in most for kind, number in least.items()):
        return iter(())
    values = {kind: _values(kind, constraints, least, most) for kind in most}
    if not all(values.values()):
        return iter(())
    order = sorted(most, key=lambda kind: len(values[kind]))
    return _extend(constraints, order, values, {})


def _extend(
    constraints: Sequence[Constraint],
    kinds: list[str],
    values: Mapping[str, list[int]],
    chosen: dict[str, int],
) -> Iterator[dict[str, int]]:
    if any(_is_false(constraint, values, chosen) for constraint in constraints):
        return
    if not kinds:
        yield dict(chosen)
        return
    kind, *others = kinds
    for value in values[kind]:
        chosen[kind] = value
        yield from _extend(constraints, others, values, chosen)
    del chosen[kind]


def _is_false(
    constraint: Constraint, values: Mapping[str, list[int]], chosen: Mapping[str, int]
) -> bool:
    def number(symbol: str) -> Range:
        low, high = 0, 0
        for kind in constraint.kinds.get(symbol, ()):
            possible = values.get(kind, [0])
            low += chosen.get(kind, possible[0])
            high += chosen.get(kind, possible[-1])
        return low, high

    return judge(constraint.formula, number) is False


def _values(
    kind: str,
    constraints: Sequence[Constraint],
    least: Mapping[str, int],
    most: Mapping[str, int | None],
) -> list[int]:
    """The numbers of a kind that formulas distinguish, the least first."""
    low, high = least.get(kind, 0), most[kind]
    steps = {low}
    for constraint in constraints:
        counting = {symbol for symbol, kinds in constraint.kinds.items() if kind in kinds}
        limits, is_compared = _limits(constraint.counts, counting)
        shared = any(len(constraint.kinds[symbol]) > 1 for symbol in counting)
        if is_compared or (shared and limits):
            top = max([*constraint.constants, *least.values(), 0])
            steps |= set(range(low, top + len(most) + 2))
        steps |= limits
    return sorted(s for s in steps if s >= low and (high is None or s <= high))


def _limits(counts: tuple[Count, ...], symbols: set[str]) -> tuple[set[int], bool]:
    """The numbers at which counts of these symbols change, and whether counts are compared."""
    limits: set[int] = set()
    is_compared = False
    for count in counts:
        if isinstance(count.than, str):
            is_compared |= count.symbol in symbols or count.than in symbols
        elif count.symbol in symbols:
            limits |= {count.than, count.than + 1}
    return limits, is_compared
