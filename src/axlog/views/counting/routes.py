"""Routes: where the rows of a stream's messages go, worked out before they come.

A message arrives at one place, its call; from there its deltas always climb the same sites. A route
is that climb with everything that does not depend on the message done: relations that only pass
rows on are skipped, each stop is a part of a join that keeps rows, and what a join yields has a
route of its own, up to the root relations. Where sites on the way evaluate connectives or a node
against itself, the engine's general climb is taken instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from axlog.datalog.compile import Relation
from axlog.datalog.joins import Bag, add_all
from axlog.document.tree import DOCUMENT_NODE
from axlog.evaluate.interpreter import Bags, Gathered
from axlog.language.pattern import Axis
from axlog.views.counting.sites import State

if TYPE_CHECKING:
    from axlog.views.counting.engine import CountingEngine

_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)


class Stop:
    """One part of a join that rows of a relation feed, and where the join's rows go from there."""

    __slots__ = ("part", "root", "state", "then")

    def __init__(self, state: State, part: int, then: list[Stop], root: Relation | None) -> None:
        self.state = state
        self.part = part
        self.then = then
        self.root = root

    def push(self, bag: Bag, answers: dict[Relation, Bag]) -> None:
        """Join a delta in and carry what it yields on."""
        delta = self.state.push(self.part, bag)
        if not delta:
            return
        if self.root is not None:
            known = answers.get(self.root)
            if known is None:
                answers[self.root] = dict(delta)
            else:
                add_all(known, delta)
        for stop in self.then:
            stop.push(delta, answers)


class Route:
    """What messages at one place can add to, and how it gets to the answers."""

    def __init__(self, engine: CountingEngine, node: int) -> None:
        self.engine = engine
        self.node = node
        self.version = engine.version
        path = [node, *engine.tree.ancestors(node)]
        self.here = _wanted(engine.states_at(node), (Axis.CHILD,))
        self.everywhere = _wanted((s for n in path for s in engine.states_at(n)), _DESCENT)
        self.is_direct = all(_is_plain(s.relation) for n in path for s in engine.states_at(n))
        self._stops: list[list[Stop]] = []
        if self.is_direct:
            here = {r: self._arrive(node, r, (Axis.CHILD,)) for r in self.here}
            everywhere = {r: self._descend(node, r) for r in self.everywhere}
            # What leads nowhere is not looked for: its ancestors are not the ones the pattern asks.
            self.here = tuple(r for r, stops in here.items() if stops)
            self.everywhere = tuple(r for r, stops in everywhere.items() if stops)
            self._stops = [here[r] for r in self.here] + [everywhere[r] for r in self.everywhere]

    def _arrive(self, node: int, relation: Relation, axes: Iterable[Axis]) -> list[Stop]:
        """The joins at a node that rows of a relation feed when they rise to it."""
        found: list[Stop] = []
        for state in self.engine.states_at(node):
            for part, edge in enumerate(state.relation.edges):
                if edge.relation is relation and edge.axis in axes:
                    found += self._through(node, state, part)
        return found

    def _descend(self, node: int, relation: Relation) -> list[Stop]:
        """The joins at a node and above it that see all that is below them."""
        path = [node, *self.engine.tree.ancestors(node)]
        return [stop for at in path for stop in self._arrive(at, relation, _DESCENT)]

    def _through(self, node: int, state: State, part: int) -> list[Stop]:
        root = state.relation if node == DOCUMENT_NODE else None
        then: list[Stop] = []
        if root is None:
            above = self.engine.tree.parent(node)
            then = self._arrive(above, state.relation, (Axis.CHILD,))
            if self.engine.is_descending(state.relation):
                then += self._descend(above, state.relation)
        if state.is_identity and root is None:
            return then
        return [Stop(state, part, then, root)]

    def run(self, bags: tuple[Bag, ...]) -> dict[Relation, Bag]:
        """Carry a message's bags (of `here`, then of `everywhere`) to the root relations."""
        if not self.is_direct:
            return self._climb(bags)
        answers: dict[Relation, Bag] = {}
        for bag, stops in zip(bags, self._stops, strict=True):
            if bag:
                self.engine.climbed += len(stops)
                for stop in stops:
                    stop.push(bag, answers)
        return answers

    def _climb(self, bags: tuple[Bag, ...]) -> dict[Relation, Bag]:
        at = len(self.here)
        below = Gathered(
            children=_nonempty(self.here, bags[:at]),
            descendants=_nonempty(self.everywhere, bags[at:]),
        )
        if not below.children and not below.descendants:
            return {}
        return self.engine.propagate({self.node: below})


def _nonempty(relations: tuple[Relation, ...], bags: tuple[Bag, ...]) -> Bags:
    return {r: bag for r, bag in zip(relations, bags, strict=True) if bag}


def _wanted(states: Iterable[State], axes: Iterable[Axis]) -> tuple[Relation, ...]:
    """The relations that states look for along some axes, in their connectives too."""
    found: dict[Relation, None] = {}
    for state in states:
        waiting = [state.relation]
        while waiting:
            relation = waiting.pop()
            for edge in relation.edges:
                if edge.axis in axes:
                    found[edge.relation] = None
            waiting += [a for choice in relation.choices for a in choice.alternatives]
            waiting += [absence.body for absence in relation.absences]
    return tuple(found)


def _is_plain(relation: Relation) -> bool:
    """Whether a relation's join looks only downward: no connectives, nothing at its own node."""
    own = (Axis.SELF, Axis.DESCENDANT_OR_SELF)
    return not (relation.choices or relation.absences or any(e.axis in own for e in relation.edges))
