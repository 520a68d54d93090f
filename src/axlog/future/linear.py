"""Whether linear inequalities over the integers have a solution: the omega test (Pugh 1991).

An inequality bounds a sum of unknowns with coefficients from above. Coefficients are any integers,
and the number of unknowns is not limited. Unknowns are eliminated one by one:

    equalities      solved for an unknown with coefficient 1 or -1; if there is none, a new unknown
                    is introduced, which makes the coefficients smaller
    inequalities    Fourier-Motzkin elimination, exact over the integers if all lower or all upper
                    bounds have coefficient 1; otherwise the dark shadow (a region that surely has a
                    solution), and the region between the two shadows, one equality at a time

The answer is exact. The cost is exponential in the number of unknowns, and grows with the
coefficients where neither shadow decides. Past `LIMIT` steps the question is undecided (AX502).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

from axlog.errors import UndecidedError

LIMIT = 100_000
"""Largest number of inequalities that one question may create."""

Terms = tuple[tuple[str, int], ...]
"""Unknowns with their coefficients, sorted; none is zero."""
System = dict[Terms, int]
"""The least bound of each sum of terms."""


def has_solution(given: Iterable[tuple[Mapping[str, int], int]]) -> bool:
    """Whether some integers satisfy all inequalities, each given as (terms, bound)."""
    return _Search().solve(given)


def greatest(given: Iterable[tuple[Mapping[str, int], int]], name: str) -> int | None:
    """The greatest value of an unknown in a satisfiable system; None: unbounded.

    A satisfiable system over the integers is bounded exactly if its rational relaxation is. The
    bound of the relaxation is an upper limit, from which the search goes down.
    """
    system = list(given)
    limit = _Search().upper_limit(system, name)
    if limit is None:
        return None
    if _at_least(system, name, limit):
        return limit
    step = 1
    while not _at_least(system, name, limit - step):
        step *= 2
    low, high = limit - step, limit - step // 2  # low can be reached, high cannot
    while high - low > 1:
        middle = (low + high) // 2
        if _at_least(system, name, middle):
            low = middle
        else:
            high = middle
    return low


def _at_least(system: list[tuple[Mapping[str, int], int]], name: str, value: int) -> bool:
    return has_solution([*system, ({name: -1}, -value)])


class _Unsatisfiable(Exception):
    """An inequality without unknowns does not hold."""


class _Search:
    """One question, with the number of steps so far."""

    def __init__(self) -> None:
        self._steps = 0
        self._introduced = 0

    def solve(self, given: Iterable[tuple[Mapping[str, int], int]]) -> bool:
        """Whether the inequalities have a solution."""
        try:
            system = self._system(given)
            while True:
                equality = _equality(system)
                if equality is None:
                    break
                system = self._solved(system, *equality)
            return self._eliminate(system)
        except _Unsatisfiable:
            return False

    def upper_limit(self, given: Iterable[tuple[Mapping[str, int], int]], name: str) -> int | None:
        """An upper bound of an unknown in the rational relaxation; None: unbounded."""
        system = self._system(given)
        while others := {each for terms in system for each, _ in terms} - {name}:
            one = min(others, key=lambda each: (_cost(system, each), each))
            system = self._shadow(system, one)
        uppers = [bound // terms[0][1] for terms, bound in system.items() if terms[0][1] > 0]
        return min(uppers, default=None)

    # Systems

    def _system(self, given: Iterable[tuple[Mapping[str, int], int]]) -> System:
        found: System = {}
        for terms, bound in given:
            self._add(found, terms, bound)
        return found

    def _add(self, system: System, terms: Mapping[str, int], bound: int) -> None:
        """Add an inequality, divided by the common divisor of its coefficients."""
        self._steps += 1
        if self._steps > LIMIT:
            raise UndecidedError(
                "AX502",
                f"the time constraints need more than {LIMIT:,} steps to decide",
                advice="use smaller coefficients, or fewer times in one constraint",
            )
        kept = {name: factor for name, factor in terms.items() if factor}
        if not kept:
            if bound < 0:
                raise _Unsatisfiable
            return
        common = gcd(*kept.values())
        key = tuple(sorted((name, factor // common) for name, factor in kept.items()))
        bound //= common
        known = system.get(key)
        system[key] = bound if known is None else min(known, bound)

    # Equalities

    def _solved(self, system: System, terms: Terms, bound: int) -> System:
        """The system with one unknown of an equality substituted."""
        name, factor = min(terms, key=lambda each: (abs(each[1]), each[0]))
        if abs(factor) == 1:
            rest = {other: -factor * by for other, by in terms if other != name}
            return self._replaced(system, name, rest, factor * bound)
        self._introduced += 1
        size, sign = abs(factor) + 1, 1 if factor > 0 else -1
        rest = {n: sign * _remainder(by, size) for n, by in terms if n != name}
        rest[f"/{self._introduced}"] = -sign * size
        return self._replaced(system, name, rest, -sign * _remainder(bound, size))

    def _replaced(
        self, system: System, name: str, value: Mapping[str, int], constant: int
    ) -> System:
        """The system with a sum in place of an unknown."""
        found: System = {}
        for terms, bound in system.items():
            factors = dict(terms)
            factor = factors.pop(name, 0)
            for other, by in value.items() if factor else ():
                factors[other] = factors.get(other, 0) + factor * by
            self._add(found, factors, bound - factor * constant)
        return found

    # Inequalities

    def _eliminate(self, system: System) -> bool:
        """Whether a system has a solution, by eliminating one unknown."""
        names = {name for terms in system for name, _ in terms}
        if not names:
            return True
        name = min(names, key=lambda each: (not _is_exact(system, each), _cost(system, each), each))
        if _is_exact(system, name):
            return self._holds(system, name)
        if not self._holds(system, name):
            return False
        return self._holds(system, name, is_dark=True) or self._outside_dark_shadow(system, name)

    def _holds(self, system: System, name: str, *, is_dark: bool = False) -> bool:
        try:
            smaller = self._shadow(system, name, is_dark=is_dark)
        except _Unsatisfiable:
            return False
        return self.solve([(dict(terms), bound) for terms, bound in smaller.items()])

    def _shadow(self, system: System, name: str, *, is_dark: bool = False) -> System:
        """The system projected onto the other unknowns, exact over the rationals.

        With `is_dark`, the part of the projection above which the unknown surely has an integer
        value.
        """
        found: System = {}
        for terms, bound in system.items():
            if all(each != name for each, _ in terms):
                self._add(found, dict(terms), bound)
        lowers, uppers = _bounds(system, name)
        for low, below in lowers:  # -b*x + low <= below
            b = -low[name]
            for high, above in uppers:  # a*x + high <= above
                a = high[name]
                both = {n: b * by for n, by in high.items() if n != name}
                for n, by in low.items():
                    if n != name:
                        both[n] = both.get(n, 0) + a * by
                slack = (a - 1) * (b - 1) if is_dark else 0
                self._add(found, both, b * above + a * below - slack)
        return found

    def _outside_dark_shadow(self, system: System, name: str) -> bool:
        """Whether there is a solution near a lower bound, outside the dark shadow."""
        lowers, uppers = _bounds(system, name)
        most = max(terms[name] for terms, _ in uppers)
        given: list[tuple[Mapping[str, int], int]] = [(dict(t), b) for t, b in system.items()]
        for low, below in lowers:
            b = -low[name]
            opposite = {n: -by for n, by in low.items()}
            for above in range((most * b - most - b) // most + 1):  # b*x = low - below + above
                tight = [(low, below - above), (opposite, above - below)]
                if self.solve([*given, *tight]):
                    return True
        return False


def _remainder(value: int, size: int) -> int:
    """The remainder with the smallest absolute value."""
    return value - size * ((2 * value + size) // (2 * size))


def _equality(system: System) -> tuple[Terms, int] | None:
    """Two opposite inequalities that fix a sum; raises if they contradict each other."""
    found: tuple[Terms, int] | None = None
    least = 0
    for terms, bound in system.items():
        other = system.get(tuple((name, -factor) for name, factor in terms))
        if other is None:
            continue
        if bound + other < 0:
            raise _Unsatisfiable
        smallest = min(abs(factor) for _, factor in terms)
        if bound + other == 0 and (found is None or smallest < least):
            found, least = (terms, bound), smallest
    return found


def _bounds(
    system: System, name: str
) -> tuple[list[tuple[dict[str, int], int]], list[tuple[dict[str, int], int]]]:
    """The inequalities that bound an unknown from below, and from above."""
    lowers: list[tuple[dict[str, int], int]] = []
    uppers: list[tuple[dict[str, int], int]] = []
    for terms, bound in system.items():
        factor = next((by for each, by in terms if each == name), 0)
        if factor:
            (uppers if factor > 0 else lowers).append((dict(terms), bound))
    return lowers, uppers


def _is_exact(system: System, name: str) -> bool:
    """Whether the projection is exact over the integers too."""
    lowers, uppers = _bounds(system, name)
    if not lowers or not uppers:
        return True
    return all(terms[name] == -1 for terms, _ in lowers) or all(
        terms[name] == 1 for terms, _ in uppers
    )


def _cost(system: System, name: str) -> int:
    lowers, uppers = _bounds(system, name)
    return len(lowers) * len(uppers)
