"""The joins of a document whose rows the collector watches: those that streams feed.

A join is watched where the rows that wait in it, and the key values that it has seen, decide what
can still come (`views/counting/join_prospects.py`). Joins of two parts are `WaitingRows`, joins of
more parts or with `not`s `JoinWatch`. The joins are found again when sites, views or calls have
changed. If views were only added, and rows of the watched joins do not reach them, the joins of the
new views are added to the others: this costs the new views alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

from axlog.future.clock_outlook import lower_bounds
from axlog.future.deletions import loses_by
from axlog.future.garbage import Feeder, Pair, judged, pair_of
from axlog.future.join_inputs import JoinInputs, inputs_of
from axlog.future.keys import Key, keyed_relations, values_seen
from axlog.future.scenarios import may_bring
from axlog.live.maintained import MaintainedTree
from axlog.live.replacements import replacing_streams
from axlog.query.compile import Column, Relation, depends_on_value
from axlog.views.counting.join_prospects import Watch
from axlog.views.counting.join_watch import JoinWatch
from axlog.views.counting.join_watch import refusal as more_refusal
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.sites import SiteRelation
from axlog.views.counting.state_codec import numbered_states
from axlog.views.counting.stepped import SteppedCounting
from axlog.views.counting.stream_inputs import (
    Placed,
    StreamInputs,
    extend_inputs,
    joins_of_more,
    joins_of_two,
    joins_with_absences,
    states_at_sites,
    stream_inputs,
)
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.stepped import Stepped
from axlog.views.view import MaintainedView


@dataclass(frozen=True, slots=True)
class Growth:
    """The states and views that were added since the joins were found."""

    states: list[Placed]
    views: list[MaintainedView]
    relations: set[Relation]  # whose rows reach the states


class WatchedJoins:
    """Finds the joins of one document to watch, and keeps those that stay."""

    def __init__(self, document: MaintainedTree, drops: bool, keeps: bool, how: str) -> None:
        self._document = document
        self._drops, self._keeps, self._how = drops, keeps, how
        self._found_for: tuple[int, list[MaintainedView], list[str]] | None = None
        self._rebuilt = -1
        self._grown = 0  # the states among those added to the engine that were looked at
        self.joins: dict[Watch, int] = {}  # the watched joins, each with its site
        self.inputs = StreamInputs()
        self._is_restoring = False  # whether key values come from a saved state
        self._saved: Container[int] | None = None  # the numbers of the joins in this state
        self._stops: dict[tuple[int, Relation], tuple[int, int] | None] = {}  # ends, by join

    def clear(self) -> None:
        """Stop watching all joins."""
        for join in self.joins:
            join.settle()
            join.state.join.waiting = None
        self.joins.clear()
        self.inputs, self._found_for = StreamInputs(), None

    def numbered(self) -> dict[int, Watch]:
        """Return the watched joins by the numbers of their states."""
        numbers = numbered_states(self._document.engine)
        return {numbers[join.state]: join for join in self.joins}

    @contextmanager
    def restoring(self, saved: Container[int] | None) -> Iterator[None]:
        """Find the joins of a saved state in the body. None: it does not name them."""
        self._is_restoring, self._saved = True, saved
        try:
            yield
        finally:
            self._is_restoring, self._saved = False, None

    def admit_new_streams(self) -> None:
        """Add the streams that the last message of another stream opened to the joins they feed."""
        known = set() if self._found_for is None else set(self._found_for[2])
        places = self._places() if self.joins else {}
        if not places.keys() - known:
            return
        inputs = stream_inputs(self._document.engine, places)
        for join in self.joins:
            for part in range(len(join.open)):
                streams = {feeder.stream for feeder in inputs.of(join.state, part)}
                join.admit(part, streams - known)

    def find(self) -> list[Watch] | None:
        """Find the joins to watch. Return the joins that were added, none if nothing has changed.

        None: all joins were found anew.
        """
        document = self._document
        engine = document.engine
        views = list(document.views.values())
        engine.build()
        found_for = (engine.version, views, sorted(document.tree.calls_by_stream))
        if self._found_for == found_for:
            return []
        growth = self._growth(found_for)
        self._found_for = found_for
        self._rebuilt, self._grown = engine.rebuilt, len(engine.grown)
        if growth is not None:
            known = len(self.joins)
            extend_inputs(engine, self.inputs, self._places(), growth.relations)
            old = {join.state: join for join in self.joins}
            self._watch(old, growth.states, growth.views)
            return list(self.joins)[known:]
        self.inputs = StreamInputs()
        for join in self.joins:
            join.settle()
        old = {join.state: join for join in self.joins}
        self._stops = {
            (node, join.relation): join.stopped
            for join, node in self.joins.items()
            if isinstance(join, WaitingRows)
        }
        self.joins.clear()
        if engine.sites():  # without views there are none
            self.inputs = stream_inputs(engine, self._places())
            self._watch(old, states_at_sites(engine), views)
        for state, join in old.items():
            if join not in self.joins and state.join.waiting is join:
                state.join.waiting = None
        return None

    def may_grow(self) -> bool:
        """Return whether `find` looks at views that were added, and at no others."""
        document = self._document
        document.engine.build()
        calls = sorted(document.tree.calls_by_stream)
        now = (document.engine.version, list(document.views.values()), calls)
        return self._found_for == now or self._growth(now) is not None

    def _growth(self, now: tuple[int, list[MaintainedView], list[str]]) -> Growth | None:
        """Return what was added since the joins were found; None: other things changed, too.

        Also if rows of a watched join reach a new view: what is known of the join may be different
        for it.
        """
        engine = self._document.engine
        if self._found_for is None or self._rebuilt != engine.rebuilt or self._is_restoring:
            return None
        _, views, calls = self._found_for
        _, views_now, calls_now = now
        if calls != calls_now or views_now[: len(views)] != views:
            return None
        new = views_now[len(views) :]
        states = engine.grown[self._grown :]
        relations, on_the_way = engine.index.below(state for _, state in states)
        watched = {join.state for join in self.joins}
        mine = self._relations_of(new, lambda view: True)
        if not watched.isdisjoint(on_the_way) or any(s.relation in mine for s in watched):
            return None
        inside = {below for relation in relations for below in relation.walk()}
        if any(state.relation in inside for state in watched):
            return None
        return Growth(states, new, relations)

    def _counted(self, views: Iterable[MaintainedView]) -> set[Relation]:
        """The relations of views with steps, which need the exact number of matches."""
        return self._relations_of(views, lambda view: bool(view.query.steps))

    def _plain(self, views: Iterable[MaintainedView]) -> set[Relation]:
        """The relations of views whose `never` changes a join of two gives."""
        return self._relations_of(views, lambda view: not view.query.steps)

    def _losing(self, views: Iterable[MaintainedView]) -> set[Relation]:
        """The relations of views that can lose rows by a deletion, which need all rows."""
        tree = self._document.tree
        return self._relations_of(
            views, lambda view: loses_by(tree, view.query.pattern) is not None
        )

    def _relations_of(
        self, views: Iterable[MaintainedView], is_meant: Callable[[MaintainedView], bool]
    ) -> set[Relation]:
        found: set[Relation] = set()
        for view in views:
            maintainer = view.maintainer
            if isinstance(maintainer, Stepped):
                maintainer = maintainer.inner
            if isinstance(maintainer, Counting) and is_meant(view):
                found.update(each for root in maintainer.roots for each in root.walk())
        return found

    def _clocked(self, views: Iterable[MaintainedView]) -> set[Relation]:
        """The relations of views that wait for the clock: joins that keep all rows serve them."""
        found: set[Relation] = set()
        for view in views:
            maintainer = view.maintainer
            if isinstance(maintainer, SteppedCounting) and lower_bounds(view.query):
                found.update(maintainer.root.walk())
        return found

    def _watch(
        self,
        old: dict[SiteRelation, Watch],
        states: Sequence[Placed],
        views: Sequence[MaintainedView],
    ) -> None:
        """Watch the joins among these states of these views."""
        document = self._document
        engine, inputs = document.engine, self.inputs
        places = self._places()
        keyed = self._keyed(views)
        wanted = self._wanted(places, old)
        is_changing = any(map(engine.is_value_sensitive, places.values()))
        replacing = set(replacing_streams(document))
        losing = self._losing(views)
        counted, plain = self._counted(views), self._plain(views)
        for node, state in joins_of_two(states):
            relation = state.relation
            if relation in losing or (relation in counted and relation not in plain):
                continue
            feeders = (inputs.of(state, 0), inputs.of(state, 1))
            streams = {feeder.stream for each in feeders for feeder in each}
            if state in inputs.entangled or not wanted(state, streams):
                continue
            if any(engine.is_value_sensitive(places[stream]) for stream in streams):
                continue
            if not streams.isdisjoint(replacing):
                continue  # a message may take rows away from it, and find partners again
            if is_changing and any(map(depends_on_value, state.relation.walk())):
                continue  # a part may gain or lose rows although no stream feeds it
            drops = self._drops and relation not in counted
            made = self._waiting(state, feeders, keyed, old, views, drops=drops)
            if state not in old:  # made anew: an end of this instant may still matter
                made.stopped = self._stops.get((node, state.relation))
            self.joins[made] = node
        may_lose = (self._counted(views) - self._clocked(views)) | losing
        self._watch_more(old, states, places, keyed, wanted, may_lose, losing)

    def _wanted(
        self, places: dict[str, int], old: dict[SiteRelation, Watch]
    ) -> Callable[[SiteRelation, set[str]], bool]:
        """Return the function that decides whether to watch a join that some streams feed."""
        # A join stays watched when its streams have ended, so what to watch depends on the past.
        saved = self._saved
        if saved is not None:
            numbers = numbered_states(self._document.engine)
            return lambda state, streams: numbers.get(state) in saved
        # Once messages are dropped, only its tables describe a join whose streams have ended.
        may_forget = bool(places) and not self._keeps
        return lambda state, streams: bool(streams) or may_forget or state in old

    def _watch_more(
        self,
        old: dict[SiteRelation, Watch],
        states: Sequence[Placed],
        places: dict[str, int],
        keyed: dict[Relation, list[tuple[Column, Key]]],
        wanted: Callable[[SiteRelation, set[str]], bool],
        counted: set[Relation],
        losing: set[Relation],
    ) -> None:
        """Watch joins of three or more parts, or with `not`s, whose streams have no limits.

        `counted`: the relations whose matches are counted. Their joins are watched only if they
        are swept: this drops rows that are in no match. `losing`: those that must keep all rows.
        """
        document, tree, inputs = self._document, self._document.tree, self.inputs
        if tree.types is not None or any(map(document.engine.is_value_sensitive, places.values())):
            return
        limited = {
            stream
            for stream, node in tree.calls().items()
            if tree.call(node).mode != "stream" or tree.call(node).most is not None
        }
        replacing = set(replacing_streams(document))
        limited |= replacing
        negated = joins_with_absences(document.engine, states, places, replacing)
        sweeps = self._drops and not self._keeps  # kept messages give the rows again: no gain
        for node, state in (*joins_of_more(states), *negated):
            relation = state.relation
            is_swept = sweeps and bool(relation.absences) and relation not in losing
            if relation in counted and not is_swept:
                continue
            feeders = [inputs.of(state, part) for part in range(len(state.relation.edges))]
            streams = {feeder.stream for each in feeders for feeder in each}
            if state in inputs.entangled or state in inputs.narrowed:
                continue
            if not wanted(state, streams) or not streams.isdisjoint(limited):
                continue
            known = old.get(state)
            if isinstance(known, JoinWatch) and known.is_fed_by(feeders):
                self.joins[known] = node
                continue
            found = inputs_of(state.relation, feeders, keyed)
            if isinstance(found, str) or more_refusal(found) is not None:
                continue
            seen = self._seen_values(found, known)
            if seen is not None:
                made = JoinWatch(state, found, tree, seen, sweeps)
                made.dropped += 0 if known is None else known.dropped
                self.joins[made] = node

    def _seen_values(self, inputs: JoinInputs, known: Watch | None) -> list[Iterable[str]] | None:
        """Return the key values that a join has already seen; None: they are lost."""
        keys = [key for part in inputs.parts for _, key in part.keys]
        document = self._document
        if not keys:
            return []
        if isinstance(known, JoinWatch):
            return [known.values_of(key) for key in keys]
        if self._is_restoring:
            return [() for _ in keys]
        if document.forgotten or document.collected:
            return None
        document.settle()
        return [values_seen(document.tree, key) for key in keys]

    def _places(self) -> dict[str, int]:
        """Return the streams that may still bring data, each with the parent node of its call."""
        tree = self._document.tree
        return {s: tree.parent(n) for s, n in tree.calls().items() if may_bring(tree, tree.call(n))}

    def _keyed(
        self, views: Iterable[MaintainedView], keys: Iterable[Key] | None = None
    ) -> dict[Relation, list[tuple[Column, Key]]]:
        keys = self._document.tree.facts if keys is None else tuple(keys)
        found: dict[Relation, list[tuple[Column, Key]]] = {}
        for view in views:
            if keys and isinstance(view.maintainer, Counting):
                for relation, pairs in keyed_relations(view.maintainer.root, keys).items():
                    found.setdefault(relation, []).extend(pairs)
        return found

    def _waiting(
        self,
        state: SiteRelation,
        feeders: tuple[tuple[Feeder, ...], tuple[Feeder, ...]],
        keyed: dict[Relation, list[tuple[Column, Key]]],
        old: dict[SiteRelation, Watch],
        views: Sequence[MaintainedView],
        *,
        drops: bool,
    ) -> WaitingRows:
        """`drops`: whether rows are dropped: not where another view counts them."""
        known = old.get(state)
        assert not isinstance(known, JoinWatch)  # it has two parts
        if known is not None and known.drops == drops and known.is_fed_by(feeders):
            if not known.pair.is_exact:  # the streams that are left may decide more
                inputs = inputs_of(state.relation, feeders, keyed)
                known.judge(judged(known.pair, feeders, keyed), inputs)
            return known
        references = self._document.tree.references
        sources = self._keyed(views, (each.source for each in references))
        pair = pair_of(state.relation, feeders, keyed, sources, references)
        seen, exact = self._seen(pair, old), self._how == "all"
        document = self._document
        made = WaitingRows(
            state,
            pair,
            document.tree,
            seen,
            inputs_of(state.relation, feeders, keyed),
            drops=drops,
            exact=exact,
            is_whole=self._keeps and not (document.forgotten or document.collected),
        )
        if known is not None:
            made.dropped += known.dropped
            made.stopped = known.stopped
            made.passes_by |= known.passes_by
        return made

    def _seen(
        self, pair: Pair, old: dict[SiteRelation, Watch]
    ) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """Return the key values that each part has already seen, with their latest time."""
        document, tree = self._document, self._document.tree
        # The document is not whole: only remembered values are known.
        if document.forgotten or document.collected:
            for waiting in old.values():
                if isinstance(waiting, WaitingRows) and waiting.relation is pair.relation:
                    one, other = (dict.fromkeys(each or (), inf) for each in waiting.seen)
                    return one, other
            return {}, {}
        keys = [side.key for side in pair.sides]
        if any(keys):
            document.settle()
        first, second = (
            {
                value: max(tree.time(node) for node in nodes)
                for value, nodes in (values_seen(tree, key[1]) if key else {}).items()
            }
            for key in keys
        )
        return first, second
