"""The short way for a message: parse, match, join, tell. No node is made for it.

A stream's message can go the short way when all that the views need of it are strings and times: the
generated matcher takes them from the parsed message, the route carries them to the views. The message
itself is put aside and becomes nodes only when something needs the document (`keep="all"`), or is
forgotten (`keep="needed"`). What the short way cannot take (several trees, calls inside, a DOCTYPE, an
encoding of its own, `xml:space`) goes the long way, through the document; the answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lxml import etree

from axlog.datalog.joins import Bag
from axlog.document.reading import DEFAULT_LIMITS, Element, Limits, make_parser
from axlog.document.tree import Call, Tree
from axlog.language.pattern import Kind
from axlog.matching.generate import Matcher, can_match, generate, names_needed
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.routes import Route
from axlog.views.view import View

_OTHER_WAY = (b"<!DOCTYPE", b"urn:axlog", b"xml:space")


@dataclass(slots=True)
class ShortWay:
    """How one stream's messages are taken without storing them."""

    call: Call
    route: Route
    matcher: Matcher
    limits: Limits
    wanted: tuple[tuple[bytes, ...], ...] | None  # names of which some group must all be there
    parser: etree.XMLParser = field(repr=False)
    run: Callable[[Element, int], tuple[Bag, ...]] = field(repr=False)

    def is_good(self, engine: CountingEngine) -> bool:
        """Whether the sites that the route was made for are still the same."""
        return self.route.version == engine.version

    def may_want(self, message: bytes) -> bool:
        """Whether the raw bytes leave it open that some view wants the message."""
        if self.wanted is None:
            return True
        return any(all(name in message for name in names) for names in self.wanted)

    def parse(self, message: str | bytes) -> Element | None:
        """The message's one tree, or None if it must go the other way."""
        content = message.encode() if isinstance(message, str) else message
        if (
            len(content) > self.limits.size
            or not content.startswith(b"<")
            or content.startswith(b"<?")
            or any(mark in content for mark in _OTHER_WAY)
        ):
            return None
        try:
            return etree.fromstring(content, self.parser)
        except etree.XMLSyntaxError:
            return None


def short_way(
    tree: Tree,
    engine: CountingEngine,
    views: list[View],
    stream: str,
    limits: Limits,
    validate: str,
) -> ShortWay | None:
    """The short way of a stream, if its messages can go it."""
    node = tree.calls()[stream]
    call = tree.call(node)
    parent = tree.parent(node)
    if call.mode != "stream" or call.most is not None or call.deletes == "only":
        return None
    if not all(needs_no_nodes(view) for view in views) or _is_tighter(limits):
        return None
    if engine.is_value_sensitive(parent):
        return None
    route = Route(engine, parent)
    relations = (*route.here, *route.everywhere)
    if not all(can_match(relation) for relation in relations):
        return None
    matcher = generate(route.here, route.everywhere)
    wanted = None
    if validate == "wanted":
        groups = [tuple(sorted(n.encode() for n in names_needed(r))) for r in relations]
        wanted = tuple(groups) if all(groups) else None
    return ShortWay(call, route, matcher, limits, wanted, make_parser(limits), matcher.run)


def needs_no_nodes(view: View) -> bool:
    """Whether a view can be kept from strings and times alone."""
    if not isinstance(view.maintainer, Counting):
        return False
    kinds = (Kind.VARIABLE, Kind.LABEL, Kind.TIME)
    return all(output.kind in kinds for output in view.query.pattern.outputs)


def _is_tighter(limits: Limits) -> bool:
    """Whether limits ask for more than the parser checks by itself."""
    least = DEFAULT_LIMITS
    return limits.depth < least.depth or limits.text < least.text or limits.name < least.name
