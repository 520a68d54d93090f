"""Whether a document of some future respects the declared facts: keys, references, types.

A key forbids a second node with a value that a node ever had, also one that was deleted. A new node
may have the id of a deleted one, so `after_deletions` notes which nodes are gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from axlog.document.ids import Id
from axlog.document.schema import is_valid
from axlog.document.tree import ATTRIBUTE, ELEMENT, TEXT, Tree
from axlog.future.keys import Key
from axlog.future.references import ForeignKey

Owners = Mapping[Key, Mapping[str, frozenset[Id | None]]]
"""The nodes that have had each value of each key; None: a node that is gone."""


def values_seen(tree: Tree, key: Key) -> dict[str, set[int]]:
    """The values of a key's nodes: of each node by its path, the string value and the children.

    By a walk of its own: `future/keys.py` evaluates patterns.
    """
    found: dict[str, set[int]] = {}
    owners = [] if tree.root < 0 else [tree.root]
    for step in key.path:
        owners = [child for node in owners for child in _named(tree, node, step)]
    for owner in owners:
        nodes = [owner]
        for step in key.by:
            nodes = [child for node in nodes for child in _named(tree, node, step)]
        for node in nodes:
            found.setdefault(tree.string_value(node), set()).add(owner)
            for child in tree.children(node):
                if tree.kind_column[child] in (ELEMENT, TEXT):
                    found.setdefault(tree.label(child), set()).add(owner)
    return found


def _named(tree: Tree, node: int, step: str) -> Iterator[int]:
    name, kind = step.removeprefix("@"), ATTRIBUTE if step.startswith("@") else ELEMENT
    for child in tree.chain(node):
        if tree.kind_column[child] == kind and tree.label(child).removeprefix("@") == name:
            yield child


def _refers_to_nothing(tree: Tree, reference: ForeignKey) -> bool:
    there = values_seen(tree, reference.target)
    return any(value not in there for value in values_seen(tree, reference.source))


@dataclass(frozen=True, slots=True)
class DeclaredFacts:
    """The facts of a document that later documents must respect."""

    tree: Tree
    owners: Owners

    @staticmethod
    def of(tree: Tree) -> DeclaredFacts | None:
        """The facts that a document declares; None if there are none."""
        if not tree.facts and not tree.references and tree.types is None:
            return None
        return DeclaredFacts(
            tree,
            {
                key: {
                    v: frozenset(map(tree.id, nodes)) for v, nodes in values_seen(tree, key).items()
                }
                for key in tree.facts
            },
        )

    def __call__(self, later: Tree) -> bool:
        """Whether a later document respects the facts."""
        for key, owners in self.owners.items():
            for value, nodes in values_seen(later, key).items():
                if len({*map(later.id, nodes), *owners.get(value, ())}) > 1:
                    return False
        if self.tree.types is not None and not is_valid(later, self.tree.types):
            return False
        return not any(_refers_to_nothing(later, each) for each in self.tree.references)

    def after_deletions(self, later: Tree) -> DeclaredFacts:
        """The facts once nodes were deleted: their values stay used, and their ids are free."""
        there = set(map(later.id, later.subtree(0)))
        return replace(
            self,
            owners={
                key: {
                    v: frozenset(n if n in there else None for n in nodes)
                    for v, nodes in owners.items()
                }
                for key, owners in self.owners.items()
            },
        )
