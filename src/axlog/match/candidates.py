"""Patterns with several needs: which of them a message leaves, given the needs that it meets.

A pattern is listed by one of its needs, its trigger. Few patterns are listed by trigger. Many are
kept in columns too: two of the needs of each pattern are looked up for all patterns at once, and
only those that have both are read. Most of ten thousand patterns are not in the CPU cache, so
reading each one that a trigger lists would take most of the time.

Law: `met` gives the patterns whose needs are all met, however many there are. `kept` gives the keys
of those that hold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from axlog.match.filter_generator import Test
from axlog.match.filter_pattern import FilterPattern
from axlog.match.message_forms import MessageForms

MANY = 400
"""The number of patterns from which columns pay off."""


class Candidate(NamedTuple):
    """A pattern to consider when its trigger is met, and the conditions to skip its check."""

    others: frozenset[int]  # the needs that must be met too
    meetings: frozenset[int]  # the marks of routes that must lead to one element
    is_settled: bool  # needs and meetings are sufficient
    keys: set[str]  # the keys of the pattern: most messages need nothing else
    pattern: FilterPattern


class _Columns(NamedTuple):
    """Two needs of each candidate, its meeting, and room to mark the needs that are met."""

    triggers: Any
    others: Any
    meetings: Any  # one more than one of them; 0 if there is none
    is_plain: Any  # whether it has no further needs and meetings, and no check that they replace
    entries: list[Candidate]
    keys: list[set[str]]  # of the entries, to be read without them
    tests: list[Test | None]  # likewise, once they were used
    is_met: Any
    is_repeated: Any


class Candidates:
    """Patterns by the need that triggers their check."""

    def __init__(self) -> None:
        self._by_trigger: dict[int, list[Candidate]] = {}
        self._size = 0
        self._columns: _Columns | None = None

    def add(self, trigger: int, entry: Candidate) -> None:
        """List a pattern by its trigger."""
        self._by_trigger.setdefault(trigger, []).append(entry)
        self._size += 1
        self._columns = None

    def remove(self, trigger: int, pattern: FilterPattern) -> None:
        """Remove a pattern that may be listed by this trigger."""
        listed = self._by_trigger.pop(trigger, [])
        kept = [entry for entry in listed if entry.pattern is not pattern]
        if kept:
            self._by_trigger[trigger] = kept
        self._size -= len(listed) - len(kept)
        self._columns = None

    def met(
        self, found: set[int], repeated: set[int]
    ) -> tuple[list[Candidate], list[FilterPattern]]:
        """The patterns whose needs are all met: those that hold, and those left open."""
        holding: list[Candidate] = []
        left_open: list[FilterPattern] = []
        for entry in self._triggered(found) if self._size < MANY else self._with_two(found):
            others, meetings, is_settled, _, pattern = entry
            if others and not others <= found:
                continue
            if is_settled and (not meetings or meetings.isdisjoint(repeated)):
                holding.append(entry)
            else:
                left_open.append(pattern)
        return holding, left_open

    def _triggered(self, found: set[int]) -> list[Candidate]:
        listed = self._by_trigger
        return [entry for need in found & listed.keys() for entry in listed[need]]

    def kept(
        self, found: set[int], repeated: set[int], message: MessageForms
    ) -> tuple[list[set[str]], int, int]:
        """The keys of the patterns that hold, and how many were checked and refuted."""
        if self._size < MANY:
            holding, left_open = self.met(found, repeated)
            passed = [pattern.keys for pattern in left_open if pattern.holds(message)]
            keys = [entry.keys for entry in holding] + passed
            return keys, len(left_open), len(left_open) - len(passed)
        columns = self._columns or self._made()
        places = self._places(found)
        room = columns.is_repeated[1:]
        marks = _marked(room, repeated)
        is_open = columns.is_repeated[columns.meetings[places]] | ~columns.is_plain[places]
        room[marks] = False
        keys = [columns.keys[place] for place in places[~is_open].tolist()]
        checked = refuted = 0
        for place in places[is_open].tolist():
            if not columns.is_plain[place]:
                others, meetings, is_settled, _, _ = columns.entries[place]
                if not others <= found:
                    continue
                if is_settled and meetings.isdisjoint(repeated):
                    keys.append(columns.keys[place])
                    continue
            checked += 1
            if self._holds(columns, place, message):
                keys.append(columns.keys[place])
            else:
                refuted += 1
        return keys, checked, refuted

    def _holds(self, columns: _Columns, place: int, message: MessageForms) -> bool:
        """Whether the pattern of an entry holds."""
        test = columns.tests[place]
        if test is None:
            pattern = columns.entries[place].pattern
            test = columns.tests[place] = pattern.test
            if test is None:
                return pattern.holds(message)
        return test(message.root)

    def _places(self, found: set[int]) -> Any:
        """The places of the patterns of which two needs are met: the trigger and another."""
        columns = self._columns or self._made()
        needs = _marked(columns.is_met, found)
        places = np.flatnonzero(columns.is_met[columns.triggers] & columns.is_met[columns.others])
        columns.is_met[needs] = False
        return places

    def _with_two(self, found: set[int]) -> list[Candidate]:
        entries = (self._columns or self._made()).entries
        return [entries[place] for place in self._places(found).tolist()]

    def _made(self) -> _Columns:
        triggers: list[int] = []
        entries: list[Candidate] = []
        for trigger, listed in self._by_trigger.items():
            triggers += [trigger] * len(listed)
            entries += listed
        others = [
            max(entry.others, default=at) for at, entry in zip(triggers, entries, strict=True)
        ]
        meetings = [1 + max(entry.meetings, default=-1) for entry in entries]
        is_plain = [
            each.is_settled and len(each.others) < 2 and len(each.meetings) < 2 for each in entries
        ]
        self._columns = _Columns(
            np.array(triggers),
            np.array(others),
            np.array(meetings),
            np.array(is_plain),
            entries,
            [entry.keys for entry in entries],
            [None] * len(entries),
            np.zeros(max((*triggers, *others)) + 1, dtype=np.bool_),
            np.zeros(max(meetings) + 1, dtype=np.bool_),  # by number of a mark + 1
        )
        return self._columns


def _marked(room: Any, numbers: set[int]) -> Any:
    """Mark numbers in a room; those that it has no place for are left out."""
    given = np.fromiter(numbers, np.int64, len(numbers))
    given = given[given < len(room)]
    room[given] = True
    return given
