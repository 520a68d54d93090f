"""Names with a wildcard, `*:n` and `p:*`, on every path that data takes."""

from __future__ import annotations

import pytest
from lxml import etree

import axlog
from axlog.errors import QueryError, UndecidedError
from axlog.future.containment import Verdict, contains
from axlog.match.filters import Filter

TEXT = (
    '<r xmlns:x="urn:x" xmlns:y="urn:y"><x:n k="1">a</x:n><n x:k="2">b</n><m>c</m>'
    "<x:m>d<y:n>e</y:n></x:m></r>"
)
SPACES = {"p": "urn:x"}
QUERIES = {
    "match //*:n#t return t.val": ["a", "b", "e"],
    "match //p:*#t return t.val": ["a", "de"],
    "match //Q{urn:y}*#t return t.val": ["e"],
    "match /Q{}*/Q{}*#t return t.val": ["b", "c"],
    "match //@*:k#t return t.val": ["1", "2"],
    "match //@p:*#t return t.val": ["2"],
    "match //*:m#t[not(*:n)] return t.val": ["c"],
    'match //*:m#t[*:n = "e"] return t.val': ["de"],
}


@pytest.mark.parametrize("maintainer", ["counting", "algebraic", "reevaluate"])
@pytest.mark.parametrize("query", QUERIES)
def test_rows_and_updates(maintainer: str, query: str) -> None:
    doc = axlog.parse(TEXT, options=axlog.Options(namespaces=SPACES))
    view = doc.watch(query, maintainer=maintainer)
    assert [row["t.val"] for row in view.rows()] == QUERIES[query]
    doc.update("insert node <x:n xmlns:x='urn:x' x:k='3'>z</x:n> as last into /r")
    doc.update("rename node /r/m as 'n'")
    again = axlog.parse(doc.xml(), options=axlog.Options(namespaces=SPACES)).watch(query)
    assert [row["t.val"] for row in view.rows()] == [row["t.val"] for row in again.rows()]


def text_of(item: object) -> str:
    """The string value of a node, as an element of lxml, as XML or as the value of an attribute."""
    if isinstance(item, str) and item.startswith("<"):
        item = etree.fromstring(item)
    return "".join(map(str, item.itertext())) if isinstance(item, etree._Element) else str(item)


@pytest.mark.parametrize("query", ["//*:n", "//p:*", "//@*:k", "//*:m/*:n", "//*:n/self::p:*"])
def test_xpath(query: str) -> None:
    doc = axlog.parse(TEXT, options=axlog.Options(namespaces=SPACES))
    view = doc.watch(query, language="xpath")
    local = {"*:n": "*[local-name() = 'n']", "*:m": "*[local-name() = 'm']",
             "@*:k": "@*[local-name() = 'k']"}  # fmt: skip
    written = query
    for name, test in local.items():
        written = written.replace(name, test)
    found = etree.fromstring(TEXT).xpath(written, namespaces=SPACES)
    assert isinstance(found, list)
    assert list(map(text_of, view.items())) == list(map(text_of, found))
    assert "counting" in str(view.explain())


def test_messages_and_filters() -> None:
    doc = axlog.Document(streams=["s"], views={"v": "match //*:n[@*:k]/$x return $x"})
    filters = Filter()
    filters.add("v", "match /*:n[@*:k]/$x return $x")
    messages = {
        '<n k="1">1</n>': True, '<x:n xmlns:x="u" k="1">2</x:n>': True,
        '<x:n xmlns:x="u" x:k="1">3</x:n>': True, '<x:m xmlns:x="u" k="1">4</x:m>': False,
        "<n>5</n>": False,
    }  # fmt: skip
    for text, wanted in messages.items():
        assert bool(doc.feed("s", text)) == wanted, text
        assert bool(filters.matches(etree.fromstring(text))) == wanted, text


def test_analyses() -> None:
    assert contains("match //a", "match //*:a").verdict is Verdict.CONTAINED
    assert contains("match //a", "match //*:b").verdict is Verdict.NOT_CONTAINED
    with pytest.raises(QueryError, match="a part of a name"):
        contains("match //*:a", "match //*")
    doc = axlog.Document(streams=["s"], views={"v": "match //*:n"})
    with pytest.raises(UndecidedError, match="AX503"):
        _ = doc.view("v").truth
