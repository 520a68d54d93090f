"""`maintain`: a document maintained by a streaming query of Spark.

    source -> [parse, filter, extract bindings] -> shuffle by bucket -> [engine] -> changes -> sinks

Everything between is built from the document's definition. `runtime/plan.py` decides what is sent
and by what key; the stateless half is `runtime/extraction.py`, the stateful half
`runtime/bucket.py` within `runtime/bucket_state.py`. The changes of a batch reach the sinks as a
whole, with the batch's number: a batch that Spark repeats after a crash is the same batch, and a
sink that has it does nothing (law 7 of docs/design.md).

Not handled: a stream that starts only when a message brings its call, unless messages are sent
whole. (Paper 3, section 3.5.)
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from axlog.connect.locations import is_address, local_path
from axlog.connect.protocol import Refusal, Sink
from axlog.document.clock_bounds import Horizon
from axlog.live.document import Document
from axlog.runtime.bucket_engines import Buckets, Fill
from axlog.runtime.bucket_tuner import Tuned, Tuning, tuned_at
from axlog.runtime.definition import Definition
from axlog.runtime.driver_buckets import DriverBuckets, durable_state
from axlog.runtime.extraction import Message, extractor_of
from axlog.runtime.final_step import DurableFinalSteps, FinalSteps
from axlog.runtime.gc_pause import collector_paused, exempt_made
from axlog.runtime.message_rows import Values
from axlog.runtime.order import PARTITIONS_APART, Hold
from axlog.runtime.packet_rows import packed
from axlog.runtime.past import NOTHING, Past, read_past, write_past
from axlog.runtime.plain_route import FAR
from axlog.runtime.plan import SparkPlan, Unit
from axlog.runtime.progress import Lagging
from axlog.runtime.shared_views import shared_definition
from axlog.runtime.sink_parts import PartStage
from axlog.runtime.state_placement import DRIVER, Asked, placed
from axlog.runtime.table_source import TableFeed, has_tables
from axlog.runtime.unreachable import lagging
from axlog.runtime.upstream_filters import tests_time
from axlog.spark.backfill import fill, past_packets
from axlog.spark.batch_result import BatchReport, Behind, Delivery, PartSinks
from axlog.spark.checkpoint import Settled, settle, state_of, stored_definition
from axlog.spark.frames import FROM_FRAME, check_streaming, list_of
from axlog.spark.reading_tasks import following, reading_tasks
from axlog.spark.rejections import Rejections
from axlog.spark.session import check_classic, check_state_store, java_is_gone
from axlog.spark.sources import MOST, PACKETS, Through, frame_of, made_of
from axlog.spark.state_partitions import finish_rescaling
from axlog.spark.task import batch_of_task, partition_of_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)
_SCHEMA = pa.schema([("bucket", pa.string()), ("body", pa.binary())])
_TIME, _NUMBER, _ORIGIN, _PARTITION, _ROW = map(
    Message._fields.index, ("time", "number", "origin", "partition", "row")
)


class Maintained:
    """A running query: its plan, its reports, and Spark's handle on it."""

    def __init__(
        self,
        query: StreamingQuery,
        plan: SparkPlan,
        run: str,
        place: str = "",
        sources: Sequence[str] = (),
        behind: Behind | None = None,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        """`behind` is the background work; `close` releases the driver's resources."""
        self._behind, self._close = behind or Behind(), close
        self.query = query
        self.plan = plan
        self.run = run
        self.place = place
        self.sources = sources

    def lagging(self) -> list[Lagging]:
        """The sources that cannot be read now."""
        return lagging(self.place, self.sources)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, or for a time; return whether it has ended. Raises its failure."""
        try:
            if seconds is None:
                self.query.awaitTermination()
            else:
                self.query.awaitTermination(max(1, round(seconds)))
            if not self.query.isActive:
                self._behind.wait(seconds)
        finally:
            if not self.is_active:
                self._close()
        return not self.is_active

    def stop(self, patience: float = 5.0) -> None:
        """Stop between two batches, if possible soon; an interrupted batch is repeated."""
        until = monotonic() + patience
        try:
            while self.is_active and self.query.status["isTriggerActive"] and monotonic() < until:
                sleep(0.02)
            self.query.stop()
        except java_is_gone() as error:  # a signal may reach all processes
            log.warning("Spark's Java process ended before the query was stopped: %s", error)
        try:
            self._behind.wait(patience)
        except Exception as error:
            log.warning(
                "the last batch was interrupted, and is repeated by the next start: %s", error
            )
        self._close()

    @property
    def is_active(self) -> bool:
        return bool(self.query.isActive) or self._behind.is_busy

    @property
    def has_failed(self) -> bool:
        """Whether it has ended with an error, which `wait` raises."""
        return self._behind.error is not None or self.query.exception() is not None


def maintain(
    spark: SparkSession,
    document: Document | Definition,
    sources: Iterable[Any],
    sinks: Iterable[Sink] | Mapping[str, Sequence[Sink]] = (),
    *,
    checkpoint: str | None = None,
    once: bool = False,
    every: float = 0.0,
    hold: float | None = None,
    documents: str | None = None,
    buckets: int | None = None,
    partitions: int | None = None,
    limit: int = MOST,
    dead_letters: Callable[[int, Sequence[Refusal]], None] | None = None,
    report: Callable[[BatchReport], None] | None = None,
    name: str | None = None,
    first: int = 0,
    clock: str = "messages",
    tune: bool = True,
    begin: Callable[[Settled], None] | None = None,
    outlook: int = 0,
    state: str = "auto",
) -> Maintained:
    """Maintain a document's views over streams, and send their changes to sinks.

    - `sources` are sources of axlog (or functions that create one), and streaming DataFrames with
      the columns `stream`, `xml` and optionally `time` and `document`.
    - `sinks` get all changes, or those of the views they are given for.
    - `once` processes the available input and ends; otherwise a batch starts every `every` seconds.
    - `documents` is the path in a message to its document's key: then each document is a separate
      instance.
    - `hold`: a message waits for a slower stream until that stream's source has been silent for
      `hold` seconds. 0 does not wait, and neither do documents nor DataFrames, whose silence is
      unknown.
    - `clock="wall"`: time follows the wall clock, `hold` seconds behind it. Timers fire deadlines
      that pass while no message arrives.
    - `buckets` and `partitions`: the number of buckets of a view, and of state partitions, of a new
      checkpoint. Both stay as they are on any number of cores.
    - `tune`: compute beside the query what streams are still needed for, and filter at the readers.
    - `first` is the number of the first batch; `begin` is called with the run before it.
    - `outlook`: reports include the possible rows, at most this many of each bucket.
    - `state` is where engines and their state live: on the "executors" in Spark's state store, on
      the "driver", or where it is best ("auto"). The plan shows where, and why.
    """
    check_classic(spark, "maintain")
    context: Any = spark.sparkContext
    cores = int(context.defaultParallelism)
    place = checkpoint or tempfile.mkdtemp(prefix="axlog-checkpoint-")
    place = str(local_path(place) or place)  # file:///PATH is a path
    beside = "" if is_address(place) else place  # where small files can be
    given = list_of(sources)
    check_streaming(given)
    if isinstance(document, Definition):
        definition = document
    elif not beside or documents is not None:
        definition = Definition.of(document)
    else:
        definition, tables = _with_tables(spark, document, place)
        given += tables
    if not beside:
        definition = replace(definition, final_steps=False)
    waits = waiting_time(given, hold, documents)
    held: Hold = None if waits else 0
    delay = round(1e6 * (HOLD if hold is None else hold)) if clock == "wall" else None
    asked = Asked(state, context.master, place, cores, buckets, clock, documents)
    lives = placed(asked, definition, state_of(spark, place))
    on_driver = lives.at == DRIVER
    rest = {"sources": len(given), "documents": documents, "buckets": buckets,
            "partitions": partitions, "clock": clock, "state": lives.at}  # fmt: skip

    def filled(settled: Settled, units: Sequence[Unit]) -> Mapping[str, Fill]:
        def left(frames: Sequence[DataFrame]) -> DataFrame:
            only = tuple(unit.name for unit in units)
            return extract_packets(frames, sender(settled, documents, only))

        return fill(spark, place, given, settled, units, left)

    finish_rescaling(spark, place)
    settled = settle(spark, place, definition, rest, filled)
    if begin is not None:
        begin(settled)
    # Messages dropped at a source advance no clock here.
    has_times = any(map(tests_time, settled.definition.queries().values()))
    filters = tune and bool(beside) and not has_times
    mark = settled.mark
    if clock == "wall":
        mark += uuid4().hex  # deadlines may have passed meanwhile
    if beside and not read_past(beside).is_known:
        write_past(beside, NOTHING)
    send = sender(settled, documents, (), beside, tune, delay)
    horizon = settled.definition.horizon(clock == "wall")
    frames = [
        frame_of(spark, source, at, limit, reading_tasks(spark), _waits(source, waits),
                 getattr(source, "streams", ()), "" if at else mark, send, beside, filters,
                 horizon, joins=True)
        for at, source in enumerate(given)
    ]  # fmt: skip
    packets = extract_packets(frames, send)
    tuning = Tuning(settled.plan, beside, tuned_at(beside)) if tune and beside else None
    local: DriverBuckets | None = None
    finals: DurableFinalSteps | None = None
    changes = packets
    if on_driver:
        local = _local(settled, place, held, tune, outlook)
    else:
        check_state_store(spark)
        stage = _stage(sinks, settled, first, beside)
        changes = keep_buckets(packets, settled, documents, held, delay, tune, outlook, stage=stage)
        finals = _finals(settled, place)
    rejections = _rejections(settled, given, horizon, documents is None)
    delivery = Delivery(
        sinks, dead_letters, report, first, tuning, local, beside, finals, rejections
    )
    delivery.catch_up()
    take = following(spark, beside, delivery)
    writer = changes.writeStream.foreachBatch(take).outputMode("update")
    writer = writer.option("checkpointLocation", place)
    if clock == "wall":
        every = max(every, LEAST)
    writer = (
        writer.trigger(availableNow=True)
        if once
        else writer.trigger(processingTime=f"{every} seconds")
    )
    with _configured(spark, clock == "wall" and not once, settled.partitions):
        query = (writer.queryName(name) if name else writer).start()
    names = [getattr(source, "name", f"source {at}") for at, source in enumerate(given)]
    plan = replace(settled.plan, state=lives)
    close: Callable[[], object] = (lambda: None) if local is None else local.close
    close = close if finals is None else finals.close
    return Maintained(query, plan, settled.run, beside, names, delivery.behind, close)


def _with_tables(
    spark: SparkSession, document: Document, place: str
) -> tuple[Definition, list[TableFeed]]:
    """Return the definition of a document, and the source of the tables of its families.

    A checkpoint without such a source gets none, because its sources are numbered.
    """
    stored = stored_definition(spark, place)
    if stored is not None and not has_tables(place):
        return Definition.of(document), []
    definition, members = shared_definition(document, stored)
    has_source = bool(members) or has_tables(place)
    return definition, [TableFeed.of(place, members)] if has_source else []


HOLD = 2.0
"""Default of `hold` in seconds."""


LEAST = 0.5
"""Minimum seconds between batches, where Spark runs them without input."""


@contextmanager
def _configured(spark: SparkSession, is_timed: bool, partitions: int) -> Iterator[None]:
    """Set what a query that starts now keeps: its number of state partitions, and whether it runs
    batches without input. Timers need them, and a query with `once` would never end with them.
    """
    wanted = {
        "spark.sql.streaming.noDataMicroBatches.enabled": str(is_timed).lower(),
        "spark.sql.shuffle.partitions": str(partitions),
    }
    before = {name: spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))


def waiting_time(sources: Sequence[Any], hold: float | None, documents: str | None) -> float:
    """Return the seconds for which messages wait for slower streams."""
    from pyspark.sql import DataFrame

    if documents is not None or any(isinstance(source, DataFrame) for source in sources):
        return 0.0
    return HOLD if hold is None else hold


def _waits(source: Any, waits: float) -> float:
    """Return the seconds after which a source is silent; a table is no sequence to wait for."""
    return 0.0 if isinstance(source, TableFeed) else waits


def sender(
    settled: Settled,
    documents: str | None,
    only: tuple[str, ...] = (),
    place: str = "",
    tunes: bool = False,
    delay: int | None = None,
    knows_all: bool = False,
) -> Through:
    """The stateless half: a partition's messages to one row per bucket; for some units `only`.

    `knows_all`: tasks need not send contents of messages that buckets may reject.
    """
    written = json.dumps(settled.definition.plain(), sort_keys=True)
    names, buckets, width = dict(settled.keys), settled.buckets, settled.plan.width

    def send(messages: Iterable[Values]) -> pa.RecordBatch:
        extractor = extractor_of(written, documents, buckets, width, only)
        batch = batch_of_task() if tunes and place else None
        # Only what was known before the batch: a repeated batch is read with the same filters.
        extractor.tune(Tuned() if batch is None else tuned_at(place, batch))
        # A back-fill uses no filters; without a local path nothing is known of other batches.
        extractor.past = NOTHING if only or knows_all else read_past(place) if place else Past()
        if delay is not None:
            extractor.past = extractor.past.at(round(1e6 * time()) - delay)
        with collector_paused():
            found = list(packed(extractor.extract(messages), extractor.plan))
        exempt_made()
        keyed = [names[bucket] for bucket, _ in found]
        return pa.RecordBatch.from_arrays(
            [pa.array(keyed, pa.string()), pa.array([body for _, body in found], pa.binary())],
            schema=_SCHEMA,
        )

    return send


def extract_packets(frames: Sequence[DataFrame], send: Through) -> DataFrame:
    """Return the packets of all sources; for axlog's own they are computed where messages are
    read.
    """

    def extract(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield send(messages_of(batches))

    def extract_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield send(in_order(messages_of(batches)))

    each = [
        frame
        if frame.columns == _SCHEMA.names
        else frame.mapInArrow(extract if frame.isStreaming else extract_all, PACKETS)
        for frame in frames
    ]
    together = each[0]
    for one in each[1:]:
        together = together.union(one)
    return together


def messages_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Values]:
    """Yield the messages of a partition.

    Messages of a user's DataFrame get an identity: their partition and row, a number if they have
    none, and their position as origin if they have none.
    """
    task, batch, start = partition_of_task(), batch_of_task(), 0
    for read in batches:
        columns = [
            repeat(None) if column.null_count == len(column) else column.to_pylist()
            for column in read.columns
        ]
        rows = range(start, start + len(read))
        start += len(read)
        apart = PARTITIONS_APART * task
        if columns[_ROW] == [FROM_FRAME] * len(read):
            columns[_PARTITION], columns[_ROW] = repeat(task), range(apart + rows[0], apart + start)
            columns[_NUMBER] = [
                apart + row if one is None else one
                for row, one in zip(rows, columns[_NUMBER], strict=False)
            ]
            where = "" if batch is None else f"batch {batch}, "
            columns[_ORIGIN] = [
                one or f"source {source}, {where}partition {task}, row {row}"
                for source, row, one in zip(columns[0], rows, columns[_ORIGIN], strict=False)
            ]
        yield from zip(*columns, strict=False)


def in_order(messages: Iterable[Values]) -> Iterable[Values]:
    """Return the messages of a partition that is not streaming: those of a user's DataFrame in the
    order of time, because its rows have none. One without a time follows the one before it.
    """
    each = list(messages)
    if not each or each[0][_ROW] is None:
        return each  # a part of a source of axlog, which is a sequence
    moments: list[int] = []
    latest = -FAR
    for values in each:
        latest = latest if values[_TIME] is None else values[_TIME]
        moments.append(latest)
    return [each[at] for at in sorted(range(len(each)), key=moments.__getitem__)]


def _local(settled: Settled, place: str, hold: Hold, tunes: bool, outlook: int) -> DriverBuckets:
    """The stateful half in this process."""
    made = Buckets(
        settled.definition, settled.plan, hold, uuid4().hex, outlook, settled.fills, tunes,
        past_packets, live=OrderedDict(),
    )  # fmt: skip
    return DriverBuckets(made, place)


def _rejections(
    settled: Settled, sources: Sequence[Any], horizon: Horizon, judges: bool
) -> Rejections:
    """What completes rejected messages, by reading sources again. `judges`: messages are late in
    their sequence, and not in that of their document.
    """
    from pyspark.sql import DataFrame

    makes = [None if isinstance(source, DataFrame) else made_of(source) for source in sources]
    return Rejections(makes, settled.plan.late if judges else {}, horizon)


def _stage(sinks: object, settled: Settled, first: int, place: str) -> PartStage | None:
    """What writes changes in tasks, if the sinks allow it."""
    for sink in sinks if isinstance(sinks, Sequence) else ():
        if isinstance(sink, PartSinks):
            return sink.stage(settled.plan.engines, first, place)
    return None


def _finals(settled: Settled, place: str) -> DurableFinalSteps | None:
    """The final steps over buckets on the executors, in this process."""
    steps = FinalSteps(settled.definition, settled.plan, uuid4().hex, OrderedDict())
    return DurableFinalSteps(steps, durable_state(place)) if steps.units else None


def keep_buckets(
    packets: DataFrame,
    settled: Settled,
    documents: str | None,
    hold: Hold,
    delay: int | None,
    tunes: bool,
    outlook: int,
    begins: bool = False,
    stage: PartStage | None = None,
) -> DataFrame:
    """The stateful half on the executors: engines in their buckets, in Spark's state store."""
    from axlog.spark.processor import OUTPUT, Maintaining

    processor = Maintaining(
        settled.definition,
        buckets=settled.buckets,
        documents=documents is not None,
        width=settled.plan.width,
        hold=hold,
        run=uuid4().hex,  # of this process: live engines of another are not used
        outlook=outlook,
        delay=delay,
        fills=settled.fills,
        tunes=tunes,
        begins=begins,
        stage=stage,
    )
    return packets.groupBy("bucket").transformWithState(
        statefulProcessor=processor,
        outputStructType=OUTPUT,
        outputMode="Update",
        timeMode="None" if delay is None else "ProcessingTime",
    )
