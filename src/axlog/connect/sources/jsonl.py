"""A file of JSON lines, followed as it grows: `{"stream": ..., "insert": XML, "at": TIME}` a line.

The position is the number of bytes and lines taken. A last line without its end is taken if it is a
whole JSON object, else waited for. As the source of one stream, lines may leave `stream` out. A
file that has become shorter is not the one that was read: that is an error, nothing is guessed.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO

from pydantic import Field

from axlog.connect.kinds import LocalPath, Options, Origin, SourceKind
from axlog.connect.protocol import NO_TIME, Position, Reach, Reading, Refusal
from axlog.document.parser import is_encodable
from axlog.document.stream_update import StreamUpdate, read_line
from axlog.errors import AxlogError, ConnectorError

_LONGEST = 64 * 1024 * 1024
_PIECE = 1 << 18
_PLAIN = frozenset({"stream", "insert", "at"})
_AT = re.compile(rb'"at"\s*:\s*([-+.0-9eE]+)')
_DECODE = json.JSONDecoder().decode


class JsonLinesOptions(Options):
    """Options of `jsonl`."""

    path: LocalPath = Field(description="The file.")


class JsonLinesSource:
    """The lines of a file as updates."""

    def __init__(self, options: JsonLinesOptions, origin: Origin) -> None:
        self.path = origin.path(options.path)
        self.stream = origin.stream

    def read(self, position: Position, limit: int) -> Reading:
        """At most so many lines after the position."""
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []

        def take(line: bytes, number: int) -> None:
            self._take(line, number, updates, refused)

        end = self._go(position, limit, take)
        return Reading(updates, end.position, refused, more=end.more and bool(updates))

    def reach(self, position: Position, limit: int) -> Reach:
        """Where so many lines end: they are counted, not read; numbers that may be times are."""
        latest: list[int | None] = [NO_TIME]

        def take(line: bytes, number: int) -> None:
            latest[0] = _latest(line, latest[0])

        return replace(self._go(position, limit, take), latest=latest[0])

    def _go(self, position: Position, limit: int, take: Callable[[bytes, int], None]) -> Reach:
        """Take the lines after a position; where they end."""
        offset, number = position or (0, 0)
        taken = 0
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                if size < offset:
                    raise ConnectorError(
                        "AX858",
                        f"{self.path} has {size} bytes, and {offset} were read before",
                        advice="put the file back, or start with another checkpoint",
                    )
                file.seek(offset)
                for line in _lines(file):
                    offset, number = offset + len(line), number + 1
                    if not line.isspace():
                        take(line, number)
                        taken += 1
                        if taken >= limit:
                            break
        except OSError as error:
            raise ConnectorError("AX858", f"{self.path}: {error.strerror or error}") from error
        return Reach(taken, [offset, number], more=offset < size and taken > 0)

    def close(self) -> None:
        """Nothing stays open between readings."""

    def _take(
        self, line: bytes, number: int, updates: list[StreamUpdate], refused: list[Refusal]
    ) -> None:
        origin = f"{self.path.name}:{number}"
        try:
            updates.append(read_update(line, self.stream, origin))
        except AxlogError as error:
            refused.append(Refusal(self.stream or "", line, origin, error.describe()))


def read_update(line: bytes, stream: str | None, origin: str) -> StreamUpdate:
    """The update that a line (or a broker's message) writes; for this stream, if one is given."""
    try:
        # The codec that takes the mark away is written in Python, and seldom needed.
        text = (line.decode("utf-8-sig") if line.startswith(BOM_UTF8) else line.decode()).strip()
    except UnicodeDecodeError:
        text = line.decode("utf-8", "replace")
    plain = _plain_insert(text, stream, origin)
    if plain is not None:
        return plain
    if stream is not None and text.startswith("{"):
        text = _with_stream(text, stream)
    update = read_line(text, 1, origin)
    if stream is not None and update.stream != stream:
        raise ConnectorError("AX858", f"the line is for the stream {update.stream!r}")
    return StreamUpdate(update.stream, update.action, update.content, update.at, origin)


def _plain_insert(text: str, stream: str | None, origin: str) -> StreamUpdate | None:
    """What most lines are, without ado: an insertion with a time; None: look closer."""
    try:
        written = _DECODE(text)
    except (ValueError, RecursionError):
        return None
    if type(written) is not dict or not written.keys() <= _PLAIN:
        return None
    name, content, at = written.get("stream", stream), written.get("insert"), written.get("at")
    if type(name) is not str or type(content) is not str or (stream is not None and name != stream):
        return None
    if "\\u" in text and not (is_encodable(content) and is_encodable(name)):
        return None  # half a character, which only an escape can write: it fits into no file
    return StreamUpdate(name, "insert", content, at, origin) if type(at) in (int, float) else None


def _latest(line: bytes, before: int | None) -> int | None:
    """At most, the latest time of a line and those before it; None where it cannot be told."""
    found = _AT.findall(line)
    if before is None or (not found and b'"at"' in line):
        return None
    try:
        return max([before, *(round(1e6 * float(number)) for number in found)])
    except (OverflowError, ValueError):
        return None


def _with_stream(text: str, stream: str) -> str:
    """The line with its stream named, where it left that out."""
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        return text  # who reads it says what is wrong
    if not isinstance(written, dict) or "stream" in written:
        return text
    return json.dumps({"stream": stream, **written})


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines that are whole; a line beyond the limit comes in parts, which are no updates."""
    rest = b""
    while piece := file.read(_PIECE):
        *lines, rest = (rest + piece if rest else piece).split(b"\n")
        for line in lines:
            yield line + b"\n"
        if len(rest) >= _LONGEST:
            yield rest
            rest = b""
    try:
        if rest and isinstance(json.loads(rest), dict):
            yield rest
    except (ValueError, RecursionError):
        return  # its end is still to come


JSONL = SourceKind(
    "jsonl",
    JsonLinesOptions,
    JsonLinesSource,
    "A file of updates, one JSON object a line, followed as it grows.",
    names_streams=True,
)
