"""Tree patterns for the language page: the grammar's rules, in words, with examples of each.

`SECTIONS` must name every rule of the grammar once, and the examples must use every one and every
terminal: `uncovered` says what is missing, and the page is not made then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lark import Token, Tree

from axlog.query.native_parser import GRAMMAR
from axlog.query.pattern import Axis, Kind
from lab.documentation.examples import (
    MESSAGES,
    MONITOR,
    Example,
    block,
    paragraph,
)


@dataclass(frozen=True)
class Section:
    """Rules that belong together."""

    title: str
    rules: tuple[str, ...]
    words: str
    examples: Sequence[Example]


def _monitored(query: str) -> Example:
    return Example(query, MONITOR, MESSAGES)


SECTIONS = (
    Section(
        "The query",
        ("start", "roots"),
        "`match`, one or more paths from the document node, optional constraints and outputs. "
        "All paths must match. Without `return` the query is Boolean. A row is a distinct tuple "
        "of outputs; a row that matches in several ways has as many derivations.",
        (
            Example("match /shop/order/paid"),
            Example("match /shop/order/oid/$x return $x"),
            Example("match //order/oid/$x, //shipped/oid/$x return $x"),
            Example("match /shop[//oid/$x] return $x"),
        ),
    ),
    Section(
        "Paths and steps",
        ("path", "slash", "step"),
        "`/` is a child, `//` a descendant. At the start of the query `/a` is the root element and "
        "`//a` any element, the root included. Inside a predicate a path starts at the node of the "
        "predicate: `b`, `./b`, and `//c` or `.//c` for a descendant. A step may name its node "
        "with `#t`, for constraints and outputs.",
        (
            Example("match /shop/order#o/oid#t return o.id, t.val"),
            Example("match //oid#t return t.id, t.val"),
            Example("match //shop[order/paid]/shipped/oid/$x return $x"),
            Example("match /shop[.//paid]/order[./paid]/oid/$x return $x"),
        ),
    ),
    Section(
        "Tests",
        ("test",),
        "A name tests an element; with a declared prefix, or in full as `Q{uri}name`, one of a "
        "namespace. `*` is any element, `*:name` one of that name in any namespace or none, `p:*` "
        'any of one namespace, `"text"` a text node with exactly this string, `text()` '
        "any text node, `comment()` any comment, `processing-instruction()` any processing "
        "instruction, or with a string one of this target, and `node()` any of all these. `$x` is "
        "any element or text, and binds its label: two steps with one variable join. `@name` is "
        "an attribute.",
        (
            Example('match //order[client/"INRIA"]/oid/$x return $x'),
            Example("match /shop/*#t return t.id, t.label"),
            Example("match /shop/shipped/$x return $x"),
            Example("match /shop/shipped//text()#t return t.val"),
            Example("match /shop/shipped//node()#t return t.id, t.label"),
            Example("match //comment()#t return t.val", "<a><!--checked--><b/></a>"),
            Example('match //processing-instruction("sort")#t return t.val',
                    "<a><?sort ascending?><b/></a>"),
            Example("match /shop/order/@nr#t return t.val"),
            Example("match /p:a/p:b#t return t.val", '<a xmlns="urn:one"><b>1</b></a>',
                    namespaces={"p": "urn:one"}),
            Example("match /Q{urn:one}a/Q{urn:one}b#t return t.val",
                    '<a xmlns="urn:one"><b>1</b></a>'),
            Example("match //*:b#t return t.val", '<a xmlns:x="urn:one"><x:b>1</x:b><b>2</b></a>'),
            Example("match //p:*#t return t.label", '<a xmlns:x="urn:one"><x:b>1</x:b></a>',
                    namespaces={"p": "urn:one"}),
            Example("match //Q{urn:one}*#t return t.val", '<a xmlns:x="urn:one"><x:b>1</x:b></a>'),
            Example("match /q:*"),
            Example("match /shop/order/.."),
        ),
    ),
    Section(
        "Predicates, `and`, `or`, `not`",
        ("predicate", "expression", "conjunction"),
        "A predicate holds conditions on its node. `not(p)`: no match of p below this node for the "
        "present bindings; variables that occur only inside one `not` are local to it. A variable "
        "that is output or joined must be bound outside an `or` or in all its branches. "
        "`collect(p)` collects all values of a path in one column; the paths of XQuery "
        "constructors become it.",
        (
            Example("match //order[paid][price > 10]/oid/$x return $x"),
            Example("match //order[paid and price > 10]/oid/$x return $x"),
            Example('match //order[client/"ENS" or (paid and price > 10)]/oid/$x return $x'),
            Example("match //order[not(paid)]/oid/$x return $x"),
            Example("match /shop[order/oid/$x][not(shipped/oid/$x)] return $x"),
            Example("match //order#o[collect(client#c)] return o.id, c.val"),
            Example("match //order[client/$x or paid] return $x"),
        ),
    ),
    Section(
        "Comparisons of values",
        ("condition",),
        "The string value of the path's last node against a constant or a variable; `.` is the "
        "node itself. `<`, `<=`, `>`, `>=` compare two numbers as numbers, two dates or times "
        "by instant and two texts by code point; they never hold between different kinds. `=` with "
        "a string compares strings ([Kinds of values](meaning.md#rows)). `= $x` binds `$x` to the "
        "string value. `as` "
        "a type reads both sides as XPath does. In a string, its quote is written twice.",
        (
            Example("match //order[price >= 5][@nr = 2]/oid/$x return $x"),
            Example("match //price#p[. < 10] return p.val"),
            Example("match //order[client = 'INRIA']/oid/$x return $x"),
            Example("match //order[oid = $x][price != -1]/client/$c return $x, $c"),
            Example("match //order[price < '9' as xs:string]/oid/$x return $x"),
            Example('match //d#t[. >= date "2026-01-05"] return t.val',
                    "<a><d>2026-01-04</d><d>2026-01-05T08:00:00Z</d></a>"),
        ),
    ),
    Section(
        "Functions and calculations in predicates",
        ("term", "product", "factor", "operand", "operands"),
        "A condition may compute: the values of paths and of `.` are operands of functions and "
        "calculations, as in `where` ([Expressions](#scalar-expressions)). It holds if it does "
        "for some nodes at the ends of its paths; equal paths are one value. A value that cannot "
        "be computed does not pass. A condition on one value is a test of its node, in streams, "
        "filters and analyses alike. "
        "One over several values, or with a variable, needs the nodes of messages where it stands "
        "inside `or` or `not`, or in a query with aggregates. `exists(p)` is `p`, and `empty(p)` "
        "is `not(p)`.",
        (
            Example("match //order[contains(client, 'INR')]/oid/$x return $x"),
            Example("match //order[price * 1.2 >= 12][starts-with(@nr, '1')]/oid/$x return $x"),
            Example("match //order[substring(client, 1, 2) = 'EN' or -price < -20]/oid/$x "
                    "return $x"),
            Example("match //d#t[. + 30d > date '2026-02-01'] return t.val",
                    "<a><d>2026-01-01</d><d>2026-01-05</d></a>"),
            Example("match //i#t[price * number > 100] return t.id",
                    "<a><i><price>30</price><number>4</number></i><i><price>9</price></i></a>"),
            Example("match //order[if (price > 20) then price < 50 else price > 5][empty(x)]"
                    "/oid/$x return $x"),
        ),
    ),
    Section(
        "Whole paths, positions and nodes in predicates",
        (),
        "`count`, `sum`, `avg`, `min`, `max`, `string-join`, `distinct-values`, `exactly-one`, "
        "`zero-or-one`, `one-or-more` and `deep-equal` read all nodes of a path, also if there are "
        "none. Beside `or` and `not`, a path means that it has a node. A position is that of "
        "XPath: the place of a node among the children of its parent that pass the step and the "
        "predicates before the position. It is a number, `last()`, or `position()` compared with "
        "a number or with `last()`. `is`, `<<` and `>>` compare nodes: whether two are the same, "
        "and which comes first in the document; in `where` they compare named nodes. "
        "A count costs the nodes of its path when one of them changes; a position costs the "
        "logarithm of the number of siblings. Positions and functions of whole paths need the "
        "nodes of messages, and the future of such rows is not decided. `and`, `or` and `not` "
        "combine positions with paths and comparisons; variables, names and functions of whole "
        "paths stand in predicates of their own, behind the position. A number alone is no "
        "condition there: write `position() = 1`.",
        (
            Example("match //order[count(client) = 1 and sum(price) > 10]/oid/$x return $x"),
            Example("match //order[count(paid) > 1 or not(paid)]/oid/$x return $x"),
            Example("match //order[exactly-one(client) = 'ENS']/oid/$x return $x"),
            Example("match //i#t[deep-equal(a, c/a)] return t.id",
                    "<r><i><a k='1' l='2'/><c><a l='2' k='1'/></c></i></r>"),
            Example("match /shop/order[last()]/oid/$x return $x"),
            Example("match /shop/order[price < 50][position() <= 2]/oid/$x return $x"),
            Example("match /shop/*[1][paid]/oid/$x return $x"),
            Example("match //order[oid << price]/client/$c return $c"),
            Example("match //order#a, //order#b where a << b and not(deep-equal(a, b))\n"
                    "return a.id, b.id"),
            Example("match //order[position() = 1 or not(price[1] < 50)]/oid/$x return $x"),
            Example("match //order[paid and position() = last()]/oid/$x return $x"),
            Example("match //order[not(client[1]/$c)]/oid/$x return $x"),
        ),
    ),
    Section(
        "`where`: times, variables and values",
        ("where", "alternative", "conjunct", "constraint"),
        "A node has the time of the update that inserted it. Constraints are linear over times of "
        "named nodes; numbers are seconds, `us ms s m h d` are durations. `now` is the document's "
        "clock: a row about it appears and disappears as the clock advances, also by a constraint "
        "inside a `not`. A sum with `now` may be compared with a value (`now > $due`); elsewhere "
        "`now` is refused. Variables are compared "
        "with constants or with each other. Any other condition on values is computed for the "
        "rows of the pattern, after it. These examples use the document `" + MONITOR + "`, "
        "after orders 17 and 18 at 0 s and 10 s, and their shipments at 60 s and 61 s.",
        (
            _monitored("match /shop[orders/order/oid/$x#t1][shipped/order/oid/$x#t2]\n"
                       "where t2 - t1 >= 60 return $x"),
            _monitored("match /shop[orders/order/oid/$x#t1][shipped/order/oid/$x#t2]\n"
                       "where t2 <= t1 + 0.85m, 2*t1 > 1s return $x, t2.time"),
            _monitored('match //order/oid/$x#t where t >= date "1970-01-01T00:01:00Z" and '
                       '$x != "18" return $x'),
            _monitored("match //order/oid/$x#t where now - t <= 1 return $x"),
            _monitored("match /shop[orders/order/oid/$x#t][not(shipped/order/oid/$x#s)]\n"
                       "where now - t >= 50, now - s < 1 return $x"),
            _monitored("match //order/oid/$x#t return $x, now - t as age"),
            Example('match /shop[order/oid/$x][order/oid/$y] where $x < $y and $y = "18" '
                    "return $x, $y"),
            Example("match //order[oid/$x]/price/$p where $p * 1.2 > 10 or $x = '18' return $x"),
            Example("match //order[price/$p]/oid/$x where $p < '9' as xs:string return $x"),
        ),
    ),
    Section(
        "Scalar expressions",
        ("scalar", "scalar_conjunction", "comparison", "additive", "multiplicative", "signed",
         "primary", "call", "arguments"),
        "An expression is computed from the values of a row: variables, properties of named nodes, "
        "constants, `+ - * div idiv mod`, comparisons, `and`, `or`, `if`, and the functions of "
        "XPath: `contains`, `substring`, `matches`, `round`, `xs:date` and the others. `name`, "
        "`local-name` and `namespace-uri` of a named node read its label. A string is "
        "a number, a moment or a text by its form; calculations are exact decimals. A value that "
        "cannot be computed (a text in a sum, a division by zero) is null, or the update is "
        "refused if the view has `on_value_error=\"reject\"`.",
        (
            Example("match //order[oid/$x]/price/$p return $x, $p * 1.2 as gross"),
            Example("match //order[oid/$x]/price/$p\n"
                    "return $x, if ($p > 10) then 'large' else 'small' as size"),
            Example("match //order/client/$c\n"
                    "where starts-with($c, 'I') and not(contains($c, 'x'))\n"
                    "return upper-case($c) as client"),
            Example("match //order[oid/$x]/price/$p where ($p mod 2 = 1 or -$p < -15) return $x"),
            Example("match //d#t return t.val, t.val + 30d as due, xs:date(t.val) as day",
                    "<a><d>2026-01-04</d></a>"),
            Example('match //d#t where t.val - date "2026-01-01" > 2d return t.val',
                    "<a><d>2026-01-02</d><d>2026-01-04</d></a>"),
            Example("match //order/oid/$x return shout($x)"),
        ),
    ),
    Section(
        "`return`: outputs",
        ("returns", "output", "alias"),
        "Variables, and of named nodes: "
        + ", ".join(f"`.{kind.value}`" for kind in Kind if kind is not Kind.VARIABLE)
        + ". `id` never changes; `val` is the string value, `cont` the XML of the subtree, `time` "
        "seconds, or a date where the document has `times=\"dates\"`. `as` gives a column another "
        "name; a computed column needs one, unless it is a function call.",
        (
            Example("match /shop/order[paid]/oid#t/$x\n"
                    'return t.id, t.label, t.val, t.cont, t.time, $x as number, t.val as "the id"'),
            Example("match /shop/order/oid/$x return $y"),
        ),
    ),
    Section(
        "Aggregates and `having`",
        ("having",),
        "`count()`, `count($x)`, `count(distinct $x)`, `sum`, `avg`, `min`, `max`, "
        "`string-join($x, \", \")`, `collect($x)`, `latest($x by $t)` and `earliest`. Rows are "
        "grouped by the outputs that have no aggregate; without such outputs there is always one "
        "row. An aggregate ranges over the distinct tuples of nodes that variables and names bind, "
        "and that the paths of the query end at. A predicate that binds nothing only tests: an "
        "order with three items counts once in `order[item]/total/$t`. A group is one row, known "
        "by its key: a moved aggregate is an `update`, and an empty group is gone. Sums are exact "
        "decimals. `min`, `max`, `collect` and `string-join` use the order of the language, and "
        "skip missing values, as all do but `count()`.",
        (
            Example("match //order[client/$c]/price/$p\n"
                    "return $c, count() as orders, sum($p) as total having total > 10"),
            Example("match //order[paid]/price/$p return count(), avg($p), min($p), max($p)"),
            Example("match //order[oid/$x]/client/$c\n"
                    "return $c, count(distinct $x) as n, string-join($x, ' '), collect($x)"),
            Example("match //order[oid/$x]/price/$p return latest($x by $p) as dearest"),
            Example("match //order/oid/$x where count() > 1 return $x"),
        ),
    ),
    Section(
        "`order by` and `limit`",
        ("order", "sort_key", "limit"),
        "The rows in an order, and the first of them: numbers before dates before texts, missing "
        "values first. Ties are broken by the outputs. The keys are computed from the outputs, "
        "written by name or as in `return`. A row that enters or leaves the first rows is an "
        "insert or a delete; a move inside is no change.",
        (
            Example("match //order[oid/$x]/price/$p return $x, $p order by $p descending limit 1"),
            Example("match //order[client/$c]/price/$p\n"
                    "return $c, sum($p) as total order by total ascending, $c"),
        ),
    ),
)  # fmt: skip

AXES: dict[Axis, str] = {
    Axis.CHILD: "match /shop/child::shipped#t return t.id",
    Axis.DESCENDANT: "match /shop/descendant::oid#t return t.id",
    Axis.ATTRIBUTE: "match //order/attribute::nr#t return t.val",
    Axis.SELF: "match /shop/*/self::order#t return t.id",
    Axis.DESCENDANT_OR_SELF: "match /shop/shipped/descendant-or-self::*#t return t.id",
    Axis.NEXT_SIBLING: "match //order/next-sibling::shipped#t return t.id",
    Axis.FOLLOWING_SIBLING: "match //order/following-sibling::*#t return t.id",
    Axis.PREVIOUS_SIBLING: "match //shipped/previous-sibling::*#t return t.id",
    Axis.PRECEDING_SIBLING: "match //shipped/preceding-sibling::*#t return t.id",
    Axis.PARENT: "match //paid/parent::*#t return t.id",
    Axis.ANCESTOR: "match //paid/ancestor::*#t return t.id",
    Axis.ANCESTOR_OR_SELF: "match //paid/ancestor-or-self::*#t return t.id",
}
REFUSED_AXES = ("match //order/following::oid", "match //order/preceding::oid")


def page() -> Iterator[str]:
    """The part of the page, line by line."""
    missing = uncovered()
    if missing:
        raise ValueError(f"no words or no example for {', '.join(sorted(missing))}")
    for section in SECTIONS:
        yield from ("", f"### {section.title}", "")
        if section.rules:
            yield from ("```text", *_rules(section.rules), "```", "")
        yield from (*paragraph(section.words), "")
        yield from block(section.examples)
    yield from ("", "### Axes", "")
    yield "The long form is `axis::test`. [Records](records.md) maintain sibling and reverse axes."
    yield from ("", *block([Example(AXES[axis]) for axis in Axis]))
    yield from ("", "Refused:", "", *block([Example(query) for query in REFUSED_AXES]))
    yield from ("", "### Terminals", "", "| | for example |", "|---|---|")
    for name, texts in sorted(_terminals().items()):
        yield f"| `{name}` | {', '.join(f'`{text}`' for text in texts)} |"


def uncovered() -> set[str]:
    """Return the rules, terminals and axes of the grammar that the page omits."""
    queries = [example.query for section in SECTIONS for example in section.examples]
    used = {name for query in [*queries, *AXES.values()] for name in _used(query)}
    terminals = {name for name in GRAMMAR.terminals if not name.startswith("_")}
    named = [rule for section in SECTIONS for rule in section.rules]
    twice = {rule for rule in named if named.count(rule) > 1}
    return ({*GRAMMAR.rules, *terminals} - used) | (set(_grammar()) ^ set(named)) | twice


def _used(query: str) -> Iterator[str]:
    """The rules and terminals that a query is parsed by."""
    for tree in GRAMMAR.parse(query).iter_subtrees():
        yield str(tree.data)
        yield from (each.type for each in _tokens(tree))


def _tokens(tree: Tree[Token]) -> Iterable[Token]:
    return (child for child in tree.children if isinstance(child, Token))


def _terminals() -> dict[str, list[str]]:
    """Return the texts in the examples of terminals that have several."""
    queries = [example.query for section in SECTIONS for example in section.examples]
    found: dict[str, list[str]] = {}
    for query in [*queries, *AXES.values()]:
        for tree in GRAMMAR.parse(query).iter_subtrees():
            for token in _tokens(tree):
                texts = found.setdefault(token.type, [])
                if _typed(GRAMMAR.terminals[token.type]) is None and token not in texts:
                    texts.append(str(token))
    return {name: sorted(texts)[:6] for name, texts in found.items() if texts}


def _grammar() -> dict[str, list[str]]:
    """The rules of the grammar's file, by name, as they are written."""
    rules: dict[str, list[str]] = {}
    lines = GRAMMAR.file.read_text(encoding="utf-8").splitlines()
    current: list[str] = []
    for line in lines:
        started = re.match(r"[?!]?([a-z_]+)\s*:", line)
        if started is not None:
            current = rules.setdefault(started[1], [])
        elif not line.startswith(" "):
            current = []
        current.append(line)
    return rules


def _rules(names: Sequence[str]) -> Iterator[str]:
    """Return the rules for readers: keywords as typed, without the parser's own marks."""
    rules = _grammar()
    typed = {name: _typed(pattern) for name, pattern in GRAMMAR.terminals.items()}
    for name in names:
        for line in rules[name]:
            bare = re.sub(r"\s*->\s*\w+\s*$", "", line.lstrip("?!"))
            bare = re.sub(r"^([a-z_]+):|^ ", r"\1 =" if bare[0] != " " else "  ", bare)
            yield re.sub(r"\b[A-Z_]{2,}\b", lambda found: typed.get(found[0]) or found[0], bare)


def _typed(pattern: str) -> str | None:
    """Return the text of a terminal that has only one."""
    bare = re.sub(r"\(\?[!=].*\)$", "", pattern).replace(r"\s*", "").replace(r"\s+", " ")
    plain = re.sub(r"\\(.)", r"\1", bare)
    return f'"{plain}"' if re.escape(plain) == bare or plain.replace(" ", "").isalpha() else None
