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

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from axlog.document.delta import Delta
from axlog.document.tree import NONE, Tree
from axlog.evaluate.columns import NOTHING, Columns, Handles, Mask, handles
from axlog.evaluate.structural import ancestors, passing, subtrees
from axlog.language.pattern import Axis, Name, PatternNode


class NodeTable:
    """Nodes that come or go together, split by label as views ask for them."""

    def __init__(self, nodes: Handles) -> None:
        self.nodes = nodes
        self._by_test: dict[tuple[bool, object], Handles] = {}

    def passing(self, columns: Columns, step: PatternNode) -> Handles:
        """The nodes that pass a pattern node's test; worked out once for each label."""
        if not isinstance(step.test, Name):
            return self.nodes[passing(columns, self.nodes, step)]
        asked = (step.axis is Axis.ATTRIBUTE, step.test)
        found = self._by_test.get(asked)
        if found is None:
            found = self._by_test[asked] = self.nodes[passing(columns, self.nodes, step)]
        return found


@dataclass(slots=True)
class DeltaTables:
    """What all views share of one update."""

    delta: Delta
    removed: NodeTable
    parents: Handles  # of the removed roots
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
    return DeltaTables(delta, NodeTable(removed), parents, touched, changed)


def after(tree: Tree, tables: DeltaTables) -> None:
    """CD+: what has come."""
    if tables.delta.added:
        tables.added = NodeTable(subtrees(tree, tables.delta.added))


@contextmanager
def rehung(columns: Columns, tables: DeltaTables) -> Iterator[None]:
    """What went hangs by its parents again, for those who look up from it."""
    roots = handles(tables.delta.removed)
    columns.parent[roots] = tables.parents
    try:
        yield
    finally:
        columns.parent[roots] = NONE


@dataclass(slots=True)
class Era:
    """One side of an update for one view: the document before it, or after.

    `members` are, for each pattern node, the nodes of its relation that this side has and the other
    has not, restated ones too. `is_moving` says by handle what is on one side only, whichever.
    """

    sign: int
    is_moving: Mask
    members: dict[int, Handles] = field(default_factory=dict)
