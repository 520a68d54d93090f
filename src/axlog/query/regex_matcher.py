"""A matcher of regular expressions in bounded time, without backtracking.

A regular expression becomes a program of small instructions (split, jump, one character, save,
test a position). A state is a list of places in the program, the preferred one first. Two ways run
it, both linear in the text for one match:

- an automaton whose states and transitions are made when they are needed and kept, for the
  question whether the text matches, and for the ends of matches;
- the simulation of all states with their captures, where a replacement needs groups.

`matches` costs at most text times program. All matches of a text can cost more, since each match
may look far ahead; that work has a limit (AX216). Alternatives and quantifiers choose as in Perl.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from axlog.errors import QueryError, ValueProblem
from axlog.query.positions import place_at
from axlog.query.regex_syntax import (
    Captured,
    Chain,
    Choice,
    Mark,
    One,
    Part,
    Repeated,
    Test,
    parse_regex,
)
from axlog.query.syntax_tree import Constant, Expression

MOST_INSTRUCTIONS = 5_000
REGEX_FUNCTIONS = {"matches": 2, "replace": 3, "tokenize": 2}
"""The functions with a regular expression, and the position of their flags."""
_MOST_TRANSITIONS = 20_000
_ONE, _SPLIT, _JUMP, _SAVE, _MARK, _END = range(6)
_AT_START, _AFTER_LINE, _INSIDE = range(3)
_STEPS_PER_CHARACTER = 50
_FREE_STEPS = 200_000


class Regex:
    """A regular expression, ready to match."""

    def __init__(self, text: str, flags: str = "") -> None:
        part, self.groups = parse_regex(text, flags)
        self._is_multiline = "m" in flags
        self._kinds: list[int] = []
        self._first: list[int] = []
        self._second: list[int] = []
        self._tests: list[Test | None] = []
        self._copies = 0
        self._add(part)
        self._emit(_END)
        self._states: dict[tuple[bool, tuple[int, ...], int], _State] = {}
        self.kept = 0
        self.matches_empty = self.matches("")

    # The program

    def _emit(self, kind: int, first: int = 0, second: int = 0, test: Test | None = None) -> int:
        if len(self._kinds) >= MOST_INSTRUCTIONS:
            raise _too_large()
        self._kinds.append(kind)
        self._first.append(first)
        self._second.append(second)
        self._tests.append(test)
        return len(self._kinds) - 1

    def _add(self, part: Part) -> None:
        self._copies += 1
        if self._copies > 4 * MOST_INSTRUCTIONS:  # copies of parts without instructions
            raise _too_large()
        match part:
            case One(test):
                self._emit(_ONE, test=test)
            case Mark(symbol):
                self._emit(_MARK, symbol == "$")
            case Chain(parts):
                for each in parts:
                    self._add(each)
            case Choice(parts):
                jumps = []
                for each in parts[:-1]:
                    split = self._emit(_SPLIT, len(self._kinds) + 1)
                    self._add(each)
                    jumps.append(self._emit(_JUMP))
                    self._second[split] = len(self._kinds)
                self._add(parts[-1])
                for jump in jumps:
                    self._first[jump] = len(self._kinds)
            case Captured(inside, number):
                self._emit(_SAVE, 2 * number)
                self._add(inside)
                self._emit(_SAVE, 2 * number + 1)
            case Repeated():
                self._repeat(part)

    def _repeat(self, given: Repeated) -> None:
        for _ in range(given.least):
            self._add(given.part)
        if given.most is None:
            split = self._emit(_SPLIT)
            self._add(given.part)
            self._emit(_JUMP, split)
            self._branch(split, given.is_greedy)
            return
        splits = []
        for _ in range(given.most - given.least):
            splits.append(self._emit(_SPLIT))
            self._add(given.part)
        for split in splits:
            self._branch(split, given.is_greedy)

    def _branch(self, split: int, is_greedy: bool) -> None:
        """Let a split enter the part after it, or leave to the end of the program so far."""
        inside, after = split + 1, len(self._kinds)
        self._first[split], self._second[split] = (inside, after) if is_greedy else (after, inside)

    # The automaton

    def _closure(self, places: tuple[int, ...], before: int, following: str) -> list[int]:
        """The places reached without reading, the preferred first: characters and the end."""
        found: list[int] = []
        seen: set[int] = set()
        waiting = list(reversed(places))
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            match self._kinds[place]:
                case 1:  # _SPLIT
                    waiting += (self._second[place], self._first[place])
                case 2:  # _JUMP
                    waiting.append(self._first[place])
                case 3:  # _SAVE
                    waiting.append(place + 1)
                case 4:  # _MARK
                    if self._is_at(self._first[place], before, following):
                        waiting.append(place + 1)
                case _:
                    found.append(place)
        return found

    def _is_at(self, is_end: int, before: int, following: str) -> bool:
        if is_end:
            return not following or (self._is_multiline and following == "\n")
        if before == _AT_START:
            return True
        # A line starts after a line break, unless the text ends there.
        return self._is_multiline and before == _AFTER_LINE and bool(following)

    def _state(self, is_anchored: bool, places: tuple[int, ...], before: int) -> _State:
        key = is_anchored, places, before
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = _State(self, is_anchored, places, before)
        return found

    def transition(self, state: _State, following: str) -> tuple[_State | None, bool]:
        """The state after a character ("" at the end), and whether a match ends before it."""
        self.kept += 1
        if self.kept > _MOST_TRANSITIONS:
            for each in list(self._states.values()):
                each.clear()
            self._states.clear()
            self.kept = 0
        is_anchored = state.is_anchored
        places = state.places if is_anchored else (*state.places, 0)
        moved: list[int] = []
        is_match = False
        for place in self._closure(places, state.before, following):
            if self._kinds[place] == _END:
                is_match = True
                break  # what follows is less preferred
            test = self._tests[place]
            if following and test is not None and test(following):
                moved.append(place + 1)
        if (not moved and is_anchored) or not following:
            return None, is_match
        before = _AFTER_LINE if following == "\n" else _INSIDE
        return self._state(is_anchored, tuple(moved), before), is_match

    def matches(self, text: str) -> bool:
        """Whether some part of the text matches.

        >>> Regex("(a+)+b").matches("a" * 5000)
        False
        """
        state: Any = self._state(False, (), _AT_START)
        for character in text:
            state, is_match = state[character]
            if is_match:
                return True
        return bool(state[""][1])

    def spans(self, text: str) -> Iterator[list[int]]:
        """The matches, from the left: the starts and ends of the whole and of the groups."""
        budget = _Budget(_FREE_STEPS + _STEPS_PER_CHARACTER * len(text))
        at = 0
        while at <= len(text):
            found = self._from(text, at, budget)
            if found is None:
                return
            yield found
            at = found[1] + (found[1] == found[0])

    def _from(self, text: str, start: int, budget: _Budget) -> list[int] | None:
        """The first match at or after an offset; where it starts is found by the automaton."""
        for at in range(start, len(text) + 1):
            end = self._end(text, at, budget)
            if end is not None:
                return self._captures(text, at, budget) if self.groups else [at, end]
        return None

    def _end(self, text: str, start: int, budget: _Budget) -> int | None:
        """The end of the preferred match at an offset."""
        state: _State | None = self._state(True, (0,), _before(text, start))
        found = None
        at = start
        size = len(text)
        while state is not None:
            state, is_match = state[text[at] if at < size else ""]
            if is_match:
                found = at
            at += 1
        budget.spend(at - start)
        return found

    # Captures

    def _captures(self, text: str, start: int, budget: _Budget) -> list[int]:
        """The preferred match at an offset, with its groups: all states at once."""
        width = 2 * self.groups + 2
        best: tuple[int, ...] = (-1,) * width
        threads: list[tuple[int, tuple[int, ...]]] = [(0, (start, *(-1,) * (width - 1)))]
        at = start
        while threads:
            following = text[at] if at < len(text) else ""
            moved: list[tuple[int, tuple[int, ...]]] = []
            for place, saved in self._threads(threads, _before(text, at), following, at, budget):
                if self._kinds[place] == _END:
                    best = (saved[0], at, *saved[2:])
                    break
                test = self._tests[place]
                if following and test is not None and test(following):
                    moved.append((place + 1, saved))
            threads = moved
            at += 1
        return list(best)

    def _threads(
        self,
        threads: list[tuple[int, tuple[int, ...]]],
        before: int,
        following: str,
        at: int,
        budget: _Budget,
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """`_closure` with captures."""
        seen: set[int] = set()
        waiting = threads[::-1]
        while waiting:
            place, saved = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            budget.spend(1)
            match self._kinds[place]:
                case 1:  # _SPLIT
                    waiting += ((self._second[place], saved), (self._first[place], saved))
                case 2:  # _JUMP
                    waiting.append((self._first[place], saved))
                case 3:  # _SAVE
                    slot = self._first[place]
                    waiting.append((place + 1, (*saved[:slot], at, *saved[slot + 1 :])))
                case 4:  # _MARK
                    if self._is_at(self._first[place], before, following):
                        waiting.append((place + 1, saved))
                case _:
                    yield place, saved


class _State(dict[str, "tuple[_State | None, bool]"]):
    """A state of the automaton: its transitions by character, made when they are needed.

    `before` is what stands before the position: the start, a line break, or something else.
    """

    __slots__ = ("before", "is_anchored", "owner", "places")

    def __init__(
        self, owner: Regex, is_anchored: bool, places: tuple[int, ...], before: int
    ) -> None:
        self.owner = owner
        self.is_anchored = is_anchored
        self.places = places
        self.before = before

    def __missing__(self, following: str) -> tuple[_State | None, bool]:
        found = self[following] = self.owner.transition(self, following)
        return found


class _Budget:
    """The steps that are left for one text."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise ValueProblem(
                "AX216",
                "the regular expression takes too long on this text",
                advice="a simpler expression, or a shorter text",
            )


def _too_large() -> QueryError:
    return QueryError(
        "AX213",
        "the regular expression is too large",
        expected="fewer or smaller repetitions {n,m}",
    )


def _before(text: str, at: int) -> int:
    if at == 0:
        return _AT_START
    return _AFTER_LINE if text[at - 1] == "\n" else _INSIDE


@lru_cache(maxsize=512)
def regex(text: str, flags: str = "") -> Regex:
    """A regular expression, kept for the next use.

    >>> regex("[a-z-[aeiou]]+").matches("aei"), regex("^b", "i").matches("Ba")
    (False, True)
    """
    return Regex(text, flags)


def check_regex(name: str, arguments: Sequence[Expression], text: str) -> None:
    """Refuse a call of matches(), replace() or tokenize() whose constant pattern is no pattern."""
    if name not in REGEX_FUNCTIONS or len(arguments) < 2:
        return
    pattern = arguments[1]
    flags = arguments[REGEX_FUNCTIONS[name] :]
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
        return
    written = flags[0].value if flags and isinstance(flags[0], Constant) else ""
    try:
        regex(pattern.value, written if isinstance(written, str) else "")
    except QueryError as error:
        raise type(error)(
            error.code,
            error.message,
            place=place_at(text, pattern.at),
            expected=error.expected,
            advice=error.advice,
        ) from None
