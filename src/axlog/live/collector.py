"""Collection in joins: drop rows that can no longer find a partner, and emit `never` changes.

`future/garbage.py` decides which rows these are. This module keeps its verdicts up to date as
messages arrive, streams end and the clock advances. No row is dropped where a stream may delete,
nor a row that an exact answer could still need. Law 5: a document makes the same changes with and
without collection.

An update that does not come from a stream (a statement, a new view) may need dropped rows. They are
restored from the document. If the document is not whole (`keep="needed"`), the update is rejected
with an error code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf

from axlog.document.parser import Element
from axlog.document.tree import DOCUMENT_NODE
from axlog.future.garbage import Feeder, Pair, pair_of
from axlog.future.keys import Key, keyed_relations, values_in, values_seen
from axlog.future.scenarios import may_bring
from axlog.future.truth import column_of
from axlog.live.maintained import MaintainedTree, Told
from axlog.live.never_tracker import NeverTracker
from axlog.match.matcher_generator import Answers, Sink
from axlog.query.compile import Column, Relation, compile_pattern, depends_on_value
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.prospects import Prospects, can_be_told
from axlog.views.counting.sites import SiteRelation
from axlog.views.counting.stream_inputs import Feeding, feeding, joins_of_two, roots_above
from axlog.views.counting.waiting_rows import Waiting
from axlog.views.view import MaintainedView as View

Seen = tuple[Waiting, int, str]
"""A key value that arrived: the join, the part (0 or 1) and the value."""


@dataclass(slots=True)
class _Watched:
    """The watched joins of a document, for one set of sites, views and calls."""

    waitings: list[Waiting] = field(default_factory=list)
    prospects: dict[View, Prospects] = field(default_factory=dict)


class Collector:
    """Drops rows from the joins of one document once they can no longer find a partner."""

    def __init__(self, document: MaintainedTree, drops: bool, never: str, keeps: bool) -> None:
        self._document = document
        self._drops, self._keeps = drops, keeps
        self._found_for: tuple[int, list[View], list[str]] | None = None
        self._watched = _Watched()
        self._came: list[Seen] = []  # key values of the message being applied
        self.version = 0  # increases when generated joins are out of date
        self.next: float = inf  # a clock beyond this time may drop rows or emit `never`
        self.is_busy = False  # whether a single message can drop rows
        self.tracker = NeverTracker(document, never, keeps)

    @property
    def waitings(self) -> list[Waiting]:
        return self._watched.waitings

    def prospects(self, view: View) -> Prospects | None:
        """Return the facts about a view's future rows that need no document. None: none are known.

        Uncertain facts are returned only if messages were not kept, so the document cannot be
        consulted.
        """
        with self._document.lock:
            self.refresh()
            found = self._watched.prospects.get(view)
            if found is None or found.is_certain or self._document.forgotten:
                return found
            return None

    def let_go_of_rows(self) -> None:
        """Drop rows that are final and already emitted.

        Unsafe if the caller still reads these views.
        """
        with self._document.lock:
            self.refresh()
            for prospects in self._watched.prospects.values():
                if prospects.settles:
                    prospects.maintainer.let_go()

    # Setup ----------------------------------------------------------------------------------------

    def how_never(self, view: View) -> str:
        """Return how the view reports rows that can never come, or why it does not."""
        with self._document.lock:
            self.refresh()
            found = self._watched.prospects.get(view)
            if found is None or self.tracker.how == "off":
                return self.tracker.way(view)
            late = "" if found.is_certain else "; what a key rules out, at its deadline"
            return f"reported by the join's tables as messages arrive{late}"

    def refresh(self) -> None:
        """Find the joins to watch again if sites, views or calls have changed."""
        self._refresh()
        self.tracker.refresh(self._watched.prospects)
        self._look_ahead()

    def _refresh(self) -> None:
        document = self._document
        views = list(document.views.values())
        document.engine.build()
        found_for = (document.engine.version, views, sorted(document.tree.calls_by_stream))
        if self._found_for == found_for:
            return
        self._found_for = found_for
        old = {waiting.state: waiting for waiting in self.waitings}
        self._watched = _Watched()
        if document.engine.sites() and not self._may_delete():  # without views there are no sites
            self._watch(old)
        for state, waiting in old.items():
            if waiting not in self.waitings and state.join.waiting is waiting:
                state.join.waiting = None
        self.version += 1
        sides = [side for waiting in self.waitings for side in waiting.pair.sides]
        self.is_busy = any(
            side.key or (side.is_bounded and not side.is_born_dead) for side in sides
        )
        self.is_busy |= any(each.is_partial for each in self._watched.prospects.values())

    def _may_delete(self) -> bool:
        tree = self._document.tree
        return any(tree.call(node).deletes != "no" for node in tree.calls().values())

    def _watch(self, old: dict[SiteRelation, Waiting]) -> None:
        document = self._document
        engine = document.engine
        places = self._places()
        fed = feeding(engine, places)
        keyed = self._keyed()
        # Once messages are dropped, only its tables describe a join whose streams have ended.
        may_forget = bool(places) and not self._keeps
        is_changing = any(map(engine.is_value_sensitive, places.values()))
        found: dict[SiteRelation, int] = {}
        for node, state in joins_of_two(engine):
            feeders = (fed.of(state, 0), fed.of(state, 1))
            streams = {feeder.stream for each in feeders for feeder in each}
            if state in fed.entangled or not (streams or may_forget or state in old):
                continue
            if any(engine.is_value_sensitive(places[stream]) for stream in streams):
                continue
            if is_changing and any(map(depends_on_value, state.relation.walk())):
                continue  # a part may gain or lose rows although no stream feeds it
            self.waitings.append(self._waiting(state, feeders, keyed, old))
            found[state] = node
        for view in document.views.values():
            self._prospect(view, fed, found)

    def _places(self) -> dict[str, int]:
        """Return the streams that may still bring data, each with the parent node of its call."""
        tree = self._document.tree
        return {s: tree.parent(n) for s, n in tree.calls().items() if may_bring(tree, tree.call(n))}

    def _keyed(self) -> dict[Relation, list[tuple[Column, Key]]]:
        document = self._document
        found: dict[Relation, list[tuple[Column, Key]]] = {}
        for view in document.views.values():
            if isinstance(view.maintainer, Counting):
                for relation, pairs in keyed_relations(
                    view.maintainer.root, document.tree.facts
                ).items():
                    found.setdefault(relation, []).extend(pairs)
        return found

    def _waiting(
        self,
        state: SiteRelation,
        feeders: tuple[tuple[Feeder, ...], tuple[Feeder, ...]],
        keyed: dict[Relation, list[tuple[Column, Key]]],
        old: dict[SiteRelation, Waiting],
    ) -> Waiting:
        known = old.get(state)
        if known is not None and known.is_fed_by(feeders):
            return known
        pair = pair_of(state.relation, feeders, keyed)
        seen, exact = self._seen(pair, old), self.tracker.how == "all"
        made = Waiting(state, pair, self._document.tree, seen, drops=self._drops, exact=exact)
        if known is not None:
            made.dropped += known.dropped
            made.passes_by |= known.passes_by
        return made

    def _seen(self, pair: Pair, old: dict[SiteRelation, Waiting]) -> tuple[set[str], set[str]]:
        """Return the key values that each part has already seen."""
        document = self._document
        # The document is not whole: only remembered values are known.
        if document.forgotten or document.collected:
            for waiting in old.values():
                if waiting.pair.relation is pair.relation:
                    return waiting.seen[0] or set(), waiting.seen[1] or set()
            return set(), set()
        keys = [side.key for side in pair.sides]
        if any(keys):
            document.settle()
        one, other = (set(values_seen(document.tree, key[1]) if key else ()) for key in keys)
        return one, other

    def _prospect(self, view: View, fed: Feeding, found: dict[SiteRelation, int]) -> None:
        """Add the prospects of a view that one two-way join with an exact verdict makes."""
        maintainer = view.maintainer
        if not isinstance(maintainer, Counting) or not can_be_told(maintainer.pattern):
            return
        engine, tree = self._document.engine, self._document.tree
        mine = set(maintainer.root.walk())
        if any(map(_joins, mine & engine.left)):
            return  # several joins, one of which was collected
        joining = [
            state
            for node in engine.sites()
            for state in engine.states_at(node)
            if state.relation in mine and _joins(state.relation) and not state.is_dead
        ]
        # A join that is no longer watched (a value above it may change now) is released after this.
        waiting = joining[0].join.waiting if len(joining) == 1 and joining[0] in found else None
        if waiting is None or not waiting.pair.is_exact or compile_pattern(view.pattern).gathers:
            return
        if not waiting.pair.says_times(map(column_of, maintainer.pattern.outputs)):
            return
        roots = roots_above(engine, found[waiting.state], waiting.state)
        streams = {stream for each in waiting.open for stream in each}
        calls = [tree.call(tree.calls()[stream]) for stream in streams]
        if (
            roots is not None
            and maintainer.root in roots
            and tree.types is None
            and waiting.state.relation not in fed.brought
            and waiting.state not in fed.narrowed
            and all(call.mode == "stream" and call.most is None for call in calls)
        ):
            self._watched.prospects[view] = Prospects(maintainer, waiting)

    # Key values of messages -----------------------------------------------------------------------

    def key_sinks(self, stream: str) -> list[tuple[Relation, Sink]]:
        """Return the key-value relations that a stream's messages must also be matched against."""
        tree = self._document.tree
        place = tree.parent(tree.calls()[stream])
        path = [n for n in (place, *tree.ancestors(place)) if n != DOCUMENT_NODE]
        found: list[tuple[Relation, Sink]] = []
        for waiting, part, key in self._keys_of(stream):
            # Use the name of the column that the key rules out: both then share one bucket in
            # Spark.
            side = waiting.pair.sides[part]
            column = side.columns[side.key[0]] if side.key is not None else "$k"
            for pattern in key.patterns_of(column.lstrip("$")):
                values = replace(pattern, outputs=pattern.outputs[:1])  # without the nodes
                relation = compile_pattern(values).root
                for _ in path:  # descend to the relation just below the call's parent
                    relation = relation.edges[0].relation
                found.append((relation.edges[0].relation, self._noting(waiting, part)))
        return found

    def _noting(self, waiting: Waiting, part: int) -> Sink:
        came = self._came

        def sink(row: tuple[str | int, ...], count: int, answers: Answers) -> None:
            seen = (waiting, part, str(row[0]))
            if not came or came[-1] != seen:  # the patterns of a key mostly find the same value
                came.append(seen)

        return sink

    def _keys_of(self, stream: str) -> Iterator[tuple[Waiting, int, Key]]:
        for waiting in self.waitings:
            for part, side in enumerate(waiting.pair.sides):
                if side.key is not None and stream in waiting.open[part]:
                    yield waiting, part, side.key[1]

    def note_forest(self, stream: str, forest: list[Element]) -> None:
        """Record the key values of a message that becomes nodes."""
        tree = self._document.tree
        place = tree.parent(tree.calls()[stream])
        for waiting, part, key in self._keys_of(stream):
            for root in forest:
                if isinstance(root.tag, str):
                    for _, value in values_in(key, tree, place, root):
                        self._came.append((waiting, part, value))

    def forget_message(self) -> None:
        """Discard the key values of a rejected message."""
        self._came.clear()
        self.tracker.abandon()

    # After an update ------------------------------------------------------------------------------

    def after(self, told: Told, time: int) -> Told:
        """Drop rows after an update, and append the `never` changes that it causes."""
        told = self._after(told, time)
        return self.tracker.after(told, time) if self.tracker.is_busy else told

    def _after(self, told: Told, time: int) -> Told:
        came, waitings = self._came, self._watched.waitings
        for waiting, part, value in dict.fromkeys(came) if len(came) > 1 else came:
            waiting.see(part, value)
        came.clear()
        if self.next < self._document.tree.clock:
            for waiting in waitings:
                waiting.expire()
        elif not told:
            for waiting in waitings:
                if waiting.ended:
                    break
            else:
                self._look_ahead()  # rows with deadlines may have arrived
                return told
        return self._report(told, time)

    def after_nodes(self, told: Told, time: int) -> Told:
        """Do the same as `after` for an update that may have ended streams or opened new ones."""
        tree = self._document.tree
        self._admit_new_streams()
        for waiting in self.waitings:
            for stream in {s for streams in waiting.open for s in streams}:
                node = tree.calls_by_stream.get(stream)
                if node is None or not may_bring(tree, tree.call(node)):
                    waiting.close(stream)
                    self.version += 1
        self.next = -inf  # examine every join
        told = self.after(told, time)
        self.refresh()
        return told

    def _admit_new_streams(self) -> None:
        """Add the streams that the last message of another stream opened to the joins they feed."""
        known = set() if self._found_for is None else set(self._found_for[2])
        places = self._places() if self.waitings else {}
        if not places.keys() - known:
            return
        fed = feeding(self._document.engine, places)
        for waiting in self.waitings:
            for part in range(2):
                streams = {feeder.stream for feeder in fed.of(waiting.state, part)}
                waiting.admit(part, streams - known)

    def _report(self, told: Told, time: int) -> Told:
        ended = {waiting: waiting.take_ended() for waiting in self.waitings}
        for view, prospects in self._watched.prospects.items():
            changes = next((each for known, each in told if known is view), None) if told else None
            if changes is not None:
                prospects.take(changes)
            never = prospects.never(ended[prospects.waiting])
            if never and self.tracker.how != "off":
                if changes is None:
                    changes = []
                    told.append((view, changes))
                view.add_never(changes, never, time)
        self._look_ahead()
        return told

    def _look_ahead(self) -> None:
        # Runs once per message: plain loops are faster than generators.
        soonest = -inf if self.tracker.is_eager else inf
        for waiting in self._watched.waitings:
            limit = waiting.next_deadline
            if limit is not None and limit < soonest:
                soonest = limit
        for prospects in self._watched.prospects.values():
            limit = prospects.until
            if limit is not None and limit < soonest:
                soonest = limit
        self.next = soonest

    # Saved state ----------------------------------------------------------------------------------

    def seen(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """Return the key values remembered at each join, as plain tuples."""
        self.refresh()
        return tuple(
            tuple(() if each is None else tuple(sorted(each)) for each in waiting.seen)
            for waiting in self.waitings
        )

    def restart(self, seen: tuple[tuple[tuple[str, ...], ...], ...]) -> None:
        """Continue with tables filled from outside, and the key values saved with them."""
        self.detach()
        self.refresh()
        for waiting, values in zip(self.waitings, seen, strict=True):
            waiting.restart(values)
        self._look_ahead()

    # Dropped rows -----------------------------------------------------------------------------

    def let_go(self) -> dict[str, int]:
        """Return the number of rows that each join has dropped so far, by its pattern."""
        found: dict[str, int] = {}
        for waiting in self.waitings if self._drops else ():
            if waiting.dropped:
                join = str(waiting.pair.relation.node)
                found[join] = found.get(join, 0) + waiting.dropped
        return found

    def telling_streams(self) -> set[str]:
        """Return the streams of joins whose views emit `never` changes."""
        waitings = [prospects.waiting for prospects in self._watched.prospects.values()]
        return {stream for waiting in waitings for each in waiting.open for stream in each}

    @property
    def has_dropped(self) -> bool:
        return self._drops and any(w.dropped or w.passes_by for w in self.waitings)

    def detach(self) -> None:
        """Stop watching the joins, before an update that does not come from a stream.

        The caller restores dropped rows from the document.
        """
        for waiting in self.waitings:
            waiting.state.join.waiting = None
        self._watched = _Watched()
        self._found_for = None
        self.version += 1
        self.next = inf
        self.is_busy = False


def _joins(relation: Relation) -> bool:
    """Return whether a relation combines several parts at its node."""
    return len(relation.edges) > 1 or bool(relation.choices) or bool(relation.absences)
