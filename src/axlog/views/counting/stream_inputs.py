"""Which streams feed which parts of which joins, worked out from the places of their calls.

What arrives at a call rises through the sites above it. A stream feeds a part of a join when some
relation that its messages are matched with gets there through sites that only pass rows on. Where
it meets another join on the way, both are entangled: what the upper one waits for is then not a
matter of single messages, and it is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from axlog.document.tree import DOCUMENT_NODE
from axlog.future.garbage import Feeder
from axlog.future.keys import place_of
from axlog.query.compile import Relation
from axlog.query.pattern import Axis
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.sites import State

_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
_AT_ITS_OWN_NODE = (Axis.SELF, Axis.DESCENDANT_OR_SELF)


class Way(NamedTuple):
    """What rows have met on the way up."""

    is_joined: bool = False  # another join
    is_narrowed: bool = False  # a node whose own label or text they must agree with


@dataclass(slots=True)
class Feeding:
    """What streams bring to the parts of joins, and the joins and answers that it rises to."""

    parts: dict[tuple[State, int], list[Feeder]] = field(default_factory=dict)
    entangled: set[State] = field(default_factory=set)
    narrowed: set[State] = field(default_factory=set)
    """States that rows reach past a node that has a say in them (`Way`)."""
    brought: set[Relation] = field(default_factory=set)  # and all below them

    def of(self, state: State, part: int) -> tuple[Feeder, ...]:
        return tuple(self.parts.get((state, part), ()))


def feeding(engine: CountingEngine, calls: dict[str, int]) -> Feeding:
    """What the calls, each given by the node that it stands in, can bring to joins."""
    found = Feeding()
    for stream, node in sorted(calls.items()):
        here, everywhere = _wanted(engine, node)
        place = place_of(engine.tree, node)
        for relation in here:
            feeder = Feeder(stream, relation, True, place)
            _arrive(engine, found, node, relation, (Axis.CHILD,), feeder, Way())
        for relation in everywhere:
            feeder = Feeder(stream, relation, False, place)
            _descend(engine, found, node, relation, feeder, Way())
        found.brought.update(r for top in (*here, *everywhere) for r in top.walk())
    return found


def is_plain(relation: Relation) -> bool:
    """Whether a relation and all below it join only what is below their nodes."""
    return not any(
        each.choices or each.absences or any(edge.axis in _AT_ITS_OWN_NODE for edge in each.edges)
        for each in relation.walk()
    )


def joins_of_two(engine: CountingEngine) -> Iterator[tuple[int, State]]:
    """The sites' joins of two parts that nothing but rows of these parts moves."""
    for node in engine.sites():
        for state in engine.states_at(node):
            relation = state.relation
            if (
                len(relation.edges) == 2
                and relation.edges[0].relation is not relation.edges[1].relation
                and not relation.own
                and not state.is_dead
                and is_plain(relation)
            ):
                yield node, state


def roots_above(engine: CountingEngine, node: int, state: State) -> set[Relation] | None:
    """The answers that a state's rows rise to, if nothing on the way joins them; else None."""
    if node == DOCUMENT_NODE:
        return {state.relation}
    found: set[Relation] = set()
    path = [node, *engine.tree.ancestors(node)]
    for at, upper in enumerate(path[1:]):
        for above in engine.states_at(upper):
            for edge in above.relation.edges:
                reaches = edge.axis in _DESCENT or (at == 0 and edge.axis is Axis.CHILD)
                if edge.relation is not state.relation or not reaches or above.is_dead:
                    continue
                if not above.rule.is_passing or above.relation.own:
                    return None
                higher = roots_above(engine, upper, above)
                if higher is None:
                    return None
                found |= higher
    return found


def _wanted(engine: CountingEngine, node: int) -> tuple[list[Relation], list[Relation]]:
    """The relations that plain states look for at a node's children, and anywhere below it."""
    here = [r for s in engine.states_at(node) for r in _edges(s.relation, (Axis.CHILD,))]
    path = [node, *engine.tree.ancestors(node)]
    states = [s for n in path for s in engine.states_at(n)]
    everywhere = [r for s in states for r in _edges(s.relation, _DESCENT)]
    return list(dict.fromkeys(here)), list(dict.fromkeys(everywhere))


def _edges(relation: Relation, axes: Iterable[Axis]) -> Iterator[Relation]:
    """What a relation looks for along some axes, in its connectives too."""
    yield from (edge.relation for edge in relation.edges if edge.axis in axes)
    inside = [a for choice in relation.choices for a in choice.alternatives]
    inside += [absence.body for absence in relation.absences]
    for each in inside:
        yield from _edges(each, axes)


def _arrive(
    engine: CountingEngine,
    found: Feeding,
    node: int,
    relation: Relation,
    axes: Iterable[Axis],
    feeder: Feeder,
    way: Way,
) -> None:
    """Follow rows of a relation that rise to a node."""
    for state in engine.states_at(node):
        for part, edge in enumerate(state.relation.edges):
            if edge.relation is not relation or edge.axis not in axes or state.is_dead:
                continue
            each = found.parts.setdefault((state, part), [])
            if feeder not in each:
                each.append(feeder)
            if way.is_joined:
                found.entangled.add(state)
            if way.is_narrowed:
                found.narrowed.add(state)
            if node == DOCUMENT_NODE:
                continue
            joined = way.is_joined or not state.rule.is_passing
            higher = Way(joined, way.is_narrowed or bool(state.relation.own))
            above = engine.tree.parent(node)
            _arrive(engine, found, above, state.relation, (Axis.CHILD,), feeder, higher)
            if engine.is_descending(state.relation):
                _descend(engine, found, above, state.relation, feeder, higher)


def _descend(
    engine: CountingEngine,
    found: Feeding,
    node: int,
    relation: Relation,
    feeder: Feeder,
    way: Way,
) -> None:
    for at in (node, *engine.tree.ancestors(node)):
        _arrive(engine, found, at, relation, _DESCENT, feeder, way)
