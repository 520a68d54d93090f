"""Aggregates: what a group computes of its rows, and the state that it keeps for it.

An aggregate is a description that all groups share. Each group has a state of its own:

    add(value, count)    a row came (or went, with a negative count) whose value this is
    result()             the value of the aggregate
    rows(), load(...)    the state as plain rows with counts, and their addition to a state
    merge(state)         the addition of another state

`read` gives the value of a row for the aggregate; rows without a value (None) are skipped. The
rows of two states together are the rows of both groups together. So a state can be built in parts,
elsewhere, and added up (partial aggregates), also from rows that went.

An aggregate of input that only grows (`expect_insertions`) keeps less where it can.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Protocol, TypeAlias

from axlog.evaluate.joins import Row
from axlog.evaluate.sort_keys import exact_key
from axlog.views.operators.exact_sum import ExactSum
from axlog.views.operators.ordered_index import OrderedIndex

Read: TypeAlias = Callable[[Row], Any]
"""The value of a row; None: the row has none."""


class State(Protocol):
    """The state of an aggregate for one group."""

    def add(self, value: Any, count: int) -> object:
        """Add a value so many times; a negative count takes it away."""

    def result(self) -> Any:
        """The value of the aggregate."""

    def rows(self) -> Iterable[tuple[tuple[Any, ...], int]]:
        """The state as plain rows with counts."""

    def load(self, row: tuple[Any, ...], count: int) -> None:
        """Add a row of another state."""

    def merge(self, other: Any) -> None:
        """Add all of another state of the same aggregate."""


class _ByRows:
    """A state that takes another one row by row."""

    __slots__ = ()

    def load(self, row: tuple[Any, ...], count: int) -> None:
        """Add a row of another state."""
        raise NotImplementedError

    def merge(self, other: State) -> None:
        """Add all of another state of the same aggregate."""
        for row, count in other.rows():
            self.load(row, count)


class Aggregate(ABC):
    """The description of an aggregate."""

    __slots__ = ("read",)

    name: ClassVar[str]
    """The name that `explain` prints."""

    is_small: ClassVar[bool] = False
    """Whether the state has a constant size, whatever was added."""

    def __init__(self, read: Read) -> None:
        """`read`: the value of a row."""
        self.read = read

    @abstractmethod
    def new(self) -> State:
        """The state of an empty group."""

    def expect_insertions(self) -> bool:
        """Prepare for input that only grows; whether new states are of another kind then.

        `rows` of the states so far, loaded into new ones, give these.
        """
        return False


# Counts -------------------------------------------------------------------------------------------


class CountState:
    """How many values there are."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def add(self, value: Any, count: int) -> None:
        self.count += count

    def result(self) -> int:
        return self.count

    def rows(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        if self.count:
            yield ((), self.count)

    def load(self, row: tuple[Any, ...], count: int) -> None:
        self.count += count

    def merge(self, other: CountState) -> None:
        self.count += other.count


def _every_row(row: Row) -> bool:
    return True


class Count(Aggregate):
    """The number of rows, or of rows that have a value."""

    __slots__ = ()

    name = "count"
    is_small = True

    def __init__(self, read: Read = _every_row) -> None:
        """`read`: the value of a row; by default all rows count."""
        super().__init__(read)

    @property
    def counts_rows(self) -> bool:
        """Whether all rows count: the number that every group keeps in any case."""
        return self.read is _every_row

    def new(self) -> CountState:
        return CountState()


class DistinctState(_ByRows, dict[Any, int]):
    """The different values, with counts."""

    __slots__ = ()

    def add(self, value: Any, count: int) -> None:
        total = self.get(value, 0) + count
        if total:
            self[value] = total
        else:
            del self[value]

    def result(self) -> int:
        return len(self)

    def rows(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        return (((value,), count) for value, count in self.items())

    def load(self, row: tuple[Any, ...], count: int) -> None:
        self.add(row[0], count)


class CountDistinct(Aggregate):
    """The number of different values."""

    __slots__ = ()

    name = "count distinct"

    def new(self) -> DistinctState:
        return DistinctState()


# Sums ---------------------------------------------------------------------------------------------


class SumState(ExactSum):
    """The sum of the values."""

    __slots__ = ()

    result = ExactSum.total


class Sum(Aggregate):
    """The exact sum of the values; 0 if there are none."""

    __slots__ = ("column",)

    name = "sum"
    is_small = True

    def __init__(self, read: Read, column: int | None = None) -> None:
        """`column`: the position of the values in a row, where `read` only makes them numbers."""
        super().__init__(read)
        self.column = column

    def new(self) -> SumState:
        return SumState()


class AverageState(ExactSum):
    """The average of the values."""

    __slots__ = ()

    result = ExactSum.average


class Average(Aggregate):
    """The exact sum of the values divided by their number; None if there are none."""

    __slots__ = ()

    name = "avg"
    is_small = True

    def new(self) -> AverageState:
        return AverageState()


# Extremes -----------------------------------------------------------------------------------------


class ExtremeState(_ByRows):
    """All values in order; the least or the greatest is the result."""

    __slots__ = ("aggregate", "index")

    def __init__(self, aggregate: Extreme) -> None:
        self.aggregate = aggregate
        self.index = OrderedIndex()

    def add(self, value: Any, count: int) -> None:
        self.index.add(self.aggregate.order(value), value, count)

    def result(self) -> Any:
        index = self.index
        if not index:
            return None
        return index.last_item if self.aggregate.is_greatest else index.first_item

    def rows(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        return (((entry.item,), entry.total) for entry in self.index.entries())

    def load(self, row: tuple[Any, ...], count: int) -> None:
        self.add(row[0], count)


class BestState(_ByRows):
    """The least or the greatest value of values that only ever come."""

    __slots__ = ("aggregate", "key", "value")

    def __init__(self, aggregate: Extreme) -> None:
        self.aggregate = aggregate
        self.key: Any = None
        self.value: Any = None

    def add(self, value: Any, count: int) -> None:
        assert count > 0, "a value of input that only grows went"
        key = self.aggregate.order(value)
        if (
            self.value is None
            or (self.key < key if self.aggregate.is_greatest else key < self.key)
        ):  # fmt: skip
            self.key, self.value = key, value

    def result(self) -> Any:
        return self.value

    def rows(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        if self.value is not None:
            yield ((self.value,), 1)

    def load(self, row: tuple[Any, ...], count: int) -> None:
        self.add(row[0], count)


class Extreme(Aggregate):
    """The least or the greatest value; None if there are none."""

    __slots__ = ("_only_grows", "order")

    is_greatest: ClassVar[bool]

    def __init__(self, read: Read, order: Callable[[Any], Any] = exact_key) -> None:
        """`order`: the sort key of a value; different values have different keys."""
        super().__init__(read)
        self.order = order
        self._only_grows = False

    def new(self) -> ExtremeState | BestState:
        return BestState(self) if self._only_grows else ExtremeState(self)

    def expect_insertions(self) -> bool:
        is_new, self._only_grows = not self._only_grows, True
        return is_new


class Min(Extreme):
    """The least value; None if there are none."""

    __slots__ = ()

    name = "min"
    is_greatest = False


class Max(Extreme):
    """The greatest value; None if there are none."""

    __slots__ = ()

    name = "max"
    is_greatest = True


# Sequences ----------------------------------------------------------------------------------------


class SequenceState(_ByRows):
    """All values in a given order."""

    __slots__ = ("aggregate", "index")

    def __init__(self, aggregate: Collect) -> None:
        self.aggregate = aggregate
        self.index = OrderedIndex()

    def add(self, value: Any, count: int) -> None:
        cell, by = value
        self.index.add((self.aggregate.order(by), exact_key(cell)), value, count)

    def result(self) -> Any:
        return self.aggregate.finish(self._values())

    def _values(self) -> Iterator[Any]:
        for _, (value, _), count in self.index.entries():
            for _ in range(count):
                yield value

    def rows(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        return ((entry.item, entry.total) for entry in self.index.entries())

    def load(self, row: tuple[Any, ...], count: int) -> None:
        value, by = row
        self.add((value, by), count)


class Collect(Aggregate):
    """The values as a tuple, in a given order; equal places are ordered by the value."""

    __slots__ = ("order",)

    name = "collect"

    def __init__(
        self,
        read: Read,
        by: Callable[[Row], Any] | None = None,
        order: Callable[[Any], Any] = exact_key,
    ) -> None:
        """`by`: the cell, or tuple of cells, that orders a row; `order`: its sort key."""
        super().__init__(read if by is None else _with(read, by))
        self.order = order
        if by is None:
            self.read = _with(read, lambda row: None)

    def finish(self, values: Iterable[Any]) -> Any:
        """The result, from the values in order."""
        return tuple(values)

    def new(self) -> SequenceState:
        return SequenceState(self)


def _with(read: Read, by: Callable[[Row], Any]) -> Read:
    """The value of a row with the cell that orders it."""

    def both(row: Row) -> tuple[Any, Any] | None:
        value = read(row)
        return None if value is None else (value, by(row))

    return both


class StringJoin(Collect):
    """The texts, with a separator between them, in a given order; empty if there are none."""

    __slots__ = ("separator",)

    name = "string-join"

    def __init__(
        self,
        read: Read,
        separator: str,
        by: Callable[[Row], Any] | None = None,
        order: Callable[[Any], Any] = exact_key,
    ) -> None:
        """`separator`: the text between two texts; the others as for `Collect`."""
        super().__init__(read, by, order)
        self.separator = separator

    def finish(self, values: Iterable[Any]) -> str:
        return self.separator.join(values)
