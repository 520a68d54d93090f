"""The value index: for a label, from string values to the nodes that have them.

The index of a label is built when a query first compares the label with `=`, and is then maintained
with the document (`pending.commit`). An update costs what it touches, so `person[@id = "person0"]`
needs no walk, however large the document is. Elements are indexed only if they contain nothing but
text when the index is built: values of larger subtrees would cost more than they save.

Law: after every update, `find` equals a scan of the label's partition. An index that missed an
update is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from axlog.document.delta import Delta
from axlog.document.tree import ATTRIBUTE, ELEMENT, NONE, TEXT, Tree


class ValueIndex:
    """The indexes of the labels that queries compare. Labels are `a` and `@a`."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._values: dict[str, dict[int, str]] = {}  # label to node to value
        self._nodes: dict[str, dict[str, set[int]]] = {}  # label to value to nodes
        self._refused: set[str] = set()
        self._mixed: set[str] = set()  # labels of elements with more in them than one text
        self._has_elements = False
        self._above: set[int] = set()  # indexed elements whose value the current update may change
        self._version = tree.version
        self.built = 0  # nodes read to build indexes; tests of idle work read it

    def find(self, label: str, value: str) -> Collection[int] | None:
        """The nodes of a label with this string value; None if the label is not indexed."""
        if self.tree.version != self._version:
            self._forget()
        known = self._nodes.get(label)
        if known is None:
            if label in self._refused or not self._build(label):
                return None
            known = self._nodes[label]
        return known.get(value, ())

    def find_text(self, label: str, text: str) -> Collection[int] | None:
        """The elements of a label that have this text; None if the index does not know them."""
        found = self.find(label, text)
        return None if label in self._mixed else found

    def above(
        self, label: str, value: str, levels: int, most: int | None = None
    ) -> set[int] | None:
        """The nodes that have a node of a label with this value so many levels below them.

        None if the label is not indexed, or if more than `most` nodes have the value.
        """
        found = self.find(label, value)
        if found is None or (most is not None and len(found) > most):
            return None
        nodes, parent = set(found), self.tree.parent_column
        for _ in range(levels):
            nodes = {parent[node] for node in nodes}
        return nodes

    def labels(self) -> list[str]:
        """The labels that are indexed."""
        return list(self._values)

    def _forget(self) -> None:
        """Drop all indexes, because the document changed unobserved."""
        self._values.clear()
        self._nodes.clear()
        self._refused.clear()
        self._mixed.clear()
        self._has_elements = False
        self._version = self.tree.version

    def _build(self, label: str) -> bool:
        tree = self.tree
        nodes = tree.partition(label)
        if label[0] != "@" and not all(self._is_simple(node) for node in nodes):
            self._refused.add(label)
            return False
        self._values[label], self._nodes[label] = {}, {}
        self._has_elements = self._has_elements or label[0] != "@"
        self.built += len(nodes)
        for node in nodes:
            self._add(label, node)
        return True

    def _is_simple(self, node: int) -> bool:
        return all(self.tree.kind_column[below] == TEXT for below in self.tree.children(node))

    def _add(self, label: str, node: int) -> None:
        tree = self.tree
        only = tree.first_column[node]
        if only != NONE and tree.kind_column[only] == TEXT and tree.next_column[only] == NONE:
            value = tree.text(only)
        else:
            value = tree.string_value(node)
            if label[0] != "@" and not self._is_simple(node):
                self._mixed.add(label)
        self._values[label][node] = value
        self._nodes[label].setdefault(value, set()).add(node)

    def _drop(self, label: str, node: int) -> None:
        value = self._values[label].pop(node, None)
        if value is not None:
            nodes = self._nodes[label][value]
            nodes.discard(node)
            if not nodes:
                del self._nodes[label][value]

    # Following the document ---------------------------------------------------------------------

    def before(self, delta: Delta) -> None:
        """Record the elements above removed nodes: afterwards they cannot be found."""
        self._above.clear()
        if self._has_elements:
            for root in delta.removed:
                self._note_above(root)

    def follow(self, deltas: Sequence[Delta]) -> None:
        """Update the indexes after updates that inserted nodes, one tree version each."""
        if not self._values:
            self._version += len(deltas)
            return
        version = self.tree.version
        for number, delta in enumerate(deltas, 1):
            self._follow(delta, version - len(deltas) + number)

    def after(self, delta: Delta) -> None:
        """Update the indexes after an update."""
        self._follow(delta, self.tree.version)

    def _follow(self, delta: Delta, version: int) -> None:
        """Update the indexes after the update that made this version of the tree."""
        tree = self.tree
        self._version += 1
        if self._version != version:
            self._forget()
        if not self._values:
            return
        for root in delta.removed:
            for node in tree.subtree(root):
                label = self._indexed(node)
                if label is not None:
                    self._drop(label, node)
        for change in delta.changed:
            self._take_change(change.node, change.old)
        labels = delta.labels_added
        sees_none = labels and not self._has_elements and self._values.keys().isdisjoint(labels)
        for root in () if sees_none else delta.added:
            if self._has_elements:
                self._note_above(root)
            for node in tree.subtree(root):
                label = self._indexed(node)
                if label is not None:
                    self._add(label, node)
        for node in self._above:
            label = self._indexed(node)
            if label is not None:
                self._drop(label, node)
                self._add(label, node)
        self._above.clear()

    def leave(self, nodes: Sequence[int], parent: int) -> None:
        """Update the indexes after the removal of one subtree from below a node.

        Its nodes are still readable.
        """
        tree = self.tree
        self._version += 1
        if self._version != tree.version:
            self._forget()
        if not self._values:
            return
        kinds, labels, names, indexed = (
            tree.kind_column, tree.label_column, tree.names, self._values,
        )  # fmt: skip
        for node in nodes:
            kind = kinds[node]
            if kind == ELEMENT or kind == ATTRIBUTE:
                label = names[labels[node]]
                if label in indexed:
                    self._drop(label, node)
        if self._has_elements:
            for node in (parent, *tree.ancestors(parent)):
                above = self._indexed(node)
                if above is not None:
                    self._drop(above, node)
                    self._add(above, node)

    def _take_change(self, node: int, old: str) -> None:
        kind = self.tree.kind_column[node]
        if kind == TEXT:
            above = self.tree.parent_column[node]
            if above != NONE and self.tree.kind_column[above] == ATTRIBUTE:
                self._above.add(above)
            elif self._has_elements:
                self._note_above(node)
        elif kind == ELEMENT or kind == ATTRIBUTE:  # renamed
            if old in self._values:
                self._drop(old, node)
            label = self._indexed(node)
            if label is not None:
                self._add(label, node)

    def _note_above(self, node: int) -> None:
        """Mark every indexed element above a node: its value may change."""
        self._above.update(
            above for above in self.tree.ancestors(node) if self._indexed(above) is not None
        )

    def _indexed(self, node: int) -> str | None:
        """The node's label, if it is indexed."""
        kind = self.tree.kind_column[node]
        if kind == ELEMENT or kind == ATTRIBUTE:
            label = self.tree.names[self.tree.label_column[node]]
            return label if label in self._values else None
        return None
