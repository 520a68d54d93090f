"""Containment of paths: whether a path matches every canonical model of a twig without branches.

The models of such a twig are words, the labels from the root element down, and a path (names, `*`,
`/`, `//`) is an automaton over them. The words are followed with the set of states of the automaton
after each label: two words with the same set are continued alike, so each set is looked at once for
each node of the twig. There are far fewer sets than models, whose number is exponential in the
number of descendant steps.

Law: the result is that of matching every model (`containment.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from axlog.future.canonical_models import Canon
from axlog.future.disjuncts import ELEMENT, Twig
from axlog.query.pattern import Axis, Kind, Name, Pattern, PatternNode, Wildcard

_FRESH = ""
"""The label of an element that only `*` matches."""


@dataclass(frozen=True, slots=True)
class PathAutomaton:
    """The states of a path on the way down a word, as bits.

    Bit 2j: the current element matches step j, which is the document node for 0. Bit 2j + 1: an
    element above matches step j, and the next step is a descendant step.
    """

    steps: tuple[tuple[bool, str | None], ...]  # whether it is a descendant step; None: `*`
    is_shown: bool  # whether the last element of the word must match the last step

    @classmethod
    def of(cls, pattern: Pattern) -> PathAutomaton | None:
        """The automaton of a pattern; None if it is more than a path."""
        steps: list[tuple[bool, str | None]] = []
        branches, last = pattern.branches, None
        while branches:
            node = branches[0]
            if len(branches) > 1 or not isinstance(node, PatternNode) or node.comparisons:
                return None
            if node.axis not in (Axis.CHILD, Axis.DESCENDANT):
                return None
            if type(node.test) not in (Name, Wildcard):  # no part of a name
                return None
            label = node.test.label if isinstance(node.test, Name) else None
            steps.append((node.axis is Axis.DESCENDANT, label))
            branches, last = node.branches, node.name
        shown = [output for output in pattern.outputs if output.kind is Kind.ID]
        if pattern.where or not steps or len(shown) < len(pattern.outputs):
            return None
        if any(output.of != last for output in shown):
            return None
        return cls(tuple(steps), bool(shown))

    @property
    def start(self) -> int:
        return self._waiting(1)

    def after(self, states: int, label: str) -> int:
        """The states after one more label."""
        found = 0
        for at, (is_descendant, wanted) in enumerate(self.steps):
            here = states >> 2 * at
            if here & (3 if is_descendant else 1) and (wanted is None or wanted == label):
                found |= 4 << 2 * at
            if here & 2:
                found |= 2 << 2 * at
        if not self.is_shown and states >> 2 * len(self.steps):
            found |= 1 << 2 * len(self.steps)  # matched above, which is enough
        return self._waiting(found)

    def _waiting(self, states: int) -> int:
        """The states, with those that descendant steps may wait in."""
        for at, (is_descendant, _) in enumerate(self.steps):
            if is_descendant and states >> 2 * at & 1:
                states |= 2 << 2 * at
        return states

    def accepts(self, states: int) -> bool:
        return bool(states >> 2 * len(self.steps))


def twigs_of(canon: Canon) -> list[Twig] | None:
    """The nodes of a twig from the root down; None if it has branches, or shows another node."""
    found: list[Twig] = []
    twig: Twig | None = canon.disjunct.root
    while twig is not None:
        below = twig.below()
        if len(below) > 1 or twig.kinds != {ELEMENT} or twig.value is not None:
            return None
        if twig.attributes or twig.any_attributes:
            return None
        found.append(twig)
        twig = below[0] if below else None
    return found if all(shown is found[-1] for shown in canon.disjunct.outputs) else None


def uncovered_chains(
    canon: Canon, twigs: list[Twig], automaton: PathAutomaton, count: Callable[[], None]
) -> dict[Twig, int] | None:
    """The lengths of the chains of a model that the path does not match; None: it matches all.

    `count` is called for each state.
    """
    chained = set(canon.chains)
    known = {label for _, label in automaton.steps}
    labels = [label if (label := canon.string(twig.label)) in known else _FRESH for twig in twigs]
    waiting: deque[tuple[int, int, dict[Twig, int]]] = deque([(0, automaton.start, {})])
    seen: set[tuple[int, int]] = {(0, automaton.start)}
    while waiting:
        at, states, chains = waiting.popleft()
        count()
        if at == len(twigs):
            if not automaton.accepts(states):
                return chains
            continue
        twig = twigs[at]
        moves = [(at + 1, automaton.after(states, labels[at]), chains)]
        if twig in chained:
            length = chains.get(twig, 0)
            moves[0] = (*moves[0][:2], {**chains, twig: length})
            moves.append((at, automaton.after(states, _FRESH), {**chains, twig: length + 1}))
        for move in moves:
            if move[:2] not in seen:
                seen.add(move[:2])
                waiting.append(move)
    return None
