"""The order in which updates reach a widget: by time, stream and sequence (docs/meaning.md, Time).

Every source is one sequence, or one for each of its partitions. The earliest update of all
sequences is next, but only once no other sequence can bring an earlier one: each of the others has
an update waiting, or is at its end. A silent sequence delays the others for a bounded time. If it
then brings an update older than the clock, the update is late, and the policy of its stream
applies.

An update without a time has the place after its predecessor in its sequence. Law: if sources are at
their ends, the order and the batches do not depend on how the sources were read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from axlog.connect.protocol import Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.errors import AxlogError
from axlog.runtime.checkpoint import Input

_FIRST = -(1 << 62)


_PARTITION = "\x1f"
"""Between a source's name and a partition's number: a character that no document can contain."""


@dataclass(slots=True)
class Lane:
    """The waiting updates of one source, or of one partition of it."""

    source: str  # with the partition, if it has some
    rank: tuple[int, int]  # of the source in the file, and of the partition in the source
    waiting: deque[tuple[Input, float]] = field(default_factory=deque)  # with the times of reading
    effective: int = _FIRST
    is_at_end: bool = False
    is_open: bool = True  # whether its stream can still bring something

    def take(self, update: StreamUpdate, now: float) -> Refusal | None:
        """Append an update; updates with an unparsable time are rejected."""
        at: int | None = None
        if update.at is not None:
            try:
                at = microseconds(update.at)
            except AxlogError as error:
                return Refusal(update.stream, update.content, update.origin, error.describe())
            self.effective = max(self.effective, at)
        self.waiting.append((Input(self.source, update, at, self.effective), now))
        return None

    def restore(self, one: Input) -> None:
        """Restore the updates that were held back when the run was interrupted."""
        self.effective = max(self.effective, one.effective)
        self.waiting.append((one, 0.0))


class Lanes:
    """The sources of one widget."""

    def __init__(self, sources: Iterable[str], hold: float) -> None:
        self._ranks = {source: rank for rank, source in enumerate(sources)}
        self.lanes = {source: Lane(source, (rank, 0)) for source, rank in self._ranks.items()}
        self._hold = hold

    def of(self, source: str, partition: int | None = None) -> Lane:
        """Return the lane of a source, or of one of its partitions; create it on first use."""
        if partition is None:
            return self.lanes[source]
        name = f"{source}{_PARTITION}{partition}"
        if name not in self.lanes:
            whole = self.lanes.pop(source, None)  # its partitions are known now
            rank = (self._ranks[source], partition)
            self.lanes[name] = Lane(name, rank, is_open=whole is None or whole.is_open)
        return self.lanes[name]

    def every(self, source: str) -> list[Lane]:
        """Return all lanes of a source."""
        return [lane for name, lane in list(self.lanes.items()) if source_of(name) == source]

    def restore(self, one: Input) -> None:
        """Restore the updates that were held back when the run was interrupted."""
        source, _, partition = one.source.partition(_PARTITION)
        self.of(source, int(partition) if partition else None).restore(one)

    @property
    def held(self) -> int:
        """The number of waiting updates."""
        return sum(len(lane.waiting) for lane in self.lanes.values())

    def release(self, most: int, now: float, *, waits: bool) -> list[Input]:
        """Return the updates that can be applied.

        `waits`: a source at its end may continue, and delays the others for the bounded time.
        Without it, a source at its end is done, and the others wait for all sources without a
        bound.
        """
        released: list[Input] = []
        if len(self.lanes) == 1:  # one sequence is already ordered
            (lane,) = self.lanes.values()
            return [lane.waiting.popleft()[0] for _ in range(min(most, len(lane.waiting)))]
        while len(released) < most:
            heads = [lane for lane in self.lanes.values() if lane.waiting]
            if not heads:
                break
            first = min(heads, key=_order)
            silent = any(
                not lane.waiting and lane.is_open and (waits or not lane.is_at_end)
                for lane in self.lanes.values()
            )
            if silent and (not waits or now - first.waiting[0][1] < self._hold):
                break
            released.append(first.waiting.popleft()[0])
        return released

    def inputs(self) -> Iterable[Input]:
        """Yield the waiting updates, source by source."""
        return (one for lane in self.lanes.values() for one, _ in lane.waiting)


def source_of(written: str) -> str:
    """Return the source of an input or a lane, without its partition."""
    return written.partition(_PARTITION)[0]


def _order(lane: Lane) -> tuple[int, str, tuple[int, int]]:
    head = lane.waiting[0][0]
    return head.effective, head.update.stream, lane.rank
