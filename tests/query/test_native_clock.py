"""`now` in the native text: what it means, its canonical text, and where it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from axlog.errors import QueryError
from axlog.query.clock_spans import common_spans, holds_at, next_change, spans_of
from axlog.query.query import parse_query
from axlog.query.steps import clock_of
from axlog.query.values import compare_numbers

LATE = "match /s[o/r/k/$x#t][not(p/r/k/$x)] where now - t >= 2h return $x"
QUIET = "match /s[o/r/k/$x][not(p/r#h[k/$x])] where now - h <= 5m return $x"


def test_constraints_on_the_clock_leave_the_pattern() -> None:
    query = parse_query(LATE)
    clock = clock_of(query.steps)
    assert str(query.pattern) == "match /s[o/r/k/$x#t][not(p/r/k/$x)] return $x, t.time"
    assert clock is not None
    assert [(test.terms, test.operator) for test in clock.tests] == [(((-1, "t.time"),), ">=")]
    assert query.columns == ("x",)


def test_a_not_about_the_clock_is_a_pattern_that_blocks() -> None:
    clock = clock_of(parse_query(QUIET).steps)
    assert clock is not None
    (unless,) = clock.unless
    assert str(replace(unless.pattern, branches=())) == "match  return $x, h.time"
    assert [node.name for node in unless.pattern.nodes()][1:] == [None, "h", None, None]
    assert unless.columns == ("x",)


@pytest.mark.parametrize(
    "text",
    [
        LATE,
        QUIET,
        "match //a#t[due/$d] where now - 30d >= $d return t.id",
        "match //a#t where now - 2*t != 3us return count() as n having n > 1",
        "match not(//beat#h) where now - h <= 5",
        "match //a#t[not(b#h[not(c#k)])] where now - h <= 5, now - k <= h - t return t.id",
    ],
)
def test_the_canonical_text_is_the_query_again(text: str) -> None:
    query = parse_query(text)
    again = parse_query(str(query))
    assert str(again) == str(query)
    assert again.pattern == query.pattern


def test_a_node_may_be_called_now() -> None:
    query = parse_query("match //a#now where now > 3 return now.id")
    assert clock_of(query.steps) is None
    assert str(query) == "match //a#now where now > 3 return now.id"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("match //a#t return now - t as age", "AX211", "change all the time"),
        ("match //a#t return count() as n having n > now", "AX211", "change all the time"),
        ("match //a[t/$x] where $x + now > now - 3 return $x", "AX211", "change all the time"),
        ("match //a[b or not(c#h)] where now - h > 3", "AX211", "inside an `or`"),
        ("match //a#t[collect(b#b)] where now - t > 3 return b.val", "AX211", "collect"),
        ("match //a#t where now - q > 3", "AX203", "#q is used but never declared"),
    ],
)
def test_now_is_refused_with_its_place(text: str, code: str, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    assert caught.value.code == code
    assert said in caught.value.message
    assert caught.value.place is not None


def test_spans_are_exact() -> None:
    for factor in (1, 2, -1, -3):
        for operator in ("<", "<=", ">", ">=", "=", "!="):
            for amount in range(-7, 8):
                spans = spans_of(factor, operator, amount)
                both = common_spans([spans, spans_of(1, "<=", 4)])
                for clock in range(-9, 10):
                    holds = compare_numbers(factor * clock, operator, amount)
                    assert holds_at(spans, clock) == holds
                    assert holds_at(both, clock) == (holds and clock <= 4)
                    after = next_change(both, clock)
                    if after is not None:
                        assert after > clock
                        assert holds_at(both, after) != holds_at(both, after - 1)
