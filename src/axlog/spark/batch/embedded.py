"""Views evaluated document by document where documents are read, without a shuffle.

A document is a text of a DataFrame, a file, a piece of a file (`files.py`), or the nodes of one
document in a node table. Its rows are those of the embedded engine. Where the pattern allows it,
they are found on the parsed document (`match/document_rows.py`); otherwise the document is loaded.

A file that is cut at its records is evaluated piece by piece if no row spans records
(`query/record_scope.py`). Rows that show no node may be in several pieces: their counts are added.
Pieces that the pattern does not enter are not read, so that errors in them are not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from axlog.document.ids import Id
from axlog.document.loader import load
from axlog.document.node_table import NodeRow, read_rows
from axlog.document.parser import Limits
from axlog.document.tree import Tree
from axlog.live.document import Document
from axlog.match.document_rows import DocumentRows, refusal
from axlog.query.compile import Program, compile_pattern
from axlog.query.pattern import Kind, Output, nodes_of
from axlog.query.query import Query
from axlog.query.record_scope import enters, reaches, steps_to_top
from axlog.spark.batch.files import Files, Work, bytes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Found = list[tuple[tuple[Any, ...], int]]
"""The values of each row, and its count."""
Keys = Callable[[bytes], bytes]
"""From the id of a node where it was found to its id in the document."""
_ROWS = 10_000
"""Rows of a batch that is handed on; those of one document are never divided."""


def by_groups(nodes: DataFrame, query: Query) -> DataFrame:
    """Evaluate each document of a node table in one task."""
    columns = RowColumns(query)

    def rows(table: pa.Table) -> pa.Table:
        records = table.to_pylist()
        given = [NodeRow(r["id"], r["parent"], r["label"], r["kind"], r["value"]) for r in records]
        found = columns.plain(*_on_rows(given, query))
        return pa.Table.from_batches([columns.batch([(records[0]["document"], found)])])

    return nodes.groupBy("document").applyInArrow(rows, columns.schema)


def by_texts(texts: DataFrame, query: Query, limits: Limits) -> DataFrame:
    """Evaluate the documents of the columns `document` and `xml`."""
    columns = RowColumns(query)

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        engine = _Engine(query, limits)
        for batch in batches:
            given = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            found = ((str(document), columns.plain(engine.rows(xml))) for document, xml in given)
            yield from columns.batches(found)

    return texts.select("document", "xml").mapInArrow(rows, columns.schema)


def by_files(files: Files, query: Query) -> DataFrame:
    """Evaluate files, and pieces of files, where `spans_records` gives no reason against it."""
    columns, limits = RowColumns(query), files.limits

    def rows(work: Iterable[Work]) -> Iterator[pa.RecordBatch]:
        engine = _Engine(query, limits)
        found = ((one["document"], columns.plain(*_on_work(one, engine))) for one in work)
        return columns.batches(found)

    found = _entered(files.whole_spines(), query).map(rows, columns.schema)
    return columns.added(found) if files.is_cut and not columns.has_nodes else found


def _entered(files: Files, query: Query) -> Files:
    """The same files without the pieces that no row of a query can be in: they are not read."""
    steps = steps_to_top(compile_pattern(query.pattern)) if files.is_cut else None
    if steps is None:
        return files
    found = {labels for labels in files.around_records if enters(steps, labels)}
    return replace(
        files, work=tuple(w for w in files.work if "piece" not in w or w["piece"].labels in found)
    )


def spans_records(files: Files, query: Query) -> str | None:
    """Why a query cannot be evaluated piece by piece on files; None if it can."""
    if not files.is_cut:
        return None
    if not query.is_pattern:
        return "the query is more than a pattern"
    steps = steps_to_top(compile_pattern(query.pattern))
    if steps is None:
        return "the pattern begins at the document node"
    if any(reaches(steps, labels) for labels in files.around_records):
        return "the pattern may begin at an element around records"
    return None


def _on_work(work: Work, engine: _Engine) -> tuple[Found, Keys | None]:
    if "spine" in work:
        return _on_rows(work["spine"], engine.query)
    data, piece = bytes_of(work)
    if piece is None:
        return engine.rows(data), None
    return engine.rows(piece.content(data, in_place=True)), piece.key


def _on_rows(rows: Sequence[NodeRow], query: Query) -> tuple[Found, Keys]:
    """The rows of a query on the nodes of a document, or on its nodes outside of all records."""
    tree, keys = read_rows(rows)
    ids = {tree.id(node).key: key for node, key in keys.items()}
    return _on_tree(tree, query), ids.__getitem__


def _on_tree(tree: Tree, query: Query) -> Found:
    return [(row.values_, row.count) for row in Document(tree).watch(query).rows()]


class _Engine:
    """Evaluates one query on many documents."""

    def __init__(self, query: Query, limits: Limits) -> None:
        self.query = query
        self._limits = limits
        is_direct = query.is_pattern and refusal(query.pattern) is None
        self._direct = _document_rows(query.pattern, limits) if is_direct else None

    def rows(self, xml: str | bytes) -> Found:
        found = None if self._direct is None else self._direct.of(xml)
        return _on_tree(load(xml, limits=self._limits), self.query) if found is None else found


_document_rows = lru_cache(maxsize=64)(DocumentRows)
"""Code is generated once for a process, which runs many tasks."""


class RowColumns:
    """The columns of a query's rows in Spark: the document, the outputs, the count."""

    def __init__(self, query: Query) -> None:
        program = compile_pattern(query.pattern)
        self.outputs = query.pattern.outputs
        self.collected = collected_names(program)
        self.has_nodes = any(column.endswith(".node") for column in program.root.columns)
        shown = [f"`{column_name(o)}` {self.type(o)}" for o in self.outputs]
        self.schema = ", ".join(["document string", *shown, "count bigint"])

    def type(self, output: Output) -> str:
        if output.kind is not Kind.VARIABLE and output.of in self.collected:
            return "array<string>"
        return {Kind.ID: "binary", Kind.TIME: "bigint"}.get(output.kind, "string")

    def plain(self, found: Found, keys: Keys | None = None) -> Found:
        """Rows with ids as bytes, or as texts in collected paths."""
        lists = [self.type(output) == "array<string>" for output in self.outputs]
        if not any(lists) and not any(output.kind is Kind.ID for output in self.outputs):
            return found

        def key(value: Any) -> Any:
            if not isinstance(value, Id):
                return value
            return value.key if keys is None else keys(value.key)

        return [
            (
                tuple(
                    [str(Id(key(one))) if isinstance(one, Id) else str(one) for one in value]
                    if is_list
                    else key(value)
                    for is_list, value in zip(lists, values, strict=True)
                ),
                count,
            )
            for values, count in found
        ]

    def batches(self, found: Iterable[tuple[str, Found]]) -> Iterator[pa.RecordBatch]:
        """The rows of documents in batches of some thousand."""
        waiting: list[tuple[str, Found]] = []
        size = 0
        for document, rows in found:
            waiting.append((document, rows))
            size += len(rows)
            if size >= _ROWS:
                yield self.batch(waiting)
                waiting, size = [], 0
        if size:
            yield self.batch(waiting)

    def batch(self, found: Sequence[tuple[str, Found]]) -> pa.RecordBatch:
        types = {
            "string": pa.string(), "binary": pa.binary(), "bigint": pa.int64(),
            "array<string>": pa.list_(pa.string()),
        }  # fmt: skip
        fields = [(column_name(o), types[self.type(o)]) for o in self.outputs]
        schema = pa.schema([("document", pa.string()), *fields, ("count", pa.int64())])
        values = [row for _, rows in found for row, _ in rows]
        columns: list[Any] = list(zip(*values, strict=True)) or [()] * len(fields)
        arrays = [
            [document for document, rows in found for _ in rows],
            *columns,
            [count for _, rows in found for _, count in rows],
        ]
        return pa.RecordBatch.from_arrays(
            [pa.array(one, field.type) for one, field in zip(arrays, schema, strict=True)],
            schema=schema,
        )

    def added(self, found: DataFrame) -> DataFrame:
        """Rows that are equal but for their counts as one."""
        from pyspark.sql import functions as f

        keys = ["document", *(f"`{column_name(o)}`" for o in self.outputs)]
        return found.groupBy(*keys).agg(f.sum("count").alias("count"))


def column_name(output: Output) -> str:
    """Return the name of an output's column."""
    return output.column.replace(".", "_")


def collected_names(program: Program) -> dict[str, int]:
    """Return the names inside collected paths, with the path's number."""
    return {
        node.name: number
        for number, each in enumerate(program.gathers)
        for node in nodes_of(each.node)
        if node.name is not None
    }
