"""XPath to patterns: what an expression becomes, by its native text, and what is refused how."""

import pytest

from axlog.document.loader import load
from axlog.document.parser import Limits
from axlog.errors import QueryError, QuerySyntaxError, UnsupportedError
from axlog.query.pattern import Axis, Kind
from axlog.query.query import Query, language_of, parse_query
from axlog.query.xpath_compiler import parse_xpath
from lab.reference import rows
from tests.papers import document

# Paths: XPath, and the native text of its pattern without `match` and `return node.id`.
PATHS = {
    "/a/b[c]/@d": "/a/b[c]/@d#node",
    "/child::a/descendant::b[child::c]": "/a//b#node/c",
    "//a": "//a#node",
    "a//b": "/a//b#node",
    "//a//@b": "//a[descendant-or-self::*/@b#node]",
    "//@a": "//*/@a#node",
    "//a/text()": "//a/text()#node",
    "//node()": "//node()#node",
    "/node()": "/node()#node",
    "//comment()": "//comment()#node",
    "/a/processing-instruction('p')": '/a/processing-instruction("p")#node',
    "/*/self::a": "/*[self::a#node]",
    "/a/.": "/a#node",
    "//a[.//b or not(./c)]": "//a#node[//b or not(c)]",
    "//a[b or c or d and e]": "//a#node[b or c or d and e]",
    "//a[b = 5][@k != 'x']": "//a#node[b = 5 as xs:double][@k != \"x\"]",
    "//a[5 < b]": "//a#node[b > 5 as xs:double]",
    "//a[. = 'x']": "//a#node = \"x\"",
    "//a[string(.) = 'x' and . != 'y']": "//a#node[. = \"x\"][. != \"y\"]",
    "//a[text() = 'x']": "//a#node[text() = \"x\"]",
    "//a[@k = ('p', 'q')]": "//a#node/@k[. = \"p\" or . = \"q\"]",
    "//a[@k eq 'p']": "//a#node[@k = \"p\"]",
    "//a[. lt 'm']": "//a#node < \"m\" as xs:string",
    "//a[string(@k) != 'p']": "//a#node[@k != \"p\" or not(@k)]",
    "//a[number(@k) = 3]": "//a#node[@k = 3 as xs:double]",
    "//a[b < 'x']": "//a#node[b < \"x\" as xs:string]",
    "//a[b < c]": "//a#node[b = $v1][c > $v1 as xs:string]",
    "//a[xs:date(@k) <= xs:date('2024-05-01')]": "//a#node[@k <= \"2024-05-01\" as xs:date]",
    "//a[b/xs:decimal(.) = 1.50]": "//a#node[b = \"1.5\" as xs:decimal]",
    "//a[number(@k) < number(@m)]": "//a#node[@k = $v1][@m > $v1 as xs:double]",
    "//a[b = c]": "//a#node[b = $v1][c = $v1]",
    "//a[b != c]": "//a#node[b = $v1][c != $v1]",
    "//a[not(b = c)]": "//a#node[not(b = $v1 and c = $v1)]",
    "//a[count(b) > 0 and count(c) = 0]": "//a#node[b][not(c)]",
    "//a[exists(b) and empty(c) and boolean(d)]": "//a#node[b][not(c)]/d",
    "//a[true() and not(false())]": "//a#node",
    "//a[some $x in b satisfies $x/c = 1]": "//a#node/b[c = 1 as xs:double]",
    "//a[every $x in b satisfies $x = 1]": "//a#node[not(b[not(. = 1 as xs:double)])]",
    "//a | /b/c": "//a#node or /b/c#node",
    "(//a | //b)/c": "//a/c#node or //b/c#node",
    "//a/(b | c)[d]": "//a/b#node/d or //a/c#node/d",
    "(//a)[b]": "//a#node/b",
    "//a/following-sibling::*[1]": "//a[next-sibling::*#node]",
    "//a/following-sibling::*[position() = 1][self::b]": "//a[next-sibling::*#node[self::b]]",
    "//a/preceding-sibling::*[1]": "//a[previous-sibling::*#node]",
    "//a/following-sibling::b": "//a[following-sibling::b#node]",
    "/a[1]/@k[1]": "/a/@k#node",
    "//a[parent::b]": "//a#node[parent::b]",
    "//a[ancestor::b]/c": "//a[ancestor::b]/c#node",
    "//a/b/../c": "//a/b[parent::*/c#node]",
    "//a[following::b]": "//a#node[ancestor-or-self::node()[following-sibling::node()"
    "[descendant-or-self::b]]]",
    # absolute paths in predicates hang on the document while that is the same
    "//a[//c]": "//c, //a#node",
    "//a[not(//c)]": "not(//c), //a#node",
    "//a[//c or //d]": "//c or //d, //a#node",
    "//a[b[//c]]": "//c, //a#node/b",
    "//a[b = //c]": "//a#node[b = $v1], //c = $v1",
    "//a[b or //c]": "//a#node[b or ancestor-or-self::*[not(parent::*)][descendant-or-self::c]]",
    "//a[not(b = /c)]": "//a#node[not(b = $v1 and ancestor-or-self::*[not(parent::*)]"
    "[self::c = $v1])]",
    # what can never be
    "/..": "/*#node[not(self::node())]",
    "//a[false()]": "/*#node[not(self::node())]",
    "//@a/b": "/*#node[not(self::node())]",
    "//a[() = b]": "/*#node[not(self::node())]",
    # spaces and comments
    " //a (: a (: nested :) one :) [ b ] ": "//a#node/b",
    "/and/or[div]/match": "/and/or[div]/match#node",
}  # fmt: skip


@pytest.mark.parametrize("expression", PATHS)
def test_paths_select_nodes(expression: str) -> None:
    expected = {*PATHS[expression].split(", ")} if "," in PATHS[expression] else None
    text = str(parse_xpath(expression)).removeprefix("match ").removesuffix(" return node.id")
    if expected is None:
        assert text == PATHS[expression]
    else:  # the order of branches says nothing
        assert {*text.split(", ")} == expected


CONDITIONS = {
    "not(//a)": "not(//a)",
    "//a and not(/b)": "//a, not(/b)",
    "//a or //b": "//a or //b",
    "//a = 5": "//a = 5 as xs:double",
    "exists(//a[b])": "//a/b",
    "count(//a) >= 1": "//a",
    "true()": "/*",
    "false()": "/*[not(self::node())]",
    ". = 'x'": '/* = "x"',
    "/ = 'x' or //a": '/* = "x" or //a',
    "some $x in //a satisfies $x/b": "//a/b",
}


@pytest.mark.parametrize("expression", CONDITIONS)
def test_conditions_are_boolean(expression: str) -> None:
    pattern = parse_xpath(expression)
    assert pattern.is_boolean
    assert str(pattern) == f"match {CONDITIONS[expression]}"


def test_show_says_what_a_row_has() -> None:
    pattern = parse_xpath("/a/b//c", show=("id", "val", "cont"))
    assert pattern.columns == ("node.id", "node.val", "node.cont")
    assert [output.kind for output in pattern.outputs] == [Kind.ID, Kind.VAL, Kind.CONT]
    with pytest.raises(QueryError) as refusal:
        parse_xpath("//a", show=("size",))
    assert refusal.value.expected == "show= with some of id, val, cont, label, time"


def test_namespaces_of_the_caller() -> None:
    given = {"p": "urn:p", "": "urn:d"}
    assert str(parse_xpath("/p:a/b/@c/..", given)).startswith("match /Q{urn:p}a/Q{urn:d}b/@c[")
    assert str(parse_xpath("/Q{urn:x}a/@p:k", given)) == str(
        parse_xpath("/x:a/@p:k", {**given, "x": "urn:x"})
    )
    tree = load('<a xmlns="urn:d"><b k="1"/></a>')
    assert len(rows(tree, parse_xpath("//b/@k", given))) == 1
    assert not rows(tree, parse_xpath("//b"))


def test_parsing_is_cached() -> None:
    assert parse_xpath("//a[b]") is parse_xpath("//a[b]")
    assert parse_xpath("//a[b]", {"p": "urn:p"}) is not parse_xpath("//a[b]")


# EXAMPLES 18: P4 figure 1, on trees that satisfy it by either branch, and on one that does not.
@pytest.mark.parametrize(
    ("notation", "selected"),
    [
        ("a[b, c, x[y[d]]]", 1),
        ("a[x[d], y[d, d]]", 3),
        ("a[e[b], c, x[d]]", 1),
        ("a[c, x[d]]", 0),
        ("a[b, d]", 0),
    ],
)
def test_paper_4_figure_1(notation: str, selected: int) -> None:
    pattern = parse_xpath("/a[.//b or not(./c)]/*//d")
    assert len(rows(document(notation), pattern)) == selected


def test_paper_5_example_3_14_in_xpath() -> None:
    """EXAMPLES 22: the content of every c below b."""
    pattern = parse_xpath("/a/b//c", show=("id", "cont"))
    found = rows(document('a[b[d[c["x"]], c], c]'), pattern).values()
    assert sorted(str(answer.values[1]) for answer in found) == ["<c/>", "<c>x</c>"]


def test_following_of_an_attribute_has_what_its_element_holds() -> None:
    """As the recommendation says, and Saxon does; libxml2 and elementpath pass over it."""
    tree = document('a[@k="1", b[c], d]')
    assert len(rows(tree, parse_xpath("//@k/following::*"))) == 3
    assert len(rows(tree, parse_xpath("//c/ancestor::a/@k/following::c"))) == 1


def test_reverse_axes_are_the_patterns_own() -> None:
    axes = {node.axis for node in parse_xpath("//a[preceding-sibling::b]/ancestor::c").nodes()}
    assert axes == {Axis.DESCENDANT, Axis.PRECEDING_SIBLING, Axis.ANCESTOR}


# Refusals: the expression, where it stands, and the words that name it.
REFUSED = [
    ("//a[2]", 5, "this position is not supported"),
    ("//a[1]", 5, "this position is not supported"),
    ("//a[last()]", 5, "this position is not supported"),
    ("//a[position() < 3]", 5, "this position is not supported"),
    ("(//a)[1]", 7, "this position is not supported"),
    ("//a/following-sibling::b[1]", 26, "this position is not supported"),
    ("//a/following-sibling::*[2]", 26, "this position is not supported"),
    ("//a[b + 1 = 2]", 7, "arithmetic is not supported"),
    ("//a[-b]", 5, "arithmetic is not supported"),
    ("//a[b mod 2 = 0]", 7, "arithmetic is not supported"),
    ("//a[contains(., 'x')]", 5, "the function contains() is not supported"),
    ("//a intersect //b", 5, "the set operation `intersect` is not supported"),
    ("//a except //b", 5, "the set operation `except` is not supported"),
    ("//a << //b", 5, "`<<` is not supported"),
    ("//document-node()", 3, "the test document-node() is not supported"),
    ("//a/namespace::p", 5, "the axis namespace is not supported"),
    ("if (//a) then //b else //c", 1, "a choice by `if` is not supported"),
    ("//a, //b", 1, "a sequence is not supported"),
    ("count(//a)", 1, "the value of count() as a query is not supported"),
    ("string(//a)", 1, "the value of string() as a query is not supported"),
    ("//a/string()", 1, "the value of string() as a query is not supported"),
    ("'a'", 1, "a constant as a query is not supported"),
    ("1 = 1", 3, "comparing constants with constants is not supported"),
    ("count(//a) = 2", 1, "counting is not supported"),
    ("//a[xs:date(@k) < 'x']", 17, "comparing xs:date with xs:string is not supported"),
    ("//a[xs:decimal(@k) < @m]", 20,
     "comparing an untyped value with xs:decimal is not supported"),
    ("//a[xs:date(b) < xs:date(@k)]", 5,
     "a single value of a path that can find several nodes is not supported"),
    ("//a[b eq 'x']", 5, "a single value of a path that can find several nodes is not supported"),
    ("//a[@k eq 5]", 8, "comparing a node with a number by `eq`, `lt`, ... is not supported"),
    ("//a[not(b) = true()]", 5, "comparing not() is not supported"),
    ("//a[id('x')]", 5, "id() as a condition is not supported"),
    ("id('x')/a", 1, "id() where nodes are expected is not supported"),
    ("/", 1, "selecting the document node is not supported"),
    ("//a/..", 1, "selecting the document node is not supported"),
    ("//.", 1, "selecting the document node is not supported"),
    ("//a[b]/ancestor::node()", 1, "selecting the document node is not supported"),
    ("<a/>", 1, "a constructor here is not supported"),
    ("for $x in //a return $x", 1, "a value where nodes are expected is not supported"),
    ("//a/1", 5, "a value where nodes are expected is not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "column", "message"), REFUSED)
def test_what_is_outside_is_refused_by_name_and_place(
    expression: str, column: int, message: str
) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        parse_xpath(expression)
    assert refusal.value.message == message
    assert refusal.value.code == "AX211"
    assert refusal.value.place is not None
    assert (refusal.value.place.line, refusal.value.place.column) == (1, column)


BROKEN = [
    ("", "the query is empty", "a step (a name, `*`, `@name`, `.`, `..`, an axis)"),
    ("//a[", "the query ends too early", "a step (a name, `*`, `@name`, `.`, `..`, an axis)"),
    ("//a]", "unexpected `]`", "an operator, `/`, `[` or the end of the query"),
    ("//a[b", "the query ends too early", "`]`"),
    ("//a['x]", "the string is not closed", None),
    ("//a (: x", "the comment is not closed", None),
    ("/upward::a", "there is no axis upward", "one of ancestor, ancestor-or-self, attribute, child,"
     " descendant, descendant-or-self, following, following-sibling, parent, preceding,"
     " preceding-sibling, self"),
    ("//a[5b]", "a name directly follows a number", "a space"),
    ("//a = 1 = 2", "a chain of comparisons", None),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "message", "expected"), BROKEN)
def test_what_does_not_parse_says_what_could_stand_there(
    expression: str, message: str, expected: str | None
) -> None:
    with pytest.raises(QuerySyntaxError) as refusal:
        parse_xpath(expression)
    assert (refusal.value.message, refusal.value.expected) == (message, expected)


def test_undeclared_words() -> None:
    with pytest.raises(QueryError) as refusal:
        parse_xpath("//p:a")
    assert (refusal.value.code, refusal.value.message) == ("AX206", "the prefix p is not declared")
    with pytest.raises(QueryError) as refusal:
        parse_xpath("//a[b = $x]")
    assert refusal.value.code == "AX203"
    with pytest.raises(QueryError) as refusal:
        parse_xpath("//a = 1e999")
    assert refusal.value.code == "AX211", "no pattern: a plan compares with INF"


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 60 + "a" + ")" * 60,
        "//a" + "[b" * 60 + "]" * 60,
        "not(" * 60 + "a" + ")" * 60,
        "//" + "(a | b)/" * 7 + "c",
        "//a[" + "b" * 100_000 + "]",
    ],
)
def test_what_is_too_large_is_refused(expression: str) -> None:
    with pytest.raises(QueryError) as refusal:
        parse_xpath(expression)
    assert refusal.value.code == "AX213"


def test_long_chains_need_no_deep_stack() -> None:
    limits = Limits(parts=5000, branches=2000)
    for word in (" and ", " or "):
        pattern = parse_xpath("//a[" + word.join(["b"] * 2000) + "]", limits=limits)
        assert sum(1 for _ in pattern.nodes()) == 2001
    assert len(list(parse_xpath("/a" * 150).nodes())) == 150


# The three texts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("match //a#t return t.id", "pattern"),
        ("//a", "xpath"),
        ("matches/a", "xpath"),
        ("/match", "xpath"),
        ("for/a", "xpath"),
        ("let", "xpath"),
        ("for $x in //a return $x", "xquery"),
        ("let $d := doc('x') return $d//a", "xquery"),
        ("(: why :) for $x in //a return $x", "xquery"),
        ("<r>{for $x in //a return $x}</r>", "xquery"),
        ("declare namespace p = 'urn:p'; for $x in //p:a return $x", "xquery"),
        ("declare/a", "xpath"),
    ],
)
def test_languages_are_told_apart_by_the_first_word(text: str, language: str) -> None:
    assert language_of(text) == language
    query = parse_query(text)
    assert isinstance(query, Query)
    assert (query.language, query.text) == (language, text)
    assert (query.template is None) == (language != "xquery")


def test_a_language_can_be_named() -> None:
    assert parse_query("match/a", language="xpath").pattern == parse_xpath("/match/a")
    with pytest.raises(QueryError) as refusal:
        parse_query("//a", language="sql")
    assert refusal.value.expected == "one of pattern, xpath, xquery"
