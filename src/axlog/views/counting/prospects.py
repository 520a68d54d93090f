"""The future rows of a view, read from its joins: truth, possible rows and `never` changes.

For views whose rows come from one join of two parts (`waiting_rows.py`), under an exact verdict
(`future/garbage.py`). A possible row is a waiting row with the values that it shows, or, while
streams of both parts are open, the row without known values. A `never` change is emitted for a
possible row when no instance of it holds or is possible any more:

    never(u)  =  u was possible, and now no row agrees with u, no waiting row agrees with u,
                 and no future row can

`future/truth.py` finds the same rows by a walk over the document. It is the definition, and this
module is checked by it. One exception, which avoids extra state: a partial match that only a row of
the same instant could have completed is not reported. If such rows may be left when a stream ends,
the row without known values is judged after the instant of the end, when they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import product
from typing import Any, TypeAlias

from axlog.document.times import Times
from axlog.evaluate.joins import Row as Binding
from axlog.evaluate.joins import picker
from axlog.future.garbage import KeyUsed, system_of
from axlog.future.reasons import Reason
from axlog.future.time_constraints import not_before, some_new
from axlog.future.truth import Possible, Wanted, column_of, possible_rows
from axlog.query.compile import Column
from axlog.query.pattern import Kind, Pattern
from axlog.query.truth import Truth
from axlog.views.change import Change, Row, never_change
from axlog.views.counting.ended_rows import Ended
from axlog.views.counting.join_reasons import reasons_of
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.possible_pages import DeadlineOrder, page_of, place_of
from axlog.views.counting.row_index import RowIndex, RowQuestion, Shown, status_of
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.operators.table import Index


def shows_only_strings_and_times(pattern: Pattern) -> bool:
    """Whether a view shows only strings and times, which the rows of joins contain."""
    kinds = (Kind.VARIABLE, Kind.LABEL, Kind.TIME)
    return all(output.kind in kinds for output in pattern.outputs)


class Starts(Enum):
    """What the last update did to rows of a view that begin with no row of either part."""

    AS_BEFORE = "as before"
    ENDED = "ended"  # none can begin any more
    GONE = "gone"  # nor are there rows that waited for the instant of this end


_FoundWay: TypeAlias = tuple[Shown, tuple[Wanted, ...], int | None]
"""The values that a way shows, what it needs, and its deadline."""


class Prospects:
    """The possible rows of one view."""

    def __init__(self, maintainer: Counting, waiting: WaitingRows) -> None:
        self.maintainer = maintainer
        self.waiting = waiting
        self.pattern = maintainer.pattern
        self._columns = [column_of(output) for output in self.pattern.outputs]
        sides = waiting.pair.sides
        self._known = [
            [(at, side.columns.index(c)) for at, c in enumerate(self._columns) if c in side.columns]
            for side in sides
        ]
        self._positions = [tuple(sorted({i for _, i in known})) for known in self._known]
        for part, positions in enumerate(self._positions):
            if positions:
                waiting.live[part].index(positions)
        if waiting.outlook is not None:
            waiting.outlook.forget()
        self._picks = [picker(positions) for positions in self._positions]
        self._question = RowQuestion(self.pattern)
        self._names = self._question.names
        self.shows = [self._shower(part) for part in range(2)]
        self._comes_once = [
            side.key is not None and side.key[0] in positions
            for side, positions in zip(sides, self._positions, strict=True)
        ]
        """Whether only one node has the key value that rows of a part show."""
        self._partial = [len(known) < len(self._columns) for known in self._known]
        self._held: list[dict[Shown, int]] = [{}, {}]
        for row in maintainer.rows() if any(self._partial) else ():
            self._hold(row.values_, 1)
        # from the values of a row to its binding
        self._bind = picker([self._columns.index(column) for column in maintainer.root.columns])
        self._has = maintainer.has
        self._binds: list[Callable[[Binding], Binding]] = []
        """From a row of a part to the binding of the row that it shows; with `shows_keys` only."""
        self._by_shown: list[Index] = []
        if self.shows_keys:
            for side, positions, table in zip(sides, self._positions, waiting.live, strict=True):
                self._binds.append(
                    picker([side.columns.index(column) for column in maintainer.root.columns])
                )
                self._by_shown.append(table.index(positions))
        self._order: DeadlineOrder | None = None
        self._index = RowIndex(maintainer)
        waiting.rows_with.append(self._has_row_with)
        self._could_start = self._may_start()
        self.is_after_end = waiting.stopped is not None
        """Whether no end of a stream is to be judged any more: not those before the view."""
        self.starts = Starts.AS_BEFORE
        self.gone_after: int | None = None
        """With `Starts.GONE`, the instant that has passed; None: all streams have ended in it."""

    # Rows that hold ------------------------------------------------------------------------------

    def take(self, changes: Iterable[Change]) -> None:
        """Note inserted and deleted rows, if rows are identified by a part of their values."""
        changes = list(changes)
        self._index.take(changes)
        if any(self._partial):
            for change in changes:
                if change.op in ("insert", "delete"):
                    self._hold(change.row.values_, 1 if change.op == "insert" else -1)

    def _hold(self, values: Shown, count: int) -> None:
        for part, held in enumerate(self._held):
            if self._partial[part]:
                shown = {at for at, _ in self._known[part]}
                key = tuple(value if at in shown else None for at, value in enumerate(values))
                held[key] = held.get(key, 0) + count
                if not held[key]:
                    del held[key]

    def _holds(self, part: int, shown: Shown) -> bool:
        if self._partial[part]:
            return shown in self._held[part]
        return self._is_there(shown)

    @property
    def shows_keys(self) -> bool:
        """Whether each row of a part shows all values of the view, and among them the part's key.

        Then no other row of the part can show them.
        """
        return all(self._comes_once) and not any(self._partial)

    def holds_or_waits(self, part: int, row: Binding) -> bool:
        """Whether a row with the values that a dropped row shows holds, or another one waits.

        Decides `never` where `shows_keys` holds.
        """
        if self._has(self._binds[part](row)):
            return True
        return self._picks[part](row) in self._by_shown[part]

    def _has_row_with(self, column: Column, value: Any) -> bool:
        """Whether some row shows this value of a column."""
        if column not in self._columns:
            return False
        at = self._columns.index(column)
        return self._index.has(tuple(value if i == at else None for i in range(len(self._columns))))

    def settle(self) -> None:
        """Add the rows that wait for this instant only to the tables, before these are read."""
        if self.waiting.brief:
            self.waiting.settle()

    # Verdicts ------------------------------------------------------------------------------------

    @property
    def truth(self) -> Truth:
        """The truth of the view: some row holds, may come, or can never come."""
        if self.maintainer.has_rows:
            return Truth.TRUE
        return Truth.POSSIBLE if self._may_start() or self._waits() else Truth.NEVER

    def _waits(self) -> bool:
        """Whether some row may still find a partner."""
        waiting = self.waiting
        if not waiting.is_late or waiting.known is None:
            return not all(table.is_empty for table in waiting.live)
        return any(
            waiting.truly_pending(part, row) is not None
            for part, table in enumerate(waiting.live)
            for row in table.rows()
        )

    def status(self, row: Mapping[str, Any]) -> Truth | None:
        """The truth of one row of a caller; None: the tables do not decide it."""
        outlook = self.waiting.outlook
        if outlook is None:
            return None
        return status_of(self._index.has, outlook, self._question, row)

    def reasons(
        self, truth: Truth, row: Mapping[str, Any], times: Times
    ) -> tuple[Reason, ...] | None:
        """The reasons for the truth of a row; None: the tables do not decide it."""
        outlook = self.waiting.outlook
        if outlook is None:
            return None
        known = self._question.known(self._question.shown(row))
        return reasons_of(truth, self.pattern, self.waiting, outlook, known, times)

    @property
    def is_partial(self) -> bool:
        """Whether the values of one part identify rows: changes must then be followed."""
        return any(self._partial) or self._index.is_used

    @property
    def settles(self) -> bool:
        """Whether an emitted row can neither leave nor return, so that it need not be kept.

        This holds if the row shows a key of each part, because a key value occurs once.
        """
        shown = self.maintainer.root.columns
        return not any(self._partial) and all(
            side.key is not None and side.columns[side.key[0]] in shown
            for side in self.waiting.pair.sides
        )

    @property
    def is_certain(self) -> bool:
        """Whether all key values that rule rows out are known.

        Otherwise a row that a key rules out may count as waiting until its deadline.
        """
        return self.waiting.known is not None or not self.waiting.is_late

    @property
    def until(self) -> int | None:
        """The latest clock at which rows of both parts may still arrive; None: no limit."""
        if self._could_start:
            return self.waiting.pair.both_until
        stopped = self.waiting.stopped
        return stopped[1] if stopped is not None and self.awaits_end else None

    @property
    def awaits_end(self) -> bool:
        """Whether an instant has to pass in which a stream has ended."""
        return self.waiting.stopped is not None and not self.is_after_end

    def _is_past(self, stopped: tuple[int, int]) -> bool:
        return stopped[1] < self.waiting.tree.clock

    def possible(self) -> list[Possible]:
        """The possible rows, as `Outlook.possible` lists them."""
        ways: list[_FoundWay] = []
        for part, table in enumerate(self.waiting.live):
            for row in table.rows():
                ways += self._ways_of(part, row)
        return without_dominated(possible_rows(self.pattern.columns, [*ways, *self._new_ways()]))

    def _ways_of(self, part: int, row: Binding) -> list[_FoundWay]:
        """The ways in which a waiting row may be completed."""
        shown, pending = self._shown(part, row), self.waiting.truly_pending(part, row)
        is_there = not self._partial[part] and self._is_there(shown)
        if pending is None or is_there or not self._may_be_new(part, row, shown):
            return []
        return [(shown, (wanted,), pending.deadline) for wanted in self._wanted(pending.part)]

    def _new_ways(self) -> list[_FoundWay]:
        """The ways in which rows of both parts arrive."""
        if not self._may_start() or self._is_superseded() or not self._may_both_be_new():
            return []
        nothing = tuple(None for _ in self._columns)
        both = product(self._wanted(0), self._wanted(1))
        return [(nothing, needs, self.waiting.pair.both_until) for needs in both]

    def page(self, limit: int | None, after: Possible | None) -> list[Possible]:
        """A page of the possible rows (`possible_pages.py`)."""
        order = self._deadline_order()
        if order is None:
            return page_of(self.possible(), limit, after)
        columns = self.pattern.columns
        found: list[Possible] = []
        for group in order.groups(None if after is None else place_of(after)):
            ways = [way for part, row in group for way in self._ways_of(part, row)]
            found += page_of(possible_rows(columns, ways), None, after)
            if limit is not None and len(found) >= limit:
                break
        found += possible_rows(columns, self._new_ways())
        return page_of(found, limit, after)

    def _deadline_order(self) -> DeadlineOrder | None:
        """The waiting rows in order; None: this does not give pages."""
        if not self._columns or not all(map(self._is_decided_by_last, range(2))):
            return None
        order = self._order
        if order is None or not order.catch_up():
            untold = [part for part in range(2) if self.waiting.keeper(part) is None]
            live, positions = self.waiting.live, self._positions
            if not all(live[part].is_plain and positions[part] for part in untold):
                return None
            indexes = {part: live[part].index(positions[part]) for part in untold}
            order = self._order = DeadlineOrder(self.waiting, self._shown, indexes)
            order.catch_up()
        return order

    def _is_decided_by_last(self, part: int) -> bool:
        """Whether the last of the rows of a part that show the same decides if this is possible.

        It does not where forgotten keys rule waiting rows out, or a moment decides (`_may_be_new`).
        """
        unknown = [at for at in range(len(self._columns)) if at not in dict(self._known[part])]
        is_ruled_out = self.waiting.is_late and self.waiting.known is not None
        return self._comes_once[part] or not (is_ruled_out or self._are_times(unknown))

    def _is_superseded(self) -> bool:
        """Whether the row without known values holds, or is possible with fewer needs."""
        if not self._columns and self.maintainer.has_rows:
            return True
        return not self.waiting.pair.relation.tests and any(
            not positions and not table.is_empty
            for positions, table in zip(self._positions, self.waiting.live, strict=True)
        )

    def _may_be_new(self, part: int, row: Binding, shown: Shown) -> bool:
        """Whether a partner can complete it to a row that does not exist yet; see `Outlook`."""
        unknown = [at for at, value in enumerate(shown) if value is None]
        if not self._are_times(unknown) or not self.maintainer.has_rows:
            return True
        windows = self.waiting.pair.sides[part].windows
        if not any(window.highs for window in windows):
            return True
        (window,) = windows
        clock = self.waiting.tree.clock
        low = max([clock, *(bound.at(row) for bound in window.lows)])
        high = min(bound.at(row) for bound in window.highs)
        times = range(high, low - 1, -1)
        return any(not self._is_there([time if v is None else v for v in shown]) for time in times)

    def _may_both_be_new(self) -> bool:
        """`_may_be_new` for two rows that both have not arrived."""
        pair = self.waiting.pair
        if (
            pair.both_until is None
            or not self._are_times(range(len(self._columns)))
            or not self.maintainer.has_rows
        ):
            return True
        system, clock = system_of(pair.relation.tests), self.waiting.tree.clock
        names = {name for each in system for _, name in each.terms}
        system += [not_before(name, clock) for name in sorted(names)]
        shown = [column[: -len(".time")] for column in self._columns]
        return some_new(system, shown, clock, self._is_there)

    def _are_times(self, positions: Iterable[int]) -> bool:
        """Whether these outputs are all times; False for none."""
        columns = [self._columns[at] for at in positions]
        return bool(columns) and all(column.endswith(".time") for column in columns)

    def _is_there(self, shown: Sequence[Any]) -> bool:
        return self.maintainer.has(self._bind(tuple(shown)))

    def _wanted(self, part: int) -> list[Wanted]:
        side = self.waiting.pair.sides[part]
        streams = self.waiting.open[part]
        return [Wanted(f.stream, str(f.relation.node)) for f in side.feeders if f.stream in streams]

    def _may_start(self) -> bool:
        """Whether rows of both parts may still arrive and join."""
        until = self.waiting.pair.both_until
        return all(self.waiting.open) and (until is None or until >= self.waiting.tree.clock)

    def _shown(self, part: int, row: Binding) -> Shown:
        return self.shows[part](row)

    def _shower(self, part: int) -> Callable[[Binding], Shown]:
        """A function that returns the values that a row of a part shows; None for the others."""
        known = dict(self._known[part])
        if len(known) == len(self._columns):
            return picker([known[at] for at in range(len(known))])
        positions = [known.get(at) for at in range(len(self._columns))]
        return lambda row: tuple([None if at is None else row[at] for at in positions])

    # Never ---------------------------------------------------------------------------------------

    def never(self, ended: Sequence[Ended]) -> list[Change]:
        """The `never` changes for partial matches, given the dropped rows.

        Where only deadlines have passed, the clock is the cause, and the time of the change is the
        first one after the last of them.
        """
        found: dict[Shown, list[int | None]] = {}
        for each in ended:
            shown = self.shows[each.part](each.row)
            if shown in found or not self._may_hold(each, shown):
                found.setdefault(shown, []).append(each.limit)
        limits, nothing = self._end_of_starts(), tuple(None for _ in self._columns)
        if limits is not None:
            is_empty = all(table.is_empty for table in self.waiting.live)
            # whatever keys are known besides
            if is_empty and not self.maintainer.has_rows:
                found[nothing] = [*limits, *(each.limit for each in ended)]
        elif self.waiting.stopped is not None and not self.is_after_end and self.waits_an_instant:
            found.pop(nothing, None)  # rows that show no values: judged after the instant, too
        names = self._names
        return [never_change(Row(names, shown), limits) for shown, limits in found.items()]

    def _end_of_starts(self) -> list[int | None] | None:
        """What made rows of both parts impossible, if the row without values is to be judged now.

        Rows that wait for the instant of an end are gone after it.
        """
        waiting, self.starts = self.waiting, Starts.AS_BEFORE
        stopped, had_started = waiting.stopped, self._could_start
        if had_started and not self._may_start():
            self._could_start = False
            self.starts = Starts.ENDED
            self.is_after_end = not any(waiting.open)
            if all(waiting.open):
                return [waiting.pair.both_until]
            waits = self.waits_an_instant and any(waiting.open)
            return None if waits else [None]
        if stopped is None or self.is_after_end:
            return None
        is_past = self._is_past(stopped)
        if not is_past and any(waiting.open):
            return None
        self.is_after_end = True
        self.starts = Starts.GONE
        self.gone_after = stopped[1] if is_past else None
        return [self.gone_after] if self.waits_an_instant else None

    @property
    def waits_an_instant(self) -> bool:
        """Whether rows may wait for the instant at which the stream of their part has ended."""
        stopped = self.waiting.stopped
        return stopped is not None and self.waiting.pair.sides[stopped[0]].waits_an_instant

    def _may_hold(self, ended: Ended, shown: Shown) -> bool:
        """Whether a row that agrees with these values holds or may still come."""
        part, row = ended.part, ended.row
        if self._holds(part, shown):
            return True
        table, positions = self.waiting.live[part], self._positions[part]
        if table.has(positions, self._picks[part](row)) if positions else not table.is_empty:
            return True
        return self._may_come_again(part, row) and (
            self._meets_waiting(part, row) or self._meets_new(ended)
        )

    def _may_come_again(self, part: int, row: Binding) -> bool:
        """Whether another row of the part with the same shown values can arrive."""
        waiting, side = self.waiting, self.waiting.pair.sides[part]
        if not waiting.open[part] or self._comes_once[part]:
            return False
        shown = self._positions[part]
        times = [row[i] for i in shown if i in side.time_positions]
        return all(int(time) >= waiting.tree.clock for time in times)

    def _meets_waiting(self, part: int, row: Binding) -> bool:
        """Whether such a row could complete a waiting row of the other part."""
        sides, other = self.waiting.pair.sides, 1 - part
        table = self.waiting.live[other]
        columns = [sides[part].columns[i] for i in self._positions[part]]
        shared = [c for c in columns if c in sides[other].columns]
        if shared:
            positions = tuple(sorted(sides[other].columns.index(c) for c in shared))
            at = {sides[other].columns.index(c): row[sides[part].columns.index(c)] for c in shared}
            candidates: Iterator[Binding] = (
                r for r, _ in table.matching(positions, tuple(at[i] for i in positions))
            )
        else:
            candidates = iter(table.rows())
        fixed = [i for i in self._positions[part] if i in sides[part].time_positions]
        if not fixed:
            return next(iter(candidates), None) is not None
        clock = self.waiting.tree.clock
        return any(
            all(
                all(low.at(each) <= clock for low in window.lows)
                and all(clock <= high.at(each) for high in window.highs)
                for window in sides[other].windows
            )
            for each in candidates
        )

    def _meets_new(self, ended: Ended) -> bool:
        """Whether such a row and a new row of the other part can arrive."""
        waiting, part, row = self.waiting, ended.part, ended.row
        other = 1 - part
        if not waiting.open[other]:
            return False
        key = waiting.pair.sides[other].key
        if key is not None:
            column = waiting.pair.sides[other].columns[key[0]]
            if column in self._columns:  # its value is shown, so it is the same
                value = row[waiting.pair.sides[part].columns.index(column)]
                if isinstance(ended.proof, KeyUsed) or waiting.has_seen(other, str(value)):
                    return False
        clock = waiting.tree.clock
        if any(i in waiting.pair.sides[part].time_positions for i in self._positions[part]):
            limit = waiting.pair.sides[part].deadline()(row)
            return limit is None or limit >= clock
        until = waiting.pair.both_until
        return until is None or until >= clock


def without_dominated(listed: list[Possible], partly: bool = False) -> list[Possible]:
    """Without known rows that are possible with fewer needs and as late a deadline (`Outlook`).

    `partly`: also rows with unknown values, as of queries with `not`.
    """
    by_row: dict[Shown, list[Possible]] = {}
    for one in listed:
        if partly or None not in one.row.values():
            by_row.setdefault(tuple(one.row.values()), []).append(one)
    return [
        one
        for one in listed
        if len(one.needs) < 2
        or not any(_dominates(other, one) for other in by_row.get(tuple(one.row.values()), ()))
    ]


def _dominates(other: Possible, one: Possible) -> bool:
    until = one.deadline
    return set(other.needs) < set(one.needs) and (
        other.deadline is None or (until is not None and until <= other.deadline)
    )
