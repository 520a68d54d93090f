"""Queries with external variables: `Document.watch(query, parameters={...})`."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

import axlog
from axlog.errors import QueryError
from axlog.live.internals import maintained
from axlog.query.parameters import Value, parameters_of, with_parameters

ORDERS = '<r><a><k>it\'s "x" &amp; {y}</k><n>7</n><d>2020-02-01</d></a><a><k>z</k><n>3</n></a></r>'
ODD = 'it\'s "x" & {y}'


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("match //a[k/$p]/n/$x return $x", ODD),
        ("match //a[k = $p]/n/$x return $x", ODD),
        ("match //a[n > $p]/n/$x return $x", 5),
        ("match //a[n > $p]/n/$x return $x", Decimal("6.99")),
        ("match //a[n > $p]/n/$x return $x", 6.5),
        ("match //a[n/$p]/n/$x return $x", 7),
        ("match //a[d > $p]/n/$x return $x", date(2020, 1, 1)),
        ("match //a/n/$x where $x > $p return $x", 5),
        ("//a[k = $p]/n/text()", ODD),
        ("//a[n > $p]/n/text()", -5 + 11),
        ("//a[d > $p]/n/text()", date(2020, 1, 1)),
        ("(: $p :) //a[k != '$p'][n > $p]/n/text()", 5),
        ("declare variable $p external; for $a in //a where $a/k = $p return <n>{$a/n}</n>", ODD),
        ("declare variable $p as xs:decimal external; //a[n > $p]/n/text()", "5"),
        ("declare variable $p as xs:date external; //a[d > $p]/n/text()", "2020-01-01"),
    ],
)
def test_a_value_selects_as_a_literal_does(query: str, value: Value) -> None:
    doc = axlog.parse(ORDERS)
    view = doc.watch(query, parameters={"p": value})
    assert len(view.rows()) == 1
    assert "7" in str(view.rows()[0]) or "1.1.2" in str(view.rows()[0])


@pytest.mark.parametrize(
    "query",
    [
        "match //a[k/$p]/n/$x return $x",
        "match //a[n > $p]/n/$x return $x",
        "//a[k = $p]/n",
        "declare variable $p external; for $a in //a where $a/k = $p return <n>{$a/n/text()}</n>",
        "declare variable $p external; //a[n > $p]/n",
    ],
)
def test_views_with_different_parameters_share_one_plan(query: str) -> None:
    doc = axlog.parse(ORDERS, options=axlog.Options(share="always"))
    for number in range(20):
        doc.watch(query, f"v{number}", parameters={"p": number if ">" in query else f"c{number}"})
    assert len(maintained(doc).families.members) == 20
    assert len(maintained(doc).families.by_shape) == 1


def test_durations_and_times() -> None:
    text = "match /r[p/a#t][q/b#u] where u - t > $least return t.time"
    made = with_parameters(text, {"least": timedelta(minutes=90)})
    assert made == "match /r[p/a#t][q/b#u] where u - t > 5400000000us return t.time"
    made = with_parameters("//a[@at > $from]", {"from": datetime(2024, 5, 1, 10, 30)})
    assert made == '//a[@at > xs:dateTime("2024-05-01T10:30:00")]'
    axlog.parse("<r/>").watch(made)
    assert with_parameters("//a[b = $c]", {"c": True}) == "//a[b = true()]"


def test_a_variable_that_xpath_binds_is_no_parameter() -> None:
    assert parameters_of("//a[some $b in b satisfies $b = $c]") == {"c": "text"}
    with pytest.raises(QueryError, match=r"AX203: the query has no variable \$b"):
        with_parameters("//a[some $b in b satisfies $b = $c]", {"b": 1})


def test_a_default_value_makes_a_parameter_optional() -> None:
    text = (
        "declare variable $k external; declare variable $n as xs:integer external := 3;"
        " for $a in //a where $a/k = $k and $a/n > $n return <n>{$a/n/text()}</n>"
    )
    doc = axlog.parse(ORDERS)
    assert len(doc.watch(text, parameters={"k": ODD}).rows()) == 1
    assert doc.watch(text, parameters={"k": ODD, "n": 8}).rows() == []
    with pytest.raises(QueryError, match=r"AX204: the external variable \$k has no value"):
        doc.watch(text, parameters={"n": 8})


@pytest.mark.parametrize(
    ("query", "value", "code"),
    [
        ("match //a[k/$q]/$x return $x", "1", "AX203"),
        ("for $p in //a return $p", "1", "AX203"),
        ("//a[n > $p]", None, "AX218"),
        ("match //a[k/$p]/$x return $x", None, "AX218"),
        ("match //a[k/$p]/$x return $x", ["1"], "AX218"),
        ("//a[n > $p]", float("nan"), "AX218"),
        ("declare variable $p as xs:decimal external; //a[n > $p]", "many", "AX218"),
    ],
)
def test_refusals_name_the_parameter(query: str, value: Value, code: str) -> None:
    with pytest.raises(QueryError, match=r"\$p") as refusal:
        axlog.parse(ORDERS).watch(query, parameters={"p": value})
    assert refusal.value.code == code


def test_a_store_keeps_views_with_parameters(tmp_path: Path) -> None:
    query = "match //a[k/$p]/n/$x return $x"
    with axlog.open(tmp_path / "store", ORDERS) as doc:
        doc.watch(query, "odd", parameters={"p": ODD})
    with axlog.open(tmp_path / "store") as doc:
        assert [row["x"] for row in doc.view("odd")] == ["7"]
