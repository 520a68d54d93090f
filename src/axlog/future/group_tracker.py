"""The groups of a view that can still come, kept as data arrives.

    never after an update  =  the groups that were possible before it, and of which afterwards none
                              is there or possible

Scenarios of the pattern with all nodes that it binds are maintained (`scenario_tracker.py`), and so
are the sums of each group (`group_members.py`). An update is then judged by the groups that it
concerns:

    a member arrives        its group. Not if the conditions are lower bounds of counts and no
                            declaration limits the data to come: more members then only help
    a scenario falls        the groups that are possible because of it. One scenario is enough for
                            most groups: their witness. Without a witness, any scenario may matter
    a key value arrives     the groups with this value
    the clock advances      the groups of a time, when it has passed
    few trees are left      all groups: as soon as their number can matter to a condition
    a stream ends           all groups

Decided: conditions that compare counts, sums, `min` and `max` with constants. Not decided here:
`not`, types, references, what changes what is there (a new `GroupTracker` follows a deletion).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from enum import Enum
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.capacity import trees_left
from axlog.future.generalized_rows import Need, Rows, Values
from axlog.future.grounding import has_not
from axlog.future.group_conditions import Reach, atom_of, atoms_of, holds
from axlog.future.group_growth import has_or_that_binds
from axlog.future.group_members import UNKNOWN, Key, MembersByGroup
from axlog.future.group_outlook import Coming, GroupOutlook, Member
from axlog.future.group_steps import GroupSteps
from axlog.future.keys import Key as DeclaredKey
from axlog.future.message_effects import is_in_one_message, may_fall_by_message
from axlog.future.scenario_tracker import Scenario, ScenarioTracker
from axlog.future.time_constraints import deadline
from axlog.query.pattern import Pattern
from axlog.query.row_key import RowKey

_COMPARED = ("count", "sum", "min", "max")
_LASTING = (("sum", ">"), ("sum", "<"), ("max", ">"), ("min", "<"))
_TRIES = 64  # no more equal members are tried one by one (`group_conditions.py`)
Row = tuple[Any, ...]


class _State(Enum):
    THERE = "there"
    POSSIBLE = "possible"
    OVER = "over"


class _Scenarios(ScenarioTracker):
    """The scenarios of the counted pattern, and which of them an update has changed."""

    def __init__(self, tree: Tree, pattern: Pattern) -> None:
        self.changed: dict[Values, None] = {}
        self.key_values: set[str] = set()
        super().__init__(tree, pattern)

    def can_be_met(self, values: Values, need: Need) -> bool:
        return self._is_satisfiable(values, need)

    def deadline(self, values: Values, need: Need) -> int | None:
        return deadline(need.times, need.unknown_times)

    def _store(self, rows: Rows) -> None:
        super()._store(rows)
        self.changed.update(dict.fromkeys(rows))

    def _note_values(self, key: DeclaredKey, tops: Iterable[int]) -> set[str]:
        found = super()._note_values(key, tops)
        self.key_values |= found
        return found


class GroupTracker(GroupOutlook):
    """The groups of a view over a document that streams change."""

    def __init__(self, tree: Tree, key: RowKey) -> None:
        super().__init__(tree, key)
        self.is_growing = is_growing(self._steps)
        self._tracked = _Scenarios(tree, self._pattern)
        self._members: MembersByGroup[Member] = MembersByGroup(self._steps.aggregates)
        self._of: dict[Values, list[Member]] = {}  # members to come, by their scenario
        self._complete: set[Values | None] = set()  # the tuples of members that are there
        self._states: dict[Key, _State] = {}
        self._relied: dict[Values, set[Key]] = {}  # witnesses, with the groups that rely on them
        self._witness: dict[Key, Values] = {}
        self._unwitnessed: dict[Key, None] = {}  # possible groups without one
        self._by_value: dict[str, dict[Key, None]] = {}
        self._times: list[tuple[int, int, Key]] = []
        self._number = count()
        self._enough = _enough(self._steps, len(self._tracked.program.relations))
        self._limits = self._trees_left()
        self._examine(self._read_changes()[0])
        self._tracked.key_values.clear()

    # What the outlook reads -----------------------------------------------------------------------

    @property
    def members(self) -> MembersByGroup[Member]:
        return self._members

    @property
    def _scenarios(self) -> Coming:
        return self._tracked

    @property
    def _identities(self) -> set[Values | None]:
        return self._complete

    # Updates --------------------------------------------------------------------------------------

    def grow(self, tops: Iterable[int], closed: Iterable[str] = ()) -> list[Row]:
        """Follow an update: new subtrees and streams that ended, at the clock of the document.

        Returns the rows that it made impossible.
        """
        tracked = self._tracked
        fallen = tracked.grow(tops)
        has_closed = False
        for stream in closed:
            fallen += tracked.close(stream)
            has_closed = True
        fallen += tracked.expire()
        listed, gained = self._read_changes()
        asked = dict.fromkeys(listed)
        if not self.is_growing or self.tree.facts or has_or_that_binds(self._pattern):
            asked.update(dict.fromkeys(gained))
        asked.update(dict.fromkeys(self._relying_on(fallen)))
        for value in tracked.key_values:
            asked.update(self._by_value.get(value, {}))
        tracked.key_values.clear()
        while self._times and self._times[0][0] < self.tree.clock:
            asked[heappop(self._times)[2]] = None
        limits = self._trees_left()
        if has_closed or limits != self._limits:
            self._limits = limits
            asked.update(dict.fromkeys(self._states))
        return self._fallen(self._examine(asked))

    def possible_rows(self) -> list[Row]:
        """The rows that can still come."""
        found = [
            self._shown(key)
            for key, state in self._states.items()
            if state is _State.POSSIBLE and not self._is_there(key)
        ]
        return list(dict.fromkeys(found))

    def is_over(self, row: Row) -> bool:
        """Whether no group of a row is there or possible."""
        given = {
            key: value
            for name, value in zip(self._columns, row, strict=True)
            if value is not None and (key := self._steps.shown_key(name)) is not None
        }
        asked = tuple(given.get(name, UNKNOWN) for name in self._steps.keys)
        return all(self._state_of(key) is _State.OVER for key in self._filled(asked))

    def _filled(self, asked: Key) -> Iterator[Key]:
        """The groups that agree with some values of their keys, with these values."""
        if UNKNOWN not in asked:
            yield asked
            return
        found: dict[Key, None] = {}
        for key, state in self._states.items():
            pairs = list(zip(asked, key, strict=True))
            if state is not _State.OVER and all(
                a is UNKNOWN or k in (a, UNKNOWN) for a, k in pairs
            ):
                found[tuple(a if k is UNKNOWN else k for a, k in pairs)] = None
        yield from found

    def _state_of(self, key: Key) -> _State:
        state = self._states.get(key)
        return self._judge(key)[0] if state is None else state

    def _trees_left(self) -> tuple[tuple[str, float], ...]:
        """The trees that limited streams may still bring, as far as conditions depend on it."""
        every = ((stream, trees_left(self.tree, stream)) for stream in self.tree.calls_by_stream)
        return tuple((s, min(left, self._enough)) for s, left in every if left is not None)

    def _relying_on(self, fallen: Iterable[Scenario]) -> Iterator[Key]:
        """The groups that may be possible because of scenarios that fell."""
        is_some = False
        for values, _ in fallen:
            is_some = True
            yield from self._relied.get(values, ())
            for member in self._of.get(values, ()):
                yield member.key
            self._sync(values)
        if is_some:
            yield from self._unwitnessed

    # Members --------------------------------------------------------------------------------------

    def _read_changes(self) -> tuple[list[Key], list[Key]]:
        """Read new scenarios and members; return the groups that are new, and that have gained."""
        listed: list[Key] = []
        gained: list[Key] = []
        for values in self._tracked.changed:
            for key in self._sync(values):
                gained.append(key)
                if key not in self._states:
                    listed.append(key)
        self._tracked.changed.clear()
        if not self._steps.keys and () not in self._states:
            listed.append(())
        return listed, gained

    def _sync(self, values: Values) -> list[Key]:
        """Read a scenario as it is now, and return the groups that it adds to."""
        columns = self._tracked.columns
        needs = self._tracked.found.rows.get(values, [])
        for member in self._of.pop(values, ()):
            self._members.remove_coming(member)
        if any(not need.brought for need in needs):
            return self._add(values)
        if not needs or self._identity(columns, values) in self._complete:
            return []
        made = [self._member(columns, values, need, is_present=False) for need in needs]
        self._of[values] = kept = [member for member in made if member.passes is not False]
        for member in kept:
            self._members.add_coming(member)
        return [member.key for member in kept]

    def _add(self, values: Values) -> list[Key]:
        """Read a member that is there."""
        columns = self._tracked.columns
        identity = self._identity(columns, values)
        if identity in self._complete:
            return []
        self._complete.add(identity)
        member = self._member(columns, values, None, is_present=True)
        if member.passes is not True:
            return []
        self._members.add(member.key, member.values)
        return [member.key]

    # Verdicts -------------------------------------------------------------------------------------

    def _examine(self, keys: Iterable[Key]) -> list[Key]:
        """Judge groups anew; return those that were possible and are not."""
        fallen: list[Key] = []
        for key in list(dict.fromkeys(keys)):
            before = self._states.get(key)
            if before is _State.OVER:
                continue
            self._release(key)
            state, witness = self._judge(key) if self._is_listed(key) else (None, None)
            if state is None:
                self._states.pop(key, None)
            else:
                self._states[key] = state
            if state is _State.POSSIBLE:
                self._rely(key, witness)
            if (before is None) != (state is None):
                self._index(key, is_known=state is not None)
            if before is _State.POSSIBLE and state is not _State.POSSIBLE:
                fallen.append(key)
        return fallen

    def _judge(self, key: Key) -> tuple[_State, Member | None]:
        """The state of a group, and a scenario that alone makes it possible."""
        having, needs_member = self._steps.having, bool(self._steps.keys)
        if not self.is_growing and self._is_there(key):
            return _State.THERE, None
        if self.is_growing:
            for member in self._members.coming(key):
                growth = self._growth(member, key)
                if growth is None or not growth.is_sure:
                    continue
                alone = self._future_with(key, [growth])
                if alone.can_hold(having, needs_member=needs_member) is Reach.YES:
                    is_there = self._is_there(key)
                    return _State.THERE if is_there else _State.POSSIBLE, member
        reach = self._reach(key, having)
        if reach is Reach.UNSURE:
            raise self._undecided()
        if reach is Reach.NO:
            return _State.OVER, None
        return _State.THERE if self._is_there(key) else _State.POSSIBLE, None

    def _is_there(self, key: Key) -> bool:
        """Whether a group has a member, and its condition holds."""
        there = self._members.there(key)
        if self._steps.keys and not there.count:
            return False
        state: Mapping[str, Decimal | None] = {
            each.name: there.value_with(each, {}, 0)
            for each in self._steps.aggregates
            if each.function == "count"
            or (each.function in _COMPARED and there.of[str(each.argument)].is_numeric)
        }
        verdicts = [holds(each, state) for each in self._steps.having]
        if None in verdicts and False not in verdicts:
            raise self._undecided()
        return False not in verdicts

    def _is_listed(self, key: Key) -> bool:
        return not self._steps.keys or self._members.has(key)

    def _rely(self, key: Key, witness: Member | None) -> None:
        """Note why a group is possible; None: not because of one scenario."""
        if witness is None:
            self._unwitnessed[key] = None
            return
        self._witness[key] = witness.bound
        self._relied.setdefault(witness.bound, set()).add(key)

    def _release(self, key: Key) -> None:
        """Forget why a group was possible."""
        self._unwitnessed.pop(key, None)
        before = self._witness.pop(key, None)
        if before is not None:
            relying = self._relied[before]
            relying.discard(key)
            if not relying:
                del self._relied[before]

    def _index(self, key: Key, *, is_known: bool) -> None:
        """Index a group by what may make it impossible without a scenario that falls."""
        for name, value in zip(self._steps.keys, key, strict=True):
            if value is UNKNOWN:
                continue
            if self.tree.facts:
                groups = self._by_value.setdefault(str(value), {})
                if is_known:
                    groups[key] = None
                else:
                    groups.pop(key, None)
            if is_known and isinstance(value, int) and self._is_time(name):
                heappush(self._times, (value, next(self._number), key))

    def _is_time(self, name: str) -> bool:
        column = self._column_of(name)
        return column is not None and column.endswith(".time")

    def _fallen(self, keys: Iterable[Key]) -> list[Row]:
        """The rows of groups that fell, of which no group is there or possible."""
        rows = dict.fromkeys(map(self._shown, keys))
        return [row for row in rows if self.is_over(row)]

    def _shown(self, key: Key) -> Row:
        values = dict(zip(self._steps.keys, key, strict=True))
        names = map(self._steps.shown_key, self._columns)
        found = (UNKNOWN if name is None else values[name] for name in names)
        return tuple(None if value is UNKNOWN else value for value in found)


# Conditions ---------------------------------------------------------------------------------------


def why_not_followed(key: RowKey) -> str | None:
    """Why groups are not followed as data arrives; None: they are."""
    if has_not(key.pattern):
        return "`not` beside groups"
    try:
        steps = GroupSteps(key)
    except UndecidedError as error:
        return error.message
    functions = {each.name: each.function for each in steps.aggregates}
    for condition in steps.having:
        for each in atoms_of(condition):
            atom = atom_of(each)
            if atom is None or functions.get(atom[0]) not in _COMPARED:
                return "a condition other than count, sum, min or max compared with a constant"
    return None


def is_growing(steps: GroupSteps) -> bool:
    """Whether more members make no condition impossible: they are counts from below."""
    functions = {each.name: each.function for each in steps.aggregates}
    return all(
        functions[name] == "count" and operator in (">", ">=")
        for name, operator, _ in _atoms(steps)
    )


def may_lose_groups(tree: Tree, key: RowKey) -> bool:
    """Whether a single message can make a possible group impossible."""
    steps, pattern = GroupSteps(key), key.pattern
    is_lasting = _is_lasting(steps) or (_is_shrinking(steps) and is_in_one_message(tree, pattern))
    return not is_lasting or may_fall_by_message(tree, pattern)


def _is_shrinking(steps: GroupSteps) -> bool:
    """Whether a group with members is there, or can never be again, if nothing is deleted."""
    functions = {each.name: each.function for each in steps.aggregates}
    atoms = [(functions[name], operator[0]) for name, operator, _ in _atoms(steps)]
    return set(atoms) <= {("count", "<"), ("max", "<"), ("min", ">")}


def _is_lasting(steps: GroupSteps) -> bool:
    """Whether a possible group stays so, while the same scenarios can come any number of times.

    A single condition on a sum asks for one scenario that brings a number above zero (or below):
    this can then make up for all that arrives.
    """
    if is_growing(steps):
        return True
    functions = {each.name: each.function for each in steps.aggregates}
    atoms = [(functions[name], operator[0]) for name, operator, _ in _atoms(steps)]
    return len(atoms) == 1 and atoms[0] in _LASTING


def _atoms(steps: GroupSteps) -> Iterator[tuple[str, str, Decimal]]:
    """The comparisons of aggregates with constants that are asked of a group."""
    for condition in steps.having:
        for each in atoms_of(condition):
            atom = atom_of(each)
            assert atom is not None
            yield atom


def _enough(steps: GroupSteps, relations: int) -> float:
    """How many trees are as good as any number, for every condition."""
    if any(each.function == "sum" for each in steps.aggregates):
        return inf  # of bounded values
    return 1 + max([_TRIES, relations, *(int(abs(bound)) for _, _, bound in _atoms(steps))])
