"""XQuery Update statements: the same edits through lxml, P5's appendix, and what is refused."""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from random import Random
from typing import Any

import pytest
from lxml import etree

import axlog
from axlog.document.loader import load
from axlog.document.serializer import serialise
from axlog.errors import AxlogError, QueryError, UnsupportedError, UpdateError
from axlog.evaluate.statements import operations_of
from axlog.live.internals import maintained
from axlog.query.update_parser import parse_statements
from axlog.samples.auction import auction
from lab.conformance import update as suite
from lab.conformance.cases import Outcome
from lab.generators.appendix import UPDATES
from lab.laws import small_cases


def canonical(xml: str) -> str:
    return str(etree.canonicalize(xml))


def after(xml: str, statement: str, **given: Any) -> str:
    """The document when the statement was carried out."""
    document = axlog.parse(xml)
    document.update(statement, **given)
    return document.xml()


# The same edits through lxml ----------------------------------------------------------------------

CONTENT = '<n m="1">t<o/></n>'
FORMS = {
    "delete": "delete node {x}",
    "into": f"insert node {CONTENT} into {{x}}",
    "last": f"insert nodes {CONTENT} as last into {{x}}",
    "first": f"insert node {CONTENT} as first into {{x}}",
    "before": f"insert node {CONTENT} before {{x}}",
    "after": f"insert node {CONTENT} after {{x}}",
    "replace": f"replace node {{x}} with {CONTENT}",
    "value": 'replace value of node {x} with "v"',
    "rename": 'rename node {x} as "z"',
}


def path(random: Random) -> str:
    """A random XPath 1.0 whose nodes are elements or attributes."""
    found = random.choice(("/*", "//*", "//a", "//b", "/*/*", "//c"))
    for _ in range(random.randrange(3)):
        steps = ("/a", "/b", "//c", "/*", "/parent::*", "/following-sibling::*", "[a]")
        found += random.choice(steps)
        if random.random() < 0.5:
            found += f"[{condition(random)}]"
    return found + ("/@k" if random.random() < 0.15 else "")


def condition(random: Random) -> str:
    simple = (
        "1", "2", "last()", "position() < 3", "a", "b//c", "@k", '@k = "1"', '. = "2"',
        "not(a)", "count(*) > 1", "a or @m", "c and not(@k)", ".//text() = 'a'", "self::a",
        "contains(., '1')", "string-length(.) > 1", "../b", "preceding-sibling::*",
    )  # fmt: skip
    return random.choice(simple)


def drop(element: Any) -> None:
    """Take an element away and leave the text behind it."""
    parent, before = element.getparent(), element.getprevious()
    if parent is None:
        return
    if element.tail:
        if before is None:
            parent.text = (parent.text or "") + element.tail
        else:
            before.tail = (before.tail or "") + element.tail
    parent.remove(element)


def edit(form: str, element: Any) -> None:
    """One edit of an element."""
    new: Any = etree.fromstring(CONTENT)
    match form:
        case "delete":
            drop(element)
        case "into" | "last":
            element.append(new)
        case "first":
            new.tail, element.text = element.text, None
            element.insert(0, new)
        case "before":
            element.addprevious(new)
        case "after":
            tail, element.tail = element.tail, None  # lxml keeps it with the element
            element.addnext(new)
            new.tail = tail
        case "replace":
            element.addprevious(new)
            drop(element)
        case "value":
            for below in list(element):
                element.remove(below)
            element.text = "v"
        case "rename":
            element.tag = "z"


def edit_attribute(form: str, attribute: Any) -> bool:
    """One edit of an attribute; whether there is such a thing."""
    owner, name = attribute.getparent(), attribute.attrname
    match form:
        case "delete":
            del owner.attrib[name]
        case "value":
            owner.set(name, "v")
        case "rename":
            owner.set("z", owner.attrib.pop(name))
        case _:
            return False
    return True


def with_lxml(xml: str, form: str, xpath: str) -> str | None:
    """What the same edit through lxml gives; None where there is no such edit."""
    root: Any = etree.fromstring(xml)
    for target in root.getroottree().xpath(xpath):
        if isinstance(target, str):
            if not edit_attribute(form, target):
                return None
        elif target is root and form in ("delete", "before", "after", "replace"):
            return None
        else:
            edit(form, target)
    return canonical(etree.tostring(root.getroottree()).decode())


def test_differential_statements_and_lxml() -> None:
    compared = changed = 0
    for seed in range(900):
        random = Random(seed)
        xml = small_cases.document(random, random.choice((6, 14, 25)))
        form, xpath = random.choice(list(FORMS)), path(random)
        expected = with_lxml(xml, form, xpath)
        if expected is None:
            continue
        statement = f"for $x in {xpath} return {FORMS[form].format(x='$x')}"
        if form == "delete" and random.random() < 0.5:
            statement = f"delete nodes {xpath}"
        found = canonical(after(xml, statement))
        assert found == expected, (seed, xml, statement)
        compared += 1
        changed += found != canonical(xml)
    assert compared > 600
    assert changed > 250


def test_differential_where_is_a_predicate() -> None:
    for seed in range(300):
        random = Random(seed)
        xml = small_cases.document(random, 20)
        conditions = ("$x/a", '$x/@k = "1"', "not($x/b) and $x/c", "count($x/*) > 1", "$x = '12'")
        asked = random.choice(conditions)
        loop = f"for $x in //* where {asked} return rename node $x as 'z'"
        inner = asked.replace("$x/", "").replace("$x", ".")
        inside = f"for $x in //*[{inner}] return rename node $x as 'z'"
        apart = f"for $x in //* return if ({asked}) then rename node $x as 'z' else ()"
        assert after(xml, loop) == after(xml, inside) == after(xml, apart), (seed, xml, asked)


# P5's appendix ------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def auction_text() -> str:
    return "".join(auction(0.002))


@pytest.mark.parametrize("name", UPDATES)
def test_p5_appendix_insertions(name: str) -> None:
    given = UPDATES[name]
    root: Any = etree.fromstring(auction_text(), etree.XMLParser(remove_blank_text=True))
    targets = root.getroottree().xpath(given.meant)
    for target in targets:
        target.append(deepcopy(etree.fromstring(given.content)))
    assert targets
    tree = load(auction_text())
    (printed,) = parse_statements(given.insertion)
    expected = 0 if name in ("B1_A", "B1_O") else len(targets)
    assert len(operations_of(tree, printed)) == expected
    found = after(auction_text(), given.meant_insertion)
    assert _without_space(found) == _without_space(etree.tostring(root).decode())


@pytest.mark.parametrize("name", UPDATES)
def test_p5_appendix_deletions(name: str) -> None:
    given = UPDATES[name]
    root: Any = etree.fromstring(auction_text(), etree.XMLParser(remove_blank_text=True))
    for target in root.getroottree().xpath(given.meant):
        drop(target)
    expected = _without_space(etree.tostring(root).decode())
    assert _without_space(after(auction_text(), given.deletion)) == expected
    loop = f'let $c := doc("auction.xml") for $x in $c{given.meant} delete $x'
    assert _without_space(after(auction_text(), loop)) == expected


def _without_space(xml: str) -> str:
    return str(etree.canonicalize(xml, strip_text=True))


def test_p5_appendix_prints_typographic_quotes() -> None:
    statement = "let $c:= doc (“auction.xml”)\nfor $i in $c/r/a\ninsert <b/>"
    assert after("<r><a/></r>", statement) == "<r><a><b/></a></r>"


# Forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        # P5's own forms: for every node, also none
        ("insert <n/> into //a", '<r><a k="1">x<n/></a><a k="2"><b/><n/></a></r>'),
        ("insert <n/> into //none", '<r><a k="1">x</a><a k="2"><b/></a></r>'),
        ("insert //b into //a", '<r><a k="1">x<b/></a><a k="2"><b/><b/></a></r>'),
        ("for $x in //a[@k = 2] insert $x/b into $x", '<r><a k="1">x</a><a k="2"><b/><b/></a></r>'),
        ("for $x in //a insert <n>{$x/@k}</n>",
         '<r><a k="1">x<n k="1"/></a><a k="2"><b/><n k="2"/></a></r>'),
        ("delete //a", "<r/>"),
        # lists, choices, nested loops
        ("delete node //b, rename node /r as 's'", '<s><a k="1">x</a><a k="2"/></s>'),
        ("if (//none) then delete nodes //a else rename node //b as 'c'",
         '<r><a k="1">x</a><a k="2"><c/></a></r>'),
        ("for $x in //a, $y in $x/b return insert node <n/> after $y",
         '<r><a k="1">x</a><a k="2"><b/><n/></a></r>'),
        ("let $n := count(//a) return replace value of node //a[$n]/@k with $n * 3 + 1",
         '<r><a k="1">x</a><a k="7"><b/></a></r>'),
        ("for $x at $p in //a return replace value of node $x/@k with concat('n', $p)",
         '<r><a k="n1">x</a><a k="n2"><b/></a></r>'),
        # snapshot: what is inserted is not found by the same statement
        ("for $x in //a return (insert node <a/> after $x, delete node $x)", "<r><a/><a/></r>"),
        ("replace value of node //a[1]/@k with //a[2]/@k, replace value of node //a[2]/@k "
         "with //a[1]/@k", '<r><a k="2">x</a><a k="1"><b/></a></r>'),
        # constructors
        ("insert node element {'n'} {attribute m {1, 2}, 'x', <o/>} into //b",
         '<r><a k="1">x</a><a k="2"><b><n m="1 2">x<o/></n></b></a></r>'),
        ("insert nodes (attribute m {'1'}, text {'t'}, <!--c-->, <?p q?>) into //b",
         '<r><a k="1">x</a><a k="2"><b m="1">t<!--c--><?p q?></b></a></r>'),
        ("insert node <n m='{//a[1]/@k}-{1 + 1}'>{{ {//a/@k/string()} }}</n> into //b",
         '<r><a k="1">x</a><a k="2"><b><n m="1-2">{ 1 2 }</n></b></a></r>'),
        ("replace node //b with ('t', <c/>)", '<r><a k="1">x</a><a k="2">t<c/></a></r>'),
        ("replace node //a[1]/@k with attribute m {'3'}", '<r><a m="3">x</a><a k="2"><b/></a></r>'),
        ("replace node //a[1]/text() with <t/>", '<r><a k="1"><t/></a><a k="2"><b/></a></r>'),
        ("rename node //a[1] as QName('urn:u', 'p:z')",
         '<r><ns0:z xmlns:ns0="urn:u" k="1">x</ns0:z><a k="2"><b/></a></r>'),
        # the prolog
        ("declare namespace p = 'urn:u'; insert node <p:n/> into //b",
         '<r><a k="1">x</a><a k="2"><b><p:n xmlns:p="urn:u"/></b></a></r>'),
        ("declare variable $d external; delete node $d/r/a[1]", '<r><a k="2"><b/></a></r>'),
        # several statements, one after the other
        ("delete node //b; insert node <b/> into //a[not(@k = 1)]; rename node //b as 'c';",
         '<r><a k="1">x</a><a k="2"><c/></a></r>'),
    ],
)  # fmt: skip
def test_forms(statement: str, expected: str) -> None:
    assert after('<r><a k="1">x</a><a k="2"><b/></a></r>', statement) == expected


def test_comments_and_instructions_are_nodes() -> None:
    xml = "<r><!--c--><?p q?><a/></r>"
    assert after(xml, "delete nodes //comment()") == "<r><?p q?><a/></r>"
    assert after(xml, "rename node //processing-instruction('p') as 's'") == (
        "<r><!--c--><?s q?><a/></r>"
    )
    found = after(xml, "delete nodes //node()/processing-instruction('p'), delete nodes /r/a")
    assert found == "<r><!--c--></r>"
    assert after(xml, "delete nodes /r/node()") == "<r/>"
    assert after(xml, "delete nodes /r/node()[2]") == "<r><!--c--><a/></r>"
    assert after(xml, "delete nodes /r/*") == "<r><!--c--><?p q?></r>"


def test_values_are_given_from_outside() -> None:
    xml = "<r><a k='1'/><a k='2'/></r>"
    statement = "replace value of node //a[@k = $k]/@k with $v"
    hostile = '2"] | //a["'
    assert after(xml, statement, variables={"k": "2", "v": hostile}) == (
        f'<r><a k="1"/><a k="{hostile.replace(chr(34), "&quot;")}"/></r>'
    )
    with pytest.raises(UpdateError) as caught:
        after(xml, statement, variables={"k": hostile, "v": ""})
    assert caught.value.code == "XUDY0027"
    assert after(xml, "delete nodes //a[@k > $n]", variables={"n": 1.5}) == '<r><a k="1"/></r>'


def test_a_statement_finds_its_target_by_the_index_after_other_updates() -> None:
    document = axlog.parse("<r>" + "".join(f'<p id="p{i}"/>' for i in range(40)) + "</r>")
    found = document.watch("match //p#x[@seen] return x.id")
    statement = "insert node attribute seen {'1'} into /r/p[@id = $id]"
    for i in (3, 39, 0):
        document.update(statement, variables={"id": f"p{i}"})
        document.update(f"insert node <p id='q{i}'/> as first into /r")
        document.update(statement, variables={"id": f"q{i}"})
    assert len(found.rows()) == 6
    document.update("delete nodes /r/p[@id = 'p3']")
    with pytest.raises(UpdateError):
        document.update(statement, variables={"id": "p3"})


def test_changes_of_views_are_returned() -> None:
    document = axlog.parse("<r><a>1</a></r>")
    document.watch("match /r/a/$x return $x", name="values")
    changes = document.update("insert node <a>2</a> into /r; delete node /r/a[1]", at=5)
    assert [(change.op, change.row["x"]) for change in changes] == [
        ("insert", "2"),
        ("delete", "1"),
    ]
    assert document.clock == 5


def test_lxml_elements_come_in_and_go_out() -> None:
    document = axlog.parse(etree.fromstring("<r><a/></r>"))
    maintained(document).insert("//a", etree.fromstring("<b k='1'/>"))
    out = document.element()
    assert etree.tostring(out) == b'<r><a><b k="1"/></a></r>'
    out.append(etree.Element("c"))
    assert document.xml() == '<r><a><b k="1"/></a></r>'


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("insert node <n/> into //a", "XUTY0005"),
        ("insert node <n/> into //none", "XUDY0027"),
        ("insert node <n/> into //a[1]/text()", "XUTY0005"),
        ("insert node <n/> before //@k[. = 1]", "XUTY0006"),
        ("insert node <n/> after <m/>", "XUDY0029"),
        ("insert node attribute m {1} before /r", "XUDY0030"),
        ("insert node attribute m {1} into /", "XUTY0022"),
        ("insert node (<n/>, attribute m {1}) into /r", "XUTY0004"),
        ("insert node attribute k {1} into //a[1]", "XUDY0021"),
        ("insert nodes (attribute m {1}, attribute m {2}) into /r", "XUDY0021"),
        ("delete node 'a'", "XUTY0007"),
        ("replace node //a with <n/>", "XUTY0008"),
        ("replace node /r/a[1] with attribute m {1}", "XUTY0010"),
        ("replace node /r/a[1]/@k with <n/>", "XUTY0011"),
        ("replace value of node (/) with 'x'", "XUTY0008"),
        ("rename node /r/a[1]/text() as 'x'", "XUTY0012"),
        ("rename node /r as 5", "XPTY0004"),
        ("rename node /r as 'a b'", "XQDY0074"),
        ("rename node /r as 'p:a'", "XQDY0074"),
        ("rename node /r as 's', rename node /r as 't'", "XUDY0015"),
        ("replace node /r/a[1] with <n/>, replace node /r/a[1] with <m/>", "XUDY0016"),
        ("replace value of node /r with 1, replace value of node /r with 2", "XUDY0017"),
        ("insert node comment {'a--b'} into /r", "XQDY0072"),
        ("replace node /r with (<r/>, <s/>)", "XUDY0021"),
        ("delete node /", "AX302"),
        ("delete node $none", "AX203"),
        ("insert node <n>&#1;</n> into /r", "AX207"),
        ("if (//a) then error() else delete node //a", "FOER0000"),
        # what is updating and what is not
        ("(1, delete node //a)", "XUST0001"),
        ("if (delete node //a) then () else ()", "XUST0001"),
        ("if (//a) then delete node //a else 1", "XUST0001"),
        ("for $x in (delete node //a) return delete node $x", "XUST0001"),
        ("let $x := delete node //a return ()", "XUST0001"),
        ("insert node (delete node //a) into /r", "XUST0001"),
        ("delete node //a[delete node //b]", "XUST0001"),
        ("declare revalidation lax; delete node //a", "XUST0026"),
        ("declare revalidation lax; declare revalidation lax; delete node //a", "XUST0003"),
    ],
)
def test_what_the_recommendation_refuses(statement: str, code: str) -> None:
    xml = '<r><a k="1">x</a><a k="2"><b/></a></r>'
    document = axlog.parse(xml)
    with pytest.raises(AxlogError) as caught:
        document.update(statement)
    assert caught.value.code == code
    assert document.xml() == xml


@pytest.mark.parametrize(
    ("statement", "column", "what"),
    [
        ("//a", 1, "changes nothing"),
        ("copy $x := //a modify delete node $x return $x", 1, "changes nothing"),
        (
            "declare updating function local:f($n) { local:f($n - 1) }; local:f(2)",
            41,
            "recursion of local:f()",
        ),
        ("delete nodes //a[. > current-date()]", 22, "current-date()"),
        ("insert node put(//a) into /r", 13, "put()"),
        ("delete node try { //a } catch * { //b }", 13, "try"),
    ],
)
def test_what_is_outside_is_refused_by_name_and_place(
    statement: str, column: int, what: str
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse_statements(statement)
    assert caught.value.code == "AX211"
    assert what in caught.value.message
    assert caught.value.place is not None
    assert (caught.value.place.line, caught.value.place.column) == (1, column)


@pytest.mark.parametrize(
    ("statement", "column", "expected"),
    [
        ("insert node <n/>", 17, "into"),
        ("insert <n/>", 12, "into"),
        ("insert node <n> into //a", 25, None),
        ("delete", 1, None),
        ("replace node //a by <n/>", 18, "with"),
        ("rename node //a", 16, "as"),
        ("for $x in //a", 14, "return"),
        ("if (//a) then delete node //a", 30, "else"),
        ("delete node //a insert node <n/> into //b", 17, "the end of the statement"),
        ("delete node //a[", 17, None),
        ("", 1, None),
    ],
)
def test_what_does_not_parse_says_where_and_what_was_expected(
    statement: str, column: int, expected: str | None
) -> None:
    with pytest.raises(QueryError) as caught:
        parse_statements(statement)
    assert caught.value.place is not None
    assert caught.value.place.column == column, caught.value
    if expected is not None:
        assert expected in (caught.value.expected or "")


def test_elements_may_be_called_as_keywords_are() -> None:
    xml = "<insert><delete/><into/><node/></insert>"
    assert after(xml, "delete node insert/delete") == "<insert><into/><node/></insert>"
    assert after(xml, "delete nodes /insert/into, delete nodes insert/node") == (
        "<insert><delete/></insert>"
    )


def test_parsing_is_cached() -> None:
    text = "delete nodes //person[phone]"
    assert parse_statements(text)[0] is parse_statements(text)[0]


def test_nothing_of_several_statements_is_done_if_one_does_not_parse() -> None:
    document = axlog.parse("<r><a/></r>")
    with pytest.raises(QueryError):
        document.update("delete node //a; delete")
    assert document.xml() == "<r><a/></r>"


# Conformance --------------------------------------------------------------------------------------


def test_conformance_of_statements(conformance) -> None:
    conformance(suite.FOLDER)
    results = list(suite.results(conformance(".")))
    failed = [(r.case.name, r.reason) for r in results if r.outcome is Outcome.FAILED]
    assert not failed
    counts = {outcome: sum(r.outcome is outcome for r in results) for outcome in Outcome}
    assert counts[Outcome.PASSED] >= 83
    assert counts[Outcome.RAISED] >= 127
    assert counts[Outcome.UNJUDGED] == 0


def test_content_is_read_once_and_built_for_every_target() -> None:
    (statement,) = parse_statements("for $x in //a insert <n><o/></n>")
    operations = operations_of(load("<r><a/><a/></r>"), statement)
    assert len({id(operation.content) for operation in operations}) == 1  # type: ignore[union-attr]
    assert serialise(load("<r/>")) == "<r/>"
