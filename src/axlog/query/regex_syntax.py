"""The syntax of regular expressions in XPath 3.1: a parser from text to a small tree.

The flavour is that of XML Schema with `^`, `$`, groups that capture nothing `(?:...)`, reluctant
quantifiers and the flags s, m, i, x, q (F&O 3.1, section 5.6). A text that is no regular expression
is refused (FORX0002), with the offset. Back-references are refused too: no matcher bounds their
time. Sizes are bounded: `{n,m}` copies its operand, and `regex_matcher` counts the copies.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from axlog.errors import QueryError, ValueProblem
from axlog.query.unicode_blocks import BLOCKS

MOST_CHARACTERS = 2_000
MOST_NESTED = 50
MOST_REPEATED = 1_000
FLAGS = frozenset("smixq")

Test: TypeAlias = Callable[[str], bool]
"""Whether a character is in a class."""


@dataclass(frozen=True, slots=True)
class One:
    """One character of a class."""

    test: Test


@dataclass(frozen=True, slots=True)
class Mark:
    """`^` or `$`."""

    symbol: str


@dataclass(frozen=True, slots=True)
class Chain:
    """One part after the other; none: the empty string."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several parts, the first that matches."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A part, `least` to `most` times (None: without end); `is_greedy`: as often as possible."""

    part: Part
    least: int
    most: int | None
    is_greedy: bool


@dataclass(frozen=True, slots=True)
class Captured:
    """A group that captures: its number."""

    part: Part
    number: int


Part: TypeAlias = One | Mark | Chain | Choice | Repeated | Captured

_SPACE = frozenset(" \t\r\n")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", **{c: c for c in "\\|.-^?*+{}()[]$"}}
_SPECIAL = frozenset(".\\?*+{}()|^$[]")
_START_RANGES = (
    (0x3A, 0x3A), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6),
    (0xF8, 0x2FF), (0x370, 0x37D), (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F),
    (0x2C00, 0x2FEF), (0x3001, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFFD), (0x10000, 0xEFFFF),
)  # fmt: skip
_NAME_RANGES = (
    (0x2D, 0x2E), (0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040), *_START_RANGES,
)  # fmt: skip
_CATEGORIES = frozenset(
    """L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po Z Zs Zl Zp S Sm Sc Sk So C Cc
    Cf Co Cn""".split()
)


def parse_regex(text: str, flags: str = "") -> tuple[Part, int]:
    """The tree of a regular expression, and the number of its groups.

    >>> parse_regex("(a|b)*c")[1]
    1
    """
    unknown = [flag for flag in flags if flag not in FLAGS]
    if unknown:
        raise ValueProblem("FORX0001", f"{unknown[0]!r} is no flag", expected="s, m, i, x, q")
    if len(text) > MOST_CHARACTERS:
        raise QueryError(
            "AX213",
            f"the regular expression has {len(text):,} characters",
            expected=f"at most {MOST_CHARACTERS:,}",
        )
    reader = _Reader(text, flags)
    if "q" in flags:
        return Chain(tuple(One(reader.literal(c)) for c in text)), 0
    found = reader.choice()
    if reader.at < len(text):
        raise reader.refused("a `)` has no `(`")
    return found, reader.groups


class _Reader:
    """A text and the offset of the next character."""

    def __init__(self, text: str, flags: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0
        self._depth = 0
        self._ignores_case = "i" in flags
        self._is_spaced = "x" in flags and "q" not in flags
        self._dot = _any if "s" in flags else _not_newline

    def refused(self, problem: str) -> ValueProblem:
        return ValueProblem("FORX0002", f"{problem}, at offset {self.at} of {self.text[:100]!r}")

    def _peek(self) -> str:
        """The next character; white space is skipped with the flag x."""
        if self._is_spaced:
            while self.at < len(self.text) and self.text[self.at] in _SPACE:
                self.at += 1
        return self.text[self.at : self.at + 1]

    def _next(self) -> str:
        """Read a character that must follow."""
        if self.at >= len(self.text):
            raise self.refused("the regular expression ends too early")
        self.at += 1
        return self.text[self.at - 1]

    # The tree

    def choice(self) -> Part:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise QueryError("AX213", f"groups are nested more than {MOST_NESTED} deep")
        branches = [self._chain()]
        while self._peek() == "|":
            self.at += 1
            branches.append(self._chain())
        self._depth -= 1
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _chain(self) -> Part:
        parts: list[Part] = []
        while (following := self._peek()) and following not in "|)":
            parts.append(self._quantified(self._atom()))
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _atom(self) -> Part:
        symbol = self._next()
        match symbol:
            case ".":
                return One(self._dot)
            case "^" | "$":
                return Mark(symbol)
            case "[":
                return One(self._class())
            case "(":
                return self._group()
            case "\\":
                return One(self._escape())
        if symbol in _SPECIAL:
            self.at -= 1
            raise self.refused(f"`{symbol}` must be escaped here")
        return One(self.literal(symbol))

    def _group(self) -> Part:
        if self.text.startswith("?", self.at):
            if not self.text.startswith("?:", self.at):
                raise self.refused("`(?` must be followed by `:`")
            self.at += 2
            inside = self.choice()
            self._close()
            return inside
        self.groups += 1
        number = self.groups
        inside = self.choice()
        self._close()
        return Captured(inside, number)

    def _close(self) -> None:
        if self._peek() != ")":
            raise self.refused("a `(` is not closed")
        self.at += 1

    def _quantified(self, part: Part) -> Part:
        symbol = self._peek()
        if symbol not in ("?", "*", "+", "{"):
            return part
        self.at += 1
        least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(symbol) or self._bounds()
        is_greedy = self._peek() != "?"
        self.at += not is_greedy
        if self._peek() in ("?", "*", "+", "{") and self._peek():
            raise self.refused("two quantifiers follow each other")
        return Repeated(part, least, most, is_greedy)

    def _bounds(self) -> tuple[int, int | None]:
        least = self._count()
        most: int | None = least
        if self._peek() == ",":
            self.at += 1
            most = None if self._peek() == "}" else self._count()
        if self._peek() != "}":
            raise self.refused("a `{` is not closed")
        self.at += 1
        if most is not None and most < least:
            raise self.refused("the bounds of a quantifier are in the wrong order")
        return least, most

    def _count(self) -> int:
        digits = ""
        while (digit := self._peek()) and digit in "0123456789":
            digits += digit
            self.at += 1
        if not digits:
            raise self.refused("a quantifier has no number")
        if len(digits) > 9 or int(digits) > MOST_REPEATED:
            raise QueryError(
                "AX213", "a quantifier is too large", expected=f"at most {MOST_REPEATED:,}"
            )
        return int(digits)

    # Classes of characters

    def literal(self, character: str) -> Test:
        """The class of one character, or of its variants in the other case."""
        if self._ignores_case:
            return frozenset(_cases(character)).__contains__
        return character.__eq__

    def _escape(self) -> Test:
        symbol = self._next()
        if symbol in _ESCAPED:
            return self.literal(_ESCAPED[symbol])
        if symbol in "pP":
            test = self._property()
            return test if symbol == "p" else _inverse(test)
        known = _CLASSES.get(symbol.lower())
        if known is None:
            self.at -= 1
            if symbol in "0123456789":
                raise self.refused("a back-reference, which has no time limit, is not supported")
            raise self.refused(f"`\\{symbol}` is no escape")
        return known if symbol.islower() else _inverse(known)

    def _property(self) -> Test:
        if self._next() != "{":
            raise self.refused("`\\p` must be followed by `{`")
        end = self.text.find("}", self.at)
        if end < 0:
            raise self.refused("a `{` is not closed")
        name = self.text[self.at : end]
        if self._is_spaced:
            name = "".join(c for c in name if c not in _SPACE)
        if name in _CATEGORIES:
            self.at = end + 1
            return _category(name)
        block = BLOCKS.get(name.removeprefix("Is")) if name.startswith("Is") else None
        if block is None:
            raise self.refused(f"there is no category or block {name[:40]}")
        self.at = end + 1
        return _in_ranges((block,))

    def _class(self) -> Test:
        """A class in brackets, after its `[`."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise QueryError("AX213", f"classes are nested more than {MOST_NESTED} deep")
        is_negative = self.text.startswith("^", self.at)
        self.at += is_negative
        tests: list[Test] = []
        without: Test | None = None
        while True:
            symbol = self._next()
            if symbol == "]" and tests:
                break
            if symbol == "-" and self.text.startswith("[", self.at) and tests:
                self.at += 1
                without = self._class()
                if self._next() != "]":
                    raise self.refused("a subtraction must end its class")
                break
            tests.append(self._member(symbol, is_first=not tests))
        self._depth -= 1
        found = _any_of(tests)
        if is_negative:
            found = _inverse(found)
        return found if without is None else _difference(found, without)

    def _member(self, symbol: str, is_first: bool) -> Test:
        """A character, a range or an escape inside brackets."""
        first = self._single(symbol, is_first)
        if not isinstance(first, str):
            return first
        text, at = self.text, self.at
        if text.startswith("-", at) and text[at + 1 : at + 2] not in ("]", "[", ""):
            self.at += 1
            last = self._single(self._next(), is_first=False)
            if not isinstance(last, str) or last < first:
                raise self.refused("the range of a class is not valid")
            return self._range(ord(first), ord(last))
        return self.literal(first)

    def _single(self, symbol: str, is_first: bool) -> str | Test:
        """A character, or the class of an escape."""
        if symbol == "\\":
            following = self.text[self.at : self.at + 1]
            if following in _ESCAPED and following:
                self.at += 1
                return _ESCAPED[following]
            return self._escape()
        is_last = self.text.startswith("]", self.at)
        if symbol in "[]" or (symbol == "-" and not is_first and not is_last):
            self.at -= 1
            raise self.refused(f"`{symbol}` must be escaped in a class")
        return symbol

    def _range(self, first: int, last: int) -> Test:
        inside = _in_ranges(((first, last),))
        if not self._ignores_case:
            return inside
        return lambda c: any(inside(other) for other in _cases(c))


def _cases(character: str) -> set[str]:
    """A character and its variants in the other case, each one character."""
    found = {character, character.lower(), character.upper()}
    return {c for c in found if len(c) == 1}


def _any(character: str) -> bool:
    return True


def _not_newline(character: str) -> bool:
    return character not in "\n\r"


def _in_ranges(ranges: tuple[tuple[int, int], ...]) -> Test:
    return lambda c: any(first <= ord(c) <= last for first, last in ranges)


@cache
def _category(name: str) -> Test:
    return lambda c: unicodedata.category(c).startswith(name)


def _inverse(test: Test) -> Test:
    return lambda c: not test(c)


def _any_of(tests: list[Test]) -> Test:
    return tests[0] if len(tests) == 1 else lambda c: any(test(c) for test in tests)


def _difference(test: Test, without: Test) -> Test:
    return lambda c: test(c) and not without(c)


_CLASSES: dict[str, Test] = {
    "s": _SPACE.__contains__,
    "i": _in_ranges(_START_RANGES),
    "c": _in_ranges(_NAME_RANGES),
    "d": _category("Nd"),
    "w": lambda c: unicodedata.category(c)[0] not in "PZC",
}
