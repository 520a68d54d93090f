"""Whether a ground pattern with `not` can still come to hold in a document.

`profile_trees.py` finds the profiles of future trees. Here, the profiles that each node of the
document can get are found bottom-up: one profile for each child, and any set of those of future
trees at an open call, up to the number of trees that it may still deliver. The pattern can come to
hold if some profile of the document satisfies it. There may be 2^|pattern| profiles; beyond a limit
the question is undecided (AX502).

- A one-shot call delivers all its trees at one time.
- A stream that may delete may delete any sibling of its call, equal siblings together. The key
  values of deleted nodes stay used.
- A value that is neither equal to a known string nor known exactly may decide a comparison of
  numbers. The question is then asked twice, without such values and with every outcome of the
  comparison; where the answers differ, it is undecided (AX503).

Without keys, times and values this is the decision of paper 2, section 5.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from threading import local
from typing import NamedTuple

from axlog.document.tree import ATTRIBUTE, CALL, DOCUMENT_NODE, ELEMENT, TEXT, Tree
from axlog.errors import UndecidedError
from axlog.future.comments import refuse_any_node
from axlog.future.future_trees import FutureTrees
from axlog.future.grounding import Ground, as_written
from axlog.future.keys import Key
from axlog.future.profile_trees import (
    LIMIT,
    Demand,
    FutureTree,
    NodeProfiles,
    Profile,
)
from axlog.future.scenarios import may_bring
from axlog.future.search_budget import spend
from axlog.query.pattern import Pattern

_SEARCH = 50
"""The part of the budget that a search costs, however small it is."""
_MOST_RECENT = 64
"""Number of questions whose future trees are kept."""


class Arrival(NamedTuple):
    """A tree that a stream delivers."""

    stream: str
    tree: FutureTree


class Removal(NamedTuple):
    """A node that a stream deletes."""

    stream: str
    node: int


Event = Arrival | Removal
Events = tuple[Event, ...]
Reached = dict[Profile, Events]
"""The profiles that a part of the document can get, each with what must happen for it."""


def check_covered(tree: Tree, pattern: Pattern) -> None:
    """Reject patterns and documents that profiles do not decide."""
    refuse_any_node(pattern, "beside `not`")
    for stream, node in tree.calls().items():
        if tree.call(node).deletes != "no":
            siblings = [tree.kind_column[child] for child in tree.children(tree.parent(node))]
            if siblings.count(TEXT) > 1:
                raise UndecidedError("AX503", f"deletions by the stream {stream!r} may merge texts")


def times_of(ground: Ground, clock: int) -> tuple[int, ...]:
    """One time of each interval from the clock on that the constraints distinguish, in order."""
    tests = [test for each in ground.times.values() for test in each]
    turns = {turn for test in tests for turn in test.turns if turn > clock}
    return tuple(sorted({clock, *turns}))


class Profiles:
    """The profiles that a document can get, for one ground pattern.

    `among` restricts the streams that deliver data. `clock` is the time from which on data may
    arrive, if it is not the document's.
    """

    def __init__(
        self,
        tree: Tree,
        ground: Ground,
        among: frozenset[str] | None = None,
        clock: int | None = None,
    ) -> None:
        self.tree, self.ground = tree, ground
        self._among = among
        self._clock = tree.clock if clock is None else clock

    def future(self) -> Events | None:
        """Events after which the pattern holds; None if nothing can make it hold."""
        strict = self._search(is_lenient=False)
        if strict.found is not None or not strict.nodes.saw_unknown:
            return strict.found
        if self._search(is_lenient=True).found is None:
            return None
        raise UndecidedError(
            "AX503", "values that may still come decide a comparison beside `not` in several ways"
        )

    def _search(self, *, is_lenient: bool) -> _Search:
        trees = _future_trees(self.tree.facts, self.ground, self._clock, is_lenient)
        return _Search(self.tree, trees, self._clock, self._among)


class _Recent(local):
    """The trees of the last questions of this thread: they do not depend on the document."""

    def __init__(self) -> None:
        self.trees: OrderedDict[object, FutureTrees] = OrderedDict()


_recent = _Recent()


def _future_trees(keys: Sequence[Key], ground: Ground, clock: int, is_lenient: bool) -> FutureTrees:
    """The trees that messages may hold from a clock on; those of the last questions are kept."""
    times = times_of(ground, clock) if ground.times else (0,)  # else any time is as good
    mappings = (ground.strings, ground.tests, ground.times, ground.nodes, ground.labels)
    asked = (ground.pattern, *(frozenset(each.items()) for each in mappings))
    key = (tuple(keys), asked, times, is_lenient)
    found = _recent.trees.pop(key, None)
    if found is None:
        found = FutureTrees(NodeProfiles(keys, ground, is_lenient), times)
    _recent.trees[key] = found
    if len(_recent.trees) > _MOST_RECENT:
        _recent.trees.popitem(last=False)
    return found


class _Search:
    """One pass over a document."""

    def __init__(
        self, tree: Tree, trees: FutureTrees, clock: int, among: frozenset[str] | None
    ) -> None:
        nodes = trees.nodes
        self.tree, self.nodes, self._among = tree, nodes, among
        self._trees, self._clock = trees, clock
        self._deleting = {
            tree.parent(node): stream
            for stream, node in tree.calls().items()
            if tree.call(node).deletes != "no" and self._is_asked(stream)
        }
        self._changing = {n for call in tree.calls().values() for n in tree.ancestors(call)}
        possible = self._document()
        self.found: Events | None = None
        for profile, how in possible.items():
            if nodes.satisfies(nodes.root, profile, 0):
                self.found = tuple(self._distinct(how))
                break

    def _distinct(self, events: Events) -> Iterator[Event]:
        arrived = [event for event in events if isinstance(event, Arrival)]
        yield from (event for event in events if not isinstance(event, Arrival))
        trees = self.nodes.distinct(event.tree for event in arrived)
        yield from (Arrival(e.stream, tree) for e, tree in zip(arrived, trees, strict=True))

    def _is_asked(self, stream: str) -> bool:
        return self._among is None or stream in self._among

    def _document(self) -> Reached:
        """The unions of profiles that are possible below the document node."""
        tree, nodes = self.tree, self.nodes
        visited, demands = _demands(tree, nodes)
        spend(_SEARCH + len(visited))
        below: dict[int, list[tuple[int, Reached]]] = {}
        for node in reversed(visited):
            if node == DOCUMENT_NODE:
                return self._siblings(nodes.top, None, below.get(node, []))
            parent = tree.parent(node)
            reached = self._of(node, demands[parent], demands.get(node), below.pop(node, []))
            below.setdefault(parent, []).append((node, reached))
        raise AssertionError("a document has a document node")

    def _of(
        self, node: int, demand: Demand, inside: Demand | None, below: list[tuple[int, Reached]]
    ) -> Reached:
        """The profiles of a node, from those of its children."""
        tree = self.tree
        if inside is None:
            return self._deliverable(node, demand)
        kind, label, time = tree.kind_column[node], tree.label(node), tree.time(node)
        exact = tree.string_value(node) if kind != ELEMENT or inside.value else None
        found: Reached = {}
        for profile, how in self._siblings(inside, node, below).items():
            value = profile.value if kind == ELEMENT and node in self._changing else exact
            for each in self.nodes.of(kind, label, value, profile, time, demand, node):
                found.setdefault(each, how)
        return found

    # Siblings

    def _siblings(
        self, demand: Demand, parent: int | None, children: list[tuple[int, Reached]]
    ) -> Reached:
        """The unions of the profiles of a node's children, which are in reverse order."""
        found: Reached = {self.nodes.nothing(demand): ()}
        if not children:
            return found
        masks = self.nodes.masks(demand)
        stream = None if parent is None else self._deleting.get(parent)
        if stream is None:
            for _, reached in children:
                found = self._joined(reached, found, masks)
            return found
        choices = list(self._deletions(children, stream, demand))
        groups = sorted({number for number, _ in choices if number >= 0})
        if 2 ** len(groups) > LIMIT:
            raise UndecidedError("AX502", "too many siblings may be deleted together")
        every: Reached = {}
        for deleted in product((False, True), repeat=len(groups)):
            gone = {number for number, is_gone in zip(groups, deleted, strict=True) if is_gone}
            found = {self.nodes.nothing(demand): ()}
            for number, (kept, removed) in choices:
                options = kept if number not in gone else removed
                options = {**removed, **kept} if number == _ALONE else options
                found = self._joined(options, found, masks)
            every = {**found, **every}
        return every

    def _deletions(
        self, children: list[tuple[int, Reached]], stream: str, demand: Demand
    ) -> Iterator[tuple[int, tuple[Reached, Reached]]]:
        """Each child with what it is, kept and removed; equal ones have a number in common."""
        tree = self.tree
        alike: dict[object, list[int]] = {}
        for node, _ in children:
            if tree.kind_column[node] in (ELEMENT, TEXT):
                alike.setdefault(_content(tree, node), []).append(node)
        number = {
            node: at if len(nodes) > 1 else _ALONE
            for at, nodes in enumerate(alike.values())
            for node in nodes
        }
        used = sum(self.nodes.masks(demand))
        gone = self.nodes.nothing(demand)
        for node, reached in children:
            if node not in number:
                yield _FIXED, (reached, {})
                continue
            removed: Reached = {}
            for profile, how in reached.items():
                left = gone._replace(here=profile.here & used)
                removed.setdefault(left, (*how, Removal(stream, node)))
            yield number[node], (reached, removed)

    def _joined(self, left: Reached, right: Reached, masks: list[int]) -> Reached:
        found: Reached = {}
        spend(1 + (len(left) * len(right) >> 5))
        for (one, how), (other, more) in product(left.items(), right.items()):
            union = self.nodes.joined(one, other, masks)
            if union is not None and union not in found:
                found[union] = how + more
        if len(found) > LIMIT:
            raise UndecidedError(
                "AX502",
                f"there are more than {LIMIT:,} ways to satisfy the query",
                advice="use a smaller query",
            )
        if not found:
            raise UndecidedError("AX503", "the document breaks a declared key")
        return found

    # Calls

    def _deliverable(self, node: int, demand: Demand) -> Reached:
        """The unions of profiles that a call may deliver."""
        tree = self.tree
        call = tree.call(node)
        if demand.is_empty or not self._is_asked(call.stream) or not may_bring(tree, call):
            return {self.nodes.nothing(demand): ()}
        times = self._trees.times
        every = [(time,) for time in times] if call.mode == "one-shot" else [times]
        with_calls = tree.may_bring_calls(call.stream)
        found: Reached = {}
        for each in every:
            sums = self._trees.sums(demand, each, with_calls)
            left = len(sums) - 1
            if call.most is not None:
                left = min(left, call.most - tree.brought.get(call.stream, 0))
            for profile, forest in sums[left].items():
                if profile not in found:
                    trees = (tree for tree in forest if isinstance(tree, FutureTree))
                    found[profile] = tuple(Arrival(call.stream, self._timed(t)) for t in trees)
        return found

    def _timed(self, tree: FutureTree) -> FutureTree:
        """A tree with its time; where no constraint asks for times, the clock."""
        return tree if self.nodes.ground.times else tree._replace(time=self._clock)


def _demands(tree: Tree, nodes: NodeProfiles) -> tuple[list[int], dict[int, Demand]]:
    """The nodes of which something is demanded, and the calls among them, in document order.

    With what each of these nodes, but the calls, demands of its children.
    """
    demands = {DOCUMENT_NODE: nodes.top}
    visited: list[int] = []
    stack = [DOCUMENT_NODE]
    while stack:  # parents before children, and children in their order
        node = stack.pop()
        visited.append(node)
        for child in reversed(list(tree.chain(node)) if node in demands else []):
            kind = tree.kind_column[child]
            if kind in (ELEMENT, TEXT, ATTRIBUTE):
                relations, inside = nodes.inside(kind, tree.label(child), demands[node])
                if relations or not inside.is_empty:
                    demands[child] = inside
                    stack.append(child)
            elif kind == CALL:
                stack.append(child)
    return visited, demands


def wanted_at_calls(tree: Tree, ground: Ground) -> dict[str, list[str]]:
    """The sub-patterns that the data of each stream may match; streams without any are left out."""
    nodes = NodeProfiles((), ground)
    visited, demands = _demands(tree, nodes)
    found: dict[str, list[str]] = {}
    for node in visited:
        if tree.kind_column[node] == CALL and not demands[tree.parent(node)].is_empty:
            demand = demands[tree.parent(node)]
            asked = [r for r in nodes.relations if nodes.bit[r] & (demand.here | demand.anywhere)]
            found[tree.call(node).stream] = sorted({as_written(str(r.node)) for r in asked})
    return found


_ALONE, _FIXED = -1, -2


def _content(tree: Tree, node: int) -> object:
    """A key, equal for siblings that no delete pattern distinguishes."""
    return (
        tree.kind_column[node],
        tree.label(node),
        tree.time(node),
        tuple(_content(tree, below) for below in tree.chain(node)),
    )


def streams_of(events: Iterable[Event]) -> frozenset[str]:
    """The streams of some events."""
    return frozenset(event.stream for event in events)
