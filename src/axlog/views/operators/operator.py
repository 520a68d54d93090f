"""The contract of an operator (docs/design.md, section 4).

An operator has one or more inputs, called ports, and one output. Each is a bag: rows with signed
counts. One update passes through a plan of operators once. `apply` takes the delta of one port,
updates the state of the operator, and returns the delta of the output:

    output(inputs + delta) = output(inputs) + apply(port, delta)

Law 11 tests this equation on random deltas, with every other member of the contract. An operator
must not fail on a delta, except by exceeding a limit (AX215, AX216): the engine then sets aside the
views that use it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, TypeAlias

from axlog.errors import StoreError
from axlog.evaluate.joins import Bag, Row, add_all
from axlog.query.compile import Column
from axlog.views.operators.table import Table

if TYPE_CHECKING:
    from axlog.future.garbage import Proof


Counted: TypeAlias = tuple[Row, int]
"""A row and its count."""

Snapshot: TypeAlias = tuple[int, tuple[tuple[Counted, ...], ...]]
"""The format of an operator's state, and the rows of each of its tables."""

ROW_BYTES = 300
"""Bytes of a row in memory without its strings: the tuple, its numbers, its dictionary entry."""


class Size(NamedTuple):
    """The size of a state."""

    rows: int
    bytes: int  # estimated


class Cost(NamedTuple):
    """The cost of one input row, for `explain`."""

    probes: int  # look-ups in tables by a key
    scans: int  # look-ups without a key, which read all rows of a table


class Pending(NamedTuple):
    """What a kept row still needs: a row of another part, from one of some streams, in time."""

    part: int
    streams: set[str]
    deadline: int | None  # the latest clock at which it may arrive; None: no limit


class Source(Protocol):
    """The input of an operator: an operator, or a relation outside the plan."""

    @property
    def schema(self) -> tuple[Column, ...]:
        """The columns of its rows."""

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        """The rows that have these values in these columns, with their counts."""


class Operator(ABC):
    """Turns deltas of its inputs into the delta of its output.

    Two rows are one row if they are equal in Python: a cell is hashable, and `1`, `1.0` and
    `Decimal(1)` are one value. A cell that is NaN must be the one object `math.nan`.
    """

    __slots__ = ()

    name: ClassVar[str]
    """The name that `explain` prints."""

    FORMAT: ClassVar[int] = 1
    """Changes with the meaning of the tables in a snapshot."""

    schema: tuple[Column, ...]
    """The columns of the output."""

    @abstractmethod
    def apply(self, port: int, delta: Bag) -> Bag:
        """Apply the delta of one input; return the delta of the output."""

    @abstractmethod
    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        """The output rows that have these values in these columns, with their counts.

        Operators above use it instead of storing the output again. It back-fills a view that joins
        a shared plan with its own parameters.
        """

    @abstractmethod
    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        """The input rows behind an output row, each with its port."""

    def tables(self) -> Sequence[Table]:
        """The tables of the state, in a fixed order; none if the state has another form."""
        return ()

    def state(self) -> Sequence[Iterable[Counted]]:
        """The state as tables of plain rows, in a fixed order."""
        return [table.rows().items() for table in self.tables()]

    def load(self, state: Sequence[Iterable[Counted]]) -> None:
        """Replace the state by tables of plain rows.

        Tables are changed in place: generated code uses them.
        """
        for table, each in zip(self.tables(), state, strict=True):
            moved: Bag = dict(each)
            add_all(moved, table.rows(), -1)
            table.update(moved)

    @property
    @abstractmethod
    def partition_key(self) -> tuple[Column, ...] | None:
        """The columns by which inputs and state can be split; None: they cannot.

        Rows that differ in these columns never meet, so the output is the union of the outputs of
        the parts.
        """

    @abstractmethod
    def cost(self, port: int) -> Cost:
        """The cost of one row of a port."""

    def advance(self, clock: int) -> Iterator[tuple[int, Bag]]:
        """The deltas that the passing of time causes, each with its time, in order of time."""
        return iter(())

    def pending(self, port: int, row: Row) -> Pending | None:
        """What a row of a port, kept or arriving, still waits for; None: nothing is known.

        Only operators that keep rows for the future know it (`WaitingRows`).
        """
        return None

    def next_deadline(self) -> int | None:
        """The clock after which some kept row is useless; None: no clock makes a row useless."""
        return None

    def prune(self, proof: Proof) -> int:
        """Drop the rows that a proof makes useless; return their number."""
        return 0

    def expect_insertions(self) -> bool:
        """Prepare for input that only grows from now on: drop rows that cannot be shown any more.

        Returns whether the output only grows too.
        """
        return False

    @property
    def has_state(self) -> bool:
        """Whether it keeps anything; a join of one part keeps nothing."""
        return self.table_count > 0

    @property
    def table_count(self) -> int:
        """The number of tables of the state."""
        return len(self.tables())

    def snapshot(self) -> Snapshot:
        """The state as plain tuples."""
        return self.FORMAT, tuple(map(tuple, self.state()))

    def restore(self, saved: Snapshot) -> None:
        """Replace the state by a snapshot; raises AX872 if it has another format."""
        self.check(saved)
        self.load(saved[1])

    def check(self, saved: Snapshot) -> None:
        """Raise AX872 if a snapshot has another format than this operator's."""
        form, rows = saved
        tables = self.table_count
        if form != self.FORMAT or len(rows) != tables:
            raise StoreError(
                "AX872",
                f"the state of {type(self).__name__} has format {form} with {len(rows)} tables,"
                f" and this version reads format {self.FORMAT} with {tables}",
                advice="run the version that wrote it, or start again without this state",
            )

    def size(self) -> Size:
        """The size of the state; reads all its rows."""
        rows = total = 0
        for table in self.state():
            for row, _ in table:
                rows += 1
                total += ROW_BYTES + sum(len(value) for value in row if type(value) is str)
        return Size(rows, total)
