"""One update on its way to one view: from delta tables to rows with signed counts.

A pending update list may insert and delete, so insertion and deletion are one algorithm:

    before      note the nodes about to be deleted, and the state of nodes that may be flipped
    after       find the flipped nodes (they are restated), prune terms, evaluate the rest; the
                reverse index finds the rows that show the id of a deleted node

The result is one table of rows with signed counts. If an update moves more nodes than the relations
of the view have, or leaves too many terms, the view is evaluated again. `report` holds the way and
the reason. A deferred view collects inserted nodes (`DeferredNodes`) and matches them when it is
read (`deferred_rows`).

Law: the rows before, plus the table, are the rows of `everything` after the update.
(Paper 5, PINT and PDDT, algorithms 1 and 5.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from axlog.document.bulk_columns import subtrees
from axlog.document.tree import Tree
from axlog.evaluate.columns import NOTHING, Columns, Handles, Marked, MarkedNodes
from axlog.evaluate.node_sets import passing
from axlog.views.algebraic.deltas import DeltaTables, NodeTable, Side, reattached
from axlog.views.algebraic.direct import moved_directly
from axlog.views.algebraic.evaluation import Evaluation, Kept, everything, within_times
from axlog.views.algebraic.labels import asked_of, facts_of, may_flip
from axlog.views.algebraic.node_rows import Rows
from axlog.views.algebraic.reports import Options, Report
from axlog.views.algebraic.selection import Selections
from axlog.views.algebraic.shape import Shape, ShapeNode
from axlog.views.algebraic.tables import Integers, Table, node_column, nothing, together
from axlog.views.algebraic.terms import Facts, surviving

WORTH = 3.0
"""An update that moves this many times the nodes of the relations costs more than evaluation."""
LEAST_MOVED = 100
"""The smallest update, in nodes, for which evaluation is considered."""


class DeferredNodes:
    """Nodes that a deferred view has not processed yet."""

    def __init__(self) -> None:
        self.nodes: Handles = NOTHING

    def __bool__(self) -> bool:
        return bool(len(self.nodes))

    def clear(self) -> None:
        self.nodes = NOTHING

    def without(self, nodes: Handles) -> Handles:
        """The nodes that have been processed."""
        return nodes[~np.isin(nodes, self.nodes)]

    def follow(self, tables: DeltaTables, restated: Handles) -> None:
        """Follow an update: forget deleted nodes, add inserted and restated nodes."""
        kept = self.nodes[~np.isin(self.nodes, tables.removed.nodes)]
        self.nodes = np.unique(np.concatenate([kept, tables.added.nodes, restated]))


def deferred_rows(
    columns: Columns, selections: Selections, unseen: DeferredNodes, rows: Rows
) -> Table:
    """The rows of nodes not processed yet: insertion terms with these nodes as the delta."""
    shape = selections.shape
    is_moving = MarkedNodes(len(columns.kind), unseen.nodes)
    table = NodeTable(unseen.nodes)

    def members(number: int) -> Handles:
        node = shape.nodes[number]
        return table.members(columns, node.step, partial(selections.selected, columns, node))

    side = Side(1, is_moving, members, members, False)
    numbers = range(1, len(shape.nodes))
    facts = Facts(frozenset(n for n in numbers if len(members(n))), frozenset(numbers))
    terms = surviving(shape, 1, facts)
    if terms is None:
        return together([rows.table().times(-1), everything(columns, selections)], shape.key)
    evaluation = Evaluation(columns, selections, side)
    now = np.frombuffer(selections.tree.time_column, dtype=np.int64)
    found = [within_times(evaluation.term(t), shape, now, {}) for t in terms]
    return together(found, shape.key)


class Propagation:
    """The propagation of one update to one view."""

    def __init__(
        self,
        selections: Selections,
        tables: DeltaTables,
        options: Options,
        clock: Callable[[], float],
    ) -> None:
        self._clock = clock
        self.selections = selections
        self.shape: Shape = selections.shape
        self.tree: Tree = selections.tree
        self.tables = tables
        self.options = options
        self.report = Report()
        self.advice = ""  # why the view should be evaluated; empty if not
        self._removed: dict[int, Handles] = {}
        self._watched: dict[int, Handles] = {}  # nodes that the update may flip
        self._was: dict[int, Handles] = {}
        self._past: dict[tuple[int, int], int] = {}
        self._timed = {self.shape.named[n] for each in self.shape.times for _, n in each.terms}

    # Before ---------------------------------------------------------------------------------------

    @property
    def needs_old_state(self) -> bool:
        """Whether some information is available only while deleted nodes are in place."""
        labels = self.tables.labels
        return may_flip(self.shape, labels.above, labels.changed) or any(
            node.conditions and node.wanted in labels.removed for node in self.shape.nodes
        )

    def before(self, columns: Columns) -> None:
        """Note the nodes about to be deleted, and those that may be flipped."""
        for node in self.shape.nodes[1:]:
            if node.conditions:  # others can be evaluated on removed nodes
                select = partial(self.selections.selected, columns, node)
                self._removed[node.number] = self.tables.removed.members(columns, node.step, select)
            watched = self.tables.touched(columns) if node.reads_below else self.tables.changed
            if len(watched):
                was = self.selections.members(columns, node, watched)
                self._watched[node.number], self._was[node.number] = watched, was
                self._remember(node, was)

    def _remember(self, node: ShapeNode, nodes: Handles) -> None:
        for column, values in self.selections.values(node, nodes).items():
            for handle, value in zip(nodes.tolist(), values.tolist(), strict=True):
                self._past[column.number, handle] = value

    # After ----------------------------------------------------------------------------------------

    def after(
        self,
        columns: Columns,
        rows: Rows,
        kept: Kept | None = None,
        unseen: DeferredNodes | None = None,
    ) -> Table | None:
        """The inserted and deleted rows, with signed counts; None if all rows are deleted.

        With `unseen`, inserted nodes are only added to it: their rows wait.
        """
        restated = self.restated(columns)
        self.report.moved = self.tables.size + len(restated)
        if not self.report.moved:
            self.report.way = "nothing"
            return nothing(self.shape.key)
        is_plain = unseen is None and not len(restated) and self.options.may_recompute
        removed = self.tables.labels.removed
        if is_plain and (label := self.selections.missing_label(removed)) is not None:
            self.report.way, self.report.reason = "recomputed", f"there is no {label} left"
            return None
        if self.advice and unseen is None and self.options.may_recompute:
            return self.recomputed(columns, rows, self.advice)
        if is_plain and self.options.is_direct:
            table = moved_directly(columns, self.selections, self.tables, rows, kept, self.report)
            if table is not None:
                return table
        old, new = self._sides(columns, restated, unseen)
        if self.options.may_recompute and self._is_much(old, new):
            if unseen is not None:
                unseen.clear()
            return self.recomputed(columns, rows, "the update moves more than the view looks at")
        if unseen is not None:
            return self._only_lost(columns, rows, restated, unseen, old)
        gone = self._rows_of_gone(rows, old)
        lost: list[Table] | None = []
        come: list[Table] | None = []
        if self.tables.delta.removed or len(restated):
            with reattached(columns, self.tables):
                lost = self._evaluated(columns, old, kept)
        if self.tables.delta.added or len(restated):
            come = self._evaluated(columns, new, kept)
        if lost is None or come is None:
            return self.recomputed(columns, rows, "too many terms are left")
        signed = [*(table.times(-1) for table in (*gone, *lost)), *come]
        return together(signed, self.shape.key)

    def _only_lost(
        self, columns: Columns, rows: Rows, restated: Handles, unseen: DeferredNodes, old: Side
    ) -> Table:
        """The deleted rows; inserted nodes are added to those not processed yet."""
        gone = self._rows_of_gone(rows, old)
        lost: list[Table] | None = []
        if self.tables.delta.removed or len(restated):
            with reattached(columns, self.tables):
                lost = self._evaluated(columns, old, None)
        unseen.follow(self.tables, restated)
        if lost is None:
            unseen.clear()
            return self.recomputed(columns, rows, "too many terms are left")
        return together([table.times(-1) for table in (*gone, *lost)], self.shape.key)

    def recomputed(self, columns: Columns, rows: Rows, reason: str) -> Table:
        """The difference to a new evaluation of the view."""
        self.report.way, self.report.reason = "recomputed", reason
        self.report.is_evaluated = True
        present = everything(columns, self.selections)
        self.report.scanned += len(present)
        return together([rows.table().times(-1), present], self.shape.key)

    def _is_much(self, old: Side, new: Side) -> bool:
        """Whether the delta tables of the view are much larger than its relations."""
        if self.report.moved < LEAST_MOVED:
            return False
        numbers = range(1, len(self.shape.nodes))
        moved = sum(len(side.candidates(n)) for side in (old, new) for n in numbers)
        return moved > WORTH * self.selections.size()

    # Flipped nodes --------------------------------------------------------------------------------

    def restated(self, columns: Columns) -> Handles:
        """Nodes that stay but are flipped, with all nodes below them that are not new."""
        turned: list[Handles] = []
        for number, watched in self._watched.items():
            node = self.shape.nodes[number]
            is_now = self.selections.members(columns, node, watched)
            turned.append(np.setxor1d(self._was[number], is_now))
            turned.append(self._shown_otherwise(node, is_now))
        roots = np.unique(np.concatenate(turned)) if turned else NOTHING
        if not len(roots):
            return NOTHING
        every = set(roots.tolist())
        nested = [root for root in every if not every.isdisjoint(self.tree.ancestors(root))]
        below = subtrees(self.tree, np.setdiff1d(roots, np.array(nested, dtype=np.int32)))
        return np.setdiff1d(below, self.tables.added.nodes).astype(np.int32)

    def _shown_otherwise(self, node: ShapeNode, is_now: Handles) -> Handles:
        """Of nodes that stay in a relation, those with new shown values."""
        both = np.intersect1d(self._was[node.number], is_now)
        differ = np.zeros(len(both), dtype=np.bool_)
        for column, values in self.selections.values(node, both).items():
            past = [self._past[column.number, handle] for handle in both.tolist()]
            differ |= values != np.array(past, dtype=np.int64)
        if node.number in self._timed:
            moved = {c.node for c in self.tables.delta.changed if c.old_time != c.new_time}
            differ |= np.isin(both, list(moved))
        return both[differ]

    def _sides(
        self, columns: Columns, restated: Handles, unseen: DeferredNodes | None = None
    ) -> tuple[Side, Side]:
        """Both sides: deleted and inserted nodes, with the restated nodes on both."""
        is_moving = self.tables.is_moving(columns)
        if len(restated) or unseen is not None:
            is_moving = is_moving.and_also(restated, NOTHING if unseen is None else unseen.nodes)
        again = NodeTable(restated)

        def known(table: NodeTable, number: int) -> Handles:
            found = table.candidates(columns, self.shape.nodes[number].step)
            if not len(restated):
                return found
            back = again.candidates(columns, self.shape.nodes[number].step)
            was = self._was.get(number, NOTHING)  # not all nodes that may be flipped are
            return np.concatenate([found, back, was[is_moving[was]]])

        def selected(table: NodeTable, number: int) -> Handles:
            node = self.shape.nodes[number]
            select = partial(self.selections.selected, columns, node)
            return table.members(columns, node.step, select)

        def old(number: int) -> Handles:
            gone = self._removed.get(number)
            gone = selected(self.tables.removed, number) if gone is None else gone
            if len(restated):
                now = selected(again, number)
                watched = self._watched.get(number, NOTHING)
                was = np.intersect1d(self._was.get(number, NOTHING), restated)
                gone = np.concatenate([gone, now[~np.isin(now, watched)], was]).astype(np.int32)
            return gone if unseen is None else unseen.without(gone)

        def new(number: int) -> Handles:
            come = selected(self.tables.added, number)
            return np.concatenate([come, selected(again, number)]) if len(restated) else come

        restates = bool(len(restated)) or unseen is not None
        return (
            Side(-1, is_moving, lambda n: known(self.tables.removed, n), old, restates),
            Side(
                1,
                is_moving,
                lambda n: known(self.tables.added, n),
                new,
                restates,
                self.tables.added.copies,
            ),
        )

    # Rows -----------------------------------------------------------------------------------------

    def _rows_of_gone(self, rows: Rows, old: Side) -> list[Table]:
        """The rows that show the id of a deleted node, with all their derivations."""
        slots = [
            self._slots(rows, number, gone, old.is_moving)
            for number in self.shape.stored
            if number and len(gone := old.candidates(number))
        ]
        return [rows.table(np.unique(np.concatenate(slots)))] if slots else []

    def _slots(self, rows: Rows, number: int, nodes: Handles, is_moving: Marked) -> Integers:
        """The rows that show one of the nodes: by index, or by a scan if rows are fewer."""
        column = node_column(number)
        if len(nodes) < len(rows):
            return rows.with_value(column, nodes.astype(np.int64))
        return rows.scanned(column, is_moving)

    def _evaluated(self, columns: Columns, side: Side, kept: Kept | None) -> list[Table] | None:
        """The tables of the remaining terms of one side."""
        start = self._clock()
        facts = self._facts(columns, side)
        self.report.facts[side.sign] = facts
        terms = surviving(self.shape, side.sign, facts)
        self.report.expression += self._clock() - start
        if terms is None:
            return None
        past = self._past if side.sign < 0 else None
        evaluation = Evaluation(columns, self.selections, side, past)
        found = []
        if side.restates:
            kept = None  # snowcaps contain the nodes that this view restates
        for term in terms:
            found.append(self._constrained(evaluation.term(term, kept), side.sign))
            cost = (term.snowcap, evaluation.work, evaluation.served)
            self.report.costs.append(cost)
        self.report.evaluated += terms
        self.report.scanned += evaluation.scanned
        return found

    def _facts(self, columns: Columns, side: Side) -> Facts:
        """The facts of the delta tables; texts and values are read only where needed.

        A pattern node cannot be in the delta of a term if some label of its subpattern has no
        delta, or if the update is not below a candidate for its parent.
        """
        shape = self.shape
        if not side.restates:
            return self._facts_of_labels(side)
        numbers = range(1, len(shape.nodes))
        labelled = {number for number in numbers if len(side.candidates(number))}
        above = self._above(columns, side) if labelled else NOTHING
        over = frozenset(
            number
            for number in numbers
            if shape.nodes[number].below and passing(columns, above, shape.nodes[number].step).any()
        )
        asked: set[int] = set()
        for number in labelled:
            inside = set(shape.subpatterns[number])
            if inside <= labelled and over.issuperset(shape.above[number]):
                asked |= inside
        matched = {n for n in labelled if n not in asked or len(side.members(n))}
        return Facts(frozenset(matched), over)

    def _facts_of_labels(self, side: Side) -> Facts:
        """The facts if no node is restated, from the labels that all views share."""
        shape, labels = self.shape, self.tables.labels
        facts = facts_of(
            shape, labels.added if side.sign > 0 else labels.removed, labels.above, labels.depths
        )
        asked = {
            number
            for number in asked_of(shape, facts)
            if not shape.nodes[number].is_plain and not len(side.members(number))
        }
        return Facts(facts.matched - asked, facts.above, facts.barred) if asked else facts

    def _above(self, columns: Columns, side: Side) -> Handles:
        """The nodes that stay above the places of the update, or above restated nodes."""
        touched = self.tables.touched(columns)
        return touched[~side.is_moving[touched]]

    def _constrained(self, table: Table, sign: int = 1) -> Table:
        """The rows that satisfy the time constraints; `sign` selects old or new times."""
        if not self.shape.times or not len(table):
            return table.keeping(self.shape.key)
        now = np.frombuffer(self.tree.time_column, dtype=np.int64)
        changed = self.tables.delta.changed if sign < 0 else ()
        return within_times(table, self.shape, now, {c.node: c.old_time for c in changed})
