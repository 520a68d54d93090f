"""Whole paths, positions and nodes in native predicates: the rows of XPath, under updates."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import axlog
from axlog.errors import AxlogError, QueryError, UndecidedError, UnsupportedError, UpdateError
from axlog.query.query import parse_query
from tests.amounts import cases

SAME = {  # native predicates of order#t, and what XPath selects
    "/shop/order#t[count(item) > 1]": "/shop/order[count(item) > 1]",
    "/shop/order#t[count(//price) = 0]": "/shop/order[count(.//price) = 0]",
    "/shop/order#t[count(item) = count(client)]": "/shop/order[count(item) = count(client)]",
    "/shop/order#t[count(item[price > 5]) = 1]": "/shop/order[count(item[price > 5]) = 1]",
    "/shop/order#t[sum(item/price) > 12]": "/shop/order[sum(item/price) > 12]",
    "/shop/order#t[sum(item/price) > 12 or not(client)]":
        "/shop/order[sum(item/price) > 12 or not(client)]",
    "/shop/order#t[not(count(item) > 1 and client = 'a')]":
        "/shop/order[not(count(item) > 1 and client = 'a')]",
    "/shop/order#t[max(item/price) = min(item/price)]":
        "/shop/order[max(item/price) = min(item/price)]",
    "/shop/order#t[avg(item/price) >= 5]": "/shop/order[avg(item/price) >= 5]",
    "/shop/order#t[string-join(client, '-') = 'a-b']":
        "/shop/order[string-join(client, '-') = 'a-b']",
    "/shop/order#t[count(distinct-values(client)) = 2]":
        "/shop/order[count(distinct-values(client)) = 2]",
    "/shop/order#t[count(client) = 1][exactly-one(client) = 'a']":
        "/shop/order[count(client) = 1][client = 'a']",
    "/shop/order#t[deep-equal(item, wanted/item)]": "/shop/order[deep-equal(item, wanted/item)]",
    "/shop/order#t[client << item]": "/shop/order[client[1] << item[last()]]",
    "/shop/order#t[1]": "/shop/order[1]",
    "/shop/order#t[last()]": "/shop/order[last()]",
    "//item#t[2]": "//item[2]",
    "//item#t[last() - 1]": "//item[last() - 1]",
    "//*#t[position() < 3]": "//*[position() < 3]",
    "//*#t[position() >= 3]": "//*[position() >= 3]",
    "//item#t[position() > last() - 2]": "//item[position() > last() - 2]",
    "//order/item[price > 5][1]/price#t": "//order/item[price > 5][1]/price",
    "//order/item[1][price > 5]/price#t": "//order/item[1][price > 5]/price",
    "//order#t[item[2]/price > 5]": "//order[item[2]/price > 5]",
    "//order[2]/item[1]/price#t": "//order[2]/item[1]/price",
    "//item#t[position() > 1][1]": "//item[position() > 1][1]",
    "/shop/order#t[not(item[1]/price > 5)]": "/shop/order[not(item[1]/price > 5)]",
    "/shop/order#t[item[last()]/price > 5 or client = 'a']":
        "/shop/order[item[last()]/price > 5 or client = 'a']",
    "/shop/order#t[position() = 1 or item[2]]": "/shop/order[position() = 1 or item[2]]",
    "/shop/order#t[client and position() = 2]": "/shop/order[client and position() = 2]",
    "/shop/order#t[client][not(position() = last())]":
        "/shop/order[client][not(position() = last())]",
}  # fmt: skip


def _item(random: Random) -> str:
    price = f"<price>{random.randint(1, 9)}</price>" if random.random() < 0.8 else ""
    return f"<item>{price}</item>"


def _order(random: Random) -> str:
    parts = [_item(random) for _ in range(random.randint(0, 3))]
    parts += [f"<client>{random.choice('ab')}</client>" for _ in range(random.randint(0, 2))]
    if random.random() < 0.4:
        parts.append(f"<wanted>{''.join(parts)}</wanted>")
    random.shuffle(parts)
    return f"<order>{''.join(parts)}</order>"


def _statement(random: Random) -> str:
    order = f"/shop/order[{random.randint(1, 4)}]"
    return random.choice(
        (
            f"insert node {_order(random)} as {random.choice(('first', 'last'))} into /shop",
            f"insert node {_order(random)} before {order}",
            f"insert node {_item(random)} as {random.choice(('first', 'last'))} into {order}",
            f"delete node {order}",
            f"delete node {order}/item[{random.randint(1, 2)}]",
            f"replace value of node {order}/item[1]/price with {random.randint(1, 9)}",
            f"replace value of node {order}/client[1] with '{random.choice('ab')}'",
            f"rename node {order}/client[1] as 'item'",
            f"rename node {order}/item[last()] as 'client'",
        )
    )


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_xpath(seed: int) -> None:
    random = Random(seed)
    doc = axlog.parse(f"<shop>{''.join(_order(random) for _ in range(4))}</shop>")
    natives = {text: doc.watch(f"match {text} return t.id") for text in SAME}
    xpaths = {text: doc.watch(text) for text in SAME.values()}
    counts = {text: doc.watch(f"match {text} return count() as n") for text in SAME}
    for text, view in natives.items():
        assert view.explain().is_incremental, text
    for _ in range(25):
        statement = _statement(random)
        with suppress(UpdateError):  # the statement finds no target
            doc.update(statement)
        for native, xpath in SAME.items():
            wanted = sorted({str(row.values_[0]) for row in xpaths[xpath].rows()})
            found = sorted(str(row["t.id"]) for row in natives[native].rows())
            assert found == wanted, (native, statement)
            (row,) = counts[native].rows()
            assert row["n"] == len(wanted), (native, statement)


def _condition(random: Random, depth: int) -> str:
    """A condition on an order or an item, with positions inside `and`, `or` and `not`."""
    number = random.randint(1, 3)
    if depth == 0 or random.random() < 0.3:
        return random.choice(
            (
                "client",
                "client = 'a'",
                "price > 5",
                f"item[{number}]",
                "item[last()]/price > 5",
                f"item[price > 4][{number}]",
                f"item[{number}][price > 4]",
                f"wanted/item[position() < {number}]/price = 3",
                f"position() = {number}",
                f"position() > {number}",
                "position() = last()",
                f"position() >= last() - {number}",
            )
        )
    one, other = _condition(random, depth - 1), _condition(random, depth - 1)
    return random.choice((f"({one} and {other})", f"({one} or {other})", f"not({one})"))


@pytest.mark.parametrize("seed", range(cases(2)))
def test_random_conditions_with_positions_are_those_of_xpath(seed: int) -> None:
    random = Random(f"conditions {seed}")
    doc = axlog.parse(f"<shop>{''.join(_order(random) for _ in range(4))}</shop>")
    texts: list[tuple[str, axlog.View]] = []
    while len(texts) < 20:
        conditions = f"[{_condition(random, 2)}]{random.choice(('', '', '[client]'))}"
        text = f"{random.choice(('/shop/order', '//item', '//*'))}#t{conditions}"
        with suppress(UnsupportedError):  # a second position behind another predicate
            texts.append((text, doc.watch(f"match {text} return t.id", maintainer="incremental")))
    xpaths = [doc.watch(text.replace("#t", "")) for text, _ in texts]
    for _ in range(15):
        statement = _statement(random)
        with suppress(UpdateError):  # the statement finds no target
            doc.update(statement)
        for (text, view), xpath in zip(texts, xpaths, strict=True):
            wanted = sorted({str(row.values_[0]) for row in xpath.rows()})
            found = sorted(str(row["t.id"]) for row in view.rows())
            assert found == wanted, (text, statement, doc.xml())


@pytest.mark.parametrize("maintainer", ["counting", "reevaluate", "algebraic"])
def test_maintainers(maintainer: str) -> None:
    doc = axlog.parse("<s><a><b>1</b><b>2</b></a><a><b>3</b></a></s>")
    last = doc.watch("match /s/a/b[last()]/$x return $x", maintainer=maintainer)
    many = doc.watch("match /s/a[count(b) > 1]/b/$x return sum($x) as n", maintainer=maintainer)
    assert [row["x"] for row in last.rows()] == ["2", "3"]
    assert [row["n"] for row in many.rows()] == [3]
    changes = doc.update("insert node <b>4</b> as last into /s/a[2]")
    shown = sorted((change.op, *change.row.to_dict().values()) for change in changes)
    assert shown == [("delete", "3"), ("insert", "4"), ("update", 10)]


def test_streams_and_stores(tmp_path: Path) -> None:
    views = {
        "first": "match //s/a[1]/$x return $x",
        "two": "match //s/a[position() > last() - 2]/$x return count() as n, max($x) as top",
        "pairs": "match //p[count(q) = 2]/n/$n return $n",
        "absent": "match //p[not(q[3]) and not(n[2])]/n/$n return $n",
    }
    call = '<r xmlns:ax="urn:axlog"><s><ax:call stream="in"/></s></r>'
    with axlog.open(tmp_path / "store", call, views=views) as doc:
        for number in range(3):
            doc.feed("in", f"<a>{number}</a>")
        doc.feed("in", "<p><q/><q/><n>7</n></p>")
        rows = {name: [row.to_dict() for row in doc.view(name).rows()] for name in views}
        assert len(doc.view("first").why({"x": "0"})) == 1
        assert not doc.view("first").why({"x": "1"})
        assert len(doc.view("two").why({"n": 2, "top": 2})) == 2
        assert doc.view("first").status({"x": "0"}) is axlog.Truth.TRUE
        with pytest.raises(UndecidedError, match="positions"):
            doc.view("first").status({"x": "9"})
        assert doc.view("pairs").status({"n": "7"}) is axlog.Truth.TRUE
        with pytest.raises(UndecidedError, match="all nodes of a path"):
            doc.view("pairs").status({"n": "8"})
    assert rows == {"first": [{"x": "0"}], "two": [{"n": 2, "top": 2}], "pairs": [{"n": "7"}],
                    "absent": [{"n": "7"}]}  # fmt: skip
    with axlog.open(tmp_path / "store") as doc:
        assert {n: [r.to_dict() for r in doc.view(n).rows()] for n in views} == rows
        changes = doc.feed("in", "<a>9</a>")
        assert [(c.view, c.op, c.row.to_dict()) for c in changes] == [
            ("two", "update", {"n": 2, "top": 9})
        ]
        assert len(doc.view("absent").why({"n": "7"})) == 1
        changes = doc.update("insert node <q/> into //p")
        assert sorted((c.view, c.op) for c in changes) == [
            ("absent", "delete"),
            ("pairs", "delete"),
        ]


def test_rejected_values_change_nothing() -> None:
    doc = axlog.parse("<s><a><b>1</b></a><a><b>2</b></a></s>")
    view = doc.watch("match /s/a[last()]/b/$x return sum($x) as n", on_value_error="reject")
    assert [row["n"] for row in view.rows()] == [2]
    for statement in ("insert node <a><b>x</b></a> into /s", "delete node /s/a[3]"):
        with suppress(AxlogError):
            doc.update(statement)
        assert [row["n"] for row in view.rows()] == [2]
    doc.update("delete node /s/a[2]")
    assert [row["n"] for row in view.rows()] == [1]


def test_a_rejected_value_leaves_what_blocks_as_it_was() -> None:
    doc = axlog.parse("<s><a><b>1</b></a><a><b>2</b></a></s>")
    text = "match /s/a[not(c[1])]/b/$x return sum($x) as n"
    view = doc.watch(text, on_value_error="reject")
    assert [row["n"] for row in view.rows()] == [3]
    with pytest.raises(AxlogError):
        doc.update("insert node <c/> into /s/a[1], insert node <a><b>x</b></a> into /s")
    assert [row["n"] for row in view.rows()] == [3]
    doc.update("insert node <c/> into /s/a[1]")
    assert [row["n"] for row in view.rows()] == [2]
    doc.update("delete node /s/a[1]/c")
    assert [row["n"] for row in view.rows()] == [3]


def test_nodes_in_where() -> None:
    doc = axlog.parse("<s><a><b k='1' l='2'/></a><a><b l='2' k='1'/></a><a/></s>")
    pairs = doc.watch("match //a#x, //a#y where x << y and deep-equal(x, y) return x.id, y.id")
    same = doc.watch("match //a#x, //*#y[b] where x is y return count() as n")
    assert [[str(v) for v in row.values()] for row in pairs.rows()] == [["1.1", "1.2"]]
    assert [row["n"] for row in same.rows()] == [2]
    doc.update("insert node <b k='1' l='2'/> into /s/a[3]")
    assert len(list(pairs.rows())) == 3


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("match //a[b[1] or count(c) > 1]", "AX211", "a position inside a function"),
        ("match //a[not(b[1]/$x)]/$y return $y", "AX211", "a position beside variables"),
        ("match //a[not(b[2])][1]", "AX211", "a position behind an `or` or `not`"),
        ("match //a[1][not(position() = 1)]", "AX211", "a second position"),
        ("match not(//a[1])", "AX211", "of whole paths"),
        ("match //a[b/$x][1] return $x", "AX211", "behind a predicate with variables"),
        ("match //a[count(b) > 1][1]", "AX211", "functions of a path"),
        ("match //a[1][b][2]", "AX211", "a second position"),
        ("match //a/parent::b[1]", "AX211", "a position on the axis parent"),
        ("match //a[position() != 2]", "AX201", "no range of positions"),
        ("match //a[position() + count(b) > 2]", "AX201", "position"),
        ("match //a[not(b[count(c) > 1])]", "AX211", "a function of a whole path"),
        ("match //a[count(b) > 1 or c = $x] return $x", "AX211", "beside a function of a whole"),
        ("match //a[count($x) > 1]/$x return $x", "AX211", "count() in a predicate"),
        ("match //a[b << 1]", "AX201", "compare nodes"),
        ("match //a/$x where $x << $x return $x", "AX211", "which are no nodes"),
        (
            "match //a[b * c > 1 and d#t << e] return t.id, count()",
            "AX211",
            "a name in a condition",
        ),
    ],
)
def test_refusals(text: str, code: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        axlog.parse("<s/>").watch(text)
    assert caught.value.code == code
    assert message in caught.value.message
    assert caught.value.place is not None


@pytest.mark.parametrize("text", [f"match {text} return t.id" for text in SAME])
def test_canonical_text(text: str) -> None:
    query = parse_query(text)
    assert str(parse_query(str(query))) == str(query)
