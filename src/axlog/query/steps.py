"""The steps after the pattern: computed columns, filters, groups, order (docs/design.md, 4).

The pattern of a query yields a bag of rows, with one column for each of its outputs. The steps pass
over this bag one after the other. Each has named columns and gives named columns:

- `Filter` drops the rows for which its condition does not hold.
- `Clock` drops the rows that do not hold at the document's clock.
- `Positions` drops the rows whose nodes are not at their positions among their siblings.
- `Compute` replaces the columns of a row by the values of expressions over them.
- `Group` has one row for each distinct value of its keys: the keys, then the aggregates.
- `Order` keeps the first rows in an order, or all of them.

An expression refers to a column by `Reference(name)`. Columns whose name contains `~` are not
shown. They stand behind the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from axlog.query.columns import ColumnType
from axlog.query.pattern import Pattern
from axlog.query.syntax_tree import Expression, Reference

Scalar: TypeAlias = Expression | Reference
"""An expression over the columns of a row; `Reference(name)` is a column."""

AGGREGATES = (
    "count", "sum", "avg", "min", "max", "string-join", "collect", "latest", "earliest",
)  # fmt: skip
"""The aggregate functions."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One computed column."""

    name: str
    expression: Scalar
    type: ColumnType = "any"


@dataclass(frozen=True, slots=True)
class Compute:
    """The columns are replaced by these."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the condition is not true are dropped."""

    condition: Scalar


@dataclass(frozen=True, slots=True)
class ClockTest:
    """A linear condition on the clock: `factor * now + sum of coefficient * column  op  bound`.

    The columns hold times. The bound is in microseconds; `value` is added to it, if there is one.
    """

    factor: int
    terms: tuple[tuple[int, str], ...]
    operator: str
    bound: int
    value: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Unless:
    """A `not` whose constraints name the clock: rows of another pattern that block rows.

    A row of `pattern` that holds at the clock blocks the rows that agree with it in `columns`.
    """

    pattern: Pattern
    clock: Clock
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clock:
    """The rows that pass the tests at the clock, and that nothing blocks then.

    `written` is the pattern of the query with its constraints on the clock. `dropped` are columns
    that only serve this step.
    """

    written: Pattern
    tests: tuple[ClockTest, ...] = ()
    unless: tuple[Unless, ...] = ()
    dropped: tuple[str, ...] = ()


Slice: TypeAlias = tuple[int, int | None]
"""Positions from 0, as the bounds of a slice of Python; negative ones count from the end."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The nodes at some positions among their siblings.

    `pattern` finds the siblings, and shows their ids. Of the siblings with one parent, in document
    order, the slices choose one after the other. `column` shows the id that must be chosen.
    """

    pattern: Pattern
    column: str
    slices: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """A `not` with positions inside: rows of another pattern that block rows.

    A row of `pattern` whose nodes are at their `positions` blocks the rows that show the id of its
    first column in `column`: the id of the node at which the `not` stands.
    """

    pattern: Pattern
    positions: Positions
    column: str


@dataclass(frozen=True, slots=True)
class Positions:
    """The rows whose nodes are at their positions: `item[1]`.

    `written` has the paths with their positions. `absent` has the `not`s with positions inside.
    `dropped` are columns that only serve this step.
    """

    written: Pattern
    chosen: tuple[Chosen, ...]
    dropped: tuple[str, ...] = ()
    absent: tuple[Absent, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of ids that the step reads."""
        both = [each.column for each in self.chosen] + [each.column for each in self.absent]
        return tuple(dict.fromkeys(both))


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row of the pattern counts once, whatever its derivation count.

    `dropped` are columns that only earlier steps read: rows that differ in them are one.
    """

    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a group: a function of the values of a column.

    `count` without an argument counts rows. `by` is the column by whose values `latest` and
    `earliest` choose. `separator` is that of `string-join`.
    """

    name: str
    function: str
    argument: str | None = None
    is_distinct: bool = False
    by: str | None = None
    separator: str = ""
    type: ColumnType = "any"


@dataclass(frozen=True, slots=True)
class Group:
    """One row for each distinct value of the key columns; without keys always one row."""

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class SortKey:
    """One column of an order."""

    column: str
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """The first `limit` rows by these columns, ties broken by the whole row; None: all rows."""

    keys: tuple[SortKey, ...]
    limit: int | None = None


Step: TypeAlias = Distinct | Clock | Positions | Compute | Filter | Group | Order


def is_hidden(column: str) -> bool:
    """Whether rows do not show a column."""
    return "~" in column


def has_groups(steps: tuple[Step, ...]) -> bool:
    """Whether the rows of a query are groups."""
    return any(isinstance(step, Group) for step in steps)


def clock_of(steps: tuple[Step, ...]) -> Clock | None:
    """The step by which rows depend on the clock, if there is one."""
    return next((step for step in steps if isinstance(step, Clock)), None)


def positions_of(steps: tuple[Step, ...]) -> Positions | None:
    """The step that chooses by positions, if there is one."""
    return next((step for step in steps if isinstance(step, Positions)), None)


def side_patterns(steps: Iterable[Step]) -> Iterator[Pattern]:
    """The patterns beside that of the query whose rows decide which rows it has.

    They are those of `unless` and `absent`, each before those inside it, and those of the siblings
    of nodes.
    """
    for step in steps:
        if isinstance(step, Clock):
            for each in step.unless:
                yield each.pattern
                yield from side_patterns((each.clock,))
        elif isinstance(step, Positions):
            yield from (each.pattern for each in step.chosen)
            for absent in step.absent:
                yield absent.pattern
                yield from side_patterns((absent.positions,))


def order_of(steps: tuple[Step, ...]) -> Order | None:
    """The order of a query's rows, if it has one."""
    return next((step for step in reversed(steps) if isinstance(step, Order)), None)


def collected_after(step: Step, collected: frozenset[str]) -> frozenset[str]:
    """The columns after a step whose values are tuples of collected paths."""
    if not collected or not isinstance(step, Compute):
        return collected
    return frozenset(
        cell.name
        for cell in step.cells
        if isinstance(cell.expression, Reference) and cell.expression.name in collected
    )


def columns_after(
    steps: tuple[Step, ...], base: Iterator[tuple[str, ColumnType]]
) -> dict[str, ColumnType]:
    """The columns that steps give, with their types, from those of the pattern."""
    columns = dict(base)
    for step in steps:
        if isinstance(step, Clock | Positions | Distinct):
            columns = {name: columns[name] for name in columns if name not in step.dropped}
        elif isinstance(step, Compute):
            columns = {cell.name: cell.type for cell in step.cells}
        elif isinstance(step, Group):
            keys = {name: columns[name] for name in step.keys}
            columns = keys | {each.name: each.type for each in step.aggregates}
    return columns
