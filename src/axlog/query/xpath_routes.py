"""The expansion of paths to routes: each route is a chain of moves along axes of patterns.

First, unions, groups (`a/(b | c)`) and variables of `let` are expanded to trails: a start and plain
steps. Then every step becomes moves (`xpath_steps.py`). Positions are decided here: `[1]` on
`following-sibling::*` and `preceding-sibling::*` is the nearest sibling; on a step that finds at
most one node it has no effect; any other position is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from axlog.errors import QueryError, UnsupportedError
from axlog.query.pattern import Axis, Wildcard
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Constant,
    Constructor,
    Context,
    Expression,
    Group,
    Path,
    Predicate,
    Reference,
    Root,
    Sequence,
    Step,
)
from axlog.query.tokenizer import unsupported
from axlog.query.xpath_steps import (
    Moves,
    Spot,
    leads_to_one,
    moves_along,
    with_predicates,
)

MOST_ROUTES = 64

Start: TypeAlias = Root | Context | Reference


@dataclass(frozen=True, slots=True)
class Trail:
    """A path without unions: its start, and plain steps."""

    start: Start
    steps: tuple[Step | Call, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Route:
    """One chain of moves; `is_single` if it finds at most one node from its start."""

    moves: Moves
    spot: Spot
    is_single: bool
    at: int


_MERGED = {
    "child": "descendant",
    "descendant": "descendant",
    "self": "descendant-or-self",
    "descendant-or-self": "descendant-or-self",
}
"""The axis that `//` and the next axis merge to: `//a` is descendant::a."""

_NEAREST = {
    "following-sibling": Axis.NEXT_SIBLING,
    "preceding-sibling": Axis.PREVIOUS_SIBLING,
}


# Trails -------------------------------------------------------------------------------------------


class PathExpander:
    """Expands the paths of one text; `lets` holds the paths of the variables of `let`."""

    def __init__(self, text: str, lets: Mapping[str, tuple[Trail, ...]]) -> None:
        self.text = text
        self.lets = lets
        self.documents: set[str] = set()

    def trails(self, expression: Expression) -> list[Trail]:
        """The trails whose nodes together are the nodes of an expression."""
        match expression:
            case Path(start=start, steps=steps):
                return self._continued(self._start(start, expression.at), steps)
            case Binary(operator="|", left=left, right=right):
                return [*self.trails(left), *self.trails(right)]
            case Sequence(items=items):
                return [trail for item in items for trail in self.trails(item)]
            case Call(name="doc" | "document" | "collection"):
                return [Trail(self._document(expression), (), expression.at)]
        raise self._no_path(expression)

    def value_trails(self, expression: Expression) -> list[Trail]:
        """The trails of an expression of which only values matter: `a/string()` is `a` then."""
        match expression:
            case Path(start=start, steps=(*steps, Call(name="string" | "data") as last), at=at):
                match last.arguments:
                    case () | (Path(start=Context(), steps=()),):
                        return self.trails(Path(start, tuple(steps), at))
        return self.trails(expression)

    def _start(self, start: Root | Context | Reference | Expression, at: int) -> list[Trail]:
        if isinstance(start, Reference) and start.name in self.lets:
            return list(self.lets[start.name])
        if isinstance(start, Root | Context | Reference):
            return [Trail(start, (), at)]
        return self.trails(start)

    def _continued(self, found: list[Trail], steps: tuple[Step | Group | Call, ...]) -> list[Trail]:
        for step in steps:
            if isinstance(step, Group):
                inner = self._group(step)
                found = [
                    replace(trail, steps=trail.steps + more) for trail in found for more in inner
                ]
            else:
                found = [replace(trail, steps=(*trail.steps, step)) for trail in found]
            if len(found) > MOST_ROUTES:
                raise self._too_many(step.at)
        return found

    def _group(self, group: Group) -> list[tuple[Step | Call, ...]]:
        inner = self.trails(group.inside)
        for trail in inner:
            if not isinstance(trail.start, Context):
                what = "a step that starts at the document or at a variable"
                raise unsupported(self.text, trail.at, what, advice="a relative path")
        return [trail.steps for trail in inner]

    def _document(self, call: Call) -> Root:
        """`doc("...")`, `document("...")`, `collection(...)`: the document of the query.

        The document may have any name, but only one in a query.
        """
        match call.arguments:
            case (Constant(value=str(name)),):
                return self._named(name, call)
            case () if call.name == "collection":
                return self._named("", call)
        advice = f'{call.name}("...") with a string'
        raise unsupported(self.text, call.at, "a document whose name is computed", advice=advice)

    def _named(self, name: str, call: Call) -> Root:
        self.documents.add(name)
        if len(self.documents) > 1:
            raise unsupported(
                self.text,
                call.at,
                "a query over several documents",
                expected=f"one document: {', '.join(sorted(self.documents - {name}))}",
                advice="a document that holds both, or a view for each",
            )
        return Root(call.at)

    def _no_path(self, expression: Expression) -> UnsupportedError:
        construct = "a value where nodes are expected"
        if isinstance(expression, Call):
            construct = f"{expression.name}() where nodes are expected"
        elif isinstance(expression, Constructor):
            construct = "a path into a constructor"
        return unsupported(self.text, expression.at, construct, expected="a path")

    def _too_many(self, at: int) -> QueryError:
        return QueryError(
            "AX213",
            f"the path has more than {MOST_ROUTES} alternatives",
            place=place_at(self.text, at),
            advice="split it into several views",
        )

    # Routes -----------------------------------------------------------------------------------

    def routes(self, trail: Trail, spot: Spot, first: Moves = ()) -> list[Route]:
        """The routes of a trail from a spot; none if the trail can find no node."""
        if first:
            spot = first[-1].spot
        found = [Route(first, spot, True, trail.at)]
        for step in _merged(trail.steps):
            if isinstance(step, Call):
                what = f"the function {step.name}() as a step"
                raise unsupported(self.text, step.at, what, advice=f"{step.name}(a/b)")
            found = [longer for route in found for longer in self._longer(route, step)]
            if len(found) > MOST_ROUTES:
                raise self._too_many(step.at)
        return found

    def _longer(self, route: Route, step: Step) -> list[Route]:
        is_one = leads_to_one(step.axis, step.test, route.spot)
        ways = moves_along(step.axis, step.test, route.spot)
        predicates = step.predicates
        if predicates and self._is_first(predicates[0].condition):
            if is_one and not step.is_filter:
                predicates = predicates[1:]
            elif step.axis in _NEAREST and step.test == Wildcard():
                predicates, is_one = predicates[1:], True
                ways = [_nearest(way, _NEAREST[step.axis]) for way in ways]
        for predicate in predicates:
            self._check_position(predicate, step)
        return [
            Route(
                route.moves + with_predicates(way, predicates),
                way[-1].spot,
                route.is_single and is_one,
                route.at,
            )
            for way in ways
        ]

    # positions

    @staticmethod
    def _is_first(condition: Expression) -> bool:
        match condition:
            case Constant(value=1.0):
                return True
            case Binary("=" | "eq", Call(name="position"), Constant(value=1.0)):
                return True
            case Binary("=" | "eq", Constant(value=1.0), Call(name="position")):
                return True
        return False

    def _check_position(self, predicate: Predicate, step: Step) -> None:
        if not _is_position(predicate.condition):
            return
        condition = predicate.condition
        at = condition.left.at if isinstance(condition, Binary) else condition.at
        expected = "`[1]` on following-sibling::* or preceding-sibling::*"
        advice = "a condition that the node itself meets, such as [@id = ...]"
        if step.axis in _NEAREST and not step.is_filter:
            advice = f"{step.axis}::*[1][self::name] for the nearest sibling, if it has this name"
        raise unsupported(self.text, at, "this position", expected, advice)


def _is_position(condition: Expression) -> bool:
    """Whether a predicate selects by position: it is a number, or it compares position()."""
    match condition:
        case Constant(value=float()):
            return True
        case Call(name="position" | "last" | "count" | "number"):
            return True
        case Binary(left=left, right=right, operator=operator) if operator not in ("and", "or"):
            sides = (left, right)
            return any(isinstance(s, Call) and s.name in ("position", "last") for s in sides)
    return False


def _nearest(way: Moves, axis: Axis) -> Moves:
    return (replace(way[0], axis=axis),)


def _merged(steps: tuple[Step | Call, ...]) -> list[Step | Call]:
    """The steps with every `//` merged into the next step, where the meaning stays the same."""
    found: list[Step | Call] = []
    for step in steps:
        before = found[-1] if found else None
        if (
            isinstance(step, Step)
            and isinstance(before, Step)
            and before.is_slashes
            and step.axis in _MERGED
            and not step.is_filter
        ):
            found[-1] = replace(step, axis=_MERGED[step.axis])
            continue
        if isinstance(before, Step) and before.is_slashes and _has_owner(step):
            found[-1] = replace(before, test=Wildcard(), is_slashes=False)
        found.append(step)
    return found


def _has_owner(step: Step | Call) -> bool:
    """Whether the step finds nodes of elements only."""
    return isinstance(step, Step) and step.axis == "attribute"
