"""Streams that replace, without nodes: the rows that the current message of each key delivered.

A message of a stream declared with `replace` takes the place of the earlier message with its key.
On the short path neither has nodes. The route is given one signed bag for each relation, the rows
of the new message minus those of the old one, so that joins and views see one netted update. The
rows of the old message are remembered here by key. The cost of a message does not depend on the
number of keys, nor on the siblings.

Where messages are kept, they are set aside until the document is read, and the new one takes the
place of the old one in the list: both the size of the list and the ids of the nodes depend on the
keys alone. Once they are nodes, the rows of an old message are read from its nodes.

Law: rows and changes are those of a document in which the old tree is replaced by the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from axlog.document.operations import Insert, Operation
from axlog.document.pending import planned
from axlog.document.tree import NONE
from axlog.errors import StoreError, UpdateError
from axlog.evaluate.joins import Bag, Row, add_all
from axlog.live.maintained import MaintainedTree
from axlog.match.stream_plan import MessagePlan
from axlog.query.compile import Relation, form_of
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.stream_inputs import is_read
from axlog.views.maintainer import PutAside
from axlog.views.view import MaintainedView

SavedBags: TypeAlias = tuple[tuple[str, tuple[tuple[Row, int], ...]], ...]
"""The rows of a message, by the name of their relation."""
SavedMessages: TypeAlias = tuple[tuple[str, tuple[tuple[str, SavedBags], ...]], ...]
"""By stream, the keys with the rows of their messages."""


class Delivered(NamedTuple):
    """The rows of the current message of a key, and its place among the messages set aside."""

    bags: tuple[Bag, ...]
    aside: int | None = None


class Deliveries:
    """The rows that the messages of one stream delivered, by key."""

    def __init__(self, document: MaintainedTree, stream: str, keeps: bool) -> None:
        """`keeps`: whether messages become nodes when the document is read."""
        self._document, self._stream, self._keeps = document, stream, keeps
        self._plan: MessagePlan | None = None
        # The relations of the bags, each with whether it is matched at the root of messages.
        self._relations: tuple[tuple[bool, Relation], ...] = ()
        self._saved: dict[str, SavedBags] = {}  # rows of a saved state, until there is a plan
        self.by_key: dict[str, Delivered] = {}

    def follow(self, plan: MessagePlan) -> None:
        """Follow a new plan of the stream: views were dropped, or a view was set aside."""
        self._plan = plan
        here, everywhere = ((True, r) for r in plan.here), ((False, r) for r in plan.everywhere)
        known, self._relations = self._relations, (*here, *everywhere)
        if self._saved:
            self._read_saved()
            return
        if known == self._relations or not self.by_key:
            return
        at = {relation: number for number, relation in enumerate(known)}
        numbers = [at.get(relation) for relation in self._relations]
        for key, (bags, aside) in self.by_key.items():
            kept = tuple({} if number is None else bags[number] for number in numbers)
            self.by_key[key] = Delivered(kept, aside)

    def _read_saved(self) -> None:
        names = [_name_of(*each) for each in self._relations]
        for key, bags in self._saved.items():
            found = {name: dict(rows) for name, rows in bags}
            self.by_key[key] = Delivered(tuple(found.get(name, {}) for name in names))
        self._saved = {}

    def saved(self) -> tuple[tuple[str, SavedBags], ...]:
        """The rows of the messages with a key, as plain tuples, for relations that views use."""
        if self._saved:
            return tuple(self._saved.items())
        views = self._document.views.values()
        used = {relation for view in views for relation in view.maintainer.relations() or ()}
        names = [_name_of(*each) if each[1] in used else None for each in self._relations]
        return tuple(
            (
                key,
                tuple(
                    (name, tuple(bag.items()))
                    for name, bag in zip(names, one.bags, strict=True)
                    if bag and name is not None
                ),
            )
            for key, one in self.by_key.items()
        )

    def check_new(self, relations: set[Relation]) -> None:
        """Refuse a new view over relations that have rows of messages which were not kept.

        Messages may replace these. The view would lose rows that it never had.
        """
        if self._keeps:
            return
        asked = relations if self._saved else ()
        names = {_name_of(*each) for each in product((True, False), asked)}
        numbers = [n for n, (_, relation) in enumerate(self._relations) if relation in relations]
        is_known = any(name in names for bags in self._saved.values() for name, _ in bags)
        if is_known or any(one.bags[n] for one in self.by_key.values() for n in numbers):
            raise UpdateError(
                "AX307",
                f"messages of {self._stream!r} replace earlier ones, which were not kept, and views"
                " with parts in common have their rows",
                advice='use Options(keep="all")',
            )

    def restore(self, messages: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
        """Take the rows that `saved` returned; the next plan gives them their order.

        Raises AX872 for rows without the names of their relations, as older versions wrote them.
        """
        saved = dict(messages)
        every = [each for bags in saved.values() for each in bags]
        if not all(len(each) == 2 and isinstance(each[0], str) for each in every):
            raise StoreError(
                "AX872",
                f"the saved rows of the messages of {self._stream!r}, which replace each other, do"
                " not name their relations",
                advice="run the version that wrote it, or start again without this state",
            )
        self._saved = saved

    def match(self, message: bytes, time: int, aside: int) -> Replacement | None:
        """Match a message. None: it must take the long path.

        `aside` is the number of messages set aside. Raises AX420 if the message has no key.
        """
        assert self._plan is not None
        read = self._plan.keyed_bags(message, time)
        known = None if read is None else self._current(read[0])
        if read is None or known is None:
            return None
        if not self._keeps:
            return Replacement(self, *read, known.bags)
        return Replacement(self, *read, known.bags, aside if known.aside is None else known.aside)

    def read(self, operations: Sequence[Operation], time: int) -> Replacement:
        """Read the rows of a message from nodes that are dropped, after all checks of updates."""
        document = self._document
        (insert,) = operations
        assert isinstance(insert, Insert)
        assert insert.key is not None
        assert self._plan is not None
        plan = planned(
            document.tree, operations, time,
            limits=document.limits, keep_whitespace=document.keep_whitespace,
        )  # fmt: skip
        try:
            bags = self._plan.bags_on(document.tree, plan.delta.added)
        finally:
            plan.abandon()
        return self.replacement(insert.key, bags)

    def replacement(self, key: str, bags: tuple[Bag, ...]) -> Replacement:
        """The replacement of a message that left no nodes by another that leaves none."""
        known = self._current(key)
        assert known is not None, "messages leave no nodes"
        return Replacement(self, key, bags, known.bags)

    def _current(self, key: str) -> Delivered | None:
        """The rows of the message that has a key now; none if there is no such message.

        None: it has nodes that the short path must not replace.
        """
        assert self._plan is not None
        known = self.by_key.get(key)
        if known is not None:
            return known
        tree, engine = self._document.tree, self._document.engine
        root = tree.message_of(self._stream, key)
        if root == NONE:
            return Delivered(self._plan.unread)
        if not self._keeps or engine.has_sites_below(root):
            return None
        return Delivered(self._plan.bags_on(tree, (root,)))

    def enter(self, replacement: Replacement) -> tuple[Bag, ...]:
        """Remember the rows of a message, and return them minus those of the message before it."""
        if self._keeps or any(replacement.new):
            aside = replacement.aside if self._keeps else None
            self.by_key[replacement.key] = Delivered(replacement.new, aside)
        else:
            self.by_key.pop(replacement.key, None)
        if not any(replacement.old):
            return replacement.new
        self._document.revisions += 1
        return difference(replacement.new, replacement.old)

    def settle(self) -> None:
        """Forget the rows of messages that become nodes: they are read from the nodes.

        Rows of messages that are not kept stay, also where those of another stream are kept.
        """
        if self._keeps:
            self.by_key.clear()
            self._saved = {}


class Replacement(NamedTuple):
    """A message that replaces another: its key, its rows, and those of the other."""

    into: Deliveries
    key: str
    new: tuple[Bag, ...]
    old: tuple[Bag, ...]
    aside: int = 0
    """Its place among the messages set aside, where they are kept."""

    def enter(self) -> tuple[Bag, ...]:
        """Carry it out, and return the signed rows for the joins."""
        return self.into.enter(self)


def difference(new: tuple[Bag, ...], old: tuple[Bag, ...]) -> tuple[Bag, ...]:
    """The rows of a message minus those of the message that it replaces."""
    found: list[Bag] = []
    for come, gone in zip(new, old, strict=True):
        if gone:
            come = dict(come)
            add_all(come, gone, -1)
        found.append(come)
    return tuple(found)


def _name_of(is_root: bool, relation: Relation) -> str:
    """A name of a relation that is the same in every run."""
    return sha256(repr((is_root, form_of(relation))).encode()).hexdigest()[:16]


def saved_messages(every: dict[str, Deliveries]) -> SavedMessages:
    """The rows of all streams as plain tuples."""
    found = ((stream, each.saved()) for stream, each in sorted(every.items()))
    return tuple((stream, messages) for stream, messages in found if messages)


def restored_messages(
    saved: SavedMessages, document: MaintainedTree, keeps: bool
) -> dict[str, Deliveries]:
    """The rows that `saved_messages` returned."""
    found: dict[str, Deliveries] = {}
    for stream, messages in saved:
        found[stream] = Deliveries(document, stream, keeps)
        found[stream].restore(messages)
    return found


def replacing_streams(document: MaintainedTree, view: MaintainedView | None = None) -> list[str]:
    """The open streams whose messages may replace earlier ones that a view reads.

    Views may lose rows by them, and gain these rows again. `view`: this one; None: any.
    """
    tree, engine = document.tree, document.engine
    calls = tree.calls_by_stream.items()
    streams = [stream for stream, node in calls if tree.call(node).replace is not None]
    if not streams:
        return []
    maintainers = [view.maintainer for view in document.views.values()]
    if not all(isinstance(each, Counting | PutAside) for each in maintainers):
        return sorted(streams)
    engine.build()
    places = {stream: tree.parent(tree.calls_by_stream[stream]) for stream in streams}
    kept = None if view is None else view.maintainer
    wanted = None
    if isinstance(kept, Counting):
        plans = [kept.engine.plan_of(root)[1] for root in kept.roots]
        wanted = {relation for plan in plans for relation in plan.walk()}
    return sorted(stream for stream, place in places.items() if is_read(engine, place, wanted))
