"""One automaton for the paths of any number of patterns, determinised lazily.

The paths are kept in a trie and share their common prefixes (YFilter). A trie node is reached by a
label or by `*`, or is the loop of a `//`. The automaton's states are sets of these nodes, made when
a message first reaches them: state x label -> state is then one lookup per level, whatever the
number of patterns (lazy determinisation, Green et al.). A label without a transition leads to a
dead state, and the content below it is skipped.

The number of states is bounded: at `most_states`, the least recently used half is evicted. `nodes`,
`states`, `hits`, `misses` and `evicted` are counted. Changes to the trie drop all states.

Law: `run(message)` finds the needs for which the message has a place, and the marked routes that
lead to two or more of its elements. Not handled here: conditions of a pattern on several places
together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter

from axlog.document.parser import Element
from axlog.document.tree import CALL_LABEL
from axlog.match.linear_paths import ANY, BELOW, Place, Route
from axlog.match.string_tests import Found, IndexMerger, StateWatches, WatchIndex

MOST_STATES = 8192
"""The most states kept; a state takes some kilobytes if many patterns have `//`."""

MOST_LABELS = 16_384
"""The most labels whose next state a state remembers: messages may have any number of labels."""

children: Callable[[Element], list[Element]] = itemgetter(slice(None))
"""The children of an element as a list: a third faster than iterating over the element."""


@dataclass(slots=True)
class Counters:
    """Counters of the use of states."""

    hits: int = 0
    misses: int = 0
    evicted: int = 0
    messages: int = 0

    @property
    def hit_rate(self) -> float:
        """The share of steps that found an existing state."""
        steps = self.hits + self.misses
        return self.hits / steps if steps else 1.0


class TrieNode:
    """The end of a common prefix of paths."""

    __slots__ = ("below", "by_label", "is_loop", "marks", "needs", "star", "watched")

    def __init__(self, is_loop: bool = False) -> None:
        self.by_label: dict[str, TrieNode] = {}
        self.star: TrieNode | None = None
        self.below: TrieNode | None = None  # the loop of `//`: here and at any depth below
        self.is_loop = is_loop
        self.needs: set[int] = set()
        self.marks: set[int] = set()  # routes whose elements are counted
        self.watched = WatchIndex()

    def get(self, label: str) -> TrieNode | None:
        if label == BELOW:
            return self.below
        return self.star if label == ANY else self.by_label.get(label)

    def put(self, label: str, node: TrieNode | None) -> None:
        if label == BELOW:
            self.below = node
        elif label == ANY:
            self.star = node
        elif node is None:
            del self.by_label[label]
        else:
            self.by_label[label] = node

    @property
    def leads_on(self) -> bool:
        return bool(self.by_label or self.star or self.below or self.is_loop)

    @property
    def is_empty(self) -> bool:
        has_paths = self.by_label or self.star or self.below
        return not (has_paths or self.needs or self.marks or self.watched)


class State(dict[object, "State"]):
    """A set of trie nodes; as a mapping, the next state by label, made on first use."""

    __slots__ = (
        "automaton", "base", "leads_on", "marks", "named", "needs", "nodes", "rest", "used",
        "watches",
    )  # fmt: skip

    def __init__(self, automaton: Automaton, nodes: frozenset[TrieNode]) -> None:
        super().__init__()
        self.automaton = automaton
        self.nodes = nodes
        self.named = tuple(node for node in nodes if node.by_label)
        stars = [node.star for node in nodes if node.star is not None]
        self.base = _closed([*stars, *(node for node in nodes if node.is_loop)])
        self.rest: State | None = None  # the next state by labels that no node names
        self.leads_on = any(node.leads_on for node in nodes)
        self.needs = frozenset(need for node in nodes for need in node.needs)
        self.marks = frozenset(mark for node in nodes for mark in node.marks)
        watched = [node.watched for node in nodes if node.watched]
        self.watches = StateWatches(watched, automaton.merger) if watched else None
        self.used = 0

    def __missing__(self, label: object) -> State:
        return self.automaton.step(self, label)

    __hash__ = object.__hash__  # type: ignore[assignment]  # states compare by identity

    def __eq__(self, other: object) -> bool:
        return self is other


class Automaton:
    """The shared automaton; needs are numbers given by its owner."""

    def __init__(self, most_states: int = MOST_STATES) -> None:
        self.most_states = max(most_states, 4)
        self.counters = Counters()
        self.nodes = 1
        self._root = TrieNode()
        self._states: dict[frozenset[TrieNode], State] = {}
        self._start()

    def _start(self) -> None:
        """Make the initial states, which every message needs."""
        self._states = {}
        self.merger = IndexMerger()
        self._is_stale = False
        self._dead = self._state(frozenset())
        self._first = self._state(_closed([self._root]))

    @property
    def states(self) -> int:
        return len(self._states)

    # The trie -------------------------------------------------------------------------------------

    def add(self, places: Iterable[Place], need: int) -> None:
        """Register a need at these places."""
        for place in places:
            node = self._add_route(place.route)
            if place.watch is None:
                node.needs.add(need)
            else:
                node.watched.add(place.watch, need)

    def remove(self, places: Iterable[Place], need: int) -> None:
        """Unregister a need."""
        for place in places:
            node = self._path(place.route)[-1]
            if place.watch is None:
                node.needs.discard(need)
            else:
                node.watched.remove(place.watch, need)
            self._prune(place.route)

    def mark(self, route: Route, mark: int) -> None:
        """Report messages in which this route leads to more than one element."""
        self._add_route(route).marks.add(mark)

    def unmark(self, route: Route, mark: int) -> None:
        self._path(route)[-1].marks.discard(mark)
        self._prune(route)

    def _add_route(self, route: Route) -> TrieNode:
        """The node of a route, made if there is none."""
        self._is_stale = True
        node = self._root
        for label in route:
            following = node.get(label)
            if following is None:
                following = TrieNode(label == BELOW)
                node.put(label, following)
                self.nodes += 1
            node = following
        return node

    def _prune(self, route: Route) -> None:
        """Drop the nodes of a route that are no longer used."""
        self._is_stale = True
        path = self._path(route)
        for above, label in zip(reversed(path[:-1]), reversed(route), strict=True):
            below = above.get(label)
            if below is None or not below.is_empty:
                return
            above.put(label, None)
            self.nodes -= 1

    def _path(self, route: Route) -> list[TrieNode]:
        node = self._root
        path = [node]
        for label in route:
            following = node.get(label)
            assert following is not None, "only added routes are removed"
            node = following
            path.append(node)
        return path

    # States ---------------------------------------------------------------------------------------

    def _state(self, nodes: frozenset[TrieNode]) -> State:
        known = self._states.get(nodes)
        if known is None:
            if len(self._states) >= self.most_states:
                self._evict()
            known = self._states[nodes] = State(self, nodes)
            known.used = self.counters.messages
        return known

    def step(self, state: State, label: object) -> State:
        """The state that a label leads to; the dead state for comments, instructions and calls."""
        self.counters.misses += 1
        if type(label) is not str or label == CALL_LABEL:
            following = self._dead
        else:
            named = [node.by_label[label] for node in state.named if label in node.by_label]
            if named:
                following = self._state(state.base | _closed(named))
            else:
                following = self._state(state.base) if state.rest is None else state.rest
                state.rest = following
        if len(state) < MOST_LABELS:
            state[label] = following
        return following

    def _evict(self) -> None:
        """Keep the most recently used half of the states, the initial and the dead one.

        This may happen in the middle of a message: evicted states that it still holds stay valid.
        """
        keep = sorted(self._states.values(), key=lambda state: -state.used)[: self.most_states // 2]
        kept = {*keep, self._first, self._dead}
        self.counters.evicted += len(self._states) - len(kept)
        self._states = {state.nodes: state for state in kept}
        for state in kept:
            gone = [label for label, following in state.items() if following not in kept]
            for label in gone:
                del state[label]
            if state.rest not in kept:
                state.rest = None

    # Messages -------------------------------------------------------------------------------------

    def run(self, message: Element) -> tuple[Found, set[int]]:
        """The needs for which a message has a place, and the marks of routes that lead to several.

        A mark is also reported if two states have it: they are states of different elements.
        """
        if self._is_stale:
            self._start()
        counters, dead = self.counters, self._dead
        counters.messages += 1
        missed = counters.misses
        first = self._first[message.tag]
        steps = 1
        visited = [first]
        found: Found = set()
        if first.watches is not None:
            first.watches.find(message, found)
        waiting = [(message, first)] if first.leads_on else []
        while waiting:
            above, state = waiting.pop()
            for element in children(above):
                steps += 1
                following = state[element.tag]
                if following is dead:
                    continue
                visited.append(following)
                if following.watches is not None:
                    following.watches.find(element, found)
                if following.leads_on and len(element):
                    waiting.append((element, following))
        counters.hits += steps - (counters.misses - missed)
        return self._gather(visited, found)

    def _gather(self, visited: list[State], found: Found) -> tuple[Found, set[int]]:
        now = self.counters.messages
        once: set[int] = set()
        repeated: set[int] = set()
        for state, count in Counter(visited).items():
            state.used = now
            found |= state.needs
            if state.marks:
                repeated |= state.marks if count > 1 else once & state.marks
                once |= state.marks
        return found, repeated


def _closed(nodes: Iterable[TrieNode]) -> frozenset[TrieNode]:
    """These nodes with the loops that start at them."""
    found = set(nodes)
    found |= {node.below for node in found if node.below is not None}
    return frozenset(found)
