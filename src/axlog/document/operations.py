"""Atomic operations on nodes, and the operations of streams, which are built from them.

There is one form of update. A statement, a message, a patch or a diff becomes a list of these
operations (a pending update list), and `pending.apply` applies all of it or nothing. Targets are
handles of one tree. Content is a tuple of lxml elements, strings (texts) and `Attribute`s.

Operations of streams: data is inserted as siblings just before the call. A message of a stream that
replaces takes the place of the earlier message with its key. A delete removes matching siblings of
the call, whatever inserted them. An end removes the call itself.
(Paper 3, section 2.2.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, overload

from axlog.document.calls import Call
from axlog.document.parser import Element
from axlog.document.times import SECOND, plain, shown
from axlog.document.tree import CALL, CALL_LABEL, DOCUMENT_NODE, NONE, Tree
from axlog.errors import EndedStreamError, LateError, StreamError, UnknownStreamError


class Where(Enum):
    """The position of inserted content relative to the target."""

    INTO = "into"
    FIRST = "first"
    LAST = "last"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute to insert: its expanded name and value, and the prefix it was written with."""

    name: str
    value: str
    prefix: str = field(default="", compare=False)


Item: TypeAlias = Element | str | Attribute
Content: TypeAlias = tuple[Item, ...]


@dataclass(slots=True, unsafe_hash=True)  # never changed; frozen ones take six times longer
class Insert:
    """Insert content beside or into the target; attributes go to the target, or to its parent.

    `stream` is the stream whose message this is; None for a statement. `key` is the key of a
    message of a stream that replaces, and `replaced` the earlier message with this key. The new
    tree takes its place and its id.
    """

    where: Where
    target: int
    content: Content
    stream: str | None = None
    key: str | None = None
    replaced: int = NONE


@dataclass(slots=True, unsafe_hash=True)
class Delete:
    """Remove the target and all nodes below it from the document."""

    target: int


@dataclass(frozen=True, slots=True)
class Rename:
    """Give an element, attribute or processing instruction a new (expanded) name."""

    target: int
    label: str
    prefix: str = field(default="", compare=False)  # as written


@dataclass(frozen=True, slots=True)
class ReplaceNode:
    """Replace the target with content; empty content deletes it."""

    target: int
    content: Content


@dataclass(frozen=True, slots=True)
class ReplaceValue:
    """Set the value of a text, attribute, comment or instruction; for an element, replace its
    children with one text."""

    target: int
    value: str


Operation: TypeAlias = Insert | Delete | Rename | ReplaceNode | ReplaceValue


class Repeated(Sequence[Operation]):
    """One insertion or deletion at many nodes: a list of operations, made when they are read.

    The targets are distinct nodes of the tree as it is now, in document order. Those of an
    insertion, which is inside of them, are elements.
    """

    __slots__ = ("_version", "content", "targets", "tree", "where")

    def __init__(
        self, tree: Tree, targets: list[int], where: Where | None = None, content: Content = ()
    ) -> None:
        self.tree = tree
        self.targets = targets
        self.where = where  # None: a deletion
        self.content = content
        self._version = tree.version

    def is_current(self, tree: Tree) -> bool:
        """Whether this is the tree of the targets, and no update has changed it since."""
        return tree is self.tree and tree.version == self._version

    def __len__(self) -> int:
        return len(self.targets)

    def __iter__(self) -> Iterator[Operation]:
        where, content = self.where, self.content
        if where is None:
            return map(Delete, self.targets)
        return (Insert(where, target, content) for target in self.targets)

    @overload
    def __getitem__(self, at: int) -> Operation: ...

    @overload
    def __getitem__(self, at: slice) -> list[Operation]: ...

    def __getitem__(self, at: int | slice) -> Operation | list[Operation]:
        return list(self)[at]

    def __repr__(self) -> str:
        return repr(list(self))


# Streams -----------------------------------------------------------------------------------------


def call_of(tree: Tree, stream: str) -> tuple[int, Call]:
    """The open call of a stream; raises AX402 if it has ended, AX401 if it is unknown."""
    node = tree.calls_by_stream.get(stream, NONE)
    if node != NONE:
        return node, tree.call(node)
    if stream in tree.ended:
        raise EndedStreamError("AX402", f"the stream {stream!r} has ended")
    known = ", ".join(sorted(tree.calls_by_stream)) or "none"
    raise UnknownStreamError(
        "AX401", f"there is no stream {stream!r}", expected=f"one of the open streams: {known}"
    )


def time_of_message(tree: Tree, stream: str, time: int | None) -> int:
    """The time of a message: its own, or the clock if it has none or if `late` says so."""
    return time_by_policy(tree, call_of(tree, stream)[1], time)


def time_by_policy(tree: Tree, call: Call, time: int | None) -> int:
    """The time of a message of a call, which may be gone already."""
    if time is None:
        return tree.clock
    if time >= tree.clock:
        return time
    if call.late == "clock":
        return tree.clock
    raise late_error(call.stream, time, tree.clock, _advice(tree, _IN_ORDER))


_IN_ORDER = (
    "send messages in time order, or give late ones the clock's time: `late: clock` of the stream"
    ' in a pipeline file, late="clock" on the call'
)


def late_error(stream: str, time: int, clock: int, advice: str = _IN_ORDER) -> LateError:
    """The error of a message whose time is before the clock, both in microseconds."""
    return LateError(
        "AX404",
        f"a message of {stream!r} has time {in_seconds(time)}, before the clock"
        f" at {in_seconds(clock)}",
        advice=advice,
    )


def checked_time(tree: Tree, time: int) -> int:
    """The time; raises AX409 if it is before the clock or does not fit the time column."""
    if time >= 1 << 63:
        raise StreamError("AX409", f"{time} microseconds do not fit in 64 bits")
    if time < tree.clock:
        raise LateError(
            "AX404",
            f"time {in_seconds(time)} lies before the document's clock at {in_seconds(tree.clock)}",
            advice=_advice(tree, "times never go back within a document"),
        )
    return time


def _advice(tree: Tree, usual: str) -> str:
    """The advice for a late time; before the first update only the document's start is at fault."""
    if tree.clock > tree.time(DOCUMENT_NODE):
        return usual
    return 'start the document earlier: at=, or times="dates" for any date'


_LIKELY_DATE = 10**9 * SECOND
"""A time after this (in 2001) is taken for seconds since 1970."""


def in_seconds(time: int) -> str:
    """A time in readable form, to the microsecond; of seconds since 1970, the date as well."""
    seconds = f"{time / 1e6:.6f}".rstrip("0").rstrip(".") + " s"
    return f"{plain(shown(time, 'dates'))} ({seconds})" if time >= _LIKELY_DATE else seconds


def insert_at_call(tree: Tree, stream: str, forest: Sequence[Element]) -> list[Operation]:
    """The operations of a message: insert its trees before the call; end a one-shot call."""
    node, call = call_of(tree, stream)
    if call.deletes == "only":
        raise StreamError("AX408", f"the stream {stream!r} may only delete")
    before = tree.brought.get(stream, 0)
    brought = before + trees_in(forest)
    if call.most is not None and (brought > call.most or before == call.most):
        raise StreamError(
            "AX406",
            f"the stream {stream!r} may insert {call.most} trees; this message makes it {brought}"
            if brought > call.most
            else f"the stream {stream!r} has inserted all of its {call.most} trees",
        )
    check_calls(call, calls_in(forest), tree.called.get(stream, 0), tree.any_calls)
    key: str | None = None
    replaced = NONE
    if call.replace is not None:
        key = call.replace.value_of(forest)
        replaced = tree.message_of(stream, key)
    operations: list[Operation] = [Insert(Where.BEFORE, node, tuple(forest), stream, key, replaced)]
    if call.mode == "one-shot":
        operations.append(Delete(node))
    return operations


def calls_in(forest: Iterable[Element]) -> list[Call]:
    """The calls in a message."""
    return [
        Call.of([(str(name), str(value)) for name, value in call.attrib.items()])
        for root in forest
        for call in root.iter(CALL_LABEL)
    ]


def cost_of(calls: Iterable[Call]) -> int:
    """The number of calls that a message adds: its own, and all that they may insert in turn."""
    return sum(1 + call.calls for call in calls)


def check_calls(call: Call, brought: Sequence[Call], before: int, any_calls: bool) -> None:
    """Reject a message with calls that its stream may not insert."""
    if not brought or any_calls:
        return
    if not call.calls:
        raise StreamError(
            "AX418",
            f"a message of {call.stream!r} holds the call of {brought[0].stream!r}",
            advice='declare calls="yes" on the stream if it may insert calls',
        )
    total = before + cost_of(brought)
    if total > call.calls:
        raise StreamError(
            "AX419",
            f"the stream {call.stream!r} may insert {call.calls} calls; this message makes it"
            f" {total}, with those that its calls may insert in turn",
            advice='declare more on the stream, such as calls="5000"',
        )


def delete_at_call(tree: Tree, stream: str, matches: Callable[[int], bool]) -> list[Operation]:
    """The operations of a delete: remove the siblings of the call that match, except calls."""

    def matching(call: int) -> list[int]:
        siblings = tree.children(tree.parent(call))
        return [n for n in siblings if tree.kind_column[n] != CALL and matches(n)]

    return delete_siblings(tree, stream, matching)


def delete_siblings(
    tree: Tree, stream: str, matching: Callable[[int], Iterable[int]]
) -> list[Operation]:
    """The operations of a delete; `matching` returns the siblings of a call to remove."""
    node, call = call_of(tree, stream)
    if call.deletes == "no":
        raise StreamError(
            "AX405",
            f"the stream {stream!r} may not delete",
            advice='declare deletes="yes" on its call',
        )
    return [Delete(sibling) for sibling in matching(node)]


def message_nodes(tree: Tree, stream: str, number: int) -> list[int]:
    """The nodes that a message of a stream inserted, without those below them."""
    alive = tree.inserted_by(stream, number)
    if not alive:
        raise StreamError(
            "AX422",
            f"the document has no message {number} of the stream {stream!r}",
            advice="a message that was rejected, deleted or replaced is not there",
        )
    return alive


def trees_in(forest: Sequence[Element]) -> int:
    """The number of trees in a message: its elements, without comments and calls."""
    tags: list[object] = [tree.tag for tree in forest]  # of a comment, a function
    return sum(isinstance(tag, str) and tag != CALL_LABEL for tag in tags)


def end_call(tree: Tree, stream: str) -> list[Operation]:
    """The operations of the end of a stream: remove its call."""
    node, _ = call_of(tree, stream)
    return [Delete(node)]
