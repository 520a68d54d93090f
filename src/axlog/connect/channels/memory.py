"""The channel of the pipeline's own process; with a `journal` it outlives it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.entries import Retention
from axlog.connect.channels.journal import Journal
from axlog.connect.channels.protocol import Channel
from axlog.connect.kinds import ChannelKind, LocalPath, Options, Origin


class MemoryChannelOptions(Options):
    """Options of the channel `memory`."""

    journal: LocalPath | None = Field(default=None, description="File that keeps what is retained.")
    messages: int = Field(default=10_000, ge=1, description="At most so many are retained.")
    size: int = Field(default=64 * 1024 * 1024, ge=1, description="At most so many bytes of them.")
    when_full: Literal["drop", "wait", "refuse"] = Field(
        default="drop", description="What happens when the oldest is not acknowledged yet."
    )
    on_demand: bool = Field(
        default=False,
        description="Let go of the view it publishes once its last subscriber has unsubscribed.",
    )


def _make(options: MemoryChannelOptions, origin: Origin) -> Channel:
    journal = None if options.journal is None else Journal(origin.path(options.journal))
    retention = Retention(options.messages, options.size, options.when_full)
    name = origin.stream or "channel"
    return LocalChannel(name, retention, journal, on_demand=options.on_demand)


MEMORY = ChannelKind("memory", MemoryChannelOptions, _make, "A channel of this process.")
