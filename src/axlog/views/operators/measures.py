"""Measures: the aggregates of an operator, and their states for one set of rows.

A set of rows has a `Member`. Where all aggregates are numbers of rows and sums of columns, and all
values so far are texts of decimals, an output row says all that the member would: so the row itself
is kept as the `Entry` of the set. Such a tuple takes less memory, and the garbage collector of
Python does not visit it: it visits each member and each state in every full collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from axlog.evaluate.joins import Row
from axlog.query.compile import Column
from axlog.views.operators.aggregates import Aggregate, Count, State, Sum, SumState
from axlog.views.operators.operator import Counted

Tables: TypeAlias = Sequence[Iterable[Counted]]
"""Rows with counts, by table."""
Entry: TypeAlias = "Member | tuple[Any, ...]"
"""A set of rows: its member, or its output row, with the number of rows beside it if not in it."""


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

    __slots__ = ("_kept", "columns", "is_brief", "reads", "shown", "summed")

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
        self.is_brief = bool(self._kept) and None not in self.summed
        """Whether the entry of a set can be an output row."""

    # Entries -------------------------------------------------------------------------------------

    @property
    def has_number(self) -> bool:
        """Whether the output row has the number of rows: then that row itself is an entry."""
        return None in self.shown

    def entry(self, member: Member) -> Entry:
        """What is kept of a member: its output row, if that says all."""
        row = member.row
        if not self.is_brief or row is None or member.count <= 0:
            return member
        for at, state in enumerate(member.states):
            if not isinstance(state, SumState) or not self._is_shown(state, at, member):
                return member
        return row if self.has_number else (row, member.count)

    def _is_shown(self, state: SumState, at: int, member: Member) -> bool:
        """Whether a sum has a decimal for each row, and is shown."""
        assert member.row is not None
        cells = member.row[-len(self.shown) :]
        return (
            state.decimals == member.count
            and not (state.integers or state.integer)
            and state.others is None
            and cells[self.shown.index(at)] is not None
        )

    def row(self, entry: Entry) -> Row | None:
        """The output row of a set."""
        if isinstance(entry, Member):
            return entry.row
        row: Row = entry if self.has_number else entry[0]
        return row

    def member(self, entry: Entry) -> Member:
        """The member of a set, made anew if only its output row is kept."""
        if isinstance(entry, Member):
            return entry
        row: tuple[Any, ...] = entry if self.has_number else entry[0]
        cells = row[-len(self.shown) :]
        member = self.new()
        member.row = row
        member.count = cells[self.shown.index(None)] if self.has_number else entry[1]
        for at, state in enumerate(member.states):
            assert isinstance(state, SumState)
            state.decimals, state.decimal = member.count, cells[self.shown.index(at)]
        return member

    # States --------------------------------------------------------------------------------------

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

    def expect_insertions(self, entries: Iterable[Entry]) -> None:
        """Prepare for rows that only come: the states of some aggregates become smaller."""
        for at, aggregate in enumerate(self._kept):
            if aggregate.expect_insertions():
                for member in entries:
                    assert isinstance(member, Member), "sums stay as they are"
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

    def tables(self, entries: Mapping[Row, Entry]) -> Tables:
        """The number of rows of each set, then the states of each aggregate, by key."""
        numbers = [(key, self.member(each).count) for key, each in entries.items()]
        return [numbers, *(self._state_rows(entries, at) for at in range(len(self._kept)))]

    def _state_rows(self, entries: Mapping[Row, Entry], at: int) -> Iterator[Counted]:
        for key, entry in entries.items():
            for row, count in self.member(entry).states[at].rows():
                yield key + row, count

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
