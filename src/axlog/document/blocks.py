"""`Block`: a fragment ready to be copied into the columns at many places.

A block holds what all copies of a fragment share: kinds, names, texts, the links inside it relative
to its first node, and the positions of each label. It is made from the records of a walk, belongs
to no tree, and is kept with the content of a statement that is used again (`FixedContent`).
`Copies` writes copies of it into a tree: a row of handles for each.

Law: the copies equal those that `loader.graft` makes one after the other, except for the handles.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise, repeat
from typing import Any, TypeAlias

import numpy as np

from axlog.document.loader import linked
from axlog.document.operations import Attribute, Content
from axlog.document.parser import Limits
from axlog.document.recorder import Recorder
from axlog.document.tree import (
    ATTRIBUTE,
    DOCUMENT_NODE,
    ELEMENT,
    LABELS_BY_KIND,
    NONE,
    Tree,
)

Handles: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]


def _column(column: Any, kind: Any = np.int32) -> Any:
    return np.frombuffer(column, dtype=kind)


class FixedContent(tuple[Any, ...]):
    """Content that stays as it is, as that of a constructor without variables: its block is kept.

    A content of operations like any other. `key` has the limits under which the block was made,
    because they are checked then, and the number of elements above.
    """

    key: tuple[Limits | None, bool, int] = None, False, 0
    block: Block | None = None
    was_inserted = False


def block_of(content: Content, limits: Limits, keep_whitespace: bool, above: int) -> Block:
    """The block of a content of elements; `above` is the number of elements over it."""
    if type(content) is not FixedContent:
        return Block(content, limits, keep_whitespace, above, is_kept=False)
    block, known = content.block, content.key
    # The limit of the depth was checked for smaller ones, too.
    if block is None or known[2] < above or known[:2] != (limits, keep_whitespace):
        block = content.block = Block(content, limits, keep_whitespace, above, is_kept=True)
        content.key = limits, keep_whitespace, above
    return block


class Block:
    """The nodes of a fragment of elements, in document order.

    The copies of one that is kept share their strings.
    """

    def __init__(
        self, content: Content, limits: Limits, keep_whitespace: bool, above: int, *, is_kept: bool
    ) -> None:
        recorder = Recorder(Tree(), limits, keep_whitespace, above)
        recorder.record([item for item in content if not isinstance(item, str | Attribute)])
        links, names = linked(recorder), recorder.tree.names
        parents, kinds = recorder.parents, recorder.kinds
        self.size = size = len(parents) - 1
        self.kinds = bytes(kinds[1:])
        self.roots = [at - 1 for at in range(1, size + 1) if parents[at] == DOCUMENT_NODE]
        self.names: list[str | None] = []
        places: dict[str, list[int]] = {}
        self._is_kept = is_kept
        self._texts: dict[int, str] = {}
        for at, (kind, label) in enumerate(zip(self.kinds, recorder.labels[1:], strict=True)):
            name = names[label] if kind in (ELEMENT, ATTRIBUTE) else None
            self.names.append(name)
            if name is None:
                self._texts[at] = recorder.texts[label]
            partition = LABELS_BY_KIND.get(kind) if name is None else name
            if partition is not None:
                places.setdefault(partition, []).append(at)
        self.labels = frozenset(places)
        self._places = {label: _selection(given) for label, given in places.items()}
        """Positions by label: what the partitions get."""
        self.order = array("i", links.order)[1:]
        # Records are counted from 1; 0 stands for none, which is the column after the last.
        rows = (parents, links.first, links.last, links.next, links.prev)
        numbers = np.array([row[1:] for row in rows], dtype=np.int32) - 1
        numbers[numbers < 0] = size
        self._links = numbers.ravel()
        self._near = [[at if at < size else NONE for at in row] for row in numbers.tolist()]
        self._given = places
        self._recorder = recorder if recorder.declared or recorder.prefixes else None
        self._slots = np.zeros((2, size), dtype=np.int32)  # the first slot, the slots of a copy
        for given in places.values():
            for number, at in enumerate(given):
                self._slots[:, at] = number, len(given)
        self._known: tuple[list[str], array[int]] = [], array("i")  # names of a tree, the labels
        self._own: dict[int, str] = {}  # strings that copies in this tree do not share

    def copied(self, tree: Tree, parents: Sequence[int], time: int) -> Handles:
        """Make a copy below each of these parents, in no chain: a row of handles for each.

        Their slots are those that `enter` fills, which comes next.
        """
        count, size = len(parents), self.size
        labels = self._labels_in(tree)
        more = count * size
        padded = np.empty((count, size + 1), dtype=np.int32)
        padded[:, size] = NONE
        rows = padded[:, :size]
        start = len(tree.kind_column) if len(tree._free) < more else NONE
        if start != NONE:
            rows[:] = np.arange(start, start + more, dtype=np.int32).reshape(count, size)
        else:
            rows[:] = np.array(tree._free[-more:], dtype=np.int32).reshape(count, size)
            del tree._free[-more:]
        links = padded.take(self._links, axis=1).reshape(count, 5, size)
        for root in self.roots:
            links[:, 0, root] = parents
        slots = np.arange(count, dtype=np.int32)[:, None] * self._slots[1] + self._slots[0]
        for label, places in self._places.items():
            partition = tree.partition(label)  # swept, and so not between here and `enter`
            if partition:
                slots[:, places] += len(partition)
        linked_columns = [(column, links[:, at]) for at, column in enumerate(_linked_columns(tree))]
        linked_columns.append((tree.slot_column, slots))
        if start != NONE:
            tree.kind_column.frombytes(self.kinds * count)
            tree.label_column += labels * count
            tree.order_column += self.order * count
            tree.time_column += array("q", [time]) * more
            for column, values in linked_columns:
                column.frombytes(values.tobytes())
        else:
            _column(tree.kind_column, np.int8)[rows] = _column(self.kinds, np.int8)
            _column(tree.label_column)[rows] = _column(labels)
            _column(tree.order_column)[rows] = _column(self.order)
            _column(tree.time_column, np.int64)[rows] = time
            for column, values in linked_columns:
                _column(column)[rows] = values
        if self._own:
            nodes = rows[:, list(self._own)].ravel().tolist()
            tree.texts_by_node.update(zip(nodes, list(self._own.values()) * count, strict=True))
        if self._recorder is not None:
            self._declare(tree, rows)
        return rows

    def copied_once(self, tree: Tree, parent: int, time: int) -> list[int]:
        """`copied` below one parent, without arrays: the handles of the copy."""
        labels, size = self._labels_in(tree), self.size
        is_new = len(tree._free) < size
        if is_new:
            start = len(tree.kind_column)
            row = list(range(start, start + size))
        else:
            row = tree._free[-size:]
            del tree._free[-size:]
        slots = [NONE] * size
        for label, given in self._given.items():
            partition = tree.partition(label)  # swept, and so not between here and `enter_once`
            for slot, at in enumerate(given, len(partition)):
                slots[at] = slot
        every = [
            (column, [row[at] if at >= 0 else NONE for at in near])
            for column, near in zip(_linked_columns(tree), self._near, strict=True)
        ]
        for root in self.roots:
            every[0][1][root] = parent
        every.append((tree.slot_column, slots))
        if is_new:
            tree.kind_column.frombytes(self.kinds)
            tree.label_column += labels
            tree.order_column += self.order
            tree.time_column.extend([time] * size)
            for column, values in every:
                column.extend(values)
        else:
            every += [
                (tree.kind_column, list(self.kinds)), (tree.label_column, labels.tolist()),
                (tree.order_column, self.order.tolist()), (tree.time_column, [time] * size),
            ]  # fmt: skip
            for column, values in every:
                for node, value in zip(row, values, strict=True):
                    column[node] = value
        for at, text in self._own.items():
            tree.texts_by_node[row[at]] = text
        if self._recorder is not None:
            self._declare(tree, np.array([row], dtype=np.int32))
        return row

    def _labels_in(self, tree: Tree) -> array[int]:
        """The label column of a copy in a tree."""
        names, labels = self._known
        if names is not tree.names:
            labels = array("i", [NONE if name is None else tree._name(name) for name in self.names])
            for at, text in self._texts.items() if self._is_kept else ():
                labels[at] = tree._shared(text)
            self._own = {at: text for at, text in self._texts.items() if labels[at] == NONE}
            self._known = tree.names, labels
        return labels

    def _declare(self, tree: Tree, rows: Handles) -> None:
        """Write namespaces and prefixes for every copy."""
        assert self._recorder is not None
        for table, values in (
            (tree.namespaces_by_node, self._recorder.declared),
            (tree.prefixes_by_node, self._recorder.prefixes),
        ):
            into: dict[int, Any] = table
            for at, value in values.items():
                into.update(zip(rows[:, at - 1].tolist(), repeat(value), strict=False))

    def enter_once(self, tree: Tree, row: Sequence[int]) -> None:
        """Add a copy that was just made to the partitions of its labels."""
        for label, given in self._given.items():
            partition = tree.nodes_by_label.get(label)
            if partition is None:
                partition = tree.nodes_by_label[label] = array("i")
            partition.extend([row[at] for at in given])

    def enter(self, tree: Tree, rows: Handles) -> None:
        """Add copies that were just made to the partitions of their labels."""
        for label, places in self._places.items():
            partition = tree.nodes_by_label.get(label)
            if partition is None:
                partition = tree.nodes_by_label[label] = array("i")
            partition.frombytes(rows[:, places].tobytes())


def _linked_columns(tree: Tree) -> tuple[array[int], ...]:
    """The columns of links, in the order in which a block has them."""
    return (
        tree.parent_column, tree.first_column, tree.last_column, tree.next_column,
        tree.previous_column,
    )  # fmt: skip


def _selection(places: list[int]) -> Any:
    """An index that selects these places: a slice if they are evenly spaced, which is faster."""
    if len(places) == 1:
        return slice(places[0], places[0] + 1)
    steps = {after - at for at, after in pairwise(places)}
    if len(steps) == 1:
        return slice(places[0], places[-1] + 1, steps.pop())
    return np.array(places, dtype=np.intp)
