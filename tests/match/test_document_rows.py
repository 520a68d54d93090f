"""Rows found on parsed documents are those of the embedded engine on loaded ones."""

import re
from collections import Counter
from random import Random
from typing import Any

import pytest

from axlog.document.ids import Id
from axlog.document.loader import load
from axlog.document.parser import Limits
from axlog.live.document import Document
from axlog.match.document_rows import DocumentRows, parsed, refusal
from axlog.query.query import Query, parse_query
from lab.laws import small_cases

MARKUP = re.compile(r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>", re.DOTALL)
AWKWARD = [
    "<r> <a> </a> <b/>x <a k='>&lt;&quot;&#10;' xml:lang='de'>&gt;<c/> &amp; </a>y</r>",
    "<r><a>1<b> <c/> </b>1</a><a><b><c> </c>&#13;</b></a></r>",
    "<?xml version='1.0'?><a><a><b>é</b></a></a>",
]
QUERIES = [
    "match //a#t return t.id, t.val, t.cont, t.label, t.time",
    "match //a//text()#t return t.id, t.val, t.cont, t.label",
    "match //*#t/@*#k return t.id, k.id, k.val, k.cont, k.label",
    "match //a/@k#k/text()#t return k.id, t.id, t.val",
    "match //*#t//$x return t.id, $x",
    "for $a in //a return <found>{$a/b/text()}{$a/@k}{$a/*}</found>",
]


def comparable(value: Any) -> Any:
    if isinstance(value, Id):
        return value.key
    return tuple(map(comparable, value)) if isinstance(value, list | tuple) else value


def assert_equal_rows(rows: DocumentRows, query: Query, text: str) -> bool:
    found = rows.of(text)
    assert found is not None, text
    expected = Document(load(text)).watch(query).rows()
    assert Counter((comparable(values), count) for values, count in found) == Counter(
        (comparable(row.values_), row.count) for row in expected
    ), (str(query), text)
    return bool(found)


@pytest.mark.parametrize("text", QUERIES)
def test_awkward_documents(text: str) -> None:
    query = parse_query(text)
    rows = DocumentRows(query.pattern)
    answered = [assert_equal_rows(rows, query, document) for document in AWKWARD]
    assert any(answered)


def test_random_patterns_and_documents() -> None:
    compared = answered = 0
    for seed in range(250):
        pattern = small_cases.pattern(Random(seed))
        if refusal(pattern) is not None:
            continue
        rows, query = DocumentRows(pattern), Query(pattern, str(pattern))
        for number in range(6):
            text = MARKUP.sub("", small_cases.document(Random(f"{seed}:{number}"), 14))
            if parsed(text.encode()) is None:
                continue
            compared += 1
            answered += assert_equal_rows(rows, query, text)
    assert compared > 400
    assert answered > 150


@pytest.mark.parametrize(
    "text",
    [
        "<r><!-- --><a/></r>",
        "<r><![CDATA[a]]></r>",
        "<r><?p ?></r>",
        "<!DOCTYPE r><r/>",
        "<r xmlns='u'/>",
        "<r xml:space='preserve'/>",
        "<r><a></r>",
        "<r>&nbsp;</r>",
        "no xml",
        "",
        "<?xml version='1.0' encoding='latin-1'?><r/>",
        "<a>" * 257 + "</a>" * 257,
        f"<r>{'x' * 60_000}</r>",
    ],
)
def test_other_documents_are_loaded(text: str) -> None:
    assert parsed(text.encode()) is None


def test_limits() -> None:
    assert parsed(b"<a><a><a/></a></a>", Limits(depth=3)) is not None
    assert parsed(b"<a><a><a/></a></a>", Limits(depth=2)) is None
    assert parsed(b"<a>xxxxxxxx</a>", Limits(text=5)) is None
    assert parsed(b"<a/>", Limits(size=3)) is None
