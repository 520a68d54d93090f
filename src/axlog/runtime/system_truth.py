"""The truth of the views of a system: documents whose views feed the streams of other documents.

A stream that a view feeds delivers the rows that the view may still get, as trees
(`future/deliveries.py`): known values as they are, unknown ones with their conditions. The result
is a least fixpoint: nothing comes over the wires at first; then every view adds the generalised
rows that it may get from what its streams deliver, until none is new. There are finitely many:
values come from the documents, conditions from the queries. So cycles end.

Law `systems`: for views without `not` over streams that only insert, a view is NEVER if and only if
no run gives it a row, except where an element's value joins several unknown strings. In general
NEVER is always right; a view is POSSIBLE too often where rows exclude each other, by a clock, a key
or the number of trees. A view with `not` is judged with open streams, unless it is NEVER without
its `not`s. Where a view is undecided, its rows are delivered with unknown values.

Only the streams of wires are restricted. A stream of a channel may bring anything, and so may every
stream of a document with `sources:`, whose messages name their streams. A document with `updates:`
may change in any way: its views are not decided. (Paper 2, remark 4.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from time import monotonic
from typing import Any

from axlog.connect.channels.row_updates import KEY, ROW, cell_name
from axlog.connect.kinds import DOCUMENT_COLUMN
from axlog.document.tree import Tree
from axlog.errors import AxlogError, PipelineError
from axlog.future.deliveries import Cell, Delivery, RowTree
from axlog.future.grounding import has_not
from axlog.future.negation import without_not
from axlog.future.reasons import WhyNot, why_no_group, why_not
from axlog.future.truth import Outlook, Possible
from axlog.future.unknowns import ValueNeeds
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view
from axlog.pipeline.model import PipelineModel
from axlog.query.truth import Truth
from axlog.runtime.instances import Instances
from axlog.runtime.systems import System
from axlog.views.step_outlook import StepOutlook
from axlog.views.why import shown_possible

MOST_ROWS = 200
"""Maximum generalised rows of one view; more become one row with unknown values."""
LARGEST = 20_000
"""Maximum nodes of a document that is analysed with its wires; a larger one is judged alone."""
_SHARE = 20
"""At most one part in this many of the time is spent on the truth of a running system."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The truth of a view in its system; None if it is not decided."""

    truth: Truth | None
    reasons: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """This verdict as JSON values."""
        truth = None if self.truth is None else self.truth.value
        return {"truth": truth, "reasons": list(self.reasons)}


@dataclass(slots=True)
class _Rows:
    """The rows that a view may get, as trees."""

    trees: list[RowTree] = field(default_factory=list)
    is_free: bool = False

    def add(self, tree: RowTree, free: RowTree) -> None:
        if self.is_free or any(one.covers(tree) for one in self.trees):
            return
        if tree == free or len(self.trees) >= MOST_ROWS:
            self.trees, self.is_free = [free], True
            return
        self.trees = [one for one in self.trees if not tree.covers(one)] + [tree]


class ViewOutlook:
    """One view of one document, with the deliveries of its wires."""

    def __init__(self, document: Document, name: str, deliveries: Mapping[str, Delivery]) -> None:
        self._document, self._view = document, document.view(name)
        self._inside = maintained_view(self._view)
        self._deliveries = deliveries

    @cached_property
    def _tree(self) -> Tree | None:
        """A copy of the document for the analysis; None if the view is judged without it."""
        inside = self._inside
        if not self._deliveries or inside.reads_clock or inside.query.has_items:
            return None
        with maintained(self._document).lock:
            try:
                nodes = inside.around.nodes_left()
            except AxlogError:  # messages were not kept
                return None
            if len(nodes) > LARGEST:
                return None
            tree = nodes.copied()
        tree.deliveries = {
            stream: one for stream, one in self._deliveries.items() if stream in tree.calls()
        }
        return tree

    @cached_property
    def _outlook(self) -> Outlook | StepOutlook | None:
        if self._tree is None:
            return None
        if self._inside.query.row_key.steps:
            return StepOutlook(self._tree, self._inside.query.row_key, self._inside.times)
        return Outlook(self._tree, self._inside.pattern)

    @property
    def truth(self) -> Truth:
        """The truth of the view; raises where it is undecided."""
        if self._inside.holds():
            return Truth.TRUE
        if self._outlook is None or self._tree is None:
            return self._view.truth
        return Truth.NEVER if self._is_excluded else self._outlook.truth

    @cached_property
    def _is_excluded(self) -> bool:
        """Whether even the query without its `not`s can have no row."""
        pattern, tree = self._inside.pattern, self._tree
        if tree is None or not has_not(pattern):
            return False
        return Outlook(tree, without_not(pattern)).truth is Truth.NEVER

    def possible(self) -> list[Possible]:
        """The rows that may still come."""
        if isinstance(self._outlook, Outlook):
            found = self._outlook.possible()
            there = {row.values_ for row in self._view.rows()}
            return [
                shown_possible(one, self._inside.pattern, self._inside.times)
                for one in found
                if tuple(one.row.values()) not in there
            ]
        return self._view.possible() if self._outlook is None else self._outlook.possible()

    def why_not(self) -> WhyNot:
        """Why the view has no row."""
        if self._tree is None:
            return self._view.why_not({})
        query, times = self._inside.query, self._inside.times
        if query.row_key.steps:
            return why_no_group(self._tree, query.row_key, {}, times)
        pattern = self._inside.pattern
        return why_not(
            self._tree, without_not(pattern) if self._is_excluded else pattern, {}, times
        )

    def verdict(self) -> Verdict:
        """The truth, and for NEVER the reasons."""
        try:
            truth = self.truth
        except AxlogError as error:
            return Verdict(None, (error.message,))
        if truth is not Truth.NEVER:
            return Verdict(truth)
        try:
            return Verdict(truth, tuple(map(str, self.why_not().reasons)))
        except AxlogError:
            return Verdict(truth)

    def rows(self) -> list[tuple[dict[str, Any], ValueNeeds]]:
        """The generalised rows that the view may get. An empty row: any."""
        try:
            if self.truth is Truth.NEVER:
                return []
            if self._inside.query.has_items or self._inside.query.row_key.steps:
                return [({}, ValueNeeds())]
            found: list[tuple[dict[str, Any], ValueNeeds]]
            is_negated = has_not(self._inside.pattern)
            if isinstance(self._outlook, Outlook) and not is_negated:
                found = self._outlook.generalised()
            elif self._inside.reads_clock or self._inside.prospects() is not None:
                found = [(dict(one.row), ValueNeeds()) for one in self._view.possible()]
            else:  # the rows without the `not`s are found sooner, and are no fewer
                tree = self._tree
                if tree is None:
                    with maintained(self._document).lock:
                        tree = self._inside.around.nodes_left().copied()
                found = Outlook(tree, without_not(self._inside.pattern)).generalised()
        except AxlogError:
            return [({}, ValueNeeds())]
        if self._may_return:
            found += [(dict(row), ValueNeeds()) for row in self._view.rows()]
        return found

    @property
    def _may_return(self) -> bool:
        """Whether a row that is there can be retracted, and inserted again."""
        with maintained(self._document).lock:
            tree = maintained(self._document).tree
            calls = [tree.call(node) for node in tree.calls().values()]
        return has_not(self._inside.pattern) or any(
            call.deletes != "no" or call.replace is not None for call in calls
        )


class SystemTruth:
    """The truth of all views of a system, for its documents as they are now."""

    def __init__(
        self,
        model: PipelineModel,
        instances: Mapping[str, Instances] | None = None,
        system: System | None = None,
    ) -> None:
        """Without `instances`: before the first message."""
        self.model = model
        self.system = system or System(model)
        if instances is None:
            instances = {name: Instances(model, name) for name in model.documents}
            self.system.begin(instances)
        self.instances = instances
        self._rows: dict[str, _Rows] = {}
        wired = {wire.view for wire in self.system.wires}
        while True:
            before = {view: list(rows.trees) for view, rows in self._rows.items()}
            for name, one in self.instances.items():
                for view in one.queries:
                    if one.full[view] in wired:
                        self._add(name, view)
            if before == {view: rows.trees for view, rows in self._rows.items()}:
                break

    def _documents(self, name: str) -> list[Document]:
        """The documents of an entry; of a `document_key`, a new one as well."""
        one = self.instances[name]
        return [*one.documents.values()] if one.is_single else [*one.documents.values(), one.new()]

    def _deliveries(self, name: str) -> dict[str, Delivery]:
        """What the wires of a document deliver; none if other sources may name their streams."""
        found: dict[str, Delivery] = {}
        if self.model.documents[name].sources:
            return found
        for wire in self.system.wires:
            if wire.document == name:
                rows = self._rows.get(wire.view)
                trees = [] if rows is None or wire in self.system.closed else rows.trees
                attributes = (KEY,) if self.system.is_keyed(wire) else ()
                found[wire.stream] = Delivery(
                    wire.view,
                    tuple(RowTree(t.label, t.cells, attributes, t.needs) for t in trees),
                )
        return found

    def _add(self, name: str, view: str) -> None:
        """Add the rows that a view may get from what its streams deliver now."""
        one = self.instances[name]
        rows = self._rows.setdefault(one.full[view], _Rows())
        deliveries = self._deliveries(name)
        for document in self._documents(name):
            columns = document.view(view).columns
            if not one.is_single:
                columns = (DOCUMENT_COLUMN.name, *columns)
            free = _row_tree(columns, {}, ValueNeeds())
            if self.model.documents[name].updates:
                rows.add(free, free)
                continue
            for row, needs in ViewOutlook(document, view, deliveries).rows():
                rows.add(_row_tree(columns, row, needs), free)

    def outlooks(self, view: str) -> list[ViewOutlook]:
        """The view of this full name in each document that has it."""
        name, short = self._named(view)
        deliveries = self._deliveries(name)
        return [ViewOutlook(each, short, deliveries) for each in self._documents(name)]

    def outlook(self, name: str, document: Document, view: str) -> ViewOutlook:
        """A view of one document of an entry."""
        return ViewOutlook(document, view, self._deliveries(name))

    def _named(self, view: str) -> tuple[str, str]:
        """The document and the short name of a view."""
        for name, one in self.instances.items():
            for short, full in one.full.items():
                if view in (full, f"{name}.{short}") and short in one.queries:
                    return name, short
        known = [one.full[short] for one in self.instances.values() for short in one.queries]
        raise PipelineError("AX854", f"there is no view {view!r}", expected=", ".join(known))

    def verdict(self, view: str) -> Verdict:
        """The truth of a view, by its full name; of many documents, the best."""
        found = [one.verdict() for one in self.outlooks(view)]
        if self.model.documents[self._named(view)[0]].updates:
            if any(one.truth is Truth.TRUE for one in found):
                return Verdict(Truth.TRUE)
            return Verdict(None, ("lists of updates may change the document in any way",))
        for truth in (Truth.TRUE, Truth.POSSIBLE, None, Truth.NEVER):
            for one in found:
                if one.truth is truth:
                    return one
        raise AssertionError(f"{view} has no document")

    def verdicts(self) -> dict[str, Verdict]:
        """The truth of every view, by full names."""
        return {
            one.full[view]: self.verdict(one.full[view])
            for one in self.instances.values()
            for view in one.queries
        }


def _row_tree(columns: Iterable[str], row: Mapping[str, Any], needs: ValueNeeds) -> RowTree:
    cells = []
    for column in columns:
        value = row.get(column)
        is_forest = column.endswith(".cont")
        cells.append(Cell(cell_name(column), value if isinstance(value, str) else None, is_forest))
    return RowTree(ROW, tuple(cells), (), needs.renamed(cell_name))


class LiveTruth:
    """The truth of the views of a running system; asked often, computed rarely."""

    def __init__(
        self, model: PipelineModel, instances: Mapping[str, Instances], system: System
    ) -> None:
        self._given = (model, instances, system)
        self._lock = Lock()
        self._due = 0.0
        self._found: tuple[SystemTruth, dict[str, Verdict]] | None = None

    def get(self) -> tuple[SystemTruth, dict[str, Verdict]]:
        """The analysis and the verdicts, at most some seconds old if they are expensive."""
        with self._lock:
            now = monotonic()
            if self._found is None or now >= self._due:
                made = SystemTruth(*self._given)
                self._found = made, made.verdicts()
                self._due = now + max(0.5, _SHARE * (monotonic() - now))
            return self._found


def never_warnings(model: PipelineModel) -> list[PipelineError]:
    """One error for each view that can never have a row, with the reason."""
    return [
        PipelineError(
            "AX843",
            f"the view {view} can never have a row: {'; '.join(verdict.reasons) or 'no reason'}",
            advice="compare the labels in the query with the document and its streams",
        )
        for view, verdict in SystemTruth(model).verdicts().items()
        if verdict.truth is Truth.NEVER
    ]
