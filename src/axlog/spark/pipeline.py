"""`axlog run` with `engine: spark`: a pipeline file as streaming queries, one for each widget.

Batch 0 is the rows that documents have at once, as with the embedded runner; Spark's batches follow
from 1. What cannot be taken goes to the dead letters' sink with its origin. A sink is written by
one query: views of two widgets cannot share one here, since each query numbers its own batches.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lxml import etree

from axlog.connectors.kinds import ViewShape
from axlog.connectors.protocol import Source
from axlog.errors import PipelineError
from axlog.pipeline.documents import document_of, types_of
from axlog.pipeline.model import PipelineModel
from axlog.pipeline.opening import (
    DEAD_LETTERS,
    OpenSink,
    SourcePlan,
    as_changes,
    open_sinks,
    sink_plans,
    source_plans,
)
from axlog.pipeline.progress import Progress
from axlog.spark.checkpoint import Settled
from axlog.spark.definition import Definition
from axlog.spark.session import session
from axlog.spark.streaming import BatchReport, Maintained, maintain
from axlog.views.change import Change


def run(
    model: PipelineModel,
    *,
    once: bool = False,
    seconds: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_report: Callable[[str, BatchReport], None] | None = None,
    outlook: int = 0,
    quick: bool | None = None,
    stopping: threading.Event | None = None,
) -> Progress:
    """Run a pipeline on Spark until stopped, for so long, or (`once`) while there is input.

    `on_report` is told each batch of each widget, with possible rows if an `outlook` is asked for;
    `quick` starts sooner and runs a little slower, as `once` does by itself. Who runs it in a
    thread ends it by `stopping`.
    """
    refuse_systems(model)
    refuse_shared_sinks(model)
    model = model.located(model.directory.absolute())  # tasks run in other directories
    progress, started = Progress(), time.monotonic()
    settings = model.settings
    master = settings.master or (f"local[{settings.cores}]" if settings.cores else None)
    is_quick = once if quick is None else quick
    spark = session(master, model.name or "axlog", quick=is_quick, settings=settings.spark)
    queries: list[Maintained] = []
    opened: list[OpenSink] = []

    def report(widget: str, told: BatchReport) -> None:
        note(progress, told, time.monotonic() - started)
        if on_progress is not None:
            on_progress(progress)
        if on_report is not None:
            on_report(widget, told)

    try:
        for widget in model.widgets:
            mine = partial(report, widget)
            query, sinks = start_widget(spark, model, widget, once, mine, outlook)
            queries.append(query)
            opened += sinks
        with _stopped_by_signals(stopping or threading.Event()) as stopped:
            _wait(queries, stopped, seconds)
    finally:
        for query in queries:
            query.stop()
        for sink in opened:
            sink.sink.close()
    return progress


def definition_of(model: PipelineModel, widget: str) -> Definition:
    """The definition of a widget of the file."""
    written = model.widgets[widget]
    types = [
        given if isinstance(given, str) else given.read_text(encoding="utf-8")
        for given in types_of(written, model.directory)
    ]
    views = {name: (view.query, view.language) for name, view in written.views.items()}
    document = etree.tostring(document_of(written, model.directory), encoding="unicode")
    return Definition(document, views, tuple(written.facts), tuple(types), dict(model.namespaces))


def start_widget(
    spark: Any,
    model: PipelineModel,
    widget: str,
    once: bool,
    report: Callable[[BatchReport], None],
    outlook: int = 0,
) -> tuple[Maintained, list[OpenSink]]:
    """Start one widget's query, its first rows delivered."""
    definition = definition_of(model, widget)
    written, settings = model.widgets[widget], model.settings
    many = written.documents is not None
    queries = definition.queries()
    shapes = [ViewShape.of(model.full_name(widget, v), q, many) for v, q in queries.items()]
    place = None
    if settings.checkpoint is not None:
        place = str(_place(model, settings.checkpoint) / widget)
    deferred = _Deferred(model, widget)
    sources = [PipelineSource(model, plan) for plan in source_plans(model) if plan.widget == widget]
    query = maintain(
        spark,
        definition,
        sources,
        [deferred],
        checkpoint=place,
        once=once,
        every=settings.trigger,
        hold=settings.hold,
        documents=None if written.documents is None else written.documents.key,
        buckets=settings.buckets,
        limit=settings.batch,
        clock=settings.clock,
        tune=model.settings_of(widget).tune != "off",
        dead_letters=deferred.refuse,
        report=report,
        outlook=outlook,
        first=1,
        begin=lambda run: deferred.open(run.run, shapes, [] if many else first_rows(run)),
    )
    return query, deferred.sinks


def _place(model: PipelineModel, written: str) -> Path:
    return model.directory / written


class PipelineSource:
    """Makes a source of the file, wherever it is read."""

    def __init__(self, model: PipelineModel, plan: SourcePlan) -> None:
        self._make = partial(plan.open, model)
        self.streams = () if plan.stream is None else (plan.stream,)

    def __call__(self) -> Source:
        return self._make()


class _Deferred:
    """The sinks of one widget: opened when the run is known, and named as the file names views."""

    exactly_once = True

    def __init__(self, model: PipelineModel, widget: str) -> None:
        self._model = model
        self._names = {view: model.full_name(widget, view) for view in model.widgets[widget].views}
        self.sinks: list[OpenSink] = []

    def open(self, run: str, shapes: list[ViewShape], first: list[Change]) -> None:
        """Open the sinks for a run and give them the rows that are there at once."""
        mine = {shape.name for shape in shapes} | {DEAD_LETTERS.name}
        known = [*shapes, *(ViewShape(n.full, ()) for n in self._model.view_names())]
        every = {shape.name: shape for shape in reversed(known)}
        self.sinks = [s for s in open_sinks(self._model, run, every.values()) if s.views & mine]
        self.write(0, first)

    def write(self, batch: int, changes: Any) -> None:
        named = [c.numbered(self._names[c.view], c.time, c.sequence) for c in changes]
        for sink in self.sinks:
            if DEAD_LETTERS.name not in sink.views:
                sink.write(batch, named)

    def refuse(self, batch: int, refused: Any) -> None:
        """Take what could not be taken."""
        if refused and self._model.settings.on_error == "stop":
            raise PipelineError("AX407", f"{refused[0].origin}: {refused[0].error}")
        for sink in self.sinks:
            if DEAD_LETTERS.name in sink.views:
                sink.write(batch, as_changes(refused))

    def close(self) -> None:
        for sink in self.sinks:
            sink.sink.close()


def first_rows(settled: Settled) -> list[Change]:
    """The rows that a document has at once, as insertions; views that came later begin later."""
    widget = settled.definition.widget()
    filled = {v for unit in settled.plan.units if unit.name in settled.fills for v in unit.views}
    return [
        Change("insert", row, view=name)
        for name, view in widget.views.items()
        if name not in filled
        for row in view.rows()
    ]


def refuse_systems(model: PipelineModel) -> None:
    """Widgets that feed each other, and channels, are the embedded runner's."""
    for name, widget in model.widgets.items():
        wired = [s for s, one in widget.streams.items() if one.view or one.channel]
        wired += [v for v, one in widget.views.items() if one.channel]
        if wired:
            raise PipelineError(
                "AX861",
                f"{wired[0]!r} of {name} is wired to a view or a channel",
                advice="run it with --engine embedded",
            )


def refuse_shared_sinks(model: PipelineModel) -> None:
    """Each query numbers its own batches, so a sink belongs to one."""
    owner = {name.full: name.widget for name in model.view_names()}
    for plan in sink_plans(model):
        owners = {owner[view] for view in plan.views if view in owner}
        if len(owners) > 1 or (plan.views == [DEAD_LETTERS.name] and len(model.widgets) > 1):
            raise PipelineError(
                "AX861",
                f"the sink {plan.name!r} would be written by several widgets' queries",
                advice="give each widget a sink of its own, or run it with --engine embedded",
            )


def note(progress: Progress, told: BatchReport, seconds: float) -> None:
    """Take a batch into the progress of the run."""
    progress.batch = told.batch
    progress.messages += told.messages
    progress.kept += told.kept
    progress.refused += len(told.refused)
    progress.count(told.changes)
    progress.state = told.state
    progress.held = told.waiting
    progress.seconds = seconds


@contextmanager
def _stopped_by_signals(stopping: threading.Event) -> Iterator[threading.Event]:
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    before = {
        each: signal.signal(each, lambda *_: stopping.set())
        for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stopping
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _wait(queries: list[Maintained], stopping: threading.Event, seconds: float | None) -> None:
    """Until all have ended, one has failed, the time is up or somebody stops it."""
    until = None if seconds is None else time.monotonic() + seconds
    while not stopping.wait(0.05):
        if until is not None and time.monotonic() >= until:
            return
        if all(not query.is_active for query in queries):
            break
    for query in queries:
        if not query.is_active:
            query.wait()  # raises what it failed with
