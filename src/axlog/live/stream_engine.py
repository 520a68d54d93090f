"""The short path of a message: parse, match, join, emit. It makes no nodes.

A stream's messages can take the short path if the views need only strings and times of them. The
generated matcher extracts these from the parsed message, and the route carries them to the views.
The message itself is set aside and becomes nodes only when the document is read (`keep="all"`), or
it is dropped (`keep="needed"`). Messages that the short path cannot handle (several trees, calls
inside, a DOCTYPE, another encoding than UTF-8, `xml:space`, anything near a limit, any error) take
the long path, through the document. Law: the answers are the same.

The cost of a message arises here. `StreamEngine.feed` is therefore one straight line, and work that
does not depend on the message is done once for a stream, in `ShortWay`. The two halves can run in
different processes: a stream's `plan` reads messages anywhere (`match/stream_plan.py`), and
`apply_all` applies its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from axlog.document.operations import Operation
from axlog.document.times import Time, microseconds
from axlog.document.tree import NONE
from axlog.errors import QueryError, StreamError, ValueProblem
from axlog.evaluate.joins import Bag
from axlog.future.deletions import reaching_stream
from axlog.live.bag_application import apply_bags
from axlog.live.collector import Collector
from axlog.live.engine_state import SavedState, checked_messages, restore_state, saved_state
from axlog.live.feed_writer import Feed, generate_feed
from axlog.live.maintained import MaintainedTree
from axlog.live.messages_aside import Aside, make_nodes
from axlog.live.profile import Profile
from axlog.live.replacements import Deliveries, Replacement
from axlog.live.short_way import Read, ShortWay
from axlog.live.stream_needs import (
    Expectation,
    names_wanted,
    needs_no_nodes,
    only_concerns_views,
)
from axlog.live.stream_routes import StreamRoutes
from axlog.live.stream_status import StreamStatus
from axlog.live.update_changes import ViewChanges, together
from axlog.match.layout_reader import LayoutReader
from axlog.match.stream_plan import MessagePlan
from axlog.query.compile import Relation
from axlog.views.change import Change
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.routes import Route, Wants
from axlog.views.view import MaintainedView

PREPARED = 64
"""The most views for which the short paths are computed when a view is added."""
_LATEST = 1 << 63
_NO_CHANGES: ViewChanges = []


class StreamEngine:
    """The short paths of a document's streams, computed on first use and when sites change."""

    def __init__(
        self, document: MaintainedTree, keep: str, validate: str, collector: Collector
    ) -> None:
        self._collector = collector
        self._document = document
        self.keeps = keep == "all"
        self._looks_first = validate == "wanted"
        self._ways: dict[str, ShortWay | None] = {}
        self.version = -1  # version of the counting engine; -1 when views may have changed
        self.feeds: dict[str, Feed] = {}
        """The generated functions of streams, which take most messages (`feed_writer.py`)."""
        self.direct: dict[str, Feed] = {}
        """Those that need nothing before or after them."""
        self.profile: Profile | None = None  # where the time of messages goes, if it is measured
        self.ends_a_message = False  # whether nothing is to be done after a message
        self._found_for: tuple[int, int, list[MaintainedView]] = (-1, -1, [])
        self._has_no_nodes = True  # whether the views need only strings and times
        self._expectation = Expectation(document)
        self._old_ways: dict[str, ShortWay | None] = {}  # before views were added
        self._old_feeds: dict[str, Feed] = {}
        self._routes = StreamRoutes(document, collector)
        self.aside: list[Aside | None] = []  # stream, message, time, number; None: deleted
        self._delivered: dict[str, Deliveries] = {}  # of streams that replace
        self._statuses: dict[str, StreamStatus] = {}
        self._acquire, self._release = document.lock.acquire, document.lock.release
        self.wants: Mapping[str, Wants] = {}  # filters of the tuned streams
        self.epoch = 0  # increases when the tuner's result may no longer hold
        self._is_owing = False  # whether filters kept irrelevant rows from the engine

    def status(self, stream: str) -> StreamStatus:
        """Return the status of a stream, in which its messages are counted."""
        known = self._statuses.get(stream)
        if known is None:
            known = self._statuses[stream] = StreamStatus(stream)
        return known

    def copied_statuses(self) -> dict[str, StreamStatus]:
        """Return a copy of every status, for a savepoint."""
        return {name: replace(one) for name, one in self._statuses.items()}

    def restore_statuses(self, statuses: dict[str, StreamStatus]) -> None:
        """Restore the statuses of a savepoint."""
        self._statuses = statuses

    def feed(
        self, stream: str, message: object, at: Time | None, latest: int | None = None
    ) -> list[Change] | None:
        """Apply a message without making nodes. None: it must take the long path.

        `latest` is the latest time that the message may have.
        """
        document = self._document
        tree = document.tree
        self._acquire()
        try:
            way = self.short_way(stream)
            if way is None:
                return None
            try:
                time = tree.clock if at is None else microseconds(at)
                if type(message) is str:
                    message = message.encode()
                elif type(message) is not bytes:
                    return None
                if not tree.clock <= time < _LATEST or (latest is not None and time > latest):
                    return None
                read: tuple[Bag, ...] | Replacement | None
                if way.delivered is None:
                    read = way.read(message, time)
                else:
                    read = way.delivered.match(message, time, len(self.aside))
                if read is None:
                    return None
            except (StreamError, UnicodeEncodeError, QueryError):
                # The long path raises the error, or sets aside the view that exceeds a limit.
                return None
            passed = self._pass_time(way, time)
            if passed is None:
                return None
            if isinstance(read, Replacement):
                return self._replace(way, message, time, read, passed)
            bags = read
            status = way.status
            if way.rejects and any(bags):
                return self._join_or_reject(way, bags, time, message)
            tree.clock = time
            status.messages += 1
            status.microseconds = time
            if bags is way.unread:
                status.unparsed += 1
                document.forgotten += 1
            else:
                if way.keeps:
                    self.aside.append((stream, message, time, status.messages))
                else:
                    document.forgotten += 1
                if any(bags):
                    return self.join(way, bags, time, passed)
                status.unmatched += 1
            return self._unmatched(way, time, passed)
        finally:
            self._release()

    def measure(self, profile: Profile | None) -> None:
        """Measure the stages of messages from now on, or no longer."""
        self.profile = profile
        self.version, self._found_for = -1, (-1, -1, [])
        self.feeds, self.direct = {}, {}

    def parses(self, stream: str) -> bool:
        """Return whether the generated function of a stream parses most messages."""
        way = self._ways.get(stream)
        if way is None or stream not in self.feeds or way.unread is not None:
            return False
        return way.layouts is None or (way.layouts.match is None and not way.layouts.reads)

    def _pass_time(self, way: ShortWay, clock: int) -> ViewChanges | None:
        """Return the changes of the clock before a message; None: it must take the long path.

        A message that a view may refuse must not move the clock.
        """
        if way.rejects:
            moment = self._document.next_moment()
            if (moment is not None and moment <= clock) or self._collector.has_passed(clock):
                return None
        return self._document.pass_time(clock)

    def _unmatched(self, way: ShortWay, time: int, passed: ViewChanges) -> list[Change]:
        """Emit the changes of the clock after a message without rows."""
        has_passed = bool(passed or self._document.families.emitted)  # members': not in `passed`
        if has_passed or self._collector.is_overdue(time):
            return self.join(way, (), time, passed)
        return []

    def _replace(
        self,
        way: ShortWay,
        message: bytes,
        time: int,
        replacement: Replacement,
        passed: ViewChanges,
    ) -> list[Change]:
        """Apply a message of a stream that replaces."""
        document, status = self._document, way.status
        document.tree.clock = time
        status.messages += 1
        status.microseconds = time
        if way.keeps:
            update = (status.stream, message, time, status.messages)
            if replacement.aside < len(self.aside):
                self.aside[replacement.aside] = update
            else:
                self.aside.append(update)
        else:
            document.forgotten += 1
        moved = replacement.enter()
        if any(moved):
            return self.join(way, moved, time, passed)
        status.unmatched += not any(replacement.new)
        return self._unmatched(way, time, passed)

    def holds_rows_of(self, stream: str, key: str) -> bool:
        """Return whether a message of a stream that replaces leaves rows and no nodes.

        Then it must not become nodes even if it takes the long path: the message that it replaces
        has none either.
        """
        way = self._find(stream)
        is_short = way is not None and way.delivered is not None and not way.keeps
        return is_short and self._document.tree.message_of(stream, key) == NONE

    def carry_rows(
        self, operations: Sequence[Operation], time: int, origin: tuple[str, int]
    ) -> ViewChanges:
        """Apply a message of a stream that replaces by its rows, read from nodes that are dropped.

        It is checked as a message that becomes nodes.
        """
        document, way = self._document, self._ways[origin[0]]
        assert way is not None
        assert way.delivered is not None
        moved = way.delivered.read(operations, time).enter()
        passed = document.pass_time(time)
        document.tree.clock = time
        document.forgotten += 1
        document.current.origin = origin
        document.engine.climbed += 1
        return together(passed, way.route.carry(moved, time))

    def prepare(self) -> None:
        """Compute the short paths again after views changed, before the next message.

        With many views the next message does it: views are often watched one after the other.
        """
        if len(self._document.views) <= PREPARED or self._may_grow():
            for stream in list(self._ways):
                self._find(stream)

    def _may_grow(self) -> bool:
        """Return whether the short paths can be added to, instead of being computed again."""
        _, joins, views = self._found_for
        is_same = joins == self._collector.version and self._routes.may_grow
        now = list(self._document.views.values())
        return is_same and now[: len(views)] == views and self._collector.may_grow()

    def prepare_all(self) -> None:
        """Compute the short paths of all streams, before their first messages."""
        for stream in list(self._document.tree.calls_by_stream):
            self._find(stream)

    def short_way(self, stream: str) -> ShortWay | None:
        """Return how a stream's messages are processed now. None: they become nodes."""
        is_current = self.version == self._document.engine.version
        is_open = stream in self._document.tree.calls_by_stream
        way = self._ways.get(stream) if is_current and is_open else None
        return way or self._find(stream)

    def plan(self, stream: str) -> MessagePlan | None:
        """Return how a stream's messages are read, as data that can be sent.

        None: no short path.
        """
        with self._document.lock:
            way = self._find(stream)
            return None if way is None or way.needs_nodes else way.plan

    def apply_all(self, found: Iterable[Read]) -> list[Change]:
        """Apply the results of plans that ran elsewhere, in order of time (`bag_application.py`).

        Each result is a stream, its bags and its time, and the key of a message that replaces. The
        messages are not kept. Subscribers are called at the end.
        """
        return apply_bags(self, self._document, self._collector, found)

    def way_of_plan(self, stream: str) -> ShortWay:
        """Return the short path of a stream whose plan runs elsewhere."""
        way = self._find(stream)
        if way is None or way.needs_nodes:
            raise StreamError("AX401", f"{stream!r} has no plan: its messages become nodes")
        return way

    def state(self) -> SavedState:
        """Return the state of the joins and the views, as plain tuples. See `restore`."""
        document = self._document
        with document.lock:
            return saved_state(document, self._collector, self._delivered)

    def next_deadline(self) -> int | None:
        """Return the clock after which time alone changes something.

        A partial match can no longer be completed, or a row appears or disappears. See `advance`.
        """
        with self._document.lock:
            self._collector.refresh()
            limit, moment = self._collector.next, self._document.next_moment()
            if moment is not None:
                limit = min(limit, moment - 1)
            # Some view examines every update: any progress of the clock may matter.
            if limit == -inf:
                return self._document.tree.clock
            return None if limit == inf else int(limit)

    def restore(self, saved: SavedState) -> None:
        """Restore the state saved from a document with the same tree and views.

        Subscribers are not called.
        """
        document = self._document
        with document.lock:
            self.epoch += 1
            self._delivered = checked_messages(document, saved, self.keeps)
            self.install({})
            restore_state(document, self._collector, saved)

    def join(
        self, way: ShortWay, bags: tuple[Bag, ...], time: int, passed: ViewChanges = _NO_CHANGES
    ) -> list[Change]:
        """Join a message's rows with the tables, and emit the changes.

        `passed`: the changes of the clock before the message.
        """
        document = self._document
        emitted: ViewChanges = []
        document.current.origin = way.status.stream, way.status.messages
        if bags:
            if way.arrive is not None and not way.rejects:
                way.arrive(way.route.found_bags(bags))
            emitted = way.route.carry(bags, time)
            if way.arrive is not None and way.rejects:
                way.arrive(way.route.found_bags(bags))
            document.engine.climbed += 1
        emitted = together(passed, emitted)
        collector = self._collector
        if collector.is_busy or collector.is_overdue(time) or (bags and collector.is_many):
            emitted = collector.after(emitted, time)
        return document.announce(emitted) if emitted or document.families.emitted else []

    def _join_or_reject(
        self, way: ShortWay, bags: tuple[Bag, ...], time: int, message: bytes
    ) -> list[Change]:
        """Do the same for a message that a view may refuse: then only its number is used up."""
        tree, status = self._document.tree, way.status
        clock, tree.clock = tree.clock, time
        before, status.microseconds = status.microseconds, time
        status.messages += 1
        if way.keeps:
            self.aside.append((status.stream, message, time, status.messages))
        else:
            self._document.forgotten += 1
        try:
            return self.join(way, bags, time)
        except ValueProblem:
            self._document.families.discard()
            tree.clock, status.microseconds = clock, before
            status.refused += 1
            if way.keeps:
                self.aside.pop()
            else:
                self._document.forgotten -= 1
            raise

    def _find(self, stream: str) -> ShortWay | None:
        """Return the short path of a stream. None: its messages cannot take it."""
        document = self._document
        tree = document.tree
        if self.version != document.engine.version or stream not in tree.calls_by_stream:
            self._collector.refresh()  # may give views of a family plans of their own
        views = list(document.views.values())
        document.engine.build()
        self.version = document.engine.version
        found_for = (self.version, self._collector.version, views)
        if document.forgotten:
            self._expectation.follow(views)
        elif not all(map(self.is_kept, tree.calls_by_stream)):
            self.version = -1  # look again before the second message
        if self._found_for != found_for:
            self._follow_views(found_for)
        if stream not in tree.calls_by_stream:
            return None
        if stream in self._ways:
            return self._ways[stream]
        self._ways[stream] = None
        node = tree.calls_by_stream[stream]
        has_no_nodes = self._has_no_nodes
        if (
            not views
            or not only_concerns_views(document, stream)
            or not (has_no_nodes or (stream in self.wants and not tree.facts))
            or document.engine.is_value_sensitive(tree.parent(node))
        ):
            return None
        replace, keeps = tree.call(node).replace, self.is_kept(stream)
        must_be_nodes = self._looks_first or (replace is not None and not self.keeps)
        if must_be_nodes and reaching_stream(tree, stream) is not None:
            return None  # all messages that a deletion can reach become nodes
        route = self._routes.route(stream, self.wants.get(stream))
        is_short = has_no_nodes and route.can_match
        if not is_short and (stream not in self.wants or tree.facts):
            return None
        # Ids count kept messages: where a view needs nodes, all messages to be kept are parsed.
        may_pass_unread = self._looks_first and (has_no_nodes or not keeps) and replace is None
        wanted = names_wanted(route) if may_pass_unread else None
        plan = self._routes.plan(route, wanted, replace)
        route.follow(views)
        if replace is not None and route.rejects:
            return None  # a refused message must not take back the rows of the one before it
        unread = None if wanted is None else plan.unread
        way = ShortWay(plan, self.status(stream), route, plan.bags, unread)
        way.rejects, way.keeps = route.rejects, keeps
        if replace is not None:
            known = self._delivered.get(stream) or Deliveries(document, stream, keeps)
            way.delivered = self._delivered[stream] = known
            known.follow(plan)
        if is_short:
            here, everywhere = route.here, route.everywhere
            way.arrive = self._collector.tracker.arrival(route.node, here, everywhere)
        else:
            way.needs_nodes = True
            way.read = plan.bags_if_unwanted
        self._ways[stream] = way
        if is_short and replace is None and not way.rejects and not document.clocked:
            self._make_feed(stream, way)
            has_bounds = document.times == "dates" or tree.call(node).ahead is not None
            if self.ends_a_message and not has_bounds:
                self.direct[stream] = self.feeds[stream]
        return way

    def _follow_views(self, now: tuple[int, int, list[MaintainedView]]) -> None:
        """Forget the short paths, or add to them if views were only added."""
        _, joins, known = self._found_for
        _, _, views = self._found_for = now
        self._old_ways, self._old_feeds = self._ways, self.feeds
        self._ways, self.feeds, self.direct = {}, {}, {}
        if joins == self._collector.version and views[: len(known)] == known:
            self._has_no_nodes &= all(map(needs_no_nodes, views[len(known) :]))
            self._routes.grow()
        else:
            self._has_no_nodes = all(map(needs_no_nodes, views))
            self._routes.clear()
            self._old_ways, self._old_feeds = {}, {}

    def _make_feed(self, stream: str, way: ShortWay) -> None:
        """Generate the function of a stream, or keep the one that it had."""
        old = self._old_ways.get(stream)
        if (
            old is not None
            and stream in self._old_feeds
            and way.is_alike(old)
            and self._collector.is_many
        ):
            way.source, self.feeds[stream] = old.source, self._old_feeds[stream]
            way.needs_after = True
            return
        way.needs_after = self._collector.is_many
        made = generate_feed(self, self._document, self._collector, way, way.route)
        self.feeds[stream], way.source = made

    def is_kept(self, stream: str) -> bool:
        """Return whether messages are kept: all are, or a deletion can reach them."""
        return self.keeps or reaching_stream(self._document.tree, stream) is not None

    def code(self, stream: str) -> str | None:
        """Return the source of a stream's generated matcher. None: there is no short path."""
        plan = self.plan(stream)
        return None if plan is None else plan.matcher.source

    def patterns(self, stream: str) -> tuple[str, ...]:
        """Return the patterns that views look for in messages: at the root, or anywhere (`//`)."""
        route = self.route(stream)
        return () if route is None else route.patterns()

    def route(self, stream: str) -> Route | None:
        """Return the route of a stream's rows, with its filter. None: no call, or no program."""
        engine, tree = self._document.engine, self._document.tree
        engine.build()
        node = tree.calls_by_stream.get(stream)
        if node is None or tree.parent(node) not in engine.sites():
            return None
        return Route(engine, tree.parent(node), self.wants.get(stream))

    def layouts(self, stream: str) -> LayoutReader | None:
        """Return what reads a stream's messages by their layouts; None: nothing does."""
        way = self._ways.get(stream)
        return None if way is None else way.layouts

    def automaton_nodes(self, stream: str) -> int:
        """Return the size of the automaton that a stream's messages run through; 0 without one."""
        shared = way.plan.shared if (way := self._ways.get(stream)) is not None else None
        return 0 if shared is None else shared.statistics().nodes

    # Tuning ---------------------------------------------------------------------------------------

    def install(self, wants: Mapping[str, Wants]) -> None:
        """Install filters for these streams. Of the other streams, all that can match passes."""
        self.wants = dict(wants)
        self._is_owing = self._is_owing or bool(self.wants)
        self.version, self._found_for = -1, (-1, -1, [])

    def untune(self) -> None:
        """Remove the filters, and restore the rows that they and collection dropped."""
        self.epoch += 1
        document = self._document
        if not (self._is_owing or self._collector.has_dropped or document.collected):
            self._collector.detach()
            return
        document.nodes()  # raises if messages or nodes were not kept
        self._collector.detach()
        self.install({})
        counting = [view.maintainer for view in document.views.values()]
        document.engine.reload(
            each for m in counting if isinstance(m, Counting) for each in m.reloads()
        )
        self._is_owing = False

    def before_view(self) -> None:
        """Remove the filters before a view is made, and restore what they dropped."""
        self.epoch += 1
        if self._is_owing or self._document.collected:
            self.untune()

    def restore_rows(self, relations: Iterable[Relation] | None) -> None:
        """Restore the rows that joins of a new view's relations have dropped; None: of any.

        Joins that only the new view has are set up from the document, and lack none. Refused where
        messages that were not kept may be replaced (`Deliveries.check_new`).
        """
        wanted = None if relations is None else set(relations)
        if wanted is not None:
            for each in self._delivered.values():
                each.check_new(wanted)
        if self._collector.has_dropped_of(wanted):
            self.untune()

    def settle(self) -> None:
        """Make nodes of the messages that were set aside. The views have already processed them."""
        self.version = -1
        if not self.aside:
            return
        aside, self.aside = [each for each in self.aside if each is not None], []
        for each in self._delivered.values():
            each.settle()
        make_nodes(self._document, aside)
