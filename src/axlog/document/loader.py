"""XML to columns: the nodes are recorded in document order, then the links are computed.

A walk over lxml elements records them (`recorder`), or numpy does from the bytes of a large
document (`bulk_records`).

The links and partitions of a whole document are computed by sorting in numpy, those of a fragment
in one plain pass. Whitespace-only texts beside elements are dropped unless the caller keeps them;
`xml:space="preserve"` is obeyed. Law: `serializer.serialise` gives back an equal document by
canonical XML. Not kept: the DOCTYPE; CDATA sections become text.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from axlog.document.bulk_columns import by_label, enter_groups, make_room
from axlog.document.bulk_records import Records, records_of
from axlog.document.free_memory import LARGE, give_back
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits, Source, parse, read
from axlog.document.recorder import SPACES, Recorder
from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    CALL_GAP,
    DOCUMENT_NODE,
    ELEMENT,
    LABELS_BY_KIND,
    NONE,
    NodeKind,
    Tree,
)
from axlog.errors import MalformedError, Place, StreamError

_WITHOUT_TEXT = (int(NodeKind.DOCUMENT), ELEMENT, ATTRIBUTE, CALL)
Column = np.ndarray[Any, np.dtype[Any]]


def load(
    source: Source, *, limits: Limits = DEFAULT_LIMITS, keep_whitespace: bool = False, time: int = 0
) -> Tree:
    """Load a tree from XML; every node gets this time."""
    if not -(1 << 63) <= time < 1 << 63:
        raise StreamError("AX409", f"{time} microseconds do not fit in 64 bits")
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of fresh objects, none of them garbage
    try:
        tree = _loaded(source, limits, keep_whitespace, time)
    finally:
        if collecting:
            gc.enable()
    if len(tree.text_bytes) >= LARGE:
        give_back()
    return tree


def _loaded(source: Source, limits: Limits, keep_whitespace: bool, time: int) -> Tree:
    tree = Tree()
    recorder = Recorder(tree, limits, keep_whitespace)
    root, may_declare = read(source, limits, drops_blanks=not keep_whitespace)
    records = None
    if not may_declare:
        records = records_of(root, limits, keep_whitespace, recorder.intern)
    if records is None:
        recorder.record(with_surroundings(root), may_declare)
        records = _recorded(recorder)
    _fill(tree, records, time)
    _settle(recorder)
    tree.clock = time
    return tree


def read_forest(message: str | bytes | Element, limits: Limits = DEFAULT_LIMITS) -> list[Element]:
    """The trees of a message: one document, or several trees side by side in UTF-8."""
    if isinstance(message, etree._Element):
        return [message]
    try:
        return with_surroundings(parse(message, limits).root)
    except MalformedError as error:
        if error.code != "AX101":
            raise
        return _read_wrapped(message, limits, error)


def check_forest(message: str | bytes | Element, limits: Limits = DEFAULT_LIMITS) -> None:
    """Reject a message that no document accepts, for callers that only forward it."""
    Recorder(Tree(), limits, False).record(read_forest(message, limits))


def _read_wrapped(message: str | bytes, limits: Limits, single: MalformedError) -> list[Element]:
    """The trees of a message that is not one document; raises if it is no forest either."""
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
    if not len(forest):
        raise single  # the message is empty
    return list(forest)


def _shifted(error: MalformedError, by: int) -> MalformedError:
    """The error with its place in the message, without the wrapper."""
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
    """Make nodes without a parent for a forest; the handles of its roots.

    `above` is the number of elements that will be above them, for the depth limit.
    """
    recorder = Recorder(tree, limits, keep_whitespace, above)
    recorder.record(forest)
    handles = make_nodes(tree, recorder, time)
    return [handles[at] for at, parent in enumerate(recorder.parents) if parent == DOCUMENT_NODE]


def make_nodes(tree: Tree, recorder: Recorder, time: int) -> Sequence[int]:
    """Make nodes without a parent for the records of a forest; their handles, by record.

    The record of the document node has no new node.
    """
    links = linked(recorder)
    count = len(recorder.parents) - 1
    handles: Sequence[int]
    if len(tree._free) >= count:
        handles = _reuse(tree, recorder, links, time)
    else:
        handles = _append(tree, recorder, links, time)
    texts, kinds, known = recorder.texts, recorder.kinds, tree.texts_by_node
    for at, label in enumerate(recorder.labels):
        if kinds[at] not in _WITHOUT_TEXT:
            known[handles[at]] = texts[label]
    if recorder.calls or recorder.declared or recorder.prefixes:
        recorder.settle(handles)
    return handles


class _Links(NamedTuple):
    """Links between records, by number; 0, the document node, stands for none."""

    first: list[int]
    last: list[int]
    next: list[int]
    prev: list[int]
    order: list[int]


def linked(recorder: Recorder) -> _Links:
    parents, kinds = recorder.parents, recorder.kinds
    count = len(parents)
    first, last, following, previous = [0] * count, [0] * count, [0] * count, [0] * count
    order = [1] * count
    for at in range(1, count):
        parent = parents[at]
        if parent == DOCUMENT_NODE:
            continue
        before = last[parent]
        last[parent] = at
        if before == 0:
            first[parent] = at
        else:
            previous[at] = before
            following[before] = at
            if (kinds[before] == ATTRIBUTE) == (kinds[at] == ATTRIBUTE):
                order[at] = order[before] + 1
    return _Links(first, last, following, previous, order)


def _append(tree: Tree, recorder: Recorder, links: _Links, time: int) -> range:
    """Append the records to the columns, all at once: their handles follow each other."""
    start = len(tree.kind_column)
    count = len(recorder.parents) - 1
    base = start - 1  # of record 0, the document node
    tree.kind_column.frombytes(recorder.kinds[1:])
    labels = zip(recorder.labels, recorder.kinds, strict=True)
    next(labels)
    # A column is extended faster by an array than by a list.
    tree.label_column += array("i", [n if kind in _WITHOUT_TEXT else NONE for n, kind in labels])
    columns = (
        (tree.parent_column, recorder.parents),
        (tree.first_column, links.first),
        (tree.last_column, links.last),
        (tree.next_column, links.next),
        (tree.previous_column, links.prev),
    )
    for column, numbers in columns:
        made = array("i", [number + base if number else NONE for number in numbers])
        column += made[1:]
    tree.order_column += array("i", links.order)[1:]
    tree.time_column += array("q", [time]) * count
    tree.slot_column += array("i", [NONE]) * count
    return range(base, base + count + 1)


def _reuse(tree: Tree, recorder: Recorder, links: _Links, time: int) -> list[int]:
    """Fill free handles with the records."""
    count = len(recorder.parents) - 1
    fresh = [tree._free.pop() for _ in range(count)]
    handles = [NONE, *fresh]  # a record below the document node has no parent yet
    kinds, labels = recorder.kinds, recorder.labels
    first, last, following, previous, order = links
    for at, node in enumerate(fresh, 1):
        kind = kinds[at]
        tree.kind_column[node] = kind
        tree.label_column[node] = labels[at] if kind in _WITHOUT_TEXT else NONE
        tree.parent_column[node] = handles[recorder.parents[at]]
        tree.first_column[node] = handles[first[at]]
        tree.last_column[node] = handles[last[at]]
        tree.next_column[node] = handles[following[at]]
        tree.previous_column[node] = handles[previous[at]]
        tree.order_column[node] = order[at]
        tree.time_column[node] = time
        tree.slot_column[node] = NONE
    return handles


def with_surroundings(root: Element) -> list[Element]:
    """The root and, if it is a document's root, the comments and instructions beside it."""
    if root.getparent() is not None:
        return [root]
    before = list(root.itersiblings(preceding=True))
    return [*reversed(before), root, *root.itersiblings()]


def _recorded(recorder: Recorder) -> Records:
    """The records of a walk as columns."""
    return Records(
        np.frombuffer(recorder.parents, dtype=np.int32),
        np.frombuffer(recorder.kinds, dtype=np.int8),
        np.frombuffer(recorder.labels, dtype=np.int32),
        *_joined(recorder.texts),
    )


def _fill(tree: Tree, records: Records, time: int) -> None:
    """Compute all columns of a new tree from the records of its document."""
    parents, kinds, labels = records.parents, records.kinds, records.labels
    count = len(parents)
    first, last, following, previous, order = links_of(parents, kinds, records.levels)

    columns: dict[str, Column] = {
        "kind_column": kinds,
        "parent_column": parents,
        "first_column": first,
        "last_column": last,
        "next_column": following,
        "previous_column": previous,
        "label_column": labels,
        "order_column": order,
        "time_column": np.full(count, time, dtype=np.int64),
        "slot_column": _partition(tree, kinds, labels),
    }
    for name, column in columns.items():
        setattr(tree, name, _column(getattr(tree, name).typecode, column))
    tree.text_bytes = records.text_bytes
    tree.text_starts = _column("q", records.text_starts)
    tree._size = count - 1
    tree.edited = bytearray(count)
    make_room(tree)


def _settle(recorder: Recorder) -> None:
    """Fill the side tables of a new tree: namespaces and calls."""
    tree = recorder.tree
    count = len(recorder.parents)
    recorder.settle(list(range(count)) if recorder.calls or recorder.declared else [])
    for node, call in tree.calls_by_node.items():
        if call.stream in tree.calls_by_stream:
            raise StreamError("AX403", f"the stream {call.stream!r} has two calls")
        tree.calls_by_stream[call.stream] = node


def links_of(
    parents: Column, kinds: Column, levels: Column | None = None
) -> tuple[Column, Column, Column, Column, Column]:
    """The links of records in document order, and their places among their siblings.

    Siblings follow each other among the nodes of a level, which numpy sorts faster: `levels` are
    short integers.
    """
    count = len(parents)
    first, last, following, previous = (np.full(count, NONE, dtype=np.int32) for _ in range(4))
    together = parents if levels is None else levels
    by_parent = np.argsort(together, kind="stable")[1:]  # the document node has no parent
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
    is_attribute = kinds[by_parent] == ATTRIBUTE
    if is_attribute.any():
        rank -= _attributes_before(is_attribute, starts, sizes)
    order = np.ones(count, dtype=np.int32)
    is_call = kinds[by_parent] == CALL
    order[by_parent] = rank + _gaps(is_call, starts, sizes) if is_call.any() else rank
    return first, last, following, previous, order


def append_records(tree: Tree, recorder: Recorder, times: Column) -> Column:
    """Append many records to the columns, without a parent for the top ones; their handles.

    The result is that of `make_nodes` for each, and the nodes are in their partitions.
    """
    parents = np.frombuffer(recorder.parents, dtype=np.int32)
    kinds = np.frombuffer(recorder.kinds, dtype=np.int8)
    labels = np.frombuffer(recorder.labels, dtype=np.int32)
    base = len(tree.kind_column) - 1  # of record 0, the document node
    is_top = parents == DOCUMENT_NODE
    has_text = ~np.isin(kinds, _WITHOUT_TEXT)
    first, last, following, previous, order = links_of(parents, kinds)
    following[is_top] = previous[is_top] = NONE
    order[is_top] = 1
    links = (
        (tree.parent_column, np.where(is_top, NONE, parents + base)),
        (tree.first_column, np.where(first == NONE, NONE, first + base)),
        (tree.last_column, np.where(last == NONE, NONE, last + base)),
        (tree.next_column, np.where(following == NONE, NONE, following + base)),
        (tree.previous_column, np.where(previous == NONE, NONE, previous + base)),
        (tree.label_column, np.where(has_text, NONE, labels)),
        (tree.order_column, order),
        (tree.slot_column, np.full(len(parents), NONE)),
    )
    tree.kind_column.frombytes(kinds[1:].tobytes())
    for column, values in links:
        column.frombytes(values[1:].astype(np.int32).tobytes())
    tree.time_column.frombytes(times.astype(np.int64).tobytes())
    nodes = np.flatnonzero(has_text) + base
    texts = recorder.texts
    numbers = labels[has_text].tolist()
    tree.texts_by_node.update(
        zip(nodes.tolist(), [texts[number] for number in numbers], strict=True)
    )
    handles = np.arange(base, base + len(parents), dtype=np.int32)
    if recorder.declared or recorder.prefixes:
        recorder.settle(handles.tolist())
    enter_groups(tree, by_label(tree, handles[1:]))
    return handles


def _joined(texts: list[str]) -> tuple[bytes, Column]:
    """All texts as one byte string, with the offset of each."""
    joined = "".join(texts)
    encoded = joined.encode()
    lengths: Iterable[int] = map(len, texts)
    if len(encoded) != len(joined):  # some text is not ASCII
        lengths = (len(text.encode()) for text in texts)
    spans = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(lengths, dtype=np.int64, count=len(texts)), out=spans[1:])
    return encoded, spans


def _attributes_before(is_attribute: Column, starts: Column, sizes: Column) -> Column:
    """The number of attributes before each child: children are numbered separately."""
    counts = np.add.reduceat(is_attribute, starts, dtype=np.int32)
    return np.where(is_attribute, 0, np.repeat(counts, sizes))


def _gaps(is_call: Column, starts: Column, sizes: Column) -> Column:
    """Free components before each call, so that nodes inserted there get short ids."""
    seen = np.cumsum(is_call)
    in_group = seen - np.repeat(np.r_[0, seen][starts], sizes)
    most = int(in_group.max(initial=0))
    gaps: Column = in_group * min(CALL_GAP, (1 << 30) // max(most, 1))
    return gaps


def _partition(tree: Tree, kinds: Column, labels: Column) -> Column:
    """Fill the partitions; the slot of each handle."""
    named = (kinds == ELEMENT) | (kinds == ATTRIBUTE)
    group = np.where(named, labels, NONE)
    others = dict(enumerate(LABELS_BY_KIND.items(), len(tree.names)))
    for number, (kind, _) in others.items():
        group[kinds == kind] = number
    # numpy sorts short integers by radix, in a fraction of the time.
    fits = len(tree.names) + len(others) < 1 << 15
    by_group = np.argsort(group.astype(np.int16) if fits else group, kind="stable")
    grouped = group[by_group]
    starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    sizes = np.diff(np.r_[starts, len(grouped)])
    place = np.empty(len(kinds), dtype=np.int32)
    place[by_group] = np.arange(len(grouped)) - np.repeat(starts, sizes)
    for start, size in zip(starts, sizes, strict=True):
        key = int(grouped[start])
        if key != NONE:
            label = tree.names[key] if key < len(tree.names) else others[key][1]
            handles = by_group[start : start + size].astype(np.int32)
            tree.nodes_by_label[label] = _column("i", handles)
    return place


def _column(typecode: str, values: Column) -> array[int]:
    column: array[int] = array(typecode)
    column.frombytes(np.ascontiguousarray(values).tobytes())
    return column
