"""Files of documents as work for tasks: whole files, and pieces of large ones.

A small file is one piece of work; a large one is split at its records (`document/splitter.py`) if a
record element is named. The driver looks for the records in the bytes of a large file, and parses
only what is around them. Tasks open files by path, so on a cluster the files must be on a file
system that all machines can reach.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.document.splitter import Piece, can_split, split
from axlog.errors import InputError
from axlog.spark.session import cores_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LARGE = 8 << 20
"""Minimum size in bytes of a file that is split."""
TASKS_PER_CORE = 2
"""Each task costs about 0.1 s of processor time, most of it in Spark."""

_SPINE = 10_000
"""Nodes of a spine in one piece of work."""
Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Work = dict[str, Any]
"""A file (`path`), a part of one (`path` and `piece`), or nodes outside of all records (`spine`),
with the key of its document."""


@dataclass(frozen=True)
class Files:
    """Documents in files, for `evaluate` and `shred`."""

    spark: SparkSession
    work: tuple[Work, ...]
    limits: Limits

    @property
    def around_records(self) -> set[tuple[str, ...]]:
        """The labels of the elements around records, from the root on."""
        pieces = (one["piece"] for one in self.work if "piece" in one)
        return {piece.labels for piece in pieces}

    @property
    def is_cut(self) -> bool:
        """Whether a file is cut at its records."""
        return any("piece" in one or "spine" in one for one in self.work)

    def whole_spines(self) -> Files:
        """The same with one piece of work for all nodes outside of the records of a document."""
        spines: dict[str, list[Any]] = {}
        for one in self.work:
            spines.setdefault(one["document"], []).extend(one.get("spine", ()))
        merged = ({"document": key, "spine": rows} for key, rows in spines.items() if rows)
        return replace(self, work=(*(w for w in self.work if "spine" not in w), *merged))

    def map(
        self, rows: Callable[[Iterable[Work]], Iterator[pa.RecordBatch]], schema: str
    ) -> DataFrame:
        """A DataFrame of what tasks make of their part of the work."""
        work = self.work

        def perform(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from rows(work[number] for number in batch.column(0).to_pylist())

        cores = cores_of(self.spark)
        tasks = max(1, min(len(work), TASKS_PER_CORE * cores))
        return self.spark.range(0, len(work), 1, tasks).mapInArrow(perform, schema)


def files(
    spark: SparkSession,
    source: Source,
    record: str | Sequence[str] | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    large: int = LARGE,
) -> Files:
    """Return the documents of files, directories and glob patterns, for `evaluate`.

    `record` names the element, or elements, (as written) at which files of `large` bytes and more
    are split; without it, one task reads each document. Nodes outside of all records pass through
    the driver. A document's key is its path.
    """
    records = [record] if isinstance(record, str) else list(record or ())
    work = (one for path in _paths(source) for one in _work(path, records, limits, large))
    return Files(spark, tuple(work), limits)


def bytes_of(work: Work) -> tuple[bytes, Piece | None]:
    """The content of a file, or the bytes of a piece of one."""
    path, piece = Path(work["path"]), work.get("piece")
    if piece is None:
        return path.read_bytes(), None
    with path.open("rb") as file:
        file.seek(piece.start)
        return file.read(piece.end - piece.start), piece


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


def _work(path: Path, records: Sequence[str], limits: Limits, large: int) -> Iterator[Work]:
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
        yield {"document": str(path), "spine": cut.spine[at : at + _SPINE]}
    for piece in cut.pieces:
        yield {**whole, "piece": piece}
