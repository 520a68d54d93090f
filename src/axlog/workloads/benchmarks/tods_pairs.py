"""P5 section 6: every appendix update on every appendix view, against evaluating the view again.

For each update, as insertion and as deletion of its targets, one document with all seven views over
it. Measured as the paper does: finding the targets, the delta tables (made once; counted for every
view), the expression (which terms are left), executing it, updating the lattice; carrying out the
update on the document is not the view's cost and stands apart. Against it: asking lxml, Saxon where
it is installed, and our own full evaluation for the view's nodes on the updated document. Neither
side reads values or contents. Figures 18 to 35 are drawn by `--plot`; `table` writes all pairs.

Times are of the processor (`thread_time`), as steps of a millisecond would be lost among the pauses
of a busy machine: an update is run once, what can be repeated three times, the least counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import thread_time
from typing import Any

from lxml.etree import XPath, fromstring

from axlog.document import pending
from axlog.document.reading import make_parser
from axlog.document.tree import Tree
from axlog.document.updates import Operation
from axlog.document.writing import serialise
from axlog.document.xml import load
from axlog.evaluate.columns import columns_of
from axlog.evaluate.statements import operations_of
from axlog.language.pattern import Pattern
from axlog.language.query import parse_query
from axlog.language.xquery_update import parse_statements
from axlog.views.algebraic.engine import AlgebraicEngine
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.reports import Options
from axlog.views.algebraic.whole import everything
from axlog.workloads.appendix import AppendixUpdate
from axlog.workloads.appendix_views import VIEWS
from axlog.workloads.auction import auction
from axlog.workloads.benchmarks.measuring import Plot, Result

FACTOR_OF_MB = 1 / 117
"""XMark's factor for a document of one megabyte."""
STEPS = ("delta tables", "expression", "execute", "lattice")
SAXON_UP_TO = 2.0
"""Megabytes up to which Saxon is asked too: it parses every updated document."""


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
    steps: dict[str, float] = field(default_factory=dict)
    recomputed: dict[str, float] = field(default_factory=dict)

    @property
    def incremental(self) -> float:
        return sum(self.steps.values())

    @property
    def ratio(self) -> float:
        """Recomputation with lxml over incremental maintenance."""
        return self.recomputed["lxml"] / max(self.incremental, 1e-6)


def document(megabytes: float) -> str:
    """An auction document of about this size."""
    return "".join(auction(megabytes * FACTOR_OF_MB))


class Run:
    """One document with views over it, and one update on its way to them."""

    def __init__(self, text: str, views: Iterable[str], options: Options | None = None) -> None:
        self.tree: Tree = load(text)
        self.engine = AlgebraicEngine(self.tree)
        self.engine.clock = thread_time
        self.views = {
            name: Algebraic(self.tree, pattern_of(name), self.engine, options) for name in views
        }
        self.find = self.apply = 0.0
        self.targets = 0
        self.steps: dict[str, dict[str, float]] = {}
        self.moved: dict[str, int] = {}

    def operations(self, statement: str) -> list[Operation]:
        """A statement's pending update list."""
        (one,) = parse_statements(statement, {})
        return list(operations_of(self.tree, one, None, None))

    def update(self, statement: str) -> None:
        """Carry out a statement and propagate it, with the time of every step."""
        start = thread_time()
        operations = self.operations(statement)
        found = thread_time()
        plan = pending.planned(self.tree, operations)
        self.find, self.targets = found - start, len(operations)
        self.apply = thread_time() - found
        delta = plan.delta
        spent = {name: _seconds(partial(v.look_at, delta)) for name, v in self.views.items()}
        shared = self._shared()
        self.apply += _seconds(plan.commit)
        for number, (name, view) in enumerate(self.views.items()):
            earlier = self._shared()
            spent[name] += _seconds(partial(self._propagate, name, view, delta))
            # What all views share is no single view's: the first one did it for all.
            own = spent[name] - (self._shared() - earlier) - (0 if number else shared)
            expression = view.report.expression
            self.steps[name] = {
                "delta tables": 0.0,
                "expression": 1e3 * expression,
                "execute": 1e3 * max(0.0, own - expression),
            }
        for steps in self.steps.values():
            steps["delta tables"] = 1e3 * self.engine.times["delta tables"]
            steps["lattice"] = 1e3 * self.engine.times["lattice"]

    def _propagate(self, name: str, view: Algebraic, delta: Any) -> None:
        slots, _, new = view.propagate(delta)
        view.relation.release(slots[new == 0])
        self.moved[name] = len(slots)

    def _shared(self) -> float:
        return sum(self.engine.times.values())


def _seconds(work: Callable[[], object]) -> float:
    start = thread_time()
    work()
    return thread_time() - start


def pattern_of(view: str) -> Pattern:
    """The pattern of an appendix view."""
    return parse_query(VIEWS[view].xquery).pattern


def least(work: Callable[[], object], times: int = 3) -> float:
    """The least time of a few, in milliseconds."""
    return 1e3 * min(_seconds(work) for _ in range(times))


def statement_of(update: AppendixUpdate, kind: str) -> str:
    return update.meant_insertion if kind == "insert" else update.deletion


def pairs(
    text: str, size: float, update: AppendixUpdate, kind: str, views: Sequence[str]
) -> list[Pair]:
    """One update on all views."""
    run = Run(text, views)
    run.update(statement_of(update, kind))
    asked = recomputation(run, views, size <= SAXON_UP_TO)
    return [
        Pair(
            size=size,
            view=name,
            update=update.name,
            kind=kind,
            targets=run.targets,
            rows=len(view.relation),
            moved=run.moved[name],
            way=view.report.way,
            find=1e3 * run.find,
            apply=1e3 * run.apply,
            steps=run.steps[name],
            recomputed=asked[name],
        )
        for name, view in run.views.items()
    ]


def recomputation(run: Run, views: Sequence[str], with_saxon: bool) -> dict[str, dict[str, float]]:
    """What it takes each system to find the nodes of each view on the updated document."""
    xml = serialise(run.tree)
    root = fromstring(xml.encode(), make_parser())
    saxon = _saxon(xml) if with_saxon else None
    found: dict[str, dict[str, float]] = {}
    for name in views:
        asked = XPath(VIEWS[name].xpath)
        found[name] = {"lxml": least(partial(asked, root)), "own": least(_own(run.views[name]))}
        if saxon is not None:
            found[name]["saxon"] = least(partial(saxon, VIEWS[name].xpath))
    return found


def _own(view: Algebraic) -> Callable[[], object]:
    def evaluate() -> None:
        with columns_of(view.tree) as columns:
            everything(columns, view.selections)

    return evaluate


def _saxon(xml: str) -> Callable[[str], object] | None:
    try:
        from saxonche import PySaxonProcessor
    except ImportError:
        return None
    processor: Any = PySaxonProcessor(license=False)
    evaluator = processor.new_xpath_processor()
    evaluator.set_context(xdm_item=processor.parse_xml(xml_text=xml))
    return lambda path: evaluator.evaluate(path)


# What is said of it -------------------------------------------------------------------------------


def summarise(result: Result, found: Sequence[Pair]) -> None:
    """Both sides, summed over the pairs of each size, and how many pairs recomputation wins."""
    for size in sorted({pair.size for pair in found}):
        here = [pair for pair in found if pair.size == size]
        total = sum(pair.incremental for pair in here)
        asked = sum(pair.recomputed["lxml"] for pair in here)
        slower = [pair for pair in here if pair.ratio < 1]
        result.figures[f"{size} MB, all pairs: incremental, ms"] = total
        result.figures[f"{size} MB, all pairs: lxml, ms"] = asked
        result.figures[f"{size} MB, pairs"] = len(here)
        result.figures[f"{size} MB, pairs where lxml takes less"] = len(slower)
        for pair in here:
            if (pair.view, pair.update) == ("Q1", "X1_L"):
                what = f"{size} MB, X1_L {pair.kind} on Q1"
                result.figures[f"{what}: incremental, ms"] = pair.incremental
                result.figures[f"{what}: lxml, ms"] = pair.recomputed["lxml"]


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
    """One point for each pair, a tenth of a microsecond at least: the axis is logarithmic."""
    shown = [pair.incremental for pair in here] if values is None else values
    return [(number, max(value, 1e-4)) for number, value in enumerate(shown, 1)]


def _named(here: Sequence[Pair]) -> str:
    return f"{len(here)} updates in the appendix's order"


def plain(pair: Pair) -> dict[str, Any]:
    return {
        **{name: getattr(pair, name) for name in Pair.__slots__},
        "incremental": pair.incremental,
        "ratio": pair.ratio,
    }


def table(found: Sequence[dict[str, Any]]) -> str:
    """All pairs as a table in Markdown: incremental, recomputation, ratio."""
    lines = [
        "| MB | update | kind | view | targets | incremental, ms | lxml, ms | ratio | way |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one['size']:g} | {one['update']} | {one['kind']} | {one['view']} | "
        f"{one['targets']} | {one['incremental']:.2f} | {one['recomputed']['lxml']:.2f} | "
        f"{one['ratio']:.1f} | {one['way']} |"
        for one in found
    ]
    return "\n".join(lines)
