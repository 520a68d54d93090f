"""Matchers on the bytes of messages find what matchers of parsed messages find."""

from random import Random

import pytest

from axlog.document.parser import Limits
from axlog.live.document import Document
from axlog.match.byte_generator import MOST_FOUND, generate_reader
from axlog.query.compile import Relation, compile_pattern
from axlog.query.query import parse_query
from lab.laws.bytes_law import check_bytes, make_bytes_case

CASES = 200


def read(query: str, message: str) -> object:
    """What the reader of a query's first relation finds; None: the message has to be parsed."""
    reader = generate_reader((relation_of(query),), (), Limits())
    assert reader is not None
    found = reader[0](message.encode(), 0, len(message))
    return None if found is None else found[0]


def relation_of(query: str) -> Relation:
    return compile_pattern(parse_query(query).pattern).root.edges[0].relation


def test_differential_read_and_parsed_messages() -> None:
    rows = sum(check_bytes(make_bytes_case(Random(f"bytes:{n}"))) for n in range(CASES))
    assert rows > 5 * CASES


@pytest.mark.parametrize(
    ("query", "message", "rows"),
    [
        ("match /a/b/$x return $x", "<a><b>1</b><c><b>2</b></c><b>3</b></a>",
         {("1",): 1, ("3",): 1}),
        ("match /a[c]//b/$x return $x", "<a><b>1</b><c><b>2</b></c></a>", {("1",): 1, ("2",): 1}),
        ("match /a[c]/b/$x return $x", "<a><c/><c>x</c><cc/><b>1</b></a>", {("1",): 2}),
        ('match /a[b = "2"]/c/$x return $x', "<a><b>1</b><b>2</b><c>3</c></a>", {("3",): 1}),
        ("match /a[//c]/b/$x return $x", "<a><b> 1 </b><d><c/></d></a>", {(" 1 ",): 1}),
        ("match /a/b/$x return $x", "<a><b></b><b/></a>", {}),
        ("match /b/$x return $x", "<b>1</b>", {("1",): 1}),
        ("match /b/$x return $x", "<a>1</a>", {}),
    ],
)  # fmt: skip
def test_rows_are_found_by_the_places_of_tags(query: str, message: str, rows: object) -> None:
    assert read(query, message) == rows


@pytest.mark.parametrize(
    "message",
    [
        "<a><b>1<c/></b></a>", "<a><b><b>1</b></b></a>", '<a><b k="1">1</b></a>',
        "<a><b>&lt;</b></a>", "<a><b>1</b ></a>", "<a><b\n/></a>", "<a><!-- --><b>1</b></a>",
        "<a><?p i?><b>1</b></a>", "<a><b>\r</b></a>", "<a><b>é</b></a>",
        "<a><c/>x/><b>1</b></a>", "<a/>", "<a><b>1</b></a>\n",
        f"<a>{'<b>1</b>' * (MOST_FOUND + 2)}</a>",
    ],
)  # fmt: skip
def test_other_messages_are_parsed(message: str) -> None:
    assert read("match /a/b/$x return $x", message) is None


@pytest.mark.parametrize(
    "query",
    [
        "match /a/*/$x return $x", "match /a[b or c]/d/$x return $x",
        "match /a[not(b)]/c/$x return $x",
    ],
)  # fmt: skip
def test_other_queries_have_no_reader(query: str) -> None:
    assert generate_reader((relation_of(query),), (), Limits()) is None


def test_messages_that_are_mostly_declined_are_parsed_at_once() -> None:
    doc = Document(streams=["s"], views={"v": "match //a/b/$x return $x"})
    for number in range(200):
        doc.feed("s", f"<a><b>{number}<i{number}/></b></a>")
    way = doc._streams.engine.short_way("s") if doc._streams is not None else None
    assert way is not None
    assert way.layouts is not None
    assert not way.layouts.reads
    assert len(doc.view("v").rows()) == 400
