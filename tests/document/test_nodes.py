"""Comments and processing instructions are nodes: `node()`, `comment()` and
`processing-instruction()` find them in views and statements, no other test does (DESIGN 3)."""

import pytest

import axlog
from axlog.connect.channels.subscription_filters import passes
from axlog.document.parser import parse
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError
from axlog.future.containment import contains
from axlog.live.internals import streams_of
from axlog.live.options import Keep
from axlog.match.filters import Filter
from axlog.query.query import Query, parse_query
from axlog.query.xpath_compiler import parse_xpath
from axlog.runtime.bindings import bags_of
from axlog.views.choose import MAINTAINERS, maintainer_named

XML = "<!--top--><a><!--1--><c/>t<?p one?><?q two?><b><!--2--></b></a><?p end?>"

SELECTED = {
    "//comment()": ["top", "1", "2"],
    "/comment()": ["top"],
    "/a/comment()": ["1"],
    "//processing-instruction()": ["one", "two", "end"],
    "//processing-instruction('p')": ["one", "end"],
    "/a/processing-instruction(q)": ["two"],
    "/a/node()": ["1", "", "t", "one", "two", ""],
    "/a/text()": ["t"],
    "/a/*": ["", ""],
    "/node()": ["top", "t", "end"],
    "//comment()[. = '2']": ["2"],
    "/a/comment()/following-sibling::*": ["", ""],
    "//following-sibling::*": ["t", "", ""],
    "//b/preceding::node()": ["top", "1", "", "t", "one", "two"],
    "//node()[not(/a/b)]": [],
    "//comment()[not(/z)]": ["top", "1", "2"],
    "//comment()[not(..)]": [],
    "//b[not(node())]": [],
    "//c[not(node())]": [""],
    "//b[not(* or text())]": [""],
}


def shown(text: str, *kinds: str) -> Query:
    """An XPath whose rows show more of their nodes than the id."""
    return Query(pattern=parse_xpath(text, show=kinds), template=None, language="xpath", text=text)


def maintainers(text: str) -> list[str]:
    pattern = parse_query(text).pattern
    return [name for name in MAINTAINERS if maintainer_named(name).refusal(pattern) is None]


@pytest.mark.parametrize("text", SELECTED)
def test_every_maintainer_finds_them(text: str) -> None:
    for name in maintainers(text):
        view = axlog.parse(XML).watch(shown(text, "id", "val"), maintainer=name)
        assert [row["node.val"] for row in view.rows()] == SELECTED[text], name


UPDATES = {
    "insert node <!--new--> into //c": (["new"], []),
    "delete nodes //comment()": ([], ["top", "1", "2"]),
    "delete nodes /a/node()": ([], ["1", "2"]),
    "replace node /a/comment() with <!--x-->": (["x"], ["1"]),
    "replace node //b with <?p x?>": ([], ["2"]),
    "replace value of node /a/comment() with 'v'": (["v"], ["1"]),
    "rename node //processing-instruction('q') as 'p'": ([], []),
    "insert nodes (<?p 1?>, <!--z-->) after //c": (["z"], []),
}


@pytest.mark.parametrize("statement", UPDATES)
@pytest.mark.parametrize("maintainer", MAINTAINERS)
def test_views_follow_them(maintainer: str, statement: str) -> None:
    came, went = UPDATES[statement]
    doc = axlog.parse(XML)
    view = doc.watch(shown("//comment()", "id", "val"), maintainer=maintainer)
    changes = doc.update(statement)
    gained = [c.row["node.val"] for c in changes if c.op != "delete"]
    lost = [(c.before or c.row)["node.val"] for c in changes if c.op != "insert"]
    assert (gained, lost) == (came, went)
    again = axlog.parse(doc.xml()).watch(shown("//comment()", "id", "val"))
    assert [r["node.val"] for r in view.rows()] == [r["node.val"] for r in again.rows()]


@pytest.mark.parametrize("maintainer", MAINTAINERS)
def test_a_renamed_instruction_has_another_target(maintainer: str) -> None:
    doc = axlog.parse("<a><?q x?></a>")
    query = shown("//processing-instruction('p')", "id", "val")
    view = doc.watch(query, maintainer=maintainer)
    assert doc.update("rename node //processing-instruction() as 'p'")[0].op == "insert"
    assert [row["node.val"] for row in view.rows()] == ["x"]
    assert doc.update("rename node //processing-instruction() as 'r'")[0].op == "delete"


def test_a_renamed_instruction_keeps_its_time() -> None:
    doc = axlog.parse("<a><?q x?></a>")
    view = doc.watch(shown("//processing-instruction()", "id", "time"))
    doc.update("rename node //processing-instruction() as 'p'", at=5)
    assert [row["node.time"] for row in view.rows()] == [0]
    doc.update("replace value of node //processing-instruction() with 'y'", at=7)
    assert [row["node.time"] for row in view.rows()] != [0]


@pytest.mark.parametrize("maintainer", MAINTAINERS)
def test_a_comment_is_content(maintainer: str) -> None:
    doc = axlog.parse("<a><!--c--></a>")
    view = doc.watch("/a[not(node())]", maintainer=maintainer)
    assert view.rows() == []
    assert [change.op for change in doc.update("delete nodes /a/node()")] == ["insert"]


STATEMENTS = {
    "delete nodes /a/node()": "<a/>",
    "delete nodes /a/node()[2]": "<a><!--1--><?p q?><c/></a>",
    "delete node /a/node()[3]": "<a><!--1-->t<c/></a>",
    "delete nodes //processing-instruction(p)": "<a><!--1-->t<c/></a>",
    "delete nodes //node()[self::comment()]": "<a>t<?p q?><c/></a>",
    "if (/a[not(node())]) then delete node //c else delete node //comment()": (
        "<a>t<?p q?><c/></a>"
    ),
    "delete nodes //following-sibling::*": "<a><!--1-->t<?p q?></a>",
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_find_them(statement: str) -> None:
    doc = axlog.parse("<a><!--1-->t<?p q?><c/></a>")
    doc.update(statement)
    assert doc.xml() == STATEMENTS[statement]


def test_xquery_shows_them_as_they_are() -> None:
    doc = axlog.parse("<a xmlns='urn:a'><b>x<!--1--><?p q?></b></a>")
    text = "for $b in //x:b return <r xmlns='urn:r'>{$b/node()}</r>"
    view = doc.watch(parse_query(text, {"x": "urn:a"}))
    (row,) = view.rows()
    assert view.xml(row) == '<r xmlns="urn:r">x<!--1--><?p q?></r>'


@pytest.mark.parametrize("automaton_from", [0, 1000])
def test_filters_find_them(automaton_from: int) -> None:
    wanted = Filter(automaton_from)
    texts = ("//comment()", "/m[node()]", "/m[not(node())]", "//processing-instruction('p')", "//x")
    for text in texts:
        wanted.add(text, text)
    expected = {
        "<m/>": {"/m[not(node())]"},
        "<m><!--c--></m>": {"//comment()", "/m[node()]"},
        "<m><?p?></m>": {"/m[node()]", "//processing-instruction('p')"},
        "<m><?q?></m>": {"/m[node()]"},
        "<!--c--><m/>": {"//comment()", "/m[not(node())]"},
        "<m><x/></m>": {"/m[node()]", "//x"},
    }
    for message, keys in expected.items():
        root = parse(message).root
        assert wanted.matches(root) == keys, message
        assert set(wanted.match(root)) == keys, message
        assert wanted.matches(root, content=message.encode()) == keys, message


def test_a_source_lets_comments_beside_the_trees_pass() -> None:
    wanted = Filter()
    wanted.add("c", "//comment()")
    assert passes(wanted, StreamUpdate("s", "insert", "<m/><!--c-->"))
    assert not passes(wanted, StreamUpdate("s", "insert", "<m/><n/>"))


CALL = '<ax:call xmlns:ax="urn:axlog" stream="s"{}/>'


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_streams_bring_them(keep: Keep) -> None:
    views = {
        "labels": "match /r/m/node()#t return t.label",
        "empty": "match /r[m[not(node())]]",
        "beside": "match /r/comment()#t return t.label",
    }
    doc = axlog.parse(f"<r>{CALL.format('')}</r>", views=views, options=axlog.Options(keep=keep))
    messages = ["<m><x/></m>", "<m><!--c--></m>", "<m><?p d?>t</m><!--beside-->", "<m/>"]
    with doc.batch():
        for message in messages[:2]:
            doc.feed("s", message)
    for message in messages[2:]:
        doc.feed("s", message)
    rows = {name: [tuple(row.values()) for row in doc.view(name).rows()] for name in views}
    assert rows == {
        "labels": [("c",), ("p",), ("t",), ("x",)],
        "empty": [()],
        "beside": [("beside",)],
    }


def test_a_stream_deletes_comments_beside_its_call() -> None:
    doc = axlog.parse("<r><!--1--><!--2-->{}</r>".format(CALL.format(' deletes="yes"')))
    doc.delete("s", "match /comment()[. = '1']")
    assert doc.xml().startswith("<r><!--2--><ax:call")


def test_a_stream_that_has_brought_its_trees_brings_no_comments() -> None:
    doc = axlog.parse("<r>{}</r>".format(CALL.format(' most="1"')))
    doc.feed("s", "<!--1-->")
    doc.feed("s", "<a/>")
    with pytest.raises(AxlogError, match="AX406"):
        doc.feed("s", "<!--2-->")


REFUSED = (
    ("match /r/comment()", ""),
    ("match /r[node()][not(a)]", ""),
    ("match /r/node()", ' most="1"'),
)


@pytest.mark.parametrize(("text", "declared"), REFUSED)
def test_the_analyses_refuse_them_by_name(text: str, declared: str) -> None:
    doc = axlog.parse(f"<r>{CALL.format(declared)}</r>", views={"v": text})
    with pytest.raises(AxlogError, match="comment or processing instruction") as refused:
        _ = doc.view("v").truth
    assert refused.value.code == "AX503"


def test_node_alone_is_decided() -> None:
    doc = axlog.parse(f"<r>{CALL.format('')}</r>", views={"v": "match /r/node()"})
    assert doc.view("v").truth.value == "possible"


def test_containment_refuses_them_in_the_first_query() -> None:
    assert contains("match /a/b", "match /a/node()")
    with pytest.raises(AxlogError, match=r"AX211.*comments and instructions"):
        contains("match /a/node()", "match /a/node()")
    with pytest.raises(AxlogError, match=r"AX211.*comments and instructions"):
        contains("match /a/b", "match /a/comment()")


@pytest.mark.parametrize(
    "message", ["<m><!--c--><x/></m>", "<m/><!--b-->", "<m><?p d?></m>", "<m><x/></m>"]
)
def test_bindings_that_travel_have_them(message: str) -> None:
    """What Spark's tasks find in a message is what the document finds."""
    views = {"v": "match /r/m/node()#t return t.label", "b": "match /r/comment()#t return t.label"}
    doc = axlog.parse(
        f"<r>{CALL.format('')}</r>", views=views, options=axlog.Options(keep="needed")
    )
    plan = streams_of(doc).engine.plan("s")
    assert plan is not None
    found = sorted(row for bag in bags_of(plan, message.encode(), 0) for row in bag)
    doc.feed("s", message)
    rows = sorted(tuple(row.values()) for view in doc.views.values() for row in view.rows())
    assert found == rows
