"""The selected nodes of a path, kept: beyond the paper, which keeps the Boolean.

A node is selected if the question holds at it, and whether it does depends on its own subtree and
on what surrounds that. From the top down, every part of a balanced tree is entered with its
surroundings as bits (`Surroundings.split`). A part that did not change, in surroundings as they
were, is left alone; so is one where nothing is selected, neither in the old surroundings nor in the
new. What remains is the way to the update, and runs whose surroundings changed and that hold
selected nodes: O(depth x log width) for the way, then O(log width) a level for every node found.
A node found may be selected before and after, by another way than it was: it is no change.
"""

from __future__ import annotations

from axlog.document.tree import DOCUMENT_NODE, ELEMENT, NONE
from axlog.views.records.forest import Forest
from axlog.views.records.sequences import UNKNOWN
from axlog.views.records.surroundings import Surroundings


class Selection:
    """The nodes at which a question holds."""

    def __init__(self, forest: Forest, algebra: Surroundings) -> None:
        self._forest = forest
        self._algebra = algebra
        self.nodes: set[int] = set()
        self.entered = 0  # parts of balanced trees looked at
        self.refresh()

    def refresh(self) -> tuple[set[int], set[int]]:
        """Follow the forest after an update: the nodes that came, and those that went."""
        forest, algebra, nodes = self._forest, self._algebra, self.nodes
        sequences = forest.sequences
        seen = sequences.seen
        assert seen is not None, "a forest whose totals nobody notes"
        total, own, top = sequences.total, sequences.own, sequences.top
        came: set[int] = set()
        went: set[int] = set()
        _, around = algebra.enter(
            forest.letter(DOCUMENT_NODE), False, sequences.below(DOCUMENT_NODE), 0
        )
        waiting = [(top[DOCUMENT_NODE], around)] if DOCUMENT_NODE in top else []
        while waiting:
            at, context = waiting.pop()
            self.entered += 1
            old = seen[at]
            if old == context:
                continue
            seen[at] = context
            if old != UNKNOWN and not (
                algebra.answer(total[at], old) or algebra.answer(total[at], context)
            ):
                continue
            left, right = sequences.left[at], sequences.right[at]
            first, middle, last = algebra.split(
                total[left] if left != NONE else 0, own[at], total[right] if right != NONE else 0,
                context,
            )  # fmt: skip
            if left != NONE:
                waiting.append((left, first))
            if right != NONE:
                waiting.append((right, last))
            is_element = forest.tree.kind_column[at] == ELEMENT
            below = top.get(at, NONE)
            inside = total[below] if below != NONE else 0
            is_selected, around = algebra.enter(forest.letter(at), is_element, inside, middle)
            if is_selected != (at in nodes):
                (came if is_selected else went).add(at)
            if below != NONE:
                waiting.append((below, around))
        nodes |= came
        nodes -= went
        return came, went
