"""One automaton for the paths of any number of patterns, determinised lazily.

The paths are kept in a trie and share their common prefixes (YFilter). A trie node is reached by a
label or by `*`, or is the loop of a `//`. The automaton's states are sets of these nodes, made when
a message first reaches them: state x label -> state is then one lookup per level, whatever the
number of patterns (lazy determinisation, Green et al.). A label without a transition leads to a
dead state, and the content below it is skipped.

Each loop is an automaton of its own, which starts at the elements that lead to it. The loops that
are active at an element depend on all elements above it: one automaton for all of them would need
a state for each combination, and nearly every message would have new ones. The combinations that
messages do repeat are kept as bundles of states: a move of a bundle is one lookup for all of its
states. When there are too many moves, they are all dropped; when most are not used again, the
states are followed one by one.

The number of states is bounded: at `most_states`, the least recently used half is evicted. `nodes`,
`states`, `hits`, `misses` and `evicted` are counted. A change to the trie concerns the states that
have a node which it changes: these are made anew, the others stay.

Law: `run(message)` finds the needs for which the message has a place, and the marked routes that
lead to two or more of its elements. Not handled here: conditions of a pattern on several places
together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from axlog.document.parser import Element
from axlog.document.tree import CALL_LABEL
from axlog.match.linear_paths import ANY, BELOW, Place, Route
from axlog.match.string_tests import Found, IndexMerger, StateWatches, WatchIndex

MOST_STATES = 16_384
"""The most states kept; a state takes some kilobytes if many patterns have `//`."""

MOST_MOVES = 16_384
"""The most moves of bundles kept."""
TRIED, UNTRIED = 64, 1024
"""Messages after which the use of moves is judged, and after which they are tried again."""
_OTHER = ""
"""Stands for all labels that no path names."""

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

    __slots__ = ("below", "by_label", "holders", "is_loop", "marks", "needs", "star", "watched")

    def __init__(self, is_loop: bool = False) -> None:
        self.by_label: dict[str, TrieNode] = {}
        self.star: TrieNode | None = None
        self.below: TrieNode | None = None  # the loop of `//`: here and at any depth below
        self.is_loop = is_loop
        self.needs: set[int] = set()
        self.marks: set[int] = set()  # routes whose elements are counted
        self.watched = WatchIndex()
        self.holders: dict[State, None] = {}  # the states that have this node

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
        """Whether it may lead to other nodes of the same automaton."""
        return bool(self.by_label or self.star or self.is_loop)

    @property
    def is_empty(self) -> bool:
        has_paths = self.by_label or self.star or self.below
        return not (has_paths or self.needs or self.marks or self.watched)


class State(dict[str, "State"]):
    """A set of trie nodes; as a mapping, the next states by the labels seen that it names."""

    __slots__ = (
        "automaton", "base", "is_noted", "leads_on", "loop", "loops", "marks", "named", "needs",
        "nodes", "rest", "used", "watches",
    )  # fmt: skip

    def __init__(self, automaton: Automaton, nodes: frozenset[TrieNode]) -> None:
        super().__init__()
        self.automaton = automaton
        self.nodes = nodes
        self.used = 0
        for node in nodes:
            node.holders[self] = None
        self.refresh()

    def refresh(self) -> None:
        """Derive everything from the nodes, at first and when one of them has changed."""
        nodes = self.nodes
        self.clear()
        self.named = tuple(node for node in nodes if node.by_label)
        stars = [node.star for node in nodes if node.star is not None]
        self.base = frozenset([*stars, *(node for node in nodes if node.is_loop)])
        self.rest: State | None = None  # the next state by labels that no node names
        self.leads_on = any(node.leads_on for node in nodes)
        self.loop = next((node for node in nodes if node.is_loop), None)  # whose automaton it is of
        self.loops = tuple(node.below for node in nodes if node.below is not None)
        """The loops that start at an element with this state."""
        self.needs = frozenset(need for node in nodes for need in node.needs)
        self.marks = frozenset(mark for node in nodes for mark in node.marks)
        watched = [node.watched for node in nodes if node.watched]
        self.watches = StateWatches(watched, self.automaton.merger) if watched else None
        self.is_noted = bool(self.needs or self.marks)

    def lead_on(self, node: TrieNode, labels: Iterable[str]) -> None:
        """Follow labels that one of the nodes got. States by other labels stay."""
        if node not in self.named:
            self.named += (node,)
        self.leads_on = True
        for label in labels:
            self.pop(label, None)

    __hash__ = object.__hash__  # type: ignore[assignment]  # states compare by identity

    def __eq__(self, other: object) -> bool:
        return self is other


class Move:
    """What an element with one label means to a bundle of states."""

    __slots__ = ("below", "is_merged", "is_noted", "marks", "needs", "states", "watches")

    def __init__(self, states: list[State], below: Bundle | None) -> None:
        self.states = states  # the next ones, and those that start here
        self.below = below
        self.needs = frozenset[int]().union(*[state.needs for state in states if state.needs])
        self.marks = frozenset[int]().union(*[state.marks for state in states if state.marks])
        self.watches = [state.watches for state in states if state.watches is not None]
        self.is_noted = bool(self.needs or self.marks)
        self.is_merged = False

    def merge(self, merger: IndexMerger) -> None:
        """Put the watches of all states together: the move is used again."""
        self.is_merged = True
        if len(self.watches) > 1:
            nodes = {node: None for state in self.states for node in state.nodes if node.watched}
            self.watches = [StateWatches([node.watched for node in nodes], merger)]


class Bundle(dict[str, Move]):
    """The states that are active at an element; as a mapping, their moves by the labels below."""

    __slots__ = ("states",)

    def __init__(self, states: list[State]) -> None:
        super().__init__()
        self.states = states


class Automaton:
    """The shared automaton; needs are numbers given by its owner."""

    def __init__(self, most_states: int = MOST_STATES) -> None:
        self.most_states = max(most_states, 4)
        self.counters = Counters()
        self.nodes = 1
        self._root = TrieNode()
        self._states: dict[frozenset[TrieNode], State] = {}
        self.merger = IndexMerger()
        self._changed: dict[TrieNode, None] = {}  # since the last message
        self._led_on: dict[TrieNode, list[str]] = {}  # the labels that nodes got since then
        self.most_moves = MOST_MOVES
        self._bundles: dict[frozenset[State], Bundle] = {}
        self._start: Bundle | None = None
        self._moves = 0  # made since the bundles were dropped
        self._reused = 0
        self._has_moves, self._review = True, TRIED
        self._names: set[str] = set()  # labels that some node has, or had, a path by
        self._dead = self._state(frozenset())
        self._first = self._state(frozenset([self._root]))

    def _refresh(self) -> None:
        """Make the states anew that have a node which was changed."""
        self._drop_bundles()
        if any(node.watched for node in self._changed):
            self.merger = IndexMerger()
        stale = dict.fromkeys(state for node in self._changed for state in node.holders)
        for node, labels in self._led_on.items():
            for state in node.holders:
                if state not in stale:
                    state.lead_on(node, labels)
        self._changed, self._led_on = {}, {}
        for state in stale:
            state.refresh()

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
            self._changed[node] = None

    def remove(self, places: Iterable[Place], need: int) -> None:
        """Unregister a need."""
        for place in places:
            node = self._path(place.route)[-1]
            if place.watch is None:
                node.needs.discard(need)
            else:
                node.watched.remove(place.watch, need)
            self._changed[node] = None
            self._prune(place.route)

    def mark(self, route: Route, mark: int) -> None:
        """Report messages in which this route leads to more than one element."""
        node = self._add_route(route)
        node.marks.add(mark)
        self._changed[node] = None

    def unmark(self, route: Route, mark: int) -> None:
        node = self._path(route)[-1]
        node.marks.discard(mark)
        self._changed[node] = None
        self._prune(route)

    def _add_route(self, route: Route) -> TrieNode:
        """The node of a route, made if there is none."""
        node = self._root
        self._names.update(route)
        for label in route:
            following = node.get(label)
            if following is None:
                following = TrieNode(label == BELOW)
                node.put(label, following)
                if label in (ANY, BELOW):
                    self._changed[node] = None
                else:
                    self._led_on.setdefault(node, []).append(label)
                self.nodes += 1
            node = following
        return node

    def _prune(self, route: Route) -> None:
        """Drop the nodes of a route that are no longer used."""
        path = self._path(route)
        for above, label in zip(reversed(path[:-1]), reversed(route), strict=True):
            below = above.get(label)
            if below is None or not below.is_empty:
                return
            above.put(label, None)
            self._changed[above] = None
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

    def step(self, state: State, label: str) -> State:
        """The next state by a label that was not seen in this state, or that it does not name."""
        for node in state.named:
            if label in node.by_label:
                self.counters.misses += 1
                named = [node.by_label[label] for node in state.named if label in node.by_label]
                following = state[label] = self._state(state.base.union(named))
                return following
        if state.rest is None:
            self.counters.misses += 1
            state.rest = self._state(state.base)
        return state.rest

    def _evict(self) -> None:
        """Keep the most recently used half of the states, the initial and the dead one.

        This may happen in the middle of a message: evicted states that it still holds stay valid.
        """
        self._drop_bundles()
        keep = sorted(self._states.values(), key=lambda state: -state.used)[: self.most_states // 2]
        kept = {*keep, self._first, self._dead}
        self.counters.evicted += len(self._states) - len(kept)
        for state in self._states.values():
            if state not in kept:
                for node in state.nodes:
                    del node.holders[state]
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
        if self._changed or self._led_on:
            self._refresh()
        counters = self.counters
        counters.messages += 1
        if counters.messages >= self._review:
            self._choose_way()
        missed = counters.misses
        found: Found = set()
        visited, steps = (self._by_moves if self._has_moves else self._by_states)(message, found)
        counters.hits += steps - (counters.misses - missed)
        return self._gather(visited, found)

    def _choose_way(self) -> None:
        """Use moves as long as most of them are used again; if not, try them again later."""
        self._has_moves = not self._has_moves or self._reused >= self._moves
        self._review = self.counters.messages + (TRIED if self._has_moves else UNTRIED)
        if not self._has_moves:
            self._drop_bundles()
        self._reused = 0

    def _by_states(self, message: Element, found: Found) -> tuple[list[State], int]:
        """The states of a message, each by itself, and the number of steps."""
        dead, step, now, steps = self._dead, self.step, self.counters.messages, 0
        visited: list[State] = []
        active = [self._first, *self._started(self._first, ())]
        waiting: list[tuple[list[Element], list[State]]] = [([message], active)]
        while waiting:
            elements, active = waiting.pop()
            steps += len(elements) * len(active)
            for element in elements:
                label = element.tag
                below: list[State] = []
                # Comments, instructions and calls lead nowhere.
                for state in active if type(label) is str and label != CALL_LABEL else ():
                    following = state.get(label)
                    if following is None:
                        following = step(state, label)
                    if following is dead:
                        continue
                    following.used = now
                    if following.is_noted:
                        visited.append(following)
                    if following.watches is not None:
                        following.watches.find(element, found)
                    if following.leads_on:
                        below.append(following)
                    if following.loops:
                        started = list(self._started(following, active))
                        visited += started
                        below += started
                        for each in started:
                            if each.watches is not None:
                                each.watches.find(element, found)
                if below and len(element):
                    waiting.append((children(element), below))
        return visited, steps

    def _by_moves(self, message: Element, found: Found) -> tuple[list[Move], int]:
        """The moves of a message, and the number of steps that they stand for."""
        visited: list[Move] = []
        steps = reused = 0
        first = self._start
        if first is None:
            first = self._start = self._bundle([self._first, *self._started(self._first, ())])
        names = self._names
        waiting: list[tuple[list[Element], Bundle]] = [([message], first)]
        while waiting:
            elements, bundle = waiting.pop()
            steps += len(elements) * len(bundle.states)
            for element in elements:
                label = element.tag
                if type(label) is not str or label == CALL_LABEL:
                    continue  # comments, instructions and calls lead nowhere
                if label not in names:
                    label = _OTHER
                move = bundle.get(label)
                if move is None:
                    move = self._move(bundle, label)
                else:
                    reused += 1
                    if not move.is_merged:
                        move.merge(self.merger)
                if move.is_noted:
                    visited.append(move)
                # First the children: watches look at them too, and lxml keeps those that are held.
                if move.below is not None and len(element):
                    waiting.append((children(element), move.below))
                for watches in move.watches:
                    watches.find(element, found)
        self._reused += reused
        return visited, steps

    def _bundle(self, states: list[State]) -> Bundle:
        """The bundle of some states."""
        key = frozenset(states)
        known = self._bundles.get(key)
        if known is None:
            known = self._bundles[key] = Bundle(states)
        return known

    def _move(self, bundle: Bundle, label: str) -> Move:
        """The move of a bundle by a label, made with the steps of its states."""
        if self._moves >= self.most_moves:
            self._drop_bundles()
        dead, step, now = self._dead, self.step, self.counters.messages
        visited: list[State] = []
        below: list[State] = []
        for state in bundle.states:
            following = state.get(label)
            if following is None:
                following = step(state, label)
            if following is dead:
                continue
            following.used = now
            visited.append(following)
            if following.leads_on:
                below.append(following)
            if following.loops:
                started = list(self._started(following, bundle.states))
                visited += started
                below += started
        self._moves += 1
        move = bundle[label] = Move(visited, self._bundle(below) if below else None)
        return move

    def _drop_bundles(self) -> None:
        """Forget all moves: there are too many, or states have changed."""
        self._bundles, self._start, self._moves = {}, None, 0

    def _started(self, state: State, active: Sequence[State]) -> Iterator[State]:
        """The states of the loops that start at an element and are not active above it."""
        for loop in state.loops:
            if not any(each.loop is loop for each in active):
                start = self._state(frozenset([loop]))
                start.used = self.counters.messages
                yield start

    def _gather(self, visited: Sequence[Move | State], found: Found) -> tuple[Found, set[int]]:
        once: set[int] = set()
        repeated: set[int] = set()
        counts = Counter(visited)
        for move, count in counts.items():
            if move.marks:
                repeated |= move.marks if count > 1 else once & move.marks
                once |= move.marks
        return found.union(*[move.needs for move in counts]), repeated
