"""XQuery views: their patterns, by their native text, what templates make of rows, refusals."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.errors import QueryError, QuerySyntaxError, UnsupportedError
from axlog.query.native import parse_pattern
from axlog.query.template import Element, Enclosed, Form, Show, Template, Text
from axlog.query.xpath_compiler import parse_xpath
from axlog.query.xquery_compiler import parse_xquery
from axlog.views.change import Row
from tests.papers import document
from tests.template_answers import answer, rows


def rendered(query: str, tree: Tree, namespaces: dict[str, str] | None = None) -> str:
    """The whole result, in XQuery's order."""
    _, template = parse_xquery(query, namespaces)
    assert template is not None
    found = answer(query, tree, namespaces, "xquery")
    texts = [piece.text for piece in found.items]
    assert found.around == (template.before, template.after)
    return template.before + "".join(texts) + template.after


PATTERNS = {
    # P5 figure 3's sample view
    """for $p in doc("confs")//confs//paper, $a in $p/affiliation
       return <result><pid>{id($p)}</pid><aid>{id($a)}</aid><acont>{$a}</acont></result>""":
    "match //confs//paper#p/affiliation#a return p.id, a.id, a.cont",
    "for $x in //a return $x": "match //a#x return x.cont",
    "for $x in //a where string($x) = 'c' return <r>{string($x)}</r>":
    'match //a#x = "c" return x.val',
    "for $x in //a return $x/b/text()": "match //a#x/b/text()#b return b.val",
    "for $x in //a return $x/@k": "match //a#x/@k#k return k.val",
    "for $x in //a return data($x/b)": "match //a#x/b#b return b.val",
    "for $x in //a return $x/b/string()": "match //a#x/b#b return b.val",
    "for $x in //a return <r>{$x/b}</r>": "match //a#x[collect(b#b)] return b.cont",
    "for $x in //a return ($x/b, $x/b/text())":
    "match //a#x[collect(b#b)][collect(b/text()#b_2)] return b.cont, b_2.val",
    "for $x in //a return <r p='{$x/b}' q='{$x/b}'>{$x/b}</r>":
    "match //a#x[collect(b#b)] return b.val, b.cont",
    "for $x in //a return <r>{$x/b | $x/c}</r>":
    "match //a#x[collect(self::node()[b#b or c#b])] return b.cont",
    "for $x in //a return <r>{$x[b]}</r>":
    "match //a#x[collect(self::node()#node[b])] return node.cont",
    "for $x in //a return <r>{//c}{$x}</r>":
    "match //a#x, collect(//c#c) return c.cont, x.cont",
    "for $x in //a, $y in //b where $x/k = $y/k return <r>{$x}{$y}</r>":
    "match //a#x[k = $v1], //b#y[k = $v1] return x.cont, y.cont",
    "for $x in //a, $y in //b where $x/@k != $y/@k return <r>{$x/@k}{$y}</r>":
    "match //a#x[@k = $v1][collect(@k#k)], //b#y[@k != $v1] return k.val, y.cont",
    "for $x in //a, $y in $x/b[@k = $x/@k] return $y":
    "match //a#x[@k = $v1]/b#y[@k = $v1] return y.cont",
    "let $d := doc('x'), $n := 5 for $x in $d//a where $x/b > $n return $x":
    "match //a#x[b > 5 as xs:double] return x.cont",
    "for $x in //a let $b := $x/b where $b/c and not($b/d) return <r>{$b}</r>":
    "match //a#x[b/c][not(b/d)][collect(b#b)] return b.cont",
    "for $d in doc('x') for $x in $d/a for $y in $x return $y": "match /a#x return x.cont",
    "for $x in //a where //c and ($x/b or $x/d) return $x":
    "match //a#x[b or d], //c return x.cont",
    "for $v in distinct-values(//a/@k) return <r>{$v}</r>": "match //a[@k = $v] return $v",
    "for $v in distinct-values(//a/@k), $b in //b where $b/@k = $v and $v != 'x' return $b/c":
    "match //a[@k = $v], //b#b[@k = $v]/c#c where $v != \"x\" return c.cont",
    "for $v1 in distinct-values(//a), $x in //b where $x/c = $x/d return <r>{$v1}{$x}</r>":
    "match //a = $v1, //b#x[c = $v1_2][d = $v1_2] return $v1, x.cont",
    "let $d := (/) return $d//a": "match //a#a return a.cont",
    "let $d := (/) return exists($d//a)": "match //a",
    "for $x in //a where $x/b return <yes/>": "match //a#x/b",
    "for $long-name.x in //a return $long-name.x": "match //a#long_name_x return long_name_x.cont",
    "declare variable $k := 'v'; for $x in //a where $x/@k = $k return $x":
    'match //a#x[@k = "v"] return x.cont',
}  # fmt: skip


@pytest.mark.parametrize("query", PATTERNS)
def test_views_become_patterns(query: str) -> None:
    pattern, _ = parse_xquery(query)
    expected = parse_pattern(PATTERNS[query])
    assert set(map(str, pattern.branches)) == set(map(str, expected.branches))
    assert (pattern.where, pattern.outputs) == (expected.where, expected.outputs)


BOOKS = """<bib><book year="1994"><title>TCP &amp; IP</title><author>S</author><price>65.95</price>
</book><book year="2000"><title>Data</title><author>A</author><author>B</author></book></bib>"""

RENDERED = {
    "for $b in //book return <b>{$b/title/text()}</b>": "<b>TCP &amp; IP</b><b>Data</b>",
    "for $b in //book return <b y='{$b/@year}'/>": '<b y="1994"/><b y="2000"/>',
    "for $b in //book return <b y='a {$b/author} &quot;&#10;z'/>":
    '<b y="a S &quot;&#10;z"/><b y="a A B &quot;&#10;z"/>',
    "for $b in //book return <b>{$b/@year} x {{}} {$b/price}</b>":
    '<b year="1994"> x {} <price>65.95</price></b><b year="2000"> x {} </b>',
    "for $b in //book return <b>{$b/author/string(), 7}</b>": "<b>S 7</b><b>A B 7</b>",
    "for $b in //book return <b>{$b/author/text()}</b>": "<b>S</b><b>AB</b>",
    "for $b in //book return <b> <i/> {string($b/price)} </b>":
    "<b><i/>65.95</b><b><i/></b>",
    "for $b in //book return <b>{for $a in $b/author return <i>{string($a)}</i>}</b>":
    "<b><i>S</i></b><b><i>A</i><i>B</i></b>",
    "for $b in //book return <b>{for $a in $b/author where $a = 'B' return <i/>}</b>":
    "<b/><b><i/></b>",
    "for $b in //book return <b>{$b/title/node()}</b>": "<b>TCP &amp; IP</b><b>Data</b>",
    "for $b in //book return <b><!--c--><![CDATA[<&]]>&amp;{'x'}</b>":
    "<b><!--c-->&lt;&amp;&amp;x</b><b><!--c-->&lt;&amp;&amp;x</b>",
    "for $b in //book return <b>{distinct-values($b/author), $b/@year/string()}</b>":
    "<b>S 1994</b><b>A B 2000</b>",
    "<all>{for $b in //book where $b/price return <b/>}<z/></all>": "<all><b/><z/></all>",
    "let $d := (/) return <n>{$d//author}</n>":
    "<n><author>S</author><author>A</author><author>B</author></n>",
    "for $b in //book[nosuch] return <b/>": "",
}  # fmt: skip


@pytest.mark.parametrize("query", RENDERED)
def test_templates_make_xml_of_rows(query: str) -> None:
    assert rendered(query, load(BOOKS)) == RENDERED[query]


def test_string_of_several_nodes_is_an_error() -> None:
    with pytest.raises(QueryError) as refusal:
        rendered("for $b in //book return <b>{string($b/author)}</b>", load(BOOKS))
    assert refusal.value.code == "XPTY0004"


def test_attributes_come_first_and_once() -> None:
    with pytest.raises(QueryError) as refusal:
        rendered("for $b in //book return <b>{$b/title}{$b/@year}</b>", load(BOOKS))
    assert refusal.value.code == "XQTY0024"
    with pytest.raises(QueryError) as refusal:
        rendered("for $b in //book return <b year='1'>{$b/@year}</b>", load(BOOKS))
    assert refusal.value.code == "XQDY0025"


def test_namespaces_of_constructors() -> None:
    tree = load('<r xmlns:p="urn:p" p:k="1"><p:a><b/></p:a><c/></r>')
    query = 'for $x in /r return <q:out xmlns:q="urn:q" xmlns="urn:d">{$x/@*}{$x/*}</q:out>'
    made = etree.fromstring(rendered(query, tree))
    assert made.tag == "{urn:q}out"
    assert made.attrib.items() == [("{urn:p}k", "1")]
    assert [each.tag for each in made.iter()][1:] == ["{urn:p}a", "b", "c"]


def test_names_in_what_is_enclosed_use_the_tags_namespaces() -> None:
    tree = load('<r xmlns="urn:d"><a>1</a></r>')
    query = 'for $x in /* return <o v="{$x/p:a}" xmlns:p="urn:d">{$x/p:a/text()}</o>'
    assert rendered(query, tree) == '<o xmlns:p="urn:d" v="1">1</o>'
    declared = "declare default element namespace 'urn:d'; for $x in //a return <b>{$x/text()}</b>"
    assert rendered(declared, tree) == '<b xmlns="urn:d">1</b>'


def test_a_row_alone_declares_what_is_declared_around_it() -> None:
    query = '<p:all xmlns:p="urn:p">{for $x in //a return <p:a>{$x/text()}</p:a>}</p:all>'
    pattern, template = parse_xquery(query)
    assert template is not None
    found = list(rows(document('r[a["1"], a["2"]]'), pattern))
    assert etree.fromstring(template.render(found[0])).tag == "{urn:p}a"
    whole = etree.fromstring(template.render_all(found))
    assert [each.tag for each in whole] == ["{urn:p}a", "{urn:p}a"]


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Cn"])))
def test_law_what_is_rendered_is_well_formed_and_keeps_values(value: str) -> None:
    show = Enclosed((Show("x.val", Form.VALUE),))
    template = Template((Element("r", (), (("k", (Text(value), show)),), (Text(value), show)),))
    made = etree.fromstring(template.render({"x.val": value}))
    assert made.get("k") == value * 2
    assert (made.text or "") == value * 2


def test_rows_stand_without_what_a_constructor_shows() -> None:
    """Optional branches count once: two books, two rows, whatever they have."""
    pattern, _ = parse_xquery("for $b in //book return <b>{$b/author}{$b/price}</b>")
    found = {tuple(row.values()) for row in rows(load(BOOKS), pattern)}
    assert found == {
        (("<author>S</author>",), ("<price>65.95</price>",)),
        (("<author>A</author>", "<author>B</author>"), ()),
    }


def test_what_is_returned_alone_gives_a_row_each() -> None:
    pattern, _ = parse_xquery("for $b in //book return $b/author")
    shown = sorted(row["author.cont"] for row in rows(load(BOOKS), pattern))
    assert shown == ["<author>A</author>", "<author>B</author>", "<author>S</author>"]


def test_parsing_is_cached() -> None:
    query = "for $x in //a return $x"
    assert parse_xquery(query)[0] is parse_xquery(query)[0]


REFUSED = [
    ("for $x in //a order by $x return $x", "`order by` is not supported"),
    ("for $x in //a stable order by $x return $x", "`order by` is not supported"),
    ("for $x in //a group by $k return $x", "`group by` is not supported"),
    ("for $x at $i in //a return $x", "a position by `at` is not supported"),
    ("for $x as xs:string in //a return $x", "`treat as` is not supported"),
    ("for $x in (//a | //b) return $x", "a union in `for` is not supported"),
    ("for $x in (1, 2) return $x", "a value where nodes are expected is not supported"),
    ("for $x in <a/>/b return $x", "a path into a constructor is not supported"),
    ("for $x in //a return count($x/b)", "count() in a result is not supported"),
    ("for $x in //a return <r>{$x/b > 1}</r>", "this expression in a result is not supported"),
    ("for $x in //a return if ($x) then 1 else 2", "a choice by `if` is not supported"),
    ("for $x in //a return element r {$x}", "a computed constructor is not supported"),
    ("for $x in //a return $x/..", "the document node in a result is not supported"),
    ("for $x in doc('p')//a, $y in doc('q')//b return $x",
     "a query over several documents is not supported"),
    ("for $x in //a, $y in //b where $x/k or $y/k return $x",
     "$y beside another node inside `or`, `not` or a union is not supported"),
    ("for $x in //a, $y in //b where not($x/k = $y/k) return $x",
     "$y beside another node inside `or`, `not` or a union is not supported"),
    ("for $x in //a return <r>{for $y in $x/b return $y/c}</r>",
     "a path from $y, the variable of an inner `for`, is not supported"),
    ("let $n := count(//a) return $n", "`let` with a computed value is not supported"),
    ("for $x in //a return $x, //b", "a query after another one is not supported"),
    ("declare function local:f() { local:f() }; local:f()",
     "recursion of local:f() is not supported"),
    ("import module 'm'; 1", "a module is not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "message"), REFUSED)
def test_what_is_outside_is_refused_by_name(query: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        parse_xquery(query)
    assert refusal.value.message == message
    assert refusal.value.place is not None


def test_order_by_is_refused_with_advice() -> None:
    with pytest.raises(UnsupportedError) as refusal:
        parse_xquery("for $x in //a\n order by $x return $x")
    assert refusal.value.place is not None
    assert (refusal.value.place.line, refusal.value.place.column) == (2, 2)
    assert refusal.value.advice is not None
    assert "sort them by their columns" in refusal.value.advice


BROKEN = [
    ("for $x in //a", "the query ends too early"),
    ("for $x //a return $x", "unexpected `//`"),
    ("for $x in //a return <r>", "the constructor is not closed"),
    ("for $x in //a return <r></q>", "<r> is not closed here"),
    ("for $x in //a return <r>{$x", "the query ends too early"),
    ("for $x in //a return <r>}</r>", "`}` has no matching `{`"),
    ("for $x in //a return <r>a & b</r>", "`&` does not begin a reference"),
    ("for $x in //a return <r k='1' k='2'/>", "the attribute k is given twice"),
    ("for $x in //a return <r k='<'/>", "`<` is not allowed in an attribute"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "message"), BROKEN)
def test_what_does_not_parse_says_where(query: str, message: str) -> None:
    with pytest.raises(QuerySyntaxError) as refusal:
        parse_xquery(query)
    assert refusal.value.message == message
    assert refusal.value.place is not None


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("for $x in //a return $y", "AX203"),
        ("for $x in //a, $x in //b return $x", "AX202"),
        ("for $x in //a return <p:r/>", "AX206"),
        ("for $x in //a return <r>&#0;</r>", "AX207"),
        ("for $x in //a return " + "<r>" * 60 + "</r>" * 60, "AX213"),
    ],
)
def test_codes_of_other_errors(query: str, code: str) -> None:
    with pytest.raises(QueryError) as refusal:
        parse_xquery(query)
    assert refusal.value.code == code


WORDS = """a @k . .. / // | [ ] ( ) , = != < and or not( count( string( id( exists( position()
    text() node() * 1 'x' $x $y for let where return in := some satisfies eq + <r> </r> <r { } k="
    child:: ancestor:: following-sibling::*[1] doc("d") distinct-values( (: &amp; <!-- order by
    declare namespace ;""".split()
PHRASES = [
    "for $x in //a",
    "let $y := $x/b",
    "where $x/b = $y",
    "return $x",
    "return <r>{",
    "}</r>",
]


@given(st.lists(st.sampled_from([*WORDS, *PHRASES]), max_size=12).map(" ".join))
def test_a_text_is_accepted_or_refused_with_its_place(text: str) -> None:
    for parse in (parse_xquery, parse_xpath):
        refusal = refusal_of(parse, text)
        assert refusal is None or refusal.place is not None


def refusal_of(parse: Callable[[str], object], text: str) -> QueryError | None:
    try:
        parse(text)
    except QueryError as refusal:
        return refusal
    return None


def test_rows_are_mappings_for_render() -> None:
    _, template = parse_xquery("for $x in //a return <r>{$x}</r>")
    assert template is not None
    assert template.render(Row(("x.cont",), ("<a/>",))) == "<r><a/></r>"
