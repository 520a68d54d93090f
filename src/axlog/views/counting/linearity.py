"""Where rows of streams meet: which parts of the joins at sites the streams of a document feed.

A view is linear in its streams if no two rows of messages ever meet in a join, an `or` or a `not`
at a site: its rows are then the sum of the rows that each message gives alone, with the rest of the
document. Joins inside a message and with the part of the document without streams may be there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from axlog.document.tree import Tree
from axlog.query.compile import Column, Relation
from axlog.query.pattern import Axis
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.sites import SiteRelation


@dataclass(frozen=True, slots=True)
class Meetings:
    """Whether streams feed two parts of a join; the columns of each `or` and `not` they feed."""

    joins: bool
    connectives: tuple[tuple[Column, ...], ...]

    @property
    def is_linear(self) -> bool:
        """Whether messages never meet."""
        return not self.joins and not self.connectives

    def keep_apart(self, column: Column) -> bool:
        """Whether rows that differ in a column never meet in an `or` or a `not`."""
        return all(column in columns for columns in self.connectives)


def meetings_of(engine: CountingEngine, tree: Tree) -> Meetings:
    """Find where the streams of a document meet, at all sites above their calls."""
    engine.build()
    calls = {tree.parent(node) for node in tree.calls().values()}
    above = {node for call in calls for node in (call, *tree.ancestors(call))}
    joins, connectives = False, list[tuple[Column, ...]]()
    for node in above:
        below = {
            each.relation
            for site in above
            if site != node and tree.parent(site) == node
            for each in engine.states_at(site)
        }
        site = _Site(node in calls, below)
        for state in engine.states_at(node):
            joins = joins or site.fed_edges(state) > 1
            connectives += site.connectives(state)
    return Meetings(joins, tuple(connectives))


@dataclass(frozen=True, slots=True)
class _Site:
    """A node above a call."""

    has_call: bool
    below: set[Relation]  # the relations of the sites right below it

    def fed_edges(self, state: SiteRelation) -> int:
        """The number of edges of a relation that messages may feed."""
        if state.is_dead:
            return 0
        return sum(
            edge.axis is not Axis.CHILD or self.has_call or edge.relation in self.below
            for edge in state.relation.edges
            if edge.axis is not Axis.ATTRIBUTE
        )

    def connectives(self, state: SiteRelation) -> Iterator[tuple[Column, ...]]:
        """The columns of each `or` and `not` of a relation that messages may feed."""
        for choice, inputs in zip(state.relation.choices, state.alternatives, strict=True):
            if any(map(self._is_fed, inputs)):
                yield choice.columns
        for body in filter(self._is_fed, state.bodies):
            yield body.relation.columns
        for each in (*(one for inputs in state.alternatives for one in inputs), *state.bodies):
            yield from self.connectives(each)

    def _is_fed(self, state: SiteRelation) -> bool:
        inside = (*(one for inputs in state.alternatives for one in inputs), *state.bodies)
        return self.fed_edges(state) > 0 or any(map(self._is_fed, inside))
