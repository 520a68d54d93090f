"""The members of groups: those that are there, summed up, and those to come, by their groups.

A group is asked about again as data arrives. Its members that are there are therefore kept as sums
(`Members`), and its scenarios are found by the key of the group (`MembersByGroup`): by the part of
the key that they know, since UNKNOWN agrees with every value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any, Generic, Protocol, TypeVar

from axlog.errors import ValueProblem
from axlog.evaluate.native_values import number
from axlog.query.steps import Aggregate

UNKNOWN = object()
"""A value that data to come decides."""
ZERO = Decimal(0)
_EXACT = Context(prec=5000)

Key = tuple[Any, ...]
_At = tuple[int, ...]


def as_number(value: Any) -> Decimal | None:
    """A value as a number; None if it is none."""
    if value is None:
        return None
    try:
        return number(value)
    except ValueProblem:
        return None


@dataclass(slots=True)
class Argument:
    """The values that the members of a group have for one argument of an aggregate."""

    values: set[Any] | None = None  # the distinct ones, where an aggregate counts these
    present: int = 0  # how many members have one
    numbers: int = 0  # how many of these are numbers
    positive: Decimal = ZERO  # the sum of the numbers above zero
    negative: Decimal = ZERO  # that of the numbers below
    least: Decimal | None = None
    most: Decimal | None = None

    @property
    def total(self) -> Decimal:
        return _EXACT.add(self.positive, self.negative)

    @property
    def is_numeric(self) -> bool:
        """Whether all values are numbers."""
        return self.numbers == self.present

    def add(self, value: Any) -> None:
        if value is None:
            return
        self.present += 1
        if self.values is not None:
            self.values.add(value)
        found = as_number(value)
        if found is None:
            return
        self.numbers += 1
        if found > 0:
            self.positive = _EXACT.add(self.positive, found)
        else:
            self.negative = _EXACT.add(self.negative, found)
        self.least = found if self.least is None else min(self.least, found)
        self.most = found if self.most is None else max(self.most, found)


class Members:
    """The members of one group that are there, as far as its aggregates read them."""

    def __init__(self, aggregates: Iterable[Aggregate]) -> None:
        self.count = 0
        self.of: dict[str, Argument] = {}
        for each in aggregates:
            if each.argument is None:
                continue
            found = self.of.setdefault(each.argument, Argument())
            if each.is_distinct and found.values is None:
                found.values = set()

    def add(self, values: Mapping[str, Any]) -> None:
        self.count += 1
        for name, argument in self.of.items():
            argument.add(values[name])

    def value_with(self, aggregate: Aggregate, chosen: Mapping[str, Any], more: int) -> Any:
        """The value of an aggregate after some equal members more, as a number.

        None: it has none. UNKNOWN: it is not one of numbers.
        """
        if aggregate.argument is None:
            return Decimal(self.count + more)
        there, value = self.of[aggregate.argument], chosen.get(aggregate.argument)
        more = 0 if value is None else more
        found = as_number(value) if more else None
        match aggregate.function:
            case "count":
                if not aggregate.is_distinct:
                    return Decimal(there.present + more)
                every = {*(there.values or ()), *([value] if more else [])}
                return Decimal(len({(as_number(each), str(each)) for each in every}))
            case "sum":
                return there.total if found is None else there.total + found * more
            case "min" | "max" if there.is_numeric and (found is not None or not more):
                is_max = aggregate.function == "max"
                ends = [e for e in (there.most if is_max else there.least, found) if e is not None]
                return (max(ends) if is_max else min(ends)) if ends else None
        return UNKNOWN


class InGroup(Protocol):
    """A member to come."""

    @property
    def key(self) -> Key: ...


M = TypeVar("M", bound=InGroup)


@dataclass(slots=True)
class MembersByGroup(Generic[M]):
    """The members of all groups."""

    aggregates: Collection[Aggregate]
    _there: dict[Key, Members] = field(default_factory=dict)
    _coming: dict[_At, dict[Key, dict[int, M]]] = field(default_factory=dict)
    """Members to come by the places of the key that they know, and the values there."""

    def add(self, key: Key, values: Mapping[str, Any]) -> None:
        """Add a member that is there."""
        found = self._there.get(key)
        if found is None:
            found = self._there[key] = Members(self.aggregates)
        found.add(values)

    def there(self, key: Key) -> Members:
        """The members of a group that are there."""
        found = self._there.get(key)
        return Members(self.aggregates) if found is None else found

    def add_coming(self, member: M) -> None:
        at = known_at(member.key)
        groups = self._coming.setdefault(at, {})
        groups.setdefault(_part(member.key, at), {})[id(member)] = member

    def remove_coming(self, member: M) -> None:
        at = known_at(member.key)
        part = _part(member.key, at)
        members = self._coming[at][part]
        del members[id(member)]
        if not members:
            del self._coming[at][part]

    def coming(self, key: Key) -> Iterator[M]:
        """The members to come that a group may get, those that know its key first."""
        known = set(known_at(key))
        for at in sorted(self._coming, key=len, reverse=True):
            if known.issuperset(at):
                yield from self._coming[at].get(_part(key, at), {}).values()

    def has(self, key: Key) -> bool:
        """Whether a group has members, or some to come with just this key."""
        at = known_at(key)
        return key in self._there or _part(key, at) in self._coming.get(at, ())

    def keys(self) -> Iterator[Key]:
        """The keys of the groups that have members, or may get some."""
        yield from self._there
        for at, groups in self._coming.items():
            for part, members in groups.items():
                key = next(iter(members.values())).key
                if len(at) < len(key) or part not in self._there:
                    yield key


def known_at(key: Key) -> _At:
    """The places of a key that are known."""
    return tuple(at for at, value in enumerate(key) if value is not UNKNOWN)


def _part(key: Key, at: _At) -> Key:
    return tuple(key[i] for i in at)
