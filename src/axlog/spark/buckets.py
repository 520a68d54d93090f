"""The buckets of a plan, on the executors (`processor.py`) or on the driver.

Both process the input of a bucket with `Buckets.take`; they differ in the store, and in the process
that caches the live engines. `DriverBuckets` keeps all of them in the driver's process, with a
state that is durable by batches (`runtime/batch_state.py`). On one machine that avoids Spark's
shuffle, its state store and the transfer of everything through Java: some hundred milliseconds per
batch.

Law 7: the reports on a batch are the same, wherever the buckets are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from weakref import finalize

from axlog.runtime.batch_state import DurableState, Row
from axlog.runtime.bucket import Instance
from axlog.runtime.bucket_state import LIVE, Keeper, Live, Reply, apply_packets
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import ASIDE
from axlog.runtime.final_step import FinalSteps
from axlog.runtime.order import Hold
from axlog.runtime.plan import SparkPlan
from axlog.runtime.timers import Store
from axlog.spark.backfill import past_packets
from axlog.store.files import DiskFiles


@dataclass
class Buckets:
    """Creates the engines of a plan and sends them their input."""

    definition: Definition
    plan: SparkPlan
    hold: Hold
    run: str  # of this process: live engines of another are not used
    outlook: int = 0
    fills: Mapping[str, str] = field(default_factory=dict)  # by unit: the input that it missed
    tunes: bool = False
    is_timed: bool = False  # wall-clock time
    live: Live = field(default_factory=lambda: LIVE)

    def take(
        self, key: str, store: Store, bodies: list[bytes], passed: int = 0
    ) -> tuple[Reply, Keeper[Instance]]:
        """Process the input of a bucket; return its report."""
        name, number = bucket_of(key)
        unit = self.plan.unit(name)

        def make(document: str) -> Instance:
            return Instance(self.definition, unit, number, self.hold, document)

        many = unit.kind == "documents"
        times, begins = self.is_timed or many, name in self.fills or many
        keeper = Keeper(store, f"{self.run} {key}", make, times, begins, self.live)
        if name in self.fills and keeper.is_new:
            bodies = [*past_packets(self.fills[name], key), *bodies]
        return apply_packets(keeper, unit, bodies, passed, self.tunes, self.outlook), keeper


class DriverBuckets:
    """All buckets in this process, batch by batch."""

    def __init__(self, buckets: Buckets, place: str) -> None:
        self._buckets = buckets
        self._finals = FinalSteps(buckets.definition, buckets.plan, buckets.run, buckets.live)
        self._state = durable_state(place)
        self.close = finalize(self, self._state.close)  # a query may end without a call of wait

    def missed(self, last: int) -> list[Row] | None:
        """Return the input of the last committed batch, if the sinks may not have its changes."""
        return self._state.missed(last)

    def begin(self, number: int, rows: Iterable[Row]) -> None:
        """Log the input of a batch; Spark may commit it afterwards."""
        self._state.begin(number, rows)

    def end(self) -> None:
        """Record that a batch is applied and delivered."""
        self._state.commit()

    def apply(self, rows: Iterable[Row]) -> list[Row]:
        """Return the reports of the buckets on a batch."""
        inbox: dict[str, list[bytes]] = {}
        for key, body in rows:
            inbox.setdefault(key, []).append(body)
        replies: list[Row] = []
        for key in sorted(inbox):
            name, _ = bucket_of(key)
            if name == ASIDE:
                replies += [(ASIDE, body) for body in inbox[key]]
            elif not self._buckets.plan.has(name):
                self._state.store(key).clear()  # its view was removed
            else:
                reply, _ = self._buckets.take(key, self._state.store(key), inbox[key])
                replies.append((key, reply.body))
        return replies + self._finals.apply(self._finals.input(replies), self._state.store)


DIRECTORY = "driver"
"""The directory of the state, beside the checkpoint."""


def durable_state(place: str) -> DurableState:
    """Return the state of the driver, beside a checkpoint."""
    return DurableState(DiskFiles(Path(place) / DIRECTORY))


def bucket_of(key: str) -> tuple[str, int]:
    """Return the unit and the number of a bucket from its key: `unit/number/salt`."""
    unit, number, _ = key.rsplit("/", 2)
    return unit, int(number)
