"""A copy of a document on which futures are tried, each undone before the next.

Copying a document costs more than evaluating a pattern on it, so one copy serves all futures.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from axlog.document.operations import Delete, Insert, Where
from axlog.document.pending import Plan
from axlog.document.tree import Tree
from axlog.evaluate.answers import answers
from axlog.future.instances import Sent
from axlog.future.keys import is_broken
from axlog.future.search_budget import bounded
from axlog.future.timed_loss import TIME, OpenTimes, TimedMatches, has_times, loses_at_some_times
from axlog.query.pattern import Pattern


class Scratch:
    """A document on which futures are tried one after the other."""

    def __init__(self, tree: Tree) -> None:
        self._tree = copy.deepcopy(tree)
        self._clock = tree.clock
        self._matches: dict[Pattern, TimedMatches] = {}
        self._present: dict[Pattern, set[tuple[str | int, ...]]] = {}

    def loses(self, pattern: Pattern, sent: Sequence[Sent], stream: str) -> bool | None:
        """Whether the future loses a row if the data of one stream is left out.

        None: a key rules the future out. (Paper 2, definition 7.)
        """
        tree = self._tree
        added = [self._insert(each) for each in sorted(sent, key=lambda s: (s.time, s.stream))]
        try:
            if any(is_broken(tree, key) for key in tree.facts):
                return None
            if has_times(pattern):
                return self._loses_at_some_times(pattern, added, stream)
            with_all = set(answers(tree, pattern))
            self._remove([node for name, node in added if name == stream])
            added = [(name, node) for name, node in added if name != stream]
            return bool(
                with_all - (set(answers(tree, pattern)) if added else self._current_rows(pattern))
            )
        finally:
            self._remove([node for _, node in added])
            tree.clock = self._clock

    def _loses_at_some_times(
        self, pattern: Pattern, added: list[tuple[str, int]], stream: str
    ) -> bool:
        """The same, where constraints on times matter: whether it does at some times."""
        tree = self._tree
        if pattern not in self._matches:
            self._matches[pattern] = TimedMatches(pattern)
        matches = self._matches[pattern]
        names = {
            node: self._name_of_time(name, number)
            for number, (name, root) in enumerate(added)
            for node in tree.subtree(root)
        }
        times = OpenTimes(names, self._clock)
        with bounded(len(tree)):
            with_all = matches.of(tree, times)
            self._remove([node for name, node in added if name == stream])
            added[:] = [(name, node) for name, node in added if name != stream]
            return loses_at_some_times(with_all, matches.of(tree, times), times)

    def _name_of_time(self, stream: str, number: int) -> str:
        """All trees of a one-shot call have one time; each other tree has its own."""
        calls = self._tree.calls()
        is_one = self._tree.call(calls[stream]).mode == "one-shot"
        return f"{TIME}{stream if is_one else number}"

    def rows(self, pattern: Pattern, sent: Sequence[Sent]) -> set[tuple[str | int, ...]]:
        """The rows of a future."""
        added = [self._insert(each)[1] for each in sorted(sent, key=lambda s: (s.time, s.stream))]
        try:
            return set(answers(self._tree, pattern))
        finally:
            self._remove(added)
            self._tree.clock = self._clock

    def _current_rows(self, pattern: Pattern) -> set[tuple[str | int, ...]]:
        """The rows of the document without any future data, computed once."""
        if pattern not in self._present:
            self._present[pattern] = set(answers(self._tree, pattern))
        return self._present[pattern]

    def _insert(self, each: Sent) -> tuple[str, int]:
        call = self._tree.calls()[each.stream]
        plan = Plan(
            self._tree, [Insert(Where.BEFORE, call, (each.tree,))], each.time, keep_whitespace=True
        )
        plan.commit()
        (root,) = plan.delta.added
        return each.stream, root

    def _remove(self, nodes: Sequence[int]) -> None:
        if nodes:
            Plan(self._tree, [Delete(node) for node in nodes], keep_whitespace=True).commit()
