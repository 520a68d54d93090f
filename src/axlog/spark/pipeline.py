"""`axlog run` with `engine: spark`: a pipeline file as streaming queries, one for each document.

Batch 0 is the initial rows of the documents, as with the embedded runner; Spark's batches follow
from 1. Rejected messages go to the dead letters' sink with their origin. Documents feed each other
through files (`runtime/wires.py`). A run with `once` runs them one after the other, in the order of
the wires. The sinks are those of `runtime/delivery.py`.
"""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException

from axlog.connect.kinds import ViewShape
from axlog.connect.locations import local_path
from axlog.errors import PipelineError
from axlog.pipeline.model import PipelineModel
from axlog.runtime.definition import Definition
from axlog.runtime.delivery import DocumentSinks, SharedSinks
from axlog.runtime.failures import failure_of
from axlog.runtime.pipeline_definition import definition_of, families_of
from axlog.runtime.progress import Progress
from axlog.runtime.shared_sinks import Numbering
from axlog.runtime.table_source import PolledTables, TableFeed
from axlog.runtime.unreachable import Patience
from axlog.runtime.wires import Wiring
from axlog.spark.batch_result import BatchReport
from axlog.spark.checkpoint import Settled
from axlog.spark.session import java_is_gone, session
from axlog.spark.state_partitions import rescale
from axlog.spark.streaming_query import Maintained, maintain
from axlog.views.change import Change


def run(
    model: PipelineModel,
    *,
    once: bool = False,
    seconds: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_report: Callable[[str, BatchReport], None] | None = None,
    outlook: int = 0,
    quick: bool = False,
    master: str | None = None,
    stopping: threading.Event | None = None,
) -> Progress:
    """Run a pipeline on Spark until stopped, for a time, or (`once`) while there is input.

    `on_report` is called with each batch of each document, with possible rows if `outlook` is set;
    all changes then travel to the driver.
    `quick` starts faster and runs a little slower, as in `session`. `master` is used instead of the
    file's. `stopping` ends a run in another thread.
    """
    model = model.located(model.directory.absolute())  # tasks run in other directories
    stopping = stopping or threading.Event()
    pipeline = SparkPipeline(model, once, stopping, by_tasks=on_report is None)
    with _handler_kept():
        spark = session_of(model, master, quick)
    shown = Shown(pipeline, on_progress)
    possible = outlook or (1 if on_progress is not None else 0)

    def report(document: str, result: BatchReport) -> None:
        shown.take(document, result)
        if on_report is not None:
            on_report(document, result)

    try:
        with _stopped_by_signals(stopping) as stopped:
            # With `once`, documents that feed others end before those begin.
            for group in pipeline.rounds():
                started = [
                    pipeline.start(spark, document, partial(report, document), possible)
                    for document in group
                ]
                _wait(started, stopped, seconds, shown.look)
                if stopped.is_set():
                    break
    except java_is_gone() as error:
        if not stopping.is_set():  # a signal to stop may reach all processes
            raise PipelineError(
                "AX868",
                "Spark's Java process has ended",
                advice="see its output; the next start continues from the checkpoint",
            ) from error
    finally:
        pipeline.close()
    return shown.progress


def session_of(model: PipelineModel, master: str | None = None, quick: bool = False) -> Any:
    """Return the session of a pipeline: on a master, or on that of its settings."""
    settings = model.settings
    chosen = master or settings.master or (f"local[{settings.cores}]" if settings.cores else None)
    return session(chosen, model.name or "axlog", quick=quick, settings=settings.spark)


def rescale_pipeline(
    model: PipelineModel, partitions: int, master: str | None = None
) -> dict[str, int]:
    """Give the state of every document another number of partitions; return the numbers before."""
    checkpoint = model.settings.checkpoint
    if checkpoint is None:
        raise PipelineError(
            "AX855", "the pipeline has no checkpoint", expected="settings: {checkpoint: PATH}"
        )
    found = local_path(checkpoint)
    place = checkpoint if found is None else str(model.directory.absolute() / found)
    spark = session_of(model, master)
    return {name: rescale(spark, f"{place}/{name}", partitions) for name in model.documents}


def one_document(model: PipelineModel) -> tuple[Definition, list[Any]]:
    """Return the definition and the sources of the document of a pipeline, without its sinks."""
    model = model.located(model.directory.absolute())  # tasks run in other directories
    name, *others = model.documents
    wiring = Wiring(model, Path())
    if others or wiring.wires or model.documents[name].document_key is not None:
        raise PipelineError(
            "AX852",
            "the pipeline has several documents, streams that views feed, or documents by key",
            expected="one document",
            advice="use axlog.spark.pipeline.run, or axlog run PIPELINE",
        )
    return definition_of(model, name, wiring), wiring.sources(name)


class SparkPipeline:
    """A running pipeline file on Spark."""

    def __init__(
        self,
        model: PipelineModel,
        once: bool,
        stopping: threading.Event | None = None,
        by_tasks: bool = True,
    ) -> None:
        """`by_tasks`: tasks may write sinks; reports of batches then lack these changes."""
        self.model, self._once, self._by_tasks = model, once, by_tasks
        embedded_for = model.embedded_for()
        if embedded_for is not None:
            raise PipelineError(
                "AX852", f"Spark does not run {embedded_for}", expected="engine: embedded"
            )
        checkpoint = model.settings.checkpoint
        found = None if checkpoint is None else local_path(checkpoint)
        self._place = None if found is None else model.directory / found
        self._elsewhere = checkpoint if found is None else None  # in another file system
        if self._elsewhere is not None and len(model.documents) > 1:
            raise PipelineError(
                "AX865",
                f"the checkpoint {checkpoint!r} is an address, but several documents share"
                " files beside it",
                expected="a path, or file:///PATH",
            )
        self._beside = self._place or Path(tempfile.mkdtemp(prefix="axlog-wires-"))
        self.wiring = Wiring(model, self._beside)
        self.definitions = {
            name: definition_of(model, name, self.wiring) for name in model.documents
        }
        self._shapes = {
            (full := model.full_name(document, view)): ViewShape.of(
                full,
                query,
                model.documents[document].document_key is not None,
                parameters=definition.head(view),
            )
            for document, definition in self.definitions.items()
            for view, query in definition.queries().items()
        }
        numbers = None if self._place is None else self._place / "sharing.json"
        self.patience = Patience(once, stopping)
        self._shared = SharedSinks(model, self._shapes, Numbering(numbers), self.patience)
        self.queries: list[Maintained] = []
        self._sinks: dict[str, DocumentSinks] = {}

    def rounds(self) -> Iterator[list[str]]:
        """Return the documents to run together, one group after the other; a cycle until nothing is
        new.
        """
        if not self._once:
            yield list(self.model.documents)
            return
        for group in self.wiring.groups:
            left = self.model.settings.rounds
            before = -1
            while before < (before := self.wiring.written(group)) and left != 0:
                left = None if left is None else left - 1
                yield group

    def start(
        self, spark: Any, document: str, report: Callable[[BatchReport], None], outlook: int = 0
    ) -> Maintained:
        """Start one document's query after delivering its first rows."""
        written, settings = self.model.documents[document], self.model.settings
        many = written.document_key is not None
        first = document not in self._sinks
        if first:
            self._sinks[document] = DocumentSinks(
                self.model, document, self._shapes, self._shared, self.wiring, self.patience,
                self._by_tasks,
            )  # fmt: skip
        sinks = self._sinks[document]

        def begin(run: Settled) -> None:
            if first:  # not in further rounds of a cycle
                sinks.open(run.run, [] if many else first_rows(run))

        query = maintain(
            spark,
            self.definitions[document],
            [*self.wiring.sources(document), *self._tables(document)],
            [sinks],
            checkpoint=f"{self._elsewhere or self._beside}/{document}",
            once=self._once,
            every=settings.trigger,
            hold=settings.hold,
            documents=written.document_key,
            buckets=settings.buckets,
            partitions=settings.partitions,
            limit=settings.batch,
            clock=settings.clock,
            state=settings.state,
            tune=self.model.settings_of(document).tune != "off",
            dead_letters=sinks.refuse,
            report=report,
            outlook=outlook,
            name=f"{self.model.name}.{document}" if self.model.name else None,
            first=1,
            begin=begin,
        )
        self.queries = [one for one in self.queries if one.place != query.place] + [query]
        return query

    def _tables(self, document: str) -> list[TableFeed]:
        """The parameter tables of a document, as a source."""
        families = families_of(self.model, document)
        if not families:
            return []
        if self._elsewhere is not None:
            raise PipelineError(
                "AX865",
                f"the checkpoint {self._elsewhere!r} is an address, and the members of families"
                " are in a file beside it",
                expected="a path, or file:///PATH",
            )
        return [TableFeed(self._beside / document, PolledTables(families))]

    def close(self) -> None:
        """Stop the queries, and close the sinks even if that fails."""
        with ExitStack() as stack:
            stack.callback(self._shared.close)
            for sinks in self._sinks.values():
                stack.callback(sinks.close)
            for query in self.queries:
                stack.callback(query.stop)


class Shown:
    """Reports the progress of a run when it changes."""

    def __init__(
        self, pipeline: SparkPipeline, on_progress: Callable[[Progress], None] | None = None
    ) -> None:
        self.progress = Progress()
        self._pipeline, self._on_progress = pipeline, on_progress
        self._started = time.monotonic()
        self._documents: dict[str, BatchReport] = {}
        self._looked = 0.0

    def take(self, document: str, result: BatchReport) -> None:
        """Add a batch of a document to the progress."""
        progress = self.progress
        self._documents[document] = result
        every = self._documents.values()
        progress.batch = max(one.batch for one in every)
        progress.messages += result.messages
        progress.kept += result.kept
        progress.refused += len(result.refused)
        progress.count_ops(result.ops)
        progress.state = sum(one.state for one in every)
        progress.held = sum(one.waiting for one in every)
        progress.set_aside = {
            view: reason for one in every for view, reason in one.set_aside.items()
        }
        many = [
            name for name in self._documents if self._pipeline.model.documents[name].document_key
        ]
        progress.documents = sum(self._documents[name].instances for name in many)
        progress.documents += len(self._documents) - len(many)
        known = [outlook for one in every for outlook in one.outlooks.values()]
        is_known = known and not many and all(outlook.reason is None for outlook in known)
        progress.possible = sum(outlook.count for outlook in known) if is_known else None
        self.look(now=True)

    def look(self, now: bool = False) -> None:
        """Check for unreachable sources and sinks, and report them."""
        if not now and time.monotonic() - self._looked < _LOOKS:
            return
        self._looked = time.monotonic()
        before, progress = self.progress.lagging, self.progress
        progress.lagging = [one for query in self._pipeline.queries for one in query.lagging()]
        progress.lagging += self._pipeline.patience.lagging()
        progress.seconds = self._looked - self._started
        every = [str(query.plan.state) for query in self._pipeline.queries]
        progress.lives = "; ".join(dict.fromkeys(every))
        if self._on_progress is not None and (now or before or progress.lagging):
            self._on_progress(progress)


_LOOKS = 0.5
"""Seconds between two checks for lagging sources and sinks."""


def first_rows(settled: Settled) -> list[Change]:
    """Return the initial rows of a document as insertions; views added later begin later."""
    document = settled.definition.make()
    filled = {v for unit in settled.plan.units if unit.name in settled.fills for v in unit.views}
    return [
        Change("insert", row, view=name)
        for name in settled.definition.views
        if name not in filled
        for row in document.view(name).rows()
    ]


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


@contextmanager
def _handler_kept() -> Iterator[None]:
    """Keep the handler of SIGINT: that of a new session calls Java, also inside a call to Java."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _wait(
    queries: list[Maintained],
    stopping: threading.Event,
    seconds: float | None,
    look: Callable[[], None],
) -> None:
    """Wait until all have ended, one has failed, the time is up or a stop is requested."""
    until = None if seconds is None else time.monotonic() + seconds
    while not stopping.wait(0.05):
        look()
        if until is not None and time.monotonic() >= until:
            return
        ended = [query for query in queries if not query.is_active]
        if len(ended) == len(queries) or any(query.has_failed for query in ended):
            break
    for query in queries:
        if not query.is_active:
            try:
                query.wait()
            except StreamingQueryException as error:
                raise failure_of(error) from error
