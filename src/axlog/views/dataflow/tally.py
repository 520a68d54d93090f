"""Aggregates of a group's items, kept as entries come and go.

The number of items, their exact sum and their least and greatest values follow from each entry that
is added or removed, so an update does not read the group. Sums of doubles are exact and rounded
once, in place of one rounding for each addition. Items that are no numbers make an aggregate fall
back to its definition, over all items of the group.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, isnan, nan
from typing import Any

from axlog.document.tree import Tree
from axlog.errors import ValueProblem
from axlog.evaluate.arithmetic import ARITHMETIC
from axlog.evaluate.atoms import NUMERIC, Untyped
from axlog.evaluate.casts import cast
from axlog.evaluate.items import Item, Items, Node, atom
from axlog.query.numbers import decimal_of, double


class Summary:
    """The number, kinds, exact sum and extremes of some items."""

    def __init__(self) -> None:
        self.count = 0
        self._kinds: Counter[type] = Counter()
        self._special: Counter[str] = Counter()
        self._total = Fraction(0)
        self._ends: tuple[Any, Any] | None = None  # the least and the greatest number

    @classmethod
    def of(cls, tree: Tree, items: Iterable[Item]) -> Summary:
        """The summary of items."""
        made = cls()
        for item in items:
            made.count += 1
            value = summed_value(tree, item)
            if made._note(value, 1):
                made._widen(value, value)
        return made

    def merge(self, other: Summary) -> None:
        """Add the items of another summary."""
        self.count += other.count
        self._kinds.update(other._kinds)
        self._special.update(other._special)
        self._total += other._total
        if other._ends is not None:
            self._widen(*other._ends)

    def _widen(self, least: Any, greatest: Any) -> None:
        low, high = (least, greatest) if self._ends is None else self._ends
        self._ends = min(low, least), max(high, greatest)

    def _note(self, value: Any, sign: int) -> bool:
        """Count a value; whether it is a finite number."""
        kind = type(value)
        self._kinds[kind] += sign
        if kind not in NUMERIC:
            return False
        if kind is float and not isfinite(value):
            self._special[str(value)] += sign
            return False
        self._total += sign * Fraction(value)
        return True

    @property
    def is_numeric(self) -> bool:
        """Whether all items are numbers, so that the aggregates are known."""
        return all(kind in NUMERIC for kind, count in self._kinds.items() if count)

    def sum(self) -> Any:
        """The sum, in the type that XQuery gives it."""
        if not self.count:
            return 0
        if self._kinds[float]:
            return self._special_sum() if +self._special else _as_double(self._total)
        if self._kinds[Decimal]:
            return _as_decimal(self._total)
        return int(self._total)

    def _special_sum(self) -> float:
        high, low = self._special["inf"], self._special["-inf"]
        if self._special["nan"] or (high and low):
            return nan
        return inf if high else -inf

    def avg(self) -> Any:
        """The average; None without items."""
        return ARITHMETIC["div"](self.sum(), self.count) if self.count else None

    def ends(self) -> tuple[Any, Any] | None:
        """The least and the greatest finite number; None without any."""
        return self._ends

    def extreme(self, is_greatest: bool) -> Any:
        """The least or greatest number; None without items."""
        if not self.count:
            return None
        if self._special["nan"]:
            return nan
        special = "inf" if is_greatest else "-inf"
        if self._special[special]:
            return float(special)
        ends = self.ends()
        if ends is None:  # only the other infinity
            return -inf if is_greatest else inf
        found = ends[is_greatest]
        if self._kinds[float]:
            return double(found)
        return decimal_of(found) if self._kinds[Decimal] else found


def summed_value(tree: Tree, item: Item) -> Any:
    """The value of an item for sums: untyped values are doubles; a string if it is no number."""
    value: Any = atom(tree, item)
    if type(value) is Untyped:
        try:
            value = cast(value, "xs:double")
        except ValueProblem:
            return str(value)
    return value


class Tally(Summary):
    """The aggregates of one output of a group.

    `is_distinct`: a node counts once, however many entries give it.
    """

    def __init__(self, tree: Tree, is_distinct: bool, is_read: bool) -> None:
        super().__init__()
        self._tree = tree
        self._is_distinct = is_distinct
        self._is_read = is_read
        self.uneven = 0
        """Entries that have no item, or several."""
        self._nodes: dict[int, tuple[int, Any]] = {}  # how many entries give it, and its value
        self._added: dict[Hashable, list[tuple[Item, Any]]] = {}
        self._ordered: list[Any] = []

    def add(self, entry: Hashable, items: Items) -> None:
        """Add the items of an entry."""
        held: list[tuple[Item, Any]] = []
        for item in items:
            value = summed_value(self._tree, item) if self._is_read else None
            if self._is_distinct and isinstance(item, Node):
                known = self._nodes.get(item)
                self._nodes[item] = (1 if known is None else known[0] + 1, value)
                held.append((item, None))
                if known is not None:
                    if self._is_read and known[1] != value:  # the node has changed since
                        self._change(known[1], -1)
                        self._change(value, 1)
                    continue
            else:
                held.append((item, value))
            self.count += 1
            if self._is_read:
                self._change(value, 1)
        self._added[entry] = held
        self.uneven += len(held) != 1

    def remove(self, entry: Hashable) -> None:
        """Remove the items of an entry."""
        held = self._added.pop(entry)
        self.uneven -= len(held) != 1
        for item, value in held:
            if self._is_distinct and isinstance(item, Node):
                times, value = self._nodes[item]
                if times > 1:
                    self._nodes[item] = (times - 1, value)
                    continue
                del self._nodes[item]
            self.count -= 1
            if self._is_read:
                self._change(value, -1)

    def _change(self, value: Any, sign: int) -> None:
        if not self._note(value, sign):
            return
        if sign > 0:
            insort(self._ordered, value)
        else:
            at = bisect_left(self._ordered, value)
            while type(self._ordered[at]) is not type(value):  # 1 and 1.0 are equal
                at += 1
            del self._ordered[at]

    def ends(self) -> tuple[Any, Any] | None:
        return (self._ordered[0], self._ordered[-1]) if self._ordered else None


def _as_double(total: Fraction) -> float:
    try:
        return total.numerator / total.denominator
    except OverflowError:
        return inf if total > 0 else -inf


def _as_decimal(total: Fraction) -> Decimal:
    """The exact decimal: sums of decimals have a denominator of twos and fives."""
    digits = 0
    denominator = total.denominator
    while denominator % 10 == 0:
        denominator //= 10
        digits += 1
    twos = fives = 0
    while denominator % 2 == 0:
        denominator //= 2
        twos += 1
    while denominator % 5 == 0:
        denominator //= 5
        fives += 1
    digits += max(twos, fives)
    return Decimal(int(total * 10**digits)).scaleb(-digits)


def is_nan(value: object) -> bool:
    """Whether a value is the double NaN."""
    return isinstance(value, float) and isnan(value)


def unequal(one: Items, other: Items) -> bool:
    """Whether two sequences of aggregates differ; NaN is equal to itself."""
    if len(one) != len(other):
        return True
    pairs: Iterable[tuple[Any, Any]] = zip(one, other, strict=True)
    return any(
        type(a) is not type(b) or (a != b and not (is_nan(a) and is_nan(b))) for a, b in pairs
    )
