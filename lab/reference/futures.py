"""Futures by enumeration: the data that the open calls of a document may still insert.

A future is a sequence of insertions at open calls, in the order (time, stream). Here each stream
has one message per time. Declared facts narrow the futures: a one-shot call inserts one message,
`most` bounds the total number of trees of a call, and `deletes="only"` inserts nothing. A call with
`replace` inserts messages of one tree with one key, which replace those with the same key. Times
are at or after the clock. A bound limits the search.

Deletions, where the bound asks for them, come first, at the clock. This order reaches every
document: data that one stream inserts and another deletes need not have been inserted. The pattern
of a delete sees a sibling as a document of its own. It therefore deletes all siblings that are
equal in content and times, or none of them.

A stream that declares `calls` may insert trees that contain calls, and the data of those calls
arrives later. Elements of a tree may then have later times than their ancestors. Every such tree is
a message with calls, followed by a later message for each of these calls.

Messages of several streams with one time may arrive in any order. Only `allows` can distinguish
these orders (a node arrives after the node that it refers to), so `allowed` tries them all.

Not handled: declared facts of calls inside messages; types, keys and references (pass them as
`allows`, see `declared_facts.py`).

(Paper 2, section 2.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, count, groupby, pairwise, product
from typing import TypeAlias

from axlog.document.calls import Call
from axlog.document.ids import Id
from axlog.document.message_key import KeyPath
from axlog.document.operations import delete_at_call, insert_at_call
from axlog.document.parser import Element
from axlog.document.pending import apply
from axlog.document.tree import NodeKind, Tree
from axlog.errors import StreamError, UndecidedError
from lab.reference.declared_facts import DeclaredFacts
from lab.reference.fragments import Alphabet, Fragment, as_element, call, fragments


@dataclass(frozen=True, slots=True)
class Message:
    """The trees that one stream inserts at one time."""

    time: int
    stream: str
    forest: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Deletion:
    """Siblings of a stream's call that the stream deletes."""

    stream: str
    nodes: frozenset[Id]


@dataclass(frozen=True, slots=True)
class Future:
    """The updates of the calls from now on; `str` uses the paper's notation: `add(?f, a[b])`."""

    messages: tuple[Message, ...] = ()
    deletions: tuple[Deletion, ...] = ()

    def __str__(self) -> str:
        said = [f"del(?{each.stream}, {sorted(map(str, each.nodes))})" for each in self.deletions]
        for each in self.messages:
            forest = "; ".join(map(str, each.forest))
            said.append(f"add(?{each.stream}, {forest}) at {each.time}")
        return ", ".join(said) or "nothing"

    def without(self, stream: str) -> Future:
        """The same future without the updates of one stream (ω_no-f in paper 2)."""
        return Future(
            tuple(each for each in self.messages if each.stream != stream),
            tuple(each for each in self.deletions if each.stream != stream),
        )

    def applied_to(self, tree: Tree) -> Tree:
        """The document after applying this future to a tree; the tree itself is not modified."""
        *_, last = self.steps(tree)
        return last

    def steps(self, tree: Tree) -> Iterator[Tree]:
        """The document now and after each step; each item is the same object, modified in place."""
        grown = tree.copied()
        yield grown
        for deletion in self.deletions:
            if deletion.stream in grown.calls():  # else an outer deletion removed it
                apply(grown, delete_at_call(grown, deletion.stream, _takes(grown, deletion)))
                yield grown
        for message in self.messages:
            if message.stream in grown.calls():
                forest = [as_element(fragment) for fragment in message.forest]
                apply(grown, insert_at_call(grown, message.stream, forest), message.time)
                yield grown


def _takes(tree: Tree, deletion: Deletion) -> Callable[[int], bool]:
    return lambda node: tree.id(node) in deletion.nodes


@dataclass(frozen=True, slots=True)
class Bound:
    """The limits of the search. A statement about all futures holds for those within the bound.

    `times` are the times that messages may have, in microseconds. Times before the clock are
    ignored; if none remain, all messages arrive at the clock. `ordered` distinguishes futures that
    differ in the order or number of siblings (see `fragments`). `pools` lists the fragments that a
    stream inserts, instead of all fragments over the alphabet. `allows` says whether a document may
    exist (types, keys).
    """

    alphabet: Alphabet
    trees_per_call: int
    nodes_per_tree: int
    times: tuple[int, ...] = ()
    ordered: bool = False
    deletions: bool = False
    pools: Mapping[str, tuple[Fragment, ...]] | None = None
    allows: Callable[[Tree], bool] | None = None
    most_futures: int = 200_000

    def pool(self, stream: str) -> tuple[Fragment, ...]:
        """The fragments that a stream may insert."""
        if self.pools is not None and stream in self.pools:
            return self.pools[stream]
        return fragments(self.alphabet, self.nodes_per_tree, self.ordered)

    def parts(self, tree: Tree, stream: str, time: int) -> list[Fragment]:
        """The trees whose insertion a stream may begin at a time."""
        path = _call(tree, stream).replace
        if path is not None:
            return [fragment for fragment in self.pool(stream) if _has_key(fragment, path)]
        if not tree.may_bring_calls(stream):
            return list(self.pool(stream))
        times = self.times_from(tree.clock)
        found = [split_in_time(fragment, time, times) for fragment in self.pool(stream)]
        return list(chain.from_iterable(found))

    def times_from(self, clock: int) -> tuple[int, ...]:
        return tuple(sorted({time for time in self.times if time >= clock})) or (clock,)


def futures(tree: Tree, bound: Bound, among: Iterable[str] | None = None) -> Iterator[Future]:
    """Every future within the bound, the empty one first; of the given streams only, if any."""
    streams = sorted(tree.calls() if among is None else among)
    choices = [_bringings(tree, stream, bound) for stream in streams]
    tried = 0
    for deletions in _deletions(tree, streams, bound):
        for brought in product(*choices):
            tried += 1
            if tried > bound.most_futures:
                raise UndecidedError(
                    "AX502",
                    f"there are more than {bound.most_futures:,} futures to try",
                    advice="give a smaller alphabet, fewer trees or smaller ones",
                )
            messages = sorted(chain(*brought), key=lambda each: (each.time, each.stream))
            yield Future(tuple(messages), deletions)


def reachable(tree: Tree, bound: Bound) -> Iterator[Tree]:
    """Every allowed document that some future within the bound produces."""
    for future in futures(tree, bound):
        grown = allowed(future, tree, bound)
        if grown is not None:
            yield grown


def allowed(future: Future, tree: Tree, bound: Bound) -> Tree | None:
    """The document that a future produces, or None if an intermediate document is not allowed.

    Of the orders of messages with one time, one that is allowed suffices.
    """
    if bound.allows is None:
        return future.applied_to(tree)
    allows = bound.allows
    for grown in Future((), future.deletions).steps(tree):
        if not allows(grown):
            return None
    if future.deletions and isinstance(allows, DeclaredFacts):
        allows = allows.after_deletions(grown)
    trees = [(m.time, m.stream, list(map(as_element, m.forest))) for m in future.messages]
    return inserted(grown, trees, allows)


Insertion: TypeAlias = tuple[int, str, list[Element]]
"""A message: its time, its stream, its trees."""


def inserted(
    tree: Tree, insertions: Sequence[Insertion], allows: Callable[[Tree], bool]
) -> Tree | None:
    """The document after messages in the order of their times, in an order that is allowed.

    None if no order is allowed. The messages of one stream keep their order.
    """
    last, is_allowed = _in_this_order(tree, insertions, allows)
    if is_allowed:
        return last
    # every order ends with this document
    return _in_any_order(tree, list(insertions), allows) if allows(last) else None


def _in_this_order(
    tree: Tree, insertions: Sequence[Insertion], allows: Callable[[Tree], bool]
) -> tuple[Tree, bool]:
    """The last document, and whether all were allowed."""
    grown, is_allowed = tree.copied(), True
    for time, stream, forest in insertions:
        if stream in grown.calls():
            apply(grown, insert_at_call(grown, stream, forest), time)
            is_allowed = is_allowed and allows(grown)
    return grown, is_allowed


def _in_any_order(
    tree: Tree, insertions: list[Insertion], allows: Callable[[Tree], bool]
) -> Tree | None:
    if not insertions:
        return tree
    first: dict[str, int] = {}
    for number, (time, stream, _) in enumerate(insertions):
        if time == insertions[0][0] and stream in tree.calls():
            first.setdefault(stream, number)
    if not first:  # the calls of these messages are gone
        return _in_any_order(
            tree, [one for one in insertions if one[0] != insertions[0][0]], allows
        )
    for stream, number in first.items():
        time, _, forest = insertions[number]
        grown = tree.copied()
        apply(grown, insert_at_call(grown, stream, forest), time)
        if allows(grown):
            left = insertions[:number] + insertions[number + 1 :]
            found = _in_any_order(grown, left, allows)
            if found is not None:
                return found
    return None


def saturated(tree: Tree, bound: Bound, among: Iterable[str] | None = None) -> Future:
    """The future in which every call inserts every fragment at every time.

    For a monotone query it has the rows of all futures. It does not exist where a call is limited
    (`most`, or one message at one time): see `bounds.is_monotone`.
    """
    streams = tree.calls() if among is None else among
    messages: list[Message] = []
    for time in bound.times_from(tree.clock):
        for stream in sorted(streams):
            if _call(tree, stream).deletes != "only":
                messages += message_of(time, stream, bound.parts(tree, stream, time))
    return Future(tuple(sorted(messages, key=lambda each: each.time)))


# Insertions of one call ---------------------------------------------------------------------------

Bringing: TypeAlias = tuple[Message, ...]


def _call(tree: Tree, stream: str) -> Call:
    return tree.call(tree.calls()[stream])


def _bringings(tree: Tree, stream: str, bound: Bound) -> list[Bringing]:
    """Every choice of insertions of one call, the empty choice first."""
    call = _call(tree, stream)
    times = bound.times_from(tree.clock)
    room = bound.trees_per_call
    if call.most is not None:
        room = min(room, call.most - tree.brought.get(stream, 0))
    if call.deletes == "only" or room <= 0:
        return [()]
    replaces = call.replace is not None
    if call.mode == "one-shot":
        found: list[Bringing] = [()]
        for time in times:
            parts = bound.parts(tree, stream, time)
            forests = _forests(parts, 1 if replaces else room, bound.ordered)
            found += [message_of(time, stream, forest) for forest in forests if forest]
        return found
    timed = [(time, part) for time in times for part in bound.parts(tree, stream, time)]
    brought = _timed_forests(timed, room, bound.ordered)
    if replaces:  # a message is one tree; of two with one key and time, either may be the last
        return [tuple(Message(at, stream, (part,)) for at, part in chosen) for chosen in brought]
    return [_by_time(stream, chosen) for chosen in brought]


def _has_key(fragment: Fragment, path: KeyPath) -> bool:
    """Whether a message of a stream that replaces is accepted."""
    try:
        path.value(as_element(fragment))
    except StreamError:
        return False
    return True


def message_of(time: int, stream: str, parts: Iterable[Fragment]) -> Bringing:
    """One message, and the later messages of its calls."""
    made = [_with_calls(part) for part in parts]
    now = Message(time, stream, tuple(fragment for fragment, _ in made))
    return (now, *(late for _, messages in made for late in messages))


def _forests(parts: Sequence[Fragment], room: int, ordered: bool) -> Iterator[tuple[Fragment, ...]]:
    for size in range(room + 1):
        yield from product(parts, repeat=size) if ordered else combinations(parts, size)


def _timed_forests(
    timed: list[tuple[int, Fragment]], room: int, ordered: bool
) -> Iterator[tuple[tuple[int, Fragment], ...]]:
    for size in range(room + 1):
        if not ordered:
            yield from combinations(timed, size)
            continue
        for chosen in product(timed, repeat=size):
            if all(before[0] <= after[0] for before, after in pairwise(chosen)):
                yield chosen


def _by_time(stream: str, chosen: tuple[tuple[int, Fragment], ...]) -> Bringing:
    by_time = groupby(chosen, key=lambda pair: pair[0])
    found = [message_of(time, stream, (part for _, part in pairs)) for time, pairs in by_time]
    return tuple(chain.from_iterable(found))


# Trees that calls inside messages complete --------------------------------------------------------

_numbers = count(1)


def split_in_time(fragment: Fragment, time: int, times: Sequence[int]) -> list[Fragment]:
    """A tree that begins to arrive at a time, with every choice of elements that arrive later.

    Texts and attributes arrive with their element, because a message has no text at its top.
    """
    choices = [_child_in_time(child, time, times) for child in fragment.below]
    return [replace(fragment, below=below) for below in product(*choices)]


def _child_in_time(child: Fragment, time: int, times: Sequence[int]) -> list[Fragment]:
    if child.kind is not NodeKind.ELEMENT:
        return [child]
    found = split_in_time(child, time, times)
    for after in times:
        if after > time:
            found += [replace(each, at=after) for each in split_in_time(child, after, times)]
    return found


def _with_calls(fragment: Fragment) -> tuple[Fragment, list[Message]]:
    """A tree with new calls in place of the later elements, and the messages of these calls."""
    if not _has_later(fragment):
        return fragment, []
    below: list[Fragment] = []
    later: list[Message] = []
    for child in fragment.below:
        made, messages = _with_calls(child)
        if child.at is not None:
            stream = f"inside{next(_numbers)}"
            messages = [Message(child.at, stream, (replace(made, at=None),)), *messages]
            made = call(stream, len(messages) - 1)
        below.append(made)
        later += messages
    return replace(fragment, below=tuple(below)), later


def _has_later(fragment: Fragment) -> bool:
    return any(child.at is not None or _has_later(child) for child in fragment.below)


# Deletions of calls -------------------------------------------------------------------------------


def _deletions(tree: Tree, streams: list[str], bound: Bound) -> Iterator[tuple[Deletion, ...]]:
    """Every choice of siblings to delete; calls with the same parent can delete the same ones."""
    if not bound.deletions:
        yield ()
        return
    deleting: dict[int, str] = {}
    for stream in streams:
        if _call(tree, stream).deletes != "no":
            deleting.setdefault(tree.parent(tree.calls()[stream]), stream)
    choices = [_deletable(tree, parent, stream) for parent, stream in sorted(deleting.items())]
    for chosen in product(*choices):
        yield tuple(deletion for deletion in chosen if deletion.nodes)


def _deletable(tree: Tree, parent: int, stream: str) -> list[Deletion]:
    alike: dict[object, set[Id]] = {}
    for node in tree.children(parent):
        if tree.kind(node) in (NodeKind.ELEMENT, NodeKind.TEXT):
            alike.setdefault(_content(tree, node), set()).add(tree.id(node))
    classes = list(alike.values())
    subsets = chain.from_iterable(combinations(classes, n) for n in range(len(classes) + 1))
    return [Deletion(stream, frozenset(chain(*subset))) for subset in subsets]


def _content(tree: Tree, node: int) -> object:
    """A key, equal for nodes that no pattern distinguishes when each is a document of its own."""
    return (
        tree.kind(node),
        tree.label(node),
        tree.time(node),
        tuple(_content(tree, below) for below in tree.chain(node)),
    )
