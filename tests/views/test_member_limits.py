"""Deadlines of members: those found in order are those of each member."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import inf
from random import Random

import pytest

from axlog.future.garbage import Bound, Side, Window
from axlog.query.generalize import Parameter
from axlog.query.pattern import Number
from axlog.views.member_limits import MemberLimits
from axlog.views.part_members import Constants, PartMembers

COLUMNS = ("$k", "$n", "t.time", "s.time")
PARAMETERS = (
    Parameter("k", "=", "str"),
    Parameter("n", ">", "Number"),
)


def side_of(highs: list[int]) -> Side:
    """The side of a member: two bounds are over different times."""
    bounds = tuple(Bound(((1, 2 + number),), high) for number, high in enumerate(highs))
    windows = (Window("u.time", (), bounds),) if bounds else ()
    return Side(COLUMNS, (), None, windows, (2, 3))


def constants_of(random: Random) -> Constants:
    return random.choice("ab"), Number(Decimal(random.randint(0, 3)))


@pytest.mark.parametrize("seed", range(40))
def test_deadlines_are_those_of_each_member(seed: int) -> None:
    random = Random(seed)
    parameters = PARAMETERS[: random.randint(0, 2)]
    members: PartMembers[str] = PartMembers(parameters, COLUMNS)
    limits: MemberLimits[str] = MemberLimits(members)
    known: dict[str, tuple[Constants, Side]] = {}
    bounds = random.choice(([1], [1], [0, 1, 1, 2]))
    for step in range(60):
        if known and random.random() < 0.2:
            name = random.choice(list(known))
            constants, side = known.pop(name)
            members.remove(name, constants)
            limits.remove(name, constants, side)
        else:
            name, constants = f"v{step}", constants_of(random)[: len(parameters)]
            side = side_of([random.randint(0, 9) for _ in range(random.choice(bounds))])
            known[name] = constants, side
            members.add(name, constants)
            limits.add(name, constants, side)
        row = random.choice("ab"), str(random.randint(0, 4)), random.randint(0, 5), 3
        after = random.choice((-inf, 2, 6))
        until = random.choice((after + 1, after + 3, inf))

        def limit(deadline: Callable[..., int | None], row: tuple[object, ...] = row) -> float:
            found = deadline(row)
            return inf if found is None else found

        concerned = set(members.find(row))
        each = {name: limit(known[name][1].deadline()) for name in concerned}
        later = [found for found in each.values() if after < found < inf]
        assert limits.next(row, after) == min(later, default=None)
        within = {name for name, found in each.items() if after < found <= until}
        assert set(limits.between(row, after, until)) == within
