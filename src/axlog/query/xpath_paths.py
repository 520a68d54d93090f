"""Paths to branches of a pattern: where they hang, and what joins them to the rest of the query.

A condition gives the items that must hold at a node; no items say that it always holds, None that
it never does. Where it stands decides what it may hang elsewhere:

- Joined by `and` to everything above it, an absolute path hangs on the document node and a path of
  another variable on that variable's node (`lifted`): `//a[//c]` is two branches.
- Inside `or` and `not` everything must hang here. Then an absolute path starts at the top (see
  `xpath_steps.py`), and a path of another variable is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from axlog.errors import QueryError, UnsupportedError
from axlog.query.pattern import ValueConstraint
from axlog.query.positions import place_at
from axlog.query.syntax_tree import Constant, Expression, Reference, Root
from axlog.query.tokenizer import unsupported
from axlog.query.xpath_branches import (
    Absence,
    Choice,
    Conjunction,
    Growing,
    Holder,
    Item,
    no_parent,
)
from axlog.query.xpath_routes import Route, Routes, Trail
from axlog.query.xpath_steps import DOCUMENT, Spot, from_root

Found = list[Item] | None
"""What must hold; None if it cannot."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a condition stands: on which kind of node, as which variable, joined to what."""

    spot: Spot
    lifted: Conjunction | None = None
    variable: str | None = None

    @property
    def alone(self) -> Site:
        """The same place inside `or` or `not`."""
        return replace(self, lifted=None)


@dataclass(eq=False, slots=True)
class NodeVariable:
    """A variable of `for`: a node of the pattern."""

    node: Growing
    spot: Spot


@dataclass(eq=False)
class Variables:
    """What the variables of a query stand for.

    `nodes` are those of `for`, `paths` and `constants` those of `let`; `values` range over
    distinct-values(...) and are variables of the pattern, by their name there.
    """

    nodes: dict[str, NodeVariable] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    paths: dict[str, tuple[Trail, ...]] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    where: list[ValueConstraint] = field(default_factory=list)


@dataclass(slots=True)
class Built:
    """A route as nodes: what to hang at its start, and the node that it ends on.

    `last` is None where the route ends at its start; then conditions join the items.
    """

    items: list[Item]
    last: Growing | None
    spot: Spot

    def take(self, items: Sequence[Item]) -> None:
        if self.last is None:
            self.items += items
        else:
            self.last.take(items)


class Hanging(ABC):
    """Builds the branches of one query text; what conditions mean is left to `conditions`."""

    def __init__(self, text: str, is_xquery: bool = False) -> None:
        self.text = text
        self.is_xquery = is_xquery
        self.variables = Variables()
        self.spreading = Routes(text, self.variables.paths)
        self._fresh = 0

    @abstractmethod
    def condition(self, expression: Expression, site: Site) -> Found:
        """What must hold for the expression to be true (its effective Boolean value)."""

    def unsupported(
        self, what: str, at: int, expected: str | None = None, advice: str | None = None
    ) -> UnsupportedError:
        return unsupported(self.text, at, what, expected, advice)

    def fresh_variable(self) -> str:
        """A name for a variable of the pattern that joins two values."""
        self._fresh += 1
        return f"v{self._fresh}"

    # building

    def build(self, route: Route, lifted: Conjunction | None) -> Built | None:
        """The nodes of a route; None if one of its predicates can never hold."""
        built = Built([], None, route.spot)
        for move in route.moves:
            if move.axis is not None:
                node = Growing(move.axis, move.test)
                built.take([node])
                built.last = node
            if move.is_top:
                built.take([no_parent()])
            for predicate in move.predicates:
                site = Site(move.spot, lifted, predicate.variable)
                found = self.condition(predicate.condition, site)
                if found is None:
                    return None
                built.take(found)
        return built

    def exists(self, trails: Sequence[Trail], site: Site, tail: Sequence[Item] = ()) -> Found:
        """Some node of the paths is there, and what `tail` says holds at it."""
        return self.hang(trails, site, lambda built: built.take(tail))

    def hang(self, trails: Sequence[Trail], site: Site, finish: Callable[[Built], None]) -> Found:
        """Hang paths where they start; `finish` is shown each alternative."""
        if not trails:
            return None

        def alternatives(home: Site) -> Found:
            routes = [route for trail in trails for route in self.routes_of(trail, home)]
            built = [self.build(r, home.lifted if len(routes) == 1 else None) for r in routes]
            possible = [each for each in built if each is not None]
            for each in possible:
                finish(each)
            return either([each.items for each in possible], home)

        return self.at_home(trails, site, alternatives)

    def at_home(self, trails: Sequence[Trail], site: Site, make: Callable[[Site], Found]) -> Found:
        """What is made where the paths start; it is hung there, if that is not the site asked."""
        home, holder = self._home(trails, site)
        found = make(home)
        if holder is None or found is None:
            return found
        holder.take(found)
        return []

    def routes_of(self, trail: Trail, site: Site) -> list[Route]:
        """The routes of a trail that starts at this site, or at the document."""
        if isinstance(trail.start, Root):
            starts = from_root(site.spot)
            return [r for way in starts for r in self.spreading.routes(trail, site.spot, way)]
        if isinstance(trail.start, Reference) and trail.start.name != site.variable:
            raise self._elsewhere(trail.start)
        return self.spreading.routes(trail, site.spot)

    # where paths start

    def start_of(self, trail: Trail, site: Site) -> str:
        """`.` for here, `/` for the document, else the variable."""
        if isinstance(trail.start, Root):
            return "/"
        if isinstance(trail.start, Reference) and trail.start.name != site.variable:
            return trail.start.name
        return "."

    def _home(self, trails: Sequence[Trail], site: Site) -> tuple[Site, Holder | None]:
        """The site that paths are built at, and who takes them if it is not the one asked."""
        if site.lifted is None:
            return site, None
        starts = {self.start_of(trail, site) for trail in trails}
        if starts == {"/"}:
            return Site(DOCUMENT, site.lifted), site.lifted
        names = starts - {"/", "."}
        if not names:
            return site, None
        name = min(names)
        if len(starts) > 1:
            for trail in trails:
                if isinstance(trail.start, Reference):
                    raise self._elsewhere(trail.start)
        variable = self.node_variable(name, trails[0].at)
        return Site(variable.spot, site.lifted, name), variable.node

    def node_variable(self, name: str, at: int) -> NodeVariable:
        """The node that a variable stands for."""
        found = self.variables.nodes.get(name)
        if found is not None:
            return found
        if name in self.variables.values or name in self.variables.constants:
            raise self.unsupported(f"a path from ${name}, which is a value,", at)
        raise QueryError(
            "AX203",
            f"${name} is used but never declared, or not visible here",
            place=place_at(self.text, at),
        )

    def _elsewhere(self, start: Reference) -> UnsupportedError:
        self.node_variable(start.name, start.at)
        return self.unsupported(
            f"${start.name} beside another node inside `or`, `not` or a union",
            start.at,
            expected="conditions on one node inside `or` and `not`",
            advice="join the conditions by `and`, or make several views",
        )


def either(alternatives: Sequence[list[Item]], site: Site) -> Found:
    """One of the alternatives holds."""
    if not alternatives:
        return None
    if len(alternatives) == 1:
        return alternatives[0]
    if not all(alternatives):  # one of them always holds
        return []
    return [Choice([Conjunction(site.spot == DOCUMENT, items) for items in alternatives])]


def absent(found: Found, site: Site) -> Found:
    """What was found does not hold."""
    if found is None:
        return []
    return [Absence(Conjunction(site.spot == DOCUMENT, found))] if found else None
