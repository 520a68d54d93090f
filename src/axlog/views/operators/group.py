"""The group: aggregates of the rows that agree in their key columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from axlog.evaluate.joins import Bag, Row, picker
from axlog.query.compile import Column
from axlog.views.operators.aggregates import Aggregate
from axlog.views.operators.group_generator import Put, Shift, Shown, generate_put, generate_shift
from axlog.views.operators.lookups import having, key_within
from axlog.views.operators.measures import Entry, Measures, Member, Tables
from axlog.views.operators.operator import Cost, Operator, Snapshot, Source


class Group(Operator):
    """One row for each group of input rows with equal keys: the keys, and the aggregates.

    Law, with G(k) the input rows with key k, before and after (primes):

        Δout = Σ_k  [G'(k) ≠ ∅] (k, f(G'(k))) - [G(k) ≠ ∅] (k, f(G(k)))

    over the keys of ΔL. A row counts as often as its count says. Without keys there is one group;
    with `always` it has its row even if the input is empty. The states of the aggregates are kept,
    and the input rows only as far as an aggregate needs their values.

    `apply` is the definition. `put` is the same for one row, and makes no bag; `merge` is the same
    for a delta that was aggregated elsewhere (`partial`).
    """

    name = "group"
    __slots__ = (
        "_always", "_groups", "_key", "_measures", "_positions", "below", "keys", "put", "schema",
    )  # fmt: skip

    def __init__(
        self,
        below: Source,
        keys: Sequence[Column],
        aggregates: Sequence[tuple[Column, Aggregate]],
        *,
        always: bool = False,
    ) -> None:
        """`aggregates`: each with the name of its column; `always`: one row without any input."""
        assert not (always and keys), "a group with keys appears with its first row"
        self.below = below
        self.keys = tuple(keys)
        measures = self._measures = Measures(aggregates)
        self.schema = (*self.keys, *measures.columns)
        positions = self._positions = tuple(map(below.schema.index, self.keys))
        self._key = picker(positions)
        self._groups: dict[Row, Entry] = {}
        self._always = always
        self.put: Put = generate_put(self._groups, measures, positions, always=always)
        """Apply one row; return the output row of its group before and after it.

        None stands for no row. Both are the same object if the output does not change.
        """
        self._begin()

    @property
    def is_alone(self) -> bool:
        """Whether no other view applies the same rows to the groups."""
        return True

    def shift(self, shown: Shown) -> Shift:
        """The function from bindings to the changes of a view that shows the rows as they are.

        It does what `put` does.
        """
        return generate_shift(self._groups, self._measures, self._positions, shown)

    def _begin(self) -> None:
        if self._always:
            member = self._groups[()] = self._measures.new()
            member.row = self._measures.cells(member)

    @property
    def empty(self) -> Row:
        """The aggregates of no rows: what a left join shows where there is no group."""
        return self._measures.cells(self._measures.new())

    # Deltas --------------------------------------------------------------------------------------

    def _settle(self, key: Row, member: Member) -> Row | None:
        """Show what a group has become; an empty group is dropped."""
        before = member.row
        if not member.count and not self._always:
            del self._groups[key]
            return None
        after = key + self._measures.cells(member)
        if after == before:
            return before
        member.row = after
        self._groups[key] = self._measures.entry(member)
        return after

    def apply(self, port: int, delta: Bag) -> Bag:
        if len(delta) == 1:
            ((row, count),) = delta.items()
            before, after = self.put(row, count)
            if before is after:
                return {}
            if before is None:
                return {after: 1}  # type: ignore[dict-item]
            return {before: -1} if after is None else {before: -1, after: 1}
        touched: dict[Row, Member] = {}
        for row, count in delta.items():
            self._measures.add(self._touch(self._key(row), touched), row, count)
        return self._moved(touched)

    def _touch(self, key: Row, touched: dict[Row, Member]) -> Member:
        """The group of a key, noted as changed."""
        member = touched.get(key)
        if member is None:
            entry = self._groups.get(key)
            member = self._measures.new() if entry is None else self._measures.member(entry)
            touched[key] = self._groups[key] = member
        return member

    def _moved(self, touched: dict[Row, Member]) -> Bag:
        """The delta of the output, when these groups have changed."""
        result: Bag = {}
        for key, member in touched.items():
            before = member.row
            after = self._settle(key, member)
            if before is not after:
                if before is not None:
                    result[before] = -1
                if after is not None:
                    result[after] = 1
        return result

    def expect_insertions(self) -> bool:
        self._measures.expect_insertions(self._groups.values())
        return False

    # Partial aggregates --------------------------------------------------------------------------

    def partial(self, delta: Bag) -> Snapshot:
        """A delta, aggregated by itself: `merge` of a group like this one takes it.

        It uses none of the state, so it can be made elsewhere: before a shuffle, for example.
        """
        made: dict[Row, Member] = {}
        for row, count in delta.items():
            key = self._key(row)
            member = made.get(key)
            if member is None:
                member = made[key] = self._measures.new()
            self._measures.add(member, row, count)
        return self.FORMAT, tuple(map(tuple, self._measures.tables(made)))

    def merge(self, part: Snapshot) -> Bag:
        """Apply a delta that was aggregated elsewhere; return the delta of the output."""
        self.check(part)
        return self._merge(part[1])

    def _merge(self, tables: Tables) -> Bag:
        touched: dict[Row, Member] = {}
        self._measures.load(tables, len(self.keys), lambda key: self._touch(key, touched))
        return self._moved(touched)

    # State ---------------------------------------------------------------------------------------

    @property
    def table_count(self) -> int:
        return self._measures.table_count

    def state(self) -> Tables:
        return self._measures.tables(self._groups)

    def load(self, state: Tables) -> None:
        self._groups.clear()
        self._begin()
        self._merge(state)

    # Answers -------------------------------------------------------------------------------------

    @property
    def group_count(self) -> int:
        """The number of groups, each of which has one row."""
        return len(self._groups)

    def rows(self) -> Iterator[Row]:
        """The row of each group."""
        found = map(self._measures.row, self._groups.values())
        return (row for row in found if row is not None)

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        own = key_within(columns, key, self.keys)
        entries = self._groups.values() if own is None else [self._groups.get(own)]
        found = (self._measures.row(each) for each in entries if each is not None)
        rows = ((row, 1) for row in found if row is not None)
        return having(rows, self.schema, columns, key)

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        return [(0, each) for each in self.below.lookup(self.keys, row[: len(self.keys)])]

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """The keys. Without keys the input can still be split for `partial`."""
        return self.keys or None

    def cost(self, port: int) -> Cost:
        return Cost(1, 0)
