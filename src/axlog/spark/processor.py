"""The stateful processor: Spark's interface to `runtime/bucket_engines.py`.

One key is one bucket. The output of a partition for a bucket is one row, and the report of an
engine is one row, so that a batch costs Spark a handful of rows whatever its number of messages.
Other rows (dead letters, counts) pass through, so that they are delivered with their batch.

With a wall clock (`delay`), each bucket has one timer: at its next due time, or, where rows without
a key may be ruled out, every second for all buckets together. Spark stores a batch's time with its
offsets: a repeated batch gets the same time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from axlog.runtime.bucket_engines import Buckets, Fill, Reply
from axlog.runtime.definition import Definition
from axlog.runtime.driver_buckets import is_aside
from axlog.runtime.extraction import ASIDE
from axlog.runtime.gc_pause import collector_paused, exempt_made
from axlog.runtime.order import Hold
from axlog.runtime.packets import pack, unpack
from axlog.runtime.plan import SparkPlan, make_plan
from axlog.runtime.sink_parts import PartStage
from axlog.spark.backfill import past_packets
from axlog.spark.task import batch_of_task

OUTPUT = "bucket string, body binary"
TOGETHER = 1000
"""Milliseconds between the ticks that all buckets get together, where they must."""


@lru_cache(maxsize=16)
def _known(
    written: str, buckets: int | None, documents: bool, width: int
) -> tuple[Definition, SparkPlan]:
    """Return a definition from JSON and its plan, cached per worker."""
    definition = Definition.read(json.loads(written))
    return definition, make_plan(definition, buckets, documents, width)


class MapStore:
    """A map state from texts to bytes."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, key: str) -> bytes | None:
        found = self._state.getValue((key,))
        return None if found is None else bytes(found[0])

    def put(self, key: str, value: bytes) -> None:
        self._state.updateValue((key,), (value,))

    def remove(self, key: str) -> None:
        self._state.removeKey((key,))

    def keys(self) -> Iterator[str]:
        return (key[0] for key, _ in self._state.iterator())


class Maintaining(StatefulProcessor):
    """Processes the buckets of a plan."""

    def __init__(
        self,
        definition: Definition,
        *,
        buckets: int | None,
        documents: bool,
        width: int,
        hold: Hold,
        run: str,
        outlook: int = 0,
        # microseconds behind the wall clock; None: messages define the time
        delay: int | None = None,
        fills: Mapping[str, Fill] | None = None,  # by unit: the input that it missed
        tunes: bool = False,
        begins: bool = False,  # engines emit the initial rows of the document
        stage: PartStage | None = None,  # writes changes for sinks
    ) -> None:
        self._definition = json.dumps(definition.plain())
        self._shape = (buckets, documents, width)
        self._hold = hold
        self._run = run
        self._outlook = outlook
        self._delay = delay
        self._fills = dict(fills or {})
        self._tunes = tunes
        self._begins = begins
        self._stage = stage

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._store = MapStore(handle.getMapState("engine", "key string", "value binary"))
        self._buckets = Buckets(
            *_known(self._definition, *self._shape), self._hold, self._run, self._outlook,
            self._fills, self._tunes, past_packets, self._begins,
            stage=None if self._stage is None else self._stage.write,
        )  # fmt: skip

    def handleInputRows(
        self,
        key: Any,
        rows: Any,
        timerValues: TimerValues,
    ) -> Iterator[Row]:
        bodies = [bytes(row["body"]) for row in rows]
        if is_aside(key[0]):
            for body in bodies:
                yield Row(bucket=ASIDE, body=body)
            return
        yield from self._said(key[0], bodies, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        self._store.remove("timer")  # Spark has removed it
        yield from self._said(key[0], [], timerValues)

    def close(self) -> None:
        """End a task: live engines stay in the worker for the next batch."""
        exempt_made()

    def _said(self, key: str, bodies: list[bytes], times: TimerValues) -> list[Row]:
        batch = batch_of_task()
        with collector_paused():
            if self._delay is None:
                said = self._buckets.take(key, self._store, bodies, batch=batch)
            else:
                now = times.getCurrentProcessingTimeInMs()
                passed = max(0, now * 1000 - self._delay)
                said = self._buckets.take(key, self._store, bodies, passed, batch)
                self._wake(said, now, self._delay)
            return [Row(bucket=engine, body=body) for engine, body in said.rows]

    def _wake(self, said: Reply, now: int, delay: int) -> None:
        """Set a timer for the next due time."""
        wanted: int | None = None
        if said.ticks:
            wanted = (now // TOGETHER + 1) * TOGETHER
        elif said.due is not None:
            wanted = max((said.due + delay) // 1000 + 1, now + 1)
        written = self._store.get("timer")
        found: int | None = None if written is None else unpack(written)
        if found is not None and found != wanted:
            self._handle.deleteTimer(found)
            self._store.remove("timer")
        if wanted is not None and found != wanted:
            self._handle.registerTimer(wanted)
            self._store.put("timer", pack(wanted))
