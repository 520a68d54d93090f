"""XPath for the language page: axes, tests, functions and operators, from the parser's own tables.

Each table must have an example for everything that the parser knows, and the parser must know
everything that has one: otherwise no page is generated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from axlog.query.path_parser import AXES, KIND_TESTS
from axlog.query.pattern_fragment import FUNCTIONS, INFIX_SYMBOLS, INFIX_WORDS, SETS
from lab.documentation.examples import Example, block

STEPS = (
    "/shop/order/oid",
    "//shipped/oid",
    "/shop/*",
    "//@nr",
    "//order/paid/..",
    "/shop/(shipped | order/client)",
    "//order/oid | //shipped/oid",
)
CONDITIONS = (
    "//order[paid]/oid",
    "//order[price > 10 or client = 'ENS']/oid",
    "//order[not(paid) and @nr = 2]/oid",
    "//order[oid = //shipped/oid]/client",
    "//order[some $p in price satisfies $p > 10]/oid",
    "//order[every $p in price satisfies $p > 10]/oid",
    "//oid[. eq '17']",
    "not(//order[price > 100])",
    "//order[paid]/following-sibling::*[1]",
    "//order[2]",
)
OF_AXES = {
    "ancestor": "//paid/ancestor::order",
    "ancestor-or-self": "//paid/ancestor-or-self::paid",
    "attribute": "//order/attribute::nr",
    "child": "/child::shop/child::shipped",
    "descendant": "/shop/shipped/descendant::text()",
    "descendant-or-self": "/shop/shipped/descendant-or-self::*",
    "following": "//paid/following::shipped",
    "following-sibling": "//order/following-sibling::shipped",
    "parent": "//paid/parent::*",
    "preceding": "//shipped/preceding::paid",
    "preceding-sibling": "//shipped/preceding-sibling::order",
    "self": "/shop/*/self::shipped",
}
OF_TESTS = {
    "attribute": "//order/attribute(nr)",
    "comment": "//comment()",
    "document-node": "/document-node()",
    "element": "/shop/element(shipped)",
    "item": "//item()",
    "namespace-node": "//namespace-node()",
    "node": "/shop/shipped/node()",
    "processing-instruction": "//processing-instruction()",
    "schema-attribute": "//schema-attribute(a)",
    "schema-element": "//schema-element(a)",
    "text": "//shipped/oid/text()",
}
OF_FUNCTIONS = {
    "boolean": "boolean(//order/paid)",
    "collection": "collection('shop')//shipped",
    "count": "//order[count(paid) = 0]/oid",
    "data": "//order[data(oid) = '17']/client",
    "distinct-values": "for $c in distinct-values(//order/client) return <client>{$c}</client>",
    "doc": "doc('shop.xml')/shop/shipped",
    "document": "document('shop.xml')/shop/shipped",
    "empty": "//order[empty(paid)]/oid",
    "exists": "//order[exists(paid)]/oid",
    "false": "//order[paid or false()]/oid",
    "id": "for $o in //order return <order>{id($o)}</order>",
    "last": "//order[last()]",
    "not": "//order[not(paid)]/oid",
    "number": "//price[number(.) > 10]",
    "position": "//order/following-sibling::*[position() = 1]",
    "string": "//oid[string(.) = '17']",
    "true": "//order[paid and true()]/oid",
}
OF_TYPES = {
    "xs:date": "//order[xs:date(@due) < xs:date('2026-01-05')]",
    "xs:dateTime": "//order[@due/xs:dateTime(.) < xs:dateTime('2026-01-05T00:00:00Z')]",
    "xs:decimal": "//price[xs:decimal(.) > 9.5]",
    "xs:double": "//price[xs:double(.) > 10]",
    "xs:integer": "//order[xs:integer(@nr) = 2]/oid",
    "xs:string": "//price[xs:string(.) < '9']",
    "xs:time": "//order[xs:time(@at) >= xs:time('12:00:00')]",
}
OF_OPERATORS = {
    "||": "//order/(client || '!')",
    "=>": "//oid => count()",
    "<<": "//oid[. << //client[1]]",
    ">>": "//oid[. >> //order[2]/client]",
    "div": "//order[price div 2 > 1]",
    "idiv": "//order[price idiv 2 > 1]",
    "mod": "//order[price mod 2 = 0]",
    "to": "//order[@nr = (1 to 3)]",
    "is": "//oid[. is //order[1]/oid]",
    "instance of": "//oid instance of node()+",
    "treat as": "//oid treat as node()+",
    "castable as": "//order/(oid castable as xs:integer)",
    "cast as": "//order/(oid cast as xs:integer)",
    "intersect": "//oid intersect //order/oid",
    "except": "//oid except //order/oid",
}


def page() -> Iterator[str]:
    """The part of the page, line by line."""
    yield from ("", "### Paths", "", *block([Example(query) for query in STEPS]))
    yield from ("", "### Conditions", "", *block([Example(query) for query in CONDITIONS]))
    yield from ("", "### Axes", "", *_each(OF_AXES, AXES))
    yield from ("", "### Tests of kinds", "", *_each(OF_TESTS, KIND_TESTS))
    yield from ("", "### Functions", "")
    yield "Patterns express these. Views with other functions are kept by plans."
    yield from ("", *_each(OF_FUNCTIONS, {each for each in FUNCTIONS if ":" not in each}))
    yield from ("", "### Types", "")
    yield "Casts in comparisons, of one node or of each (`due/xs:date(.)`). Without a zone: UTC."
    yield from ("", *_each(OF_TYPES, {each for each in FUNCTIONS if ":" in each}))
    yield from ("", "### Operators beyond patterns", "")
    yield "Views with them are kept by plans; the rows are items."
    yield from ("", *_each(OF_OPERATORS, {*INFIX_SYMBOLS, *INFIX_WORDS, *SETS}))


def _each(examples: Mapping[str, str], known: Collection[str]) -> list[str]:
    unequal = set(examples) ^ set(known)
    if unequal:
        raise ValueError(f"examples and parser differ in {', '.join(sorted(unequal))}")
    return block([Example(query) for query in examples.values()])
