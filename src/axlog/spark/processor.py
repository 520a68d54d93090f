"""The stateful processor: Spark's hands around `state.Keeper`.

One key is one bucket. All that a partition sends to a bucket is one row, and all that a bucket says
is one row, so a batch costs Spark a handful of rows whatever its messages. Rows that are aside
(dead letters, counts) pass through, so that they are delivered with their batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from axlog.spark.bucket import Instance, told
from axlog.spark.definition import Definition
from axlog.spark.extracting import ASIDE
from axlog.spark.ordering import Hold
from axlog.spark.outlooks import watcher_of
from axlog.spark.packets import pack
from axlog.spark.pausing import collector_paused
from axlog.spark.plan import SparkPlan, make_plan
from axlog.spark.state import Keeper, by_document

OUTPUT = "bucket string, body binary"


@lru_cache(maxsize=16)
def _known(
    written: str, cores: int, buckets: int | None, documents: bool
) -> tuple[Definition, SparkPlan]:
    """A definition from JSON and its plan: made once in a worker, not once a batch."""
    definition = Definition.read(json.loads(written))
    return definition, make_plan(definition, cores, buckets, documents)


class MapStore:
    """A map state of bytes by texts."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, key: str) -> bytes | None:
        found = self._state.getValue((key,))
        return None if found is None else bytes(found[0])

    def put(self, key: str, value: bytes) -> None:
        self._state.updateValue((key,), (value,))

    def remove(self, key: str) -> None:
        self._state.removeKey((key,))


class Maintaining(StatefulProcessor):
    """Keeps the buckets of a plan."""

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
    ) -> None:
        self._definition = json.dumps(definition.plain())
        self._shape = (cores, buckets, documents)
        self._hold = hold
        self._run = run
        self._outlook = outlook

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = MapStore(handle.getMapState("engine", "key string", "value binary"))
        self._read, self._plan = _known(self._definition, *self._shape)

    def handleInputRows(
        self,
        key: Any,
        rows: Any,
        timerValues: TimerValues,
    ) -> Iterator[Row]:
        unit, number = bucket_of(key[0])
        bodies = [bytes(row["body"]) for row in rows]
        if unit == ASIDE:
            for body in bodies:
                yield Row(bucket=ASIDE, body=body)
            return
        with collector_paused():
            body = self._batch(key[0], unit, number, bodies)
        yield Row(bucket=key[0], body=body)

    def _batch(self, key: str, unit: str, number: int, bodies: list[bytes]) -> bytes:
        """What a bucket says of its packets."""
        keeper = self._keeper(key, unit, number)
        is_spread = self._plan.unit(unit).kind == "documents"
        said: list[dict[str, Any]] = []
        for name, packets in (by_document(bodies) if is_spread else {"": bodies}).items():
            outcome, instance, size = keeper.batch(name, packets)
            said.append(told(outcome, instance, size))
            if self._outlook and not is_spread:
                said[-1]["outlook"] = watcher_of(instance, self._outlook).said()
        return pack(said)

    def close(self) -> None:
        """Live engines stay in the worker for the next batch."""

    def _keeper(self, key: str, unit: str, number: int) -> Keeper:
        definition, chosen, hold = self._read, self._plan.unit(unit), self._hold

        def make(name: str) -> Instance:
            return Instance(definition, chosen, number, hold, name)

        return Keeper(self._store, f"{self._run} {key}", make)


def bucket_of(key: str) -> tuple[str, int]:
    """The unit and the number of a bucket by its key: `unit/number/salt`."""
    unit, number, _ = key.rsplit("/", 2)
    return unit, int(number)
