"""The linear paths that a pattern needs, which one automaton can find for any number of patterns.

A message can match a pattern only if it has, for each branch, some node at the end of that branch's
path from the root (YFilter's path decomposition). Such a path is a `Need`: places of which a
message must have at least one. A place is a route through elements and the watch at its end:
nothing more, the element's string value, a text in it or an attribute of it.

Law: if a pattern holds on a message, all its needs are met. The converse holds if `Needs.are_whole`
and no route of `Needs.meetings` leads to two elements of the message: branches that meet at a node
then meet at that one element. A linear path has no meetings, and there is one root element. For the
rest (`not`, joins, conditions without a place), patterns are checked afterwards by generated code
(`matcher_generator.py`). (Paper 3, section 3.5.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from axlog.query.compile import Choice, Edge, Relation
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Comparison,
    Literal,
    Name,
    PatternNode,
    Variable,
    Wildcard,
)

ANY = "*"
BELOW = "//"
Route = tuple[str, ...]
"""Labels from the root down; `*` is any element, `//` any number of levels, none included."""

AUTOMATON_FROM = 24
"""The number of patterns from which the automaton pays off: the crossing point that
`lab/benchmarks/filters.py` measures on messages of 20 to 45 elements."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A string that an element must have: its value, one of its texts, or of its attributes."""

    kind: str  # "value", "text" or "attribute"
    name: str | None = None  # of the attribute; None is any
    tests: tuple[Comparison, ...] = ()  # all of them hold for that string


@dataclass(frozen=True, slots=True)
class Place:
    """The elements that a route reaches, and the watch at them."""

    route: Route
    watch: Watch | None = None


Need = frozenset[Place]


@dataclass(frozen=True, slots=True)
class Needs:
    """The necessary conditions on a message for a pattern to hold."""

    each: tuple[Need, ...]
    meetings: frozenset[Route]  # routes to elements below which several needs must be met together
    are_whole: bool  # together with the meetings they are equivalent to the pattern

    @property
    def are_enough(self) -> bool:
        """Whether meeting the needs suffices to match."""
        return self.are_whole and not self.meetings


def needs_of(root: Relation) -> Needs:
    """The needs of a program, by its root relation at the document node."""
    finder = _Finder()
    found: list[Need] = []
    for edge in root.edges:
        axis = Axis.DESCENDANT if edge.axis is Axis.DESCENDANT_OR_SELF else edge.axis
        found += finder.some(finder.reach(Edge(axis, edge.relation), ()))
    for choice in root.choices:
        found += finder.some(finder.either(choice, ()))
    is_plain = not (root.absences or root.tests or joined_columns(root))
    meetings = frozenset(route for route in finder.meetings if not _is_root(route))
    return Needs(tuple(dict.fromkeys(found)), meetings, is_plain and finder.is_whole)


def _is_root(route: Route) -> bool:
    """Whether a route leads to the root element only."""
    return len(route) == 1 and route[0] != BELOW


def joined_columns(root: Relation) -> frozenset[str]:
    """Columns bound at more than one place, whose values must agree in a join."""
    seen: set[str] = set()
    twice: set[str] = set()
    for relation in root.walk():
        for column, _ in relation.own:
            (twice if column in seen else seen).add(column)
    return frozenset(twice)


class _Finder:
    """Collects needs; `is_whole` becomes false if a need is weaker than the pattern."""

    def __init__(self) -> None:
        self.is_whole = True
        self.meetings: set[Route] = set()

    def some(self, needs: list[Need]) -> list[Need]:
        """The needs of one branch of the root; a branch without needs is always checked."""
        if not needs:
            self.is_whole = False
        return needs

    def _met_at(self, route: Route, needs: list[Need]) -> list[Need]:
        """Record a meeting if several needs share one node."""
        if len(needs) > 1:
            self.meetings.add(route)
        return needs

    def reach(self, edge: Edge, route: Route) -> list[Need]:
        """The needs of the nodes that an edge reaches."""
        relation, node = edge.relation, edge.relation.node
        assert node is not None
        if relation.absences or relation.tests:
            self.is_whole = False
        if edge.axis is Axis.ATTRIBUTE:
            return [self._attribute(relation, node, route)]
        if edge.axis is Axis.CHILD:
            return self._content(relation, node, route)
        if edge.axis is Axis.DESCENDANT:
            return self._content(relation, node, _deep(route))
        if edge.axis is Axis.DESCENDANT_OR_SELF and isinstance(node.test, AnyNode):
            if node.comparisons:
                self.is_whole = False
            return self._met_at(_deep(route), self._below(relation, _deep(route)))
        self.is_whole = False  # self::a, descendant-or-self::a
        return []

    def _below(self, relation: Relation, route: Route) -> list[Need]:
        """The needs of the branches below an element at the end of a route."""
        found = [need for edge in relation.edges for need in self.reach(edge, route)]
        for choice in relation.choices:
            found += self.either(choice, route)
        return found

    def _content(self, relation: Relation, node: PatternNode, route: Route) -> list[Need]:
        test, tests = node.test, _constants(node)
        if isinstance(test, Literal):
            tests = (Comparison("=", test.text), *tests)
        if isinstance(test, Literal | AnyText):
            if list(relation.below()):
                self.is_whole = False
            return [_need(Place(route, Watch("text", None, tests)))]
        if isinstance(test, AnyComment | AnyInstruction):
            self.is_whole = False  # the automaton does not see these nodes
            return []
        inside = (*route, test.label if isinstance(test, Name) else ANY)
        found = self._below(relation, inside)
        value = Watch("value", None, tests) if tests else None
        if found and value:
            found.append(_need(Place(inside, value)))
        if found:
            return self._met_at(inside, found)
        if isinstance(test, Name | Wildcard):
            return [_need(Place(inside, value))]
        return [_need(Place(inside, value), Place(route, Watch("text", None, tests)))]

    def _attribute(self, relation: Relation, node: PatternNode, route: Route) -> Need:
        tests = list(_constants(node))
        for edge in relation.edges:
            below = edge.relation.node
            if edge.relation.tests:  # tests of the variable's value
                self.is_whole = False
            if edge.axis is Axis.CHILD and below is not None and not list(edge.relation.below()):
                if isinstance(below.test, Literal):
                    tests += (Comparison("=", below.test.text), *_constants(below))
                    continue
                if isinstance(below.test, AnyText | AnyNode | Variable):
                    tests += _constants(below)
                    continue
            self.is_whole = False
        if relation.choices:
            self.is_whole = False
        name = node.test.label if isinstance(node.test, Name) else None
        return _need(Place(route, Watch("attribute", name, tuple(tests))))

    def either(self, choice: Choice, route: Route) -> list[Need]:
        """The union of one need of each alternative: some alternative must hold."""
        places: list[Place] = []
        for alternative in choice.alternatives:
            found = self._below(alternative, route)
            if len(found) != 1 or alternative.absences or alternative.tests:
                self.is_whole = False
            if not found:
                return []
            places += rarest(found)
        return [_need(*places)]


def rarest(needs: Iterable[Need]) -> Need:
    """The need that probably fewest messages meet: by value tests, then by length."""
    return max(needs, key=lambda need: min(map(_rareness, need)))


def _rareness(place: Place) -> tuple[int, int, int]:
    watch = place.watch
    tests = watch.tests if watch is not None else ()
    are_equal = any(test.operator == "=" for test in tests)
    return (2 if are_equal else 1 if tests else 0, len(place.route), watch is not None)


def _constants(node: PatternNode) -> tuple[Comparison, ...]:
    return tuple(c for c in node.comparisons if not isinstance(c.operand, Variable))


def _deep(route: Route) -> Route:
    return route if route[-1:] == (BELOW,) else (*route, BELOW)


def _need(*places: Place) -> Need:
    return frozenset(places)
