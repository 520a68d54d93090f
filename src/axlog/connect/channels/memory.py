"""A channel in the pipeline's own process; with a `journal` it survives the process."""

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

    journal: LocalPath | None = Field(
        default=None, description="File that stores the retained messages."
    )
    messages: int = Field(default=10_000, ge=1, description="Maximum number of retained messages.")
    size: int = Field(
        default=64 * 1024 * 1024,
        ge=1,
        description="Maximum size of the retained messages in bytes.",
    )
    when_full: Literal["drop", "wait", "refuse"] = Field(
        default="drop",
        description="What to do when the channel is full and the oldest message "
        "is not acknowledged.",
    )
    on_demand: bool = Field(
        default=False,
        description="Drop the published view when the last subscriber has unsubscribed.",
    )


def _make(options: MemoryChannelOptions, origin: Origin) -> Channel:
    journal = None if options.journal is None else Journal(origin.path(options.journal))
    retention = Retention(options.messages, options.size, options.when_full)
    name = origin.stream or "channel"
    return LocalChannel(name, retention, journal, on_demand=options.on_demand)


MEMORY = ChannelKind("memory", MemoryChannelOptions, _make, "A channel of this process.")
