"""Values of the variables of statements: atoms, XML, documents, identifiers."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from lxml import etree

import axlog
from axlog.errors import AxlogError
from axlog.evaluate.variables import read_back, written

VALUES: list[tuple[Any, str]] = [
    ("<b/>&amp;", "&lt;b/&gt;&amp;amp;"),
    (1, "1"),
    (1.5, "1.5"),
    (True, "true"),
    (Decimal("2.50"), "2.5"),
    (date(2024, 2, 29), "2024-02-29"),
    (datetime(2024, 2, 29, 1, 2, 3), "2024-02-29T01:02:03"),
    (time(1, 2, 3), "01:02:03"),
    (timedelta(hours=-1), "-PT1H"),
    (None, ""),
    ([1, "a", None, [2]], "1 a 2"),
    (axlog.Fragment("<x/><!--y--><z>1</z>"), "<x/><!--y--><z>1</z>"),
    (etree.fromstring("<r><x k='1'/>tail</r>")[0], '<x k="1"/>'),
    (ElementTree.fromstring("<x><y/></x>"), "<x><y/></x>"),
    (etree.ElementTree(etree.fromstring("<x/>")), "<x/>"),
    (axlog.parse("<x>1</x>"), "<x>1</x>"),
    ([axlog.Fragment("<x/>"), "t"], "<x/>t"),
]


@pytest.mark.parametrize(("value", "content"), VALUES, ids=range(len(VALUES)))
def test_a_value_becomes_content(value: Any, content: str, tmp_path: Path) -> None:
    statement = "declare variable $new external; insert node <n>{$new}</n> into /r"
    document = axlog.parse("<r/>")
    document.update(statement, variables={"new": value})
    expected = axlog.parse(f"<r><n>{content}</n></r>").xml()
    assert document.xml() == expected
    with axlog.open(tmp_path / "store", "<r/>") as store:
        store.update(statement, variables={"new": value})
        assert store.xml() == expected
    with axlog.open(tmp_path / "store") as store:
        assert store.xml() == expected


def test_values_keep_their_types() -> None:
    document = axlog.parse("<r><a>10</a><a>9</a></r>")
    document.update("delete nodes /r/a[xs:integer(.) = $n]", variables={"n": 9})
    assert document.xml() == "<r><a>10</a></r>"
    with pytest.raises(AxlogError) as caught:
        document.update("delete nodes /r/a[xs:integer(.) = $n]", variables={"n": "9"})
    assert caught.value.code == "XPTY0004"


def test_an_identifier_is_a_node_of_the_document() -> None:
    document = axlog.parse("<r><a/><b/></r>")
    view = document.watch("//b")
    node = view.rows()[0]["node.id"]
    document.update("rename node $n as 'c'", variables={"n": node})
    assert document.xml() == "<r><a/><c/></r>"
    document.update("delete node $n", variables={"n": node})
    with pytest.raises(AxlogError) as caught:
        document.update("delete node $n", variables={"n": node})
    assert caught.value.code == "AX301"


def test_xml_values_are_read_and_never_changed() -> None:
    prices = etree.fromstring("<prices><p id='1'>5</p><p id='2'>7</p></prices>")
    document = axlog.parse("<r><o id='2'/></r>")
    document.update(
        "for $o in /r/o return insert node $prices/p[@id = $o/@id]/text() into $o",
        variables={"prices": prices},
    )
    assert document.xml() == '<r><o id="2">7</o></r>'
    with pytest.raises(AxlogError) as caught:
        document.update("delete node $prices/p[1]", variables={"prices": prices})
    assert caught.value.code == "AX302"
    assert len(prices) == 2


@pytest.mark.parametrize("value", [{}, object(), b"<a/>", {1}])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(AxlogError) as caught:
        axlog.parse("<r/>").update("insert node $n into /r", variables={"n": value})
    assert caught.value.code == "AX218"


@pytest.mark.parametrize(
    "xml", ["<a/></_><_>", "<a>", "text", "", "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>"]
)
def test_a_fragment_is_well_formed(xml: str) -> None:
    with pytest.raises(AxlogError) as caught:
        axlog.Fragment(xml)
    assert caught.value.code in ("AX101", "AX104", "AX111")


@pytest.mark.parametrize(
    "value", [{}, {"xml": "<a/>", "id": "1"}, {"no": "1"}, {"decimal": "x"}, {"date": 1}]
)
def test_a_damaged_record_is_refused(value: object) -> None:
    with pytest.raises(AxlogError) as caught:
        read_back(value)
    assert caught.value.code == "AX871"


def test_json_forms() -> None:
    assert written("n", "<a/>") == "<a/>"
    assert written("n", float("inf")) == {"double": "inf"}
    assert written("n", etree.fromstring("<a/>")) == {"xml": "<a/>"}
