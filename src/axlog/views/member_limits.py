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
from operator import itemgetter
from typing import Any, Generic, TypeVar

from axlog.evaluate.joins import Row
from axlog.future.garbage import Side
from axlog.views.part_members import Constants, PartMembers

G = TypeVar("G", bound=Hashable)
Deadline = Callable[[Row], "int | None"]

_constant: Callable[[tuple[int, Any]], int] = itemgetter(0)


class MemberLimits(Generic[G]):
    """Groups of members with equal constants, in the order of their deadlines for a row."""

    def __init__(self, members: PartMembers[G]) -> None:
        """`members`: the same groups by the constants of the part."""
        self._members = members
        self._at = 0  # the position of the time in a row
        self._ordered: dict[Any, list[tuple[int, G]]] = {}
        """By texts, groups in the order of what is added to the time."""
        self._others: dict[Any, dict[G, Deadline | None]] = {}
        """By texts, groups with more bounds, with their deadlines, or without any."""
        self._tests: dict[G, tuple[Callable[[Row], bool], int | Deadline | None]] = {}
        """Tests of groups that have numbers, too, with what is added to the time, or a deadline."""

    def add(self, group: G, constants: Constants, side: Side) -> None:
        """Add a group; `side`: the part with the durations of its members."""
        key, simple = self._members.key(constants), side.simple_bound
        deadline = side.deadline() if side.is_bounded and simple is None else None
        test = None if self._members.has_texts_only else self._members.test(constants)
        if test is not None:
            self._tests[group] = test, deadline if simple is None else simple[1]
        if simple is None:
            self._others.setdefault(key, {})[group] = deadline
            return
        self._at, constant = simple
        insort(self._ordered.setdefault(key, []), (constant, group), key=_constant)

    def remove(self, group: G, constants: Constants, side: Side) -> None:
        """Remove a group."""
        key, simple = self._members.key(constants), side.simple_bound
        self._tests.pop(group, None)
        if simple is None:
            del self._others[key][group]
            if not self._others[key]:
                del self._others[key]
            return
        ordered = self._ordered[key]
        at = bisect_left(ordered, simple[1], key=_constant)
        while ordered[at][1] is not group:
            at += 1
        del ordered[at]
        if not ordered:
            del self._ordered[key]

    def next(self, row: Row, after: float) -> float | None:
        """The first deadline of a member for a row that is after another one; None: none is."""
        key = self._members.key_of(row)
        if self._tests:
            few = self._members.find(row)
            if len(few) ** 2 <= len(self._ordered.get(key, ())):  # cheaper than to try in order
                limits = [self._limit(row, self._tests[group][1]) for group in few]
                return min((each for each in limits if after < each < inf), default=None)
        limit = min((limit for limit, _ in self._of_others(key, row, after)), default=inf)
        first = next(self._in_order(key, row, after), None)
        limit = limit if first is None else min(limit, first[0])
        return None if limit == inf else limit

    def between(self, row: Row, after: float, until: float = inf) -> list[G]:
        """The groups whose deadline for a row is after one, and not after the other.

        A group without a deadline has an infinite one.
        """
        key = self._members.key_of(row)
        groups = [group for limit, group in self._of_others(key, row, after) if limit <= until]
        for limit, group in self._in_order(key, row, after):
            if limit > until:
                break
            groups.append(group)
        return groups

    def _in_order(self, key: Any, row: Row, after: float) -> Iterator[tuple[float, G]]:
        """Yield the groups with a deadline after another one, in the order of their deadlines."""
        ordered = self._ordered.get(key)
        if ordered is None:
            return
        time: Any = row[self._at]
        for at in range(bisect_right(ordered, after - time, key=_constant), len(ordered)):
            constant, group = ordered[at]
            if self._concerns(row, group):
                yield time + constant, group

    def _of_others(self, key: Any, row: Row, after: float) -> Iterator[tuple[float, G]]:
        """Yield the other groups with a deadline after another one, or without any."""
        for group, deadline in self._others.get(key, {}).items():
            if self._concerns(row, group):
                limit = self._limit(row, deadline)
                if limit > after:
                    yield limit, group

    def _concerns(self, row: Row, group: G) -> bool:
        return not self._tests or self._tests[group][0](row)

    def _limit(self, row: Row, bound: int | Deadline | None) -> float:
        """The deadline of a row: an amount after its time, or computed."""
        if isinstance(bound, int):
            time: Any = row[self._at]
            return int(time) + bound
        limit = None if bound is None else bound(row)
        return inf if limit is None else limit
