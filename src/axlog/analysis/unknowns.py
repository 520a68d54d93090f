"""What unknown strings must meet: compare with constants, differ from each other, name an element.

Comparisons with constants are intervals. Strings are ordered by code point, and the least string
above s is s with a TAB, the least XML character, behind it; so intervals are decided exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from axlog.errors import UndecidedError
from axlog.language.pattern import Comparison, Moment, ValueConstraint, Variable
from axlog.language.values import comparison

Known = Mapping[str, str | int | None]
"""Values by column; None: unknown."""

_NAME = re.compile(r"(\{[^{}]*\})?[^\W\d][\w.\-·]*")
_LEAST = "\t"
_LEAST_NAME = "A"


@dataclass(frozen=True, slots=True)
class ValueNeeds:
    """What unknown strings must meet, by column."""

    compared: frozenset[tuple[str, Comparison]] = frozenset()
    different: frozenset[tuple[str, str]] = frozenset()  # pairs of unknown columns
    names: frozenset[str] = frozenset()  # columns that label an element
    same: frozenset[tuple[str, str]] = frozenset()  # pairs of columns that are one string

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
        """What a value constraint adds; None if it fails."""
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
            return self._with(right, Comparison(_MIRRORED[operator], str(one)), values)
        if left == right:
            return self if operator in ("=", "<=", ">=") else None
        if operator == "=":
            return replace(self, same=self.same | {(left, right)})
        if operator != "!=":
            raise UndecidedError(
                "AX503",
                f"an order between two unknown values, {left} {operator} {right}",
            )
        return replace(self, different=self.different | {(left, right)})

    def settled(self, values: Known) -> ValueNeeds | None:
        """The needs with known values put in; None if one of them fails."""
        if not self.is_satisfiable(values):
            return None
        first = self._representatives()
        known = {column: value for column, value in values.items() if value is not None}
        for column, value in list(known.items()):
            known |= {other: value for other, one in first.items() if one == first.get(column)}
        if not known:
            return self
        compared = {pair for pair in self.compared if pair[0] not in known}
        # a column that is the same as a known one is known, but not to the row
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
        """The unknown columns that can be one string only, and which."""
        return {
            column: each.operand
            for column, each in self.compared
            if each.operator == "=" and isinstance(each.operand, str)
        }

    def _representatives(self) -> dict[str, str]:
        """For each column that is the same as another, the one that stands for all of them."""
        first: dict[str, str] = {}
        for left, right in sorted(self.same):
            one, other = first.setdefault(left, left), first.setdefault(right, right)
            first = {column: one if at == other else at for column, at in first.items()}
        return first

    def _merged(self, values: Known) -> tuple[ValueNeeds, Known] | None:
        """The needs with one column in place of all that are the same; None if values differ."""
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
        """Whether some strings for the unknown columns meet everything."""
        if self.same:
            merged = self._merged(values)
            return merged is not None and merged[0].is_satisfiable(merged[1])
        for column in self.names:
            value = values.get(column)
            if value is not None and not _NAME.fullmatch(str(value)):
                return False
        for left, right in self.different:
            one, other = values.get(left), values.get(right)
            if left == right or (one is not None and one == other):
                return False
            if one is None and other is None:
                self._check_unbounded(left)
                self._check_unbounded(right)
        columns = {column for column, _ in self.compared}
        return all(self._column_satisfiable(column, values.get(column)) for column in columns)

    def _check_unbounded(self, column: str) -> None:
        """Two unknowns can always differ where each has endlessly many values."""
        orders = {c.operator for name, c in self.compared
                  if name == column and isinstance(c.operand, str)}  # fmt: skip
        if "=" in orders or (orders & {"<", "<="} and orders & {">", ">="}):
            raise UndecidedError(
                "AX503", f"{column} lies between two strings and must differ from another unknown"
            )

    def _column_satisfiable(self, column: str, value: str | int | None) -> bool:
        mine = [c for name, c in self.compared if name == column]
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
    """Whether some element's name can pass all these comparisons."""
    mine: list[tuple[str, str]] = []
    for each in comparisons:
        if isinstance(each.operand, str):
            mine.append((each.operator, each.operand))
        elif isinstance(each.operand, Moment) or each.operator != "!=":
            return False  # no name is a number or a date; as a number it differs from all
    fixed = [value for operator, value in mine if operator == "="]
    if fixed:
        return bool(_NAME.fullmatch(fixed[0])) and _passes_all(fixed[0], mine)
    if any(o in ("<", "<=") and not _passes_all(_LEAST_NAME, [(o, v)]) for o, v in mine):
        return False
    starts = [_LEAST_NAME, *(value for operator, value in mine if operator in (">", ">="))]
    longer = "-" * (1 + len(mine))  # the least character inside a name; `!=` takes some away
    for start in starts:
        for end in range(len(longer)):
            name = start + longer[:end]
            if _NAME.fullmatch(name) and _passes_all(name, mine):
                return True
    raise UndecidedError("AX503", "an order between an element's unknown name and a constant")


def _passes_all(text: str, comparisons: list[tuple[str, str]]) -> bool:
    return all(comparison(operator, value)(text) for operator, value in comparisons)


_MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def is_consistent(comparisons: list[Comparison]) -> bool:
    """Whether one string can pass all these comparisons with constants."""
    constants = [(c.operator, c.operand) for c in comparisons]
    for operator, operand in constants:
        if operator == "=" and isinstance(operand, str):
            return all(
                comparison(o, v)(operand) for o, v in constants if not isinstance(v, Variable)
            )
    numbers = [(o, v) for o, v in constants if isinstance(v, float | int)]
    strings = [(o, v) for o, v in constants if isinstance(v, str)]
    moments = [(o, v) for o, v in constants if not isinstance(v, str | float | int)]
    if numbers or moments:  # every number and date can be written in endlessly many ways
        strings = [(o, v) for o, v in strings if o != "!="]
    if sum(map(bool, (numbers, strings, moments))) > 1:
        raise UndecidedError("AX503", "one value is compared both as text and as number or date")
    if numbers:
        return _numbers_meet(numbers)
    if moments:
        return _numbers_meet([(o, v.microseconds) for o, v in moments])  # type: ignore[union-attr]
    return _strings_meet([(o, v) for o, v in strings])


def _numbers_meet(constants: list[tuple[str, float]]) -> bool:
    if all(operator == "!=" for operator, _ in constants):
        return True
    low, high = -inf, inf
    open_low = open_high = False
    for operator, value in constants:
        if operator in (">", ">=", "=") and (value, operator == ">") > (low, open_low):
            low, open_low = value, operator == ">"
        if operator in ("<", "<=", "=") and (-value, operator == "<") > (-high, open_high):
            high, open_high = value, operator == "<"
    if low > high or (low == high and (open_low or open_high)):
        return False
    return low < high or all(v != low for o, v in constants if o == "!=")


def _strings_meet(constants: list[tuple[str, str]]) -> bool:
    """Least string that passes the lower bounds and `!=`, against the upper bounds."""
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
        comparison(operator, value)(least)
        for operator, value in constants
        if operator in ("<", "<=")
    )
