"""Candidate times for the trees of a scenario: those at which a time constraint can change.

Without time constraints, each tree gets a time of its own, so that a time shown in a row occurs in
no other row. With constraints, trees are tried at the times at which some constraint changes
between true and false, relative to the times in the document and the clock, and at distinct times
after all of these. For constraints with coefficients -1, 0 and 1 the corners of the solution space
are among these times. All trees of a one-shot call have one time.

With other coefficients, or three times in one constraint, the candidates are a sample: a future
found with them is valid, but the absence of one decides nothing (`reason` is set).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.future.generalized_rows import Need
from axlog.query.compile import Relation
from axlog.query.pattern import Pattern, TimeConstraint, nodes_of

MOST_TIMES = 60
MOST_TRIED = 20_000

Group = tuple[str, tuple[Relation, ...]]
"""A future tree: its stream, and the sub-patterns that it matches."""


class Times:
    """The candidate times of trees, for one pattern and document."""

    def __init__(self, tree: Tree, pattern: Pattern) -> None:
        self.tree = tree
        self.reason = ""
        self._constraints = [c for c in pattern.where if isinstance(c, TimeConstraint)]
        self._is_incomplete = not all(map(_is_simple, self._constraints))
        self._known: dict[int, list[int]] = {}

    def _critical_times(self, trees: int) -> list[int]:
        """Times at or after the clock at which a constraint between `trees` trees can change."""
        if not self._constraints:
            return []
        if trees in self._known:
            return self._known[trees]
        tree = self.tree
        steps = {
            sign * constraint.bound + shift
            for constraint in self._constraints
            for sign in (-1, 1)
            for shift in (-1, 0, 1)
        }
        now = {tree.clock, tree.clock + 1}
        times = now | {tree.time(node) for node in tree.subtree(DOCUMENT_NODE)}
        for _ in range(trees):
            times |= {time + step for time in times for step in steps}
            if len(times) > 50 * MOST_TIMES:
                break
        found = sorted(time for time in times if time >= tree.clock)
        self._known[trees] = found[:MOST_TIMES]
        return self._known[trees]

    def of(
        self, groups: Sequence[tuple[str, tuple[Relation, ...]]], need: Need
    ) -> Iterator[list[int]]:
        """Assignments of times to these trees that satisfy a scenario's constraints."""
        slots: dict[object, int] = {}
        at = [
            slots.setdefault(stream if self._is_one_shot(stream) else number, len(slots))
            for number, (stream, _) in enumerate(groups)
        ]
        critical = self._critical_times(len(slots))
        if self._is_incomplete:
            self.reason = "a constraint has other coefficients than 1 and -1, or three times"
        if len(critical) >= MOST_TIMES:
            self.reason = "there are too many times at which a constraint may change its truth"
        last = max([self.tree.clock, *critical])
        choices = [[*critical, last + 1 + number] for number in range(len(slots))]
        for tried, chosen in enumerate(product(*choices)):
            if tried > MOST_TRIED:
                self.reason = f"undecided within {MOST_TRIED:,} choices of times"
                return
            times = [chosen[slot] for slot in at]
            if self._meets(groups, times, need):
                yield times

    def _is_one_shot(self, stream: str) -> bool:
        return self.tree.call(self.tree.calls()[stream]).mode == "one-shot"

    def _meets(
        self,
        groups: Sequence[Group],
        times: list[int],
        need: Need,
    ) -> bool:
        named: dict[str, int] = {}
        for (stream, relations), time in zip(groups, times, strict=True):
            named[f"?{stream}"] = time
            for relation in relations:
                if relation.node is not None:
                    named.update((n.name, time) for n in nodes_of(relation.node) if n.name)
        return all(_holds(each.terms, each.bound, named) for each in need.times)


def _is_simple(constraint: TimeConstraint) -> bool:
    """Whether a constraint has at most two times, with coefficients 1 and -1."""
    left: Counter[str] = Counter()
    for factor, name in constraint.terms:
        left[name] += factor
    factors = [factor for factor in left.values() if factor]
    return len(factors) <= 2 and all(factor in (1, -1) for factor in factors)


def _holds(terms: tuple[tuple[int, str], ...], bound: int, named: Mapping[str, int]) -> bool:
    if any(name not in named for _, name in terms):
        return True
    return sum(sign * named[name] for sign, name in terms) <= bound
