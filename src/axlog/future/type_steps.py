"""Which numbers of trees the calls of one node can come to bring by valid steps (P2 4).

A step is one message: some trees, at least one, of one call. After each step the node must hold
what its type allows; a one-shot call goes with its message, which changes what the node holds. So
what is allowed in the end may be out of reach, as every order of steps may lead over something that
is not allowed: `reach` searches the numbers, each only as far as the type can tell them apart.

Calls that share no node do not disturb each other: types ask about the children of one node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
"""How many trees of a service, or of one call, with which root label."""


@dataclass(frozen=True, slots=True)
class Caller:
    """One open call: its name, its service, what roots it can bring, and how much."""

    name: str
    service: str
    roots: tuple[str, ...]
    goes: tuple[bool, ...] = (False,)
    """Whether the call goes with its message; both, where that is still open."""
    room: int | None = None
    source: str = ""
    """What goals ask of: the service unless another name is given."""

    @property
    def asked(self) -> str:
        return self.source or self.service


@dataclass(frozen=True, slots=True)
class Step:
    """One message: how many trees with which root."""

    caller: Caller
    roots: Mapping[str, int]
    goes: bool


@dataclass(frozen=True, slots=True)
class _State:
    added: tuple[int, ...]
    gone: frozenset[int] = frozenset()


def reach(
    constraint: Constraint,
    start: Mapping[str, int],
    callers: Sequence[Caller],
    goal: Goal,
) -> list[Step] | None:
    """Steps after which each service has brought at least so many trees, or None.

    `constraint` is that of the node in the document's type; it holds at the start.
    """
    search = _Search(constraint, start, callers, goal)
    if not search.has_end():
        return None
    return search.path()


class _Search:
    def __init__(
        self,
        constraint: Constraint,
        start: Mapping[str, int],
        callers: Sequence[Caller],
        goal: Goal,
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

    def has_end(self) -> bool:
        """Whether some numbers that are enough are allowed, however they are reached."""
        services = {caller.asked for caller in self.callers}
        most: dict[str, int | None] = dict(self.start)
        least = dict(self.start)
        for caller in self.callers:
            if True in caller.goes:
                kind = f"?{caller.service}"
                least[kind] = max(0, least.get(kind, 0) - 1)
        for (service, label), number in self.goal.items():
            if service not in services or label not in self.allowed:
                return False
            least[label] = least.get(label, 0) + number
        for _, label in self.pairs:
            most[label] = None
        return next(solutions([self.constraint], least, most), None) is not None

    def path(self) -> list[Step] | None:
        first = _State((0,) * len(self.pairs))
        came: dict[_State, tuple[_State, Step] | None] = {first: None}
        waiting = deque([first])
        while waiting:
            state = waiting.popleft()
            if self.is_enough(state):
                return _steps(came, state)
            for step, following in self.moves(state):
                if following not in came and self.constraint.holds(self.numbers(following)):
                    came[following] = (state, step)
                    waiting.append(following)
            if len(came) > MOST_STATES:
                raise UndecidedError(
                    "AX502", f"more than {MOST_STATES:,} numbers of children would have to be tried"
                )
        return None

    def is_enough(self, state: _State) -> bool:
        brought: dict[tuple[str, str], int] = {}
        for (index, label), number in zip(self.pairs, state.added, strict=True):
            key = (self.callers[index].asked, label)
            brought[key] = brought.get(key, 0) + number
        return all(brought.get(key, 0) >= number for key, number in self.goal.items())

    def numbers(self, state: _State) -> dict[str, int]:
        numbers = dict(self.start)
        for (_, label), number in zip(self.pairs, state.added, strict=True):
            numbers[label] = numbers.get(label, 0) + number
        for index in state.gone:
            numbers[f"?{self.callers[index].service}"] -= 1
        return numbers

    def moves(self, state: _State) -> Iterator[tuple[Step, _State]]:
        for index, caller in enumerate(self.callers):
            if index in state.gone:
                continue
            mine = [at for at, pair in enumerate(self.pairs) if pair[0] == index]
            brought = sum(state.added[at] for at in mine)
            room = None if caller.room is None else caller.room - brought
            ranges = [range(self.top + 1 - state.added[at]) for at in mine]
            if prod(map(len, ranges)) > MOST_STATES:
                raise UndecidedError("AX502", f"{caller.service} can bring too many kinds of trees")
            for more in product(*ranges):
                if not any(more) or (room is not None and sum(more) > room):
                    continue
                added = list(state.added)
                for at, number in zip(mine, more, strict=True):
                    added[at] += number
                roots = {self.pairs[at][1]: n for at, n in zip(mine, more, strict=True) if n}
                # a call that stayed with its first message is a stream and does not go
                for goes in caller.goes if not brought else (False,):
                    gone = state.gone | {index} if goes else state.gone
                    yield Step(caller, roots, goes), _State(tuple(added), gone)


def _steps(came: Mapping[_State, tuple[_State, Step] | None], state: _State) -> list[Step]:
    steps: list[Step] = []
    while (before := came[state]) is not None:
        state, step = before
        steps.append(step)
    return steps[::-1]


# What can matter ----------------------------------------------------------------------------------


def _coupled(constraint: Constraint, labels: set[str], callers: Sequence[Caller]) -> set[str]:
    """The labels whose numbers can matter: those asked for, and what formulas tie to them.

    More of a label that stands only in counts of its own never makes anything allowed.
    """
    found = set(labels)
    found |= {f"?{caller.service}" for caller in callers if True in caller.goes}
    ties = [set(symbols_of(part)) for part in _conjuncts(constraint.formula)]
    # a symbol such as `dom` counts several kinds: these are tied as well
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
