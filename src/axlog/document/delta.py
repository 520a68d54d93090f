"""The delta: the nodes that one pending update list adds to and removes from each label's relation.

Added and removed subtrees are given by their roots. A node that is renamed or gets a new value
keeps its handle and id and is listed with its old state. `plus` and `minus` are Δ+ and Δ- per label
with the handles, computed on request. Maintainers see a delta twice. Before it is applied, removed
subtrees are still in place, and added ones are built and know their parents but are in no chain.
Afterwards it is the other way round. A delta is valid until the next update is applied.
(Paper 5, section 3.1.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from axlog.document.tree import ATTRIBUTE, CALL, ELEMENT, LABELS_BY_KIND, Tree


@dataclass(frozen=True, slots=True)
class Changed:
    """A node with a new name or text; its handle and id stay.

    A text replaced by the same text changes only its time.
    """

    node: int
    old: str
    new: str
    old_time: int
    new_time: int


@dataclass(slots=True)
class Delta:
    """The effect of one update on a tree."""

    tree: Tree
    time: int
    removed: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    copies: dict[int, list[int]] = field(default_factory=dict)
    """Roots built from the same element, by its identity: equal subtrees. Some may not have been
    added."""
    blocks: list[np.ndarray[Any, np.dtype[np.int32]]] = field(default_factory=list)
    """All added nodes, if they are known to be copies: for each fragment a row of handles per copy,
    in the fragment's document order."""
    labels_added: frozenset[str] = frozenset()
    """The labels of all added nodes, if they are known to be copies."""
    nodes_removed: np.ndarray[Any, np.dtype[np.int32]] | None = None
    """All removed nodes, if they were collected already."""
    labels_removed: dict[str, np.ndarray[Any, np.dtype[np.int32]]] = field(default_factory=dict)
    """The same by label, Δ- as arrays."""

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.changed)

    def plus(self) -> dict[str, list[int]]:
        """Δ+ per label (`a`, `@a`, `#text`, `#comment`, `#instruction`)."""
        return self._by_label(self.added)

    def minus(self) -> dict[str, list[int]]:
        """Δ- per label. A renamed node is in both, under its old and its new label."""
        return self._by_label(self.removed, old=True)

    def _by_label(self, roots: list[int], old: bool = False) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for label, node in self._labelled(roots, old):
            found.setdefault(label, []).append(node)
        return found

    def _labelled(self, roots: list[int], old: bool) -> Iterator[tuple[str, int]]:
        tree = self.tree
        for root in roots:
            for node in tree.subtree(root):
                label = tree._partition_of(node)
                if label is not None:
                    yield label, node
        for change in self.changed:
            if tree.kind_column[change.node] in (ELEMENT, ATTRIBUTE):
                yield change.old if old else change.new, change.node
            else:
                yield LABELS_BY_KIND[tree.kind_column[change.node]], change.node


def renames(delta: Delta) -> bool:
    """Whether the delta renames an element or attribute."""
    kinds = delta.tree.kind_column
    return any(kinds[change.node] in (ELEMENT, ATTRIBUTE) for change in delta.changed)


def takes_away(delta: Delta) -> bool:
    """Whether an update removes more than calls, or changes a node."""
    kinds = delta.tree.kind_column
    return bool(delta.changed) or any(kinds[node] != CALL for node in delta.removed)


def only_adds(delta: Delta) -> bool:
    """Whether an update removes nothing but calls, changes nothing and opens no call."""
    return not (delta.opened or takes_away(delta))


class Watcher(Protocol):
    """An observer of a document's deltas: a maintainer, an index."""

    def before(self, delta: Delta) -> None: ...

    def after(self, delta: Delta) -> None: ...


class Planned(Protocol):
    """A planned update: its delta, `commit` to apply it, `abandon` to discard it."""

    delta: Delta

    def commit(self) -> None: ...

    def abandon(self) -> None: ...
