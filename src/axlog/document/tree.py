"""The document as columns: a node is an integer handle into growing arrays.

Node 0 is the document node; its children are the root element and the comments and processing
instructions around it. The chain of an element holds its attributes first, then its children; an
attribute has one text below. A call (`<ax:call stream="f"/>`) is a leaf of its own kind. Order
among siblings is a component of `ids`: one integer in a column, or in a side table where insertions
needed more; attributes and children are counted apart. Handles of every label stand in one array (a
partition), kept exact by position, in no order.

Law (DESIGN 8.6): ids never change; order, parent and ancestor tests on ids equal the tree's.

This module holds and navigates; `loader.py` fills it, `pending.py` changes it. A handle is dead
after the update that removed it, readable until the next update, and used again by later ones: keep
ids, not handles. An id is given again only after its node is gone.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from copy import copy
from enum import IntEnum
from typing import Any

from axlog.document import ids
from axlog.document.calls import Call
from axlog.errors import UpdateError

NONE = -1
DOCUMENT_NODE = 0
TEXT_LABEL = "#text"
COMMENT_LABEL = "#comment"
INSTRUCTION_LABEL = "#instruction"
CALL_NAMESPACE = "urn:axlog"
CALL_LABEL = "{urn:axlog}call"
CALL_GAP = 1 << 24
"""Components left free before a call when a document is loaded: data arrives there one by one."""

_FAR = -(1 << 31)  # in the order column: the component stands in the side table


class NodeKind(IntEnum):
    """What a node is."""

    FREE = 0
    DOCUMENT = 1
    ELEMENT = 2
    ATTRIBUTE = 3
    TEXT = 4
    CALL = 5
    COMMENT = 6
    INSTRUCTION = 7


ELEMENT, ATTRIBUTE, TEXT, CALL, COMMENT, INSTRUCTION = (
    int(NodeKind.ELEMENT),
    int(NodeKind.ATTRIBUTE),
    int(NodeKind.TEXT),
    int(NodeKind.CALL),
    int(NodeKind.COMMENT),
    int(NodeKind.INSTRUCTION),
)
_NAMED = (ELEMENT, ATTRIBUTE)
_LABELS_IN_IDS = {
    TEXT: TEXT_LABEL,
    CALL: CALL_LABEL,
    COMMENT: COMMENT_LABEL,
    INSTRUCTION: INSTRUCTION_LABEL,
}
LABELS_BY_KIND = {
    TEXT: TEXT_LABEL,
    COMMENT: COMMENT_LABEL,
    INSTRUCTION: INSTRUCTION_LABEL,
}
"""The labels of the partitions of nodes that have no name."""


class Tree:
    """The columns of one document. Public methods read; names with `_` are for `document/`."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._name_ids: dict[str, int] = {}
        self._tags: list[tuple[str, str, str]] = []  # by name, as `writing` begins and ends it
        self._kind = array("b")
        self._parent = array("i")
        self._first = array("i")
        self._last = array("i")
        self._next = array("i")
        self._prev = array("i")
        self._label = array("i")  # a name, or for texts a span of the loaded bytes, or NONE
        self._order = array("i")
        self._time = array("q")
        self._place = array("i")  # where the handle stands in its partition
        self._far: dict[int, ids.Component] = {}
        self._spans = array("q", [0])
        self._bytes = b""
        self._texts: dict[int, str] = {}
        self._partitions: dict[str, array[int]] = {}
        self._calls: dict[str, int] = {}
        self._call_at: dict[int, Call] = {}
        self._prefix: dict[int, str | None] = {}  # where scope would choose another prefix
        self._declared: dict[int, tuple[tuple[str | None, str], ...]] = {}
        self._free: list[int] = []
        self._dying: list[int] = []  # removed by the last update, freed by the next
        self._size = 0  # nodes that hang in the document, the document node aside
        self.clock = 0
        self.version = 0  # updates carried out: what an index compares to know that it missed one
        self.ended: set[str] = set()
        self._origins: dict[int, tuple[str, int]] = {}  # roots of messages: stream and number
        self.facts: tuple[Any, ...] = ()  # declared of what may still come; see `analysis.keys`
        self.types: Any = None  # the document's schema, if it has one; see `document.schema`
        self.brought: dict[str, int] = {}  # trees that each open stream has brought
        self.called: dict[str, int] = {}  # calls that each stream has brought, as `calls` counts
        self.any_calls = False  # whether any stream may bring calls, as in version 0.1
        self._new(NodeKind.DOCUMENT, NONE, 0)

    def copied(self) -> Tree:
        """A copy of the document as it is now, to read while this one goes on.

        Columns are copied as blocks of memory: a million nodes take about a tenth of a second.
        """
        made = Tree.__new__(Tree)
        for name, value in self.__dict__.items():
            is_column = isinstance(value, array | list | dict | set)
            made.__dict__[name] = copy(value) if is_column else value
        made._partitions = {label: handles[:] for label, handles in self._partitions.items()}
        return made

    # Reading --------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many nodes there are, the document node aside."""
        return self._size

    @property
    def root(self) -> int:
        """The root element's handle, NONE in an empty tree."""
        for node in self.children(DOCUMENT_NODE):
            if self._kind[node] == ELEMENT:
                return node
        return NONE

    def kind(self, node: int) -> NodeKind:
        return NodeKind(self._kind[node])

    def is_alive(self, node: int) -> bool:
        """Whether the handle is a node that hangs in the document."""
        if not 0 <= node < len(self._kind) or self._kind[node] == NodeKind.FREE:
            return False
        while node != DOCUMENT_NODE:
            node = self._parent[node]
            if node == NONE:
                return False
        return True

    def parent(self, node: int) -> int:
        return self._parent[node]

    def next(self, node: int) -> int:
        return self._next[node]

    def previous(self, node: int) -> int:
        return self._prev[node]

    def time(self, node: int) -> int:
        return self._time[node]

    def label(self, node: int) -> str:
        """An element's name, `@` and an attribute's, a text's string, an instruction's target."""
        kind = self._kind[node]
        if kind == ELEMENT or kind == ATTRIBUTE:
            return self.names[self._label[node]]
        if kind == CALL:
            return CALL_LABEL
        if kind == INSTRUCTION:
            return self.target(node)
        return "" if node == DOCUMENT_NODE else self.text(node)

    def target(self, node: int) -> str:
        """The target of a processing instruction."""
        return self.text(node).partition(" ")[0]

    def text(self, node: int) -> str:
        """The string of a text or comment; target and data of a processing instruction."""
        span = self._label[node]
        if span == NONE:
            return self._texts[node]
        return self._bytes[self._spans[span] : self._spans[span + 1]].decode()

    def chain(self, node: int) -> Iterator[int]:
        """Attributes, then children of every kind."""
        below = self._first[node]
        following = self._next
        while below != NONE:
            yield below
            below = following[below]

    def children(self, node: int) -> Iterator[int]:
        """Children of every kind: elements, texts, calls, comments, instructions."""
        kinds = self._kind
        return (below for below in self.chain(node) if kinds[below] != ATTRIBUTE)

    def attributes(self, node: int) -> Iterator[int]:
        for below in self.chain(node):
            if self._kind[below] != ATTRIBUTE:
                return
            yield below

    def ancestors(self, node: int) -> Iterator[int]:
        """From the parent up to the document node."""
        node = self._parent[node]
        while node != NONE:
            yield node
            node = self._parent[node]

    def subtree(self, node: int) -> Iterator[int]:
        """The node and all below it in document order, attributes and their texts too."""
        first, following, parent = self._first, self._next, self._parent
        at = node
        while True:
            yield at
            if first[at] != NONE:
                at = first[at]
                continue
            while at != node and following[at] == NONE:
                at = parent[at]
            if at == node:
                return
            at = following[at]

    def descendants(self, node: int) -> Iterator[int]:
        """All below it in document order; attributes and what is below them left out."""
        kinds = self._kind
        stack = [self._first[node]]
        while stack:
            at = stack.pop()
            while at != NONE:
                if kinds[at] == ATTRIBUTE:
                    at = self._next[at]
                    continue
                yield at
                if self._next[at] != NONE:
                    stack.append(self._next[at])
                at = self._first[at]

    def string_value(self, node: int) -> str:
        """`val`: the texts below in document order, attributes left out; an attribute's value."""
        kind = self._kind[node]
        if kind == TEXT:
            return self.text(node)
        if kind == ATTRIBUTE:
            return self.text(self._first[node])
        if kind == NodeKind.COMMENT:
            return self.text(node)
        if kind == NodeKind.INSTRUCTION:
            return self.text(node).partition(" ")[2]
        kinds = self._kind
        return "".join(self.text(n) for n in self.descendants(node) if kinds[n] == TEXT)

    def component(self, node: int) -> ids.Component:
        order = self._order[node]
        return self._far[node] if order == _FAR else (order,)

    def id(self, node: int) -> ids.Id:
        """The node's identifier, with the labels on its path."""
        parts: list[bytes] = []
        labels: list[str] = []
        while node != DOCUMENT_NODE and node != NONE:
            is_attribute = self._kind[node] == ATTRIBUTE
            parts.append(ids.encode(self.component(node), is_attribute))
            labels.append(self._label_in_id(node))
            node = self._parent[node]
        return ids.Id(b"".join(reversed(parts)), tuple(reversed(labels)))

    def _label_in_id(self, node: int) -> str:
        kind = self._kind[node]
        return self.names[self._label[node]] if kind in _NAMED else _LABELS_IN_IDS[kind]

    def find(self, identifier: ids.Id) -> int:
        """The node with this id; an update's error if it is gone."""
        node = DOCUMENT_NODE
        for component, is_attribute in identifier.components():
            for below in self.chain(node):
                if self.component(below) == component and (
                    (self._kind[below] == ATTRIBUTE) == is_attribute
                ):
                    node = below
                    break
            else:
                raise UpdateError(
                    "AX301",
                    f"no node has the identifier {identifier}",
                    advice="ask the view for its present rows; the node was deleted",
                )
        return node

    def path(self, node: int) -> str:
        """Where a node is, for people: /site/people/person[2]/@id."""
        steps: list[str] = []
        while node != DOCUMENT_NODE and node != NONE:
            kind = self._kind[node]
            label = self.label(node) if kind in _NAMED else f"{self.kind(node).name.lower()}()"
            parent = self._parent[node]
            if parent != NONE and kind != ATTRIBUTE:
                same = [
                    n
                    for n in self.chain(parent)
                    if self._kind[n] == kind
                    and (kind != ELEMENT or self._label[n] == self._label[node])
                ]
                label += f"[{same.index(node) + 1}]" if len(same) > 1 else ""
            steps.append(label)
            node = parent
        return "/" + "/".join(reversed(steps))

    def partition(self, label: str) -> array[int]:
        """The handles of a label (`a`, `@a`, `#text`, `#comment`, ...) in no order; read only."""
        return self._partitions.get(label, _EMPTY)

    def labels(self) -> list[str]:
        """The labels that some node has."""
        return [label for label, handles in self._partitions.items() if handles]

    def may_bring_calls(self, stream: str) -> bool:
        """Whether the messages of an open stream may still hold new calls."""
        room = self.call(self._calls[stream]).calls - self.called.get(stream, 0)
        return self.any_calls or room > 0

    def calls(self) -> dict[str, int]:
        """The open calls: stream to handle."""
        return dict(self._calls)

    def call(self, node: int) -> Call:
        return self._call_at[node]

    def origin(self, node: int) -> tuple[str, int] | None:
        """The stream that brought a node and the number of its message, if one did."""
        for at in (node, *self.ancestors(node)):
            if at in self._origins:
                return self._origins[at]
        return None

    def namespaces(self, node: int) -> dict[str | None, str]:
        """The namespace declarations in scope at a node: prefix to address."""
        scope: dict[str | None, str] = {}
        for above in (node, *self.ancestors(node)):
            for prefix, address in self._declared.get(above, ()):
                scope.setdefault(prefix, address)
        return scope

    # Building (for document/ only) ------------------------------------------------------------

    def _name(self, label: str) -> int:
        known = self._name_ids.get(label)
        if known is None:
            known = self._name_ids[label] = len(self.names)
            self.names.append(label)
        return known

    def _new(self, kind: int, label: int, time: int) -> int:
        """A node that hangs nowhere yet."""
        if self._free:
            node = self._free.pop()
            self._kind[node] = kind
            self._parent[node] = self._first[node] = self._last[node] = NONE
            self._next[node] = self._prev[node] = self._place[node] = NONE
            self._label[node], self._order[node], self._time[node] = label, 1, time
            return node
        self._kind.append(kind)
        for column in (self._parent, self._first, self._last, self._next, self._prev, self._place):
            column.append(NONE)
        self._label.append(label)
        self._order.append(1)
        self._time.append(time)
        return len(self._kind) - 1

    def _new_named(self, kind: int, label: str, time: int) -> int:
        return self._new(kind, self._name(label), time)

    def _new_text(self, kind: int, text: str, time: int) -> int:
        node = self._new(kind, NONE, time)
        self._texts[node] = text
        return node

    def _append(self, parent: int, node: int) -> None:
        """Hang a new node last in the chain of a parent; its component follows the one before."""
        before = self._last[parent]
        self._parent[node] = parent
        self._prev[node] = before
        self._last[parent] = node
        if before == NONE:
            self._first[parent] = node
        else:
            self._next[before] = node
            if (self._kind[before] == ATTRIBUTE) == (self._kind[node] == ATTRIBUTE):
                self._place_at(node, ids.between(self.component(before), None))

    def _place_at(self, node: int, component: ids.Component) -> None:
        if len(component) == 1 and _FAR < component[0] < -_FAR:
            self._order[node] = component[0]
            self._far.pop(node, None)
        else:
            self._order[node] = _FAR
            self._far[node] = component

    def _partition_of(self, node: int) -> str | None:
        kind = self._kind[node]
        if kind in _NAMED:
            return self.names[self._label[node]]
        return LABELS_BY_KIND.get(kind)

    def _enter(self, node: int) -> None:
        """Put a node into its label's partition."""
        label = self._partition_of(node)
        if label is not None:
            handles = self._partitions.get(label)
            if handles is None:
                handles = self._partitions[label] = array("i")
            self._place[node] = len(handles)
            handles.append(node)

    def _leave(self, node: int) -> None:
        """Take a node out of its label's partition: the last one fills the hole."""
        label = self._partition_of(node)
        if label is not None:
            handles = self._partitions[label]
            last = handles.pop()
            if last != node:
                handles[self._place[node]] = last
                self._place[last] = self._place[node]

    def _release(self, node: int) -> None:
        """Free a subtree's handles; they are used again."""
        for dead in list(self.subtree(node)):
            self._kind[dead] = NodeKind.FREE
            for table in (
                self._texts, self._far, self._prefix, self._declared, self._call_at, self._origins,
            ):  # fmt: skip
                table.pop(dead, None)
            self._free.append(dead)

    def _columns(self) -> tuple[array[int], ...]:
        """Every column with one entry a node."""
        return (
            self._kind, self._parent, self._first, self._last, self._next, self._prev,
            self._label, self._order, self._time, self._place,
        )  # fmt: skip

    def __sizeof__(self) -> int:
        """Bytes of the columns, partitions and side tables; the text bytes left out."""
        columns = (*self._columns(), self._spans, *self._partitions.values())
        tables = (self._far, self._texts, self._prefix, self._declared)
        return sum(column.__sizeof__() for column in columns) + sum(
            table.__sizeof__() for table in tables
        )


_EMPTY: array[int] = array("i")
