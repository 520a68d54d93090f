"""Conditions on unknown strings: comparisons, equality with each other, validity as a name.

A comparison with a constant is an interval of one kind of value (`query/values.py`). A string may
be a number, a moment, a time of day or a text, and passes if it passes as one of them. Numbers,
moments and times of day are dense, and each can be written in infinitely many ways. Texts are
ordered by code point, and the next text after s is s followed by TAB, the least XML character. So
intervals are decided exactly; for `xs:double` the next value is the next float.

A formula (`[contains(., "x")]`) is satisfiable if one of some candidates passes it and the other
comparisons of the value (`formula_values.py`).

Not decided (AX503): other XPath types, orders between two unknowns, a value that is compared by the
rules of two languages, and formulas that no candidate passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, nextafter
from typing import Any

from axlog.errors import UndecidedError
from axlog.evaluate.value_tests import comparison
from axlog.future.formula_values import can_hold
from axlog.query.formula import Formula
from axlog.query.pattern import (
    Comparison,
    Constant,
    Moment,
    Number,
    ValueConstraint,
    Variable,
)
from axlog.query.values import ORDERS, ValueKind, key_of, mirrored, parted

Known = Mapping[str, str | int | None]
"""Values by column; None: unknown."""

_NAME = re.compile(r"(\{[^{}]*\})?[^\W\d][\w.\-·]*")
_LEAST = "\t"
_LEAST_NAME = "A"


@dataclass(frozen=True, slots=True)
class ValueNeeds:
    """Conditions on unknown strings, by column."""

    compared: frozenset[tuple[str, Comparison]] = frozenset()
    different: frozenset[tuple[str, str]] = frozenset()  # pairs of unknown columns
    names: frozenset[str] = frozenset()  # columns that must be element names
    same: frozenset[tuple[str, str]] = frozenset()  # pairs of columns with one string

    @property
    def is_empty(self) -> bool:
        return not (self.compared or self.different or self.names or self.same)

    def joined(self, other: ValueNeeds) -> ValueNeeds:
        if other.is_empty:
            return self
        return ValueNeeds(
            self.compared | other.compared,
            self.different | other.different,
            self.names | other.names,
            self.same | other.same,
        )

    def asks_no_more_than(self, other: ValueNeeds) -> bool:
        return (
            self.compared <= other.compared
            and self.different <= other.different
            and self.names <= other.names
            and self.same <= other.same
        )

    def constrained(self, constraint: ValueConstraint, values: Known) -> ValueNeeds | None:
        """These conditions with a value constraint added; None if it fails."""
        left = f"${constraint.left.name}"
        right = constraint.right
        if isinstance(right, Variable):
            return self._of_two(left, constraint.operator, f"${right.name}", values)
        return self._with(left, Comparison(constraint.operator, right), values)

    def _with(self, column: str, compared: Comparison, values: Known) -> ValueNeeds | None:
        value = values[column]
        if value is not None:
            operand = compared.operand
            assert not isinstance(operand, Variable)
            return self if comparison(compared.operator, operand)(str(value)) else None
        found = self.compared | {(column, compared)}
        narrowed = replace(self, compared=found)
        return narrowed if narrowed.is_satisfiable({column: None}) else None

    def _of_two(self, left: str, operator: str, right: str, values: Known) -> ValueNeeds | None:
        one, other = values[left], values[right]
        if other is not None:
            return self._with(left, Comparison(operator, str(other)), values)
        if one is not None:
            return self._with(right, Comparison(mirrored(operator), str(one)), values)
        if left == right and parted(operator)[1] is None:
            return self if operator in ("=", "<=", ">=") else None
        if operator == "=":
            return replace(self, same=self.same | {(left, right)})
        if operator != "!=":
            raise UndecidedError(
                "AX503",
                f"an order between two unknown values is not decided: {left} {operator} {right}",
            )
        return replace(self, different=self.different | {(left, right)})

    def settled(self, values: Known) -> ValueNeeds | None:
        """These conditions with known values substituted; None if one of them fails."""
        if not self.is_satisfiable(values):
            return None
        first = self._representatives()
        known = {column: value for column, value in values.items() if value is not None}
        for column, value in list(known.items()):
            known |= {other: value for other, one in first.items() if one == first.get(column)}
        if not known:
            return self
        compared = {pair for pair in self.compared if pair[0] not in known}
        # a column that equals a known one is known too, but the row does not hold it
        for column in known.keys() - {c for c, value in values.items() if value is not None}:
            compared.add((column, Comparison("=", str(known[column]))))
        different = set()
        for left, right in self.different:
            if left in known and right not in known:
                compared.add((right, Comparison("!=", str(known[left]))))
            elif right in known and left not in known:
                compared.add((left, Comparison("!=", str(known[right]))))
            elif left not in known:
                different.add((left, right))
        names = frozenset(name for name in self.names if name not in known)
        same = frozenset(pair for pair in self.same if pair[0] not in known)
        return ValueNeeds(frozenset(compared), frozenset(different), names, same)

    def pins(self) -> dict[str, str]:
        """The unknown columns with only one possible string, with that string."""
        return {
            column: each.operand
            for column, each in self.compared
            if each.operator == "=" and isinstance(each.operand, str)
        }

    def renamed(self, name: Callable[[str], str]) -> ValueNeeds:
        """These conditions on columns with other names."""
        return ValueNeeds(
            frozenset((name(column), each) for column, each in self.compared),
            frozenset((name(one), name(other)) for one, other in self.different),
            frozenset(name(column) for column in self.names),
            frozenset((name(one), name(other)) for one, other in self.same),
        )

    def projected(self, columns: Mapping[str, str], values: Known) -> ValueNeeds:
        """What these satisfiable conditions say of some columns alone, under new names.

        `columns` gives the new name of each. A difference from another unknown is dropped: there
        are infinitely many strings for that one, or `is_satisfiable` refuses.
        """
        settled = self.settled(values) or self
        first = settled._representatives()
        names: dict[str, list[str]] = {}  # the new names of a class of equal unknowns
        for column, name in columns.items():
            if values.get(column) is None:
                names.setdefault(first.get(column, column), []).append(name)

        def named(column: str) -> str | None:
            return min(names.get(first.get(column, column), ()), default=None)

        compared = {(named(column), each) for column, each in settled.compared}
        different = {(named(one), named(other)) for one, other in settled.different}
        labels = {named(column) for column in settled.names}
        return ValueNeeds(
            frozenset((name, each) for name, each in compared if name is not None),
            frozenset((a, b) for a, b in different if a is not None and b is not None),
            frozenset(name for name in labels if name is not None),
            frozenset((min(each), name) for each in names.values() for name in each
                      if name != min(each)),
        )  # fmt: skip

    def _representatives(self) -> dict[str, str]:
        """For each column that equals another, the column that represents the class."""
        first: dict[str, str] = {}
        for left, right in sorted(self.same):
            one, other = first.setdefault(left, left), first.setdefault(right, right)
            first = {column: one if at == other else at for column, at in first.items()}
        return first

    def _merged(self, values: Known) -> tuple[ValueNeeds, Known] | None:
        """The conditions with equal columns merged into one; None if their values differ."""
        first = self._representatives()
        known: dict[str, str | int | None] = {}
        for column, value in values.items():
            column = first.get(column, column)
            if known.get(column) is not None and value not in (None, known[column]):
                return None
            known[column] = value if known.get(column) is None else known[column]
        merged = ValueNeeds(
            frozenset((first.get(column, column), c) for column, c in self.compared),
            frozenset((first.get(a, a), first.get(b, b)) for a, b in self.different),
            frozenset(first.get(column, column) for column in self.names),
        )
        return merged, known

    def is_satisfiable(self, values: Known) -> bool:
        """Whether some strings for the unknown columns satisfy all conditions."""
        if self.same:
            merged = self._merged(values)
            return merged is not None and merged[0].is_satisfiable(merged[1])
        for column in self.names:
            value = values.get(column)
            if value is not None and not _NAME.fullmatch(str(value)):
                return False
        columns = {column for column, _ in self.compared}
        if self.different:  # a value that must equal a constant is as good as known
            values = {**self.pins(), **{c: v for c, v in values.items() if v is not None}}
        excluded: dict[str, list[Comparison]] = {}
        for left, right in self.different:
            one, other = values.get(left), values.get(right)
            if left == right or (one is not None and one == other):
                return False
            if one is None and other is None:
                self._check_unbounded(left)
                self._check_unbounded(right)
            elif one is None:
                excluded.setdefault(left, []).append(Comparison("!=", str(other)))
            elif other is None:
                excluded.setdefault(right, []).append(Comparison("!=", str(one)))
        return all(
            self._column_satisfiable(column, values.get(column), excluded.get(column, ()))
            for column in columns | excluded.keys()
        )

    def _check_unbounded(self, column: str) -> None:
        """Reject bounded unknowns: two unknowns can surely differ only if each is unbounded."""
        mine = [c for name, c in self.compared if name == column]
        orders = {parted(c.operator)[0] for c in mine if isinstance(c.operand, str)}
        if any(isinstance(c.operand, Formula) for c in mine):
            raise UndecidedError(
                "AX503", f"{column} is tested by a formula and must differ from an unknown value"
            )
        if "=" in orders or (orders & {"<", "<="} and orders & {">", ">="}):
            raise UndecidedError(
                "AX503",
                f"{column} lies between two strings and must differ from another unknown value",
            )

    def _column_satisfiable(
        self, column: str, value: str | int | None, more: Iterable[Comparison]
    ) -> bool:
        mine = [*(c for name, c in self.compared if name == column), *more]
        if value is None and column in self.names:
            return _name_meets(mine)
        if value is not None:
            return all(
                comparison(c.operator, c.operand)(str(value))
                for c in mine
                if not isinstance(c.operand, Variable)
            )
        return is_consistent(mine)


def _name_meets(comparisons: list[Comparison]) -> bool:
    """Whether some element name passes all these comparisons; a name is a text."""
    if any(isinstance(each.operand, float) and each.operator != "!=" for each in comparisons):
        return _passes_all("INF", _constants(comparisons))  # no other name is a double
    mine: list[tuple[str, str]] = []
    for each in comparisons:
        operand = each.operand
        if isinstance(operand, Formula):
            raise UndecidedError(
                "AX503", f"whether the unknown name of an element passes {operand} is not decided"
            )
        if isinstance(operand, Number | Moment) and not (
            isinstance(operand, Number) and each.operator == "!="
        ):
            return False  # no name is a number or a date; every name passes `!=` with a number
        if isinstance(operand, str):
            _check_type(each.operator)
            if each.operator in ORDERS and key_of(operand)[0] is not ValueKind.TEXT:
                return False
            mine.append((each.operator, operand))
    fixed = [value for operator, value in mine if operator == "="]
    if fixed:
        return bool(_NAME.fullmatch(fixed[0])) and _passes_all(fixed[0], mine)
    symbols = [(parted(operator)[0], operator, value) for operator, value in mine]
    if any(s in ("<", "<=") and not _passes_all(_LEAST_NAME, [(o, v)]) for s, o, v in symbols):
        return False
    starts = [_LEAST_NAME, *(value for symbol, _, value in symbols if symbol in (">", ">="))]
    longer = "-" * (
        1 + len(mine)
    )  # the least character inside a name; each `!=` excludes one candidate
    for start in starts:
        for end in range(len(longer)):
            name = start + longer[:end]
            if _NAME.fullmatch(name) and _passes_all(name, mine):
                return True
    raise UndecidedError(
        "AX503", "an order between the unknown name of an element and a constant is not decided"
    )


def _check_type(operator: str) -> None:
    if parted(operator)[1] not in (None, "xs:string"):
        raise UndecidedError("AX503", f"comparing an unknown value by {operator} is not decided")


def _passes_all(text: str, comparisons: Iterable[tuple[str, Constant]]) -> bool:
    return all(comparison(operator, value)(text) for operator, value in comparisons)


def _constants(comparisons: Iterable[Comparison]) -> list[tuple[str, Constant]]:
    return [(c.operator, c.operand) for c in comparisons if not isinstance(c.operand, Variable)]


def is_consistent(comparisons: list[Comparison]) -> bool:
    """Whether one string can pass all these comparisons with constants."""
    constants = _constants(comparisons)
    for operator, operand in constants:
        if operator == "=" and isinstance(operand, str):
            return _passes_all(operand, constants)
    if any(isinstance(operand, Formula) for _, operand in constants):
        return can_hold(comparisons)
    for operator, _ in constants:
        _check_type(operator)
    doubles = [(o, v) for o, v in constants if isinstance(v, float)]
    strings = [(o, v) for o, v in constants if isinstance(v, str) and parted(o)[1] is not None]
    others = [(o, v) for o, v in constants if not isinstance(v, float) and parted(o)[1] is None]
    ordered = [pair for pair in others if not (pair[0] == "!=" and isinstance(pair[1], str))]
    if sum(map(bool, (doubles, strings, ordered))) > 1:
        raise UndecidedError("AX503", "one unknown value is compared by the rules of two languages")
    if doubles:  # every double has infinitely many spellings
        return _doubles_meet(doubles)
    if strings:
        plain = [(parted(o)[0], v) for o, v in (*strings, *others) if isinstance(v, str)]
        return _texts_meet(plain)
    return any(_kind_meets(kind, others) for kind in ValueKind)


def _kind_meets(kind: ValueKind, constants: Sequence[tuple[str, Constant]]) -> bool:
    """Whether some value of a kind passes all comparisons of the native language."""
    mine: list[tuple[str, Any]] = []
    for operator, operand in constants:
        if isinstance(operand, str) and operator == "!=":
            if kind is ValueKind.TEXT:
                mine.append((operator, operand))
            continue  # other kinds have infinitely many spellings
        if isinstance(operand, str):
            of, value = key_of(operand)
        elif isinstance(operand, Number):
            of, value = ValueKind.NUMBER, operand.value
        else:
            assert isinstance(operand, Moment)
            of, value = ValueKind.MOMENT, operand.microseconds
        if of is kind:
            mine.append((operator, value))
        elif not (isinstance(operand, Number) and operator == "!="):
            return False
    if kind is ValueKind.TEXT:
        return _texts_meet(mine)
    exact = [(operator, Fraction(value)) for operator, value in mine]
    if kind is ValueKind.TIME:
        exact += _DAY
    return _numbers_meet(exact)


_HOUR = 3_600_000_000
_DAY = [(">=", Fraction(-14 * _HOUR)), ("<", Fraction(38 * _HOUR))]
"""The range of times of day, with zones of up to 14 hours on either side."""


def _numbers_meet(constants: list[tuple[str, Fraction]]) -> bool:
    """Whether some fraction passes all these comparisons."""
    lows = [(v, o == ">") for o, v in constants if o in (">", ">=", "=")]
    highs = [(-v, o == "<") for o, v in constants if o in ("<", "<=", "=")]
    if not lows or not highs:
        return True
    (low, open_low), (negated, open_high) = max(lows), max(highs)
    if low != -negated:
        return low < -negated
    return not (open_low or open_high) and all(v != low for o, v in constants if o == "!=")


def _doubles_meet(constants: list[tuple[str, float]]) -> bool:
    """Whether some double passes all these comparisons; NaN passes only `!=`."""
    if all(operator == "!=" for operator, _ in constants):
        return True
    low, high = -inf, inf
    for operator, value in constants:
        if operator in (">", ">=", "="):
            low = max(low, nextafter(value, inf) if operator == ">" else value)
        if operator in ("<", "<=", "="):
            high = min(high, nextafter(value, -inf) if operator == "<" else value)
        if (operator == ">" and value == inf) or (operator == "<" and value == -inf):
            return False
    excluded = {value for operator, value in constants if operator == "!="}
    while low in excluded and low < high:
        low = nextafter(low, inf)
    return low <= high and low not in excluded


def _texts_meet(constants: list[tuple[str, str]]) -> bool:
    """Whether the least text above the lower bounds, `!=` respected, is below the upper bounds."""
    excluded = {v for o, v in constants if o == "!="}
    least = ""
    for operator, value in constants:
        if operator == ">=":
            least = max(least, value)
        elif operator == ">":
            least = max(least, value + _LEAST)
    while least in excluded:
        least += _LEAST
    return all(
        least < value or (least == value and operator == "<=")
        for operator, value in constants
        if operator in ("<", "<=")
    )
