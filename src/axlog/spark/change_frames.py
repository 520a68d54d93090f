"""The changes and the rows of a view as DataFrames: nothing passes through the driver.

    changes    a streaming DataFrame, one row for each change; write it with `writeStream`
    view       a DataFrame of the rows after all input of batch sources

Both run the stages of `maintain`: executors read and match, a shuffle by bucket, an engine for each
bucket. Here the reports of the engines become typed rows on the executors. There is no final step
on the driver: a view whose steps need rows of several buckets has one bucket, and so does a view
with rows that only all buckets together can rule out.

The columns of `changes` are `op` (insert, update, delete, never), the columns of the view, `before`
(their values before an update), `key` (identifies the row), `time` (seconds, or a timestamp),
`final`, `batch`, `bucket` and `number` (the order within a batch and bucket).

Law: the changes of all buckets of a batch are those of `maintain`, and the rows are those that the
changes leave.

Not handled: rejected messages are dropped, since a DataFrame has one kind of rows; `maintain`
delivers them. Documents by key, the wall clock and tuning need `maintain` too.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from axlog.connect.kinds import Column, ViewShape
from axlog.connect.sinks.arrow import schema_of
from axlog.connect.sinks.tables import check_columns, columns_of, digest, values_of
from axlog.errors import PipelineError
from axlog.live.document import Document
from axlog.reporting import report
from axlog.runtime.bucket import Instance
from axlog.runtime.bucket_engines import CLOCK, Buckets
from axlog.runtime.change_packets import read_changes
from axlog.runtime.definition import Definition
from axlog.runtime.driver_buckets import is_aside
from axlog.runtime.gc_pause import exempt_made
from axlog.runtime.packets import unpack
from axlog.runtime.plan import BUCKETS, make_plan
from axlog.runtime.upstream_filters import tests_time
from axlog.spark.checkpoint import Settled, bucket_keys
from axlog.spark.frames import check_alike, check_batch, list_of
from axlog.spark.session import check_state_store, cores_of
from axlog.spark.sources import MOST, all_of, frame_of
from axlog.spark.streaming_query import (
    extract_packets,
    keep_buckets,
    sender,
    waiting_time,
)
from axlog.spark.task import batch_of_task
from axlog.views.change import Change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)
ENVELOPE = ("op", "before", "key", "time", "final", "batch", "bucket", "number")
"""The columns of changes that are not the view's."""


def changes(
    spark: SparkSession,
    document: Document | Definition | str | Path,
    sources: Iterable[Any] | None = None,
    view: str | None = None,
    *,
    buckets: int | None = None,
    hold: float | None = None,
    limit: int = MOST,
) -> DataFrame:
    """Return the changes of a view as a streaming DataFrame.

    - `document` is a document, or the path of a pipeline file with one document, whose sources are
      used.
    - `sources` are sources of axlog (or functions that create one), and streaming DataFrames with
      the columns `stream`, `xml` and optionally `time`.
    - `view` may be omitted if the document has one.
    - `buckets`, `hold` and `limit` are those of `maintain`.

    Write it with `writeStream` and a checkpoint, which belongs to this document and these buckets.
    """
    definition, given = _given(document, sources)
    check_alike(given)
    told = _Told.of(definition, view, buckets)
    check_state_store(spark)
    _check_partitions(spark, told.settled.partitions)
    waits = waiting_time(given, hold, None)
    send = sender(told.settled, None, knows_all=told.knows_all)
    parts = cores_of(spark)
    horizon = told.settled.definition.horizon()
    frames = [
        frame_of(spark, source, at, limit, parts, waits, getattr(source, "streams", ()),
                 through=send, horizon=horizon)
        for at, source in enumerate(given)
    ]  # fmt: skip
    packets = extract_packets(frames, send)
    held = None if waits else 0
    reports = keep_buckets(packets, told.settled, None, held, None, False, 0, begins=True)
    return reports.mapInArrow(told.rows, told.schema)


def view(
    spark: SparkSession,
    document: Document | Definition | str | Path,
    sources: Iterable[Any] | None = None,
    view: str | None = None,
    *,
    buckets: int | None = None,
) -> DataFrame:
    """Return the rows of a view after all input that its sources have, as a DataFrame.

    The parameters are those of `changes`; DataFrames are not streaming. Each bucket is computed by
    one task from its messages, so that a bucket must fit into the memory of an executor.
    """
    definition, given = _given(document, sources)
    check_batch(given)
    told = _Told.of(definition, view, buckets)
    send = sender(told.settled, None, knows_all=told.knows_all)
    frames = [all_of(spark, source, at) for at, source in enumerate(given)]
    packets = extract_packets(frames, send)
    return packets.groupBy("bucket").applyInArrow(told.final_rows, told.row_schema)


@dataclass(frozen=True)
class _Told:
    """One view of a document: its plan, and its changes as rows."""

    settled: Settled
    view: str
    columns: tuple[Column, ...]
    knows_all: bool

    @classmethod
    def of(cls, document: Document | Definition, view: str | None, buckets: int | None) -> _Told:
        name = _one_view(document.views, view)  # other views are not parsed
        given = document if isinstance(document, Definition) else Definition.of(document, [name])
        views = {name: given.views[name]}
        definition = replace(given, views=views, families={}, groups=(), final_steps=False)
        query = definition.queries()[name]
        shape = ViewShape.of(name, query, times=definition.times)
        check_columns(shape, ENVELOPE)
        plan = make_plan(definition, buckets or BUCKETS)
        alone = Instance(definition, plan.units[0], 0)
        if plan.units[0].buckets > 1 and alone.may_void:
            plan = make_plan(definition, 1)
        count = max(unit.buckets for unit in plan.units)
        settled = Settled(
            uuid4().hex, definition, plan, bucket_keys(plan.width), count, min(4, plan.width)
        )
        # What is late is rejected by the buckets; only where such a message gets another time does
        # a task have to know it.
        knows_all = not tests_time(query) or "clock" not in plan.late.values()
        return cls(settled, name, columns_of(shape), knows_all)

    @property
    def row_schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(schema_of(self.columns))

    @property
    def arrow_schema(self) -> pa.Schema:
        fields = schema_of(self.columns)
        is_dated = self.settled.definition.times == "dates"
        time = pa.timestamp("us", "UTC") if is_dated else pa.float64()
        return pa.schema(
            [
                pa.field("op", pa.string()),
                *fields,
                pa.field("before", pa.struct(list(fields))),
                pa.field("key", pa.string()),
                pa.field("time", time),
                pa.field("final", pa.bool_()),
                pa.field("batch", pa.int64()),
                pa.field("bucket", pa.int32()),
                pa.field("number", pa.int64()),
            ]
        )

    @property
    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.arrow_schema)

    @property
    def rows(self) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The function of a task: reports of engines to rows of changes."""
        names, schema = [column.name for column in self.columns], self.arrow_schema
        own = self.view

        def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            batch = batch_of_task()
            for each in batches:
                found: list[list[Any]] = []
                for engine, body in zip(*(c.to_pylist() for c in each.columns), strict=True):
                    if engine != CLOCK and not is_aside(engine):
                        bucket = int(engine.rsplit("/", 2)[1])
                        for at, change in enumerate(_changes(body, own)):
                            found.append(_change_row(change, names, batch or 0, bucket, at))
                columns = list(zip(*found, strict=True)) if found else [()] * len(schema)
                arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            exempt_made()

        return rows

    @property
    def final_rows(self) -> Callable[[pa.Table], pa.Table]:
        """The function of a task: all packets of a bucket to the rows of the view."""
        definition, plan, own = self.settled.definition, self.settled.plan, self.view
        schema = schema_of(self.columns)

        def rows(table: pa.Table) -> pa.Table:
            key = table["bucket"][0].as_py()
            found: list[Sequence[Any]] = []
            if not is_aside(key):
                buckets = Buckets(definition, plan, 0, uuid4().hex, begins=True, live=OrderedDict())
                said = buckets.take(key, _Store(), table["body"].to_pylist())
                for engine, body in said.rows:
                    if engine != CLOCK:
                        for change in _changes(body, own):
                            found += [values_of(change.row)] if change.op == "insert" else []
            columns = list(zip(*found, strict=True)) if found else [()] * len(schema)
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            return pa.Table.from_arrays(arrays, schema=schema)

        return rows


class _Store(dict[str, bytes]):
    """The map of a bucket that lives for one batch."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def remove(self, key: str) -> None:
        del self[key]


def _changes(body: bytes, view: str) -> Iterator[Change]:
    """Yield the changes of a view in the report of an engine."""
    for one in unpack(body)["told"]:
        for change in read_changes(one["changes"]):
            if change.view == view:
                yield change


def _change_row(
    change: Change, names: Sequence[str], batch: int, bucket: int, number: int
) -> list[Any]:
    before = None
    if change.before is not None:
        before = dict(zip(names, values_of(change.before), strict=True))
    return [
        change.op, *values_of(change.row), before, digest(change.row), change.time, change.final,
        batch, bucket, number,
    ]  # fmt: skip


def _given(
    document: Document | Definition | str | Path, sources: Iterable[Any] | None
) -> tuple[Document | Definition, list[Any]]:
    """Return a document and its sources; those of a pipeline file unless others are given."""
    if isinstance(document, str | Path):
        from axlog.pipeline.loader import load
        from axlog.spark.pipeline import one_document

        document, own = one_document(load(str(document)))
        sources = own if sources is None else sources
    if sources is None:
        raise PipelineError(
            "AX852", "a document has no sources of its own", expected="sources=[...]"
        )
    return document, list_of(sources)


def _one_view(views: Collection[str], view: str | None) -> str:
    if view is None and len(views) == 1:
        return next(iter(views))
    if view is None or view not in views:
        raise PipelineError(
            "AX852",
            f"there is no view {view!r}" if view else "the document has several views",
            expected=f"view= one of {', '.join(views)}",
        )
    return view


def _check_partitions(spark: SparkSession, partitions: int) -> None:
    """Warn if a session of the user has far more state partitions than buckets."""
    found = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    if found > 4 * partitions:
        report(
            log, logging.WARNING, "many state partitions", partitions=found, buckets=partitions,
            advice=f"spark.conf.set('spark.sql.shuffle.partitions', {partitions}) before the start",
        )  # fmt: skip
