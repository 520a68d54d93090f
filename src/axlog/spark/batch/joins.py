"""Relations as DataFrames: the counting program, evaluated by structural joins on a node table.

A relation of the program (`query/compile.py`) is a DataFrame with the document, the node, the
relation's columns and `n`, the derivation count:

    M_p = tests(p) ⋈ L_1 ⋈ ... ⋈ L_k on shared columns, tested, projected, counts multiplied
    L_e = M_c grouped by the parent (child, attribute), the ancestors (descendant) or the node

All joins are equality joins, which are fast on Spark. The node table contains the parent's id; for
descendants, each row's ancestor ids are derived from its id, which has them as prefixes
(measurements in docs/spark.md). `or` is a union of distinct rows, `not` an anti-join.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from axlog.document.ids import component_ends
from axlog.evaluate.value_tests import comparison
from axlog.query.compile import Absence, Choice, Edge, Relation, Test
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Literal,
    Name,
    PartialName,
    PatternNode,
    TimeConstraint,
    Variable,
    Wildcard,
)
from axlog.query.values import comparer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT = ["document_", "node_"]
"""The key columns of a row. Internal names end in `_`, which no column of a program does."""
PARENT = "parent_"
_NODES = ("element", "text", "comment", "instruction")
_OWN_VALUE = (
    "CASE WHEN kind != 'instruction' THEN value WHEN instr(value, ' ') = 0 THEN ''"
    " ELSE substring(value, instr(value, ' ') + 1) END"
)
_BY_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)


class Joins:
    """The DataFrames of one program's relations over one node table."""

    def __init__(self, nodes: DataFrame) -> None:
        from pyspark.sql import functions

        self.f = functions
        self.nodes = nodes
        self._made: dict[Relation, DataFrame] = {}
        self._ancestors = ancestors_column()

    def answers(self, root: Relation) -> DataFrame:
        """Return the root relation's rows: the answers of each document, with their counts."""
        f = self.f
        documents = self.nodes.select(
            f.col("document").alias("document_"), f.lit(b"").alias("node_")
        ).distinct()
        return self._at(root, documents)

    # Relations ------------------------------------------------------------------------------------

    def _frame(self, relation: Relation) -> DataFrame:
        """Return M_p, for a relation that tests a node."""
        known = self._made.get(relation)
        if known is None:
            assert relation.node is not None
            known = self._made[relation] = self._at(relation, self._candidates(relation))
        return known

    def _candidates(self, relation: Relation) -> DataFrame:
        """Return the nodes that pass a relation's test, with their own bindings."""
        f, node = self.f, relation.node
        assert node is not None
        found = self.nodes.where(self.passes(node))
        needs = [c for c in node.comparisons if not isinstance(c.operand, Variable)]
        if needs or any(source == "value" for _, source in relation.own):
            found = self.with_values(found)
        for one in needs:
            found = found.where(self._compared(f.col("value"), one.operator, one.operand))
        shown: dict[str, Any] = {}
        for column, source in relation.own:
            value = self._own(source)
            if column in shown:
                found = found.where(shown[column] == value)
            shown[column] = value
        return found.select(
            f.col("document").alias("document_"),
            f.col("id").alias("node_"),
            f.col("parent").alias(PARENT),
            *(value.alias(safe(column)) for column, value in shown.items()),
        )

    def passes(self, node: PatternNode) -> Any:
        """Return the condition for rows of a node table that pass a pattern node's test."""
        f = self.f
        kind, label, value = f.col("kind"), f.col("label"), f.col("value")
        is_attribute = node.axis is Axis.ATTRIBUTE
        element = kind == ("attribute" if is_attribute else "element")
        match node.test:
            case Name(label=name):
                return element & (label == (f"@{name}" if is_attribute else name))
            case PartialName(namespace=namespace, local=local):
                bare = f.regexp_replace(label, "^@", "")
                uri = f.regexp_extract(bare, r"^\{([^}]*)\}", 1)
                is_here = f.lit(True) if namespace is None else uri == namespace
                name = f.regexp_replace(bare, r"^\{[^}]*\}", "")
                return element & is_here & (f.lit(True) if local is None else name == local)
            case Wildcard():
                return element
            case Literal(text=text):
                return (kind == "text") & (value == text)
            case AnyText():
                return kind == "text"
            case AnyComment():
                return kind == "comment"
            case AnyInstruction(target=None):
                return kind == "instruction"
            case AnyInstruction(target=target):
                return (kind == "instruction") & (f.substring_index(value, " ", 1) == target)
            case AnyNode() if node.axis is Axis.SELF:
                return kind.isin("attribute", *_NODES)
            case AnyNode():
                return kind.isin(*_NODES)
            case _:
                return kind.isin("element", "text")

    def _own(self, source: str) -> Any:
        f = self.f
        match source:
            case "label":
                kind, value = f.col("kind"), f.col("value")
                named = f.when(kind == "instruction", f.substring_index(value, " ", 1))
                return named.when(kind.isin("text", "comment"), value).otherwise(f.col("label"))
            case "value":
                return f.col("value")
            case "time":
                return f.lit(0).cast("bigint")
            case _:
                return f.col("id")

    def with_values(self, found: DataFrame) -> DataFrame:
        """Return nodes with their string values: an element's is concatenated from the texts below
        it, and a processing instruction's excludes its target.
        """
        f = self.f
        others = found.where("kind != 'element'").withColumn("value", f.expr(_OWN_VALUE))
        elements = found.where("kind = 'element'").select(
            "document", "id", "parent", "label", "kind"
        )
        texts = self.nodes.where("kind = 'text'").where(~is_in_attribute_column()(f.col("id")))
        above = texts.select(
            "document", f.col("id").alias("text_"), "value",
            f.explode(self._ancestors(f.col("id"))).alias("id"),
        )  # fmt: skip
        gathered = (
            elements.join(above, ["document", "id"])
            .groupBy("document", "id")
            .agg(f.sort_array(f.collect_list(f.struct("text_", "value"))).alias("parts_"))
            .select("document", "id", f.array_join(f.col("parts_.value"), "").alias("value"))
        )
        valued = elements.join(gathered, ["document", "id"], "left").withColumn(
            "value", f.coalesce("value", f.lit(""))
        )
        return others.select(*valued.columns).union(valued)

    def _compared(self, value: Any, operator: str, operand: Any) -> Any:
        if isinstance(operand, str) and operator in ("=", "!="):
            return _native(value, operator, self.f.lit(operand))
        return _comparison_function(operator, operand)(value)

    # Joins ----------------------------------------------------------------------------------------

    def _at(self, relation: Relation, base: DataFrame) -> DataFrame:
        """Return a relation's rows at the nodes of `base`, which has its own columns."""
        f = self.f
        rows = base.withColumn("n", f.lit(1).cast("bigint"))
        where = base.select(*AT).distinct() if relation.choices or relation.absences else base
        for edge in relation.edges:
            rows = self._meet(rows, self._part(edge))
        for choice in relation.choices:
            rows = self._choose(rows, choice, where)
        for test in relation.tests:
            rows = rows.where(self._holds(test))
        for absence in relation.absences:
            rows = self._without(rows, absence, where)
        place = [*AT, PARENT] if PARENT in base.columns else AT
        columns = [safe(column) for column in relation.columns]
        return rows.groupBy(*place, *columns).agg(f.sum("n").alias("n"))

    def _part(self, edge: Edge) -> DataFrame:
        """Return L_e: the rows of a relation by the nodes that see them."""
        f, relation = self.f, edge.relation
        rows = self._frame(relation)
        columns = [safe(column) for column in relation.columns]
        if edge.axis is Axis.SELF:
            return rows.drop(PARENT)
        if edge.axis in _BY_DESCENT:
            lifted = self._by_descent(rows, edge)
        else:
            lifted = rows.drop("node_").withColumnRenamed(PARENT, "node_")
        return lifted.groupBy(*AT, *columns).agg(f.sum("n").alias("n"))

    def _by_descent(self, rows: DataFrame, edge: Edge) -> DataFrame:
        """Return rows at every ancestor, and at the node itself if the axis includes it.

        Descent never enters attributes: the texts below them are visible only from inside.
        """
        f, node = self.f, edge.relation.node
        assert node is not None
        keys = self._ancestors(f.col("node_"))
        if edge.axis is Axis.DESCENDANT_OR_SELF:
            keys = f.concat(keys, f.array("node_"))
        if isinstance(node.test, Name | Wildcard) and node.axis is not Axis.ATTRIBUTE:
            return rows.drop(PARENT).withColumn("node_", f.explode(keys))
        inside = is_in_attribute_column()(f.col("node_"))
        outside = rows.where(~inside).drop(PARENT).withColumn("node_", f.explode(keys))
        from_attribute = rows.where(inside).drop("node_").withColumnRenamed(PARENT, "node_")
        found = outside.unionByName(from_attribute.where(is_in_attribute_column()(f.col("node_"))))
        if edge.axis is Axis.DESCENDANT_OR_SELF:
            found = found.unionByName(rows.where(inside).drop(PARENT))
        return found

    def _meet(self, rows: DataFrame, part: DataFrame) -> DataFrame:
        """A natural join; counts multiply."""
        shared = [column for column in rows.columns if column in part.columns and column != "n"]
        met = rows.join(part.withColumnRenamed("n", "m_"), shared)
        return met.withColumn("n", self.f.col("n") * self.f.col("m_")).drop("m_")

    def _choose(self, rows: DataFrame, choice: Choice, where: DataFrame) -> DataFrame:
        f = self.f
        alternatives = [self._at(a, where) for a in choice.alternatives]
        columns = [safe(column) for column in choice.columns]
        each = [a.select(*AT, *columns) for a in alternatives]
        bound = reduce(lambda a, b: a.union(b), each).distinct()
        rows = self._meet(rows, bound.withColumn("n", f.lit(1).cast("bigint")))
        if not choice.is_correlated:
            return rows
        flags: list[Any] = []
        for number, (relation, found) in enumerate(
            zip(choice.alternatives, alternatives, strict=True)
        ):
            keys = [*AT, *(safe(column) for column in relation.columns)]
            flag = f"matched{number}_"
            marked = found.select(*keys).distinct().withColumn(flag, f.lit(True))
            rows = rows.join(marked, keys, "left")
            flags.append(f.coalesce(f.col(flag), f.lit(False)))
        held = rows.where(reduce(lambda a, b: a | b, flags))
        return held.drop(*(f"matched{number}_" for number in range(len(flags))))

    def _without(self, rows: DataFrame, absence: Absence, where: DataFrame) -> DataFrame:
        f = self.f
        body = self._at(absence.body, where).drop("n")
        kept = {column for column in rows.columns if column != "n"}
        renamed = body.select(*(f.col(c).alias(f"not_{c}") for c in body.columns))
        condition = reduce(
            lambda a, b: a & b,
            [f.col(c) == f.col(f"not_{c}") for c in body.columns if c in kept],
        )
        inside = {c: f"not_{c}" for c in body.columns if c not in kept}
        for test in absence.tests:
            condition &= self._holds(test, inside)
        return rows.join(renamed, condition, "left_anti")

    def _holds(self, test: Test, renamed: dict[str, str] | None = None) -> Any:
        f, names = self.f, renamed or {}
        columns = [f.col(names.get(safe(c), safe(c))) for c in test.columns]
        constraint = test.constraint
        if isinstance(constraint, TimeConstraint):
            pairs = zip(constraint.terms, columns, strict=True)
            total = reduce(lambda a, b: a + b, [f.lit(c) * at for (c, _), at in pairs])
            return _native(total, constraint.operator, f.lit(constraint.bound))
        if isinstance(constraint.right, Variable):
            left, right = columns
            if constraint.operator in ("=", "!="):
                return _native(left, constraint.operator, right)
            return _comparer_function(constraint.operator)(left, right)
        return self._compared(columns[0], constraint.operator, constraint.right)


def safe(column: str) -> str:
    """Return a column's name without characters that Spark parses: `$x` and `t.node`."""
    return "c_" + column.replace("$", "var_").replace(".", "_of_").replace("~", "_fresh_")


def _native(left: Any, operator: str, right: Any) -> Any:
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


# Functions of ids, on whole columns -------------------------------------------------------------


def ancestors_column() -> Any:
    """Return the function from a column of ids to their ancestors' ids."""
    from pyspark.sql.functions import udf

    return udf(ancestor_keys, "array<binary>", useArrow=True)


def is_in_attribute_column() -> Any:
    from pyspark.sql.functions import udf

    return udf(is_in_attribute, "boolean", useArrow=True)


def _comparison_function(operator: str, operand: Any) -> Any:
    from pyspark.sql.functions import udf

    return udf(comparison(operator, operand), "boolean", useArrow=True)


def _comparer_function(operator: str) -> Any:
    from pyspark.sql.functions import udf

    return udf(comparer(operator), "boolean", useArrow=True)


def ancestor_keys(key: bytes) -> list[bytes]:
    """Return the keys of a node's proper ancestors, the document node's empty key first."""
    return [b"", *(key[:end] for end in component_ends(key)[:-1])]


def is_in_attribute(key: bytes) -> bool:
    """Whether a node is an attribute or the text below one."""
    starts = [0, *component_ends(key)[:-1]]
    return any(key[start] == 1 for start in starts if start < len(key))
