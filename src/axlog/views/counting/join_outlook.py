"""The future rows of a join, read off its tables: whether a row may come, how, and until when.

A way takes a row of some parts from the tables, and leaves the other parts to open streams:

    a row may come  =  some way agrees with it: its rows join, and every part that is left has an
                       open stream that can bring a row with the values and times that are left to
                       it (`future/join_inputs.py`)

The cost is that of a join which starts from the row: look-ups in the tables that the join uses for
its deltas. It does not depend on the number of rows where the parts share variables with the row.

Where the join has `not`s, a way must not be blocked by a row of one: nothing is deleted, so it
stays blocked. A value that is still unknown can be one that no row of the `not` has.

A `Moment` is the state in which a way is judged: now, or before the update that is being applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from axlog.document.tree import Tree
from axlog.evaluate.joins import Row, Value
from axlog.future.garbage import Pair
from axlog.future.join_inputs import JoinInputs, JoinPart
from axlog.future.search_budget import bounded, spend
from axlog.query.compile import Column
from axlog.views.counting.outlook_code import (
    Ask,
    best_index,
    can_write,
    holds_function,
    may_come_function,
    next_part,
)
from axlog.views.operators.table import Table

Bound = Mapping[Column, Value]
"""Columns with known values."""
Use = Callable[[Row], None]
"""Notes the value of a key that has arrived, as a row with one column."""


class Watched(Protocol):
    """A join whose inputs are followed: its tables, open streams and used key values."""

    @property
    def tree(self) -> Tree:
        """The document."""

    @property
    def live(self) -> Sequence[Table]:
        """The rows of each part that may still be joined."""

    @property
    def open(self) -> Sequence[set[str]]:
        """The open streams of each part."""

    @property
    def clock(self) -> int:
        """The clock of the document."""

    def has_used(self, part: int, position: int, value: Value) -> bool:
        """Whether a key value at this position of a part has arrived."""


@dataclass(slots=True)
class Moment:
    """What an update did, for the state before it."""

    clock: int
    rows: set[tuple[int, Row]] = field(default_factory=set)  # parts and rows that arrived
    values: set[tuple[int, int, Value]] = field(default_factory=set)  # used keys of parts
    streams: set[tuple[int, str]] = field(default_factory=set)  # that fed parts, and ended
    blocked: set[tuple[int, Row]] = field(default_factory=set)  # `not`s, and keys of new rows

    def begin(self, clock: int) -> None:
        """Begin the next update. The sets stay: generated functions refer to them."""
        self.clock = clock
        for each in (self.rows, self.values, self.streams, self.blocked):
            each.clear()


class Guard(NamedTuple):
    """A `not` of a join: the columns that it shares with the parts, and its rows."""

    columns: tuple[Column, ...]
    positions: tuple[int, ...]  # of these columns in its rows
    table: Table


class Way(NamedTuple):
    """Rows of some parts, as the values of their columns, and the parts that are left."""

    bound: Bound
    taken: tuple[int, ...]
    left: tuple[int, ...]


class JoinOutlook:
    """The future rows of one join."""

    def __init__(self, watched: Watched, inputs: JoinInputs, guards: Sequence[Guard] = ()) -> None:
        self._watched = watched
        self.inputs = inputs
        self._guards = guards
        self._everything = tuple(range(len(inputs.parts)))
        self._at: list[dict[Column, int]] = [
            {column: at for at, column in enumerate(part.columns)} for part in inputs.parts
        ]
        self._is_written = can_write(inputs)
        self._may_come: dict[tuple[Column, ...], Ask] = {}
        self._holds: dict[tuple[Column, ...], Ask] = {}

    def forget(self) -> None:
        """Write the functions of questions anew: the tables have other indexes."""
        self._may_come, self._holds = {}, {}

    # Questions ------------------------------------------------------------------------------------

    def may_come(self, wanted: Bound) -> bool:
        """Whether a row with these values may still come."""
        if not self._is_written:
            return self.witness(wanted) is not None
        columns = tuple(wanted)
        ask = self._may_come.get(columns)
        if ask is None:
            ask = may_come_function(self._watched, self.inputs, self._guards, columns)
            self._may_come[columns] = ask
        with bounded(0):
            return ask(*wanted.values())

    def witness(self, wanted: Bound) -> Way | None:
        """A way by which a row with these values may still come; None: it cannot.

        The definition of `may_come`.
        """
        with bounded(0):
            for way in self._ways(self._everything, wanted, (), (), None):
                if self.latest(way) is not None:
                    return way
        return None

    def ways(self, wanted: Bound, before: Moment | None = None) -> Iterator[Way]:
        """All ways that agree with some values, whether or not the clock leaves them time.

        Those that leave nothing to streams are rows, and not among them.
        """
        return self._ways(self._everything, wanted, (), (), before, is_complete=True)

    def ways_without(self, column: Column) -> Iterator[Way]:
        """All ways whose rows have no value of a column."""
        left = tuple(each for each in self._everything if column in self._at[each])
        rest = tuple(each for each in self._everything if each not in left)
        return self._ways(rest, {}, (), left, None, is_complete=True)

    def rows(self, wanted: Bound, before: Moment | None = None) -> Iterator[Way]:
        """The rows of the join that agree with some values, as ways that leave nothing."""
        for way in self._joined(self._everything, wanted, (), before):
            if self.latest(way, before) is not None:
                yield way

    def holds(self, wanted: Bound) -> bool:
        """Whether the join has a row with these values."""
        if not self._is_written:
            with bounded(0):
                return next(self.rows(wanted), None) is not None
        columns = tuple(wanted)
        ask = self._holds.get(columns)
        if ask is None:
            ask = holds_function(self._watched, self.inputs, self._guards, columns)
            self._holds[columns] = ask
        with bounded(0):
            return ask(*wanted.values())

    def latest(self, way: Way, before: Moment | None = None) -> int | None:
        """The latest clock at which a way can come about; None: it cannot any more."""
        for part in way.left:
            if not self._may_arrive(part, way.bound, before):
                return None
        if self._guards and self.is_blocked(way.bound, before):
            return None
        limit = self.inputs.latest(way.bound, way.left)
        clock = self._watched.clock if before is None else before.clock
        return None if limit is None or limit < clock else limit

    def is_blocked(self, bound: Bound, before: Moment | None = None) -> bool:
        """Whether a row of a `not` has the known values."""
        for number, (columns, positions, table) in enumerate(self._guards):
            if any(column not in bound for column in columns):
                continue
            key = tuple(bound[column] for column in columns)
            if table.has(positions, key) and (
                before is None or (number, key) not in before.blocked
            ):
                return True
        return False

    # Ways -----------------------------------------------------------------------------------------

    def _ways(
        self,
        left: tuple[int, ...],
        bound: Bound,
        taken: tuple[int, ...],
        future: tuple[int, ...],
        before: Moment | None,
        is_complete: bool = False,
    ) -> Iterator[Way]:
        """The ways that extend one. Without `is_complete`, a part that streams can bring with any
        values is left to them: if a way with a row of it exists, so does one without.
        """
        if not left:
            if future:
                spend(len(future))  # each part that is left is looked at once more
                yield Way(bound, taken, future)
            return
        spend(1)
        part = next_part(left, bound, self._at)
        rest = tuple(each for each in left if each != part)
        if self._may_arrive(part, bound, before):
            yield from self._ways(rest, bound, taken, (*future, part), before, is_complete)
            if not is_complete and self.inputs.parts[part].is_free:
                return
        if not rest and not future:
            return  # with a row of the last part nothing is left: no way
        columns = self.inputs.parts[part].columns
        for row in self._rows(part, bound):
            if before is not None and (part, row) in before.rows:
                continue
            longer = {**bound, **dict(zip(columns, row, strict=True))}
            yield from self._ways(rest, longer, (*taken, part), future, before, is_complete)

    def _joined(
        self, left: tuple[int, ...], bound: Bound, taken: tuple[int, ...], before: Moment | None
    ) -> Iterator[Way]:
        """The rows of all parts that extend a way and have the same values."""
        if not left:
            yield Way(bound, taken, ())
            return
        spend(1)
        part = next_part(left, bound, self._at)
        rest = tuple(each for each in left if each != part)
        columns = self.inputs.parts[part].columns
        for row in self._rows(part, bound):
            if before is None or (part, row) not in before.rows:
                longer = {**bound, **dict(zip(columns, row, strict=True))}
                yield from self._joined(rest, longer, (*taken, part), before)

    def _rows(self, part: int, bound: Bound) -> Iterator[Row]:
        """The rows of a part that agree with known values."""
        at = self._at[part]
        known = {at[column]: bound[column] for column in at if column in bound}
        table = self._watched.live[part]
        # Only indexes that exist: generated joins fill those that were there when they were made.
        positions = best_index(table.keys(), known)
        if positions is None:
            rows: Iterable[Row] = table
            positions = ()
        else:
            found = table.matching(positions, tuple(known[i] for i in positions))
            rows = [row for row, _ in found]
        rest = [(i, value) for i, value in known.items() if i not in positions]
        for row in rows:
            if all(row[i] == value for i, value in rest):
                yield row

    def _may_arrive(self, part: int, bound: Bound, before: Moment | None) -> bool:
        """Whether a stream can bring a row of a part with these values."""
        facts: JoinPart = self.inputs.parts[part]
        if not self._is_open(part, before):
            return False
        columns = facts.columns
        for position in facts.texts:
            if bound.get(columns[position]) == "":
                return False
        for position, _ in facts.keys:
            value = bound.get(columns[position])
            if value is None or (before is not None and (part, position, value) in before.values):
                continue
            if self._watched.has_used(part, position, value):
                return False
        if facts.time is not None:
            time = bound.get(columns[facts.time])
            clock = self._watched.clock if before is None else before.clock
            if time is not None and int(time) < clock:
                return False
        return True

    def _is_open(self, part: int, before: Moment | None) -> bool:
        if self._watched.open[part]:
            return True
        return before is not None and any(each == part for each, _ in before.streams)


def outlook_of_two(watched: Watched, pair: Pair, inputs: JoinInputs | str) -> JoinOutlook | None:
    """The future rows of a join of two; None: its tables and the keys it follows decide none."""
    if isinstance(inputs, str):
        return None
    is_keyed_so = all(
        facts.keys in ((), None if side.key is None else (side.key,))
        for facts, side in zip(inputs.parts, pair.sides, strict=True)
    )
    return JoinOutlook(watched, inputs) if is_keyed_so else None
