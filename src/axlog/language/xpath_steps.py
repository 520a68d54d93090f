"""Where the steps of a path lead: XPath's axes over the axes and tests that patterns have.

XPath knows a document node that every upward path ends in, and attributes without children. In a
pattern the document node passes no test, and an attribute has a text below it (DESIGN section 3).
So the kind of node that a step stands on is followed through the path, and every step becomes moves
that mean exactly the same there:

- The document node is reached again (by `..` or an absolute path inside a predicate) as the top: a
  place that stands on the root element, `*[not(parent::*)]`, and acts as the document node does:
  from there `child::a` is `self::a`.
- `following` is ancestor-or-self/following-sibling/descendant-or-self (P4 2.1), `preceding` alike.
- What can lead nowhere (`@a/b`, `/..`) has no route; what leads to two kinds of node has several.

`node()` is an element or a text: comments and processing instructions are never found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from axlog.language.pattern import AnyNode, AnyText, Axis, Name, Test, Wildcard
from axlog.language.xpath_tree import Predicate


class SpotKind(Enum):
    """What a node that a path has reached can be."""

    DOCUMENT = "the document node"
    TOP = "the document node, standing on the root element"
    ELEMENT = "an element"
    TEXT = "a text"
    TREE = "an element or a text"
    ATTRIBUTE = "an attribute"


@dataclass(frozen=True, slots=True)
class Spot:
    """What is known of a node that a path has reached."""

    kind: SpotKind
    may_be_root: bool = False

    @property
    def is_document(self) -> bool:
        return self.kind in (SpotKind.DOCUMENT, SpotKind.TOP)


DOCUMENT = Spot(SpotKind.DOCUMENT)
TOP = Spot(SpotKind.TOP)
TEXT = Spot(SpotKind.TEXT)
ATTRIBUTE = Spot(SpotKind.ATTRIBUTE)
_ANYTHING = AnyNode()
_INNER = (SpotKind.ELEMENT, SpotKind.TREE)
_BESIDES = (SpotKind.ELEMENT, SpotKind.TREE, SpotKind.TEXT)


@dataclass(frozen=True, slots=True)
class Move:
    """One pattern node to come; without an axis it stays where it is and only adds conditions."""

    spot: Spot
    axis: Axis | None = None
    test: Test = _ANYTHING
    is_top: bool = False
    predicates: tuple[Predicate, ...] = ()


Moves = tuple[Move, ...]


def moves_along(axis: str, test: Test, spot: Spot) -> list[Moves]:
    """Every way that a step means in a pattern; each ends on the spot of its last move."""
    return _ALONG[axis](test, spot)


def leads_to_one(axis: str, test: Test, spot: Spot) -> bool:
    """Whether a step finds at most one node from any node."""
    if axis in ("self", "parent"):
        return True
    if axis == "attribute":
        return isinstance(test, Name)
    return axis == "child" and spot.is_document


def from_root(spot: Spot) -> Moves:
    """The move from a node to the top: how an absolute path starts inside a condition."""
    match spot.kind:
        case SpotKind.DOCUMENT | SpotKind.TOP:
            return ()
        case SpotKind.ELEMENT | SpotKind.TREE:
            return (Move(TOP, Axis.ANCESTOR_OR_SELF, Wildcard(), is_top=True),)
        case SpotKind.TEXT | SpotKind.ATTRIBUTE:
            return (Move(TOP, Axis.ANCESTOR, Wildcard(), is_top=True),)


# The axes ---------------------------------------------------------------------------------------


def _to(axis: Axis, test: Test, may_be_root: bool = False) -> Moves:
    """A move to whatever passes the test."""
    match test:
        case AnyText():
            spot = TEXT
        case AnyNode():
            spot = Spot(SpotKind.TREE, may_be_root)
        case _:
            spot = Spot(SpotKind.ELEMENT, may_be_root)
    return (Move(spot, axis, test),)


def _to_element(axis: Axis, test: Test, may_be_root: bool = True) -> list[Moves]:
    """A move along an axis that has elements only."""
    if isinstance(test, AnyText):
        return []
    return [_to(axis, Wildcard() if isinstance(test, AnyNode) else test, may_be_root)]


def _stay(spot: Spot) -> Moves:
    return (Move(spot),)


def _child(test: Test, spot: Spot) -> list[Moves]:
    match spot.kind:
        case SpotKind.DOCUMENT:
            return _to_element(Axis.CHILD, test)
        case SpotKind.TOP:
            if isinstance(test, Name):
                return [_to(Axis.SELF, test, may_be_root=True)]
            return [] if isinstance(test, AnyText) else [_stay(Spot(SpotKind.ELEMENT, True))]
        case SpotKind.ELEMENT | SpotKind.TREE:
            return [_to(Axis.CHILD, test)]
        case _:
            return []


def _descendant(test: Test, spot: Spot) -> list[Moves]:
    match spot.kind:
        case SpotKind.DOCUMENT:
            return [_to(Axis.DESCENDANT, test, may_be_root=True)]
        case SpotKind.TOP:
            return [_to(Axis.DESCENDANT_OR_SELF, test, may_be_root=True)]
        case SpotKind.ELEMENT | SpotKind.TREE:
            return [_to(Axis.DESCENDANT, test)]
        case _:
            return []


def _descendant_or_self(test: Test, spot: Spot) -> list[Moves]:
    if spot.is_document:
        return [*_self(test, spot), *_descendant(test, spot)]
    if spot.kind in _INNER:
        return [_to(Axis.DESCENDANT_OR_SELF, test, spot.may_be_root)]
    return _self(test, spot)


def _self(test: Test, spot: Spot) -> list[Moves]:
    if isinstance(test, AnyNode):
        return [_stay(spot)]
    match spot.kind:
        case SpotKind.ELEMENT if isinstance(test, Wildcard):
            return [_stay(spot)]
        case SpotKind.ELEMENT if isinstance(test, Name):
            return [_to(Axis.SELF, test, spot.may_be_root)]
        case SpotKind.TREE:
            return [_to(Axis.SELF, test, spot.may_be_root)]
        case SpotKind.TEXT if isinstance(test, AnyText):
            return [_stay(spot)]
        case _:
            return []


def _attribute(test: Test, spot: Spot) -> list[Moves]:
    if spot.kind not in _INNER or isinstance(test, AnyText):
        return []
    found = Wildcard() if isinstance(test, AnyNode) else test
    return [(Move(ATTRIBUTE, Axis.ATTRIBUTE, found),)]


def _parent(test: Test, spot: Spot) -> list[Moves]:
    if spot.is_document:
        return []
    found = _to_element(Axis.PARENT, test)
    if isinstance(test, AnyNode) and spot.may_be_root:
        found.append((Move(TOP, is_top=True),))
    return found


def _ancestor(test: Test, spot: Spot) -> list[Moves]:
    if spot.is_document:
        return []
    found = _to_element(Axis.ANCESTOR, test)
    return [*found, from_root(spot)] if isinstance(test, AnyNode) else found


def _ancestor_or_self(test: Test, spot: Spot) -> list[Moves]:
    if spot.is_document or (spot.kind is SpotKind.TEXT and isinstance(test, AnyText)):
        return _self(test, spot)
    if spot.kind is SpotKind.ATTRIBUTE:
        return [*_self(test, spot), *_ancestor(test, spot)]
    if isinstance(test, AnyNode):
        return [_to(Axis.ANCESTOR_OR_SELF, test, may_be_root=True), from_root(spot)]
    if isinstance(test, AnyText):
        return _self(test, spot)
    return [_to(Axis.ANCESTOR_OR_SELF, test, may_be_root=True)]


def _sibling(axis: Axis) -> Callable[[Test, Spot], list[Moves]]:
    def along(test: Test, spot: Spot) -> list[Moves]:
        return [_to(axis, test)] if spot.kind in _BESIDES else []

    return along


def _beyond(axis: Axis) -> Callable[[Test, Spot], list[Moves]]:
    """`following` and `preceding`: below a sibling of the node or of one of its ancestors."""

    def along(test: Test, spot: Spot) -> list[Moves]:
        if spot.is_document:
            return []
        above = Axis.ANCESTOR if spot.kind is SpotKind.ATTRIBUTE else Axis.ANCESTOR_OR_SELF
        last = _to(Axis.DESCENDANT_OR_SELF, test)
        found = [(*_to(above, AnyNode()), *_to(axis, AnyNode()), *last)]
        if spot.kind is SpotKind.ATTRIBUTE and axis is Axis.FOLLOWING_SIBLING:
            # What an attribute's element holds comes after the attribute and is not below it.
            found.append((*_to(Axis.PARENT, Wildcard()), *_to(Axis.DESCENDANT, test)))
        return found

    return along


_ALONG: dict[str, Callable[[Test, Spot], list[Moves]]] = {
    "ancestor": _ancestor,
    "ancestor-or-self": _ancestor_or_self,
    "attribute": _attribute,
    "child": _child,
    "descendant": _descendant,
    "descendant-or-self": _descendant_or_self,
    "following": _beyond(Axis.FOLLOWING_SIBLING),
    "following-sibling": _sibling(Axis.FOLLOWING_SIBLING),
    "parent": _parent,
    "preceding": _beyond(Axis.PRECEDING_SIBLING),
    "preceding-sibling": _sibling(Axis.PRECEDING_SIBLING),
    "self": _self,
}


def with_predicates(moves: Moves, predicates: tuple[Predicate, ...]) -> Moves:
    """The same way with conditions at its end."""
    last = moves[-1]
    return (*moves[:-1], replace(last, predicates=last.predicates + predicates))
