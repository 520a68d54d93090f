"""A stream's delete of messages that are not nodes yet: their rows are taken back.

Messages that a deletion can reach are kept, and set aside until the document is read. A delete that
names a value of such a message need not make it nodes. The message is found by an index of the
values that deletes name, matched with the pattern, and its rows leave the joins as those of a
message that is replaced do. The message is no longer set aside.

The index follows the messages when a delete comes, each message once. Its labels are those that
deletes name.

Law: rows and changes are those of a delete in the document.

Not handled (None): patterns that name no value, or that match a node of the document; messages with
comments or instructions, which stay when their tree is deleted; views with joins or possible rows
that are followed, and all that takes the long path. The document deletes then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from lxml.etree import fromstring

from axlog.document.parser import DEFAULT_LIMITS, Element, make_parser
from axlog.document.stream_update import retracted
from axlog.document.times import Time, microseconds
from axlog.errors import AxlogError
from axlog.evaluate.joins import Bag, Row, add_all, picker
from axlog.evaluate.siblings import SiblingPattern, SiblingPatterns
from axlog.live.collector import Collector
from axlog.live.maintained import MaintainedTree
from axlog.live.messages_aside import Aside
from axlog.live.short_way import ShortWay
from axlog.live.stream_engine import StreamEngine
from axlog.match.byte_generator import LONGEST, Read, as_bags, generate_reader, is_plain
from axlog.match.matcher_generator import Match, can_match, generate
from axlog.match.message_limits import without_declaration
from axlog.match.message_values import finds_markup, may_have_markup, texts, value
from axlog.query.pattern import Axis, Constant
from axlog.views.change import Change

_LATEST = 1 << 63
_SLASH = ord("/")
FEW = 64
"""Places of deleted messages that are not given back one by one."""


class MessageDeletes:
    """Deletes of messages that were set aside."""

    def __init__(
        self,
        document: MaintainedTree,
        engine: StreamEngine,
        collector: Collector,
        patterns: SiblingPatterns,
    ) -> None:
        self._document, self._engine, self._collector = document, engine, collector
        self._patterns = patterns
        self._indexes: dict[int, _Index] = {}  # by the parent of the calls
        self._aside: list[Aside | None] | None = None  # the list that is indexed
        self._removed = 0

    def apply(
        self, stream: str, text: str, at: Time | None, latest: int | None
    ) -> list[Change] | None:
        """Delete what a pattern matches, and return the changes. None: the document must do it."""
        document, engine = self._document, self._engine
        tree = document.tree
        with document.lock:
            if not engine.aside:
                return None
            way = engine.short_way(stream)
            if way is None or not self._may_apply(way) or retracted(text) is not None:
                return None
            node = tree.calls_by_stream[stream]
            try:
                time = tree.clock if at is None else microseconds(at)
                pattern, constants = self._patterns.find(text)
            except AxlogError:
                return None  # the document reports the error
            is_late = not tree.clock <= time < _LATEST or (latest is not None and time > latest)
            if is_late or tree.call(node).deletes == "no":
                return None
            parent = tree.parent(node)
            if pattern.by_value(tree, document.value_index, parent, constants) != []:
                return None
            places = self.matching(pattern, constants, parent)
            moved = None if places is None else self._rows_of(places, way)
            if places is None or moved is None:
                return None
            self._remove(places)
            status = way.status
            tree.clock = time
            status.messages += 1
            status.microseconds = time
            document.revisions += bool(places)
            return engine.join(way, moved, time)

    def _may_apply(self, way: ShortWay) -> bool:
        """Whether messages of a stream can be taken back by their rows alone."""
        document, collector = self._document, self._collector
        return (
            way.keeps
            and not (way.needs_nodes or way.rejects or way.unread)
            and way.delivered is None
            and way.arrive is None
            and not document.clocked
            and not document.families
            and not document.collected
            and not self._engine.wants
            and not collector.joins
            and collector.tracker.is_idle
        )

    def matching(
        self, pattern: SiblingPattern, constants: tuple[Constant, ...], parent: int
    ) -> list[int] | None:
        """The places of the messages that match, among those set aside; None: not known."""
        match = _matcher(pattern)
        if match is None or not pattern.anchors:
            return None
        named = [(anchor.label, pattern.value_of(anchor, constants)) for anchor in pattern.anchors]
        index = self._index(parent, [label for label, _ in named])
        if index is None:
            return None
        aside = self._engine.aside
        found = min([index.places.get(each, ()) for each in named], key=len)
        pick, matching = match.pick, []
        for place in found:
            each = aside[place]
            if each is not None and constants in map(pick, match.bag(each[1], each[2])):
                matching.append(place)
        return matching

    def _index(self, parent: int, labels: list[str]) -> _Index | None:
        """The index of the messages before calls of a node; None: some may be several nodes."""
        aside = self._engine.aside
        if aside is not self._aside:  # the others have become nodes
            self._indexes, self._aside, self._removed = {}, aside, 0
        index = self._indexes.get(parent)
        if index is None or not index.labels.issuperset(labels):
            known = set() if index is None else index.labels
            index = self._indexes[parent] = _Index(known.union(labels))
        calls, parents = self._document.tree.calls_by_stream, self._document.tree.parent_column
        for place in range(index.end, len(aside)):
            each = aside[place]
            if each is None:
                continue
            call = calls.get(each[0])
            if call is None or index.is_odd:
                return None
            if parents[call] == parent:
                index.add(place, each[1])
        index.end = len(aside)
        return None if index.is_odd else index

    def _rows_of(self, places: list[int], way: ShortWay) -> tuple[Bag, ...] | None:
        """The rows of messages with negative counts; None: they are not known."""
        moved: tuple[Bag, ...] = tuple([{} for _ in range(way.plan.width)])
        for place in places:
            each = self._engine.aside[place]
            assert each is not None
            stream, message, time, _ = each
            own = self._engine.short_way(stream)
            if own is None or own.route is not way.route:
                return None
            try:
                bags = own.plan.bags_of_known(message, time)
            except AxlogError:
                return None
            if bags is None:
                return None
            if len(places) == 1:
                return tuple([{row: -count for row, count in bag.items()} for bag in bags])
            for into, bag in zip(moved, bags, strict=True):
                if bag:
                    add_all(into, bag, -1)
        return moved

    def _remove(self, places: list[int]) -> None:
        """Remove messages from those set aside."""
        aside = self._engine.aside
        for place in places:
            aside[place] = None
        self._removed += len(places)
        if self._removed > max(FEW, len(aside) // 2):
            left = [place for place, each in enumerate(aside) if each is not None]
            now = {place: number for number, place in enumerate(left)}
            aside[:] = [aside[place] for place in left]
            self._removed = 0
            for index in self._indexes.values():
                index.move(now)
                index.end = bisect_left(left, index.end)  # it may not have followed all


@dataclass(slots=True)
class _Index:
    """Places of messages by a label and a value: of an element, a text in it, or an attribute."""

    labels: set[str]
    places: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    end: int = 0  # the place of the first message that is not in it
    is_odd: bool = False  # whether some message has more than one tree
    _tags: list[tuple[str, bytes, bytes]] | None = field(init=False)
    """The labels of elements with their tags; None: they can have several forms."""

    def __post_init__(self) -> None:
        names = [label for label in self.labels if not label.startswith("@")]
        is_simple = all(label.isascii() and not label.startswith("{") for label in names)
        tags = [(each, f"<{each}>".encode(), f"<{each}/>".encode()) for each in names]
        self._tags = tags if is_simple else None

    def add(self, place: int, message: bytes) -> None:
        found = self._values_in_bytes(message)
        if found is None:
            if may_have_markup(without_declaration(message)):
                self.is_odd = True
                return
            found = set(self._values(_root(message)))
        for each in found:
            self.places.setdefault(each, []).append(place)

    def _values_in_bytes(self, message: bytes) -> set[tuple[str, str]] | None:
        """The values, found without parsing the message; None: it has to be parsed."""
        if self._tags is None or not message.isascii() or not is_plain(message):
            return None
        found: set[tuple[str, str]] = set()
        for label, tag, empty in self._tags:
            if message.find(empty) >= 0:
                found.add((label, ""))
            start = message.find(tag)
            while start >= 0:
                start += len(tag)
                end = message.find(b"<", start)
                if message[end + 1] != _SLASH:
                    return None  # elements are in it
                found.add((label, message[start:end].decode()))
                start = message.find(tag, end)
        return found

    def _values(self, root: Element) -> Iterator[tuple[str, str]]:
        for label in self.labels:
            if label.startswith("@"):
                for element in root.iter():
                    given = element.get(label[1:])
                    if given is not None:
                        yield label, given
            else:
                for element in root.iter(label):
                    yield label, value(element)
                    for text in texts(element):
                        yield label, text

    def move(self, now: dict[int, int]) -> None:
        """Follow messages to other places; those without one were removed."""
        for key, places in list(self.places.items()):
            left = [now[place] for place in places if place in now]
            if left:
                self.places[key] = left
            else:
                del self.places[key]


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Matches a message as a document."""

    pick: Callable[[Row], tuple[Constant, ...]]  # the parameters of a row
    run: Match
    read: Read | None

    def bag(self, message: bytes, time: int) -> Bag:
        """The rows of a message."""
        if self.read is not None and len(message) <= LONGEST:
            found = self.read(message, time, len(message))
            if found is not None:
                return as_bags(found)[0]
        return self.run(_root(message), time, b"")[0]


@lru_cache(maxsize=256)
def _matcher(pattern: SiblingPattern) -> _Matcher | None:
    """The matcher of a pattern; None: a tree is needed for it."""
    root = pattern.program.root
    if root.own or root.tests or root.choices or root.absences or len(root.edges) != 1:
        return None
    (edge,) = root.edges
    relation = edge.relation
    if edge.axis not in (Axis.CHILD, Axis.DESCENDANT):
        return None
    if not can_match(relation) or finds_markup(relation):
        return None
    here, everywhere = ((relation,), ()) if edge.axis is Axis.CHILD else ((), (relation,))
    reader = generate_reader(here, everywhere, DEFAULT_LIMITS)
    read = None if reader is None else reader[0]
    return _Matcher(
        picker(pattern.places_in(relation.columns)), generate(here, everywhere).run, read
    )


_parser = lru_cache(maxsize=1)(make_parser)


def _root(message: bytes) -> Element:
    """The root of a message that was parsed and checked already."""
    return fromstring(message, _parser())
