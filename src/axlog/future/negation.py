"""Possible rows of a query with `not`, each decided exactly.

Every row of the query is also a row of the query without its `not`s, so the scenarios of that query
cover all possible rows. For each of them, `profiles.py` decides whether the row can appear, with
the values of the row put into the pattern (`grounding.py`). Tied values that the row does not show
are tried: those that the document and the pattern have, and one that neither has.

A scenario is listed if its row can appear by data from its own streams alone, with the tied values
of the scenario, shown or not: another way to the same row may be blocked. A row that also needs
other streams (for a `not` inside a `not`) is listed with the needs of its scenario, unless another
listed row covers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice

from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.evaluate.answers import answers, holds
from axlog.future.generalized_rows import Need, Values
from axlog.future.grounding import Given, Ties, constraints_of, ground, loosened, ties_of
from axlog.future.profiles import Events, Profiles, check_covered, times_of, wanted_at_calls
from axlog.future.scenarios import Scenarios, may_bring
from axlog.future.search_budget import bounded
from axlog.future.tied_values import Candidates
from axlog.future.time_constraints import deadline
from axlog.future.typed_absence import carried_out, is_among, valid_messages
from axlog.query.compile import compile_pattern
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    AnyNode,
    Axis,
    Branch,
    Kind,
    Not,
    Or,
    Output,
    Pattern,
    PatternNode,
    TimeConstraint,
)
from axlog.query.truth import Truth

_DOCUMENT = PatternNode(Axis.SELF, AnyNode())
LIMIT = 4_000_000
"""Largest number of node profiles to compute for all rows together."""
MOST_EXAMPLES = 20
"""Largest number of futures of one row to carry out under types."""

Pins = Mapping[str, str | int]
"""The known values of a row, by column of the program."""


def without_not(pattern: Pattern) -> Pattern:
    """The pattern with every `not` assumed to hold."""
    whole = normalise(pattern)
    branches = tuple(_positive(whole.branches)) or (
        _DOCUMENT,
    )  # `match not(/a)` has no other branch
    return replace(whole, branches=branches)


def _positive(branches: Iterable[Branch]) -> Iterator[Branch]:
    for branch in branches:
        match branch:
            case PatternNode():
                yield replace(branch, branches=tuple(_positive(branch.branches)))
            case Or(alternatives=alternatives):
                ways = [tuple(_positive(each)) for each in alternatives]
                if all(ways):  # else one alternative has no conditions
                    yield Or(tuple(ways))
            case Not(branches=(Not(branches=inside, where=()),), where=()):
                yield from _positive(inside)
            case Not():
                continue
            case _:
                yield branch


class Negation:
    """A pattern with `not` over a document: which rows exist, and which can appear."""

    def __init__(
        self, tree: Tree, pattern: Pattern, excludes: Callable[[Pins], bool] | None = None
    ) -> None:
        """`excludes`: whether the query without its `not`s can never have such a row."""
        self.tree = tree
        self.pattern = pattern
        self.excludes = excludes
        self._spent = 0
        self._known: dict[tuple[object, ...], Events | None] = {}
        program = compile_pattern(pattern)
        if program.refusal is not None:
            raise UndecidedError("AX503", f"the analyses do not cover the query: {program.refusal}")
        self._columns = program.root.columns

    @cached_property
    def _is_over(self) -> bool:
        """Whether nothing can change the rows: no call is open, or none that the query can see."""
        tree = self.tree
        calls = [tree.call(node) for node in tree.calls().values()]
        if not any(may_bring(tree, call) or call.deletes != "no" for call in calls):
            return True
        shows_nodes = any(o.kind in (Kind.VAL, Kind.CONT) for o in self.pattern.outputs)
        if shows_nodes or any(call.deletes != "no" for call in calls):
            return False
        try:
            _ = self._ties
        except UndecidedError as error:
            if error.code == "AX501":  # the only question that is left to ask
                return self._is_out_of_sight({c.stream for c in calls if may_bring(tree, c)})
        return False

    def _is_out_of_sight(self, streams: set[str]) -> bool:
        """Whether nothing in the query can match data of these streams."""
        try:
            return streams.isdisjoint(wanted_at_calls(self.tree, loosened(self.pattern)))
        except UndecidedError:
            return False

    @cached_property
    def _ties(self) -> Ties:
        return ties_of(self.pattern)

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self.tree, self.pattern)

    @property
    def truth(self) -> Truth:
        """Whether some row exists, can appear, or can never appear."""
        if holds(self.tree, replace(self.pattern, outputs=())):
            return Truth.TRUE
        return Truth.POSSIBLE if self.may_come({}) else Truth.NEVER

    def scenarios(self, *, together: bool) -> Scenarios:
        """Every scenario of the pattern without `not`; dominating ones may be ruled out later.

        They have the tied values that rows do not show, too.
        """
        return Scenarios(self.tree, without_not(self._whole), together=together, prune="none")

    @cached_property
    def _whole(self) -> Pattern:
        """The pattern with all tied values as outputs."""
        shown = {o.of for o in self.pattern.outputs if o.kind is Kind.VARIABLE}
        hidden = [Output(Kind.VARIABLE, name) for name in self._tied if name not in shown]
        return replace(self.pattern, outputs=(*self.pattern.outputs, *hidden))

    @cached_property
    def _tied(self) -> tuple[str, ...]:
        """The variables that tie places; none if the query is not decided."""
        try:
            return self._ties.variables
        except UndecidedError:
            return ()

    # Rows -----------------------------------------------------------------------------------------

    @cached_property
    def _present(self) -> set[Values]:
        return set(answers(self.tree, self._whole))

    @cached_property
    def _present_columns(self) -> tuple[str, ...]:
        return compile_pattern(self._whole).root.columns

    def is_there(self, pins: Pins) -> bool:
        """Whether a row with these values exists now."""
        return self._has_row(self._present, pins)

    def _has_row(self, rows: Iterable[Values], pins: Pins) -> bool:
        at = [(self._present_columns.index(column), value) for column, value in pins.items()]
        return any(all(row[i] == value for i, value in at) for row in rows)

    def may_come(self, pins: Pins, among: frozenset[str] | None = None) -> bool:
        """Whether a row with these values exists or can appear, by data from `among` if given."""
        return self.future(pins, among) is not None

    def future(
        self, pins: Pins, among: frozenset[str] | None = None, clock: int | None = None
    ) -> Events | None:
        """Events after which a row with these values exists; None if nothing can bring it.

        `clock`: the events are at or after this time.
        """
        if self._is_over:
            return () if self.is_there(pins) else None
        key = (frozenset(pins.items()), among, clock)
        if key not in self._known:
            try:
                with bounded(len(self.tree)):
                    find = self._future if self.tree.types is None else self._valid_future
                    self._known[key] = find(pins, among, clock)
            except UndecidedError:
                if not self._is_excluded(pins):
                    raise
                self._known[key] = None
        return self._known[key]

    def _future(self, pins: Pins, among: frozenset[str] | None, clock: int | None) -> Events | None:
        return next((events for _, events in self._futures(pins, among, clock)), None)

    def _valid_future(
        self, pins: Pins, among: frozenset[str] | None, clock: int | None
    ) -> Events | None:
        """The same under types; AX503 if no example shows it (`typed_absence.py`)."""
        is_some = False
        time = self.tree.clock if clock is None else clock
        positive = without_not(self.pattern)
        for given, events in islice(self._futures(pins, among, clock), MOST_EXAMPLES):
            is_some = True
            if carried_out(self.tree, events) is not None:
                return events
            found = valid_messages(self.tree, positive, given.strings, time)
            if found is not None and is_among(found, among):
                later = carried_out(self.tree, found)
                if later is not None and self._has_row(answers(later, self._whole), pins):
                    return found
        if not is_some:
            return None
        raise UndecidedError(
            "AX503", "whether valid messages bring a row of this query with `not` is not decided"
        )

    def _is_excluded(self, pins: Pins) -> bool:
        """Whether the query without its `not`s can have no such row either."""
        if self.excludes is None:
            return False
        try:
            return self.excludes(pins)
        except UndecidedError:
            return False

    def end(self, pins: Pins) -> Events | None:
        """Events after which no row with these values exists; None if nothing can end them.

        The row must give all tied values: others would be a join inside a `not`.
        """
        given = Given.of(pins)
        ties = self._ties
        if set(ties.variables) - set(given.strings) or ties.open_times(given.times):
            raise UndecidedError("AX503", "the row does not show all values that tie its query")
        check_covered(self.tree, self.pattern)
        if self.tree.types is not None:
            raise UndecidedError("AX503", "what ends a row is not decided under types")
        grounded = ground(self.pattern, given)
        if grounded is None:
            return ()
        absent = Pattern((Not(grounded.pattern.branches),))
        with bounded(len(self.tree)):
            return Profiles(self.tree, replace(grounded, pattern=absent)).future()

    def _futures(
        self, pins: Pins, among: frozenset[str] | None, clock: int | None
    ) -> Iterator[tuple[Given, Events]]:
        """Events after which a row exists, with the values that they give to ties."""
        _ = self._ties  # undecidable for every document
        check_covered(self.tree, self.pattern)
        for given in self._given(pins, clock):
            self._spent += len(self.tree)
            if self._spent > LIMIT:
                raise UndecidedError("AX502", "a query with `not` has too many rows to check")
            grounded = ground(self.pattern, given)
            if grounded is not None:
                found = Profiles(self.tree, grounded, among, clock).future()
                if found is not None:
                    yield given, found

    def _given(self, pins: Pins, clock: int | None) -> Iterator[Given]:
        """Every choice of tied values that a row leaves open."""
        tree, ties = self.tree, self._ties
        given = Given.of(pins)
        times = {n: tree.time(node) for n, node in given.nodes.items() if n not in given.times}
        given = given.with_values({}, times)
        variables = [name for name in ties.variables if name not in given.strings]
        for strings in self._candidates.strings(variables):
            known = given.with_values(strings, {})
            names = ties.open_times(known.times)
            for chosen in self._candidates.times(names, known, clock):
                yield known.with_values({}, chosen)

    def deadline(self, pins: Pins, among: frozenset[str] | None = None) -> int | None:
        """The latest clock at which a row can still appear; None: it has no limit, or cannot."""
        if not self._has_deadlines:
            return None
        turns = sorted(self._turns(pins))
        if self.future(pins, among, turns[-1] + 1) is not None:
            return None
        low, high = 0, len(turns) - 1  # possible at the first of these times, which is the clock
        while low < high:
            middle = (low + high + 1) // 2
            if self.future(pins, among, turns[middle]) is not None:
                low = middle
            else:
                high = middle - 1
        return turns[low]

    @cached_property
    def _has_deadlines(self) -> bool:
        constraints = constraints_of(normalise(self.pattern))
        return any(isinstance(each, TimeConstraint) for each in constraints)

    def _turns(self, pins: Pins) -> set[int]:
        """The clock, and the later times around which the verdict on a row may change."""
        clock = self.tree.clock
        found = {clock}
        for given in self._given(pins, None):
            grounded = ground(self.pattern, given)
            if grounded is not None:
                found.update(times_of(grounded, clock))
        return found

    # Scenarios ------------------------------------------------------------------------------------

    def open_scenarios(
        self, scenarios: Scenarios, met: Iterable[tuple[Values, Need]]
    ) -> list[tuple[Values, Need]]:
        """The possible scenarios that no other dominates.

        Where rows have no deadlines, one scenario stands for those that show and need the same.
        """
        at = [scenarios.columns.index(column) for column in self._columns]
        by_row: dict[Values, dict[object, list[tuple[Values, Need]]]] = {}
        for values, need in met:
            same = by_row.setdefault(tuple(values[i] for i in at), {})
            same.setdefault(need.brought, []).append((values, need))
        found: list[tuple[Values, Need]] = []
        uncertain: list[tuple[Values, Need]] = []
        for row, by_need in by_row.items():
            shown = pins_of(self._columns, row)
            if not self.may_come(shown):
                continue
            own = [each for same in by_need.values() for each in self._own(scenarios, same)]
            if not own:
                uncertain.append(next(iter(by_need.values()))[0])
                continue
            found += [
                one
                for one in own
                if not any(self._dominates(scenarios, other, one) for other in own)
                and (one[1].brought or not self.is_there(shown))
            ]
        # a more general row covers it: its existing parts may contribute nothing
        general = [tuple(values[i] for i in at) for values, _ in found]
        found += [
            (values, need)
            for values, need in uncertain
            if not any(_covers(each, tuple(values[i] for i in at)) for each in general)
        ]
        return found

    def _own(
        self, scenarios: Scenarios, same: Iterable[tuple[Values, Need]]
    ) -> list[tuple[Values, Need]]:
        """The scenarios that data of their own streams can bring; one if none has a deadline."""
        found: list[tuple[Values, Need]] = []
        for values, need in same:
            if self.may_come(pins_of(scenarios.columns, values), _streams(need)):
                found.append((values, need))
                if not self._has_deadlines:
                    break
        return found

    def _dominates(
        self, scenarios: Scenarios, one: tuple[Values, Need], than: tuple[Values, Need]
    ) -> bool:
        """Whether one scenario of a row needs less than another, and can come about as long."""
        if not one[1].brought < than[1].brought:
            return False
        late, until = (
            self.lasts(pins_of(scenarios.columns, values), need, _streams(need))
            for values, need in (one, than)
        )
        return late is None or (until is not None and until <= late)

    def lasts(self, pins: Pins, need: Need, among: frozenset[str] | None) -> int | None:
        """The latest clock for a row by some streams, and for the data that a scenario needs."""
        limits = (self.deadline(pins, among), deadline(need.times, need.unknown_times))
        return min((limit for limit in limits if limit is not None), default=None)


def _streams(need: Need) -> frozenset[str]:
    return frozenset(stream for _, stream in need.brought)


def _covers(general: Values, values: Values) -> bool:
    return all(g is None or g == v for g, v in zip(general, values, strict=True))


def pins_of(columns: Iterable[str], values: Values) -> dict[str, str | int]:
    """The known values of a row, by column."""
    return {c: v for c, v in zip(columns, values, strict=True) if v is not None}
