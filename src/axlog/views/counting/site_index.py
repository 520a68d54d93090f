"""An index of the states at the sites of an engine, by the relations that they look for.

With many views a site has many states. Rows of one relation concern few of them. The index is made
on first use for each site, again when sites have changed, and follows programs that are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from axlog.query.compile import Relation
from axlog.query.pattern import Axis
from axlog.views.counting.sites import SiteRelation

if TYPE_CHECKING:
    from axlog.views.counting.engine import CountingEngine

_NONE: list[SiteRelation] = []
_Readers = dict[Relation, list[SiteRelation]]


class SiteIndex:
    """Finds the states of an engine's sites by relation."""

    def __init__(self, engine: CountingEngine) -> None:
        self._engine = engine
        self._rebuilt = -1
        self._grown = 0  # the states that were added and are in the index
        self._readers: dict[int, _Readers] = {}
        self._states: dict[Relation, list[tuple[int, SiteRelation]]] | None = None

    def _refresh(self) -> None:
        engine = self._engine
        if self._rebuilt != engine.rebuilt:
            self._rebuilt, self._grown = engine.rebuilt, len(engine.grown)
            self._readers, self._states = {}, None
        for node, state in engine.grown[self._grown :] if self._grown < len(engine.grown) else ():
            if node in self._readers:
                _add_reader(self._readers[node], state)
            if self._states is not None:
                self._states.setdefault(state.relation, []).append((node, state))
        self._grown = len(engine.grown)

    def readers(self, node: int, relation: Relation) -> list[SiteRelation]:
        """The states at a site that look for a relation, in their connectives too, in order."""
        self._refresh()
        known = self._readers.get(node)
        if known is None:
            known = self._readers[node] = {}
            for state in self._engine.states_at(node):
                _add_reader(known, state)
        return known.get(relation, _NONE)

    def states_of(self, relation: Relation) -> list[tuple[int, SiteRelation]]:
        """The states of a relation, at all sites, each with its site."""
        self._refresh()
        if self._states is None:
            self._states = {}
            for node in self._engine.sites():
                for state in self._engine.states_at(node):
                    self._states.setdefault(state.relation, []).append((node, state))
        return self._states.get(relation, [])

    def below(self, states: Iterable[SiteRelation]) -> tuple[set[Relation], set[SiteRelation]]:
        """The relations whose rows reach some states, and the other states on their way."""
        given = set(states)
        relations: set[Relation] = set()
        on_the_way: set[SiteRelation] = set()
        waiting = list(given)
        while waiting:
            for relation in looked_for(waiting.pop().relation):
                if relation not in relations:
                    relations.add(relation)
                    lower = [s for _, s in self.states_of(relation) if s not in given]
                    waiting += [state for state in lower if state not in on_the_way]
                    on_the_way.update(lower)
        return relations, on_the_way


def looked_for(relation: Relation) -> Iterator[Relation]:
    """The relations that a relation joins at its node, in its connectives too."""
    waiting = [relation]
    while waiting:
        each = waiting.pop()
        for edge in each.edges:
            yield edge.relation
        waiting += [a for choice in each.choices for a in choice.alternatives]
        waiting += [absence.body for absence in each.absences]


def relations_reached(states: Iterable[SiteRelation], axes: Iterable[Axis]) -> tuple[Relation, ...]:
    """The relations that states reach along some axes, in their connectives too."""
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


def _add_reader(readers: _Readers, state: SiteRelation) -> None:
    for relation in dict.fromkeys(looked_for(state.relation)):
        readers.setdefault(relation, []).append(state)
