"""The buckets of a plan on the driver, instead of on the executors (`processor.py`).

Both process the input of a bucket with `Buckets.take` (`runtime/bucket_engines.py`); they differ in
the store, and in the process that caches the live engines. `DriverBuckets` keeps all of them in
the driver's process, with a state that is durable by batches (`runtime/batch_state.py`). On one
machine that avoids Spark's shuffle, its state store and the transfer of everything through Java:
some hundred milliseconds per batch.

Law 7: the reports on a batch are the same, wherever the buckets are.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from weakref import finalize

from axlog.runtime.batch_state import DurableState, Row
from axlog.runtime.bucket_engines import Buckets
from axlog.runtime.extraction import ASIDE
from axlog.runtime.final_step import FinalSteps
from axlog.store.files import DiskFiles


class DriverBuckets:
    """All buckets in this process, batch by batch."""

    def __init__(self, buckets: Buckets, place: str) -> None:
        self._buckets = buckets
        self._finals = FinalSteps(buckets.definition, buckets.plan, buckets.run, buckets.live)
        self._state = durable_state(place)
        self.close = finalize(self, self._state.close)  # a query may end without a call of wait

    def unfinished(self) -> tuple[int, list[Row]] | None:
        """Return the last batch and its input, if the sinks may not have its changes."""
        return self._state.unfinished()

    def begin(self, number: int, rows: Iterable[Row]) -> None:
        """Log the input of a batch; Spark may commit it afterwards."""
        self._state.begin(number, rows)

    def end(self) -> None:
        """Record that a batch is applied and delivered."""
        self._state.commit()

    def apply(self, rows: Iterable[Row], number: int | None = None) -> list[Row]:
        """Return the reports of the buckets on a batch."""
        inbox: dict[str, list[bytes]] = {}
        for key, body in rows:
            inbox.setdefault(key, []).append(body)
        replies: list[Row] = []
        for key in sorted(inbox):
            if is_aside(key):
                replies += [(ASIDE, body) for body in inbox[key]]
            else:
                store = self._state.store(key)
                replies += self._buckets.take(key, store, inbox[key], batch=number).rows
        return replies + self._finals.apply(self._finals.input(replies), self._state.store)


DIRECTORY = "driver"
"""The directory of the state, beside the checkpoint."""


def durable_state(place: str) -> DurableState:
    """Return the state of the driver, beside a checkpoint."""
    return DurableState(DiskFiles(Path(place) / DIRECTORY))


def has_durable_state(place: str) -> bool:
    """Whether the driver has a state beside a checkpoint."""
    return (Path(place) / DIRECTORY).exists()


def is_aside(key: str) -> bool:
    """Whether a key is that of dead letters and counts, which no bucket gets."""
    return key.partition("/")[0] == ASIDE
