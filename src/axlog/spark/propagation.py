"""`propagate`: a materialised view table maintained by the terms of the algebra, over delta
DataFrames.

The terms are those of `views/algebraic`: each pattern node is bound to the rows of the node table
that stay (R), or to those of the delta. Insertions add the terms with some Δ+, deletions subtract
those with some Δ-, and every term counts once. Two rules prune the terms, the second with
one small job over the delta. A term is the structural joins of `spark/batch/joins.py`, with the
relations of its Δ nodes read from the delta.

    stays, delta = differences(before, after)       # two node tables of the same documents
    view = propagate(view, stays, delta, query)

Law: propagate(evaluate(before), *differences(before, after)) == evaluate(after), counts included.

Values and contents in rows are updated by id (PIMT, PDMT): a row keeps its value unless the delta
is in or below its node; then only that node's subtree is read again. So a row with a value or
content must show the node's id too.

Nodes whose `or` or `not` the update changes are restated (`restatement.py`): the conditions of a
term are evaluated on the whole table before or after, by the term's sign.

Declined: what the algebra declines, collected paths, times, and comparisons with values of elements
outside `or` and `not`, which change without the element; use `evaluate` for those. (Paper 5,
sections 3.1 and 4.1; propositions 3.3, 4.2 and 3.6.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from axlog.errors import QueryError
from axlog.query.compile import Relation, compile_pattern
from axlog.query.pattern import AnyText, Axis, Kind, Literal, Pattern
from axlog.query.query import Query, parse_query
from axlog.spark.batch.embedded import column_name
from axlog.spark.batch.evaluation import with_shown
from axlog.spark.batch.joins import Joins, ancestors_column, safe
from axlog.spark.restatement import refuses, restated
from axlog.views.algebraic.shape import ROOT, Shape, ShapeNode, refusal, shape_of
from axlog.views.algebraic.terms import ALL, Facts, Term, judged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMNS = ["document", "id", "parent", "label", "kind", "value"]
_SHOWN = (Kind.ID, Kind.LABEL, Kind.VARIABLE)
_READ = (Kind.VAL, Kind.CONT)
# no reverse index here, and ids are not collected on the driver
_RULES = ALL - {"stored", "above"}


def propagate(
    view: DataFrame,
    stays: DataFrame,
    delta: DataFrame,
    query: str | Query,
    *,
    namespaces: Mapping[str, str] | None = None,
    language: str | None = None,
) -> DataFrame:
    """Return the view table after an update: `document`, the outputs as in `evaluate`, `count`.

    `stays` is the node table of the unchanged nodes. `delta` is that of the inserted and deleted
    nodes, with a column `sign`; it contains whole subtrees, as `differences` returns them.
    """
    from pyspark.sql import functions as f

    asked = (
        query if isinstance(query, Query) else parse_query(query, dict(namespaces or {}), language)
    )
    pattern = asked.only_pattern
    reason = declines(pattern)
    if reason is not None:
        raise QueryError("AX211", f"no propagation: {reason}", advice="evaluate the view again")
    known = _without_values(pattern)
    keys = ["document", *(column_name(output) for output in known.outputs)]
    still, moved = restated(stays, delta, shape_of(known))
    signed = [_rows_of_term(term, still, moved) for term in terms_left(moved, known)]
    whole = reduce(lambda a, b: a.unionByName(b), signed, view.select(*keys, "count"))
    rows = whole.groupBy(*keys).agg(f.sum("count").alias("count")).where("count > 0")
    return rows if known is pattern else _with_values(rows, view, stays, delta, pattern)


def _without_values(pattern: Pattern) -> Pattern:
    """Return a pattern whose rows show only their keys."""
    outputs = tuple(output for output in pattern.outputs if output.kind not in _READ)
    return pattern if len(outputs) == len(pattern.outputs) else replace(pattern, outputs=outputs)


def _with_values(
    rows: DataFrame, view: DataFrame, stays: DataFrame, delta: DataFrame, pattern: Pattern
) -> DataFrame:
    """Return rows with values and contents: unchanged, or read again where the delta touches
    them.
    """
    from pyspark.sql import functions as f

    keys = [column for column in rows.columns if column != "count"]
    columns = ["document", *(column_name(output) for output in pattern.outputs), "count"]
    read = [output for output in pattern.outputs if output.kind in _READ]
    ids = {output.of: column_name(output) for output in pattern.outputs if output.kind is Kind.ID}
    above = f.concat(ancestors_column()(f.col("id")), f.array("id"))
    touched = delta.select("document", f.explode(above).alias("id")).distinct()
    kept = rows.join(view.drop("count"), keys)
    for at in {ids[output.of] for output in read}:
        kept = kept.join(touched.withColumnRenamed("id", at), ["document", at], "left_anti")
    again = rows.join(kept.select(*keys), keys, "left_anti")
    nodes = stays.select(*_COLUMNS).unionByName(delta.where(f.col("sign") == 1).select(*_COLUMNS))
    again = again.withColumn("document_", f.col("document"))
    for output in read:
        again = with_shown(nodes, again, ids[output.of], column_name(output), output.kind)
    return kept.select(*columns).unionByName(again.select(*columns))


def terms_left(delta: DataFrame, pattern: Pattern) -> list[Term]:
    """Return the terms to evaluate, after one job that finds the pattern nodes that the delta
    matches.
    """
    from pyspark.sql import functions as f

    shape = shape_of(pattern)
    joins = Joins(delta)
    matches = [
        f.max(joins.passes(node.step).cast("int")).alias(f"p{node.number}")
        for node in shape.nodes[1:]
    ]
    found = {row["sign"]: row for row in delta.groupBy("sign").agg(*matches).collect()}
    everything = frozenset(range(1, len(shape.nodes)))
    left: list[Term] = []
    for sign, row in found.items():
        matched = frozenset(number for number in everything if row[f"p{number}"])
        every = judged(shape, sign, Facts(matched, everything), _RULES)
        left += [one for one in every if isinstance(one, Term)]
    return left


def declines(pattern: Pattern) -> str | None:
    """Return why a pattern cannot be propagated here, or None."""
    reason = refusal(pattern)
    if reason is not None:
        return reason
    if any(output.kind not in (*_SHOWN, *_READ) for output in pattern.outputs):
        return "rows show times"
    identified = {output.of for output in pattern.outputs if output.kind is Kind.ID}
    if any(output.kind in _READ and output.of not in identified for output in pattern.outputs):
        return "rows show values or contents without the ids of their nodes"
    shape = shape_of(pattern)
    if shape.times or any(node.collects for node in shape.nodes):
        return "it has collected paths or times"
    if any(node.step.comparisons and not _has_own_value(node) for node in shape.nodes[1:]):
        return "it reads the values of elements"
    return refuses(shape)


def _has_own_value(node: ShapeNode) -> bool:
    """Whether a node's value is in its own row."""
    return node.step.axis is Axis.ATTRIBUTE or isinstance(node.step.test, Literal | AnyText)


def differences(before: DataFrame, after: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the unchanged nodes of two node tables, and the inserted (`sign` 1) and deleted (-1)
    ones.

    A node of the same id with another label or value is deleted and inserted with its subtree.
    """
    from pyspark.sql import functions as f

    old, new = before.select(*_COLUMNS), after.select(*_COLUMNS)
    same = old.intersect(new)
    ids = ["document", "id"]
    turned = old.join(new, ids, "left_semi").exceptAll(same).select(*ids).distinct()
    tops = turned.withColumnRenamed("id", "top_")
    paths = same.withColumn("top_", f.explode(ancestors_column()(f.col("id"))))
    below = paths.join(tops, ["document", "top_"], "left_semi").select(*ids).distinct()
    stays = same.join(below, ids, "left_anti").select(*_COLUMNS)
    went = old.join(stays, ids, "left_anti").withColumn("sign", f.lit(-1))
    came = new.join(stays, ids, "left_anti").withColumn("sign", f.lit(1))
    return stays, went.unionByName(came)


# One term -----------------------------------------------------------------------------------------


class _TermJoins(Joins):
    """Return the joins of a view with the relations of a term's Δ nodes read from the delta.

    Conditions of `or` and `not` are evaluated on all nodes of the term's side.
    """

    def __init__(
        self, stays: DataFrame, delta: DataFrame, moved: set[int], staying: set[int]
    ) -> None:
        delta = delta.drop("sign")
        super().__init__(stays.select(*_COLUMNS).unionByName(delta.select(*_COLUMNS)))
        self._everything = self.nodes  # the documents to evaluate
        self._stays, self._delta, self._moved = stays, delta, moved
        self._staying = staying

    def _candidates(self, relation: Relation) -> DataFrame:
        if id(relation) in self._moved:
            self.nodes = self._delta
        elif id(relation) in self._staying:
            self.nodes = self._stays
        try:
            return super()._candidates(relation)
        finally:
            self.nodes = self._everything


def _rows_of_term(term: Term, stays: DataFrame, delta: DataFrame) -> DataFrame:
    """Return the rows of one term with signed counts, with the view's names."""
    from pyspark.sql import functions as f

    pattern = term.shape.pattern
    program = compile_pattern(pattern)
    relations = _relations(term.shape, program.root)
    moved = {id(r) for n, r in relations.items() if n in term.delta}
    staying = {id(r) for n, r in relations.items() if n not in term.delta}
    joins = _TermJoins(stays, delta.where(f.col("sign") == term.sign), moved, staying)
    rows = joins.answers(program.root)
    sources = {Kind.VARIABLE: "${}", Kind.LABEL: "{}.label", Kind.ID: "{}.node"}
    shown = [
        f.col(safe(sources[output.kind].format(output.of))).alias(column_name(output))
        for output in pattern.outputs
    ]
    counted = (f.col("n") * f.lit(term.sign)).alias("count")
    return rows.select(f.col("document_").alias("document"), *shown, counted)


def _relations(shape: Shape, root: Relation) -> dict[int, Relation]:
    """Return the relation of each pattern node: pattern and program have the same shape."""
    found: dict[int, Relation] = {}
    waiting: list[tuple[int, Any]] = [(ROOT, root)]
    while waiting:
        number, relation = waiting.pop()
        found[number] = relation
        below = shape.nodes[number].below
        assert len(below) == len(relation.edges), "the program has another shape"
        waiting += [
            (child, edge.relation) for child, edge in zip(below, relation.edges, strict=True)
        ]
    return found
