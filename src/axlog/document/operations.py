"""Atomic operations on nodes, and what a stream may do, built from them.

One update form for everything: a statement, a message, a patch or a diff becomes a list of these
operations (a pending update list), which `pending.apply` carries out whole or not at all. Targets
are handles of one tree. Content is a tuple of lxml elements, strings (texts) and `Attribute`s.

Stream operations (P3 2.2): data arrives as siblings just before the call; a delete takes siblings
of the call that match, whoever brought them; an end takes the call itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from axlog.document.calls import Call
from axlog.document.parser import Element
from axlog.document.tree import CALL, CALL_LABEL, DOCUMENT_NODE, NONE, Tree
from axlog.errors import EndedStreamError, LateError, StreamError, UnknownStreamError


class Where(Enum):
    """Where content goes, seen from the target."""

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


@dataclass(frozen=True, slots=True)
class Insert:
    """Put content beside or into the target; attributes go to the target, or to its parent.

    `stream` is the one whose message this is, None where a person writes.
    """

    where: Where
    target: int
    content: Content
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Take the target and all below it out of the document."""

    target: int


@dataclass(frozen=True, slots=True)
class Rename:
    """Give an element, attribute or processing instruction another (expanded) name."""

    target: int
    label: str
    prefix: str = field(default="", compare=False)  # as written


@dataclass(frozen=True, slots=True)
class ReplaceNode:
    """Put content in the place of the target; nothing in place of it deletes it."""

    target: int
    content: Content


@dataclass(frozen=True, slots=True)
class ReplaceValue:
    """Give a text, attribute, comment or instruction another value; an element one text for all
    its children."""

    target: int
    value: str


Operation: TypeAlias = Insert | Delete | Rename | ReplaceNode | ReplaceValue


# Streams -----------------------------------------------------------------------------------------


def call_of(tree: Tree, stream: str) -> tuple[int, Call]:
    """The open call of a stream, or an error that says why there is none."""
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
    """The time that a message gets: its own, or the clock where it has none or policy says so."""
    return time_by_policy(tree, call_of(tree, stream)[1], time)


def time_by_policy(tree: Tree, call: Call, time: int | None) -> int:
    """The time of a message of a call, whether or not the call is still there."""
    if time is None:
        return tree.clock
    if time >= tree.clock:
        return time
    if call.late == "clock":
        return tree.clock
    raise LateError(
        "AX404",
        f"a message of {call.stream!r} has time {in_seconds(time)}, before the clock"
        f" at {in_seconds(tree.clock)}",
        advice=_advice(tree, 'send messages in time order, or declare late="clock" on the call'),
    )


def checked_time(tree: Tree, time: int) -> int:
    """The time, if it is not before the clock and fits the column of times."""
    if time >= 1 << 63:
        raise StreamError("AX409", f"{time} microseconds are beyond any time")
    if time < tree.clock:
        raise LateError(
            "AX404",
            f"time {in_seconds(time)} lies before the document's clock at {in_seconds(tree.clock)}",
            advice=_advice(tree, "times never go back within a document"),
        )
    return time


def _advice(tree: Tree, usual: str) -> str:
    """What to do about a late time; in a document without updates only its start is in the way."""
    if tree.clock > tree.time(DOCUMENT_NODE):
        return usual
    return 'let the document start earlier: at=, or times="dates" for any date'


def in_seconds(time: int) -> str:
    """A time for people, to the microsecond."""
    return f"{time / 1e6:.6f}".rstrip("0").rstrip(".") + " s"


def insert_at_call(tree: Tree, stream: str, forest: Sequence[Element]) -> list[Operation]:
    """What a message of a stream does: its trees just before the call; a one-shot call ends."""
    node, call = call_of(tree, stream)
    if call.deletes == "only":
        raise StreamError("AX408", f"the stream {stream!r} may only delete")
    before = tree.brought.get(stream, 0)
    brought = before + trees_in(forest)
    if call.most is not None and (brought > call.most or before == call.most):
        raise StreamError(
            "AX406",
            f"the stream {stream!r} may bring {call.most} trees and this makes {brought}"
            if brought > call.most
            else f"the stream {stream!r} has brought its {call.most} trees and may bring no more",
        )
    check_calls(call, calls_in(forest), tree.called.get(stream, 0), tree.any_calls)
    operations: list[Operation] = [Insert(Where.BEFORE, node, tuple(forest), stream)]
    if call.mode == "one-shot":
        operations.append(Delete(node))
    return operations


def calls_in(forest: Iterable[Element]) -> list[Call]:
    """The calls that a message brings."""
    return [
        Call.of([(str(name), str(value)) for name, value in call.attrib.items()])
        for root in forest
        for call in root.iter(CALL_LABEL)
    ]


def cost_of(calls: Iterable[Call]) -> int:
    """How many calls a message brings: each one, and all that it may bring in turn."""
    return sum(1 + call.calls for call in calls)


def check_calls(call: Call, brought: Sequence[Call], before: int, any_calls: bool) -> None:
    """Refuse the calls of a message that its stream may not bring."""
    if not brought or any_calls:
        return
    if not call.calls:
        raise StreamError(
            "AX418",
            f"a message of {call.stream!r} holds the call of {brought[0].stream!r}",
            advice='declare calls="yes" on the stream if it may bring calls',
        )
    total = before + cost_of(brought)
    if total > call.calls:
        raise StreamError(
            "AX419",
            f"the stream {call.stream!r} may bring {call.calls} calls and this makes {total},"
            " with all that they may bring in turn",
            advice='declare more on the stream, such as calls="5000"',
        )


def delete_at_call(tree: Tree, stream: str, matches: Callable[[int], bool]) -> list[Operation]:
    """What a delete of a stream does: the siblings of its call that match, whatever they are but
    calls."""
    node, call = call_of(tree, stream)
    if call.deletes == "no":
        raise StreamError(
            "AX405",
            f"the stream {stream!r} may not delete",
            advice='declare deletes="yes" on its call',
        )
    siblings = [n for n in tree.children(tree.parent(node)) if tree.kind_column[n] != CALL]
    return [Delete(sibling) for sibling in siblings if matches(sibling)]


def trees_in(forest: Sequence[Element]) -> int:
    """How many trees a message brings: its elements, not its comments or calls."""
    tags: list[object] = [tree.tag for tree in forest]  # of a comment, a function
    return sum(isinstance(tag, str) and tag != CALL_LABEL for tag in tags)


def end_call(tree: Tree, stream: str) -> list[Operation]:
    """What the end of a stream does: the call goes."""
    node, _ = call_of(tree, stream)
    return [Delete(node)]
