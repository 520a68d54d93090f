"""The index of a parameter table: the members of a family that a row of its plan concerns.

    texts that must be equal   a hash index over all of them together
    <, <=, >, >=, = of others  an ordered index over the constants of the first of them
    all further comparisons    a test of each member that is left: `!=`, formulas

So a row costs one look-up, a binary search if constants are ordered, and the members that it finds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any, Generic, TypeVar

from axlog.evaluate.joins import Row
from axlog.evaluate.value_tests import comparison
from axlog.query.compile import Column
from axlog.query.generalize import (
    AnyParameter,
    Duration,
    Parameter,
    ParameterValue,
    StepParameter,
)
from axlog.query.pattern import Moment, Number
from axlog.query.values import READ, ValueKind, double_of, key_of, parted

M = TypeVar("M")
Place = tuple[Any, ...]
"""The place of a value in the order of a comparison: its kind, and its key in this kind."""
Tests = tuple[Callable[[Any], bool], ...]
Constants = Sequence[ParameterValue | None]
_ANYWHERE: Place = (0,)
"""The place of all members, and of all rows, if no constant is ordered."""


class ParameterIndex(Generic[M]):
    """Members by their constants. `columns`: those of the rows, which hold the values."""

    def __init__(self, parameters: Sequence[AnyParameter], columns: Sequence[Column]) -> None:
        texts = [
            (number, columns.index(f"${each.variable}"))
            for number, each in enumerate(parameters)
            if isinstance(each, Parameter) and each.is_text
        ]
        self._texts = [n for n, _ in texts]  # the numbers of the constants
        self._text_at = [at for _, at in texts]  # the positions of the values
        others = [
            (n, each)
            for n, each in enumerate(parameters)
            if not each.is_text and not isinstance(each, StepParameter)
        ]
        others.sort(key=lambda one: not _has_order(one[1]))
        self._only_text = self._text_at[0] if len(texts) == 1 and not others else None
        self._others = [(n, each, _value_of(each, columns)) for n, each in others]
        self._is_ordered = bool(others) and _has_order(others[0][1])
        self._read = _reader(others[0][1]) if self._is_ordered else None
        self._symbol = _symbol(others[0][1]) if self._is_ordered else "="
        self._values = [value for _, _, value in self._others]
        self._rest = self._values[self._is_ordered :]
        self._by_text: dict[Any, dict[M, None] | OrderedMembers[M]] = {}

    def _key(self, values: Sequence[Any], at: Sequence[int]) -> Any:
        if len(at) == 1:
            return values[at[0]]
        return tuple([values[i] for i in at]) if at else ()

    def text_key(self, row: Row) -> Any:
        """The texts of a row that members are looked up by."""
        return self._key(row, self._text_at)

    def member_key(self, constants: Constants) -> Any:
        """The texts of a member."""
        return self._key(constants, self._texts)

    def add(self, member: M, constants: Sequence[ParameterValue]) -> None:
        """Insert a row of the parameter table."""
        key = self.member_key(constants)
        found = self._by_text.get(key)
        if not self._others:
            if not isinstance(found, dict):
                found = self._by_text[key] = {}
            found[member] = None
            return
        if not isinstance(found, OrderedMembers):
            found = self._by_text[key] = OrderedMembers(self._symbol)
        found.add(member, self._place(constants), self._tests(constants))

    def remove(self, member: M, constants: Sequence[ParameterValue]) -> None:
        """Delete a row of the parameter table."""
        key = self.member_key(constants)
        found = self._by_text[key]
        if isinstance(found, dict):
            del found[member]
        else:
            found.remove(member, self._place(constants))
        if not found:
            del self._by_text[key]

    def _place(self, constants: Sequence[ParameterValue]) -> Place | None:
        number, parameter, _ = self._others[0]
        if not self._is_ordered:
            return _ANYWHERE
        return _place_of(parameter, constants[number])

    def _tests(self, constants: Sequence[ParameterValue]) -> Tests:
        tested = self._others[self._is_ordered :]
        return tuple(_test(parameter, constants[n]) for n, parameter, _ in tested)

    def find(self, row: Row) -> Sequence[M]:
        """The members that a row concerns."""
        if self._only_text is not None:
            one = self._by_text.get(row[self._only_text])
            return () if one is None else list(one)  # type: ignore[arg-type]
        found = self._by_text.get(self.text_key(row) if self._text_at else ())
        if found is None:
            return ()
        if type(found) is dict:
            return list(found)
        assert isinstance(found, OrderedMembers)
        place = _ANYWHERE if self._read is None else self._read(self._values[0](row))
        rest = [value(row) for value in self._rest] if self._rest else ()
        return found.find(place, rest)

    def passes(self, constants: Sequence[ParameterValue], row: Row) -> bool:
        """Whether a row concerns a member with these constants and the same texts."""
        return all(
            _test(parameter, constants[n])(value(row)) for n, parameter, value in self._others
        )


class OrderedMembers(Generic[M]):
    """Members in the order of one constant, with the tests for their other constants."""

    __slots__ = ("_members", "_places", "_silent", "_symbol")

    def __init__(self, symbol: str) -> None:
        self._symbol = symbol
        self._places: list[Place] = []
        self._members: list[tuple[M, Tests]] = []
        self._silent: dict[M, None] = {}  # no value passes their comparison

    def __bool__(self) -> bool:
        return bool(self._members or self._silent)

    def add(self, member: M, place: Place | None, tests: Tests) -> None:
        if place is None:
            self._silent[member] = None
            return
        at = bisect_right(self._places, place)
        self._places.insert(at, place)
        self._members.insert(at, (member, tests))

    def remove(self, member: M, place: Place | None) -> None:
        if place is None:
            del self._silent[member]
            return
        at = bisect_left(self._places, place)
        while self._members[at][0] is not member:
            at += 1
        del self._places[at], self._members[at]

    def find(self, place: Place | None, rest: Sequence[Any]) -> list[M]:
        """The members whose constants a value passes, given its place and the other values."""
        start, stop = self._span(place)
        found = self._members[start:stop]
        if not rest:
            return [member for member, _ in found]
        return [
            member
            for member, tests in found
            if all(test(value) for test, value in zip(tests, rest, strict=True))
        ]

    def _span(self, place: Place | None) -> tuple[int, int]:
        places, symbol = self._places, self._symbol
        if place is None:
            return 0, 0
        match symbol:  # the value stands on the left: `value > constant`, both of one kind
            case ">":
                stop = bisect_left(places, place)
                return bisect_left(places, place[:1], 0, stop), stop
            case ">=":
                stop = bisect_right(places, place)
                return bisect_left(places, place[:1], 0, stop), stop
            case "<":
                start = bisect_right(places, place)
                return start, bisect_left(places, (place[0] + 1,), start)
            case "<=":
                start = bisect_left(places, place)
                return start, bisect_left(places, (place[0] + 1,), start)
        return bisect_left(places, place), bisect_right(places, place)


def _has_order(parameter: AnyParameter) -> bool:
    """Whether the constants that a value passes are a span of all constants in their order."""
    if isinstance(parameter, Duration):
        return True
    if not isinstance(parameter, Parameter) or parameter.type == "Formula":
        return False
    return parted(parameter.operator)[0] != "!="


def _symbol(parameter: AnyParameter) -> str:
    assert not isinstance(parameter, StepParameter)
    return parted(parameter.operator)[0]


def _value_of(parameter: AnyParameter, columns: Sequence[Column]) -> Callable[[Row], Any]:
    """A function from a row to the value that a constant is compared with."""
    if isinstance(parameter, Parameter):
        position = columns.index(f"${parameter.variable}")
        return lambda row: str(row[position])
    assert isinstance(parameter, Duration)
    terms = [(factor, columns.index(f"{name}.time")) for factor, name in parameter.terms]
    (first, one), *more = terms
    if not more:
        return lambda row: row[one]
    ((second, other),) = more
    return lambda row: first * row[one] + second * row[other]  # type: ignore[operator]  # times


def _test(parameter: AnyParameter, constant: ParameterValue) -> Callable[[Any], bool]:
    """Whether a value passes the comparison with a constant."""
    if isinstance(parameter, Duration):
        is_low = parameter.operator == ">="
        return lambda value: value >= constant if is_low else value <= constant
    assert isinstance(parameter, Parameter)
    assert not isinstance(constant, int)
    return comparison(parameter.operator, constant)


def _reader(parameter: AnyParameter) -> Callable[[Any], Place | None]:
    """A function from a value to its place; None: it has none, and passes no comparison."""
    if isinstance(parameter, Duration):
        return lambda value: (0, value)
    assert isinstance(parameter, Parameter)
    _, type_ = parted(parameter.operator)
    if parameter.type == "float" or type_ == "xs:double":
        return _double
    if type_ is not None:
        return lambda text: _typed(READ[type_], text)
    return key_of


def _place_of(parameter: AnyParameter, constant: ParameterValue) -> Place | None:
    if isinstance(constant, int):
        return 0, constant
    if isinstance(constant, float):
        return None if isnan(constant) else (0, constant)
    if isinstance(constant, Number):
        return ValueKind.NUMBER, constant.value
    if isinstance(constant, Moment):
        return ValueKind.MOMENT, constant.microseconds
    return _reader(parameter)(str(constant))


def _double(text: str) -> Place | None:
    value = double_of(text)
    return None if isnan(value) else (0, value)


def _typed(read: Callable[[str], Any], text: str) -> Place | None:
    value = read(text)
    return None if value is None else (0, value)
