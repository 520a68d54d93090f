"""`shred`: XML to the node table, in parallel.

Files are distributed to tasks: a small file is one piece of work; a large one is split at its
records (`document/splitter.py`) if a record element is named. Tasks open files by path, so on a
cluster the files must be on a file system that all machines can reach. Documents from elsewhere are
passed as a DataFrame with the columns `document` and `xml`.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from axlog.document.loader import load
from axlog.document.node_table import NODES, NodeRow, rows_of
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.document.splitter import Piece, can_split, split
from axlog.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LARGE = 8 << 20
"""Minimum size in bytes of a file that is split."""

_BATCH = 65_536
_SPINE = 10_000
"""Nodes of a spine in one piece of work."""
_SCHEMA = pa.schema(
    [
        ("document", pa.string()),
        ("id", pa.binary()),
        ("parent", pa.binary()),
        ("label", pa.string()),
        ("kind", pa.string()),
        ("value", pa.string()),
    ]
)


def shred(
    spark: SparkSession,
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | DataFrame,
    record: str | Sequence[str] | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    large: int = LARGE,
) -> DataFrame:
    """Return the node table of documents: files, directories, glob patterns, or a DataFrame.

    `record` names the element, or elements, (as written) at which files of `large` bytes and more
    are split; without it, one task reads each document. Nodes outside of all records pass through
    the driver. A document's key is its path.
    """
    from pyspark.sql import DataFrame

    if isinstance(source, DataFrame):
        return source.select("document", "xml").mapInArrow(_shred_texts(limits), NODES)
    records = [record] if isinstance(record, str) else list(record or ())
    work = [one for path in _paths(source) for one in _work(path, records, limits, large)]
    tasks = spark.createDataFrame([(json.dumps(one),) for one in work], "work string")
    parallel = max(1, min(len(work), 4 * spark.sparkContext.defaultParallelism))
    return tasks.repartition(parallel).mapInArrow(_shred_work(limits), NODES)


def _paths(source: Any) -> list[Path]:
    """Return the matching files, each once, in order."""
    found: dict[Path, None] = {}
    for one in source if isinstance(source, list | tuple) else [source]:
        path = Path(one)
        if path.is_dir():
            found.update(dict.fromkeys(p for p in sorted(path.rglob("*.xml")) if p.is_file()))
        elif has_magic(str(one)):
            start = path.anchor or "."
            matched = Path(start).glob(str(path.relative_to(path.anchor)))
            found.update(dict.fromkeys(sorted(p for p in matched if p.is_file())))
        elif path.is_file():
            found[path] = None
        else:
            raise InputError("AX102", f"{str(path)!r}: there is no such file or directory")
    return list(found)


def _work(
    path: Path, records: Sequence[str], limits: Limits, large: int
) -> Iterator[dict[str, Any]]:
    """Return the pieces of work of one file: the whole file, or parts of a spine and pieces."""
    whole = {"document": str(path), "path": str(path.absolute())}
    if not records or path.stat().st_size < large:
        yield whole
        return
    data = path.read_bytes()
    if not can_split(data):
        yield whole
        return
    cut = split(data, records, limits)
    for at in range(0, len(cut.spine), _SPINE):
        part = cut.spine[at : at + _SPINE]
        yield {"document": str(path), "spine": [_plain(row) for row in part]}
    for piece in cut.pieces:
        yield {**whole, "piece": _packed(piece)}


def _plain(row: NodeRow) -> list[Any]:
    return [b64encode(row.id).decode(), b64encode(row.parent).decode(), *row[2:]]


def _packed(piece: Piece) -> dict[str, Any]:
    return {
        "spans": piece.spans,
        "keys": [b64encode(key).decode() for key in piece.keys],
        "parent": b64encode(piece.parent).decode(),
        "opening": piece.opening,
        "encoding": piece.encoding,
    }


def _unpacked(packed: dict[str, Any]) -> Piece:
    return Piece(
        tuple((a, b) for a, b in packed["spans"]),
        tuple(b64decode(key) for key in packed["keys"]),
        b64decode(packed["parent"]),
        packed["opening"],
        packed["encoding"],
    )


def _shred_work(limits: Limits) -> Any:
    def shred_work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                work = json.loads(text)
                yield from _batches(work["document"], _rows(work, limits))

    return shred_work


def _rows(work: dict[str, Any], limits: Limits) -> Iterator[NodeRow]:
    if "spine" in work:
        rows = ((b64decode(i), b64decode(p), *rest) for i, p, *rest in work["spine"])
        return (NodeRow(*row) for row in rows)
    path = Path(work["path"])
    if "piece" not in work:
        return rows_of(load(path, limits=limits))
    piece = _unpacked(work["piece"])
    start, end = piece.spans[0][0], piece.spans[-1][1]
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(end - start)
    return piece.rows(data, start, limits)


def _shred_texts(limits: Limits) -> Any:
    def shred_texts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for document, xml in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                yield from _batches(str(document), rows_of(load(xml, limits=limits)))

    return shred_texts


def _batches(document: str, rows: Iterator[NodeRow]) -> Iterator[pa.RecordBatch]:
    """Yield rows in column batches."""
    waiting: list[NodeRow] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == _BATCH:
            yield _batch(document, waiting)
            waiting = []
    if waiting:
        yield _batch(document, waiting)


def _batch(document: str, rows: list[NodeRow]) -> pa.RecordBatch:
    columns = [[document] * len(rows), *map(list, zip(*rows, strict=True))]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
