"""Unchanged nodes whose `or` and `not` an update changes, on node tables.

The nodes below a node decide whether its conditions hold, so a node may enter or leave a relation
without being in the delta. As in the embedded algebra, such a node is restated: it is deleted and
inserted with its subtree, with the same ids. Afterwards every unchanged node has the same
conditions before and after, and the terms are those of a pattern without conditions.

Only nodes above the delta can change: their conditions are evaluated on the table before and on the
table after, by the joins of the batch engine, and compared. This is one job. If some change, the
tables are computed once for all terms (`localCheckpoint`: if an executor is lost meanwhile,
propagate again).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from axlog.query.compile import Relation, compile_pattern
from axlog.query.pattern import Axis, Kind, Name, Output, Pattern, PatternNode, Wildcard
from axlog.spark.batch.joins import Joins, ancestors_column, safe
from axlog.views.algebraic.shape import ROOT, Shape, ShapeNode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMNS = ["document", "id", "parent", "label", "kind", "value"]
_NAME = "restated_"
_AXES = (Axis.CHILD, Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)


def conditional(shape: Shape) -> list[ShapeNode]:
    """Return the pattern nodes with an `or` or a `not`."""
    return [node for node in shape.nodes if node.conditions]


def refuses(shape: Shape) -> str | None:
    """Return why the conditions of a view cannot be followed, or None."""
    for node in conditional(shape):
        if node.number == ROOT:
            return "`or` or `not` is at the document node"
        is_named = isinstance(node.step.test, Name) or node.step.test == Wildcard()
        if node.step.axis not in _AXES or not is_named:
            return "`or` or `not` is at a node that is not an element"
    return None


def restated(stays: DataFrame, delta: DataFrame, shape: Shape) -> tuple[DataFrame, DataFrame]:
    """Return the unchanged nodes and the delta of one view, with restated subtrees moved."""
    from pyspark.sql import functions as f

    nodes = conditional(shape)
    if not nodes:
        return stays, delta
    stays = stays.select(*_COLUMNS)
    above = f.concat(ancestors_column()(f.col("id")), f.array("id"))
    touched = delta.select("document", f.explode(above).alias("id")).distinct()
    sides = [
        stays.unionByName(delta.where(f.col("sign") == sign).select(*_COLUMNS)) for sign in (-1, 1)
    ]
    turned = []
    for node in nodes:
        was, now = (_held(side, touched, node) for side in sides)
        turned += [was.subtract(now), now.subtract(was)]
    tops = reduce(lambda a, b: a.union(b), turned).distinct().withColumnRenamed("id", "top_")
    tops = tops.localCheckpoint()  # few; every term uses them
    if tops.isEmpty():
        return stays, delta
    paths = stays.select("document", "id", f.explode(above).alias("top_"))
    below = paths.join(tops, ["document", "top_"], "left_semi").select("document", "id").distinct()
    moved = stays.join(below, ["document", "id"], "left_semi").select(*_COLUMNS)
    left = stays.join(below, ["document", "id"], "left_anti").select(*_COLUMNS)
    whole = delta.select(*_COLUMNS, "sign")
    for sign in (-1, 1):
        whole = whole.unionByName(moved.withColumn("sign", f.lit(sign)))
    return left.localCheckpoint(), whole.localCheckpoint()


def _held(nodes: DataFrame, touched: DataFrame, node: ShapeNode) -> DataFrame:
    """Return the touched nodes that pass a pattern node's test and whose conditions hold."""
    step = PatternNode(Axis.DESCENDANT, node.step.test, _NAME, branches=node.conditions)
    program = compile_pattern(Pattern((step,), outputs=(Output(Kind.ID, _NAME),)))
    rows = _Touched(nodes, touched, step).answers(program.root)
    from pyspark.sql import functions as f

    at = f.col(safe(f"{_NAME}.node")).alias("id")
    return rows.select(f.col("document_").alias("document"), at).distinct()


class _Touched(Joins):
    """Joins over the touched nodes of one relation only."""

    def __init__(self, nodes: DataFrame, touched: DataFrame, step: PatternNode) -> None:
        super().__init__(nodes)
        self._touched, self._step = touched, step

    def _candidates(self, relation: Relation) -> DataFrame:
        every = self.nodes
        if relation.node is not None and relation.node.name == self._step.name:
            self.nodes = every.join(self._touched, ["document", "id"], "left_semi")
        try:
            return super()._candidates(relation)
        finally:
            self.nodes = every
