"""A copy of a document to try futures on: what is brought is taken away again after each.

Copying a document costs more than evaluating a pattern on it; one copy serves all the futures that
are tried for it.
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
        """Whether a row of this future goes if one stream is left out (P2 definition 7).

        None: a key forbids the future.
        """
        tree = self._tree
        added = [self._bring(each) for each in sorted(sent, key=lambda s: (s.time, s.stream))]
        try:
            if any(is_broken(tree, key) for key in tree.facts):
                return None
            with_all = set(answers(tree, pattern))
            self._take_away([node for name, node in added if name == stream])
            added = [(name, node) for name, node in added if name != stream]
            return bool(with_all - (set(answers(tree, pattern)) if added else self._now(pattern)))
        finally:
            self._take_away([node for _, node in added])
            tree.clock = self._clock

    def _now(self, pattern: Pattern) -> set[tuple[str | int, ...]]:
        """The rows of the document as it is, worked out once."""
        if pattern not in self._present:
            self._present[pattern] = set(answers(self._tree, pattern))
        return self._present[pattern]

    def _bring(self, each: Sent) -> tuple[str, int]:
        call = self._tree.calls()[each.stream]
        plan = Plan(
            self._tree, [Insert(Where.BEFORE, call, (each.tree,))], each.time, keep_whitespace=True
        )
        plan.commit()
        (root,) = plan.delta.added
        return each.stream, root

    def _take_away(self, nodes: Sequence[int]) -> None:
        if nodes:
            Plan(self._tree, [Delete(node) for node in nodes], keep_whitespace=True).commit()
