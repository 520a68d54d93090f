"""Messages parsed together: the root of each is what it is alone, whatever stands beside it."""

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from axlog.document.parser import make_parser
from axlog.match import batch_parser
from axlog.match.batch_parser import chunks, roots_of

PARTS = (
    "<a>", "</a>", "<a/>", "<b x='1'/>", "text", " ", "&amp;", "&#32;", "&none;", "<![CDATA[ ]]>",
    "<!-- c -->", "<?pi?>", "<a xml:id='i'/>", "<p:a xmlns:p='urn:p'/>", "<p:a/>", "]]>", "\0",
    "<!DOCTYPE a>", "<?xml version='1.0'?>", "</_>", "<_>", "é",
)  # fmt: skip
GOOD = st.sampled_from(
    [
        b"<a/>", b"<a>\n <b>x</b>\n</a>", b"<a id='i'>1</a>\n",
        b"<a b='&lt;'>&#65;<!-- c --></a>",
        b"<p:a xmlns:p='urn:p'><p:b/></p:a>", b"<a xml:space='preserve'> </a>",
    ]
)  # fmt: skip
ANY = st.lists(st.sampled_from(PARTS), max_size=5).map(lambda parts: "".join(parts).encode())


def alone(message: bytes) -> etree._Element | None:
    try:
        return etree.fromstring(message, make_parser())
    except etree.XMLSyntaxError:
        return None


def inside(root: etree._Element) -> bytes:
    return etree.tostring(root, method="c14n2", with_tail=False)


@given(st.lists(GOOD | ANY, max_size=8))
@example([b"<a/>", b"<a/>&#32;"])
@example([b"<a xml:id='i'/>", b"<b xml:id='i'/>"])
def test_roots_are_those_of_messages_alone(messages: list[bytes]) -> None:
    for message, root in zip(messages, roots_of(messages), strict=True):
        if root is not None:
            found = alone(message)
            assert found is not None, message
            assert inside(root) == inside(found)
            assert root.tail is None


@given(st.lists(GOOD, min_size=2, max_size=100))
def test_messages_that_are_one_tree_are_parsed_together(messages: list[bytes]) -> None:
    parts = [part for part in chunks(messages) if len(part) > 1]
    assert None not in [root for part in parts for root in roots_of(part)]


@pytest.mark.parametrize("name", ["m", "m" + "0" * 32, "_"])
def test_no_message_can_end_its_place(name: str) -> None:
    """Who knew the name could; the name is drawn for each process, and told to nobody."""
    forged = f"<a/></{name}><{name}><b/>".encode()
    assert roots_of([b"<a/>", forged]) == [None, None]
    assert batch_parser._NAME.decode() not in (name, "")
    known = batch_parser._NAME
    roots = roots_of([b"<a/>", b"<a/></" + known + b"><" + known + b"><b/>"])
    assert roots == [None, None]  # and even then the count would tell


def test_what_gains_nothing_is_left_alone() -> None:
    large = b"<a>" + b"x" * batch_parser.LARGEST + b"</a>"
    odd = [b"<?xml version='1.0'?><a/>", b"", b"text", b"<!-- c --><a/>", large]
    assert roots_of([*odd, b"<a/>"]) == [None] * 6
    random = Random(1)
    sizes = [random.randrange(200) for _ in range(20)]
    assert all([x for part in chunks(range(n)) for x in part] == list(range(n)) for n in sizes)
