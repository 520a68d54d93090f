"""Lines of JSON that are insertions with a time, read together into columns.

Most lines of a file of updates are `{"stream": ..., "insert": XML, "at": SECONDS}`. Arrow reads a
piece of such lines in a third of the time that `json` takes for each, and their times become
microseconds together. A piece with any other line (another action, a date, an error) is left to
the parser of single lines.

Law: the updates are those of the parser of single lines.

Not handled: lines that end with a carriage return, and Python without Arrow: they take the other
path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, overload, runtime_checkable

import numpy as np

from axlog.connect.protocol import Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import exact_microseconds

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LINE_END, _OPEN, _CLOSE = b"\n{}"
FEWEST = 32
"""Lines below which a piece takes the other path: Arrow has a fixed cost."""


@dataclass(frozen=True, slots=True)
class InsertColumns:
    """Consecutive insertions with a time."""

    streams: Sequence[str]
    contents: Sequence[bytes]
    times: Sequence[int]  # microseconds
    given: Sequence[float]  # the times as they were written
    origins: Sequence[str]

    def __len__(self) -> int:
        return len(self.times)

    def updates(self) -> Iterator[StreamUpdate]:
        """Yield them one by one."""
        columns = self.streams, self.contents, self.given, self.origins
        for stream, content, at, origin in zip(*columns, strict=True):
            yield StreamUpdate(stream, "insert", content.decode(), at, origin)


Piece: TypeAlias = list[StreamUpdate] | InsertColumns


@runtime_checkable
class InPieces(Protocol):
    """A planned source whose parts can be read piece by piece, so that few messages are in memory
    at a time.
    """

    def pieces(self, work: Any, refused: list[Refusal]) -> Iterator[Piece]:
        """Yield the updates that `fetch` returns; append what is refused."""


class Pieces(Sequence[StreamUpdate]):
    """The updates of a range in order, some of them as columns."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.pieces = list(pieces)

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def __iter__(self) -> Iterator[StreamUpdate]:
        for piece in self.pieces:
            yield from piece if isinstance(piece, list) else piece.updates()

    @overload
    def __getitem__(self, at: int) -> StreamUpdate: ...
    @overload
    def __getitem__(self, at: slice) -> list[StreamUpdate]: ...
    def __getitem__(self, at: int | slice) -> StreamUpdate | list[StreamUpdate]:
        return list(self)[at]


def insert_columns(
    lines: bytes, stream: str | None, name: str, offset: int
) -> InsertColumns | None:
    """Return the insertions that whole lines are; None if one of them is anything else.

    `stream` is that of lines without one; `offset` the place of the first line, for origins.
    """
    ends = _ends(lines)
    if ends is None or b"\0" in lines or (b"\\" in lines and _SURROGATE.search(lines)):
        return None
    try:
        _ = lines.isascii() or lines.decode()
    except UnicodeDecodeError:
        return None
    columns = _columns(lines)
    if columns is None or len(columns[0]) != len(ends):
        return None
    named, inserted, at = columns
    if inserted.null_count or at.null_count:
        return None
    streams = _streams(named, stream, lines)
    given = at.to_numpy()
    times = exact_microseconds(given)
    if streams is None or times is None:
        return None
    starts = [offset, *(ends[:-1] + (offset + 1)).tolist()]
    return InsertColumns(
        streams, inserted.to_pylist(), times.tolist(), given.tolist(),
        [f"{name}@{start}" for start in starts],
    )  # fmt: skip


def _ends(lines: bytes) -> Any:
    """Return the offsets of the line ends; None if a line does not look like one object."""
    written = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(written == _LINE_END)
    if len(ends) < FEWEST or ends[-1] != len(lines) - 1 or written[0] != _OPEN:
        return None
    are_objects = (written[ends - 1] == _CLOSE).all() and (written[ends[:-1] + 1] == _OPEN).all()
    return ends if are_objects else None


def _columns(lines: bytes) -> Any:
    """Return the columns `stream`, `insert`, `at` of objects; None if there is anything else."""
    try:
        import pyarrow as pa
        from pyarrow import json
    except ImportError:
        return None
    parsing, reading = _options()
    reading.block_size = len(lines) + 1  # one block, so that a line is never divided
    try:
        table = json.read_json(pa.BufferReader(lines), read_options=reading, parse_options=parsing)
    except pa.ArrowInvalid:
        return None
    stream, inserted, at = (column.combine_chunks() for column in table.columns)
    return stream, inserted.cast(pa.binary()), at


@lru_cache(maxsize=1)
def _options() -> tuple[Any, Any]:
    import pyarrow as pa
    from pyarrow import json

    schema = pa.schema([("stream", pa.string()), ("insert", pa.string()), ("at", pa.float64())])
    parsing = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    return parsing, json.ReadOptions(use_threads=False)


def _streams(named: Any, stream: str | None, lines: bytes) -> Sequence[str] | None:
    """Return the stream of each line; None if one is missing, or for another stream."""
    if stream is None:
        return None if named.null_count else named.to_pylist()
    if named.null_count and b"null" in lines:
        return None  # it may be a stream that is null
    if set(named.unique().to_pylist()) <= {stream, None}:
        return [stream] * len(named)
    return None
