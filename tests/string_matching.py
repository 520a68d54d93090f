"""P4 section 5 by its definitions: matchings on strings, matching triples, algorithm 1 as printed.

What `views/records/strings.py` is checked by. A pattern is a `StringPattern` and the letters of its
nodes (`*` for any); edges are numbered as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

from axlog.views.records.strings import Edges, StringPattern

Triple = tuple[int, int, int]
STRINGS = {n: ["".join(word) for word in product("abc", repeat=n)] for n in range(1, 7)}


def patterns(nodes: int) -> Iterator[StringPattern]:
    """Every pattern with so many nodes, for both kinds of matching; no node has two `->`."""
    for parents in product(*(range(node) for node in range(1, nodes))):
        for nexts in product((False, True), repeat=nodes):
            direct = [p for p, is_next in zip(parents, nexts[1:], strict=True) if is_next]
            if len(direct) == len(set(direct)):
                yield StringPattern((-1, *parents), nexts)


def passes(label: str, letter: str) -> bool:
    return label in ("*", letter)


def has_matching(pattern: StringPattern, labels: str, word: str) -> bool:
    """Whether the whole pattern can be matched, by trying every position."""
    edges = Edges(pattern)

    @cache
    def holds(node: int, at: int) -> bool:
        return passes(labels[node], word[at]) and all(
            any(holds(edge, p) for p in places(edge, at)) for edge in edges.out[node] if inner(edge)
        )

    def inner(edge: int) -> bool:
        return edge not in edges.leaves

    def places(edge: int, at: int) -> range:
        return range(at + 1, min(at + 2, len(word)) if edges.is_next[edge] else len(word))

    return any(holds(0, at) for at in places(0, -1))


def triples(pattern: StringPattern, labels: str, word: str) -> set[Triple]:
    """Definition 5.6: every cut that some matching reaches gives the triples of its edges."""
    edges = Edges(pattern)
    found: set[Triple] = set()
    for top in range(edges.count):
        for cut in _cuts(edges, top):
            if _reaches(edges, labels, word, top, cut):
                bottoms = [edge for edge in cut if edges.distance(top, edge) == 0]
                found |= {(top, bottom, edge) for bottom in bottoms for edge in cut}
    return found


def _cuts(edges: Edges, top: int) -> Iterator[frozenset[int]]:
    yield frozenset({top})
    if top not in edges.leaves:
        for parts in product(*(list(_cuts(edges, edge)) for edge in edges.out[top])):
            yield frozenset().union(*parts)


def _reaches(edges: Edges, labels: str, word: str, top: int, cut: frozenset[int]) -> bool:
    """A top matching (definition 5.4). A `->` edge cannot pass over a whole string."""
    if top in cut:
        return not edges.is_next[top]

    def place(edge: int, at: int) -> bool:
        if edge in cut:
            return not edges.is_next[edge] or at == len(word) - 1
        last = min(at + 2, len(word)) if edges.is_next[edge] else len(word)
        return any(
            passes(labels[edge], word[p]) and all(place(below, p) for below in edges.out[edge])
            for p in range(at + 1, last)
        )

    return place(top, -1)


def printed_join(pattern: StringPattern, one: set[Triple], other: set[Triple]) -> set[Triple]:
    """Algorithm 1 as it is printed, but for edges on the path of `bottom`, which it leaves out."""
    edges = Edges(pattern)
    found: set[Triple] = set()
    for top in range(edges.count):
        below = [e for e in range(edges.count) if edges.on_path[e] >> top & 1]
        for bottom in below:
            if edges.distance(top, bottom) == 0:
                found |= _printed(edges, one, other, top, bottom, below)
    return found


def _printed(
    edges: Edges, one: set[Triple], other: set[Triple], top: int, bottom: int, below: list[int]
) -> set[Triple]:
    path = [c for c in below if edges.on_path[bottom] >> c & 1]
    crossings = [c for c in path if (top, c, c) in one and (c, bottom, bottom) in other]
    if not crossings:
        return set()
    c = max(crossings, key=lambda edge: len(edges.path[edge]))
    cut, found = {c}, {(top, bottom, bottom)}
    for distance in range(edges.count):
        crossed: set[int] = set()
        for edge in below:
            on_bottoms_path = edges.on_path[bottom] >> edge & 1 or edges.on_path[edge] >> bottom & 1
            if edges.distance(top, edge) != distance or on_bottoms_path:
                continue
            if (c, bottom, edge) in other or any(
                (each, low, edge) in other for each in cut - {c} for low in range(edges.count)
            ):
                found.add((top, bottom, edge))
                continue
            for each in reversed([e for e in edges.path[edge] if e in below]):
                bridges = [b for b in edges.bridges(top, each) if edges.distance(top, b) < distance]
                if (
                    (top, c, each) in one
                    and (each, edge, edge) in other
                    and all(any((b, low, each) in one for low in cut) for b in bridges)
                ):
                    crossed.add(each)
                    found.add((top, bottom, edge))
                    break
        cut |= {
            e for e in crossed if not any(f != e and edges.on_path[f] >> e & 1 for f in crossed)
        }
    return found
