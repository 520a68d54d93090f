"""The algebra's terms on Spark: a view table kept by deltas equals the view evaluated again."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from axlog.document import pending
from axlog.document.loader import load, read_forest
from axlog.document.node_table import NODES, rows_of
from axlog.document.operations import Delete, Insert, ReplaceValue, Where
from axlog.errors import AxlogError, QueryError
from axlog.live.document import parse
from axlog.query.query import parse_query
from axlog.spark import differences, evaluate, propagate
from axlog.spark.propagation import declines, terms_left
from lab.laws import small_cases
from tests.accepted_errors import accept
from tests.amounts import FACTOR

pytestmark = [pytest.mark.spark, pytest.mark.system]

QUERIES = ["match //a#x[//b] return x.id"]
MORE = [
    'match //*#t[@k or not(b = "1")] return t.id, t.label',
    "match //a#x[//c][//b] return x.id",
    "match //a#x[b/$y]//c#z return x.id, $y, z.id",
]
"""For `make stress`: Spark plans every term, and three nodes have many."""


def tables(spark: Any) -> tuple[Any, Any]:
    """Small documents before and after random updates, as node tables; ids stay."""
    before: list[Any] = []
    after: list[Any] = []
    for number in range(12):
        random = Random(number)
        tree = load(small_cases.document(random, 14))
        document = f"d{number:02}"
        before += [(document, *row) for row in rows_of(tree)]
        for _ in range(2):
            try:
                pending.apply(tree, small_cases.operations(random, tree, 3))
            except AxlogError as error:
                accept(error)
                continue
        after += [(document, *row) for row in rows_of(tree)]
    return spark.createDataFrame(before, NODES), spark.createDataFrame(after, NODES)


def rows(frame: Any) -> Counter[Any]:
    return Counter(tuple(map(_plain, row)) for row in frame.collect())


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def test_differential_a_propagated_view_is_the_evaluated_one(spark: Any) -> None:
    # Checkpoints cut the plans: building and compiling them is most of the time here.
    before, after = (frame.localCheckpoint() for frame in tables(spark))
    stays, delta = (frame.localCheckpoint() for frame in differences(before, after))
    assert {row["sign"] for row in delta.select("sign").distinct().collect()} == {1, -1}
    for query in [*QUERIES, *(MORE if FACTOR > 1 else ())]:
        view = evaluate(before, query).localCheckpoint()
        wanted = rows(evaluate(after, query))
        assert rows(view) != wanted, query
        assert rows(propagate(view, stays, delta, query)) == wanted, query


def test_terms_are_pruned_before_any_join(spark: Any) -> None:
    tree = load("<r><a><b/></a></r>")
    before = spark.createDataFrame([("d", *row) for row in rows_of(tree)], NODES)
    grown = load("<r><a><b/><b/></a></r>")
    after = spark.createDataFrame([("d", *row) for row in rows_of(grown)], NODES)
    _, delta = differences(before, after)
    pattern = parse_query("match //a#x//b#y return x.id, y.id").pattern
    assert [str(term) for term in terms_left(delta, pattern)] == ["R_a Δ+_b"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("match //a[b/$x][c/$x] return $x", "variables join"),
        ("match //a#t return t.cont", "contents without the ids"),
        ("match //a#t return t.time", "times"),
        ("match not(//b), //a#x return x.id", "document node"),
        ('match //a#t[b = "1"] return t.id', "values of elements"),
    ],
)
def test_what_is_declined(query: str, reason: str) -> None:
    pattern = parse_query(query).pattern
    assert reason in str(declines(pattern))
    with pytest.raises(QueryError) as caught:
        propagate(None, None, None, query)  # type: ignore[arg-type]  # refused before they are used
    assert caught.value.code == "AX211"


@pytest.mark.parametrize("kind", ["cont", *(["val"] if FACTOR > 1 else [])])
def test_values_and_contents_are_read_again_only_where_the_delta_is(spark: Any, kind: str) -> None:
    text = "<r><a>1</a><a>2<b/></a><a>3</a></r>"
    tree = load(text)
    before = spark.createDataFrame([("d", *row) for row in rows_of(tree)], NODES)
    _, second, third = tree.partition("a")
    new = Insert(Where.LAST, tree.root, tuple(read_forest("<a>5</a>")))
    pending.apply(tree, [ReplaceValue(tree.first_column[second], "4"), Delete(third), new])
    after = spark.createDataFrame([("d", *row) for row in rows_of(tree)], NODES)
    query = f"match //a#t return t.id, t.{kind}"
    shown = [
        ("d", row["t.id"].key, f"old {row[f't.{kind}']}", row.count)
        for row in parse(text).watch(query).rows()
    ]
    kept = spark.createDataFrame(shown, evaluate(before, query).schema)
    stays, delta = (frame.localCheckpoint() for frame in differences(before, after))
    found = {row[f"t_{kind}"] for row in propagate(kept, stays, delta, query).collect()}
    assert (
        found
        == {
            "cont": {"old <a>1</a>", "<a>4<b/></a>", "<a>5</a>"},
            "val": {"old 1", "4", "5"},
        }[kind]
    )
