"""Routes: the path of a stream's rows from its call to the root relations, prepared in advance.

All messages of a stream arrive at its call, and their deltas rise through the same sites. A route
is this path with everything prepared that does not depend on the message. Relations that only pass
rows on are skipped. Each join that keeps rows is a generated sink, which passes its joined rows
directly to the next sink, up to the root relations. Where a site on the path evaluates connectives,
or joins a node with itself, the route uses the engine's general propagation instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from axlog.document.tree import DOCUMENT_NODE
from axlog.evaluate.interpreter import Bags, Gathered
from axlog.evaluate.joins import Bag, Row
from axlog.match.matcher_generator import Answers, Sink
from axlog.query.compile import Relation
from axlog.query.pattern import Axis
from axlog.views.counting.join_generator import can_generate, generate_sink
from axlog.views.counting.sites import State

if TYPE_CHECKING:
    from axlog.views.counting.engine import CountingEngine

Deliver: TypeAlias = Callable[[tuple[Bag, ...]], Answers]
"""Maps the bags of one message, in the order of the relations of the route, to the answers."""
_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
Known: TypeAlias = Mapping[str, frozenset[str | int]]
"""By column, the values that can still matter; an absent column may have any value."""


@dataclass(frozen=True, slots=True)
class Wants:
    """The relations that views still need from a stream: at the root of messages, and anywhere."""

    here: dict[Relation, Known] = field(default_factory=dict)
    everywhere: dict[Relation, Known] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.here or self.everywhere)


class Route:
    """The relations that messages at one place can feed, and the way of their rows to the answers.

    A direct route has a sink for each relation of `here`, then of `everywhere`. Any other route
    propagates by the general rule. `wants` restricts the route to the relations that the tuner
    found to be needed.
    """

    def __init__(
        self,
        engine: CountingEngine,
        node: int,
        wants: Wants | None = None,
        keys: Iterable[tuple[Relation, Sink]] = (),
    ) -> None:
        """`keys`: relations of key values at the root of messages, with their sinks."""
        self.engine = engine
        self._meters = engine.meters
        self.node = node
        path = [node, *engine.tree.ancestors(node)]
        self.here = _wanted(engine.states_at(node), (Axis.CHILD,))
        self.everywhere = _wanted((s for n in path for s in engine.states_at(n)), _DESCENT)
        if wants is not None:
            self.here = tuple(r for r in self.here if r in wants.here)
            self.everywhere = tuple(r for r in self.everywhere if r in wants.everywhere)
        self.is_direct = all(_is_plain(s) for n in path for s in engine.states_at(n))
        self.sinks: list[Sink] = []
        self.sources: list[str] = []  # of the generated sinks, for inspection
        if self.is_direct:
            here = {r: self._arrive(node, r, (Axis.CHILD,)) for r in self.here}
            everywhere = {r: self._descend(node, r) for r in self.everywhere}
            # Skip relations without a sink: their ancestors are not those of the pattern.
            self.here = tuple(r for r, sinks in here.items() if sinks)
            self.everywhere = tuple(r for r, sinks in everywhere.items() if sinks)
            known = wants or Wants()
            self.sinks = [_only(r, known.here.get(r), here[r]) for r in self.here]
            self.sinks += [
                _only(r, known.everywhere.get(r), everywhere[r]) for r in self.everywhere
            ]
        self._keys = [sink for _, sink in keys]
        at = len(self.here)
        self.here += tuple(relation for relation, _ in keys)
        self.sinks[at:at] = self._keys

    def _arrive(self, node: int, relation: Relation, axes: Iterable[Axis]) -> list[Sink]:
        """Sinks for the joins at a node that rows of a relation feed."""
        found: list[Sink] = []
        for state in self.engine.states_at(node):
            for part, edge in enumerate(state.relation.edges):
                if edge.relation is relation and edge.axis in axes and not state.is_dead:
                    found += self._through(node, state, part)
        return found

    def _descend(self, node: int, relation: Relation) -> list[Sink]:
        """Sinks for the joins at a node and above it that reach all nodes below them."""
        path = [node, *self.engine.tree.ancestors(node)]
        return [sink for at in path for sink in self._arrive(at, relation, _DESCENT)]

    def _through(self, node: int, state: State, part: int) -> list[Sink]:
        if node == DOCUMENT_NODE:
            then = [_into_answers(state.relation)]
        else:
            above = self.engine.tree.parent(node)
            then = self._arrive(above, state.relation, (Axis.CHILD,))
            if self.engine.is_descending(state.relation):
                then += self._descend(above, state.relation)
        if state.is_identity or not then:
            return then
        sink, source = generate_sink(state, part, _into_all(then))
        self.sources.append(source)
        return [sink]

    def deliver(self, bags: tuple[Bag, ...]) -> Answers:
        """The answers for the bags of one message; updates the tables."""
        if not self.is_direct:
            return self._propagate(bags)
        answers: Answers = {}
        self._meters.bags = bags
        for bag, sink in zip(bags, self.sinks, strict=True):
            for row, count in bag.items():
                sink(row, count, answers)
        return self.engine.close_update(answers) if self._meters.used else answers

    def _propagate(self, bags: tuple[Bag, ...]) -> Answers:
        """Propagate the bags of one message by the general rule."""
        at = len(self.here)
        answers: Answers = {}
        for bag, sink in zip(bags[at - len(self._keys) : at], self._keys, strict=True):
            for row, count in bag.items():
                sink(row, count, answers)
        below = Gathered(
            children=_nonempty(self.here, bags[:at]),
            descendants=_nonempty(self.everywhere, bags[at:]),
        )
        if not below.children and not below.descendants:
            return {}
        self._meters.bags = bags
        return self.engine.propagate({self.node: below})


def _into_answers(root: Relation) -> Sink:
    def sink(row: Row, count: int, answers: Answers) -> None:
        known = answers.get(root)
        if known is None:
            answers[root] = {row: count}
        else:
            known[row] = known.get(row, 0) + count

    return sink


def _into_all(sinks: list[Sink]) -> Sink:
    if len(sinks) == 1:
        return sinks[0]

    def sink(row: Row, count: int, answers: Answers) -> None:
        for each in sinks:
            each(row, count, answers)

    return sink


def _only(relation: Relation, known: Known | None, sinks: list[Sink]) -> Sink:
    """The sinks of a relation, restricted to rows whose values can still matter."""
    then = _into_all(sinks)
    if not known:
        return then
    tests = [(relation.columns.index(column), values) for column, values in known.items()]

    def sink(row: Row, count: int, answers: Answers) -> None:
        for at, values in tests:
            if row[at] not in values:
                return
        then(row, count, answers)

    return sink


def _nonempty(relations: tuple[Relation, ...], bags: tuple[Bag, ...]) -> Bags:
    return {r: bag for r, bag in zip(relations, bags, strict=True) if bag}


def _wanted(states: Iterable[State], axes: Iterable[Axis]) -> tuple[Relation, ...]:
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


def _is_plain(state: State) -> bool:
    """Whether a join looks only downward: no connectives, no edge to its own node."""
    own = (Axis.SELF, Axis.DESCENDANT_OR_SELF)
    is_downward = not any(edge.axis in own for edge in state.relation.edges)
    return is_downward and can_generate(state)
