"""Random queries for Saxon, beyond our own fragment too, with updates beside what they read."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from axlog.errors import QueryError
from axlog.query.query import parse_query
from lab.laws.xquery_cases import NUMBERS, WORDS, History, XQueryCase, make_xquery_case

_PATHS = (
    "//o", "/r/o", "//i", "//s", "/r/*", "//o/i", "//c", "//o/@k", "//o/c/text()", "//i/..",
    "//t/following-sibling::*", "//p/ancestor::o", "//s/preceding-sibling::o", "/r/o[2]",
    "//node()", "//c/preceding::t", "//o[i]/c", "//o[not(i)]", "//comment()", "//o/self::o",
    "//*:o", "/*/*", "/descendant::i/child::p", "//o//text()", "/r/o[c = 'x']/t",
)  # fmt: skip


def make_saxon_case(random: Random) -> XQueryCase:
    """A random case: queries of the XQuery law, or such as only Saxon evaluates."""
    case = make_xquery_case(random)
    queries = tuple(q if random.random() < 0.3 else _query(random, q) for q in case.queries)
    histories = tuple(_history(random, each) for each in case.histories)
    return replace(case, queries=queries, histories=histories)


def make_accepted_case(random: Random) -> XQueryCase:
    """A random case of queries that axlog keeps itself, whatever they are made for.

    The order of groups without `order by` is left to the implementation: such queries are left out.
    """
    queries: list[str] = []
    while not queries:
        case = make_saxon_case(random)
        queries = [each for each in case.queries if " group by $k" not in each and _is_ours(each)]
    return replace(case, queries=tuple(queries))


def _is_ours(query: str) -> bool:
    try:
        parse_query(query, language="xquery")
    except QueryError:
        return False
    return True


def _history(random: Random, given: History) -> History:
    updates = (_update(random) if random.random() < 0.5 else each for each in given.updates)
    return replace(given, updates=tuple(updates))


def _query(random: Random, inside: str) -> str:
    path, other, word = random.choice(_PATHS), random.choice(_PATHS), random.choice(WORDS)
    number = random.choice(NUMBERS)
    value = random.choice(
        ("string(.)", "count(*)", "name(.)", "*[1]", "@k", "t", ".", "i/p", "string-length(.)",
         "..", "c/text()", "data(.)", "position()", "last()", "local-name(..)")
    )  # fmt: skip
    return random.choice(
        (
            f"typeswitch (({path})[1]) case $e as element(o) return $e/t case element() "
            f"return {other} default return '{word}'",
            f"for $x in {path} return switch ($x/c[1]) case '{word}' return {other} "
            f"case 'y' case 'z' return $x/t default return 1",
            f"try {{ {path} ! xs:integer(.) }} catch * {{ count({other}) }}",
            f"for $x in {path} return map {{ 'k': $x/{value}, 'n': {other} }}?k",
            f"array {{ {path} }}",
            f"[{path}, {other}]?*",
            f"declare function local:f($x, $y) {{ $x/c, count($y) }}; local:f({path}, {other})",
            f"declare function local:f($x as xs:string*) as xs:integer {{ count($x) }}; "
            f"local:f({path})",
            "declare function local:d($n) { if (empty($n)) then 0 else 1 + max((0, $n/* ! "
            f"local:d(.))) }}; for $x in {path} return local:d($x)",
            f"declare variable $all := {path}; $all[{value}]",
            f"let $f := function($x) {{ $x/{value} }} return for $x in {path} return $f($x)",
            f"for-each({path}, function($x) {{ string($x) }})",
            f"sort({path} ! string())",
            f"fold-left({path}, 0, function($a, $x) {{ $a + string-length($x) }})",
            f"for tumbling window $w in {path} start when true() end at $e when $e mod 2 = 0 "
            f"return <w>{{$w/{value}}}</w>",
            f"for $x at $n in {path} count $m where $n < {number} return ($n, $m, $x/{value})",
            f"{path}/{value}",
            f"({path})[{value}]",
            f"{path} ! {value}",
            f"some $x in {path} satisfies $x = {other}",
            f"every $x in {path} satisfies exists($x/c)",
            f"{path} except {other}",
            f"{path} intersect {other}",
            f"({path} | {other}) ! name()",
            f"<out>{{{path}, attribute n {{ count({other}) }}[1]}}</out>/*",
            f"<out>{{{path}}}</out>//{random.choice(('c', 'p', 'text()', '@k'))}",
            f"innermost({path})", f"has-children(({path})[1])", f"root(({path})[1])//{value}",
            f"path(({path})[1])", f"serialize({path})", f"deep-equal({path}, {other})",
            f"for $x in {path} order by string($x) descending, count({other}) return $x/{value}",
            f"for $x in {path} group by $k := string($x) return <g>{{$k, count($x)}}</g>",
            f"sum({path} ! number())", f"avg({path}//t ! xs:integer(.))",
            f"string-join({path} => distinct-values(), ',')",
            f"analyze-string(string(({path})[1]), '[a-z]')//text()",
            f"{path} instance of element(o)+", f"({path})[1] treat as node()?",
            f"if ({path}) then {other} else '{word}'",
            f"let $x := {path} let $y := {other} where $x = '{word}' return $y",
            f"({path})[last()] << ({other})[1]", f"({path})[1] is ({other})[1]",
            f"({path})[1]/(if (c) then c else ..)", f"{path}/(., {other})[2]",
            f"format-number(sum({path}//p ! number()), '0.0')",
            f"({inside}) => count()", f"let $q := ({inside}) return $q[1]",
        )
    )  # fmt: skip


def _update(random: Random) -> str:
    at = random.randint(1, 4)
    word = random.choice(WORDS)
    node = random.choice(("o", "s", "i", "c", "t"))
    return random.choice(
        (
            f"for $x in (//{node})[{at}] return insert node <!--{word}--> as first into $x",
            f"for $x in (//{node})[{at}] return insert node <!--{word}--> into $x",
            f"for $x in (//{node})[{at}] return insert node text {{'{word}'}} as last into $x",
            f"for $x in (//{node})[{at}] return insert node <c>{word}</c> as first into $x",
            f"for $x in (//{node})[{at}] return insert node <u>{word}</u> as last into $x",
            f"for $x in (//{node})[{at}][not(@k)] return insert node attribute k {{'x'}} into $x",
            f"for $x in (//{node})[{at}][not(@m)] return insert node attribute m {{'y'}} into $x",
            f"delete node (//comment())[{at}]", f"delete node (//u)[{at}]",
            f"delete node (//text())[{at}]", f"delete node (//@k)[{at}]",
            f"for $x in (//u)[{at}] return replace value of node $x with '{word}'",
            f"for $x in (//{node})[{at}] return rename node $x as 'u'",
            f"for $x in (//u)[{at}] return rename node $x as '{node}'",
            f"for $x in (//@k)[{at}] return rename node $x as 'n'",
            f"for $x in (//text())[{at}] return replace value of node $x with '{word}'",
            f"for $x in (//{node})[{at}] return replace node $x with <u><c>{word}</c></u>",
            f"insert node <u><c>{word}</c><i/></u> as first into /r",
        )
    )  # fmt: skip
