"""Identifiers of nodes: dynamic Dewey, never relabelled, sortable as bytes.

An id is the path of components from the root to the node. A component orders a node among its
siblings. As in DDE and CDDE (Xu, Ling, Wu and Bao, SIGMOD 2009), an ordinary document has plain
Dewey ids (1, 1.2, 1.2.7), and an insertion anywhere gets a component between its neighbours without
changing them. The difference from CDDE is the notation of "between". CDDE adds components as
vectors and compares ratios. Here a component is a sequence of integers compared lexicographically,
a prefix first, like ORDPATH's carets (O'Neil et al., SIGMOD 2004) but with any integer, odd or
even, negative or not. So bytes sort without arithmetic. Repeated insertions at one spot from one
side cost the logarithm of their number, as in CDDE. Adversarial zigzag insertions cost bytes linear
in their number, as in every scheme that never relabels (Cohen, Kaplan and Milo, PODS 2002).

Laws: ids never change. `a < b` is document order. Parent, ancestor and sibling follow from two ids.
An id contains its ancestors' ids, and their labels if it was read from a document. The byte form
sorts in document order; an ancestor's is a prefix of its descendants'. Labels are not part of
equality: a rename keeps the id.

Attributes sort before children: their component is marked. Not handled: a moved node gets a new id.
(Dynamic Dewey ids: paper 5, section 2.1.)
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering

from axlog.errors import UpdateError

Component = tuple[int, ...]
"""A position among siblings: integers compared lexicographically, prefix first."""

ATTRIBUTE_MARK = 0x01  # below every integer's first byte: attributes sort before children
_SMALL = 0x10  # first byte of 0
_SMALL_COUNT = 192  # 0 .. 191 take one byte
_LARGE = _SMALL + _SMALL_COUNT  # first byte of a larger integer with one payload byte
_LONGEST = 32  # payload bytes: integers to 2 ** 256
_NEGATIVE = _SMALL - 1  # first byte of a negative integer with one payload byte, going down
_CARET = 0xFF  # above every first byte: [5] and all below it sort before [5, 0]


def between(low: Component | None, high: Component | None) -> Component:
    """A component strictly between two neighbours; None is an open end.

    >>> between((5,), (6,)), between((5, 0), (6,)), between((5,), (5, 0)), between(None, (1,))
    ((5, 0), (5, 1), (5, -1), (0,))
    """
    if low is None:
        return (1,) if high is None or high[0] > 1 else (high[0] - 1,)
    if high is None:
        return (low[0] + 1,)
    at = 0
    while at < len(low) and at < len(high) and low[at] == high[at]:
        at += 1
    if at == len(low):  # low is a prefix of high
        return (*low, high[at] - 1)
    if low[at] + 1 < high[at]:
        return (*low[:at], low[at] + 1)
    if at + 1 < len(high):  # low < high[: at + 1] < high
        return high[: at + 1]
    if at + 1 < len(low):
        return (*low[: at + 1], low[at + 1] + 1)
    return (*low, 0)


def _encode_integer(value: int) -> bytes:
    if 0 <= value < _SMALL_COUNT:
        return bytes((_SMALL + value,))
    rest = value - _SMALL_COUNT if value > 0 else -value - 1
    size = max(1, (rest.bit_length() + 7) // 8)
    if value > 0:
        if size > _LONGEST:
            raise UpdateError("AX302", "the identifier has grown beyond its longest form")
        return bytes((_LARGE + size - 1,)) + rest.to_bytes(size, "big")
    if size > _NEGATIVE - ATTRIBUTE_MARK - 1:
        raise UpdateError("AX302", "the identifier has grown beyond its longest form")
    top: int = (1 << (8 * size)) - 1
    return bytes((_NEGATIVE - (size - 1),)) + (top - rest).to_bytes(size, "big")


@lru_cache(maxsize=4096)
def encode(component: Component, is_attribute: bool = False) -> bytes:
    """The bytes of one component; an id's key concatenates them from the root down."""
    parts = [_encode_integer(component[0])]
    for integer in component[1:]:
        parts.append(b"\xff")
        parts.append(_encode_integer(integer))
    mark = b"\x01" if is_attribute else b""
    return mark + b"".join(parts)


SHORT = tuple(_encode_integer(integer) for integer in range(256))
"""The bytes of components of one small integer, of nodes that are no attributes."""


def _decode_integer(key: bytes, at: int) -> tuple[int, int]:
    first = key[at]
    if first >= _LARGE:
        end = at + 2 + first - _LARGE
        return _SMALL_COUNT + int.from_bytes(key[at + 1 : end], "big"), end
    if first >= _SMALL:
        return first - _SMALL, at + 1
    end = at + 2 + _NEGATIVE - first
    size = end - at - 1
    return int.from_bytes(key[at + 1 : end], "big") - (1 << (8 * size)), end


def component_ends(key: bytes) -> list[int]:
    """The offset at which each component of a key ends."""
    ends: list[int] = []
    at = 0
    while at < len(key):
        if key[at] == ATTRIBUTE_MARK:
            at += 1
        _, at = _decode_integer(key, at)
        while at < len(key) and key[at] == _CARET:
            _, at = _decode_integer(key, at + 1)
        ends.append(at)
    return ends


_INTEGER = r"-?[0-9]{1,300}"
_COMPONENT = rf"@?{_INTEGER}(?:\^{_INTEGER})*"
_WRITTEN = re.compile(rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*)?")


@total_ordering
class Id:
    """A node's identifier. It never changes, and ids compare in document order.

    Parameters:
        key: Bytes that sort in document order. `Id.parse` reads the text form instead.
        labels: Labels on the path from the root to the node, if known.

    >>> a, b = Id.parse("1.2"), Id.parse("1.2.7")
    >>> a < b, a.is_ancestor_of(b), a.is_parent_of(b), str(b.parent), b.depth
    (True, True, True, '1.2', 3)
    """

    __slots__ = ("key", "labels")

    def __init__(self, key: bytes, labels: tuple[str, ...] | None = None) -> None:
        self.key = key
        self.labels = labels

    @classmethod
    def parse(cls, text: str) -> Id:
        """Return the id of a text such as `1.2^0.@1`; the inverse of `str`.

        Parameters:
            text: The text. Other texts raise `UpdateError` AX301.

        >>> Id.parse("1.2.@1")
        Id('1.2.@1')
        """
        if _WRITTEN.fullmatch(text) is None:
            raise UpdateError(
                "AX301",
                f"{text[:100]!r} is not an identifier",
                expected="components such as 1.2.7",
            )
        parts = text.split(".") if text else []
        return cls(
            b"".join(
                encode(tuple(int(i) for i in part.lstrip("@").split("^")), part.startswith("@"))
                for part in parts
            )
        )

    def components(self) -> list[tuple[Component, bool]]:
        """Return the components from the root down, each with a flag for attributes.

        >>> Id.parse("1.2^0.@1").components()
        [((1,), False), ((2, 0), False), ((1,), True)]
        """
        found = []
        start = 0
        for end in component_ends(self.key):
            is_attribute = self.key[start] == ATTRIBUTE_MARK
            integers = []
            at = start + is_attribute
            while at < end:
                integer, at = _decode_integer(self.key, at)
                integers.append(integer)
                at += 1  # past the caret, or past the end
            found.append((tuple(integers), is_attribute))
            start = end
        return found

    @property
    def depth(self) -> int:
        """The number of components; 1 for a root.

        >>> Id.parse("1.2.7").depth
        3
        """
        return len(component_ends(self.key))

    @property
    def parent(self) -> Id | None:
        """The parent's id; None for a root.

        >>> Id.parse("1.2").parent
        Id('1')
        """
        ends = component_ends(self.key)
        if len(ends) < 2:
            return None
        return Id(self.key[: ends[-2]], None if self.labels is None else self.labels[:-1])

    def ancestors(self) -> list[Id]:
        """Return the ids of the proper ancestors from the root down, with labels if this has them.

        >>> Id.parse("1.2.7").ancestors()
        [Id('1'), Id('1.2')]
        """
        return [
            Id(self.key[:end], None if self.labels is None else self.labels[: level + 1])
            for level, end in enumerate(component_ends(self.key)[:-1])
        ]

    def is_ancestor_of(self, other: Id) -> bool:
        """Return whether this is the id of a proper ancestor.

        Parameters:
            other: The id of the possible descendant.

        >>> Id.parse("1").is_ancestor_of(Id.parse("1.2.7"))
        True
        """
        return len(self.key) < len(other.key) and (
            other.key.startswith(self.key) and other.key[len(self.key)] != _CARET
        )

    def is_parent_of(self, other: Id) -> bool:
        """Return whether this is the id of the parent.

        Parameters:
            other: The id of the possible child.

        >>> Id.parse("1").is_parent_of(Id.parse("1.2.7"))
        False
        """
        return self.is_ancestor_of(other) and other.depth == self.depth + 1

    def is_sibling_of(self, other: Id) -> bool:
        """Return whether both are different children, or different attributes, of one parent.

        Parameters:
            other: The id of the possible sibling.

        >>> Id.parse("1.2").is_sibling_of(Id.parse("1.7"))
        True
        """
        if self == other or not self.key or not other.key:
            return False
        mine, theirs = self.components(), other.components()
        return mine[:-1] == theirs[:-1] and mine[-1][1] == theirs[-1][1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Id) and self.key == other.key

    def __lt__(self, other: object) -> bool:
        return self.key < other.key if isinstance(other, Id) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return ".".join(
            ("@" if is_attribute else "") + "^".join(str(integer) for integer in component)
            for component, is_attribute in self.components()
        )

    def __repr__(self) -> str:
        return f"Id({str(self)!r})"
