"""The change log as a file of JSON lines: every change with its view, batch, time and number.

PATH.state beside the file holds the last batch and the file's length after it. It is replaced
atomically once the lines are on disk. When the sink is opened, bytes after that length belong to an
interrupted batch: they are cut off, and the batch is repeated.

A part of a batch is its lines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from axlog.connect.kinds import LocalPath, Options, Origin, SinkKind
from axlog.connect.protocol import PartNumber, PartWriter, SinkPart
from axlog.connect.sinks.envelopes import ENVELOPES, logged
from axlog.connect.sinks.files import read_state, replace_file, unwritable
from axlog.views.change import Change


class JsonLinesOptions(Options):
    """Options of the sink `jsonl`."""

    path: LocalPath = Field(description="The file; {view} in it creates one for each view.")
    envelope: Literal["native", "debezium", "feldera", "subscribe", "cloudevents"] | None = Field(
        default=None, description="The envelope of another system (default: axlog's log format)."
    )


class JsonLines:
    """Writes changes as lines."""

    def __init__(self, options: JsonLinesOptions, origin: Origin) -> None:
        self._run = origin.run
        self._envelope = None if options.envelope is None else ENVELOPES[options.envelope]

    def __call__(self, batch: int, part: PartNumber, changes: Sequence[Change]) -> bytes:
        lines = [json.dumps(each, ensure_ascii=False) for each in self._of(batch, part, changes)]
        return ("\n".join(lines) + "\n").encode() if lines else b""

    def _of(
        self, batch: int, part: PartNumber, changes: Sequence[Change]
    ) -> Iterator[dict[str, Any]]:
        if self._envelope is None:
            return (logged(batch, change) for change in changes)
        return self._envelope(self._run, batch, changes, part.first)


class JsonLinesSink:
    """A growing file of changes."""

    exactly_once = True

    def __init__(
        self, options: JsonLinesOptions, origin: Origin, lines: PartWriter | None = None
    ) -> None:
        """`lines` writes other lines than the options say."""
        self._lines = lines or JsonLines(options, origin)
        self.path = origin.path(options.path)
        self.state = self.path.with_name(self.path.name + ".state")
        self.run = origin.run
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
        if batch > self._batch:
            self.commit(batch, [SinkPart(0, self._lines(batch, PartNumber(), changes))])

    def commit(self, batch: int, parts: Sequence[SinkPart]) -> None:
        """Append the lines of a batch, unless the file has it."""
        if batch <= self._batch:
            return
        try:
            if sum([self._file.write(part.read()) for part in parts]):
                self._file.flush()
                os.fsync(self._file.fileno())
            state = {"run": self.run, "batch": batch, "size": self._file.tell()}
            replace_file(self.state, json.dumps(state).encode())
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._batch = batch

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _make(options: JsonLinesOptions, origin: Origin) -> JsonLinesSink:
    return JsonLinesSink(options, origin)


JSONL = SinkKind(
    "jsonl",
    JsonLinesOptions,
    _make,
    "Every change, one JSON object per line.",
    parts=JsonLines,
    # `subscribe` ends every batch with a line of its own
    has_parts=lambda options: options.envelope != "subscribe",
)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the changes of a log, up to the last complete batch."""
    state = read_state(path.with_name(path.name + ".state"))
    with path.open("rb") as file:
        content = file.read(state["size"]) if state else b""
    return [json.loads(line) for line in content.splitlines()]
