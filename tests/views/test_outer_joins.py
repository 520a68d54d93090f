"""Left joins with aggregates, range joins, and sets of rows."""

from operator import itemgetter
from random import Random
from typing import Any

import pytest

from axlog.errors import QueryError
from axlog.evaluate.joins import Bag, Row, add_all
from axlog.evaluate.work import message_meter
from axlog.views.operators.aggregates import Count, Max, Sum
from axlog.views.operators.feed import Stored
from axlog.views.operators.group import Group
from axlog.views.operators.left_join import LEFT, RIGHT, LeftJoin
from axlog.views.operators.range_join import RangeJoin
from axlog.views.operators.sets import difference, intersection, union


def test_an_outer_row_has_its_aggregate_and_zero_if_there_are_no_inner_rows() -> None:
    people = Stored(("person", "name"), {}, [("person",)])
    sales = Stored(("sale", "person"), {})
    bought = Group(sales, ("person",), [("items", Count())])
    join = LeftJoin(people, bought, ("person",), bought.empty)
    first: Bag = {("p1", "Ann"): 1, ("p2", "Bob"): 1}
    assert join.apply(LEFT, people.apply(0, first)) == {("p1", "Ann", 0): 1, ("p2", "Bob", 0): 1}
    moved = join.apply(RIGHT, bought.apply(0, {("s1", "p1"): 1, ("s2", "p1"): 1}))
    assert moved == {("p1", "Ann", 0): -1, ("p1", "Ann", 2): 1}
    moved = join.apply(RIGHT, bought.apply(0, {("s1", "p1"): -1, ("s2", "p1"): -1}))
    assert moved == {("p1", "Ann", 2): -1, ("p1", "Ann", 0): 1}
    assert join.schema == ("person", "name", "items")


def test_an_optional_part_is_none_until_it_comes() -> None:
    orders, none = Stored(("order",), {}), (None,)
    join = LeftJoin(orders, Stored(("invoice", "order"), {}), ("order",), none)  # type: ignore[arg-type]
    alone: Any = ("o1", None)
    assert join.apply(LEFT, orders.apply(0, {("o1",): 1})) == {alone: 1}
    assert join.apply(RIGHT, {("i1", "o1"): 1}) == {alone: -1, ("o1", "i1"): 1}
    assert join.apply(RIGHT, {("i2", "o1"): 1}) == {("o1", "i2"): 1}
    assert join.lineage(("o1", "i2")) == [(LEFT, ("o1",)), (RIGHT, ("i2", "o1"))]
    assert join.apply(RIGHT, {("i1", "o1"): -1, ("i2", "o1"): -1}) == {
        ("o1", "i1"): -1,
        ("o1", "i2"): -1,
        alone: 1,
    }


def test_a_right_row_that_concerns_too_many_left_rows_exceeds_the_budget() -> None:
    left = Stored(("k", "n"), {("k", n): 1 for n in range(50)})
    join = LeftJoin(left, Stored(("k", "m"), {}), ("k",), (0,), message_meter(10))
    with pytest.raises(QueryError) as raised:
        join.apply(RIGHT, {("k", 1): 1})
    assert raised.value.code == "AX216"


def incomes(*rows: Row) -> tuple[Stored, RangeJoin]:
    """People with the number and the sum of the prices below their income."""
    people, prices = Stored(("person", "income"), {}), Stored(("item", "price"), {})
    values = itemgetter(1), itemgetter(1)
    aggregates = [("items", Count()), ("total", Sum(itemgetter(1)))]
    join = RangeJoin((people, prices), values, "<", aggregates)
    join.apply(LEFT, people.apply(0, dict.fromkeys(rows, 1)))
    return people, join


def test_a_range_join_reports_the_left_rows_that_a_right_row_concerns() -> None:
    _, join = incomes(("ann", 10), ("bob", 20), ("cid", 20))
    assert join.apply(RIGHT, {("x", 15): 1}) == {
        ("bob", 20, 0, 0): -1,
        ("bob", 20, 1, 15): 1,
        ("cid", 20, 0, 0): -1,
        ("cid", 20, 1, 15): 1,
    }
    assert join.apply(RIGHT, {("y", 20): 1}) == {}
    assert join.apply(LEFT, {("dan", 21): 1}) == {("dan", 21, 2, 35): 1}
    assert join.apply(LEFT, {("bob", 20): -1}) == {("bob", 20, 1, 15): -1}


def test_a_range_join_of_many_values_equals_nested_loops() -> None:
    random = Random(11)
    rows = [(f"p{at}", random.randrange(10_000)) for at in range(1500)]
    people, join = incomes()
    prices: Bag = {(f"i{at}", random.randrange(10_000)): 1 for at in range(1500)}
    join.apply(RIGHT, prices)
    given: Bag = dict.fromkeys(rows, 1)
    output = join.apply(LEFT, people.apply(0, given))
    for change in range(6):
        moved: Bag = {(f"n{change}", random.randrange(10_000)): 1}
        gone = random.choice(list(prices))
        moved[gone] = -1
        add_all(prices, moved)
        add_all(output, join.apply(RIGHT, moved))
    wanted: Bag = {}
    for person, income in rows:
        below = [int(price) for _, price in prices if int(price) < income]
        wanted[(person, income, len(below), sum(below))] = 1
    assert output == wanted == join.lookup((), ())


def test_a_range_join_refuses_aggregates_with_large_states() -> None:
    side = Stored(("a", "b"), {})
    values = itemgetter(1), itemgetter(1)
    with pytest.raises(AssertionError, match="small"):
        RangeJoin((side, side), values, "<", [("most", Max(itemgetter(0)))])


def test_sets_of_rows() -> None:
    random = Random(4)
    left, right = Stored(("id",), {}), Stored(("id",), {})
    both, minus = union([("id",), ("id",)]), difference(left, ("id",))
    common = intersection(left, ("id",))
    found: list[Bag] = [{}, {}, {}]
    for _ in range(300):
        port = random.randrange(2)
        side = (left, right)[port]
        row: Row = (random.randrange(6),)
        delta: Bag = {row: -1 if side.kept.count(row) else 1}
        side.apply(0, delta)
        add_all(found[0], both.apply(port, delta))
        add_all(found[1], minus.apply(port, delta))
        inner = common.right.apply(0, delta) if port else delta
        add_all(found[2], common.apply(port, inner))
        ones, others = set(left.kept.rows()), set(right.kept.rows())
        for bag, wanted in zip(found, (ones | others, ones - others, ones & others), strict=True):
            assert bag == dict.fromkeys(wanted, 1)
