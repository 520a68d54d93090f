"""An open source of a pipeline: its position, its lanes, and its failures.

An unreachable source is retried with growing pauses (`unreachable.py`).
"""

from __future__ import annotations

from axlog.connect.protocol import Position, Refusal, Source
from axlog.document.clock_bounds import Horizon
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.errors import AxlogError, ChannelError, ConnectorError
from axlog.pipeline.model import PipelineModel
from axlog.runtime.checkpoint import Input
from axlog.runtime.connections import SourcePlan
from axlog.runtime.order import BODY, EVERY, LANE, Order, Place, lane_of
from axlog.runtime.unreachable import Troubles

FATAL = frozenset({"AX803", "AX811"})
"""Errors of channels that a retry cannot fix: lost messages, a token without a grant."""

_PARTITION = "\x1f"
"""Between a source's name and a partition's number: a character that no document can contain."""


def source_of(written: str) -> str:
    """Return the source of an input, without its partition."""
    return written.partition(_PARTITION)[0]


def _partition_of(written: str) -> int | None:
    """Return the partition of an input, if its source has some."""
    partition = written.partition(_PARTITION)[2]
    return int(partition) if partition else None


class Feed:
    """An open source: its position, and its lanes in the order of its document."""

    def __init__(
        self,
        plan: SourcePlan,
        order: Order,
        rank: int,
        position: Position,
        horizon: Horizon | None = None,
    ) -> None:
        """`rank`: the source's place among those of the document."""
        self.plan = plan
        self.horizon = horizon or Horizon()
        self._order = order
        self._rank = rank
        self._at_end: dict[str, bool] = {}  # by lane
        self._lane(None)
        self.is_open = True  # whether its stream can still bring something
        self.position = position
        self.source: Source | None = None
        self.troubles: Troubles | None = None
        self.errors = 0  # failed attempts
        self.came = 0  # updates, including rejected ones

    def _lane(self, partition: int | None) -> str:
        """Return the lane of the source, or of one of its partitions; add it on first use."""
        lane = lane_of(self._rank, EVERY, partition)
        if lane not in self._at_end:
            self._order.expect(lane)
            self._at_end[lane] = False
        return lane

    def _drop_whole(self) -> None:
        """Drop the lane of the whole source: a reading has named its partitions.

        Until then the others wait for it, also if updates of some partitions were held back before
        a restart: other partitions may bring earlier ones.
        """
        whole = lane_of(self._rank, EVERY)
        if self._at_end.pop(whole, None) is not None:
            self._order.drop(whole)

    @property
    def is_at_end(self) -> bool:
        """Whether all its lanes were at their ends when they were last read."""
        return all(self._at_end.values())

    def has_room(self, most: int) -> bool:
        """Whether fewer than `most` updates wait in one of its lanes."""
        held = self._order.held()
        return any(held[lane] < most for lane in self._at_end)

    def waiting(self) -> list[Input]:
        """Return its updates that are held back, earliest first."""
        return [item[BODY] for item in list(self._order.pending) if item[LANE] in self._at_end]

    @property
    def is_silent(self) -> bool:
        """Whether the others wait for one of its lanes."""
        held = self._order.held()
        return self.is_open and any(not held[lane] for lane in list(self._at_end))

    def rest(self, *, ends: bool) -> None:
        """Tell the order which lanes the others need not wait for.

        `ends`: a lane at its end brings nothing more.
        """
        for lane, is_at_end in self._at_end.items():
            self._order.rest(lane, rests=not self.is_open or (ends and is_at_end))

    def resume(self, written: str, place: Place) -> None:
        """Set the place of the last update that was applied before the run was interrupted.

        `written`: the source, with its partition.
        """
        self._order.resume(lane_of(self._rank, EVERY, _partition_of(written)), place)

    def restore(self, one: Input, time: int) -> None:
        """Append an update that was held back when the run was interrupted."""
        lane = self._lane(_partition_of(one.source))
        self._order.append(lane, one.update.stream, time, one)

    def _append(self, partition: int | None, update: StreamUpdate, now: float) -> Refusal | None:
        """Append an update to its lane; updates with an unparsable time are rejected."""
        try:
            self.horizon.check(update.stream, update.at)  # too far ahead: it would delay all others
            at = None if update.at is None else microseconds(update.at)
        except AxlogError as error:
            return Refusal(update.stream, update.content, update.origin, error.describe())
        name = self.plan.name if partition is None else f"{self.plan.name}{_PARTITION}{partition}"
        self._order.append(self._lane(partition), update.stream, at, Input(name, update, at, now))
        return None

    def read(self, model: PipelineModel, limit: int, now: float) -> tuple[int, list[Refusal]]:
        """Read new updates into the lanes; return their number, and the rejected inputs."""
        if self.troubles is not None and now < self.troubles.again:
            return 0, []
        try:
            if self.source is None:
                self.source = self.plan.open(model)
            reading = self.source.read(self.position, limit)
        except (ConnectorError, ChannelError, OSError) as error:
            if isinstance(error, ChannelError) and error.code in FATAL:
                raise
            self.troubles = self.troubles or Troubles("", now)
            self.troubles.note(error, now, self.plan.name)
            self.errors += 1
            self._at_end = dict.fromkeys(self._at_end, False)
            return 0, []
        if self.troubles is not None:
            self.troubles.over(now, self.plan.name)
        self.troubles = None
        refused = list(reading.refused)
        if reading.waiting or any(partition is not None for partition in reading.partitions):
            for known in (*reading.waiting, *reading.partitions):
                self._lane(known)
            self._drop_whole()
        partitions = reading.partitions or (None,) * len(reading.updates)
        for partition, update in zip(partitions, reading.updates, strict=True):
            odd = self._append(partition, update, now)
            if odd is not None:
                refused.append(odd)
        self.position = reading.position
        came = len(reading.updates) + len(reading.refused)
        self.came += came
        for partition, waits in reading.waiting.items():
            self._at_end[self._lane(partition)] = not waits
        if not reading.waiting:
            self._at_end = dict.fromkeys(self._at_end, came == 0 and not reading.more)
        return came, refused

    def close(self) -> None:
        if self.source is not None:
            self.source.close()
