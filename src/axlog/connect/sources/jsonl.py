"""A file of JSON lines, followed as it grows: `{"stream": ..., "insert": XML, "at": TIME}` per
line. With `format: json` every line is a message itself, an object.

The position is the number of bytes and lines read. A last line without a line end is read if it is
a complete JSON object; otherwise the source waits for its end. As the source of one stream, lines
may omit `stream`. A file that has become shorter is not the file that was read: this is an error.

A plan divides the file by bytes, at line ends: the driver reads one line per part. Tasks do not
know how many lines are before their part, and name bytes instead (`in.jsonl@1024`). Lines are
counted only for those that are rejected (`origin`).
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from pydantic import Field

from axlog.connect.kinds import LocalPath, Origin, SourceKind
from axlog.connect.protocol import Load, Part, Plan, Position, Reading, Refusal
from axlog.connect.sources.formats import ELEMENT
from axlog.connect.sources.insert_columns import Piece, Pieces, insert_columns
from axlog.connect.sources.times import TimeOptions, Timing
from axlog.document.json_messages import xml_of_text
from axlog.document.list_codec import from_json, to_json
from axlog.document.parser import is_encodable, parse
from axlog.document.stream_update import LISTS, StreamUpdate, read_line
from axlog.errors import AxlogError, ConnectorError, PipelineError, UpdateError

_LONGEST = 64 * 1024 * 1024
_PIECE = 1 << 18
_SAMPLE = 1 << 16
"""Bytes from which the length of lines is estimated."""
_DECODE = json.JSONDecoder().raw_decode


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
        self._counted = [(0, 0)]  # offsets, and the line ends before them
        if origin.stream is None and options.format == "json":
            raise _unnamed(options.path)

    def read(self, position: Position, limit: int) -> Reading:
        """Return at most `limit` lines after the position."""
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        offset, number = position or (0, 0)
        taken = 0
        with self._opened(offset) as (file, size):
            file.seek(offset)
            for line in _lines(file):
                if number is not None:
                    number += 1
                if not line.isspace():
                    where = f"@{offset}" if number is None else f":{number}"
                    self._take(line, f"{self.path.name}{where}", updates, refused)
                    taken += 1
                offset += len(line)
                if taken >= limit:
                    break
        return Reading(updates, [offset, number], refused, more=offset < size and bool(updates))

    def plan(self, position: Position, load: Load, until: Position | None = None) -> Plan:
        """Return the next lines in parts, divided by bytes; the limit is an estimate."""
        offset, number = position or (0, None)
        with self._opened(offset if until is None else until[0]) as (file, size):
            line = _length(file, offset)
            end = _last_end(file, offset, size)
            if until is not None:
                end = size = until[0]
            else:
                end, size = _line_end(file, offset + load.limit * line, end), end
            step = line * load.step(-(-(end - offset) // line))
            parts: list[Part] = []
            while offset < end:
                cut = _line_end(file, offset + step, end)
                parts.append(Part([offset, cut], cut - offset))
                offset = cut
        return Plan(parts, [offset, number if not parts else None], more=offset < size)

    def fetch(self, work: Any) -> Reading:
        """Return the lines between two byte offsets."""
        refused: list[Refusal] = []
        return Reading(Pieces(self.pieces(work, refused)), [work[1], None], refused)

    def pieces(self, work: Any, refused: list[Refusal]) -> Iterator[Piece]:
        """Yield the lines between two byte offsets piece by piece; append what is refused."""
        start, end = work
        is_plain = self.options.format != "json" and self._read is read_update
        with self._opened(end) as (file, _):
            file.seek(start)
            offset, rest = start, b""
            while offset < end:
                piece = file.read(min(_PIECE, end - file.tell()))
                if not piece:
                    raise _shorter(self.path, file.tell(), end)
                piece = rest + piece
                cut = piece.rfind(b"\n") + 1
                lines, rest = piece[:cut], piece[cut:]
                columns = None
                if is_plain and lines:
                    columns = insert_columns(lines, self.stream, self.path.name, offset)
                yield self._each(lines, offset, is_plain, refused) if columns is None else columns
                offset += cut
                if file.tell() >= end:
                    break
            if rest and not rest.isspace():
                updates: list[StreamUpdate] = []
                self._take(rest, f"{self.path.name}@{offset}", updates, refused)
                yield updates

    def _each(
        self, lines: bytes, offset: int, is_plain: bool, refused: list[Refusal]
    ) -> list[StreamUpdate]:
        """Return the updates of whole lines, read one by one."""
        updates: list[StreamUpdate] = []
        name, stream = self.path.name, self.stream
        for line in lines.split(b"\n")[:-1]:
            where = f"{name}@{offset}"
            plain = _plain_line(line, stream, where) if is_plain else None
            if plain is not None:
                updates.append(plain)
            elif line and not line.isspace():
                self._take(line + b"\n", where, updates, refused)
            offset += len(line) + 1
        return updates

    def origin(self, found: str) -> str:
        """Return the line that contains a byte: `in.jsonl:17` for `in.jsonl@1024`."""
        name, _, offset = found.rpartition("@")
        if name != self.path.name or not offset.isdigit():
            return found
        start, number = max(one for one in self._counted if one[0] <= int(offset))
        try:
            with self._opened(int(offset)) as (file, _):
                file.seek(start)
                left = int(offset) - start
                while left and (piece := file.read(min(_PIECE, left))):
                    number += piece.count(b"\n")
                    left -= len(piece)
        except ConnectorError:  # it is gone
            return found
        self._counted = [(0, 0), (int(offset), number)]
        return f"{name}:{number + 1}"

    @contextmanager
    def _opened(self, offset: int) -> Iterator[tuple[IO[bytes], int]]:
        """Open the file, which has at least so many bytes; return its size too."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                if size < offset:
                    raise _shorter(self.path, size, offset)
                yield file, size
        except OSError as error:
            raise ConnectorError("AX858", f"{self.path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Nothing stays open between readings."""

    def _take(
        self, line: bytes, origin: str, updates: list[StreamUpdate], refused: list[Refusal]
    ) -> None:
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


def _plain_line(line: bytes, stream: str | None, origin: str) -> StreamUpdate | None:
    """Return the insertion with a time that a line is; None: use the full parser."""
    try:
        return _plain_insert(line.decode(), stream, origin)
    except UnicodeDecodeError:
        return None


def _plain_insert(text: str, stream: str | None, origin: str) -> StreamUpdate | None:
    """Fast path for most lines: an insertion with a time. None: use the full parser."""
    try:
        written, end = _DECODE(text)
    except (ValueError, RecursionError):
        return None
    if end != len(text) or type(written) is not dict:
        return None
    name, content, at = written.get("stream", stream), written.get("insert"), written.get("at")
    if type(content) is not str or type(at) not in (int, float) or type(name) is not str:
        return None
    if len(written) != (3 if "stream" in written else 2) or (stream is not None and name != stream):
        return None
    if "\\u" in text and not (is_encodable(content) and is_encodable(name)):
        return None  # an unpaired surrogate, which only an escape can produce: it fits into no file
    return StreamUpdate(name, "insert", content, at, origin)


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
    if _is_object(rest):
        yield rest  # otherwise its end has not been written yet


def _is_object(line: bytes) -> bool:
    try:
        return bool(line) and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _shorter(path: Path, size: int, offset: int) -> ConnectorError:
    return ConnectorError(
        "AX858",
        f"{path} has {size} bytes, and {offset} were read before",
        advice="put the file back, or start with another checkpoint",
    )


def _length(file: IO[bytes], offset: int) -> int:
    """Return the average length of the lines after an offset, in bytes, from the first few."""
    file.seek(offset)
    some = file.read(_SAMPLE)
    return max(1, len(some) // max(1, some.count(b"\n")))


def _line_end(file: IO[bytes], offset: int, end: int) -> int:
    """Return the offset after the line that contains the byte before an offset; at most `end`."""
    at = offset - 1
    file.seek(at)
    while at < end:
        piece = file.read(_SAMPLE)
        found = piece.find(b"\n")
        if found >= 0:
            return min(end, at + found + 1)
        if not piece:
            break
        at += len(piece)
    return end


def _last_end(file: IO[bytes], start: int, size: int) -> int:
    """Return the offset after the last complete line; the last one needs no line end if it is a
    complete object, or too long to be one.
    """
    at, tail = size, b""
    while at > start and b"\n" not in tail and len(tail) < _LONGEST:
        piece = min(_SAMPLE, at - start)
        at -= piece
        file.seek(at)
        tail = file.read(piece) + tail
    rest = tail[tail.rfind(b"\n") + 1 :]
    return size if len(rest) >= _LONGEST or _is_object(rest) else size - len(rest)


JSONL = SourceKind(
    "jsonl",
    JsonLinesOptions,
    JsonLinesSource,
    "A file of updates, one JSON object per line, followed as it grows.",
    names_streams=True,
)
