"""Satisfiability of clauses: the solver behind the searches that enumeration cannot finish.

A literal is a number: n, or -n for its negation; a clause is a list of literals, one of which must
hold. Clauses may be added between questions. With the extra `solver` (python-sat) the solver is
Glucose. Without it, it is the one of this module: conflict-driven clause learning with watched
literals, activities and restarts, exact and a few hundred times slower.

The number of conflicts of one question is limited: past it the question is undecided (AX502).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from axlog.errors import UndecidedError
from axlog.extras import import_extra, is_installed

CONFLICTS = 200_000
"""Largest number of conflicts of one question, with python-sat."""
OWN_CONFLICTS = 10_000
"""Largest number of conflicts of one question, without it."""


class Solver(Protocol):
    """Clauses, and whether they can all hold."""

    def add(self, clause: Sequence[int]) -> None:
        """Add a clause."""

    def solve(self, assumptions: Sequence[int] = ()) -> set[int] | None:
        """The true literals of a solution in which the assumptions hold; None if there is none."""


_chosen: ContextVar[Callable[[], Solver] | None] = ContextVar("chosen", default=None)


@contextmanager
def using(make: Callable[[], Solver]) -> Iterator[None]:
    """Use another solver than the best one inside the block."""
    token = _chosen.set(make)
    try:
        yield
    finally:
        _chosen.reset(token)


def best_solver() -> Solver:
    """The best solver that is installed."""
    make = _chosen.get()
    return make() if make is not None else library_solver() or OwnSolver()


def library_solver() -> Solver | None:
    """The solver of python-sat; None if it is not installed."""
    if not is_installed("pysat"):
        return None
    return _LibrarySolver(import_extra("pysat.solvers"))


class _LibrarySolver:
    """A solver of python-sat: one with a limit of conflicts and assumptions."""

    def __init__(self, solvers: Any) -> None:
        self._solver = solvers.Glucose4(incr=False)

    def add(self, clause: Sequence[int]) -> None:
        self._solver.add_clause(list(clause))

    def solve(self, assumptions: Sequence[int] = ()) -> set[int] | None:
        self._solver.conf_budget(CONFLICTS)
        found = self._solver.solve_limited(assumptions=list(assumptions))
        if found is None:
            raise _too_many(CONFLICTS)
        return {literal for literal in self._solver.get_model() if literal > 0} if found else None


def _too_many(conflicts: int) -> UndecidedError:
    return UndecidedError(
        "AX502",
        f"the search for a way in which a row can appear met {conflicts:,} conflicts",
        advice="use a query with fewer branches; with `pip install axlog[solver]` the search is"
        " faster",
    )


class OwnSolver:
    """Conflict-driven clause learning."""

    def __init__(self, conflicts: int = OWN_CONFLICTS) -> None:
        self._limit = conflicts
        self._clauses: list[list[int]] = []
        self._watched: dict[int, list[list[int]]] = {}
        self._value: dict[int, bool] = {}
        self._level: dict[int, int] = {}
        self._reason: dict[int, list[int] | None] = {}
        self._trail: list[int] = []
        self._head = 0  # what follows from the trail before it is known
        self._marks: list[int] = []  # the length of the trail at each decision
        self._units: list[int] = []
        self._activity: dict[int, float] = {}
        self._phase: dict[int, bool] = {}
        self._heap: list[tuple[float, int]] = []
        self._bump = 1.0
        self._is_false = False

    def add(self, clause: Sequence[int]) -> None:
        """Add a clause."""
        self._reset()
        literals = list(dict.fromkeys(clause))
        if any(-literal in literals for literal in literals):
            return
        for literal in literals:
            if abs(literal) not in self._activity:
                self._activity[abs(literal)] = 0.0
                heappush(self._heap, (0.0, abs(literal)))
        if not literals:
            self._is_false = True
        elif len(literals) == 1:
            self._units.append(literals[0])
        else:
            self._attach(literals)

    def _attach(self, clause: list[int]) -> None:
        self._clauses.append(clause)
        for literal in clause[:2]:
            self._watched.setdefault(literal, []).append(clause)

    def solve(self, assumptions: Sequence[int] = ()) -> set[int] | None:
        """The true literals of a solution in which the assumptions hold; None if there is none."""
        self._reset()
        if self._is_false or not self._root_units():
            self._is_false = True
            return None
        conflicts, limit = 0, 100
        while True:
            conflict = self._propagate()
            if conflict is not None:
                conflicts += 1
                if conflicts > self._limit:
                    raise _too_many(self._limit)
                if not self._marks:
                    self._is_false = True
                    return None
                self._learn(conflict)
                continue
            if conflicts > limit:
                limit += limit // 2
                self._undo(0)
                continue
            asked = self._next_assumption(assumptions)
            if asked is False:
                return None
            literal = asked or self._choose()
            if literal is None:
                return {v for v, is_true in self._value.items() if is_true}
            self._marks.append(len(self._trail))
            self._assign(literal, None)

    def _root_units(self) -> bool:
        for literal in self._units:
            known = self._value.get(abs(literal))
            if known is None:
                self._assign(literal, None)
            elif known != (literal > 0):
                return False
        return True

    def _next_assumption(self, assumptions: Sequence[int]) -> int | bool | None:
        for literal in assumptions:
            known = self._value.get(abs(literal))
            if known is None:
                return literal
            if known != (literal > 0):
                return False
        return None

    def _assign(self, literal: int, reason: list[int] | None) -> None:
        variable = abs(literal)
        self._value[variable] = literal > 0
        self._level[variable] = len(self._marks)
        self._reason[variable] = reason
        self._trail.append(literal)

    def _propagate(self) -> list[int] | None:
        """Assign what follows; return a clause that does not hold, if there is one."""
        value = self._value
        while self._head < len(self._trail):
            false = -self._trail[self._head]
            self._head += 1
            watching = self._watched.get(false)
            if not watching:
                continue
            kept: list[list[int]] = []
            for number, clause in enumerate(watching):
                if clause[0] == false:
                    clause[0], clause[1] = clause[1], false
                first = clause[0]
                known = value.get(abs(first))
                if known is not None and known == (first > 0):
                    kept.append(clause)
                    continue
                for other in range(2, len(clause)):
                    literal = clause[other]
                    held = value.get(abs(literal))
                    if held is None or held == (literal > 0):
                        clause[1], clause[other] = literal, false
                        self._watched.setdefault(literal, []).append(clause)
                        break
                else:
                    kept.append(clause)
                    if known is not None:
                        kept += watching[number + 1 :]
                        self._watched[false] = kept
                        return clause
                    self._assign(first, clause)
            self._watched[false] = kept
        return None

    def _learn(self, conflict: list[int]) -> None:
        """Add the clause of the first unique implication point, and go back to where it acts."""
        level = len(self._marks)
        seen: set[int] = set()
        learned: list[int] = []
        open_, at = 0, len(self._trail) - 1
        clause: Iterable[int] = conflict
        while True:
            for literal in clause:
                variable = abs(literal)
                if variable in seen or not self._level[variable]:
                    continue
                seen.add(variable)
                self._raise(variable)
                if self._level[variable] == level:
                    open_ += 1
                else:
                    learned.append(literal)
            while abs(self._trail[at]) not in seen:
                at -= 1
            literal = self._trail[at]
            at -= 1
            open_ -= 1
            if not open_:
                break
            reason = self._reason[abs(literal)]
            assert reason is not None
            clause = [other for other in reason if other != literal]
        self._bump *= 1.05
        if self._bump > 1e100:
            self._rescale()
        learned.sort(key=lambda each: -self._level[abs(each)])
        self._undo(self._level[abs(learned[0])] if learned else 0)
        if not learned:
            self._units.append(-literal)
            self._assign(-literal, None)
            return
        made = [-literal, *learned]
        self._attach(made)
        self._assign(-literal, made)

    def _raise(self, variable: int) -> None:
        self._activity[variable] = self._activity.get(variable, 0.0) + self._bump
        heappush(self._heap, (-self._activity[variable], variable))

    def _rescale(self) -> None:
        self._activity = {v: a * 1e-100 for v, a in self._activity.items()}
        self._bump *= 1e-100
        self._heap = [(-a, v) for v, a in self._activity.items()]
        heapify(self._heap)

    def _choose(self) -> int | None:
        """The free variable with the greatest activity, with its last value: false at first."""
        while self._heap:
            _, variable = heappop(self._heap)
            if variable not in self._value:
                return variable if self._phase.get(variable) else -variable
        return None

    def _reset(self) -> None:
        self._undo(0)
        self._forget_from(0)

    def _undo(self, level: int) -> None:
        """Go back to a decision level."""
        if len(self._marks) > level:
            self._forget_from(self._marks[level])
            del self._marks[level:]

    def _forget_from(self, start: int) -> None:
        for literal in self._trail[start:]:
            variable = abs(literal)
            self._phase[variable] = literal > 0
            del self._value[variable]
            heappush(self._heap, (-self._activity.get(variable, 0.0), variable))
        del self._trail[start:]
        self._head = min(self._head, start)
