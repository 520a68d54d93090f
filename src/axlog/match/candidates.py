"""Patterns with several needs: which of them a message leaves, given the needs that it meets.

A pattern is listed by one of its needs, its trigger. Few patterns are listed by trigger. Many are
kept in columns too: two of the needs of each pattern are looked up for all patterns at once, and
only those that have both are read. Most of ten thousand patterns are not in the CPU cache, so
reading each one that a trigger lists would take most of the time.

Law: `met` gives the patterns whose needs are all met, however many there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from axlog.match.filter_pattern import FilterPattern

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
    """Two needs of each candidate, and room to mark the needs that are met."""

    triggers: Any
    others: Any
    entries: list[Candidate]
    is_met: Any


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

    def _with_two(self, found: set[int]) -> list[Candidate]:
        """The patterns of which two needs are met: the trigger and another."""
        columns = self._columns
        if columns is None:
            columns = self._columns = self._made()
        triggers, others, entries, is_met = columns
        needs = np.fromiter(found, np.int64, len(found))
        needs = needs[needs < len(is_met)]
        is_met[needs] = True
        places = np.flatnonzero(is_met[triggers] & is_met[others]).tolist()
        is_met[needs] = False
        return [entries[place] for place in places]

    def _made(self) -> _Columns:
        triggers: list[int] = []
        others: list[int] = []
        entries: list[Candidate] = []
        for trigger, listed in self._by_trigger.items():
            triggers += [trigger] * len(listed)
            others += [max(entry.others, default=trigger) for entry in listed]
            entries += listed
        size = max((*triggers, *others)) + 1
        return _Columns(
            np.array(triggers), np.array(others), entries, np.zeros(size, dtype=np.bool_)
        )
