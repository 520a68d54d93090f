"""What the native text refuses: with which code, where, in which words, and within which limits."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axlog.errors import QueryError, QuerySyntaxError, UnsupportedError
from axlog.query.native import parse_pattern
from axlog.query.normalize import normalise
from axlog.query.pattern import Pattern
from tests.strategies.patterns import patterns


def refusal_of(text: str) -> QueryError | None:
    try:
        parse_pattern(text)
    except QueryError as error:
        return error
    return None


# text, code, line, column, a word of the message, a word of what was expected or advised
REFUSED = [
    ("", "AX201", 1, 1, "empty", "`match`"),
    ("mtch /a", "AX201", 1, 1, "`mtch`", "`match`"),
    ("matching /a", "AX201", 1, 1, "`matching`", "`match`"),
    ("match a", "AX201", 1, 7, "starts at the document", "//a"),
    ("match not(.//a)", "AX201", 1, 11, "starts at the document", "//a"),
    ("match /a, b", "AX201", 1, 11, "starts at the document", "//a"),
    ("match /a[/b]", "AX201", 1, 10, "inside [...]", "//b for a descendant"),
    ("match /a[c or not(/b)]", "AX201", 1, 19, "inside [...]", "//b for a descendant"),
    ("match /a[b", "AX201", 1, 11, "ends too early", "`]`"),
    ("match /a\n  [b c]", "AX201", 2, 6, "`c`", "`and`"),
    ("match /a\r\n[\n\n  b = ]", "AX201", 4, 7, "`]`", "a number"),
    ('match /a["x]', "AX201", 1, 10, "not closed", "written twice"),
    ("match /a where", "AX201", 1, 15, "ends too early", "the name of a node"),
    ("match /a#t return t", "AX201", 1, 19, "t is a node", ".id"),
    ("match /a#t return t.foo", "AX201", 1, 20, "foo", "`.cont`"),
    ("match /a#t return t.variable", "AX201", 1, 20, "variable", "`.cont`"),
    ("match /a/..", "AX201", 1, 10, "`..`", "parent::node()"),
    ("match /a/foo::b", "AX201", 1, 10, "foo", "following-sibling"),
    ("match /a/following::b", "AX211", 1, 10, "following", ""),
    ("match /a/p:b", "AX206", 1, 10, "prefix p", "namespaces"),
    ("match /a[@p:b]", "AX206", 1, 11, "prefix p", "namespaces"),
    ("match /p:*", "AX206", 1, 8, "prefix p", "namespaces"),
    ("match /a[b][$x = 5]", "AX201", 1, 13, "child node", "$x[. = ...]"),
    ("match /a['v' = 5]", "AX201", 1, 10, "child node", "'v'[. = ...]"),
    ("match /a[@$x]", "AX201", 1, 11, "attribute", "@name"),
    ("match /a[attribute::node()]", "AX201", 1, 21, "attribute", "@name"),
    ("match /a[b == 5]", "AX201", 1, 13, "`=`", "a number"),
    ("match /a[b + c]", "AX201", 1, 10, "not a condition", "a comparison"),
    ("match /a[contains('x', 'y')]", "AX201", 1, 10, "no value", "where"),
    ("match /a[foo(b)]", "AX211", 1, 10, "foo", "contains"),
    ("match /a[count($b) > 1]", "AX211", 1, 10, "count()", "return"),
    ("match /a[local-name(b) = 'x']", "AX211", 1, 10, "local-name()", "*:n"),
    ("match /a[matches(b, '(')]", "FORX0002", 1, 21, "not closed", ""),
    ("match /a[not(d[b * c > 5])]", "AX211", 1, 16, "several values", "where"),
    ("match /a[b#t * c > 5]/$x return count()", "AX211", 1, 10, "a name in a condition", "where"),
    ("match /a[b * 2 < '5' as xs:date]", "AX201", 1, 25, "no type", "xs:date(...)"),
    ("match /a[$x * 2 > 5]", "AX201", 1, 10, "no value", "where"),
    ("match /a[not b]", "AX201", 1, 14, "`b`", "`]`"),
    ("match /a)", "AX201", 1, 9, "`)`", "the end of the query"),
    ("match /a[collect(. = 5)]", "AX201", 1, 10, "collect", "a path"),
    ("match /a[b = 1e999]", "AX207", 1, 14, "too large", ""),
    ('match /a[b = date "2024-13-01"]', "AX207", 1, 19, "2024-13-01", "2024-05-01"),
    ('match /a[b < date "2024-05-01T10:00:00.1234567Z"]', "AX207", 1, 19, "", "microseconds"),
    ('match /a[b < date "0001-01-01T00:00+10:00"]', "AX207", 1, 19, "not a date", ""),
    ("match /a#t where t < 1e9999", "AX207", 1, 22, "exponent", ""),
    ("match /a#t where t < " + 200 * "9", "AX207", 1, 22, "too long", "100"),
    ("match /a#t where t - t < 1", "AX201", 1, 18, "cancel", ""),
    ("match /a#t where 3 < 5", "AX201", 1, 18, "names no node", ""),
    ('match /a#t where t < "5"', "AX201", 1, 22, "string", "date"),
    ("match /a/$x where $x < 5m", "AX201", 1, 24, "not a time", "a number"),
    ("match /a/$x#t where $x < t", "AX201", 1, 26, "not a time", "a number"),
    ("match /a#t, /b#t", "AX202", 1, 15, "#t", "one declaration"),
    ("match /a#t/$t return $t, t.id as t", "AX202", 1, 26, "called t", "`as`"),
    ("match /a return t.id", "AX203", 1, 17, "#t", "right after the test"),
    ("match /a return $x", "AX203", 1, 17, "$x", ""),
    ("match /a#t\nwhere t < 5,\n  u < 5", "AX203", 3, 3, "#u", ""),
    ("match /a/$x where $x = $y", "AX203", 1, 19, "$y", ""),
    ("match /a[b != $x]", "AX204", 1, 15, "not bound", "= $x"),
    ("match /a[not(b/$x)][not(c/$x)]", "AX204", 1, 16, "several parts", "= $x"),
    ("match /a[b/$x or c] return $x", "AX204", 1, 28, "every row", "all its alternatives"),
    ("match /a[b#t or c] return t.id", "AX204", 1, 27, "every row", "all its alternatives"),
    ("match /a[not(b#t)] return t.id", "AX205", 1, 27, "not(...)", "outside"),
    ("match /a[not(b/$x)] return $x", "AX205", 1, 28, "not(...)", "outside"),
    ("match /a[not(b#t)][not(c#u)]\n where t < u", "AX204", 2, 8, "not visible", "one not"),
    ("match /a[b or collect(c)]", "AX211", 1, 15, "collect", ""),
]


@pytest.mark.parametrize(
    ("text", "code", "line", "column", "message", "rest"),
    REFUSED,
    ids=[case[0][:60] or "empty" for case in REFUSED],
)
def test_refusals(text: str, code: str, line: int, column: int, message: str, rest: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_pattern(text)
    error = caught.value
    assert error.place is not None
    assert (error.code, error.place.line, error.place.column) == (code, line, column)
    assert message in error.message
    assert rest in f"{error.expected} {error.advice}"
    assert (code == "AX201") == isinstance(error, QuerySyntaxError)
    assert (code == "AX211") == isinstance(error, UnsupportedError)


def test_a_refusal_in_full() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_pattern("match /a\n  [b c]")
    assert str(caught.value) == (
        "AX201: unexpected `c` (line 2, column 6)\n"
        "      [b c]\n"
        "         ^\n"
        "expected: a node name `#t`, a comparison, `/`, `[`, `]`, `and`, `or`, `+`, `-` or "
        "`*`, `div`, `idiv`, `mod`"
    )


@given(st.text(alphabet="match /a[]()$x#t.'\"<=@*:,notrewui-5", max_size=30))
def test_any_text_is_parsed_or_refused_with_a_place(text: str) -> None:
    error = refusal_of("match " + text)
    assert error is None or (error.place is not None and error.place.caret())


@given(st.data(), patterns(selves=True, siblings=True))
def test_what_is_expected_is_said_in_words(data: st.DataObject, pattern: Pattern) -> None:
    """Cut anywhere, a text is refused without a terminal's name, or is itself a text."""
    text = str(pattern)
    cut = text[: data.draw(st.integers(0, len(text)))]
    error = refusal_of(cut)
    if error is not None:
        assert error.expected or "not closed" in error.message
        assert not any(word.isupper() and len(word) > 1 for word in str(error.expected).split())


# Limits -------------------------------------------------------------------------------------------

DEEP = {
    "path": "match " + "/a" * 200,
    "predicates": "match /a" + "[b[c]" * 198 + "]" * 198,
    "siblings": "match /a" + "[following-sibling::a" * 199 + "]" * 199,
    "nots": "match /a[" + "not(a or not(" * 66 + "b" + "))" * 66 + "]",
    "ors": "match /a[" + "(a and (b or " * 98 + "c" + "))" * 98 + "]",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_the_deepest_patterns_leave_room_on_the_stack(text: str) -> None:
    assert parse_pattern(str(parse_pattern(text))) == parse_pattern(text)
    limit = sys.getrecursionlimit()
    depth = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + 500)
    try:
        pattern = parse_pattern(text + " ")
        assert normalise(pattern) is pattern
        assert hash(pattern) == hash(parse_pattern(str(pattern)))
        assert len(list(pattern.nodes())) >= 60
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    "text",
    [
        "match " + "/a" * 201,
        "match /a" + "[b[c]" * 20_000 + "]" * 20_000,
        "match /a[" + "not(" * 15_000 + "b" + ")" * 15_000 + "]",
        "match " + "/a" * 60_000,
        "match /a[b = '" + "x" * 100_000 + "']",
    ],
    ids=["path", "predicates", "nots", "length", "string"],
)
def test_query_bombs_are_refused(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_pattern(text)
    assert caught.value.code == "AX213"


def test_parentheses_are_no_nesting() -> None:
    assert parse_pattern("match " + "(" * 5_000 + "/a" + ")" * 5_000) == parse_pattern("match /a")
