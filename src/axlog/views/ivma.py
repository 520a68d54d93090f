"""IVMA: one node at a time, as P5 6.6 reimplemented the algorithm of Sawires et al. (2005).

The baseline that P5 compares with. An update is taken apart into insertions and deletions of single
nodes: new nodes come parents first, nodes that go go children first, and each is propagated by
itself: the tuples with this node in them, and otherwise nodes that are there at that moment. It
runs on the same relations and joins as the algebraic engine, as the paper's did, so what differs
is the granularity alone.

Nodes that are turned in place (renames, value tests) and conditions at the document node were no
part of that algorithm: a list that may turn one goes the algebraic way.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from axlog.document.delta import Delta
from axlog.evaluate.columns import NOTHING, Columns, Handles, Mask, columns_of, handles
from axlog.views.algebraic.deltas import Era
from axlog.views.algebraic.evaluation import Evaluation
from axlog.views.algebraic.labels import may_turn_guards
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.tables import Integers, Table, together
from axlog.views.algebraic.terms import Facts, surviving
from axlog.views.change import Change


class Ivma(Algebraic):
    """Keeps rows by propagating every node of an update by itself."""

    name = "ivma"

    def before(self, delta: Delta) -> None:
        super().before(delta)
        self._lost: list[Table] = []
        if not self.holds:
            return
        going = [node for root in delta.removed for node in self.tree.subtree(root)]
        with columns_of(self.tree) as columns:
            is_out = np.zeros(len(columns.kind), dtype=np.bool_)
            # Nodes that come are built already; nothing that stays leads to them.
            self._lost = self._one_by_one(columns, reversed(going), is_out, is_coming=False)

    def later(self, delta: Delta) -> list[Change]:
        """At once: the algorithm knows of no nodes that a view has not seen yet."""
        return self.after(delta)

    def propagate(self, delta: Delta) -> tuple[Integers, Integers, Integers]:
        propagation = self._propagation
        if propagation is None or may_turn_guards(self.shape, propagation.tables.labels):
            return super().propagate(delta)
        with columns_of(self.tree) as columns:
            turned = propagation.restated(columns)
        if len(turned):
            return super().propagate(delta)
        self._propagation = None
        self._tables = self.engine.after(delta)
        coming = [node for root in delta.added for node in self.tree.subtree(root)]
        with columns_of(self.tree) as columns:
            is_out = np.zeros(len(columns.kind), dtype=np.bool_)
            is_out[coming] = True
            come = self._one_by_one(columns, coming, is_out, is_coming=True)
        signed = [*(table.times(-1) for table in self._lost), *come]
        return self.relation.add(together(signed, self.shape.key))

    def _one_by_one(
        self, columns: Columns, nodes: Iterable[int], is_out: Mask, is_coming: bool
    ) -> list[Table]:
        """The tuples of each node, with the nodes that are in when it comes or goes."""
        found: list[Table] = []
        for node in nodes:
            is_out[node] = True
            found += self._tuples_with(columns, handles([node]), is_out)
            if is_coming:
                is_out[node] = False
        return found

    def _tuples_with(self, columns: Columns, node: Handles, is_out: Mask) -> list[Table]:
        shape, selections = self.shape, self.selections
        members = {one.number: selections.members(columns, one, node) for one in shape.nodes[1:]}
        matched = frozenset(number for number, found in members.items() if len(found))
        if not matched:
            return []
        era = Era(1, is_out, lambda n: members.get(n, NOTHING), lambda n: members[n], False)
        evaluation = Evaluation(columns, selections, era)
        everywhere = frozenset(range(1, len(shape.nodes)))
        terms = surviving(shape, 1, Facts(matched, everywhere)) or ()
        tables = [evaluation.term(term) for term in terms]
        return [within for table in tables if len(within := self.within_times(table))]
