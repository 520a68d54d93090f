"""Which numbers of trees the calls of one node can deliver by valid messages.

A step is one message of one call: one or more trees, or a deletion. After each step the node must
satisfy its type. A one-shot call disappears with the trees of its message, which changes the number
of calls at the node. So an allowed final state may be unreachable, because every order of steps
passes through a state that the type forbids. `reach` searches the numbers of children
breadth-first, each number only up to the point where the type cannot distinguish more.

A deletion makes room: it removes children that are not needed, present ones (`Removable`) and trees
that were delivered before. Children that are equal in content and time are removed together. Trees
that are delivered can always be told apart, by an attribute.

Calls with different parents are independent: types constrain the children of one node. The search
is exact, or raises AX502 at its limit. (Paper 2, section 4, and section 5, theorem 5.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from axlog.document.cardinality import (
    All,
    Constraint,
    Formula,
    solutions,
    symbols_of,
)
from axlog.errors import UndecidedError

MOST_STATES = 20_000

Goal = Mapping[tuple[str, str], int]
"""Numbers of trees, by (service or call, root label)."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An open call: its name, its service, the root labels it can deliver, and how many trees."""

    name: str
    service: str
    roots: tuple[str, ...]
    goes: tuple[bool, ...] = (False,)
    """Whether the call closes with its message; both values where that is open."""
    room: int | None = None
    source: str = ""
    """The name in goals; the service if empty."""
    deletes: bool = False
    """Whether it may delete its siblings."""

    @property
    def asked(self) -> str:
        """The name that goals use for this call."""
        return self.source or self.service


@dataclass(frozen=True, slots=True)
class Removable:
    """Groups of present children that are not needed: each is removed as a whole or not at all."""

    kind: str
    size: int
    """The number of children in each of these groups."""
    number: int
    """How many such groups there are."""


@dataclass(frozen=True, slots=True)
class Step:
    """One message: how many trees with which root label, or what it deletes."""

    caller: Caller
    roots: Mapping[str, int]
    goes: bool
    removed: Mapping[Removable, int] = field(default_factory=dict)
    """Numbers of groups of present children."""
    withdrawn: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Numbers of delivered trees, by the name of their call and their label."""


@dataclass(frozen=True, slots=True)
class _State:
    added: tuple[int, ...]  # the delivered trees that are there, by pair
    gone: frozenset[int] = frozenset()
    removed: tuple[int, ...] = ()  # groups of present children
    spent: tuple[int, ...] = ()  # the trees that each call has delivered; only where it matters


def reach(
    constraint: Constraint,
    start: Mapping[str, int],
    callers: Sequence[Caller],
    goal: Goal,
    removable: Sequence[Removable] = (),
) -> list[Step] | None:
    """Steps after which each source has delivered the numbers of `goal`; None if there are none.

    `constraint` is the content constraint of the node in the document's type; it holds at the
    start. `removable`: the present children that calls may delete.
    """
    search = _Search(constraint, start, callers, goal, removable)
    if not search.is_goal_allowed():
        return None
    return search.path()


class _Search:
    """One search."""

    def __init__(
        self,
        constraint: Constraint,
        start: Mapping[str, int],
        callers: Sequence[Caller],
        goal: Goal,
        removable: Sequence[Removable],
    ) -> None:
        self.constraint = constraint
        self.start = start
        self.callers = callers
        self.goal = goal
        self.allowed = constraint.allowed
        coupled = _coupled(constraint, {label for _, label in goal}, callers)
        self.pairs = [
            (index, label)
            for index, caller in enumerate(callers)
            for label in caller.roots
            if label in self.allowed and label in coupled
        ]
        self.top = max([*goal.values(), *constraint.constants, 0]) + 1
        if constraint.is_comparing:
            self.top += max([*start.values(), 0]) + len(self.pairs)
        self.may_delete = any(caller.deletes for caller in callers)
        self.removable = [
            each for each in removable if self.may_delete and each.kind in coupled and each.number
        ]

    def is_goal_allowed(self) -> bool:
        """Whether the type allows some numbers that meet the goal, reachable or not."""
        services = {caller.asked for caller in self.callers}
        most: dict[str, int | None] = dict(self.start)
        least = dict(self.start)
        for caller in self.callers:
            if True in caller.goes:
                kind = f"?{caller.service}"
                least[kind] = max(0, least.get(kind, 0) - 1)
        for each in self.removable:
            least[each.kind] -= each.number * each.size
        for (service, label), number in self.goal.items():
            if service not in services or label not in self.allowed:
                return False
            least[label] = least.get(label, 0) + number
        for _, label in self.pairs:
            most[label] = None
        return next(solutions([self.constraint], least, most), None) is not None

    def path(self) -> list[Step] | None:
        """The shortest sequence of steps to the goal; None if there is none."""
        first = _State((0,) * len(self.pairs), frozenset(), (0,) * len(self.removable), self.first)
        origins: dict[_State, tuple[_State, Step] | None] = {first: None}
        waiting = deque([first])
        while waiting:
            state = waiting.popleft()
            if self.meets_goal(state):
                return _steps(origins, state)
            for step, following in self.moves(state):
                if following not in origins and self.constraint.holds(self.numbers(following)):
                    origins[following] = (state, step)
                    waiting.append(following)
            if len(origins) > MOST_STATES:
                raise UndecidedError(
                    "AX502", f"more than {MOST_STATES:,} numbers of children would have to be tried"
                )
        return None

    @property
    def first(self) -> tuple[int, ...]:
        """The trees that each call has delivered: counted only if some may be deleted again."""
        return (0,) * len(self.callers) if self.may_delete else ()

    def meets_goal(self, state: _State) -> bool:
        brought: dict[tuple[str, str], int] = {}
        for (index, label), number in zip(self.pairs, state.added, strict=True):
            key = (self.callers[index].asked, label)
            brought[key] = brought.get(key, 0) + number
        return all(brought.get(key, 0) >= number for key, number in self.goal.items())

    def numbers(self, state: _State) -> dict[str, int]:
        numbers = dict(self.start)
        for (_, label), number in zip(self.pairs, state.added, strict=True):
            numbers[label] = numbers.get(label, 0) + number
        for each, number in zip(self.removable, state.removed, strict=True):
            numbers[each.kind] -= number * each.size
        for index in state.gone:
            numbers[f"?{self.callers[index].service}"] -= 1
        return numbers

    def moves(self, state: _State) -> Iterator[tuple[Step, _State]]:
        yield from self.deliveries(state)
        yield from self.deletions(state)

    def deliveries(self, state: _State) -> Iterator[tuple[Step, _State]]:
        """The messages that deliver trees."""
        for index, caller in enumerate(self.callers):
            if index in state.gone:
                continue
            mine = [at for at, pair in enumerate(self.pairs) if pair[0] == index]
            there = sum(state.added[at] for at in mine)
            brought = state.spent[index] if state.spent else there
            room = None if caller.room is None else caller.room - brought
            ranges = [range(self.top + 1 - state.added[at]) for at in mine]
            if prod(map(len, ranges)) > MOST_STATES:
                raise UndecidedError(
                    "AX502", f"the service {caller.service} can deliver too many kinds of trees"
                )
            for more in product(*ranges):
                if not any(more) or (room is not None and sum(more) > room):
                    continue
                added = list(state.added)
                for at, number in zip(mine, more, strict=True):
                    added[at] += number
                roots = {self.pairs[at][1]: n for at, n in zip(mine, more, strict=True) if n}
                spent = self._spent(state, index, sum(more))
                # a call that stayed open after its first message never closes
                for goes in caller.goes if not brought else (False,):
                    gone = state.gone | {index} if goes else state.gone
                    following = _State(tuple(added), gone, state.removed, spent)
                    yield Step(caller, roots, goes), following

    def _spent(self, state: _State, index: int, number: int) -> tuple[int, ...]:
        """The trees delivered after a message; of an unlimited call, only whether there are any."""
        if not state.spent:
            return ()
        total = state.spent[index] + number
        if self.callers[index].room is None:
            total = 1
        return (*state.spent[:index], total, *state.spent[index + 1 :])

    def deletions(self, state: _State) -> Iterator[tuple[Step, _State]]:
        """The messages that delete delivered trees and present children."""
        deleting = [
            caller
            for index, caller in enumerate(self.callers)
            if caller.deletes and index not in state.gone
        ]
        if not deleting:
            return
        kept = [range(number + 1) for number in state.added]
        removals = [
            [n for n in self._numbers_removed(each) if n >= known]
            for each, known in zip(self.removable, state.removed, strict=True)
        ]
        if prod(map(len, [*kept, *removals])) > MOST_STATES:
            raise UndecidedError("AX502", "there are too many ways to delete children of one node")
        for added in product(*kept):
            for removed in product(*removals):
                following = _State(added, state.gone, removed, state.spent)
                if following == state:
                    continue
                withdrawn = {
                    (self.callers[index].name, label): before - after
                    for (index, label), before, after in zip(
                        self.pairs, state.added, added, strict=True
                    )
                    if before > after
                }
                groups = {
                    each: after - before
                    for each, before, after in zip(
                        self.removable, state.removed, removed, strict=True
                    )
                    if after > before
                }
                yield Step(deleting[0], {}, False, groups, withdrawn), following

    def _numbers_removed(self, each: Removable) -> list[int]:
        """The numbers of groups to remove; the type cannot distinguish those in between."""
        if self.constraint.is_comparing:
            return list(range(each.number + 1))
        return [0, *range(max(1, each.number - self.top), each.number + 1)]


def _steps(origins: Mapping[_State, tuple[_State, Step] | None], state: _State) -> list[Step]:
    steps: list[Step] = []
    while (before := origins[state]) is not None:
        state, step = before
        steps.append(step)
    return steps[::-1]


# Relevant labels ----------------------------------------------------------------------------------


def _coupled(constraint: Constraint, labels: set[str], callers: Sequence[Caller]) -> set[str]:
    """The labels whose numbers matter: those of the goal, and those that formulas relate to them.

    More of a label that occurs only in bounds of its own never makes a forbidden state allowed.
    """
    found = set(labels)
    found |= {f"?{caller.service}" for caller in callers if True in caller.goes}
    ties = [set(symbols_of(part)) for part in _conjuncts(constraint.formula)]
    # a symbol such as `dom` counts several kinds, which it relates as well
    groups = [{k for s in tie for k in constraint.kinds.get(s, ())} for tie in ties]
    grown = True
    while grown:
        grown = False
        for group in groups:
            if len(group) > 1 and group & found and not group <= found:
                found |= group
                grown = True
    return found


def _conjuncts(formula: Formula) -> Iterator[Formula]:
    if isinstance(formula, All):
        for part in formula.parts:
            yield from _conjuncts(part)
    else:
        yield formula
