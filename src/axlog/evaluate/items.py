"""The values of expressions in statements: sequences of items, and their conversions.

An item is a node of the document (`Node`, a handle), a node made by the statement (`New`), or an
atomic value: a string, a number (all numbers are doubles), a truth value, a name. A node atomises
to `Untyped`, which is compared as a number with numbers and as a string with strings, as in XQuery.
Dates and times are `Dated`. Not handled: integers beyond 2 ** 53.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import isinf, isnan
from typing import Any, TypeAlias

from axlog.document.operations import Attribute
from axlog.document.operations import Item as Piece
from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.query.values import READ, double_of


class Node(int):
    """A node of the document, by its handle."""

    __slots__ = ()


class Untyped(str):
    """The value of a node, without a type."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Named:
    """A name as a value: expanded, and the prefix it was written with."""

    label: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Dated:
    """A date, a date and time, or a time of day: its type, its instant, and its text."""

    type: str
    instant: int | Fraction
    written: str = field(compare=False)


def dated(type_: str, written: str) -> Dated:
    """Cast a value to a type of dates; raises FORG0001 if it is not one."""
    instant = READ[type_](written)
    if instant is None:
        raise QueryError("FORG0001", f"{written[:100]!r} is not a valid {type_}")
    return Dated(type_, instant, written.strip())


@dataclass(frozen=True, slots=True)
class New:
    """A node made by the statement: element, attribute, text, comment, instruction, document."""

    kind: str
    pieces: tuple[Piece, ...]

    @property
    def value(self) -> str:
        """The string value."""
        return "".join(_value_of_piece(piece) for piece in self.pieces)


Atom: TypeAlias = str | float | bool | Named | Dated
Item: TypeAlias = Node | New | Atom
Items: TypeAlias = list[Item]


def _value_of_piece(piece: Piece) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, Attribute):
        return piece.value
    tag: object = piece.tag  # of a comment, a function
    if not isinstance(tag, str):
        return piece.text or ""
    return "".join(str(one) for one in piece.itertext("*", with_tail=True)).removesuffix(
        piece.tail or ""
    )


def atom(tree: Tree, item: Item) -> Atom:
    """An item's typed value."""
    if isinstance(item, Node):
        return Untyped(tree.string_value(item))
    if isinstance(item, New):
        return Untyped(item.value)
    return item


def text(tree: Tree, item: Item) -> str:
    """An item's string value."""
    value = atom(tree, item)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Named):
        local = value.label.rpartition("}")[2]
        return f"{value.prefix}:{local}" if value.prefix else local
    if isinstance(value, Dated):
        return value.written
    return written(value) if isinstance(value, float) else str(value)


def written(value: float) -> str:
    """A number as XPath writes it: without a point if it is whole."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "INF" if value > 0 else "-INF"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def joined(tree: Tree, items: Iterable[Item]) -> str:
    """The values of items, separated by spaces: a sequence as content."""
    return " ".join(text(tree, item) for item in items)


def as_number(tree: Tree, item: Item) -> float:
    """An item as a number; NaN if it is not one."""
    value = atom(tree, item)
    if isinstance(value, bool | float):
        return float(value)
    return double_of(value) if isinstance(value, str) else float("nan")


def is_true(items: Items) -> bool:
    """The effective Boolean value of a sequence."""
    if not items:
        return False
    first = items[0]
    if isinstance(first, Node | New):
        return True
    if len(items) > 1:
        raise QueryError("XPTY0004", "a condition is a sequence of several values")
    if isinstance(first, float):
        return bool(first) and not isnan(first)
    return bool(first)


_SYMBOLS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
COMPARISONS = (*_HOLDS, *_SYMBOLS)
"""The operators that `compare` knows."""


def compare(tree: Tree, symbol: str, left: Items, right: Items) -> bool:
    """A comparison of sequences: some item of the one with some item of the other.

    `eq`, `lt` and so on compare single values; an empty side makes them false, as it does in a
    condition.
    """
    holds = _HOLDS[_SYMBOLS.get(symbol, symbol)]
    ones, others = [atom(tree, i) for i in left], [atom(tree, i) for i in right]
    if symbol in _SYMBOLS and (len(ones) > 1 or len(others) > 1):
        raise QueryError("XPTY0004", f"`{symbol}` compares single values", advice="`=`")
    return any(_compare(holds, one, other) for one in ones for other in others)


def _compare(holds: Callable[[Any, Any], bool], one: Atom, other: Atom) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return holds(_as_truth(one), _as_truth(other))
    if isinstance(one, Named) or isinstance(other, Named):
        return isinstance(one, Named) and isinstance(other, Named) and holds(one.label, other.label)
    if isinstance(one, Dated) or isinstance(other, Dated):
        type_ = one.type if isinstance(one, Dated) else other.type  # type: ignore[union-attr]
        left, right = (dated(type_, v) if isinstance(v, Untyped) else v for v in (one, other))
        if not isinstance(left, Dated) or not isinstance(right, Dated) or left.type != right.type:
            raise QueryError("XPTY0004", f"{type_} is compared with a value of another type")
        return holds(left.instant, right.instant)
    if isinstance(one, float) or isinstance(other, float):
        for value in (one, other):
            if isinstance(value, str) and not isinstance(value, Untyped):
                raise QueryError("XPTY0004", "a string is compared with a number")
        return holds(*(v if isinstance(v, float) else double_of(v) for v in (one, other)))
    return holds(one, other)


def _as_truth(value: Atom) -> bool:
    if isinstance(value, Untyped):
        return value.strip() in ("true", "1")
    return bool(value)
