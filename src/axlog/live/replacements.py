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

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from axlog.evaluate.joins import Bag, Row, add_all
from axlog.live.maintained import MaintainedTree
from axlog.match.stream_plan import MessagePlan
from axlog.query.compile import Relation
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.stream_inputs import is_read
from axlog.views.maintainer import PutAside

SavedBags: TypeAlias = tuple[tuple[tuple[Row, int], ...], ...]
SavedMessages: TypeAlias = tuple[tuple[str, tuple[tuple[str, SavedBags], ...]], ...]
"""By stream, the keys with the rows of their messages, in the order of the plan's relations."""


class Delivered(NamedTuple):
    """The rows of the current message of a key, and its place among the messages set aside."""

    bags: tuple[Bag, ...]
    aside: int | None = None


@dataclass(slots=True)
class Deliveries:
    """The rows that the messages of one stream delivered, by key."""

    relations: tuple[tuple[bool, Relation], ...] | None = None
    """The relations of the bags, each with whether it is matched at the root of messages.

    None: those of the next plan, after a restart.
    """
    by_key: dict[str, Delivered] = field(default_factory=dict)

    def follow(self, plan: MessagePlan) -> None:
        """Follow a new plan of the stream: views were dropped, or a view was set aside."""
        relations = relations_of(plan)
        known, self.relations = self.relations, relations
        if known is None or known == relations or not self.by_key:
            return
        at = {relation: number for number, relation in enumerate(known)}
        numbers = [at.get(relation) for relation in relations]
        for key, (bags, aside) in self.by_key.items():
            kept = tuple({} if number is None else bags[number] for number in numbers)
            self.by_key[key] = Delivered(kept, aside)


def relations_of(plan: MessagePlan) -> tuple[tuple[bool, Relation], ...]:
    """The relations of a plan's bags, each with whether it is matched at the root of messages."""
    here, everywhere = ((True, r) for r in plan.here), ((False, r) for r in plan.everywhere)
    return (*here, *everywhere)


def difference(new: tuple[Bag, ...], old: tuple[Bag, ...]) -> tuple[Bag, ...]:
    """The rows of a message minus those of the message that it replaces."""
    found: list[Bag] = []
    for come, gone in zip(new, old, strict=True):
        if gone:
            come = dict(come)
            add_all(come, gone, -1)
        found.append(come)
    return tuple(found)


def saved_messages(every: dict[str, Deliveries]) -> SavedMessages:
    """The rows of all streams as plain tuples."""
    return tuple(
        (stream, tuple((key, _saved(one.bags)) for key, one in each.by_key.items()))
        for stream, each in sorted(every.items())
        if each.by_key
    )


def _saved(bags: tuple[Bag, ...]) -> SavedBags:
    return tuple(tuple(bag.items()) for bag in bags)


def restored_messages(saved: SavedMessages) -> dict[str, Deliveries]:
    """The rows that `saved_messages` returned."""
    return {
        stream: Deliveries(
            None, {key: Delivered(tuple(dict(bag) for bag in bags)) for key, bags in messages}
        )
        for stream, messages in saved
    }


def replacing_streams(document: MaintainedTree) -> list[str]:
    """The open streams whose messages may replace earlier ones that a view reads.

    Views may lose rows by them, and gain these rows again.
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
    return sorted(stream for stream, place in places.items() if is_read(engine, place))
