"""The collector: drops state that no future row can use, and says when rows can no longer come.

Law 5: a document makes the same changes with and without collection. `future/garbage.py` decides;
this module applies its proofs as messages arrive, streams end and the clock advances:

    rows       of two-way joins, once they can find no partner. After every update the joins get the
               proofs that it gave (`WaitingRows.prune`): the value of a key was used up, a time has
               passed, a stream has ended. The rows that they drop are evidence for `never` changes
               (`never_tracker.py`), whose tracker the collector owns: `after` is one call for both.
    streams    that no future row needs are closed, on `collect`
    subtrees   that no future row uses are dropped, on `collect`

**Rows.** None is dropped where a stream may delete, nor from a join that a stream which replaces
feeds, nor one that an exact answer could still need.
An update that does not come from a stream (a statement, a new view) may need dropped rows. They are
restored from the document. If the document is not whole (`keep="needed"`), the update is rejected
with an error code.

**Streams.** A closed stream may continue to send. Its messages are checked and move the clock, and
have no other effect. Streams of calls inside these messages are closed too. Not closed: one-shot
calls and calls with a maximum number of trees, since their messages are counted, and streams of
joins that emit `never` changes, since these depend on the real end of the stream.

**Subtrees.** Views do not see that a subtree is dropped: its rows stay, and so do the counts in the
joins above it. From then on the document is not whole. Operations that need all of it (a statement,
a new view, `why`, the text) are rejected with AX307. Truth and possible rows stay the same: they
follow from the remaining nodes and the existing rows. After nodes were dropped, key values are
looked up only in the joins' memory. (Paper 1, section 5.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, TypeAlias

from axlog.document.calls import Call
from axlog.document.operations import end_call
from axlog.document.parser import Element
from axlog.document.times import Shown, plain
from axlog.document.tree import DOCUMENT_NODE
from axlog.errors import StreamError, UndecidedError, UnsupportedError
from axlog.future.garbage import (
    Feeder,
    Pair,
    StreamEnded,
    TimePassed,
    finished_subtrees,
    pair_of,
    refusal,
    size,
    streams_asked,
)
from axlog.future.join_inputs import JoinInputs, inputs_of
from axlog.future.keys import Key, keyed_relations, values_in, values_seen
from axlog.future.scenarios import may_bring
from axlog.live.maintained import MaintainedTree, ViewChanges
from axlog.live.never_tracker import NeverTracker
from axlog.live.replacements import replacing_streams
from axlog.match.matcher_generator import Answers, Sink
from axlog.query.compile import Column, Relation, compile_pattern, depends_on_value
from axlog.query.pattern import Pattern
from axlog.views.counting.join_prospects import Watch
from axlog.views.counting.join_watch import JoinWatch
from axlog.views.counting.join_watch import refusal as more_refusal
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.sites import SiteRelation
from axlog.views.counting.stream_inputs import (
    StreamInputs,
    joins_of_more,
    joins_of_two,
    stream_inputs,
)
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.stepped import Stepped
from axlog.views.view import MaintainedView

REMEMBERED = 1000
"""Number of latest drops that `collected` remembers."""

EVERY = 256
"""Minimum number of messages between two collections.

For a large document it is a quarter of its nodes.
"""

_NOT_ASKED = "no message of this stream can add a row to a view"
_NOT_USED = "no row to come can use it; the rows that came of it are there and stay"
_NO_PARTNER = "they waited for a partner: the stream ended, the key's value came, or time ran out"

SavedKeys: TypeAlias = tuple[tuple[tuple[str, ...], ...], ...]
"""For each join and each of its parts, the key values that it remembers."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A stream, subtree or set of rows that collection dropped, with the reason."""

    kind: str  # stream, nodes or rows
    what: str  # the stream, the path of the subtree, or the pattern of the join
    count: int  # nodes or rows; 1 for a stream
    why: str
    clock: Shown

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values for JSON."""
        return {"kind": self.kind, "what": self.what, "count": self.count, "why": self.why,
                "clock": plain(self.clock)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Collection:
    """The result of one collection. `kept` is the reason if the document was not collected."""

    clock: Shown
    dropped: tuple[Dropped, ...] = ()
    kept: str | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that were closed."""
        return tuple(each.what for each in self.dropped if each.kind == "stream")

    @property
    def nodes(self) -> int:
        """The number of nodes dropped from the document."""
        return sum(each.count for each in self.dropped if each.kind == "nodes")

    @property
    def rows(self) -> int:
        """The number of rows dropped from the engine's state since the last collection."""
        return sum(each.count for each in self.dropped if each.kind == "rows")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values for JSON."""
        return {"clock": plain(self.clock), "streams": list(self.streams), "nodes": self.nodes,
                "rows": self.rows, "kept": self.kept,
                "dropped": [each.to_dict() for each in self.dropped]}  # fmt: skip


class Collector:
    """Drops rows, streams and subtrees of one document that no future row can use."""

    def __init__(self, document: MaintainedTree, drops: bool, never: str, keeps: bool) -> None:
        self._document = document
        self._drops, self._keeps = drops, keeps
        self._found_for: tuple[int, list[MaintainedView], list[str]] | None = None
        self._joins: dict[Watch, int] = {}  # the watched joins, each with its site
        self._inputs = StreamInputs()
        self._came: list[tuple[Watch, int, str]] = []  # keys that the current message uses up
        self.tracker = NeverTracker(document, never, keeps)
        self.version = 0  # increases when generated joins are out of date
        self.next: float = inf  # a clock beyond this time may drop rows or emit `never`
        self.is_busy = False  # whether a single message can drop rows
        self.collected: deque[Dropped] = deque(maxlen=REMEMBERED)
        self.closed: dict[str, Call] = {}  # streams that may continue to send
        self._reported: dict[str, int] = {}  # dropped rows in `collected`, by join
        self._until: float = inf  # a clock beyond this time may end what no row waits for
        self._follows = False  # whether the tracker must see every inserted and deleted row
        self._is_restoring = False  # whether key values come from a saved state
        self._messages = 0  # since the last scheduled collection

    @property
    def joins(self) -> list[Watch]:
        """The joins whose rows are watched."""
        return list(self._joins)

    # The watched joins ----------------------------------------------------------------------------

    def refresh(self) -> None:
        """Find the joins to watch again if sites, views or calls have changed.

        Called before every update, and before a question about the future.
        """
        is_new = self._find_joins()
        self.tracker.refresh(self._joins, self._inputs, is_new)
        if is_new:
            self.is_busy = any(join.is_busy for join in self._joins)
        self._follows = any(each.is_partial for each in self.tracker.every_prospects)
        self.is_busy = self.is_busy or self._follows
        self._until = self.tracker.deadline()
        self._look_ahead()

    def _find_joins(self) -> bool:
        """Find the joins to watch. Return whether anything they depend on has changed."""
        document = self._document
        views = list(document.views.values())
        document.engine.build()
        found_for = (document.engine.version, views, sorted(document.tree.calls_by_stream))
        if self._found_for == found_for:
            return False
        self._found_for = found_for
        old = {join.state: join for join in self._joins}
        self._joins, self._inputs = {}, StreamInputs()
        if document.engine.sites() and not self._may_delete():  # without views there are no sites
            self._watch(old)
        for state, join in old.items():
            if join not in self._joins and state.join.waiting is join:
                state.join.waiting = None
        self.version += 1
        return True

    def _counted(self) -> set[Relation]:
        """The relations of views with steps, which need the exact number of matches."""
        found: set[Relation] = set()
        for view in self._document.views.values():
            maintainer = view.maintainer
            if isinstance(maintainer, Stepped):
                maintainer = maintainer.inner
            if view.query.steps and isinstance(maintainer, Counting):
                found.update(each for root in maintainer.roots for each in root.walk())
        return found

    def _may_delete(self) -> bool:
        tree = self._document.tree
        return any(tree.call(node).deletes != "no" for node in tree.calls().values())

    def _watch(self, old: dict[SiteRelation, Watch]) -> None:
        document = self._document
        engine = document.engine
        places = self._places()
        inputs = self._inputs = stream_inputs(engine, places)
        keyed = self._keyed()
        # Once messages are dropped, only its tables describe a join whose streams have ended.
        may_forget = bool(places) and not self._keeps
        is_changing = any(map(engine.is_value_sensitive, places.values()))
        replacing, counted = set(replacing_streams(document)), self._counted()
        for node, state in joins_of_two(engine):
            if state.relation in counted:
                continue
            feeders = (inputs.of(state, 0), inputs.of(state, 1))
            streams = {feeder.stream for each in feeders for feeder in each}
            if state in inputs.entangled or not (streams or may_forget or state in old):
                continue
            if any(engine.is_value_sensitive(places[stream]) for stream in streams):
                continue
            if not streams.isdisjoint(replacing):
                continue  # a message may take rows away from it, and find partners again
            if is_changing and any(map(depends_on_value, state.relation.walk())):
                continue  # a part may gain or lose rows although no stream feeds it
            self._joins[self._waiting(state, feeders, keyed, old)] = node
        if self.tracker.how != "joins":
            self._watch_more(old, places, keyed)

    def _watch_more(
        self,
        old: dict[SiteRelation, Watch],
        places: dict[str, int],
        keyed: dict[Relation, list[tuple[Column, Key]]],
    ) -> None:
        """Watch joins of three or more parts whose streams bring any number of trees."""
        document, tree, inputs = self._document, self._document.tree, self._inputs
        if tree.types is not None or any(map(document.engine.is_value_sensitive, places.values())):
            return
        limited = {
            stream
            for stream, node in tree.calls().items()
            if tree.call(node).mode != "stream" or tree.call(node).most is not None
        }
        limited.update(replacing_streams(document))
        counted = self._counted()
        for node, state in joins_of_more(document.engine):
            if state.relation in counted:
                continue
            feeders = [inputs.of(state, part) for part in range(len(state.relation.edges))]
            streams = {feeder.stream for each in feeders for feeder in each}
            if state in inputs.entangled or state in inputs.narrowed:
                continue
            if not (streams or state in old) or not streams.isdisjoint(limited):
                continue
            known = old.get(state)
            if isinstance(known, JoinWatch) and known.is_fed_by(feeders):
                self._joins[known] = node
                continue
            found = inputs_of(state.relation, feeders, keyed)
            if isinstance(found, str) or more_refusal(found) is not None:
                continue
            seen = self._seen_values(found, known)
            if seen is not None:
                self._joins[JoinWatch(state, found, tree, seen)] = node

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

    def _keyed(self, keys: Iterable[Key] | None = None) -> dict[Relation, list[tuple[Column, Key]]]:
        document = self._document
        keys = document.tree.facts if keys is None else tuple(keys)
        found: dict[Relation, list[tuple[Column, Key]]] = {}
        for view in document.views.values():
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
    ) -> WaitingRows:
        known = old.get(state)
        assert not isinstance(known, JoinWatch)  # it has two parts
        if known is not None and known.is_fed_by(feeders):
            return known
        references = self._document.tree.references
        sources = self._keyed(each.source for each in references)
        pair = pair_of(state.relation, feeders, keyed, sources, references)
        seen, exact = self._seen(pair, old), self.tracker.how == "all"
        document = self._document
        made = WaitingRows(
            state,
            pair,
            document.tree,
            seen,
            inputs_of(state.relation, feeders, keyed),
            drops=self._drops,
            exact=exact,
            is_whole=self._keeps and not (document.forgotten or document.collected),
        )
        if known is not None:
            made.dropped += known.dropped
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

    # Key values of messages -----------------------------------------------------------------------

    def key_sinks(self, stream: str) -> list[tuple[Relation, Sink]]:
        """Return the key-value relations that a stream's messages must also be matched against."""
        tree = self._document.tree
        place = tree.parent(tree.calls()[stream])
        path = [n for n in (place, *tree.ancestors(place)) if n != DOCUMENT_NODE]
        found: list[tuple[Relation, Sink]] = []
        for waiting, part, column, key in self.keys_of(stream):
            # Use the name of the column that the key rules out: both then share one bucket in
            # Spark.
            for pattern in key.patterns_of(column.lstrip("$")):
                values = replace(pattern, outputs=pattern.outputs[:1])  # without the nodes
                relation = compile_pattern(values).root
                for _ in path:  # descend to the relation just below the call's parent
                    relation = relation.edges[0].relation
                found.append((relation.edges[0].relation, self._noting(waiting, part)))
        return found

    def _noting(self, waiting: Watch, part: int) -> Sink:
        came = self._came

        def sink(row: tuple[str | int, ...], count: int, answers: Answers) -> None:
            used = (waiting, part, str(row[0]))
            if not came or came[-1] != used:  # the patterns of a key mostly find the same value
                came.append(used)

        return sink

    def keys_of(self, stream: str) -> Iterator[tuple[Watch, int, Column, Key]]:
        """Return the keys whose values rows of joins wait for in a stream.

        Each with its join, part and column.
        """
        for waiting in self._joins:
            for part, column, key in waiting.keys:
                if stream in waiting.open[part]:
                    yield waiting, part, column, key

    def note_message(self, stream: str, forest: list[Element]) -> None:
        """Record the key values of a message that becomes nodes."""
        tree = self._document.tree
        place = tree.parent(tree.calls()[stream])
        for waiting, part, _, key in self.keys_of(stream):
            for root in forest:
                if isinstance(root.tag, str):
                    for _, value in values_in(key, tree, place, root):
                        self._came.append((waiting, part, value))

    # Updates --------------------------------------------------------------------------------------

    def before(self, stream: str, is_insertion: bool) -> None:
        """Prepare for an update of a stream that becomes nodes, after `refresh`."""
        self.tracker.before(stream, is_insertion)

    def abandon(self) -> None:
        """Discard the preparations and the key values of a message that was rejected."""
        self._came.clear()
        self.tracker.abandon()

    def after(self, emitted: ViewChanges, time: int) -> ViewChanges:
        """Drop rows after an update, and append the `never` changes that it causes."""
        came, clock = self._came, self._document.tree.clock
        if came:
            for join, part, value in dict.fromkeys(came) if len(came) > 1 else came:
                join.use(part, value)
            came.clear()
        if self.next < clock:
            passed = TimePassed(clock)
            for join in self._joins:
                join.prune(passed)
        if self._until >= clock and not (self.tracker.is_busy or (emitted and self._follows)):
            for join in self._joins:
                if join.ended:
                    break
            else:
                self._look_ahead()  # rows with deadlines may have arrived
                return emitted
        ended = {join: join.take_ended() for join in self._joins}
        emitted = self.tracker.after(emitted, time, ended)
        self._until = self.tracker.deadline()
        self._look_ahead()
        return emitted

    def after_nodes(self, emitted: ViewChanges, time: int) -> ViewChanges:
        """Do the same as `after` for an update that may have ended streams or opened new ones."""
        tree = self._document.tree
        self._admit_new_streams()
        for join in self._joins:
            for part, streams in enumerate(join.open):
                for stream in sorted(streams):
                    node = tree.calls_by_stream.get(stream)
                    if node is None or not may_bring(tree, tree.call(node)):
                        join.prune(StreamEnded(part, stream))
                        self.version += 1
        self.next = self._until = -inf  # examine every join
        emitted = self.after(emitted, time)
        self.refresh()
        return emitted

    def _admit_new_streams(self) -> None:
        """Add the streams that the last message of another stream opened to the joins they feed."""
        known = set() if self._found_for is None else set(self._found_for[2])
        places = self._places() if self._joins else {}
        if not places.keys() - known:
            return
        inputs = stream_inputs(self._document.engine, places)
        for join in self._joins:
            for part in range(len(join.open)):
                streams = {feeder.stream for feeder in inputs.of(join.state, part)}
                join.admit(part, streams - known)

    def _look_ahead(self) -> None:
        soonest = self._until
        for join in self._joins:
            limit = join.next_deadline()
            if limit is not None and limit < soonest:
                soonest = limit
        self.next = soonest

    # Saved state ----------------------------------------------------------------------------------

    def saved_keys(self) -> SavedKeys:
        """Return the key values remembered at each join, as plain tuples."""
        self.refresh()
        return tuple(join.saved_values() for join in self._joins)

    def restore(self, keys: SavedKeys) -> None:
        """Continue with tables filled from outside, and the key values saved with them."""
        self.detach()
        self._is_restoring = True
        try:
            self.refresh()
        finally:
            self._is_restoring = False
        for join, values in zip(self._joins, keys, strict=True):
            join.restore(values)
        self._look_ahead()

    # Dropped rows -----------------------------------------------------------------------------

    @property
    def has_dropped(self) -> bool:
        """Whether rows were dropped that an update which is not a stream's may need."""
        return self._drops and any(join.dropped or join.passes_by for join in self._joins)

    def detach(self) -> None:
        """Stop watching the joins, before an update that does not come from a stream.

        The caller restores dropped rows from the document.
        """
        for join in self._joins:
            join.state.join.waiting = None
        self._joins, self._inputs, self._found_for = {}, StreamInputs(), None
        self.tracker.detach()
        self.version += 1
        self.next = inf
        self.is_busy = False

    def drop_final_rows(self) -> None:
        """Drop rows of views that are final and already emitted.

        Unsafe if the caller still reads these views.
        """
        with self._document.lock:
            self.refresh()
            for prospects in self.tracker.every_prospects:
                if prospects.settles:
                    prospects.maintainer.let_go()

    def _dropped_rows(self) -> list[Dropped]:
        """Return the rows that joins have dropped since the last report."""
        total: dict[str, int] = {}
        for join in self._joins if self._drops else ():
            name = str(join.relation.node)
            total[name] = total.get(name, 0) + join.dropped
        found: list[Dropped] = []
        for name, count in total.items():
            new = count - self._reported.get(name, 0)
            self._reported[name] = count
            if new > 0:
                found.append(Dropped("rows", name, new, _NO_PARTNER, self._document.clock))
        return found

    # Streams and subtrees -------------------------------------------------------------------------

    def is_due(self) -> bool:
        """Count a message and return whether a collection is due.

        This spreads its cost over messages.
        """
        self._messages += 1
        if self._messages < EVERY or self._messages < len(self._document.tree) // 4:
            return False
        self._messages = 0
        return True

    def collect(self) -> Collection:
        """Close finished streams and drop finished subtrees. No view sees a change."""
        document = self._document
        document.settle()
        self.refresh()
        self.tracker.catch_up()
        dropped = self._dropped_rows()
        kept = self._kept_whole()
        if kept is None:
            try:
                dropped += self._close()
                dropped += self._drop()
            except (UndecidedError, UnsupportedError) as error:
                kept = error.message
        self.collected.extend(dropped)
        return Collection(document.clock, tuple(dropped), kept)

    def _kept_whole(self) -> str | None:
        """Return why the document must not be collected. None: it can be."""
        document = self._document
        if document.lacks_messages:
            return "messages were not kept: what is there cannot be judged"
        if not document.views:
            return "there are no views"
        for stream in replacing_streams(document):
            return f"the stream {stream!r} replaces its messages: rows may go and come again"
        for name, view in document.views.items():
            if not isinstance(view.maintainer, Counting):
                return f"{view.maintainer.name} maintains {name!r} from the whole document"
            if view.query.steps:
                return f"the view {name!r} computes values from every match, and from their number"
            if view.is_deferred:
                return f"the view {name!r} is deferred: it has yet to look"
        return refusal(document.tree, self._patterns())

    def _patterns(self) -> list[Pattern]:
        return [view.query.pattern for view in self._document.views.values()]

    def _close(self) -> list[Dropped]:
        document, tree = self._document, self._document.tree
        prospects = self.tracker.every_prospects  # their `never` depends on the streams' real ends
        asked = {s for each in prospects for streams in each.waiting.open for s in streams}
        for pattern in self._patterns():
            asked |= streams_asked(tree, pattern)
        found: list[Dropped] = []
        for stream, node in sorted(tree.calls().items()):
            call = tree.call(node)
            if stream in asked or call.mode != "stream" or call.most is not None:
                continue
            emitted = document.carry_out(end_call(tree, stream), None, (stream, 0))
            emitted = self.after_nodes(emitted, tree.clock)
            if any(changes for _, changes in emitted):
                raise AssertionError(f"closing {stream!r} has changed rows")  # law 5
            self.closed[stream] = call
            document.collected += 1
            found.append(Dropped("stream", stream, 1, _NOT_ASKED, self._document.clock))
        return found

    def _drop(self) -> list[Dropped]:
        document, tree = self._document, self._document.tree
        tops = [
            node
            for node in finished_subtrees(tree, self._patterns())
            if not document.engine.is_value_sensitive(tree.parent(node))
        ]
        found = [
            Dropped("nodes", tree.path(top), size(tree, top), _NOT_USED, document.clock)
            for top in tops
        ]
        if tops:
            document.drop(tops)
        return found

    def check(self, calls: Iterable[Call], by: str) -> None:
        """Reject a message that opens a stream twice.

        Restore dropped rows before a call that may delete or replace.
        """
        for call in calls:
            if call.stream in self.closed or (
                by in self.closed and call.stream in self._document.tree.calls()
            ):
                raise StreamError("AX403", f"the stream {call.stream!r} already has a call")
            may_remove = call.deletes != "no" or call.replace is not None
            if may_remove and by not in self.closed:
                self._document.untune()  # raises if rows or nodes are lost for good
