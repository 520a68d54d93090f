"""Whether a document of some future respects the declared facts: keys, references, types.

A key forbids a second node with a value that a node ever had, also one that was deleted. A new node
may have the id of a deleted one, so `after_deletions` notes which nodes are gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from axlog.document.ids import Id
from axlog.document.schema import is_valid
from axlog.document.tree import Tree
from axlog.future.keys import Key, values_seen
from axlog.future.references import refers_to_nothing

Owners = Mapping[Key, Mapping[str, frozenset[Id | None]]]
"""The nodes that have had each value of each key; None: a node that is gone."""


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
        return not any(refers_to_nothing(later, each) for each in self.tree.references)

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
