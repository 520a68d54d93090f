"""Rows that wait for a partner: the tables of a join of two, without what waits in vain.

The law: a row leaves as soon as no row of the other part can come that agrees with it (see
`future/garbage.py`); so what a join yields from then on is the same as if it had stayed.

    a row comes           kept, if a partner may still come; its deadline goes to a heap
    the clock moves       rows whose deadline has passed leave
    a key's value comes   rows of the other part with this value leave: no second node of it comes
    a stream ends         when it was the last of a part, all rows of the other part leave

Rows that left are noted in `ended` until they are asked for: some of them were matches under way.
With `drops` off the join's own tables keep everything, and what still waits is kept beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from axlog.document.tree import Tree
from axlog.evaluate.joins import Bag, Row
from axlog.future.garbage import Feeder, Pair
from axlog.views.counting.sites import State
from axlog.views.counting.tables import Table

Keep = Callable[[Row, int], None]


class Ended(NamedTuple):
    """A row that waits no more."""

    part: int
    row: Row
    reason: str  # key, deadline, end


class Waiting:
    """What waits at one join of two parts."""

    def __init__(
        self,
        state: State,
        pair: Pair,
        tree: Tree,
        seen: tuple[set[str], set[str]],
        *,
        drops: bool = True,
        exact: bool = False,
    ) -> None:
        """`seen` are the values that the nodes of each part's key have already.

        `exact`: the values that come are remembered until both parts had them, so that what they
        rule out later is known at once and not at its deadline.
        """
        self.state = state
        self.pair = pair
        self.tree = tree
        self.drops = drops
        self.open = [{f.stream for f in side.feeders} for side in pair.sides]
        self.ended: list[Ended] = []
        self.dropped = 0  # rows that left or were never kept
        self._is_outgrown = False  # whether a stream came that keys and times do not know of
        self.passes_by = False  # whether generated joins keep none of a part's rows, uncounted
        self._heap: list[tuple[int, int, Row]] = []
        self._deadlines = [side.deadline() for side in pair.sides]
        self._keys = [self._key_positions(part) for part in range(2)]
        keyed = [side.key is not None for side in pair.sides]
        remembered = keyed if exact else [pair.remembers(part) for part in range(2)]
        self.seen: list[set[str] | None] = [
            seen[n] - (seen[1 - n] if remembered[1 - n] else set()) if remembered[n] else None
            for n in range(2)
        ]
        self.live = state.tables if drops else [Table({}, t.keys()) for t in state.tables]
        for part, key in enumerate(self._keys):
            if key is not None:  # before joins are generated: they fill the indexes that are there
                self.live[part].index((key[0],))
                self.live[1 - part].index((key[1],))
        self._start(seen)

    def _key_positions(self, part: int) -> tuple[int, int] | None:
        """Where the key's value of a part stands in its rows, and in those of the other part."""
        key = self.pair.sides[part].key
        if key is None:
            return None
        column = self.pair.sides[part].columns[key[0]]
        return key[0], self.pair.sides[1 - part].columns.index(column)

    def _start(self, seen: tuple[set[str], set[str]]) -> None:
        """Take over the rows that are there: let those go that wait in vain already."""
        for part in range(2):
            key = self._keys[1 - part]
            for row, count in self.state.tables[part].rows().items():
                is_ruled_out = key is not None and row[key[1]] in seen[1 - part]
                if is_ruled_out or not self._may_be_completed(part, row):
                    self._drop(part, row, count)
                else:
                    if not self.drops:
                        self.live[part].update({row: count})
                    self._note_deadline(part, row)
        self.state.waiting = self

    def _drop(self, part: int, row: Row, count: int) -> None:
        self.dropped += 1
        if self.drops:
            self.live[part].update({row: -count})

    def restart(self, seen: tuple[tuple[str, ...], ...]) -> None:
        """Go on with tables that were filled from outside, and the values remembered then."""
        self.seen = [
            None if mine is None else set(values)
            for mine, values in zip(self.seen, seen, strict=True)
        ]
        self._heap = []
        for part in range(2):
            for row in self.live[part].rows():
                self._note_deadline(part, row)
        heapify(self._heap)

    def is_fed_by(self, feeders: Sequence[Iterable[Feeder]]) -> bool:
        """Whether another look finds the same streams; keys and times are then the same too."""
        is_same = [{feeder.stream for feeder in each} for each in feeders] == self.open
        return is_same and not self._is_outgrown

    # Rows that come -------------------------------------------------------------------------------

    def keeper(self, part: int) -> Keep | None:
        """What a generated join calls for each row; None: it keeps all rows by itself."""
        side = self.pair.sides[part]
        is_plain = not side.is_bounded and self._keys[1 - part] is None
        if is_plain and self.drops and self.open[1 - part]:
            return None
        return lambda row, count: self.keep(part, row, count)

    def keeps_none(self, part: int) -> bool:
        """Whether no row of a part that comes from now on need be kept."""
        return self.drops and (self.pair.sides[part].is_born_dead or not self.open[1 - part])

    def keep(self, part: int, row: Row, count: int) -> None:
        """Take a row that comes, if a partner of it may still come."""
        if not self._may_be_completed(part, row):
            self.dropped += 1
            return
        self._note_deadline(part, row)
        self.live[part].update({row: count})

    def keep_all(self, part: int, delta: Bag) -> None:
        if not self.drops:
            self.state.tables[part].update(delta)
        for row, count in delta.items():
            self.keep(part, row, count)

    def _may_be_completed(self, part: int, row: Row) -> bool:
        other = 1 - part
        if not self.open[other]:
            return False
        key = self._keys[other]
        if key is not None:
            value = row[key[1]]
            remembered = self.seen[other]
            if remembered is not None and value in remembered:
                return False
            if self.live[other].has((key[0],), (value,)):
                return False
        limit = self._deadlines[part](row)
        return limit is None or limit >= self.tree.clock

    def _note_deadline(self, part: int, row: Row) -> None:
        limit = self._deadlines[part](row)
        if limit is not None:
            heappush(self._heap, (limit, part, row))

    # What ends the waiting ------------------------------------------------------------------------

    def see(self, part: int, value: str) -> None:
        """A node of a part's key has come: rows of the other part with its value wait in vain."""
        key = self._keys[part]
        assert key is not None
        other = 1 - part
        for row, count in list(self.live[other].matching((key[1],), (value,))):
            self._end(other, row, count, "key")
        mine, others = self.seen[part], self.seen[other]
        if others is not None and value in others:
            others.remove(value)  # both have come
        elif mine is not None and self.open[other]:
            mine.add(value)

    def has_seen(self, part: int, value: str) -> bool:
        """Whether a node of a part's key is known to have come with this value."""
        key, remembered = self._keys[part], self.seen[part]
        if remembered is not None and value in remembered:
            return True
        return key is not None and self.live[part].has((key[0],), (value,))

    @property
    def next_deadline(self) -> int | None:
        """The clock after which some row may wait in vain."""
        return self._heap[0][0] if self._heap else None

    def expire(self) -> None:
        """Let go of the rows whose deadline has passed."""
        heap, clock = self._heap, self.tree.clock
        while heap and heap[0][0] < clock:
            _, part, row = heappop(heap)
            count = self.live[part].count(row)
            if count:
                self._end(part, row, count, "deadline")

    def admit(self, part: int, streams: set[str]) -> None:
        """Streams have come that feed a part; until the join is looked at again, rows wait."""
        if streams:
            self.open[part] |= streams
            self._is_outgrown = True

    def close(self, stream: str) -> None:
        """A stream has ended."""
        for part, streams in enumerate(self.open):
            if stream not in streams:
                continue
            streams.remove(stream)
            if streams:
                continue
            other = 1 - part
            for row, count in self.live[other].rows().items():
                self._end(other, row, count, "end")
            self.seen = [None if each is None else set() for each in self.seen]

    def _end(self, part: int, row: Row, count: int, reason: str) -> None:
        self.live[part].update({row: -count})
        self.dropped += 1
        limit = self._deadlines[part](row)
        times = [int(row[at]) for at in self.pair.sides[part].time_positions]
        if limit is None or not times or limit > max(times):
            # else it could only have been completed in the moment in which it came
            self.ended.append(Ended(part, row, reason))

    def take_ended(self) -> list[Ended]:
        """The rows that have left since the last time."""
        ended, self.ended = self.ended, []
        return ended

    # How much -------------------------------------------------------------------------------------

    def sizes(self) -> dict[str, int]:
        """How many rows, deadlines and key values are kept."""
        return {
            "rows": sum(len(table) for table in self.state.tables),
            "deadlines": len(self._heap),
            "values": sum(len(each) for each in self.seen if each is not None),
        }
