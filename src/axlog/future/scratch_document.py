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
from axlog.query.pattern import Pattern


class Scratch:
    """A document on which futures are tried one after the other."""

    def __init__(self, tree: Tree) -> None:
        self._tree = copy.deepcopy(tree)
        self._clock = tree.clock
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
            with_all = set(answers(tree, pattern))
            self._remove([node for name, node in added if name == stream])
            added = [(name, node) for name, node in added if name != stream]
            return bool(
                with_all - (set(answers(tree, pattern)) if added else self._current_rows(pattern))
            )
        finally:
            self._remove([node for _, node in added])
            tree.clock = self._clock

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
