"""The public face: one class, options that are checked, and the names that users know."""

from pathlib import Path
from typing import Any

import pytest

import axlog
from axlog.errors import AxlogError, QueryError
from axlog.views.change import Change

IDS = {"ids": "match //orders/order/oid/$x return $x"}
ORDER = "<order><oid>17</oid></order>"


def test_a_skeleton_has_a_place_for_each_stream() -> None:
    doc = axlog.Document(streams=["orders", "shipments"], views=IDS)
    assert list(doc.streams()) == ["orders", "shipments"]
    assert [change.to_dict() for change in doc.feed("orders", ORDER)] == [
        {
            "view": "ids",
            "op": "insert",
            "key": ["17"],
            "row": {"x": "17"},
            "time": 0,
            "cause": {"kind": "message", "stream": "orders", "number": 1},
            "final": False,
            "position": 1,
        }
    ]
    assert doc.feed("shipments", ORDER) == []
    assert [child.tag for child in doc.element()] == ["orders", "shipments"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "AX211"),
        ({"streams": []}, "AX211"),
        ({"streams": "orders"}, "AX211"),
        ({"source": "<a/>", "streams": ["orders"]}, "AX211"),
        ({"streams": ["two words"]}, "AX303"),
        ({"streams": ["orders", "orders"]}, "AX403"),
    ],
)
def test_a_wrong_skeleton_is_refused(given: dict[str, Any], code: str) -> None:
    with pytest.raises(AxlogError) as refused:
        axlog.Document(**given)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "given",
    [
        {"on_error": "ignore"},
        {"keep": "some"},
        {"validate": "none"},
        {"collect": "always"},
        {"cache": "tape"},
        {"never": "always"},
        {"times": "hours"},
        {"tune": "now"},
        {"tune": {"messages": 0}},
        {"memory": -1},
        {"limits": {"depth": 3}},
    ],
    ids=str,
)
def test_a_wrong_option_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(QueryError) as refused:
        axlog.Options(**given)
    assert refused.value.code == "AX211"


def test_options_are_those_that_were_given() -> None:
    options = axlog.Options(keep="needed", times="dates")
    assert axlog.parse("<a/>", options=options).options is options


async def _coroutine(change: Change) -> None:
    raise AssertionError


@pytest.mark.parametrize(
    ("callback", "said"),
    [(_coroutine, "async for"), ("print", "not a function"), (None, "function")],
)
def test_a_callback_that_cannot_be_called_is_refused(callback: object, said: str) -> None:
    view = axlog.parse("<a/>").watch("//b")
    with pytest.raises(QueryError, match=said):
        view.subscribe(callback)  # type: ignore[arg-type]


def test_a_subscriber_gets_every_change_until_it_unsubscribes() -> None:
    doc = axlog.Document(streams=["orders"], views=IDS)
    got: list[axlog.Change] = []
    unsubscribe = doc.view("ids").subscribe(got.append)
    doc.feed("orders", ORDER)
    unsubscribe()
    doc.feed("orders", ORDER.replace("17", "18"))
    assert [change.row.to_dict() for change in got] == [{"x": "17"}]


def test_head_returns_at_most_so_many_rows() -> None:
    doc = axlog.Document(streams=["orders"], views=IDS)
    for number in range(9):
        doc.feed("orders", ORDER.replace("17", str(number)))
    view = doc.view("ids")
    assert len(view.head()) == 5
    assert {row["x"] for row in view.head(3)} < {row["x"] for row in view.rows()}


def test_rows_become_a_data_frame() -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    doc = axlog.Document(streams=["orders"], views=IDS)
    doc.feed("orders", ORDER)
    found = doc.view("ids").to_pandas()
    assert found.to_dict("records") == [{"x": "17", "count": 1}]


def test_relevance_of_a_document() -> None:
    doc = axlog.Document(streams=["orders", "other"])
    found = axlog.relevance(doc, "match /document/orders/order")
    assert {stream: each.relevant for stream, each in found.items()} == {
        "orders": True,
        "other": False,
    }
    assert found["other"].to_dict()["wanted"] == []


def test_a_view_that_is_unwatched_is_gone() -> None:
    doc = axlog.parse("<orders/>", views=IDS)
    doc.unwatch("ids")
    for gone in (doc.view, doc.unwatch):
        with pytest.raises(QueryError) as refused:
            gone("ids")
        assert refused.value.code == "AX203"


def test_a_document_gets_streams_by_a_statement() -> None:
    """The stream machinery is made when it is needed, and a batch that is rolled back drops it."""
    doc = axlog.parse("<orders/>", views=IDS)
    call = '<ax:call xmlns:ax="urn:axlog" stream="s"/>'

    def rolled_back() -> None:
        with doc.batch():
            doc.update(f"insert node {call} into /orders")
            assert len(doc.feed("s", ORDER)) == 1
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        rolled_back()
    assert (doc.xml(), doc.streams(), doc.view("ids").rows()) == ("<orders/>", {}, [])
    doc.update(f"insert node {call} into /orders")
    assert len(doc.feed("s", ORDER)) == 1
    assert doc.streams()["s"].messages == 1


def test_a_store_keeps_its_options_and_facts(tmp_path: Path) -> None:
    xml = '<r><ax:call xmlns:ax="urn:axlog" stream="s"/></r>'
    options = axlog.Options(times="dates", namespaces={"p": "urn:p"})
    facts = ["key a by k enforced"]
    with axlog.open(tmp_path, xml, facts=facts, options=options) as doc:
        doc.feed("s", "<a><k>1</k></a>")
    with axlog.open(tmp_path) as again:
        assert (again.options.times, again.options.namespaces) == ("dates", {"p": "urn:p"})
        with pytest.raises(AxlogError) as refused:
            again.feed("s", "<a><k>1</k></a>")
        assert refused.value.code == "AX413"
