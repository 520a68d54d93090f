"""Times that tell all cases of linear constraints apart, for constraints with any coefficients.

Constraints over several times are true or false in regions that hyperplanes separate: one for each
constraint, and one for each known time that a node may have. Seen from one time, with the others
chosen best, the verdict changes where such hyperplanes meet. These places are found by eliminating
the other times (Fourier and Motzkin). Between two of them the verdict over the integers repeats
with a period, the least common multiple of the coefficients (Cooper 1972). So the times around each
place, up to a period on both sides, show every verdict that there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd, lcm

from axlog.errors import UndecidedError

MOST_PLANES = 3_000
MOST_PERIOD = 2_000

Plane = tuple[tuple[tuple[str, int], ...], int]
"""A sum of times with coefficients, sorted, and the number that it equals."""


def turning_times(
    planes: Iterable[tuple[Mapping[str, int], int]], known: Iterable[int], name: str
) -> set[int]:
    """The times of one name around which the verdict of constraints may change.

    `planes`: each constraint as coefficients and bound. `known`: the times that nodes may have.
    """
    given = {_plane(terms, bound) for terms, bound in planes if any(terms.values())}
    anchors = sorted(set(known))
    period = 1
    while others := sorted({each for terms, _ in given for each, _ in terms} - {name}):
        one = min(others, key=lambda each: sum(each in dict(terms) for terms, _ in given))
        factors = [dict(terms)[one] for terms, _ in given if one in dict(terms)]
        period = lcm(period, *map(abs, factors))
        given = _without(given, one, anchors)
        if len(given) > MOST_PLANES or period > MOST_PERIOD:
            raise UndecidedError(
                "AX502",
                "a query with `not` has too many times to try",
                advice="use smaller coefficients, or fewer times in one constraint",
            )
    factors = [abs(terms[0][1]) for terms, _ in given if terms]
    period = lcm(period, *factors)
    found = set(anchors)
    found |= {bound // terms[0][1] for terms, bound in given if terms}
    around = range(-period - 1, period + 2)
    return {time + step for time in found for step in around}


def _without(planes: set[Plane], name: str, anchors: list[int]) -> set[Plane]:
    """The hyperplanes in which others meet that contain a time, without this time."""
    found = {plane for plane in planes if all(each != name for each, _ in plane[0])}
    mine = [(dict(terms), bound) for terms, bound in planes if any(n == name for n, _ in terms)]
    for at, (terms, bound) in enumerate(mine):
        rest = {n: factor for n, factor in terms.items() if n != name}
        if rest:
            found |= {_plane(rest, bound - terms[name] * time) for time in anchors}
        for others, other in mine[:at]:
            by, against = others[name], terms[name]
            both = {
                n: terms.get(n, 0) * by - others.get(n, 0) * against
                for n in {*terms, *others} - {name}
            }
            if any(both.values()):
                found.add(_plane(both, bound * by - other * against))
    return found


def _plane(terms: Mapping[str, int], bound: int) -> Plane:
    kept = sorted((name, factor) for name, factor in terms.items() if factor)
    common = gcd(bound, *(factor for _, factor in kept))
    sign = -1 if kept[0][1] < 0 else 1
    return tuple((n, sign * factor // common) for n, factor in kept), sign * bound // common
