"""The delta: what one pending update list adds to and removes from each label's relation (P5 3.1).

Subtrees that go and come are given by their roots; a node that is renamed or gets another value
keeps its handle and id and is listed with what it was. `plus` and `minus` are Δ+ and Δ- per label
with the handles, worked out when asked. Maintainers see a delta twice: before it is applied, when
removed subtrees still hang where they were and added ones are built and know their parents but
hang in no chain, and after, when it is the other way round. A delta is good until the next update
is carried out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from axlog.document.tree import ATTRIBUTE, ELEMENT, LABELS_BY_KIND, Tree


@dataclass(frozen=True, slots=True)
class Changed:
    """A node whose name or text another takes the place of; its handle and id stay.

    A text that is replaced by the same text changes its time alone.
    """

    node: int
    old: str
    new: str
    old_time: int
    new_time: int


@dataclass(slots=True)
class Delta:
    """What one update does to a tree."""

    tree: Tree
    time: int
    removed: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    copies: dict[int, list[int]] = field(default_factory=dict)
    """Roots built from the same element, by its identity: subtrees that are alike. Some may not
    have been added."""
    blocks: list[np.ndarray[Any, np.dtype[np.int32]]] = field(default_factory=list)
    """All that was added, where it is known to be copies: for each fragment a row of handles for
    every copy, in the fragment's document order."""
    nodes_removed: np.ndarray[Any, np.dtype[np.int32]] | None = None
    """All nodes that go, where they were gathered already."""
    labels_removed: dict[str, np.ndarray[Any, np.dtype[np.int32]]] = field(default_factory=dict)
    """The same by label, Δ- as arrays."""

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.changed)

    def plus(self) -> dict[str, list[int]]:
        """Δ+ per label (`a`, `@a`, `#text`, `#comment`, `#instruction`)."""
        return self._by_label(self.added)

    def minus(self) -> dict[str, list[int]]:
        """Δ- per label. A renamed node stands in both, under its old and its new label."""
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
    """Whether an element or attribute gets another name."""
    kinds = delta.tree.kind_column
    return any(kinds[change.node] in (ELEMENT, ATTRIBUTE) for change in delta.changed)


class Watcher(Protocol):
    """Something that follows a document: a maintainer, an index."""

    def before(self, delta: Delta) -> None: ...

    def after(self, delta: Delta) -> None: ...


class Planned(Protocol):
    """A pending update list worked out: its delta, and what makes it true or forgets it."""

    delta: Delta

    def commit(self) -> None: ...

    def abandon(self) -> None: ...
