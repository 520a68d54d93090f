"""Tests of strings for many patterns at once: by hashing, by sorting, then one by one.

At one place of the automaton: the numbers of needs, by the string that an element must have there.
Equality with a string is one lookup, whatever the number of patterns. Comparisons with numbers are
sorted and found by bisection. Every other test is made once for all patterns that share it.

Law: an index finds the needs whose tests the string passes one by one (`query/values.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, cast

from axlog.document.parser import Element
from axlog.evaluate.value_tests import comparison
from axlog.match.linear_paths import Watch
from axlog.match.message_values import short_value, texts, value
from axlog.query.pattern import Comparison, Number, Variable
from axlog.query.values import ORDERS, double_of, number_of

Found = set[int]
Threshold = tuple[bool, str]
"""Whether values are read as doubles, or exactly as native numbers; and the operator."""


class StringIndex:
    """Needs, indexed by their tests of a string."""

    __slots__ = ("always", "equal", "known", "others", "thresholds")

    def __init__(self) -> None:
        self.known: dict[str, Found] = {}  # by string, the needs that `_compared` found
        self.always: set[int] = set()
        self.equal: dict[str, set[int]] = {}
        self.thresholds: dict[Threshold, list[tuple[Any, int]]] = {}  # sorted
        self.others: dict[tuple[Comparison, ...], tuple[Callable[[str], bool], set[int]]] = {}

    def __bool__(self) -> bool:
        return bool(self.always or self.equal or self.thresholds or self.others)

    def size(self) -> int:
        """The number of entries to copy."""
        sets = [self.always, *self.equal.values(), *(needs for _, needs in self.others.values())]
        return sum(map(len, sets)) + sum(map(len, self.thresholds.values()))

    def longest(self) -> int | None:
        """The greatest length of a string that meets a need; None if there is no bound."""
        if self.always or self.thresholds or self.others:
            return None
        return max(map(len, self.equal), default=0)

    def update(self, other: StringIndex) -> None:
        """Add all needs of another."""
        self.known.clear()
        self.always |= other.always
        for text, needs in other.equal.items():
            self.equal[text] = self.equal.get(text, set()) | needs
        for operator, pairs in other.thresholds.items():
            self.thresholds[operator] = sorted(self.thresholds.get(operator, []) + pairs)
        for tests, (holds, needs) in other.others.items():
            known = self.others.get(tests, (holds, set()))[1]
            self.others[tests] = (holds, known | needs)

    def add(self, tests: tuple[Comparison, ...], need: int) -> None:
        self.known.clear()
        if not tests:
            self.always.add(need)
            return
        (first, *more) = tests
        if not more and first.operator == "=" and isinstance(first.operand, str):
            self.equal.setdefault(first.operand, set()).add(need)
        elif not more and first.operator in ORDERS and isinstance(first.operand, float | Number):
            threshold, bound = _threshold(first)
            insort(self.thresholds.setdefault(threshold, []), (bound, need))
        else:
            self.others.setdefault(tests, (_all(tests), set()))[1].add(need)

    def remove(self, tests: tuple[Comparison, ...], need: int) -> None:
        """Remove a need that was added with these tests."""
        self.known.clear()
        if not tests:
            self.always.discard(need)
            return
        first = tests[0]
        if tests in self.others:
            self.others[tests][1].discard(need)
            if not self.others[tests][1]:
                del self.others[tests]
        elif isinstance(first.operand, str):
            self.equal[first.operand].discard(need)
            if not self.equal[first.operand]:
                del self.equal[first.operand]
        else:
            threshold, _ = _threshold(first)
            kept = [pair for pair in self.thresholds[threshold] if pair[1] != need]
            self.thresholds[threshold] = kept
            if not kept:
                del self.thresholds[threshold]

    def find(self, text: str, found: Found) -> None:
        """Add the needs that a string meets."""
        if self.always:
            found |= self.always
        if self.equal:
            equal = self.equal.get(text)
            if equal is not None:
                found |= equal
        if self.thresholds or self.others:
            known = self.known.get(text)
            found |= self._compared(text) if known is None else known

    def _compared(self, text: str) -> Found:
        """The needs with other tests than equality that a string meets; some are kept."""
        found: Found = set()
        if self.thresholds:
            self._find_thresholds(text, found)
        for holds, needs in self.others.values():
            if holds(text):
                found |= needs
        if len(text) <= _LONGEST_KNOWN and len(found) <= _MOST_NEEDS:
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            self.known[text] = found
        return found

    def _find_thresholds(self, text: str, found: Found) -> None:
        read: dict[bool, Any] = {}
        for (is_double, operator), pairs in self.thresholds.items():
            if is_double not in read:
                read[is_double] = _double_of(text) if is_double else number_of(text)
            given = read[is_double]
            if given is None or given != given:  # not a number: no ordering holds
                continue
            if operator == "<":
                passed = pairs[bisect_right(pairs, (given, _LAST)) :]
            elif operator == "<=":
                passed = pairs[bisect_left(pairs, (given, -1)) :]
            elif operator == ">":
                passed = pairs[: bisect_left(pairs, (given, -1))]
            else:
                passed = pairs[: bisect_right(pairs, (given, _LAST))]
            found.update([need for _, need in passed])


_LAST = 1 << 62
_MOST_KNOWN, _LONGEST_KNOWN, _MOST_NEEDS = 64, 64, 256
"""Strings that an index keeps, the length of one, and the needs that are kept with it."""
_double_of = lru_cache(maxsize=4096)(double_of)
"""Values repeat: the same string is compared at many places of many messages."""


def _threshold(test: Comparison) -> tuple[Threshold, Any]:
    if isinstance(test.operand, Number):
        return (False, test.operator), test.operand.value
    return (True, test.operator), test.operand


def _all(tests: tuple[Comparison, ...]) -> Callable[[str], bool]:
    checks = [
        comparison(test.operator, test.operand)
        for test in tests
        if not isinstance(test.operand, Variable)
    ]
    if len(checks) == 1:
        return checks[0]
    return lambda text: all(check(text) for check in checks)


class WatchIndex:
    """Needs, indexed by the watched string of an element: value, text or attribute."""

    __slots__ = ("any_attribute", "attributes", "texts", "value")

    def __init__(self) -> None:
        self.value = StringIndex()
        self.texts = StringIndex()
        self.attributes: dict[str, StringIndex] = {}
        self.any_attribute = StringIndex()

    def __bool__(self) -> bool:
        return bool(self.value or self.texts or self.attributes or self.any_attribute)

    def add(self, watch: Watch, need: int) -> None:
        self._strings(watch).add(watch.tests, need)

    def remove(self, watch: Watch, need: int) -> None:
        strings = self._strings(watch)
        strings.remove(watch.tests, need)
        if watch.name is not None and not strings:
            del self.attributes[watch.name]

    def _strings(self, watch: Watch) -> StringIndex:
        if watch.kind == "value":
            return self.value
        if watch.kind == "text":
            return self.texts
        if watch.name is None:
            return self.any_attribute
        return self.attributes.setdefault(watch.name, StringIndex())


class StateWatches:
    """The watches of one state of the automaton, merged by kind."""

    __slots__ = ("any_attribute", "attributes", "by_name", "texts", "values")

    def __init__(self, watched: list[WatchIndex], merger: IndexMerger) -> None:
        values = merger.merged(each.value for each in watched)
        self.values = tuple((strings, strings.longest()) for strings in values)
        self.texts = merger.merged(each.texts for each in watched)
        self.any_attribute = merger.merged(each.any_attribute for each in watched)
        attributes: dict[str, list[StringIndex]] = {}
        for each in watched:
            for name, strings in each.attributes.items():
                attributes.setdefault(name, []).append(strings)
        self.attributes = {name: merger.merged(each) for name, each in attributes.items()}
        # Looking up two names is faster than listing all attributes.
        self.by_name = tuple(self.attributes.items()) if len(attributes) < 3 else ()

    def find(self, element: Element, found: Found) -> None:
        """Add the needs that an element meets."""
        for name, named in self.by_name:
            text = element.get(name)
            if text is not None:
                for strings in named:
                    strings.find(text, found)
        if self.any_attribute or (self.attributes and not self.by_name):
            self._find_attributes(element, found)
        for strings, longest in self.values:
            whole = value(element) if longest is None else short_value(element, longest)
            if whole is not None:
                strings.find(whole, found)
        if self.texts:
            for text in texts(element):
                for strings in self.texts:
                    strings.find(text, found)

    def _find_attributes(self, element: Element, found: Found) -> None:
        attributes = {} if self.by_name else self.attributes
        for name, text in cast("list[tuple[str, str]]", element.items()):
            for strings in attributes.get(name, ()):
                strings.find(text, found)
            for strings in self.any_attribute:
                strings.find(text, found)


class IndexMerger:
    """Merges tests of several places, so that a string is looked up once.

    The same places meet in many states: merged tests are cached by their places. Large ones are not
    merged, because a copy for every combination would cost more memory than it saves time.
    """

    LARGE = 512

    def __init__(self) -> None:
        self._known: dict[frozenset[StringIndex], tuple[StringIndex, ...]] = {}

    def merged(self, places: Iterable[StringIndex]) -> tuple[StringIndex, ...]:
        """The fewest tests that are equivalent to all of these."""
        given = frozenset(each for each in places if each)
        known = self._known.get(given)
        if known is None:
            small = [each for each in given if each.size() <= self.LARGE]
            large = [each for each in given if each.size() > self.LARGE]
            known = self._known[given] = (*_merged(small), *large)
        return known


def _merged(strings: list[StringIndex]) -> list[StringIndex]:
    if len(strings) < 2:
        return strings
    merged = StringIndex()
    for each in strings:
        merged.update(each)
    return [merged]
