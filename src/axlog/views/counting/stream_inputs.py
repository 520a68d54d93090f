"""The streams that feed each part of a join, derived from the places of their calls.

Rows that arrive at a call rise through the sites above it. A stream feeds a part of a join if rows
of its messages reach the part through sites that only pass rows on. If the rows meet another join
on the way, both joins are entangled: the rows of the upper join then depend on more than single
messages, and the analyses skip it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from axlog.document.tree import DOCUMENT_NODE
from axlog.future.garbage import Feeder
from axlog.future.keys import place_of
from axlog.query.compile import Edge, Relation
from axlog.query.pattern import Axis
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.sites import SiteRelation

_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
_STREAM = attrgetter("stream")
_AT_ITS_OWN_NODE = (Axis.SELF, Axis.DESCENDANT_OR_SELF)
Placed: TypeAlias = tuple[int, SiteRelation]
"""A state with its site."""


class Way(NamedTuple):
    """What rows pass on their way up."""

    is_joined: bool = False  # another join
    is_narrowed: bool = False  # a node whose label or text restricts them


@dataclass(slots=True)
class StreamInputs:
    """The streams that feed the parts of joins, and the joins and relations that they reach."""

    parts: dict[tuple[SiteRelation, int], dict[Feeder, None]] = field(default_factory=dict)
    entangled: set[SiteRelation] = field(default_factory=set)
    narrowed: set[SiteRelation] = field(default_factory=set)
    """States whose rows pass a node that restricts them (`Way`)."""
    brought: set[Relation] = field(default_factory=set)
    """The relations matched on messages, and all below them."""

    def of(self, state: SiteRelation, part: int) -> tuple[Feeder, ...]:
        return tuple(self.parts.get((state, part), ()))


def stream_inputs(engine: CountingEngine, calls: dict[str, int]) -> StreamInputs:
    """The parts of joins that calls feed; `calls` maps a stream to the parent of its call."""
    found = StreamInputs()
    _follow(engine, found, calls, partial(_wanted, engine))
    return found


def extend_inputs(
    engine: CountingEngine, found: StreamInputs, calls: dict[str, int], relations: set[Relation]
) -> None:
    """Add the parts of states that were added to an engine.

    `relations`: those whose rows reach the new states (`SiteIndex.below`).
    """

    def wanted(node: int) -> tuple[list[Relation], list[Relation]]:
        path = [node, *engine.tree.ancestors(node)]
        here = [r for r in relations if _is_wanted(engine, node, r, (Axis.CHILD,))]
        return here, [r for r in relations if any(_is_wanted(engine, n, r, _DESCENT) for n in path)]

    _follow(engine, found, calls, wanted)


def _is_wanted(engine: CountingEngine, node: int, relation: Relation, axes: Iterable[Axis]) -> bool:
    return any(
        relation in _edges(state.relation, axes) for state in engine.index.readers(node, relation)
    )


def _follow(
    engine: CountingEngine,
    found: StreamInputs,
    calls: dict[str, int],
    wanted: Callable[[int], tuple[list[Relation], list[Relation]]],
) -> None:
    """Follow the rows of the relations that are wanted at the places of calls."""
    by_node: dict[int, list[str]] = {}
    for stream, node in sorted(calls.items()):
        by_node.setdefault(node, []).append(stream)
    touched: dict[tuple[SiteRelation, int], None] = {}
    for node, streams in by_node.items():
        here, everywhere = wanted(node)
        place = place_of(engine.tree, node)
        for relation in here:
            feeders = [Feeder(stream, relation, True, place) for stream in streams]
            _arrive(engine, found, touched, node, relation, (Axis.CHILD,), feeders, Way())
        for relation in everywhere:
            feeders = [Feeder(stream, relation, False, place) for stream in streams]
            _descend(engine, found, touched, node, relation, feeders, Way())
        found.brought.update(r for top in (*here, *everywhere) for r in top.walk())
    for part in touched:
        found.parts[part] = dict.fromkeys(sorted(found.parts[part], key=_STREAM))


def is_read(engine: CountingEngine, node: int, wanted: Container[Relation] | None = None) -> bool:
    """Whether some relation is matched on messages that arrive at the children of a node.

    So is one whose string value changes with them. `wanted`: the relations in question; None: all.
    """
    found = (relation for each in _wanted(engine, node) for relation in each)
    is_wanted = any(wanted is None or relation in wanted for relation in found)
    return is_wanted or engine.is_value_sensitive(node)


@lru_cache(maxsize=8192)
def is_plain(relation: Relation) -> bool:
    """Whether a relation and all relations below it join only nodes below their own.

    Cached, like `can_match`: all joins are looked at again when a view is added.
    """
    return not any(
        each.choices or each.absences or any(edge.axis in _AT_ITS_OWN_NODE for edge in each.edges)
        for each in relation.walk()
    )


def states_at_sites(engine: CountingEngine) -> list[Placed]:
    """All states of an engine, each with its site."""
    return [(node, state) for node in engine.sites() for state in engine.states_at(node)]


def joins_of_two(states: Iterable[Placed]) -> Iterator[Placed]:
    """The joins of two parts, among states, that only rows of these parts can change."""
    for node, state in _plain_joins(states):
        one, other, *more = state.relation.edges
        if not more and one.relation is not other.relation:
            yield node, state


def joins_of_more(states: Iterable[Placed]) -> Iterator[Placed]:
    """The joins of three or more parts, among states, that only rows of these can change."""
    for node, state in _plain_joins(states):
        if len(state.relation.edges) > 2:
            yield node, state


def joins_with_absences(
    engine: CountingEngine,
    states: Iterable[Placed],
    places: Mapping[str, int],
    replacing: Container[str],
) -> Iterator[Placed]:
    """The joins with `not`s, of which each part, and each `not`, can be judged on its own.

    No constraint ties the rows of a `not` to those of parts, and no stream feeds both: data for a
    part then need not bring rows of a `not`. No stream that replaces its messages feeds a `not`.
    """
    for node, state in states:
        relation = state.relation
        bodies = [absence.body for absence in relation.absences]
        if not bodies or state.is_dead or relation.own or relation.choices:
            continue
        if any(absence.tests for absence in relation.absences) or not all(map(is_plain, bodies)):
            continue
        if not relation.edges or not all(map(_is_plain_edge, relation.edges)):
            continue
        inside = [edge for body in bodies for edge in body.edges]
        if any(
            _reaches(engine, node, call, inside)
            and (stream in replacing or _reaches(engine, node, call, relation.edges))
            for stream, call in places.items()
        ):
            continue
        yield node, state


def _is_plain_edge(edge: Edge) -> bool:
    return edge.axis not in _AT_ITS_OWN_NODE and is_plain(edge.relation)


def _reaches(engine: CountingEngine, node: int, call: int, edges: Iterable[Edge]) -> bool:
    """Whether the data of a stream can reach a node by one of some edges.

    `call` is the parent of the call. Along a child axis, data reaches the node through the site
    below it that the call is in.
    """
    path = [call, *engine.tree.ancestors(call)]
    if node not in path:
        return False
    at = path.index(node)
    if at > 0 and path[at - 1] not in engine.sites():
        return True  # not known
    alive = {s.relation for s in engine.states_at(path[at - 1]) if at > 0 and not s.is_dead}
    return any(
        edge.axis in _DESCENT or (edge.axis is Axis.CHILD and (at == 0 or edge.relation in alive))
        for edge in edges
    )


def _plain_joins(states: Iterable[Placed]) -> Iterator[Placed]:
    for node, state in states:
        relation = state.relation
        is_join = len(relation.edges) > 1 and not relation.own
        if is_join and not state.is_dead and is_plain(relation):
            yield node, state


def roots_above(engine: CountingEngine, node: int, state: SiteRelation) -> set[Relation] | None:
    """The root relations that the rows of a state reach; None if a join is on the way."""
    if node == DOCUMENT_NODE:
        return {state.relation}
    found: set[Relation] = set()
    path = [node, *engine.tree.ancestors(node)]
    for at, upper in enumerate(path[1:]):
        for above in engine.index.readers(upper, state.relation):
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
    """The relations that states reach at the children of a node, and anywhere below it."""
    here = [r for s in engine.states_at(node) for r in _edges(s.relation, (Axis.CHILD,))]
    path = [node, *engine.tree.ancestors(node)]
    states = [s for n in path for s in engine.states_at(n)]
    everywhere = [r for s in states for r in _edges(s.relation, _DESCENT)]
    return list(dict.fromkeys(here)), list(dict.fromkeys(everywhere))


def _edges(relation: Relation, axes: Iterable[Axis]) -> Iterator[Relation]:
    """The relations that a relation reaches along some axes, in its connectives too."""
    yield from (edge.relation for edge in relation.edges if edge.axis in axes)
    inside = [a for choice in relation.choices for a in choice.alternatives]
    inside += [absence.body for absence in relation.absences]
    for each in inside:
        yield from _edges(each, axes)


def _arrive(
    engine: CountingEngine,
    found: StreamInputs,
    touched: dict[tuple[SiteRelation, int], None],
    node: int,
    relation: Relation,
    axes: Iterable[Axis],
    feeders: list[Feeder],
    way: Way,
) -> None:
    """Follow rows of a relation that rise to a node."""
    for state in engine.index.readers(node, relation):
        for part, edge in enumerate(state.relation.edges):
            if edge.relation is not relation or edge.axis not in axes or state.is_dead:
                continue
            each = found.parts.setdefault((state, part), {})
            if feeders[0] not in each:
                each.update(dict.fromkeys(feeders))
                touched[state, part] = None
            if way.is_joined:
                found.entangled.add(state)
            if way.is_narrowed:
                found.narrowed.add(state)
            if node == DOCUMENT_NODE:
                continue
            joined = way.is_joined or not state.rule.is_passing
            higher = Way(joined, way.is_narrowed or bool(state.relation.own))
            above = engine.tree.parent(node)
            _arrive(engine, found, touched, above, state.relation, (Axis.CHILD,), feeders, higher)
            if engine.is_descending(state.relation):
                _descend(engine, found, touched, above, state.relation, feeders, higher)


def _descend(
    engine: CountingEngine,
    found: StreamInputs,
    touched: dict[tuple[SiteRelation, int], None],
    node: int,
    relation: Relation,
    feeders: list[Feeder],
    way: Way,
) -> None:
    for at in (node, *engine.tree.ancestors(node)):
        _arrive(engine, found, touched, at, relation, _DESCENT, feeders, way)
