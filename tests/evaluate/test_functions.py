"""Functions and casts of expressions: values that Saxon does not decide, and those most used."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from axlog.document.loader import load
from axlog.errors import QueryError
from axlog.evaluate.atoms import text_of
from axlog.evaluate.expressions import DOCUMENT, Evaluator, Scope
from axlog.evaluate.items import Node
from axlog.live.document import parse
from axlog.query.dates import (
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Time,
    YearMonthDuration,
    date_of,
    days_of,
    duration_of,
    time_value_of,
)
from axlog.query.numbers import MOST_DIGITS
from axlog.query.syntax_tree import Statement
from axlog.query.update_parser import UpdateParser

TREE = load(
    '<r xmlns:p="urn:p"><a k="1">12.50</a><a k="2">x</a><p:b>t<!--c--></p:b><p:b>t</p:b></r>'
)


def evaluated(text: str) -> list[Any]:
    expression = UpdateParser(text, {}).expression()
    evaluator = Evaluator(TREE, Statement(expression, text, ()))
    return evaluator.value(expression, Scope({"doc": [DOCUMENT]}))


def shown(text: str) -> str:
    return " ".join(
        TREE.string_value(item) if isinstance(item, Node) else text_of(item)
        for item in evaluated(text)
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - 4 div 2", "5"),
        ("0.1 + 0.2", "0.3"),
        ("1 div 3", "0.333333333333333333"),
        ("7 idiv 2, -7 mod 3", "3 -1"),
        ("1e6, 1e5, 1e-7, 1.5e0", "1.0E6 100000 1.0E-7 1.5"),
        ("xs:date('2024-01-31') + xs:yearMonthDuration('P1M')", "2024-02-29"),
        ("xs:date('2024-05-01') + xs:dayTimeDuration('P30D')", "2024-05-31"),
        ("xs:date('2024-05-31') - xs:date('2024-05-01')", "P30D"),
        ("xs:dateTime('2024-05-01T24:00:00')", "2024-05-02T00:00:00"),
        ("days-from-duration(xs:dayTimeDuration('PT60H'))", "2"),
        ("string-join(tokenize('a, b,c', ',\\s*'), '|')", "a|b|c"),
        ("replace('abracadabra', 'a(.)', '[$1]')", "[b]r[c][d][b]ra"),
        ("'a,b' => tokenize(',') => count()", "2"),
        ("(1 to 3) ! (. * 2)", "2 4 6"),
        ("/r/a ! number(.)", "12.5 NaN"),
        ("sum(/r/a[1]), avg((1, 2)), min((3, 1.5))", "12.5 1.5 1.5"),
        ("max(('b', 'c', 'a')), distinct-values((1, 1.0, '1'))", "c 1 1"),
        ("insert-before(1 to 3, 2, 9), remove(1 to 3, 2)", "1 9 2 3 1 3"),
        ("index-of((1, 2, 1), 1), subsequence(1 to 5, 2, 2), reverse(1 to 3)", "1 3 2 3 3 2 1"),
        ("deep-equal(/r/*[3], /r/*[4]), deep-equal(/r/a[1], /r/a[2])", "true false"),
        ("name(/r/*[3]), local-name(/r/*[3]), namespace-uri(/r/*[3])", "p:b b urn:p"),
        ("/r/a[1] is /r/a[1], /r/a[1] << /r/a[2], /r/a[1] >> /r/a[2]", "true true false"),
        ("/r/a[1]/root()/r/a[2]", "x"),
        ("5 cast as xs:string, '5' castable as xs:int, 'x' castable as xs:date", "5 true false"),
        ("1 instance of xs:decimal, (1, 2) instance of xs:integer+, /r instance of element()",
         "true true true"),
        ("zero-or-one(()), exactly-one(3), one-or-more((1, 2))", "3 1 2"),
        ("/r/a[position() = last()], /r/a[1]", "x 12.50"),
        ("codepoints-to-string((97, 98)), compare('a', 'b'), encode-for-uri('a b')", "ab -1 a%20b"),
        ("substring('12345', 1.5, 2.6), substring-before('a-b', '-'), translate('abc', 'ab', 'x')",
         "234 a xc"),
        ("index-of((xs:duration('P1Y'), xs:duration('P1M')), xs:duration('P12M'))", "1"),
        ("number('x') = number('x'), number('x') != 1, number('x') < 1, 1 > number('x')",
         "false true false false"),
        ("xs:untypedAtomic('NaN') > 1, max((1, number('x')))", "false NaN"),
        ("-xs:decimal('1234567890123456789012345678901234567890.5')",
         "-1234567890123456789012345678901234567890.5"),
        ("abs(xs:decimal('-1234567890123456789012345678901234567890.5'))",
         "1234567890123456789012345678901234567890.5"),
        ("xs:dayTimeDuration('PT1S') div 3, xs:dayTimeDuration('P1D') * 0.1e0",
         "PT0.33333333333333333333S PT2H24M"),
        ("round(2.5), round(-2.5), round-half-to-even(2.5), round(1234.567, -2)", "3 -2 2 1200"),
        ("normalize-space('  a  b '), upper-case('ä'), string-length('é')", "a b Ä 1"),
        ("adjust-dateTime-to-timezone(xs:dateTime('2024-05-01T00:00:00Z'), "
         "xs:dayTimeDuration('PT2H'))", "2024-05-01T02:00:00+02:00"),
    ],
)  # fmt: skip
def test_values(text: str, value: str) -> None:
    assert shown(text) == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1 div 0", "FOAR0001"),
        ("1.0 mod 0", "FOAR0001"),
        ("1e0 idiv 0", "FOAR0001"),
        ("'a' + 1", "XPTY0004"),
        ("/r/a[2] + 1", "FORG0001"),
        ("/r/a[2] = 1", "FORG0001"),
        ("xs:integer('1.5')", "FORG0001"),
        ("xs:integer(xs:double('NaN'))", "FOCA0002"),
        ("xs:date('2023-02-29')", "FORG0001"),
        ("xs:date('99999999999999-01-01')", "FODT0001"),
        ("xs:date('99999999999999-13-01')", "FORG0001"),
        ("xs:yearMonthDuration('P99999999999999999999Y')", "FODT0002"),
        ("xs:date('2024-05-01') < xs:dateTime('2024-05-01T00:00:00')", "XPTY0004"),
        ("exactly-one(())", "FORG0005"),
        ("sum(('a', 'b'))", "FORG0006"),
        ("boolean((1, 2))", "FORG0006"),
        ("replace('a', 'a*', 'x')", "FORX0003"),
        ("replace('a', 'a', '$')", "FORX0004"),
        ("codepoints-to-string(0)", "FOCH0001"),
        ("1 treat as xs:string", "XPDY0050"),
        ("xs:yearMonthDuration('P1Y') * 1e20", "FODT0002"),
        ("xs:dayTimeDuration('PT1S') * xs:double('NaN')", "FOCA0005"),
        ("string-length(1)", "XPTY0004"),
        ("abs(1, 2)", "XPST0017"),
        ("dateTime(xs:date('2024-05-01Z'), xs:time('10:00:00+01:00'))", "FORG0008"),
    ],
)
def test_errors(text: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        evaluated(text)
    assert caught.value.code == code


def test_numbers_have_a_largest_size() -> None:
    text = "9" * (MOST_DIGITS // 2 + 10)
    with pytest.raises(QueryError) as caught:
        evaluated(f"xs:integer('{text}') * xs:integer('{text}')")
    assert caught.value.code == "FOAR0002"
    with pytest.raises(QueryError) as caught:
        evaluated(f"xs:decimal('{text}.5') * xs:decimal('{text}.5')")
    assert caught.value.code == "FOAR0002"


@pytest.mark.parametrize(
    "value",
    [
        Date(0, 60),
        DateTime(1_500_000_000),
        Time(5),
        Duration(3, 4),
        DayTimeDuration(0, 7),
        YearMonthDuration(2),
    ],
)
def test_values_survive_pickling(value: Any) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert type(again) is type(value)
    assert hash(again) == hash(value)


def test_equality_is_by_instant_and_by_length() -> None:
    noon = time_value_of("2024-05-01T12:00:00Z", DateTime)
    assert noon == time_value_of("2024-05-01T14:00:00+02:00", DateTime)
    assert noon != time_value_of("2024-05-01", Date)
    assert Duration(12) == YearMonthDuration(12)
    assert DayTimeDuration(0, 0) == YearMonthDuration(0)


def test_seconds_keep_all_their_decimals() -> None:
    one, other = (duration_of(f"PT0.{'0' * 30}{digit}S") for digit in (1, 2))
    assert one is not None
    assert other is not None
    assert one != other
    assert one.nanoseconds == Fraction(1, 10**22)
    assert str(one) == "PT0.0000000000000000000000000000001S"


def test_the_calendar_runs_both_ways() -> None:
    for days in [*range(-800_000, 800_000, 997), -719_469, -719_468, 0, 59, 60, 10**9]:
        assert days_of(*date_of(days)) == days


def test_a_statement_calculates_exactly() -> None:
    document = parse("<r><p>0.10</p><p>0.20</p><due>2024-01-31</due></r>")
    document.update("insert node <sum>{xs:decimal(/r/p[1]) + xs:decimal(/r/p[2])}</sum> into /r")
    document.update(
        "replace value of node /r/due with xs:date(/r/due) + xs:yearMonthDuration('P1M')"
    )
    text = document.xml()
    assert "<sum>0.3</sum>" in text
    assert "<due>2024-02-29</due>" in text
    assert Decimal("0.3") == evaluated("0.1 + 0.2")[0]
