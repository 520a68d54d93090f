"""Values, aggregates, `having`, order and limits in the native text: steps, texts and refusals."""

from __future__ import annotations

import pytest

from axlog.errors import QueryError, ValueProblem
from axlog.query.native import parse_pattern
from axlog.query.query import parse_query
from axlog.query.steps import Compute, Distinct, Filter, Group, Order

CANONICAL = [
    "match /orders/order[client/$c]/total/$t return $c, count() as orders, sum($t) as total"
    " having sum($t) > 1000",
    "match //order[client/$c]/total/$t where $t * 1.2 > 100 return $c, $t * 1.2 as gross",
    "match //pos[vehicle/$v][at/$t]/p/$p return $v, latest($p by $t)",
    "match //a[x/$x]/y/$y return $x, $y order by y descending, x limit 10",
    "match //order[item]/total/$t return count(), sum($t), min($t), max($t), avg($t)",
    "match //a#t where t.val > 5 and t.time < 9 return t.id, string-length(t.val) as n",
    'match //a/$x return $x, string-join($x, ", "), collect($x), count(distinct $x) as d',
    'match //a/$x return if ($x > 5) then "big" else $x as size, -$x as minus limit 0',
    'match //a/$x where not(contains($x, "b")) or $x = "c" return $x order by x',
    "match //a/$x return $x, count() as n having n > 1 order by n descending limit 3",
    "match //a//b/$x return count()",
    "match //order return count()",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_the_canonical_text_is_the_query_again(text: str) -> None:
    query = parse_query(text)
    again = parse_query(str(query))
    assert str(again) == str(query)
    assert again.columns == query.columns
    assert again.columns.types == query.columns.types
    assert again.key == query.key
    assert again.pattern == query.pattern


def test_the_steps_of_a_group() -> None:
    query = parse_query(CANONICAL[0])
    assert [type(step) for step in query.steps] == [Compute, Group, Filter, Compute]
    assert query.columns.types == ("text", "integer", "decimal")
    assert query.columns == ("c", "orders", "total")
    assert query.key == ("c",)


def test_a_query_without_computed_values_has_no_steps() -> None:
    assert parse_query("match //a#t/$x where $x > 5 and t > 3 return $x as y, t.id").steps == ()


def test_what_an_aggregate_ranges_over_decides_the_pattern() -> None:
    once = parse_query("match //order[item]/total/$t return sum($t)")
    assert [type(step) for step in once.steps] == [Compute, Group, Compute]
    several = parse_query("match //a//b/$x return count()")
    assert isinstance(several.steps[0], Distinct)
    assert [output.kind.value for output in several.pattern.outputs] == ["id"]


def test_an_order_is_the_last_step() -> None:
    order = parse_query("match //a/$x return $x order by x descending limit 3").steps[-1]
    assert isinstance(order, Order)
    assert order.limit == 3
    assert order.keys[0].is_descending


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("match //a/$x where count() > 3 return $x", 20, "an aggregate inside where"),
        ("match //a/$x return sum(count())", 25, "an aggregate inside sum()"),
        ("match //a/$x return $x having $x > 3", 31, "having needs an aggregate"),
        ("match //a/$x return shout($x)", 21, "there is no function shout()"),
        ("match //a/$x return current-date()", 21, "there is no function current-date()"),
        ('match //a/$x return matches($x, "(")', 33, ""),
        ("match //a[b/$y]/$x return $x, count() having $y > 3", 46, "$y is not an output"),
        ("match //a/$x return $x + 1", 21, "this output has no name"),
        ("match //a[b/$y]/$x return $x order by $y", 39, "$y is not an output"),
        ("match //a/$x return $x order by z", 33, "z is not an output"),
        ("match //a/$x order by $x", 23, "a query without outputs has no order"),
        ("match //a/$x return sum($x), sum($x)", 30, "two outputs are called sum"),
        ("match //a/$x return latest($x)", 21, "latest() needs `by`"),
        ("match //a/$x return sum($x by $x)", 21, "sum() has no `by`"),
        ("match //a/$x return sum(distinct $x)", 25, "only count has `distinct`"),
        ("match //a/$x return $x limit 1.5", 30, "a limit is a whole number"),
        ("match //a#t return t * 2 as x", 20, "t is a node"),
        ("match //a/$x return string-join($x, $x)", 21, "the separator of string-join()"),
    ],
)
def test_refusals_have_a_place(text: str, column: int, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    assert message in caught.value.message
    assert caught.value.place is not None
    assert (caught.value.place.line, caught.value.place.column) == (1, column)


def test_places_that_need_a_pattern_refuse_steps() -> None:
    with pytest.raises(QueryError, match="AX211"):
        parse_pattern("match //a/$x return count()")
    with pytest.raises(QueryError, match="AX211"):
        parse_query("match //a/$x return count()").only_pattern  # noqa: B018


@pytest.mark.parametrize(
    "text",
    [
        "match //a/$x return $x div 0 as n",
        "match //a/$x return sum($x) mod 0.0 as n",
        "match //a[b idiv 0 > 1]/$x return $x",
        "match //a/$x where $x div 0 = 1 return $x",
    ],
)
def test_a_division_by_zero_that_is_written_is_refused(text: str) -> None:
    with pytest.raises(ValueProblem, match="FOAR0001") as raised:
        parse_query(text)
    assert raised.value.place is not None
