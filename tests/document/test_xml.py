"""XML in and out: what is parsed and written again is equal by canonical XML.

Also every kind of source, the whitespace rule, encodings, and namespaces that are put right where a
fragment comes under another default namespace.
"""

import lzma
import re
import tarfile
from html.entities import name2codepoint
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from axlog.document.loader import load
from axlog.document.operations import Attribute, Insert, Rename, Where
from axlog.document.parser import Limits
from axlog.document.pending import apply
from axlog.document.serializer import serialise
from axlog.document.tree import NodeKind
from axlog.errors import HostileError, InputError, MalformedError, StreamError
from tests.document_invariants import invariants, snapshot
from tests.strategies.documents import Features, documents, nodes_of

AX = 'xmlns:ax="urn:axlog"'


def canonical(xml: str | bytes, *, strip: bool = False) -> bytes:
    parser = etree.XMLParser(remove_blank_text=strip, strip_cdata=True)
    return etree.tostring(etree.ElementTree(etree.fromstring(xml, parser)), method="c14n")


def labels(xml: str, keep_whitespace: bool = False) -> list[str]:
    """The labels of all nodes below the root."""
    tree = load(xml, keep_whitespace=keep_whitespace)
    return [tree.label(n) for n in tree.descendants(tree.root)]


# The law ------------------------------------------------------------------------------------------


@given(documents())
def test_oracle_written_again_equals_the_source(xml):
    tree = load(xml, keep_whitespace=True)
    invariants(tree)
    assert canonical(serialise(tree)) == canonical(xml)


@settings(max_examples=settings().max_examples // 2)
@given(documents(Features(namespaces=False)))
def test_oracle_blank_texts_are_dropped_where_something_stands_beside_them(xml):
    tree = load(xml)
    invariants(tree)
    others = "../* or ../comment() or ../processing-instruction()"
    texts: Any = etree.fromstring(xml).xpath(f"//text()[normalize-space() or not({others})]")
    kept = [tree.text(n) for n in tree.descendants(0) if tree.kind(n) is NodeKind.TEXT]
    assert kept == [str(text) for text in texts]


@settings(max_examples=settings().max_examples // 2)
@given(documents(), st.integers(0, 60))
def test_a_subtree_is_written_with_the_namespaces_in_its_scope(xml, at):
    tree = load(xml, keep_whitespace=True)
    elements = [n for n in nodes_of(tree) if tree.kind(n) is NodeKind.ELEMENT]
    node = elements[at % len(elements)]
    position = elements.index(node)
    source = list(etree.fromstring(xml).iter("*"))
    calls = {"{urn:axlog}call"}
    there = [e for e in source if e.tag not in calls][position]
    again = etree.fromstring(serialise(tree, node))
    assert again.nsmap == {k: v for k, v in there.nsmap.items() if k or v}
    assert canonical(serialise(tree, node)) == canonical(
        etree.tostring(there, with_tail=False, encoding="unicode")
    )


@settings(max_examples=settings().max_examples // 2)
@given(documents())
def test_loading_what_was_written_gives_the_same_nodes(xml):
    tree = load(xml, keep_whitespace=True)
    again = load(serialise(tree), keep_whitespace=True)
    assert snapshot(again) == snapshot(tree)


@given(documents(Features(others=False)), st.booleans())
def test_differential_a_text_and_its_parsed_element_give_the_same_tree(xml, keep):
    """The parser leaves out some blanks itself when it is given a text."""
    parsed = etree.fromstring(xml)
    assert snapshot(load(xml, keep_whitespace=keep)) == snapshot(load(parsed, keep_whitespace=keep))


# Other people's documents -------------------------------------------------------------------------

PARTS = {
    "ubl": ("stream-orders/ubl", "*.xml", 70),
    "peppol": ("stream-orders/peppol", "**/*.xml", 90),
    "xmark": ("xmark-xpathmark/docs", "*.xml", 2),
    "nitf": ("yfilter/docs", "*", 100),
    "patches": ("xml-patch-diff", "**/*.xml", 100),
}


@pytest.mark.parametrize("part", PARTS)
def test_oracle_other_peoples_documents(part, conformance):
    folder, pattern, least = PARTS[part]
    paths = [path for path in sorted(conformance(folder).glob(pattern)) if path.is_file()]
    assert len(paths) >= least
    taken = sum(check_file(path) for path in paths)
    assert taken >= least


def check_file(path: Path) -> bool:
    """Whether the file holds a document; if so, it comes out as it went in."""
    content = path.read_bytes()
    try:
        expected = canonical(content)
    except etree.XMLSyntaxError:
        with pytest.raises(MalformedError):
            load(path)
        return False
    if b"<!ENTITY" in content:
        with pytest.raises(HostileError):
            load(path)
        return False
    tree = load(path, keep_whitespace=True)
    invariants(tree)
    assert canonical(serialise(tree)) == expected, path.name
    return True


def test_oracle_sigmod_record(conformance):
    """It refers to characters by names of an external DTD; they are written out here, not there."""
    path = conformance("datasets/SigmodRecord.xml")
    with pytest.raises(HostileError) as raised:
        load(path)
    assert raised.value.code == "AX112"
    text = path.read_text("latin-1")
    known = {f"&{name};": chr(code) for name, code in name2codepoint.items()}
    for name in ("&amp;", "&lt;", "&gt;", "&quot;"):
        del known[name]
    expanded = re.sub(r"&\w+;", lambda found: known.get(found[0], found[0]), text)
    tree = load(expanded, keep_whitespace=True)
    invariants(tree)
    assert canonical(serialise(tree)) == canonical(expanded.encode("latin-1"))
    assert len(load(expanded).partition("article")) == 1504


def test_oracle_versions_of_a_large_document(conformance):
    archive = conformance("stream-large-doc/acl-anthology/P18.versions.tar.xz")
    with lzma.open(archive) as raw, tarfile.open(fileobj=raw) as versions:
        members = [m for m in versions if m.isfile() and m.name.endswith(".xml")]
        assert len(members) > 90
        for member in members[::32]:
            file = versions.extractfile(member)
            assert file is not None
            content = file.read()
            tree = load(content, keep_whitespace=True)
            assert canonical(serialise(tree)) == canonical(content)


# White space --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ("<a>\n <b/>\t<c/>\r\n</a>", ["b", "c"]),
        ("<a> </a>", [" "]),
        ("<a> <b/>x<c/> </a>", ["b", "x", "c"]),
        ("<a>x <b/> y</a>", ["x ", "b", " y"]),
        ("<a><b> </b> <b>\n</b></a>", ["b", " ", "b", "\n"]),
        ("<a>\u00a0<b/></a>", ["\u00a0", "b"]),
        ("<a> <!--c--> </a>", ["c"]),
        ("<a><![CDATA[ ]]><b/></a>", ["b"]),
        ('<a xml:space="preserve"> <b> <c/></b></a>', [" ", "b", " ", "c"]),
        ('<a xml:space="preserve"> <b xml:space="default"> <c/></b> </a>', [" ", "b", "c", " "]),
        ('<a> <b xml:space="preserve"> <c/> </b> </a>', ["b", " ", "c", " "]),
    ],
)
def test_whitespace_between_elements_is_dropped(xml, expected):
    assert labels(xml) == expected


def test_whitespace_is_kept_when_asked_for():
    xml = '<a>\n <b xml:space="default"> <c/> </b> </a>'
    assert labels(xml, keep_whitespace=True) == ["\n ", "b", " ", "c", " ", " "]
    assert canonical(serialise(load(xml, keep_whitespace=True))) == canonical(xml)


def test_fragments_follow_the_same_rule():
    tree = load("<a/>")
    content = (etree.fromstring("<b> <c/> x</b>"),)
    apply(tree, [Insert(Where.INTO, tree.root, content)])
    assert serialise(tree) == "<a><b><c/> x</b></a>"
    apply(tree, [Insert(Where.INTO, tree.root, content)], keep_whitespace=True)
    assert serialise(tree) == "<a><b><c/> x</b><b> <c/> x</b></a>"


# Characters ---------------------------------------------------------------------------------------


def test_cdata_is_text():
    assert labels("<a>x<![CDATA[<&>]]>y</a>") == ["x<&>y"]
    assert serialise(load("<a><![CDATA[<&>]]></a>")) == "<a>&lt;&amp;&gt;</a>"


@pytest.mark.parametrize(
    "character", ["\r", "\n", "\t", "\u0085", "\u2028", "\U0001f600", '"', "'"]
)
def test_characters_survive_in_texts_and_values(character):
    tree = load("<a/>")
    text = f"x{character}y"
    apply(tree, [Insert(Where.INTO, tree.root, (Attribute("k", text), text))])
    again = etree.fromstring(serialise(tree))
    assert (again.get("k"), again.text) == (text, text)


@pytest.mark.parametrize("data", ["", "d", " d ", "a  b  "])
def test_instructions_keep_their_data(data):
    xml = f"<a><?p {data}?></a>"
    assert canonical(serialise(load(xml))) == canonical(xml)


def test_nodes_that_a_program_made_are_read_as_the_parser_would():
    root = etree.Element("a")
    root.append(etree.Comment("x\ry"))
    root.append(etree.PI("p", "  d\r\n"))
    assert serialise(load(root)) == "<a><!--x\ny--><?p d\n?></a>"


# Namespaces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "xml",
    [
        '<p:a xmlns:p="urn:u" xmlns:q="urn:u"><q:b p:x="1" q:y="2"/><p:b/></p:a>',
        '<a xmlns="urn:u" xmlns:p="urn:u"><p:b/><b p:x="1"/></a>',
        '<a xmlns="urn:u"><b xmlns=""><c/></b><d/></a>',
        '<a xmlns="urn:u"><b xmlns=""><c xmlns="urn:v"><d xmlns=""/></c></b></a>',
        '<p:a xmlns:p="urn:u"><p:b xmlns:p="urn:v"><p:c/></p:b><p:d/></p:a>',
        '<a xmlns:p="urn:u"/>',
        '<a xmlns:p="urn:u"><b xmlns:p="urn:u"/></a>',
        '<a xml:lang="en" xml:space="preserve"/>',
        f'<a {AX} xmlns:bx="urn:axlog"><ax:call stream="f"/><bx:call stream="g"/></a>',
        '<a xmlns="urn:axlog"><call stream="f"/></a>',
    ],
)
def test_prefixes_are_kept(xml):
    assert canonical(serialise(load(xml))) == canonical(xml)


def insert(xml: str, fragment: str) -> str:
    """The document after the fragment went into its root."""
    tree = load(xml)
    apply(tree, [Insert(Where.INTO, tree.root, (etree.fromstring(fragment),))])
    invariants(tree)
    return serialise(tree)


@pytest.mark.parametrize(
    ("xml", "fragment", "expected"),
    [
        ('<a xmlns="urn:u"/>', "<b><c/></b>", '<a xmlns="urn:u"><b xmlns=""><c/></b></a>'),
        ('<a xmlns="urn:u"/>', '<b xmlns="urn:u"/>', '<a xmlns="urn:u"><b/></a>'),
        ('<a xmlns="urn:u"/>', '<b xmlns="urn:v"/>', '<a xmlns="urn:u"><b xmlns="urn:v"/></a>'),
        (
            '<p:a xmlns:p="urn:u"/>',
            '<p:b xmlns:p="urn:v"/>',
            '<p:a xmlns:p="urn:u"><p:b xmlns:p="urn:v"/></p:a>',
        ),
        ("<a/>", '<p:b xmlns:p="urn:v" p:k="1"/>', '<a><p:b xmlns:p="urn:v" p:k="1"/></a>'),
    ],
)
def test_a_fragment_keeps_its_namespaces(xml, fragment, expected):
    assert insert(xml, fragment) == expected


def test_a_part_of_another_document_brings_its_scope():
    other = etree.fromstring('<a xmlns:p="urn:u" xmlns="urn:v"><b p:k="1"><c/></b></a>')
    tree = load("<r/>")
    apply(tree, [Insert(Where.INTO, tree.root, (other[0],))])
    assert serialise(tree) == '<r><b xmlns="urn:v" xmlns:p="urn:u" p:k="1"><c/></b></r>'


def test_names_without_a_declaration_get_one():
    tree = load('<a xmlns:ns0="urn:x"><b/></a>')
    b = next(tree.children(tree.root))
    apply(tree, [Rename(b, "{urn:u}b"), Insert(Where.INTO, b, (Attribute("{urn:v}k", "1"),))])
    again = etree.fromstring(serialise(tree))
    assert again[0].tag == "{urn:u}b"
    assert again[0].items() == [("{urn:v}k", "1")]
    assert again.nsmap == {"ns0": "urn:x"}


def test_an_element_renamed_out_of_its_default_namespace():
    tree = load('<a xmlns="urn:u"><b/></a>')
    apply(tree, [Rename(tree.root, "a")])
    again = etree.fromstring(serialise(tree))
    assert (again.tag, again[0].tag) == ("a", "{urn:u}b")


def test_many_namespaces_over_many_elements():
    """As many namespace nodes as elements times declarations would break any limit of XPath."""
    declared = " ".join(f'xmlns:p{i}="urn:u{i}"' for i in range(12))
    root = etree.fromstring(f"<a {declared}>" + "<b/>" * 100_000 + "</a>")
    tree = load(root)
    assert len(tree.partition("b")) == 100_000
    assert len(tree.namespaces_by_node) == 1


# Calls --------------------------------------------------------------------------------------------


def test_calls_are_leaves_of_their_own_kind():
    xml = (
        f'<a {AX}><ax:call stream="f" mode="one-shot" most="3" service="w" deletes="only"'
        ' late="clock"/></a>'
    )
    tree = load(xml)
    node = tree.calls()["f"]
    call = tree.call(node)
    assert (call.stream, call.mode, call.most) == ("f", "one-shot", 3)
    assert (call.service, call.deletes, call.late) == ("w", "only", "clock")
    assert tree.kind(node) is NodeKind.CALL
    assert not list(tree.chain(node))
    assert tree.string_value(tree.root) == ""
    assert canonical(serialise(tree)) == canonical(xml)


@pytest.mark.parametrize(
    "call",
    [
        "<ax:call/>",
        '<ax:call stream=""/>',
        '<ax:call stream="f" mode="never"/>',
        '<ax:call stream="f" most="-1"/>',
        '<ax:call stream="f" most="many"/>',
        f'<ax:call stream="f" most="{"9" * 5000}"/>',
        '<ax:call stream="f" deletes="maybe"/>',
        '<ax:call stream="f" late="never"/>',
        '<ax:call stream="f" sream="g"/>',
        '<ax:call stream="f">x</ax:call>',
        '<ax:call stream="f"><b/></ax:call>',
    ],
)
def test_calls_that_are_not_written_as_calls_should_be(call):
    for source in (f"<a {AX}>{call}</a>", f"<a {AX}><b/>{call}</a>"):
        with pytest.raises(InputError) as raised:
            load(source)
        assert raised.value.code == "AX105"


def test_a_call_is_no_root_and_no_second_call():
    with pytest.raises(InputError) as raised:
        load(f'<ax:call {AX} stream="f"/>')
    assert raised.value.code == "AX105"
    with pytest.raises(StreamError) as second:
        load(f'<a {AX}><ax:call stream="f"/><ax:call stream="f"/></a>')
    assert second.value.code == "AX403"


# Times --------------------------------------------------------------------------------------------


def test_every_node_gets_the_time_of_loading():
    tree = load("<a k='1'>t<b/></a>", time=17)
    assert {tree.time(n) for n in nodes_of(tree)} == {17}
    assert tree.clock == 17


def test_a_time_beyond_the_column_is_refused():
    for time in (1 << 63, -(1 << 63) - 1):
        with pytest.raises(StreamError) as raised:
            load("<a/>", time=time)
        assert raised.value.code == "AX409"


@settings(max_examples=settings().max_examples // 4)
@given(documents())
def test_depth_is_counted_in_elements(xml):
    elements = etree.fromstring(xml).iter("*")
    deepest = max(1 + sum(1 for _ in element.iterancestors()) for element in elements)
    is_call = "ax:call" in xml
    load(xml, limits=Limits(depth=deepest))
    if deepest > 1 and not is_call:
        with pytest.raises(InputError) as raised:
            load(xml, limits=Limits(depth=deepest - 1))
        assert raised.value.code == "AX121"
