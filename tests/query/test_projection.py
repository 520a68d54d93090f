"""What a query reads, by static analysis."""

import pytest

from axlog.query.projection import projection_of

READS = {
    "for $o in //order where $o/total > 5 return $o/@id":
        ["//order", "//order/@id ...", "//order/total ..."],
    "//a[b]/c": ["//a", "//a/b", "//a/c ..."],
    "count(//b)": ["//b"],
    "//o/i[1]/..": ["//o ...", "//o/i"],
    "//c/following-sibling::d": ["//c", "//d ..."],
    "/r/o/ancestor::r": ["//r ...", "/r/o"],
    "(//a)[last()]/text()": ["//a", "//a/text() ..."],
    "<a>{//b/c}</a>/c": ["//b/c ..."],
    "for $x in //a group by $k := $x/c return <g>{count($x)}</g>": ["//a", "//a/c ..."],
    "for $x in //a order by $x/n return 1": ["//a", "//a/n ..."],
    "declare function local:f($x) { $x/name }; local:f(/s/p)": ["/s/p", "/s/p/name ..."],
    "typeswitch (//x) case $y as element(x) return $y/z default return 1":
        ["//x ...", "//x/z ..."],
    "try { sum(//a) } catch * { //b }": ["//a ...", "//b ..."],
    "map { 'k': //a }": ["//a ..."],
    "some $x in //a satisfies $x/b": ["//a", "//a/b"],
    "//a instance of element()+": ["//a"],
    "//a except //b": ["//a ...", "//b ..."],
    "1 + 1": [],
}  # fmt: skip


@pytest.mark.parametrize("query", READS)
def test_paths_that_a_query_reads(query: str) -> None:
    found = projection_of(query, {})
    assert found is not None
    assert found.lines() == READS[query]


@pytest.mark.parametrize(
    "query",
    [
        "let $f := function($x) { $x/.. } return //a ! $f(.)",
        "path(//a)",
        "id('x')",
        "//a ! root()",
        "declare function local:f($x) { local:f($x/*) }; local:f(/r)",
        "declare default function namespace 'x'; count(//a)",
        "declare namespace fn = 'x'; fn:count(//a)",
        "doc('x')//a",
        "for tumbling window $w in //a start when true() return $w",
        "declare variable $x external; $x/a",
        "current-dateTime() > //a",
        "this is no query",
    ],
)
def test_what_is_not_known_reads_everything(query: str) -> None:
    assert projection_of(query, {}) is None
