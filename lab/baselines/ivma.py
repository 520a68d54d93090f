"""IVMA: maintenance one node at a time, a baseline for benchmarks.

An update is split into insertions and deletions of single nodes. New nodes are inserted parents
first, and nodes are deleted children first. Each node is propagated alone: the tuples that contain
it, together with nodes that are present at that moment. IVMA uses the relations and joins of the
algebraic engine, so only the granularity differs.

Not handled: nodes whose membership changes in place (renames, value tests) and conditions at the
document node. The algebraic maintainer processes updates that may change one of these. (The
algorithm of Sawires et al., 2005, as reimplemented in paper 5, section 6.6.)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from axlog.document.delta import Delta
from axlog.evaluate.columns import NOTHING, Columns, Handles, Mask, columns_of, handles
from axlog.views.algebraic.deltas import Side
from axlog.views.algebraic.evaluation import Evaluation
from axlog.views.algebraic.labels import may_flip_guards
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.tables import Integers, Table, together
from axlog.views.algebraic.terms import Facts, surviving
from axlog.views.change import Change


class Ivma(Algebraic):
    """Keeps rows by propagating the nodes of an update one by one."""

    name = "ivma"

    def before(self, delta: Delta) -> None:
        super().before(delta)
        if self._plan is not None:  # the algebra would insert all nodes together
            self._plan = None
            self.prepare(delta)
        self._lost: list[Table] = []
        if not self.holds:
            return
        going = [node for root in delta.removed for node in self.tree.subtree(root)]
        with columns_of(self.tree) as columns:
            is_out = np.zeros(len(columns.kind), dtype=np.bool_)
            # New nodes are built already, but no existing node links to them yet.
            self._lost = self._one_by_one(columns, reversed(going), is_out, is_coming=False)

    def later(self, delta: Delta) -> list[Change]:
        """Propagate at once: the algorithm cannot defer nodes."""
        return self.after(delta)

    def propagate(self, delta: Delta) -> tuple[Integers, Integers, Integers]:
        propagation = self._propagation
        if propagation is None or may_flip_guards(self.shape, propagation.tables.labels):
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
        """The tuples of each node, with the nodes present when it is inserted or deleted."""
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
        side = Side(1, is_out, lambda n: members.get(n, NOTHING), lambda n: members[n], False)
        evaluation = Evaluation(columns, selections, side)
        everywhere = frozenset(range(1, len(shape.nodes)))
        terms = surviving(shape, 1, Facts(matched, everywhere)) or ()
        tables = [evaluation.term(term) for term in terms]
        return [within for table in tables if len(within := self.within_times(table))]
