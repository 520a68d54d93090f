"""The records of a large document, computed from its bytes with numpy.

lxml writes the parsed document again, in one call: then every `<` and `>` belongs to a tag, every
`"` in a tag delimits a value, and attributes have one space before them. So tags, texts and
attributes are found by the positions of single bytes, without a Python object for each node.

Law: `records_of` gives the records of `Recorder` for the same document, or None where it does not
apply: comments, instructions, namespaces, `xml:space`, and input over a limit, which `Recorder`
refuses with its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from axlog.document.parser import Element, Limits
from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, NONE, TEXT, NodeKind

Column = np.ndarray[Any, np.dtype[Any]]

SMALLEST = 50_000
"""Bytes below which one record after the other is as fast."""

_XML = "{http://www.w3.org/XML/1998/namespace}"
_SPACES = b" \t\r\n"
_LONGEST_NAME = 32
_BUCKETS = 1 << 16
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)
_REFERENCE = re.compile(rb"&[^;]*;")
_WRITTEN = {
    b"&amp;": b"&", b"&lt;": b"<", b"&gt;": b">", b"&quot;": b'"',
    b"&#9;": b"\t", b"&#10;": b"\n", b"&#13;": b"\r",
}  # fmt: skip
"""The references that lxml writes."""


class Records(NamedTuple):
    """The nodes in document order, and all texts, one after the other."""

    parents: Column
    kinds: Column
    labels: Column  # the index of a name, or of a text
    text_bytes: bytes
    text_starts: Column
    levels: Column | None = None  # nodes above, if they are known


class _Tags(NamedTuple):
    """The tags of elements that begin, in document order."""

    starts: Column
    ends: Column
    level: Column  # elements above
    is_empty: Column


def records_of(
    root: Element, limits: Limits, keep_whitespace: bool, name: Callable[[str], int]
) -> Records | None:
    """Return the records of a document without namespaces; None: `Recorder` must read it.

    `name` gives the index of a name; those of attributes begin with `@`.
    """
    if root.getprevious() is not None or root.getnext() is not None:
        return None
    text = etree.tostring(root, encoding="UTF-8")
    if len(text) < SMALLEST:
        return None
    try:
        return _Reader(root, text, limits, keep_whitespace, name).records()
    except KeyError:  # a reference to an entity
        return None


class _Reader:
    def __init__(
        self, root: Element, text: bytes, limits: Limits, keeps: bool, name: Callable[[str], int]
    ) -> None:
        self.root = root
        self.text = text
        self.limits = limits
        self.keeps = keeps
        self.name = name
        self.bytes = np.frombuffer(text, dtype=np.uint8)
        self.kind = np.int32 if len(text) < 1 << 31 else np.int64  # of positions
        self.opening = self._where(b"<")
        self.closing = self._where(b">")

    def _where(self, byte: bytes) -> Column:
        return np.flatnonzero(self.bytes == byte[0]).astype(self.kind)

    def records(self) -> Records | None:
        after_opening = self.bytes[self.opening + 1]
        if (after_opening == ord("!")).any() or (after_opening == ord("?")).any():
            return None  # comments, instructions
        begins = after_opening != ord("/")
        is_empty = self.bytes[self.closing - 1] == ord("/")
        steps = begins.astype(np.int8) * 2 - 1
        steps -= is_empty
        after = np.cumsum(steps, dtype=np.int32)  # elements open after each tag
        level = (after - steps)[begins]
        if int(level.max()) >= self.limits.depth:
            return None
        tags = _Tags(self.opening[begins], self.closing[begins], level, is_empty[begins])
        by_level = [
            np.flatnonzero(level == each).astype(np.int32) for each in range(int(level.max()) + 1)
        ]

        elements = np.full(len(level), NONE, dtype=np.int32)
        for above, below in pairwise(by_level):
            elements[below] = above[np.searchsorted(above, below) - 1]
        quotes = self._where(b'"')
        inside = np.searchsorted(tags.starts, quotes, side="right") - 1
        is_inside = quotes < tags.ends[inside]
        quotes, inside = quotes[is_inside], inside[is_inside]
        spaces = self._spaces(tags, inside[::2])
        labels = self._element_names(tags, inside[::2], spaces)
        attributes = self._attributes(quotes, inside, spaces)
        if labels is None or attributes is None:
            return None
        texts = self._texts(after, begins, is_empty, by_level)
        return self._merged(tags, elements, labels, attributes, texts)

    # Names --------------------------------------------------------------------------------------

    def _spaces(self, tags: _Tags, owners: Column) -> Column:
        """The spaces in the tags that have attributes, in order."""
        if not len(owners):
            return owners
        own = owners[np.r_[True, owners[1:] != owners[:-1]]]
        places = _places(tags.starts[own], (tags.ends - tags.starts)[own], self.kind)
        spaces: Column = places[self.bytes[places] == ord(" ")]
        return spaces

    def _element_names(self, tags: _Tags, owners: Column, spaces: Column) -> Column | None:
        ends = tags.ends - tags.is_empty.astype(self.kind)
        ends[owners] = spaces[np.searchsorted(spaces, tags.starts[owners])]
        return self._names(tags.starts + 1, ends, "")

    def _names(self, starts: Column, ends: Column, mark: str) -> Column | None:
        """The name index of each name; None if one is long or has an unknown prefix."""
        sizes = ends - starts
        if not len(sizes):
            return np.empty(0, dtype=np.int32)
        if int(sizes.max()) > min(_LONGEST_NAME, self.limits.name):
            return None
        words = _words(self.text, starts, sizes)
        group = _grouped(sizes, words)
        if group is None:
            return None
        found = np.zeros(_BUCKETS, dtype=np.int32)
        first = np.full(_BUCKETS, NONE, dtype=np.int64)
        first[group] = np.arange(len(group))  # any of each group
        for bucket in np.flatnonzero(first != NONE).tolist():
            at = first[bucket]
            written = self.text[starts[at] : ends[at]].decode()
            prefix, colon, local = written.partition(":")
            if colon and (prefix != "xml" or local == "space"):
                return None
            found[bucket] = self.name(mark + (_XML + local if colon else written))
        return found[group]

    def _attributes(
        self, quotes: Column, inside: Column, spaces: Column
    ) -> tuple[Column, Column, Column, Column, Column] | None:
        """For each attribute its element, its name, the start of it, and both ends of the value.

        `quotes` are those in tags, `inside` the tags that they are in.
        """
        starts, ends, elements = quotes[::2] + 1, quotes[1::2], inside[::2]
        names = spaces[np.searchsorted(spaces, starts) - 1] + 1
        labels = self._names(names, starts - 2, "@")
        return None if labels is None else (elements, labels, names, starts, ends)

    # Texts --------------------------------------------------------------------------------------

    def _texts(
        self, after: Column, begins: Column, is_empty: Column, by_level: list[Column]
    ) -> tuple[Column, Column, Column]:
        """For each kept text the element around it, and both ends."""
        starts, ends = self.closing[:-1] + 1, self.opening[1:]
        has_text: Column = np.flatnonzero(starts < ends)
        starts, ends = starts[has_text], ends[has_text]
        number = np.cumsum(begins, dtype=np.int32) - 1  # of the last element that began
        is_first: Column = (begins & ~is_empty)[has_text]
        if not self.keeps:
            is_whole = is_first & ~begins[has_text + 1]  # all that an element has
            first, last = self.bytes[starts], self.bytes[ends - 1]
            doubtful = (first <= ord(" ")) | (first == ord("&"))
            doubtful &= (last <= ord(" ")) | (last == ord(";"))
            second = self.bytes[np.minimum(starts + 1, ends - 1)]
            doubtful &= (second <= ord(" ")) | (second == ord("&")) | (first == ord("&"))
            keep = np.ones(len(has_text), dtype=np.bool_)
            for at in np.flatnonzero(doubtful & ~is_whole).tolist():
                written = self.text[starts[at] : ends[at]]
                keep[at] = bool(_resolved(written).strip(_SPACES))
            has_text, starts, ends, is_first = (
                each[keep] for each in (has_text, starts, ends, is_first)
            )
        around = number[has_text]
        level = after[has_text] - 1
        for each, elements in enumerate(by_level):
            tails = np.flatnonzero((level == each) & ~is_first)
            around[tails] = elements[np.searchsorted(elements, around[tails], side="right") - 1]
        return around, starts, ends

    # Together -----------------------------------------------------------------------------------

    def _merged(
        self,
        tags: _Tags,
        parents: Column,
        labels: Column,
        attributes: tuple[Column, Column, Column, Column, Column],
        texts: tuple[Column, Column, Column],
    ) -> Records | None:
        owners, names, written, value_starts, value_ends = attributes
        around, text_starts, text_ends = texts
        sizes = [len(tags.starts), len(owners), len(owners), len(around)]
        places = np.concatenate([tags.starts, written, value_starts, text_starts])
        order = np.argsort(places, kind="stable")  # four sorted runs
        number = np.empty(len(order), dtype=np.int32)
        number[order] = np.arange(1, len(order) + 1, dtype=np.int32)
        of_element, of_attribute = number[: sizes[0]], number[sizes[0] : sizes[0] + sizes[1]]

        above = np.where(parents == NONE, DOCUMENT_NODE, of_element[parents])
        every_parent = np.concatenate([above, of_element[owners], of_attribute, of_element[around]])
        kind = np.repeat(np.array([ELEMENT, ATTRIBUTE, TEXT, TEXT], dtype=np.int8), sizes)[order]
        label = np.concatenate([labels, names, np.zeros(sizes[2] + sizes[3], dtype=np.int32)])[
            order
        ]
        is_text = kind == TEXT
        own = np.arange(sizes[3], dtype=np.int32)
        values = np.arange(sizes[3], sizes[2] + sizes[3], dtype=np.int32)
        label[is_text] = np.concatenate([values, own])[order[is_text] - sizes[0] - sizes[1]]
        levels = tags.level.astype(np.int16)
        level = np.concatenate([levels, levels[owners] + 1, levels[owners] + 2, levels[around] + 1])

        starts = np.concatenate([text_starts, value_starts])
        ends = np.concatenate([text_ends, value_ends])
        stored = self._stored(starts, ends, len(around))
        if stored is None:
            return None
        return Records(
            np.concatenate([[NONE], every_parent[order]]).astype(np.int32),
            np.concatenate([[int(NodeKind.DOCUMENT)], kind]).astype(np.int8),
            np.concatenate([[NONE], label]).astype(np.int32),
            *stored,
            np.concatenate([[-1], level[order]]).astype(np.int16),
        )

    def _stored(self, starts: Column, ends: Column, own: int) -> tuple[bytes, Column] | None:
        """All texts, one after the other, and where each begins; None if one is too long.

        The first `own` are texts of elements, the others values of attributes.
        """
        sizes = ends - starts
        if int(sizes.max(initial=0)) > self.limits.text:
            return None
        resolved: dict[int, bytes] = {}
        has_references = b"&" in self.text
        references = self._where(b"&") if has_references else ()
        for first, last in ((0, own), (own, len(starts))) if has_references else ():
            found = np.searchsorted(starts[first:last], references, side="right") - 1 + first
            for at in np.unique(found[found >= first]).tolist():
                resolved[at] = _resolved(self.text[starts[at] : ends[at]])
                sizes[at] = len(resolved[at])
        spans = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=spans[1:])
        texts = etree.tostring(self.root, method="text", encoding="UTF-8")
        if len(texts) != spans[own]:  # white space was dropped
            texts = b"".join(self._pieces(starts, ends, resolved, 0, own))
        if max(resolved, default=0) >= own:
            values = b"".join(self._pieces(starts, ends, resolved, own, len(starts)))
        else:
            places = _places(starts[own:], sizes[own:], self.kind)
            values = self.bytes[places].tobytes()
        return texts + values, spans

    def _pieces(
        self, starts: Column, ends: Column, resolved: dict[int, bytes], first: int, last: int
    ) -> list[bytes]:
        text = self.text
        spans = zip(starts[first:last].tolist(), ends[first:last].tolist(), strict=True)
        pieces = [text[start:end] for start, end in spans]
        for at, piece in resolved.items():
            if first <= at < last:
                pieces[at - first] = piece
        return pieces


def _places(starts: Column, sizes: Column, kind: Any) -> Column:
    """The positions of all bytes of some pieces, one piece after the other."""
    places: Column = np.repeat(starts - (np.cumsum(sizes) - sizes).astype(kind), sizes)
    places += np.arange(len(places), dtype=kind)
    return places


def _resolved(text: bytes) -> bytes:
    """A text with the characters for its references; an entity that is not resolved is refused."""
    return _REFERENCE.sub(lambda found: _WRITTEN[found[0]], text) if b"&" in text else text


def _grouped(sizes: Column, words: list[Column]) -> Column | None:
    """A number below `_BUCKETS` for each name, the same for equal ones only; None: none found."""
    mixed = sizes.astype(np.uint64)
    for word in words:
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    for shift in (48, 32, 16):  # usually the first gives different names different buckets
        bucket = ((mixed >> np.uint64(shift)) & np.uint64(_BUCKETS - 1)).astype(np.int64)
        member = np.empty(_BUCKETS, dtype=np.int64)
        member[bucket] = np.arange(len(bucket))
        other = member[bucket]
        if (sizes == sizes[other]).all() and all((word == word[other]).all() for word in words):
            return bucket
    return None


def _words(text: bytes, starts: Column, sizes: Column) -> list[Column]:
    """The bytes of names as words of eight, with zeros behind their ends."""
    longest = int(sizes.max())
    if int(starts[-1]) + longest + 8 > len(text):
        text += bytes(longest + 8)
    every: Column = np.ndarray((len(text) - 7,), dtype="<u8", buffer=text, strides=(1,))
    found = []
    for offset in range(0, longest, 8):
        left = np.clip(sizes - offset, 0, 8)
        found.append(every[starts + offset] & _MASKS[left])
    return found
