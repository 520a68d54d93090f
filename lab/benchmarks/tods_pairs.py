"""Every appendix update on every appendix view of paper 5, against re-evaluation (section 6).

For each update, as insertion and as deletion of its targets, there is one document with all seven
views over it. The steps are measured as in the paper: finding the targets, the delta tables, the
expression (the remaining terms), its execution, the update of the lattice. Applying the update to
the document is not a cost of the view and is reported separately. The delta tables are built once
for all views: a view is charged its share, and `alone` is its cost without the other views. There
are two comparisons (`tods_lxml`):

- `incremental`: the view's rows updated, against the list of nodes from lxml. Neither reads values.
- `told`: the changes with all their values, as a subscriber receives them, against lxml's rows and
  their difference to those before. Both sides must find the same number of rows and changes.

Our own full evaluation is measured too, and Saxon where it is installed. `--plot` draws figures 18
to 35; `tods_page` writes all pairs. Times are processor times (`thread_time`), because steps of a
millisecond would be lost among the pauses of a busy machine. Every side is repeated and the least
time counts. A repetition is a whole statement on both sides: find, apply, then each view once. Ours
updates a new copy of the document, lxml undoes the update. The `whole` figures add these up for a
document with one view. Up to `STATEMENTS_UP_TO` the same is measured in one piece, too:
`Document.update` of a document with one view, kept as axlog chooses, with its changes. Statements
were used before and are parsed already, as lxml's paths and fragments are.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache, partial
from time import thread_time
from typing import Any

from lxml import etree

from axlog.document import pending
from axlog.document.bulk_columns import make_room
from axlog.document.loader import load
from axlog.document.operations import Operation
from axlog.document.tree import Tree
from axlog.errors import WorkloadError
from axlog.evaluate.columns import columns_of
from axlog.evaluate.statements import operations_of
from axlog.live.document import parse
from axlog.query.pattern import Pattern
from axlog.query.query import parse_query
from axlog.query.statement_templates import OFTEN
from axlog.query.syntax_tree import Statement
from axlog.query.update_parser import parse_statements
from axlog.samples.auction import auction
from axlog.views.algebraic.engine import AlgebraicEngine
from axlog.views.algebraic.evaluation import everything
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.reports import Options
from lab.benchmarks.measuring import Plot, Result
from lab.benchmarks.tods_lxml import LxmlDocument, least, seconds
from lab.generators.appendix import AppendixUpdate
from lab.generators.appendix_views import VIEWS

FACTOR_OF_MB = 1 / 117
"""XMark's factor for a document of one megabyte."""
STEPS = ("delta tables", "expression", "execute", "lattice")
SAXON_UP_TO = 10.0
"""Megabytes up to which Saxon is asked too: it parses every updated document."""
OFTEN_UP_TO = 10.0
"""Megabytes up to which every side is run three times, and the least counts; larger ones once."""
STATEMENTS_UP_TO = 1.0
"""Megabytes up to which whole statements are measured in one piece, and every side is run nine
times: Python needs some runs of a statement before its code is as fast as in a running program."""


@dataclass(slots=True)
class Pair:
    """One update on one view; times in milliseconds."""

    size: float
    view: str
    update: str
    kind: str
    targets: int
    rows: int
    moved: int
    way: str
    find: float
    apply: float
    told: float  # with the changes and their values
    views: int  # number that share the delta tables
    statement: float = 0.0  # `Document.update` with this view only; 0: not measured
    steps: dict[str, float] = field(default_factory=dict)
    recomputed: dict[str, float] = field(default_factory=dict)

    @property
    def own(self) -> float:
        """The cost for this view alone."""
        return self.steps["expression"] + self.steps["execute"]

    @property
    def alone(self) -> float:
        """With the whole cost that views share."""
        return sum(self.steps.values())

    @property
    def incremental(self) -> float:
        """With this view's share of that cost."""
        return self.own + (self.alone - self.own) / self.views

    @property
    def whole(self) -> float:
        """The whole statement for a document with this view only, without changes."""
        return self.find + self.apply + self.alone

    @property
    def whole_told(self) -> float:
        """The same with the changes emitted."""
        return self.find + self.apply + self.told

    def recomputed_whole(self, what: str) -> float:
        """lxml's whole statement: find, edit, and evaluate the view again."""
        asked = self.recomputed
        return asked["lxml find"] + asked["lxml apply"] + asked[what]

    @property
    def ratio(self) -> float:
        """lxml's list of nodes over incremental maintenance."""
        return self.recomputed["lxml"] / max(self.incremental, 1e-6)

    @property
    def ratio_told(self) -> float:
        """lxml's rows and their difference over the emitted changes."""
        return self.recomputed["lxml rows"] / max(self.told, 1e-6)


def document(megabytes: float) -> str:
    """An auction document of about this size."""
    return "".join(auction(megabytes * FACTOR_OF_MB))


class Run:
    """One document with views over it, and the propagation of one update to them."""

    def __init__(
        self, source: str | Tree, views: Iterable[str], options: Options | None = None
    ) -> None:
        self.tree: Tree = _copied(source) if isinstance(source, Tree) else load(source)
        self.engine = AlgebraicEngine(self.tree)
        self.engine.clock = thread_time
        self.views = {
            name: Algebraic(self.tree, pattern_of(name), self.engine, options) for name in views
        }
        self.find = self.apply = 0.0
        self.targets = 0
        self.steps: dict[str, dict[str, float]] = {}
        self.moved: dict[str, int] = {}

    def operations(self, statement: str) -> Sequence[Operation]:
        """A statement's pending update list."""
        return operations_of(self.tree, _prepared(statement), None, None)

    def update(self, statement: str) -> None:
        """Apply a statement and propagate it, with the time of every step."""
        start = thread_time()
        operations = self.operations(statement)
        found = thread_time()
        plan = pending.planned(self.tree, operations)
        self.find, self.targets = found - start, len(operations)
        self.apply = thread_time() - found
        delta = plan.delta
        self.engine.before(delta)
        spent = {name: seconds(partial(v.prepare, delta)) for name, v in self.views.items()}
        self.apply += seconds(plan.commit)
        self.engine.after(delta)
        for name, view in self.views.items():
            own = spent[name] + seconds(partial(self._propagate, name, view, delta))
            expression = view.report.expression
            self.steps[name] = {
                "delta tables": 1e3 * self.engine.times["delta tables"],
                "expression": 1e3 * expression,
                "execute": 1e3 * max(0.0, own - expression),
                "lattice": 1e3 * self.engine.times["lattice"],
            }

    def _propagate(self, name: str, view: Algebraic, delta: Any) -> None:
        slots, _, new = view.propagate(delta)
        view.relation.release(slots[new == 0])
        self.moved[name] = len(slots)

    def tell(self, statement: str) -> dict[str, tuple[float, int]]:
        """The same with changes: milliseconds and their number, for each view with its share.

        The rows were read before, as on lxml's side.
        """
        for view in self.views.values():
            sum(1 for _ in view.rows())
        plan = pending.planned(self.tree, self.operations(statement))
        delta = plan.delta
        shared = seconds(partial(self.engine.before, delta))
        spent = {name: seconds(partial(v.before, delta)) for name, v in self.views.items()}
        plan.commit()
        shared += seconds(partial(self.engine.after, delta))
        told = {}
        for name, view in self.views.items():
            start = thread_time()
            changes = view.after(delta)
            own = spent[name] + thread_time() - start
            told[name] = (1e3 * (own + shared / len(self.views)), len(changes))
        return told


def _copied(tree: Tree) -> Tree:
    """A copy of a document, with the room in its columns that one in use has."""
    made = deepcopy(tree)
    make_room(made)
    return made


@lru_cache
def _prepared(statement: str) -> Statement:
    """A parsed statement, as `Document.update` keeps those that are used often."""
    (one,) = parse_statements(statement, {})
    return one


def pattern_of(view: str) -> Pattern:
    """The pattern of an appendix view."""
    return parse_query(VIEWS[view].xquery).pattern


def statement_of(update: AppendixUpdate, kind: str) -> str:
    return update.meant_insertion if kind == "insert" else update.deletion


class Size:
    """A document of one size on both sides, for all updates."""

    def __init__(self, megabytes: float, views: Sequence[str]) -> None:
        self.megabytes = megabytes
        self.views = views
        text = document(megabytes)
        self.tree = load(text)
        self.lxml = LxmlDocument(text)
        self.times = 1 if megabytes > OFTEN_UP_TO else 3 if megabytes > STATEMENTS_UP_TO else 9
        self.before = {name: self.lxml.rows(name) for name in views}

    def pairs(self, update: AppendixUpdate, kind: str) -> list[Pair]:
        """One update on all views."""
        statement = statement_of(update, kind)
        gc.collect()
        gc.disable()
        try:
            statements = self._statements(statement)
            runs, told = self._ours(statement)
            asked, changes = self._theirs(update, kind, runs[0])
        finally:
            gc.enable()
        for name in self.views:
            rows = len(runs[0].views[name].relation)
            if asked[name].pop("rows") != rows or changes[name] != told[name][1]:
                raise WorkloadError(
                    "AX602", f"{update.name} ({kind}) on {name}: lxml comes to other rows"
                )
        found = [self._pair(update, kind, name, runs, told, asked[name]) for name in self.views]
        for pair in found:
            pair.statement = 1e3 * statements.get(pair.view, 0.0)
        return found

    def _statements(self, statement: str) -> dict[str, float]:
        """Seconds of the whole statement by `Document.update`, for each view alone."""
        found = dict[str, float]()
        if self.megabytes > STATEMENTS_UP_TO:
            return found
        scratch = parse(deepcopy(self.tree))
        for _ in range(OFTEN + 1):
            scratch.update(statement)
        for name in self.views:
            documents = [parse(_copied(self.tree)) for _ in range(self.times)]
            for document in documents:
                document.watch(VIEWS[name].xquery).rows()
            found[name] = min(seconds(partial(each.update, statement)) for each in documents)
        return found

    def _ours(self, statement: str) -> tuple[list[Run], dict[str, tuple[float, int]]]:
        """All copies are made first: neither side is measured just after a copy of a document."""
        runs = [Run(self.tree, self.views) for _ in range(self.times)]
        others = [Run(self.tree, self.views) for _ in range(self.times)]
        for run in runs:
            run.update(statement)
        told = dict[str, tuple[float, int]]()
        for run in others:
            for name, one in run.tell(statement).items():
                told[name] = min(one, told.get(name, one))
        return runs, told

    def _theirs(
        self, update: AppendixUpdate, kind: str, run: Run
    ) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
        """The time of each system to evaluate the views on the updated document."""
        lxml, found, changes = self.lxml, dict[str, dict[str, float]](), dict[str, int]()
        for name in self.views:
            taken = least(partial(_evaluated, run.views[name]), self.times)
            found[name] = {"own": taken}
        for number in range(self.times):
            with lxml.updated(update, kind):
                for name in self.views:
                    nodes, rows = lxml.timed(name, self.before[name])
                    times = {"lxml": nodes[0], "lxml rows": rows[0]}
                    times |= {"lxml find": lxml.find, "lxml apply": lxml.apply}
                    known = found[name]
                    known |= {
                        what: min(each, known.get(what, each)) for what, each in times.items()
                    }
                    known["rows"], changes[name] = nodes[1], rows[1]
                if not number and self.megabytes <= SAXON_UP_TO:
                    saxon = _saxon(lxml.root)
                    for name in self.views if saxon is not None else ():
                        asked = partial(saxon.evaluate, VIEWS[name].xpath)
                        found[name]["saxon"] = least(asked)
        return found, changes

    def _pair(
        self,
        update: AppendixUpdate,
        kind: str,
        name: str,
        runs: Sequence[Run],
        told: dict[str, tuple[float, int]],
        asked: dict[str, float],
    ) -> Pair:
        run, steps = runs[0], [run.steps[name] for run in runs]
        return Pair(
            size=self.megabytes,
            view=name,
            update=update.name,
            kind=kind,
            targets=run.targets,
            rows=len(run.views[name].relation),
            moved=run.moved[name],
            way=run.views[name].report.way,
            find=1e3 * min(each.find for each in runs),
            apply=1e3 * min(each.apply for each in runs),
            told=told[name][0],
            views=len(self.views),
            steps={step: min(each[step] for each in steps) for step in STEPS},
            recomputed=asked,
        )


def _evaluated(view: Algebraic) -> None:
    with columns_of(view.tree) as columns:
        everything(columns, view.selections)


def _saxon(root: Any) -> Any:
    try:
        from saxonche import PySaxonProcessor
    except ImportError:
        return None
    processor: Any = PySaxonProcessor(license=False)
    evaluator = processor.new_xpath_processor()
    evaluator.set_context(xdm_item=processor.parse_xml(xml_text=etree.tostring(root).decode()))
    return evaluator


# Reports ------------------------------------------------------------------------------------------


def summarise(result: Result, found: Sequence[Pair]) -> None:
    """Both sides, summed over the pairs of each size, and how many pairs recomputation wins."""
    for size in sorted({pair.size for pair in found}):
        here = [pair for pair in found if pair.size == size]
        figures = {
            "pairs": len(here),
            "incremental, ms": sum(pair.incremental for pair in here),
            "with the delta tables for every view, ms": sum(pair.alone for pair in here),
            "lxml nodes, ms": sum(pair.recomputed["lxml"] for pair in here),
            "own evaluation, ms": sum(pair.recomputed["own"] for pair in here),
            "find and apply, ms": sum(pair.find + pair.apply for pair in here) / here[0].views,
            "lxml find and apply, ms": sum(
                pair.recomputed["lxml find"] + pair.recomputed["lxml apply"] for pair in here
            )
            / here[0].views,
            "pairs where lxml nodes take less": sum(pair.ratio < 1 for pair in here),
            "changes told, ms": sum(pair.told for pair in here),
            "lxml rows and difference, ms": sum(pair.recomputed["lxml rows"] for pair in here),
            "pairs where lxml rows take less": sum(pair.ratio_told < 1 for pair in here),
        }
        for what, own, other in (
            ("nodes", "whole", "lxml"),
            ("rows", "whole_told", "lxml rows"),
        ):
            ours = [float(getattr(pair, own)) for pair in here]
            theirs = [pair.recomputed_whole(other) for pair in here]
            figures[f"whole statements, {what}, ms"] = sum(ours)
            figures[f"lxml whole statements, {what}, ms"] = sum(theirs)
            less = sum(a > b for a, b in zip(ours, theirs, strict=True))
            figures[f"pairs where lxml whole statements with {what} take less"] = less
        if size <= STATEMENTS_UP_TO:
            figures["Document.update with changes, ms"] = sum(pair.statement for pair in here)
            for what in ("lxml rows", "lxml"):
                less = sum(pair.statement > pair.recomputed_whole(what) for pair in here)
                said = "with the difference" if what == "lxml rows" else "without the difference"
                figures[f"pairs where lxml {said} takes less than Document.update"] = less
        if all("saxon" in pair.recomputed for pair in here):
            figures["Saxon nodes, ms"] = sum(pair.recomputed["saxon"] for pair in here)
        result.figures.update({f"{size} MB, {what}": each for what, each in figures.items()})
        for pair in here:
            if (pair.view, pair.update) == ("Q1", "X1_L"):
                what = f"{size} MB, X1_L {pair.kind} on Q1"
                result.figures[f"{what}: incremental, ms"] = pair.incremental
                result.figures[f"{what}: alone, ms"] = pair.alone
                result.figures[f"{what}: lxml nodes, ms"] = pair.recomputed["lxml"]
                result.figures[f"{what}: told, ms"] = pair.told
                result.figures[f"{what}: lxml rows, ms"] = pair.recomputed["lxml rows"]


def plots_of_pairs(found: Sequence[Pair]) -> list[Plot]:
    """Figures 18 to 21 and 25 to 27."""
    largest = max(pair.size for pair in found)
    plots = []
    for figure, kind in ((18, "insert"), (19, "delete")):
        for view in ("Q1", "Q3", "Q6"):
            here = [p for p in found if (p.size, p.view, p.kind) == (largest, view, kind)]
            lines = {step: _points(here, [p.steps[step] for p in here]) for step in STEPS}
            lines["find targets"] = _points(here, [p.find for p in here])
            title = f"Fig. {figure}: {kind}, {view}, {largest} MB ({_named(here)})"
            plots.append(Plot(title, "update", "ms", lines, log_y=True))
    for figure, kind in ((20, "insert"), (21, "delete")):
        lines = {
            view: _points([p for p in found if (p.size, p.view, p.kind) == (largest, view, kind)])
            for view in dict.fromkeys(p.view for p in found)
        }
        plots.append(Plot(f"Fig. {figure}: {kind}, all views", "update", "ms", lines, log_y=True))
    plots += _of_sizes(found)
    for figure, kind in ((26, "insert"), (27, "delete")):
        for view in ("Q1", "Q2", "Q4"):
            here = [p for p in found if (p.size, p.view, p.kind) == (largest, view, kind)]
            lines = {
                "incremental": _points(here),
                "lxml": _points(here, [p.recomputed["lxml"] for p in here]),
                "own evaluation": _points(here, [p.recomputed["own"] for p in here]),
            }
            title = f"Fig. {figure}: {kind}, {view} against recomputation"
            plots.append(Plot(title, "update", "ms", lines, log_y=True))
    return [plot for plot in plots if any(plot.lines.values())]


def _of_sizes(found: Sequence[Pair]) -> list[Plot]:
    """Figure 25: Q1 and A6_A on documents of several sizes."""
    plots = []
    for kind in ("insert", "delete"):
        here = [p for p in found if (p.view, p.update, p.kind) == ("Q1", "A6_A", kind)]
        lines = {step: [(p.size, max(p.steps[step], 1e-4)) for p in here] for step in STEPS}
        title = f"Fig. 25: Q1, A6_A, {kind}"
        plots.append(Plot(title, "MB", "ms", lines, log_x=True, log_y=True))
    return plots


def _points(
    here: Sequence[Pair], values: Sequence[float] | None = None
) -> list[tuple[float, float]]:
    """One point per pair, at least a tenth of a microsecond because the axis is logarithmic."""
    shown = [pair.incremental for pair in here] if values is None else values
    return [(number, max(value, 1e-4)) for number, value in enumerate(shown, 1)]


def _named(here: Sequence[Pair]) -> str:
    return f"{len(here)} updates in the appendix's order"


def plain(pair: Pair) -> dict[str, Any]:
    return {
        **{name: getattr(pair, name) for name in Pair.__slots__},
        "incremental": pair.incremental,
        "ratio": pair.ratio,
        "ratio_told": pair.ratio_told,
    }


def from_plain(one: dict[str, Any]) -> Pair:
    """A pair from its recorded form."""
    return Pair(**{name: one[name] for name in Pair.__slots__})
