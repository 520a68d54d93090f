"""The compiler of paths: XPath paths to branches of a pattern, attached where they start.

A condition compiles to the branches and comparisons that must hold at a node (`Conditions`). Its
location decides which paths may be attached elsewhere:

- A condition that is joined by `and` to everything above it may use other nodes. An absolute path
  is attached to the document node, and a path from another variable to that variable's node
  (`lift_to`): `//a[//c]` has two branches.
- Inside `or` and `not`, everything must be attached at the location itself. An absolute path then
  starts at the top (see `xpath_steps.py`), and a path from another variable is refused.

Paths and conditions are mutually recursive, as predicates are conditions. The compiler of
conditions is passed in as a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from axlog.errors import QueryError, UnsupportedError
from axlog.query.pattern import ValueConstraint
from axlog.query.positions import place_at
from axlog.query.syntax_tree import Call, Constant, Expression, Reference, Root
from axlog.query.tokenizer import unsupported
from axlog.query.xpath_branches import (
    Anchor,
    Condition,
    Conditions,
    ConjunctionBuilder,
    NodeBuilder,
    NotBuilder,
    OrBuilder,
    without_parent,
)
from axlog.query.xpath_routes import PathExpander, Route, Trail
from axlog.query.xpath_steps import DOCUMENT, Spot, from_root


@dataclass(frozen=True, slots=True)
class Location:
    """Where a condition is written: at which kind of node, and under which variable's name.

    `lift_to` takes the absolute paths of the condition. It is None inside `or` and `not`.
    """

    spot: Spot
    lift_to: ConjunctionBuilder | None = None
    variable: str | None = None

    @property
    def isolated(self) -> Location:
        """The same location inside `or` or `not`."""
        return replace(self, lift_to=None)


@dataclass(eq=False, slots=True)
class NodeVariable:
    """A variable of `for`: a node of the pattern."""

    node: NodeBuilder
    spot: Spot


@dataclass(eq=False)
class Variables:
    """The meaning of the variables of a query.

    `nodes` are those of `for`, `paths` and `constants` those of `let`. `values` range over
    distinct-values(...); they are variables of the pattern, by their name there.
    """

    nodes: dict[str, NodeVariable] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    paths: dict[str, tuple[Trail, ...]] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    where: list[ValueConstraint] = field(default_factory=list)


class Names:
    """The names of a pattern's nodes and variables, each used once."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._variables = 0

    def new(self, wanted: str) -> str:
        """The wanted name as a word; numbered if it is used already."""
        word = re.sub(r"\W", "_", wanted)
        word = word if re.match(r"[^\W\d]", word) else f"n{word}"
        name, number = word, 1
        while name in self._used:
            number += 1
            name = f"{word}_{number}"
        self._used.add(name)
        return name

    def new_variable(self) -> str:
        """A name for a variable that joins two values."""
        self._variables += 1
        return self.new(f"v{self._variables}")


@dataclass(slots=True)
class BuiltRoute:
    """A route as nodes: the conditions at its start, and the builder of its last node.

    `last` is None where the route ends at its start; further conditions are then added there.
    """

    items: list[Condition]
    last: NodeBuilder | None
    spot: Spot

    def add(self, items: Sequence[Condition]) -> None:
        if self.last is None:
            self.items += items
        else:
            self.last.add(items)


class PathCompiler:
    """Compiles the paths of one query text; `condition` compiles their predicates."""

    def __init__(self, text: str, condition: Callable[[Expression, Location], Conditions]) -> None:
        self.text = text
        self.variables = Variables()
        self.names = Names()
        self.expander = PathExpander(text, self.variables.paths)
        self._condition = condition

    def exists(
        self, trails: Sequence[Trail], location: Location, tail: Sequence[Condition] = ()
    ) -> Conditions:
        """The paths find a node at which the conditions of `tail` hold."""
        return self.attach(trails, location, lambda built: built.add(tail))

    def attach(
        self, trails: Sequence[Trail], location: Location, finish: Callable[[BuiltRoute], None]
    ) -> Conditions:
        """Attach paths where they start; `finish` is called with every alternative."""
        if not trails:
            return None

        def alternatives(start: Location) -> Conditions:
            routes = [route for trail in trails for route in self.routes_of(trail, start)]
            lift_to = start.lift_to if len(routes) == 1 else None
            built = [self.build(route, lift_to) for route in routes]
            possible = [each for each in built if each is not None]
            for each in possible:
                finish(each)
            return any_of([each.items for each in possible], start)

        return self.at_start(trails, location, alternatives)

    def at_start(
        self,
        trails: Sequence[Trail],
        location: Location,
        make: Callable[[Location], Conditions],
    ) -> Conditions:
        """Make conditions where the paths start; elsewhere they are attached there at once."""
        start, anchor = self._start_location(trails, location)
        found = make(start)
        if anchor is None or found is None:
            return found
        anchor.add(found)
        return []

    def build(self, route: Route, lift_to: ConjunctionBuilder | None) -> BuiltRoute | None:
        """The nodes of a route; None if one of its predicates can never hold."""
        built = BuiltRoute([], None, route.spot)
        for move in route.moves:
            if move.axis is not None:
                node = NodeBuilder(move.axis, move.test)
                built.add([node])
                built.last = node
            if move.is_top:
                built.add([without_parent()])
            for predicate in move.predicates:
                location = Location(move.spot, lift_to, predicate.variable)
                found = self._condition(predicate.condition, location)
                if found is None:
                    return None
                built.add(found)
        return built

    # the start of paths

    def routes_of(self, trail: Trail, location: Location) -> list[Route]:
        """The routes of a trail that starts at this location, or at the document."""
        if isinstance(trail.start, Root):
            starts = from_root(location.spot)
            return [r for way in starts for r in self.expander.routes(trail, location.spot, way)]
        if isinstance(trail.start, Reference) and trail.start.name != location.variable:
            raise self._elsewhere(trail.start)
        return self.expander.routes(trail, location.spot)

    def start_of(self, trail: Trail, location: Location) -> str:
        """`.` for the location itself, `/` for the document, else the variable."""
        if isinstance(trail.start, Root):
            return "/"
        if isinstance(trail.start, Reference) and trail.start.name != location.variable:
            return trail.start.name
        return "."

    def _start_location(
        self, trails: Sequence[Trail], location: Location
    ) -> tuple[Location, Anchor | None]:
        """The location where paths are built, and the anchor for them if it is another one."""
        if location.lift_to is None:
            return location, None
        starts = {self.start_of(trail, location) for trail in trails}
        if starts == {"/"}:
            return Location(DOCUMENT, location.lift_to), location.lift_to
        names = starts - {"/", "."}
        if not names:
            return location, None
        name = min(names)
        if len(starts) > 1:
            for trail in trails:
                if isinstance(trail.start, Reference):
                    raise self._elsewhere(trail.start)
        variable = self.node_variable(name, trails[0].at)
        return Location(variable.spot, location.lift_to, name), variable.node

    def node_variable(self, name: str, at: int) -> NodeVariable:
        """The node that a variable refers to."""
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

    # errors

    def arguments(self, call: Call, count: int) -> tuple[Expression, ...]:
        """The arguments of a call, which must be `count` in number."""
        if len(call.arguments) != count:
            construct = f"{call.name}() with {len(call.arguments)} arguments"
            expected = "1 argument" if count == 1 else f"{count} arguments"
            raise self.unsupported(construct, call.at, expected=expected)
        return call.arguments

    def unsupported(
        self, construct: str, at: int, expected: str | None = None, advice: str | None = None
    ) -> UnsupportedError:
        return unsupported(self.text, at, construct, expected, advice)

    def _elsewhere(self, start: Reference) -> UnsupportedError:
        self.node_variable(start.name, start.at)
        return self.unsupported(
            f"${start.name} beside another node inside `or`, `not` or a union",
            start.at,
            expected="conditions on one node inside `or` and `not`",
            advice="join the conditions by `and`, or make several views",
        )


def any_of(alternatives: Sequence[list[Condition]], location: Location) -> Conditions:
    """At least one of the alternatives holds."""
    if not alternatives:
        return None
    if len(alternatives) == 1:
        return alternatives[0]
    if not all(alternatives):  # an alternative without conditions always holds
        return []
    is_root = location.spot == DOCUMENT
    return [OrBuilder([ConjunctionBuilder(is_root, items) for items in alternatives])]


def none_of(conditions: Conditions, location: Location) -> Conditions:
    """The conditions do not all hold."""
    if conditions is None:
        return []
    if not conditions:
        return None
    return [NotBuilder(ConjunctionBuilder(location.spot == DOCUMENT, conditions))]
