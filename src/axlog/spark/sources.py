"""Sources of axlog as streaming sources of Spark, with the Python Data Source API.

The driver plans a batch and tasks read it (`connect/protocol.py`). A planned source is divided
without reading its messages: by bytes, file names, keys or offsets. Any other source only needs to
be readable by position: the driver's side reads ahead to find the end of a batch, and records
positions in between, from which tasks read again. An offset is JSON: the position, an upper bound
of the number of messages before it, and the parts. Messages are numbered within their part, so
numbers grow, with gaps.

A source that has had nothing for a while reports it: a mark in the offset becomes a row that tells
the buckets not to wait for its streams. It is in the offset, so a replayed batch has it too. The
same holds for the mark of a start (`mark`): a resumed query may have work without new messages, and
Spark runs no batch without input. An unreadable source is retried with pauses of up to half a
minute, and shown as lagging.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from axlog.connect.channels.streams import ChannelSource
from axlog.connect.protocol import PART, Load, Plan, Planned, Source, plan_of
from axlog.connect.sources.insert_columns import InPieces
from axlog.connect.sources.times import Timing
from axlog.document.clock_bounds import Horizon
from axlog.errors import AxlogError, PipelineError
from axlog.runtime.bucket_tuner import tuned_at
from axlog.runtime.message_rows import (
    MESSAGES,
    Values,
    record_batch,
    rows_in_pieces,
    rows_of,
)
from axlog.runtime.order import EVERY
from axlog.runtime.source_options import COLUMNS, message_batch, named_source
from axlog.runtime.unreachable import TRIES, clear_failure, pause_after, record_failure, words
from axlog.runtime.upstream_filters import filter_of
from axlog.spark.reading_tasks import tasks_now

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

PACKETS = "bucket string, body binary"
Through: TypeAlias = Callable[[Iterable[Values]], pa.RecordBatch]
"""The function that converts the messages of a partition to packets."""
MOST = 50_000
LEAST = "spark.axlog.messagesPerTask"
"""Setting of a session: the minimum number of messages per task that reads a source."""
SLOWEST = 60.0
"""Seconds to wait for a source that reports more messages and returns none."""


class SourceFormat(DataSource):
    """The format `axlog`: a source of axlog, pickled into an option or named by plain options."""

    @classmethod
    def name(cls) -> str:
        return "axlog"

    def schema(self) -> str:
        if "source" not in self.options:
            return COLUMNS
        return PACKETS if "through" in self.options else MESSAGES

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return SourceReader(self.options)

    def reader(self, schema: Any) -> DataSourceReader:
        return SpanReader(self.options)


class Cut(InputPartition):
    """A part of a source; or a mark without messages."""

    def __init__(
        self,
        work: Any,
        size: int,
        number: int,
        action: str = "rest",
        wanted: Sequence[str] | None = None,
        silent: Sequence[int] = (),
        now: int | None = None,
        follows: bool = False,
        end: Any = None,
    ) -> None:
        """`work` and `size` as in `connect/protocol.py`. `number` is that of its first message.
        `wanted`: the patterns of the source's filter when it was planned. `silent`: partitions of
        the source that have had nothing for a while. `now`: when the driver planned it, in
        microseconds; future dates are judged by it, however often it is read again. `follows`:
        another part of the same sequence is before it in its batch. `end`, of the last part of a
        batch: the position after the batch, and the number of messages before it.
        """
        self.work, self.size, self.number = work, size, number
        self.action, self.wanted, self.silent = action, wanted, silent
        self.now, self.follows, self.end = now, follows, end

    def plain(self) -> list[Any]:
        """Return it for JSON: the arguments."""
        return [self.work, self.size, self.number, self.action, self.wanted, self.silent,
                self.now, self.follows, self.end]  # fmt: skip


class SourceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads one source."""

    def __init__(self, options: Any) -> None:
        self._make = _make_of(options)
        self._is_named = "source" not in options
        self._index = int(options.get("index", 0))
        self._limit = int(options.get("limit", MOST))
        self._parts = int(options.get("parts", 2))
        self._least = int(options.get("least", PART))
        self._joins = options.get("joins", "") == "yes"
        self._source: Source | None = None
        self._failed, self._since, self._retry = 0, 0.0, 0.0
        self._place = options.get("place", "")
        self._filters = options.get("filters", "") == "yes"
        self._wanted: tuple[str, ...] | None = None  # the filter that is installed at the source
        self._is_done: bool | None = None  # None: there is no end to wait for
        self._hold = float(options.get("hold", 0))  # seconds of silence after which it rests
        self._streams: list[str] = json.loads(options.get("streams", "[]")) or [EVERY]
        self._mark = options.get("mark", "")
        self._through: Through | None = None
        if "through" in options:
            self._through = cloudpickle.loads(base64.b64decode(options["through"]))
        self._horizon = _horizon(options)
        self._came = monotonic()
        self._heard: dict[int, float] = {}  # by partition: when it last had something

    def initialOffset(self) -> dict[str, Any]:
        return {"position": "null", "number": 0, "cuts": "[]", "rests": 0, "mark": self._mark}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_done = False

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch, and the positions that split it; the start if nothing
        is new.
        """
        if self._mark and start["mark"] != self._mark:
            cut = Cut(None, 0, start["number"], "mark")
            return {**start, "cuts": json.dumps([cut.plain()]), "mark": self._mark}
        if self._is_done or monotonic() < self._retry:
            return self._resting(start)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._limit
        if isinstance(limit, ReadAllAvailable):
            most = max(most, self._limit)
        plan = self._planned(json.loads(start["position"]), most)
        if plan is None or not plan.parts:
            self._is_done = None if self._is_done is None else self._failed == 0
            return self._resting(start)
        number, now = start["number"], round(time() * 1_000_000)
        silent = self._silent(plan)
        cuts: list[list[Any]] = []
        for part in plan.parts:
            follows = bool(cuts) and not plan.came  # the partitions of a source are separate
            quiet = [] if cuts else silent
            cut = Cut(part.work, part.size, number, "rest", self._wanted, quiet, now, follows)
            cuts.append(cut.plain())
            number += part.size
        cuts[-1][-1] = [plan.position, number]
        self._came = monotonic()
        ends = {"position": json.dumps(plan.position), "number": number, "cuts": json.dumps(cuts)}
        return {**ends, "rests": 0, "mark": start["mark"]}

    def _silent(self, plan: Plan) -> list[int]:
        """Return the partitions that have been silent so long that others need not wait for
        them.
        """
        if not self._hold:
            return []
        now = monotonic()
        since = {p: now if came else self._heard.get(p, now) for p, came in plan.came.items()}
        self._heard = since
        least = self._hold if self._is_done is None else 0.0
        return [p for p, came in plan.came.items() if not came and now - since[p] >= least]

    def _resting(self, start: dict[str, Any]) -> dict[str, Any]:
        """Return the offset of a source that has nothing new: with a mark after enough silence."""
        is_silent = bool(self._is_done) or monotonic() - self._came >= self._hold
        if not self._hold or start.get("rests") or not is_silent:
            return start
        cut = Cut(None, 0, start["number"])
        return {**start, "cuts": json.dumps([cut.plain()]), "rests": 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start == end:
            return []
        return [Cut(*cut) for cut in json.loads(end["cuts"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a part again in a task: its messages, or the pipeline's output for them."""
        assert isinstance(partition, Cut)
        if self._is_named:
            yield from map(message_batch, read_part(self._make, self._index, partition))
        elif self._through is None:
            yield from map(record_batch, self._rows(partition))
        else:
            yield self._through(chain.from_iterable(self._rows(partition)))

    def _rows(self, partition: Cut) -> Iterator[list[Values]]:
        silent = partition.silent if partition.size else [None]
        rest = (partition.action, b"", None, partition.number, "", None, None)
        yield [(self._index, s, *rest, at, None) for s in self._streams for at in silent]
        if partition.size:
            part, follows = json.dumps(partition.plain()), 0 if partition.follows else None
            cut = ("part", b"", follows, partition.number, part, None, None, None, None)
            yield [(self._index, "", *cut)]
            yield from read_part(self._make, self._index, partition, self._horizon)
        if partition.end is not None:
            end = ("ends", b"", None, 0, json.dumps(partition.end), None, None, None, None)
            yield [(self._index, "", *end)]

    def stop(self) -> None:
        if self._source is not None:
            self._source.close()

    def _planned(self, position: Any, limit: int) -> Plan | None:
        """Return the next parts, or None while the source cannot be read.

        A run with `once` does not end before the source was read: it retries a few times, and then
        raises an error.
        """
        slow = Slow(f"source {self._index}")
        while True:
            try:
                if self._source is None:
                    self._source = self._make()
                self._want(self._source)
                tasks = tasks_now(self._place, self._parts)
                plan = plan_of(self._source, position, Load(limit, tasks, self._least, self._joins))
            except (AxlogError, OSError) as error:
                self._note(error)
                if self._is_done is None:
                    return None
                if self._failed >= TRIES:
                    raise PipelineError("AX858", f"source {self._index}: {words(error)}") from error
                sleep(pause_after(self._failed))
                continue
            if self._failed and self._place:
                clear_failure(self._place, self._index)
            self._failed = 0
            if plan.parts or not plan.more or self._is_done is None:
                return plan
            position = slow.wait(plan.position)

    def _note(self, error: Exception) -> None:
        self._since = self._since if self._failed else time()
        self._failed += 1
        wait = pause_after(self._failed)
        self._retry = monotonic() + wait
        log.warning("source %d is lagging, next try in %.1f s: %s", self._index, wait, error)
        if self._place:
            record_failure(self._place, self._index, words(error), self._since, self._failed)

    def _want(self, source: Source) -> None:
        """Install the needed patterns at a source that can filter; unsubscribe if nothing is
        needed.
        """
        if not self._filters or not isinstance(source, ChannelSource) or len(self._streams) != 1:
            return
        patterns = tuned_at(self._place).patterns.get(self._streams[0])
        if patterns is None or tuple(patterns) == self._wanted:
            return
        try:
            if not patterns:
                source.unsubscribe()
            else:
                source.want(tuple(patterns), filter_of(patterns))
                if source.wants == tuple(patterns):
                    self._wanted = tuple(patterns)
        except AxlogError as error:  # everything passes until the owner is reachable
            log.info("source %d has no filter yet: %s", self._index, error)

    def commit(self, end: dict[str, Any]) -> None:
        """A batch is committed: the source need not keep messages before its end."""
        committed = getattr(self._source, "committed", None)
        if committed is not None:
            with suppress(AxlogError):  # only housekeeping: errors are ignored
                committed(json.loads(end["position"]))


class Slow:
    """Waits for a source that has more and returns nothing yet, such as a busy broker."""

    def __init__(self, name: str) -> None:
        self._name, self._until = name, monotonic() + SLOWEST

    def wait(self, position: Any) -> Any:
        """Return the position to continue from, after a pause; raise an error after too long a
        wait.
        """
        if monotonic() > self._until:
            silent = f"returned nothing in {SLOWEST} s"
            raise PipelineError("AX858", f"{self._name} has more after {position!r} and {silent}")
        sleep(pause_after(1))
        return position


class SpanReader(DataSourceReader):
    """Reads known ranges of a source."""

    def __init__(self, options: Any) -> None:
        self._make = _make_of(options)
        self._is_named = "source" not in options
        self._index = int(options.get("index", 0))
        self._cuts: list[list[Any]] | None = json.loads(options.get("cuts", "null"))
        self._horizon = _horizon(options)

    def partitions(self) -> Sequence[InputPartition]:
        cuts = _cuts_now(self._make) if self._cuts is None else self._cuts
        return [Cut(*cut) for cut in cuts] or [Cut(None, 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Cut)
        made = message_batch if self._is_named else record_batch
        yield from map(made, read_part(self._make, self._index, partition, self._horizon))


def _make_of(options: Any) -> Callable[[], Source]:
    """Return the function that opens the source of a reader."""
    if "source" not in options:
        return named_source(options)
    found: Callable[[], Source] = cloudpickle.loads(base64.b64decode(options["source"]))
    return found


def _horizon(options: Any) -> Horizon | None:
    """Return how far ahead the streams of a source may be; None: dates are not checked."""
    if not options.get("horizon"):
        return None
    horizon = json.loads(options["horizon"])
    return Horizon(horizon["declared"], horizon["is_dated"])


def read_part(
    make: Callable[[], Source], index: int, part: Cut, horizon: Horizon | None = None
) -> Iterator[list[Values]]:
    """Yield the messages of a part, on the driver or in a task."""
    apart: Callable[[Sequence[str] | None], Source] | None = getattr(make, "part", None)
    source = make() if apart is None else apart(part.wanted)
    if part.now is not None:
        planned_at = part.now / 1_000_000
        if horizon is not None:
            horizon = replace(horizon, now=lambda: planned_at)
        timing: Timing | None = getattr(source, "timing", None)
        if timing is not None:
            timing.now = lambda: planned_at
    slow = Slow(f"source {index}")
    try:
        if isinstance(source, Planned):
            if part.size and isinstance(source, InPieces):
                yield from rows_in_pieces(source, part.work, index, part.number, horizon)
            elif part.size:
                reading = source.fetch(part.work)
                yield list(rows_of(reading, index, part.number, horizon))
                if reading.joint is not None:
                    joint = json.dumps(reading.joint)
                    row = ("joint", b"", None, part.number, joint, None, None, None, None)
                    yield [(index, "", *row)]
            return
        position, left = part.work if part.size else (None, 0)
        number = part.number
        while left > 0:
            reading = source.read(position, left)
            rows = list(rows_of(reading, index, number, horizon))
            if rows:
                yield rows
            elif reading.more:
                slow.wait(position)
            else:
                raise RuntimeError(f"a source returned fewer messages than before at {position!r}")
            position, left, number = reading.position, left - len(rows), number + len(rows)
    finally:
        source.close()


def frame_of(
    spark: SparkSession,
    source: Any,
    index: int,
    limit: int = MOST,
    parts: int = 2,
    hold: float = 0.0,
    streams: Sequence[str] = (),
    mark: str = "",
    through: Through | None = None,
    place: str = "",
    filters: bool = False,
    horizon: Horizon | None = None,
    joins: bool = False,
) -> DataFrame:
    """Return a streaming DataFrame of messages: of a source of axlog, or of a user's DataFrame.

    For a source of axlog it can contain the pipeline's output for the messages (`through`) instead,
    computed where they are read, so that messages need not pass through Java.
    """
    from pyspark.sql import DataFrame

    from axlog.spark.frames import from_frame

    if isinstance(source, DataFrame):
        return from_frame(source, index, horizon)
    spark.dataSource.register(SourceFormat)
    reader = spark.readStream.format("axlog")
    reader = reader.option("source", base64.b64encode(_pickled(made_of(source))).decode())
    if through is not None:
        reader = reader.option("through", base64.b64encode(_pickled(through)).decode())
    settings = {"index": index, "limit": limit, "parts": parts, "hold": hold, "mark": mark,
            "least": spark.conf.get(LEAST, str(PART)), "place": place,
            "filters": "yes" if filters else "", "horizon": _written(horizon),
            "joins": "yes" if joins else ""}  # fmt: skip
    for name, value in {**settings, "streams": json.dumps(list(streams))}.items():
        reader = reader.option(name, str(value))
    return reader.load()


def _written(horizon: Horizon | None) -> str:
    if horizon is None:
        return ""
    return json.dumps({"declared": dict(horizon.declared), "is_dated": horizon.is_dated})


def span_of(
    spark: SparkSession,
    make: Callable[[], Source],
    index: int,
    cuts: Sequence[Sequence[Any]],
    horizon: Horizon | None = None,
) -> DataFrame:
    """Return a DataFrame of the messages of known ranges of a source."""
    spark.dataSource.register(SourceFormat)
    reader = spark.read.format("axlog").option("index", str(index))
    reader = reader.option("source", base64.b64encode(_pickled(make)).decode())
    reader = reader.option("horizon", _written(horizon))
    return reader.option("cuts", json.dumps(cuts)).load()


def all_of(spark: SparkSession, source: Any, index: int) -> DataFrame:
    """Return a DataFrame of all messages that a source has now, or of a DataFrame of the user."""
    from pyspark.sql import DataFrame

    from axlog.spark.frames import from_frame

    if isinstance(source, DataFrame):
        return from_frame(source, index)
    make = made_of(source)
    return span_of(spark, make, index, _cuts_now(make))


def _cuts_now(make: Callable[[], Source]) -> list[list[Any]]:
    """Return the parts of all that a source has now."""
    opened = make()
    cuts: list[list[Any]] = []
    position, number, more = None, 0, True
    try:
        while more:
            plan = plan_of(opened, position, Load(MOST, MOST // PART))
            for part in plan.parts:
                cuts.append(Cut(part.work, part.size, number, follows=bool(cuts)).plain())
                number += part.size
            position, more = plan.position, plan.more and bool(plan.parts)
    finally:
        opened.close()
    return cuts


def register(spark: SparkSession) -> None:
    """Let a session read sources with `format("axlog")` and plain options.

    `kind` names the kind of a pipeline file, and the other options are its own.
    """
    spark.dataSource.register(SourceFormat)


def made_of(source: Any) -> Callable[[], Source]:
    """A function that creates a source, on the driver or in a task."""
    return source if callable(source) else (lambda: source)


def _pickled(thing: Any) -> bytes:
    dumps: Any = cloudpickle.dumps
    return bytes(dumps(thing))
