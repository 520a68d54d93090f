"""The insertion of a message's trees before its call, without the machinery of update lists.

Most messages are elements and nothing else: no text or attribute beside them, no call inside, no
key under which they replace another. Their insertion changes one chain at one place, needs no
merging of texts and closes nothing. So the nodes are appended to the columns in bulk, and `commit`
writes the two links. The cost depends on the message alone. Messages that were set aside are
inserted together (`insert_all`), in one pass over the columns.

Law: the result is that of `pending.Plan`, handle by handle. `insertion_of` returns None for all
other operations, and for messages whose checks fail: `Plan` raises the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from axlog.document import ids
from axlog.document.bulk_columns import release
from axlog.document.delta import Delta
from axlog.document.loader import append_records, make_nodes
from axlog.document.operations import Attribute, Insert, Operation, Where
from axlog.document.parser import Element, Limits
from axlog.document.record_templates import RecordTemplates
from axlog.document.recorder import Recorder
from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    DOCUMENT_NODE,
    ELEMENT,
    LABELS_BY_KIND,
    NONE,
    NodeKind,
    Tree,
)


def insertion_of(
    tree: Tree,
    operations: Sequence[Operation],
    time: int,
    limits: Limits,
    keep_whitespace: bool,
) -> MessageInsertion | None:
    """The plan of a message's insertion; None for other operations."""
    if len(operations) != 1:
        return None
    (one,) = operations
    if (
        type(one) is not Insert
        or one.where is not Where.BEFORE
        or one.stream is None
        or one.key is not None
        or one.replaced != NONE
        or tree.calls_by_stream.get(one.stream) != one.target
    ):
        return None
    forest: list[Element] = []
    for item in one.content:
        if isinstance(item, str | Attribute):
            return None
        forest.append(item)
    above = sum(1 for _ in tree.ancestors(tree.parent_column[one.target]))
    recorder = Recorder(tree, limits, keep_whitespace, above)
    recorder.record(forest)
    if recorder.calls or not forest:
        return None
    return MessageInsertion(tree, one.stream, one.target, forest, recorder, time)


class Arrived(NamedTuple):
    """A message of a stream that was accepted: its text, time and number."""

    stream: str
    text: bytes
    time: int
    number: int


def insert_all(
    tree: Tree,
    messages: Sequence[Arrived],
    limits: Limits,
    parse: Callable[[bytes], list[Element]],
    templates: RecordTemplates,
) -> list[Delta]:
    """Insert messages before their calls, one after the other; the delta of each.

    They are elements, comments and instructions without calls inside, of streams that insert and
    nothing else. All nodes are appended to the columns at once. `parse` gives the trees of a
    message that has no template.
    """
    recorder = Recorder(tree, limits)
    depths = {
        stream: sum(1 for _ in tree.ancestors(tree.parent_column[tree.calls_by_stream[stream]]))
        for stream in {message.stream for message in messages}
    }
    starts: list[int] = []
    for message in messages:
        start, texts = len(recorder.parents), len(recorder.texts)
        starts.append(start)
        above = depths[message.stream]
        known = templates.find(message.text, above)
        if known is not None:
            template, strings = known
            decoded = [each.decode() for each in strings]
            recorder.add_template(template.kinds, template.parents, template.labels, decoded)
            continue
        recorder.above = above
        recorder.walk(parse(message.text), message.text.find(b"xmlns") >= 0)
        if templates.note(message.text, above):
            templates.learn(message.text, recorder, start, texts)
    recorder.check_texts()
    ends = np.array([*starts[1:], len(recorder.parents)])
    times = np.array([message.time for message in messages], dtype=np.int64)
    release(tree, tree._dying)
    tree._dying = []
    handles = append_records(tree, recorder, np.repeat(times, ends - np.array(starts)))
    base = int(handles[0])
    parents = np.frombuffer(recorder.parents, dtype=np.int32)
    tops = np.flatnonzero(parents == DOCUMENT_NODE).tolist()
    found: list[Delta] = []
    at = 0
    for message, end in zip(messages, ends.tolist(), strict=True):
        roots: list[int] = []
        while at < len(tops) and tops[at] < end:
            roots.append(tops[at] + base)
            at += 1
        call = tree.calls_by_stream[message.stream]
        for root in roots:
            tree.parent_column[root] = tree.parent_column[call]
        link_before(tree, call, roots)
        _count(tree, message.stream, roots)
        found.append(Delta(tree, message.time, added=roots))
    tree._size += len(handles) - 1
    tree.clock = max(tree.clock, messages[-1].time)
    tree.version += len(messages)
    return found


def _count(tree: Tree, stream: str, roots: Sequence[int]) -> None:
    """Count the trees that a stream has inserted."""
    trees = sum(tree.kind_column[root] == ELEMENT for root in roots)
    tree.brought[stream] = tree.brought.get(stream, 0) + trees


def link_before(tree: Tree, call: int, roots: Sequence[int]) -> None:
    """Link new nodes before a call, each with a component after that of its neighbour."""
    tree._mark_edited((tree.parent_column[call],))
    before = tree.previous_column[call]
    high = tree.component(call)
    low: ids.Component | None = None
    if before != NONE and tree.kind_column[before] != ATTRIBUTE:
        low = tree.component(before)
    for root in roots:
        low = ids.between(low, high)
        tree._place_at(root, low)
        tree.previous_column[root] = before
        if before == NONE:
            tree.first_column[tree.parent_column[call]] = root
        else:
            tree.next_column[before] = root
        before = root
    tree.next_column[before] = call
    tree.previous_column[call] = before


class MessageInsertion:
    """The planned insertion of a message: its nodes, without links to their siblings."""

    def __init__(
        self,
        tree: Tree,
        stream: str,
        call: int,
        forest: list[Element],
        recorder: Recorder,
        time: int,
    ) -> None:
        self.tree, self.time = tree, time
        self._stream, self._call, self._recorder = stream, call, recorder
        self._handles = handles = make_nodes(tree, recorder, time)
        self._roots = [
            handles[at] for at, parent in enumerate(recorder.parents) if parent == DOCUMENT_NODE
        ]
        self._parent = tree.parent_column[call]
        for root in self._roots:
            tree.parent_column[root] = self._parent
        self.delta = Delta(tree, time, added=list(self._roots))
        for item, root in zip(forest, self._roots, strict=True):
            self.delta.copies.setdefault(id(item), []).append(root)

    def abandon(self) -> None:
        """Free the new nodes; the tree is unchanged."""
        for root in self._roots:
            if self.tree.kind_column[root] != NodeKind.FREE:
                self.tree._release(root)

    def commit(self) -> None:
        """Link the nodes, and add them to the partitions of their labels."""
        tree = self.tree
        release(tree, tree._dying)
        link_before(tree, self._call, self._roots)
        self._enter()
        _count(tree, self._stream, self._roots)
        tree._size += len(self._handles) - 1
        tree.clock = self.time
        tree._dying = []
        tree.version += 1

    def _enter(self) -> None:
        """Add the nodes to the partitions, in document order."""
        tree, recorder = self.tree, self._recorder
        names, known, slots = tree.names, tree.nodes_by_label, tree.slot_column
        records = zip(self._handles, recorder.kinds, recorder.labels, strict=True)
        next(records)  # the document node
        for node, kind, number in records:
            if kind == ELEMENT or kind == ATTRIBUTE:
                label = names[number]
            elif kind == CALL:
                continue
            else:
                label = LABELS_BY_KIND[kind]
            handles = known.get(label)
            if handles is None:
                handles = known[label] = type(slots)("i")
            slots[node] = len(handles)
            handles.append(node)
