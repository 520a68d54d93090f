"""The algebraic maintainer: the rows of a view, kept by terms over delta tables.

Law: rows, counts and changes are those of re-evaluation after every update.

Rows are integers in columns: handles of the nodes they show, codes of strings, times. Ids, values
and contents are read from the document when a row is shown. For up to `MOST_KEPT` rows they are
kept, because a deletion or update of the row must show them. Rows whose `val` or `cont` an update
may have changed are found by the ids of the nodes above the update, never by a scan.
(Paper 5, PINT/MT and PDDT/MT.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from axlog.document.delta import Delta
from axlog.document.tree import TEXT, Tree
from axlog.evaluate.collected_paths import gather
from axlog.evaluate.columns import columns_of
from axlog.query.pattern import Kind, Output, Pattern
from axlog.views.algebraic.costs import Kind as UpdateKind
from axlog.views.algebraic.costs import Measured, kind_of
from axlog.views.algebraic.deltas import DeltaTables, reattached
from axlog.views.algebraic.direct_code import TooFarError
from axlog.views.algebraic.engine import AlgebraicEngine
from axlog.views.algebraic.evaluation import everything, within_times
from axlog.views.algebraic.few_insertions import FewInsertions, Plan
from axlog.views.algebraic.labels import may_concern, may_flip_guards
from axlog.views.algebraic.node_rows import FEW, NodeRows, rows_of
from axlog.views.algebraic.propagation import DeferredNodes, Propagation, deferred_rows
from axlog.views.algebraic.reports import (
    Options,
    Report,
    guard_report,
    report_lines,
    unaffected_report,
)
from axlog.views.algebraic.selection import Codes, Selections
from axlog.views.algebraic.shape import refusal, shape_of
from axlog.views.algebraic.snowcaps import Snowcaps
from axlog.views.algebraic.tables import Column, Integers, Table, node_column
from axlog.views.change import Change, Op, Row, Values
from axlog.views.maintainer import Maintainer
from axlog.views.outputs import shown_of

_READ = (Kind.VAL, Kind.CONT)
MOST_KEPT = 1 << 16
"""The most rows of a view whose shown values are kept."""
_NO_ROWS: Integers = np.empty(0, dtype=np.int64)
NO_REPORT = Report("nothing")
NOTHING_MOVED = (_NO_ROWS, _NO_ROWS, _NO_ROWS)


class Algebraic(Maintainer):
    """Keeps rows by union and difference terms; all views of a tree share the engine."""

    name = "algebraic"

    def __init__(
        self,
        tree: Tree,
        pattern: Pattern,
        engine: AlgebraicEngine | None = None,
        options: Options | None = None,
    ) -> None:
        super().__init__(tree, pattern)
        self.engine = engine if engine is not None else AlgebraicEngine(tree)
        self.options = options if options is not None else Options()
        self.shape = shape_of(pattern)
        self.selections = Selections(tree, self.shape, Codes())
        self.relation = rows_of(self.shape, len(tree.kind_column))
        self._columns = pattern.columns
        self._read = self._columns_read()
        self._propagation: Propagation | None = None
        self._before: dict[int, Values] = {}
        self._kept: dict[int, Values] = {}  # by slot, the values that rows showed last
        self.unseen = DeferredNodes()
        self._is_deferring = False
        self._report: Report | None = Report("loaded")
        self.costs = Measured()
        self._kind: UpdateKind | None = None
        self._advice = ""  # of the current update, if it was asked for already
        read = frozenset(map(self._wanted, self._read))
        self.few = FewInsertions(self.selections, read)
        self._plan: Plan | None = None  # of the current update, if it is handled by `few`
        self.snowcaps = Snowcaps(self.shape, self.engine.lattice, self.options.snowcaps)
        start = self.costs.clock()
        with columns_of(tree) as columns:
            self.holds = self.selections.holds(columns)
            rows = everything(columns, self.selections)
        self.costs.evaluated(self.costs.clock() - start, self.selections.size())
        self.relation.add(rows)

    @staticmethod
    def refusal(pattern: Pattern) -> str | None:
        return refusal(pattern)

    def rows(self) -> Iterable[Row]:
        return self._shown(self.relation.slots(), self._values)

    def size(self) -> int:
        return len(self.relation)

    def details(self) -> tuple[str, ...]:
        last = report_lines(self.shape, self.report) if self.report.way != "loaded" else ()
        costs = self.costs.lines(self._kind, self.selections.size())
        return (*self.snowcaps.lines(), *costs, *last)

    def close(self) -> None:
        self.snowcaps.close()

    # An update ------------------------------------------------------------------------------------

    def before(self, delta: Delta) -> None:
        self._before, self._plan = {}, None
        if delta.changed:
            self._kept.clear()  # ids contain the labels above them
        if self.holds and not self.unseen and self.options.is_direct and not self.snowcaps.are_kept:
            self._plan = self.few.plan(self.engine.before(delta))
            if self._plan is not None:
                self._propagation = None
                return
        tables = self.prepare(delta)
        above = tables.labels.above
        read = [column for column in self._read if self._wanted(column) in above]
        if read:
            with columns_of(self.tree) as columns:
                touched = tables.touched(columns).astype(np.int64)
            slots = [self.relation.with_value(column, touched) for column in read]
            self._before = self._values(np.unique(np.concatenate(slots)))

    def prepare(self, delta: Delta) -> DeltaTables:
        """The part of `before` that rows need; the rest reads values that changes will show."""
        tables = self.engine.before(delta)
        self._propagation = None
        if self.holds and (self.unseen or may_concern(self.shape, tables.labels)):
            self._propagation = Propagation(
                self.selections, tables, self.options, self.engine.clock
            )
            if self._propagation.needs_old_state:
                with columns_of(self.tree) as columns:
                    self._propagation.before(columns)
        return tables

    @property
    def report(self) -> Report:
        """The report of the last update."""
        if self._report is None:
            self._report = unaffected_report(self.shape, self._tables)
        return self._report

    def _wanted(self, column: Column) -> str:
        return self.shape.nodes[column.number].wanted

    def after(self, delta: Delta) -> list[Change]:
        if self._plan is not None:
            changes = self._insert_few(delta, self._plan)
            if changes is not None:
                return changes
            self.prepare(delta)
        if self.unseen:  # the view was deferred until now
            return [*self.later(delta), *self.catch_up()]
        return self._changes(*self.propagate(delta))

    def later(self, delta: Delta) -> list[Change]:
        """Delete rows now, with their nodes; match inserted nodes when the view is read.

        Nodes that are inserted and deleted in between are never matched, and nodes inserted by
        several updates are matched together (paper 5, section 5, rules O1, O3 and I5).
        """
        if self._plan is not None:
            self._plan = None
            self.prepare(delta)  # the plan shows that it needs no old state
        self._is_deferring = True
        try:
            return self._changes(*self.propagate(delta))
        finally:
            self._is_deferring = False

    def catch_up(self) -> list[Change]:
        if not self.unseen:
            return []
        with columns_of(self.tree) as columns:
            come = deferred_rows(columns, self.selections, self.unseen, self.relation)
        self.unseen.clear()
        return self._changes(*self.relation.add(come))

    @property
    def is_behind(self) -> bool:
        return bool(self.unseen)

    def _changes(self, slots: Integers, old: Integers, new: Integers) -> list[Change]:
        """The changes of rows whose counts changed, and of rows with new values."""
        if not len(slots) and not self._before:
            return []
        if len(slots) <= FEW and not self._before:
            counts = zip(slots.tolist(), old.tolist(), new.tolist(), strict=True)
            if all(not before and after for _, before, after in counts):
                return self._inserted(slots)
        changes: list[Change] = []
        is_gone = new == 0
        if is_gone.any():
            gone = slots[is_gone]
            changes += self._deleted(gone, old[is_gone])
            self.relation.release(gone)
        come = slots[(old == 0) & ~is_gone]
        if len(come):
            changes += self._inserted(come)
        if not self._before:
            return changes
        return changes + self._modified(dict(zip(slots.tolist(), old.tolist(), strict=True)))

    def _inserted(self, slots: Integers) -> list[Change]:
        op: Op = "insert"
        return list(map(Change, repeat(op), self._shown(slots, self._read_anew)))

    def _insert_few(self, delta: Delta, plan: Plan) -> list[Change] | None:
        """Insert the rows of new nodes at few places, one by one; None: `propagate` must do it."""
        self._plan, relation = None, self.relation
        if not isinstance(relation, NodeRows):
            return None
        tables, size = self.engine.before(delta), self.selections.size
        kind = kind_of(tables)
        if self.options.is_measured:
            self._advice = self.costs.advice(kind, size)
            if self._advice:
                return None
        start = self.costs.clock() if self.costs.is_due(kind) else None
        report = Report()
        try:
            found = self.few.counts(plan, tables, report)
        except TooFarError:
            return None
        self._tables = self.engine.after(delta)
        self._report, self._kind = report, kind
        nodes = list(found)
        counts = list(found.values())
        slots = relation.enter(nodes, counts) if found else []
        if start is not None:
            self.costs.maintained(kind, self.costs.clock() - start)
        self.snowcaps.learn(report, tables.labels)
        if not found:
            return []
        outputs = [self._of_nodes(output, nodes) for output in self.pattern.outputs]
        shown = list(zip(*outputs, strict=True)) if outputs else [()] * len(nodes)
        self._keep(dict(zip(slots, shown, strict=True)))
        op: Op = "insert"
        return list(map(Change, repeat(op), map(Row, repeat(self._columns), shown, counts)))

    def propagate(self, delta: Delta) -> tuple[Integers, Integers, Integers]:
        """Update the counts of rows; return slots, old counts and new counts."""
        propagation, self._propagation = self._propagation, None
        self._tables = self.engine.after(delta)
        turned = self._guard_changes()
        if turned is not None:
            return turned
        if propagation is None:
            self._report, self._kind = None, None  # created on demand
            self.snowcaps.learn(NO_REPORT, self._tables.labels)
            return NOTHING_MOVED
        kept = None if self.unseen else self.snowcaps.find
        unseen = self.unseen if self._is_deferring else None
        kind = self._kind = kind_of(self._tables)
        size = self.selections.size
        if self.options.is_measured:
            advice, self._advice = self._advice, ""
            propagation.advice = advice or self.costs.advice(kind, size)
        is_timed = bool(propagation.advice) or self.costs.is_due(kind)
        with columns_of(self.tree) as columns:
            start = self.costs.clock() if is_timed else 0.0
            moved = propagation.after(columns, self.relation, kept, unseen)
            took = self.costs.clock() - start if is_timed else 0.0
        self._report = propagation.report
        if not is_timed:
            pass
        elif self._report.is_evaluated:
            self.costs.evaluated(took, size())
        elif unseen is None:
            self.costs.maintained(kind, took)
        self.snowcaps.learn(self._report, self._tables.labels)
        if moved is None:
            return self.relation.clear()
        if not len(moved):
            return NOTHING_MOVED
        return self.relation.add(moved)

    def _guard_changes(self) -> tuple[Integers, Integers, Integers] | None:
        """Delete or insert all rows if the conditions at the document node do not always hold.

        None if they hold before and after the update.
        """
        held, labels = self.holds, self._tables.labels
        come: Table | None = None
        if may_flip_guards(self.shape, labels):
            with columns_of(self.tree) as columns:
                self.holds = self.selections.holds(columns)
                if self.holds and not held:
                    come = everything(columns, self.selections)
        if held and self.holds:
            return None
        self.unseen.clear()
        self._kind, self._report = None, guard_report(self._tables, held, self.holds)
        self.snowcaps.learn(NO_REPORT, labels)
        if come is not None:
            return self.relation.add(come)
        return self.relation.clear() if held else NOTHING_MOVED

    def within_times(self, table: Table) -> Table:
        """The rows of a table whose current times satisfy the constraints."""
        now = np.frombuffer(self.tree.time_column, dtype=np.int64)
        return within_times(table, self.shape, now, {})

    # Rows -----------------------------------------------------------------------------------------

    def _deleted(self, slots: Integers, counts: Integers) -> list[Change]:
        """Deleted rows with their old values: kept ones, or read if they did not change."""
        earlier, places = self._before, slots.tolist()
        if not earlier.keys() >= set(places):
            with columns_of(self.tree) as columns, reattached(columns, self._tables):
                values = self._values(slots)
            earlier = {**values, **earlier} if earlier else values
        if len(places) >= len(self._kept):
            self._kept.clear()
        else:
            for slot in places:
                self._kept.pop(slot, None)
        shown = (earlier[slot] for slot in places)
        gone = map(Row, repeat(self._columns), shown, counts.tolist())
        op: Op = "delete"
        return list(map(Change, repeat(op), gone))

    def _modified(self, earlier: dict[int, int]) -> list[Change]:
        """Rows that stay and show a new value or content."""
        counts = self.relation.counts
        slots = [s for s in self._before if counts[s] and earlier.get(s, 1)]
        now = self._read_anew(np.array(slots, dtype=np.int64))
        changes: list[Change] = []
        columns = self._columns
        for slot in slots:
            was, values = self._before[slot], now[slot]
            if was != values:
                count = int(counts[slot])
                old = Row(columns, was, earlier.get(slot, count))
                changes.append(Change("update", Row(columns, values, count), old))
        self._before = {}
        return changes

    def _shown(self, slots: Integers, read: Callable[[Integers], dict[int, Values]]) -> list[Row]:
        values, counts = read(slots).values(), self.relation.counts[slots].tolist()
        return list(map(Row, repeat(self._columns), values, counts))

    def _values(self, slots: Integers) -> dict[int, Values]:
        """The values of rows, in the order of their slots; kept ones, or read."""
        kept, places = self._kept, slots.tolist()
        missing = [slot for slot in places if slot not in kept] if kept else places
        if not missing:
            return {slot: kept[slot] for slot in places}
        read = self._read_anew(np.array(missing, dtype=np.int64))
        if len(missing) == len(places):
            return read
        return {slot: read[slot] if slot in read else kept[slot] for slot in places}

    def _read_anew(self, slots: Integers) -> dict[int, Values]:
        """The values of rows, read from the current document."""
        table: Table = self.relation.table(slots)
        gathered = self._gathered(table)
        shown: list[list[Any]] = []
        for number, output in enumerate(self.pattern.outputs):
            shown.append(self._output(number, output, table, gathered))
        rows = zip(*shown, strict=True) if shown else ((),) * len(slots)
        values: dict[int, Values] = dict(zip(slots.tolist(), rows, strict=True))
        self._keep(values)
        return values

    def _keep(self, values: dict[int, Values]) -> None:
        """Keep the values of rows, by slot, if they are not too many."""
        if len(self._kept) + len(values) <= MOST_KEPT:
            self._kept.update(values)
        else:
            for slot in values.keys() & self._kept.keys():
                del self._kept[slot]

    def _output(
        self, number: int, output: Output, table: Table, gathered: dict[int, list[dict[str, Any]]]
    ) -> list[Any]:
        if output.kind is not Kind.VARIABLE and output.of in self.shape.anchors:
            found = gathered[self.shape.anchors[output.of]]
            read = self._reader(output.kind)
            return [tuple(map(read, each.get(output.of, ()))) for each in found]
        column = Column("value", number)
        if column in table.columns:
            return [self.selections.shown(output, v) for v in table.columns[column].tolist()]
        return self._of_nodes(
            output, table.columns[node_column(self.shape.named[output.of])].tolist()
        )

    def _of_nodes(self, output: Output, nodes: list[int]) -> list[Any]:
        """The ids, values or contents of nodes that an output shows."""
        if output.kind is Kind.VAL:  # texts that were not loaded are in a separate table
            known, read = self.tree.texts_by_node.get, self.tree.string_value
            kinds = self.tree.kind_column
            return [(kinds[node] == TEXT and known(node)) or read(node) for node in nodes]
        if output.kind is Kind.ID:
            return self.tree.ids_of(nodes)
        return list(map(self._reader(output.kind), nodes))

    def keys_of(self, number: int, output: Output, table: Table) -> list[str | int]:
        """The strings, times or nodes by which rows have an output."""
        values = table.columns.get(Column("value", number))
        if values is None:
            nodes: list[str | int] = table.columns[
                node_column(self.shape.named[output.of])
            ].tolist()
            return nodes
        return [self.selections.shown(output, value) for value in values.tolist()]

    def _reader(self, kind: Kind) -> Callable[[int], Any]:
        """The function that reads an output of a node; contents are cached between updates."""
        if kind is Kind.CONT:
            return self.engine.contents.of
        return partial(shown_of, self.tree, kind)

    def _gathered(self, table: Table) -> dict[int, list[dict[str, Any]]]:
        """For each node with collected paths, their values in every row."""
        found: dict[int, list[dict[str, Any]]] = {}
        for number in set(self.shape.anchors.values()):
            anchors = table.columns[node_column(number)].tolist()
            each: list[dict[str, Any]] = [{} for _ in anchors]
            for collect in self.shape.nodes[number].collects:
                for at, anchor in enumerate(anchors):
                    each[at].update(gather(self.tree, collect.node, anchor))
            found[number] = each
        return found

    def _columns_read(self) -> list[Column]:
        """The columns of nodes whose value, content or collected paths rows show."""
        found = dict.fromkeys(node_column(number) for number in self.shape.anchors.values())
        for output in self.pattern.outputs:
            if output.kind in _READ and output.of in self.shape.named:
                found[node_column(self.shape.named[output.of])] = None
        return list(found)
