"""The change log as a file of JSON lines: every change with its view, batch, time and number.

PATH.state beside the file holds the last batch and the file's length after it. It is replaced
atomically once the lines are on disk. When the sink is opened, bytes after that length belong to an
interrupted batch: they are cut off, and the batch is repeated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from axlog.connect.kinds import LocalPath, Options, Origin, SinkKind
from axlog.connect.sinks.envelopes import ENVELOPES, logged
from axlog.connect.sinks.files import read_state, replace_file, unwritable
from axlog.views.change import Change


class JsonLinesOptions(Options):
    """Options of the sink `jsonl`."""

    path: LocalPath = Field(description="The file; {view} in it creates one for each view.")
    envelope: Literal["native", "debezium", "feldera", "subscribe", "cloudevents"] | None = Field(
        default=None, description="The envelope of another system (default: axlog's log format)."
    )


class JsonLinesSink:
    """A growing file of changes."""

    exactly_once = True

    def __init__(self, options: JsonLinesOptions, origin: Origin) -> None:
        self.path = origin.path(options.path)
        self.state = self.path.with_name(self.path.name + ".state")
        self.run = origin.run
        self.envelope = options.envelope
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            last = read_state(self.state)
            # before the first line, so that an interrupted first batch can be detected
            if not last:
                size = self.path.stat().st_size if self.path.exists() else 0
                last = {"run": "", "batch": -1, "size": size}
                replace_file(self.state, json.dumps(last).encode())
            self._batch = last["batch"] if last["run"] == self.run else -1
            self._file = self.path.open("ab")
            # a file that was removed or emptied since begins again
            self._file.truncate(min(last["size"], self._file.seek(0, os.SEEK_END)))
            self._file.seek(0, os.SEEK_END)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Append a batch, unless the file has it."""
        if batch <= self._batch:
            return
        lines = [json.dumps(one, ensure_ascii=False) for one in self._written(batch, changes)]
        try:
            if lines:
                self._file.write(("\n".join(lines) + "\n").encode())
                self._file.flush()
                os.fsync(self._file.fileno())
            state = {"run": self.run, "batch": batch, "size": self._file.tell()}
            replace_file(self.state, json.dumps(state).encode())
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._batch = batch

    def _written(self, batch: int, changes: Sequence[Change]) -> Iterator[dict[str, Any]]:
        if self.envelope is None:
            return (logged(batch, change) for change in changes)
        return ENVELOPES[self.envelope](self.run, batch, changes)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _make(options: JsonLinesOptions, origin: Origin) -> JsonLinesSink:
    return JsonLinesSink(options, origin)


JSONL = SinkKind("jsonl", JsonLinesOptions, _make, "Every change, one JSON object per line.")


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the changes of a log, up to the last complete batch."""
    state = read_state(path.with_name(path.name + ".state"))
    with path.open("rb") as file:
        content = file.read(state["size"]) if state else b""
    return [json.loads(line) for line in content.splitlines()]
