"""The operators over rows with random parameters, each with its definition by brute force.

The definitions read all rows and use none of the operators' code: lists, loops, fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import cmp_to_key
from math import floor, inf, isfinite, nan
from random import Random
from typing import Any

from axlog.evaluate.joins import Bag, Row, add
from axlog.evaluate.sort_keys import exact_key
from axlog.query.dates import HOUR, DateTime, DayTimeDuration, YearMonthDuration
from axlog.views.operators.aggregates import (
    Aggregate,
    Average,
    Collect,
    Count,
    CountDistinct,
    Max,
    Min,
    StringJoin,
    Sum,
)
from axlog.views.operators.feed import Stored
from axlog.views.operators.filter import Filter
from axlog.views.operators.group import Group
from axlog.views.operators.left_join import LeftJoin
from axlog.views.operators.map import Map
from axlog.views.operators.operator import Operator
from axlog.views.operators.order import Descending
from axlog.views.operators.range_join import RangeJoin
from axlog.views.operators.sets import difference
from axlog.views.operators.top import Top

KEYS = ("1", "2", "3")
NUMBERS = (
    None, 0, 1, 2, -3, 10**30, Decimal("0.1"), Decimal("-2.50"), Decimal("1e-40"), Decimal(7),
)  # fmt: skip
FLOATS = (0.1, 0.2, -0.3, 1e16, -1e16, 1e-300, 1e308, inf, -inf, nan)
DURATIONS = (
    None, DayTimeDuration(0, HOUR), DayTimeDuration(0, -3 * HOUR),
    DayTimeDuration(0, Fraction(1, 8)), YearMonthDuration(5), YearMonthDuration(-17), 3, "three",
    True,
)  # fmt: skip
MOMENTS = (
    None,
    *(DateTime(hour * HOUR, zone) for hour in (1, 2, 3) for zone in (None, 0, 60, 120)),
)
TEXTS = (None, "", "a", "b", "ab", "10", "9")
ORDERS: tuple[str, ...] = ("<", "<=", ">", ">=")


def make_row(random: Random, schema: Sequence[str]) -> Row:
    """A random row: the first letter of a column tells what its cells are."""
    return tuple(_cell(random, column) for column in schema)


def _cell(random: Random, column: str) -> Any:
    kind = column[0]
    if kind == "k":
        return random.choice(KEYS)
    if kind == "n":
        return random.choice(NUMBERS)
    if kind == "i":
        return random.randint(0, 12)
    if kind == "f":
        return random.choice((*NUMBERS, *FLOATS))
    if kind == "d":
        return random.choice(DURATIONS)
    if kind == "m":
        return random.choice(MOMENTS)
    return random.choice(TEXTS)


Schemas = tuple[tuple[str, ...], ...]
Cells = tuple[Any, ...]


class Subject:
    """An operator with its parameters, and its output by definition."""

    schemas: Schemas = (("k", "l", "n", "t"),)
    grows_from: int | None = None
    """The number of the update from which on the input only grows; None: it never does."""
    is_local = True
    """Whether the rows behind an output row yield it by themselves."""

    def __init__(self, random: Random) -> None:
        raise NotImplementedError

    def build(self, inputs: Sequence[Stored]) -> Operator:
        """The operator over stored inputs."""
        raise NotImplementedError

    def output(self, bags: Sequence[Bag]) -> Bag:
        """The output for these inputs, by definition."""
        raise NotImplementedError


# Filter and map -----------------------------------------------------------------------------------


class FilterSubject(Subject):
    schemas = (("k1", "i1", "t1"),)

    def __init__(self, random: Random) -> None:
        self.bound = random.randint(0, 12)

    def passes(self, row: Row) -> bool:
        return int(row[1]) < self.bound and row[2] is not None

    def build(self, inputs: Sequence[Stored]) -> Operator:
        return Filter(inputs[0], self.passes)

    def output(self, bags: Sequence[Bag]) -> Bag:
        return {row: count for row, count in bags[0].items() if self.passes(row)}


class MapSubject(Subject):
    schemas = (("k1", "i1", "t1"),)

    def __init__(self, random: Random) -> None:
        self.by = random.randint(1, 6)
        self.columns = random.sample(("k1", "half", "t1", "i1", "other"), random.randint(1, 4))

    def value(self, column: str, row: Row) -> Any:
        if column == "half":
            return int(row[1]) // self.by
        return row[{"k1": 0, "i1": 1, "t1": 2, "other": 2}[column]]

    def build(self, inputs: Sequence[Stored]) -> Operator:
        sources: dict[str, Any] = {"half": lambda row: row[1] // self.by, "other": "t1"}
        return Map.computed(inputs[0], [(c, sources.get(c, c)) for c in self.columns])

    def output(self, bags: Sequence[Bag]) -> Bag:
        found: Bag = {}
        for row, count in bags[0].items():
            add(found, tuple(self.value(column, row) for column in self.columns), count)
        return found


# Aggregates ---------------------------------------------------------------------------------------


def total_of(values: list[Any], is_average: bool = False) -> Any:
    """The sum of numbers by fractions; a float if one is a float; None where there is no sum."""
    if is_average and not values:
        return None
    kinds: set[Any] = {float if isinstance(v, float | Decimal) or type(v) is int else type(v)
                       for v in values}  # fmt: skip
    if len(kinds) > 1 or kinds & {str, bool, DateTime}:
        return None
    if kinds & {DayTimeDuration, YearMonthDuration}:
        months = sum(v.months for v in values)
        exact = sum((Fraction(v.nanoseconds) for v in values), Fraction())
        if is_average:  # rounded, a half up: to whole months, and to 20 decimals of seconds
            months = floor(Fraction(months, len(values)) + Fraction(1, 2))
            exact = Fraction(floor(exact / len(values) * 10**11 + Fraction(1, 2)), 10**11)
        return next(iter(kinds))(months, exact)
    specials = [v for v in values if isinstance(v, float) and not isfinite(v)]
    if specials:
        return nan if len({str(v) for v in specials}) > 1 or nan in specials else specials[0]
    total = sum((Fraction(v) for v in values), Fraction()) / (len(values) if is_average else 1)
    if any(isinstance(v, float) for v in values):
        try:
            return float(total)
        except OverflowError:
            return inf if total > 0 else -inf
    return _rounded(total, len(values)) if is_average else total


def _rounded(average: Fraction, count: int) -> Decimal:
    """To 34 significant digits, or as many as give 18 decimals below the digits of the sum."""
    whole = len(str(abs(int(average * count))))
    return Context(prec=max(34, whole + 18)).divide(
        Decimal(average.numerator), Decimal(average.denominator)
    )


Definition = Callable[[list[Any]], Any]


class Chosen:
    """An aggregate with its definition, over the values of a group in the order of their rows."""

    def __init__(self, random: Random, columns: Sequence[str]) -> None:
        number, text = 2, 3
        both = random.choice((number, text))
        is_ordered = columns[number][0] in "nm"
        kinds = ["rows", "count", "distinct", "sum", "avg", "min", "max", "join", "collect"]
        kind = self.kind = random.choice(kinds)
        self.by = random.choice((None, 0, 1))
        self.at = text if kind == "join" else number if kind in ("sum", "avg") else both
        if not is_ordered and kind not in ("sum", "avg", "rows", "count"):
            self.at = text
        self.separator = random.choice(("", ", "))
        read, at = (lambda row: row[self.at]), self.by
        by = None if at is None else (lambda row: row[at])
        made: dict[str, Callable[[], Aggregate]] = {
            "rows": Count,
            "count": lambda: Count(read),
            "distinct": lambda: CountDistinct(read),
            "sum": lambda: Sum(read),
            "avg": lambda: Average(read),
            "min": lambda: Min(read),
            "max": lambda: Max(read),
            "join": lambda: StringJoin(read, self.separator, by),
            "collect": lambda: Collect(read, by),
        }
        self.make = made[kind]

    def value(self, bag: Bag) -> Any:
        """The aggregate of some rows, by its definition."""
        if self.kind == "rows":
            return sum(bag.values())
        pairs = [
            (None if self.by is None else row[self.by], row[self.at])
            for row, count in bag.items()
            for _ in range(count)
            if row[self.at] is not None
        ]
        values = [value for _, value in pairs]
        if self.kind == "count":
            return len(values)
        if self.kind == "distinct":
            return len(set(values))
        if self.kind in ("sum", "avg"):
            return total_of(values, self.kind == "avg")
        ordered = sorted(values, key=cmp_to_key(compare_cells))
        if self.kind in ("min", "max"):
            return (ordered[0] if self.kind == "min" else ordered[-1]) if ordered else None
        pairs.sort(key=cmp_to_key(compare_rows))
        values = [value for _, value in pairs]
        return self.separator.join(map(str, values)) if self.kind == "join" else tuple(values)


def compare_cells(one: Any, other: Any) -> int:
    """The order of cells: none, numbers, moments, texts."""
    ranks = [[type(None), DateTime, str].index(type(v)) if type(v) in (type(None), DateTime, str)
             else 0.5 for v in (one, other)]  # fmt: skip
    if ranks[0] != ranks[1]:
        return -1 if ranks[0] < ranks[1] else 1
    if isinstance(one, DateTime):
        return compare_cells(one.instant, other.instant)
    return 0 if one == other else -1 if one < other else 1


def compare_rows(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The order of rows, cell by cell."""
    return next((c for c in map(compare_cells, one, other) if c), 0)


class GroupSubject(Subject):
    def __init__(self, random: Random) -> None:
        self.schemas = (("k1", "k2", random.choice(("n1", "f1", "d1", "m1")), "t1"),)
        self.grows_from = random.choice((0, 1, 3)) if random.random() < 0.2 else None
        self.keys = random.choice(((), (0,), (1,), (0, 1), (1, 0)))
        self.always = not self.keys and random.random() < 0.7
        columns = self.schemas[0]
        self.chosen = [Chosen(random, columns) for _ in range(random.randint(0, 3))]

    def build(self, inputs: Sequence[Stored]) -> Operator:
        columns = [self.schemas[0][at] for at in self.keys]
        aggregates = [(f"a{at}", each.make()) for at, each in enumerate(self.chosen)]
        return Group(inputs[0], columns, aggregates, always=self.always)

    def output(self, bags: Sequence[Bag]) -> Bag:
        groups: dict[Row, Bag] = {(): {}} if self.always else {}
        for row, count in bags[0].items():
            groups.setdefault(tuple(row[at] for at in self.keys), {})[row] = count
        return {key + tuple(c.value(bag) for c in self.chosen): 1 for key, bag in groups.items()}


# Order --------------------------------------------------------------------------------------------


class TopSubject(Subject):
    is_local = False

    def __init__(self, random: Random) -> None:
        self.schemas = (("k1", "i1", random.choice(("t1", "m1"))),)
        self.per = random.choice(((), (0,)))
        self.start = random.choice((0, 0, 0, 1, 2, -1, -2, -4))
        self.stop = random.choice((None, 1, 2, 3, 5, -1, -2, 0))
        self.grows_from = random.choice((0, 1, 3)) if random.random() < 0.4 else None
        self.is_descending = random.random() < 0.5
        self.columns = random.choice(((1,), (2,), (2, 1)))

    def order(self, row: Row) -> Any:
        keys = [exact_key(row[at]) for at in self.columns]
        return tuple(Descending(key) if self.is_descending else key for key in keys)

    def compare(self, one: Row, other: Row) -> int:
        """The order by definition: the columns, then the whole row."""
        sides = [[row[at] for at in self.columns] for row in (one, other)]
        found = compare_rows(*sides) * (-1 if self.is_descending else 1)
        return found or compare_rows(one, other)

    def build(self, inputs: Sequence[Stored]) -> Operator:
        per = [self.schemas[0][at] for at in self.per]
        return Top(inputs[0], self.order, self.start, self.stop, per)

    def output(self, bags: Sequence[Bag]) -> Bag:
        parts: dict[Row, list[Row]] = {}
        for row in bags[0]:
            parts.setdefault(tuple(row[at] for at in self.per), []).append(row)
        shown = [sorted(rows, key=cmp_to_key(self.compare))[self.start : self.stop]
                 for rows in parts.values()]  # fmt: skip
        return {row: bags[0][row] for rows in shown for row in rows}


# Two sides ----------------------------------------------------------------------------------------


class LeftJoinSubject(Subject):
    schemas: Schemas = (("k1", "i1"), ("t1", "k1", "n1"))

    def __init__(self, random: Random) -> None:
        self.on = random.choice((("k1",), ()))
        if not self.on:
            self.schemas = (("k1", "i1"), ("t1", "n1"))
        self.default: Row = tuple([0] * (len(self.schemas[1]) - len(self.on)))

    def build(self, inputs: Sequence[Stored]) -> Operator:
        return LeftJoin(inputs[0], inputs[1], self.on, self.default)

    def output(self, bags: Sequence[Bag]) -> Bag:
        found: Bag = {}
        for left, count in bags[0].items():
            rights = [(row, n) for row, n in bags[1].items() if not self.on or row[1] == left[0]]
            for row, n in rights:
                add(found, left + ((row[0], row[2]) if self.on else row), count * n)
            if not rights:
                add(found, left + self.default, count)
        return found


class RangeJoinSubject(Subject):
    schemas: Schemas = (("k1", "n1", "i1"), ("k1", "n2", "t1"))

    def __init__(self, random: Random) -> None:
        self.on = random.choice(((), ("k1",)))
        if not self.on:
            self.schemas = (("k1", "n1", "i1"), ("k2", "n2", "t1"))
        if random.random() < 0.5:
            self.schemas = tuple((k, "i" + n[1:] + "0", t) for k, n, t in self.schemas)
        self.comparison: Any = random.choice(ORDERS)
        read = lambda row: row[1]  # noqa: E731
        kinds: list[tuple[str, Aggregate]] = [
            ("rows", Count()), ("count", Count(lambda row: row[2])), ("sum", Sum(read)),
            ("avg", Average(read)),
        ]  # fmt: skip
        self.chosen = random.sample(kinds, random.randint(1, 4))

    def build(self, inputs: Sequence[Stored]) -> Operator:
        values = (lambda row: row[1], lambda row: row[1])
        return RangeJoin((inputs[0], inputs[1]), values, self.comparison, self.chosen, self.on)

    def output(self, bags: Sequence[Bag]) -> Bag:
        found: Bag = {}
        for left, count in bags[0].items():
            rights: list[Cells] = [
                row for row, n in bags[1].items() for _ in range(n) if self.holds(left, row)
            ]
            values: dict[str, Any] = {
                "rows": len(rights),
                "count": len([row for row in rights if row[2] is not None]),
                "sum": total_of([row[1] for row in rights]),
                "avg": total_of([row[1] for row in rights], is_average=True),
            }
            add(found, left + tuple(values[name] for name, _ in self.chosen), count)
        return found

    def holds(self, left: Cells, right: Cells) -> bool:
        """Whether a right row belongs to a left row."""
        if (self.on and left[0] != right[0]) or left[1] is None or right[1] is None:
            return False
        found = compare_cells(right[1], left[1])
        return found in {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}[self.comparison]


class DifferenceSubject(Subject):
    schemas = (("k1", "i1"), ("k1", "i1"))

    def __init__(self, random: Random) -> None:
        if random.random() < 0.5:
            self.schemas = (("k1", "k2"), ("k2", "k1"))

    def build(self, inputs: Sequence[Stored]) -> Operator:
        return difference(inputs[0], self.schemas[1])

    def output(self, bags: Sequence[Bag]) -> Bag:
        places = [self.schemas[1].index(column) for column in self.schemas[0]]
        rights = {tuple(row[at] for at in places) for row in bags[1]}
        return {row: count for row, count in bags[0].items() if row not in rights}


SUBJECTS: dict[str, Callable[[Random], Subject]] = {
    "filter": FilterSubject,
    "map": MapSubject,
    "group": GroupSubject,
    "top": TopSubject,
    "left join": LeftJoinSubject,
    "range join": RangeJoinSubject,
    "difference": DifferenceSubject,
}
"""Every operator over rows by its name."""
