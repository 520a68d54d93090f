"""Few patterns of a filter, tested one after the other in Python, or together in C.

A pattern has a generated test (`filter_generator.py`). For some patterns, mostly those with several
`//` or with comparisons of values, an XPath of libxml2 is faster (`xpath_questions.py`). Which ones
is measured on some messages. One call evaluates the expressions of all patterns chosen for C: their
sum has a power of two for each one that is true.

Law: `found` has the keys of the patterns that hold on the message, whatever was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple, TypeAlias, cast

from lxml import etree

from axlog.document.parser import Element
from axlog.match.filter_generator import Test
from axlog.match.filter_pattern import FilterPattern
from axlog.match.message_forms import MessageForms, may_need_tree
from axlog.match.xpath_questions import Question, questions_of

LONGEST = 4096
"""The length of messages, in bytes, up to which XPath is used: its time may be cubic."""
FIRST_REVIEW = 32
"""The number of messages before the ways are measured."""
SAMPLES = 12
"""The number of messages that they are measured on."""
_LATER = 16  # by which the number of messages grows until they are measured again
_MOST_TOGETHER = 40
_NOTHING = etree.XPath("true()", regexp=False)

Tests = list[tuple[set[str], Test]]
"""Generated tests, with the keys of their patterns."""
Ask: TypeAlias = Callable[[Element], float]
"""From a message to the sum of the bits of the expressions that are true."""


class _Chosen(NamedTuple):
    """The tests of some patterns in Python, patterns without a test, and the other ones in C."""

    tests: Tests
    others: list[FilterPattern]
    asks: Ask
    ways: Sequence[tuple[int, Way]]


class FewPatterns:
    """Some patterns, tested without the automaton."""

    def __init__(self, patterns: Sequence[FilterPattern]) -> None:
        self.patterns = patterns
        self._in_python = _tests(patterns)
        self._chosen: _Chosen | None = None  # None: all in Python
        self.asks: Ask | None = None  # if all patterns are tested in C: falsy if none can hold
        self._left, self._wait = FIRST_REVIEW, FIRST_REVIEW  # messages until they are measured
        self._measured: list[_Measured] | None = None  # while they are measured

    def found(self, message: Element, time: int, content: bytes | None) -> set[str]:
        """The keys of the patterns that hold; `content` is the message's UTF-8, if available."""
        found: set[str] = set()
        tests, others = self._in_python
        if content is not None:
            self._left -= 1
            if self._left <= 0 and len(content) <= LONGEST:
                self._measure(message, time, content)
            if self._chosen is not None and len(content) <= LONGEST:
                tests, others, asks, _ = self._chosen
                bits = asks(message)
                if bits:
                    found = self.confirmed(bits, message, time, content)
        for keys, test in tests:
            if test(message):
                found |= keys
        if others:
            forms = MessageForms(message, time)
            found.update(*[pattern.keys for pattern in others if pattern.holds(forms)])
        return found

    def confirmed(self, bits: float, message: Element, time: int, content: bytes) -> set[str]:
        """The keys of the patterns that hold, of those whose expressions are true."""
        found: set[str] = set()
        forms, known = MessageForms(message, time), int(bits)
        for bit, way in self._chosen.ways if self._chosen is not None else ():
            if known & bit and way.is_right(forms, content):
                found |= way.pattern.keys
        return found

    def count(self, message: Element, time: int, content: bytes) -> None:
        """Count a message that `found` was not called for."""
        self._left -= 1
        if self._left <= 0:
            self._measure(message, time, content)

    def _measure(self, message: Element, time: int, content: bytes) -> None:
        """Measure the ways of all patterns on a message; choose after enough of them."""
        if self._measured is None:
            self._measured = [_Measured(pattern) for pattern in self.patterns]
        forms = MessageForms(message, time)
        for each in self._measured:
            each.measure(forms, content)
        if self._left <= -SAMPLES:
            self._choose([each for each in self._measured if each.gain() > 0])
            self._measured = None
            self._left = self._wait = self._wait * _LATER

    def _choose(self, gaining: Sequence[_Measured]) -> None:
        """Test these patterns in C if they gain more than the call costs."""
        best = sorted(gaining, key=_Measured.gain, reverse=True)
        pays = best and sum(each.gain() for each in best) > min(each.call for each in best)
        self.test_in_c([each.best() for each in best] if pays else [])

    def test_in_c(self, ways: Sequence[Way]) -> None:
        """Test some patterns in C, and the other ones in Python."""
        bits = [(1 << at, way) for at, way in enumerate(ways[:_MOST_TOGETHER])]
        in_c = {way.pattern for _, way in bits}
        in_python = _tests([each for each in self.patterns if each not in in_c])
        self.asks = self._chosen = None
        if bits:
            terms = [f"{bit} * boolean({way.expression})" for bit, way in bits]
            asks = cast("Ask", etree.XPath(" + ".join(terms), regexp=False))
            self._chosen = _Chosen(*in_python, asks, bits)
            self.asks = None if any(in_python) else asks


def _tests(patterns: Sequence[FilterPattern]) -> tuple[Tests, list[FilterPattern]]:
    """The generated tests, and the patterns that have none."""
    tests = [(each.keys, each.test) for each in patterns if each.test is not None]
    return tests, [each for each in patterns if each.test is None]


class Way:
    """A pattern by an expression."""

    def __init__(self, pattern: FilterPattern, question: Question) -> None:
        self.pattern, self.expression = pattern, question.expression
        self._asks = etree.XPath(f"boolean({question.expression})", regexp=False)
        self._is_exact = question.is_exact and not pattern.known
        self._sees_calls = question.sees_calls
        self.seconds = 0.0

    def asks(self, message: MessageForms, content: bytes) -> bool:
        """Whether the pattern holds."""
        return bool(self._asks(message.root)) and self.is_right(message, content)

    def is_right(self, message: MessageForms, content: bytes) -> bool:
        """Whether the pattern holds on a message on which its expression is true."""
        if self._is_exact and not (self._sees_calls and may_need_tree(content)):
            return True
        return self.pattern.holds(message)


def ways_of(pattern: FilterPattern) -> list[Way]:
    """The ways to test a pattern in C."""
    return [Way(pattern, each) for each in questions_of(pattern.question.root)]


class _Measured:
    """The times of the ways to test a pattern, on the same messages."""

    def __init__(self, pattern: FilterPattern) -> None:
        self.pattern = pattern
        self.python = self.call = 0.0
        self._ways = ways_of(pattern)

    def measure(self, message: MessageForms, content: bytes) -> None:
        """Add the times on one message."""
        if not self._ways:
            return
        self.call += _least_time(_NOTHING, message.root)
        self.python += _least_time(self.pattern.holds, message)
        for way in self._ways:
            way.seconds += _least_time(way.asks, message, content)

    def best(self) -> Way:
        """The fastest expression."""
        return min(self._ways, key=lambda way: way.seconds)

    def gain(self) -> float:
        """The time that the fastest expression saves beside others, without the call."""
        return self.python - self.best().seconds + self.call if self._ways else 0.0


def _least_time(test: Callable[..., object], *given: object) -> float:
    """The less of two times in seconds."""
    start = perf_counter()
    test(*given)
    middle = perf_counter()
    test(*given)
    return min(middle - start, perf_counter() - middle)
