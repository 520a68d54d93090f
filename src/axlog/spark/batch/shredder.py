"""`shred`: XML to the node table, in parallel.

Files are distributed to tasks, large ones in pieces (`files.py`). Documents from elsewhere are
passed as a DataFrame with the columns `document` and `xml`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from axlog.document.loader import load
from axlog.document.node_table import NODES, NodeRow, rows_of
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.spark.batch.files import LARGE, Files, Source, Work, bytes_of, files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = 65_536
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
    source: Source | Files | DataFrame,
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
    if not isinstance(source, Files):
        source = files(spark, source, record, limits=limits, large=large)
    return source.map(_shred_work(source.limits), NODES)


def _shred_work(limits: Limits) -> Any:
    def shred_work(work: Iterable[Work]) -> Iterator[pa.RecordBatch]:
        for one in work:
            yield from _batches(one["document"], _rows(one, limits))

    return shred_work


def _rows(work: Work, limits: Limits) -> Iterator[NodeRow]:
    if "spine" in work:
        return iter(work["spine"])
    data, piece = bytes_of(work)
    if piece is None:
        return rows_of(load(data, limits=limits))
    return piece.rows(data, limits)


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
