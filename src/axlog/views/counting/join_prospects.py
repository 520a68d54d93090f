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
from itertools import product
from typing import Any, Protocol, TypeAlias

from axlog.future.generalized_rows import are_implied
from axlog.future.join_inputs import FAR
from axlog.future.search_budget import bounded
from axlog.future.time_constraints import some_new
from axlog.future.truth import Possible, Wanted, possible_rows
from axlog.query.pattern import Pattern
from axlog.query.truth import Truth
from axlog.views.change import Change, Row
from axlog.views.counting.join_outlook import Bound, Way
from axlog.views.counting.join_watch import EndedWay, JoinWatch
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.possible_pages import page_of
from axlog.views.counting.prospects import Prospects, never_change, without_dominated
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
        shown = set(self._columns)
        for part, facts in enumerate(waiting.inputs.parts):
            at = tuple(i for i, c in enumerate(facts.columns) if c in shown and i != facts.time)
            if at:
                waiting.live[part].index(at)  # before joins are generated
        waiting.outlook.forget()

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

    def possible(self) -> list[Possible]:
        """The possible rows, as `Outlook.possible` lists them."""
        ways: list[tuple[Shown, tuple[Wanted, ...], int | None]] = []
        with bounded(sum(table.least_size for table in self.waiting.live)):
            for way, limit in self._least_ways():
                if self._may_be_new(way):
                    shown, until = self._shown(way.bound), None if limit == FAR else limit
                    ways += [(shown, needs, until) for needs in self._needs(way)]
        listed = possible_rows(self.pattern.columns, ways)
        return without_dominated(listed, self.waiting.has_absences)

    def page(self, limit: int | None, after: Possible | None) -> list[Possible]:
        """A page of the possible rows; costs all of them."""
        return page_of(self.possible(), limit, after)

    def _least_ways(self) -> Iterator[tuple[Way, int]]:
        """The possible ways, without those that ask for more and show the same values."""
        outlook, inputs = self.waiting.outlook, self.waiting.inputs
        by_shown: dict[Shown, list[tuple[Way, int]]] = {}
        for way in outlook.ways({}):
            limit = outlook.latest(way)
            if limit is not None:
                by_shown.setdefault(self._shown(way.bound), []).append((way, limit))
        for ways in by_shown.values():
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
        parts, streams = self.waiting.inputs.parts, self.waiting.open
        return product(
            *(
                [
                    Wanted(feeder.stream, str(feeder.relation.node))
                    for feeder in parts[part].feeders
                    if feeder.stream in streams[part]
                ]
                for part in way.left
            )
        )

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
