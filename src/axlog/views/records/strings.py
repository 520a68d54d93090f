"""Conjunctive patterns with next and following siblings on strings: matching triples.

A pattern is a tree of nodes connected by edges: `->` (the next position) or `=>` (any later
position). It is adapted: a root edge leads to its root, and every leaf gets an edge `=>` below it,
so that edges can cut a matching at any place. For a string D the triple

    (top, bottom, e)  is in T(D)   iff   the part of the pattern between the edge `top` and some cut
                                         that holds the edges `bottom` and e can be matched in D,

where a `->` edge that is `top` has its target at the first position, and a `->` edge of the cut has
its source at the last (definitions 5.4 to 5.6). `bottom` is a direct descendant of `top`. T(D1 D2)
follows from T(D1) and T(D2) (`join`, algorithm 1). A balanced tree over the positions therefore
keeps T of the whole string with O(log n) joins per update, each polynomial in the pattern
(theorem 5.1).

The paper has no proof of algorithm 1, and the printed algorithm is wrong. `docs/records.md` has the
counterexamples and the correction used here. (Definitions, algorithm and theorem are those of
paper 4, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

EMPTY = 0
MOST_KNOWN = 200_000
"""The most cached joins; further joins are computed again."""

Triples = tuple[int, ...]
"""For every pair (top, bottom), the set of edges e as bits."""


@dataclass(frozen=True, slots=True)
class StringPattern:
    """A tree of nodes, parents first: each with its parent and whether `->` leads to it.

    Node 0 is the root; `nexts[0]` requires a matching that starts at the first position.

    >>> StringPattern((-1, 0, 0), (False, True, False)).edges
    5
    """

    parents: tuple[int, ...]
    nexts: tuple[bool, ...]

    @property
    def edges(self) -> int:
        """One to every node, and one below every leaf."""
        return len(self.parents) + len(self.leaves)

    @property
    def leaves(self) -> list[int]:
        inner = set(self.parents)
        return [node for node in range(len(self.parents)) if node not in inner]


class Edges:
    """The edges of an adapted pattern: edge n leads to node n, further edges to virtual leaves."""

    def __init__(self, pattern: StringPattern) -> None:
        self.pattern = pattern
        nodes = len(pattern.parents)
        self.count = pattern.edges
        self.source = [*pattern.parents, *pattern.leaves]
        self.is_next = [*pattern.nexts, *(False for _ in pattern.leaves)]
        self.has_target = [number < nodes for number in range(self.count)]
        self.leaves = range(nodes, self.count)
        self.out: list[list[int]] = [
            [edge for edge in range(1, self.count) if self.source[edge] == node]
            for node in range(nodes)
        ]
        self.is_direct = [edge == 0 or self._is_direct(edge) for edge in range(self.count)]
        self.path = [self._path(edge) for edge in range(self.count)]
        self.on_path = [_bits(path) for path in self.path]
        self.below = [
            _bits(e for e in range(self.count) if self.on_path[e] >> edge & 1)
            for edge in range(self.count)
        ]

    def _is_direct(self, edge: int) -> bool:
        """Definition 5.5: `->`, or `=>` without a `->` beside it; the others are bridges."""
        return self.is_next[edge] or not any(map(self.is_next.__getitem__, self._beside(edge)))

    def _beside(self, edge: int) -> list[int]:
        return self.out[self.source[edge]]

    def _path(self, edge: int) -> list[int]:
        """The path from the root edge to an edge."""
        path = [edge]
        while self.source[path[-1]] >= 0:
            path.append(self.source[path[-1]])
        return path[::-1]

    def distance(self, top: int, edge: int) -> int:
        """The number of bridges from one edge down to another, without the first edge."""
        return sum(not self.is_direct[each] for each in self._between(top, edge))

    def bridges(self, top: int, edge: int) -> list[int]:
        return [each for each in self._between(top, edge) if not self.is_direct[each]]

    def _between(self, top: int, edge: int) -> list[int]:
        path = self.path[edge]
        return path[path.index(top) + 1 :]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An edge e' that may cross the border on the way to e, with the edges it must fit."""

    edge: int
    pair: int  # (e', e), or -1 if e is not a direct descendant of e'
    starts: tuple[tuple[int, int], ...]  # top, and the bridges nearer than e, each with its bottoms


@dataclass(frozen=True, slots=True)
class _Aim:
    """An edge e that may be in a triple of (top, bottom)."""

    edge: int
    candidates: tuple[_Candidate, ...]  # the lowermost first


@dataclass(frozen=True, slots=True)
class _Plan:
    """The precomputed search for one pair (top, bottom): the edges by bridge distance."""

    bottom: int
    crossings: tuple[tuple[int, int, int], ...]  # c', the pairs (top, c') and (c', bottom)
    rounds: tuple[tuple[_Aim, ...], ...]


class Strings:
    """The matching triples of one pattern: sets of triples by number; 0 is the empty string."""

    def __init__(self, pattern: StringPattern) -> None:
        self.edges = edges = Edges(pattern)
        self.pairs = [
            (top, bottom)
            for top in range(edges.count)
            for bottom in range(edges.count)
            if edges.on_path[bottom] >> top & 1 and edges.distance(top, bottom) == 0
        ]
        self._pair = {pair: number for number, pair in enumerate(self.pairs)}
        self._of_top = [
            [number for number, (top, _) in enumerate(self.pairs) if top == edge]
            for edge in range(edges.count)
        ]
        self._plans = [self._plan(top, bottom) for top, bottom in self.pairs]
        self._sets: list[Triples] = [()]
        self._numbers: dict[Triples, int] = {(): EMPTY}
        self._joined: dict[tuple[int, int], int] = {}
        self._letters: dict[int, int] = {}
        self.joins = 0  # joins computed, not found in the cache

    def _plan(self, top: int, bottom: int) -> _Plan:
        edges, pair = self.edges, self._pair
        path = [edge for edge in reversed(edges.path[bottom]) if (top, edge) in pair]
        crossings = tuple((c, pair[top, c], pair[c, bottom]) for c in path)
        rounds: list[list[_Aim]] = []
        for edge in _members(edges.below[top]):
            if edges.on_path[bottom] >> edge & 1 or edges.on_path[edge] >> bottom & 1:
                continue  # a cut has only one edge of a path: the bottom
            distance = edges.distance(top, edge)
            while len(rounds) <= distance:
                rounds.append([])
            rounds[distance].append(_Aim(edge, self._candidates(top, edge, distance)))
        return _Plan(bottom, crossings, tuple(map(tuple, rounds)))

    def _candidates(self, top: int, edge: int, distance: int) -> tuple[_Candidate, ...]:
        edges = self.edges
        found = []
        for crossing in reversed(edges.path[edge]):
            if not edges.on_path[crossing] >> top & 1:
                break
            nearer = tuple(
                (start, _bits(self.pairs[number][1] for number in self._of_top[start]))
                for start in (top, *edges.bridges(top, crossing))
                if start == top or edges.distance(top, start) < distance
            )
            found.append(_Candidate(crossing, self._pair.get((crossing, edge), -1), nearer))
        return tuple(found)

    def _number(self, triples: Triples) -> int:
        known = self._numbers.get(triples)
        if known is None:
            known = self._numbers[triples] = len(self._sets)
            self._sets.append(triples)
        return known

    @property
    def states(self) -> int:
        return len(self._sets)

    def triples(self, number: int) -> set[tuple[int, int, int]]:
        """A set of triples as the paper writes it."""
        return {
            (top, bottom, edge)
            for (top, bottom), found in zip(self.pairs, self._sets[number], strict=False)
            for edge in _members(found)
        }

    # A position, and two strings ------------------------------------------------------------------

    def letter(self, matching: int) -> int:
        """The triples of one position at which these nodes of the pattern (as bits) match."""
        found = self._letters.get(matching)
        if found is None:
            found = self._letters[matching] = self._number(self._at_one(matching))
        return found

    def _at_one(self, matching: int) -> Triples:
        edges = self.edges
        found = [0] * len(self.pairs)
        for number, (top, bottom) in enumerate(self.pairs):
            if top == bottom:
                found[number] = 0 if edges.is_next[top] else 1 << top  # it spans the position
            elif edges.source[bottom] == top and matching >> top & 1:
                found[number] = _bits(edges.out[top])
        return tuple(found)

    def join(self, one: int, other: int) -> int:
        """The triples of the concatenation of two strings."""
        if one == EMPTY or other == EMPTY:
            return one or other
        found = self._joined.get((one, other))
        if found is None:
            if len(self._joined) > MOST_KNOWN:
                self._joined.clear()
            self.joins += 1
            first, second = self._sets[one], self._sets[other]
            reached = [self._reached(second, edge) for edge in range(self.edges.count)]
            triples = tuple(
                self._join(plan, number, first, second, reached)
                for number, plan in enumerate(self._plans)
            )
            found = self._joined[one, other] = self._number(triples)
        return found

    def _reached(self, triples: Triples, top: int) -> int:
        """The edges e with (top, some bottom, e) among the triples."""
        found = 0
        for number in self._of_top[top]:
            found |= triples[number]
        return found

    def _join(
        self, plan: _Plan, number: int, first: Triples, second: Triples, reached: list[int]
    ) -> int:
        """Algorithm 1 for one (top, bottom), corrected: the edges e of its triples."""
        for c, above, below in plan.crossings:  # the lowermost first
            if first[above] >> c & 1 and second[below] >> plan.bottom & 1:
                break
        else:
            return 0
        result = 1 << plan.bottom
        cut = 1 << c
        past_c, passed = second[below], 0
        for aims in plan.rounds:
            crossed: list[int] = []
            for aim in aims:
                edge = aim.edge
                if past_c >> edge & 1 or passed >> edge & 1:
                    result |= 1 << edge
                elif (
                    not cut & self.edges.on_path[edge]
                ):  # otherwise the cut so far crosses elsewhere
                    crossing = self._crossing(aim, first, second, cut)
                    if crossing >= 0:
                        result |= 1 << edge
                        crossed.append(crossing)
            for crossing in crossed:
                if not any(
                    each != crossing and self.edges.on_path[each] >> crossing & 1
                    for each in crossed
                ):
                    cut |= 1 << crossing
                    passed |= reached[crossing]
        return result

    def _crossing(self, aim: _Aim, first: Triples, second: Triples, cut: int) -> int:
        """The lowermost edge that crosses the border on the way to e and fits the cut so far."""
        for candidate in aim.candidates:
            if (
                candidate.pair >= 0
                and second[candidate.pair] >> aim.edge & 1
                and all(
                    self._fits(start, bottoms & cut, candidate.edge, first)
                    for start, bottoms in candidate.starts
                )
            ):
                return candidate.edge
        return -1

    def _fits(self, start: int, bottoms: int, crossing: int, first: Triples) -> bool:
        """Whether an edge can cross together with each edge of the cut directly below a start."""
        return bottoms != 0 and all(
            first[self._pair[start, bottom]] >> crossing & 1 for bottom in _members(bottoms)
        )

    def matches(self, number: int) -> bool:
        """Lemma 5.7: whether the whole pattern can be matched."""
        if number == EMPTY:
            return False
        edges, triples = self.edges, self._sets[number]
        leaves = _bits(edges.leaves)
        return any(
            triples[pair] & leaves == leaves
            for pair in self._of_top[0]
            if self.pairs[pair][1] in edges.leaves
        )


def _bits(members: Iterable[int]) -> int:
    found = 0
    for member in members:
        found |= 1 << member
    return found


def _members(bits: int) -> Sequence[int]:
    return [number for number in range(bits.bit_length()) if bits >> number & 1]
