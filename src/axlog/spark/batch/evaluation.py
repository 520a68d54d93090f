"""`evaluate`: the rows of a view on documents or a node table, as a DataFrame.

Documents in files (`files`) and as texts (columns `document` and `xml`) are parsed and evaluated by
the embedded engine where they are read, without a shuffle (`embedded.py`). A large file is read in
pieces; where a row of the view may span records, its node table is used.

For a node table there are two plans. `joins`: the view's program as structural joins (`joins.py`),
for documents too large for one task. `documents`: each document is rebuilt in one task and
evaluated by the embedded engine. It is used where joins do not apply (axes that do not go down,
paths collected from the document node), and is faster for many small documents.

Law: the rows and counts are those that the embedded engine gives for each document. Ids are the
binary ids of the node table; a collected path is an array of strings, with ids as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from axlog.document.ids import Id
from axlog.document.node_table import NodeRow, read_rows
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.document.serializer import serialise
from axlog.errors import QueryError
from axlog.evaluate.collected_paths import gather
from axlog.query.compile import Gather, Program, compile_pattern
from axlog.query.pattern import Kind, Output, nodes_of
from axlog.query.query import Query, parse_query
from axlog.query.rules import explain_program
from axlog.spark.batch.embedded import (
    by_files,
    by_groups,
    by_texts,
    collected_names,
    column_name,
    spans_records,
)
from axlog.spark.batch.files import Files
from axlog.spark.batch.joins import Joins, ancestors_column, safe
from axlog.spark.batch.shredder import shred

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SOURCE = {Kind.LABEL: "label", Kind.TIME: "time"}
_ROW = "struct<id:binary,parent:binary,label:string,kind:string,value:string>"
PLANS = ("joins", "documents")


def evaluate(
    nodes: DataFrame | Files,
    query: str | Query,
    *,
    plan: str | None = None,
    namespaces: Mapping[str, str] | None = None,
    language: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> DataFrame:
    """Return the rows of a query on every document, with `document` and `count`.

    `nodes` is a node table, `files(...)`, or has the columns `document` and `xml` (text or bytes):
    then each document is evaluated by the embedded engine where it is read (`limits` are those of
    parsing; files have their own).

    A column is named after its output, with `_` for `.`: `x` for `$x`, `t_id` for `t.id`.
    """
    asked = (
        query if isinstance(query, Query) else parse_query(query, dict(namespaces or {}), language)
    )
    if isinstance(nodes, Files):
        if plan is None and spans_records(nodes, asked) is None:
            return by_files(nodes, asked)
        nodes = shred(nodes.spark, nodes)
    if "xml" in nodes.columns and "parent" not in nodes.columns:
        return by_texts(nodes, asked, limits)
    chosen, _ = chosen_plan(asked, plan)
    if chosen == "documents":
        return by_groups(nodes, asked)
    return _by_joins(nodes, compile_pattern(asked.pattern))


def explain(
    query: str | Query,
    *,
    plan: str | None = None,
    namespaces: Mapping[str, str] | None = None,
    language: str | None = None,
) -> str:
    """Describe how `evaluate` would run a query."""
    asked = (
        query if isinstance(query, Query) else parse_query(query, dict(namespaces or {}), language)
    )
    chosen, reason = chosen_plan(asked, plan)
    lines = [f"batch plan  {chosen}: {reason}"]
    if chosen == "joins":
        program = compile_pattern(asked.pattern)
        lines += [
            f"  {relation.name}: {_joined(relation)}"
            for relation in program.relations
            if relation.edges or relation.choices or relation.absences
        ]
    lines += [
        "program",
        *(f"  {line}".rstrip() for line in explain_program(asked.pattern).splitlines()),
    ]
    return "\n".join(lines)


def _joined(relation: Any) -> str:
    """Describe the joins of a relation."""
    ways = {
        "child": "on the parent's id",
        "attribute": "on the parent's id",
        "self": "on the node's id",
        "descendant": "on each ancestor's id, made from the id",
        "descendant-or-self": "on the id and each ancestor's",
    }
    parts = [f"{edge.relation.name} {ways[edge.axis.value]}" for edge in relation.edges]
    parts += ["a union of distinct rows (or)" for _ in relation.choices]
    parts += ["an anti-join (not)" for _ in relation.absences]
    return ", ".join(parts)


def chosen_plan(query: Query, plan: str | None = None) -> tuple[str, str]:
    """Return the plan for a query and its reason."""
    program = compile_pattern(query.only_pattern)
    reason = program.refusal
    if reason is None and any(not _stays_below(each) for each in program.gathers):
        reason = "a path is collected from the document node, or leaves its node"
    if plan not in (None, *PLANS):
        raise QueryError("AX211", f"there is no plan {plan!r}", expected=" or ".join(PLANS))
    if plan == "joins" and reason is not None:
        raise QueryError("AX211", f"no plan by joins: {reason}", advice="plan='documents'")
    if plan is not None:
        return plan, "as asked"
    if reason is not None:
        return "documents", reason
    return "joins", "every step is an equality of ids"


def _stays_below(each: Gather) -> bool:
    return each.anchor is not None and all(node.axis.is_downward for node in nodes_of(each.node))


# By joins ---------------------------------------------------------------------------------------


def _by_joins(nodes: DataFrame, program: Program) -> DataFrame:
    from pyspark.sql import functions as f

    joins = Joins(nodes)
    rows = joins.answers(program.root)
    collected = collected_names(program)
    shown: list[Any] = [f.col("document_").alias("document")]
    for number, output in enumerate(program.pattern.outputs):
        fresh = f"shown{number}_"
        if output.kind is Kind.VARIABLE:
            column = f.col(safe(f"${output.of}"))
        elif output.of in collected:
            each = program.gathers[collected[output.of]]
            at = safe(str(each.anchor))
            rows = _join_contents(nodes, rows, at, fresh, _gathering(each, output), "array<string>")
            column = f.col(fresh)
        elif output.kind is Kind.VAL:
            rows = _join_values(joins, rows, safe(f"{output.of}.node"), fresh)
            column = f.col(fresh)
        elif output.kind is Kind.CONT:
            rows = _join_contents(nodes, rows, safe(f"{output.of}.node"), fresh, _content, "string")
            column = f.col(fresh)
        else:
            column = f.col(safe(f"{output.of}.{_SOURCE.get(output.kind, 'node')}"))
        shown.append(column.alias(column_name(output)))
    return rows.select(*shown, f.col("n").alias("count"))


def with_shown(nodes: DataFrame, rows: DataFrame, at: str, fresh: str, kind: Kind) -> DataFrame:
    """Return rows (of `document_`) with the value or content of the node that a column names."""
    if kind is Kind.VAL:
        return _join_values(Joins(nodes), rows, at, fresh)
    return _join_contents(nodes, rows, at, fresh, _content, "string")


def _join_values(joins: Joins, rows: DataFrame, at: str, fresh: str) -> DataFrame:
    """Return rows with the string values of one of their nodes."""
    from pyspark.sql import functions as f

    wanted = rows.select(f.col("document_").alias("document"), f.col(at).alias("id")).distinct()
    valued = joins.with_values(joins.nodes.join(wanted, ["document", "id"], "left_semi"))
    found = valued.select(
        f.col("document").alias("document_"), f.col("id").alias(at), f.col("value").alias(fresh)
    )
    return rows.join(found, ["document_", at])


def _join_contents(
    nodes: DataFrame, rows: DataFrame, at: str, fresh: str, show: Any, result: str
) -> DataFrame:
    """Return rows with a value computed from the subtree of one of their nodes."""
    from pyspark.sql import functions as f

    wanted = rows.select(f.col("document_").alias("document"), f.col(at).alias("top_")).distinct()
    keys = f.concat(ancestors_column()(f.col("id")), f.array("id"))
    below = nodes.withColumn("top_", f.explode(keys)).join(wanted, ["document", "top_"])
    one = f.struct("id", "parent", "label", "kind", "value")
    shown = f.udf(show, result, useArrow=False)
    found = below.groupBy("document", "top_").agg(f.collect_list(one).alias("rows_"))
    made = found.select(
        f.col("document").alias("document_"), f.col("top_").alias(at),
        shown(f.col("rows_").cast(f"array<{_ROW}>")).alias(fresh),
    )  # fmt: skip
    return rows.join(made, ["document_", at])


def _node_rows(rows: Any) -> list[NodeRow]:
    made = (NodeRow(bytes(r[0]), bytes(r[1]), r[2], r[3], r[4]) for r in rows)
    return sorted(made)


def _content(rows: Any) -> str:
    """Return `cont` of the node whose subtree the rows are."""
    ordered = _node_rows(rows)
    top = ordered[0]
    if top.kind == "comment":
        return f"<!--{top.value or ''}-->"
    if top.kind == "instruction":
        return f"<?{top.value or ''}?>"
    if top.kind != "element":
        return top.value or ""
    tree, _ = read_rows(_on_top(ordered))
    return serialise(tree, tree.root)


def _on_top(ordered: list[NodeRow]) -> list[NodeRow]:
    """Return a subtree's rows as those of a document: its top has no parent."""
    return [ordered[0]._replace(parent=b""), *ordered[1:]]


def _gathering(each: Gather, output: Output) -> Any:
    path, of, kind = each.node, output.of, output.kind

    def gathered(rows: Any) -> list[str]:
        ordered = _node_rows(rows)
        if ordered[0].kind != "element":
            return []
        tree, keys = read_rows(_on_top(ordered))
        found = gather(tree, path, tree.root).get(of, ())
        return [_of_node(tree, node, kind, keys) for node in found]

    return gathered


def _of_node(tree: Any, node: int, kind: Kind, keys: dict[int, bytes]) -> str:
    match kind:
        case Kind.ID:
            return str(Id(keys[node]))
        case Kind.VAL:
            return str(tree.string_value(node))
        case Kind.CONT:
            return serialise(tree, node)
        case Kind.TIME:
            return str(tree.time(node))
        case _:
            return str(tree.label(node))
