"""XML to columns: one walk over lxml elements records what each node is, then links follow.

A whole document's links and partitions are computed by sorting in numpy; a fragment's nodes are
hung one by one. Whitespace-only texts beside elements are dropped unless asked for
(`xml:space="preserve"` is obeyed). Law: `writing.serialise` gives back an equal document, by
canonical XML; the DOCTYPE is not kept, CDATA becomes text.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
from lxml import etree

from axlog.document.reading import DEFAULT_LIMITS, Element, Limits, Source, parse, read
from axlog.document.recording import SPACES, Recorder
from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    CALL_GAP,
    DOCUMENT_NODE,
    ELEMENT,
    NONE,
    TEXT,
    TEXT_LABEL,
    Tree,
)
from axlog.errors import MalformedError, Place, StreamError

Column = np.ndarray[Any, np.dtype[Any]]


def load(
    source: Source, *, limits: Limits = DEFAULT_LIMITS, keep_whitespace: bool = False, time: int = 0
) -> Tree:
    """A tree from XML; every node gets this time."""
    if not -(1 << 63) <= time < 1 << 63:
        raise StreamError("AX409", f"{time} microseconds are beyond any time")
    tree = Tree()
    recorder = Recorder(tree, limits, keep_whitespace)
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of fresh objects, none of them garbage
    try:
        root, may_declare = read(source, limits)
        recorder.record(with_surroundings(root), may_declare)
        _fill(recorder, time)
    finally:
        if collecting:
            gc.enable()
    tree.clock = time
    return tree


def read_forest(message: str | bytes | Element, limits: Limits = DEFAULT_LIMITS) -> list[Element]:
    """The trees of a message: one document, or several trees side by side (then in UTF-8)."""
    if isinstance(message, etree._Element):
        return [message]
    try:
        return with_surroundings(parse(message, limits).root)
    except MalformedError as error:
        if error.code != "AX101":
            raise
        return _read_wrapped(message, limits, error)


def _read_wrapped(message: str | bytes, limits: Limits, single: MalformedError) -> list[Element]:
    """The trees of a message that is no document, or the error that says why it is neither."""
    wrapped = f"<_>{message}</_>" if isinstance(message, str) else b"<_>" + message + b"</_>"
    try:
        forest = parse(wrapped, limits).root
    except MalformedError as error:
        if not single.message.startswith("Extra content"):
            raise single from None
        raise _shifted(error, len("<_>")) from None
    outside = [forest.text, *(tree.tail for tree in forest)]
    if any(text and text.strip(SPACES) for text in outside):
        raise StreamError(
            "AX104", "the message has text outside any element", advice="wrap it in an element"
        )
    return list(forest)


def _shifted(error: MalformedError, by: int) -> MalformedError:
    """The error with its place as in the message before it was wrapped."""
    place = error.place
    if place is not None and place.line == 1:
        place = Place(1, max(1, place.column - by), place.text and place.text[by:], place.source)
    return MalformedError(error.code, error.message, place=place, advice=error.advice)


def graft(
    tree: Tree,
    forest: Iterable[Element],
    time: int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    keep_whitespace: bool = False,
    above: int = 0,
) -> list[int]:
    """Make nodes for a forest that hang nowhere yet; the handles of its roots.

    `above` is how many elements there will be over them, for the limit of depth.
    """
    recorder = Recorder(tree, limits, keep_whitespace, above)
    recorder.record(forest)
    handles = [DOCUMENT_NODE]
    roots: list[int] = []
    for at in range(1, len(recorder.parents)):
        kind = recorder.kinds[at]
        if kind in (ELEMENT, ATTRIBUTE, CALL):
            node = tree._new(kind, recorder.labels[at], time)
        else:
            node = tree._new_text(kind, recorder.texts[recorder.labels[at]], time)
        handles.append(node)
        above = recorder.parents[at]
        if above == DOCUMENT_NODE:
            roots.append(node)
        else:
            tree._append(handles[above], node)
    recorder.settle(handles)
    return roots


def with_surroundings(root: Element) -> list[Element]:
    """The root with the comments and instructions beside it, if it is a document's root."""
    if root.getparent() is not None:
        return [root]
    before = list(root.itersiblings(preceding=True))
    return [*reversed(before), root, *root.itersiblings()]


def _fill(recorder: Recorder, time: int) -> None:
    """Compute every column of a new tree from the records of its document."""
    tree = recorder.tree
    parents = np.array(recorder.parents, dtype=np.int32)
    kinds = np.frombuffer(bytes(recorder.kinds), dtype=np.int8)
    labels = np.array(recorder.labels, dtype=np.int32)
    count = len(parents)
    first, last, following, previous = (np.full(count, NONE, dtype=np.int32) for _ in range(4))

    by_parent = np.argsort(parents, kind="stable")[1:]  # the document node has no parent
    above = parents[by_parent]
    starts = np.flatnonzero(np.r_[True, above[1:] != above[:-1]])
    beside = np.flatnonzero(above[1:] == above[:-1])
    following[by_parent[beside]] = by_parent[beside + 1]
    previous[by_parent[beside + 1]] = by_parent[beside]
    first[above[starts]] = by_parent[starts]
    ends = np.r_[starts[1:], len(above)] - 1
    last[above[starts]] = by_parent[ends]

    sizes = np.diff(np.r_[starts, len(above)])
    rank = np.arange(len(above)) - np.repeat(starts, sizes) + 1
    rank -= _attributes_before(kinds[by_parent] == ATTRIBUTE, starts, sizes)
    order = np.ones(count, dtype=np.int32)
    order[by_parent] = rank + _gaps(kinds[by_parent] == CALL, starts, sizes)

    columns: dict[str, Column] = {
        "_kind": kinds, "_parent": parents, "_first": first, "_last": last,
        "_next": following, "_prev": previous, "_label": labels, "_order": order,
        "_time": np.full(count, time, dtype=np.int64),
        "_place": _partition(tree, kinds, labels),
    }  # fmt: skip
    for name, column in columns.items():
        setattr(tree, name, _column(getattr(tree, name).typecode, column))
    encoded = [text.encode() for text in recorder.texts]
    spans = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=spans[1:])
    tree._spans = _column("q", spans)
    tree._bytes = b"".join(encoded)
    tree._size = count - 1
    recorder.settle(list(range(count)) if recorder.calls or recorder.declared else [])
    for node, call in tree._call_at.items():
        if call.stream in tree._calls:
            raise StreamError("AX403", f"the stream {call.stream!r} has two calls")
        tree._calls[call.stream] = node


def _attributes_before(is_attribute: Column, starts: Column, sizes: Column) -> Column:
    """How many attributes come before each child: children are counted apart from them."""
    counts = np.add.reduceat(is_attribute.astype(np.int64), starts)
    return np.where(is_attribute, 0, np.repeat(counts, sizes))


def _gaps(is_call: Column, starts: Column, sizes: Column) -> Column:
    """Free components before each call, so that what its stream brings gets short identifiers."""
    seen = np.cumsum(is_call)
    in_group = seen - np.repeat(np.r_[0, seen][starts], sizes)
    most = int(in_group.max(initial=0))
    gaps: Column = in_group * min(CALL_GAP, (1 << 30) // max(most, 1))
    return gaps


def _partition(tree: Tree, kinds: Column, labels: Column) -> Column:
    """Fill the partitions; each handle's place in its own."""
    named = (kinds == ELEMENT) | (kinds == ATTRIBUTE)
    group = np.where(named, labels, np.where(kinds == TEXT, len(tree.names), NONE))
    by_group = np.argsort(group, kind="stable")
    grouped = group[by_group]
    starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    sizes = np.diff(np.r_[starts, len(grouped)])
    place = np.empty(len(kinds), dtype=np.int32)
    place[by_group] = np.arange(len(grouped)) - np.repeat(starts, sizes)
    for start, size in zip(starts, sizes, strict=True):
        key = int(grouped[start])
        if key != NONE:
            label = tree.names[key] if key < len(tree.names) else TEXT_LABEL
            handles = by_group[start : start + size].astype(np.int32)
            tree._partitions[label] = _column("i", handles)
    return place


def _column(typecode: str, values: Column) -> array[int]:
    column: array[int] = array(typecode)
    column.frombytes(np.ascontiguousarray(values).tobytes())
    return column
