"""Whether linear inequalities over integers have a solution: the omega test (Pugh 1991).

An inequality is a sum of coefficients times unknowns that is at most a bound, with any integer
coefficients and any number of unknowns. Unknowns are eliminated one by one:

    equalities      solved for an unknown with coefficient 1 or -1; where there is none, a new
                    unknown is introduced, which makes the coefficients smaller
    inequalities    Fourier and Motzkin's step, exact over the integers if all lower or all upper
                    bounds have coefficient 1; else the dark shadow (a part that surely has a
                    solution), and what lies between the two shadows, one equality at a time

The answer is exact. The cost is exponential in the number of unknowns and grows with the
coefficients where neither shadow decides; past `LIMIT` steps the question is undecided (AX502).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

from axlog.errors import UndecidedError

LIMIT = 100_000
"""The most inequalities that one question may make."""

Terms = tuple[tuple[str, int], ...]
"""Unknowns with their coefficients, sorted; none is zero."""
System = dict[Terms, int]
"""The least bound of each sum of terms."""


def has_solution(given: Iterable[tuple[Mapping[str, int], int]]) -> bool:
    """Whether some integers meet all inequalities: each a sum of terms and its bound."""
    return _Search().solve(given)


def greatest(given: Iterable[tuple[Mapping[str, int], int]], name: str) -> int | None:
    """The greatest value that an unknown of a system with a solution has; None: no bound.

    A system of integers that has a solution is bounded exactly if its rational relaxation is. That
    bound is an upper limit, from which the search goes down.
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
    """An inequality without unknowns that does not hold."""


class _Search:
    """One question, with what it has cost so far."""

    def __init__(self) -> None:
        self._made = 0
        self._new = 0

    def solve(self, given: Iterable[tuple[Mapping[str, int], int]]) -> bool:
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
        """A limit of an unknown, by the rational relaxation; None: it has none."""
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
        """Add an inequality, divided by what its coefficients have in common."""
        self._made += 1
        if self._made > LIMIT:
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
        """The system with one unknown of an equality replaced."""
        name, factor = min(terms, key=lambda each: (abs(each[1]), each[0]))
        if abs(factor) == 1:
            rest = {other: -factor * by for other, by in terms if other != name}
            return self._replaced(system, name, rest, factor * bound)
        self._new += 1
        size, sign = abs(factor) + 1, 1 if factor > 0 else -1
        rest = {n: sign * _remainder(by, size) for n, by in terms if n != name}
        rest[f"/{self._new}"] = -sign * size
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
        """Whether a system has a solution, by one that lacks an unknown."""
        names = {name for terms in system for name, _ in terms}
        if not names:
            return True
        name = min(names, key=lambda each: (not _is_exact(system, each), _cost(system, each), each))
        if _is_exact(system, name):
            return self._holds(system, name)
        if not self._holds(system, name):
            return False
        return self._holds(system, name, is_dark=True) or self._between(system, name)

    def _holds(self, system: System, name: str, *, is_dark: bool = False) -> bool:
        try:
            smaller = self._shadow(system, name, is_dark=is_dark)
        except _Unsatisfiable:
            return False
        return self.solve([(dict(terms), bound) for terms, bound in smaller.items()])

    def _shadow(self, system: System, name: str, *, is_dark: bool = False) -> System:
        """What a system says of the other unknowns, exact over the rationals; if dark, a part of
        it above which the unknown has an integer value in any case."""
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

    def _between(self, system: System, name: str) -> bool:
        """Whether there is a solution close to a lower bound, which the dark shadow leaves out."""
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
    """The remainder that is nearest to zero."""
    return value - size * ((2 * value + size) // (2 * size))


def _equality(system: System) -> tuple[Terms, int] | None:
    """Two opposite inequalities that leave one value for a sum; raises if they leave none."""
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
    """Whether the shadow says all there is to say, also over the integers."""
    lowers, uppers = _bounds(system, name)
    if not lowers or not uppers:
        return True
    return all(terms[name] == -1 for terms, _ in lowers) or all(
        terms[name] == 1 for terms, _ in uppers
    )


def _cost(system: System, name: str) -> int:
    lowers, uppers = _bounds(system, name)
    return len(lowers) * len(uppers)
