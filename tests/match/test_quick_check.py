"""The quick check accepts only messages that the parser accepts."""

from random import Random

import pytest
from lxml.etree import XMLSyntaxError, fromstring

from axlog.document.parser import make_parser
from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.match.quick_check import form_check, may_differ

PARSER = make_parser()
PIECES = (
    b"<a>", b"</a>", b"<b/>", b"<b", b"<", b">", b"/>", b"/", b"=", b'"', b"'", b' x="1"',
    b" x='<'", b" x='>'", b' x="2"', b" y=1", b" ", b"\n", b"\t", b"\r", b"\0", b"\x01", b"\x7f",
    b"]]>", b"text", b"&amp;", b"&", b"<!-- -->", b"<?p i?>", b"<![CDATA[x]]>", b":", b"<p:a>",
    b" xmlns='u'", b" xmlns=''", b" xml='1'", b"\xc3\xa9", b"\xff", b"<-a/>", b"<1/>", b"<a.b-c/>",
    b"<_/>", b"<.a/>", b"</a >", b"</ a>", b"<a >", b"< a>", b" a = 'b'", b"a='b'", b"<xml/>",
)  # fmt: skip
"""Parts of which messages are put together, right and wrong."""


def accepted(message: bytes) -> bool:
    """Whether the parser accepts a message."""
    try:
        fromstring(message, PARSER)
    except XMLSyntaxError:
        return False
    return True


def message_of(random: Random) -> bytes:
    """A tree with some parts of it replaced, removed or added."""
    parts = [b"<a>"]
    for _ in range(random.randint(0, 4)):
        parts += random.choice(((b"<a>", b"</a>"), (b"<b/>",), (b"text",), (b"<b x='1'/>",)))
    parts.append(b"</a>")
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        at = random.randrange(len(parts))
        change = random.random()
        if change < 0.6:
            parts.insert(at, random.choice(PIECES))
        elif change < 0.8:
            parts[at] = random.choice(PIECES)
        elif len(parts) > 1:
            del parts[at]
    return b"".join(parts)


@pytest.mark.parametrize("seed", range(4))
def test_every_message_that_passes_is_accepted_by_the_parser(seed: int) -> None:
    random = Random(seed)
    is_well_formed = form_check()
    passed = refused = 0
    for _ in range(5000):
        message = message_of(random)
        if message and not may_differ(message) and is_well_formed(message):
            assert accepted(message), message
            passed += 1
        else:
            refused += 1
    assert passed > 1000
    assert refused > 1000


@pytest.mark.parametrize(
    "message", [b"<b>", b"<b></c>", b"<b/><b/>", b"<b x='1' x='2'/>", b"<b>\x01</b>", b"<b>]]></b>"]
)
def test_a_message_that_matches_nothing_is_still_checked(message: bytes) -> None:
    text = '<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>'
    doc = Document(text, views={"v": "match /a/other/$x return $x"})
    long = Document(text)
    for good in (b"<b/>", b"<c/>"):  # the second one is taken by the generated function
        assert doc.feed("s", good) == long.feed("s", good) == []
    assert outcome(doc, message) == outcome(long, message)
    assert doc.streams()["s"].messages == long.streams()["s"].messages
    assert doc.xml() == long.xml()


def outcome(doc: Document, message: bytes) -> object:
    """The changes of a message, or the code of its error."""
    try:
        return doc.feed("s", message)
    except AxlogError as error:
        return error.code
