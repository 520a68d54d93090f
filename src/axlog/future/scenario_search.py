"""Searches for one scenario, where there are too many to list.

A solver proposes scenarios that satisfy the clauses of a pattern (`scenario_clauses.py`). Other
conditions (times, comparisons, keys, the number of trees that a call may deliver, types) are
checked on each scenario that the solver proposes, by the rules for listed scenarios. If they fail,
the smallest set of choices that fails is excluded, and the solver goes on. So the answer is exact:
a scenario that can come about, or the proof that there is none. What one conflict teaches holds for
all later questions.

Truth and the status of a row take one scenario. Rows are listed one by one, each with the way that
stays open longest; a row that was found is excluded. (Paper 1, theorem 3; paper 2, theorem 2.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeVar

from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.capacity import fits, trees_left
from axlog.future.generalized_rows import NOTHING, Need, Values, add_need, project
from axlog.future.keys import KeyedNode, place_of
from axlog.future.sat import Solver
from axlog.future.scenario_clauses import ScenarioClauses, Target
from axlog.future.time_constraints import deadline, not_before
from axlog.future.typed_scenarios import TypedScenarios, typed_scenarios
from axlog.query.pattern import Pattern
from axlog.query.truth import Truth

MOST_WORK = 2_000_000
"""The most targets, of all scenarios that are found for one question: a second or two."""
MOST_TRIED = 5_000
"""Largest number of scenarios that one question tries."""
MOST_ROWS = 10_000
"""Largest number of rows to list."""
MOST_ALIKE = 5_000
"""Largest number of exclusions that follow from one."""

Pins = Mapping[str, str | int]
"""Values that columns must have."""


@dataclass(frozen=True, slots=True)
class Found:
    """A scenario that can come about: its targets, its values and its needs."""

    targets: tuple[Target, ...]
    columns: tuple[str, ...]
    values: Values
    need: Need

    @property
    def known(self) -> dict[str, str | int | None]:
        return dict(zip(self.columns, self.values, strict=True))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The values that columns must have, and the clock of the question."""

    pins: Pins
    clock: int | None


class ScenarioSearch(ScenarioClauses):
    """The scenarios of a pattern over a document as it is now, found one at a time."""

    def __init__(
        self,
        tree: Tree,
        pattern: Pattern,
        *,
        together: bool = False,
        solver: Solver | None = None,
    ) -> None:
        """Prepare the search; `solver`: the one to use, instead of the best that is installed."""
        super().__init__(tree, pattern, together=together, solver=solver)
        self._selectors: dict[object, int] = {}
        self._errors: list[UndecidedError] = []
        self.work = 0
        """The targets of all scenarios that were looked for so far."""
        self._likes: dict[object, int] = {}
        self._states: dict[tuple[str, str | int | None], int] = {}
        self._types: TypedScenarios | None = typed_scenarios(tree, pattern)
        self.present = self.new()
        """A literal: nothing is delivered."""
        for literal, target in self.targets.items():
            if target.stream is not None:
                self.add([-self.present, -literal])

    # Questions ------------------------------------------------------------------------------------

    def verdict(self, pins: Pins | None = None) -> Truth:
        """The truth of there being a row with these values."""
        if self.find(pins, [self.present]) is not None:
            return Truth.TRUE
        return Truth.NEVER if self.find(pins) is None else Truth.POSSIBLE

    def find(
        self, pins: Pins | None = None, assumptions: Sequence[int] = (), clock: int | None = None
    ) -> Found | None:
        """A scenario that can come about, with these values; None if there is none.

        `clock`: at this clock, which is later than the present one.
        """
        asked = _Asked(pins or {}, clock)
        assumed = [*assumptions, *self._selector(asked)]
        self._errors.clear()
        for _ in range(MOST_TRIED):
            self.work += len(self.targets)
            model = self.solver.solve(assumed)
            if model is None:
                if self._errors:
                    raise self._errors[0]
                return None
            chosen = tuple(self.targets[each] for each in sorted(model & self.targets.keys()))
            found = self._checked(chosen, asked)
            if found is not None:
                return found
        raise UndecidedError(
            "AX502",
            f"{MOST_TRIED:,} ways in which rows can appear were tried, and none is possible so far",
            advice="use a query with fewer branches, or with branches that share variables",
        )

    def _selector(self, asked: _Asked) -> list[int]:
        """A literal under which columns have these values, at that clock."""
        if not asked.pins and asked.clock is None:
            return []
        key = (frozenset(asked.pins.items()), asked.clock)
        if key not in self._selectors:
            selector = self._selectors[key] = self.new()
            for literal, target in self.targets.items():
                if any(_contradicts(target, *pin) for pin in asked.pins.items()):
                    self.add([-selector, -literal])
        return [self._selectors[key]]

    def _checked(self, chosen: tuple[Target, ...], asked: _Asked) -> Found | None:
        """The scenario of a choice if it can come about; otherwise exclude what prevents it."""
        failing = list(self._failing_streams(chosen, asked))
        if not failing:
            try:
                found = self._met(chosen, asked)
            except UndecidedError as error:
                self._errors.append(error)
                self._exclude_all(chosen, asked)
                return None
            if found is not None:
                return found
            self._exclude_all(self._smallest(chosen, asked), asked)
        for each in failing:
            self._exclude_alike(self._smallest(each, asked), asked)
        return None

    def _exclude_all(self, targets: Iterable[Target], asked: _Asked) -> None:
        """Exclude scenarios with all of these targets, for questions with these values."""
        self.add([*(-each.literal for each in targets), *(-s for s in self._selector(asked))])

    def _exclude_alike(self, targets: Sequence[Target], asked: _Asked) -> None:
        """Exclude some deliveries of one stream together, and so all others like them."""
        self._exclude_all(targets, asked)
        if asked.pins or asked.clock is not None or self._keyed or self._types is not None:
            return
        shapes = [self._shape(each) for each in targets]
        if None in shapes:
            return
        for others in self._alike.values():
            choices = [others.get(shape, ()) for shape in shapes]
            if prod(map(len, choices)) > MOST_ALIKE:
                return
            for chosen in product(*choices):
                if len({each.relation for each in chosen}) == len(chosen):
                    self._exclude_all(chosen, asked)

    @cached_property
    def _alike(self) -> dict[str, dict[object, list[Target]]]:
        """The deliveries of each stream by their shape."""
        found: dict[str, dict[object, list[Target]]] = {}
        for target in self.targets.values():
            shape = self._shape(target)
            if target.stream is not None and shape is not None:
                found.setdefault(target.stream, {}).setdefault(shape, []).append(target)
        return found

    def _shape(self, target: Target) -> object | None:
        """What decides which deliveries of a stream are possible together; None if more does."""
        if target.stream is None or target.stream in self.tree.deliveries:
            return None
        if any(each.tests for each in target.relation.walk()):
            return None
        tree, stream = self.tree, target.stream
        is_whole = self._together or not tree.may_bring_calls(stream)
        limits = (trees_left(tree, stream), self._mode(stream), is_whole)
        # values and conditions distinguish the ways through an `or`
        return target.relation.node, tuple(target.known.items()), target.need.values, limits

    def like(self, target: Target) -> int:
        """A literal that follows from each delivery of the same stream that may be the same."""
        shape = self._shape(target)
        if shape is None or target.stream is None:
            return target.literal
        same = self._alike[target.stream][shape]
        if len(same) == 1:
            return target.literal
        key = (target.stream, shape)
        if key not in self._likes:
            found = self._likes[key] = self.new()
            for each in same:
                self.add([-each.literal, found])
        return self._likes[key]

    def _failing_streams(
        self, chosen: tuple[Target, ...], asked: _Asked
    ) -> Iterator[tuple[Target, ...]]:
        """The deliveries of single streams that are not possible."""
        by_stream: dict[str, list[Target]] = {}
        for each in chosen:
            if each.stream is not None:
                by_stream.setdefault(each.stream, []).append(each)
        for mine in by_stream.values():
            if 1 < len(mine) < len(chosen) and not self._may_be_met(mine, asked):
                yield tuple(mine)

    def _smallest(self, chosen: Sequence[Target], asked: _Asked) -> list[Target]:
        """A smallest part of a choice that is not possible."""
        return smallest(chosen, lambda some: not self._may_be_met(some, asked))

    # Rows -----------------------------------------------------------------------------------------

    def possible(self, outputs: Sequence[str]) -> Iterator[tuple[Found, int | None]]:
        """The rows that can still appear, by these columns: each once, in a way that lasts longest.

        Each comes with its deadline, the latest clock at which it can appear.
        """
        most = self.work + MOST_WORK // 4  # what excludes the listed rows slows the solver
        for _ in range(MOST_ROWS):
            found = self.find(None, [self._unlisted])
            if found is None:
                return
            if self.work > most:
                raise UndecidedError(
                    "AX502",
                    "there are too many rows that can appear to list them all",
                    advice="ask for the status of a row, or use a query with fewer branches",
                )
            row = {column: found.known[column] for column in outputs}
            pins = {column: value for column, value in row.items() if value is not None}
            is_there = len(pins) == len(row) and self.find(pins, [self.present]) is not None
            if not is_there and found.need.brought:
                yield self._lasting(found, row, pins)
            self._exclude_row(found, outputs)
        raise UndecidedError("AX502", f"there are more than {MOST_ROWS:,} rows that can appear")

    @cached_property
    def _unlisted(self) -> int:
        """A literal under which the rows that were listed are excluded."""
        return self.new()

    def _lasting(
        self, found: Found, row: Mapping[str, str | int | None], pins: Pins
    ) -> tuple[Found, int | None]:
        """The way of a row that stays open longest, with its deadline."""
        until = deadline(found.need.times, found.need.unknown_times)
        unknown = [-self.state(column, None) for column, value in row.items() if value is None]
        while until is not None:
            later = self.find(pins, unknown, until + 1)
            if later is None or not later.need.brought:
                break
            found = later
            until = deadline(found.need.times, found.need.unknown_times)
        return found, until

    def _exclude_row(self, found: Found, outputs: Sequence[str]) -> None:
        """Exclude the scenarios whose targets give the columns the same values, or none."""
        clause = [-self._unlisted]
        for column in outputs:
            given = {each.known.get(column) for each in found.targets} - {None}
            clause += [-self.state(column, value) for value in given]
            if not given:
                clause.append(self.state(column, None))
        self.add(clause)

    def state(self, column: str, value: str | int | None) -> int:
        """A literal that follows from a column's value; with None, from its having one."""
        key = (column, value)
        if key not in self._states:
            state = self._states[key] = self.new()
            literals = self._with(column, value)
            for literal in literals:
                self.add([-literal, state])
            self.add([-state, *literals])
        return self._states[key]

    def _with(self, column: str, value: str | int | None) -> list[int]:
        """The targets that give a column a value; with None, any value."""
        return [
            literal
            for literal, target in self.targets.items()
            if (known := target.known.get(column)) is not None and value in (None, known)
        ]

    # Conditions -----------------------------------------------------------------------------------

    def _may_be_met(self, chosen: Sequence[Target], asked: _Asked) -> bool:
        try:
            return self._met(chosen, asked, is_part=True) is not None
        except UndecidedError:
            return True

    def _met(
        self, chosen: Sequence[Target], asked: _Asked, *, is_part: bool = False
    ) -> Found | None:
        """The scenario of some targets, if its conditions can be met.

        `is_part`: the other targets are open, and so are the conditions that need them.
        """
        known: dict[str, str | int | None] = dict(asked.pins)
        needs: list[Need] = []
        for target in chosen:
            for column, value in target.known.items():
                if not _unify(known, column, value):
                    return None
            needs.append(target.need)
        need = _united(needs, self._keyed_nodes(chosen))
        if asked.clock is not None:
            later = [not_before(name, asked.clock) for name in need.unknown_times]
            need = replace(need, times=need.times.union(later))
        matched = [t.relation for t in chosen if t.stream is None]
        tests = [test for relation in matched for test in relation.tests]
        if is_part:
            tests = [
                test for relation in self.program.relations for test in relation.tests
                if relation in self._matched and all(c in known for c in test.columns)
            ]  # fmt: skip
        for test in tests:
            for column in test.columns:
                known.setdefault(column, None)
        if not is_part:
            for column in self.columns:
                known.setdefault(column, None)
        columns = tuple(known)
        for values, ways in project(
            {tuple(known.values()): [need]}, list(columns), tests, columns, add_need
        ).items():
            for way in ways:
                if self._is_possible(columns, values, way):
                    return Found(tuple(chosen), columns, values, way)
        return None

    def _keyed_nodes(self, chosen: Sequence[Target]) -> frozenset[KeyedNode]:
        """The present nodes of keys below which something is delivered."""
        if not self._keyed:
            return frozenset()
        calls = self.tree.calls()
        above = {n for t in chosen if t.stream for n in self.tree.ancestors(calls[t.stream])}
        return frozenset(
            KeyedNode(column, key, target.relation, target.node)
            for target in chosen
            if target.node in above
            for column, key in self._keyed.get(target.relation, ())
            if key.path == place_of(self.tree, target.node)
        )

    def _is_possible(self, columns: tuple[str, ...], values: Values, need: Need) -> bool:
        return (
            not self.is_repeated(columns, values, need)
            and fits(self.tree, columns, values, need, self._together)
            and (self._types is None or self._types.allow(columns, values, need))
        )


T = TypeVar("T")


def smallest(items: Sequence[T], suffices: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of some items that suffices, and of which no part does (QuickXplain).

    More items than suffice must suffice, too, and all of them must.
    """

    def needed(given: list[T], is_new: bool, rest: list[T]) -> list[T]:
        if is_new and suffices(given):
            return []
        if len(rest) == 1:
            return rest
        middle = len(rest) // 2
        left, right = rest[:middle], rest[middle:]
        second = needed([*given, *left], True, right)
        return needed([*given, *second], bool(second), left) + second

    return needed([], True, list(items)) if items else []


def _contradicts(target: Target, column: str, value: str | int) -> bool:
    """Whether a target gives a column another value; a present node is no future one."""
    known = target.known.get(column, value)
    return known != value and (known is not None or column.endswith(".node"))


def _unify(known: dict[str, str | int | None], column: str, value: str | int | None) -> bool:
    """Give a column a value; whether it may have it."""
    if column not in known:
        known[column] = value
        return True
    before = known[column]
    if column.endswith(".node"):
        if before is None and value is None:
            raise UndecidedError("AX503", "an `or` that joins with a future node above it")
        return before == value
    if before is None:
        known[column] = value
    return value is None or before is None or before == value


def _united(needs: Sequence[Need], new: frozenset[KeyedNode]) -> Need:
    values = NOTHING.values
    for each in needs:
        values = values.joined(each.values)
    return Need(
        frozenset().union(*(each.brought for each in needs)),
        frozenset().union(*(each.times for each in needs)),
        frozenset().union(*(each.unknown_times for each in needs)),
        values,
        new.union(*(each.new for each in needs)),
        frozenset().union(*(each.kept for each in needs)),
    )
