"""The members of a family that rows of one part of a join wait for, by their deadlines.

    texts of the row        a hash index, as in the parameter index
    duration of a member    nearly always, its deadline is a time of the row plus a constant: these
                            members are kept in the order of the constant
    other members           they have no deadline, or one with several upper bounds is computed

So the next deadline of a row costs a binary search, and what ends costs the members that it
concerns, however many members have a duration of their own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterator
from math import inf
from typing import Any, Generic, TypeVar

from axlog.evaluate.joins import Row
from axlog.future.garbage import Side
from axlog.views.part_members import Constants, PartMembers

G = TypeVar("G", bound=Hashable)
Passes = Callable[[Row], bool]


class MemberLimits(Generic[G]):
    """Groups of members with equal constants, in the order of their deadlines for a row."""

    def __init__(self, members: PartMembers[G]) -> None:
        """`members`: the same groups by the constants of the part."""
        self._members = members
        self._by_texts: dict[Row, _Limits[G]] = {}

    def add(self, group: G, constants: Constants, side: Side) -> None:
        """Add a group; `side`: the part with the durations of its members."""
        passes = None if self._members.has_texts_only else self._members.test(constants)
        self._by_texts.setdefault(self._members.texts(constants), _Limits()).add(
            group, side, passes
        )

    def remove(self, group: G, constants: Constants, side: Side) -> None:
        """Remove a group."""
        texts = self._members.texts(constants)
        found = self._by_texts[texts]
        found.remove(group, side)
        if found.is_empty:
            del self._by_texts[texts]

    def next(self, row: Row, after: float) -> float | None:
        """The first deadline of a member for a row that is after another one; None: none is."""
        found = self._by_texts.get(self._members.texts_of(row))
        if found is None:
            return None
        if not found.has_deadlines:
            return None
        if found.is_tested:
            few = self._members.find(row)
            if len(few) ** 2 <= len(found):  # cheaper than to look for one that passes
                limits = (found.limit(group, row) for group in few)
                return min((each for each in limits if after < each < inf), default=None)
        limit = min((limit for limit, _ in found.others(row, after)), default=inf)
        first = next(found.ordered(row, after), None)
        limit = limit if first is None else min(limit, first[0])
        return None if limit == inf else limit

    def between(self, row: Row, after: float, until: float = inf) -> list[G]:
        """The groups whose deadline for a row is after one, and not after the other.

        A group without a deadline has an infinite one.
        """
        found = self._by_texts.get(self._members.texts_of(row))
        if found is None:
            return []
        groups = [group for limit, group in found.others(row, after) if limit <= until]
        if until == inf:
            groups += found.endless(row)
        for limit, group in found.ordered(row, after):
            if limit > until:
                break
            groups.append(group)
        return groups


class _Limits(Generic[G]):
    """The groups with the same texts."""

    __slots__ = ("_at", "_constants", "_deadlines", "_endless", "_groups", "_passes")

    def __init__(self) -> None:
        self._at = 0  # the position of the time in a row
        self._constants: list[int] = []  # that are added to it, in order
        self._groups: dict[int, dict[G, None]] = {}  # by these constants
        self._deadlines: dict[G, Callable[[Row], int | None]] = {}  # of groups with more bounds
        self._endless: dict[G, None] = {}  # groups without a deadline
        self._passes: dict[G, tuple[Passes, int | None]] = {}
        """Tests of numbers, if groups have such constants, with what is added to the time."""

    @property
    def is_empty(self) -> bool:
        """Whether no group is left."""
        return not self._groups and not self._deadlines and not self._endless

    @property
    def has_deadlines(self) -> bool:
        """Whether rows wait for some group until a deadline."""
        return bool(self._groups or self._deadlines)

    @property
    def is_tested(self) -> bool:
        """Whether rows concern the groups that a number of theirs passes."""
        return bool(self._passes)

    def __len__(self) -> int:
        return len(self._passes)

    def add(self, group: G, side: Side, passes: Passes | None) -> None:
        """Add a group."""
        simple = side.simple_bound
        if passes is not None:
            self._passes[group] = passes, None if simple is None else simple[1]
        if not side.is_bounded:
            self._endless[group] = None
            return
        if simple is None:
            self._deadlines[group] = side.deadline()
            return
        self._at, constant = simple
        if constant not in self._groups:
            insort(self._constants, constant)
        self._groups.setdefault(constant, {})[group] = None

    def remove(self, group: G, side: Side) -> None:
        """Remove a group."""
        simple = side.simple_bound
        self._passes.pop(group, None)
        if simple is None:
            del (self._deadlines if side.is_bounded else self._endless)[group]
            return
        constant = simple[1]
        del self._groups[constant][group]
        if not self._groups[constant]:
            del self._groups[constant], self._constants[bisect_left(self._constants, constant)]

    def limit(self, group: G, row: Row) -> float:
        """The deadline of a row for a tested group."""
        if group in self._endless:
            return inf
        constant = self._passes[group][1]
        return self._computed(group, row) if constant is None else self._time(row) + constant

    def ordered(self, row: Row, after: float) -> Iterator[tuple[float, G]]:
        """Yield the groups with a deadline after another one, in the order of their deadlines."""
        if not self._constants:
            return
        time, passes = self._time(row), self._passes
        for at in range(bisect_right(self._constants, after - time), len(self._constants)):
            constant = self._constants[at]
            for group in self._groups[constant]:
                if not passes or passes[group][0](row):
                    yield time + constant, group

    def others(self, row: Row, after: float) -> Iterator[tuple[float, G]]:
        """Yield the other groups with a deadline after another one."""
        for group in self._deadlines:
            if not self._passes or self._passes[group][0](row):
                limit = self._computed(group, row)
                if limit > after:
                    yield limit, group

    def endless(self, row: Row) -> Iterator[G]:
        """Yield the groups without a deadline."""
        for group in self._endless:
            if not self._passes or self._passes[group][0](row):
                yield group

    def _time(self, row: Row) -> int:
        time: Any = row[self._at]
        return int(time)

    def _computed(self, group: G, row: Row) -> float:
        limit = self._deadlines[group](row)
        return inf if limit is None else limit
