"""Steps without their constants, and with those of one query again."""

import pytest

from axlog.query.general_steps import bound_steps, generalize_query
from axlog.query.pattern import Number
from axlog.query.query import parse_query
from axlog.query.steps import Clock, Filter, Order
from axlog.query.syntax_tree import Binary, Constant

HAVING = 'match //a[k/"{}"]/x/$x return $x, count() as n having n > {} order by n limit {}'


def test_constants_of_steps_come_after_those_of_the_pattern() -> None:
    general = generalize_query(parse_query(HAVING.format("b", "2.5", 3)).row_key)
    assert [str(each) for each in general.constants] == ["b", "2.5", "3"]
    assert [str(each) for each in general.parameters] == [
        "$parameter~1 = a text",
        "a constant in `having`",
        "a `limit`",
    ]


@pytest.mark.parametrize("query", [HAVING, "match //a#t/{}/$x where now - t > {} return $x"])
def test_queries_that_differ_in_constants_have_the_same_general_steps(query: str) -> None:
    one, other = (
        generalize_query(parse_query(query.format("b", *numbers)).row_key)
        for numbers in ((1, 2), (100.25, 40))
    )
    assert one.steps == other.steps
    assert one.constants != other.constants


def test_steps_with_constants_are_those_of_the_query() -> None:
    general = generalize_query(parse_query(HAVING.format("b", 2, 3)).row_key)
    other = parse_query(HAVING.format("c", 7, 9)).row_key
    steps = bound_steps(general.steps, generalize_query(other).constants)
    (condition,) = [step.condition for step in steps if isinstance(step, Filter)]
    assert isinstance(condition, Binary)
    assert isinstance(condition.right, Constant)
    assert condition.right.exact == 7
    assert [step.limit for step in steps if isinstance(step, Order)] == [9]
    assert len(steps) == len(other.steps)


def test_durations_of_the_clock_are_taken_out() -> None:
    key = parse_query("match //a#t/$x where now - t >= 2h return $x").row_key
    general = generalize_query(key)
    assert general.constants == (7_200_000_000,)
    (clock,) = [s for s in bound_steps(general.steps, (5,)) if isinstance(s, Clock)]
    assert [test.bound for test in clock.tests] == [5]


def test_constants_that_no_value_is_compared_with_stay() -> None:
    one, other = (
        generalize_query(parse_query(f"match //a/$n where $n * {n} > 3 return $n").row_key)
        for n in (2, 4)
    )
    assert one.constants == other.constants == (Number(value=3),)  # type: ignore[arg-type]
    assert one.steps != other.steps
