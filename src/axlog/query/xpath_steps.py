"""Steps to moves: the axes of XPath expressed by the axes and tests of patterns.

In XPath every upward path ends in the document node, and attributes have no children. In a pattern
the document node passes no test, and an attribute has a text below it (docs/meaning.md). So the
compiler tracks the kind of node that each step reaches (its spot), and every step becomes moves
with exactly the same meaning:

- `..` or an absolute path inside a predicate reaches the document node again. It is then the top: a
  spot on the root element, `*[not(parent::*)]`, that behaves as the document node does. From the
  top, `child::a` is `self::a`, and the comments beside the root element are its siblings.
- `following` is ancestor-or-self/following-sibling/descendant-or-self, and `preceding` likewise.
- A step that can find no node (`@a/b`, `/..`) has no moves; one that reaches two kinds of node has
  several alternatives.

(Paper 4, section 2.1, for `following` and `preceding`.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Name,
    PartialName,
    Test,
    Wildcard,
)
from axlog.query.syntax_tree import Predicate


class SpotKind(Enum):
    """The kinds of node that a path can reach."""

    DOCUMENT = "the document node"
    TOP = "the document node, represented by the root element"
    ELEMENT = "an element"
    TEXT = "a text"
    MARKUP = "a comment or a processing instruction"
    TREE = "any of these three"
    ATTRIBUTE = "an attribute"


@dataclass(frozen=True, slots=True)
class Spot:
    """A node that a path has reached, as far as it is known statically.

    `is_high`: the node may be a child of the document node.
    """

    kind: SpotKind
    is_high: bool = False

    @property
    def is_document(self) -> bool:
        return self.kind in (SpotKind.DOCUMENT, SpotKind.TOP)


DOCUMENT = Spot(SpotKind.DOCUMENT)
TOP = Spot(SpotKind.TOP)
TEXT = Spot(SpotKind.TEXT)
ATTRIBUTE = Spot(SpotKind.ATTRIBUTE)
_ANYTHING = AnyNode()
_INNER = (SpotKind.ELEMENT, SpotKind.TREE)
_BESIDES = (SpotKind.ELEMENT, SpotKind.TREE, SpotKind.TEXT, SpotKind.MARKUP)
_WITH_MARKUP = (SpotKind.MARKUP, SpotKind.TREE)
_MARKUP_TESTS = (AnyComment, AnyInstruction)
_BESIDE = (Axis.PRECEDING_SIBLING, Axis.FOLLOWING_SIBLING)


@dataclass(frozen=True, slots=True)
class Move:
    """A move to a new pattern node; without an axis it only adds conditions to the present one."""

    spot: Spot
    axis: Axis | None = None
    test: Test = _ANYTHING
    is_top: bool = False
    predicates: tuple[Predicate, ...] = ()


Moves = tuple[Move, ...]


def moves_along(axis: str, test: Test, spot: Spot) -> list[Moves]:
    """The alternative moves for a step; each ends on the spot of its last move."""
    return _ALONG[axis](test, spot)


def leads_to_one(axis: str, test: Test, spot: Spot) -> bool:
    """Whether a step finds at most one node from any node."""
    if axis in ("self", "parent"):
        return True
    if axis == "attribute":
        return isinstance(test, Name)
    return axis == "child" and spot.is_document and isinstance(test, Name | Wildcard)


def from_root(spot: Spot) -> list[Moves]:
    """The moves from a node to the top, with which an absolute path in a condition starts."""
    if spot.is_document:
        return [()]
    above = Axis.ANCESTOR_OR_SELF if spot.kind in _INNER else Axis.ANCESTOR
    found: list[Moves] = [(_to_top(above),)]
    return found + _beside_root(spot)


def _to_top(axis: Axis) -> Move:
    return Move(TOP, axis, Wildcard(), is_top=True)


def _beside_root(spot: Spot) -> list[Moves]:
    """The moves to the top from a comment or instruction beside the root element."""
    if spot.kind not in _WITH_MARKUP or not spot.is_high:
        return []
    return [(_to_top(axis),) for axis in _BESIDE]


# The axes ---------------------------------------------------------------------------------------


def _to(axis: Axis, test: Test, is_high: bool = False) -> Moves:
    """A move to the nodes that pass the test."""
    match test:
        case AnyText():
            spot = TEXT
        case AnyNode():
            spot = Spot(SpotKind.TREE, is_high)
        case AnyComment() | AnyInstruction():
            spot = Spot(SpotKind.MARKUP, is_high)
        case _:
            spot = Spot(SpotKind.ELEMENT, is_high)
    return (Move(spot, axis, test),)


def _to_element(axis: Axis, test: Test) -> list[Moves]:
    """A move along an axis that contains only elements and the document node."""
    if isinstance(test, AnyText | AnyComment | AnyInstruction):
        return []
    return [_to(axis, Wildcard() if isinstance(test, AnyNode) else test, is_high=True)]


def _stay(spot: Spot) -> Moves:
    return (Move(spot),)


def _child(test: Test, spot: Spot) -> list[Moves]:
    match spot.kind:
        case SpotKind.DOCUMENT:
            return [] if isinstance(test, AnyText) else [_to(Axis.CHILD, test, is_high=True)]
        case SpotKind.TOP:
            return [*_root_element(test), *_beside_top(test)]
        case SpotKind.ELEMENT | SpotKind.TREE:
            return [_to(Axis.CHILD, test)]
        case _:
            return []


def _root_element(test: Test) -> list[Moves]:
    """From the top to the root element, if it can pass the test."""
    if isinstance(test, Name | PartialName):
        return [_to(Axis.SELF, test, is_high=True)]
    return [_stay(Spot(SpotKind.ELEMENT, True))] if isinstance(test, Wildcard | AnyNode) else []


def _beside_top(test: Test) -> list[Moves]:
    """From the top to the comments and instructions beside the root element."""
    if not isinstance(test, AnyNode | AnyComment | AnyInstruction):
        return []
    return [(Move(Spot(SpotKind.MARKUP, True), axis, test),) for axis in _BESIDE]


def _descendant(test: Test, spot: Spot) -> list[Moves]:
    match spot.kind:
        case SpotKind.DOCUMENT:
            return [_to(Axis.DESCENDANT, test, is_high=True)]
        case SpotKind.TOP:
            inside = _to(Axis.DESCENDANT_OR_SELF, test, is_high=True)
            return [inside, *_beside_top(test)]
        case SpotKind.ELEMENT | SpotKind.TREE:
            return [_to(Axis.DESCENDANT, test)]
        case _:
            return []


def _descendant_or_self(test: Test, spot: Spot) -> list[Moves]:
    if spot.is_document:
        return [*_self(test, spot), *_descendant(test, spot)]
    if spot.kind in _INNER:
        return [_to(Axis.DESCENDANT_OR_SELF, test, spot.is_high)]
    return _self(test, spot)


def _self(test: Test, spot: Spot) -> list[Moves]:
    if isinstance(test, AnyNode):
        return [_stay(spot)]
    match spot.kind:
        case SpotKind.ELEMENT if test == Wildcard():
            return [_stay(spot)]
        case SpotKind.ELEMENT if isinstance(test, Name | PartialName):
            return [_to(Axis.SELF, test, spot.is_high)]
        case SpotKind.MARKUP if isinstance(test, _MARKUP_TESTS):
            return [_to(Axis.SELF, test, spot.is_high)]
        case SpotKind.TREE:
            return [_to(Axis.SELF, test, spot.is_high)]
        case SpotKind.TEXT if isinstance(test, AnyText):
            return [_stay(spot)]
        case _:
            return []


def _attribute(test: Test, spot: Spot) -> list[Moves]:
    if spot.kind not in _INNER or not isinstance(test, Name | Wildcard | AnyNode):
        return []
    found = Wildcard() if isinstance(test, AnyNode) else test
    return [(Move(ATTRIBUTE, Axis.ATTRIBUTE, found),)]


def _parent(test: Test, spot: Spot) -> list[Moves]:
    if spot.is_document:
        return []
    found = _to_element(Axis.PARENT, test)
    if isinstance(test, AnyNode) and spot.is_high:
        if spot.kind is SpotKind.TREE:
            found.append((_to_top(Axis.SELF),))
        elif spot.kind is SpotKind.ELEMENT:
            found.append((Move(TOP, is_top=True),))
        found += _beside_root(spot)
    return found


def _ancestor(test: Test, spot: Spot) -> list[Moves]:
    if spot.is_document:
        return []
    found = _to_element(Axis.ANCESTOR, test)
    return [*found, *from_root(spot)] if isinstance(test, AnyNode) else found


def _ancestor_or_self(test: Test, spot: Spot) -> list[Moves]:
    if spot.is_document:
        return _self(test, spot)
    if spot.kind not in _INNER:
        return [*_self(test, spot), *_ancestor(test, spot)]
    if isinstance(test, AnyNode):
        found = _to(Axis.ANCESTOR_OR_SELF, test, is_high=True)
        return [found, *from_root(spot)]
    if isinstance(test, Name | Wildcard):
        return [_to(Axis.ANCESTOR_OR_SELF, test, is_high=True)]
    return _self(test, spot)


def _sibling(axis: Axis) -> Callable[[Test, Spot], list[Moves]]:
    def along(test: Test, spot: Spot) -> list[Moves]:
        return [_to(axis, test, _may_stand_high(spot, test))] if spot.kind in _BESIDES else []

    return along


def _may_stand_high(spot: Spot, test: Test) -> bool:
    """Whether siblings may be children of the document node, which has one element."""
    is_markup = isinstance(test, AnyNode | AnyComment | AnyInstruction)
    return spot.is_high and (is_markup or spot.kind in _WITH_MARKUP)


def _beyond(axis: Axis) -> Callable[[Test, Spot], list[Moves]]:
    """`following` and `preceding`: below a sibling of the node or of one of its ancestors."""

    def along(test: Test, spot: Spot) -> list[Moves]:
        if spot.is_document:
            return []
        above = Axis.ANCESTOR if spot.kind is SpotKind.ATTRIBUTE else Axis.ANCESTOR_OR_SELF
        high = _may_stand_high(replace(spot, is_high=True), test)
        last = _to(Axis.DESCENDANT_OR_SELF, test, high)
        found = [(*_to(above, AnyNode()), *_to(axis, AnyNode()), *last)]
        if spot.kind is SpotKind.ATTRIBUTE and axis is Axis.FOLLOWING_SIBLING:
            # The content of an attribute's element follows the attribute and is not below it.
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
    """The same moves with further predicates on the last one."""
    last = moves[-1]
    return (*moves[:-1], replace(last, predicates=last.predicates + predicates))
