"""Measures: the aggregates of an operator, and their states for one set of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from axlog.evaluate.joins import Row
from axlog.query.compile import Column
from axlog.views.operators.aggregates import Aggregate, Count, State, Sum, SumState
from axlog.views.operators.operator import Counted

Tables: TypeAlias = Sequence[Iterable[Counted]]
"""Rows with counts, by table."""


class Member:
    """One set of rows: their number, the states of the aggregates, the output row.

    A single state is kept as it is: a list for each group takes time and memory.
    """

    __slots__ = ("count", "kept", "row")

    def __init__(self, kept: State | list[State]) -> None:
        """`kept`: the only state, or the list of them."""
        self.count = 0
        self.kept = kept
        self.row: Row | None = None  # None: no row is shown

    @property
    def states(self) -> list[State]:
        """The states of the aggregates."""
        kept = self.kept
        return kept if type(kept) is list else [kept]  # type: ignore[list-item]

    def replace_state(self, at: int, state: State) -> None:
        """Replace one of the states."""
        if type(self.kept) is list:
            self.kept[at] = state
        else:
            self.kept = state


class Measures:
    """Named aggregates. The number of rows needs no state: every set of rows has it."""

    __slots__ = ("_kept", "columns", "reads", "shown", "summed")

    def __init__(self, aggregates: Sequence[tuple[Column, Aggregate]]) -> None:
        self.columns = tuple(column for column, _ in aggregates)
        self._kept = [each for _, each in aggregates if not _counts_rows(each)]
        self.reads = [each.read for each in self._kept]
        self.summed = [each.column if isinstance(each, Sum) else None for each in self._kept]
        """The column of each sum of values as they are; None: another aggregate."""
        self.shown = [
            None if _counts_rows(each) else self._kept.index(each) for _, each in aggregates
        ]
        """The state of each column; None: the number of rows."""

    @property
    def is_small(self) -> bool:
        """Whether the states have a constant size, and can be merged at a constant cost."""
        return all(each.is_small for each in self._kept)

    def new(self) -> Member:
        """A set of no rows."""
        states = [each.new() for each in self._kept]
        return Member(states[0] if len(states) == 1 else states)

    @property
    def makers(self) -> list[Callable[[], State]]:
        """Functions that make the states of a set of no rows."""
        return [SumState if type(each) is Sum else each.new for each in self._kept]

    def expect_insertions(self, members: Iterable[Member]) -> None:
        """Prepare for rows that only come: the states of some aggregates become smaller."""
        for at, aggregate in enumerate(self._kept):
            if aggregate.expect_insertions():
                for member in members:
                    state = aggregate.new()
                    state.merge(member.states[at])
                    member.replace_state(at, state)

    def add(self, member: Member, row: Row, count: int) -> None:
        """Add a row so many times; a negative count takes it away."""
        member.count += count
        for read, state in zip(self.reads, member.states, strict=True):
            value = read(row)
            if value is not None:
                state.add(value, count)

    def merge(self, member: Member, other: Member) -> None:
        """Add all rows of another set."""
        member.count += other.count
        for state, more in zip(member.states, other.states, strict=True):
            state.merge(more)

    def cells(self, member: Member) -> Row:
        """The values of the aggregates."""
        states = member.states
        return tuple([member.count if at is None else states[at].result() for at in self.shown])

    # As plain rows -------------------------------------------------------------------------------

    @property
    def table_count(self) -> int:
        """The number of tables."""
        return 1 + len(self._kept)

    def tables(self, members: Mapping[Row, Member]) -> Tables:
        """The number of rows of each set, then the states of each aggregate, by key."""
        numbers = [(key, each.count) for key, each in members.items()]
        return [numbers, *(_state_rows(members, at) for at in range(len(self._kept)))]

    def load(self, tables: Tables, width: int, find: Callable[[Row], Member]) -> None:
        """Add the tables of other sets; `width`: of the keys; `find`: the set of a key."""
        numbers, *states = tables
        for key, count in numbers:
            find(key).count += count
        for at, rows in enumerate(states):
            for row, count in rows:
                find(row[:width]).states[at].load(row[width:], count)


def _counts_rows(aggregate: Aggregate) -> bool:
    return isinstance(aggregate, Count) and aggregate.counts_rows


def _state_rows(members: Mapping[Row, Member], at: int) -> Iterator[Counted]:
    for key, member in members.items():
        for row, count in member.states[at].rows():
            yield key + row, count
