"""Functions and calculations in native predicates, on every path that data takes."""

from __future__ import annotations

from random import Random
from typing import Literal

import pytest
from lxml import etree

import axlog
from axlog.document.loader import load
from axlog.errors import QueryError, UndecidedError
from axlog.evaluate.definition import rows
from axlog.match.filters import Filter
from axlog.query.native import parse_native, parse_pattern
from axlog.query.native_text import native_text

ORDERS = (
    'match /orders/order[contains(description, "pump")][total * 1.2 > 100]'
    '[starts-with(@id, "A")][substring(code, 1, 2) = "DE"]/oid/$x return $x'
)


def _order(number: int, id_: str, description: str, total: str, code: str) -> str:
    return (
        f'<order id="{id_}"><description>{description}</description><total>{total}</total>'
        f"<code>{code}</code><oid>{number}</oid></order>"
    )


MESSAGES = [
    _order(1, "A1", "a pump", "90", "DE7"),
    _order(2, "B1", "a pump", "90", "DE7"),
    _order(3, "A1", "a bolt", "90", "DE7"),
    _order(4, "A1", "pumps", "83.33", "DE7"),
    _order(5, "A1", "pumps", "83.34", "DE"),
    _order(6, "A1", "pump", "ninety", "DE"),
    _order(7, "A1", "pump", "900", "FR"),
]


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_messages(keep: Literal["all", "needed"]) -> None:
    calls = '<orders><ax:call xmlns:ax="urn:axlog" stream="s"/></orders>'
    doc = axlog.Document(calls, options=axlog.Options(keep=keep))
    view = doc.watch(ORDERS)
    changes = [change.row.to_dict() for text in MESSAGES for change in doc.feed("s", text)]
    assert changes == [{"x": "1"}, {"x": "5"}]
    assert [row["x"] for row in view.rows()] == ["1", "5"]


@pytest.mark.parametrize("maintainer", ["counting", "algebraic", "adaptive", "reevaluate"])
def test_statements(maintainer: str) -> None:
    doc = axlog.parse(f"<orders>{''.join(MESSAGES)}</orders>")
    view = doc.watch(ORDERS, maintainer=maintainer)
    assert [row["x"] for row in view.rows()] == ["1", "5"]
    doc.update('replace value of node /orders/order[oid = "7"]/code with "DEU"')
    doc.update('replace value of node /orders/order[oid = "1"]/total with "1"')
    doc.update('replace value of node /orders/order[oid = "6"]/total with "84"')
    assert [row["x"] for row in view.rows()] == ["5", "6", "7"]


def test_several_values_and_variables() -> None:
    doc = axlog.parse(
        "<r><w>a</w><w>b</w><i><p>30</p><n>4</n><d>ab</d></i><i><p>9</p><n>2</n><d>x</d></i></r>"
    )
    product = doc.watch("match //i[p * n > 100]/d/$d return $d")
    words = doc.watch("match //i#i[contains(d, $w)], //w/$w return $w, i.id")
    assert [row["d"] for row in product.rows()] == ["ab"]
    assert [row["w"] for row in words.rows()] == ["a", "b"]
    doc.update('replace value of node //i[2]/n with "90"')
    doc.update('replace value of node //w[1] with "x"')
    assert [row["d"] for row in product.rows()] == ["ab", "x"]
    assert [row["w"] for row in words.rows()] == ["b", "x"]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("match //a[5 < b]", "match //a[b > 5]"),
        ("match //a[contains(b, 'x')]/c", 'match //a[b[contains(., "x")]]/c'),
        ("match //a[b * b > 5]/c", "match //a[b[(. * .) > 5]]/c"),
        ("match //a[exists(b)][empty(c)]", "match //a[b][not(c)]"),
        (
            "match //a[b > c]/$x return $x",
            "match //a[b = $value1][c = $value2]/$x where $value1 > $value2 return $x",
        ),
        (
            "match //a[$value1][b + c > 1]/$x return $x",
            "match //a[$value1][b = $value2][c = $value3]/$x "
            "where ($value2 + $value3) > 1 return $x",
        ),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    pattern, steps = parse_native(text)
    assert native_text(pattern, steps) == canonical
    again, more = parse_native(canonical)
    assert (again, native_text(again, more)) == (pattern, canonical)


def test_filters_use_them() -> None:
    filters = Filter()
    filters.add("v", ORDERS.replace("/orders", ""))
    assert [bool(filters.matches(etree.fromstring(text))) for text in MESSAGES] == [
        number in (1, 5) for number in range(1, 8)
    ]


def test_truth_of_data_that_may_come() -> None:
    doc = axlog.Document(streams=["s"], views={"v": ORDERS.replace("/orders", "/")})
    assert doc.view("v").truth is axlog.Truth.POSSIBLE
    doc.watch('match //a[matches(., "^[0-9]{3}-[0-9]{4}-XYZ$")]', "hard")
    with pytest.raises(UndecidedError, match=r"AX503.*XYZ"):
        _ = doc.view("hard").truth
    doc.feed("s", "<a>123-4567-XYZ</a>")
    assert doc.view("hard").truth is axlog.Truth.TRUE


def test_refused_when_written_without_a_trace() -> None:
    doc = axlog.parse("<r/>")
    for text in ("match //a[contains(b)]", "match //a/$x where contains($x) return $x"):
        with pytest.raises(QueryError, match=r"XPST0017.*column"):
            doc.watch(text, "v")
    doc.watch("match //a", "v")


def test_long_texts_and_bad_values_do_not_pass() -> None:
    pattern = parse_pattern("match //a[1 div b > 0]")
    for value, wanted in (("0", 0), ("2", 1), ("two", 0), ("9" * 5000, 0), ("", 0)):
        tree = load(f"<r><a><b>{value}</b></a></r>")
        assert sum(answer.count for answer in rows(tree, pattern).values()) == wanted


def test_deep_and_long_conditions() -> None:
    random = Random(1)
    for _ in range(20):
        depth = random.randrange(1, 30)
        text = "(" * depth + ". + 1" + ")" * depth
        parse_pattern(f"match //a[{text} > 2]")
    with pytest.raises(QueryError):
        axlog.parse("<a/>").watch("match //a[" + "round(" * 200 + "." + ")" * 200 + " > 1]")
