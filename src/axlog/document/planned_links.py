"""The chains of a tree as a plan would leave them: only the changed links, beside the columns.

The chain of a node holds its attributes, then its children. Linking gives the new node a component
between its neighbours (`ids.between`). No other node's component is ever changed: this is the law
that ids never change. The component of a node that the plan removes is not given again. So in one
update an id stands for one node, and a deleted row and an inserted row differ. The exception is a
message that replaces an earlier one: it takes over the id of its root (`replace`). The columns are
not written before `write`, except the parent of a node that is in no chain yet. A removed node
keeps its links there.
"""

from __future__ import annotations

from axlog.document import ids
from axlog.document.tree import ATTRIBUTE, NONE, Tree


class _Chain:
    """Links of one parent's chain that differ from the columns."""

    __slots__ = ("first", "last", "left", "next", "prev")

    def __init__(self, tree: Tree, parent: int) -> None:
        self.first = tree.first_column[parent]
        self.last = tree.last_column[parent]
        self.next: dict[int, int] = {}
        self.prev: dict[int, int] = {}
        self.left: set[tuple[bool, ids.Component]] = (
            set()
        )  # components of removed nodes; the flag marks attributes


class Chains:
    """All chains that a plan changes, the removed nodes, and the components of the new ones."""

    __slots__ = ("_chains", "_tree", "components", "gone")

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._chains: dict[int, _Chain] = {}
        self.gone: set[int] = set()
        self.components: dict[int, ids.Component] = {}

    def parents(self) -> list[int]:
        """The nodes whose chains change."""
        return list(self._chains)

    def changes(self, parent: int) -> bool:
        return parent in self._chains

    def forget(self, parent: int) -> None:
        """Discard the changes of a chain."""
        del self._chains[parent]

    def _chain(self, parent: int) -> _Chain:
        chain = self._chains.get(parent)
        if chain is None:
            chain = self._chains[parent] = _Chain(self._tree, parent)
        return chain

    # Reading ------------------------------------------------------------------------------------

    def following(self, parent: int, node: int) -> int:
        """The node after a node; after NONE, the first one."""
        chain = self._chains.get(parent)
        if chain is None:
            return self._tree.first_column[parent] if node == NONE else self._tree.next_column[node]
        return chain.first if node == NONE else chain.next.get(node, self._tree.next_column[node])

    def previous(self, parent: int, node: int) -> int:
        """The node before a node; before NONE, the last one."""
        chain = self._chains.get(parent)
        if chain is None:
            return (
                self._tree.last_column[parent] if node == NONE else self._tree.previous_column[node]
            )
        return (
            chain.last if node == NONE else chain.prev.get(node, self._tree.previous_column[node])
        )

    def last_attribute(self, parent: int) -> int:
        after, at = NONE, self.following(parent, NONE)
        while at != NONE and self._tree.kind_column[at] == ATTRIBUTE:
            after, at = at, self.following(parent, at)
        return after

    def planned(self, parent: int) -> list[int]:
        """The whole chain, in order."""
        found = []
        at = self.following(parent, NONE)
        while at != NONE:
            found.append(at)
            at = self.following(parent, at)
        return found

    def touched(self, parent: int) -> list[int]:
        """The changed nodes of a chain, removed ones too; at least one of two new neighbours."""
        chain = self._chains[parent]
        return [node for node in (chain.first, *chain.next) if node != NONE]

    # Changing -----------------------------------------------------------------------------------

    def link(self, parent: int, node: int, after: int) -> None:
        """Link a new node after another (NONE: first), with a new component."""
        chain = self._chain(parent)
        following = self.following(parent, after)
        self._tree.parent_column[node] = parent
        self.components[node] = self._component_between(node, after, following, chain.left)
        _join(chain, after, node)
        _join(chain, node, following)

    def _component_between(
        self, node: int, after: int, following: int, left: set[tuple[bool, ids.Component]]
    ) -> ids.Component:
        """A free component; attributes and children are numbered separately."""
        is_attribute = self._tree.kind_column[node] == ATTRIBUTE
        low, high = (
            None
            if other == NONE or (self._tree.kind_column[other] == ATTRIBUTE) != is_attribute
            else self.components.get(other) or self._tree.component(other)
            for other in (after, following)
        )
        component = ids.between(low, high)
        while (is_attribute, component) in left:
            component = ids.between(component, high)
        return component

    def detach(self, node: int) -> None:
        """Remove a node from its chain."""
        if node in self.gone:
            return
        self.gone.add(node)
        parent = self._tree.parent_column[node]
        chain = self._chain(parent)
        if node not in self.components:  # a node linked by this plan never had one before
            is_attribute = self._tree.kind_column[node] == ATTRIBUTE
            chain.left.add((is_attribute, self._tree.component(node)))
        _join(chain, self.previous(parent, node), self.following(parent, node))

    def replace(self, old: int, new: int) -> None:
        """Put a new node in the place of another. It gets the component of the other, so its id."""
        parent = self._tree.parent_column[old]
        chain = self._chain(parent)
        previous, following = self.previous(parent, old), self.following(parent, old)
        self._tree.parent_column[new] = parent
        self.components[new] = self._tree.component(old)
        self.gone.add(old)
        _join(chain, previous, new)
        _join(chain, new, following)

    def write(self) -> None:
        """Write the links into the columns; removed nodes keep theirs."""
        tree, gone = self._tree, self.gone
        tree._mark_edited(self._chains)
        for parent, chain in self._chains.items():
            tree.first_column[parent], tree.last_column[parent] = chain.first, chain.last
            for node, following in chain.next.items():
                if node not in gone:
                    tree.next_column[node] = following
            for node, previous in chain.prev.items():
                if node not in gone:
                    tree.previous_column[node] = previous


def _join(chain: _Chain, left: int, right: int) -> None:
    if left == NONE:
        chain.first = right
    else:
        chain.next[left] = right
    if right == NONE:
        chain.last = left
    else:
        chain.prev[right] = left
