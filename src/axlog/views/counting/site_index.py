"""An index of the states at the sites of an engine, by the relations that they look for.

With many views a site has many states. Rows of one relation concern few of them. The index is made
on first use for each site, and again when programs or sites have changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axlog.query.compile import Relation
from axlog.views.counting.sites import SiteRelation

if TYPE_CHECKING:
    from axlog.views.counting.engine import CountingEngine

_NONE: list[SiteRelation] = []


class SiteIndex:
    """Finds the states of an engine's sites by relation."""

    def __init__(self, engine: CountingEngine) -> None:
        self._engine = engine
        self._version = -1
        self._readers: dict[int, dict[Relation, list[SiteRelation]]] = {}
        self._states: dict[Relation, list[tuple[int, SiteRelation]]] | None = None

    def _refresh(self) -> None:
        if self._version != self._engine.version:
            self._version = self._engine.version
            self._readers, self._states = {}, None

    def readers(self, node: int, relation: Relation) -> list[SiteRelation]:
        """The states at a site that look for a relation, in their connectives too, in order."""
        self._refresh()
        known = self._readers.get(node)
        if known is None:
            known = self._readers[node] = _readers(self._engine.states_at(node))
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


def _readers(states: list[SiteRelation]) -> dict[Relation, list[SiteRelation]]:
    found: dict[Relation, dict[SiteRelation, None]] = {}
    for state in states:
        waiting = [state.relation]
        while waiting:
            relation = waiting.pop()
            for edge in relation.edges:
                found.setdefault(edge.relation, {})[state] = None
            waiting += [a for choice in relation.choices for a in choice.alternatives]
            waiting += [absence.body for absence in relation.absences]
    return {relation: list(each) for relation, each in found.items()}
