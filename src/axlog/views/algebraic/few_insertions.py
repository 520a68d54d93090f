"""Insertions at few places into views whose rows one node identifies, row by row.

`direct.py` finds the same rows in arrays. Here the terms of an update are looked up by its labels,
which updates of one kind share; the new nodes are walked, and their rows are entered one by one. So
a small update makes no arrays, and next to no objects.

Law: the rows are those of `direct.moved_directly`.

Not handled (None): deletions and changed nodes; updates that may flip a node that stays, or move a
value that a row shows; terms for which values are needed, or a snowcap is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from axlog.query.pattern import Kind
from axlog.views.algebraic import direct as limits
from axlog.views.algebraic.deltas import DeltaTables
from axlog.views.algebraic.direct import Direct, identifying_node, tops_of
from axlog.views.algebraic.labels import (
    Labels,
    MovedLabels,
    facts_of,
    may_concern,
    may_flip,
    may_flip_guards,
)
from axlog.views.algebraic.reports import Report
from axlog.views.algebraic.selection import Selections
from axlog.views.algebraic.shape import Shape
from axlog.views.algebraic.terms import Facts, Term, surviving

_SHOWN = (Kind.ID, Kind.VAL, Kind.CONT)


@dataclass(frozen=True, slots=True)
class Plan:
    """The terms of the updates with some labels."""

    facts: Facts
    tops: tuple[int, ...]
    terms: tuple[Term, ...]


class FewInsertions:
    """The insertions of one view."""

    def __init__(self, selections: Selections, read: Labels) -> None:
        """`read`: the labels of the nodes whose values or contents rows show."""
        self._selections, self._read = selections, read
        shape = selections.shape
        key = identifying_node(shape)
        named = {shape.named.get(output.of) for output in shape.pattern.outputs}
        kinds = {output.kind for output in shape.pattern.outputs}
        is_shown = named <= {key} and kinds.issubset(_SHOWN) and not shape.anchors
        self._key = key if is_shown else None
        self._direct: Direct | None = None
        self._known: object = None

    def plan(self, tables: DeltaTables) -> Plan | None:
        """The terms of an update; None: it is not handled."""
        if self._key is None:
            return None
        delta, added = tables.delta, tables.added
        if delta.removed or delta.changed or not delta.added:
            return None
        if not added.copies:
            if len(added.roots) > limits.FEW:
                return None
        elif sum(map(len, added.copies)) > limits.FEW_PLACES:
            return None
        return _plan_of(self._selections.shape, self._key, self._read, tables.labels)

    def counts(self, plan: Plan, tables: DeltaTables, report: Report) -> dict[int, int]:
        """The nodes of the new rows with their counts.

        Raises `TooFarError` where arrays are faster.
        """
        direct, added, tree = self._renewed(), tables.added, self._selections.tree
        if not added.copies:
            found = direct.counts(added.rows(tree), plan.tops)
        else:
            found = {}
            for block in added.copies:
                found |= direct.counts_of_copies(block.tolist(), plan.tops)
        report.facts[1], report.moved = plan.facts, tables.size
        report.evaluated += plan.terms
        report.scanned = direct.scanned
        share = direct.scanned // max(len(plan.terms), 1)
        report.costs += [(term.snowcap, share, False) for term in plan.terms]
        return found

    def _renewed(self) -> Direct:
        """What walks the document; made again when names or columns are new."""
        tree, direct = self._selections.tree, self._direct
        known = len(tree.names), id(tree.parent_column)
        if direct is None or self._known != known:
            assert self._key is not None
            direct = self._direct = Direct(self._selections, self._key)
            self._known = known
        direct.renew()
        return direct


@lru_cache(maxsize=4096)
def _plan_of(shape: Shape, key: int, read: Labels, labels: MovedLabels) -> Plan | None:
    """The terms of updates with these labels; None: they are not handled."""
    if not read.isdisjoint(labels.above) or not may_concern(shape, labels):
        return None
    if may_flip(shape, labels.above, labels.changed) or may_flip_guards(shape, labels):
        return None
    facts = facts_of(shape, labels.added, labels.above, labels.depths)
    tops, terms = tops_of(shape, key, facts), surviving(shape, 1, facts)
    return None if tops is None or terms is None else Plan(facts, tops, terms)
