"""XQuery views and XQuery Update statements for the language page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from axlog.errors import AxlogError
from axlog.live.document import parse
from axlog.query.function_names import CONTEXT_FUNCTIONS, FUNCTIONS, TYPES
from lab.documentation.examples import SHOP, Example, Statement, block

VIEWS = (
    "for $o in /shop/order return $o/oid",
    "for $o in //order where $o/price > 10 return <big nr='{$o/@nr}'>{$o/oid/text()}</big>",
    "let $shop := doc('shop.xml')/shop\n"
    "for $o in $shop/order, $s in $shop/shipped\n"
    "where $o/oid = $s/oid return <gone>{$o/client}{string($s/oid)}</gone>",
    "for $o in //order return <order>{id($o)}, {$o/paid}</order>",
    "<report>{for $o in //order return <oid>{string($o/oid)}</oid>}</report>",
    "declare namespace p = 'urn:one'; for $o in //order return <p:order>{$o/oid}</p:order>",
    "for $o in //order order by $o/price return $o/oid",
    "for $o at $i in //order return $o/oid",
    "for $o in //order return if ($o/paid) then $o/oid else $o/client",
    "for $o in //order group by $c := $o/client order by $c\n"
    "return <client name='{$c}'>{count($o)}, {sum($o/price)}</client>",
    "for $o in //order let $s := //shipped[oid = $o/oid]\n"
    "return <order>{$o/oid}{count($s)}</order>",
    "(for $o in //order order by number($o/price) descending return $o/oid)[1]",
    "declare function local:net($p) { $p div 1.19 }; for $o in //order return local:net($o/price)",
    "for $o in //order return copy $c := $o modify (delete node $c/price, rename node $c as 'o')\n"
    "return $c",
    "sum(//order/price)",
)
FOREIGN = (
    "for $o in //order\nreturn map { 'id': string($o/oid), 'price': number($o/price) }",
    "for tumbling window $w in //order start when true() end at $e when $e mod 2 = 0\n"
    "return <pair>{$w/oid}</pair>",
    "declare function local:depth($n) { 1 + max((0, $n/* ! local:depth(.))) };\nlocal:depth(/shop)",
    "fold-left(//price ! number(), 0, function($sum, $price) { $sum + $price })",
)
UPDATES = (
    "insert node <d/> into /a",
    "insert node <d/> as first into /a",
    "insert node <d/> as last into /a",
    "insert nodes (<d/>, <e/>) before /a/c",
    "insert node <d/> after /a/b",
    'insert node attribute n { "1" } into /a/b',
    "delete nodes /a/b",
    "replace node /a/b with <d/>",
    'replace value of node /a/b with "2"',
    'rename node /a/b as "d"',
    "for $b in /a/b where $b > 0 return (delete node $b, insert node <d>{$b + 1}</d> into /a)",
    "let $x := /a/b return insert node $x into /a/c",
    'if (/a/b = 1) then rename node /a/b as "one" else delete node /a/b',
    "for $x in /a/c insert <d>Jim</d>",
    "insert <d/> into /a/*",
    "delete //b[not(c)]",
    "insert node (copy $x := /a/b modify rename node $x as 'd' return $x) into /a",
    "typeswitch (/a/c/*) case empty-sequence() return delete node /a/c default return ()",
    "for $x in /a/* return switch ($x) case '1' return rename node $x as 'one' default return ()",
    "declare updating function local:f($e) { delete node $e }; local:f(/a/b)",
    "copy $x := /a modify delete node $x/b return $x",
    "/a/b",
)

CALCULATIONS = (
    "/a/b + 1",
    "/a/b - 1",
    "-3 * 2",
    "7 div 2",
    "7 idiv 2",
    "7 mod 2",
    "'a' || 'b'",
    "1 to 3",
    "/a/b is /a/*[1]",
    "/a/b << /a/c",
    "count(/a/* intersect /a/c)",
    "count(/a/* except /a/c)",
    "count(/a/b | /a/c)",
    "count(/a/*[position() = last()])",
    "abs(-2)",
    "boolean(/a/d)",
    "ceiling(1.5)",
    "concat('a', 'b', 'c')",
    "contains('abc', 'b')",
    "data(/a/b)",
    "count(distinct-values((1, 1, 2)))",
    "count(doc('a.xml')/a)",
    "count(document('a.xml')/a)",
    "empty(/a/d)",
    "ends-with('abc', 'c')",
    "error()",
    "exists(/a/c)",
    "false()",
    "floor(1.5)",
    "local-name(/a/c)",
    "lower-case('ABC')",
    "max((1, 3, 2))",
    "min((1, 3, 2))",
    "name(/a/c)",
    "namespace-uri(/a/c)",
    "normalize-space('  a  b ')",
    "not(/a/d)",
    "number(/a/b) + 1",
    "local-name(element {QName('', 'x')} {()})",
    "round(2.5)",
    "starts-with('abc', 'a')",
    "string(/a/b)",
    "string-join(('a', 'b'), '-')",
    "string-length('abc')",
    "substring('abcd', 2, 2)",
    "sum((1, 2, 3))",
    "translate('abc', 'ab', 'xy')",
    "true()",
    "upper-case('abc')",
    "xs:string(1)",
    "xs:integer('7')",
    "xs:int('7')",
    "xs:decimal('1.5')",
    "xs:double('1.5')",
    "xs:boolean('1')",
    "xs:QName('b')",
    "xs:untypedAtomic('7') + 1",
    "0.1 + 0.2",
    "1e6",
    "'7' cast as xs:integer",
    "'x' castable as xs:date",
    "1 instance of xs:decimal",
    "(1 treat as xs:integer) + 1",
    "(1 to 3) ! (. * 2)",
    "'a,b' => tokenize(',') => count()",
    "avg((1, 2))",
    "codepoint-equal('a', 'b')",
    "codepoints-to-string((97, 98))",
    "compare('a', 'b')",
    "deep-equal(/a/b, <b>1</b>)",
    "encode-for-uri('a b')",
    "exactly-one(/a/d)",
    "head((1, 2, 3))",
    "index-of((5, 7, 5), 5)",
    "insert-before((1, 2), 2, 9)",
    "matches('A12', '^[A-Z]\\d+$')",
    "node-name(/a/c)",
    "one-or-more(/a/b)",
    "remove((5, 6, 7), 2)",
    "replace('2024-05-01', '(\\d+)-(\\d+)-(\\d+)', '$3.$2.$1')",
    "reverse((1, 2, 3))",
    "count(/a/b/root()/a)",
    "round-half-to-even(2.5)",
    "string-to-codepoints('ab')",
    "subsequence((1, 2, 3, 4), 2, 2)",
    "substring-after('key=value', '=')",
    "substring-before('key=value', '=')",
    "tail((1, 2, 3))",
    "tokenize('a, b,c', ',\\s*')",
    "zero-or-one(/a/b)",
    "xs:date('2024-01-31') + xs:yearMonthDuration('P1M')",
    "xs:date('2024-05-01') + xs:dayTimeDuration('P30D')",
    "xs:date('2024-05-31') - xs:date('2024-05-01')",
    "xs:dateTime('2024-05-01T10:00:00Z')",
    "xs:time('10:00:00') - xs:time('09:30:00')",
    "xs:duration('P1Y2M')",
    "dateTime(xs:date('2024-05-01'), xs:time('10:00:00'))",
    "year-from-date(xs:date('2024-05-01'))",
    "month-from-date(xs:date('2024-05-01'))",
    "day-from-date(xs:date('2024-05-01'))",
    "timezone-from-date(xs:date('2024-05-01+02:00'))",
    "adjust-date-to-timezone(xs:date('2024-05-01'))",
    "year-from-dateTime(xs:dateTime('2024-05-01T10:20:30'))",
    "month-from-dateTime(xs:dateTime('2024-05-01T10:20:30'))",
    "day-from-dateTime(xs:dateTime('2024-05-01T10:20:30'))",
    "hours-from-dateTime(xs:dateTime('2024-05-01T10:20:30'))",
    "minutes-from-dateTime(xs:dateTime('2024-05-01T10:20:30'))",
    "seconds-from-dateTime(xs:dateTime('2024-05-01T10:20:30'))",
    "timezone-from-dateTime(xs:dateTime('2024-05-01T10:20:30Z'))",
    "adjust-dateTime-to-timezone(xs:dateTime('2024-05-01T10:20:30'), ())",
    "hours-from-time(xs:time('10:20:30'))",
    "minutes-from-time(xs:time('10:20:30'))",
    "seconds-from-time(xs:time('10:20:30.5'))",
    "timezone-from-time(xs:time('10:20:30-05:00'))",
    "adjust-time-to-timezone(xs:time('10:20:30+01:00'))",
    "years-from-duration(xs:duration('P1Y2M3DT4H5M6S'))",
    "months-from-duration(xs:duration('P1Y2M3DT4H5M6S'))",
    "days-from-duration(xs:duration('P1Y2M3DT4H5M6S'))",
    "hours-from-duration(xs:duration('P1Y2M3DT4H5M6S'))",
    "minutes-from-duration(xs:duration('P1Y2M3DT4H5M6S'))",
    "seconds-from-duration(xs:duration('P1Y2M3DT4H5M6S'))",
    "count(collection('c'))",
    "id(/a/c)",
    "1 div 0",
    "xs:date('2023-02-29')",
    "current-date()",
)
"""Expressions of statements: every operator, every function."""


def views() -> Iterator[str]:
    """XQuery views, line by line."""
    yield from ("", *block([Example(query, language="xquery") for query in VIEWS]))


def foreign() -> Iterator[str]:
    """Queries by Saxon, line by line."""
    yield from ("", "```text")
    for number, text in enumerate(FOREIGN):
        view = parse(SHOP).watch(text, language="xquery")
        first, *more = text.splitlines()
        yield from ("",) if number else ()
        yield f"query      {first}"
        yield from (f"           {line}" for line in more)
        yield f"items      {', '.join(str(item) for item in view.items())}"
        yield f"maintainer {view.explain().maintainer}"
    yield "```"


def statements() -> Iterator[str]:
    """XQuery Update, line by line."""
    yield from ("", *block([Statement(text) for text in UPDATES]))
    yield from ("", "### Expressions in statements", "")
    yield "Each is the value in `replace value of node /a/b with ...` on `<a><b>1</b><c/></a>`:"
    missing = {*FUNCTIONS, *CONTEXT_FUNCTIONS, *(f"xs:{name}" for name in TYPES)} - {
        found for text in CALCULATIONS for found in re.findall(r"([\w:-]+)\(", text)
    }
    if missing:
        raise ValueError(f"no example for {', '.join(sorted(missing))}")
    yield from ("", "```text", *(f"{text:43} {_value(text)}" for text in CALCULATIONS), "```")


def _value(expression: str) -> str:
    """The value of an expression, carried out in a statement."""
    document = parse("<a><b>1</b><c/></a>")
    try:
        document.update(f"replace value of node /a/b with {expression}")
    except AxlogError as error:
        return f"{error.code}: {error.message}"
    (row,) = document.watch("match /a/b#t return t.val").rows()
    return str(row["t.val"])
