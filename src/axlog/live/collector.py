"""The collector: drops state that no future row can use, and says when rows can no longer come.

Law 5: a document makes the same changes with and without collection. `future/garbage.py` (rows) and
`future/finished.py` decide; this module applies their proofs as messages arrive, streams end and
the clock advances:

    rows       of two-way joins, once they can find no partner. After every update the joins get the
               proofs that it gave (`WaitingRows.prune`): the value of a key was used up, a time has
               passed, a stream has ended. The rows that they drop are evidence for `never` changes
               (`never_tracker.py`), whose tracker the collector owns: `after` is one call for both.
               Of joins with `not`s, where messages are not kept: those that a `not` blocks, and
               rows of `not`s whose key value is used up, now and then (`JoinWatch.sweep`)
    streams    that no future row needs are closed, on `collect`
    subtrees   that no future row uses are dropped, on `collect`

**Rows.** None is dropped from the joins of a view that can lose rows by a deletion, nor from a join
that a stream which replaces feeds, nor one that an exact answer could still need.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, TypeAlias

from axlog.document.calls import Call
from axlog.document.operations import end_call
from axlog.document.parser import Element
from axlog.document.tree import DOCUMENT_NODE
from axlog.errors import StoreError, StreamError, UndecidedError, UnsupportedError
from axlog.future.finished import Uses, size
from axlog.future.garbage import StreamEnded
from axlog.future.keys import Key, values_in
from axlog.future.scenarios import may_bring
from axlog.live.collection import Collection, Dropped
from axlog.live.finished_nodes import finished_nodes, reason_to_keep, uses_of_views
from axlog.live.join_deadlines import Deadlines, JoinDeadlines
from axlog.live.join_sweeps import JoinSweeps
from axlog.live.maintained import MaintainedTree
from axlog.live.never_tracker import NeverTracker, append_never
from axlog.live.update_changes import ViewChanges
from axlog.live.watched_joins import WatchedJoins
from axlog.query.compile import Column, Relation, compile_pattern
from axlog.views.counting.join_prospects import AnyProspects, Watch
from axlog.views.counting.prospects import Prospects
from axlog.views.counting.quick_expiry import Expire
from axlog.views.counting.routes import KeyUser
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.member_prospects import MemberProspects
from axlog.views.view import MaintainedView

REMEMBERED = 1000
"""Number of latest drops that `collected` remembers."""

EVERY = 256
"""Minimum number of messages between two collections.

For a large document it is a quarter of its nodes.
"""

_NOT_ASKED = "no message of this stream can add a row to a view"
_NOT_USED = "no row to come can use it; the rows that came of it are there and stay"
_NO_PARTNER = (
    "no row to come can use them: a stream ended, a key's value came, time ran out, or what must be"
    " absent came"
)

KnownKeys: TypeAlias = dict[int, list[set[str]]]
"""For some joins, by number, all key values that have arrived, for each of their two parts."""
Quick: TypeAlias = tuple[Expire, MaintainedView]
"""Drops rows whose deadlines have passed, for the one view that they concern."""
SavedKeys: TypeAlias = tuple[tuple[int, tuple[tuple[Any, ...], ...]], ...]
"""For each join, its number and, for each of its parts, the key values that it remembers."""


def _reads_waiting(join: Watch) -> bool:
    """Return whether what waits decides how long an arriving row waits.

    Rows whose deadlines have passed must be gone by then.
    """
    return isinstance(join, WaitingRows) and join.pair.waits_on_both_sides


class Collector:
    """Drops rows, streams and subtrees of one document that no future row can use."""

    def __init__(self, document: MaintainedTree, drops: bool, never: str, keeps: bool) -> None:
        self._document = document
        self._drops = drops
        self._came: list[tuple[Watch, int, str]] = []  # keys that a message of nodes uses up
        self.tracker = NeverTracker(document, never, keeps)
        self._watched = WatchedJoins(document, drops, keeps, self.tracker.how)
        self._joins = self._watched.joins
        self._keyed: list[Watch] = []  # the joins that use up values of keys
        self.version = 0  # increases when generated joins are out of date
        self.timed: list[tuple[Watch, Deadlines, Quick | None]] = []
        """The joins with their deadlines, and how these pass in one step."""
        self.examined: list[tuple[Watch, Deadlines, Quick | None]] = []
        """Those of them that are examined when a deadline passes, before the update."""
        self._sweeps = JoinSweeps()
        self.is_busy = False  # whether a single message can drop rows
        self.collected: deque[Dropped] = deque(maxlen=REMEMBERED)
        self.closed: dict[str, Call] = {}  # streams that may continue to send
        self._reported: dict[str, int] = {}  # dropped rows in `collected`, by join
        self.until: float = inf  # a clock beyond this time may end what no row waits for
        self.follows = False  # whether the tracker must see every inserted and deleted row
        self._messages = 0  # since the last scheduled collection
        self._key_relations: dict[tuple[int, Column, Key], tuple[Relation, ...]] = {}
        self._deadlines = JoinDeadlines()  # of many joins
        self._refreshed_at: tuple[int, int] | None = None
        """The versions of the engine and of the tree that the joins were found for."""

    @property
    def joins(self) -> list[Watch]:
        """The joins whose rows are watched."""
        return list(self._joins)

    # The watched joins ----------------------------------------------------------------------------

    def refresh(self) -> None:
        """Find the joins to watch again if sites, views or calls have changed.

        Called before every update, and before a question about the future.
        """
        added = self._watched.find()
        for join in self._joins:
            join.settle()
        self.tracker.refresh(self._joins, self._watched.inputs, added is None)
        if added is None and self._document.families and self._document.families.review():
            self.refresh()
            return
        if added is None:
            self.version += 1
            self.is_busy, self._keyed, added = False, [], list(self._joins)
        self.is_busy = self.is_busy or any(join.is_busy for join in added)
        self._keyed += [join for join in added if join.keys]
        self._sweeps.watch(self._joins)
        ways = self.tracker.quick
        self.timed = [(join, join.heap, ways.get(join)) for join in self._joins]
        self.examined = [
            (join, heap, quick)
            for join, heap, quick in self.timed
            if join.is_timed and (quick is None or _reads_waiting(join))
        ]
        self._deadlines.watch(self.timed, self._document.few_joins)
        self.follows = any(each.is_partial for each in self.tracker.every_prospects)
        self.is_busy = self.is_busy or self.follows
        self.until = self.tracker.deadline()
        self._refreshed_at = self._document.engine.version, self._document.tree.version

    def prospects(self, view: MaintainedView) -> AnyProspects | MemberProspects | None:
        """Return the facts about a view's future rows that need no document. None: none are known.

        Messages on the short path change neither the engine's version nor the tree's, so the joins
        are looked for again only after other updates, and after views have changed.
        """
        document = self._document
        if self._refreshed_at != (document.engine.version, document.tree.version):
            self.refresh()
        found = self.tracker.prospects(view)
        if found is not None:
            if found.is_partial and not self.follows:
                self.refresh()  # from now on it must see changes
            found.settle()
        return found

    def may_grow(self) -> bool:
        """Return whether `refresh` looks only at views that were added since the last one."""
        return self._watched.may_grow()

    @property
    def is_many(self) -> bool:
        """Whether there are many joins. Then every message with rows must be given to `after`."""
        return bool(self._deadlines)

    @property
    def is_swept(self) -> bool:
        """Whether updates are counted until the next sweep."""
        return bool(self._sweeps.joins)

    # Key values of messages -----------------------------------------------------------------------

    def key_users(self, stream: str) -> list[KeyUser]:
        """Return the key-value relations that a stream's messages must also be matched against.

        Those of each key with the join and the part that use their values. Joins that use the same
        key by the same name have the same relations.
        """
        tree = self._document.tree
        place = tree.parent(tree.calls()[stream])
        path = [n for n in (place, *tree.ancestors(place)) if n != DOCUMENT_NODE]
        found: list[KeyUser] = []
        known: dict[tuple[int, Column, Key], tuple[Relation, ...]] = self._key_relations
        for waiting, part, column, key in self.keys_of(stream):
            made = known.get((place, column, key))
            if made is not None:
                found.append((made, waiting, part))
                continue
            relations: list[Relation] = []
            # Use the name of the column that the key rules out: both then share one bucket in
            # Spark.
            for pattern in key.patterns_of(column.lstrip("$")):
                values = replace(pattern, outputs=pattern.outputs[:1])  # without the nodes
                relation = compile_pattern(values).root
                for _ in path:  # descend to the relation just below the call's parent
                    relation = relation.edges[0].relation
                relations.append(relation.edges[0].relation)
            made = known[place, column, key] = tuple(relations)
            found.append((made, waiting, part))
        return found

    def keys_of(self, stream: str) -> Iterator[tuple[Watch, int, Column, Key]]:
        """Return the keys whose values rows of joins wait for in a stream.

        Each with its join, part and column.
        """
        for waiting in self._keyed:
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

    def before(self, stream: str, is_insertion: bool, is_restorable: bool = False) -> None:
        """Prepare for an update of a stream that becomes nodes, after `refresh`.

        `is_restorable`: it deletes what the stream can bring again (`future/restoration.py`).
        """
        self.tracker.before(stream, is_insertion, is_restorable)

    def abandon(self) -> None:
        """Discard the preparations and the key values of a message that was rejected."""
        self._came.clear()
        self.tracker.abandon()

    def has_passed(self, clock: int) -> bool:
        """Return whether a deadline before a clock must be examined before the update."""
        return bool(self.examined) and self.is_overdue(clock)

    def pass_time(self, clock: int, emitted: ViewChanges | None = None) -> ViewChanges:
        """Append the `never` changes of deadlines before a clock, one after the other.

        Called before an update is applied: which rows can no longer come then follows from the
        deadlines alone, and not from the times at which updates arrive, or how many. A join whose
        deadlines pass in one step needs it only if its waiting rows decide how long others wait.
        """
        emitted = [] if emitted is None else emitted
        if not self.has_passed(clock):
            return emitted
        tree, tracker, examined = self._document.tree, self.tracker, self.examined
        if self._deadlines:
            numbers = self._deadlines.concerned(clock, ())
            due = {self.timed[number][0] for number in numbers}
            examined = [each for each in examined if each[0] in due or self.until < clock]
        before, may_end = tree.clock, self.until < clock
        for join, heap, quick in examined:
            if quick is not None and not may_end:
                expire, view = quick
                never = expire(clock) if heap and heap[0][0] < clock else ()
                if never:
                    append_never(emitted, view, never, clock)
                continue
            while (moment := tracker.next_deadline(join, heap) + 1) <= clock:
                tree.clock = int(moment)
                join.expire(tree.clock)
                tracker.report(emitted, tree.clock, join)
        tree.clock = before
        if self._deadlines:
            self._deadlines.note(numbers)
        return emitted

    def is_overdue(self, clock: int) -> bool:
        """Return whether a clock may drop rows or emit `never`; runs for every message."""
        if self.until < clock:
            return True
        if self._deadlines:
            return self._deadlines.have_passed(clock)
        for _, heap, _ in self.timed:  # noqa: SIM110  any() costs twice as much here
            if heap and heap[0][0] < clock:
                return True
        return False

    @property
    def next(self) -> float:
        """The clock beyond which time may drop rows or emit `never`; inf: none."""
        soonest = self.until
        for join in self._joins:
            limit = join.next_deadline()
            if limit is not None and limit < soonest:
                soonest = limit
        return soonest

    def after(
        self, emitted: ViewChanges, time: int, touched: Iterable[Watch] | None = None
    ) -> ViewChanges:
        """Drop rows after an update, and append the `never` changes that it causes.

        `touched`: the joins that rows or key values of the update reached; None: unknown.
        """
        came, clock = self._came, self._document.tree.clock
        if came:
            for join, part, value in dict.fromkeys(came):
                join.use(part, value)
            came.clear()
        if not self._deadlines:
            emitted = self._examined(emitted, time, self.timed)
        else:
            numbers = self._deadlines.concerned(clock, touched)
            emitted = self._examined(emitted, time, [self.timed[number] for number in numbers])
            self._deadlines.note(numbers)
        if self._sweeps.joins:
            self._sweeps.count()
        return emitted

    def _examined(
        self,
        emitted: ViewChanges,
        time: int,
        timed: Sequence[tuple[Watch, Deadlines, Quick | None]],
    ) -> ViewChanges:
        """Do this for the joins that an update may concern."""
        tracker, clock, has_ended = self.tracker, self._document.tree.clock, False
        for join, heap, quick in timed:
            if heap and heap[0][0] < clock:
                if quick is None:
                    join.expire(clock)
                else:
                    expire, view = quick
                    never = expire(clock)
                    if never:
                        append_never(emitted, view, never, time)
            if join.ended:
                has_ended = True
        if self.until < clock or tracker.is_busy:
            ended = {join: join.take_ended() for join in self._joins}
            emitted = tracker.after(emitted, time, ended)
            self.until = tracker.deadline()
        elif emitted and self.follows:
            tracker.follow(emitted, time, [join for join, _, _ in timed if join.ended])
        elif has_ended:
            for join, _, _ in timed:
                if join.ended:
                    tracker.report(emitted, time, join)
        return emitted

    def after_nodes(self, emitted: ViewChanges, time: int) -> ViewChanges:
        """Do the same as `after` for an update that may have ended streams or opened new ones."""
        tree = self._document.tree
        self._watched.admit_new_streams()
        for join in self._joins:
            for part, streams in enumerate(join.open):
                for stream in sorted(streams):
                    node = tree.calls_by_stream.get(stream)
                    if node is None or not may_bring(tree, tree.call(node)):
                        join.prune(StreamEnded(part, stream))
                        self.version += 1
        self.until = -inf  # examine every view
        emitted = self.after(emitted, time)
        self.refresh()
        return emitted

    # Saved state ----------------------------------------------------------------------------------

    def saved_keys(self) -> SavedKeys:
        """Return the key values remembered at each join, by its number, as plain tuples."""
        self.refresh()
        numbered = self._watched.numbered()
        return tuple((number, numbered[number].saved_values()) for number in sorted(numbered))

    def restore(self, keys: SavedKeys | tuple[Any, ...]) -> None:
        """Continue with tables filled from outside, and the key values saved with them.

        The joins of the saved state are watched, also those whose streams have all ended since.
        """
        self.detach()
        is_numbered = all(each and isinstance(each[0], int) for each in keys)
        saved = dict(keys) if is_numbered else None
        with self._watched.restoring(saved):
            self.refresh()
        joins = self._watched.numbered()
        if saved is None:  # version 0.1 wrote the values of all joins, without their numbers
            saved = dict(zip(joins, keys, strict=False))
        if joins.keys() != saved.keys() or len(saved) != len(keys):
            raise StoreError(
                "AX872",
                f"the saved state has key values of {len(keys)} joins, and the views have "
                f"{len(joins)} such joins",
                advice="run the version that wrote it, or start again without this state",
            )
        for number, values in saved.items():
            joins[number].restore(values)
        for each in self.tracker.every_prospects:
            if isinstance(each, Prospects):
                each.is_after_end = False
        self.until = self.tracker.deadline()

    def restore_ends(self, ends: Mapping[str, Sequence[int]]) -> None:
        """Let views wait again for ends of streams (`NeverTracker.ends`)."""
        self.refresh()
        self.tracker.restore_ends(ends)
        self.until = self.tracker.deadline()

    def known_keys(self) -> KnownKeys:
        """Return all key values that joins know to have arrived, where the document had them."""
        return {
            number: [set(values) for values in join.known]
            for number, join in self._watched.numbered().items()
            if isinstance(join, WaitingRows) and join.known is not None
        }

    def restore_known(self, keys: KnownKeys) -> None:
        """Give the joins the values of `known_keys` again, after `restore`."""
        for number, join in self._watched.numbered().items():
            if isinstance(join, WaitingRows) and number in keys:
                join.known = keys[number]
        self.version += 1  # functions that note key values refer to the old ones

    # Dropped rows -----------------------------------------------------------------------------

    @property
    def has_dropped(self) -> bool:
        """Whether rows were dropped that an update which is not a stream's may need."""
        return self._have_dropped(self._joins)

    def has_dropped_of(self, relations: set[Relation] | None) -> bool:
        """Whether rows were dropped that a new view of some relations needs; None: of any.

        Joins with `not`s drop none that their rows consist of.
        """
        joins = [j for j in self._joins if relations is None or j.relation in relations]
        return self._have_dropped(j for j in joins if isinstance(j, WaitingRows))

    def _have_dropped(self, joins: Iterable[Watch]) -> bool:
        joins = list(joins)
        for join in joins:
            join.settle()
        return self._drops and any(
            (join.dropped and not _keeps_all(join)) or join.passes_by for join in joins
        )

    def detach(self) -> None:
        """Stop watching the joins, before an update that does not come from a stream.

        The caller restores dropped rows from the document.
        """
        self._watched.clear()
        self._refreshed_at = None
        self.tracker.detach()
        self.version += 1
        self.timed, self.examined, self.until = [], [], inf
        self.is_busy, self._keyed = False, []
        self._sweeps.watch(())
        self._deadlines.watch(self.timed, self._document.few_joins)

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
            if _keeps_all(join):
                continue
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
        kept = reason_to_keep(document)
        if kept is None:
            try:
                uses = uses_of_views(document)
                closed = self._close(uses)
                dropped += closed
                dropped += self._drop(uses_of_views(document) if closed else uses)
            except (UndecidedError, UnsupportedError) as error:
                kept = error.message
        self.collected.extend(dropped)
        return Collection(document.clock, tuple(dropped), kept)

    def _close(self, uses: Iterable[Uses]) -> list[Dropped]:
        document, tree = self._document, self._document.tree
        prospects = self.tracker.every_prospects  # their `never` depends on the streams' real ends
        asked = {s for each in prospects for streams in each.waiting.open for s in streams}
        asked.update(*(each.streams for each in uses))
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

    def _drop(self, uses: Iterable[Uses]) -> list[Dropped]:
        document, tree = self._document, self._document.tree
        tops = finished_nodes(document, uses)
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


def _keeps_all(join: Watch) -> bool:
    """Return whether the tables of a join keep its rows: another view counts them."""
    return isinstance(join, WaitingRows) and not join.drops
