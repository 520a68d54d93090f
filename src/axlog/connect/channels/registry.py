"""The channels of a process by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.entries import Retention
from axlog.connect.channels.journal import Journal
from axlog.errors import ChannelError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class Channels:
    """Channels by name; with a directory, each has a journal there and is restored from it."""

    def __init__(
        self, directory: str | Path | None = None, retention: Retention | None = None
    ) -> None:
        self.directory = None if directory is None else Path(directory)
        self.retention = retention or Retention()
        self._by_name: dict[str, LocalChannel] = {}
        if self.directory is not None and self.directory.is_dir():
            for path in sorted(self.directory.glob("*.channel")):
                self.make(path.name.removesuffix(".channel"))

    def make(self, name: str, retention: Retention | None = None) -> LocalChannel:
        """Return the channel of this name; create it if there is none."""
        known = self._by_name.get(name)
        if known is not None:
            return known
        if not _NAME.fullmatch(name):
            raise ChannelError(
                "AX807",
                f"{name[:120]!r} is not a valid channel name",
                expected="letters, digits, '_', '.', '-', at most a hundred",
            )
        journal = None
        if self.directory is not None:
            journal = Journal(self.directory / f"{name}.channel")
        made = LocalChannel(name, retention or self.retention, journal)
        self._by_name[name] = made
        return made

    def adopt(self, channel: LocalChannel) -> None:
        """Add a channel that another object created and closes."""
        self._by_name[channel.name] = channel

    def __getitem__(self, name: str) -> LocalChannel:
        try:
            return self._by_name[name]
        except KeyError:
            known = ", ".join(sorted(self._by_name)) or "none"
            raise ChannelError("AX801", f"there is no channel {name!r}", expected=known) from None

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[LocalChannel]:
        return iter([channel for _, channel in sorted(self._by_name.items())])

    def __len__(self) -> int:
        return len(self._by_name)

    def close(self) -> None:
        for channel in self:
            channel.close()
