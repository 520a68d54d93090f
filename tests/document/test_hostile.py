"""Attacks on the parser: each is refused with its own code, fast, and nothing outside is read.

No test asserts a time; that an attack is refused before it grows is asserted on memory, and a test
that would wait for the network or fill the machine does not end.
"""

import io
import os
import socket
import threading
import tracemalloc
import xml.etree.ElementTree as StandardTree
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lxml import etree

import axlog
from axlog.document.loader import load, read_forest
from axlog.document.parser import Limits
from axlog.document.record_reader import split
from axlog.document.serializer import serialise
from axlog.errors import HostileError, InputError, LimitError, MalformedError

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
SECRET = "the secret of the planted file"


def refused(source: str | bytes, limits: Limits | None = None) -> InputError:
    """The error with which both ways in refuse a source."""
    limits = limits or Limits()
    with pytest.raises(InputError) as loading:
        load(source, limits=limits)
    with pytest.raises(InputError) as reading:
        read_forest(source, limits)
    assert (loading.value.code, loading.type) == (reading.value.code, reading.type)
    return loading.value


def code_of(source: str | bytes, **limits: int) -> str:
    with pytest.raises(InputError) as raised:
        load(source, limits=Limits(**limits))
    return raised.value.code


# Entities -----------------------------------------------------------------------------------------

DECLARED = {
    "billion laughs": f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a>&l9;</a>',
    "billion laughs in an attribute": f'<!DOCTYPE a [<!ENTITY l0 "x">{LAUGHS}]><a k="&l9;"/>',
    "quadratic blowup": f'<!DOCTYPE a [<!ENTITY x "{"x" * 50_000}">]><a>{"&x;" * 50_000}</a>',
    "an internal entity": '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
    "an internal entity that is not used": '<!DOCTYPE a [<!ENTITY x "y">]><a/>',
    "an entity that holds markup": '<!DOCTYPE a [<!ENTITY x "<b/>">]><a>&x;</a>',
    "one of the five": '<!DOCTYPE a [<!ENTITY lt "&#38;#60;">]><a/>',
    "a loop": '<!DOCTYPE a [<!ENTITY x "&y;"><!ENTITY y "&x;">]><a k="&x;"/>',
    "a parameter entity": "<!DOCTYPE a [<!ENTITY % p \"<!ENTITY x 'y'>\"> %p;]><a>&x;</a>",
    "an external entity": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a>&x;</a>',
    "an external entity not used": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a/>',
    "a public entity": '<!DOCTYPE a [<!ENTITY x PUBLIC "-//x" "file:///etc/hostname">]><a/>',
    "an unparsed entity": '<!DOCTYPE a [<!ENTITY x SYSTEM "x" NDATA n>]><a/>',
    "an external parameter entity": '<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///x"> %p;]><a/>',
    "after a comment": '<!--<a>--><!DOCTYPE a [<!--x--><?p?><!ENTITY x "y">]><a/>',
    "in XML 1.1": '<?xml version="1.1"?><!DOCTYPE a [<!ENTITY x "y">]><a/>',
}


@pytest.mark.parametrize("attack", DECLARED)
def test_declarations_of_entities_are_refused(attack):
    error = refused(DECLARED[attack])
    assert (error.code, type(error)) == ("AX111", HostileError)
    error = refused(DECLARED[attack].encode(), Limits(depth=2000, text=1 << 30))
    assert error.code == "AX111"


def test_nothing_grows_before_it_is_refused():
    tracemalloc.start()
    try:
        for attack in DECLARED.values():
            refused(attack)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "xml",
    [
        "<a>&x;</a>",
        '<a k="&x;"/>',
        '<!DOCTYPE a SYSTEM "none.dtd"><a>&x;</a>',
        '<!DOCTYPE a SYSTEM "none.dtd"><a k="1&x;2"/>',
        '<!DOCTYPE a SYSTEM "none.dtd"><a><b/><b k="&x;"/></a>',
        '<!DOCTYPE a [%p;]><a k="1&x;2"/>',
        '<?xml version="1.0" standalone="no"?><!DOCTYPE a SYSTEM "none.dtd"><a k="&x;"/>',
    ],
)
def test_undeclared_entities(xml):
    error = refused(xml)
    assert (error.code, type(error)) == ("AX112", HostileError)
    assert error.place is not None


def test_entities_that_another_parser_left_in_a_tree():
    parser = etree.XMLParser(resolve_entities=False)
    root = etree.fromstring('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', parser)
    with pytest.raises(HostileError) as raised:
        load(root)
    assert raised.value.code == "AX112"


# Nothing outside is read --------------------------------------------------------------------------


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A file that would show in the result, or break the parse, if it were read."""
    path = tmp_path / "planted.dtd"
    path.write_text(f'<!ENTITY x "{SECRET}"><!ATTLIST a k CDATA "{SECRET}">{SECRET}')
    return path


OUTSIDE: dict[str, tuple[str, str | None]] = {
    "an external DTD": ('<!DOCTYPE a SYSTEM "{}"><a/>', None),
    "a public DTD": ('<!DOCTYPE a PUBLIC "-//x//y" "{}"><a/>', None),
    "an external DTD with declarations": ('<!DOCTYPE a SYSTEM "{}" [<!ELEMENT a ANY>]><a/>', None),
    "its entity": ('<!DOCTYPE a SYSTEM "{}"><a>&x;</a>', "AX112"),
    "its entity in an attribute": ('<!DOCTYPE a SYSTEM "{}"><a j="&x;"/>', "AX112"),
    "an entity": ('<!DOCTYPE a [<!ENTITY x SYSTEM "{}">]><a>&x;</a>', "AX111"),
    "an entity in an attribute": ('<!DOCTYPE a [<!ENTITY x SYSTEM "{}">]><a j="&x;"/>', "AX111"),
    "a parameter entity": ('<!DOCTYPE a [<!ENTITY % p SYSTEM "{}"> %p;]><a>&x;</a>', "AX111"),
    "an inclusion": (
        '<a><i:include xmlns:i="http://www.w3.org/2001/XInclude" href="{}" parse="text"/></a>',
        None,
    ),
    "a stylesheet": ('<?xml-stylesheet href="{}" type="text/xsl"?><a/>', None),
    "a schema": (
        '<a xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:noNamespaceSchemaLocation="{}"/>',
        None,
    ),
}


def check_outside(case: str, address: str) -> None:
    xml, code = OUTSIDE[case]
    for content in (xml.format(address), xml.format(address).encode("utf-16")):
        if code is not None:
            assert refused(content).code == code
            continue
        written = serialise(load(content))
        assert SECRET not in written
        assert "k=" not in written


@pytest.mark.parametrize("case", OUTSIDE)
def test_nothing_is_read_from_the_disk(case, planted):
    for address in (planted.as_uri(), str(planted), f"file://localhost{planted}"):
        check_outside(case, address)


def test_no_address_is_even_opened(tmp_path):
    """Whoever opens a pipe waits for its writer, and here is none."""
    pipe = tmp_path / "pipe.dtd"
    os.mkfifo(pipe)
    done = threading.Event()

    def read() -> None:
        for case in OUTSIDE:
            check_outside(case, pipe.as_uri())
        done.set()

    threading.Thread(target=read, daemon=True).start()
    assert done.wait(60), "the pipe was opened"


@pytest.fixture
def listener() -> Iterator[Callable[[], tuple[str, list[object]]]]:
    """A local server: its address, and the connections it saw."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)

        def connections() -> tuple[str, list[object]]:
            seen: list[object] = []
            try:
                while True:
                    seen.append(server.accept())
            except BlockingIOError:
                return f"http://127.0.0.1:{server.getsockname()[1]}/x.dtd", seen

        yield connections


@pytest.mark.parametrize("case", OUTSIDE)
def test_nothing_is_read_from_the_network(case, listener):
    address, _ = listener()
    check_outside(case, address)
    _, seen = listener()
    assert not seen


# Limits -------------------------------------------------------------------------------------------


def deep(levels: int) -> str:
    return "<a>" * levels + "</a>" * levels


def test_depth():
    for xml in (deep(257), deep(1000), deep(100_000), "<a>" * 1_000_000):
        error = refused_by_load(xml)
        assert (error.code, type(error)) == ("AX121", LimitError)
    load(deep(256))
    load(deep(1000), limits=Limits(depth=1000))
    assert code_of(deep(1000), depth=999) == "AX121"
    assert code_of(deep(11), depth=10) == "AX121"
    load(deep(10), limits=Limits(depth=10))


def refused_by_load(source: str) -> InputError:
    with pytest.raises(InputError) as raised:
        load(source)
    return raised.value


def test_the_parser_has_a_depth_that_no_limit_raises():
    load(deep(2048), limits=Limits(depth=10_000))
    with pytest.raises(LimitError) as raised:
        load(deep(2049), limits=Limits(depth=10_000))
    assert raised.value.code == "AX121"
    assert "2048" in raised.value.message
    assert raised.value.advice is None


def test_depth_of_elements_that_a_program_made():
    root = below = etree.Element("a")
    for _ in range(300):
        below = etree.SubElement(below, "a")
    with pytest.raises(LimitError) as raised:
        load(root)
    assert raised.value.code == "AX121"
    load(root, limits=Limits(depth=301))


MANY = "x" * 10_000_001
LONG = {
    "a text": ("AX123", f"<a>{MANY}</a>"),
    "a text in pieces": ("AX123", f"<a>{MANY[:6_000_000]}<![CDATA[{MANY[:6_000_000]}]]></a>"),
    "a CDATA section": ("AX123", f"<a><![CDATA[{MANY}]]></a>"),
    "a comment": ("AX123", f"<a><!--{MANY}--></a>"),
    "an instruction": ("AX123", f"<a><?p {MANY}?></a>"),
    "an attribute": ("AX124", f'<a k="{MANY}"/>'),
    "an attribute of a call": ("AX124", f'<a><c:call xmlns:c="urn:axlog" stream="{MANY}"/></a>'),
    "an address": ("AX124", f'<a xmlns="{MANY}"/>'),
    "a name": ("AX124", f"<a{MANY[:50_000]}/>"),
    "the name of an attribute": ("AX124", f'<a k{MANY[:50_000]}=""/>'),
    "a name that is longer still": ("AX124", f"<a{MANY}/>"),
}


@pytest.mark.parametrize("what", LONG)
def test_length(what):
    code, xml = LONG[what]
    assert code_of(xml) == code
    if what != "a name that is longer still":  # the parser's own limit
        load(xml, limits=Limits(text=12_000_000, name=60_000))


def test_small_limits():
    assert code_of("<a>12345</a>", text=4) == "AX123"
    assert code_of('<a k="12345"/>', text=4) == "AX124"
    assert code_of("<abcde/>", name=4) == "AX124"
    assert code_of('<a abcde=""/>', name=4) == "AX124"
    load('<abcd abcd="1234">1234</abcd>', limits=Limits(text=4, name=4))


def test_names_with_their_namespaces():
    """What is counted is what names come to, not how often they are written."""
    uri = "u" * 10_000
    many = "<c/>" * 2000
    assert code_of(f'<b xmlns="{uri}">{many}</b>') == "AX125"
    assert code_of(f"<b xmlns = '{uri}'>{many}</b>") == "AX125"
    assert code_of(f'<b><x xmlns:p="{uri}">{"<p:c/>" * 2000}</x></b>') == "AX125"
    named = '<c p:k="1"/>' * 2000
    assert code_of(f'<b xmlns:p="{uri}">{named}</b>') == "AX125"
    hidden = f'<b xmlns:axmlnsb="{uri}">{"<axmlnsb:c/>" * 2000}</b>'
    assert code_of(hidden) == "AX125"
    # A namespace that few names are in, that nobody uses, or that only looks like one.
    for fine in (
        f'<b xmlns="{uri}"/>',
        f'<b xmlns:p="{uri}">{many}</b>',
        f'<b><d xmlns="{uri}"/>{many}</b>',
        f"<b k='xmlns=\"{uri}\"'>{many}</b>",
        f'<b xmlns="{"u" * 300}">{many}</b>',
    ):
        load(fine)
    load(f'<b xmlns="{uri}">{many}</b>', limits=Limits(expansion=2000))


def test_names_of_statements_with_their_namespaces():
    """The names that a statement constructs are counted as those of a document are."""
    uri, many = "u" * 2000, "<c/>" * 500
    named = '<c p:k=""/>' * 500
    prolog = f'declare default element namespace "{uri}";'
    for statement in (
        f'insert node <b xmlns="{uri}">{many}</b> into /a',
        f'insert node <b xmlns:p="{uri}">{named}</b> into /a',
        f"{prolog} insert node <b>{many}</b> into /*",
        f'delete nodes /a/b; insert node <b xmlns="{uri}">{many}</b> into /a',
    ):
        document = axlog.parse("<a><b/></a>")
        with pytest.raises(LimitError) as refusal:
            document.update(statement)
        assert refusal.value.code == "AX125"
        assert document.xml() == "<a><b/></a>"
        axlog.parse("<a><b/></a>", options=axlog.Options(limits=Limits(expansion=1000))).update(
            statement
        )
    # A namespace that few names are in, that nobody uses, or that is given with the statement.
    document = axlog.parse("<a/>", options=axlog.Options(namespaces={"p": "u" * 20_000}))
    document.update(f'insert node <b xmlns="{uri}"/> into /a')
    document.update(f'insert node <b xmlns:q="{uri}">{many}</b> into /a')
    document.update("insert node <p:b/> into /a")


def test_namespaces_of_records_that_are_passed_on_one_by_one():
    """A record by itself has all namespaces in scope, used or not."""
    xml = f'<l xmlns:p="{"u" * 100_000}">{"<o/>" * 3000}</l>'.encode()
    load(xml)
    with pytest.raises(LimitError) as refusal:
        list(split(io.BytesIO(xml), "o"))
    assert refusal.value.code == "AX125"
    named = f'<l xmlns="{"u" * 100_000}">{"<o/>" * 3000}</l>'.encode()
    with pytest.raises(LimitError):
        list(split(io.BytesIO(named), "nothing"))


def test_messages_of_a_stream_have_the_limit_of_names():
    doc = axlog.parse(
        '<r><ax:call xmlns:ax="urn:axlog" stream="f"/></r>', views={"v": "match /r/*/*/$x"}
    )
    assert not doc.view("v").holds()
    for uri, names in ((2_000, 500), (100_000, 3_000)):
        message = f'<b xmlns="{"u" * uri}">{"<c>1</c>" * names}</b>'
        with pytest.raises(LimitError) as refusal:
            doc.feed("f", message)
        assert refusal.value.code == "AX125"
    doc.feed("f", f'<b xmlns="{"u" * 50}">{"<c>1</c>" * 500}</b>')
    assert doc.view("v").holds()


def test_size(tmp_path):
    xml = f"<a>{'x' * 1000}</a>"
    path = tmp_path / "a.xml"
    path.write_text(xml)
    for source in (xml, xml.encode(), path, str(path), io.BytesIO(xml.encode()), io.StringIO(xml)):
        with pytest.raises(LimitError) as raised:
            load(source, limits=Limits(size=1000))
        assert raised.value.code == "AX122"
    load(xml, limits=Limits(size=len(xml)))


class Endless:
    """A file without an end."""

    def __init__(self) -> None:
        self.given = 0

    def read(self, size: int) -> bytes:
        self.given += min(size, 1000)
        return b" " * min(size, 1000)


def test_a_file_without_an_end():
    file = Endless()
    with pytest.raises(LimitError) as raised:
        load(file, limits=Limits(size=100_000))  # type: ignore[arg-type]  # not all of IO
    assert raised.value.code == "AX122"
    assert file.given == 100_001


def test_default_attributes_do_not_multiply():
    """Declared once, they would stand in every element."""
    value = "x" * 10_000
    for name in ("k", "xml:lang", "xmlns", "xmlns:p"):
        xml = f'<!DOCTYPE a [<!ATTLIST b {name} CDATA "{value}">]><a>{"<b/>" * 10_000}</a>'
        assert code_of(xml) in ("AX122", "AX125")  # it grows, or its names do


def test_many_attributes_and_declarations_of_one_element():
    many = " ".join(f'k{i}="" xmlns:p{i}="u{i}"' for i in range(5000))
    assert len(load(f"<a {many}/>").labels()) == 5002


# Bytes --------------------------------------------------------------------------------------------

BILLION = f'<?xml version="1.0" encoding="%s"?><!DOCTYPE a [<!ENTITY l0 "x">{LAUGHS}]><a k="&l9;"/>'
HIDDEN = {
    "utf-16": "AX111",
    "utf-16-le": "AX111",
    "utf-16-be": "AX111",
    "utf-32": "AX111",
    "utf-32-le": "AX111",
    "utf-32-be": "AX111",
    "shift_jis": "AX111",
    "gb18030": "AX111",
    "iso-2022-jp": "AX111",
    "cp1252": "AX111",
    "utf-7": "AX113",
    "cp037": "AX113",
    "cp500": "AX113",
    "hz": "AX113",
    "punycode": "AX113",
    "unicode_escape": "AX113",
    "idna": "AX113",
}


@pytest.mark.parametrize("encoding", HIDDEN)
def test_a_doctype_hidden_by_the_encoding(encoding):
    for limits in (Limits(), Limits(depth=2000, text=1 << 30)):
        content = (BILLION % encoding).encode("ascii" if encoding == "idna" else encoding)
        with pytest.raises(InputError) as raised:
            load(content, limits=limits)
        assert raised.value.code == HIDDEN[encoding]


def test_a_doctype_written_in_utf_7():
    hidden = BILLION.partition("?>")[2].encode("utf-7").replace(b"<", b"+ADw-")
    assert b"DOCTYPE" not in hidden or b"<!DOCTYPE" not in hidden
    assert code_of(b'<?xml version="1.0" encoding="UTF-7"?>' + hidden) == "AX113"
    assert code_of(b'<?xml version="1.0"?>' + hidden) == "AX101"


def test_a_text_that_claims_another_encoding():
    for claimed in ("utf-16", "utf-7", "cp037", "shift_jis"):
        assert code_of(BILLION % claimed) == "AX111"


@pytest.mark.parametrize(
    "content",
    [
        b"<a>\xff</a>",
        b"<a>\xc3</a>",
        b"<a>\xed\xa0\x80</a>",  # a surrogate in UTF-8
        b"<a>\xc0\xbc</a>",  # '<' in two bytes
        b'<?xml version="1.0" encoding="utf-8"?><a>\xe9</a>',
        b'<?xml version="1.0" encoding="ascii"?><a>\xc3\xa9</a>',
        b'<?xml version="1.0" encoding="no-such"?><a/>',
        b'<?xml version="1.0" encoding="iso-8859-99"?><a/>',
        b'<?xml version="1.0" encoding="utf-16"?><a/>',
        b'<?xml version="1.0" encoding="shift_jis"?><a>\x81</a>',
        b'<?xml version="1.0" encoding="rot13"?><a/>',
        "<a>xx</a>".encode("utf-16")[:-1],
        "<a>".encode("utf-16-le") + b"\x00\xd8" + "</a>".encode("utf-16-le"),
    ],
)
def test_encodings_that_are_wrong_or_unknown(content):
    error = refused(content)
    assert (error.code, type(error)) == ("AX113", MalformedError)


def test_a_file_opened_with_the_wrong_encoding(tmp_path):
    path = tmp_path / "a.xml"
    path.write_bytes("<a>é</a>".encode("latin-1"))
    with path.open(encoding="utf-8") as file, pytest.raises(MalformedError) as raised:
        load(file)
    assert raised.value.code == "AX113"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   ",
        b"\0",
        b"<a>\0</a>",
        "<a>\0</a>",
        b"<a\0/>",
        b'<a k="\0"/>',
        b"<a/>\0",
        b"<a>&#0;</a>",
        "<a>&#x1;</a>",
        "<a>\x01</a>",
        "<a>\ud800</a>",
        "<a>\ufffe</a>",
        "<a",
        "<a>",
        "<a><b>",
        "<a><b></a>",
        "<a k=1/>",
        "<a k='1' k='2'/>",
        '<a xmlns:p="u" xmlns:q="u" p:k="1" q:k="2"/>',
        "<p:a/>",
        "<a></b>",
        "<!DOCTYPE a [",
        "<!DOCTYPE a",
        "<!--",
        "<a><!-- -- --></a>",
        "<a><![CDATA[",
        "<?xml",
        "<?xml version='1.0'?>",
        "<depth></too.long.huge.encoding.entity>",
    ],
)
def test_what_is_not_well_formed(content):
    with pytest.raises(MalformedError) as raised:
        load(content)
    assert raised.value.code == "AX101"


def test_names_in_the_input_do_not_choose_the_code():
    for name in ("depth", "encoding", "entity", "huge", "amplification", "utf-8"):
        assert code_of(f"<{name}></x>") == "AX101"


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_truncated_anywhere(cut):
    xml = b'<?xml version="1.0"?><!--c--><a k="1"><b>t</b><![CDATA[x]]></a>'
    with pytest.raises(MalformedError) as raised:
        load(xml[:-cut])
    assert raised.value.code == "AX101"


def test_standard_elements_that_cannot_be_written():
    for wrong in ("a b", "a>", ""):
        with pytest.raises(InputError) as raised:
            load(StandardTree.Element(wrong))
        assert raised.value.code in ("AX101", "AX103")
    element = StandardTree.Element("a")
    element.text = 17  # type: ignore[assignment]  # what a careless program does
    with pytest.raises(InputError) as raised:
        load(element)
    assert raised.value.code == "AX101"


def test_errors_come_back_in_threads():
    """One parser serves all messages; what one thread broke must not reach another."""
    found: list[str] = []

    def work(number: int) -> None:
        for _ in range(200):
            try:
                load("<a>" if number % 2 else "<a/>")
            except MalformedError:
                found.append("odd" if number % 2 else "even")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["odd"] * 400
