"""Where a document can come from: encodings, every kind of source, messages of several trees."""

import io
import xml.etree.ElementTree as StandardTree
from typing import Any

import pytest
from lxml import etree

from axlog.document.loader import load, read_forest
from axlog.document.serializer import serialise
from axlog.errors import InputError, MalformedError, StreamError


def canonical(xml: str | bytes) -> bytes:
    return etree.tostring(etree.ElementTree(etree.fromstring(xml)), method="c14n")


# Encodings ----------------------------------------------------------------------------------------

ENCODED = {
    "utf-8": "utf-8",
    "utf-8-sig": "utf-8",
    "utf-16": "utf-16",
    "utf-16-le": "utf-16",
    "utf-16-be": "utf-16",
    "utf-32": "utf-32",
    "latin-1": "iso-8859-1",
    "iso8859-15": "ISO-8859-15",
    "cp1252": "windows-1252",
    "ascii": "us-ascii",
    "shift_jis": "Shift_JIS",
    "gb18030": "GB18030",
    "euc_kr": "EUC-KR",
}


@pytest.mark.parametrize("codec", ENCODED)
def test_encodings(codec):
    text = {"latin-1": "é", "iso8859-15": "€", "cp1252": "€", "ascii": "e", "euc_kr": "한"}
    value = text.get(codec, "日")
    xml = f'<?xml version="1.0" encoding="{ENCODED[codec]}"?><a k="{value}">{value}</a>'
    tree = load(xml.encode(codec))
    assert serialise(tree) == f'<a k="{value}">{value}</a>'


def test_utf_16_without_a_declaration_declares_namespaces():
    assert serialise(load('<p:a xmlns:p="u"/>'.encode("utf-16"))) == '<p:a xmlns:p="u"/>'


def test_a_text_is_decoded_already_whatever_it_declares():
    for declared in ("utf-16", "latin-1", "no-such"):
        xml = f'<?xml version="1.0" encoding="{declared}"?><a>é€</a>'
        assert serialise(load(xml)) == "<a>é€</a>"
        assert serialise(load("\ufeff" + xml)) == "<a>é€</a>"


# Sources ------------------------------------------------------------------------------------------

XML = '<?xml version="1.0"?><!--c--><a k="é"><b>x</b> tail</a><?p d?>'
WRITTEN = '<!--c--><a k="é"><b>x</b> tail</a><?p d?>'


class Trickle(io.RawIOBase):
    """A file that gives three bytes at a time, as a socket may."""

    def __init__(self, content: bytes) -> None:
        self.left = content

    def read(self, size: int = -1) -> bytes:
        piece, self.left = self.left[:3], self.left[3:]
        return piece


def test_every_kind_of_source(tmp_path):
    path = tmp_path / "a.xml"
    path.write_bytes(XML.encode())
    root = etree.fromstring(XML.encode())
    with path.open("rb") as binary, path.open(encoding="utf-8") as text:
        sources: list[Any] = [
            XML, "\n " + WRITTEN, XML.encode(), path, str(path), binary, text, io.StringIO(XML),
            io.BytesIO(XML.encode()), Trickle(XML.encode()), root, root.getroottree(),
        ]  # fmt: skip
        for source in sources:
            assert serialise(load(source)) == WRITTEN, source


def test_standard_elements():
    root = StandardTree.fromstring('<a k="é"><b xmlns="urn:u">x</b> tail</a>')
    written = serialise(load(StandardTree.ElementTree(root)))
    assert canonical(written) == canonical(StandardTree.tostring(root))
    assert serialise(load(root)) == written
    child = root[0]
    assert canonical(serialise(load(child))) == canonical('<ns0:b xmlns:ns0="urn:u">x</ns0:b>')
    assert child.tail == " tail"


def test_an_element_inside_a_document_is_loaded_alone():
    root = etree.fromstring('<a xmlns:p="u" xmlns="v"><!--c--><b><p:c/></b> tail</a>')
    assert serialise(load(root[1])) == '<b xmlns="v" xmlns:p="u"><p:c/></b>'


@pytest.mark.parametrize(
    "source", [17, None, [], etree.Comment("c"), etree.ElementTree(), object()]
)
def test_what_is_no_source_is_refused(source):
    with pytest.raises(InputError) as raised:
        load(source)
    assert raised.value.code == "AX103"


def test_a_file_that_cannot_be_read(tmp_path):
    for source in (tmp_path / "none.xml", str(tmp_path / "none.xml"), tmp_path, "", "a\0b"):
        with pytest.raises(InputError) as raised:
            load(source)
        assert raised.value.code == "AX102"


def test_an_error_says_where(tmp_path):
    path = tmp_path / "broken.xml"
    path.write_text("<a>\n  <b></c>\n</a>")
    with pytest.raises(MalformedError) as raised:
        load(path)
    place = raised.value.place
    assert place is not None
    assert (place.line, place.source) == (2, str(path))
    assert "  <b></c>\n" in str(raised.value)
    assert str(raised.value).count("column") == 1


def test_messages_are_one_tree_or_several():
    assert [e.tag for e in read_forest("<a/>")] == ["a"]
    assert [e.tag for e in read_forest(b" <a/> <b/>\n")] == ["a", "b"]
    assert len(read_forest("<!--c--><a/><?p d?>")) == 3
    assert len(read_forest("<a/><!--c--><b/>")) == 3
    element = etree.fromstring("<a><b/>tail</a>")[0]
    assert read_forest(element) == [element]


@pytest.mark.parametrize("message", ["x", "<a/>x", "x<a/>", "<a/>&#160;<b/>", "<a/><![CDATA[x]]>"])
def test_text_outside_any_element_of_a_message_is_refused(message):
    with pytest.raises(StreamError) as raised:
        read_forest(message)
    assert raised.value.code == "AX104"


@pytest.mark.parametrize(
    "message", ["", "  ", "</_><_>", "<a/></_><_>", "<a/><b>", "<a/><!--", "</_>", "<a"]
)
def test_a_message_brings_a_tree_and_cannot_leave_its_wrapping(message):
    with pytest.raises(MalformedError) as raised:
        read_forest(message)
    assert raised.value.code == "AX101"


def test_the_place_of_an_error_is_that_of_the_message():
    with pytest.raises(MalformedError) as raised:
        read_forest("<a/><b></c>")
    place = raised.value.place
    assert place is not None
    assert (place.line, place.column, place.text) == (1, 12, "<a/><b></c></_>")
