"""The document as columns: a node is an integer handle, an index into growing arrays.

Node 0 is the document node. Its children are the root element and the comments and processing
instructions around it. The chain of an element holds its attributes first, then its children. An
attribute has one text below it. A call (`<ax:call stream="f"/>`) is a leaf of its own kind. The
order among siblings is a component of `ids`: one integer in a column, or a side table entry where
insertions needed more integers. Attributes and children are numbered separately. One array per
label (its partition) holds the handles of the nodes with that label, in no order; each node knows
its index in the partition, so removal takes constant time.

Law: ids never change; order, parent and ancestor tests on ids equal those on the tree.

This module stores and navigates; `loader.py` fills a tree and `pending.py` changes it. A removed
node's handle stays readable until the next update, and later updates reuse it. Keep ids, not
handles. An id is assigned again only after its node is gone.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from copy import copy
from enum import IntEnum
from typing import Any

from axlog.document import ids
from axlog.document.calls import Call
from axlog.document.ids import Id
from axlog.errors import UpdateError

NONE = -1
FIRST = -2
"""The label of texts that are the first of `Tree.shared_texts`."""
DOCUMENT_NODE = 0
TEXT_LABEL = "#text"
COMMENT_LABEL = "#comment"
INSTRUCTION_LABEL = "#instruction"
CALL_NAMESPACE = "urn:axlog"
CALL_LABEL = "{urn:axlog}call"
CALL_GAP = 1 << 24
"""Components left free before a call when a document is loaded, for data that arrives there."""

_FAR = -(1 << 31)  # in the order column: the component is in `long_components`


class NodeKind(IntEnum):
    """The kind of a node."""

    FREE = 0
    DOCUMENT = 1
    ELEMENT = 2
    ATTRIBUTE = 3
    TEXT = 4
    CALL = 5
    COMMENT = 6
    INSTRUCTION = 7


ELEMENT, ATTRIBUTE, TEXT = int(NodeKind.ELEMENT), int(NodeKind.ATTRIBUTE), int(NodeKind.TEXT)
CALL, COMMENT = int(NodeKind.CALL), int(NodeKind.COMMENT)
INSTRUCTION = int(NodeKind.INSTRUCTION)
_FREE = int(NodeKind.FREE)
_NAMED = (ELEMENT, ATTRIBUTE)
LABELS_BY_KIND = {
    TEXT: TEXT_LABEL,
    COMMENT: COMMENT_LABEL,
    INSTRUCTION: INSTRUCTION_LABEL,
}
"""The labels of the partitions of nodes that have no name."""
_LABELS_IN_IDS = LABELS_BY_KIND | {CALL: CALL_LABEL}


class Tree:
    """The columns of one document.

    Columns, indexed by handle, read-only outside `document/`:

    - `kind_column`: the `NodeKind`
    - `parent_column`, `first_column`, `last_column`, `next_column`, `previous_column`: handles of
      the parent, of the first and last node in the chain, and of the neighbours in the parent's
      chain; NONE where there is none
    - `label_column`: for elements and attributes an index into `names`; for other nodes an index
      into `text_starts`, NONE if the string is in `texts_by_node`, or below NONE -2 for the first
      of `shared_texts`, -3 for the second, and so on
    - `order_column`: the component among siblings, or a mark that it is in `long_components`
    - `time_column`: the node's time in microseconds
    - `slot_column`: the node's index in the partition of its label

    Tables, read-only outside `document/`:

    - `names`, `name_ids`: labels by name index, and name indexes by label
    - `tags_by_name`: markup by name index, a cache of `serializer`
    - `long_components`: handle to component, where one integer of 32 bits does not hold it
    - `text_bytes`, `text_starts`: the strings of loaded nodes in one UTF-8 string, and the offset
      of each; one more offset ends the last
    - `texts_by_node`: handle to string, for nodes made by updates
    - `shared_texts`: the strings of fragments that statements insert again and again
    - `edited`: a byte for each loaded node, 1 if its chain has changed or its handle is free
    - `nodes_by_label`: label to partition, the handles of its nodes in no order; `partition` first
      removes those of nodes that have left
    - `calls_by_stream`, `calls_by_node`: stream to handle of its open call; handle to `Call`
    - `prefixes_by_node`: handle to prefix, where the declarations in scope would give another one
    - `namespaces_by_node`: handle to the namespaces declared at that element
    - `origins_by_node`: root of a message's tree to the stream and the number of the message
    - `messages_by_key`, `keys_by_node`: of streams that replace, by stream and key the root of the
      message; and by root, its stream and key

    Names with `_` are for `document/` only.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.name_ids: dict[str, int] = {}
        self.tags_by_name: list[tuple[str, str, str]] = []
        self.kind_column = array("b")
        self.parent_column = array("i")
        self.first_column = array("i")
        self.last_column = array("i")
        self.next_column = array("i")
        self.previous_column = array("i")
        self.label_column = array("i")
        self.order_column = array("i")
        self.time_column = array("q")
        self.slot_column = array("i")
        self.long_components: dict[int, ids.Component] = {}
        self.text_starts = array("q", [0])
        self.text_bytes = b""
        self.texts_by_node: dict[int, str] = {}
        self.shared_texts: list[str] = []
        self._shared_numbers: dict[str, int] = {}
        self.edited = bytearray()
        self.nodes_by_label: dict[str, array[int]] = {}
        self.calls_by_stream: dict[str, int] = {}
        self.calls_by_node: dict[int, Call] = {}
        self.prefixes_by_node: dict[int, str | None] = {}
        self.namespaces_by_node: dict[int, tuple[tuple[str | None, str], ...]] = {}
        self.origins_by_node: dict[int, tuple[str, int]] = {}
        self._nodes_by_origin: dict[tuple[str, int], list[int]] | None = None
        self.messages_by_key: dict[str, dict[str, int]] = {}
        self.keys_by_node: dict[int, tuple[str, str]] = {}
        self._stale: set[str] = set()  # labels whose partitions may hold nodes that have left
        self._free: list[int] = []
        self._dying: list[int] = []  # removed by the last update, freed by the next
        self._size = 0  # nodes in the document, without the document node
        self.clock = 0
        self.version = 0  # counts updates; an index compares it to detect a missed one
        self.ended: set[str] = set()
        self.facts: tuple[Any, ...] = ()  # declared keys of future data; see `future.keys`
        self.references: tuple[Any, ...] = ()  # declared references; see `future.references`
        self.deliveries: dict[str, Any] = {}  # see `future.deliveries`; none: anything may come
        self.types: Any = None  # the document's schema, if it has one; see `document.schema`
        self.violations = 0  # updates that were applied although they break the types
        self.recorded_ids: dict[Id, Id] = {}  # see `update_lists.with_actual_ids`
        self.brought: dict[str, int] = {}  # trees that each open stream has inserted
        self.called: dict[str, int] = {}  # calls that each stream has inserted
        self.any_calls = False  # whether every stream may insert calls, as in version 0.1
        self._new(NodeKind.DOCUMENT, NONE, 0)

    def copied(self) -> Tree:
        """A copy of the document, to read while this one changes.

        Columns are copied as blocks of memory: a million nodes take about a tenth of a second.
        """
        made = Tree.__new__(Tree)
        for name, value in self.__dict__.items():
            is_column = isinstance(value, array | bytearray | list | dict | set)
            made.__dict__[name] = copy(value) if is_column else value
        made.nodes_by_label = {label: handles[:] for label, handles in self.nodes_by_label.items()}
        made.messages_by_key = {s: dict(roots) for s, roots in self.messages_by_key.items()}
        return made

    # Reading --------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of nodes, without the document node."""
        return self._size

    @property
    def root(self) -> int:
        """The root element's handle, NONE in an empty tree."""
        for node in self.children(DOCUMENT_NODE):
            if self.kind_column[node] == ELEMENT:
                return node
        return NONE

    def kind(self, node: int) -> NodeKind:
        return NodeKind(self.kind_column[node])

    def is_alive(self, node: int) -> bool:
        """Whether the handle is a node of the document, not a free or a detached one."""
        if not 0 <= node < len(self.kind_column) or self.kind_column[node] == NodeKind.FREE:
            return False
        while node != DOCUMENT_NODE:
            node = self.parent_column[node]
            if node == NONE:
                return False
        return True

    def parent(self, node: int) -> int:
        return self.parent_column[node]

    def next(self, node: int) -> int:
        return self.next_column[node]

    def previous(self, node: int) -> int:
        return self.previous_column[node]

    def time(self, node: int) -> int:
        return self.time_column[node]

    def label(self, node: int) -> str:
        """An element's name, an attribute's with `@`, a text's string, an instruction's target."""
        kind = self.kind_column[node]
        if kind == ELEMENT or kind == ATTRIBUTE:
            return self.names[self.label_column[node]]
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
        span = self.label_column[node]
        if span < 0:
            return self.texts_by_node[node] if span == NONE else self.shared_texts[FIRST - span]
        return self.text_bytes[self.text_starts[span] : self.text_starts[span + 1]].decode()

    def chain(self, node: int) -> Iterator[int]:
        """The attributes, then the children of every kind."""
        below = self.first_column[node]
        following = self.next_column
        while below != NONE:
            yield below
            below = following[below]

    def children(self, node: int) -> Iterator[int]:
        """The children of every kind: elements, texts, calls, comments, instructions."""
        kinds = self.kind_column
        return (below for below in self.chain(node) if kinds[below] != ATTRIBUTE)

    def attributes(self, node: int) -> Iterator[int]:
        for below in self.chain(node):
            if self.kind_column[below] != ATTRIBUTE:
                return
            yield below

    def ancestors(self, node: int) -> Iterator[int]:
        """The ancestors, from the parent up to the document node."""
        node = self.parent_column[node]
        while node != NONE:
            yield node
            node = self.parent_column[node]

    def subtree(self, node: int) -> Iterator[int]:
        """The node and all nodes below it in document order, with attributes and their texts."""
        first, following, parent = self.first_column, self.next_column, self.parent_column
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
        """All nodes below it in document order, without attributes and their texts."""
        kinds = self.kind_column
        stack = [self.first_column[node]]
        while stack:
            at = stack.pop()
            while at != NONE:
                if kinds[at] == ATTRIBUTE:
                    at = self.next_column[at]
                    continue
                yield at
                if self.next_column[at] != NONE:
                    stack.append(self.next_column[at])
                at = self.first_column[at]

    def string_value(self, node: int) -> str:
        """`val`: the texts below in document order, without attributes; an attribute's value."""
        kind = self.kind_column[node]
        if kind == TEXT:
            return self.text(node)
        if kind == ATTRIBUTE:
            return self.text(self.first_column[node])
        if kind == NodeKind.COMMENT:
            return self.text(node)
        if kind == NodeKind.INSTRUCTION:
            return self.text(node).partition(" ")[2]
        kinds = self.kind_column
        return "".join(self.text(n) for n in self.descendants(node) if kinds[n] == TEXT)

    def component(self, node: int) -> ids.Component:
        order = self.order_column[node]
        return self.long_components[node] if order == _FAR else (order,)

    def id(self, node: int) -> ids.Id:
        """The node's identifier, with the labels on its path."""
        return self.ids_of((node,))[0]

    def ids_of(self, nodes: Iterable[int]) -> list[ids.Id]:
        """The identifiers of nodes; the path that some have in common is read once."""
        kinds, parents, orders = self.kind_column, self.parent_column, self.order_column
        labels, names, encode, short = self.label_column, self.names, ids.encode, ids.SHORT
        many = len(short)
        known: dict[int, tuple[bytes, tuple[str, ...]]]
        known = {DOCUMENT_NODE: (b"", ()), NONE: (b"", ())}
        found = []
        for node in nodes:
            path, at = [], node
            while at not in known:
                path.append(at)
                at = parents[at]
            key, above = known[at]
            while path:
                at = path.pop()
                order, kind = orders[at], kinds[at]
                if kind != ATTRIBUTE and 0 <= order < many:
                    key += short[order]
                else:
                    key += encode(self.component(at), kind == ATTRIBUTE)
                label = names[labels[at]] if kind in _NAMED else _LABELS_IN_IDS[kind]
                above = (*above, label)
                known[at] = key, above
            found.append(Id(key, above))
        return found

    def find(self, identifier: ids.Id) -> int:
        """The node with this id; raises `UpdateError` (AX301) if there is none."""
        node = DOCUMENT_NODE
        for component, is_attribute in identifier.components():
            for below in self.chain(node):
                if self.component(below) == component and (
                    (self.kind_column[below] == ATTRIBUTE) == is_attribute
                ):
                    node = below
                    break
            else:
                raise UpdateError(
                    "AX301",
                    f"no node has the identifier {identifier}",
                    advice="the node was deleted; read the view's current rows",
                )
        return node

    def path(self, node: int) -> str:
        """A readable path to the node, such as /site/people/person[2]/@id."""
        from axlog.document.readable_path import path_of

        return path_of(self, node)

    def partition(self, label: str) -> array[int]:
        """The nodes with a label (`a`, `@a`, `#text`, `#comment`, ...), in no order; read-only."""
        if label in self._stale:
            from axlog.document.bulk_columns import sweep

            sweep(self, label)
        return self.nodes_by_label.get(label, _EMPTY)

    def labels(self) -> list[str]:
        """The labels that at least one node has."""
        for label in tuple(self._stale):
            self.partition(label)
        return [label for label, handles in self.nodes_by_label.items() if handles]

    def may_bring_calls(self, stream: str) -> bool:
        """Whether the messages of an open stream may still insert new calls."""
        room = self.call(self.calls_by_stream[stream]).calls - self.called.get(stream, 0)
        return self.any_calls or room > 0

    def calls(self) -> dict[str, int]:
        """The open calls: stream to handle."""
        return dict(self.calls_by_stream)

    def call(self, node: int) -> Call:
        return self.calls_by_node[node]

    def origin(self, node: int) -> tuple[str, int] | None:
        """The stream and number of the message that inserted a node, if a message did."""
        for at in (node, *self.ancestors(node)):
            if at in self.origins_by_node:
                return self.origins_by_node[at]
        return None

    def record_origin(self, nodes: Iterable[int], stream: str, number: int) -> None:
        """Record the message that inserted these nodes and everything below them."""
        origin = (stream, number)
        if self._nodes_by_origin is not None:
            self._nodes_by_origin[origin] = nodes = list(nodes)
        self.origins_by_node.update(dict.fromkeys(nodes, origin))

    def inserted_by(self, stream: str, number: int) -> list[int]:
        """The roots of the trees that a message inserted and that are still in the document.

        The first call makes an index. It is kept from then on, and made again when most of its
        messages are gone.
        """
        origins, origin = self.origins_by_node, (stream, number)
        known = self._nodes_by_origin
        if known is None or len(known) > 2 * len(origins) + _MANY:
            known = self._nodes_by_origin = {}
            for node, found in origins.items():
                known.setdefault(found, []).append(node)
        nodes = known.get(origin, ())
        return [node for node in nodes if origins.get(node) == origin and self.is_alive(node)]

    def namespaces(self, node: int) -> dict[str | None, str]:
        """The namespace declarations in scope at a node: prefix to address."""
        scope: dict[str | None, str] = {}
        for above in (node, *self.ancestors(node)):
            for prefix, address in self.namespaces_by_node.get(above, ()):
                scope.setdefault(prefix, address)
        return scope

    # Building (for document/ only) ------------------------------------------------------------

    def _name(self, label: str) -> int:
        known = self.name_ids.get(label)
        if known is None:
            known = self.name_ids[label] = len(self.names)
            self.names.append(label)
        return known

    def _shared(self, text: str) -> int:
        """The label of texts that share this string; NONE if too many are shared already."""
        number = self._shared_numbers.get(text)
        if number is None:
            number = len(self.shared_texts)
            if number == MOST_SHARED:
                return NONE
            self._shared_numbers[text] = number
            self.shared_texts.append(text)
        return FIRST - number

    def _new(self, kind: int, label: int, time: int) -> int:
        """A node without a parent."""
        if self._free:
            node = self._free.pop()
            self.kind_column[node] = kind
            self.parent_column[node] = self.first_column[node] = self.last_column[node] = NONE
            self.next_column[node] = self.previous_column[node] = self.slot_column[node] = NONE
            self.label_column[node], self.order_column[node] = label, 1
            self.time_column[node] = time
            return node
        self.kind_column.append(kind)
        for column in (
            self.parent_column, self.first_column, self.last_column, self.next_column,
            self.previous_column, self.slot_column,
        ):  # fmt: skip
            column.append(NONE)
        self.label_column.append(label)
        self.order_column.append(1)
        self.time_column.append(time)
        return len(self.kind_column) - 1

    def _new_named(self, kind: int, label: str, time: int) -> int:
        return self._new(kind, self._name(label), time)

    def _new_text(self, kind: int, text: str, time: int) -> int:
        node = self._new(kind, NONE, time)
        self.texts_by_node[node] = text
        return node

    def _append(self, parent: int, node: int) -> None:
        """Append a new node to the chain of a parent, with the next component."""
        before = self.last_column[parent]
        self._mark_edited((parent,))
        self.parent_column[node] = parent
        self.previous_column[node] = before
        self.last_column[parent] = node
        if before == NONE:
            self.first_column[parent] = node
        else:
            self.next_column[before] = node
            if (self.kind_column[before] == ATTRIBUTE) == (self.kind_column[node] == ATTRIBUTE):
                self._place_at(node, ids.between(self.component(before), None))

    def _place_at(self, node: int, component: ids.Component) -> None:
        if len(component) == 1 and _FAR < component[0] < -_FAR:
            self.order_column[node] = component[0]
            self.long_components.pop(node, None)
        else:
            self.order_column[node] = _FAR
            self.long_components[node] = component

    def _partition_of(self, node: int) -> str | None:
        kind = self.kind_column[node]
        if kind in _NAMED:
            return self.names[self.label_column[node]]
        return LABELS_BY_KIND.get(kind)

    def _enter(self, node: int) -> None:
        """Add a node to the partition of its label."""
        label = self._partition_of(node)
        if label is not None:
            handles = self.nodes_by_label.get(label)
            if handles is None:
                handles = self.nodes_by_label[label] = array("i")
            self.slot_column[node] = len(handles)
            handles.append(node)

    def _leave(self, node: int) -> None:
        """Remove a node from the partition of its label: the last one fills its slot."""
        label = self._partition_of(node)
        if label is not None:
            handles = self.partition(label)
            last = handles.pop()
            if last != node:
                handles[self.slot_column[node]] = last
                self.slot_column[last] = self.slot_column[node]

    def message_of(self, stream: str, key: str) -> int:
        """The root of the message of a stream that has a key; NONE if there is none."""
        return self.messages_by_key.get(stream, _NO_MESSAGES).get(key, NONE)

    def _record_message(self, stream: str, key: str, root: int) -> None:
        """Record the message that a stream which replaces has for a key."""
        self.messages_by_key.setdefault(stream, {})[key] = root
        self.keys_by_node[root] = stream, key

    def _forget_messages(self, roots: Iterable[int]) -> None:
        """Forget the keys of messages that are removed from the document."""
        keys = self.keys_by_node
        for root in roots if keys else ():
            if root in keys:
                stream, key = keys.pop(root)
                del self.messages_by_key[stream][key]

    def _close_streams(self, streams: Iterable[str]) -> None:
        """Close the calls of streams. Later messages of these names replace nothing."""
        for stream in streams:
            del self.calls_by_stream[stream]
            self.brought.pop(stream, None)
            self._forget_messages(list(self.messages_by_key.get(stream, _NO_MESSAGES).values()))
            self.messages_by_key.pop(stream, None)
            self.ended.add(stream)

    def _release(self, node: int) -> None:
        """Free the handles of a subtree for reuse."""
        self._release_nodes(list(self.subtree(node)))

    def _mark_edited(self, nodes: Iterable[int]) -> None:
        """Mark nodes whose chains change, or whose handles are free."""
        edited = self.edited
        size = len(edited)
        for node in nodes:
            if node < size:
                edited[node] = 1

    def _release_nodes(self, nodes: list[int]) -> None:
        """Free handles for reuse."""
        self._mark_edited(nodes)
        for dead in nodes:
            self.kind_column[dead] = _FREE
        for table in self._side_tables():
            for dead in nodes if table else ():
                table.pop(dead, None)
        self._free += nodes

    def _side_tables(self) -> tuple[dict[int, Any], ...]:
        """The tables with an entry for some nodes, which goes with the node."""
        texts, components = self.texts_by_node, self.long_components
        names = self.prefixes_by_node, self.namespaces_by_node
        return texts, components, *names, self.calls_by_node, self.origins_by_node

    def _columns(self) -> tuple[array[int], ...]:
        """The columns with one entry per node."""
        return (
            self.kind_column, self.parent_column, self.first_column, self.last_column,
            self.next_column, self.previous_column, self.label_column, self.order_column,
            self.time_column, self.slot_column,
        )  # fmt: skip

    def __sizeof__(self) -> int:
        """Bytes of the columns, partitions and side tables; without the text bytes."""
        columns = (*self._columns(), self.text_starts, *self.nodes_by_label.values())
        others = (self.edited, *self._side_tables()[:4])
        return sum(each.__sizeof__() for each in (*columns, *others))


MOST_SHARED = 1 << 12
"""The most strings that texts share: they are kept as long as the document."""
_EMPTY: array[int] = array("i")
_MANY = 64
"""The slack of an index."""
_NO_MESSAGES: dict[str, int] = {}
