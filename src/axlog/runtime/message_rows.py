"""Messages as rows: the updates of a source, in the columns of Spark's tasks.

A message that cannot be a row (an invalid time, an unpaired surrogate in its text, a date too far
ahead) becomes a row with the action `refused` and the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, TypeAlias

import pyarrow as pa

from axlog.connect.protocol import Reading, Refusal
from axlog.connect.sources.insert_columns import InPieces, InsertColumns, Piece, Pieces
from axlog.document.clock_bounds import Horizon
from axlog.document.parser import is_encodable
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.errors import AxlogError
from axlog.runtime.order import PARTITIONS_APART
from axlog.runtime.plain_route import FAR

MESSAGES = (
    "source int, stream string, action string, content binary, time bigint, number bigint,"
    " origin string, document string, error string, partition int, row bigint"
)
SCHEMA = pa.schema(
    [
        ("source", pa.int32()),
        ("stream", pa.string()),
        ("action", pa.string()),
        ("content", pa.binary()),
        ("time", pa.int64()),
        ("number", pa.int64()),
        ("origin", pa.string()),
        ("document", pa.string()),
        ("error", pa.string()),
        ("partition", pa.int32()),
        ("row", pa.int64()),
    ]
)
Values: TypeAlias = tuple[Any, ...]
"""One message, in the order of `MESSAGES`."""
MARK = b"\xef\xbb\xbf"
"""A byte order mark: the text is UTF-8, whatever it declares."""


def rows_of(
    reading: Reading, index: int, number: int, horizon: Horizon | None = None
) -> Iterator[Values]:
    """Yield the rows of a range: its updates, then the rejected inputs, each with its number."""
    updates = reading.updates
    if isinstance(updates, Pieces):
        for rows in rows_of_pieces(updates.pieces, index, number, horizon):
            yield from rows
    else:
        partitions = reading.partitions or (None,) * len(updates)
        for at, (partition, update) in enumerate(zip(partitions, updates, strict=True), number):
            yield _row(update, index, at, partition, horizon)
    yield from refused_rows(reading.refused, index, number + len(updates))


def rows_in_pieces(
    source: InPieces, work: Any, index: int, number: int, horizon: Horizon | None = None
) -> Iterator[list[Values]]:
    """Yield the rows that `rows_of` yields for a part, piece by piece."""
    refused: list[Refusal] = []
    for rows in rows_of_pieces(source.pieces(work, refused), index, number, horizon):
        if piece := list(rows):
            number += len(piece)
            yield piece
    if refused:
        yield list(refused_rows(refused, index, number))


def rows_of_pieces(
    pieces: Iterable[Piece], index: int, number: int, horizon: Horizon | None
) -> Iterator[Iterable[Values]]:
    """Yield the rows of each piece of a sequence, some of which are columns."""
    for piece in pieces:
        if isinstance(piece, InsertColumns) and not _are_bounded(piece, horizon):
            contents: Sequence[bytes] = piece.contents
            if any(content.startswith(b"<?xml") for content in contents):
                contents = [_marked(content) for content in contents]
            nothing = repeat(None)
            yield zip(
                repeat(index), piece.streams, repeat("insert"), contents, piece.times,
                range(number, number + len(piece)), piece.origins,
                nothing, nothing, nothing, nothing,
            )  # fmt: skip
        else:
            updates = piece if isinstance(piece, list) else piece.updates()
            yield [_row(each, index, at, None, horizon) for at, each in enumerate(updates, number)]
        number += len(piece)


def refused_rows(refused: Iterable[Refusal], index: int, number: int) -> Iterator[Values]:
    """Yield the rows of rejected inputs."""
    for at, refusal in enumerate(refused, number):
        stream, content, origin = whole(refusal.stream), encoded(refusal.content), refusal.origin
        error = whole(refusal.error)
        yield (index, stream, "refused", content, None, at, origin, None, error, None, None)


def _are_bounded(columns: InsertColumns, horizon: Horizon | None) -> bool:
    """Whether the numbers of a time may be too far ahead in one of the streams."""
    return horizon is not None and any(map(horizon.bounds_numbers, set(columns.streams)))


def _row(
    update: StreamUpdate,
    index: int,
    number: int,
    partition: int | None,
    horizon: Horizon | None,
) -> Values:
    action, time, error = update.action, None, None
    stream, content = update.stream, update.content
    try:
        content = text_bytes(content) if isinstance(content, str) else content
        stream.encode()
        time = None if update.at is None else microseconds(update.at)
        if time is not None and not -FAR < time < FAR:
            raise OverflowError(f"{time} microseconds are out of range for a time")
        if horizon is not None:
            horizon.check(stream, update.at)
    except (AxlogError, OverflowError, UnicodeEncodeError) as refusal:
        action, time, error = "refused", None, whole(str(refusal))
        stream, content = whole(update.stream), encoded(update.content)
    # Messages of one partition with equal time and stream are adjacent.
    number += PARTITIONS_APART * (partition or 0)
    origin = update.origin
    return (index, stream, action, content, time, number, origin, None, error, partition, None)


def text_bytes(text: str) -> bytes:
    """Return a text as bytes; its declared encoding is overridden."""
    return _marked(text.encode())


def _marked(content: bytes) -> bytes:
    return MARK + content if content.startswith(b"<?xml") else content


def encoded(content: str | bytes) -> bytes:
    """Return content as bytes, with unpaired surrogates as question marks."""
    return content if isinstance(content, bytes) else content.encode("utf-8", "replace")


def whole(text: str) -> str:
    """Return a text without unpaired surrogates."""
    return text if is_encodable(text) else encoded(text).decode()


def record_batch(rows: Sequence[Values]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
