"""The choice of the snowcaps that a view keeps: none, one for each level, or by cost.

The best choice depends on the data and the updates, and both are measured as updates arrive. A term
that was evaluated from the leaves reports the nodes that it read beside the path. Its snowcap would
have saved these reads, at the cost of following every relevant update, together with the smaller
snowcaps in its chain. Costs are counted in nodes read; an operation on columns counts as a fixed
number of nodes. Old updates count less, so the choice adapts when data or updates drift. The choice
is made again every `EVERY` updates.

Snowcaps are in the lattice of the engine: two views that choose the same snowcap share it. (Paper
5, section 3.5, leaves the optimal choice open.)
"""

from __future__ import annotations

from dataclasses import dataclass

from axlog.views.algebraic.direct import identifying_node
from axlog.views.algebraic.labels import MovedLabels, may_concern
from axlog.views.algebraic.lattice import (
    Lattice,
    Nodes,
    Snowcap,
    chain,
    may_be_kept,
    part_of,
)
from axlog.views.algebraic.relation import Relation
from axlog.views.algebraic.reports import Report
from axlog.views.algebraic.shape import Shape

MODES = ("cost", "levels", "leaves")
EVERY = 8
"""Updates from one choice to the next."""
FADING = 0.9
"""The factor by which older observations count less after each update."""
FOLLOWING = 1500.0
"""The cost for a snowcap to follow a relevant update, in nodes read."""
IDLING = 50.0
"""The cost for an update whose labels cannot affect the snowcap."""
USING = 2500.0
"""The extra cost of a term with tables and a kept snowcap over `direct` evaluation."""


@dataclass(slots=True)
class Seen:
    """Observations of the terms of a snowcap: uses, and nodes read from the leaves."""

    uses: float = 0.0
    work: float = 0.0

    def fade(self) -> None:
        self.uses *= FADING
        self.work *= FADING


class Snowcaps:
    """The snowcaps of one view."""

    def __init__(self, shape: Shape, lattice: Lattice, mode: str = "cost") -> None:
        self.shape = shape
        self.lattice = lattice
        self.mode = mode
        self._kept: dict[Nodes, tuple[Snowcap, dict[int, int]]] = {}
        self._seen: dict[Nodes, Seen] = {}
        self._updates = 0.0
        self._followed: dict[Nodes, float] = {}  # updates that concerned a level, fading
        self._using = 0.0 if identifying_node(shape) is None else USING
        self._until = EVERY
        self.choices = 0  # number of times that another set was chosen
        if mode == "levels":
            everything = frozenset(range(1, len(shape.nodes) - 1))
            self._keep([level for level in chain(everything) if may_be_kept(shape, level)])

    def find(self, nodes: Nodes) -> tuple[Relation, dict[int, int]] | None:
        """The rows of a snowcap, if it is kept and up to date."""
        known = self._kept.get(nodes)
        if known is None or known[0].is_stale:
            return None
        return known[0].relation, known[1]

    @property
    def chosen(self) -> list[Nodes]:
        return sorted(self._kept, key=sorted)

    @property
    def are_kept(self) -> bool:
        """Whether a snowcap is kept."""
        return bool(self._kept)

    def close(self) -> None:
        self._keep([])

    # Choosing -------------------------------------------------------------------------------------

    def learn(self, report: Report, labels: MovedLabels) -> None:
        """Record one update; choose again every `EVERY` updates."""
        if self.mode != "cost":
            return
        self._updates = self._updates * FADING + 1
        if not (self._seen or report.costs or self._kept):
            return  # nothing to choose from yet
        if self._kept or any(self._saved(seen) > 0 for seen in self._seen.values()):
            for level in self._followed:
                part, _ = part_of(self.shape, level)
                self._followed[level] *= FADING
                self._followed[level] += may_concern(part, labels)
        for seen in self._seen.values():
            seen.fade()
        for nodes, work, is_kept in report.costs:
            seen = self._seen.get(nodes) or self._met(nodes)
            # A kept snowcap hides its savings: earlier observations continue to count.
            expected = seen.work / seen.uses if is_kept and seen.uses else work
            seen.uses += 1
            seen.work += expected
        self._until -= 1
        if not self._until:
            self._until = EVERY
            self._choose()

    def _met(self, nodes: Nodes) -> Seen:
        """The observations of a snowcap; a new one is tracked from now on."""
        if may_be_kept(self.shape, nodes):
            for level in chain(nodes):
                self._followed.setdefault(level, 0.0)
        seen = self._seen[nodes] = Seen()
        return seen

    def _choose(self) -> None:
        chosen: list[Nodes] = []
        least = 0.0 if len(self.lattice) else IDLING * self._updates  # nothing to share
        if not self._kept and all(self._saved(seen) <= least for seen in self._seen.values()):
            return
        for nodes, seen in sorted(self._seen.items(), key=lambda item: -item[1].work):
            if may_be_kept(self.shape, nodes) and self._saved(seen) > self.price(nodes, chosen):
                chosen.append(nodes)
        if set(chosen) != set(self._kept):
            self.choices += 1
            self._keep(chosen)

    def _saved(self, seen: Seen) -> float:
        """The recent savings that a kept snowcap would have had."""
        return seen.work - self._using * seen.uses

    def price(self, nodes: Nodes, chosen: list[Nodes]) -> float:
        """The cost of one more snowcap, with the levels of its chain that are not kept yet."""
        kept = {level for one in chosen for level in chain(one)}
        more = [level for level in chain(nodes) if level not in kept]
        return sum(self._price_of(level) for level in more if not self._is_shared(level))

    def _price_of(self, level: Nodes) -> float:
        followed = self._followed.get(level, self._updates)
        return FOLLOWING * followed + IDLING * self._updates

    def _is_shared(self, level: Nodes) -> bool:
        """Whether another view keeps this level anyway."""
        own = sum(1 for nodes in self._kept for kept in chain(nodes) if kept == level)
        return self.lattice.users(self.shape, level) > own

    def _keep(self, wanted: list[Nodes]) -> None:
        for nodes in wanted:
            if nodes not in self._kept:
                self._kept[nodes] = self.lattice.take(self.shape, nodes)
        for nodes in [nodes for nodes in self._kept if nodes not in wanted]:
            self.lattice.drop(self.shape, nodes)
            del self._kept[nodes]

    def lines(self) -> list[str]:
        """The kept snowcaps, for `explain`."""
        return [
            f"snowcap {' '.join(str(self.shape.nodes[n]) for n in sorted(nodes))}: "
            f"{len(snowcap.relation)} rows, {snowcap.users} users"
            for nodes, (snowcap, _) in sorted(self._kept.items(), key=lambda item: sorted(item[0]))
        ]
