"""Which values the aggregates of a group can still reach, and whether a condition can come to hold.

For each aggregate there is an outer interval, which no future leaves, and an inner one, whose ends
some future reaches. A comparison with a constant that fails on the whole outer interval can never
hold; one that holds at an end of the inner interval can. Comparisons that stay true once they are
true (`count() >= 2`) can be met together, because the data of two futures can come together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from math import inf
from typing import Any

from axlog.future.generalized_rows import Brought
from axlog.future.group_growth import Capacity
from axlog.future.group_members import UNKNOWN, ZERO, Members, as_number
from axlog.query.pattern import Comparison, Number
from axlog.query.steps import Aggregate, Scalar
from axlog.query.syntax_tree import Binary, Constant, Reference
from axlog.query.values import compare_numbers, mirrored

INFINITY = Decimal("Infinity")
_UP, _DOWN = (">=", ">"), ("<=", "<")
_EXACT_TRIES = 64


class Reach(Enum):
    """Whether something can come to hold."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers between two ends; an end that is open does not belong to it."""

    low: Decimal = -INFINITY
    high: Decimal = INFINITY
    is_low_open: bool = False
    is_high_open: bool = False

    @classmethod
    def of(cls, comparisons: Sequence[Comparison]) -> Interval:
        """The numbers that pass some comparisons."""
        found = cls()
        for each in comparisons:
            if isinstance(each.operand, Number):
                found = found.narrowed(each.operator, each.operand.value)
        return found

    def has(self, value: Decimal) -> bool:
        """Whether a number belongs to it."""
        is_above = value > self.low or (value == self.low and not self.is_low_open)
        return is_above and (value < self.high or (value == self.high and not self.is_high_open))

    def narrowed(self, operator: str, bound: Decimal) -> Interval:
        low, high = self.low, self.high
        is_low_open, is_high_open = self.is_low_open, self.is_high_open
        if operator in (">", ">=", "=") and bound >= low:
            low, is_low_open = bound, operator == ">"
        if operator in ("<", "<=", "=") and bound <= high:
            high, is_high_open = bound, operator == "<"
        return Interval(low, high, is_low_open, is_high_open)


@dataclass(frozen=True, slots=True)
class Growth:
    """What one scenario can add to a group."""

    is_sure: bool  # whether its tuples surely belong to the group
    capacity: Capacity
    brought: Brought
    present: tuple[Any, ...]  # the nodes of its tuples that are there
    values: Mapping[str, Any]  # of the arguments of aggregates; UNKNOWN
    ranges: Mapping[str, Interval]  # of unknown arguments
    names: frozenset[str] = frozenset()  # unknown arguments that are names, not numbers

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(stream for _, stream in self.brought)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The values that an aggregate can reach: outer and inner ends."""

    now: Any
    least: Decimal
    most: Decimal
    sure_least: Decimal
    sure_most: Decimal
    is_growing: bool = True  # whether data that comes never lowers it


class GroupFuture:
    """The aggregates of one group, now and as they may become."""

    def __init__(
        self,
        aggregates: Sequence[Aggregate],
        members: Members,
        growths: Sequence[Growth],
        *,
        may_delete: bool,
        is_wild: bool,
        is_free: bool,
        limit: float = inf,
        single: frozenset[str] = frozenset(),
    ) -> None:
        """`may_delete`: whether a stream may delete tuples. `is_wild`: whether data that comes may
        remove some. `is_free`: whether all scenarios can come about together. `limit`:
        on the number of tuples. `single`: arguments with one value in the whole group.
        """
        self._aggregates = {each.name: each for each in aggregates}
        self._members, self._growths = members, growths
        self._may_delete, self._is_wild, self._is_free = may_delete, is_wild, is_free
        self._may_shrink, self._limit, self._single = may_delete or is_wild, limit, single
        self.count = self._count(None)

    # Bounds ---------------------------------------------------------------------------------------

    def _count(self, argument: str | None) -> Bounds:
        members = self._members
        now = members.count if argument is None else members.of[argument].present
        sure = [
            each.capacity.sure
            for each in self._growths
            if each.is_sure and (argument is None or _is_some(each, argument))
        ]
        reached = sum(sure) if self._is_free else max(sure, default=0)
        most = min(now + sum(each.capacity.most for each in self._growths), self._limit)
        least = 0 if self._may_shrink else now
        return _counted(now, least, most, now + reached, not self._is_wild)

    def _distinct(self, argument: str) -> Bounds:
        there = self._members.of[argument].values or set()
        known = there | {each.values[argument] for each in self._growths} - {UNKNOWN, None}
        most: float = len(known)
        sure: float = len(there)
        for each in self._growths:
            value = each.values[argument]
            is_new = value is UNKNOWN or (value is not None and value not in there)
            if is_new:
                most += each.capacity.most if value is UNKNOWN else 0
                if each.is_sure and _is_some(each, argument):
                    capacity = each.capacity
                    more = capacity.sure if value is UNKNOWN and capacity.may_differ else 1
                    if value is UNKNOWN and each.ranges.get(argument) != Interval():
                        more = 0  # the values that are left may be there already
                    sure = max(sure, len(there) + more)
        least = 0 if self._may_shrink else len(there)
        limit = 1 if argument in self._single else self._limit
        most, sure = min(most, limit), min(sure, limit)
        return _counted(len(there), least, most, sure, not self._is_wild)

    def _sum(self, argument: str) -> Bounds:
        there = self._members.of[argument]
        now = there.total
        least = most = sure_least = sure_most = now
        if self._may_shrink:
            least -= there.positive
            most -= there.negative
        for each in self._growths:
            found = _range(each, argument)
            if found is None:
                continue
            least += _times(each.capacity.most, min(found.low, ZERO))
            most += _times(each.capacity.most, max(found.high, ZERO))
            if each.is_sure and (each.values[argument] is not UNKNOWN or argument in each.ranges):
                sure = each.capacity.sure
                sure_most = max(sure_most, _reached(now, found.high, sure, found.is_high_open))
                low = _reached(-now, -found.low, sure, found.is_low_open)
                sure_least = min(sure_least, -low)
        is_growing = not self._is_wild and all(
            (one := _range(each, argument)) is None or one.low >= 0 for each in self._growths
        )
        return Bounds(now, least, most, sure_least, sure_most, is_growing)

    def _extreme(self, argument: str, function: str) -> Bounds | None:
        there = self._members.of[argument]
        if not there.is_numeric or self._may_shrink:
            return None
        now = there.most if function == "max" else there.least
        known = [each for each in (there.least, there.most) if each is not None]
        ends = [found for each in self._growths if (found := _range(each, argument)) is not None]
        if any(each.values[argument] is UNKNOWN and argument not in each.ranges
               for each in self._growths):  # fmt: skip
            return None
        sure = [found for each in self._growths
                if each.is_sure and (found := _range(each, argument)) is not None]  # fmt: skip
        if not known and not ends:
            return Bounds(None, INFINITY, -INFINITY, INFINITY, -INFINITY, function == "max")
        highs = [*known, *(each.high for each in ends)]
        lows = [*known, *(each.low for each in ends)]
        sure_highs = [*known, *(each.high for each in sure if not each.is_high_open)]
        sure_lows = [*known, *(each.low for each in sure if not each.is_low_open)]
        if function == "max":
            least = now if now is not None else min(lows)
            return Bounds(now, least, max(highs), INFINITY if now is None else now,
                          max(sure_highs, default=-INFINITY))  # fmt: skip
        most = now if now is not None else max(highs)
        return Bounds(now, min(lows), most, min(sure_lows, default=INFINITY),
                      -INFINITY if now is None else now, False)  # fmt: skip

    def _bounds(self, name: str) -> Bounds | None:
        """The bounds of an aggregate; None: none are known."""
        each = self._aggregates[name]
        if each.function == "count" and not each.is_distinct:
            return self._count(each.argument)
        assert each.argument is not None
        if each.function == "count":
            return self._distinct(each.argument)
        if each.function == "sum":
            return self._sum(each.argument)
        if each.function in ("min", "max"):
            return self._extreme(each.argument, each.function)
        return None

    # Conditions -----------------------------------------------------------------------------------

    def can_hold(self, conditions: Sequence[Scalar], *, needs_member: bool) -> Reach:
        """Whether all conditions can come to hold, of a group with a member if it needs one."""
        atoms: list[_Reached] = [self._reach(each) for each in conditions]
        if needs_member:
            atoms.append(self._compared(self.count, ">=", Decimal(1)))
        if any(each.reach is Reach.NO for each in atoms):
            return Reach.NO
        if self._is_out_by_count(conditions, needs_member):
            return Reach.NO
        if self._together(atoms):
            return Reach.YES
        if any(self._alone(growth, conditions, needs_member) for growth in self._growths):
            return Reach.YES
        return Reach.UNSURE

    def _alone(self, growth: Growth, conditions: Sequence[Scalar], needs_member: bool) -> bool:
        """Whether data of one scenario is enough."""
        if not growth.is_sure or self._is_wild:
            return False
        if not self._is_free:
            alone = GroupFuture(
                list(self._aggregates.values()), self._members, [growth],
                may_delete=self._may_delete, is_wild=False, is_free=True, single=self._single,
            )  # fmt: skip
            atoms = [alone._reach(each) for each in conditions]
            if needs_member:
                atoms.append(alone._compared(alone.count, ">=", Decimal(1)))
            if alone._together(atoms):
                return True
        if any(
            other.streams <= growth.streams
            and (other.brought, other.present) != (growth.brought, growth.present)
            for other in self._growths
        ):
            return False  # its data may bring other tuples too
        return any(
            all(holds(each, state) is True for each in conditions)
            for state in self._states(growth, conditions)
        )

    def _states(
        self, growth: Growth, conditions: Sequence[Scalar]
    ) -> Iterator[Mapping[str, Decimal | None]]:
        """Aggregates after tuples of one scenario have come one by one, with values to choose."""
        constants = sorted({bound for each in conditions for bound in constants_of(each)})
        for more in range(1, int(min(growth.capacity.singles, _EXACT_TRIES)) + 1):
            for chosen in self._choices(growth, constants, more):
                yield {
                    name: found
                    for name, each in self._aggregates.items()
                    if (found := self._members.value_with(each, chosen, more)) is not UNKNOWN
                }

    def _choices(
        self, growth: Growth, constants: Sequence[Decimal], more: int
    ) -> Iterator[Mapping[str, Any]]:
        """Values for the arguments of a tuple: the known ones, and numbers near the constants."""
        unknown = [name for name, value in growth.values.items() if value is UNKNOWN]
        if not unknown:
            yield growth.values
            return
        if len(unknown) > 1 or unknown[0] not in growth.ranges:
            return
        (name,) = unknown
        total = self._members.of[name].total
        near = [each + step for each in (ZERO, *constants) for step in (-1, 0, 1)]
        near += [(each - total + step) / more for each in constants for step in (-1, 0, 1)]
        for each in near:
            if growth.ranges[name].has(each):
                yield {**growth.values, name: each}

    def _is_out_by_count(self, conditions: Sequence[Scalar], needs_member: bool) -> bool:
        """Whether no number of tuples that can be there satisfies the conditions on it."""
        counts = [name for name, each in self._aggregates.items()
                  if each.function == "count" and each.argument is None]  # fmt: skip
        bounds = self.count
        least = max(bounds.least, Decimal(1)) if needs_member else bounds.least
        if not counts or least > bounds.most:
            return False
        constants = {bound for each in conditions for bound in constants_of(each)}
        near = {each.to_integral_value() + step for each in constants for step in (-1, 0, 1)}
        near |= {least, max(near, default=least) + 1, bounds.most}
        tried = {each for each in near if least <= each <= bounds.most and each != INFINITY}
        return not any(
            all(holds(each, dict.fromkeys(counts, number)) is not False for each in conditions)
            for number in tried
        )

    def _together(self, atoms: Sequence[_Reached]) -> bool:
        """Whether comparisons, each of which can hold, can hold at one time."""
        if any(each.reach is not Reach.YES for each in atoms):
            return False
        later = [each for each in atoms if not each.holds]
        if any(each.holds and not each.is_up for each in atoms):
            return False  # it may fail by what makes the others hold
        return len(later) <= 1 or (self._is_free and all(each.is_up for each in later))

    def _reach(self, condition: Scalar) -> _Reached:
        if isinstance(condition, Binary) and condition.operator in ("and", "or"):
            parts = [self._reach(each) for each in (condition.left, condition.right)]
            is_up = all(each.is_up for each in parts)
            if condition.operator == "and":
                holds = all(each.holds for each in parts)
                if any(each.reach is Reach.NO for each in parts):
                    return _Reached(Reach.NO, False, is_up)
                reach = Reach.YES if self._together(parts) or holds else Reach.UNSURE
                return _Reached(reach, holds, is_up)
            holds = any(each.holds for each in parts)
            if all(each.reach is Reach.NO for each in parts):
                return _Reached(Reach.NO, False, is_up)
            is_reached = any(each.reach is Reach.YES for each in parts)
            return _Reached(Reach.YES if is_reached else Reach.UNSURE, holds, is_up)
        atom = atom_of(condition)
        if atom is None or atom[0] not in self._aggregates:
            return _Reached(Reach.UNSURE, False, False)
        name, operator, bound = atom
        bounds = self._bounds(name)
        if bounds is None:
            is_over = not self._growths and not self._may_shrink
            return _Reached(Reach.NO if is_over else Reach.UNSURE, False, False)
        return self._compared(bounds, operator, bound)

    def _compared(self, bounds: Bounds, operator: str, bound: Decimal) -> _Reached:
        """Whether an aggregate can come to pass a comparison with a constant."""
        now = bounds.now
        holds = now is not None and compare_numbers(now, operator, bound)
        if operator in _UP:
            is_out = not compare_numbers(bounds.most, operator, bound)
            is_in = compare_numbers(bounds.sure_most, operator, bound)
            is_up = bounds.is_growing
        elif operator in _DOWN:
            is_out = not compare_numbers(bounds.least, operator, bound)
            is_in = compare_numbers(bounds.sure_least, operator, bound)
            is_up = False
        elif operator == "=":
            is_out = bound < bounds.least or bound > bounds.most
            is_in, is_up = False, False
        else:
            is_out = bounds.least == bounds.most == bound
            is_in = bounds.sure_most > bound or bounds.sure_least < bound
            is_up = False
        if holds and not is_out:
            return _Reached(Reach.YES, True, is_up)
        if is_out:
            return _Reached(Reach.NO, False, is_up)
        return _Reached(Reach.YES if is_in else Reach.UNSURE, False, is_up)


@dataclass(frozen=True, slots=True)
class _Reached:
    """Whether a condition can come to hold, holds now, and stays once it holds."""

    reach: Reach
    holds: bool
    is_up: bool


def atom_of(condition: Scalar) -> tuple[str, str, Decimal] | None:
    """The aggregate, the operator and the number of a comparison; None for other conditions."""
    if not isinstance(condition, Binary) or condition.operator not in (*_UP, *_DOWN, "=", "!="):
        return None
    left: Scalar = condition.left
    right: Scalar = condition.right
    operator = condition.operator
    if isinstance(right, Reference):
        left, operator, right = right, mirrored(operator), left
    if not isinstance(left, Reference) or not isinstance(right, Constant):
        return None
    bound = as_number(right.typed)
    return None if bound is None else (left.name, operator, bound)


def atoms_of(condition: Scalar) -> Iterator[Scalar]:
    """The comparisons that a condition joins by `and` and `or`."""
    if isinstance(condition, Binary) and condition.operator in ("and", "or"):
        yield from atoms_of(condition.left)
        yield from atoms_of(condition.right)
        return
    yield condition


def constants_of(condition: Scalar) -> Iterator[Decimal]:
    """The numbers that a condition compares aggregates with."""
    for each in atoms_of(condition):
        atom = atom_of(each)
        if atom is not None:
            yield atom[2]


def holds(condition: Scalar, state: Mapping[str, Decimal | None]) -> bool | None:
    """Whether a condition holds of some aggregates; None: it depends on others."""
    if isinstance(condition, Binary) and condition.operator in ("and", "or"):
        parts = [holds(each, state) for each in (condition.left, condition.right)]
        is_and = condition.operator == "and"
        if (not is_and) in parts:
            return not is_and
        return None if None in parts else is_and
    atom = atom_of(condition)
    if atom is None or atom[0] not in state:
        return None
    value = state[atom[0]]
    return value is not None and compare_numbers(value, atom[1], atom[2])


def _is_some(growth: Growth, argument: str) -> bool:
    """Whether a tuple of a scenario surely has a value for an argument."""
    value = growth.values[argument]
    return value is not None if value is not UNKNOWN else argument in growth.ranges


def _range(growth: Growth, argument: str) -> Interval | None:
    """The numbers that an argument may have; None: it has none."""
    value = growth.values[argument]
    if value is UNKNOWN:
        if argument in growth.names:
            return None
        return growth.ranges.get(argument, Interval())
    found = as_number(value)
    return None if found is None else Interval(found, found)


def _counted(now: int, least: int, most: float, sure: float, is_growing: bool) -> Bounds:
    ends = [INFINITY if each == inf else Decimal(int(each)) for each in (most, sure)]
    return Bounds(now, Decimal(least), ends[0], Decimal(now), ends[1], is_growing)


def _times(factor: float, value: Decimal) -> Decimal:
    if not value or not factor:
        return ZERO
    return value * (INFINITY if factor == inf else Decimal(int(factor)))


def _reached(now: Decimal, high: Decimal, times: float, is_open: bool) -> Decimal:
    """The largest sum that is surely reached by tuples with values up to `high`."""
    if high <= 0:
        return now
    if high == INFINITY or times == inf:
        return INFINITY
    return now if is_open else now + int(times) * high
