"""The addresses and secrets of webhooks, in a file beside the channel's journal.

An address may be enough to post to it, and a secret is enough to sign. Therefore they are in no
journal, listing, log or error, but in a file that only its owner can read (`orders.channel.hooks`,
mode 0600). Each change rewrites and renames it. A channel without a journal has no file: its
webhooks are lost with the process.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from axlog.connect.channels.channel import LocalChannel
from axlog.errors import ChannelError

VERSION = 1


@dataclass(frozen=True, slots=True)
class Hook:
    """The address of a subscription's updates, and its signing secret."""

    callback: str = field(repr=False)
    secret: str = field(repr=False)
    expires: float  # seconds since 1970


class HookFile:
    """The webhooks of one channel, by the keys of their subscriptions."""

    def __init__(self, channel: LocalChannel) -> None:
        journal = channel.journal_path
        self.path = None if journal is None else journal.with_name(f"{journal.name}.hooks")
        self.hooks: dict[str, Hook] = {}
        if self.path is not None and self.path.exists():
            self.hooks = self._read(self.path)

    def keep(self, key: str, hook: Hook) -> None:
        """Store a webhook."""
        self.hooks[key] = hook
        self._write()

    def drop(self, key: str) -> None:
        """Remove a webhook, if it exists."""
        if self.hooks.pop(key, None) is not None:
            self._write()

    def _write(self) -> None:
        if self.path is None:
            return
        hooks = {key: asdict(hook) for key, hook in self.hooks.items()}
        text = json.dumps({"axlog-hooks": VERSION, "hooks": hooks})
        try:
            write_private(self.path, text)
        except OSError as error:
            raise ChannelError(
                "AX819", f"{str(self.path)!r} cannot be written: {error.strerror or error}"
            ) from None

    def _read(self, path: Path) -> dict[str, Hook]:
        try:
            written: Any = json.loads(path.read_text(encoding="utf-8"))
            if written["axlog-hooks"] != VERSION:
                raise ValueError("it is of another version")
            return {str(key): _hook(each) for key, each in written["hooks"].items()}
        except (OSError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            what = type(error).__name__ if not isinstance(error, OSError) else str(error.strerror)
            raise ChannelError(
                "AX819",
                f"{str(path)!r} is not a file of webhooks ({what})",
                advice="remove the file; its subscribers have to subscribe again",
            ) from None


def _hook(written: Any) -> Hook:
    callback, secret = written["callback"], written["secret"]
    if not isinstance(callback, str) or not isinstance(secret, str):
        raise TypeError("the fields of a webhook must be texts")
    return Hook(callback, secret, float(written["expires"]))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, atomically."""
    made = path.with_name(f"{path.name}.{os.getpid()}.new")
    made.unlink(missing_ok=True)
    opened = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    made.replace(path)
