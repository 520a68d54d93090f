"""Shredding and evaluating on Spark, compared with the embedded engine document by document."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any
from xml.etree.ElementTree import canonicalize

import pytest

from axlog.document.ids import Id
from axlog.document.loader import load
from axlog.document.node_table import rows_of
from axlog.errors import InputError, QueryError
from axlog.live.document import parse
from axlog.query.query import Query, parse_query
from axlog.spark import evaluate, explain, files, shred
from axlog.spark.batch.embedded import spans_records
from axlog.spark.batch.evaluation import chosen_plan
from lab.laws import small_cases
from lab.laws.small_cases import DOWNWARD

pytestmark = [pytest.mark.spark, pytest.mark.system]

QUERIES = [
    "match //*[b][@k#t]//$x return $x, t.val",
    "match //a#t[//b][not(c)] return t.id, t.val",
    'match //*#t[b or c = "1"] return t.id, t.label',
    "match //a[b/$x][c/$x] return $x",
    "match //a#t//b#u where u - t <= 0 return t.id, u.cont",
    "match //b#t[. > 1] return t.id",
]
COLLECTING = "for $a in //a return <found id='{id($a)}'>{$a/b/text()}{$a//c}</found>"
UPWARD = "//b[following-sibling::c]"


SPANNING = [
    "match /site[items/item/name/$x][more//name/$x] return $x",
    "match /site/items#t[item/@n = '3'] return t.id",
]
RECORD_QUERIES = [
    "match /site//item#i[name]/@n#k return i.id, k.val",
    "match //item/name/$x return $x",
    "match //name#n/text()#t return n.id, t.id, t.val",
    "match /site/items/item#i[not(name)] return i.cont",
    "match //tail#t return t.cont",
    "for $a in //item return <found>{$a/name/text()}{$a/@n}</found>",
    *SPANNING,
]


@pytest.fixture(scope="module")
def whole_files() -> dict[str, str]:
    def records(count: int) -> str:
        return "".join(
            f'<item n="{n}">{f"<name>x{n % 7}<b> </b> </name>" if n % 3 else "&gt;"}</item>'
            for n in range(count)
        )

    return {
        "plain.xml": f"<site><head/><items> {records(40)} </items>t<more><w><name>x1</name></w>"
        f"<tail>x</tail></more><items>{records(9)}<name>x2</name></items></site>",
        "spaces.xml": f'<site xmlns:p="urn:p"><p:all xml:space="preserve">{records(20)}</p:all>'
        f'<!-- <item> --><items p:k="1">{records(20)}</items><more><w p:l="2"/></more></site>',
        "small.xml": "<site><items><item n='1'><name>s</name></item></items><tail/></site>",
    }


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {f"d{n:02}": small_cases.document(Random(n), 14) for n in range(40)}


@pytest.fixture(scope="module")
def nodes(spark: Any, texts: dict[str, str]) -> Any:
    table = spark.createDataFrame(list(texts.items()), "document string, xml string")
    return shred(spark, table).cache()


def found_by_spark(nodes: Any, query: Query, plan: str | None = None) -> Counter[Any]:
    rows = evaluate(nodes, query, plan=plan).collect()
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def found_by_engine(texts: dict[str, str], query: Query) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for key, text in texts.items():
        for row in parse(text).watch(query).rows():
            found[(key, *(_plain(value) for value in row.values_), row.count)] += 1
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Id):
        return value.key
    if isinstance(value, list | tuple):
        return tuple(_plain(str(one)) for one in value)
    if isinstance(value, str) and value.startswith("<"):
        return canonicalize(value, rewrite_prefixes=True)  # the table has no prefixes
    return bytes(value) if isinstance(value, bytearray) else value


def test_node_table_is_the_document(nodes: Any, texts: dict[str, str]) -> None:
    found = sorted(tuple(_plain(v) for v in row) for row in nodes.collect())
    expected = sorted((key, *row) for key, text in texts.items() for row in rows_of(load(text)))
    assert found == expected


@pytest.mark.parametrize("text", QUERIES)
def test_queries(nodes: Any, texts: dict[str, str], text: str) -> None:
    query = parse_query(text, {})
    assert chosen_plan(query)[0] == "joins"
    expected = found_by_engine(texts, query)
    assert expected
    assert found_by_spark(nodes, query) == expected


def test_differential_random_patterns_by_joins(nodes: Any, texts: dict[str, str]) -> None:
    compared = answered = 0
    for seed in range(200):
        pattern = small_cases.pattern(Random(seed), DOWNWARD)
        query = Query(pattern, str(pattern))
        if chosen_plan(query)[0] != "joins":
            continue
        expected = found_by_engine(texts, query)
        if not expected and seed % 3:
            continue
        compared, answered = compared + 1, answered + bool(expected)
        assert found_by_spark(nodes, query) == expected, (seed, str(pattern))
        if compared == 4:
            break
    assert answered >= 3


@pytest.mark.parametrize("text", [COLLECTING, UPWARD])
def test_both_plans(nodes: Any, texts: dict[str, str], text: str) -> None:
    query = parse_query(text, {})
    expected = found_by_engine(texts, query)
    assert expected
    assert found_by_spark(nodes, query, "documents") == expected
    if chosen_plan(query)[0] == "joins":
        assert found_by_spark(nodes, query, "joins") == expected
    else:
        assert text == UPWARD
        with pytest.raises(QueryError):
            evaluate(nodes, query, plan="joins")


@pytest.mark.parametrize("text", [*QUERIES, COLLECTING, UPWARD])
def test_documents_are_evaluated_where_they_are_read(
    spark: Any, texts: dict[str, str], text: str
) -> None:
    query = parse_query(text, {})
    table = spark.createDataFrame(list(texts.items()), "document string, xml string")
    assert found_by_spark(table.repartition(3), query) == found_by_engine(texts, query) != Counter()


def test_files_are_cut_at_records(spark: Any, tmp_path: Path) -> None:
    records = "".join(f'<item n="{n}"><name>x{n}</name></item>' for n in range(300))
    text = f"<site><head/><items>{records}</items><tail>t</tail></site>"
    (tmp_path / "large.xml").write_text(text)
    (tmp_path / "small.xml").write_text("<site><item><name>s</name></item></site>")
    found = shred(spark, tmp_path, "item", large=1000)
    whole = shred(spark, [tmp_path / "large.xml", tmp_path / "small.xml"])
    assert sorted(found.collect()) == sorted(whole.collect())
    names = evaluate(found, "match /site//item/name/$x return $x").collect()
    assert sorted(row["x"] for row in names) == sorted(["s", *(f"x{n}" for n in range(300))])
    with pytest.raises(InputError):
        shred(spark, tmp_path / "absent.xml")


@pytest.mark.parametrize("text", RECORD_QUERIES)
def test_files_are_evaluated_where_they_are_read(
    spark: Any, whole_files: dict[str, str], tmp_path: Path, text: str
) -> None:
    for name, content in whole_files.items():
        (tmp_path / name).write_text(content)
    query = parse_query(text, {})
    cut = files(spark, tmp_path, ["item", "w"], large=200)
    assert cut.is_cut
    assert (spans_records(cut, query) is not None) == (text in SPANNING)
    texts = {str(tmp_path / name): content for name, content in whole_files.items()}
    expected = found_by_engine(texts, query)
    assert expected
    assert found_by_spark(cut, query) == expected
    if text not in SPANNING:
        assert found_by_spark(files(spark, tmp_path), query) == expected


def test_explain_says_the_plan() -> None:
    said = explain("match //a#t[b][not(c)] return t.id")
    assert "batch plan  joins" in said
    assert "on the parent's id" in said
    assert "anti-join" in said
    assert "documents: the axis following-sibling" in explain(UPWARD)
