"""Searches for one scenario, where there are too many to list.

A scenario chooses a target for each pattern node: a present node, or a call that delivers it. These
choices are clauses, which a solver (`sat.py`) satisfies:

    a pattern node at a document node needs a target for each of its branches, below that node
    a pattern node has one target, and has one only if its parent is matched in the document
    two targets that fix different values of a variable exclude each other

Other conditions (times, comparisons, keys, the number of trees that a call may deliver, types) are
checked on each scenario that the solver proposes, by the rules for listed scenarios. If they fail,
the smallest set of choices that fails is excluded, and the solver goes on. So the answer is exact:
a scenario that can come about, or the proof that there is none. What one conflict teaches holds for
all later questions.

Truth and the status of a row take one scenario. Rows are listed one by one, each with the way that
stays open longest; a row that was found is excluded. (Paper 1, theorem 3; paper 2, theorem 2.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, count, product
from math import prod

from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, Tree
from axlog.errors import UndecidedError
from axlog.future.capacity import fits, trees_left
from axlog.future.generalized_rows import NOTHING, Need, Rows, Values, add_need, project
from axlog.future.keys import KeyedNode, place_of
from axlog.future.sat import Solver, solver
from axlog.future.scenarios import CollectedRows, Scenarios, check_clear, own_columns
from axlog.future.search_budget import spend
from axlog.future.time_constraints import deadline, not_before
from axlog.future.typed_scenarios import TypedScenarios, typed_scenarios
from axlog.query.compile import Edge, Relation
from axlog.query.pattern import Axis, Pattern
from axlog.query.truth import Truth

MOST_ROWS = 10_000
"""Largest number of rows to list."""
MOST_ALIKE = 5_000
"""Largest number of exclusions that follow from one."""

Pins = Mapping[str, str | int]
"""Values that columns must have."""


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A choice for one pattern node: a present node, or one row that a call may deliver for it."""

    literal: int
    relation: Relation
    node: int | None
    stream: str | None
    known: Mapping[str, str | int | None]
    need: Need


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


@dataclass(slots=True)
class _Places:
    """The literals of the targets at the children of a node, and below them."""

    children: dict[Relation, list[int]] = field(default_factory=dict)
    deeper: dict[Relation, list[int]] = field(default_factory=dict)


class ScenarioSearch(Scenarios):
    """The scenarios of a pattern over a document as it is now, found one at a time."""

    _needs_all = True

    def __init__(self, tree: Tree, pattern: Pattern, *, together: bool = False) -> None:
        self.targets: dict[int, Target] = {}
        self.of: dict[Relation, list[int]] = {}
        """The literals of the targets of each pattern node."""
        self._solver: Solver = solver()
        self._numbers = count(1)
        self._places: dict[int, _Places] = {}
        self._calls: dict[tuple[Relation, str], int | None] = {}
        self._matched: dict[Relation, int] = {}
        self._selectors: dict[object, int] = {}
        self._errors: list[UndecidedError] = []
        self._states: dict[tuple[str, str | int | None], int] = {}
        self._columns_known: dict[str, list[tuple[int, str | int]]] = {}
        super().__init__(tree, pattern, together=together)
        self._types: TypedScenarios | None = typed_scenarios(tree, pattern)
        self.present = self.new()
        """A literal: nothing is delivered."""
        for literal, target in self.targets.items():
            if target.stream is not None:
                self.add([-self.present, -literal])

    # Clauses --------------------------------------------------------------------------------------

    def _evaluate(self) -> Rows:
        below = self._collect(self.tree.children(DOCUMENT_NODE))
        root = self._match(self.program.root, DOCUMENT_NODE, {}, below, {})
        self._solver.add([] if root is None else [root])
        self._add_structure()
        return {}

    def new(self) -> int:
        """A new literal."""
        return next(self._numbers)

    def add(self, clause: Iterable[int]) -> None:
        """Add a clause."""
        self._solver.add(list(clause))

    def _visit_node(self, node: int, above: CollectedRows, below: CollectedRows) -> None:
        tree = self.tree
        here: dict[Relation, int] = {}
        for relation in self._interpreter.candidates(tree, node):
            own = self._own(node, relation, below)
            if own is not None:
                known = dict(zip(own_columns(relation), own, strict=True))
                literal = self._match(relation, node, known, below, here)
                if literal is not None:
                    here[relation] = literal
        mine = self._places.pop(node, None) or _Places()
        up = self._places.setdefault(tree.parent(node), _Places())
        for relation, literal in here.items():
            up.children.setdefault(relation, []).append(literal)
        if tree.kind_column[node] == ATTRIBUTE:
            return
        for relation in self._interpreter.descending:
            reached = self._deeper(relation, mine, below)
            if relation in here:
                reached = [here[relation], *reached]
            if reached:
                up.deeper.setdefault(relation, []).append(self._some(reached))
        self._pass_up_calls(above, below)

    def _some(self, literals: list[int]) -> int:
        """A literal that holds only if one of some does."""
        if len(literals) == 1:
            return literals[0]
        found = self.new()
        self.add([-found, *literals])
        return found

    def _deeper(self, relation: Relation, mine: _Places, below: CollectedRows) -> list[int]:
        calls = (self._delivery(relation, stream) for stream in below.calls)
        return [*mine.deeper.get(relation, ()), *(each for each in calls if each is not None)]

    def _match(
        self,
        relation: Relation,
        node: int,
        known: Mapping[str, str | int],
        below: CollectedRows,
        here: Mapping[Relation, int],
    ) -> int | None:
        """The literal of a relation at a document node; None if it cannot hold there."""
        if relation.absences:
            raise UndecidedError("AX503", "scenarios of a pattern with `not` are not enumerated")
        mine = self._places.get(node) or _Places()
        needed: list[list[int]] = []
        for edge in relation.edges:
            check_clear(edge, below)
            needed.append(self._reached(edge, mine, below, here))
        for choice in relation.choices:
            ways = [self._match(a, node, {}, below, here) for a in choice.alternatives]
            needed.append([way for way in ways if way is not None])
        spend(1 + len(needed))
        if not all(needed):
            return None
        literal = self._target(relation, node, None, known, self._present_need(node))
        for literals in needed:
            self.add([-literal, *literals])
        return literal

    def _reached(
        self, edge: Edge, mine: _Places, below: CollectedRows, here: Mapping[Relation, int]
    ) -> list[int]:
        relation, axis = edge.relation, edge.axis
        own = [here[relation]] if relation in here else []
        if axis is Axis.SELF:
            return own
        if axis in (Axis.CHILD, Axis.ATTRIBUTE):
            found = list(mine.children.get(relation, ()))
            calls = below.calls if axis is Axis.CHILD else ()
            brought = (self._delivery(relation, stream) for stream in calls)
            return [*found, *(each for each in brought if each is not None)]
        found = self._deeper(relation, mine, below)
        return [*own, *found] if axis is Axis.DESCENDANT_OR_SELF else found

    def _present_need(self, node: int) -> Need:
        if not self._deletable:
            return NOTHING
        above = (node, *self.tree.ancestors(node))
        return replace(NOTHING, kept=frozenset(n for n in above if n in self._deletable))

    def _delivery(self, relation: Relation, stream: str) -> int | None:
        """The literal of a delivery of a call; None if no message holds such data."""
        key = (relation, stream)
        if key not in self._calls:
            axis = self._axes[relation]
            rows = list(self._brought_by(stream, relation, axis))
            columns = self._shown(relation)
            ways = [
                self._target(relation, None, stream, dict(zip(columns, values, strict=True)), need)
                for values, need in rows
            ]
            self._calls[key] = self._some(ways) if ways else None
        return self._calls[key]

    @cached_property
    def _axes(self) -> dict[Relation, Axis]:
        return {e.relation: e.axis for relation in self.program.relations for e in relation.edges}

    def _target(
        self,
        relation: Relation,
        node: int | None,
        stream: str | None,
        known: Mapping[str, str | int | None],
        need: Need,
    ) -> int:
        literal = self.new()
        self.targets[literal] = Target(literal, relation, node, stream, known, need)
        self.of.setdefault(relation, []).append(literal)
        if stream is None:
            for column, value in known.items():
                assert value is not None
                self._columns_known.setdefault(column, []).append((literal, value))
        return literal

    def _add_structure(self) -> None:
        """One target for a pattern node, and only below a matched one; one value for a column."""
        for relation, literals in self.of.items():
            self._exclude({literal: number for number, literal in enumerate(literals)})
            present = [each for each in literals if self.targets[each].node is not None]
            matched = self._matched[relation] = self.new()
            self.add([-matched, *present])
            for literal in present:
                self.add([-literal, matched])
        for relation in self.program.relations:
            above = self._matched.get(relation)
            for below in relation.below():
                for literal in self.of.get(below, ()):
                    self.add([-literal] if above is None else [-literal, above])
            for choice in relation.choices:
                ways = [self._matched[a] for a in choice.alternatives if a in self._matched]
                for one, other in combinations(ways, 2):
                    self.add([-one, -other])
        for pairs in self._columns_known.values():
            numbers = {value: number for number, value in enumerate(dict(pairs_of(pairs)))}
            self._exclude({literal: numbers[value] for literal, value in pairs})

    def _exclude(self, numbers: Mapping[int, int]) -> None:
        """Literals with different numbers exclude each other: each fixes the bits of its number."""
        size = max(numbers.values(), default=0).bit_length()
        bits = [self.new() for _ in range(size)]
        for literal, number in numbers.items():
            for at, bit in enumerate(bits):
                self.add([-literal, bit if number >> at & 1 else -bit])

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
        while True:
            model = self._solver.solve(assumed)
            if model is None:
                if self._errors:
                    raise self._errors[0]
                return None
            chosen = tuple(self.targets[each] for each in sorted(model & self.targets.keys()))
            found = self._checked(chosen, asked)
            if found is not None:
                return found

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
        if target.stream is None or any(each.tests for each in target.relation.walk()):
            return None
        tree, stream = self.tree, target.stream
        is_whole = self._together or not tree.may_bring_calls(stream)
        limits = (trees_left(tree, stream), self._mode(stream), is_whole)
        # values and conditions distinguish the ways through an `or`
        return target.relation.node, tuple(target.known.items()), target.need.values, limits

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
        """A smallest part of a choice that is not possible (QuickXplain)."""
        return self._explained([], False, list(chosen), asked)

    def _explained(
        self, given: list[Target], is_new: bool, rest: list[Target], asked: _Asked
    ) -> list[Target]:
        if is_new and not self._may_be_met(given, asked):
            return []
        if len(rest) == 1:
            return rest
        middle = len(rest) // 2
        left, right = rest[:middle], rest[middle:]
        second = self._explained([*given, *left], True, right, asked)
        first = self._explained([*given, *second], bool(second), left, asked)
        return first + second

    # Rows -----------------------------------------------------------------------------------------

    def possible(self, outputs: Sequence[str]) -> Iterator[tuple[Found, int | None]]:
        """The rows that can still appear, by these columns: each once, in a way that lasts longest.

        Each comes with its deadline, the latest clock at which it can appear.
        """
        for _ in range(MOST_ROWS):
            found = self.find(None, [self._unlisted])
            if found is None:
                return
            row = {column: found.known[column] for column in outputs}
            pins = {column: value for column, value in row.items() if value is not None}
            is_there = len(pins) == len(row) and self.find(pins, [self.present]) is not None
            if not is_there and found.need.brought:
                yield self._lasting(found, row, pins)
            if not self._exclude_row(row):
                self.add([-self._unlisted, *(-each.literal for each in found.targets)])
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
        unknown = [-self._state(column, None) for column, value in row.items() if value is None]
        while until is not None:
            later = self.find(pins, unknown, until + 1)
            if later is None or not later.need.brought:
                break
            found = later
            until = deadline(found.need.times, found.need.unknown_times)
        return found, until

    def _exclude_row(self, row: Mapping[str, str | int | None]) -> bool:
        """Exclude a row; whether the values of its columns are those of targets."""
        clause = [-self._unlisted]
        for column, value in row.items():
            if value is not None and not self._with(column, value):
                return False
            state = self._state(column, value)
            clause.append(state if value is None else -state)
        self.add(clause)
        return True

    def _state(self, column: str, value: str | int | None) -> int:
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


def pairs_of(pairs: Iterable[tuple[int, str | int]]) -> Iterator[tuple[str | int, int]]:
    """Pairs the other way round."""
    return ((value, literal) for literal, value in pairs)


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
