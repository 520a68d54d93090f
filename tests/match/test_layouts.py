"""Messages that are read by their layout: what is learned, what is read, and what is not."""

from random import Random

import pytest
from lxml.etree import fromstring

from axlog.document.parser import Limits, make_parser
from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.internals import streams_of
from axlog.live.options import Options
from axlog.match import layout_reader
from axlog.match.layout_expression import expression_of
from axlog.match.layout_reader import LayoutReader
from axlog.match.message_layout import DOUBLE, SINGLE, TEXT, Layout, layout_of, tokens_of
from axlog.query.compile import Relation, compile_pattern
from axlog.query.query import parse_query
from lab.laws.layouts_law import VALUES, check_layouts, eager_layouts, make_layouts_case

CASES = 250


def learned(text: str, limits: Limits = Limits()) -> Layout | None:  # noqa: B008
    return layout_of(text, fromstring(text.encode(), make_parser()), limits)


def relations(query: str) -> tuple[Relation, ...]:
    pattern = parse_query(query, {"p": "urn:x"}).pattern
    return (compile_pattern(pattern).root.edges[0].relation,)


def reader_of(query: str, *texts: str) -> LayoutReader:
    made = LayoutReader(relations(query), (), Limits())
    made.learn([each for text in texts if (each := learned(text)) is not None])
    return made


def rows(reader: LayoutReader, text: str) -> object:
    assert reader.match is not None
    found = reader.match(text)
    if found is None:
        return None
    leaf = reader.leaves[found.lastindex or 0]
    assert leaf is not None
    return leaf(found, 0, text)


def test_differential_read_and_parsed_messages() -> None:
    read = sum(check_layouts(make_layouts_case(Random(f"layouts:{n}"))) for n in range(CASES))
    assert read > 2 * CASES


def test_the_tokens_of_a_message() -> None:
    text = "<a x=\"1\" y='2'>\n <b>3</b> <c/>4<d></d></a>\n"
    assert tokens_of(text) == (
        '<a x="', DOUBLE, "\" y='", SINGLE, "'>", "\n ", "<b>", TEXT, "</b>", " ", "<c/>", TEXT,
        "<d>", TEXT, "</d>", "</a>", "\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "<a>&amp;</a>", "<a><!--1--></a>", "<a><?b?></a>", "<a><![CDATA[1]]></a>", "<a>\r\n</a>",
        '<a xml:id="b"/>', '<a xml:space="preserve"> </a>', " <a/>", '<?xml version="1.0"?><a/>',
        '<ax:call xmlns:ax="urn:axlog" stream="s"/>', '<a><call xmlns="urn:axlog" stream="s"/></a>',
        '<a b="1\n2"/>', "<a>" + "<b/>" * layout_reader.MOST_TOKENS + "</a>",
    ],
)  # fmt: skip
def test_messages_without_a_layout(text: str) -> None:
    assert learned(text) is None


@pytest.mark.parametrize("text", ["<a>", "</a>", "<a></a><a></a>", "<a></b>", "a", "<a/>1"])
def test_no_layout_of_another_tree(text: str) -> None:
    """What the parser made of a message decides, not what the scan makes of it."""
    root = fromstring("<a><b/></a>", make_parser())
    assert layout_of(text, root, Limits()) is None


def test_namespaces_belong_to_the_layout() -> None:
    text = '<p:a xmlns:p="urn:x"><p:b p:k="1" k="2">3</p:b></p:a>'
    reader = reader_of('match /p:a/p:b[@k = "5"]/$y return $y', text)
    assert rows(reader, text.replace('"2"', '"5"').replace("3", "7")) == ({("7",): 1},)
    assert rows(reader, text.replace("urn:x", "urn:y")) is None


def test_names_that_could_exceed_their_limit_have_no_layout() -> None:
    text = f'<a xmlns="urn:{"x" * 90}">{"<b/>" * 90}</a>'
    assert learned(text) is not None
    assert learned(text, Limits(expansion=10)) is None


def test_several_layouts_share_their_beginning() -> None:
    texts = ("<a><b>1</b></a>", "<a><b>1</b><c>2</c></a>", "<a><d>1</d></a>\n", "<a><d>1</d></a>")
    reader = reader_of("match /a[b/$x][c/$y] return $x, $y", *texts)
    assert [rows(reader, each) for each in texts] == [({},), ({("1", "2"): 1},), ({},), ({},)]
    assert rows(reader, "<a><b>é</b><c>\U0001f600</c></a>") == ({("é", "\U0001f600"): 1},)
    assert rows(reader, "<a><b>1</b><d>2</d></a>") is None


def test_values_are_read_only_where_a_query_needs_them() -> None:
    layout = learned("<a><b>1</b><c>2</c></a>")
    assert layout is not None
    found = expression_of([(layout, {1})])
    match = found.fullmatch("<a><b>5</b><c>6</c></a>")
    assert match is not None
    assert match.groups() == ("6", "")
    assert found.groups == [{1: 1}]
    assert found.ends == [2] == [match.lastindex]


@pytest.mark.parametrize("value", VALUES)
def test_every_value_gives_what_a_parsed_message_gives(value: str) -> None:
    """A document that reads by layouts accepts and refuses what a new document does."""
    query = "match //m[@k = $z]/b/$x return $x, $z"
    outcomes: list[object] = []
    text = f'<m k="{value}"><b>{value}</b></m>'
    for known in (False, True):
        with eager_layouts():
            doc = Document(streams=["s"], views={"v": query}, options=Options(keep="needed"))
            for _ in range(3 if known else 0):
                doc.feed("s", '<m k="1"><b>0</b></m>')
            doc.feed("s", "<other/>")
            for given in (text, text.encode(errors="surrogatepass")):
                try:
                    outcomes.append([dict(each.row) for each in doc.feed("s", given)])
                except AxlogError as error:
                    outcomes.append(error.code)
    assert outcomes[:2] == outcomes[2:]


def feed_all(doc: Document, texts: list[str]) -> LayoutReader:
    for text in texts:
        doc.feed("s", text)
    found = streams_of(doc).engine.layouts("s")
    assert found is not None
    return found


def watched() -> Document:
    return Document(
        streams=["s"], views={"v": "match //m/b/$x return $x"}, options=Options(keep="needed")
    )


def test_frequent_layouts_are_learned() -> None:
    needed = layout_reader.EVERY * layout_reader.SAMPLES
    doc = watched()
    assert feed_all(doc, [f"<m><b>{n}</b></m>" for n in range(needed)]).match is None
    reader = feed_all(doc, [f"<m><b>{n}</b></m>" for n in range(needed, needed + 5)])
    assert reader.match is not None
    left = reader.left
    feed_all(doc, [f"<m><b>{n}</b></m>" for n in range(needed + 5, needed + 50)])
    assert reader.left == left  # none was parsed
    assert len(doc.view("v")) == needed + 50


def test_layouts_that_become_frequent_are_learned_later() -> None:
    doc = watched()
    reader = feed_all(doc, ["<m><b>1</b></m>"] * 200)
    assert reader.match is not None
    feed_all(doc, ["<m><c/><b>2</b></m>"] * 800)
    assert reader.match("<m><c/><b>2</b></m>") is not None
    assert reader.match("<m><b>2</b></m>") is not None


def test_messages_that_differ_too_much_are_parsed() -> None:
    """The samples and the expressions of a hostile stream are bounded."""
    doc = watched()
    reader = feed_all(doc, [f"<m><b{n}/><b>{n}</b></m>" for n in range(3000)])
    assert reader.match is None
    assert reader.left > 3000
    doc = watched()
    reader = feed_all(doc, ["<m><b>1</b></m>"] * 200)
    feed_all(doc, [f"<m><b{n}/><b>{n}</b></m>" for n in range(3000)])
    assert reader.match is None


def test_a_layout_whose_code_is_too_long_is_parsed() -> None:
    query = "match /m[//b/$x][//b/$y][//b/$z] where $x < $y and $y < $z return $x"
    text = f"<m>{'<b>1</b>' * 60}</m>"
    assert reader_of(query, text).match is None
    assert reader_of(query, "<m><b>1</b></m>", text).match is not None
