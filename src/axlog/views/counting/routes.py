"""Routes: the path of a stream's rows from its call to the root relations, prepared in advance.

All messages of a stream arrive at its call, and their deltas rise through the same sites. A route
is this path with everything prepared that does not depend on the message. Relations that only pass
rows on are skipped. Each join is a generated sink, which passes its joined rows directly to the
next sink: through the semi joins and anti joins of its relation, and up to the root relations. The
rows of an `or` and a `not` have sinks that apply them to their operators. Where a site on the path
joins a node with itself, or has a join that cannot be generated, the route uses the engine's
general propagation instead.

A message costs the relations that it matches: their bags come by number, without the empty ones,
and `watches` names the joins that rows of a relation reach. Routes of many relations generate a
join when its first row arrives: most messages need few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from axlog.document.tree import DOCUMENT_NODE
from axlog.errors import QueryError, ValueProblem
from axlog.evaluate.gathered import Gathered
from axlog.evaluate.joins import Bag, Row
from axlog.match.matcher_generator import Answers, Sink, can_match
from axlog.match.stream_plan import EVERYWHERE
from axlog.query.compile import Relation
from axlog.query.pattern import Axis
from axlog.views.counting.join_outlook import Use
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.row_sinks import (
    Known,
    Take,
    ViewChanges,
    guarded,
    has_sink_for_rows,
    into_all,
    into_answers,
    on_first_use,
    only,
    scale_all,
    taker_of,
)
from axlog.views.counting.site_index import relations_reached
from axlog.views.counting.sites import SiteRelation
from axlog.views.operators.join_generator import Scale, generate_sink
from axlog.views.step_chain import negated

if TYPE_CHECKING:
    from axlog.views.change import Change
    from axlog.views.counting.engine import CountingEngine
    from axlog.views.counting.join_prospects import Watch
    from axlog.views.view import MaintainedView

Carry: TypeAlias = Callable[[tuple[Bag, ...], int], ViewChanges]
"""Applies the bags of one message, in the order of the relations of the route, at a time."""
FoundBags: TypeAlias = Mapping[int, Bag]
"""The bags of one message by the number of their relation, without the empty ones."""
_NUMBER = itemgetter(0)
_NOTHING: Bag = {}
_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
KeyUser: TypeAlias = "tuple[tuple[Relation, ...], Watch, int]"
"""The relations of a key's values, with the join that uses them and the part that has the key."""


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
        keys: Iterable[KeyUser] = (),
        many: int | None = None,
    ) -> None:
        """`keys`: the relations of a key's values at the root of messages, and who uses them.

        Values are used after all rows of a message were joined. From `many` relations on, joins are
        generated when their first row arrives.
        """
        self.engine = engine
        self._meters = engine.meters
        self._noted = engine.noted
        self.node = node
        path = [node, *engine.tree.ancestors(node)]
        self.here = relations_reached(engine.states_at(node), (Axis.CHILD,))
        on_path = [state for each in path for state in engine.states_at(each)]
        self.everywhere = relations_reached(on_path, _DESCENT)
        if wants is not None:
            self.here = tuple(r for r in self.here if r in wants.here)
            self.everywhere = tuple(r for r in self.everywhere if r in wants.everywhere)
        self.is_direct = all(map(has_sink_for_rows, on_path))
        self.wants = wants
        self._sink_of: dict[int, Sink] = {}
        self._numbers: tuple[dict[Relation, int], dict[Relation, int]] = ({}, {})
        """The numbers of the relations that have a sink: at the root, and anywhere."""
        self._next = [0, EVERYWHERE]
        self.rejects = False
        self._root_of: dict[Sink, Relation] = {}  # sinks of answers, with their roots
        self._alone: dict[Sink, Relation | None] = {}  # those of a root with one site
        self.sources: list[str] = []  # of the generated sinks, for inspection
        self._is_lazy = many is not None and len(self.here) + len(self.everywhere) >= many
        self._above_of: dict[SiteRelation, list[Sink]] = {}
        self._watches_of: dict[Sink, dict[Watch, None]] = {}
        self.watches: dict[int, tuple[Watch, ...]] = {}
        """By the number of a relation, the watched joins that its rows reach."""
        self._scaled: dict[Relation, tuple[MaintainedView, Counting]] = {}
        """Roots that feed one view, whose counts can be multiplied; see `_scale`."""
        self._known = wants or Wants()
        if self.is_direct:
            # Skip relations without a sink: their ancestors are not those of the pattern.
            self.here = tuple(r for r in self.here if self._enter(r, is_inside=False))
            self.everywhere = tuple(r for r in self.everywhere if self._enter(r, is_inside=True))
        self._views: dict[Relation, list[tuple[int, MaintainedView]]] = {}
        self._joint: list[tuple[int, MaintainedView, tuple[Relation, ...]]] = []
        self._followed: list[MaintainedView] = []
        self._only: dict[Relation, Take] = {}  # of roots that feed one view
        self.uses: list[tuple[Use, int, int]] = []
        """Functions that note the values of a key, with the numbers of the first and last bag."""
        self._uses_of: dict[int, list[tuple[Use, int, int]]] = {}  # by the number of a bag
        self._key_numbers: dict[tuple[Relation, ...], int] = {}
        self.keys: list[KeyUser] = []
        self._use(keys)
        self.can_match = all(map(can_match, (*self.here, *self.everywhere)))

    def _enter(self, relation: Relation, is_inside: bool) -> bool:
        """Make the sink of a relation at the root of messages or anywhere; False: it has none."""
        if is_inside:
            sinks, known = self._descend(self.node, relation), self._known.everywhere
        else:
            sinks, known = self._arrive(self.node, relation, (Axis.CHILD,)), self._known.here
        if not sinks:
            return False
        numbers = self._numbers[is_inside]
        number = numbers.get(relation)
        if number is None:
            number = numbers[relation] = self._next[is_inside]
            self._next[is_inside] += 1
        self._sink_of[number] = only(relation, known.get(relation), sinks)
        found: dict[Watch, None] = {}
        for sink in sinks:
            found |= self._watches_of.get(sink, {})
        self.watches[number] = tuple(found)
        return True

    def _use(self, keys: Iterable[KeyUser]) -> None:
        """Note the values of keys in messages."""
        for each in keys:
            self.keys.append(each)
            relations, join, part = each
            at = self._key_numbers.get(relations)
            if at is None:
                at = self._key_numbers[relations] = len(self.here)
                self.here += relations
                self._next[False] = len(self.here)
            used = join.user(part), at, at + len(relations)
            self.uses.append(used)
            for number in range(at, at + len(relations)):
                self._uses_of.setdefault(number, []).append(used)
                self.watches[number] = (*self.watches.get(number, ()), join)

    def grow(self, states: Sequence[tuple[int, SiteRelation]], keys: list[KeyUser]) -> bool:
        """Add the relations of states that were added to the engine; False: make another route.

        `keys`: those of all joins. Sinks of rows that reach none of the new states stay.
        """
        path = [self.node, *self.engine.tree.ancestors(self.node)]
        new = [state for node, state in states if node in path]
        known_keys = len(self.keys)
        if not self.is_direct or self.wants is not None or not all(map(has_sink_for_rows, new)):
            return False
        if keys[:known_keys] != self.keys:
            return False
        at_root = [state for node, state in states if node == self.node]
        here = relations_reached(at_root, (Axis.CHILD,))
        everywhere = relations_reached(new, _DESCENT)
        relations, on_the_way = self.engine.index.below(new)
        for state in on_the_way:
            self._above_of.pop(state, None)
        for is_inside, wanted in ((False, here), (True, everywhere)):
            known = self._numbers[is_inside]
            for relation in [each for each in known if each in relations]:
                self._enter(relation, is_inside)
            more = [each for each in wanted if each not in known]
            added = tuple(each for each in more if self._enter(each, is_inside))
            if is_inside:
                self.everywhere += added
            else:
                self.here += added
            self.can_match = self.can_match and all(map(can_match, added))
        more_keys = keys[known_keys:]
        self._use(more_keys)
        used = [relation for relations, _, _ in more_keys for relation in relations]
        self.can_match = self.can_match and all(map(can_match, used))
        return True

    @property
    def into_rows(self) -> list[tuple[int, Sink]]:
        """The sinks of rows, with the places of their relations among all bags."""
        at = len(self.here)
        return [
            (number if number < EVERYWHERE else number - EVERYWHERE + at, sink)
            for number, sink in sorted(self._sink_of.items(), key=_NUMBER)
        ]

    def found_bags(self, bags: tuple[Bag, ...]) -> dict[int, Bag]:
        """The bags of all relations by the number of their relation, without the empty ones."""
        at, behind = len(self.here), EVERYWHERE - len(self.here)
        return {(n if n < at else n + behind): bag for n, bag in enumerate(bags) if bag}

    def _arrive(self, node: int, relation: Relation, axes: Iterable[Axis]) -> list[Sink]:
        """Sinks for the operators at a node that rows of a relation feed."""
        return [
            sink
            for state in self.engine.index.readers(node, relation)
            for sink in self._into(state, relation, axes, partial(self._above, node, state))
        ]

    def _descend(self, node: int, relation: Relation) -> list[Sink]:
        """Sinks for the operators at a node and above it that reach all nodes below them."""
        path = [node, *self.engine.tree.ancestors(node)]
        return [sink for at in path for sink in self._arrive(at, relation, _DESCENT)]

    def _above(self, node: int, state: SiteRelation) -> list[Sink]:
        """Sinks for the rows of a relation at a site."""
        known = self._above_of.get(state)
        if known is None:
            known = self._above_of[state] = self._made_above(node, state)
        return known

    def _made_above(self, node: int, state: SiteRelation) -> list[Sink]:
        if node == DOCUMENT_NODE:
            sink = into_answers(state.relation)
            self._root_of[sink] = state.relation
            return [sink]
        above = self.engine.tree.parent(node)
        then = self._arrive(above, state.relation, (Axis.CHILD,))
        if self.engine.is_descending(state.relation):
            then += self._descend(above, state.relation)
        elif above == DOCUMENT_NODE and node == self.engine.tree.root:
            # All rows of the relation come from this site: a factor of them can be kept apart.
            for sink in then:
                self._alone[sink] = self._root_of.get(sink)
        return then

    def _into(
        self,
        state: SiteRelation,
        relation: Relation,
        axes: Iterable[Axis],
        then: Callable[[], list[Sink]],
    ) -> list[Sink]:
        """Sinks for rows of a relation that a relation at a site looks for, in its connectives too.

        `then` gives the sinks for the rows of the relation at the site.
        """
        if state.is_dead:
            return []
        found: list[Sink] = []
        for part, edge in enumerate(state.relation.edges):
            if edge.relation is relation and edge.axis in axes:
                found += self._through(state, part, then())
        for number, inputs in enumerate(state.alternatives):
            for port, each in enumerate(inputs):
                into = partial(self._choose, state, number, port, then)
                found += self._into(each, relation, axes, into)
        for number, body in enumerate(state.bodies):
            found += self._into(body, relation, axes, partial(self._block, state, number, then))
        return found

    def _through(self, state: SiteRelation, part: int, then: list[Sink]) -> list[Sink]:
        """The sink of one part of a join."""
        if state.is_identity or not then:
            return then
        joined = into_all(then)
        if state.rule.is_guarded:
            joined = guarded(state, joined)
        root = self._alone.get(then[0]) if len(then) == 1 and not state.rule.is_guarded else None
        scale = None if root is None else partial(self._scale, root)
        make = partial(self._generated, state, part, joined, scale)
        return [self._noted_watches(on_first_use(make) if self._is_lazy else make(), state, then)]

    def _generated(self, state: SiteRelation, part: int, joined: Sink, scale: Scale | None) -> Sink:
        sink, source = generate_sink(state.join, part, joined, scale, self._root_of.get(joined))
        self.sources.append(source)
        return sink

    def _noted_watches(self, sink: Sink, state: SiteRelation, then: list[Sink]) -> Sink:
        """Note the watched joins that rows of a sink reach."""
        found: dict[Watch, None] = {}
        if state.join.waiting is not None:
            found[state.join.waiting] = None
        for each in then:
            found |= self._watches_of.get(each, {})
        if found:
            self._watches_of[sink] = found
        return sink

    def _scale(self, root: Relation, answers: Answers, before: int, after: int) -> bool:
        """Multiply the counts of all rows of a root's views; False if that is not possible."""
        if root in answers or self.rejects:
            return False
        alone = self._scaled.get(root)
        if alone is not None and alone[0].maintainer is alone[1]:
            alone[1].scale(before, after)
            return True
        if any(root in roots for _, _, roots in self._joint):
            return False
        return scale_all([view for _, view in self._views.get(root, ())], before, after)

    def _choose(
        self, state: SiteRelation, number: int, port: int, then: Callable[[], list[Sink]]
    ) -> list[Sink]:
        """The sink of one alternative of an `or`."""
        sinks = then()
        if not sinks:
            return []
        into = into_all(sinks)
        (join,) = self._through(state, len(state.relation.edges) + number, sinks)

        def sink(row: Row, count: int, answers: Answers) -> None:
            found: Bag = {}
            try:
                chosen = state.choose(number, port, {row: count}, found)
            except QueryError as error:
                state.rule.note(error)
                return
            for each, more in found.items():
                into(each, more, answers)
            for each, more in chosen.items():
                join(each, more, answers)

        return [self._noted_watches(sink, state, sinks)]

    def _block(
        self, state: SiteRelation, number: int, then: Callable[[], list[Sink]]
    ) -> list[Sink]:
        """The sink of the body of a `not`."""
        sinks = then()
        if not sinks:
            return []
        into = into_all(sinks)

        def sink(row: Row, count: int, answers: Answers) -> None:
            found: Bag = {}
            try:
                state.block(number, {row: count}, found)
            except QueryError as error:
                state.rule.note(error)
                return
            for each, more in found.items():
                into(each, more, answers)

        return [self._noted_watches(sink, state, sinks)]

    def patterns(self) -> tuple[str, ...]:
        """The patterns that views look for in messages: at the root, or anywhere (`//`)."""
        found = [str(relation.node) for relation in self.here]
        found += [f"//{str(relation.node).lstrip('/')}" for relation in self.everywhere]
        return tuple(sorted(set(found)))

    def follow(self, views: Sequence[MaintainedView]) -> None:
        """Pass answers on to these views (`carry`); those that it follows already come first."""
        at = len(self._followed)
        if self._followed != views[:at]:
            self._views, self._joint, self._only = {}, [], {}
            self._scaled.clear()
            self._followed, self.rejects, at = [], False, 0
        changed: dict[Relation, None] = {}
        for number, view in enumerate(views[at:], at):
            if isinstance(view.maintainer, Counting):
                self.rejects = self.rejects or view.rejects
                roots = view.maintainer.roots
                if len(roots) > 1:
                    self._joint.append((number, view, roots))
                else:
                    self._views.setdefault(roots[0], []).append((number, view))
                changed |= dict.fromkeys(roots)
        self._followed = list(views)
        joint = {root for _, _, roots in self._joint for root in roots}
        for root in changed:
            self._only.pop(root, None)
            self._scaled.pop(root, None)
            found = self._views.get(root, ())
            if len(found) == 1 and root not in joint:
                view = found[0][1]
                self._only[root] = taker_of(view, partial(self._take_otherwise, root))
                if isinstance(view.maintainer, Counting) and view.maintainer.can_scale:
                    self._scaled[root] = view, view.maintainer

    def carry(self, bags: tuple[Bag, ...], time: int) -> ViewChanges:
        """`carry_found` for the bags of all relations."""
        return self.carry_found(self.found_bags(bags), time)

    def carry_found(self, found: FoundBags, time: int) -> ViewChanges:
        """Apply the bags of one message to the tables and the views; the changes, by view.

        If a view rejects a value, it raises, and takes everything back.
        """
        if self.rejects:
            emitted = self._carry_whole(found, time)
        else:
            answers = self._deliver(found)
            emitted = self.take(answers, time) if answers else []
        if self.uses:
            self._use_keys(found)
        return emitted

    def touched(self, found: FoundBags) -> Iterable[Watch]:
        """The watched joins that the bags of a message reach."""
        watches = self.watches
        if len(found) == 1:
            (only,) = found
            return watches.get(only, ())
        reached: dict[Watch, None] = {}
        for number in found:
            for each in watches.get(number, ()):
                reached[each] = None
        return reached

    def _use_keys(self, found: FoundBags) -> None:
        """Note the values of keys in a message. The patterns of a key mostly find the same."""
        uses: dict[tuple[Use, int, int], None] = {}
        for number in found:
            for each in self._uses_of.get(number, ()):
                uses[each] = None
        for use, at, end in uses:
            first = found.get(at, _NOTHING)
            for row in first:
                use(row)
            for other in range(at + 1, end):
                bag = found.get(other, _NOTHING)
                if bag != first:
                    for row in bag:
                        if row not in first:
                            use(row)

    def take(self, answers: Answers, time: int) -> ViewChanges:
        """Pass the answers of a message to the views; their changes."""
        if len(answers) == 1:
            ((root, bag),) = answers.items()
            only = self._only.get(root)
            if only is not None:
                return only(bag, time)
        found: list[tuple[int, MaintainedView, list[Change]]] = []
        for root, bag in answers.items():
            for number, view in self._views.get(root, ()):
                maintainer = view.maintainer
                if isinstance(maintainer, Counting):  # else it was set aside
                    changes = view.taken(maintainer.take(bag), time)
                    if changes:
                        found.append((number, view, changes))
        for number, view, maintainer, moved in self._jointly(answers):
            changes = view.taken(maintainer.take_all(moved), time)
            if changes:
                found.append((number, view, changes))
        if len(found) > 1:
            found.sort(key=_NUMBER)
        return [(view, changes) for _, view, changes in found]

    def _take_otherwise(self, root: Relation, bag: Bag, time: int) -> ViewChanges:
        """`take` for a root relation whose only view has another maintainer now."""
        self._only.pop(root, None)
        return self.take({root: bag}, time)

    def taker(self, root: Relation) -> Take:
        """`take` for the answers of one root relation."""
        return self._only.get(root) or (lambda bag, time: self.take({root: bag}, time))

    def _carry_whole(self, found: FoundBags, time: int) -> ViewChanges:
        """Do the same; a view that rejects a value takes back what the others did.

        Views that reject nothing come last, so that they need not take anything back.
        """
        taken: list[tuple[int, MaintainedView, Counting, list[Bag], list[Change]]] = []
        try:
            answers = self._deliver(found)
            concerned = [
                (number, view, view.maintainer, [bag])
                for root, bag in answers.items()
                for number, view in self._views.get(root, ())
                if isinstance(view.maintainer, Counting)
            ]
            concerned += self._jointly(answers)
            concerned.sort(key=lambda each: not each[1].rejects)
            for number, view, maintainer, moved in concerned:
                taken.append((number, view, maintainer, moved, maintainer.take_all(moved)))
        except ValueProblem:
            self._deliver({number: negated(bag) for number, bag in found.items()})
            for _, _, maintainer, moved, _ in reversed(taken):
                maintainer.take_all(list(map(negated, moved)))
            raise
        taken.sort(key=_NUMBER)
        emitted = [(view, view.taken(changes, time)) for _, view, _, _, changes in taken]
        return [(view, changes) for view, changes in emitted if changes]

    def _jointly(
        self, answers: Answers
    ) -> Iterator[tuple[int, MaintainedView, Counting, list[Bag]]]:
        """The views with several root relations that an update concerns, with their deltas."""
        for number, view, roots in self._joint:
            maintainer = view.maintainer
            moved = [answers.get(root, _NOTHING) for root in roots]
            if any(moved) and isinstance(maintainer, Counting):
                yield number, view, maintainer, moved

    def root_of(self, sink: Sink) -> Relation | None:
        """The root relation whose answers a sink adds to, and nothing else; None: it does more."""
        return self._root_of.get(sink)

    def _deliver(self, found: FoundBags) -> Answers:
        """The answers for the bags of one message; updates the tables."""
        if not self.is_direct:
            return self._propagate(found)
        answers: Answers = {}
        meters, sinks = self._meters, self._sink_of
        meters.bags = found.values()
        for number in sorted(found):
            sink = sinks.get(number)
            if sink is not None:  # otherwise the values of a key
                for row, count in found[number].items():
                    sink(row, count, answers)
        if meters.used or self._noted:
            return self.engine.close_update(answers)
        return answers

    def _propagate(self, found: FoundBags) -> Answers:
        """Propagate the bags of one message by the general rule."""
        below = Gathered()
        for number, bag in found.items():
            if number < EVERYWHERE:
                below.children[self.here[number]] = bag
            else:
                below.descendants[self.everywhere[number - EVERYWHERE]] = bag
        if not found:
            return {}
        self._meters.bags = found.values()
        return self.engine.propagate({self.node: below})
