"""Linear constraints over unknown times, decided exactly over the integers.

Most constraints have the form a*x + b*y <= c with a, b in {-1, 0, 1}: a difference, sum or bound of
one or two times ("unit two variables per inequality"). They are decided by shortest paths: each
unknown x is two points, +x and -x; a constraint is an edge between points; a negative cycle means
that there is no solution. Over the integers a bound on 2x may be odd; rounding it down makes the
answer exact (Lahiri and Musuvathi 2005). Systems with other coefficients, or with three unknowns in
one constraint, are decided by the omega test (`linear.py`).

The clock is one more unknown, and every future time is at or after it. Its largest value is the
deadline of the system. (Paper 2, section 5, theorem 6.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from axlog.future.linear import greatest, has_solution
from axlog.future.search_budget import spend
from axlog.query.pattern import TimeConstraint

CLOCK = ""
"""The name of the clock among the unknowns; no pattern node has it."""

_NEGATED = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "=": "!=", "!=": "="}


@dataclass(frozen=True, slots=True)
class Inequality:
    """A sum of terms that is at most a bound; terms are (coefficient, unknown), sorted."""

    terms: tuple[tuple[int, str], ...]
    bound: int

    @property
    def is_simple(self) -> bool:
        """Whether it has at most two unknowns, with coefficients 1 and -1."""
        return len(self.terms) <= 2 and all(factor in (1, -1) for factor, _ in self.terms)


def inequalities(
    constraint: TimeConstraint, known: dict[str, int]
) -> list[Inequality] | bool | None:
    """A constraint with known times substituted: inequalities that must all hold, or its truth.

    None stands for `!=` between unknowns, which is not a conjunction of inequalities.
    """
    left: dict[str, int] = {}
    total = 0
    for coefficient, name in constraint.terms:
        if name in known:
            total += coefficient * known[name]
        else:
            left[name] = left.get(name, 0) + coefficient
    terms = tuple(sorted((c, name) for name, c in left.items() if c))
    bound = constraint.bound - total
    if not terms:
        return _holds(0, constraint.operator, bound)
    upper = Inequality(terms, bound)
    lower = Inequality(tuple(sorted((-c, name) for c, name in terms)), -bound)
    match constraint.operator:
        case "<=":
            return [upper]
        case "<":
            return [Inequality(upper.terms, upper.bound - 1)]
        case ">=":
            return [lower]
        case ">":
            return [Inequality(lower.terms, lower.bound - 1)]
        case "=":
            return [upper, lower]
    return None


def _holds(left: int, operator: str, right: int) -> bool:
    return {
        "<=": left <= right, "<": left < right, ">=": left >= right,
        ">": left > right, "=": left == right, "!=": left != right,
    }[operator]  # fmt: skip


def at_or_after(later: str, earlier: str) -> Inequality:
    """The inequality: one unknown time is not before another."""
    return Inequality(tuple(sorted(((1, earlier), (-1, later)))), 0)


def not_before(name: str, bound: int) -> Inequality:
    """The inequality: an unknown time is at or after a known one."""
    return Inequality(((-1, name),), -bound)


class TimeSystem:
    """A conjunction of inequalities: its satisfiability, and the latest value of an unknown."""

    def __init__(self, given: Iterable[Inequality]) -> None:
        given = list(given)
        is_simple = all(each.is_simple for each in given)
        self._decided: _PathSystem | _OmegaSystem = (_PathSystem if is_simple else _OmegaSystem)(
            given
        )

    @property
    def is_satisfiable(self) -> bool:
        return self._decided.is_satisfiable

    def latest(self, name: str) -> int | None:
        """The largest value of an unknown; None if it has no bound, or there is no solution."""
        return self._decided.latest(name) if self.is_satisfiable else None


class _OmegaSystem:
    """Any inequalities, decided by the omega test."""

    def __init__(self, given: list[Inequality]) -> None:
        self._given = [
            ({name: factor for factor, name in each.terms}, each.bound) for each in given
        ]
        self.is_satisfiable = has_solution(self._given)

    def latest(self, name: str) -> int | None:
        return greatest(self._given, name)


class _PathSystem:
    """Simple inequalities, decided by shortest paths."""

    def __init__(self, given: list[Inequality]) -> None:
        self._points = sorted({name for each in given for _, name in each.terms})
        at = {name: 2 * number for number, name in enumerate(self._points)}
        size = 2 * len(self._points)
        self._distance: list[list[float]] = [
            [0 if i == j else _FAR for j in range(size)] for i in range(size)
        ]
        self.is_satisfiable = all(each.bound >= 0 for each in given if not each.terms)
        for each in given:
            if each.terms:
                self._add(each, at)
        if self.is_satisfiable and size:
            self.is_satisfiable = self._close()

    def _add(self, each: Inequality, at: dict[str, int]) -> None:
        """Add an edge u -> v of length c, which states v - u <= c; -x is the point next to x."""
        if len(each.terms) == 1:
            ((sign, name),) = each.terms
            point = at[name] if sign > 0 else at[name] + 1
            self._edge(point ^ 1, point, 2 * each.bound)
            return
        (first, one), (second, other) = each.terms
        left = at[one] if first > 0 else at[one] + 1
        right = at[other] if second > 0 else at[other] + 1
        self._edge(right ^ 1, left, each.bound)
        self._edge(left ^ 1, right, each.bound)

    def _edge(self, start: int, end: int, length: int) -> None:
        if length < self._distance[start][end]:
            self._distance[start][end] = length

    def _close(self) -> bool:
        distance = self._distance
        self._shortest()
        size = len(distance)
        if any(distance[i][i] < 0 for i in range(size)):
            return False
        for i in range(size):  # 2x <= odd means 2x <= odd - 1
            if distance[i ^ 1][i] < _FAR:
                distance[i ^ 1][i] = 2 * (distance[i ^ 1][i] // 2)
        for i in range(size):
            for j in range(size):
                both = distance[i][i ^ 1] + distance[j ^ 1][j]  # even: the division is exact
                if both < _FAR:
                    distance[i][j] = min(distance[i][j], both // 2)
        return all(distance[i ^ 1][i] + distance[i][i ^ 1] >= 0 for i in range(size))

    def _shortest(self) -> None:
        distance = self._distance
        size = range(len(distance))
        for middle in size:
            for i in size:
                through = distance[i][middle]
                if through < _FAR:
                    row, other = distance[i], distance[middle]
                    for j in size:
                        if through + other[j] < row[j]:
                            row[j] = through + other[j]

    def latest(self, name: str) -> int | None:
        if name not in self._points:
            return None
        point = 2 * self._points.index(name)
        twice = self._distance[point + 1][point]
        return None if twice >= _FAR else int(twice // 2)


_FAR = float("inf")


def some_new(
    system: Iterable[Inequality],
    names: Sequence[str],
    clock: int,
    is_there: Callable[[tuple[int, ...]], bool],
) -> bool:
    """Whether times at or after the clock satisfy a system, such that those of `names` are new.

    Costs one step for each choice of times that exists already.
    """
    bounded = [*system, *(not_before(name, clock) for name in names)]
    closed = TimeSystem(bounded)
    if not closed.is_satisfiable:
        return False
    if not names:
        return not is_there(())
    name, *others = names
    latest = closed.latest(name)
    if latest is None:
        return True  # there are infinitely many
    for value in range(latest, clock - 1, -1):
        spend(1)
        fixed = [*bounded, Inequality(((1, name),), value), not_before(name, value)]
        if some_new(fixed, others, clock, partial(_with_first, is_there, value)):
            return True
    return False


def _with_first(
    is_there: Callable[[tuple[int, ...]], bool], value: int, others: tuple[int, ...]
) -> bool:
    return is_there((value, *others))


def deadline(system: Iterable[Inequality], unknowns: Iterable[str]) -> int | None:
    """The latest clock at which all unknown times can still be at or after it; None: no limit."""
    bounded = [*system, *(at_or_after(name, CLOCK) for name in unknowns)]
    return TimeSystem(bounded).latest(CLOCK)
