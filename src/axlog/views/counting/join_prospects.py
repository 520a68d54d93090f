"""The future rows of a view whose rows one join of three or more parts makes.

`Prospects` does the same for two parts. A possible row is what a way shows of a row
(`join_outlook.py`). A `never` change is emitted for a row that an ended way showed:

    never(u)  =  a way that shows u was possible before the update and is not any more, and now no
                 row agrees with u, and none that does may come

Deadlines pass before a message is applied: each is an update of its own. A row that a `not` removes
is a `delete`, and not `never`: it held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import product
from typing import Any, Protocol, TypeAlias

from axlog.document.times import Times
from axlog.evaluate.joins import Row as Binding
from axlog.future.generalized_rows import are_implied
from axlog.future.join_inputs import FAR
from axlog.future.reasons import Reason
from axlog.future.search_budget import bounded
from axlog.future.time_constraints import some_new
from axlog.future.truth import Possible, Wanted, possible_rows
from axlog.query.pattern import Pattern
from axlog.query.truth import Truth
from axlog.views.change import Change, Row, never_change
from axlog.views.counting.join_outlook import Bound, Way
from axlog.views.counting.join_reasons import reasons_of
from axlog.views.counting.join_watch import EndedWay, JoinWatch
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.possible_pages import (
    Place,
    ValueOrder,
    WayOrder,
    page_of,
    place_of,
)
from axlog.views.counting.prospects import Prospects, without_dominated
from axlog.views.counting.row_index import RowIndex, RowQuestion, Shown, status_of
from axlog.views.counting.waiting_rows import WaitingRows


class RowsByValue(Protocol):
    """The rows of a pattern by some of their values."""

    @property
    def is_used(self) -> bool:
        """Whether changes must be followed."""

    def has(self, shown: Shown) -> bool:
        """Whether some row agrees with these values."""

    def take(self, changes: Iterable[Change]) -> None:
        """Follow the changes of one update."""


class JoinProspects:
    """The possible rows of one view."""

    is_certain = True
    settles = False
    until: int | None = None
    awaits_end = False

    def __init__(
        self, maintainer: Counting, waiting: JoinWatch, pattern: Pattern | None = None
    ) -> None:
        """`pattern`: that of the rows; None: the maintainer's."""
        self.maintainer = maintainer
        self.waiting = waiting
        self.pattern = maintainer.pattern if pattern is None else pattern
        self._question = RowQuestion(self.pattern)
        self._columns = self._question.columns
        self._index: RowsByValue = RowIndex(maintainer)
        self._witness: Way | None = None  # a way that was possible when the truth was last asked
        self._dropped = waiting.dropped
        self._is_never = False
        self._left: set[Shown] = set()  # rows that held until this update
        self._shown_at: list[tuple[int, ...]] = []  # for each part, the values that the view shows
        self._ordered: tuple[tuple[int, WayOrder], ValueOrder] | None = None
        self._wanted = [
            [Wanted(feeder.stream, str(feeder.relation.node)) for feeder in facts.feeders]
            for facts in waiting.inputs.parts
        ]
        shown = set(self._columns)
        for part, facts in enumerate(waiting.inputs.parts):
            at = tuple(i for i, c in enumerate(facts.columns) if c in shown and i != facts.time)
            self._shown_at.append(at)
            if at:
                waiting.live[part].index(at)  # before joins are generated
        waiting.outlook.forget()
        waiting.is_asked = True

    @property
    def is_partial(self) -> bool:
        """Whether changes must be followed."""
        return self._index.is_used or self.waiting.has_absences

    def take(self, changes: Iterable[Change]) -> None:
        """Note inserted and deleted rows."""
        changes = list(changes)
        self._index.take(changes)
        self._left = {change.row.values_ for change in changes if change.op == "delete"}

    def settle(self) -> None:
        """Do nothing: the tables have all rows."""

    # Questions ------------------------------------------------------------------------------------

    @property
    def truth(self) -> Truth:
        """The truth of the view: some row holds, may come, or can never come."""
        if self.maintainer.has_rows:
            return Truth.TRUE
        return Truth.POSSIBLE if self._may_come() else Truth.NEVER

    def _may_come(self) -> bool:
        """Whether any row may come. Nothing is deleted: once none may, none ever may."""
        outlook, way, dropped = self.waiting.outlook, self._witness, self.waiting.dropped
        if dropped != self._dropped:
            way, self._dropped = None, dropped  # its rows may be gone
        if not self._is_never and (way is None or outlook.latest(way) is None):
            self._witness = outlook.witness({})
            self._is_never = self._witness is None
        return not self._is_never

    def status(self, row: Mapping[str, Any]) -> Truth:
        """The truth of one row of a caller."""
        return status_of(self._index.has, self.waiting.outlook, self._question, row)

    def reasons(
        self, truth: Truth, row: Mapping[str, Any], times: Times
    ) -> tuple[Reason, ...] | None:
        """The reasons for the truth of a row."""
        known = self._question.known(self._question.shown(row))
        waits_until = self._moment_of(known) if truth is Truth.POSSIBLE else None
        waiting, outlook = self.waiting, self.waiting.outlook
        return reasons_of(truth, self.pattern, waiting, outlook, known, times, waits_until)

    def _moment_of(self, known: Bound) -> int | None:
        """The moment at which time brings a row whose data is there; None: it brings none."""
        return None

    def possible(self) -> list[Possible]:
        """The possible rows, as `Outlook.possible` lists them."""
        with bounded(sum(table.least_size for table in self.waiting.live)):
            return self._listed(self.waiting.outlook.ways({}))

    def _listed(self, given: Iterable[Way]) -> list[Possible]:
        """The possible rows of ways: all that there are, or all that show some values."""
        ways: list[tuple[Shown, tuple[Wanted, ...], int | None]] = []
        for way, limit in self._least_ways(given):
            if self._may_be_new(way):
                shown, until = self._shown(way.bound), None if limit == FAR else limit
                ways += [(shown, needs, until) for needs in self._needs(way)]
        listed = possible_rows(self._question.names, ways)
        return without_dominated(listed, self.waiting.has_absences)

    def page(self, limit: int | None, after: Possible | None) -> list[Possible]:
        """A page of the possible rows (`possible_pages.py`)."""
        found: list[Possible] = []
        if limit is None:
            return page_of(self.possible(), limit, after)
        start = None if after is None else place_of(after)
        for one in self._until_deadlines(start):
            found.append(one)
            if len(found) >= limit:
                return found
        for listed in self._by_value(None if start is None or start[0] != FAR else start[1]):
            found += page_of([one for one in listed if one.deadline is None], None, after)
            if len(found) >= limit:
                break
        return found[:limit]

    def _by_value(self, start: tuple[tuple[bool, Any], ...] | None) -> Iterator[list[Possible]]:
        """The possible rows by the values of the first column, from those of a place on."""
        order, outlook = self._value_order(), self.waiting.outlook
        if order is None:
            yield self.possible()
            return
        column, least = self._columns[0], None if start is None or not start[0][0] else start[0][1]
        if least is None:
            with bounded(sum(table.least_size for table in self.waiting.live)):
                yield self._listed(outlook.ways_without(column))
        finished: list[Any] = []  # no row with them may come, now and later
        try:
            for value in order.since(least):
                known = {column: value}
                if not outlook.may_come(known):
                    finished.append(value)
                    continue
                with bounded(0):
                    ways = (w for w in outlook.ways(known) if self.waiting.has_all(w, known))
                    yield self._listed(ways)
        finally:
            order.remove(finished)

    def _value_order(self) -> ValueOrder | None:
        """The values of the first column in order; None: they are not in memory, or not needed.

        They are collected anew if rows were dropped, or the tables restored. One part has no way
        with a row of it.
        """
        if not self._columns or self._columns[0].endswith(".time") or len(self._shown_at) == 1:
            return None
        made_for = self.waiting.dropped, self.waiting.order(self._columns)
        if self._ordered is None or self._ordered[0] != made_for:
            indexes: list[tuple[Any, int]] = []
            for positions, table in zip(self._shown_at, self.waiting.live, strict=True):
                columns = self.waiting.inputs.parts[len(indexes)].columns
                at = [n for n, i in enumerate(positions) if columns[i] == self._columns[0]]
                indexes.append((table.index(positions), at[0]) if at else ({}, 0))
            if any(type(index) is not dict for index, _ in indexes):
                return None
            self._ordered = made_for, ValueOrder(indexes)
        return self._ordered[1]

    def _until_deadlines(self, start: Place | None) -> Iterator[Possible]:
        """The possible rows with deadlines, in their order, after a place."""
        order, left = self.waiting.order(self._columns), list[tuple[Place, Possible]]()
        listed: set[tuple[int, Shown]] = set()
        known: dict[Shown, list[Possible]] = {}  # many rows may show the same
        first: Place = ()
        if start is not None:  # rows that show more than a row of a part come after it
            is_whole = all(map(order.shows_all, self.waiting.timed_parts))
            first = start[:2] if is_whole else start[:1]
        useless: list[tuple[int, int, Binding]] = []
        try:
            for place, part, row in order.since(first):
                while left and left[0][0] < place:
                    yield heappop(left)[1]
                deadline = place[0]
                with bounded(0):
                    for shown in self._shown_until(deadline, part, row, useless):
                        if (deadline, shown) in listed:
                            continue
                        listed.add((deadline, shown))
                        found = known.get(shown)
                        if found is None:
                            known[shown] = found = self._listed(self._ways_of(shown))
                        for one in found:
                            at = place_of(one)
                            if one.deadline == deadline and (start is None or at > start):
                                heappush(left, (at, one))
            while left:
                yield heappop(left)[1]
        finally:
            for each in useless:
                order.remove(*each)

    def _shown_until(
        self, deadline: int, part: int, row: Binding, useless: list[tuple[int, int, Binding]]
    ) -> Iterable[Shown]:
        """What the ways with a row of a part show that are possible until a deadline.

        `useless` gets the row if all are possible longer: none to come ends then, since a way that
        an arriving row makes shorter ends at a deadline of that row.
        """
        outlook, columns = self.waiting.outlook, self.waiting.inputs.parts[part].columns
        found, is_useless = dict[Shown, None](), True
        for way in outlook.ways(dict(zip(columns, row, strict=True))):
            limit = outlook.latest(way) if part in way.taken else None
            is_useless = is_useless and (limit is None or limit > deadline)
            if limit == deadline:
                found[self._shown(way.bound)] = None
        if is_useless:
            useless.append((deadline, part, row))
        return found

    def _ways_of(self, shown: Shown) -> Iterator[Way]:
        """The ways whose rows show these values and no others."""
        known = self._question.known(shown)
        for way in self.waiting.outlook.ways(known):
            if self._shown(way.bound) == shown and self.waiting.has_all(way, known):
                yield way

    def _least_ways(self, given: Iterable[Way]) -> Iterator[tuple[Way, int]]:
        """The possible ones of some ways, without those that ask for more and show the same."""
        outlook, inputs = self.waiting.outlook, self.waiting.inputs
        by_shown: dict[Shown, list[tuple[Way, int]]] = {}
        for way in given:
            limit = outlook.latest(way)
            if limit is not None:
                by_shown.setdefault(self._shown(way.bound), []).append((way, limit))
        for ways in by_shown.values():
            if len(ways) == 1:
                yield ways[0]
                continue
            systems = [inputs.system(way.bound, way.left) for way, _ in ways]
            for (way, limit), system in zip(ways, systems, strict=True):
                if not any(
                    set(other.left) < set(way.left) and are_implied(less, system)
                    for (other, _), less in zip(ways, systems, strict=True)
                ):
                    yield way, limit

    def _may_be_new(self, way: Way) -> bool:
        """Whether a way can give a row that does not exist yet; see `Outlook`."""
        shown = self._shown(way.bound)
        if None not in shown:
            return not self._index.has(shown)
        unknown = [c for c, v in zip(self._columns, shown, strict=True) if v is None]
        nothing = tuple(None for _ in shown)
        if not all(c.endswith(".time") for c in unknown) or not self._index.has(nothing):
            return True

        def is_there(times: tuple[int, ...]) -> bool:
            left = iter(times)
            return self._index.has(tuple(next(left) if v is None else v for v in shown))

        system = self.waiting.inputs.system(way.bound, way.left)
        return some_new(system, unknown, self.waiting.clock, is_there)

    def _needs(self, way: Way) -> Iterable[tuple[Wanted, ...]]:
        """What streams must bring: for each part that is left, one of its streams."""
        streams = self.waiting.open
        return product(
            *([each for each in self._wanted[part] if each.stream in streams[part]]
              for part in way.left)
        )  # fmt: skip

    def _shown(self, bound: Bound) -> Shown:
        return tuple(bound.get(column) for column in self._columns)

    # Never ----------------------------------------------------------------------------------------

    def never(self, ended: Sequence[EndedWay]) -> list[Change]:
        """The `never` changes for the rows that ended ways showed."""
        found: dict[Shown, list[int | None]] = {}
        judged: dict[Shown, bool] = {}
        for each in ended:
            shown = self._shown(each.way.bound)
            if shown not in judged:
                judged[shown] = shown not in self._left and not self._may_hold(shown)
            if judged[shown]:
                found.setdefault(shown, []).append(each.limit)
        self._left = set()
        columns = self.pattern.columns
        return [never_change(Row(columns, shown), limits) for shown, limits in found.items()]

    def _may_hold(self, shown: Shown) -> bool:
        """Whether a row that agrees with these values holds or may still come."""
        if self._index.has(shown):
            return True
        return self.waiting.outlook.may_come(self._question.known(shown))


Watch: TypeAlias = WaitingRows | JoinWatch
"""A join that is followed for its future."""

AnyProspects: TypeAlias = Prospects | JoinProspects
"""The possible rows of a view that one join makes."""
