"""Large and deep messages, and those with a declaration, have one outcome on both paths."""

from random import Random

import pytest

from axlog import Document, Limits, Options
from axlog.errors import AxlogError
from axlog.live.internals import streams_of
from axlog.match.message_limits import without_declaration

TEXT = '<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>'
VIEW = "match /a/b//c/$x return $x"
SHORT = {"v": VIEW}
LONG = {"v": VIEW, "whole": "match /a/b#n return n.cont"}  # contents are read from nodes
LIMITS = Limits(depth=12, size=6000, text=4000, name=90, attributes=9, expansion=3)
DECLARED = (
    b'<?xml version="1.0"?>', b"<?xml version='1.0' encoding='UTF-8'?>\n",
    b'<?xml version="1.0" encoding="utf-8" standalone="yes" ?>\r\n',
    b'<?xml version = "1.0"\tencoding = "Utf-8"?>',
)  # fmt: skip
ODD = (
    b'<?xml version="1.1"?>', b'<?xml version="1.0" encoding="latin-1"?>', b"<?xml?>", b"<?p i?>",
    b'<?xml encoding="utf-8"?>', b'<?xml version="1.0" encoding="utf-16"?>', b"<!-- c -->",
    b'<?xml version="1.0" standalone="yes" encoding="utf-8"?>', b'<?xml version="1.0"?',
    b'<?xml version="1.0"?><?xml version="1.0"?>', b' <?xml version="1.0"?>', b"\xef\xbb\xbf",
)  # fmt: skip


def outcome(doc: Document, message: bytes | str) -> object:
    """The changes of the view, or the code of the error."""
    try:
        changes = doc.feed("s", message)
    except AxlogError as error:
        return error.code
    return [(each.op, tuple(each.row.values())) for each in changes if each.view == "v"]


def message_of(random: Random) -> bytes:
    """A message near some limit, on either side of it."""
    kind = random.randrange(7)
    near = random.choice((-1, 0, 1, random.randrange(-5, 40)))
    if kind == 0:  # the document has one level
        levels = max(LIMITS.depth - 4 + near, 0)
        many = b"<d/>" * random.randrange(300)
        return b"<b>" + many + b"<e>" * levels + b"<c>1</c>" + b"</e>" * levels + b"</b>"
    if kind == 1:
        name = b"n" * max(LIMITS.name + near, 1)
        return b"<b><%s>%s</%s><c>2</c></b>" % (name, b"t" * random.randrange(2000), name)
    if kind == 2:
        count = max(LIMITS.attributes + near, 0)
        given = b" ".join(b"x%d='%s'" % (n, b"=>" * random.randrange(30)) for n in range(count))
        return b"<b><d %s/>%s<c>3</c></b>" % (given, b"<d/>" * random.randrange(200))
    if kind == 3:
        return b"<b><d>%s</d><c>4</c></b>" % (b"t" * (LIMITS.text + near))
    if kind == 4:
        return b"<b><c>5</c>%s</b>" % (b"<d/>" * ((LIMITS.size - 18) // 4 + near // 4))
    if kind == 5:
        space = b"u" * random.randrange(200)
        return b"<b xmlns:p='%s'>%s<c>6</c></b>" % (space, b"<p:d/>" * random.randrange(400))
    long = b" y%s='1'" % (b"y" * max(LIMITS.name + near, 0))
    return b"<b><d x='>'%s/>%s<c>7</c></b>" % (long, b"t" * random.randrange(3000))


@pytest.mark.parametrize("seed", range(6))
def test_differential_limits_on_both_paths(seed: int) -> None:
    random = Random(seed)
    short = Document(TEXT, views=SHORT, options=Options(limits=LIMITS))
    long = Document(TEXT, views=LONG, options=Options(limits=LIMITS))
    refused: set[object] = set()
    is_short = 0
    for _ in range(250):
        message = message_of(random)
        if random.random() < 0.3:
            message = random.choice((*DECLARED, *ODD)) + message
        expected = outcome(long, message)
        before = len(streams_of(short).engine.aside)
        assert outcome(short, message) == expected, message
        is_short += len(streams_of(short).engine.aside) > before
        refused |= {expected} if isinstance(expected, str) else set()
    assert len({"AX121", "AX122", "AX123", "AX124", "AX125"} & refused) > 3
    assert is_short > 5
    assert short.xml() == long.xml()


@pytest.mark.parametrize("declared", DECLARED)
def test_a_message_with_a_declaration_takes_the_short_path(declared: bytes) -> None:
    doc = Document(TEXT, views=SHORT)
    for number in range(40):  # its layout is learned
        message = declared + b"<b><c>%d</c></b>" % number
        given = message if number % 2 else message.decode()
        assert outcome(doc, given) == [("insert", (str(number),))]
        assert len(streams_of(doc).engine.aside) == number + 1
    assert doc.xml().count("<c>") == 40
    assert without_declaration(declared + b"<b/>") == b"<b/>"


@pytest.mark.parametrize("odd", ODD)
def test_other_declarations_stay(odd: bytes) -> None:
    if not odd.startswith(b'<?xml version="1.0"?><'):
        assert without_declaration(odd + b"<b/>") == odd + b"<b/>"
    short, long = Document(TEXT, views=SHORT), Document(TEXT, views=LONG)
    message = odd + b"<b><c>x</c></b>"
    assert outcome(short, message) == outcome(long, message)


def test_a_long_text_takes_the_short_path() -> None:
    doc = Document(TEXT, views=SHORT)
    outcome(doc, b"<b/>")
    for filler in (b"<d>%s</d>" % (b"x" * 60_000), b"<d>x</d>" * 600, b'<d y="1"/>' * 6000):
        assert outcome(doc, b"<b>" + filler + b"<c>1</c></b>") is not None
    assert len(streams_of(doc).engine.aside) == 4
