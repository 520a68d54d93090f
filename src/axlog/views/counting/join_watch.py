"""Joins of three or more parts, or with `not`, followed: keys, deadlines, ends of streams.

`WaitingRows` does this for two parts, where one row waits for one partner. With more parts a *way*
waits: rows of some parts that join, and the parts that are left (`join_outlook.py`). Ways are not
stored. So it is with one or more parts and `not`s: a way that a row of a `not` blocks can no longer
give a row, since nothing is deleted. An update names the ways that it may end:

    a key value is used     the ways with this value that leave the part to streams
    a deadline passes       the ways with the row that has this deadline
    a stream ends           the ways that leave its part to streams
    a row of a `not` comes  the ways with its values

Law: `ended` has every way that was possible before the update and is not any more. A key value is
remembered only if the part has no row with it.

Joins with `not`s drop rows that no row to come can use, and that are in no row of the join
(`sweep`): rows that a row of a `not` blocks, rows that need a key value which is used up and of
which no row is left, and rows of `not`s that could only block such rows. Finished orders of
"ordered and not shipped" leave their key value behind, and no row. Other tables keep all their
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import NamedTuple

from axlog.document.tree import Tree
from axlog.evaluate.joins import Bag, Row, Value, picker
from axlog.future.garbage import Feeder, KeyUsed, Proof, StreamEnded, TimePassed
from axlog.future.join_inputs import FAR, Bounds, JoinInputs
from axlog.future.keys import Key
from axlog.future.search_budget import bounded
from axlog.query.compile import Column, Relation
from axlog.views.counting.join_outlook import Guard, JoinOutlook, Moment, Use, Way
from axlog.views.counting.possible_pages import WayOrder
from axlog.views.counting.sites import SiteRelation
from axlog.views.operators.join import absence_key
from axlog.views.operators.operator import Pending
from axlog.views.operators.table import Table

MOST_TIMED = 6
"""The largest number of parts with tests between times: deadlines are found for each subset."""


def refusal(inputs: JoinInputs) -> str | None:
    """Why a join is not followed; None: it can be."""
    if any(len(part.keys) > 1 for part in inputs.parts):
        return "a part has several keys"
    if not inputs.tests:
        return None
    if len(inputs.parts) > MOST_TIMED:
        return f"tests between the times of more than {MOST_TIMED} parts"
    for test in inputs.tests:
        for terms, _ in test.sums:
            if sorted(factor for factor, _ in terms) != [-1, 1]:
                return "a test that is not a difference of two times"
    return None


class EndedWay(NamedTuple):
    """A way that is not possible any more."""

    way: Way
    limit: int | None  # the deadline that passed; None: another reason


class JoinWatch:
    """The inputs of one join of several parts."""

    drops = False  # arriving rows are kept, whatever they wait for
    passes_by = False
    is_late = False  # no key value is forgotten
    brief: Sequence[object] = ()  # arriving rows are in the tables

    def __init__(
        self,
        state: SiteRelation,
        inputs: JoinInputs,
        tree: Tree,
        seen: Sequence[Iterable[str]],
        sweeps: bool = False,
    ) -> None:
        """`seen`: the key values that have arrived already, for each key of each part.

        `sweeps`: whether `sweep` is to be called, if the join has `not`s.
        """
        self.state = state
        self.dropped = 0  # number of rows dropped
        self.inputs = inputs
        self.tree = tree
        self.open = [{feeder.stream for feeder in part.feeders} for part in inputs.parts]
        self.live: list[Table] = state.join.kept
        self.guards = [
            Guard(absence_key(check), check.positions, guard.tables()[0])
            for check, guard in zip(
                state.rule.absences, state.guards[state.anti_joins :], strict=True
            )
        ]
        self.is_swept = sweeps and bool(self.guards)
        self.outlook = JoinOutlook(self, inputs, self.guards)
        self._keys = [
            (part, position, key)
            for part, facts in enumerate(inputs.parts)
            for position, key in facts.keys
        ]
        for part, position, _ in self._keys:
            self.live[part].index((position,))
        self._used = [set(values) for values in seen]
        self._settles = [self._settles_by(part, position) for part, position, _ in self._keys]
        # Of parts whose keys end no way if they bring a row: the rows by key value.
        self._arrived = {
            part: self.live[part].index((position,))
            for settles, (part, position, _) in zip(self._settles, self._keys, strict=True)
            if settles and not inputs.tests
        }
        self._offsets = [self._offsets_of(part) for part in range(len(inputs.parts))]
        self.is_asked = False
        """Whether views ask which ways end. Otherwise none are noted: rows are swept only."""
        self.notes_rows = False
        """Whether rows of the join that a `not` ends are noted: a view does not show them yet."""
        self.heap: list[tuple[int, int, Row]] = []
        self._orders: dict[tuple[Column, ...], WayOrder] = {}
        """The same in order, for pages of possible rows of views with some columns."""
        self._is_outgrown = False
        self._moment = Moment(tree.clock)
        self._ended: list[EndedWay] = []
        self._start()
        state.join.waiting = self

    def _settles_by(self, part: int, position: int) -> bool:
        """Whether a row with a key value ends no way: it joins with all rows that have the value.

        No test and no other column distinguishes it from them.
        """
        facts = self.inputs.parts[part]
        shared = {
            column
            for other, each in enumerate(self.inputs.parts)
            for column in each.columns
            if other != part
        }
        shared.update(column for guard in self.guards for column in guard.columns)
        mine = [at for at, column in enumerate(facts.columns) if column in shared]
        return mine == [position] and not facts.is_timed and len(facts.keys) == 1

    def distinguish(self, parts: Iterable[int]) -> None:
        """Note the ways that key values of some parts end, also if they bring a row.

        Members of a family have the row only if it passes their constants.
        """
        for part in parts:
            self._arrived.pop(part, None)
            for number, (mine, _, _) in enumerate(self._keys):
                self._settles[number] = self._settles[number] and mine != part

    def _offsets_of(self, part: int) -> tuple[int, ...]:
        """From the time of a row to the deadlines of the ways that have it."""
        facts = self.inputs.parts[part]
        if not facts.is_timed or facts.time is None:
            return ()
        column, found = facts.columns[facts.time], set()
        others = [each for each in range(len(self.inputs.parts)) if each != part]
        for size in range(1, len(others) + 1):
            for left in combinations(others, size):
                limit = JoinInputs(self.inputs.parts, self._tests_of((part, *left))).latest(
                    {column: 0}, left
                )
                if limit is not None and limit < FAR:
                    found.add(limit)
        return tuple(sorted(found))

    def _tests_of(self, parts: Iterable[int]) -> tuple[Bounds, ...]:
        columns = {column for part in parts for column in self.inputs.parts[part].columns}
        return tuple(test for test in self.inputs.tests if test.columns <= columns)

    def _start(self) -> None:
        """Take over the rows of the join."""
        for number, (part, position, _) in enumerate(self._keys):
            index = self.live[part].index((position,))
            self._used[number] = {each for each in self._used[number] if (each,) not in index}
        clock = self.tree.clock
        self.heap[:] = [
            (deadline, part, row)
            for part, offsets in enumerate(self._offsets)
            if offsets
            for row in self.live[part].rows()
            for deadline in self._deadlines(part, row)
            if deadline >= clock
        ]
        heapify(self.heap)
        self._orders = {}

    def order(self, shown: Sequence[Column]) -> WayOrder:
        """The rows by their deadlines, and by the columns that a view shows."""
        made = self._orders.get(tuple(shown))
        if made is None:
            made = WayOrder([part.columns for part in self.inputs.parts], shown)
            self._orders[tuple(shown)] = made
            for deadline, part, row in self.heap:
                if self.live[part].count(row):
                    made.add(deadline, part, row)
        return made

    def _deadlines(self, part: int, row: Row) -> Iterator[int]:
        at = self.inputs.parts[part].time
        for offset in self._offsets[part]:
            yield int(row[at]) + offset  # type: ignore[index]  # parts with offsets have a time

    # What the collector reads ---------------------------------------------------------------------

    @property
    def relation(self) -> Relation:
        """The relation of the join."""
        return self.state.relation

    @property
    def clock(self) -> int:
        """The clock of the document."""
        return self.tree.clock

    @property
    def keys(self) -> list[tuple[int, Column, Key]]:
        """The keys whose values are followed: part, column and key."""
        return [(part, self.inputs.parts[part].columns[at], key) for part, at, key in self._keys]

    @property
    def has_absences(self) -> bool:
        """Whether the join has `not`s."""
        return bool(self.guards)

    @property
    def is_busy(self) -> bool:
        """Whether a single message can end a way."""
        return bool(self._keys or self.inputs.tests or self.guards)

    @property
    def is_timed(self) -> bool:
        """Whether deadlines may end ways."""
        return bool(self.timed_parts)

    @property
    def timed_parts(self) -> list[int]:
        """The parts whose rows have deadlines."""
        return [part for part, offsets in enumerate(self._offsets) if offsets]

    def times_out_without(self, column: Column) -> bool:
        """Whether time alone can end a way that has no value in a column."""
        return any(
            offsets and column not in part.columns
            for part, offsets in zip(self.inputs.parts, self._offsets, strict=True)
        )

    def saved_values(self) -> tuple[tuple[str, ...], ...]:
        """The key values to save with the tables."""
        return tuple(tuple(sorted(values)) for values in self._used)

    def values_of(self, key: Key) -> set[str]:
        """All values of a key that have arrived."""
        found: set[str] = set()
        for number, (part, position, mine) in enumerate(self._keys):
            if mine == key:
                found |= self._used[number]
                found.update(str(value) for (value,) in self.live[part].index((position,)))
        return found

    def restore(self, seen: Sequence[Iterable[str]]) -> None:
        """Continue with restored tables, and the key values remembered with them."""
        self._used = [set(values) for values in seen]
        self._moment.begin(self.tree.clock)
        self._start()

    def is_fed_by(self, feeders: Sequence[Iterable[Feeder]]) -> bool:
        """Whether these are the same streams as before; keys and times are then the same too."""
        is_same = [{feeder.stream for feeder in each} for each in feeders] == self.open
        return is_same and not self._is_outgrown

    def admit(self, part: int, streams: set[str]) -> None:
        """New streams feed a part; ways wait until the join is analysed again."""
        if streams:
            self.open[part] |= streams
            self._is_outgrown = True
            self._orders = {}

    def has_used(self, part: int, position: int, value: Value) -> bool:
        """Whether a key value at this position of a part has arrived."""
        if (value,) in self.live[part].index((position,)):
            return True
        return any(
            value in self._used[number]
            for number, (mine, at, _) in enumerate(self._keys)
            if mine == part and at == position
        )

    # Dropped rows ---------------------------------------------------------------------------------

    def sweep(self) -> int:
        """Drop the rows that no row of the join has or can have; return how many are left.

        Between two updates: nothing that ended is to be examined.
        """
        left = 0
        everything = range(len(self.live))
        for part, table in enumerate(self.live):
            columns = self.inputs.parts[part].columns
            is_useless = self._is_useless(
                columns, self.guards, [each for each in everything if each != part]
            )
            rows = list(table)
            gone = [row for row in rows if is_useless(row)]
            left += len(rows) - len(gone)
            for row in gone:
                self._drop(part, row)
        for guard, check in zip(self.guards, self.state.rule.absences, strict=True):
            is_useless, key_of = self._is_useless(guard.columns, (), everything), check.body_key
            rows = list(guard.table)
            gone = [row for row in rows if is_useless(key_of(row))]
            left += len(rows) - len(gone)
            for row in gone:
                self.dropped += bool(guard.table.remove(row))
        if len(self.heap) > 2 * left:
            self.heap[:] = [each for each in self.heap if self.live[each[1]].count(each[2])]
            heapify(self.heap)
        return left

    def _is_useless(
        self, columns: Sequence[Column], guards: Iterable[Guard], others: Iterable[int]
    ) -> Callable[[Row], bool]:
        """Whether one of some `not`s blocks a row of these columns, or another part has no match.

        A part has none if a key value of the row is used up and no row of the part has it.
        """
        at = {column: position for position, column in enumerate(columns)}
        blocking = [
            (picker([at[column] for column in guard.columns]), guard.table.index(guard.positions))
            for guard in guards
            if all(column in at for column in guard.columns)
        ]
        barring = [
            (at[column], self._used[number], self.live[part].index((position,)))
            for number, (part, position, _) in enumerate(self._keys)
            if part in others and (column := self.inputs.parts[part].columns[position]) in at
        ]

        def is_useless(row: Row) -> bool:
            for key_of, rows in blocking:
                if key_of(row) in rows:
                    return True
            for position, used, index in barring:
                value = row[position]
                if value in used and (value,) not in index:
                    return True
            return False

        return is_useless

    def _drop(self, part: int, row: Row) -> None:
        """Drop a row; its key values stay used."""
        self.dropped += bool(self.live[part].remove(row))
        for order in self._orders.values() if self._offsets[part] else ():
            for deadline in self._deadlines(part, row):
                order.remove(deadline, part, row)
        for number, (mine, position, _) in enumerate(self._keys):
            if mine == part and (row[position],) not in self.live[part].index((position,)):
                self._used[number].add(str(row[position]))

    # Arriving rows --------------------------------------------------------------------------------

    def keeper(self, part: int) -> Callable[[Row, int], None] | None:
        """The function that a generated join calls for each row; None: none is needed."""
        if not self.inputs.tests:
            return None
        return lambda row, count: self.keep(part, row, count)

    def settle(self) -> None:
        """Do nothing: arriving rows are in the tables."""

    def keep_code(
        self, part: int, scope: dict[str, object], key: Callable[[Sequence[int]], str]
    ) -> list[str] | None:
        """None: `keeper` must be called."""
        return None

    def keeps_none(self, part: int) -> bool:
        return False

    def keep(self, part: int, row: Row, count: int) -> None:
        """Note an arriving row, which the join's table keeps."""
        self._moment.rows.add((part, row))
        clock = self.tree.clock
        for deadline in self._deadlines(part, row) if self._offsets[part] else ():
            if deadline >= clock:
                heappush(self.heap, (deadline, part, row))
                for order in self._orders.values():
                    order.add(deadline, part, row)

    def keep_all(self, part: int, delta: Bag) -> None:
        self.live[part].update(delta)
        for row, count in delta.items() if self.inputs.tests else ():
            self.keep(part, row, count)

    # The contract of operators --------------------------------------------------------------------

    def pending(self, part: int, row: Row) -> Pending | None:
        """A part that a way with this row leaves to streams, with the latest deadline."""
        columns = self.inputs.parts[part].columns
        best: tuple[int, int] | None = None
        for way in self.outlook.ways(dict(zip(columns, row, strict=True))):
            limit = self.outlook.latest(way) if part in way.taken else None
            if limit is not None and (best is None or limit > best[0]):
                best = limit, way.left[0]
        if best is None:
            return None
        return Pending(best[1], self.open[best[1]], None if best[0] == FAR else best[0])

    def next_deadline(self) -> int | None:
        """The clock after which some way may be impossible; None: no such clock."""
        return self.heap[0][0] if self.heap else None

    def prune(self, proof: Proof) -> int:
        """Note the ways that a proof ends. Rows are dropped by `sweep`."""
        is_end = isinstance(proof, StreamEnded)  # it may end ways of all rows
        with bounded(sum(table.least_size for table in self.live) if is_end else 0):
            match proof:
                case KeyUsed():
                    self.use(*proof)
                case TimePassed():
                    self._expire(proof.clock)
                case StreamEnded():
                    self._close(proof)
        return 0

    def user(self, part: int) -> Use:
        """`use` for one part, as a function of a row with the value; runs for every message."""
        arrived = self._arrived.get(part, {})

        def use(used: Row) -> None:
            if used not in arrived:
                self.use(part, str(used[0]))

        return use

    def use(self, part: int, value: str) -> None:
        """Note the ways that a key value ends which has arrived."""
        arrived = self._arrived.get(part)
        if arrived is not None and (value,) in arrived:
            return
        for number, (mine, position, _) in enumerate(self._keys):
            if mine != part:
                continue
            if (value,) in self.live[part].index((position,)):
                if self._settles[number]:
                    if self.inputs.tests:
                        self._moment.values.add((part, position, value))
                    continue
            elif value in self._used[number]:
                continue
            else:
                self._used[number].add(value)
            if not self.is_asked:
                continue
            self._moment.values.add((part, position, value))
            column = self.inputs.parts[part].columns[position]
            for way in self.outlook.ways({column: value}, self._moment):
                if part in way.left and self._has(way, column):
                    self._note(way, None)

    def _has(self, way: Way, column: Column) -> bool:
        """Whether a row of a way has a column."""
        return any(column in self.inputs.parts[each].columns for each in way.taken)

    def has_all(self, way: Way, columns: Iterable[Column]) -> bool:
        """Whether rows of a way have these columns."""
        return all(self._has(way, column) for column in columns)

    def expire(self, clock: int) -> None:
        """Do the same as `prune` with `TimePassed`; runs for most messages."""
        with bounded(0):
            self._expire(clock)

    def _expire(self, clock: int) -> None:
        heap, passed = self.heap, set()
        while heap and heap[0][0] < clock:
            deadline, part, row = heappop(heap)
            passed.add((part, row))
            for order in self._orders.values():
                order.remove(deadline, part, row)
        for part, row in passed:
            if (part, row) in self._moment.rows or not self.live[part].count(row):
                continue
            known = dict(zip(self.inputs.parts[part].columns, row, strict=True))
            for way in self.outlook.ways(known, self._moment):
                if part in way.taken:
                    self._note(way, self.inputs.latest(way.bound, way.left))

    def _close(self, proof: StreamEnded) -> None:
        streams = self.open[proof.input]
        if proof.stream not in streams:
            return
        streams.discard(proof.stream)
        self._moment.streams.add((proof.input, proof.stream))
        if not streams:
            for way in self.outlook.ways({}, self._moment):
                if proof.input in way.left:
                    self._note(way, None)

    def block(self, number: int, delta: Bag) -> None:
        """Note the rows of a `not` that arrive, before its table has them."""
        if not self.is_asked:
            return
        guard, key_of = self.guards[number], self.state.rule.absences[number].body_key
        for row in delta:
            key = key_of(row)
            if not guard.table.has(guard.positions, key):
                self._moment.blocked.add((number, key))

    def _note_blocked(self) -> None:
        """Note the ways that rows of `not`s end, after the update."""
        with bounded(sum(table.least_size for table in self.live)):
            for number, key in self._moment.blocked:
                known = dict(zip(self.guards[number].columns, key, strict=True))
                for way in self.outlook.ways(known, self._moment):
                    if self.has_all(way, known):
                        self._note(way, None)
                for way in self.outlook.rows(known, self._moment) if self.notes_rows else ():
                    self._note(way, None)

    def _note(self, way: Way, limit: int | None) -> None:
        """Note a way that was possible before the update and is not any more."""
        if self.outlook.latest(way, self._moment) is None or self.outlook.latest(way) is not None:
            return
        self._ended.append(EndedWay(way, limit))

    @property
    def ended(self) -> bool:
        """Whether the update must be examined: it ended ways, or was noted."""
        return any(self.unexamined)

    @property
    def unexamined(self) -> tuple[Collection[object], ...]:
        """What an update leaves to examine. The objects stay: generated functions refer to them."""
        moment = self._moment
        return self._ended, moment.rows, moment.values, moment.blocked

    def take_ended(self) -> list[EndedWay]:
        """The ways that ended since the last call. The next update begins."""
        if self._moment.blocked:
            self._note_blocked()
        ended = self._ended.copy()
        self._ended.clear()
        self._moment.begin(self.tree.clock)
        return ended

    def sizes(self) -> dict[str, int]:
        """The numbers of kept rows, deadlines and key values."""
        return {
            "rows": sum(len(table) for table in self.live),
            "deadlines": len(self.heap),
            "values": sum(map(len, self._used)),
        }
