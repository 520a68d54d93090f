"""The end of a batch on the driver: merge the reports of the buckets and write the sinks.

It is the same wherever the buckets are: the reports come from Spark's stateful operator, or from
the buckets of this process, which get their packets here (`driver_buckets.py`). Either way, one
Spark action per batch fetches them.

With buckets in this process, a batch is applied and delivered in the background: once its packets
are durable, Spark may continue, so its workers parse one batch while this process joins the one
before. At most one batch is behind; a failure in it fails the query.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from axlog import telemetry
from axlog.connect.protocol import Refusal, Sink
from axlog.reporting import report
from axlog.runtime.batch_state import Row
from axlog.runtime.bucket import Claim
from axlog.runtime.bucket_engines import CLOCK
from axlog.runtime.bucket_state import Total
from axlog.runtime.bucket_tuner import Tuning
from axlog.runtime.change_packets import agreed, read_changes, renumbered
from axlog.runtime.connections import BATCHES_APART
from axlog.runtime.driver_buckets import DriverBuckets
from axlog.runtime.extraction import ASIDE
from axlog.runtime.final_step import DurableFinalSteps
from axlog.runtime.gc_pause import collector_paused
from axlog.runtime.outlooks import Outlook, together
from axlog.runtime.packets import unpack
from axlog.runtime.past import Past, read_past, write_past
from axlog.runtime.sink_parts import BatchParts, PartStage
from axlog.spark.rejections import Rejections
from axlog.views.change import Change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)


@dataclass
class BatchReport:
    """The result of one batch, for progress and monitoring."""

    batch: int
    changes: list[Change] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    messages: int = 0
    kept: int = 0
    rows: int = 0
    waiting: int = 0
    state: int = 0  # bytes of the buckets in the state store
    instances: int = 0  # engines: buckets, or documents
    microseconds: int = 0  # the latest clock of its buckets
    streams: dict[str, tuple[int, int]] = field(default_factory=dict)  # messages, kept
    outlooks: dict[str, Outlook] = field(default_factory=dict)  # by view, if asked for
    totals: dict[str, Total] = field(default_factory=dict)  # of the buckets that reported
    claims: dict[tuple[str, int], Claim] = field(default_factory=dict)  # by unit and bucket
    # views that were set aside, and their errors
    set_aside: dict[str, str] = field(default_factory=dict)
    parts: BatchParts = field(default_factory=BatchParts)  # of sinks that tasks write

    @property
    def clock(self) -> int | float:
        """The latest clock of its buckets, in seconds."""
        return self.microseconds / 1e6

    @property
    def ops(self) -> Counter[str]:
        """The number of changes, by operation: those of `changes`, and those that tasks wrote."""
        return Counter(change.op for change in self.changes) + self.parts.ops

    def plain(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        ops = self.ops
        return {
            "batch": self.batch, "messages": self.messages, "kept": self.kept,
            "changes": ops.total(), "never": ops["never"], "rows": self.rows,
            "refused": len(self.refused), "waiting": self.waiting, "state": self.state,
            "clock": self.clock,
        }  # fmt: skip


@runtime_checkable
class PartSinks(Protocol):
    """Sinks of which tasks may write parts (`runtime/sink_parts.py`)."""

    def stage(self, engines: int, first: int, place: str) -> PartStage | None:
        """Return what writes changes in tasks; None if the driver writes all of them.

        `first` is the number of the first batch; `place` is beside the checkpoint.
        """

    def write_parts(self, batch: int, changes: Sequence[Change], parts: BatchParts) -> None:
        """Write a batch: the changes that reached the driver, and parts that tasks wrote."""


class Behind:
    """Background work, one piece at a time."""

    def __init__(self) -> None:
        self._thread: Thread | None = None
        self.error: BaseException | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Start a piece after the previous one has ended."""

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self.error = error

        self._thread = Thread(target=run, daemon=True, name="axlog-behind")
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, or for a time; return whether it has ended. Raises its failure."""
        if self._thread is not None:
            self._thread.join(seconds)
        if self.error is not None:
            raise self.error
        return not self.is_busy

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()


class Delivery:
    """Writes the rows of each batch to the sinks, on the driver."""

    def __init__(
        self,
        sinks: Iterable[Sink] | Mapping[str, Sequence[Sink]],
        dead_letters: Callable[[int, Sequence[Refusal]], None] | None,
        report: Callable[[BatchReport], None] | None,
        first: int = 0,
        tuning: Tuning | None = None,
        buckets: DriverBuckets | None = None,
        place: str = "",
        finals: DurableFinalSteps | None = None,
        rejections: Rejections | None = None,
    ) -> None:
        """`buckets`: those of this process, if frames contain their input. `place`: where tasks
        find what is known of earlier batches. `finals`: the final steps over buckets elsewhere.
        """
        self._finals = finals
        self._rejections = rejections
        self._place = place
        self._past = read_past(place) if place else Past()
        self.behind = Behind()
        self._first = first
        self._buckets = buckets
        self._tuning = tuning
        self._all = () if isinstance(sinks, Mapping) else tuple(sinks)
        self._by_view = dict(sinks) if isinstance(sinks, Mapping) else {}
        self._dead_letters = dead_letters
        self._report = report
        self._totals: dict[str, Total] = {}
        self._outlooks: dict[str, Any] = {}  # by engine: the last that it reported
        self._set_aside: dict[str, str] = {}
        self._clock = 0

    def __call__(self, frame: DataFrame, number: int) -> None:
        with telemetry.span("axlog.batch", batch=number):
            self._take(frame, number)

    def _take(self, frame: DataFrame, number: int) -> None:
        rows = [(row[0], bytes(row[1])) for row in _collected(frame)]
        self._note(number, rows)
        if self._buckets is None:
            if self._finals is None:
                self._finish(number, rows)
            else:
                self._finish(number, [*rows, *self._finals.take(number, rows)])
                self._finals.end()
            return
        self.behind.wait()
        self._buckets.begin(number, rows)
        self.behind.start(partial(self._apply, self._buckets, number, rows))

    def _write(self, batch: int, changes: Sequence[Change], parts: BatchParts) -> None:
        for sink in self._all:
            if isinstance(sink, PartSinks):
                sink.write_parts(batch, changes, parts)
            else:
                sink.write(batch, changes)
        for view, sinks in self._by_view.items():
            mine = [change for change in changes if change.view == view]
            for sink in sinks:
                sink.write(batch, mine)

    def _note(self, number: int, rows: Iterable[Row]) -> None:
        """Write what is known after a batch, for the tasks of the next one."""
        if not self._past.is_known:
            return
        past = self._past.after(
            number,
            (unpack(body) for key, body in rows if key.partition("/")[0] == ASIDE),
        )
        if past != self._past:
            write_past(self._place, past)
            self._past = past

    def catch_up(self) -> None:
        """Deliver the last batch, if it was interrupted before all sinks had it."""
        if self._finals is not None:
            self._finals.catch_up()
        found = None if self._buckets is None else self._buckets.unfinished()
        if self._buckets is not None and found is not None:
            self._apply(self._buckets, *found)

    def _apply(self, buckets: DriverBuckets, number: int, rows: Sequence[Row]) -> None:
        with collector_paused():
            replies = buckets.apply(rows, number)
        self._finish(number, replies)
        buckets.end()

    def _finish(self, number: int, rows: Iterable[Row]) -> None:
        with collector_paused():
            merged = self._deliver(rows, number + self._first)
        if self._tuning is not None and merged.claims:
            self._tuning.receive(number, merged.claims)

    def _deliver(self, rows: Iterable[Row], batch: int) -> BatchReport:
        merged = gather_batch(batch, rows, self._outlooks, self._rejections)
        self._totals |= merged.totals
        merged.microseconds = self._clock = max(self._clock, merged.microseconds)
        for view, reason in merged.set_aside.items():
            if view not in self._set_aside:
                report(log, logging.WARNING, "view set aside", view=view, reason=reason)
        merged.set_aside = self._set_aside = self._set_aside | merged.set_aside
        for total in self._totals.values():
            merged.instances += total.instances
            merged.rows += total.rows
            merged.waiting += total.waiting
            merged.state += total.state
        with telemetry.span("axlog.deliver", batch=batch, changes=merged.ops.total()):
            self._write(batch, merged.changes, merged.parts)
        if self._dead_letters is not None:
            self._dead_letters(batch, merged.refused)
        if self._report is not None:
            self._report(merged)
        merged.parts.remove()
        return merged


_CANCELLED = ("SPARK_JOB_CANCELLED", "cancelled job group", "InterruptedException")
_AS_SPARK_EXPECTS = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling collect: "
    "java.lang.InterruptedException"
)


def _collected(frame: DataFrame) -> list[Any]:
    """Return the rows of a batch.

    A stop cancels its job. Spark then looks for an interruption in the text of the error, with a
    regular expression whose stack grows with the text. The trace of Java is too long for it: the
    thread would end with a StackOverflowError of a thousand lines.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return frame.collect()
    except (Py4JJavaError, PySparkException) as error:
        said = str(error)
        if not any(word in said for word in _CANCELLED):
            raise
        reason = said.partition("\n")[0]
        raise RuntimeError(f"the batch was interrupted: {reason} ({_AS_SPARK_EXPECTS})") from None


def gather_batch(
    batch: int,
    rows: Iterable[tuple[str, bytes]],
    outlooks: dict[str, Any] | None = None,
    rejections: Rejections | None = None,
) -> BatchReport:
    """Merge the reports of the engines; the result does not depend on their order.

    `outlooks`: the last of each engine, which are updated. `rejections` completes the rejected
    messages.
    """
    outlooks = {} if outlooks is None else outlooks
    merged = BatchReport(batch)
    changes: list[Change] = []
    by_unit: dict[str, list[Any]] = {}
    asides: list[Mapping[str, Any]] = []
    refused: dict[int, Refusal] = {}  # by message: all units may reject it, one has its content
    for bucket, body in rows:
        replies = unpack(body)
        if bucket == CLOCK:
            merged.microseconds = max(merged.microseconds, replies)
            continue
        if bucket != ASIDE:
            each = replies.pop("told")
            merged.totals[bucket] = Total(**replies)
        for one in [replies] if bucket == ASIDE else each:
            for stream, content, origin, error, message in one["refused"]:
                if message not in refused or not refused[message].content:
                    refused[message] = Refusal(stream, content, origin, error)
            if bucket == ASIDE:
                asides.append(one)
                merged.messages += one["messages"]
                merged.kept += one["kept"]
                for stream, (messages, kept) in one["streams"].items():
                    before = merged.streams.get(stream, (0, 0))
                    merged.streams[stream] = (before[0] + messages, before[1] + kept)
                continue
            if "outlook" in one:
                outlooks[bucket] = one["outlook"]
            changes += read_changes(one["changes"])
            if one.get("parts") is not None:
                merged.parts.add(one["parts"])
            unit, number, _ = bucket.rsplit("/", 2)
            by_unit.setdefault(unit, []).append(one)
            if one["claim"] is not None:
                merged.claims[unit, int(number)] = one["claim"]
            merged.microseconds = max(merged.microseconds, one["clock"])
            for view, (code, message) in one["set_aside"].items():
                merged.set_aside[view] = f"{code}: {message}"
    for each in by_unit.values():
        # Engines that have ruled out rows without a key report with every batch.
        changes += read_changes(agreed(each))
    if rejections is not None:
        rejections.complete(asides, refused)
    merged.outlooks = together(outlooks.values())
    merged.changes = renumbered(changes, batch * BATCHES_APART)
    merged.refused = [refused[key] for key in sorted(refused)]
    return merged
