"""A web server's access log as a stream of calls: common and combined format.

    <in-call><caller>83.149.9.216</caller><time>2015-05-17T10:05:03+00:00</time>
      <method>GET</method><path>/images/a.png</path><protocol>HTTP/1.1</protocol>
      <status>200</status><bytes>203023</bytes><referrer>...</referrer><agent>...</agent></in-call>

A request that reached the server is an in-call. A request for an absolute address (`GET
http://other/...`, `CONNECT other:443`), as in the log of a proxy, is an out-call, with its
`callee`. `calls:` selects one of the two.

The log is followed across rotation, like `tail -F`. A position is the file's identity (its inode
and first bytes) and an offset. A renamed file (`access.log.1`) is read to its end before the new
one is started. A truncated file is read from its beginning. A file that was removed before it was
read to its end is reported as a dead letter, once.

Lines are written when a request ends but contain its start time, so times may decrease. `time:
monotone` (the default) never goes back behind the latest time seen; `time: line` uses the time of
the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import urlsplit

from lxml import etree
from pydantic import Field

from axlog.connect.kinds import LocalPath, Options, Origin, SourceKind
from axlog.connect.protocol import Position, Reading, Refusal
from axlog.connect.sources.poller import element, stream_of
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ConnectorError

_TEXT = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(
    r"(\S+) (\S+) (.+?) \[([^\]]+)\] "
    + _TEXT
    + r" (\d{3}|-) (\d+|-)(?: "
    + _TEXT
    + " "
    + _TEXT
    + ")?"
)
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "v": "\v", "f": "\f"}
_LONGEST = 1 << 20
_FIRST = 256  # bytes that distinguish logs with the same inode


class AccessLogOptions(Options):
    """Options of `access-log`."""

    path: LocalPath = Field(description="The log file; rotated files are found beside it.")
    calls: Literal["in", "out", "all"] = Field(default="all", description="The calls to report.")
    time: Literal["monotone", "line"] = Field(
        default="monotone", description="Whether times may decrease as in the log."
    )
    start: Literal["beginning", "end"] = Field(
        default="beginning", description="Where to start in a log that was never read."
    )


@dataclass(frozen=True, slots=True)
class Call:
    """A parsed line of a log."""

    name: str  # in-call or out-call
    time: datetime
    fields: dict[str, Any]

    def xml(self) -> str:
        return etree.tostring(element(self.name, self.fields), encoding="unicode")


def read_call(line: str) -> Call:
    """Parse a line of a log.

    >>> read_call('::1 - ann [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 17').fields["user"]
    'ann'
    """
    matched = _LINE.fullmatch(line.strip())
    if matched is None:
        raise _refused(line)
    host, identity, user, written, request, status, size, referrer, agent = matched.groups()
    try:
        time = datetime.strptime(written, "%d/%b/%Y:%H:%M:%S %z")
    except ValueError:
        raise _refused(line) from None
    request = _unescaped(request)
    method, _, rest = request.partition(" ")
    target, _, protocol = rest.rpartition(" ") if " " in rest else (rest, "", "")
    is_request = bool(target) and method.isalpha()
    callee = _callee(method, target) if is_request else None
    fields = {
        "caller": host,
        "callee": callee,
        "identity": _known(identity),
        "user": _known(user),
        "time": time.isoformat(),
        "method": method if is_request else None,
        "path": target if is_request else None,
        "protocol": protocol if is_request else None,
        "request": None if is_request else request,
        "status": _known(status),
        "bytes": "0" if size == "-" else size,
        "referrer": _known(_unescaped(referrer)),
        "agent": _known(_unescaped(agent)),
    }
    return Call("out-call" if callee else "in-call", time, fields)


def _callee(method: str, target: str) -> str | None:
    """Return the other server, if a request goes to one."""
    if method == "CONNECT":
        return target
    if "://" not in target[:10]:
        return None
    try:
        return urlsplit(target).netloc or None
    except ValueError:
        return None


def _known(value: str | None) -> str | None:
    return None if value in (None, "-", "") else value


def _unescaped(text: str | None) -> str:
    """Unescape the backslashes that the server wrote."""

    def one(matched: re.Match[str]) -> str:
        escape = matched[1]
        if escape[0] == "x" and len(escape) == 3:
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(one, text or "")


def _refused(line: str) -> ConnectorError:
    return ConnectorError(
        "AX832",
        f"not a line of an access log: {line[:200]!r}",
        expected='HOST IDENTITY USER [TIME] "REQUEST" STATUS BYTES "REFERRER" "AGENT"',
    )


@dataclass(slots=True)
class _Place:
    """A position: a file, an offset in it, and the latest time seen."""

    file: int = 0  # its inode
    first: str = ""  # digest of its first `length` bytes
    length: int = 0
    offset: int = 0
    line: int = 0
    latest: float = 0.0

    def is_of(self, file: IO[bytes], number: int) -> bool:
        """Whether this is the file of the position, unchanged or longer."""
        if number != self.file:
            return False
        return self.length == 0 or _first(file, self.length) == self.first


def _first(file: IO[bytes], length: int) -> str:
    file.seek(0)
    return blake2b(file.read(length), digest_size=8).hexdigest()


class AccessLog:
    """A log that is followed."""

    def __init__(self, options: AccessLogOptions, origin: Origin) -> None:
        self.stream = stream_of(origin, "an access log")
        self.path = origin.path(options.path)
        self.options = options
        self._was_missing = False  # all lines of a log that appears later are new

    def read(self, position: Position, limit: int) -> Reading:
        """Return the lines after a position, across any number of rotated files."""
        place = _Place() if position is None else _Place(**position)
        if position is None and self.options.start == "end" and not self._was_missing:
            self._to_end(place)
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        for path in self._files(place, refused):
            more = self._read_file(path, place, limit, updates, refused)
            if more:
                return Reading(updates, asdict(place), refused, more=True)
        return Reading(updates, asdict(place), refused)

    def close(self) -> None:
        """Nothing stays open between readings."""

    def _to_end(self, place: _Place) -> None:
        if self.path.exists():
            with self.path.open("rb") as file:
                self._begin(place, file, self.path.stat().st_ino)
                place.offset = _last_line_end(file)

    def _begin(self, place: _Place, file: IO[bytes], number: int) -> None:
        place.file, place.offset, place.line, place.length, place.first = number, 0, 0, 0, ""

    def _files(self, place: _Place, refused: list[Refusal]) -> Iterator[Path]:
        """Return the file of the position, wherever it is now, and the files after it."""
        found = self._known_files()
        if place.file == 0 and self.path not in found:
            self._was_missing = True
            raise ConnectorError(
                "AX858",
                f"{self.path}: No such file or directory",
                advice="check `path`; an empty file is sufficient",
            )
        if place.file == 0:
            yield from (path for path in found if path == self.path)
            return
        for at, path in enumerate(found):
            with path.open("rb") as file:
                if place.is_of(file, path.stat().st_ino):
                    yield from found[at:]
                    return
        current = [path for path in found if path == self.path]
        if not current:
            return  # renamed, and the new file does not exist yet
        if place.file != self.path.stat().st_ino and place.offset:
            lost = ConnectorError(
                "AX858",
                f"the log that was read up to byte {place.offset} no longer exists",
                advice="keep rotated logs beside the log until they have been read",
            )
            refused.append(Refusal(self.stream, "", str(self.path), lost.describe()))
        place.file = 0
        yield self.path

    def _known_files(self) -> list[Path]:
        """Return the rotated logs, the oldest first, and the log itself last."""
        name = self.path.name
        try:
            beside = [
                path
                for path in self.path.parent.iterdir()
                if path.name.startswith(f"{name}.") or path.name.startswith(f"{name}-")
                if path.suffix not in (".gz", ".bz2", ".xz", ".zst") and path.is_file()
            ]
            beside.sort(key=lambda path: path.stat().st_mtime_ns)
        except OSError as error:
            raise ConnectorError("AX858", f"{self.path}: {error.strerror or error}") from error
        return [*beside, *([self.path] if self.path.exists() else [])]

    def _read_file(
        self,
        path: Path,
        place: _Place,
        limit: int,
        updates: list[StreamUpdate],
        refused: list[Refusal],
    ) -> bool:
        """Continue reading a file; return whether the limit was reached before its end."""
        with path.open("rb") as file:
            number = path.stat().st_ino
            size = file.seek(0, 2)
            if not place.is_of(file, number) or size < place.offset:
                self._begin(place, file, number)
            file.seek(place.offset)
            while len(updates) + len(refused) < limit:
                line = file.readline(_LONGEST)
                is_whole = line.endswith(b"\n") or len(line) == _LONGEST
                if not is_whole and not (line and path != self.path):
                    break  # the end, or a line that is still being written
                place.offset += len(line)
                place.line += 1
                self._take(line, f"{path.name}:{place.line}", place, updates, refused)
            if place.length < _FIRST:
                place.length = min(place.offset, _FIRST)
                place.first = _first(file, place.length)
            return place.offset < size and len(updates) + len(refused) >= limit

    def _take(
        self,
        line: bytes,
        origin: str,
        place: _Place,
        updates: list[StreamUpdate],
        refused: list[Refusal],
    ) -> None:
        text = line.decode("utf-8", "replace")
        if not text.strip():
            return
        try:
            call = read_call(text)
        except ConnectorError as error:
            refused.append(Refusal(self.stream, line, origin, error.describe()))
            return
        at = call.time.timestamp()
        place.latest = max(place.latest, at)
        if self.options.time == "monotone":
            at = place.latest
        if self.options.calls in ("all", call.name.partition("-")[0]):
            updates.append(StreamUpdate(self.stream, "insert", call.xml(), at, origin))


def _last_line_end(file: IO[bytes]) -> int:
    """The offset after the last complete line."""
    size = file.seek(0, 2)
    start = max(0, size - _LONGEST)
    file.seek(start)
    return start + file.read().rfind(b"\n") + 1


ACCESS_LOG = SourceKind(
    "access-log", AccessLogOptions, AccessLog, "A web server's access log, followed as it rotates."
)
