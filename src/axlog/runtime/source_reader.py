"""An open source of a pipeline: its position, its lanes, and its failures.

An unreachable source is retried with growing pauses. The start of the failure and the number of
attempts are recorded here, for progress, health and metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from logging import INFO, WARNING, getLogger

from axlog.connect.protocol import Position, Refusal, Source
from axlog.document.clock_bounds import Horizon
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, ChannelError, ConnectorError, StreamError
from axlog.pipeline.model import PipelineModel
from axlog.reporting import report
from axlog.retry import Backoff
from axlog.runtime.connections import SourcePlan
from axlog.runtime.order import Lane, Lanes

_events = getLogger("axlog.pipeline")

FATAL = frozenset({"AX803", "AX811"})
"""Errors of channels that a retry cannot fix: lost messages, a token without a grant."""

BACKOFF = Backoff()
"""The pauses between attempts to reach a connector."""


@dataclass(slots=True)
class Troubles:
    """The failures of an unreachable connector, and the time of the next attempt."""

    error: str
    since: float
    tries: int = 0
    again: float = 0.0

    def note(self, error: Exception, now: float, what: str) -> None:
        """Record another failed attempt."""
        self.error = error.message if isinstance(error, AxlogError) else str(error)
        self.tries += 1
        code = error.code if isinstance(error, AxlogError) else None
        report(_events, WARNING, "cannot be reached", connector=what, tries=self.tries, code=code,
               error=self.error)  # fmt: skip
        self.again = now + BACKOFF.pause(self.tries)

    def over(self, now: float, what: str) -> None:
        """Record that it works again."""
        report(_events, INFO, "reached again", connector=what, tries=self.tries,
               seconds=round(now - self.since, 3))  # fmt: skip


class Feed:
    """An open source: its position, and its lanes."""

    def __init__(
        self, plan: SourcePlan, lanes: Lanes, position: Position, horizon: Horizon | None = None
    ) -> None:
        self.plan = plan
        self.horizon = horizon or Horizon()
        self._lanes = lanes
        self.position = position
        self.source: Source | None = None
        self.troubles: Troubles | None = None
        self.errors = 0  # failed attempts
        self.came = 0  # updates, including rejected ones

    @property
    def lanes(self) -> list[Lane]:
        """Its sequences: one, or one for each of its partitions."""
        return self._lanes.every(self.plan.name)

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
            for lane in self.lanes:
                lane.is_at_end = False
            return 0, []
        if self.troubles is not None:
            self.troubles.over(now, self.plan.name)
        self.troubles = None
        refused = list(reading.refused)
        partitions = reading.partitions or (None,) * len(reading.updates)
        for partition, update in zip(partitions, reading.updates, strict=True):
            lane = self._lanes.of(self.plan.name, partition)
            odd = self._too_far(update) or lane.take(update, now)
            if odd is not None:
                refused.append(odd)
        self.position = reading.position
        came = len(reading.updates) + len(reading.refused)
        self.came += came
        for partition, waits in reading.waiting.items():
            self._lanes.of(self.plan.name, partition).is_at_end = not waits
        if not reading.waiting:
            self._lanes.of(self.plan.name).is_at_end = came == 0 and not reading.more
        return came, refused

    def _too_far(self, update: StreamUpdate) -> Refusal | None:
        """Return the rejection of an update dated too far ahead, which would delay all others."""
        try:
            self.horizon.check(update.stream, update.at)
        except StreamError as error:
            return Refusal(update.stream, update.content, update.origin, error.describe())
        return None

    def close(self) -> None:
        if self.source is not None:
            self.source.close()
