"""A file of JSON lines, followed as it grows: `{"stream": ..., "insert": XML, "at": TIME}` per
line. With `format: json` every line is a message itself, an object.

The position is the number of bytes and lines read. A last line without a line end is read if it is
a complete JSON object; otherwise the source waits for its end. As the source of one stream, lines
may omit `stream`. A file that has become shorter is not the file that was read: this is an error.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO, Literal

from pydantic import Field

from axlog.connect.kinds import LocalPath, Origin, SourceKind
from axlog.connect.protocol import NO_TIME, Position, Reach, Reading, Refusal
from axlog.connect.sources.formats import ELEMENT
from axlog.connect.sources.times import TimeOptions, Timing
from axlog.document.json_messages import xml_of_text
from axlog.document.list_codec import from_json, to_json
from axlog.document.parser import is_encodable, parse
from axlog.document.stream_update import LISTS, StreamUpdate, read_line
from axlog.errors import AxlogError, ConnectorError, PipelineError, UpdateError

_LONGEST = 64 * 1024 * 1024
_PIECE = 1 << 18
_PLAIN = frozenset({"stream", "insert", "at"})
_AT = re.compile(rb'"at"\s*:\s*([-+.0-9eE]+)')
_DECODE = json.JSONDecoder().decode


class JsonLinesOptions(TimeOptions):
    """Options of `jsonl`."""

    path: LocalPath = Field(description="The file.")
    format: Literal["jsonl", "json"] = Field(
        default="jsonl",
        description="A line: an update with its XML and time, or (json) a message itself.",
    )
    element: str | None = ELEMENT


class JsonLinesSource:
    """The lines of a file as updates."""

    def __init__(self, options: JsonLinesOptions, origin: Origin) -> None:
        self.path = origin.path(options.path)
        self.stream = origin.stream
        self._read = read_list if origin.brings_lists else read_update
        self.options = options
        self.timing = Timing(options, origin)
        if origin.stream is None and options.format == "json":
            raise _unnamed(options.path)

    def read(self, position: Position, limit: int) -> Reading:
        """Return at most `limit` lines after the position."""
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []

        def take(line: bytes, number: int) -> None:
            self._take(line, number, updates, refused)

        end = self._go(position, limit, take)
        return Reading(updates, end.position, refused, more=end.more and bool(updates))

    def reach(self, position: Position, limit: int) -> Reach:
        """Find where `limit` lines end: count them without parsing, and scan numbers that may be
        times.
        """
        latest: list[int | None] = [NO_TIME]

        def take(line: bytes, number: int) -> None:
            latest[0] = _latest(line, latest[0])

        found = self._go(position, limit, take)
        return replace(found, latest=latest[0] if self.options.format == "jsonl" else None)

    def _go(self, position: Position, limit: int, take: Callable[[bytes, int], None]) -> Reach:
        """Iterate over the lines after a position; return their end."""
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
            if self.options.format == "json":
                updates.append(self._message(line, origin))
            else:
                updates.append(self._read(line, self.stream, origin))
        except AxlogError as error:
            refused.append(Refusal(self.stream or "", line, origin, error.describe()))

    def _message(self, line: bytes, origin: str) -> StreamUpdate:
        """Return the message of a line that is an object by itself."""
        xml = xml_of_text(line, self.options.element, origin)
        element = parse(xml, name=origin).root if self.timing.needs_element else None
        at = self.timing.of(element, None)
        return StreamUpdate(self.stream or "", "insert", xml, at, origin)


def _unnamed(path: str) -> PipelineError:
    return PipelineError(
        "AX852",
        f"the messages of {path!r} do not name their stream",
        advice="make it the source of one stream: streams: {NAME: {source: ...}}",
    )


def read_update(line: bytes, stream: str | None, origin: str) -> StreamUpdate:
    """Parse the update of a line (or of a broker's message); for this stream, if one is given."""
    try:
        # The codec that removes the byte order mark is written in Python, and rarely needed.
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


def read_list(line: bytes, stream: str | None, origin: str) -> StreamUpdate:
    """Parse a list of updates of the document, `{"updates": [...], "at": TIME}`."""
    try:
        written = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UpdateError("AX306", f"the JSON cannot be read: {error}") from None
    at = written.pop("at", None) if isinstance(written, dict) else None
    if isinstance(at, bool) or not isinstance(at, int | float | str | None):
        raise UpdateError("AX306", '"at" is not a time')
    found = from_json(json.dumps(written))
    return StreamUpdate(stream or "", LISTS, to_json(found), at, origin)


def _plain_insert(text: str, stream: str | None, origin: str) -> StreamUpdate | None:
    """Fast path for most lines: an insertion with a time. None: use the full parser."""
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
        return None  # an unpaired surrogate, which only an escape can produce: it fits into no file
    return StreamUpdate(name, "insert", content, at, origin) if type(at) in (int, float) else None


def _latest(line: bytes, before: int | None) -> int | None:
    """Return an upper bound of the times of a line and those before it; None if unknown."""
    found = _AT.findall(line)
    if before is None or (not found and b'"at"' in line):
        return None
    try:
        return max([before, *(round(1e6 * float(number)) for number in found)])
    except (OverflowError, ValueError):
        return None


def _with_stream(text: str, stream: str) -> str:
    """Return the line with its stream, if it omitted it."""
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        return text  # the parser reports the error
    if not isinstance(written, dict) or "stream" in written:
        return text
    return json.dumps({"stream": stream, **written})


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield complete lines; a line beyond the limit is split into parts, which are not updates."""
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
        return  # its end has not been written yet


JSONL = SourceKind(
    "jsonl",
    JsonLinesOptions,
    JsonLinesSource,
    "A file of updates, one JSON object per line, followed as it grows.",
    names_streams=True,
)
