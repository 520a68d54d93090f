"""The selected nodes of a path, kept through updates.

A node is selected if the question holds at it. This depends on its subtree and on the surroundings
of the subtree. The parts of the balanced trees are visited from the top down, each with its
surroundings as bits (`Automaton.split`). A part is skipped if neither it nor its surroundings
changed, or if it has no selected node in the old and in the new surroundings. The remaining parts
are the path to the update, and runs with changed surroundings that contain selected nodes. The cost
is O(depth x log width) for the path, and O(log width) per level for every node found. A node that
is found may be selected before and after, in another way: this is not a change.

Law: after `refresh`, `nodes` are the nodes at which the question holds.

Paper 4 keeps Boolean patterns only; this module extends it.
"""

from __future__ import annotations

from axlog.document.tree import DOCUMENT_NODE, ELEMENT, NONE
from axlog.views.records.automaton import Automaton
from axlog.views.records.forest import Forest
from axlog.views.records.sequences import UNKNOWN


class SelectedNodes:
    """The nodes at which a question holds."""

    def __init__(self, forest: Forest, algebra: Automaton) -> None:
        self._forest = forest
        self._algebra = algebra
        self.nodes: set[int] = set()
        self.entered = 0  # parts of balanced trees visited
        self.refresh()

    def refresh(self) -> tuple[set[int], set[int]]:
        """Follow the forest after an update; the newly selected and the deselected nodes."""
        forest, algebra, nodes = self._forest, self._algebra, self.nodes
        sequences = forest.sequences
        seen = sequences.seen
        assert seen is not None, "the forest must be created with is_seen"
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
