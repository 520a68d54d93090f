"""Changes on standard output: one JSON object per line, or `+ x=17` on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from axlog.connect.kinds import Options, Origin, SinkKind
from axlog.connect.sinks.envelopes import logged
from axlog.views.change import Change

_SIGNS = {"insert": "+", "delete": "-", "update": "~", "never": "x"}


class ConsoleOptions(Options):
    """Options of `console`: none."""


class ConsoleSink:
    """Prints changes; a batch that is written twice is printed twice."""

    exactly_once = False

    def __init__(self, options: ConsoleOptions, origin: Origin) -> None:
        self._is_terminal = sys.stdout.isatty()

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Print the changes of a batch."""
        for change in changes:
            sys.stdout.write(self._line(batch, change) + "\n")
        sys.stdout.flush()

    def close(self) -> None:
        """Nothing to close."""

    def _line(self, batch: int, change: Change) -> str:
        if not self._is_terminal:
            return json.dumps(logged(batch, change), ensure_ascii=False)
        row = " ".join(f"{column}={value}" for column, value in change.row.to_dict().items())
        line = f"{_SIGNS[change.op]} {change.view}: {row or 'true'}"
        # Escape control characters: messages must not control the terminal.
        return "".join(sign if sign.isprintable() else "\ufffd" for sign in line)


CONSOLE = SinkKind("console", ConsoleOptions, ConsoleSink, "Changes on standard output.")
