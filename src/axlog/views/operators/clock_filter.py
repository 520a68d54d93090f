"""The clock filter: the rows that hold at the document's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from axlog.evaluate.joins import Bag, Row, add
from axlog.query.clock_spans import Spans, holds_at, next_change
from axlog.query.compile import Column
from axlog.views.operators.operator import Cost, Counted, Operator, Source

_STALE = 64
"""Entries of withdrawn rows in the heap that are tolerated, beside as many as there are rows."""


class ClockFilter(Operator):
    """The input rows whose spans of clock times contain the clock, with their counts.

    Laws, for the spans S(r) of a row, which depend on the row alone:

        Δout          = the rows r of ΔL with clock in S(r)
        advance(c)    = for every moment m in (clock, c] at which rows enter or leave their spans:
                        (m, the rows that enter, minus those that leave)

    It keeps the rows whose spans begin or end after the clock, in a heap by that moment. A row
    whose last span has ended is dropped, and so is one that holds for good: it needs no moment.
    Each input row, and each moment, costs the logarithm of the number of rows that are kept.
    """

    name = "clock filter"
    __slots__ = ("_heap", "_number", "_waiting", "below", "clock", "schema", "spans")

    def __init__(self, below: Source, spans: Callable[[Row], Spans], clock: int) -> None:
        """`spans`: the clock times at which a row holds; `clock`: the clock now."""
        self.below = below
        self.schema = below.schema
        self.spans = spans
        self.clock = clock
        self._waiting: dict[Row, list[int]] = {}  # count, and the number of the row in the heap
        self._heap: list[tuple[int, int, Row]] = []  # moment, number, row
        self._number = 0

    # Deltas ---------------------------------------------------------------------------------------

    def apply(self, port: int, delta: Bag) -> Bag:
        clock, waiting = self.clock, self._waiting
        found: Bag = {}
        for row, count in delta.items():
            spans = self.spans(row)
            if holds_at(spans, clock):
                found[row] = count
            known = waiting.get(row)
            if known is not None:
                known[0] += count
                if not known[0]:
                    del waiting[row]
                continue
            moment = next_change(spans, clock)
            if moment is not None:
                self._wait(row, count, moment)
        if len(self._heap) > 2 * len(waiting) + _STALE:
            self._compact()
        return found

    def _wait(self, row: Row, count: int, moment: int) -> None:
        self._number += 1
        self._waiting[row] = [count, self._number]
        heappush(self._heap, (moment, self._number, row))

    def _compact(self) -> None:
        """Drop the entries of rows that were withdrawn."""
        self._heap = [entry for entry in self._heap if self._is_current(entry)]
        heapify(self._heap)

    def _is_current(self, entry: tuple[int, int, Row]) -> bool:
        known = self._waiting.get(entry[2])
        return known is not None and known[1] == entry[1]

    # Time -----------------------------------------------------------------------------------------

    def next_moment(self) -> int | None:
        """The first moment after the clock at which a row enters or leaves; None: there is none."""
        heap = self._heap
        while heap and not self._is_current(heap[0]):
            heappop(heap)
        return heap[0][0] if heap else None

    def advance(self, clock: int) -> Iterator[tuple[int, Bag]]:
        while (moment := self.next_moment()) is not None and moment <= clock:
            delta: Bag = {}
            before, self.clock = self.clock, moment
            while self.next_moment() == moment:
                _, _, row = heappop(self._heap)
                count = self._waiting.pop(row)[0]
                spans = self.spans(row)
                was, holds = holds_at(spans, before), holds_at(spans, moment)
                if was != holds:
                    add(delta, row, count if holds else -count)
                after = next_change(spans, moment)
                if after is not None:
                    self._wait(row, count, after)
            if delta:
                yield moment, delta
        self.clock = max(self.clock, clock)

    def next_deadline(self) -> int | None:
        moment = self.next_moment()
        return None if moment is None else moment - 1

    # State ----------------------------------------------------------------------------------------

    @property
    def has_state(self) -> bool:
        return True

    @property
    def table_count(self) -> int:
        return 2

    def state(self) -> Sequence[Iterable[Counted]]:
        rows = [(row, known[0]) for row, known in self._waiting.items()]
        return [rows, [((self.clock,), 1)]]

    def load(self, state: Sequence[Iterable[Counted]]) -> None:
        rows, times = state
        (((clock,), _),) = times
        self.clock = int(clock)
        self._waiting, self._heap = {}, []
        for row, count in rows:
            moment = next_change(self.spans(row), self.clock)
            assert moment is not None, "rows that no clock concerns are not kept"
            self._wait(row, count, moment)

    # Reading --------------------------------------------------------------------------------------

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        found = self.below.lookup(columns, key)
        return {row: n for row, n in found.items() if holds_at(self.spans(row), self.clock)}

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        return [(0, row)]

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """All columns: no two rows meet."""
        return self.schema or None

    def cost(self, port: int) -> Cost:
        return Cost(1, 0)
