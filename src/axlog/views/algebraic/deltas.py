"""Delta tables: the nodes that an update adds to and takes from each label's relation (P5 3.1).

CD+ and CD- (algorithm 2): the subtrees that come and go are walked once for all views, and split by
label when a view first asks for one. A view adds what is its own: a node that stays, but whose
test, selection or shown value the update turns (it is renamed, its text is another, a comparison,
`or` or `not` now says otherwise), is restated: it goes and comes back with all below it, ids kept.
So what is in a delta has everything below it in the delta, which propositions 3.3 and 4.2 rest on
(DESIGN section 6).

`before` sees the tree with what goes still in it, `after` the tree with what came. Once an update
is applied the removed roots have lost their parents: `rehung` gives them back for as long as the
terms of what went are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from axlog.document.delta import Delta
from axlog.document.tree import ATTRIBUTE, ELEMENT, NONE, TEXT, Tree
from axlog.evaluate.columns import NOTHING, Columns, Handles, Mask, handles
from axlog.evaluate.structural import ancestors, passing, subtrees
from axlog.language.pattern import AnyText, Axis, Literal, Name, PatternNode


class NodeTable:
    """Nodes that come or go together, split by label as views ask for them."""

    def __init__(self, nodes: Handles) -> None:
        self.nodes = nodes
        self._kinds: Handles | None = None
        self._labels: Handles = NOTHING
        self._by_label: dict[tuple[int, int], Handles] = {}

    def passing(self, columns: Columns, step: PatternNode) -> Handles:
        """The nodes that pass a pattern node's test."""
        found = self.candidates(columns, step)
        if isinstance(step.test, Literal):
            found = found[passing(columns, found, step)]
        return found

    def candidates(self, columns: Columns, step: PatternNode) -> Handles:
        """The same, but for a text any text; worked out once for each label."""
        match step.test:
            case Name(label=label):
                is_attribute = step.axis is Axis.ATTRIBUTE
                number = columns.tree._name_ids.get(f"@{label}" if is_attribute else label, -2)
                return self._labelled(columns, ATTRIBUTE if is_attribute else ELEMENT, number)
            case Literal() | AnyText():
                return self._labelled(columns, TEXT, NONE)
        return self.nodes[passing(columns, self.nodes, step)]

    def _labelled(self, columns: Columns, kind: int, label: int) -> Handles:
        known = self._by_label.get((kind, label))
        if known is None:
            if self._kinds is None:
                self._kinds, self._labels = columns.kind[self.nodes], columns.label[self.nodes]
            is_wanted = self._kinds == kind
            if kind != TEXT:
                is_wanted &= self._labels == label
            known = self._by_label[kind, label] = self.nodes[is_wanted]
        return known


@dataclass(slots=True)
class DeltaTables:
    """What all views share of one update."""

    delta: Delta
    removed: NodeTable
    roots: Handles  # of what is removed
    parents: Handles  # of those roots
    touched: Handles  # nodes above what changes, or changed themselves: values may be others
    changed: Handles
    added: NodeTable = field(default_factory=lambda: NodeTable(NOTHING))

    @property
    def size(self) -> int:
        return len(self.removed.nodes) + len(self.added.nodes)


def before(columns: Columns, delta: Delta) -> DeltaTables:
    """CD-: what is about to go."""
    tree = columns.tree
    roots = handles(delta.removed)
    removed = subtrees(tree, roots) if delta.removed else NOTHING
    changed = handles([change.node for change in delta.changed])
    parents = columns.parent[roots]
    places = np.concatenate([parents, columns.parent[handles(delta.added)], changed])
    touched = ancestors(columns, places[places != NONE])
    return DeltaTables(delta, NodeTable(removed), roots, parents, touched, changed)


def after(tree: Tree, tables: DeltaTables) -> None:
    """CD+: what has come."""
    if tables.delta.added:
        tables.added = NodeTable(subtrees(tree, tables.delta.added))


@contextmanager
def rehung(columns: Columns, tables: DeltaTables) -> Iterator[None]:
    """What went hangs by its parents again, for those who look up from it."""
    columns.parent[tables.roots] = tables.parents
    try:
        yield
    finally:
        columns.parent[tables.roots] = NONE


class Era:
    """One side of an update for one view: the document before it, or after.

    `is_moving` says by handle what is on one side only, whichever, restated nodes too; `candidates`
    and `members` are, for each pattern node, the nodes of this side that may be in its relation,
    and those that are, worked out when asked for.
    """

    def __init__(
        self,
        sign: int,
        is_moving: Mask,
        candidates: Callable[[int], Handles],
        members: Callable[[int], Handles],
        restates: bool,
    ) -> None:
        self.sign = sign
        self.is_moving = is_moving
        self.restates = restates  # whether some node is on both sides
        self.candidates = candidates
        self._members: dict[int, Handles] = {}
        self._work_out = members

    def members(self, number: int) -> Handles:
        known = self._members.get(number)
        if known is None:
            known = self._members[number] = self._work_out(number)
        return known


def still(columns: Columns) -> Era:
    """No update: all that is in the document stays."""

    def none(number: int) -> Handles:
        return NOTHING

    return Era(1, np.zeros(len(columns.kind), dtype=np.bool_), none, none, False)
