"""JSON messages: the rule from objects to elements, and back."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import axlog
from axlog.document.json_messages import messages_of_text, to_json, to_xml, xml_of_text
from axlog.document.parser import parse
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError

# what XML can contain: no surrogates, no controls, not the two that end the first plane
texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=6
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)  # fmt: skip
objects = st.dictionaries(texts | st.sampled_from(["oid", "a b", "1", "type", "#text"]), values)


@given(objects)
def test_back_gives_the_object(given: dict[str, Any]) -> None:
    assert to_json(parse(to_xml(given, "m")).root) == given
    assert to_json(parse(xml_of_text(json.dumps(given), "m")).root) == given


def test_the_rule_of_the_docs() -> None:
    message = '{"oid": 17, "total": 1.10, "lines": [{"sku": "a"}, {"sku": "b"}], "note": null}'
    assert xml_of_text(message, "order") == (
        '<order><oid type="number">17</oid><total type="number">1.10</total>'
        '<lines in="array"><sku>a</sku></lines><lines in="array"><sku>b</sku></lines>'
        '<note type="null"/></order>'
    )
    assert xml_of_text('{"order": {"oid": "<17>"}}') == "<order><oid>&lt;17&gt;</oid></order>"
    assert xml_of_text('{"order": 17}') == '<item><order type="number">17</order></item>'
    assert messages_of_text('[{"a": {}}, {"b": {}}]') == ["<a/>", "<b/>"]


def test_xml_that_is_not_from_json() -> None:
    element = parse('<o id="3" type="big" key="k">x<a>1</a>y<a><b/></a></o>').root
    wanted = {"@id": "3", "@type": "big", "@key": "k", "a": ["1", {"b": ""}], "#text": "xy"}
    assert to_json(element) == wanted


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', "[]", "17", '{"a": NaN}', '{"a": "\\u0000"}', "{", "[1]", "[" * 100_000],
)
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(AxlogError) as caught:
        xml_of_text(text)
    assert caught.value.code == "AX106"


def test_documents_take_json_and_elements() -> None:
    import xml.etree.ElementTree as standard

    from lxml import etree

    doc = axlog.Document(streams=["orders"])
    ids = doc.watch("match /document/orders/order/oid/$x return $x")
    xml = "<order><oid>4</oid></order>"
    for message in (
        {"order": {"oid": 1}},
        '{"order": {"oid": 2}}',
        b'[{"order": {"oid": 3}}, {"order": {"oid": 33}}]',
        etree.fromstring(xml),
        etree.ElementTree(etree.fromstring(xml.replace("4", "5"))),
        standard.fromstring(xml.replace("4", "6")),
        standard.ElementTree(standard.fromstring(xml.replace("4", "7"))),
    ):
        doc.feed("orders", message)
    assert [row["x"] for row in ids.rows()] == ["1", "2", "3", "33", "4", "5", "6", "7"]
    with pytest.raises(AxlogError) as caught:
        doc.feed("orders", 17)  # type: ignore[arg-type]  # what the test is about
    assert caught.value.code == "AX103"


def test_updates_take_objects() -> None:
    update = StreamUpdate.of({"stream": "orders", "insert": {"order": {"oid": 1}}})
    assert update.content == '<order><oid type="number">1</oid></order>'
    with pytest.raises(AxlogError) as caught:
        StreamUpdate.of({"stream": "orders", "insert": [1]})
    assert caught.value.code == "AX106"


def test_a_durable_document_takes_json(tmp_path: Path) -> None:
    with axlog.open(tmp_path / "store", '<r><ax:call xmlns:ax="urn:axlog" stream="s"/></r>') as doc:
        doc.feed("s", {"order": {"oid": 1}})
    with axlog.open(tmp_path / "store") as doc:
        assert "<order><oid" in doc.xml()
