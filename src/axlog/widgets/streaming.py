"""The short way for a message: parse, match, join, tell. No node is made for it.

A stream's message can go the short way when all that the views need of it are strings and times:
the generated matcher takes them from the parsed message, the route carries them to the views. The
message itself is put aside and becomes nodes only when something needs the document (`keep="all"`),
or is forgotten (`keep="needed"`). What the short way cannot take (several trees, calls inside, a
DOCTYPE, an encoding of its own, `xml:space`, anything near a limit, anything wrong) goes the long
way, through the document; the answers are the same.

This is where a message's cost is: `Streaming.feed` is one straight line, and what does not depend
on the message is worked out in `ShortWay`, once for a stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml.etree import XMLParser, XMLSyntaxError, fromstring

from axlog.document.pending import Plan
from axlog.document.reading import Element, Limits, make_parser
from axlog.document.times import Time, microseconds
from axlog.document.updates import insert_at_call
from axlog.document.xml import read_forest
from axlog.errors import StreamError
from axlog.language.pattern import Kind
from axlog.matching.generate import (
    Answers,
    Deliver,
    Matcher,
    can_match,
    generate,
    generate_delivery,
    names_needed,
)
from axlog.views.change import Change
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.routes import Route
from axlog.views.view import View
from axlog.widgets.document import Document, Told

_OPEN = ord("<")
_ODD = b"!?\0"
"""What follows `<` where a message does not start with its root element, or is in UTF-16."""
_SHORTEST = len("<a/>")
_LEVEL = len("<a></a>")
_LATEST = 1 << 63


@dataclass(slots=True)
class StreamStatus:
    """What has come over one stream."""

    stream: str
    messages: int = 0
    refused: int = 0
    ended: bool = False
    last: int | None = None  # time of the last message, in microseconds
    unparsed: int = 0  # messages that their raw bytes ruled out (validate="wanted")


@dataclass(slots=True)
class ShortWay:
    """How one stream's messages are taken without storing them."""

    route: Route
    source: str  # of the matcher
    status: StreamStatus
    wanted: tuple[tuple[bytes, ...], ...] | None  # names of which some group must all be there
    limits: Limits
    deepest: int  # levels that a message may have
    safe: int  # bytes up to which no limit can be met
    parser: XMLParser = field(repr=False)
    run: Deliver = field(repr=False)

    def is_within_limits(self, message: bytes) -> bool:
        """Whether a message is certain to meet no limit."""
        most = min(self.limits.size, self.limits.text, self.limits.name)
        return len(message) <= most and message.count(b"</") < self.deepest


def may_want(message: bytes, wanted: tuple[tuple[bytes, ...], ...]) -> bool:
    """Whether the raw bytes leave it open that some view wants a message.

    A name can be written in one way only, in UTF-8 and all that a message without a declaration
    can be in.
    """
    for names in wanted:
        for name in names:
            if message.find(name) < 0:  # faster than `in`, which tries it as a number first
                break
        else:
            return True
    return False


def is_odd(message: bytes) -> bool:
    """Whether a message with attributes may hold a call, or says that its white space counts.

    A call needs a namespace declaration; the namespace can be written in many ways, names in one.
    """
    return b"xml:space" in message or (b"xmlns" in message and b"call" in message)


class Streaming:
    """The short ways of a widget's streams, found when first used and again when sites change."""

    def __init__(self, document: Document, keep: str, validate: str) -> None:
        self._document = document
        self._keeps = keep == "all"
        self._looks_first = validate == "wanted"
        self._ways: dict[str, ShortWay | None] = {}
        self._version = -1  # of the engine; -1 when views may have come or gone
        self._found_for: tuple[int, list[View]] = (-1, [])
        self._aside: list[tuple[str, bytes, int, int]] = []  # with the number of the message
        self._statuses: dict[str, StreamStatus] = {}
        self._acquire, self._release = document._lock.acquire, document._lock.release
        document.settle = self.settle

    def status(self, stream: str) -> StreamStatus:
        """What has come over a stream; it is counted here."""
        known = self._statuses.get(stream)
        if known is None:
            known = self._statuses[stream] = StreamStatus(stream)
        return known

    def feed(self, stream: str, message: object, at: Time | None) -> list[Change] | None:
        """Take a message without making nodes; None if it must go the long way."""
        document = self._document
        tree = document.tree
        self._acquire()
        try:
            way = self._ways.get(stream)
            if way is None or self._version != document.engine.version or stream not in tree._calls:
                way = self._find(stream)
                if way is None:
                    return None
            try:
                time = tree.clock if at is None else microseconds(at)
                if type(message) is str:
                    message = message.encode()
                elif type(message) is not bytes:
                    return None
                if (
                    not tree.clock <= time < _LATEST
                    or len(message) < _SHORTEST
                    or message[0] != _OPEN
                    or message[1] in _ODD
                    or (message.find(b"=") > 0 and b"xml" in message and is_odd(message))
                    or (len(message) > way.safe and not way.is_within_limits(message))
                ):
                    return None
                is_wanted = way.wanted is None or may_want(message, way.wanted)
                root = fromstring(message, way.parser) if is_wanted else None
            except (StreamError, UnicodeEncodeError, XMLSyntaxError):
                return None  # the long way says what is wrong
            tree.clock = time
            status = way.status
            status.messages += 1
            status.last = time
            if root is None:
                status.unparsed += 1
                document.forgotten += 1
                return []
            if self._keeps:
                self._aside.append((stream, message, time, status.messages))
            else:
                document.forgotten += 1
            answers = way.run(root, time, message)
            if answers is None:
                return []
            document.engine.climbed += 1
            return document._announce(self._changes(answers, time)) if answers else []
        finally:
            self._release()

    def _changes(self, answers: Answers, time: int) -> Told:
        """Move the views' rows."""
        told: Told = []
        for view in self._document.views.values():
            maintainer = view.maintainer
            if isinstance(maintainer, Counting) and maintainer.root in answers:
                changes = view.number(maintainer.take(answers[maintainer.root]), time)
                if changes:
                    told.append((view, changes))
        return told

    def _find(self, stream: str) -> ShortWay | None:
        """The short way of a stream, if its messages can go it."""
        document = self._document
        tree = document.tree
        views = list(document.views.values())
        self._version = document.engine.version
        if self._found_for != (self._version, views):
            self._found_for = (self._version, views)
            self._ways = {}
        if stream not in tree._calls:
            return None
        if stream in self._ways:
            return self._ways[stream]
        self._ways[stream] = None
        node = tree._calls[stream]
        call = tree.call(node)
        if (
            call.mode != "stream"
            or call.most is not None
            or call.deletes == "only"
            or document.keep_whitespace
            or any(key.is_enforced for key in tree.facts)
            or not views
            or not all(needs_no_nodes(view) for view in views)
            or document.engine.is_value_sensitive(tree.parent(node))
        ):
            return None
        route = Route(document.engine, tree.parent(node))
        if not all(can_match(relation) for relation in (*route.here, *route.everywhere)):
            return None
        wanted = names_wanted(route) if self._looks_first else None
        way = make_way(route, document.limits, wanted, self.status(stream))
        self._ways[stream] = way
        return way

    def code(self, stream: str) -> str | None:
        """The source of the matcher that takes a stream's messages, if they go the short way."""
        way = self._find(stream)
        return None if way is None else way.source

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
            tree._origins.update(dict.fromkeys(plan.delta.added, (stream, number)))
        tree.clock = clock


def make_way(
    route: Route,
    limits: Limits,
    wanted: tuple[tuple[bytes, ...], ...] | None,
    status: StreamStatus,
) -> ShortWay:
    """The short way along a route."""
    deepest = limits.depth - sum(1 for _ in route.engine.tree.ancestors(route.node))
    safe = min(limits.size, limits.text, limits.name, _LEVEL * deepest - 1)
    if route.is_direct:
        delivery = generate_delivery(route.here, route.everywhere, route.sinks)
        source, run = delivery.source, delivery.run
    else:
        matcher = generate(route.here, route.everywhere)
        source, run = matcher.source, _climbing(route, matcher)
    return ShortWay(route, source, status, wanted, limits, deepest, safe, make_parser(), run)


def _climbing(route: Route, matcher: Matcher) -> Deliver:
    def run(root: Element, time: int, message: bytes) -> Answers | None:
        return route.climb(matcher.run(root, time, message))

    return run


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
    """Whether a view can be kept from strings and times alone."""
    if not isinstance(view.maintainer, Counting):
        return False
    kinds = (Kind.VARIABLE, Kind.LABEL, Kind.TIME)
    return all(output.kind in kinds for output in view.query.pattern.outputs)
