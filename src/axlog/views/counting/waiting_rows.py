"""Rows that wait for a partner: a join of two parts that drops rows without a possible partner.

Law: a row is dropped as soon as a proof shows that no row of the other part can arrive that agrees
with it (`future/garbage.py`). The join therefore yields the same rows as if the row had been kept.

    a row arrives   kept if it is `pending`: a partner may still arrive; its deadline goes to a heap
    `TimePassed`    rows whose deadline has passed are dropped
    `KeyUsed`       rows of the other part with this value are dropped: it arrives only once
    `StreamEnded`   if it was the last stream of a part, all rows of the other part are dropped

`pending`, `next_deadline` and `prune` are the contract of every operator that keeps rows for the
future (docs/design.md, The operator contract). Dropped rows are recorded in `ended` until they are
read: some of them were partial matches. With `drops` off, the tables of the join keep all rows, and
separate tables hold the rows that still wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any

from axlog.document.tree import Tree
from axlog.errors import UpdateError
from axlog.evaluate.joins import Bag, Row, Value
from axlog.future.garbage import Feeder, KeyUsed, Pair, Proof, StreamEnded, TimePassed
from axlog.future.join_inputs import JoinInputs
from axlog.future.keys import Key
from axlog.query.compile import Column, Relation
from axlog.views.counting.brief_rows import BriefRows, Follow
from axlog.views.counting.ended_rows import (
    Ended,
    arrival,
    key_positions,
    key_values,
    remove_rows,
    rows_apart,
    rules_out,
)
from axlog.views.counting.join_outlook import Use, outlook_of_two
from axlog.views.counting.keep_code import Keep, Keeping, keep_code, keep_function
from axlog.views.counting.member_deadlines import MemberDeadlines, NextDeadline
from axlog.views.counting.sites import SiteRelation
from axlog.views.operators.operator import Pending
from axlog.views.operators.table import Bucket, Table

MOST_RECENT = 1000
"""The number of key values from which on those of earlier times are dropped."""


class WaitingRows:
    """The waiting rows of one join of two parts."""

    def __init__(
        self,
        state: SiteRelation,
        pair: Pair,
        tree: Tree,
        seen: tuple[Mapping[str, float], Mapping[str, float]],
        inputs: JoinInputs | str = "",
        *,
        drops: bool = True,
        exact: bool = False,
        is_whole: bool = False,
    ) -> None:
        """`seen`: the key values that have arrived already, for each part, with their latest time.

        `exact`: remember arriving values until both parts had them, so that rows that they rule out
        later are recognized at once and not at their deadline. `is_whole`: the document keeps all
        messages, so questions may use all key values; `never` changes do not depend on it.
        """
        self.state = state
        self.pair = pair
        self.tree = tree
        self.drops = drops
        self.open = [{f.stream for f in side.feeders} for side in pair.sides]
        self.ended: list[Ended] = []
        self.dropped = 0  # number of rows dropped or never kept
        self._is_outgrown = False  # whether a stream was added that the analysis did not consider
        self.stopped: tuple[int, int] | None = None
        """The part that no stream feeds any more while the other is fed, and since when."""
        self.passes_by = False  # whether generated joins skip the rows of a part, uncounted
        self.heap: list[tuple[float, int, Row]] = []
        """The rows with a deadline that wait, and some that do not any more, by their deadlines."""
        self._deadlines = [side.deadline() for side in pair.sides]
        self.arrivals = [arrival(side.time_positions) for side in pair.sides]
        self._keys = [key_positions(pair, part) for part in range(2)]
        keyed = [side.key is not None for side in pair.sides]
        remembered = keyed if exact else [pair.remembers(part) for part in range(2)]
        columns = {column for _, column, _ in self.keys}
        self._is_one_key = all(keyed) and len(columns) == 1
        """Whether the keys of both parts have one column: a value that both had is forgotten."""
        self.seen: list[set[str] | None] = [
            seen[n].keys() - (seen[1 - n] if self._is_one_key and remembered[1 - n] else ())
            if remembered[n]
            else None
            for n in range(2)
        ]
        self._recent: tuple[dict[Value, int], dict[Value, int]] = {}, {}
        """The key values of each part that are not remembered, with the time at which they arrived.

        Only those of the current time matter. Older ones are dropped now and then.
        """
        self._forgets = any(seen)  # whether key values have arrived that are not remembered
        self.rows_with: list[Callable[[Column, Value], bool]] = []
        """Whether a view has a row with a value: then the value of a key has arrived."""
        self.followers: list[Follow] = []
        self.holds_or_waits: Callable[[int, Row], bool] | None = None
        """Whether a dropped row needs no record: its view has its values. None: all need one."""
        self.known: list[set[str]] | None = [set(each) for each in seen] if is_whole else None
        """All key values that have arrived, for each part, where the document keeps them too."""
        self.outlook = outlook_of_two(self, pair, inputs)
        """Answers questions about rows; None: the tables do not decide them."""
        self._members: MemberDeadlines | None = None
        self.live = state.join.kept if drops else [Table({}, t.keys()) for t in state.join.kept]
        self._brief = BriefRows(tree, self.live, self.heap, self.followers, self._count_dropped)
        self.brief = self._brief.rows
        for part, key in enumerate(self._keys):
            if key is not None:  # before joins are generated: they fill the existing indexes
                self.live[part].index((key[0],))
                self.live[1 - part].index((key[1],))
        self._start(seen)

    def judge(self, pair: Pair, inputs: JoinInputs | str) -> None:
        """Take over a verdict on the same join and keys, and what the streams can bring."""
        self.pair = pair
        self.outlook = outlook_of_two(self, pair, inputs)

    def _start(self, seen: tuple[Mapping[str, float], Mapping[str, float]]) -> None:
        """Take over the rows of the join; drop those without a possible partner.

        These are the rows that would have been dropped if they had arrived one by one.
        """
        whole = [table.rows() for table in self.state.join.kept]
        by_value: list[dict[Value, list[Row]]] = [{}, {}]
        for part, used in enumerate(seen):
            key = self._keys[part]
            if self.seen[part] is None and key is not None:
                clock = self.tree.clock
                self._recent[part].update((v, clock) for v, at in used.items() if at >= clock)
                for row in whole[part]:
                    by_value[part].setdefault(row[key[0]], []).append(row)
        for part in range(2):
            for row, count in whole[part].items():
                is_used = self._was_used(part, row, seen[1 - part], by_value[1 - part])
                limit = self._deadlines[part](row)
                latest = -inf if is_used or not self.open[1 - part] else limit
                latest = inf if latest is None else latest
                if latest < self.tree.clock:
                    self.dropped += 1
                    if self.drops:
                        self.live[part].update({row: -count})
                    continue
                if not self.drops:
                    self.live[part].update({row: count})
                if latest != inf:
                    heappush(self.heap, (latest, part, row))
                if latest == self.tree.clock and latest <= self.arrivals[part](row):
                    self._brief.place(part, row)
        self.state.join.waiting = self

    def _was_used(
        self, part: int, row: Row, seen: Mapping[str, float], others: Mapping[Value, list[Row]]
    ) -> bool:
        """Whether a row was ruled out by a key value, when it arrived or later."""
        key, times = self._keys[1 - part], self.pair.sides[part].time_positions
        if key is None or row[key[1]] not in seen:
            return False
        limits = map(self._deadlines[1 - part], others.get(row[key[1]], ()))
        is_remembered = self.seen[1 - part] is not None
        return is_remembered or rules_out(seen[str(row[key[1]])], row, times, limits)

    def times_out_without(self, column: Column) -> bool:
        """Whether time alone can rule out a row that has no value in a column."""
        sides = self.pair.sides
        return self.pair.both_until is not None or any(column not in each.columns for each in sides)

    def saved_values(self) -> tuple[tuple[Any, ...], ...]:
        """The key values to save with the tables: those that are remembered, and recent ones.

        Where no rows are dropped, also the rows of each part that do not wait any more. `stopped`,
        if it is of this instant.
        """
        values: tuple[tuple[Any, ...], ...] = key_values(self.seen, self._recent, self.tree.clock)
        self.settle()
        if not self.drops:
            values = (*values, *rows_apart(self.state.join.kept, self.live))
        if any(self.open) and self.stopped is not None and self.stopped[1] == self.tree.clock:
            values = (*values, self.stopped)
        return values

    def restore(self, saved: tuple[tuple[Any, ...], ...]) -> None:
        """Continue with restored tables, and what `saved_values` returned with them."""
        apart = () if self.drops else saved[2:4]
        self.stopped = saved[-1] if len(saved) % 2 else None
        remove_rows(self.live, apart)
        for part, values in enumerate(saved[:2]):
            remembered = self.seen[part]
            if remembered is not None:
                remembered.clear()
                remembered.update(values)
            self._recent[part].clear()
            if remembered is None:
                self._recent[part].update(dict.fromkeys(values, self.tree.clock))
        self._forgets = True
        self.heap.clear()
        self._brief.clear()
        for part in range(2):
            for row in self.live[part].rows():
                deadline = self._deadlines[part](row)
                if deadline is not None:
                    heappush(self.heap, (deadline, part, row))
                    if deadline == self.tree.clock and deadline <= self.arrivals[part](row):
                        self._brief.place(part, row)
        if self._members is not None:
            self._members.start()

    # Members of a family --------------------------------------------------------------------------

    def follow_members(self, family: object, following: NextDeadline) -> MemberDeadlines:
        """Record rows in `ended` when deadlines of a family's members pass, too."""
        self.settle()
        if self._members is None:
            self._members = MemberDeadlines(self)
        self._members.add(family, following)
        return self._members

    # What the collector reads --------------------------------------------------------------------

    @property
    def relation(self) -> Relation:
        """The relation of the join."""
        return self.pair.relation

    @property
    def clock(self) -> int:
        """The clock of the document."""
        return self.tree.clock

    @property
    def keys(self) -> list[tuple[int, Column, Key]]:
        """The keys whose values are followed: part, column and key."""
        return [
            (part, side.columns[side.key[0]], side.key[1])
            for part, side in enumerate(self.pair.sides)
            if side.key is not None
        ]

    @property
    def is_busy(self) -> bool:
        """Whether a single message can drop rows."""
        sides = self.pair.sides
        return any(s.key or (s.is_bounded and not s.is_born_dead) for s in sides)

    @property
    def is_timed(self) -> bool:
        """Whether deadlines may drop rows, or end what no row waits for."""
        pair = self.pair
        return pair.both_until is not None or any(side.is_bounded for side in pair.sides)

    @property
    def is_late(self) -> bool:
        """Whether key values are forgotten: rows that they rule out later wait till a deadline."""
        sides = self.pair.sides
        return any(s.key is not None and self.seen[part] is None for part, s in enumerate(sides))

    def has_used(self, part: int, position: int, value: Value) -> bool:
        """Whether a key value of a part is known to have arrived."""
        if self.known is not None:
            return value in self.known[part]
        if self.has_seen(part, str(value)):
            return True
        column = self.pair.sides[part].columns[position]
        if any(has_row(column, value) for has_row in self.rows_with):
            return True
        key = self._keys[part]
        if not self._forgets or key is None or self.live[1 - part].has((key[1],), (value,)):
            return False
        raise UpdateError(
            "AX307",
            f"the join has forgotten whether {value!r} has arrived: both parts had it, or it waits"
            " for nothing",
            advice='use Options(keep="all")',
        )

    def is_fed_by(self, feeders: Sequence[Iterable[Feeder]]) -> bool:
        """Whether these are the same streams as before; keys and times are then the same too."""
        is_same = [{feeder.stream for feeder in each} for each in feeders] == self.open
        return is_same and not self._is_outgrown

    # Arriving rows -------------------------------------------------------------------------------

    def keeper(self, part: int) -> Keep | None:
        """The function that a generated join calls for each row; None: it keeps all rows itself."""
        side = self.pair.sides[part]
        is_plain = not side.is_bounded and self._keys[1 - part] is None
        if is_plain and self.drops and self.open[1 - part]:
            return None
        return keep_function(self._keeping(part), self._deadlines[part], self.live[part].add)

    def _keeping(self, part: int) -> Keeping:
        """What the functions that keep rows of a part read."""
        bound, other, used = self.pair.sides[part].simple_bound, 1 - part, self._keys[1 - part]
        arrived = {} if used is None else self.live[other].index((used[0],))
        return Keeping(
            part, self, self.tree, self.open[other], None if used is None else used[1],
            arrived, self._recent[other], self.seen[other], bound, self.heap,
            self.arrivals[part], self._brief.add, self.followers,
        )  # fmt: skip

    def keep_code(
        self, part: int, scope: dict[str, object], key: Callable[[Sequence[int]], str]
    ) -> list[str] | None:
        """`keep` as lines of a generated join, without the addition to the table, which follows.

        None: it must be called. `key` gives an expression of the values at some positions.
        """
        side = self.pair.sides[part]
        if not self.drops or (side.simple_bound is None and side.windows):
            return None
        return keep_code(self._keeping(part), scope, key)

    def block(self, number: int, delta: Bag) -> None:
        """Do nothing: a join of two that drops rows has no `not`."""

    def _count_dropped(self, rows: int) -> None:
        self.dropped += rows

    def settle(self) -> None:
        """Add the rows that wait for this instant only to the tables, before these are read."""
        if self.brief:
            self._brief.settle()

    def keeps_none(self, part: int) -> bool:
        """Whether no future row of a part needs to be kept."""
        side = self.pair.sides[part]
        is_alone = side.is_born_dead or side.is_referring or not self.open[1 - part]
        return self.drops and is_alone

    def keep(self, part: int, row: Row, count: int) -> None:
        """Keep an arriving row if a partner may still arrive."""
        latest, clock = self._latest(part, row), self.tree.clock
        if latest < clock:
            self.dropped += 1
            return
        if latest == clock and latest <= self.arrivals[part](row):
            self._brief.add(part, row, count)
            return
        if latest != inf:
            heappush(self.heap, (latest, part, row))
        self.live[part].update({row: count})
        for follow in self.followers:
            follow(part, row, count)

    def keep_all(self, part: int, delta: Bag) -> None:
        if not self.drops:
            self.state.join.kept[part].update(delta)
        for row, count in delta.items():
            self.keep(part, row, count)

    # The contract of operators -------------------------------------------------------------------

    def pending(self, part: int, row: Row) -> Pending | None:
        """What a row of a part, kept or arriving, waits for; None: no partner can arrive."""
        latest = self._latest(part, row)
        if latest < self.tree.clock:
            return None
        return Pending(1 - part, self.open[1 - part], None if latest == inf else int(latest))

    def truly_pending(self, part: int, row: Row) -> Pending | None:
        """Do the same as `pending` with all key values that have arrived, if they are known."""
        key = self._keys[1 - part]
        if self.known is not None and key is not None and row[key[1]] in self.known[1 - part]:
            return None
        return self.pending(part, row)

    def deadline(self, part: int, row: Row) -> int | None:
        """The latest clock at which a partner of a row may arrive; None: no limit."""
        return self._deadlines[part](row)

    def _latest(self, part: int, row: Row) -> float:
        """The latest clock at which a partner of a row may arrive; -inf: none, inf: no limit."""
        other = 1 - part
        if not self.open[other] or self.pair.sides[part].is_referring:
            return -inf
        key = self._keys[other]
        if key is not None:
            value = row[key[1]]
            remembered = self.seen[other]
            if remembered is None and self._is_recent(other, value):
                return -inf
            if remembered is not None and value in remembered:
                return -inf
            if self.live[other].has((key[0],), (value,)):
                return -inf
        deadline = self._deadlines[part](row)
        return inf if deadline is None else deadline

    def _is_recent(self, part: int, value: Value) -> bool:
        """Whether a key value arrived at this instant."""
        return self._recent[part].get(value) == self.tree.clock

    def next_deadline(self) -> int | None:
        """The clock after which some row may have no possible partner; None: no such clock."""
        self.settle()
        return int(self.heap[0][0]) if self.heap else None

    def prune(self, proof: Proof) -> int:
        """Drop the rows that a proof leaves without a possible partner; return their number."""
        before = self.dropped
        match proof:
            case KeyUsed():
                self.use(*proof)
            case TimePassed():
                self.expire(proof.clock)
            case StreamEnded():
                self._close(proof)
        return self.dropped - before

    def use(self, part: int, value: str) -> None:
        """Drop the rows of the other part with a key value that has arrived."""
        self.user(part)((value,))

    def user(self, part: int) -> Use:
        """`use` for one part, with what does not change put in; runs for every message."""
        key = self._keys[part]
        assert key is not None
        other, tree = 1 - part, self.tree
        table = self.live[other]
        found_by = table.index((key[1],))
        is_plain = type(found_by) is dict  # not on disk
        followers = self.followers
        mine, others = self.seen[part], self.seen[other]
        known = None if self.known is None else self.known[part]
        shared = others if self._is_one_key else None
        recent, streams = self._recent[part], self.open[other]
        is_forgetting = mine is None and known is None and shared is None

        brief = self.brief

        def use(used: Row) -> None:
            for each in brief:
                if each[0] == other:  # rows of its own part are not looked for
                    self.settle()
                    break
            found = found_by.get(used)
            if found is not None:
                holds_or_waits = self.holds_or_waits
                is_simple = is_plain and not followers and table.has_one_index
                if holds_or_waits is not None and is_simple and isinstance(found, tuple):
                    del found_by[used]
                    self.dropped += 1
                    if not holds_or_waits(other, found[0]):
                        self._record(other, found[0], KeyUsed(part, str(used[0])))
                else:
                    self._end_all(other, found, KeyUsed(part, str(used[0])))
            if is_forgetting:
                self._forgets = True
                recent[used[0]] = tree.clock
                if len(recent) > MOST_RECENT:
                    self._forget(recent)
                return
            value = str(used[0])
            if known is not None:
                known.add(value)
            if mine is None:
                self._forgets = True
                recent[value] = tree.clock
            if shared is not None and value in shared:
                shared.remove(value)  # both parts had it
                self._forgets = True
            elif mine is not None and streams:
                mine.add(value)

        return use

    def _forget(self, recent: dict[Value, int]) -> None:
        """Drop the key values of earlier times."""
        clock = self.tree.clock
        for value in [value for value, at in recent.items() if at != clock]:
            del recent[value]

    def _end_all(self, part: int, found: Bucket, proof: Proof) -> None:
        """Drop the rows of a bucket."""
        rows = tuple(found.items()) if isinstance(found, dict) else (found,)
        for row, _ in rows:
            self._end(part, row, proof)

    def expire(self, clock: int) -> None:
        """Do the same as `prune` with `TimePassed`; runs for most messages."""
        heap = self.heap
        while heap and heap[0][0] < clock:
            passed, part, row = heappop(heap)
            if self._members is None or not self._members.take(passed, part, row, clock):
                self._end(part, row, TimePassed(clock), int(passed))

    def _close(self, proof: StreamEnded) -> None:
        """Drop the rows of the other part if no stream feeds this one any more."""
        streams = self.open[proof.input]
        streams.discard(proof.stream)
        if streams:
            return
        other = 1 - proof.input
        if self.open[other]:
            self.stopped = proof.input, self.tree.clock
        for row in self.live[other].rows():
            self._end(other, row, proof)
        for each in self.seen:
            if each is not None:
                each.clear()

    def _drop(self, part: int, row: Row) -> int:
        """Drop a row, if it is still there; its count."""
        count = self.live[part].remove(row)
        if count:
            for follow in self.followers:
                follow(part, row, -count)
            self.dropped += 1
        return count

    def _end(self, part: int, row: Row, proof: Proof, passed: int | None = None) -> None:
        before = -inf if self._members is None else self._members.passed(part, row)
        if not self._drop(part, row):
            return
        if self.holds_or_waits is None or not self.holds_or_waits(part, row):
            self._record(part, row, proof, passed, before)

    def _record(
        self, part: int, row: Row, proof: Proof, passed: int | None = None, before: float = -inf
    ) -> None:
        """Record a dropped row, if a row of a later instant could have completed it."""
        limit = self._deadlines[part](row) if passed is None else passed
        if passed is None and limit is not None and limit < self.tree.clock:
            proof, passed = TimePassed(self.tree.clock), int(limit)  # before the update ended it
        if limit is None or limit > self.arrivals[part](row):
            # otherwise only a row of the same instant could have completed it
            self.ended.append(Ended(part, row, proof, passed, before))

    def take_ended(self) -> list[Ended]:
        """The rows dropped since the last call."""
        self.settle()
        ended = self.ended.copy()
        self.ended.clear()  # generated functions refer to it
        return ended

    # Streams and key values ----------------------------------------------------------------------

    def admit(self, part: int, streams: set[str]) -> None:
        """New streams feed a part; rows wait until the join is analysed again."""
        if streams:
            self.open[part] |= streams
            self._is_outgrown = True

    def has_seen(self, part: int, value: str) -> bool:
        """Whether this key value of a part is known to have arrived."""
        key, remembered = self._keys[part], self.seen[part]
        if remembered is not None and value in remembered:
            return True
        return key is not None and self.live[part].has((key[0],), (value,))

    # Sizes ---------------------------------------------------------------------------------------

    def sizes(self) -> dict[str, int]:
        """The numbers of kept rows, deadlines and key values."""
        self.settle()
        return {
            "rows": sum(len(table) for table in self.state.join.kept),
            "deadlines": len(self.heap),
            "values": sum(len(each) for each in self.seen if each is not None),
        }
