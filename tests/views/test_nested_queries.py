"""Queries with queries inside: kept incrementally, and equal to Saxon after every update."""

from random import Random

import pytest

import axlog
from axlog.errors import QueryError
from lab.laws.nested_cases import nested_case, nested_queries
from lab.laws.xquery_law import check_xquery

pytest.importorskip("saxonche")


@pytest.mark.parametrize("name", nested_queries())
def test_oracle_a_nested_query_follows_updates(name: str) -> None:
    case = nested_case(Random(name), [nested_queries()[name]], histories=2)
    assert check_xquery(case), "Saxon has no answer to compare with"


def test_a_condition_with_a_join_inside_not_selects_targets_of_statements() -> None:
    orders = "<order><oid>1</oid></order><order><oid>2</oid></order>"
    doc = axlog.parse(f"<s>{orders}<shipped><oid>1</oid></shipped></s>")
    open_orders = doc.watch("//order[not(oid = //shipped/oid)]/oid", maintainer="incremental")
    assert open_orders.items() == ["<oid>2</oid>"]
    doc.update("delete nodes //order[not(oid = //shipped/oid)]")
    assert open_orders.items() == []
    assert doc.xml().count("<order>") == 1


def test_an_undeclared_variable_is_refused_before_there_is_data() -> None:
    doc = axlog.parse("<s/>")
    with pytest.raises(QueryError, match="AX203") as raised:
        doc.watch("for $x in //a return count($y)")
    assert "$y is used but never declared" in raised.value.message
