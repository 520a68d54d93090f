"""The short way for a message: parse, match, join, tell. No node is made for it.

A stream's message can go the short way when all that the views need of it are strings and times:
the generated matcher takes them from the parsed message, the route carries them to the views. The
message itself is put aside and becomes nodes only when something needs the document (`keep="all"`),
or is forgotten (`keep="needed"`). What the short way cannot take (several trees, calls inside, a
DOCTYPE, an encoding of its own, `xml:space`) goes the long way, through the document; the answers
are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lxml import etree

from axlog.datalog.compile import Relation
from axlog.datalog.joins import Bag
from axlog.document.pending import Plan
from axlog.document.reading import Element, Limits, make_parser
from axlog.document.times import Time, microseconds
from axlog.document.updates import insert_at_call
from axlog.document.xml import with_surroundings
from axlog.errors import StreamError
from axlog.language.pattern import Kind
from axlog.matching.generate import Matcher, can_match, generate, names_needed
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.routes import Route
from axlog.views.view import View
from axlog.widgets.document import Document, Told


@dataclass(slots=True)
class ShortWay:
    """How one stream's messages are taken without storing them."""

    route: Route
    matcher: Matcher
    limits: Limits
    depth: int  # elements above a message
    wanted: tuple[tuple[bytes, ...], ...] | None  # names of which some group must all be there
    parser: etree.XMLParser = field(repr=False)
    run: Callable[[Element, int], tuple[Bag, ...]] = field(repr=False)

    def may_want(self, message: bytes) -> bool:
        """Whether the raw bytes leave it open that some view wants the message."""
        if self.wanted is None or not message.startswith(b"<") or message.startswith(b"<?"):
            return True
        if may_hold_call(message):
            return True
        return any(all(name in message for name in names) for names in self.wanted)

    def parse(self, content: bytes) -> Element | None:
        """The message's one tree, or None if it must go the other way."""
        limits, size = self.limits, len(content)
        if (
            size > limits.size
            or size > limits.text
            or size > limits.name
            # It might be too deep: let the long way see.
            or content.count(b"</") + self.depth >= limits.depth
            or content[:1] != b"<"
            or content[1:2] == b"?"
            or b"<!DOCTYPE" in content
            or may_hold_call(content)
            or b"xml:space" in content
        ):
            return None
        try:
            return etree.fromstring(content, self.parser)
        except etree.XMLSyntaxError:
            return None


def may_hold_call(message: bytes) -> bool:
    """Whether a message may hold a call: its name has one way of writing, its namespace many."""
    return b"call" in message and b"xmlns" in message


class Streaming:
    """The short ways of a widget's streams, found when first used and again when sites change."""

    def __init__(self, document: Document, keep: str, validate: str) -> None:
        self._document = document
        self._keeps = keep == "all"
        self._looks_first = validate == "wanted"
        self._ways: dict[str, ShortWay | None] = {}
        self._version = -1
        self._aside: list[tuple[str, Element, int]] = []
        self.unparsed: dict[str, int] = {}
        document.settle = self.settle

    def feed(self, stream: str, message: str | bytes, at: Time | None) -> Told | None:
        """Take a message without making nodes; None if it must go the long way."""
        document = self._document
        tree = document.tree
        if self._version != document.engine.version:
            self._ways = {}
            self._version = document.engine.version
        if stream not in tree._calls:
            return None
        way = self._ways.get(stream)
        if way is None:
            way = self._find(stream)
            if way is None:
                return None
        try:
            time = tree.clock if at is None else microseconds(at)
            content = message.encode() if isinstance(message, str) else message
        except (StreamError, UnicodeEncodeError):
            return None  # the long way says what is wrong
        if not tree.clock <= time < 1 << 63:
            return None
        if way.wanted is not None and not way.may_want(content):
            tree.clock = time
            self.unparsed[stream] = self.unparsed.get(stream, 0) + 1
            document.forgotten += 1
            return []
        root = way.parse(content)
        if root is None:
            return None
        tree.clock = time
        if self._keeps:
            self._aside.append((stream, root, time))
        else:
            document.forgotten += 1
        answers = way.route.run(way.run(root, time))
        return self._changes(answers, time) if answers else []

    def _changes(self, answers: dict[Relation, Bag], time: int) -> Told:
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
        if stream in self._ways or stream not in tree._calls:
            return None
        self._ways[stream] = None
        node = tree._calls[stream]
        call = tree.call(node)
        views = list(document.views.values())
        if (
            call.mode != "stream"
            or call.most is not None
            or call.deletes == "only"
            or document.keep_whitespace
            or not views
            or not all(needs_no_nodes(view) for view in views)
            or document.engine.is_value_sensitive(tree.parent(node))
        ):
            return None
        route = Route(document.engine, tree.parent(node))
        if not all(can_match(relation) for relation in (*route.here, *route.everywhere)):
            return None
        way = self._ways[stream] = make_way(route, document.limits, self._looks_first)
        return way

    def code(self, stream: str) -> str | None:
        """The source of the matcher that takes a stream's messages, if they go the short way."""
        if self._version != self._document.engine.version:
            self._ways, self._version = {}, self._document.engine.version
        way = self._ways.get(stream) or self._find(stream)
        return None if way is None else way.matcher.source

    def settle(self) -> None:
        """Make nodes of the messages that were put aside; the views know them already."""
        if not self._aside:
            return
        aside, self._aside = self._aside, []
        document = self._document
        tree = document.tree
        clock = tree.clock
        for stream, root, time in aside:
            tree.clock = time
            operations = insert_at_call(tree, stream, with_surroundings(root))
            Plan(tree, operations, time, limits=document.limits).commit()
        tree.clock = clock


def make_way(route: Route, limits: Limits, looks_first: bool) -> ShortWay:
    """The short way along a route."""
    matcher = generate(route.here, route.everywhere)
    wanted = None
    if looks_first:
        groups = [names_needed(relation) for relation in (*matcher.here, *matcher.everywhere)]
        if all(groups):
            wanted = tuple(tuple(sorted(name.encode() for name in names)) for names in groups)
    depth = sum(1 for _ in route.engine.tree.ancestors(route.node))
    return ShortWay(route, matcher, limits, depth, wanted, make_parser(), matcher.run)


def needs_no_nodes(view: View) -> bool:
    """Whether a view can be kept from strings and times alone."""
    if not isinstance(view.maintainer, Counting):
        return False
    kinds = (Kind.VARIABLE, Kind.LABEL, Kind.TIME)
    return all(output.kind in kinds for output in view.query.pattern.outputs)
