"""XQuery views and XQuery Update statements for the language page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from axlog.errors import AxlogError
from axlog.live.document import parse
from axlog.query.update_parser import FUNCTIONS, TYPES
from lab.documentation.examples import Example, Statement, block

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
)
"""Expressions of statements: every operator, every function."""


def views() -> Iterator[str]:
    """XQuery views, line by line."""
    yield from ("", *block([Example(query) for query in VIEWS]))


def statements() -> Iterator[str]:
    """XQuery Update, line by line."""
    yield from ("", *block([Statement(text) for text in UPDATES]))
    yield from ("", "### Expressions in statements", "")
    yield "Each is the value in `replace value of node /a/b with ...` on `<a><b>1</b><c/></a>`:"
    missing = {*FUNCTIONS, *(f"xs:{name}" for name in TYPES)} - {
        found for text in CALCULATIONS for found in re.findall(r"([\w:-]+)\(", text)
    }
    if missing:
        raise ValueError(f"no example for {', '.join(sorted(missing))}")
    yield from ("", "```text", *(f"{text:44}{_value(text)}" for text in CALCULATIONS), "```")


def _value(expression: str) -> str:
    """The value of an expression, carried out in a statement."""
    document = parse("<a><b>1</b><c/></a>")
    try:
        document.update(f"replace value of node /a/b with {expression}")
    except AxlogError as error:
        return f"{error.code}: {error.message}"
    (row,) = document.watch("match /a/b#t return t.val").rows()
    return str(row["t.val"])
