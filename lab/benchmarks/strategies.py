"""The experiments of paper 3, section 5.4: the gain of each part of the engine (F13).

Random documents of the paper's kind, with four strategies on the same updates, one after the other
(figures 9 and 10):

    Reeval      every update is applied to the document and the view is evaluated again
    Filter      updates that no scenario wants are dropped, the rest as Reeval
    NoCache     Axlog with its relations on disk, loaded for an update and freed after it (5.3)
    Cache       Axlog with its relations in memory

Both forms of Axlog are tuned after they are compiled, as in 5.2. All four must have the same rows
at the end. Figures 9 and 10 are drawn with the costs of 5.4: the processor time of compilation,
tuning and all updates, divided by the number of updates. A third picture has the updates alone. The
paper's figures are bars measured on a machine of 2008: the order of the strategies and the trend of
the gap are compared, not the times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from time import process_time

from axlog.document.loader import read_forest
from axlog.errors import WorkloadError
from axlog.future.relevance import lazily_wanted
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.match.filters import Filter
from axlog.query.pattern import Axis
from axlog.query.query import parse_query
from lab.benchmarks.measuring import Cost, Plot, Result
from lab.benchmarks.messages import Message, plain
from lab.generators import active

STRATEGIES = ("Reeval", "Filter", "Axlog NoCache", "Axlog Cache")
_VIEW = "view"


class Strategy:
    """One document under one strategy, with the time to set up and the time of each update."""

    def __init__(self, made: active.Workload, name: str) -> None:
        start = process_time()
        reevaluates = name in ("Reeval", "Filter")
        self.doc = Document(
            made.document,
            options=Options(
                keep="all" if reevaluates else "needed",
                cache="disk" if name == "Axlog NoCache" else "memory",
                memory=0,
            ),
        )
        self.doc.watch(made.pattern, _VIEW, maintainer="reevaluate" if reevaluates else "counting")
        self.filters = _filters(self.doc, made.pattern) if name == "Filter" else None
        for stream in self.doc.streams():
            self.doc.code(stream)  # compilation is part of the setup
        if not reevaluates:
            self.doc.tune()
        self.initialisation = process_time() - start

    def take(self, message: Message) -> None:
        stream, text, at = message
        if self.filters is not None:
            wanted = self.filters[stream]
            if not any(wanted.matches(tree) for tree in read_forest(text)):
                self.doc.advance(at)  # the clock advances for dropped updates too
                return
        self.doc.feed(stream, text, at=at)

    def rows(self) -> set[object]:
        """The rows without their counts, which filters may change."""
        return {row.values_ for row in self.doc.view(_VIEW).rows()}


def _filters(doc: Document, text: str) -> dict[str, Filter]:
    """For each stream, everything that some scenario requests from it."""
    tree = maintained(doc).nodes()
    made = {stream: Filter() for stream in tree.calls()}
    wanted = lazily_wanted(tree, parse_query(text).pattern, together=True)
    for number, (relation, stream) in enumerate(sorted(wanted, key=str)):
        everywhere = relation.node is not None and relation.node.axis is not Axis.CHILD
        made[stream].add_relation(str(number), relation, everywhere)
    return made


@dataclass(slots=True)
class Timed:
    """Average times of the strategies, over documents."""

    updates: int
    taken: dict[str, list[float]] = field(default_factory=dict)
    initialised: dict[str, list[float]] = field(default_factory=dict)

    def average(self, name: str) -> float:
        """Microseconds for an update, without the setup."""
        return fmean(self.taken[name])

    def amortised(self, name: str) -> float:
        """Microseconds for an update, with its share of the setup."""
        return self.average(name) + 1e6 * fmean(self.initialised[name]) / self.updates


def strategies(
    documents: int = 10,
    size: int = 5000,
    counts: Sequence[int] = (10, 50, 100, 150, 200, 250),
    pertinences: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9),
    calls: Sequence[int] = (10, 180),
    updates: int = 100,
) -> Result:
    """Both experiments: vary the number of updates at pertinence 70 %, then the pertinence."""
    result = Result("axlog", "the experiments of P3 5.4: what each part of the engine gains (F13)")
    result.sizes = {"documents": documents, "nodes": size, "message nodes": 20, "pattern nodes": 10}
    for streams in calls:
        by_count = {float(n): _measure(documents, size, streams, n, 0.7) for n in counts}
        note = "P3 figure 9: Reeval on top, then Filter, Axlog NoCache;\nAxlog Cache lowest"
        _draw(result, f"Fig. 9: {streams} streams, 70 % pertinent", "updates", by_count, note)
        for count, each in by_count.items():
            for name in STRATEGIES:
                what = f"{streams} streams, {count:.0f} updates: {name}"
                result.figures[f"{what}, amortised, ms"] = each.amortised(name) / 1000
        _compare(result, f"{streams} streams, {counts[-1]} updates", by_count[counts[-1]])
        last = by_count[counts[-1]].initialised
        for name in STRATEGIES:
            result.figures[f"{streams} streams: initialisation of {name}, ms"] = 1e3 * fmean(
                last[name]
            )
    by_share = {
        100 * share: _measure(documents, size, calls[0], updates, share) for share in pertinences
    }
    note = "P3 figure 10: all rise with pertinence,\nthe gap to Axlog Cache grows"
    title = f"Fig. 10: {calls[0]} streams, {updates} updates"
    _draw(result, title, "pertinent messages, %", by_share, note)
    for share, each in by_share.items():
        for name in STRATEGIES:
            what = f"{share:.0f} % pertinent: {name}, amortised, ms"
            result.figures[what] = each.amortised(name) / 1000
    result.remarks.append("the rows of the four strategies were the same in every run")
    return result


def _measure(documents: int, size: int, calls: int, count: int, pertinence: float) -> Timed:
    timed = Timed(count, {name: [] for name in STRATEGIES}, {name: [] for name in STRATEGIES})
    for seed in range(documents):
        made = active.workload(document_size=size, calls=calls, seed=seed)
        sent = plain(active.updates(made, count, pertinence, seed=seed))
        answers = []
        for name in STRATEGIES:
            strategy = Strategy(made, name)
            timed.initialised[name].append(strategy.initialisation)
            timed.taken[name].append(1e6 * _time(strategy.take, sent) / len(sent))
            answers.append(strategy.rows())
        if any(rows != answers[0] for rows in answers):
            raise WorkloadError("AX602", f"the strategies differ on document {seed}")
    return timed


def _time(take: Callable[[Message], None], sent: Sequence[Message]) -> float:
    start = process_time()
    for message in sent:
        take(message)
    return process_time() - start


def _draw(result: Result, what: str, x: str, timed: dict[float, Timed], note: str) -> None:
    for cost, method in (("with setup", Timed.amortised), ("without setup", Timed.average)):
        lines = {
            name: [(at, method(each, name) / 1000) for at, each in timed.items()]
            for name in STRATEGIES
        }
        title = f"{what}, {cost}"
        said = note if method is Timed.amortised else ""
        result.plots.append(Plot(title, x, "ms an update", lines, log_y=True, note=said))


def _compare(result: Result, what: str, timed: Timed) -> None:
    """Each strategy over the next: F13 requires every ratio above 1."""
    costs = {name: Cost(timed.average(name), timed.average(name)) for name in STRATEGIES}
    for slower, faster in pairwise(STRATEGIES):
        result.compare(what, costs, slower, faster, "above 1")
