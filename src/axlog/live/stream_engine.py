"""The short way for a message: parse, match, join, tell. No node is made for it.

A stream's message can go the short way when all that the views need of it are strings and times:
the generated matcher takes them from the parsed message, the route carries them to the views. The
message itself is put aside and becomes nodes only when something needs the document (`keep="all"`),
or is forgotten (`keep="needed"`). What the short way cannot take (several trees, calls inside, a
DOCTYPE, an encoding of its own, `xml:space`, anything near a limit, anything wrong) goes the long
way, through the document; the answers are the same.

A message's cost is here: `StreamEngine.feed` is one straight line, and what does not depend on the
message is worked out in `ShortWay`, once for a stream. The two halves can run apart: a
stream's `plan` reads messages anywhere (`match/stream_plan.py`), `apply_all` takes what it made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeAlias

from lxml.etree import XMLParser, XMLSyntaxError, fromstring

from axlog.document.loader import read_forest
from axlog.document.operations import checked_time, insert_at_call
from axlog.document.parser import Element
from axlog.document.pending import Plan
from axlog.document.times import Shown, Time, Times, microseconds, shown
from axlog.errors import QueryError, StreamError, UpdateError
from axlog.evaluate.joins import Bag, Row, add_all
from axlog.live.collector import Collector
from axlog.live.maintained import MaintainedTree, Told
from axlog.match.matcher_generator import Answers, Match, can_match, names_needed
from axlog.match.stream_plan import MessagePlan, filter_of, may_want
from axlog.query.pattern import Kind
from axlog.views.change import Change
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.routes import Deliver, Route, Wants
from axlog.views.counting.state_codec import SavedTables, restore_tables, saved_tables
from axlog.views.maintainer import PutAside
from axlog.views.view import View

_LATEST = 1 << 63


SavedState: TypeAlias = tuple[
    int,
    SavedTables,
    tuple[tuple[str, int, tuple[tuple[Row, int], ...]], ...],
    tuple[tuple[tuple[str, ...], ...], ...],
]
"""The clock, the rows of every table, of each view its name, last number and bindings, and of each
join the key values that it remembers."""


IsWanted: TypeAlias = Callable[[Element, int, bytes], object]


@dataclass(slots=True)
class StreamStatus:
    """What has come over one stream."""

    stream: str
    messages: int = 0
    refused: int = 0
    ended: bool = False
    microseconds: int | None = None  # time of the last message
    unparsed: int = 0  # messages that their raw bytes ruled out (validate="wanted")
    unmatched: int = 0  # messages of which the filter wanted nothing
    wanted: tuple[str, ...] = ()  # the patterns that views want of it
    is_tuned: bool = False  # by what may still happen, not only by where its call stands
    nodes: int = 0  # of the filter's automaton; 0 where patterns are tested one by one
    times: Times = "seconds"

    @property
    def last(self) -> Shown | None:
        """The time of the last message."""
        return None if self.microseconds is None else shown(self.microseconds, self.times)

    @property
    def dropped(self) -> int:
        """Messages that no view wanted: they moved the clock, and nothing else."""
        return self.unparsed + self.unmatched

    @property
    def kept(self) -> int:
        """Messages that some view had a use for."""
        return self.messages - self.refused - self.dropped

    @property
    def is_unsubscribed(self) -> bool:
        """Whether nothing that the stream can bring matters any more."""
        return self.is_tuned and not self.wanted


@dataclass(slots=True)
class ShortWay:
    """How one stream's messages are taken without storing them."""

    plan: MessagePlan
    status: StreamStatus
    parser: XMLParser = field(repr=False)
    match: Match = field(repr=False)
    deliver: Deliver = field(repr=False)
    is_wanted: IsWanted | None = field(repr=False, default=None)
    """For views that need nodes: what is wanted goes the long way, the rest needs no nodes."""
    arrive: Callable[[tuple[Bag, ...]], None] | None = field(repr=False, default=None)
    """For the possible rows that are followed from the same matches."""


class StreamEngine:
    """The short ways of a widget's streams, found when first used and again when sites change."""

    def __init__(
        self, document: MaintainedTree, keep: str, validate: str, collector: Collector
    ) -> None:
        self._collector = collector
        self._document = document
        self.keeps = keep == "all"
        self._looks_first = validate == "wanted"
        self._ways: dict[str, ShortWay | None] = {}
        self._version = -1  # of the engine; -1 when views may have come or gone
        self._found_for: tuple[int, int, list[View]] = (-1, -1, [])
        self._aside: list[tuple[str, bytes, int, int]] = []  # with the number of the message
        self._statuses: dict[str, StreamStatus] = {}
        self._acquire, self._release = document.lock.acquire, document.lock.release
        self.wants: Mapping[str, Wants] = {}  # of the streams that are tuned
        self.epoch = 0  # moves when what the tuner found may hold no more
        self._is_owing = False  # whether rows that do not matter passed the engine by

    def status(self, stream: str) -> StreamStatus:
        """What has come over a stream; it is counted here."""
        known = self._statuses.get(stream)
        if known is None:
            known = self._statuses[stream] = StreamStatus(stream)
        return known

    def copied_statuses(self) -> dict[str, StreamStatus]:
        """A copy of every status, for a savepoint."""
        return {name: replace(one) for name, one in self._statuses.items()}

    def restore_statuses(self, statuses: dict[str, StreamStatus]) -> None:
        """Go on from the statuses of a savepoint."""
        self._statuses = statuses

    def feed(
        self, stream: str, message: object, at: Time | None, latest: int | None = None
    ) -> list[Change] | None:
        """Take a message without making nodes; None if it must go the long way.

        `latest` is the latest time that it may have.
        """
        document = self._document
        tree = document.tree
        self._acquire()
        try:
            way = self._ways.get(stream)
            if (
                way is None
                or self._version != document.engine.version
                or stream not in tree.calls_by_stream
            ):
                way = self._find(stream)
                if way is None:
                    return None
            try:
                time = tree.clock if at is None else microseconds(at)
                if type(message) is str:
                    message = message.encode()
                elif type(message) is not bytes:
                    return None
                plan = way.plan
                if not tree.clock <= time < _LATEST or plan.declines(message):
                    return None
                if latest is not None and time > latest:
                    return None
                is_wanted = plan.wanted is None or may_want(message, plan.wanted)
                root = fromstring(message, way.parser) if is_wanted else None
                bags: tuple[Bag, ...] = ()
                if root is not None:
                    if way.is_wanted is not None and way.is_wanted(root, time, message):
                        return None  # as nodes
                    bags = way.match(root, time, message)
            except (StreamError, UnicodeEncodeError, XMLSyntaxError, QueryError):
                return None  # the long way says what is wrong, or which view asks for too much
            tree.clock = time
            status = way.status
            status.messages += 1
            status.microseconds = time
            if root is None:
                status.unparsed += 1
                document.forgotten += 1
            else:
                if self.keeps:
                    self._aside.append((stream, message, time, status.messages))
                else:
                    document.forgotten += 1
                if any(bags):
                    return self._join(way, bags, time)
                status.unmatched += 1
            return self._join(way, (), time) if self._collector.next < time else []
        finally:
            self._release()

    def prepare(self) -> None:
        """Set up again what views that came or went have changed, before the next message."""
        for stream in list(self._ways):
            self._find(stream)

    def plan(self, stream: str) -> MessagePlan | None:
        """How a stream's messages are read, as data that can be sent elsewhere; None: not here."""
        with self._document.lock:
            way = self._find(stream)
            return None if way is None or way.is_wanted is not None else way.plan

    def apply_all(self, found: Iterable[tuple[str, tuple[Bag, ...], int]]) -> list[Change]:
        """Take what plans made elsewhere of messages, in the order of their times: of each its
        stream, its bags and its time. The messages are not kept; listeners are told at the end."""
        document = self._document
        tree, engine, collector = document.tree, document.engine, self._collector
        told: Told = []
        count = 0
        with document.lock:
            ways: dict[str, ShortWay] = {}
            try:
                for stream, bags, time in found:
                    way = ways.get(stream)
                    if way is None:
                        way = ways[stream] = self._way_of_plan(stream)
                    if time < tree.clock:
                        checked_time(tree, time)  # raises
                    tree.clock = time
                    way.status.messages += 1
                    way.status.microseconds = time
                    answers = way.deliver(bags)
                    each = self._changes(answers, time) if answers else []
                    if collector.is_busy or collector.next < time:
                        each = collector.after(each, time)
                    told += each
                    count += 1
            finally:
                document.forgotten += count
                engine.climbed += count
                changes = document.announce(told) if told else []
        return changes

    def _way_of_plan(self, stream: str) -> ShortWay:
        way = self._find(stream)
        if way is None or way.is_wanted is not None:
            raise StreamError("AX401", f"{stream!r} has no plan: its messages become nodes")
        return way

    def state(self) -> SavedState:
        """What the joins and the views keep, as plain tuples; see `restore`."""
        document = self._document
        with document.lock:
            views = tuple(
                (name, view.sequence, tuple(_counting(view).counts().items()))
                for name, view in document.views.items()
                if view.broken is None
            )
            seen = self._collector.seen()
            return document.tree.clock, saved_tables(document.engine), views, seen

    def next_deadline(self) -> int | None:
        """The clock after which some match under way can no longer be completed; see `advance`."""
        with self._document.lock:
            self._collector.refresh()
            limit = self._collector.next
            if limit == -inf:  # some view looks at every update: any time that passes may matter
                return self._document.tree.clock
            return None if limit == inf else int(limit)

    def restore(self, saved: SavedState) -> None:
        """Go on from what a widget over the same document and views had kept; nobody is told."""
        document = self._document
        clock, tables, views, seen = saved
        with document.lock:
            self.epoch += 1
            self.install({})
            restore_tables(document.engine, tables)
            for name, sequence, rows in views:
                view = document.views[name]
                moved = dict(rows)
                add_all(moved, _counting(view).counts(), -1)
                _counting(view).take(moved)
                view.sequence = sequence
                view.standing.forget()
            document.tree.clock = clock
            document.forgotten += 1
            self._collector.restart(seen)

    def _join(self, way: ShortWay, bags: tuple[Bag, ...], time: int) -> list[Change]:
        """Join what a message brings with what is kept, and tell the views."""
        document = self._document
        told: Told = []
        if bags:
            if way.arrive is not None:
                way.arrive(bags)
            answers = way.deliver(bags)
            document.engine.climbed += 1
            told = self._changes(answers, time) if answers else told
        if self._collector.is_busy or self._collector.next < time:
            told = self._collector.after(told, time)
        return document.announce(told) if told else []

    def _changes(self, answers: Answers, time: int) -> Told:
        """Move the views' rows."""
        told: Told = []
        for view in self._document.views.values():
            maintainer = view.maintainer
            if isinstance(maintainer, Counting) and maintainer.root in answers:
                changes = view.taken(maintainer.take(answers[maintainer.root]), time)
                if changes:
                    told.append((view, changes))
        return told

    def _find(self, stream: str) -> ShortWay | None:
        """The short way of a stream, if its messages can go it."""
        document = self._document
        tree = document.tree
        views = list(document.views.values())
        self._collector.refresh()
        self._version = document.engine.version
        found_for = (self._version, self._collector.version, views)
        if self._found_for != found_for:
            self._found_for = found_for
            self._ways = {}
        if stream not in tree.calls_by_stream:
            return None
        if stream in self._ways:
            return self._ways[stream]
        self._ways[stream] = None
        node = tree.calls_by_stream[stream]
        has_no_nodes = all(map(needs_no_nodes, views))
        if (
            not views
            or not self.is_plain(stream)
            or not (has_no_nodes or (stream in self.wants and not tree.facts))
            or document.engine.is_value_sensitive(tree.parent(node))
        ):
            return None
        keys = self._collector.key_sinks(stream)
        route = Route(document.engine, tree.parent(node), self.wants.get(stream), keys)
        relations = (*route.here, *route.everywhere)
        is_short = has_no_nodes and all(map(can_match, relations))
        if not is_short and (stream not in self.wants or tree.facts):
            return None
        # Ids count what is kept: where a view needs nodes, all that is to be kept is parsed.
        may_pass_unread = self._looks_first and (has_no_nodes or not self.keeps)
        wanted = names_wanted(route) if may_pass_unread else None
        depth = sum(1 for _ in tree.ancestors(route.node))
        plan = MessagePlan(route.here, route.everywhere, document.limits, depth, wanted)
        way = ShortWay(plan, self.status(stream), plan.parser, _nothing, route.deliver)
        if is_short:
            way.match = plan.match
            here, everywhere = route.here, route.everywhere
            way.arrive = self._collector.tracker.arrival(route.node, here, everywhere)
        else:
            way.is_wanted = filter_of(route.here, route.everywhere).matches
        self._ways[stream] = way
        return way

    def is_plain(self, stream: str) -> bool:
        """Whether a message does nothing besides what views see: it is not counted or checked."""
        document = self._document
        tree = document.tree
        call = tree.call(tree.calls_by_stream[stream])
        return not (
            call.mode != "stream"
            or call.most is not None
            or call.deletes == "only"
            or document.keep_whitespace
            or any(key.is_enforced for key in tree.facts)
            or tree.types is not None
        )

    def code(self, stream: str) -> str | None:
        """The source of the matcher that takes a stream's messages, if they go the short way."""
        plan = self.plan(stream)
        return None if plan is None else plan.matcher.source

    def patterns(self, stream: str) -> tuple[str, ...]:
        """What views look for in a stream's messages: at their root, or with `//` anywhere."""
        route = self.route(stream)
        if route is None:
            return ()
        found = [str(relation.node) for relation in route.here]
        found += [f"//{str(relation.node).lstrip('/')}" for relation in route.everywhere]
        return tuple(sorted(set(found)))

    def route(self, stream: str) -> Route | None:
        """Where a stream's rows go, tuned if it is; None without a call, or without a program."""
        engine, tree = self._document.engine, self._document.tree
        engine.build()
        node = tree.calls_by_stream.get(stream)
        if node is None or tree.parent(node) not in engine.sites():
            return None
        return Route(engine, tree.parent(node), self.wants.get(stream))

    def automaton_nodes(self, stream: str) -> int:
        """The size of the automaton that a stream's messages run through; 0 without one."""
        way = self._ways.get(stream)
        shared = None if way is None else way.plan.shared
        return 0 if shared is None else shared.statistics().nodes

    # Tuning ---------------------------------------------------------------------------------------

    def install(self, wants: Mapping[str, Wants]) -> None:
        """Let only what is wanted of these streams pass; of the others, all that can match."""
        self.wants = dict(wants)
        self._is_owing = self._is_owing or bool(self.wants)
        self._version, self._found_for = -1, (-1, -1, [])

    def untune(self) -> None:
        """Take the filters away, and let the engine have what they and collection dropped."""
        self.epoch += 1
        document = self._document
        if not (self._is_owing or self._collector.has_dropped or document.collected):
            self._collector.detach()
            return
        document.nodes()  # raises if something was not kept
        self._collector.detach()
        self.install({})
        counting = [view.maintainer for view in document.views.values()]
        document.engine.reload((m.root, m.recount) for m in counting if isinstance(m, Counting))
        self._is_owing = False

    def settle(self) -> None:
        """Make nodes of the messages that were put aside; the views know them already."""
        self._version = -1
        if not self._aside:
            return
        aside, self._aside = self._aside, []
        document = self._document
        tree = document.tree
        clock = tree.clock
        for stream, message, time, number in aside:
            tree.clock = time
            operations = insert_at_call(tree, stream, read_forest(message, document.limits))
            plan = Plan(tree, operations, time, limits=document.limits)
            plan.commit()
            document.hooks.brought(plan.delta, stream, True)
            tree.record_origin(plan.delta.added, stream, number)
        tree.clock = clock


def _nothing(root: Element, time: int, message: bytes) -> tuple[Bag, ...]:
    """What no view wants brings no rows."""
    return ()


def names_wanted(route: Route) -> tuple[tuple[bytes, ...], ...] | None:
    """The names that a message must have for some relation; None if one is content without."""
    groups = [names_needed(relation) for relation in (*route.here, *route.everywhere)]
    if not all(groups):
        return None
    # Long names first: they are the rarer ones, and faster to look for.
    return tuple(
        tuple(sorted((name.encode() for name in names), key=lambda n: (-len(n), n)))
        for names in groups
    )


def needs_no_nodes(view: View) -> bool:
    """Whether a view can be kept from strings and times alone; one put aside needs nothing."""
    if isinstance(view.maintainer, PutAside):
        return True
    if not isinstance(view.maintainer, Counting) or view.maintainer.gathers:
        return False
    kinds = (Kind.VARIABLE, Kind.LABEL, Kind.TIME)
    return all(output.kind in kinds for output in view.query.pattern.outputs)


def _counting(view: View) -> Counting:
    if not isinstance(view.maintainer, Counting):
        raise UpdateError("AX307", f"the rows of {view.name!r} are not kept as bindings")
    return view.maintainer
