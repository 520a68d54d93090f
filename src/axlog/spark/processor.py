"""The stateful processor: Spark's interface to `bucket_state.Keeper`.

One key is one bucket. The output of a partition for a bucket is one row, and the report of a bucket
is one row, so that a batch costs Spark a handful of rows whatever its number of messages. Other
rows (dead letters, counts) pass through, so that they are delivered with their batch.

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

from axlog.runtime.bucket import Instance
from axlog.runtime.bucket_state import Keeper, Reply
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import ASIDE
from axlog.runtime.gc_pause import collector_paused
from axlog.runtime.order import Hold
from axlog.runtime.packets import pack, unpack
from axlog.runtime.plan import SparkPlan, make_plan
from axlog.spark.buckets import Buckets, bucket_of

OUTPUT = "bucket string, body binary"
TOGETHER = 1000
"""Milliseconds between the ticks that all buckets get together, where they must."""


@lru_cache(maxsize=16)
def _known(
    written: str, cores: int, buckets: int | None, documents: bool
) -> tuple[Definition, SparkPlan]:
    """Return a definition from JSON and its plan, cached per worker."""
    definition = Definition.read(json.loads(written))
    return definition, make_plan(definition, cores, buckets, documents)


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

    def clear(self) -> None:
        self._state.clear()


class Maintaining(StatefulProcessor):
    """Processes the buckets of a plan."""

    def __init__(
        self,
        definition: Definition,
        *,
        cores: int,
        buckets: int | None,
        documents: bool,
        hold: Hold,
        run: str,
        outlook: int = 0,
        # microseconds behind the wall clock; None: messages define the time
        delay: int | None = None,
        fills: Mapping[str, str] | None = None,  # by unit: the location of the input that it missed
        tunes: bool = False,
    ) -> None:
        self._definition = json.dumps(definition.plain())
        self._shape = (cores, buckets, documents)
        self._hold = hold
        self._run = run
        self._outlook = outlook
        self._delay = delay
        self._fills = dict(fills or {})
        self._tunes = tunes

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._store = MapStore(handle.getMapState("engine", "key string", "value binary"))
        definition, plan = _known(self._definition, *self._shape)
        self._plan = plan
        self._buckets = Buckets(
            definition, plan, self._hold, self._run, self._outlook, self._fills, self._tunes,
            is_timed=self._delay is not None,
        )  # fmt: skip

    def handleInputRows(
        self,
        key: Any,
        rows: Any,
        timerValues: TimerValues,
    ) -> Iterator[Row]:
        bodies = [bytes(row["body"]) for row in rows]
        if bucket_of(key[0])[0] == ASIDE:
            for body in bodies:
                yield Row(bucket=ASIDE, body=body)
            return
        if not self._plan.has(bucket_of(key[0])[0]):
            self._store.clear()  # its view was removed
            return
        with collector_paused():
            row = self._apply_packets(key[0], bodies, timerValues)
        yield row

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        if not self._plan.has(bucket_of(key[0])[0]):
            return
        self._store.remove("timer")  # Spark has removed it
        with collector_paused():
            row = self._apply_packets(key[0], [], timerValues)
        yield row

    def close(self) -> None:
        """Nothing to close: live engines stay in the worker for the next batch."""

    def _apply_packets(self, key: str, bodies: list[bytes], times: TimerValues) -> Row:
        if self._delay is None:
            reply, _ = self._buckets.take(key, self._store, bodies)
        else:
            now = times.getCurrentProcessingTimeInMs()
            passed = max(0, now * 1000 - self._delay)
            reply, keeper = self._buckets.take(key, self._store, bodies, passed)
            self._wake(keeper, reply, now, self._delay)
        return Row(bucket=key, body=reply.body)

    def _wake(self, keeper: Keeper[Instance], reply: Reply, now: int, delay: int) -> None:
        """Set a timer for the next due time."""
        due = keeper.next
        wanted: int | None = None
        if reply.ticks:
            wanted = (now // TOGETHER + 1) * TOGETHER
        elif due is not None:
            wanted = max((due + delay) // 1000 + 1, now + 1)
        written = self._store.get("timer")
        found: int | None = None if written is None else unpack(written)
        if found is not None and found != wanted:
            self._handle.deleteTimer(found)
            self._store.remove("timer")
        if wanted is not None and found != wanted:
            self._handle.registerTimer(wanted)
            self._store.put("timer", pack(wanted))
